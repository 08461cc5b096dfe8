"""Wilson's interval, against a published comparison of methods, scipy, and what must hold for every proportion."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats as scipy_stats

from judgekit.stats.proportions import wilson_interval

# Newcombe 1998, "Two-sided Confidence Intervals for the Single Proportion", Statistics in Medicine 17, 857-872, the
# four examples, method 3.
NEWCOMBE = [
    (81, 263, 0.2553, 0.3662),
    (15, 148, 0.0624, 0.1605),
    (0, 20, 0.0, 0.1611),
    (1, 29, 0.0061, 0.1718),
]


@pytest.mark.parametrize(("n_successes", "n", "low", "high"), NEWCOMBE)
def test_the_published_intervals_are_found(n_successes: int, n: int, low: float, high: float) -> None:
    assert wilson_interval(n_successes, n) == pytest.approx((low, high), abs=5e-5)


def test_no_trials_have_no_interval() -> None:
    assert wilson_interval(0, 0) is None


@pytest.mark.parametrize("n", [1, 2, 3, 7, 20, 999, 10**6])
def test_the_ends_are_exact_where_nothing_lies_beyond(n: int) -> None:
    none, full = wilson_interval(0, n), wilson_interval(n, n)
    assert none is not None
    assert full is not None
    assert none[0] == 0.0
    assert full[1] == 1.0
    # z^2 / (n + z^2) on the far side
    assert none[1] == pytest.approx(1.959963984540054**2 / (n + 1.959963984540054**2), rel=1e-12)


@given(st.integers(1, 5000), st.data(), st.sampled_from([0.5, 0.8, 0.9, 0.95, 0.99, 0.999]))
def test_every_interval_equals_scipy_and_holds_the_proportion(n: int, data: st.DataObject, confidence: float) -> None:
    n_successes = data.draw(st.integers(0, n))
    interval = wilson_interval(n_successes, n, confidence)
    assert interval is not None
    expected = scipy_stats.binomtest(n_successes, n).proportion_ci(confidence, method="wilson")
    assert interval == pytest.approx((expected.low, expected.high), abs=1e-12)
    assert 0.0 <= interval[0] <= n_successes / n <= interval[1] <= 1.0
    assert interval[0] < interval[1]


@given(st.integers(1, 5000), st.data())
def test_failures_have_the_mirrored_interval(n: int, data: st.DataObject) -> None:
    n_successes = data.draw(st.integers(0, n))
    here, there = wilson_interval(n_successes, n), wilson_interval(n - n_successes, n)
    assert here is not None
    assert there is not None
    assert here == pytest.approx((1 - there[1], 1 - there[0]), abs=1e-12)


@pytest.mark.parametrize(("n_successes", "n", "confidence"), [(-1, 3, 0.95), (4, 3, 0.95), (0, -1, 0.95)])
def test_impossible_counts_are_refused(n_successes: int, n: int, confidence: float) -> None:
    with pytest.raises(ValueError, match="successes"):
        wilson_interval(n_successes, n, confidence)


@pytest.mark.parametrize("confidence", [0.0, 1.0, 95.0, math.nan])
def test_a_confidence_that_is_no_share_is_refused(confidence: float) -> None:
    with pytest.raises(ValueError, match="confidence"):
        wilson_interval(1, 3, confidence)
