"""A comparison to be read in a pull request."""

from collections.abc import Sequence

from judgekit.core.comparison import Comparison
from judgekit.reports.compare_lines import (
    case_line,
    changed_lines,
    chunker_line,
    flip_table,
    headline_deltas,
    losing_cases,
    losses,
    moved,
    n_tested,
    outcome_line,
    p_text,
    same_line,
    set_lines,
    table_notes,
    table_of,
    unmoved_line,
)
from judgekit.reports.tables import cell, table

MOST_CASES = 20
"""Rows of the table of cases."""

_MARKS = {"better": "**better**", "worse": "**worse**"}


def compare_markdown(comparison: Comparison, failed: Sequence[str] = ()) -> str:
    """The comparison as GitHub-flavoured markdown.

    Args:
        comparison: what was compared.
        failed: what `--fail-on` found.
    """
    parts = [f"# {cell(comparison.run_a)} and {cell(comparison.run_b)}", "", _verdicts(comparison)]
    parts += _section("Failed", [f"* {cell(line)}" for line in failed])
    parts += _section("Warnings", [f"* `{code}`: {cell(message)}" for code, message in comparison.notices])
    parts += _figures(comparison)
    parts += _cases(comparison)
    parts += _section("What changed besides the answers", [f"* {cell(line)}" for line in changed_lines(comparison)])
    parts += _section("Cases that are not compared", [f"* {cell(line)}" for line in set_lines(comparison)])
    return "\n".join([*parts, ""])


def _verdicts(comparison: Comparison) -> str:
    """Better and worse in one sentence."""
    named = {word: [delta for delta in comparison.deltas if delta.verdict == word] for word in ("better", "worse")}
    parts = [
        f"**{word}:** {', '.join(f'`{cell(delta.name)}` ({p_text(delta.p_holm)})' for delta in deltas)}"
        for word, deltas in named.items()
        if deltas
    ]
    figures = "; ".join(parts) if parts else "No evidence of a difference in any figure"
    return f"{figures}. Cases: {outcome_line(comparison)}."


def _figures(comparison: Comparison) -> list[str]:
    deltas = headline_deltas(comparison)
    different = moved(deltas)
    parts = ["", "## Figures", ""]
    if different:
        header, *rows = table_of(different)
        parts += [*table(header, [_marked(cells) for cells in rows]), ""]
        parts += [f"* {cell(line)}" for line in table_notes(different, n_tested(comparison))]
    same = same_line(deltas)
    return [*parts, *([f"* {cell(same)}"] if same else [])]


def _marked(cells: Sequence[str]) -> list[str]:
    name, verdict, *rest = cells
    word, *mixed = verdict.split(", ")
    return [f"`{cell(name)}`", ", ".join([_MARKS.get(word, word), *mixed]), *map(cell, rest)]


def _cases(comparison: Comparison) -> list[str]:
    chosen = losing_cases(comparison)
    parts = ["", "## Cases", "", f"{cell(case_line(comparison))}.", "", f"{cell(chunker_line(comparison))}."]
    header, *rows = flip_table(comparison)
    if rows:
        parts += ["", *table(header, [[f"`{cell(name)}`", *counts] for name, *counts in rows])]
    unmoved = unmoved_line(comparison)
    parts += ["", f"* {cell(unmoved)}"] if unmoved else []
    shown = [
        [cell(query.query_id), cell("; ".join(losses(query))), cell(query.note or "")] for query in chosen[:MOST_CASES]
    ]
    if shown:
        parts += ["", *table(["case, worst first", f"lost (chunks within {comparison.k})", "note"], shown)]
    if len(chosen) > len(shown):
        parts += ["", f"The first {len(shown)} of {len(chosen)}."]
    return parts


def _section(title: str, lines: Sequence[str]) -> list[str]:
    return ["", f"## {title}", "", *lines] if lines else []
