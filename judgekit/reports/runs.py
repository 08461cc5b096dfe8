"""Stored runs as a table."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from judgekit.reports.columns import aligned
from judgekit.reports.figures import number, printable_line

HEADER = ("run", "suite", "when", "status", "cases", "figures", "tags")
SHOWN_AFTER_JUDGES = ("recall_any@5", "hit@5", "extraction_f1", "abstention_accuracy")
MOST_FIGURES = 3


@dataclass(frozen=True)
class RunRow:
    """One run of the table."""

    run_id: str
    suite: str
    created_at: str
    status: str
    n_cases: int
    figures: Mapping[str, Sequence[Any]]
    """By name: value, n, n_error."""
    tags: Sequence[str]
    n_in_file: int | None = None
    """Cases of the whole file, of which the run may have taken a part."""
    is_there: bool = True
    """Its folder is there."""


def headline_figures(figures: Mapping[str, Sequence[Any]]) -> list[tuple[str, Any, int]]:
    """Name, value and n of the figures for one line: those of judges first, then of retrieval."""
    judges = [name for name in figures if f"{name}_pass_rate" in figures]
    wanted = [name for name in (*judges, *SHOWN_AFTER_JUDGES) if name in figures and figures[name][1]]
    return [(name, figures[name][0], figures[name][1]) for name in wanted[:MOST_FIGURES]]


def runs_text(runs: Sequence[RunRow]) -> str:
    """The table, or a line that says that there are none."""
    if not runs:
        return "no runs"
    return "\n".join(aligned([HEADER, *map(_row, runs)]))


def _row(run: RunRow) -> tuple[str, ...]:
    shown = [f"{name} {number(value)} ({n})" for name, value, n in headline_figures(run.figures)]
    status = run.status if run.is_there else f"{run.status}, folder gone"
    when = run.created_at[:16].replace("T", " ")
    is_part = run.n_in_file is not None and run.n_cases < run.n_in_file
    cases = f"{run.n_cases} of {run.n_in_file}" if is_part else str(run.n_cases)
    cells = (run.run_id, run.suite, when, status, cases, ", ".join(shown), ", ".join(run.tags))
    return tuple(printable_line(cell) for cell in cells)
