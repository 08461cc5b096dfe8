"""Paired tests, adjustments of p values and power, against published values, enumeration and scipy."""

import itertools
import math
import time
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats as scipy_stats

from judgekit.stats.paired import (
    benjamini_hochberg,
    holm,
    minimum_detectable_effect,
    n_for_difference,
    paired_interval,
    sign_flip_p,
    standard_deviation,
)

# Fisher 1935, "The Design of Experiments", section 21: Darwin's maize, crossed less self-fertilised plants of 15
# pairs, in eighths of an inch. Of the 2^15 sign patterns 1,726 have a sum at least as far from 0 as 314.
DARWIN = [49, -67, 8, 16, 6, 23, 28, 41, 14, 29, 56, 24, 75, 60, -48]

# Student 1908, sleep: second drug less first, t.test(paired = TRUE) in R: mean 1.58, 0.7001142 to 2.4598858.
SLEEP = [1.2, 2.4, 1.3, 1.3, 0.0, 1.0, 1.8, 0.8, 4.6, 1.4]

# Benjamini and Hochberg 1995, section 4.1: 15 p values of a trial; at 0.05 their procedure rejects the first four,
# Bonferroni's the first three.
TRIAL = [
    0.0001,
    0.0004,
    0.0019,
    0.0095,
    0.0201,
    0.0278,
    0.0298,
    0.0344,
    0.0459,
    0.324,
    0.4262,
    0.5719,
    0.6528,
    0.759,
    1.0,
]

P_VALUES = st.lists(st.none() | st.floats(0.0, 1.0), max_size=12)


def p_of(differences: Sequence[float], seed: int = 0, n_draws: int = 10_000) -> tuple[float, bool]:
    found = sign_flip_p(differences, seed, n_draws)
    assert found is not None
    return found


def by_enumeration(differences: Sequence[float]) -> float:
    seen = abs(sum(differences))
    hits = [
        abs(sum(s * d for s, d in zip(signs, differences, strict=True))) >= seen - 1e-9
        for signs in itertools.product([-1, 1], repeat=len(differences))
    ]
    return sum(hits) / len(hits)


@pytest.mark.parametrize("unit", [1, 1 / 8, 0.01, 1000])
def test_fishers_exact_p_of_darwins_maize_in_any_unit(unit: float) -> None:
    p, is_exact = p_of([unit * d for d in DARWIN])
    assert p == pytest.approx(1726 / 2**15, rel=1e-12)
    assert is_exact


def test_drawn_patterns_come_near_fishers_p() -> None:
    uneven = [math.pi * d for d in DARWIN]
    p, is_exact = p_of(uneven, seed=1, n_draws=40_000)
    assert not is_exact
    # four standard errors of a share of 40,000 draws: 4 sqrt(0.0527 * 0.947 / 40,000) = 0.0045
    assert p == pytest.approx(1726 / 2**15, abs=0.0045)
    assert p_of(uneven, seed=1, n_draws=40_000) == (p, False)
    assert p_of(uneven, seed=2, n_draws=40_000) != (p, False)


@settings(max_examples=80)
@given(st.lists(st.integers(-5, 5), min_size=1, max_size=9))
def test_the_build_up_is_the_enumeration(differences: list[int]) -> None:
    p, is_exact = p_of(differences)
    assert p == pytest.approx(by_enumeration(differences), abs=1e-12)
    assert is_exact
    # zeros say nothing, and neither does which of the two is called second
    assert p_of([*(-d for d in differences), 0, 0]) == (p, True)


@settings(max_examples=30)
@given(st.lists(st.integers(1, 10), min_size=2, max_size=8))
def test_reciprocal_ranks_are_exact_too(ranks: list[int]) -> None:
    differences = [1 / first - 1 / second for first, second in itertools.pairwise(ranks)]
    p, is_exact = p_of(differences)
    assert p == pytest.approx(by_enumeration(differences), abs=1e-12)
    assert is_exact


