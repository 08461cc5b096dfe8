"""Logs of beta tails and densities, and the beta quantile, against mpmath and scipy."""

import math

import mpmath
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import special

from judgekit.stats.distributions import beta_quantile, log_beta_power, log_beta_tail, regularised_beta

SHAPE = st.floats(0.5, 3000.0)
INSIDE = st.floats(0.001, 0.999)


def exact_log_tail(a: float, b: float, x: float) -> float:
    """At a scale where the tail is no longer cut off: for whole shapes a sum of binomial terms."""
    with mpmath.workdps(60):
        p, n = mpmath.mpf(x), int(a + b - 1)
        terms = [mpmath.binomial(n, k) * p**k * (1 - p) ** (n - k) for k in range(int(a))]
        return float(mpmath.log(mpmath.fsum(terms)))


@pytest.mark.parametrize(
    ("a", "b", "x"),
    [(1, 1, 0.05), (30, 200, 0.2), (5, 30, 0.05), (500, 500, 0.5), (3, 2000, 0.5), (2000, 3, 0.3), (31, 19971, 0.2)],
)
def test_tails_are_right_far_beyond_the_smallest_float(a: int, b: int, x: float) -> None:
    # (3, 2000, 0.5) is e^-1373, (31, 19971, 0.2) about e^-4260
    assert log_beta_tail(a, b, x) == pytest.approx(exact_log_tail(a, b, x), rel=1e-11, abs=1e-13)


@settings(max_examples=200)
@given(SHAPE, SHAPE, INSIDE)
def test_tails_are_those_of_scipy_where_it_has_them(a: float, b: float, x: float) -> None:
    expected = special.betaincc(a, b, x)
    if expected > 1e-250:
        assert math.exp(log_beta_tail(a, b, x)) == pytest.approx(expected, rel=1e-8)
    assert log_beta_tail(a, b, x) <= 0.0


@settings(max_examples=200)
@given(SHAPE, SHAPE, INSIDE)
def test_the_log_density_is_scipys(a: float, b: float, x: float) -> None:
    expected = special.xlogy(a, x) + special.xlog1py(b, -x) - special.betaln(a, b)
    assert log_beta_power(a, b, x) == pytest.approx(expected, rel=1e-9, abs=1e-8)


@settings(max_examples=200)
@given(st.floats(1e-6, 1 - 1e-6), st.integers(1, 3000), st.integers(1, 3000))
def test_the_quantile_turns_the_area_round(p: float, a: int, b: int) -> None:
    x = beta_quantile(p, a, b)
    assert x == pytest.approx(special.betaincinv(a, b, p), rel=1e-9)
    assert regularised_beta(a, b, x) == pytest.approx(p, rel=1e-8)


def test_the_quantile_is_known_for_powers() -> None:
    # I_x(a, 1) = x^a
    assert beta_quantile(0.025, 20, 1) == pytest.approx(0.025 ** (1 / 20), rel=1e-14)
    assert beta_quantile(0.3, 1, 1) == pytest.approx(0.3, rel=1e-14)


def test_the_edges() -> None:
    assert log_beta_tail(2, 3, 0.0) == 0.0
    assert math.copysign(1.0, log_beta_tail(2000, 3, 0.3)) == 1.0  # not -0.0
    with pytest.raises(ValueError, match="shapes"):
        log_beta_tail(0, 1, 0.5)
    with pytest.raises(ValueError, match="upper tail"):
        log_beta_tail(1, 1, 1.0)
    with pytest.raises(ValueError, match="shapes"):
        log_beta_power(1, math.inf, 0.5)
    with pytest.raises(ValueError, match="density"):
        log_beta_power(1, 1, 0.0)
    with pytest.raises(ValueError, match="probability"):
        beta_quantile(1.0, 1, 1)
