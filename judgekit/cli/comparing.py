"""The command that compares two stored runs."""

from collections.abc import Iterator, Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from judgekit.cli.outcome import reported, say

if TYPE_CHECKING:
    from judgekit.core.comparison import Comparison

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


class FormatChoice(StrEnum):
    """How a comparison is written."""

    TABLE = "table"
    MD = "md"
    JSON = "json"
    HTML = "html"


def register(app: typer.Typer) -> None:
    """Add the command of this file."""
    app.command("compare", epilog=COMPARE_EPILOG)(compare_command)


def compare_command(
    runs: Annotated[list[str], typer.Argument(help="A B: the baseline and the candidate; B alone with --baseline.")],
    baseline: Annotated[
        str | None, typer.Option("--baseline", help="The run to compare with, such as `latest:main`.")
    ] = None,
    fail_on: Annotated[
        list[str] | None,
        typer.Option("--fail-on", help="regression, significant, or 'METRIC<-0.02'; exit 1. May be repeated."),
    ] = None,
    format_: Annotated[FormatChoice, typer.Option("--format", help="How it is written.")] = FormatChoice.TABLE,
    out: Annotated[Path | None, typer.Option("--out", help="Write to this file, and print the table.")] = None,
    k: Annotated[int, typer.Option("--k", min=1, help="Cut-off of lost chunks.")] = 5,
    allow_mismatch: Annotated[
        bool, typer.Option("--allow-mismatch", help="Compare although judge, wording, parser or data set differ.")
    ] = False,
    strict_chunker_version: Annotated[
        bool, typer.Option("--strict-chunker-version", help="Refuse runs of different chunkers.")
    ] = False,
    include_edited: Annotated[
        bool, typer.Option("--include-edited", help="Pair cases that were edited between the runs too.")
    ] = False,
    results_dir: Annotated[Path | None, typer.Option("--results-dir", help="Folder of runs; default: results.")] = None,
    debug: Annotated[bool, typer.Option("--debug", help="Show tracebacks.")] = False,
) -> None:
    """Compare two runs: differences with intervals, cases won and lost, and what else changed."""
    from judgekit.analysis.gates import failures, parse_fail_on
    from judgekit.workflows.compare import CompareOptions, compare, comparison_pieces, open_runs
    from judgekit.workflows.models import Options

    with reported(debug=debug):
        wanted = parse_fail_on(fail_on or ())
        a, b = _two(runs, baseline)
        how = CompareOptions(k, allow_mismatch, strict_chunker_version, include_edited)
        with open_runs(a, b, Options(results_dir=results_dir)) as sides:
            comparison = compare(sides, how)
            failed = failures(comparison, wanted)
            _write(comparison, comparison_pieces(sides, comparison, failed, format_.value), format_, out)
        for line in failed:
            say(f"--fail-on {line}")
    if failed:
        raise typer.Exit(1)


def _two(runs: Sequence[str], baseline: str | None) -> tuple[str, str]:
    from judgekit.core.errors import ConfigError

    names = list(runs) if baseline is None else [baseline, *runs]
    if len(names) != 2:
        expected = "two runs, A and B" if baseline is None else "one run beside --baseline"
        raise ConfigError(f"expected {expected}, found {len(runs)}")
    return names[0], names[1]


def _write(comparison: "Comparison", pieces: Iterator[str], form: FormatChoice, out: Path | None) -> None:
    if out is None:
        if form is FormatChoice.TABLE:
            _print_table(comparison)
            return
        for piece in pieces:
            typer.echo(piece, nl=False)
        return
    from judgekit.storage.run_folder import RunFolder

    with RunFolder(out.parent).replacing(out.name) as stream:
        for piece in pieces:
            stream.write(piece.encode("utf-8", "replace"))
    if form is not FormatChoice.TABLE:
        _print_table(comparison)
    say(f"wrote {out}")


def _print_table(comparison: "Comparison") -> None:
    import sys

    from judgekit.reports.compare_text import plain_text, rich_table

    if sys.stdout.isatty():
        from rich.console import Console

        Console().print(rich_table(comparison))
    else:
        typer.echo(plain_text(comparison))