@pytest.mark.parametrize(
    ("differences", "expected"),
    [
        ([], None),
        ([0.0, 0.0], (1.0, True)),
        ([3.0], (1.0, True)),
        ([2.0, 2.0], (0.5, True)),  # ++ and -- of four
        ([1.0] * 2000, (math.ldexp(1.0, -1074), True)),  # 2^-1999 is no float; never 0
    ],
)
def test_sign_flips_at_the_edges(differences: list[float], expected: tuple[float, bool] | None) -> None:
    assert sign_flip_p(differences, seed=0) == expected


def test_scores_of_five_thousand_cases_are_exact_and_near_the_normal_test() -> None:
    rng = np.random.default_rng(3)
    differences = rng.integers(-5, 6, 5000) + (rng.random(5000) < 0.05)
    start = time.perf_counter()
    found = sign_flip_p([int(d) for d in differences], seed=0)
    assert time.perf_counter() - start < 20.0
    assert found is not None
    assert found[1]
    z = differences.sum() / math.sqrt((differences**2).sum())
    assert found[0] == pytest.approx(2 * scipy_stats.norm.sf(abs(z)), rel=0.02)


def test_p_of_many_uneven_differences_is_drawn_and_is_scipys() -> None:
    rng = np.random.default_rng(5)
    differences = rng.normal(0.25, 1.0, 60)
    found = sign_flip_p(differences.tolist(), seed=9, n_draws=20_000)
    expected = scipy_stats.permutation_test(
        (differences,), np.mean, permutation_type="samples", n_resamples=20_000, vectorized=True, rng=rng
    )
    assert found is not None
    assert not found[1]
    assert found[0] == pytest.approx(expected.pvalue, abs=0.01)


def test_a_drawn_p_is_never_zero() -> None:
    # all patterns but two miss: p = 1 / 101 for 100 draws
    assert sign_flip_p([math.sqrt(k) for k in range(2, 60)], seed=0, n_draws=100) == (1 / 101, False)


@pytest.mark.parametrize("differences", [[math.nan], [1.0, math.inf]])
def test_differences_that_are_no_numbers_are_refused(differences: list[float]) -> None:
    with pytest.raises(ValueError, match="finite"):
        sign_flip_p(differences, seed=0)
    with pytest.raises(ValueError, match="draws"):
        sign_flip_p([1.0], seed=0, n_draws=0)


def test_the_paired_interval_is_students() -> None:
    value, low, high = paired_interval(SLEEP)
    assert value == pytest.approx(1.58, abs=1e-12)
    assert (low, high) == pytest.approx((0.7001142, 2.4598858), abs=5e-8)
    assert paired_interval([]) == (None, None, None)
    assert paired_interval([0.5, 0.5]) == (0.5, None, None)


def test_holm_equals_the_worked_example() -> None:
    # en.wikipedia.org, "Holm-Bonferroni method", example: 0.01, 0.04, 0.03, 0.005 at 0.05 reject the first and the
    # last. 0.005 * 4 = 0.02, 0.01 * 3 = 0.03, 0.03 * 2 = 0.06, max(0.06, 0.04 * 1) = 0.06
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    # None is no test
    assert holm([0.01, None, 0.04, 0.03, 0.005, None]) == [pytest.approx(0.03), None] + [
        pytest.approx(p) for p in (0.06, 0.06, 0.02)
    ] + [None]


def test_the_published_trial_has_four_discoveries() -> None:
    found = [p for p in benjamini_hochberg(TRIAL) if p is not None and p <= 0.05]
    assert len(found) == 4
    assert sum(p is not None and p <= 0.05 for p in holm(TRIAL)) == 3
    # the fourth: 15 * 0.0095 / 4
    assert found[3] == pytest.approx(0.035625)


