"""`judgekit drift`: whether a judge, the system or the instrument changed."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from judgekit.cli.outcome import print_json, reported, say

if TYPE_CHECKING:
    from judgekit.analysis.drift_states import DriftReport

DRIFT_EPILOG = """\b
Examples:
  judgekit drift
  judgekit drift --judge groundedness --suite demo --fail-on-drift
  judgekit drift --since demo-20260131-142501-3f9a --svg drift.svg
  judgekit drift --judge groundedness --accept --reason "new snapshot, calibrated again"

\b
Exit codes: 0 done, 1 drift was found or nothing was asked and --fail-on-drift given, 2 nothing to look at, 4 storage.
"""


def register(app: typer.Typer) -> None:
    """Add the command of this file."""
    app.command("drift", epilog=DRIFT_EPILOG)(drift_command)


def drift_command(
    judge: Annotated[str | None, typer.Option("--judge", help="This judge only.")] = None,
    suite: Annotated[str | None, typer.Option("--suite", help="Checks of runs of this suite only.")] = None,
    dataset: Annotated[
        str | None, typer.Option("--dataset", help="Only the data set whose sha256 begins so (`resolved.cases`).")
    ] = None,
    since: Annotated[str | None, typer.Option("--since", help="Begin the history with the checks of this run.")] = None,
    fail_on_drift: Annotated[
        bool, typer.Option("--fail-on-drift", help="Exit code 1 where there is drift, or nothing was asked.")
    ] = False,
    accept: Annotated[
        bool, typer.Option("--accept", help="Take the judge as it is now for normal: only what is asked later counts.")
    ] = False,
    usual: Annotated[
        float | None,
        typer.Option("--usual", help="With --accept: a rate of flips that you take for usual, such as 0.15."),
    ] = None,
    reason: Annotated[str, typer.Option("--reason", help="With --accept: why; shown with the history.")] = "",
    svg: Annotated[Path | None, typer.Option("--svg", help="Write the timeline as SVG; of one history.")] = None,
    results_dir: Annotated[Path | None, typer.Option("--results-dir", help="Folder of runs; default: results.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON value and nothing else.")] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Show tracebacks.")] = False,
) -> None:
    """Say whether a judge drifts, from the history of its spot checks and re-judgings; no model is asked."""
    from judgekit.core.errors import ConfigError
    from judgekit.reports.timelines import drift_svg, drift_text
    from judgekit.workflows.drift import DriftQuery, accept_drift, drift_reports, write_svg
    from judgekit.workflows.models import Options

    with reported(debug=debug):
        query, options = DriftQuery(judge, suite, dataset, since), Options(results_dir=results_dir)
        if (usual is not None or reason) and not accept:
            raise ConfigError("--usual and --reason say how --accept is meant; add --accept")
        if accept:
            for line in accept_drift(query, options, usual, reason):
                say(line)
        reports = drift_reports(query, options)
        documents = [report.document() for report in reports]
        if svg is not None and len(documents) != 1:
            raise ConfigError(f"--svg: there are {len(documents)} histories; choose one with --judge and --dataset")
        if svg is not None:
            write_svg(svg, drift_svg(documents[0]))
            say(f"wrote {svg}")
        if as_json:
            print_json(documents)
        else:
            typer.echo("\n\n".join(drift_text(document) for document in documents))
        if fail_on_drift:
            _fail_on_drift(reports)


def _fail_on_drift(reports: "list[DriftReport]") -> None:
    """End with exit code 1 where a judge drifted or was never asked, and name what does not say either way."""
    from judgekit.analysis.drift_states import FAILING, UNKNOWN
    from judgekit.reports.safe_text import printable_line

    for report in reports:
        if report.state in UNKNOWN:
            name = f"{report.judge} {report.prompt_version}"
            say(f"note: {printable_line(name)}: {report.state}, so nothing says that it did not drift")
    if any(report.state in FAILING for report in reports):
        raise typer.Exit(1)
