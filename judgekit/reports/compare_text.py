"""A comparison on the terminal (a table by rich, or plain columns), as markdown, and as JSON."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from judgekit.core.comparison import Comparison
from judgekit.core.conditions import GateResult
from judgekit.core.runs import AGGREGATE_NAMES
from judgekit.reports.compare_lines import (
    case_line,
    cells,
    chunker_line,
    flip_table,
    headline_deltas,
    label_tables,
    losing_cases,
    losing_lines,
    losses,
    moved,
    outcome_line,
    p_text,
    same_line,
    set_lines,
    table_notes,
    table_of,
    unmoved_line,
)
from judgekit.reports.figures import several_gates
from judgekit.reports.finding_sentences import comparison_sentence, with_sentence
from judgekit.reports.safe_text import printable
from judgekit.reports.tables import aligned, bullets, cell, section, table
from judgekit.stats.means import round4

if TYPE_CHECKING:
    from rich.console import RenderableType

MOST_CASES = 20
"""Rows of the markdown table of cases."""

_SHORT = ("figure", "verdict", "a", "b", "b - a", "95% interval", "better")
"""Columns of the short table."""

_MOST_ROWS, _MOST_NOTES = 6, 2
"""Figures of the short table, and lines below it of each kind."""

_WIDTH = 160
"""Characters of a line of the short form."""

_STYLES = {"better": "green", "worse": "red"}
_P_VALUES = ("p", "p_holm")


def plain_text(comparison: Comparison, *, stats: bool = True) -> str:
    """The comparison in a sentence and as aligned columns.

    Args:
        comparison: the two runs.
        stats: whether to show every figure with its test, and every note; else what is read first.
    """
    table_lines = aligned(_rows(comparison, stats=stats))
    lines = [_lead(comparison), "", *table_lines, *([""] if table_lines else [])]
    return "\n".join([*lines, *(line for _, line in _notes(comparison, stats=stats))])


def rich_table(comparison: Comparison, *, stats: bool = True) -> "RenderableType":
    """The same for a colour terminal; foreign text is never read as markup."""
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    parts: list[RenderableType] = [Text(_lead(comparison), style="bold"), Text("")]
    found = _rows(comparison, stats=stats)
    if found:
        shown = Table(box=None, pad_edge=False)
        for name in found[0]:
            is_text = name in ("figure", "verdict")
            shown.add_column(name, justify="left" if is_text else "right", no_wrap=name != "figure")
        for name, word, *cells in found[1:]:
            shown.add_row(Text(name), Text(word, style=_STYLES.get(word.split(",")[0], "")), *map(Text, cells))
        parts += [shown, Text("")]
    styles = {"plain": "", "head": "bold", "bad": "yellow"}
    return Group(*parts, *(Text(line, style=styles[kind]) for kind, line in _notes(comparison, stats=stats)))


def _lead(comparison: Comparison) -> str:
    return printable(f"{comparison_sentence(comparison)}\n\na: {comparison.run_a}\nb: {comparison.run_b}")


def _rows(comparison: Comparison, *, stats: bool) -> list[tuple[str, ...]]:
    """Header and differences as texts; empty if nothing differs."""
    deltas = moved(headline_deltas(comparison))
    if not stats:
        rows = [tuple(cells(delta)[name] for name in _SHORT) for delta in deltas[:_MOST_ROWS]]
        return [tuple(map(printable, row)) for row in [_SHORT, *rows]] if rows else []
    return [tuple(map(printable, cells)) for cells in table_of(deltas)] if deltas else []


def _notes(comparison: Comparison, *, stats: bool) -> list[tuple[str, str]]:
    """(kind, line) below the table; kind is `plain`, `head` or `bad`."""
    return _all_notes(comparison) if stats else _short_notes(comparison)


def _short_notes(comparison: Comparison) -> list[tuple[str, str]]:
    found = [("plain", f"gate: {line}") for line in gate_notes(comparison.gates)[:_MOST_NOTES]]
    for head, below in (
        ("worst cases first", losing_lines(comparison)[: _MOST_NOTES + 1]),
        ("what changed besides the answers", [cause.line for cause in comparison.causes][:_MOST_NOTES]),
    ):
        if below:
            found += [("head", f"{head}:"), *[("plain", f"  {_cut(line)}") for line in below]]
    found += [("bad", f"warning: {message} [{code}]") for code, message in comparison.notices[:_MOST_NOTES]]
    n_more = max(0, len(moved(headline_deltas(comparison))) - _MOST_ROWS)
    more = f"{n_more} more figures, tests" if n_more else "tests"
    found.append(("plain", f"{more}, causes and all cases: --stats, or --format html --out FILE for both answers"))
    return [(kind, printable(line)) for kind, line in found]


def _cut(line: str) -> str:
    return line if len(line) <= _WIDTH else f"{line[: _WIDTH - 3]}..."


def _all_notes(comparison: Comparison) -> list[tuple[str, str]]:
    deltas = headline_deltas(comparison)
    different = moved(deltas)
    lines = [same_line(deltas), *(table_notes(comparison, different) if different else [])]
    found = [("plain", line) for line in lines if line]
    found += [("plain", ""), ("plain", case_line(comparison)), ("plain", chunker_line(comparison))]
    flips = flip_table(comparison)
    unmoved = unmoved_line(comparison)
    flip_lines = [*(aligned(flips) if len(flips) > 1 else []), *([unmoved] if unmoved else [])]
    for head, below in (
        ("gates relative to a baseline", gate_notes(comparison.gates)),
        ("cases by judge and 0/1 score", flip_lines),
        *((f"labels of {judge}", aligned(rows)) for judge, rows in label_tables(comparison)),
        (f"worst cases first (chunks lost within {comparison.k})", losing_lines(comparison)),
        ("what changed besides the answers", [cause.line for cause in comparison.causes]),
        ("cases that are not compared", set_lines(comparison)),
    ):
        if below:
            found += [("head", f"{head}:"), *[("plain", f"  {line}") for line in below]]
    found += [("bad", f"warning: {message} [{code}]") for code, message in comparison.notices]
    return [(kind, printable(line)) for kind, line in found]


def gate_notes(gates: Sequence[GateResult]) -> list[str]:
    """A line for each gate of b that was held against a, and what to know of several."""
    note = several_gates(gates)
    return [*(gate.message for gate in gates), *([note] if note else [])]


def compare_markdown(comparison: Comparison, failed: Sequence[str] = ()) -> str:
    """The comparison and what `--fail-on` found as GitHub-flavoured markdown, to be read in a pull request."""
    parts = [f"# {cell(comparison.run_a)} and {cell(comparison.run_b)}", "", _verdicts(comparison)]
    parts += section("Failed", bullets(failed))
    parts += section("Warnings", [f"* `{code}`: {cell(message)}" for code, message in comparison.notices])
    parts += section("Gates", bullets(gate_notes(comparison.gates)))
    parts += ["", "## Figures", "", *_figures(comparison)]
    parts += section("Cases", _cases(comparison))
    parts += section("What changed besides the answers", bullets([cause.line for cause in comparison.causes]))
    parts += section("Cases that are not compared", bullets(set_lines(comparison)))
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
    parts = []
    if different:
        header, *rows = table_of(different)
        parts += [*table(header, map(_marked, rows)), "", *bullets(table_notes(comparison, different))]
    same = same_line(deltas)
    return [*parts, *bullets([same] if same else [])]


def _marked(cells: Sequence[str]) -> list[str]:
    """A row with what is better or worse in bold."""
    name, verdict, *rest = cells
    word, *mixed = verdict.split(", ")
    return [f"`{cell(name)}`", ", ".join([f"**{word}**" if word in _STYLES else word, *mixed]), *map(cell, rest)]


def _cases(comparison: Comparison) -> list[str]:
    chosen = losing_cases(comparison)
    parts = [f"{cell(case_line(comparison))}.", "", f"{cell(chunker_line(comparison))}."]
    header, *rows = flip_table(comparison)
    if rows:
        parts += ["", *table(header, [[f"`{cell(name)}`", *counts] for name, *counts in rows])]
    for judge, (head, *changes) in label_tables(comparison):
        parts += [
            "",
            f"Labels of `{cell(judge)}`:",
            "",
            *table([*map(cell, head)], [[*map(cell, row)] for row in changes]),
        ]
    unmoved = unmoved_line(comparison)
    parts += ["", *bullets([unmoved])] if unmoved else []
    shown = [
        [cell(query.query_id), cell("; ".join(losses(query))), cell(query.note or "")] for query in chosen[:MOST_CASES]
    ]
    if shown:
        parts += ["", *table(["case, worst first", f"lost (chunks within {comparison.k})", "note"], shown)]
    if len(chosen) > len(shown):
        parts += ["", f"The first {len(shown)} of {len(chosen)}."]
    return parts


def compare_document(comparison: Comparison, failed: Sequence[str] = ()) -> dict[str, Any]:
    """The comparison and what `--fail-on` found as strict JSON: four decimals, six significant digits of p values."""
    document = comparison.document()
    document["deltas"] = {
        name: _rounded(value) if isinstance(value, dict) else value for name, value in document["deltas"].items()
    }
    document |= {"aggregate_names": AGGREGATE_NAMES, "failed": list(failed)}
    return with_sentence(document, comparison_sentence(comparison))


def _rounded(delta: dict[str, Any]) -> dict[str, Any]:
    return {
        name: value if not isinstance(value, float) else float(f"{value:.6g}") if name in _P_VALUES else round4(value)
        for name, value in delta.items()
    }
