"""Commands that ask judges about all outputs: run, rejudge. What they share with other commands is here too."""

from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from typer import Argument, Option

from judgekit.cli.commands import (
    RUN,
    FromDir,
    NoCache,
    OtherConfig,
    Run,
    RunId,
    Shared,
    app,
    command,
    print_figures,
    print_json,
    resumable,
    say,
)

if TYPE_CHECKING:
    from judgekit.core.runs import RunSummary
    from judgekit.workflows.job import RunJob
    from judgekit.workflows.models import Options
    from judgekit.workflows.setup import Setup

CaseIds = Annotated[
    list[str] | None, Option("--case", metavar="ID", help="Take only the case of this id; may be repeated.")
]

RUN_EPILOG = """\b
Examples:
  judgekit run config.json                      judge everything that the config names
  judgekit run config.json --limit 20           the first 20 cases only
  judgekit run config.json --sample 20          20 cases drawn at random, the same ones each time
  judgekit run config.json --case q1 --case q7  these two cases only
  judgekit run config.json --dry-run            how many calls, tokens and what cost, without a call
  judgekit run config.json --shard 1/2          one of two processes; `judgekit merge` puts them together
  judgekit run --resume demo-20260131-142501-3f9a
  judgekit run quickstart --json | jq .metrics.overall.groundedness

\b
Exit codes: 0 done, 1 a gate was missed, 2 config or data to correct, 3 the provider refuses,
4 storage, 130 interrupted (resume with --resume).
"""

REJUDGE_EPILOG = """\b
Examples:
  judgekit rejudge demo-20260131-142501-3f9a                        with a warm cache: no call, the same verdicts
  judgekit rejudge RUN --model other                                ask another model of the run's config
  judgekit rejudge RUN --judge groundedness --prompt-version v2     try a new wording on old inputs
  judgekit rejudge RUN --config new.json --model judge-2026         a model of another config
  judgekit run --resume NEW_RUN                                     resume a rejudge that stopped

\b
The system under test is not called. Exit codes as of `judgekit run`.
"""


@command(app, "run", panel=RUN, json=True, quiet=True, stats=True, epilog=RUN_EPILOG)
def run_command(
    shared: Shared,
    config: Annotated[str | None, Argument(help="Config file, or `quickstart` for the shipped example.")] = None,
    resume: Annotated[
        str | None, Option("--resume", help="Resume this run (id or folder), or ask its failed calls again.")
    ] = None,
    limit: Annotated[int | None, Option("--limit", min=1, help="Take only the first N cases.")] = None,
    sample: Annotated[
        int | None, Option("--sample", min=1, help="Take only N cases, drawn at random with the config's seed.")
    ] = None,
    shard: Annotated[
        str | None, Option("--shard", help="Judge part I of N only; `judgekit merge` puts the parts together.")
    ] = None,
    case: CaseIds = None,
    run_id: RunId = None,
    dry_run: Annotated[
        bool, Option("--dry-run", help="Check everything, print the number of calls and the cost at most; no call.")
    ] = False,
    no_cache: NoCache = False,
    junit: Annotated[
        Path | None, Option("--junit", help="Write gates and failures as JUnit XML too, for a CI server.")
    ] = None,
) -> None:
    """Judge the outputs of a system, into a new run folder. Metrics, judges and spot checks, as the config says."""
    from judgekit.core.errors import ConfigError
    from judgekit.workflows.job import start
    from judgekit.workflows.resuming import resume_job
    from judgekit.workflows.selectors import config_path_of
    from judgekit.workflows.setup import set_up

    part = {"limit": limit, "sample": sample, "shard": shard, "case_ids": _each_once(case)}
    options = shared.options(run_id=run_id, use_cache=not no_cache, **part)
    path = config_path_of(config) if config is not None else None
    if resume is not None:
        if run_id is not None or any(value is not None for value in part.values()):
            raise ConfigError("--limit, --sample, --shard, --case and --run-id belong to a new run and not to --resume")
        job = resume_job(resume, path, options)
    elif path is None:
        raise ConfigError("name a config file, such as `judgekit run config.json`, or try `judgekit quickstart`")
    else:
        setup = set_up(path, options)
        if dry_run:
            _print_dry_run(setup, options, shared)
            return
        job = start(setup, options)
    carry_out(job, shared, junit)


def _each_once(case_ids: list[str] | None) -> tuple[str, ...] | None:
    return tuple(dict.fromkeys(case_ids)) if case_ids else None


RECORD_EPILOG = """\b
Examples:
  judgekit record config.json              ask the system about every case, and no judge
  judgekit record config.json --limit 5    the first 5 cases only
  judgekit run --resume RUN                then judge what it answered; a recording that stopped resumes the same way

\b
The outputs are in RUN/outputs.jsonl, which any later config can name: "system": {"path": "RUN/outputs.jsonl"}.
Exit codes as of `judgekit run`.
"""


