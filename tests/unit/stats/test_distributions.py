"""Quantiles and areas, against published tables and against scipy."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import special
from scipy import stats as scipy_stats

from judgekit.stats.distributions import Z, regularised_beta, student_t_quantile

PROBABILITIES = [1e-100, 1e-30, 1e-12, 1e-9, 1e-6, 1e-4, 0.001, 0.005, 0.0199, 0.02, 0.0201, 0.025, 0.05, 0.1, 0.2]
PROBABILITIES += [0.3, 0.4, 0.45, 0.6, 0.75, 0.9, 0.95, 0.975, 0.98, 0.99, 0.999, 1 - 1e-9]
DEGREES = [*range(1, 40), 49, 99, 100, 293, 500, 1000, 10_000, 100_000, 1_000_000, 10_000_000]

# NIST/SEMATECH e-Handbook of Statistical Methods, section 1.3.6.7.2, critical values of Student's t (more digits: the
# table of the same distribution that cites it, planetquantum.com/Tables/StudentT.txt).
TABLE = [
    (0.975, 1, 12.706205),
    (0.9999, 1, 3183.0988),
    (0.975, 2, 4.3026527),
    (0.9, 3, 1.6377444),
    (0.975, 4, 2.7764451),
    (0.9995, 5, 6.869),
    (0.975, 9, 2.262),
    (0.99, 10, 2.764),
]


@pytest.mark.parametrize(("p", "df", "expected"), TABLE)
def test_student_t_quantiles_equal_the_published_table(p: float, df: int, expected: float) -> None:
    digits = len(str(expected).split(".")[1])
    assert round(student_t_quantile(p, df), digits) == expected


@pytest.mark.parametrize("df", DEGREES)
def test_student_t_quantiles_equal_scipy_to_a_relative_1e_9(df: int) -> None:
    for p in PROBABILITIES:
        assert student_t_quantile(p, df) == pytest.approx(scipy_stats.t.ppf(p, df), rel=1e-9, abs=0), p


@pytest.mark.parametrize("df", DEGREES)
def test_next_to_the_median_the_quantile_is_the_distance_over_the_density(df: int) -> None:
    # scipy loses digits here (7 of 16 at df = 3): t = (p - 1/2) / density(0), the next term being (p - 1/2)^3
    for distance in (2.0**-20, 2.0**-40, -(2.0**-50)):
        density = math.exp(math.lgamma((df + 1) / 2) - math.lgamma(df / 2)) / math.sqrt(df * math.pi)
        assert student_t_quantile(0.5 + distance, df) == pytest.approx(distance / density, rel=1e-8, abs=0)


@given(st.floats(1e-12, 0.5), st.integers(1, 10_000))
def test_the_area_below_a_quantile_is_its_probability(p: float, df: int) -> None:
    t = student_t_quantile(p, df)
    assert scipy_stats.t.cdf(t, df) == pytest.approx(p, rel=1e-8)


@given(st.integers(1, 2**20 - 1), st.integers(1, 1000))
def test_quantiles_are_antisymmetric(numerator: int, df: int) -> None:
    p = numerator / 2**20  # 1 - p is exact
    assert student_t_quantile(1 - p, df) == -student_t_quantile(p, df)


def test_the_median_is_zero() -> None:
    assert student_t_quantile(0.5, 7) == 0.0


def test_the_end_of_a_normal_interval_is_the_published_one() -> None:
    assert pytest.approx(1.959963984540054, rel=1e-15) == Z


SHAPES = [0.01, 0.5, 1.0, 1.5, 3.0, 10.0, 50.0, 500.0, 5e3, 1e5, 1e6]
LIMITS = [0.0, 1e-300, 1e-12, 1e-6, 0.001, 0.01, 0.1, 0.3, 0.5, 0.7, 0.9, 0.99, 0.999999, 1 - 1e-12, 1.0]


@pytest.mark.parametrize("a", SHAPES)
@pytest.mark.parametrize("b", SHAPES)
def test_the_incomplete_beta_function_equals_scipy_to_a_relative_1e_9(a: float, b: float) -> None:
    middle = a / (a + b)
    for x in [*LIMITS, middle, 0.99 * middle, min(1.0, 1.01 * middle)]:
        assert regularised_beta(a, b, x) == pytest.approx(special.betainc(a, b, x), rel=1e-9, abs=1e-300), x


def test_the_incomplete_beta_function_of_whole_shapes_is_a_binomial_tail() -> None:
    # I_0.3(2, 3) = P(at least 2 of 4 with p = 0.3) = 6 * .09 * .49 + 4 * .027 * .7 + .0081 = .2646 + .0756 + .0081
    assert regularised_beta(2, 3, 0.3) == pytest.approx(0.3483, rel=1e-14)


@pytest.mark.parametrize("p", [0.0, 1.0, -0.1, 1.1, math.nan])
def test_a_quantile_at_no_probability_is_refused(p: float) -> None:
    with pytest.raises(ValueError, match="probability"):
        student_t_quantile(p, 5)


def test_arguments_without_a_distribution_are_refused() -> None:
    with pytest.raises(ValueError, match="degrees of freedom"):
        student_t_quantile(0.9, 0)
    with pytest.raises(ValueError, match="shapes"):
        regularised_beta(0.0, 1.0, 0.5)
    with pytest.raises(ValueError, match="shapes"):
        regularised_beta(1.0, math.inf, 0.5)
    with pytest.raises(ValueError, match="incomplete beta"):
        regularised_beta(1.0, 1.0, 1.5)
