"""Agreement of raters, against published worked examples and a naive reading of the definitions."""

import itertools
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judgekit.stats.agreement import (
    cohen_kappa,
    exact_agreement,
    gwet_ac2,
    krippendorff_alpha_interval,
    krippendorff_alpha_nominal,
    krippendorff_alpha_ordinal,
    mean_signed_difference,
    quadratic_weighted_kappa,
)

RATING = st.integers(0, 5)
PAIRS = st.lists(st.tuples(RATING, RATING), min_size=1, max_size=40)
UNITS = st.lists(st.lists(st.none() | RATING, min_size=0, max_size=4), max_size=20)

# Krippendorff 2011, "Computing Krippendorff's Alpha-Reliability", section C to E: four observers, twelve units, gaps.
OBSERVERS: list[list[int | None]] = [
    [1, 2, 3, 3, 2, 1, 4, 1, 2, None, None, None],
    [1, 2, 3, 3, 2, 2, 4, 1, 2, 5, None, 3],
    [None, 3, 3, 3, 2, 3, 4, 2, 2, 5, 1, None],
    [1, 2, 3, 3, 2, 4, 4, 1, 2, 5, 1, None],
]
TWELVE_UNITS = [list(unit) for unit in zip(*OBSERVERS, strict=True)]

# Gwet 2014, "Handbook of Inter-Rater Reliability": 100 pregnancies put into three classes by two abstractors (data set
# `cont3x3abstractors` of the R package irrCAC, whose vignettes print the coefficients).
ABSTRACTORS = [
    pair for pair, count in {(0, 0): 13, (1, 1): 20, (1, 2): 7, (2, 1): 4, (2, 2): 56}.items() for _ in range(count)
]


def naive_ac2(units: list[list[int | None]], low: int, high: int) -> float | None:
    """Rating by rating with a matrix of weights, as in the handbook."""
    q = high - low + 1
    weight = [[1 - Fraction((k - l) ** 2, (q - 1) ** 2) for l in range(q)] for k in range(q)]  # noqa: E741
    rated = [[r - low for r in unit if r is not None] for unit in units]
    rated = [unit for unit in rated if unit]
    pairable = [unit for unit in rated if len(unit) >= 2]
    if not pairable or len({r for unit in rated for r in unit}) == 1:
        return None
    agreed = [
        sum(weight[x][y] for x, y in itertools.permutations(unit, 2)) / (len(unit) * (len(unit) - 1))
        for unit in pairable
    ]
    p_a = sum(agreed) / len(pairable)
    pi = [sum(Fraction(unit.count(k), len(unit)) for unit in rated) / len(rated) for k in range(q)]
    p_e = sum(map(sum, weight)) / (q * (q - 1)) * sum(share * (1 - share) for share in pi)
    return float((p_a - p_e) / (1 - p_e))


def naive_kappa(pairs: list[tuple[int, int]]) -> float | None:
    """Through the 6 x 6 table, as kappa is defined."""
    n = len(pairs)
    seen = sum((i - j) ** 2 * pairs.count((i, j)) / n for i in range(6) for j in range(6))
    rows = [sum(a == i for a, _ in pairs) / n for i in range(6)]
    columns = [sum(b == j for _, b in pairs) / n for j in range(6)]
    expected = sum((i - j) ** 2 * rows[i] * columns[j] for i in range(6) for j in range(6))
    return 1 - seen / expected if expected else None


def naive_alpha(units: list[list[int | None]]) -> float | None:
    """Pair by pair over ratings, without a coincidence matrix."""
    kept = [[rating for rating in unit if rating is not None] for unit in units]
    kept = [unit for unit in kept if len(unit) >= 2]
    ratings = [rating for unit in kept for rating in unit]

    def difference(c: int, k: int) -> float:
        between = [rating for rating in ratings if min(c, k) <= rating <= max(c, k)]
        return float(len(between) - (ratings.count(c) + ratings.count(k)) / 2) ** 2 if c != k else 0.0

    n = len(ratings)
    expected = sum(difference(c, k) for c, k in itertools.permutations(ratings, 2))
    if not expected:
        return None
    seen = sum(difference(c, k) / (len(unit) - 1) for unit in kept for c, k in itertools.permutations(unit, 2))
    return 1 - (n - 1) * seen / expected


def test_alpha_equals_krippendorffs_worked_example() -> None:
    value = krippendorff_alpha_ordinal(TWELVE_UNITS)
    assert value is not None
    assert round(value, 3) == 0.815
    assert value == pytest.approx(naive_alpha(TWELVE_UNITS), abs=1e-12)


def test_alpha_of_two_categories_equals_the_worked_example_for_binary_data() -> None:
    # The same paper, section A: two observers, ten units; 4 mismatches, 14 zeros and 6 ones among 20 ratings:
    # 1 - 19 * 4 * 2 / 2 / (14 * 6) = 1 - 76 / 84 = 0.095 (with two categories every metric is the nominal one)
    meg = [0, 1, 0, 0, 0, 0, 0, 0, 1, 0]
    owen = [1, 1, 1, 0, 0, 1, 0, 0, 0, 0]
    assert krippendorff_alpha_ordinal(list(zip(meg, owen, strict=True))) == pytest.approx(1 - 76 / 84, abs=1e-15)


