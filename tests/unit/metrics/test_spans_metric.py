"""Character spans: merging, overlap, the three figures, and the family over cases."""

import pickle
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from judgekit.core.cases import Case, SystemOutput
from judgekit.core.scores import Failed, NotApplicable
from judgekit.metrics.spans import (
    CharacterSpan,
    Spans,
    calculate_overlap,
    merge_overlapping_spans,
    span_iou,
    span_precision,
    span_recall,
)


def span(start: int, end: int, doc_id: str = "d") -> CharacterSpan:
    return CharacterSpan(doc_id, start, end)


@pytest.mark.parametrize(
    ("given_spans", "merged"),
    [
        ([], []),
        ([span(3, 3)], []),
        ([span(0, 5), span(5, 9)], [span(0, 9)]),  # touching
        ([span(0, 5), span(6, 9)], [span(0, 5), span(6, 9)]),  # one character between
        ([span(0, 9), span(2, 4), span(8, 12)], [span(0, 12)]),  # one inside, one over the end
        ([span(0, 2), span(4, 4), span(6, 8)], [span(0, 2), span(6, 8)]),  # an empty one joins nothing
        ([span(5, 9), span(0, 5)], [span(0, 9)]),  # any order
        ([span(0, 5, "b"), span(3, 9, "a")], [span(3, 9, "a"), span(0, 5, "b")]),  # by document, never mixed
        # nervaluate#29 has predictions (1,2), (3,5), (6,10): in characters, 6 to 10 and 3 to 5 stay apart.
        ([span(1, 2), span(3, 5), span(6, 10)], [span(1, 2), span(3, 5), span(6, 10)]),
    ],
)
def test_overlapping_and_touching_spans_become_one(
    given_spans: list[CharacterSpan], merged: list[CharacterSpan]
) -> None:
    assert merge_overlapping_spans(given_spans) == merged


def test_overlapping_chunks_and_gold_are_counted_once() -> None:
    # Retrieved 0-10 and 5-15 are 15 characters, gold 8-12 and 10-20 are 12; in common 8-15 = 7, in either 20.
    retrieved, gold = [span(0, 10), span(5, 15)], [span(8, 12), span(10, 20)]
    assert calculate_overlap(retrieved, gold) == 7
    assert span_recall(retrieved, gold) == 7 / 12
    assert span_precision(retrieved, gold) == 7 / 15
    assert span_iou(retrieved, gold) == 7 / 20


@pytest.mark.parametrize(
    ("retrieved", "gold", "expected"),
    [
        ([], [], (1.0, 0.0, 1.0)),
        ([span(4, 4)], [], (1.0, 0.0, 1.0)),
        ([span(0, 4)], [], (1.0, 0.0, 0.0)),
        ([], [span(0, 4)], (0.0, 0.0, 0.0)),
        ([span(0, 4, "a")], [span(0, 4, "b")], (0.0, 0.0, 0.0)),
    ],
)
def test_nothing_on_one_side(
    retrieved: list[CharacterSpan], gold: list[CharacterSpan], expected: tuple[float, ...]
) -> None:
    assert tuple(metric(retrieved, gold) for metric in (span_recall, span_precision, span_iou)) == expected


@pytest.mark.parametrize(("start", "end"), [(5, 4), (-1, 4), (-3, -2)])
def test_offsets_that_are_no_range_are_refused_by_name(start: int, end: int) -> None:
    with pytest.raises(ValueError, match=f"{start} to {end}"):
        CharacterSpan("d", start, end)


def test_a_span_is_a_value() -> None:
    assert CharacterSpan(7, 1, 2) == CharacterSpan("7", 1, 2)  # type: ignore[comparison-overlap, unused-ignore]
    assert CharacterSpan("Cafe\u0301", 1, 2) == CharacterSpan("Caf\u00e9", 1, 2)
    assert sorted([span(3, 4), span(1, 9), span(0, 1, "c")]) == [span(0, 1, "c"), span(1, 9), span(3, 4)]
    assert pickle.loads(pickle.dumps(span(1, 2))) == span(1, 2)
    assert isinstance(merge_overlapping_spans([span(0, 2), span(1, 3)])[0], CharacterSpan)
    with pytest.raises(AttributeError):
        span(1, 2).start = 0  # type: ignore[misc]


def test_offsets_in_utf16_units_become_code_points() -> None:
    # U+1F600 is one code point and two UTF-16 units (tdlib/td#2984).
    text = "\U0001f600abcdef"
    found = CharacterSpan.from_utf16("d", 2, 8, text)
    assert found == span(1, 7)
    assert text[found.start : found.end] == "abcdef"
    for start, end in ((1, 8), (0, 1), (2, 9), (-1, 2), (4, 2)):
        with pytest.raises(ValueError, match=f"{start} to {end}"):
            CharacterSpan.from_utf16("d", start, end, text)


spans_drawn = st.lists(
    st.builds(
        lambda doc, start, length: CharacterSpan(doc, start, start + length),
        st.sampled_from("abc"),
        st.integers(0, 40),
        st.integers(0, 15),
    ),
    max_size=12,
)


