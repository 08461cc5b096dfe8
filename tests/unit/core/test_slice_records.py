"""Figures of slices in metrics.json: short, and complete when they are read again."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from judgekit.core.slice_records import compact, restored

NAMES = ("mrr", "groundedness", "total", "groundedness.pass^2")


def figure(n: int = 0, n_error: int = 0, size: int = 6, **more: Any) -> dict[str, Any]:
    usual = {"value": 0.5 if n else None, "low": None, "high": None, "worst": None, "best": None}
    counts = {"n": n, "n_error": n_error, "n_not_applicable": size - n - n_error, "n_no_input": 0}
    return {**usual, **counts, "method": "mean, no interval: fewer than 2 cases", "small": n < 5, **more}


OVERALL = {name: figure(20, size=20, low=0.1, high=0.9, method="mean, wilson 95%") for name in NAMES}

figures = st.builds(
    figure,
    n=st.integers(0, 6),
    low=st.sampled_from([None, 0.1]),
    worst=st.sampled_from([None, 0.0]),
    n_no_input=st.integers(0, 1),
    method=st.sampled_from(["mean, wilson 95%", "mean, no interval: all values are equal", "sum over cases", "other"]),
    small=st.booleans(),
) | st.just({"0": 1, "1": 2})


@given(st.dictionaries(st.sampled_from("abc"), st.dictionaries(st.sampled_from(NAMES), figures), max_size=3))
def test_every_field_of_every_figure_comes_back(values: dict[str, Any]) -> None:
    slices = {"category": values}
    short, sizes = compact(slices, OVERALL, 5)
    assert restored(short, sizes, OVERALL, 5) == slices


def test_what_follows_from_the_rest_is_left_out() -> None:
    full = {
        "mrr": figure(5, 1, low=0.1, high=0.9, worst=0.4, best=0.6, method="mean, wilson 95%"),
        "groundedness": figure(0),
        "total": figure(1),
    }
    short, sizes = compact({"category": {"a": full}}, OVERALL, 5)
    assert sizes == {"category": {"a": 6}}
    assert short["category"]["a"] == {
        "mrr": {"value": 0.5, "n": 5, "n_error": 1, "low": 0.1, "high": 0.9, "worst": 0.4, "best": 0.6},
        "total": {"value": 0.5, "n": 1},
    }


def test_slices_of_an_older_run_are_as_they_were_written() -> None:
    slices = {"category": {"a": {"mrr": figure(3)}}}
    assert restored(slices, {}, OVERALL, 5) == slices
