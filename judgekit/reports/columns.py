"""Aligned columns of text."""

from collections.abc import Sequence


def aligned(table: Sequence[Sequence[str]]) -> list[str]:
    """Rows as lines, each column as wide as its widest cell."""
    widths = [max(len(row[column]) for row in table) for column in range(len(table[0]))] if table else []
    return ["  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip() for row in table]