def characters(spans: list[CharacterSpan]) -> set[tuple[str, int]]:
    """The naive reading: every character by itself."""
    return {(doc_id, place) for doc_id, start, end in spans for place in range(start, end)}


@given(spans_drawn, st.randoms(use_true_random=False))
def test_merging_keeps_the_characters_and_says_them_once(spans: list[CharacterSpan], rng: Any) -> None:
    merged = merge_overlapping_spans(spans)
    assert characters(merged) == characters(spans)
    assert sum(item.end - item.start for item in merged) == len(characters(spans))
    assert merged == sorted(merged) == merge_overlapping_spans(merged)
    pairs = pairwise(merged)
    assert all(one.doc_id != next_.doc_id or one.end < next_.start for one, next_ in pairs)
    shuffled = list(spans)
    rng.shuffle(shuffled)
    assert merge_overlapping_spans(shuffled) == merged
    assert len(spans) == len(shuffled)  # the caller's list is left as it was


@given(spans_drawn, spans_drawn)
def test_figures_agree_with_counting_every_character(one: list[CharacterSpan], other: list[CharacterSpan]) -> None:
    r, g = characters(one), characters(other)
    assert calculate_overlap(one, other) == calculate_overlap(other, one) == len(r & g)
    assert span_recall(one, other) == (len(r & g) / len(g) if g else 1.0)
    assert span_precision(one, other) == (len(r & g) / len(r) if r else 0.0)
    assert span_iou(one, other) == span_iou(other, one) == (len(r & g) / len(r | g) if r | g else 1.0)
    assert 0.0 <= span_iou(one, other) <= min(span_recall(one, other), 1.0)
    apart = [CharacterSpan(f"other {doc_id}", start, end) for doc_id, start, end in other]
    assert calculate_overlap(one, apart) == 0


NAMES = ("span_recall", "span_precision", "span_iou")
GOLD = {
    "expected_spans": {"c1": [{"doc_id": "d", "start": 0, "end": 10}], "c2": [{"doc_id": "d", "start": 5, "end": 20}]}
}


def hit(*ranges: tuple[int, int], doc_id: str | None = "d") -> dict[str, Any]:
    return {"doc_id": doc_id, "source_spans": [{"start": start, "end": end} for start, end in ranges]}


@pytest.mark.parametrize(
    ("case", "output", "expected"),
    [
        # Gold 0-20; retrieved 10-30 of d and 0-10 of e: 10 in common, 30 retrieved, 40 in either.
        (GOLD, {"retrieved": [hit((10, 30)), hit((0, 10), doc_id="e")]}, [10 / 20, 10 / 30, 10 / 40]),
        # A span's own document comes before the hit's: 5 of 20 gold, 5 of 5 retrieved, 5 of 20 in either.
        (
            GOLD,
            {"retrieved": [{"doc_id": "e", "source_spans": [{"doc_id": "d", "start": 0, "end": 5}]}]},
            [0.25, 1.0, 0.25],
        ),
        # Only the chunks that are expected: gold 0-10.
        ({**GOLD, "expected_chunk_ids": ["c1"]}, {"retrieved": [hit((0, 10))]}, [1.0, 1.0, 1.0]),
        (GOLD, {"retrieved": []}, [0.0, 0.0, 0.0]),
        ({}, {"retrieved": [hit((0, 10))]}, "no expected_spans"),
        ({"expected_spans": {}}, {"retrieved": [hit((0, 10))]}, "expected_spans hold no characters"),
        ({**GOLD, "expected_chunk_ids": ["c9"]}, {"retrieved": []}, "expected_spans lack an expected chunk"),
        (GOLD, {"retrieved": [hit((0, 10)), {"doc_id": "d"}]}, "a hit has no source_spans"),
        (GOLD, {"error": {"kind": "api"}}, Failed("api")),
        ({}, {"error": {"kind": "api"}}, "no expected_spans"),
    ],
)
def test_the_family_scores_the_spans_of_all_hits(case: dict[str, Any], output: dict[str, Any], expected: Any) -> None:
    outcomes = Spans().calculate(
        Case.model_validate({"id": "q", **case}), SystemOutput.model_validate({"case_id": "q", **output})
    )
    if isinstance(expected, list):
        assert outcomes == pytest.approx(dict(zip(NAMES, expected, strict=True)))
    else:
        outcome = NotApplicable(expected) if isinstance(expected, str) else expected
        assert outcomes == dict.fromkeys(NAMES, outcome)


def test_a_span_without_a_document_is_refused_when_it_is_read() -> None:
    with pytest.raises(ValidationError, match="expected_spans of chunk 'c1': a span has no doc_id"):
        Case.model_validate({"id": "q", "expected_spans": {"c1": [{"start": 0, "end": 1}]}})
    with pytest.raises(ValidationError, match=r"case 'q': retrieved\[0\]: neither hit nor span has a doc_id"):
        SystemOutput.model_validate({"case_id": "q", "retrieved": [hit((0, 1), doc_id=None)]})
