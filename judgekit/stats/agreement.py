"""How far raters agree: on plain whole numbers, computed exactly and rounded once.

Raw agreement is high wherever one rating is common; kappa and alpha take off what chance would give. Both are
undefined, not 1, where every rating is the same: chance alone would agree as well.
"""

from collections import Counter, defaultdict
from collections.abc import Sequence
from fractions import Fraction

from judgekit.stats.means import mean


def exact_agreement(a: Sequence[int], b: Sequence[int]) -> float | None:
    """Share of units that both raters rate the same: `#(a_i = b_i) / n`.

    Args:
        a: ratings of the first rater, one for each unit.
        b: ratings of the second rater, in the same order.

    Returns:
        In [0, 1], higher is more agreement; None for no units.

    Raises:
        ValueError: the two differ in length.

    Source: in-house; "percent agreement".
    """
    pairs = list(zip(a, b, strict=True))
    return sum(first == second for first, second in pairs) / len(pairs) if pairs else None


def mean_signed_difference(a: Sequence[int], b: Sequence[int]) -> float | None:
    """How much higher the second rater rates: `mean(b_i - a_i)`, in units of the scale.

    Args:
        a: ratings of the first rater, one for each unit.
        b: ratings of the second rater, in the same order.

    Returns:
        Between -(width) and width of the scale; 0 is no shift, negative a stricter second rater; None for no units.

    Raises:
        ValueError: the two differ in length.

    Source: in-house.
    """
    return mean([second - first for first, second in zip(a, b, strict=True)])


def quadratic_weighted_kappa(a: Sequence[int], b: Sequence[int], low: int = 0, high: int = 5) -> float | None:
    """Cohen's kappa of two raters with weights (i - j)^2.

    `1 - sum_i (a_i - b_i)^2 / n / (sum_i sum_j (a_i - b_j)^2 / n^2)`: disagreement seen over disagreement expected if
    each rater kept the own distribution but rated blindly. The number of categories cancels out.

    Assumptions: a scale with equal steps; the same two raters for all units.

    Args:
        a: ratings of the first rater, whole numbers in [low, high], one for each unit.
        b: ratings of the second rater, in the same order.
        low: lowest rating of the scale.
        high: highest rating of the scale.

    Returns:
        In [-1, 1]: 1 full agreement, 0 as by chance, below 0 worse. None for no units, and where both raters gave
        one and the same rating throughout, so that no disagreement can be expected.

    Raises:
        ValueError: the two differ in length, or a rating is outside [low, high].

    Source: Cohen 1968, "Weighted Kappa: Nominal Scale Agreement with Provision for Scaled Disagreement or Partial
    Credit".
    """
    pairs = list(zip(a, b, strict=True))
    for rating in {*a, *b}:
        if not low <= rating <= high:
            raise ValueError(f"rating {rating} is outside the scale {low} to {high}")
    n = len(pairs)
    seen = sum((first - second) ** 2 for first, second in pairs)
    expected = n * sum(first * first + second * second for first, second in pairs) - 2 * sum(a) * sum(b)
    if expected == 0:
        return None
    return float(1 - Fraction(n * seen, expected))


def krippendorff_alpha_ordinal(ratings: Sequence[Sequence[int | None]]) -> float | None:
    """Krippendorff's alpha for ordinal ratings by any number of raters, with gaps.

    `1 - D_o / D_e`: the mean difference of two ratings of one unit over that of two ratings of any units, where the
    difference of c < k is `(n_c + ... + n_k - (n_c + n_k) / 2)^2`, n_g the number of pairable ratings g: how many
    ratings stand between them, so that unused and unequal steps of the scale do no harm. Each unit of m ratings
    adds its pairs with weight 1 / (m - 1); units with fewer than two ratings have no pairs and count nowhere.

    Args:
        ratings: one sequence for each unit with one rating for each rater, None where there is none; the order and
            number of raters in a unit are free.

    Returns:
        At most 1: 1 full agreement, 0 as by chance, below 0 worse. None without pairable ratings, and where all of
        them are the same.

    Source: Krippendorff 2011, "Computing Krippendorff's Alpha-Reliability".
    """
    units = [unit for unit in (_counts(ratings_of_unit) for ratings_of_unit in ratings) if unit.total() >= 2]
    totals: Counter[int] = Counter()
    for unit in units:
        totals.update(unit)
    difference = _ordinal_differences(totals)
    expected = sum(totals[c] * totals[k] * squared for (c, k), squared in difference.items())
    if expected == 0:
        return None
    by_size: defaultdict[int, int] = defaultdict(int)
    for unit in units:
        values = sorted(unit)
        for position, c in enumerate(values):
            for k in values[position + 1 :]:
                by_size[unit.total()] += unit[c] * unit[k] * difference[c, k]
    seen = sum((Fraction(amount, size - 1) for size, amount in by_size.items()), Fraction(0))
    return float(1 - (totals.total() - 1) * seen / expected)


def _counts(ratings_of_unit: Sequence[int | None]) -> Counter[int]:
    return Counter(rating for rating in ratings_of_unit if rating is not None)


def _ordinal_differences(totals: Counter[int]) -> dict[tuple[int, int], int]:
    """Four times the squared ordinal difference of each c < k, a whole number; the factor cancels out in alpha."""
    values = sorted(totals)
    differences = {}
    for position, c in enumerate(values):
        up_to = totals[c]
        for k in values[position + 1 :]:
            up_to += totals[k]
            differences[c, k] = (2 * up_to - totals[c] - totals[k]) ** 2
    return differences
