"""Ranked retrieval figures as text."""

from collections.abc import Mapping, Sequence
from typing import Any

from judgekit.core.scores import Estimate
from judgekit.reports.figures import coverage, interval, printable, shown

HEADER = ("figure", "value", "95% interval", "cases")


def ranking_text(figures: Mapping[str, Estimate], files: Mapping[str, Mapping[str, Any]]) -> str:
    """What was read, and each figure that has data with its interval and the cases it rests on.

    Args:
        figures: by name.
        files: `cases` and `outputs`, each with path, sha256 and n.
    """
    lines = [
        printable(f"{kind}: {record['n']:,} in {record['path']} (sha256 {record['sha256'][:12]})")
        for kind, record in files.items()
    ]
    named = [(name, figure) for name, figure in figures.items() if figure.n + figure.n_error > 0]
    rows = [HEADER, *[(name, shown(figure), interval(figure), coverage(figure)) for name, figure in named]]
    widths = [max(len(row[column]) for row in rows) for column in range(len(HEADER))]
    return "\n".join([*lines, "", *[_aligned(row, widths) for row in rows]])


def _aligned(row: Sequence[str], widths: Sequence[int]) -> str:
    return "  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip()
