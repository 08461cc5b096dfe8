"""Commands that judge stored runs again: rejudge, spotcheck, bridge."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from judgekit.cli.outcome import print_json, reported
from judgekit.cli.runs import AsJson, Debug, NoCache, Quiet, ResultsDir, RunId, carry_out, judge_all

if TYPE_CHECKING:
    from judgekit.workflows.spotcheck import SpotChecked

REJUDGE_EPILOG = """\b
Examples:
  judgekit rejudge demo-20260131-142501-3f9a                        with a warm cache: no call, the same verdicts
  judgekit rejudge RUN --model other                                ask another model of the run's config
  judgekit rejudge RUN --judge groundedness --prompt-version v2     try a new wording on old inputs
  judgekit rejudge RUN --config new.json --model judge-2026         a model of another config
  judgekit run --resume NEW_RUN                                     go on with a rejudge that stopped

\b
The system under test is not called. Exit codes as of `judgekit run`.
"""

SPOTCHECK_EPILOG = """\b
Examples:
  judgekit spotcheck demo-20260131-142501-3f9a           as the run's config says, or the best that there is
  judgekit spotcheck RUN --against model:other --n 50    a second model with the same wording
  judgekit spotcheck RUN --against prompt:v2             the same model with another wording
  judgekit spotcheck RUN --against repeat                the same judge again: how repeatable it is
  judgekit spotcheck RUN --adaptive                      ten more at a time, until it is decided or 200 are asked
  judgekit spotcheck RUN --json | jq .judge_reliability.disagreement_rate

\b
Exit codes: 0 done, 1 a gate is missed, 2 to mend, 3 the provider refuses, 4 storage, 130 interrupted (the same
command goes on).
"""

BRIDGE_EPILOG = """\b
Examples:
  judgekit bridge OLD_RUN NEW_RUN               how much of the change is the system, how much the judge
  judgekit bridge OLD_RUN NEW_RUN --markdown    for a pull request

\b
The old run's stored inputs are judged by the new run's judges, which makes a rejudge run beside the old one; it is
made once. The result is also written as bridge.json into the new run.
"""

Run = Annotated[str, typer.Argument(help="Run id or its beginning, folder, `latest`, or `latest:TAG`.")]
OtherConfig = Annotated[
    Path | None, typer.Option("--config", help="Another config, for models and wordings that the run's lacks.")
]


def register(app: typer.Typer) -> None:
    """Add the commands of this file."""
    app.command("rejudge", epilog=REJUDGE_EPILOG)(rejudge_command)
    app.command("spotcheck", epilog=SPOTCHECK_EPILOG)(spotcheck_command)
    app.command("bridge", epilog=BRIDGE_EPILOG)(bridge_command)


def rejudge_command(
    run: Run,
    model: Annotated[str | None, typer.Option("--model", help="Key of the model to ask.")] = None,
    prompt_version: Annotated[str | None, typer.Option("--prompt-version", help="Wording to ask with.")] = None,
    judge: Annotated[
        list[str] | None, typer.Option("--judge", help="Only this judge; may be repeated. The others are copied.")
    ] = None,
    config: OtherConfig = None,
    run_id: RunId = None,
    results_dir: ResultsDir = None,
    as_json: AsJson = False,
    no_cache: NoCache = False,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Judge the stored inputs of a run again, into a new run folder; the system is not called."""
    from judgekit.workflows.models import Options
    from judgekit.workflows.rejudging import Again, open_rejudge

    options = Options(results_dir=results_dir, run_id=run_id, use_cache=not no_cache)
    with reported(debug=debug):
        again = Again(tuple(dict.fromkeys(judge or ())), model, prompt_version, config)
        job = open_rejudge(run, again, options)
    carry_out(job, as_json=as_json, quiet=quiet, debug=debug)


def spotcheck_command(
    run: Run,
    n: Annotated[
        str | None,
        typer.Option(
            "--n", help="Verdicts to check of each judge, or a share such as 5%; default: the config's, else 20."
        ),
    ] = None,
    seed: Annotated[
        int | None, typer.Option("--seed", help="Of the sample; default: a fresh one for each check.")
    ] = None,
    judge: Annotated[str | None, typer.Option("--judge", help="Only this judge.")] = None,
    against: Annotated[
        str | None, typer.Option("--against", help="model:ID, prompt:VERSION or repeat; default: see the docs.")
    ] = None,
    config: OtherConfig = None,
    adaptive: Annotated[bool, typer.Option("--adaptive", help="Draw more until it is decided.")] = False,
    threshold: Annotated[
        float | None, typer.Option("--threshold", help="Rate that is too much; default: the config's, else 0.2.")
    ] = None,
    results_dir: ResultsDir = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Ask for a second opinion on a sample of a run's verdicts, and write it into the run."""
    from judgekit.cli.progress import ProgressObserver
    from judgekit.workflows.models import Options
    from judgekit.workflows.spotcheck import SpotCheckWanted, spotcheck

    with reported(debug=debug, resume_hint="the same command goes on with this check"):
        wanted = SpotCheckWanted(judge, n, seed, against, threshold, adaptive, config)
        with ProgressObserver(quiet=quiet) as observer:
            found = spotcheck(run, wanted, Options(results_dir=results_dir), observer)
        _print_spot_check(found, as_json=as_json)
    if not all(gate.passed for gate in found.summary.gates):
        raise typer.Exit(1)


def _print_spot_check(found: "SpotChecked", *, as_json: bool) -> None:
    from judgekit.analysis.stored_figures import rounded
    from judgekit.reports.safe_text import printable_line
    from judgekit.reports.spot_check_report import reliability_lines

    summary = found.summary
    if as_json:
        document = {
            "run_id": summary.run_id,
            "run_dir": str(found.path),
            "judge_reliability": summary.judge_reliability,
            "gates": [gate.model_dump(mode="json") for gate in summary.gates],
            "warnings": [item.model_dump(mode="json") for item in summary.warnings],
        }
        print_json(rounded(document))
        return
    typer.echo("\n".join(reliability_lines(summary.judge_reliability, found.checks)))
    notes = [f"gate: {gate.message}" for gate in summary.gates]
    notes += [f"warning: {item.message} [{item.code}]" for item in summary.warnings if item.code == "judge_unstable"]
    for line in notes:
        typer.echo(printable_line(line))
    typer.echo(f"\n{found.path}")


def bridge_command(
    old: Annotated[str, typer.Argument(help="The earlier run: id or its beginning, folder, or `latest:TAG`.")],
    new: Annotated[str, typer.Argument(help="The later run: id or its beginning, folder, `latest`.")],
    results_dir: ResultsDir = None,
    as_json: AsJson = False,
    markdown: Annotated[bool, typer.Option("--markdown", help="Print markdown.")] = False,
    no_cache: NoCache = False,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Split the change between two runs into what the system did and what the judge did."""
    from judgekit.reports.bridge_text import bridge_markdown, bridge_text
    from judgekit.workflows.bridge import bridge
    from judgekit.workflows.models import Options

    with reported(debug=debug):
        options = Options(results_dir=results_dir, use_cache=not no_cache)
        folder, found = bridge(old, new, options, lambda job: judge_all(job, quiet=quiet, debug=debug))
        if as_json:
            print_json(found)
        elif markdown:
            typer.echo(bridge_markdown(found), nl=False)
        else:
            typer.echo(f"{bridge_text(found)}\n\n{folder / 'bridge.json'}")
