"""How far raters agree: computed exactly on whole numbers and rounded once, with cluster jackknife intervals.

Raw agreement is high wherever one rating is common; kappa, AC2 and alpha take off what chance would give. All are
undefined, not 1, where every rating is the same: such ratings cannot tell agreement from habit.
"""

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations
from typing import NamedTuple, TypeVar

from judgekit.stats.means import jackknife_interval, mean

Unit = TypeVar("Unit", bound=Hashable)
Ratings = tuple[int | None, ...]
"""The ratings of a unit, one for each rater with None for a gap."""


class Ends(NamedTuple):
    """A figure with the ends of its interval, where they are known."""

    value: float | None
    low: float | None
    high: float | None


def quadratic_weighted_kappa(a: Sequence[int], b: Sequence[int], clusters: Sequence[Hashable] | None = None) -> Ends:
    """Cohen's kappa of two raters with weights (i - j)^2, and its 95% interval.

    `1 - sum_i (a_i - b_i)^2 / n / (sum_i sum_j (a_i - b_j)^2 / n^2)`: disagreement seen over disagreement expected if
    each rater kept their distribution but rated blindly. The number of categories cancels out. On two categories it
    is Cohen's unweighted kappa.

    Assumptions: a scale with equal steps; the same two raters for all units.

    Args:
        a: ratings of the first rater, whole numbers, one for each unit.
        b: ratings of the second rater, in the same order.
        clusters: the cluster of each unit, in the same order; None for independent units.

    Returns:
        Value in [-1, 1]: 1 full agreement, 0 as by chance, below 0 worse; None for no units, and if both raters
        gave one and the same rating throughout. Ends as in `cluster_jackknife`.

    Raises:
        ValueError: lengths differ.

    Source: Cohen 1968, "Weighted Kappa: Nominal Scale Agreement with Provision for Scaled Disagreement or Partial
    Credit".
    """
    return cluster_jackknife(kappa_of_counts, list(zip(a, b, strict=True)), clusters)


def kappa_of_counts(counts: Mapping[tuple[int, int], int]) -> float | None:
    """The value of `quadratic_weighted_kappa`, from rating of the first and of the second rater -> number of units."""
    n = sum(counts.values())
    seen = sum(count * (a - b) ** 2 for (a, b), count in counts.items())
    squares = sum(count * (a * a + b * b) for (a, b), count in counts.items())
    sum_a = sum(count * a for (a, _), count in counts.items())
    sum_b = sum(count * b for (_, b), count in counts.items())
    expected = n * squares - 2 * sum_a * sum_b
    return float(1 - Fraction(n * seen, expected)) if expected else None


def cohen_kappa(a: Sequence[int], b: Sequence[int], clusters: Sequence[Hashable] | None = None) -> Ends:
    """Cohen's unweighted kappa of two raters, for categories in no order, and its 95% interval.

    `(p_a - p_e) / (1 - p_e)`: share of units with equal ratings, less what two raters with the same shares would have
    by chance. See `quadratic_weighted_kappa` for the rest.

    Source: Cohen 1960, "A Coefficient of Agreement for Nominal Scales".
    """
    return cluster_jackknife(_nominal_kappa, list(zip(a, b, strict=True)), clusters)


def _nominal_kappa(counts: Mapping[tuple[int, int], int]) -> float | None:
    n = sum(counts.values())
    agreed = sum(count for (a, b), count in counts.items() if a == b)
    of_a: Counter[int] = Counter()
    of_b: Counter[int] = Counter()
    for (a, b), count in counts.items():
        of_a[a] += count
        of_b[b] += count
    chance = sum(count * of_b[rating] for rating, count in of_a.items())
    return float(Fraction(n * agreed - chance, n * n - chance)) if n * n != chance else None


def gwet_ac2(
    ratings: Sequence[Sequence[int | None]],
    low: int,
    high: int,
    clusters: Sequence[Hashable] | None = None,
    *,
    nominal: bool = False,
) -> Ends:
    """Gwet's AC2 with quadratic weights, of any number of raters, with gaps, and its 95% interval.

    `(p_a - p_e) / (1 - p_e)` with weights `w_kl = 1 - (k - l)^2 / (high - low)^2`. p_a is the mean weight of two
    ratings of one unit, over units with at least two. `p_e = sum(w) / (q (q - 1)) sum_k pi_k (1 - pi_k)` with q
    ratings on the scale and pi_k the mean share of rating k over all rated units. Unlike kappa it stays high where
    raters agree on a rating that is common. On a scale of two it is AC1.

    Assumptions: a scale with equal steps, of which all ratings were on offer, used or not.

    Args:
        ratings: one sequence for each unit with one rating for each rater, whole numbers in [low, high], None if
            there is none; the order and number of raters in a unit are free.
        low: lowest rating of the scale.
        high: highest rating of the scale, above low.
        clusters: the cluster of each unit, in the same order; None for independent units.
        nominal: the ratings are categories in no order, so every difference counts the same: Gwet's AC1.

    Returns:
        Value at most 1: 1 full agreement, 0 as by chance, below 0 worse. None if no unit has two ratings, and if
        all ratings are the same: the formula would say 1, of ratings that show no sign of looking at the unit. Ends
        as in `cluster_jackknife`.

    Raises:
        ValueError: high is not above low, a rating is outside [low, high], or lengths differ.

    Source: Gwet 2014, "Handbook of Inter-Rater Reliability", 4th edition, chapters 3 and 5; Gwet 2008, "Computing
    Inter-rater Reliability and Its Variance in the Presence of High Agreement".
    """
    if high <= low:
        raise ValueError(f"a scale goes from low to a higher rating, not from {low} to {high}")
    for rating in {rating for unit in ratings for rating in unit}:
        if rating is not None and not low <= rating <= high:
            raise ValueError(f"rating {rating} is outside the scale {low} to {high}")
    units = [tuple(unit) for unit in ratings]
    return cluster_jackknife(lambda counts: _ac2(counts, low, high, nominal=nominal), units, clusters)


