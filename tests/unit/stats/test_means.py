"""Means, quantiles, pooled figures and rounding."""

import json
import math
import random
from collections.abc import Sequence
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats as scipy_stats

from judgekit.stats.means import (
    TOLERANCE,
    mean,
    mean_interval,
    mean_of_counts,
    pooled_estimate,
    quantile,
    round4,
    standard_deviation,
)

FINITE = st.floats(-1e6, 1e6, allow_subnormal=False)
SCORES = st.lists(st.integers(0, 5).map(float), min_size=2, max_size=60)

# Student 1908, "The Probable Error of a Mean", the additional hours of sleep gained (hyoscine), in R as `sleep`:
# mean 1.58 and, from `t.test`, 95% interval 0.7001142 to 2.4598858.
SLEEP = [1.2, 2.4, 1.3, 1.3, 0.0, 1.0, 1.8, 0.8, 4.6, 1.4]

# Efron and Tibshirani 1993, "An Introduction to the Bootstrap", table 10.1, patch data: y = new patch - old patch,
# z = old patch - placebo; ratio of the means -0.0713, jackknife standard error 0.106 (chapter 11).
PATCH_Y = [-1200, 2601, -2705, 1982, -1290, 351, -638, -2719]
PATCH_Z = [8406, 2342, 8187, 8459, 4795, 3516, 4796, 10238]


def ratio(part: float, whole: float) -> float | None:
    return part / whole if whole else None


def total(value: float) -> float:
    return value


# mean


def test_the_mean_of_three_equal_scores_is_that_score() -> None:
    # E15: 0.7 + 0.7 + 0.7 = 2.0999999999999996 in floats, divided by 3: 0.6999999999999998, below a limit of 0.7
    assert math.fsum([0.7] * 3) / 3 < 0.7
    assert mean([0.7, 0.7, 0.7]) == 0.7


def test_a_mean_that_decimals_make_exact_is_within_the_tolerance_of_gates() -> None:
    # (1.1 + 2.2 + 3.3) / 3 = 2.2 on paper
    value = mean([1.1, 2.2, 3.3])
    assert value is not None
    assert abs(value - 2.2) <= TOLERANCE


def test_small_values_beside_large_ones_are_not_lost() -> None:
    assert mean([1e16, 1.0, -1e16, 1.0]) == 0.5


def test_no_values_have_no_mean() -> None:
    assert mean([]) is None


def test_the_mean_of_whole_numbers_is_a_float() -> None:
    assert isinstance(mean([2, 2]), float)


@given(st.lists(FINITE, min_size=1, max_size=50), st.randoms(use_true_random=False))
def test_the_mean_is_the_rounded_exact_mean_in_any_order(values: list[float], rng: random.Random) -> None:
    value = mean(values)
    assert value is not None
    exact = sum(map(Fraction, values), Fraction(0)) / len(values)
    assert abs(Fraction(value) - exact) <= Fraction(math.ulp(value)) * Fraction(501, 1000)
    assert min(values) <= value <= max(values)
    shuffled = rng.sample(values, len(values))
    assert mean(shuffled) == value


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_a_mean_over_what_is_no_number_is_refused(bad: float) -> None:
    with pytest.raises(ValueError, match="finite"):
        mean([0.5, bad])


@given(st.dictionaries(FINITE, st.integers(1, 300), max_size=20))
def test_the_mean_of_counts_is_the_mean_of_the_values_to_the_last_digit(counts: dict[float, int]) -> None:
    assert mean_of_counts(counts) == mean([value for value, n in counts.items() for _ in range(n)])


def test_counts_of_what_is_no_number_are_refused() -> None:
    with pytest.raises(ValueError, match="not all finite numbers"):
        mean_of_counts({0.5: 2, math.inf: 3})


# mean_interval


def test_the_interval_of_students_own_data_is_the_published_one() -> None:
    value, low, high = mean_interval(SLEEP)
    assert value == pytest.approx(1.58, abs=1e-15)
    assert (low, high) == pytest.approx((0.7001142, 2.4598858), abs=5e-8)


