"""Intervals and tests of proportions, against published tables, scipy, and what must hold for every proportion."""

import math
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats as scipy_stats

from judgekit.stats.proportions import (
    Rate,
    clopper_pearson_interval,
    fisher_exact_rise,
    hypergeometric_interval,
    mcnemar_exact,
    rate,
    wilson_interval,
)

Interval = Callable[[int, int], tuple[float, float] | None]

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


@given(st.integers(1, 5000), st.data())
def test_every_interval_equals_scipy_and_holds_the_proportion(n: int, data: st.DataObject) -> None:
    n_successes = data.draw(st.integers(0, n))
    interval = wilson_interval(n_successes, n)
    assert interval is not None
    expected = scipy_stats.binomtest(n_successes, n).proportion_ci(0.95, method="wilson")
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


@pytest.mark.parametrize(("n_successes", "n"), [(-1, 3), (4, 3), (0, -1)])
def test_impossible_counts_are_refused(n_successes: int, n: int) -> None:
    with pytest.raises(ValueError, match="successes"):
        wilson_interval(n_successes, n)


# Exact intervals, McNemar's test

# The same table of Newcombe 1998, method 5 (Clopper and Pearson).
NEWCOMBE_EXACT = [
    (81, 263, 0.2527, 0.3676),
    (15, 148, 0.0578, 0.1617),
    (0, 20, 0.0, 0.1684),
    (1, 29, 0.0009, 0.1776),
]


@pytest.mark.parametrize(("n_successes", "n", "low", "high"), NEWCOMBE_EXACT)
def test_the_published_exact_intervals_are_found(n_successes: int, n: int, low: float, high: float) -> None:
    assert clopper_pearson_interval(n_successes, n) == pytest.approx((low, high), abs=5e-5)


@given(st.integers(1, 3000), st.data())
def test_every_exact_interval_equals_scipy(n: int, data: st.DataObject) -> None:
    n_successes = data.draw(st.integers(0, n))
    interval = clopper_pearson_interval(n_successes, n)
    expected = scipy_stats.binomtest(n_successes, n).proportion_ci(0.95, method="exact")
    assert interval == pytest.approx((expected.low, expected.high), abs=1e-10)
    assert interval is not None
    assert interval[0] <= n_successes / n <= interval[1]


# R package samplingbook, examples of `Sprop`, after Kauermann and Kuechenhoff 2010, "Stichproben": of 300 employees
# 100 were asked, 45 and 2 said yes; exact intervals 110 to 161 and up to 19 employees. That package gives the nearest
# numbers that a test rejects at 2.5% (P(X >= 45 | 110) = 0.0237), we the last ones that it does not: one inside.
@pytest.mark.parametrize(("n_successes", "low", "high"), [(45, 110 + 1, 161 - 1), (2, 2, 19 - 1)])
def test_the_published_interval_of_a_finite_population_is_found(n_successes: int, low: int, high: int) -> None:
    assert hypergeometric_interval(n_successes, 100, 300) == pytest.approx((low / 300, high / 300), abs=1e-15)


@settings(max_examples=60)
@given(st.integers(1, 250), st.data())
def test_the_finite_interval_holds_just_what_scipys_tails_do_not_reject(n_population: int, data: st.DataObject) -> None:
    n = data.draw(st.integers(1, n_population))
    s = data.draw(st.integers(0, n))
    interval = hypergeometric_interval(s, n, n_population)
    assert interval is not None
    limit = 0.025 * (1 + 1e-9)  # a tail of exactly the limit is rejected, whatever it is rounded to
    inside = [
        k
        for k in range(n_population + 1)
        if scipy_stats.hypergeom.sf(s - 1, n_population, k, n) > limit
        and scipy_stats.hypergeom.cdf(s, n_population, k, n) > limit
    ]
    assert interval == pytest.approx((inside[0] / n_population, inside[-1] / n_population), abs=1e-12)
    # 1 of 7 drawn from 8 leaves 1 of 8 at 50%: the share of the sample need be none that the population can have.
    assert interval[0] - 1 / n_population < s / n < interval[1] + 1 / n_population


