"""summary.md: the figures of a run, to be read in a pull request."""

from collections.abc import Sequence

from judgekit.core.runs import RunSummary
from judgekit.core.scores import Estimate
from judgekit.reports.calibration import calibration_section
from judgekit.reports.figures import (
    coverage,
    gate_lines,
    headline,
    if_failed,
    indexing_lines,
    instrument_lines,
    interval,
    number,
    shown,
)
from judgekit.reports.probes import probes_section
from judgekit.reports.reliability import reliability_section
from judgekit.reports.tables import cell, table

Figures = dict[str, Estimate | dict[str, int]]

SLICE_FIGURES = 6
"""Columns of a slice table."""

SMALL = ", small"
"""Behind a number of cases that is below `min_n`."""

EXTRACTION_FIELDS = 10
"""Rows of the table of fields."""


def render_markdown(summary: RunSummary) -> str:
    """The summary as GitHub-flavoured markdown."""
    parts: list[str] = [f"# {cell(summary.name)}: {summary.status}", ""]
    parts.append(f"Run `{summary.run_id}`, {summary.created_at}, {summary.cases['n']} cases.")
    if summary.reason:
        parts += ["", f"**Stopped early:** {cell(summary.reason)} The figures below are of what was judged so far."]
    parts += _section("Gates", [f"* {cell(line)}" for _, line in gate_lines(summary)])
    parts += _section("Warnings", [f"* `{item.code}`: {cell(item.message)}" for item in summary.warnings])
    parts += ["", "## Figures", ""]
    rows = [
        [f"`{cell(name)}`", shown(figure), interval(figure), coverage(figure), if_failed(figure)]
        for name, figure in headline(summary)
    ]
    parts += table(["figure", "value", "95% interval", "cases", "if the failed were worst / best"], rows)
    parts += _section("Instruments", [f"* {cell(line)}" for line in instrument_lines(summary)])
    parts += reliability_section(summary.judge_reliability)
    parts += calibration_section(summary.judge_reliability)
    parts += probes_section(summary.judge_reliability)
    parts += _extraction_tables(summary)
    parts += _section("Indexing", [f"* {cell(line)}" for line in indexing_lines(summary.indexing_coverage)])
    slices = [line for dimension, values in summary.slices.items() for line in _slice_table(summary, dimension, values)]
    if any(SMALL in line for line in slices):
        slices += [
            "",
            f"In brackets the number of cases; small: fewer than {summary.min_n}, too few to read much into.",
        ]
    parts += slices
    parts += ["", "All figures, with every cut-off and slice, are in `metrics.json`.", ""]
    return "\n".join(parts)


def _extraction_tables(summary: RunSummary) -> list[str]:
    """Field extraction by error type and by field, the fields where most goes wrong first."""
    found = summary.extraction
    if found is None:
        return []
    parts = ["", "## Extraction", "", f"False negatives: `{found['fn_counts']}`.", ""]
    kinds = [[name, str(row["n"]), str(row["n_cases"])] for name, row in found["by_error_type"].items()]
    parts += table(["error", "fields", "cases"], kinds)
    names = ("total_gt_fields", "true_positives", "omission", "hallucination", "format_error", "wrong_value")
    fields = list(found["by_field"].items())[:EXTRACTION_FIELDS]
    rows = [
        [cell(path), *[str(row[name]) for name in names], number(row["precision"]), number(row["recall"])]
        for path, row in fields
    ]
    parts += ["", *table(["field", "expected", "right", *names[2:], "precision", "recall"], rows)]
    if found["n_fields"] > len(fields):
        parts += ["", f"The {len(fields)} of {found['n_fields']} fields where most goes wrong."]
    return parts


def _slice_table(summary: RunSummary, dimension: str, values: dict[str, Figures]) -> list[str]:
    names = [name for name in _slice_figures(summary) if any(_has_data(figures, name) for figures in values.values())]
    if not values or not names:
        return []
    rows = []
    for value, figures in values.items():
        row = [cell(value)]
        for name in names:
            figure = figures.get(name)
            row.append(f"{number(figure.value, 2)} ({_size(figure)})" if isinstance(figure, Estimate) else "")
        rows.append(row)
    return ["", f"## By {cell(dimension)}", "", *table([dimension, *(f"`{name}`" for name in names)], rows)]


def _size(figure: Estimate) -> str:
    return f"{figure.n}{SMALL}" if figure.small and figure.n else str(figure.n)


def _slice_figures(summary: RunSummary) -> list[str]:
    """Judges first, then the retrieval and abstention figures that most readers look for."""
    wanted = [*summary.judges, "recall_any@5", "recall_all@5", "mrr", "hit@5", "abstention_accuracy"]
    return [name for name in wanted if name in summary.overall][:SLICE_FIGURES]


def _has_data(figures: Figures, name: str) -> bool:
    figure = figures.get(name)
    return isinstance(figure, Estimate) and figure.n > 0


def _section(title: str, lines: Sequence[str]) -> list[str]:
    return ["", f"## {title}", "", *lines] if lines else []
