"""Commands that make runs: run, quickstart."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from judgekit.cli.outcome import print_json, reported, say

if TYPE_CHECKING:
    from judgekit.core.runs import RunSummary
    from judgekit.workflows.job import RunJob
    from judgekit.workflows.models import Options
    from judgekit.workflows.setup import Setup

RUN_EPILOG = """\b
Examples:
  judgekit run config.json                      judge everything that the config names
  judgekit run config.json --limit 20           the first 20 cases only
  judgekit run config.json --sample 20          20 cases drawn at random, the same ones each time
  judgekit run config.json --dry-run            how many calls, tokens and what cost, without a call
  judgekit run config.json --shard 1/2          one of two processes; then a plain run puts it together
  judgekit run --resume demo-20260131-142501-3f9a
  judgekit run quickstart --json | jq .metrics.overall.groundedness

\b
Exit codes: 0 done, 1 a gate was missed, 2 config or data to mend, 3 the provider refuses,
4 storage, 130 interrupted (go on with --resume).
"""

ResultsDir = Annotated[Path | None, typer.Option("--results-dir", help="Folder of runs; default: results.")]
Limit = Annotated[int | None, typer.Option("--limit", min=1, help="Take only the first N cases.")]
Sample = Annotated[
    int | None, typer.Option("--sample", min=1, help="Take only N cases, drawn at random with the config's seed.")
]
Shard = Annotated[
    str | None, typer.Option("--shard", help="Judge part I of N only; a plain run afterwards finds all replies cached.")
]
RunId = Annotated[str | None, typer.Option("--run-id", help="Name of the run; default: name, time and four letters.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object on stdout and nothing else there.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Check everything and estimate calls and cost; no call.")]
Junit = Annotated[
    Path | None, typer.Option("--junit", help="Write gates and failures as JUnit XML too, for a CI server.")
]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress.")]
NoCache = Annotated[bool, typer.Option("--no-cache", help="Ask every question anew and store no replies.")]
Debug = Annotated[bool, typer.Option("--debug", help="Show tracebacks.")]


def register(app: typer.Typer) -> None:
    """Add the commands of this file."""
    app.command("run", epilog=RUN_EPILOG)(run_command)
    app.command("quickstart", epilog="The same as `judgekit run quickstart`.")(quickstart_command)


def run_command(
    config: Annotated[str | None, typer.Argument(help="Config file, or `quickstart` for the shipped example.")] = None,
    resume: Annotated[
        str | None, typer.Option("--resume", help="Go on with this run (id or folder), or ask its failed calls again.")
    ] = None,
    limit: Limit = None,
    sample: Sample = None,
    shard: Shard = None,
    run_id: RunId = None,
    results_dir: ResultsDir = None,
    dry_run: DryRun = False,
    as_json: AsJson = False,
    no_cache: NoCache = False,
    junit: Junit = None,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Judge the outputs of a system: metrics, judges, spot check, into a new run folder."""
    from judgekit.core.errors import ConfigError
    from judgekit.workflows.job import start
    from judgekit.workflows.models import Options
    from judgekit.workflows.resuming import resume_job
    from judgekit.workflows.selectors import config_path_of
    from judgekit.workflows.setup import set_up

    options = Options(
        results_dir=results_dir, run_id=run_id, limit=limit, sample=sample, shard=shard, use_cache=not no_cache
    )
    with reported(debug=debug):
        if config is None and resume is None:
            raise ConfigError("name a config file, such as `judgekit run config.json`, or try `judgekit quickstart`")
        path = config_path_of(config) if config is not None else None
        if resume is not None:
            if (limit, sample, run_id, shard) != (None, None, None, None):
                raise ConfigError("--limit, --sample, --shard and --run-id belong to a new run and not to --resume")
            job = resume_job(resume, path, options)
        else:
            assert path is not None  # noqa: S101  # for the type checker: one of the two is given
            setup = set_up(path, options)
            if dry_run:
                _print_dry_run(setup, options, as_json=as_json)
                return
            job = start(setup, options)
    carry_out(job, as_json=as_json, quiet=quiet, debug=debug, junit=junit)


def quickstart_command(
    results_dir: ResultsDir = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Run the shipped example: offline, no key, a few seconds."""
    run_command("quickstart", results_dir=results_dir, as_json=as_json, quiet=quiet, debug=debug)


def carry_out(job: "RunJob", *, as_json: bool, quiet: bool, debug: bool, junit: Path | None = None) -> None:
    """Carry a run to its end, print its figures, and end with the exit code of its gates."""
    from judgekit.cli.github import announce

    summary = judge_all(job, quiet=quiet, debug=debug, junit=junit)
    _print_summary(summary, job.store.path, as_json=as_json)
    announce(summary)
    with reported(debug=debug):
        _write_junit(job.store.path, junit)
    if not all(gate.passed for gate in summary.gates):
        raise typer.Exit(1)


def judge_all(job: "RunJob", *, quiet: bool, debug: bool, junit: Path | None = None) -> "RunSummary":
    """Carry a run to its end with progress on stderr; what stops it is said there, with how to go on."""
    from contextlib import suppress

    from judgekit.cli.github import announce_error
    from judgekit.cli.progress import ProgressObserver
    from judgekit.core.errors import ConfigError, JudgekitError, RunBusy
    from judgekit.executors.local import run_local
    from judgekit.workflows.resuming import is_open
    from judgekit.workflows.run import run

    hint = f"go on with: judgekit run --resume {job.store.path}"
    with reported(debug=debug, resume_hint=hint):
        try:
            with ProgressObserver(quiet=quiet) as observer:
                return run_local(lambda: run(job, observer))
        except RunBusy:
            raise  # the run is another process's
        except Exception as error:
            announce_error(str(error))
            with suppress(JudgekitError):  # a second fault must not hide the first
                _write_junit(job.store.path, junit)
            if job.store.path.exists():  # what is found before any call leaves no run
                # What has to be changed in a config or a prompt makes another run of it.
                may_go_on = not isinstance(error, ConfigError) and is_open(job.store.path)
                say(f"run folder: {job.store.path}" + (f" ({hint})" if may_go_on else ""))
            raise
    raise AssertionError("unreachable: what is reported ends the command")


def _write_junit(folder: Path, junit: Path | None) -> None:
    if junit is None:
        return
    from judgekit.workflows.reporting import write_report

    write_report(folder, "junit", junit)


def _print_summary(summary: "RunSummary", folder: Path, *, as_json: bool) -> None:
    import sys

    from judgekit.analysis.stored_figures import rounded
    from judgekit.reports.run_text import plain_text, rich_table

    if as_json:
        metrics = rounded(summary.model_dump(mode="json"))
        document = {"run_id": summary.run_id, "run_dir": str(folder), "status": summary.status, "metrics": metrics}
        print_json(document)
        return
    if sys.stdout.isatty():
        from rich.console import Console

        Console().print(rich_table(summary))
    else:
        typer.echo(plain_text(summary))
    typer.echo(f"\n{folder}")


def _print_dry_run(setup: "Setup", options: "Options", *, as_json: bool) -> None:
    from judgekit.executors.local import run_local
    from judgekit.reports.run_text import dry_run_text
    from judgekit.workflows.dry_run import dry_run

    found = run_local(lambda: dry_run(setup, options))
    if as_json:
        print_json(found)
    else:
        typer.echo(dry_run_text(found))