@pytest.mark.parametrize("values", [[], [0.5], [0.7, 0.7, 0.7], [0.3, 0.1 + 0.2], [0.0, 0.0]])
def test_nothing_one_value_or_a_constant_have_no_interval(values: list[float]) -> None:
    assert mean_interval(values) == (mean(values), None, None)


@given(SCORES)
def test_intervals_equal_scipy_and_hold_the_mean(values: list[float]) -> None:
    centre, low, high = mean_interval(values)
    assert centre == mean(values)
    if len(set(values)) == 1:
        assert (low, high) == (None, None)
        return
    expected = scipy_stats.t.interval(0.95, len(values) - 1, np.mean(values), scipy_stats.sem(values))
    assert (low, high) == pytest.approx(expected, rel=1e-9, abs=1e-9)
    assert mean_interval(values[::-1]) == (centre, low, high)
    assert low is not None
    assert high is not None
    assert low <= sum(values) / len(values) + 1e-12
    assert sum(values) / len(values) - 1e-12 <= high


# standard_deviation


@given(st.lists(st.floats(-100, 100), min_size=2, max_size=30))
def test_the_standard_deviation_is_numpys(values: list[float]) -> None:
    assert standard_deviation(values) == pytest.approx(np.std(values, ddof=1), abs=1e-9)


def test_one_value_has_no_standard_deviation() -> None:
    assert standard_deviation([3.0]) is None
    assert standard_deviation([]) is None


# quantile


def test_the_quantile_equals_the_worked_example() -> None:
    # Wikipedia, "Percentile", linear interpolation with C = 1, 40th of 15, 20, 35, 40, 50:
    # rank .4 (5 - 1) + 1 = 2.6, so 20 + .6 (35 - 20) = 29
    assert quantile([35, 15, 50, 20, 40], 0.4) == pytest.approx(29.0, abs=1e-12)


def test_latency_quantiles_of_two_and_of_one() -> None:
    # 100 + .95 * 100
    assert quantile([200.0, 100.0], 0.95) == pytest.approx(195.0)
    assert quantile([7.0], 0.95) == 7.0
    assert quantile([], 0.5) is None


@given(st.lists(FINITE, min_size=1, max_size=40), st.floats(0.0, 1.0))
def test_quantiles_equal_numpy(values: list[float], q: float) -> None:
    value = quantile(values, q)
    assert value is not None
    assert value == pytest.approx(float(np.quantile(np.array(values), q)), rel=1e-12, abs=1e-9)
    assert min(values) <= value <= max(values)
    assert quantile(values[::-1], q) == value


@pytest.mark.parametrize("q", [-0.01, 1.01, 95.0, math.nan])
def test_a_q_that_is_no_share_is_refused(q: float) -> None:
    with pytest.raises(ValueError, match="q of a quantile"):
        quantile([1.0], q)


@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_a_quantile_over_what_is_no_number_is_refused(bad: float) -> None:
    with pytest.raises(ValueError, match="finite"):
        quantile([1.0, bad], 0.5)


# pooled_estimate


def test_the_ratio_of_the_patch_data_has_the_published_jackknife_error() -> None:
    value, low, high = pooled_estimate([PATCH_Y, PATCH_Z], ratio, (-1.0, 1.0))
    assert value is not None
    assert low is not None
    assert high is not None
    assert round(value, 4) == -0.0713
    t = 2.364624251592785  # 0.975 quantile with 7 degrees of freedom
    assert round((high - value) / t, 3) == 0.106
    assert value - low == pytest.approx(high - value)


