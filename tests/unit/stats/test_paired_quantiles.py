"""Intervals for the difference of two quantiles of pairs."""

import random

import pytest

from judgekit.stats.means import quantile
from judgekit.stats.paired import paired_quantile_interval


def test_a_median_of_twenty_pairs_worked_by_hand() -> None:
    a = [float(value) for value in range(1, 21)]
    b = [value + 3.0 for value in a]
    # Ranks 10 -+ 1.96 * sqrt(5) = 5.62, 14.38: the 5th and the 15th, 10 apart, so each error is 10 / 3.92. Pairs are
    # on one side of their medians: below both 10 of 20, r = (0.5 - 0.25) / 0.25 = 1, and the variance is 0.
    assert paired_quantile_interval(a, b, 0.5) == pytest.approx((3.0, 3.0))
    turned = list(reversed(b))
    # r = (0 - 0.25) / 0.25 = -1: half = 1.96 * 2 * 10 / 3.92 = 10
    assert paired_quantile_interval(a, turned, 0.5) == pytest.approx((-7.0, 13.0))


@pytest.mark.parametrize(("n", "q", "is_there"), [(7, 0.5, False), (8, 0.5, True), (72, 0.95, False), (76, 0.95, True)])
def test_too_few_pairs_have_no_interval(n: int, q: float, is_there: bool) -> None:
    values = [float(value) for value in range(n)]
    assert (paired_quantile_interval(values, values, q) is not None) is is_there


@pytest.mark.parametrize("q", [0.5, 0.95])
def test_the_interval_holds_the_difference_about_as_often_as_it_says(q: float) -> None:
    rng = random.Random(7)
    true = (1.2 - 1.0) * _normal_exp(q)
    held = 0
    for _ in range(400):
        shared = [rng.gauss(0.0, 0.4) for _ in range(200)]
        a = [_exp(item + rng.gauss(0.0, 0.3)) for item in shared]
        b = [1.2 * _exp(item + rng.gauss(0.0, 0.3)) for item in shared]
        found = paired_quantile_interval(a, b, q)
        assert found is not None
        assert found[0] <= (quantile(b, q) or 0.0) - (quantile(a, q) or 0.0) <= found[1]
        held += found[0] <= true <= found[1]
    # 0.95 of 400 is 380; four standard errors of a share are 0.044
    assert held / 400 >= 0.906


def _exp(value: float) -> float:
    return float(2.718281828459045**value)


def _normal_exp(q: float) -> float:
    """The q-quantile of exp of a normal variable with standard deviation 0.5."""
    return _exp(0.5 * (0.0 if q == 0.5 else 1.6448536269514722))
