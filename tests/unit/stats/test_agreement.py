"""Agreement of raters, against published worked examples and a naive reading of the definitions."""

import itertools
from collections.abc import Sequence
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judgekit.stats import agreement

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


def quadratic_weighted_kappa(first: list[int], second: list[int]) -> float | None:
    return agreement.quadratic_weighted_kappa(first, second)[0]


def gwet_ac2(units: Sequence[Sequence[int | None]], low: int, high: int) -> float | None:
    return agreement.gwet_ac2(units, low, high)[0]


def krippendorff_alpha(units: Sequence[Sequence[int | None]]) -> float | None:
    return agreement.krippendorff_alpha(units)[0]


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
    value = krippendorff_alpha(TWELVE_UNITS)
    assert value is not None
    assert round(value, 3) == 0.815
    assert value == pytest.approx(naive_alpha(TWELVE_UNITS), abs=1e-12)


def test_alpha_of_two_categories_equals_the_worked_example_for_binary_data() -> None:
    # The same paper, section A: two observers, ten units; 4 mismatches, 14 zeros and 6 ones among 20 ratings:
    # 1 - 19 * 4 * 2 / 2 / (14 * 6) = 1 - 76 / 84 = 0.095 (with two categories every metric is the nominal one)
    meg = [0, 1, 0, 0, 0, 0, 0, 0, 1, 0]
    owen = [1, 1, 1, 0, 0, 1, 0, 0, 0, 0]
    assert krippendorff_alpha(list(zip(meg, owen, strict=True))) == pytest.approx(1 - 76 / 84, abs=1e-15)


def test_kappa_equals_the_example_of_scikit_learn() -> None:
    # scikit-learn, sklearn/metrics/tests/test_classification.py, test_cohen_kappa, weights="quadratic": 0.9541
    first = [0] * 46 + [1] * 44 + [2] * 10
    second = [0] * 50 + [1] * 40 + [2] * 10
    # 4 mismatches by 1; sums 64 and 60, squares 84 and 80: 1 - 100 * 4 / (100 * 164 - 2 * 64 * 60) = 1 - 400 / 8720
    value = quadratic_weighted_kappa(first, second)
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
    assert quadratic_weighted_kappa([a + 3 for a in first], [b + 3 for b in second]) == value


@given(UNITS, st.randoms(use_true_random=False))
def test_alpha_is_the_naive_one_in_any_order_and_ignores_units_without_pairs(
    units: list[list[int | None]], rng: object
) -> None:
    value = krippendorff_alpha(units)
    expected = naive_alpha(units)
    assert value == (None if expected is None else pytest.approx(expected, abs=1e-9))
    assert value is None or value <= 1.0
    mirrored = [unit[::-1] for unit in reversed(units)]
    assert krippendorff_alpha([*mirrored, [None, 3], [], [5]]) == value


@given(UNITS)
def test_alpha_looks_at_the_order_of_ratings_only(units: list[list[int | None]]) -> None:
    stretched = [[None if rating is None else rating**3 - 7 for rating in unit] for unit in units]
    assert krippendorff_alpha(stretched) == krippendorff_alpha(units)


@pytest.mark.parametrize("units", [[], [[None, 4], [3]], [[4, 4], [4, 4, None]]])
def test_alpha_without_pairs_or_without_variation_is_undefined(units: list[list[int | None]]) -> None:
    assert krippendorff_alpha(units) is None


def test_full_agreement_on_different_ratings_is_one() -> None:
    assert krippendorff_alpha([[0, 0], [3, 3, 3], [5, 5]]) == 1.0


def test_raters_of_different_length_are_refused() -> None:
    with pytest.raises(ValueError, match="argument 2"):
        quadratic_weighted_kappa([1, 2], [1])


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


def test_two_raters_equal_the_published_value() -> None:
    # irrCAC, vignette "weighting": AC2 with quadratic weights 0.940
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
    kappa = quadratic_weighted_kappa([a for a, _ in pairs], [b for _, b in pairs])
    assert value is not None
    assert kappa is not None
    assert kappa < 0 < 0.9 < value


@given(UNITS)
def test_ac2_is_the_naive_one(units: list[list[int | None]]) -> None:
    value, expected = gwet_ac2(units, 0, 5), naive_ac2(units, 0, 5)
    assert value == (None if expected is None else pytest.approx(expected, abs=1e-12))
    assert value is None or value <= 1.0
    assert gwet_ac2([unit[::-1] for unit in reversed(units)], 0, 5) == value
    # the scale turned round and moved
    assert gwet_ac2([[None if r is None else 9 - r for r in unit] for unit in units], 4, 9) == value


@given(PAIRS)
def test_kappa_on_two_categories_is_cohens_unweighted_one(pairs: list[tuple[int, int]]) -> None:
    first, second = [int(a > 3) for a, _ in pairs], [int(b > 3) for _, b in pairs]
    n, agreed = len(pairs), sum(a == b for a, b in zip(first, second, strict=True))
    by_chance = sum(first) * sum(second) + (n - sum(first)) * (n - sum(second))
    # (p_o - p_e) / (1 - p_e), both times n^2
    expected = None if by_chance == n * n else float(Fraction(n * agreed - by_chance, n * n - by_chance))
    assert quadratic_weighted_kappa(first, second) == expected


@pytest.mark.parametrize("units", [[], [[None, 4], [3]], [[4, 4], [4, 4, None]], [[4, 4], [4]]])
def test_ac2_without_pairs_or_without_variation_is_undefined(units: list[list[int | None]]) -> None:
    assert gwet_ac2(units, 0, 5) is None


def test_ac2_needs_a_scale_that_holds_the_ratings() -> None:
    assert gwet_ac2([[0, 0], [5, 5]], 0, 5) == 1.0
    with pytest.raises(ValueError, match="rating 6 is outside the scale 0 to 5"):
        gwet_ac2([[6, 5]], 0, 5)
    with pytest.raises(ValueError, match="from low to a higher rating"):
        gwet_ac2([[3, 3]], 3, 3)