def _ac2(counts: Mapping[Ratings, int], low: int, high: int, *, nominal: bool) -> float | None:
    shares: defaultdict[int, Fraction] = defaultdict(Fraction)
    distance = Fraction(0)
    n_rated = n_pairable = 0
    for unit, n_units in counts.items():
        given = [rating for rating in unit if rating is not None]
        m = len(given)
        for rating, count in Counter(given).items():
            shares[rating] += Fraction(n_units * count, m)
        n_rated += n_units if m else 0
        if m >= 2:
            n_pairable += n_units
            # the sum of (x - y)^2, or the number of unequal ones, over all ordered pairs of m ratings
            if nominal:
                spread = m * m - sum(count * count for count in Counter(given).values())
            else:
                spread = 2 * m * sum(rating * rating for rating in given) - 2 * sum(given) ** 2
            distance += Fraction(n_units * spread, m * (m - 1))
    if n_pairable == 0 or len(shares) == 1:
        return None
    width, q = 1 if nominal else high - low, high - low + 1
    agreed = 1 - distance / n_pairable / width**2
    # the sum of (k - l)^2 is q^2 (q^2 - 1) / 6; of nominal weights only those of equal ratings are 1
    weights = Fraction(q) if nominal else q * q - Fraction(q * q * (q * q - 1), 6 * width**2)
    chance = weights / (q * (q - 1)) * (1 - sum(share * share for share in shares.values()) / n_rated**2)
    return float((agreed - chance) / (1 - chance))


def krippendorff_alpha(
    ratings: Sequence[Sequence[int | None]], clusters: Sequence[Hashable] | None = None, *, nominal: bool = False
) -> Ends:
    """Krippendorff's alpha for ordinal ratings by any number of raters, with gaps, and its 95% interval.

    `1 - D_o / D_e`: the mean difference of two ratings of one unit over that of two ratings of any units, where the
    difference of c < k is `(n_c + ... + n_k - (n_c + n_k) / 2)^2`, n_g the number of pairable ratings g: how many
    ratings stand between them, so that unused and unequal steps of the scale do no harm. Each unit of m ratings
    adds its pairs with weight 1 / (m - 1); units with fewer than two ratings have no pairs and count nowhere.

    Args:
        ratings: one sequence for each unit with one rating for each rater, None if there is none; the order and
            number of raters in a unit are free.
        clusters: the cluster of each unit, in the same order; None for independent units.
        nominal: the ratings are categories in no order; two that differ have the difference 1.

    Returns:
        Value at most 1: 1 full agreement, 0 as by chance, below 0 worse; None without pairable ratings, and if all
        of them are the same. Ends as in `cluster_jackknife`.

    Raises:
        ValueError: lengths differ.

    Source: Krippendorff 2011, "Computing Krippendorff's Alpha-Reliability".
    """
    units = [tuple(unit) for unit in ratings]
    return cluster_jackknife(lambda counts: _alpha(counts, nominal=nominal), units, clusters)


def _alpha(counts: Mapping[Ratings, int], *, nominal: bool) -> float | None:
    units: Counter[tuple[tuple[int, int], ...]] = Counter()
    totals: Counter[int] = Counter()
    for unit, n_units in counts.items():
        values = Counter(rating for rating in unit if rating is not None)
        if values.total() >= 2:
            units[tuple(sorted(values.items()))] += n_units
            for rating, count in values.items():
                totals[rating] += count * n_units
    difference = dict.fromkeys(combinations(sorted(totals), 2), 1) if nominal else _ordinal_differences(totals)
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


def _ordinal_differences(totals: Counter[int]) -> dict[tuple[int, int], int]:
    """Four times the squared difference of each c < k, a whole number; the factor cancels out in alpha."""
    values = sorted(totals)
    differences = {}
    for position, c in enumerate(values):
        up_to = totals[c]
        for k in values[position + 1 :]:
            up_to += totals[k]
            differences[c, k] = (2 * up_to - totals[c] - totals[k]) ** 2
    return differences


