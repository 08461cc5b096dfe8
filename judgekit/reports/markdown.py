"""summary.md: the figures of a run, to be read in a pull request."""

from collections.abc import Mapping
from html import escape
from types import MappingProxyType

from judgekit.core.case_parts import cases_text
from judgekit.core.conditions import GateState
from judgekit.core.runs import RunSummary
from judgekit.core.scores import Estimate
from judgekit.reports.calibration_report import calibration_section
from judgekit.reports.figures import (
    Figures,
    coverage,
    gate_lines,
    if_failed,
    indexing_lines,
    instrument_lines,
    interval,
    number,
    shown,
)
from judgekit.reports.headline import figures_with_data, slice_figures
from judgekit.reports.judge_questions import Wordings, question_lines
from judgekit.reports.preference_text import preference_lines
from judgekit.reports.probe_report import probes_section
from judgekit.reports.repeats_report import repeats_section
from judgekit.reports.run_sentence import run_sentence
from judgekit.reports.safe_text import printable
from judgekit.reports.spot_check_report import reliability_section
from judgekit.reports.tables import bullets, cell, section, table

SMALL = ", small"
"""Behind a number of cases that is below `min_n`."""

_BOLD: dict[GateState | None, str] = {"missed": "**missed**: ", "undecided": "**undecided**: "}

EXTRACTION_FIELDS = 10
"""Rows of the table of fields."""


def render_markdown(summary: RunSummary, prompts: Wordings = MappingProxyType({})) -> str:
    """The summary as GitHub-flavoured markdown; with the wordings of the run, it says what own judges were asked."""
    parts: list[str] = [f"# {cell(summary.name)}: {summary.status}", ""]
    parts += [cell(run_sentence(summary)), ""]
    when = summary.created_at[:16].replace("T", " ")
    parts.append(f"Run `{_code(summary.run_id)}`, {when} UTC, {cell(cases_text(summary.cases))}.")
    parts += section("Preference", bullets(preference_lines(summary)))
    if summary.reason:
        parts += ["", f"**Stopped early:** {cell(summary.reason)} The figures below are of what was judged so far."]
    gates = [f"* {_BOLD.get(state, '')}{cell(line)}" for state, line in gate_lines(summary)]
    parts += section("Gates", gates)
    parts += section("Warnings", [f"* `{_code(item.code)}`: {cell(item.message)}" for item in summary.warnings])
    parts += ["", "## Figures", ""]
    rows = [
        [f"`{_code(name)}`", shown(figure), interval(figure), coverage(figure), if_failed(figure)]
        for name, figure in figures_with_data(summary)
    ]
    parts += table(["figure", "value", "95% interval", "cases", "if the failed were worst / best"], rows)
    parts += repeats_section(summary)
    parts += section("Questions", bullets(question_lines(summary, prompts)))
    parts += section("Instruments", bullets(instrument_lines(summary)))
    parts += reliability_section(summary.judge_reliability)
    parts += calibration_section(summary.judge_reliability)
    parts += probes_section(summary.judge_reliability)
    parts += _extraction_tables(summary)
    parts += section("Indexing", bullets(indexing_lines(summary.indexing_coverage)))
    slices = [line for dimension, values in summary.slices.items() for line in _slice_table(summary, dimension, values)]
    if any(SMALL in line for line in slices):
        slices += [
            "",
            f"In brackets the number of cases; small: fewer than {summary.min_n}, too few for a conclusion.",
        ]
    parts += slices
    parts += ["", "All figures, with every cut-off and slice, are in `metrics.json`.", ""]
    return "\n".join(parts)


def _extraction_tables(summary: RunSummary) -> list[str]:
    """Field extraction by error type and by field, the fields with the most errors first."""
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
        parts += ["", f"The {len(fields)} of {found['n_fields']} fields with the most errors."]
    return parts


def _slice_table(summary: RunSummary, dimension: str, values: Mapping[str, Figures]) -> list[str]:
    names = slice_figures(summary, values)
    if not values or not names:
        return []
    rows = []
    for value, figures in values.items():
        row = [cell(value)]
        for name in names:
            figure = figures.get(name)
            row.append(f"{number(figure.value, 2)} ({_size(figure)})" if isinstance(figure, Estimate) else "")
        rows.append(row)
    # Folded, so that a pull request shows the figures and not a screen of slices.
    title = f"<details><summary>By {escape(printable(dimension))}: {len(rows)} values</summary>"
    return ["", title, "", *table([cell(dimension), *(f"`{_code(name)}`" for name in names)], rows), "", "</details>"]


def _size(figure: Estimate) -> str:
    return f"{figure.n}{SMALL}" if figure.small and figure.n else str(figure.n)


def _code(text: str) -> str:
    """Foreign text between backticks, in a table or not: nothing in it is read, but a pipe would still end a cell."""
    return " ".join(printable(text).split()).replace("`", "'").replace("|", "\\|")