def test_kappa_equals_the_example_of_scikit_learn() -> None:
    # scikit-learn, sklearn/metrics/tests/test_classification.py, test_cohen_kappa, weights="quadratic": 0.9541
    first = [0] * 46 + [1] * 44 + [2] * 10
    second = [0] * 50 + [1] * 40 + [2] * 10
    # 4 mismatches by 1; sums 64 and 60, squares 84 and 80: 1 - 100 * 4 / (100 * 164 - 2 * 64 * 60) = 1 - 400 / 8720
    value = quadratic_weighted_kappa(first, second, 0, 2)
    assert value == pytest.approx(1 - 400 / 8720, abs=1e-15)
    assert round(1 - 400 / 8720, 4) == 0.9541


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        ([], [], None),
        ([5], [5], None),
        ([4, 4, 4], [4, 4, 4], None),
        ([3], [5], 0.0),  # seen 4, expected 4
        ([0, 5], [5, 0], -1.0),  # seen 25 on average, expected 12.5
        ([0, 5], [0, 5], 1.0),
        ([4, 4], [4, 3], 0.0),  # one rater constant: no better than chance
    ],
)
def test_kappa_at_the_edges(first: list[int], second: list[int], expected: float | None) -> None:
    assert quadratic_weighted_kappa(first, second) == expected


@given(PAIRS)
def test_kappa_is_the_one_of_the_table_and_symmetric(pairs: list[tuple[int, int]]) -> None:
    first, second = [a for a, _ in pairs], [b for _, b in pairs]
    value = quadratic_weighted_kappa(first, second)
    expected = naive_kappa(pairs)
    assert value == (None if expected is None else pytest.approx(expected, abs=1e-12))
    assert quadratic_weighted_kappa(second, first) == value
    assert value is None or -1.0 <= value <= 1.0
    # the steps count, not where the scale starts
    assert quadratic_weighted_kappa([a + 3 for a in first], [b + 3 for b in second], 3, 8) == value


@pytest.mark.parametrize(("first", "second"), [([6], [0]), ([0], [-1])])
def test_a_rating_outside_the_scale_is_refused(first: list[int], second: list[int]) -> None:
    with pytest.raises(ValueError, match="outside the scale"):
        quadratic_weighted_kappa(first, second)


@given(UNITS, st.randoms(use_true_random=False))
def test_alpha_is_the_naive_one_in_any_order_and_ignores_units_without_pairs(
    units: list[list[int | None]], rng: object
) -> None:
    value = krippendorff_alpha_ordinal(units)
    expected = naive_alpha(units)
    assert value == (None if expected is None else pytest.approx(expected, abs=1e-9))
    assert value is None or value <= 1.0
    mirrored = [unit[::-1] for unit in reversed(units)]
    assert krippendorff_alpha_ordinal([*mirrored, [None, 3], [], [5]]) == value


@given(UNITS)
def test_alpha_looks_at_the_order_of_ratings_only(units: list[list[int | None]]) -> None:
    stretched = [[None if rating is None else rating**3 - 7 for rating in unit] for unit in units]
    assert krippendorff_alpha_ordinal(stretched) == krippendorff_alpha_ordinal(units)


@pytest.mark.parametrize("units", [[], [[None, 4], [3]], [[4, 4], [4, 4, None]]])
def test_alpha_without_pairs_or_without_variation_is_undefined(units: list[list[int | None]]) -> None:
    assert krippendorff_alpha_ordinal(units) is None


def test_full_agreement_on_different_ratings_is_one() -> None:
    assert krippendorff_alpha_ordinal([[0, 0], [3, 3, 3], [5, 5]]) == 1.0


def test_raw_agreement_and_shift() -> None:
    # agree on 1 of 4; differences 0, -1, -2, 1 sum to -2
    first, second = [5, 4, 3, 2], [5, 3, 1, 3]
    assert exact_agreement(first, second) == 0.25
    assert mean_signed_difference(first, second) == -0.5
    assert mean_signed_difference(second, first) == 0.5
    assert exact_agreement([], []) is None
    assert mean_signed_difference([], []) is None


@pytest.mark.parametrize("figure", [exact_agreement, mean_signed_difference, quadratic_weighted_kappa])
def test_raters_of_different_length_are_refused(figure: object) -> None:
    assert callable(figure)
    with pytest.raises(ValueError, match="argument 2"):
        figure([1, 2], [1])


