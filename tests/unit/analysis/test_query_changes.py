"""What became of one case between two runs."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judgekit.analysis.case_changes import by_loss, edited_fields, kind_of, query_change
from judgekit.core.cases import Case
from judgekit.core.comparison import FirstHits, LostChunk, QueryChange, ScoreChange, ScoreKind


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
    chunk = LostChunk("k", 1, None)
    assert query_change("q", FirstHits(1, 1), ["chunker differs"], {}).note is None
    assert query_change("q", FirstHits(1, 1, (chunk,)), ["chunker differs"], {}).note == "chunker differs"
    flipped = {"groundedness": ScoreChange(5.0, 1.0, "regression", 0.8)}
    assert query_change("q", FirstHits(1, 1), ["judge differs"], flipped).note == "judge differs"
    lost = query_change("q", FirstHits(1, None, (chunk,), 1, ("b failed: timeout",)), ["chunker differs"], {})
    assert (lost.kind, lost.note) == ("regression", "b failed: timeout; chunker differs")


def test_the_loss_of_hits_is_that_of_the_rank_or_the_share_of_the_chunks() -> None:
    # 1/2 - 1/4 of the rank; one of two chunks; nothing lost by a win
    assert query_change("q", FirstHits(2, 4), [], {}).hit_loss == 0.25
    assert query_change("q", FirstHits(1, 1, (LostChunk("k", 2, None),), 2), [], {}).hit_loss == 0.5
    assert query_change("q", FirstHits(4, 2), [], {}).hit_loss == 0.0


def test_cases_are_sorted_by_the_largest_loss_then_by_the_sum_then_gains_come_before_draws() -> None:
    def of(query_id: str, *losses: float, kind: ScoreKind = "loss") -> QueryChange:
        changes = {f"s{place}": ScoreChange(1.0, 0.0, kind, loss) for place, loss in enumerate(losses)}
        return QueryChange(query_id, "not_applicable", scores=changes)

    rows = [of("draw", 0.0, kind="draw"), of("gain", 0.0, kind="win"), of("small", 0.2), of("big", 0.8)]
    rows += [of("two", 0.8, 0.2)]
    assert [query.query_id for query in by_loss(rows)] == ["two", "big", "small", "gain", "draw"]


def test_a_case_without_labels_is_no_draw() -> None:
    assert query_change("q", None, [], {}).kind == "not_applicable"


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
