"""Markdown tables, and foreign text made safe for them."""

import re
from collections.abc import Iterable, Sequence

from judgekit.reports.figures import printable

_SPECIAL = re.compile(r"[\\|`*\[\]#~$]|(?<!\w)_|_(?!\w)")
"""An underscore inside a word is harmless and common in names."""


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """A markdown table; cells must have gone through `cell` where they hold foreign text."""
    lines = [f"| {' | '.join(header)} |", f"|{'|'.join(' --- ' for _ in header)}|"]
    lines += [f"| {' | '.join(row)} |" for row in rows]
    return lines


def cell(text: str) -> str:
    """Foreign text on one line that cannot end a table cell, start a heading, a fence or a tag."""
    flat = " ".join(printable(text).split())
    return _SPECIAL.sub(r"\\\g<0>", flat).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
