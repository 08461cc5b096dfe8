"""Commands that show stored runs: report, view, compare, bridge."""

from collections.abc import Iterator, Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from typer import Argument, Option

from judgekit.cli.commands import LOOK, NoCache, Run, Shared, app, command, print_figures, print_json, say
from judgekit.cli.judge import judge_all

if TYPE_CHECKING:
    from judgekit.core.comparison import Comparison

REPORT_EPILOG = """\b
Examples:
  judgekit report results/demo-20260131-142501-3f9a
  judgekit report demo-20260131-142501-3f9a --format csv --out scores.csv
  judgekit report RUN --format csv --columns recall_any@5,metadata.source,retrieved
"""

COMPARE_EPILOG = """\b
Examples:
  judgekit compare OLD_RUN NEW_RUN                                 a table of what differs
  judgekit compare OLD_RUN NEW_RUN --format md --out delta.md      for a pull request
  judgekit compare OLD_RUN NEW_RUN --format html --out delta.html  a page with both answers of every case
  judgekit compare OLD_RUN NEW_RUN --format json | jq .deltas
  judgekit compare NEW_RUN --baseline latest:main --fail-on regression --fail-on 'groundedness<-0.1'

\b
b - a is over the cases that have a value in both runs. Exit codes: 0 done, 1 --fail-on found something, 2 the runs
cannot be compared (what to do is said), 4 storage.
"""

BRIDGE_EPILOG = """\b
Examples:
  judgekit bridge OLD_RUN NEW_RUN               how much of the change is the system, how much the judge
  judgekit bridge OLD_RUN NEW_RUN --markdown    for a pull request

\b
The old run's stored inputs are judged by the new run's judges, which makes a rejudge run beside the old one; it is
made once. The result is also written as bridge.json into the new run.
"""

DEFAULT_PORT = 8321


class FormatChoice(StrEnum):
    """How a comparison is written."""

    TABLE = "table"
    MD = "md"
    JSON = "json"
    HTML = "html"


@command(app, "report", panel=LOOK, epilog=REPORT_EPILOG)
def report_command(
    shared: Shared,
    run: Run,
    format_: Annotated[
        str, Option("--format", help="html, md, csv, parquet, judgments, junit, inspect or every-eval-ever.")
    ] = "html",
    out: Annotated[Path | None, Option("--out", help="File to write; default: in the run folder.")] = None,
    columns: Annotated[
        str | None,
        Option("--columns", help="Of CSV, further columns with commas between: scores, metadata.KEY, retrieved, all."),
    ] = None,
) -> None:
    """Write a report of a stored run. A page, a summary, scores as a table, or gates as JUnit XML."""
    from judgekit.workflows.report import write_report
    from judgekit.workflows.selectors import find_run

    folder = find_run(run, shared.options())
    wanted = [name.strip() for name in (columns or "").split(",") if name.strip()]
    typer.echo(str(write_report(folder, format_, out, wanted, lambda text: say(f"note: {text}"))))


@command(app, "view", panel=LOOK, epilog="\b\nExample:\n  judgekit view")
def view_command(
    shared: Shared,
    run: Annotated[str | None, Argument(help="Run id or folder to open first.", show_default=False)] = None,
    port: Annotated[int, Option("--port", min=0, max=65535, help="Port; 0 takes a free one.")] = DEFAULT_PORT,
    no_open: Annotated[bool, Option("--no-open", help="Do not start a browser.")] = False,
) -> None:
    """Show the runs of a folder in a browser. On this machine only, and without changing anything."""
    from judgekit.cli.serving import serve
    from judgekit.core.errors import ConfigError
    from judgekit.storage.run_folder import RunFolder
    from judgekit.workflows.selectors import find_run
    from judgekit.workflows.view import open_server

    folder, page = shared.options().results_dir or Path("results"), "/"
    if run is not None:
        path = RunFolder.open(find_run(run, shared.options())).path.resolve()
        folder, page = path.parent, f"/runs/{path.name}/"
    if not folder.is_dir():
        raise ConfigError(f"{folder}: no such folder; judgekit quickstart makes a first run, or name --results-dir")
    with open_server(folder, port) as server:
        serve(server, page, browser=not no_open)