@given(P_VALUES)
def test_adjusted_values_are_those_of_the_definitions(p_values: list[float | None]) -> None:
    given_ones = [p for p in p_values if p is not None]
    adjusted, discoveries = holm(p_values), benjamini_hochberg(p_values)
    assert [p is None for p in adjusted] == [p is None for p in p_values] == [p is None for p in discoveries]
    if not given_ones:
        return
    expected = scipy_stats.false_discovery_control(given_ones)
    assert [p for p in discoveries if p is not None] == pytest.approx(list(expected), abs=1e-12)
    for p, q, bh in zip(p_values, adjusted, discoveries, strict=True):
        if p is not None and q is not None and bh is not None:
            below = sorted(other for other in given_ones if other <= p)
            steps = [min(1.0, (len(given_ones) - rank) * other) for rank, other in enumerate(below)]
            # equal p values share the step of the first of them
            assert q == pytest.approx(max(steps), abs=1e-12)
            assert p <= bh <= q + 1e-12 <= 1.0 + 1e-12


@pytest.mark.parametrize("adjust", [holm, benjamini_hochberg])
def test_p_values_that_are_no_shares_are_refused(adjust: object) -> None:
    assert callable(adjust)
    assert adjust([]) == []
    for p in (-0.1, 1.1, math.nan):
        with pytest.raises(ValueError, match="p value"):
            adjust([0.5, p])


def test_blooms_multiplier_is_found() -> None:
    # Bloom 1995: a two-sided test at 0.05 finds 2.80 standard errors with power 0.8 (1.96 + 0.84)
    effect = minimum_detectable_effect(1.0, 100_000)
    assert effect is not None
    assert round(effect * math.sqrt(100_000), 2) == 2.80


def test_pairs_needed_equal_published_tables() -> None:
    # G*Power 3.1 manual's family of t tests, two dependent means, two-sided 0.05: dz = 0.5 needs 34 pairs for power
    # 0.80 and 54 for 0.95; dz = 0.2 needs 199 for 0.80
    assert n_for_difference(1.0, 0.5) == 34
    assert n_for_difference(1.0, -0.5, power=0.95) in {54, 55}
    assert n_for_difference(2.0, 0.4) == 199


@pytest.mark.parametrize("n", [10, 20, 50, 300])
@pytest.mark.parametrize("power", [0.5, 0.8, 0.95])
def test_the_exact_power_of_the_detectable_effect_is_near_the_one_asked_for(n: int, power: float) -> None:
    effect = minimum_detectable_effect(1.0, n, power=power)
    assert effect is not None
    limit = scipy_stats.t.ppf(0.975, n - 1)
    exact = scipy_stats.nct.sf(limit, n - 1, effect * math.sqrt(n))
    assert exact == pytest.approx(power, abs=0.03)


@given(st.floats(0.01, 10.0), st.floats(0.01, 10.0))
def test_the_number_of_pairs_is_the_smallest(sd: float, effect: float) -> None:
    n = n_for_difference(sd, effect)
    assert n is not None
    found = minimum_detectable_effect(sd, n)
    assert found is not None
    assert found <= effect * (1 + 1e-12)
    if n > 2:
        before = minimum_detectable_effect(sd, n - 1)
        assert before is not None
        assert before > effect * (1 - 1e-12)


def test_power_at_the_edges() -> None:
    assert minimum_detectable_effect(1.0, 1) is None
    assert minimum_detectable_effect(0.0, 50) is None
    assert n_for_difference(0.0, 0.5) is None
    assert n_for_difference(1.0, 0.0) is None
    assert n_for_difference(1.0, 1e-7) is None  # 8e14 pairs
    for arguments in [(-1.0, 5, 0.05, 0.8), (1.0, 5, 0.0, 0.8), (1.0, 5, 0.05, 1.0), (math.nan, 5, 0.05, 0.8)]:
        with pytest.raises(ValueError, match=r"is at least|is in|is above"):
            minimum_detectable_effect(*arguments)


@given(st.lists(st.floats(-100, 100), min_size=2, max_size=30))
def test_the_standard_deviation_is_numpys(values: list[float]) -> None:
    assert standard_deviation(values) == pytest.approx(np.std(values, ddof=1), abs=1e-9)


def test_one_value_has_no_standard_deviation() -> None:
    assert standard_deviation([3.0]) is None
    assert standard_deviation([]) is None
