"""Counts over a list of discrepancies that is there already."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judgekit import compare_fields, compute_confusion_counts, count_by_type
from judgekit.core.errors import InputError

VALUES = st.dictionaries(st.sampled_from("abcd"), st.integers(0, 2) | st.sampled_from(["x", "y"]), max_size=4)


@given(expected=VALUES, extracted=VALUES)
def test_counts_over_the_discrepancies_are_those_of_the_comparison(
    expected: dict[str, object], extracted: dict[str, object]
) -> None:
    found = compare_fields(expected, extracted)
    assert compute_confusion_counts(found.discrepancies, found.counts.total_gt_fields) == found.counts
    assert sum(count_by_type(found.discrepancies).values()) == len(found.discrepancies)


@pytest.mark.parametrize(
    ("types", "total", "expected"),
    [
        # right = total - omitted - wrong; false positives = invented + wrong; false negatives = omitted + wrong
        ([], 3, (3, 0, 0)),
        (["omission"], 3, (2, 0, 1)),
        (["hallucination"], 3, (3, 1, 0)),
        (["format_error", "wrong_value"], 3, (1, 2, 2)),
        (["omission", "hallucination", "hallucination", "wrong_value"], 2, (0, 3, 2)),
        ([], 0, (0, 0, 0)),
    ],
)
def test_positives_and_negatives_follow_from_error_types(
    types: list[Any], total: int, expected: tuple[int, int, int]
) -> None:
    counts = compute_confusion_counts(types, total)
    assert (counts.true_positives, counts.false_positives, counts.false_negatives) == expected


def test_what_cannot_be_counted_is_refused() -> None:
    with pytest.raises(InputError, match=r"no error type 'ommission'.*omission"):
        count_by_type(["ommission"])  # type: ignore[list-item]
    with pytest.raises(InputError, match=r"2 expected fields are wrong or omitted, but total_gt_fields is 1"):
        compute_confusion_counts(["omission", "wrong_value"], 1)