@given(SCORES)
def test_the_jackknife_of_a_mean_is_students_interval(values: list[float]) -> None:
    ones = [1.0] * len(values)
    value, low, high = pooled_estimate([values, ones], ratio)
    assert value == pytest.approx(mean(values))
    _, *ends = mean_interval(values)
    assert [low, high] == (ends if None in ends else pytest.approx(ends, rel=1e-9, abs=1e-9))


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4), st.integers(0, 4)), min_size=2, max_size=30))
def test_a_pooled_f1_has_the_interval_of_the_plain_jackknife(rows: list[tuple[int, int, int]]) -> None:
    def f1(tp: float, fp: float, fn: float) -> float | None:
        return ratio(2 * tp, 2 * tp + fp + fn)

    columns = list(zip(*rows, strict=True))
    value, low, high = pooled_estimate(columns, f1, (0.0, 1.0))
    sums = [sum(column) for column in columns]
    assert value == f1(*sums)
    left_out = [f1(*[s - part for s, part in zip(sums, row, strict=True)]) for row in rows]
    defined = [estimate for estimate in left_out if estimate is not None]
    if value is None or len(defined) < len(left_out) or np.ptp(defined) < 1e-12:
        assert (low, high) == (None, None)
        return
    n = len(rows)
    error = math.sqrt((n - 1) / n * float(np.sum((np.array(defined) - np.mean(defined)) ** 2)))
    half = float(scipy_stats.t.ppf(0.975, n - 1)) * error
    assert (low, high) == pytest.approx((max(0.0, value - half), min(1.0, value + half)), abs=1e-9)


@pytest.mark.parametrize(
    ("columns", "expected"),
    [
        pytest.param([[], []], None, id="no-cases"),
        pytest.param([[1.0], [2.0]], 0.5, id="one-case"),
        pytest.param([[0.0, 0.0], [0.0, 0.0]], None, id="zero-denominator"),
        pytest.param([[1.0, 0.0], [2.0, 0.0]], 0.5, id="zero-denominator-without-the-first"),
        pytest.param([[1.0, 2.0, 3.0], [2.0, 4.0, 6.0]], 0.5, id="every-case-alike"),
    ],
)
def test_pooled_figures_without_an_interval(columns: list[list[float]], expected: float | None) -> None:
    assert pooled_estimate(columns, ratio, (0.0, 1.0)) == (expected, None, None)


def test_the_function_is_called_once_for_all_cases_and_once_for_each_distinct_row() -> None:
    calls = []

    def counted(part: float, whole: float) -> float | None:
        calls.append((part, whole))
        return ratio(part, whole)

    pooled_estimate([[0.0, 1.0] * 500, [1.0] * 1000], counted, (0.0, 1.0))
    assert calls == [(500.0, 1000.0), (500.0, 999.0), (499.0, 999.0)]


@pytest.mark.parametrize("columns", [[], [[1.0], [1.0, 2.0]]])
def test_columns_that_do_not_fit_are_refused(columns: Sequence[Sequence[float]]) -> None:
    with pytest.raises(ValueError, match="columns"):
        pooled_estimate(columns, ratio, (0.0, 1.0))


def test_a_pooled_figure_over_what_is_no_number_is_refused() -> None:
    with pytest.raises(ValueError, match="finite"):
        pooled_estimate([[1.0, math.nan]], total, (0.0, 1.0))


# round4


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (0.12345, 0.1234),  # half to even: 4 is even
        (0.12355, 0.1236),  # 5 is odd
        (0.00015, 0.0002),  # binary 0.000149999..., decimal repr decides
        (0.00025, 0.0002),
        (0.00005, 0.0),
        (2 / 3, 0.6667),
        (-1e-9, 0.0),
        (-0.0, 0.0),
        (3, 3.0),
        (1e300, 1e300),
        (123456789012345.67, 123456789012345.67),
        (1e-320, 0.0),
    ],
)
def test_stored_values_are_rounded_half_to_even_on_their_decimal_form(value: float, expected: float) -> None:
    rounded = round4(value)
    assert rounded == expected
    assert isinstance(rounded, float)
    assert math.copysign(1.0, rounded) == 1.0


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_rounding_is_idempotent_close_and_never_minus_zero(value: float) -> None:
    rounded = round4(value)
    assert round4(rounded) == rounded
    assert abs(rounded - value) <= max(0.00005 + 1e-12, math.ulp(value))
    assert json.dumps(rounded, allow_nan=False) != "-0.0"


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_what_strict_json_cannot_hold_is_refused(bad: float) -> None:
    with pytest.raises(ValueError, match="stored"):
        round4(bad)
