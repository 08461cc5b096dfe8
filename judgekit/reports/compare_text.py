"""A comparison on the terminal: a table by rich, or plain columns where output is not a terminal."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from judgekit.core.comparison import Comparison
from judgekit.reports.compare_lines import (
    case_line,
    changed_lines,
    chunker_line,
    flip_table,
    headline_deltas,
    losing_lines,
    moved,
    n_tested,
    same_line,
    set_lines,
    table_notes,
    table_of,
    unmoved_line,
)
from judgekit.reports.figures import printable

if TYPE_CHECKING:
    from rich.console import RenderableType

_STYLES = {"better": "green", "worse": "red"}
_LEFT = ("figure", "verdict")


def title(comparison: Comparison) -> str:
    """The two runs."""
    return printable(f"a: {comparison.run_a}\nb: {comparison.run_b}")


def rows(comparison: Comparison) -> list[tuple[str, ...]]:
    """Header and differences as texts; empty where nothing differs."""
    deltas = moved(headline_deltas(comparison))
    return [tuple(map(printable, cells)) for cells in table_of(deltas)] if deltas else []


def notes(comparison: Comparison) -> list[tuple[str, str]]:
    """(kind, line) below the table; kind is `plain`, `head` or `bad`."""
    deltas = headline_deltas(comparison)
    different = moved(deltas)
    lines = [same_line(deltas), *(table_notes(different, n_tested(comparison)) if different else [])]
    found = [("plain", line) for line in lines if line]
    found += [("plain", ""), ("plain", case_line(comparison)), ("plain", chunker_line(comparison))]
    unmoved = unmoved_line(comparison)
    for head, below in (
        ("cases by judge and 0/1 score", [*_flips(comparison), *([unmoved] if unmoved else [])]),
        (f"worst cases first (chunks lost within {comparison.k})", losing_lines(comparison)),
        ("what changed besides the answers", changed_lines(comparison)),
        ("cases that are not compared", set_lines(comparison)),
    ):
        if below:
            found += [("head", f"{head}:"), *[("plain", f"  {line}") for line in below]]
    found += [("bad", f"warning: {message} [{code}]") for code, message in comparison.notices]
    return [(kind, printable(line)) for kind, line in found]


def _flips(comparison: Comparison) -> list[str]:
    """The table of kinds as aligned lines; empty where no score moved."""
    table = flip_table(comparison)
    return _aligned(table) if len(table) > 1 else []


def _aligned(table: Sequence[Sequence[str]]) -> list[str]:
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    return ["  ".join(map(str.ljust, cells, widths)).rstrip() for cells in table]


def plain_text(comparison: Comparison) -> str:
    """The comparison as aligned columns."""
    table = rows(comparison)
    lines = [title(comparison), ""]
    if table:
        lines += [*_aligned(table), ""]
    return "\n".join([*lines, *(line for _, line in notes(comparison))])


def rich_table(comparison: Comparison) -> "RenderableType":
    """The comparison for a colour terminal; foreign text is never read as markup."""
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    parts: list[RenderableType] = [Text(title(comparison), style="bold"), Text("")]
    found = rows(comparison)
    if found:
        table = Table(show_edge=False, pad_edge=False)
        for name in found[0]:
            table.add_column(name, justify="left" if name in _LEFT else "right", no_wrap=name != "figure")
        for name, word, *cells in found[1:]:
            style = _STYLES.get(word.split(",")[0], "")
            table.add_row(Text(name), Text(word, style=style), *map(Text, cells))
        parts += [table, Text("")]
    styles = {"plain": "", "head": "bold", "bad": "yellow"}
    return Group(*parts, *(Text(line, style=styles[kind]) for kind, line in notes(comparison)))