def test_a_tail_of_exactly_the_limit_is_rejected() -> None:
    # no success in 1 of 40: P(X = 0 | K = 39) = 1/40 is the limit at 95%, so K is at most 38
    assert hypergeometric_interval(0, 1, 40) == (0.0, 0.95)


def test_a_full_count_is_certain_and_a_large_population_is_like_clopper_and_pearson() -> None:
    assert hypergeometric_interval(7, 20, 20) == (0.35, 0.35)
    finite, endless = hypergeometric_interval(4, 20, 10**7), clopper_pearson_interval(4, 20)
    assert finite == pytest.approx(endless, abs=2e-6)


@pytest.mark.parametrize("interval", [clopper_pearson_interval, wilson_interval])
def test_exact_ends_are_exact_where_nothing_lies_beyond(interval: Interval) -> None:
    none, full = interval(0, 9), interval(9, 9)
    assert none is not None
    assert full is not None
    assert (none[0], full[1]) == (0.0, 1.0)
    assert none == pytest.approx((1 - full[1], 1 - full[0]), abs=1e-12)


def test_samples_that_cannot_be_are_refused_and_empty_ones_have_no_interval() -> None:
    assert hypergeometric_interval(0, 0, 5) is None
    assert clopper_pearson_interval(0, 0) is None
    with pytest.raises(ValueError, match="cannot come from a population of 5"):
        hypergeometric_interval(1, 6, 5)
    with pytest.raises(ValueError, match="successes"):
        hypergeometric_interval(3, 2, 5)


@pytest.mark.parametrize(
    ("only_first", "only_second", "p"),
    [
        # Fagerland, Lydersen and Laake 2013, "The McNemar test for binary matched-pairs data: mid-p and asymptotic are
        # better than exact conditional", airway hyper-responsiveness: 1 and 7 discordant pairs, exact p = 0.070
        (1, 7, 18 / 256),  # 2 (1 + 8) / 2^8
        (0, 0, 1.0),
        (3, 3, 1.0),
        (0, 5, 2 / 32),
        (4, 5, 1.0),
        (0, 3000, math.ulp(0.0)),  # 2^-2999 is no float
    ],
)
def test_mcnemar(only_first: int, only_second: int, p: float) -> None:
    assert mcnemar_exact(only_first, only_second) == p
    assert mcnemar_exact(only_second, only_first) == p


@given(st.integers(0, 400), st.integers(0, 400))
def test_mcnemar_is_scipys_binomial_test(b: int, c: int) -> None:
    expected = scipy_stats.binomtest(b, b + c).pvalue if b + c else 1.0
    assert mcnemar_exact(b, c) == pytest.approx(expected, rel=1e-9)


def test_numbers_of_pairs_below_none_are_refused() -> None:
    with pytest.raises(ValueError, match="at least 0"):
        mcnemar_exact(-1, 2)


def test_a_rate_carries_its_counts() -> None:
    low, high = wilson_interval(4, 20) or (None, None)
    assert rate(4, 20) == Rate(value=0.2, low=low, high=high, k=4, n=20)
    assert rate(0, 0) == Rate(None, None, None, 0, 0)


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 30), st.integers(0, 30), st.integers(0, 30), st.integers(0, 30))
def test_fishers_one_sided_p_is_that_of_scipy(a: int, more_a: int, b: int, more_b: int) -> None:
    expected = scipy_stats.fisher_exact([[b, more_b], [a, more_a]], alternative="greater").pvalue
    assert fisher_exact_rise(a, a + more_a, b, b + more_b) == pytest.approx(expected, rel=1e-9, abs=1e-12)


def test_fishers_p_of_six_flips_in_the_last_of_four_checks() -> None:
    # all 6 flips of 80 pairs in the last 20: C(20, 6) / C(80, 6) = 38760 / 300500200
    assert fisher_exact_rise(0, 60, 6, 20) == pytest.approx(38760 / 300500200)


def test_more_successes_than_trials_are_refused() -> None:
    with pytest.raises(ValueError, match="between 0 and the 3 trials, not 4"):
        fisher_exact_rise(4, 3, 0, 1)
