"""Tables and lists as text: aligned columns, and markdown that may hold foreign text."""

import re
from collections.abc import Iterable, Sequence

from judgekit.reports.safe_text import printable

_SPECIAL = re.compile(r"[\\|`*\[\]#~$]|(?<!\w)_|_(?!\w)")
"""An underscore inside a word is harmless and common in names."""


def aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    """Rows as lines, each column as wide as its widest cell."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return ["  ".join(map(str.ljust, row, widths)).rstrip() for row in rows]


def cell(text: str) -> str:
    """Foreign text on one line that cannot end a table cell, start a heading, a fence or a tag."""
    flat = " ".join(printable(text).split())
    return _SPECIAL.sub(r"\\\g<0>", flat).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """A markdown table; cells must have gone through `cell` where they hold foreign text."""
    return [
        f"| {' | '.join(header)} |",
        f"|{'|'.join(' --- ' for _ in header)}|",
        *(f"| {' | '.join(row)} |" for row in rows),
    ]


def bullets(lines: Iterable[str]) -> list[str]:
    """A markdown list of foreign lines."""
    return [f"* {cell(line)}" for line in lines]


def section(title: str, lines: Sequence[str]) -> list[str]:
    """Lines of markdown under a heading; nothing without any."""
    return ["", f"## {title}", "", *lines] if lines else []