@command(app, "record", panel=RUN, json=True, quiet=True, epilog=RECORD_EPILOG)
def record_command(
    shared: Shared,
    config: Annotated[Path, Argument(help="Config file with a live system.")],
    limit: Annotated[int | None, Option("--limit", min=1, help="Take only the first N cases.")] = None,
    sample: Annotated[int | None, Option("--sample", min=1, help="Take only N cases, drawn at random.")] = None,
    shard: Annotated[str | None, Option("--shard", help="Ask about part I of N only.")] = None,
    case: CaseIds = None,
    run_id: RunId = None,
    no_cache: NoCache = False,
) -> None:
    """Ask the system under test, and keep its outputs. Into a new run folder; no judge is asked."""
    from judgekit.reports.run_text import recorded_text
    from judgekit.workflows.job import start
    from judgekit.workflows.selectors import config_path_of
    from judgekit.workflows.setup import set_up

    part = {"limit": limit, "sample": sample, "shard": shard, "case_ids": _each_once(case)}
    options = shared.options(run_id=run_id, use_cache=not no_cache, needs_keys=False, **part)
    job = start(set_up(config_path_of(str(config)), options), options)
    summary = judge_all(job, shared, only_record=True)
    about = {"run_id": summary.run_id, "run_dir": str(job.folder.path), "n_cases": len(job.cases)}
    found = {**about, "system": job.folder.manifest().system}
    shared.show(found, lambda: recorded_text(found))


PREFER_EPILOG = """\b
Examples:
  judgekit prefer latest:main latest                     which answers are better, by the shipped judge of preference
  judgekit prefer RUN_A RUN_B --model other              ask another model of RUN_B's config
  judgekit prefer RUN_A RUN_B --config prefer.json       judge, models, gates, spot check and budget of a config
  judgekit prefer RUN_A RUN_B RUN_C                      every pair of runs, and Bradley-Terry strengths
  judgekit prefer RUN_A RUN_B --dry-run                  how many calls and what cost: two for each pair
  judgekit prefer RUN_A RUN_B --json | jq '.metrics.overall["preference.win_rate"]'
  judgekit run --resume NEW_RUN                          resume a comparison that stopped

\b
Every pair of answers is asked in both orders. Exit codes as of `judgekit run`.
"""


@command(app, "prefer", panel=RUN, json=True, quiet=True, stats=True, epilog=PREFER_EPILOG)
def prefer_command(
    shared: Shared,
    runs: Annotated[list[str], Argument(help="Two runs or more, A first: ids, folders, `latest` or `latest:TAG`.")],
    judge: Annotated[
        str | None, Option("--judge", help="A judge of preference; default: the config's, else `preference`.")
    ] = None,
    model: Annotated[str | None, Option("--model", help="Key of the model to ask.")] = None,
    prompt_version: Annotated[str | None, Option("--prompt-version", help="Wording to ask with.")] = None,
    config: Annotated[
        Path | None, Option("--config", help="A config with judge, models and gates; default: the last run's models.")
    ] = None,
    limit: Annotated[int | None, Option("--limit", min=1, help="Take only the first N cases.")] = None,
    sample: Annotated[int | None, Option("--sample", min=1, help="Take only N cases, drawn at random.")] = None,
    run_id: RunId = None,
    dry_run: Annotated[
        bool, Option("--dry-run", help="Print the number of calls and the cost at most; no call.")
    ] = False,
    no_cache: NoCache = False,
) -> None:
    """Ask a judge which of two runs has the better answers. Into a new run; each pair is asked in both orders."""
    from judgekit.workflows.prefer import PreferWanted, open_comparison

    options = shared.options(run_id=run_id, limit=limit, sample=sample, use_cache=not no_cache, needs_keys=not dry_run)
    comparison = open_comparison(runs, PreferWanted(judge, model, prompt_version, config), options)
    if dry_run:
        _print_dry_run(comparison.setup, comparison.options, shared)
        return
    carry_out(comparison.start(), shared)


@command(app, "rejudge", panel=RUN, json=True, quiet=True, stats=True, epilog=REJUDGE_EPILOG)
def rejudge_command(
    shared: Shared,
    run: Run,
    model: Annotated[str | None, Option("--model", help="Key of the model to ask.")] = None,
    prompt_version: Annotated[str | None, Option("--prompt-version", help="Wording to ask with.")] = None,
    judge: Annotated[
        list[str] | None, Option("--judge", help="Only this judge; may be repeated. The others are copied.")
    ] = None,
    config: OtherConfig = None,
    from_dir: FromDir = None,
    run_id: RunId = None,
    no_cache: NoCache = False,
) -> None:
    """Judge the stored inputs of a run again, into a new run. The system under test is not called."""
    from judgekit.workflows.rejudge import RejudgeWanted, open_rejudge

    wanted = RejudgeWanted(tuple(dict.fromkeys(judge or ())), model, prompt_version, config)
    options = shared.options(run_id=run_id, use_cache=not no_cache, from_dir=from_dir)
    carry_out(open_rejudge(run, wanted, options), shared)


