"""Chunk sets: the three figures and the family over cases."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judgekit.core.cases import Case, SystemOutput
from judgekit.core.scores import Failed, NotApplicable
from judgekit.metrics.chunks import Chunks, chunk_f1, chunk_precision, chunk_recall

METRICS = (chunk_recall, chunk_precision, chunk_f1)


@pytest.mark.parametrize(
    ("retrieved", "gold", "expected"),
    [
        (["a", "b", "x"], ["a", "b", "c", "d"], (2 / 4, 2 / 3, 4 / 7)),  # F1 = 2*2/(3+4)
        (["a", "a"], ["a", "b"], (1 / 2, 1 / 1, 2 / 3)),  # a repeated id counts once
        ([7, "x"], ["7"], (1.0, 1 / 2, 2 / 3)),
        (["07"], [7], (0.0, 0.0, 0.0)),
        (["Cafe\u0301"], ["Caf\u00e9"], (1.0, 1.0, 1.0)),
        (["a"], [], (1.0, 0.0, 0.0)),
        ([], ["a"], (0.0, 0.0, 0.0)),
        ([], [], (1.0, 0.0, 0.0)),
    ],
)
def test_sets_of_ids(retrieved: list[str | int], gold: list[str | int], expected: tuple[float, ...]) -> None:
    assert tuple(metric(retrieved, gold) for metric in METRICS) == pytest.approx(expected)


def test_a_text_is_no_list_of_ids() -> None:
    with pytest.raises(ValueError, match="write it as a list of one"):
        chunk_recall("c1", ["c1"])


ids_drawn = st.lists(st.sampled_from("abcdef"), max_size=8)


@given(ids_drawn, ids_drawn)
def test_figures_stay_in_range_and_order_does_not_matter(one: list[str], other: list[str]) -> None:
    values = [metric(one, other) for metric in METRICS]
    assert all(0.0 <= value <= 1.0 for value in values)
    assert [metric(one[::-1], set(other)) for metric in METRICS] == values
    if one and other:
        assert chunk_recall(one, other) == chunk_precision(other, one)
        assert chunk_f1(one, other) == chunk_f1(other, one)


@pytest.mark.parametrize(
    ("case", "output", "expected"),
    [
        # 1 of 2 expected, 1 of 2 distinct retrieved; the hit without an id is in neither set.
        (["a", "b"], {"retrieved": [{"chunk_id": "a"}, {"chunk_id": "a"}, {"chunk_id": "x"}, {}]}, [0.5, 0.5, 0.5]),
        (["a"], {"retrieved": []}, [0.0, 0.0, 0.0]),
        (None, {"retrieved": [{"chunk_id": "a"}]}, NotApplicable("no expected_chunk_ids")),
        ([], {"retrieved": [{"chunk_id": "a"}]}, NotApplicable("no expected_chunk_ids")),
        (["a"], {"error": {"kind": "timeout"}}, Failed("timeout")),
        (None, {"error": {"kind": "timeout"}}, NotApplicable("no expected_chunk_ids")),
    ],
)
def test_the_family_scores_the_distinct_chunks_of_all_hits(
    case: list[str] | None, output: dict[str, Any], expected: Any
) -> None:
    outcomes = Chunks().calculate(
        Case.model_validate({"id": "q", "expected_chunk_ids": case}),
        SystemOutput.model_validate({"case_id": "q", **output}),
    )
    names = [metric.name for metric in METRICS]
    values = expected if isinstance(expected, list) else [expected] * 3
    assert outcomes == dict(zip(names, values, strict=True))
