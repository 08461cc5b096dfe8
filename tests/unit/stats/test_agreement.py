"""Agreement of raters, against published worked examples and a naive reading of the definitions."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judgekit.stats.agreement import (
    exact_agreement,
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
