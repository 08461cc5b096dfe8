"""How far raters agree: on plain whole numbers, computed exactly and rounded once.

Raw agreement is high wherever one rating is common; kappa, AC2 and alpha take off what chance would give. All are
undefined, not 1, where every rating is the same: such ratings cannot tell agreement from habit.

They depend on how often each combination of ratings came up, and on nothing else. So each is there twice: on ratings
in a row, and, as `..._of`, on counts of combinations, which leaving out one case after the other needs.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from fractions import Fraction
from itertools import combinations

from judgekit.stats.means import mean

Counts = Mapping[tuple[int | None, ...], int]
"""The ratings of a unit, one for each rater with None for a gap -> how many units have just these."""


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


def cohen_kappa(a: Sequence[Hashable], b: Sequence[Hashable]) -> float | None:
    """Cohen's kappa of two raters, all disagreements alike: `(p_o - p_e) / (1 - p_e)`.

    p_o is the share of units rated the same, p_e the share expected if each rater kept the own distribution but rated
    blindly.

    Assumptions: categories without order; the same two raters for all units.

    Args:
        a: ratings of the first rater, one for each unit.
        b: ratings of the second rater, in the same order.

    Returns:
        In [-1, 1]: 1 full agreement, 0 as by chance, below 0 worse. None for no units, and where both raters gave one
        and the same rating throughout.

    Raises:
        ValueError: the two differ in length.

    Source: Cohen 1960, "A Coefficient of Agreement for Nominal Scales".
    """
    pairs = list(zip(a, b, strict=True))
    n = len(pairs)
    seen = n * sum(first == second for first, second in pairs)
    first_counts, second_counts = Counter(a), Counter(b)
    expected = sum(count * second_counts[rating] for rating, count in first_counts.items())
    if n * n == expected:
        return None
    return float(Fraction(seen - expected, n * n - expected))


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
    pairs = Counter(zip(a, b, strict=True))
    _check_scale({*a, *b}, low, high)
    return quadratic_weighted_kappa_of(pairs)


def quadratic_weighted_kappa_of(counts: Mapping[tuple[int, int], int]) -> float | None:
    """`quadratic_weighted_kappa` on counts of pairs of ratings.

    Args:
        counts: rating of the first rater and of the second -> number of units.

    Returns:
        As `quadratic_weighted_kappa`.

    Source: as there.
    """
    n = sum(counts.values())
    seen = sum(count * (a - b) ** 2 for (a, b), count in counts.items())
    squares = sum(count * (a * a + b * b) for (a, b), count in counts.items())
    sum_a = sum(count * a for (a, _), count in counts.items())
    sum_b = sum(count * b for (_, b), count in counts.items())
    expected = n * squares - 2 * sum_a * sum_b
    if expected == 0:
        return None
    return float(1 - Fraction(n * seen, expected))


def gwet_ac2(ratings: Sequence[Sequence[int | None]], low: int, high: int) -> float | None:
    """Gwet's AC2 with quadratic weights, of any number of raters, with gaps.

    `(p_a - p_e) / (1 - p_e)` with weights `w_kl = 1 - (k - l)^2 / (high - low)^2`. p_a is the mean weight of two
    ratings of one unit, over units with at least two. `p_e = sum(w) / (q (q - 1)) sum_k pi_k (1 - pi_k)` with q
    ratings on the scale and pi_k the mean share of rating k over all rated units. Unlike kappa it stays high where
    raters agree on a rating that is common. On a scale of two it is AC1.

    Assumptions: a scale with equal steps, of which all ratings were on offer, used or not.

    Args:
        ratings: one sequence for each unit with one rating for each rater, whole numbers in [low, high], None where
            there is none; the order and number of raters in a unit are free.
        low: lowest rating of the scale.
        high: highest rating of the scale, above low.

    Returns:
        At most 1: 1 full agreement, 0 as by chance, below 0 worse. None where no unit has two ratings, and where all
        ratings are the same: the formula would say 1, of ratings that show no sign of looking at the unit.

    Raises:
        ValueError: high is not above low, or a rating is outside [low, high].

    Source: Gwet 2014, "Handbook of Inter-Rater Reliability", 4th edition, chapters 3 and 5; Gwet 2008, "Computing
    Inter-rater Reliability and Its Variance in the Presence of High Agreement".
    """
    return gwet_ac2_of(Counter(tuple(unit) for unit in ratings), low, high)


def gwet_ac2_of(counts: Counts, low: int, high: int) -> float | None:
    """`gwet_ac2` on counts of combinations of ratings.

    Args:
        counts: ratings of a unit -> number of units.
        low: lowest rating of the scale.
        high: highest rating of the scale, above low.

    Returns:
        As `gwet_ac2`.

    Raises:
        ValueError: high is not above low, or a rating is outside [low, high].

    Source: as `gwet_ac2`.
    """
    if high <= low:
        raise ValueError(f"a scale goes from low to a higher rating, not from {low} to {high}")
    shares: defaultdict[int, Fraction] = defaultdict(Fraction)
    distance = Fraction(0)
    n_rated = n_pairable = 0
    for unit, n_units in counts.items():
        given = [rating for rating in unit if rating is not None]
        _check_scale(given, low, high)
        m = len(given)
        for rating, count in Counter(given).items():
            shares[rating] += Fraction(n_units * count, m)
        n_rated += n_units if m else 0
        if m >= 2:
            n_pairable += n_units
            # the sum of (x - y)^2 over all ordered pairs of m numbers
            spread = 2 * m * sum(rating * rating for rating in given) - 2 * sum(given) ** 2
            distance += Fraction(n_units * spread, m * (m - 1))
    if n_pairable == 0 or len(shares) == 1:
        return None
    width, q = high - low, high - low + 1
    agreed = 1 - distance / n_pairable / width**2
    weights = q * q - Fraction(q * q * (q * q - 1), 6 * width**2)  # the sum of (k - l)^2 is q^2 (q^2 - 1) / 6
    chance = weights / (q * (q - 1)) * (1 - sum(share * share for share in shares.values()) / n_rated**2)
    return float((agreed - chance) / (1 - chance))


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
    return krippendorff_alpha_ordinal_of(Counter(tuple(unit) for unit in ratings))


def krippendorff_alpha_ordinal_of(counts: Counts) -> float | None:
    """`krippendorff_alpha_ordinal` on counts of combinations of ratings.

    Args:
        counts: ratings of a unit -> number of units.

    Returns:
        As `krippendorff_alpha_ordinal`.

    Source: as there.
    """
    return _alpha(counts, _ordinal_differences)


def krippendorff_alpha_interval(ratings: Sequence[Sequence[int | None]]) -> float | None:
    """Krippendorff's alpha for ratings on a scale with equal steps: the difference of c and k is `(c - k)^2`.

    Else as `krippendorff_alpha_ordinal`.

    Args:
        ratings: one sequence for each unit with one rating for each rater, None where there is none.

    Returns:
        At most 1; None without pairable ratings, and where all of them are the same.

    Source: Krippendorff 2011, "Computing Krippendorff's Alpha-Reliability".
    """
    return _alpha(Counter(tuple(unit) for unit in ratings), _interval_differences)


def krippendorff_alpha_nominal(ratings: Sequence[Sequence[int | None]]) -> float | None:
    """Krippendorff's alpha for categories without order: the difference of c and k is 1 unless they are the same.

    Else as `krippendorff_alpha_ordinal`.

    Args:
        ratings: one sequence for each unit with one rating for each rater, None where there is none.

    Returns:
        At most 1; None without pairable ratings, and where all of them are the same.

    Source: Krippendorff 2011, "Computing Krippendorff's Alpha-Reliability".
    """
    return _alpha(Counter(tuple(unit) for unit in ratings), _nominal_differences)


def _check_scale(ratings: Iterable[int], low: int, high: int) -> None:
    for rating in ratings:
        if not low <= rating <= high:
            raise ValueError(f"rating {rating} is outside the scale {low} to {high}")


Differences = dict[tuple[int, int], int]
"""Squared difference of each c < k, up to a factor that cancels out in alpha."""


def _alpha(counts: Counts, differences: Callable[[Counter[int]], Differences]) -> float | None:
    units: Counter[tuple[tuple[int, int], ...]] = Counter()
    totals: Counter[int] = Counter()
    for unit, n_units in counts.items():
        values = Counter(rating for rating in unit if rating is not None)
        if values.total() >= 2:
            units[tuple(sorted(values.items()))] += n_units
            for rating, count in values.items():
                totals[rating] += count * n_units
    difference = differences(totals)
    expected = sum(totals[c] * totals[k] * squared for (c, k), squared in difference.items())
    if expected == 0:
        return None
    by_size: defaultdict[int, int] = defaultdict(int)
    for values_of_unit, n_units in units.items():
        size = sum(count for _, count in values_of_unit)
        for (c, n_c), (k, n_k) in combinations(values_of_unit, 2):
            by_size[size] += n_units * n_c * n_k * difference[c, k]
    seen = sum((Fraction(amount, size - 1) for size, amount in by_size.items()), Fraction(0))
    return float(1 - (totals.total() - 1) * seen / expected)


def _ordinal_differences(totals: Counter[int]) -> Differences:
    """Four times the squared ordinal difference, a whole number."""
    values = sorted(totals)
    differences = {}
    for position, c in enumerate(values):
        up_to = totals[c]
        for k in values[position + 1 :]:
            up_to += totals[k]
            differences[c, k] = (2 * up_to - totals[c] - totals[k]) ** 2
    return differences


def _interval_differences(totals: Counter[int]) -> Differences:
    return {(c, k): (c - k) ** 2 for c, k in combinations(sorted(totals), 2)}


def _nominal_differences(totals: Counter[int]) -> Differences:
    return dict.fromkeys(combinations(sorted(totals), 2), 1)
