"""The one-screen summary on the terminal: a table by rich, or plain columns where output is not a terminal."""

from typing import TYPE_CHECKING

from judgekit.core.runs import RunSummary, cases_text
from judgekit.reports.figures import (
    coverage,
    gate_lines,
    headline,
    instrument_lines,
    interval,
    printable_line,
    shown,
    small_slices_line,
)

if TYPE_CHECKING:
    from rich.console import RenderableType

HEADER = ("figure", "value", "95% interval", "cases")


def rows(summary: RunSummary) -> list[tuple[str, str, str, str]]:
    """Headline figures as texts."""
    return [
        (printable_line(name), shown(figure), interval(figure), coverage(figure)) for name, figure in headline(summary)
    ]


def notes(summary: RunSummary) -> list[tuple[str, str]]:
    """(kind, line) below the table; kind is `plain`, `good` or `bad`."""
    found = [("plain", line) for line in [*instrument_lines(summary), small_slices_line(summary)] if line]
    for passed, line in gate_lines(summary):
        found.append(("plain", line) if passed is None else ("good" if passed else "bad", f"gate: {line}"))
    found += [("bad", f"warning: {item.message} [{item.code}]") for item in summary.warnings]
    return [(kind, printable_line(line)) for kind, line in found]


def title(summary: RunSummary) -> str:
    """Name, status and size of the run."""
    return printable_line(f"{summary.name}: {summary.status}, {cases_text(summary.cases)}")


def plain_text(summary: RunSummary) -> str:
    """The summary as aligned columns."""
    table = [HEADER, *rows(summary)]
    widths = [max(len(row[column]) for row in table) for column in range(len(HEADER))]
    lines = [title(summary), ""]
    lines += ["  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip() for row in table]
    lines += ["", *(line for _, line in notes(summary))]
    return "\n".join(lines)


def rich_table(summary: RunSummary) -> "RenderableType":
    """The summary for a colour terminal; foreign text is never read as markup."""
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    table = Table(title=Text(title(summary), style="bold"), title_justify="left", show_edge=False, pad_edge=False)
    for number_, name in enumerate(HEADER):
        table.add_column(name, justify="right" if number_ == 1 else "left", no_wrap=number_ < 2)
    for name, value, between, cases in rows(summary):
        table.add_row(Text(name), Text(value, style="bold"), Text(between), Text(cases))
    styles = {"plain": "", "good": "green", "bad": "yellow"}
    lines = [Text(line, style=styles[kind]) for kind, line in notes(summary)]
    return Group(table, Text(""), *lines)