def test_ac2_equals_the_published_values() -> None:
    # irrCAC on Krippendorff's twelve units (`cac.raw4raters`), quadratic weights: p_a 0.97538, p_e 0.7137, AC2 0.914.
    # p_a: eleven units with pairs; off by (1, 0, 0) twice among 4 (6 of 12 ordered pairs, weight 1/16 off) in units 2
    # and 8, 1 2 3 4 in unit 6 (sum of squares 40 of 12 pairs): 1 - (2 * 6/12 + 40/12) / 11 / 16 = 1 - 13/528
    # p_e: weights sum to 25 - 100/16 = 18.75; shares over twelve units, of 1: (1 + 1/4 + 3/4 + 1) / 12 = 1/4, of 2:
    # (3/4 + 1 + 1/4 + 1/4 + 1) / 12 = 13/48, of 3: (1/4 + 1 + 1 + 1/4 + 1) / 12 = 14/48, of 4: 5/48, of 5: 4/48;
    # squares sum to (144 + 169 + 196 + 25 + 16) / 2304 = 550/2304; 18.75 / 20 * (1 - 550/2304)
    p_a, p_e = Fraction(515, 528), Fraction(15, 16) * Fraction(1754, 2304)
    assert (round(float(p_a), 5), round(float(p_e), 5)) == (0.97538, 0.7137)
    value = gwet_ac2(TWELVE_UNITS, 1, 5)
    assert value == pytest.approx(float((p_a - p_e) / (1 - p_e)), abs=1e-12)
    assert value is not None
    assert round(value, 5) == 0.914


def test_two_raters_equal_the_published_values() -> None:
    # irrCAC, vignettes "overview" and "weighting": kappa 0.7964094; AC2 with quadratic weights 0.940
    first, second = [a for a, _ in ABSTRACTORS], [b for _, b in ABSTRACTORS]
    assert cohen_kappa(first, second) == pytest.approx(0.7964094, abs=5e-8)
    ac2 = gwet_ac2(ABSTRACTORS, 0, 2)
    assert ac2 is not None
    assert round(ac2, 3) == 0.940


def test_ac2_on_a_scale_of_two_is_ac1() -> None:
    # Gwet 2008: p_a and the share of positive ratings alone: AC1 = (p_a - 2 pi (1 - pi)) / (1 - 2 pi (1 - pi)).
    # 118 both positive, 5 and 2 apart, none both negative: p_a = 118/125, pi = (118 + 7/2) / 125 = 0.972
    pairs = [(1, 1)] * 118 + [(1, 0)] * 5 + [(0, 1)] * 2
    chance = 2 * 0.972 * 0.028
    value = gwet_ac2(pairs, 0, 1)
    assert value == pytest.approx((118 / 125 - chance) / (1 - chance), abs=1e-12)
    # the paradox that AC1 was made for: kappa of these raters is below 0
    kappa = cohen_kappa([a for a, _ in pairs], [b for _, b in pairs])
    assert value is not None
    assert kappa is not None
    assert kappa < 0 < 0.9 < value


def test_alphas_equal_krippendorffs_worked_example() -> None:
    # The same paper, section D: nominal 0.743, interval 0.849
    nominal, interval = krippendorff_alpha_nominal(TWELVE_UNITS), krippendorff_alpha_interval(TWELVE_UNITS)
    assert nominal is not None
    assert interval is not None
    assert round(nominal, 3) == 0.743
    assert round(interval, 3) == 0.849


@given(UNITS)
def test_ac2_is_the_naive_one(units: list[list[int | None]]) -> None:
    value, expected = gwet_ac2(units, 0, 5), naive_ac2(units, 0, 5)
    assert value == (None if expected is None else pytest.approx(expected, abs=1e-12))
    assert value is None or value <= 1.0
    assert gwet_ac2([unit[::-1] for unit in reversed(units)], 0, 5) == value
    # the scale turned round and moved
    assert gwet_ac2([[None if r is None else 9 - r for r in unit] for unit in units], 4, 9) == value


@given(PAIRS)
def test_kappa_on_two_categories_needs_no_weights(pairs: list[tuple[int, int]]) -> None:
    first, second = [int(a > 3) for a, _ in pairs], [int(b > 3) for _, b in pairs]
    assert cohen_kappa(first, second) == quadratic_weighted_kappa(first, second, 0, 1)
    assert cohen_kappa([a for a, _ in pairs], [b for _, b in pairs]) == cohen_kappa(
        [f"{b}" for _, b in pairs], [f"{a}" for a, _ in pairs]
    )


@pytest.mark.parametrize("units", [[], [[None, 4], [3]], [[4, 4], [4, 4, None]], [[4, 4], [4]]])
def test_ac2_without_pairs_or_without_variation_is_undefined(units: list[list[int | None]]) -> None:
    assert gwet_ac2(units, 0, 5) is None


def test_ac2_needs_a_scale_that_holds_the_ratings() -> None:
    assert gwet_ac2([[0, 0], [5, 5]], 0, 5) == 1.0
    with pytest.raises(ValueError, match="rating 6 is outside the scale 0 to 5"):
        gwet_ac2([[6, 5]], 0, 5)
    with pytest.raises(ValueError, match="from low to a higher rating"):
        gwet_ac2([[3, 3]], 3, 3)


@pytest.mark.parametrize(("first", "second"), [([], []), (["a"], ["a"]), (["a", "a"], ["a", "a"])])
def test_unweighted_kappa_without_variation_is_undefined(first: list[str], second: list[str]) -> None:
    assert cohen_kappa(first, second) is None