@command(app, "compare", panel=LOOK, stats=True, epilog=COMPARE_EPILOG)
def compare_command(
    shared: Shared,
    runs: Annotated[list[str], Argument(help="A B: the baseline and the candidate; B alone with --baseline.")],
    baseline: Annotated[
        str | None, Option("--baseline", help="The run to compare with, such as `latest:main`.")
    ] = None,
    fail_on: Annotated[
        list[str] | None,
        Option("--fail-on", help="regression, significant, gates, or 'METRIC<-0.02'; exit 1. May be repeated."),
    ] = None,
    format_: Annotated[FormatChoice, Option("--format", help="How it is written.")] = FormatChoice.TABLE,
    out: Annotated[Path | None, Option("--out", help="Write to this file, and print the table.")] = None,
    k: Annotated[int, Option("--k", min=1, help="Cut-off of lost chunks.")] = 5,
    allow_mismatch: Annotated[
        bool, Option("--allow-mismatch", help="Compare although judge, wording, parser or data set differ.")
    ] = False,
    strict_chunker_version: Annotated[
        bool, Option("--strict-chunker-version", help="Refuse runs of different chunkers.")
    ] = False,
    include_edited: Annotated[
        bool, Option("--include-edited", help="Pair cases that were edited between the runs too.")
    ] = False,
) -> None:
    """Compare two runs: differences with intervals, and causes.

    Cases won and lost are counted, and what else changed is named.
    """
    from judgekit.analysis.gates import failures, parse_fail_on
    from judgekit.workflows.compare import compare, comparison_pieces
    from judgekit.workflows.compared_runs import CompareOptions, open_runs

    wanted = parse_fail_on(fail_on or ())
    a, b = _two(runs, baseline)
    how = CompareOptions(k, allow_mismatch, strict_chunker_version, include_edited)
    with open_runs(a, b, shared.options()) as sides:
        comparison = compare(sides, how)
        failed = failures(comparison, wanted)
        pieces = comparison_pieces(sides, comparison, failed, format_.value)
        _write(comparison, pieces, format_, out, stats=shared.stats)
    for line in failed:
        say(f"--fail-on {line}")
    if failed:
        raise typer.Exit(1)


@command(app, "bridge", panel=LOOK, json=True, quiet=True, stats=True, epilog=BRIDGE_EPILOG)
def bridge_command(
    shared: Shared,
    old: Annotated[str, Argument(help="The earlier run: id or its beginning, folder, or `latest:TAG`.")],
    new: Annotated[str, Argument(help="The later run: id or its beginning, folder, `latest`.")],
    markdown: Annotated[bool, Option("--markdown", help="Print markdown.")] = False,
    no_cache: NoCache = False,
) -> None:
    """Split a change into what the system did and the judge did.

    The old run's stored inputs are judged again by the new run's judges.
    """
    from judgekit.reports.bridge_text import bridge_markdown, bridge_text
    from judgekit.reports.finding_sentences import bridge_sentences, with_sentence
    from judgekit.workflows.bridge import bridge

    options = shared.options(use_cache=not no_cache)
    folder, found = bridge(old, new, options, lambda job: judge_all(job, shared))
    if shared.as_json:
        print_json(with_sentence(found, *bridge_sentences(found)))
    elif markdown:
        typer.echo(bridge_markdown(found), nl=False)
    else:
        typer.echo(f"{bridge_text(found, stats=shared.stats)}\n\n{folder / 'bridge.json'}")


def _two(runs: Sequence[str], baseline: str | None) -> tuple[str, str]:
    from judgekit.core.errors import ConfigError

    names = list(runs) if baseline is None else [baseline, *runs]
    if len(names) != 2:
        expected = "two runs, A and B" if baseline is None else "one run beside --baseline"
        raise ConfigError(f"expected {expected}, found {len(runs)}")
    return names[0], names[1]


def _write(
    comparison: "Comparison", pieces: Iterator[str], form: FormatChoice, out: Path | None, *, stats: bool
) -> None:
    from judgekit.reports.compare_text import plain_text, rich_table

    if out is not None:
        from judgekit.storage.run_files import replacing

        with replacing(out) as stream:
            for piece in pieces:
                stream.write(piece.encode("utf-8", "replace"))
    elif form is not FormatChoice.TABLE:
        for piece in pieces:
            typer.echo(piece, nl=False)
        return
    if out is None or form is not FormatChoice.TABLE:
        print_figures(rich_table, plain_text, comparison, stats=stats)
    if out is not None:
        say(f"wrote {out}")
