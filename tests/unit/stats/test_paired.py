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

from judgekit.stats.paired import benjamini_hochberg, holm, minimum_detectable_effect, sign_flip_p

# Fisher 1935, "The Design of Experiments", section 21: Darwin's maize, crossed less self-fertilised plants of 15
# pairs, in eighths of an inch. Of the 2^15 sign patterns 1,726 have a sum at least as far from 0 as 314.
DARWIN = [49, -67, 8, 16, 6, 23, 28, 41, 14, 29, 56, 24, 75, 60, -48]

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


def p_of(differences: Sequence[float], seed: int = 0) -> tuple[float, bool]:
    p, is_exact = sign_flip_p(differences, seed)
    assert p is not None
    return p, is_exact


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
    p, is_exact = p_of(uneven, seed=1)
    assert not is_exact
    # four standard errors of a share of 10,000 draws: 4 sqrt(0.0527 * 0.947 / 10,000) = 0.009
    assert p == pytest.approx(1726 / 2**15, abs=0.009)
    assert p_of(uneven, seed=1) == (p, False)
    assert p_of(uneven, seed=2) != (p, False)


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
        ([], (None, True)),
        ([0.0, 0.0], (1.0, True)),
        ([3.0], (1.0, True)),
        ([2.0, 2.0], (0.5, True)),  # ++ and -- of four
        ([1.0] * 2000, (math.ldexp(1.0, -1074), True)),  # 2^-1999 is no float; never 0
    ],
)
def test_sign_flips_at_the_edges(differences: list[float], expected: tuple[float | None, bool]) -> None:
    assert sign_flip_p(differences, seed=0) == expected


def test_scores_of_five_thousand_cases_are_exact_and_near_the_normal_test() -> None:
    rng = np.random.default_rng(3)
    differences = rng.integers(-5, 6, 5000) + (rng.random(5000) < 0.05)
    start = time.perf_counter()
    found = p_of([int(d) for d in differences])
    assert time.perf_counter() - start < 20.0
    assert found[1]
    z = differences.sum() / math.sqrt((differences**2).sum())
    assert found[0] == pytest.approx(2 * scipy_stats.norm.sf(abs(z)), rel=0.02)


def test_p_of_many_uneven_differences_is_drawn_and_is_scipys() -> None:
    rng = np.random.default_rng(5)
    differences = rng.normal(0.25, 1.0, 60)
    found = p_of(differences.tolist(), seed=9)
    expected = scipy_stats.permutation_test(
        (differences,), np.mean, permutation_type="samples", n_resamples=20_000, vectorized=True, rng=rng
    )
    assert not found[1]
    assert found[0] == pytest.approx(expected.pvalue, abs=0.01)


def test_a_drawn_p_is_never_zero() -> None:
    # all patterns but two miss: p = 1 / 10,001 for 10,000 draws
    assert sign_flip_p([math.sqrt(k) for k in range(2, 60)], seed=0) == (1 / 10_001, False)


@pytest.mark.parametrize("differences", [[math.nan], [1.0, math.inf]])
def test_differences_that_are_no_numbers_are_refused(differences: list[float]) -> None:
    with pytest.raises(ValueError, match="finite"):
        sign_flip_p(differences, seed=0)


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


def test_the_effect_of_so_many_pairs_equals_published_tables() -> None:
    # G*Power 3.1 manual's family of t tests, two dependent means, two-sided 0.05, power 0.80: dz = 0.5 needs 34 pairs,
    # dz = 0.2 needs 199, and one pair less would not do
    for n, sd, effect in ((34, 1.0, 0.5), (199, 2.0, 0.4)):
        found, before = minimum_detectable_effect(sd, n), minimum_detectable_effect(sd, n - 1)
        assert found is not None
        assert before is not None
        assert found <= effect < before


@pytest.mark.parametrize("n", [10, 20, 50, 300])
def test_the_exact_power_of_the_detectable_effect_is_near_the_one_asked_for(n: int) -> None:
    effect = minimum_detectable_effect(1.0, n)
    assert effect is not None
    limit = scipy_stats.t.ppf(0.975, n - 1)
    exact = scipy_stats.nct.sf(limit, n - 1, effect * math.sqrt(n))
    assert exact == pytest.approx(0.8, abs=0.03)


def test_power_at_the_edges() -> None:
    assert minimum_detectable_effect(1.0, 1) is None
    assert minimum_detectable_effect(0.0, 50) is None
    for sd in (-1.0, math.inf, math.nan):
        with pytest.raises(ValueError, match="at least 0 and finite"):
            minimum_detectable_effect(sd, 5)
