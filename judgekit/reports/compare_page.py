"""A comparison as one page that needs nothing else: differences drawn, and both answers of every case side by side."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from judgekit.core.cases import Case, SystemOutput
from judgekit.core.comparison import Comparison, Delta, QueryChange, ScoreChange
from judgekit.core.scores import Failed, NotApplicable, Outcome
from judgekit.reports.charts import difference_bar
from judgekit.reports.compare_lines import (
    case_line,
    cells,
    change_values,
    chunker_line,
    flip_table,
    headline_deltas,
    label_tables,
    lost_text,
    moved,
    plain_number,
    ranks,
    set_lines,
    table_notes,
    unmoved_line,
)
from judgekit.reports.figures import number
from judgekit.reports.finding_sentences import comparison_sentence, judges_of
from judgekit.reports.headline import is_headline
from judgekit.reports.pages import render
from judgekit.reports.safe_text import inert
from judgekit.reports.word_diff import word_diff

MOST_CASES = 1000
"""Most cases on the page."""

MOST_TEXT = 4000
"""Characters of one answer or question."""

MOST_HITS = 10
"""Hits of one output."""

_BADGES = {
    "better": "good",
    "worse": "bad",
    "win": "good",
    "mended": "good",
    "loss": "warn",
    "regression": "bad",
}

_GROUPS = {
    "regression": "worse",
    "loss": "worse",
    "win": "better",
    "mended": "better",
    "draw": "same",
    "changed_case": "edited",
    "not_applicable": "not comparable",
}
"""What readers call the kinds of changes; the others have no other name."""

Scores = Mapping[str, Outcome]

_NO_VALUE = "no value in b"
"""The kind of a score that b does not have, since the case failed or it does not apply any more."""

_MOST_MOVES = 4
"""Scores named beside the id of a case; all of them are in its table."""

_OPEN = 3
"""Cases that lost most and stand open."""


@dataclass(frozen=True)
class ComparedCase:
    """What the page shows of one case."""

    query: QueryChange
    case: Case | None
    outputs: tuple[SystemOutput | None, SystemOutput | None]
    scores: tuple[Scores, Scores]
    slices: Mapping[str, Sequence[str]]
    """Values by dimension."""


def chosen_queries(comparison: Comparison) -> list[QueryChange]:
    """The cases of the page, the most important first."""
    return list(comparison.per_query[:MOST_CASES])


def render_comparison(
    comparison: Comparison, cases: Iterable[ComparedCase], failed: Sequence[str] = ()
) -> Iterator[str]:
    """The page as pieces of text; cases are taken one by one while it is written, in the order of `chosen_queries`."""
    deltas = moved(headline_deltas(comparison))
    others = [delta for delta in comparison.deltas if delta not in deltas]
    judges = judges_of(comparison)
    judged = [*judges, *(name for name in comparison.kinds if is_headline(name) and name not in judges)]
    flip_header, *flips = flip_table(comparison)
    yield from render(
        "compare.html",
        {
            "title": f"{comparison.run_a} and {comparison.run_b}",
            "comparison": comparison,
            "failed": failed,
            "rows": _rows(deltas),
            "other_rows": _rows(others),
            "notes": table_notes(comparison, deltas),
            "case_line": case_line(comparison),
            "changed": [cause.line for cause in comparison.causes],
            "sets": set_lines(comparison),
            "chunkers": chunker_line(comparison),
            "flip_header": flip_header,
            "flips": flips,
            "label_tables": label_tables(comparison),
            "unmoved": unmoved_line(comparison),
            "sentence": comparison_sentence(comparison),
            "scores": judged,
            "n_cases": len(comparison.per_query),
            "n_shown": len(chosen_queries(comparison)),
            "n_open": _OPEN,
            "cases": (_case(item, judged) for item in cases),
        },
        "compare.js",
    )


def _kinds(item: ComparedCase, scores: Sequence[str]) -> dict[str, list[str]]:
    """What became of a case in the words of readers, by score; over all of them under the empty name."""
    query = item.query
    found = {name: _group(change) for name, change in query.scores.items()}
    found |= {name: kind for name in scores if name not in found and (kind := _untold(item.scores, name))}
    kinds = set(found.values())
    if query.kind != "not_applicable" or not kinds:  # without expected hits a case can still be told by its scores
        kinds.add(_GROUPS.get(query.kind, query.kind))
    # A case that got better by one score and worse by another counts in both, and as the same only if nothing moved.
    kinds -= {"same"} if kinds - {"same"} else set()
    return {"": sorted(kinds)} | {name: [kind] for name, kind in found.items()}


def _untold(sides: tuple[Scores, Scores], name: str) -> str:
    """Why a score says nothing of a case: a run has no value of it; empty if it applies in neither."""
    of_name = [[value for key, value in side.items() if f"{key}.".startswith(f"{name}.")] for side in sides]
    has_a, has_b = (any(isinstance(value, float) for value in values) for values in of_name)
    if has_b and not has_a:
        return "no value in a"
    failed = any(isinstance(value, Failed) for values in of_name for value in values)
    return "no value in either" if failed and not has_a else ""


def _group(change: ScoreChange) -> str:
    return _NO_VALUE if change.b is None else _GROUPS.get(change.kind, change.kind)


def _rows(deltas: Sequence[Delta]) -> list[dict[str, Any]]:
    ends = [abs(end) for delta in deltas for end in (delta.delta, delta.low, delta.high) if end is not None]
    small = max((end for end in ends if end <= 1), default=1.0)
    return [
        {
            **cells(delta),
            "method": delta.method,
            "bar": difference_bar(delta.delta, (delta.low, delta.high), _top(delta, small)),
            "detectable": "" if delta.mde is None else number(delta.mde),
            "badge": _BADGES.get(delta.verdict, ""),
        }
        for delta in deltas
    ]


def _top(delta: Delta, small: float) -> float:
    """Half the width of a drawing: the same for all figures up to 1, so that they can be compared."""
    largest = max((abs(end) for end in (delta.delta, delta.low, delta.high) if end is not None), default=1.0)
    return small if largest <= small else largest


def _case(item: ComparedCase, judged: Sequence[str]) -> dict[str, Any]:
    query = item.query
    return {
        "id": query.query_id,
        "kind": query.kind.replace("_", " "),
        "kinds": json.dumps(_kinds(item, judged)),
        "slices": [inert(f"{dimension}={value}") for dimension, values in item.slices.items() for value in values],
        "badge": _BADGES.get(query.kind, ""),
        "ranks": "" if query.kind in ("changed_case", "not_applicable") else ranks(query),
        "moves": [
            {"name": name, "kind": change.kind, "badge": _BADGES.get(change.kind, ""), "values": change_values(change)}
            for name, change in sorted(query.scores.items(), key=lambda item: -item[1].loss)
            if change.kind != "draw" and is_headline(name)
        ],
        "most_moves": _MOST_MOVES,
        "note": query.note,
        "lost": query.lost_chunks,
        "lost_lines": [lost_text(chunk) for chunk in query.lost],
        "question": None if item.case is None else _cut(item.case.question),
        "expected": () if item.case is None else item.case.expected_chunk_ids or item.case.expected_doc_ids or (),
        "references": () if item.case is None else [_cut(text) for text in item.case.reference_answers],
        "sides": _sides(item),
        "scores": [
            (*row, _TINTS.get(query.scores[row[0]].kind, "") if row[0] in query.scores else "")
            for row in _unequal(*item.scores)
        ],
    }


_EMPTY: Mapping[str, Any] = {"answer": None, "pieces": (), "compared": "", "hits": (), "n_more": 0}
"""Of an output of which nothing is known."""

_TINTS = {"regression": "worse-cell", "loss": "worse-cell", "win": "better-cell", "mended": "better-cell"}
"""Class of the cell of b."""


def _sides(item: ComparedCase) -> list[dict[str, Any]]:
    """Both outputs, with the words marked that the other answer does not have."""
    ranks_of = (item.query.a_hit_rank, item.query.b_hit_rank)
    sides = [_side(name, output, rank) for name, output, rank in zip("ab", item.outputs, ranks_of, strict=True)]
    first, second = (None if output is None else output.answer for output in item.outputs)
    if first is None or second is None:
        return sides
    if first == second:
        return [{**side, "compared": "the same answer"} for side in sides]
    marked = word_diff(first[:MOST_TEXT], second[:MOST_TEXT])
    if marked is None:
        return [{**side, "compared": "too long to mark the words that differ"} for side in sides]
    return [
        {**side, "pieces": [*pieces, (False, _left_out(text))]}
        for side, pieces, text in zip(sides, marked, (first, second), strict=True)
    ]


def _side(name: str, output: SystemOutput | None, rank: int | None) -> dict[str, Any]:
    if output is None:
        return {**_EMPTY, "name": name, "state": "no output"}
    state = f"failed: {output.error.kind} {output.error.message}".strip() if output.error is not None else ""
    if not state and (output.abstained or output.grounded is False):
        state = "abstained"
    hits = sorted(
        ((position if hit.rank is None else hit.rank, hit) for position, hit in enumerate(output.retrieved, start=1)),
        key=lambda entry: entry[0],
    )
    return {
        **_EMPTY,
        "name": name,
        "answer": None if output.answer is None else _cut(output.answer),
        "state": state or ("no answer" if output.answer is None else ""),
        "hits": [
            {"rank": place, "name": hit.chunk_id or hit.doc_id or hit.rel_path or "unnamed", "is_first": place == rank}
            for place, hit in hits[:MOST_HITS]
        ],
        "n_more": max(0, len(hits) - MOST_HITS),
    }


def _unequal(a: Mapping[str, Outcome], b: Mapping[str, Outcome]) -> Iterator[tuple[str, str, str]]:
    """Headline scores that differ."""
    for name in dict.fromkeys([*a, *b]):
        first, second = a.get(name), b.get(name)
        if first != second and is_headline(name):
            yield name, _shown(first), _shown(second)


def _shown(outcome: Outcome | None) -> str:
    if outcome is None:
        return "not scored"
    if isinstance(outcome, NotApplicable):
        return f"n/a: {outcome.reason}"
    return f"failed: {outcome.kind}" if isinstance(outcome, Failed) else plain_number(outcome)


def _cut(text: str) -> str:
    return f"{text[:MOST_TEXT]}{_left_out(text)}"


def _left_out(text: str) -> str:
    """What stands in place of the end of a long text."""
    return "" if len(text) <= MOST_TEXT else f" ... ({len(text):,} characters in all)"