def cluster_jackknife(
    statistic: Callable[[Mapping[Unit, int]], float | None],
    units: Sequence[Unit],
    clusters: Sequence[Hashable] | None,
    limits: tuple[float, float] = (-1.0, 1.0),
) -> Ends:
    """95% interval of a figure that depends on counts of units, from leaving out one cluster at a time.

    See `jackknife_interval`, with clusters in the place of cases: t has G - 1 degrees of freedom for G clusters. The
    counts of a cluster are taken off and put back, and clusters with the same content are computed once, so 5,000
    pairs of ratings cost some 36 figures.

    Assumptions: independent clusters, none of which changes the figure much; units within one may depend on each
    other. Rough below some 20 clusters.

    Args:
        statistic: counts of units -> the figure, None if it is undefined. It must not keep the counts.
        units: all units.
        clusters: the cluster of each unit, in the same order; None for independent units.
        limits: smallest and largest value possible; may be infinite.

    Returns:
        Value, lower end, upper end. The value is None if the figure is undefined; the ends are None with it, for
        fewer than two clusters, where the figure is undefined without one of them, and if none changes it.

    Raises:
        ValueError: units and clusters differ in length.

    Source: Tukey 1958, "Bias and Confidence in Not-quite Large Samples"; for agreement: Fleiss and Davies 1982,
    "Jackknifing Functions of Multinomial Frequencies, with an Application to a Measure of Concordance".
    """
    names: Iterable[Hashable] = range(len(units)) if clusters is None else clusters
    by_cluster: defaultdict[Hashable, Counter[Unit]] = defaultdict(Counter)
    for unit, name in zip(units, names, strict=True):
        by_cluster[name][unit] += 1
    counts = Counter(units)
    value = statistic(counts)
    if value is None or len(by_cluster) < 2:
        return Ends(value, None, None)
    without_one: Counter[float] = Counter()
    for content, n_clusters in Counter(frozenset(cluster.items()) for cluster in by_cluster.values()).items():
        counts.subtract(dict(content))
        left = statistic(+counts)
        if left is None:
            return Ends(value, None, None)
        without_one[left] += n_clusters
        counts.update(dict(content))
    return Ends(value, *jackknife_interval(value, without_one, len(by_cluster), limits))


@dataclass(frozen=True)
class EffectiveVotes:
    """What a panel is worth beside independent members."""

    value: float | None
    """Number of independent votes; None if it is undefined, see `effective_votes`."""
    mean_correlation: float | None
    """Mean over the pairs of members for which a correlation is defined; None without one."""


def effective_votes(verdicts: Sequence[Sequence[float | None]]) -> EffectiveVotes:
    """Effective number of independent votes of a panel: `k / (1 + (k - 1) rho)`.

    rho is the mean of Pearson's correlations of all pairs of the k members, each over the cases that both judged. The
    mean of k votes with this correlation has the variance of the mean of so many independent ones.

    Given errors, verdict minus label, it says how much a panel takes off the error of one member. Given bare verdicts
    it is a lower bound in practice, since members that are right agree for that reason alone.

    Assumptions: members of about one variance; a linear relation.

    Args:
        verdicts: one sequence for each case with one number for each member, None if there is no verdict.

    Returns:
        k for members that are unrelated, 1 for copies of one; above k where errors cancel. None for fewer than two
        members, without a pair of which both vary over two common cases or more, and if correlations are so far
        below 0 that `1 + (k - 1) rho` is not above 0.

    Raises:
        ValueError: cases with different numbers of members, or a number that is not finite.

    Source: Kish 1965, "Survey Sampling", section 5.4, the design effect of a cluster of k.
    """
    widths = {len(case) for case in verdicts}
    if len(widths) > 1:
        raise ValueError(f"cases have different numbers of members: {sorted(widths)}")
    k = widths.pop() if widths else 0
    columns = list(zip(*verdicts, strict=True))
    rho = mean([r for a, b in combinations(columns, 2) if (r := _correlation(a, b)) is not None])
    divisor = 0.0 if rho is None else 1.0 + (k - 1) * rho
    return EffectiveVotes(k / divisor if divisor > 1e-9 else None, rho)


def _correlation(a: Sequence[float | None], b: Sequence[float | None]) -> float | None:
    pairs = [(x, y) for x, y in zip(a, b, strict=True) if x is not None and y is not None]
    centre_a, centre_b = mean([x for x, _ in pairs]), mean([y for _, y in pairs])
    if centre_a is None or centre_b is None:
        return None
    off = [(x - centre_a, y - centre_b) for x, y in pairs]
    spread_a, spread_b = math.fsum(x * x for x, _ in off), math.fsum(y * y for _, y in off)
    if spread_a <= 0.0 or spread_b <= 0.0:
        return None
    together = math.fsum(x * y for x, y in off)
    return max(-1.0, min(1.0, together / spread_b / math.sqrt(spread_a / spread_b)))