MERGE_EPILOG = """\b
Examples:
  judgekit run config.json --shard 1/2 --run-id half-1     on one machine
  judgekit run config.json --shard 2/2 --run-id half-2     on another, at the same time
  judgekit merge half-1 half-2 --run-id whole              the figures of one run over all cases
  judgekit merge shards/* --results-dir results            shards in folders, such as artifacts of a CI matrix
  judgekit merge half-1 half-2 --config here/config.json   if config and data are elsewhere now

\b
All shards must be complete, and of one config, data and judgekit. No judge is asked again. A model is asked only where
the spot check needs what no shard could know: a sample that grows (adaptive), verdicts older than a day, a live system.
Exit codes as of `judgekit run`.
"""


@command(app, "merge", panel=RUN, json=True, quiet=True, stats=True, epilog=MERGE_EPILOG)
def merge_command(
    shared: Shared,
    runs: Annotated[list[str], Argument(help="The runs of all shards, in any order: ids or folders.")],
    config: Annotated[
        Path | None, Option("--config", help="Where the config is now; default: where the shards were judged from.")
    ] = None,
    run_id: RunId = None,
) -> None:
    """Put complete shards together. Into a new run, with the figures of one process."""
    from judgekit.workflows.merge import open_merge

    carry_out(open_merge(runs, shared.options(run_id=run_id), config), shared)


def carry_out(job: "RunJob", shared: Shared, junit: Path | None = None) -> None:
    """Carry a run to its end, print its figures, and end with the exit code of its gates."""
    from judgekit.cli.github_actions import announce
    from judgekit.core.runs import METRICS, REPORT
    from judgekit.reports.finding_sentences import with_sentence
    from judgekit.reports.run_sentence import run_sentence
    from judgekit.reports.run_text import places_text, plain_text, rich_table

    summary = judge_all(job, shared, junit)
    folder = job.folder.path
    if shared.as_json:
        metrics = job.folder.read_json(METRICS)
        about = {"run_id": summary.run_id, "run_dir": str(folder), "status": summary.status}
        print_json(with_sentence({**about, "metrics": metrics}, run_sentence(summary)))
    else:
        print_figures(rich_table, plain_text, summary, stats=shared.stats)
        typer.echo(places_text(folder, has_report=(folder / REPORT).exists()))
    announce(summary)
    _write_junit(folder, junit)
    if any(gate.fails for gate in summary.gates):
        raise typer.Exit(1)


def judge_all(job: "RunJob", shared: Shared, junit: Path | None = None, *, only_record: bool = False) -> "RunSummary":
    """Carry a run to its end with progress on stderr; what stops it is said there, with how to resume it."""
    from judgekit.cli.github_actions import announce_error
    from judgekit.cli.progress import ProgressObserver
    from judgekit.core.errors import ConfigError, JudgekitError, RunBusy
    from judgekit.executors.event_loop import run_local
    from judgekit.workflows.resuming import is_open
    from judgekit.workflows.run import run

    hint = f"resume with: judgekit run --resume {job.folder.path}"
    try:
        with resumable(hint), ProgressObserver(quiet=shared.quiet) as observer:
            return run_local(lambda: run(job, observer, only_record=only_record))
    except RunBusy:
        raise  # the run is another process's
    except Exception as error:
        announce_error(str(error))
        with suppress(JudgekitError):  # a second fault must not hide the first
            _write_junit(job.folder.path, junit)
        if job.folder.path.exists():  # what is found before any call leaves no run
            # What has to be changed in a config or a prompt makes another run of it.
            may_resume = not isinstance(error, ConfigError) and is_open(job.folder.path)
            say(f"run folder: {job.folder.path}" + (f" ({hint})" if may_resume else ""))
        raise


def _write_junit(folder: Path, junit: Path | None) -> None:
    if junit is None:
        return
    from judgekit.workflows.report import write_report

    write_report(folder, "junit", junit)


def _print_dry_run(setup: "Setup", options: "Options", shared: Shared) -> None:
    from judgekit.executors.event_loop import run_local
    from judgekit.reports.run_text import dry_run_text
    from judgekit.workflows.dry_run import dry_run

    found = run_local(lambda: dry_run(setup, options))
    shared.show(found, lambda: dry_run_text(found))
