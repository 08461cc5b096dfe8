"""What became of one case between two runs."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judgekit.analysis.query_changes import edited_fields, kind_of, query_change
from judgekit.core.cases import Case
from judgekit.core.comparison import FirstHits


@pytest.mark.parametrize(
    ("a", "b", "kind"),
    [
        (None, None, "draw"),
        (3, 3, "draw"),
        (None, 9, "win"),
        (3, 2, "win"),
        (2, 3, "loss"),
        (1, None, "regression"),
    ],
)
def test_kinds(a: int | None, b: int | None, kind: str) -> None:
    assert kind_of(a, b) == kind


ranks = st.none() | st.integers(1, 20)


@given(ranks, ranks)
def test_swapping_the_runs_turns_wins_and_keeps_draws(a: int | None, b: int | None) -> None:
    there, back = kind_of(a, b), kind_of(b, a)
    if there == "win":
        assert back == ("regression" if a is None else "loss")
    else:
        assert back == ("draw" if there == "draw" else "win")


def test_causes_are_named_only_where_something_moved() -> None:
    assert query_change("q", FirstHits(1, 1), ["chunker differs"]).note is None
    assert query_change("q", FirstHits(1, 1, ("k",)), ["chunker differs"]).note == "chunker differs"
    lost = query_change("q", FirstHits(1, None, ("k",), ("b failed: timeout",)), ["chunker differs"])
    assert (lost.kind, lost.note) == ("regression", "b failed: timeout; chunker differs")


def test_a_case_without_labels_is_no_draw() -> None:
    assert query_change("q", None, []).kind == "not_applicable"


@pytest.mark.parametrize(
    ("change", "fields"),
    [
        ({}, ()),
        ({"question": "Why?"}, ("question",)),
        ({"expected_chunk_ids": ["k2"], "reference_answers": ["b"]}, ("expected_chunk_ids", "reference_answers")),
        ({"tags": ["new"], "metadata": {"a": 1}, "difficulty": "hard"}, ()),  # slices only
    ],
)
def test_edits_of_question_and_labels_are_named(change: dict[str, Any], fields: tuple[str, ...]) -> None:
    old = {"id": "q", "question": "How?", "expected_chunk_ids": ["k"], "reference_answers": ["a"], "tags": ["old"]}
    assert edited_fields(Case.model_validate(old), Case.model_validate(old | change)) == fields
