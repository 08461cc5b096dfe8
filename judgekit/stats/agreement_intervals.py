"""Agreement figures with intervals, from leaving out one case, or one group of cases, after the other."""

from collections import Counter
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import TypeVar

from judgekit.stats.agreement import (
    gwet_ac2_of,
    krippendorff_alpha_ordinal_of,
    quadratic_weighted_kappa_of,
)
from judgekit.stats.means import jackknife_interval

Unit = TypeVar("Unit", bound=Hashable)
Ends = tuple[float | None, float | None, float | None]
"""Value, lower end, upper end."""


def cluster_jackknife(
    statistic: Callable[[Mapping[Unit, int]], float | None],
    clusters: Sequence[Sequence[Unit]],
    confidence: float = 0.95,
    limits: tuple[float, float] = (-1.0, 1.0),
) -> Ends:
    """Interval of a figure that depends on counts of units, from leaving out one cluster after the other.

    See `jackknife_interval`, with clusters in the place of cases: t has G - 1 degrees of freedom for G clusters. The
    counts of a cluster are taken off and put back, and clusters with the same content are computed once, so 5,000
    pairs of ratings cost some 36 figures.

    Assumptions: independent clusters, none of which changes the figure much; units within one may depend on each
    other. Rough below some 20 clusters.

    Args:
        statistic: counts of units -> the figure, None where it is undefined. It must not keep the counts.
        clusters: the units of each cluster; for independent units, one unit in each.
        confidence: coverage aimed at, in (0, 1).
        limits: smallest and largest value possible; may be infinite.

    Returns:
        Value, lower end, upper end. The value is None where the figure is undefined; the ends are None with it, for
        fewer than two clusters, where the figure is undefined without one of them, and where none changes it.

    Raises:
        ValueError: confidence is outside (0, 1).

    Source: Tukey 1958, "Bias and Confidence in Not-quite Large Samples"; for agreement: Fleiss and Davies 1982,
    "Jackknifing Functions of Multinomial Frequencies, with an Application to a Measure of Concordance".
    """
    counted = [Counter(cluster) for cluster in clusters if cluster]
    counts: Counter[Unit] = Counter()
    for cluster in counted:
        counts.update(cluster)
    value = statistic(counts)
    if value is None or len(counted) < 2:
        return value, None, None
    without_one: Counter[float] = Counter()
    for content, n_clusters in Counter(frozenset(cluster.items()) for cluster in counted).items():
        for unit, count in content:
            counts[unit] -= count
            if not counts[unit]:
                del counts[unit]
        left = statistic(counts)
        if left is None:
            return value, None, None
        without_one[left] += n_clusters
        counts.update(dict(content))
    ends = jackknife_interval(value, without_one, len(counted), limits, confidence)
    return (value, None, None) if ends is None else (value, *ends)


def quadratic_weighted_kappa_estimate(
    a: Sequence[int], b: Sequence[int], clusters: Sequence[Hashable] | None = None, confidence: float = 0.95
) -> Ends:
    """`quadratic_weighted_kappa` with its cluster jackknife interval.

    Args:
        a: ratings of the first rater, whole numbers, one for each unit.
        b: ratings of the second rater, in the same order.
        clusters: the cluster of each unit, in the same order; None for independent units.
        confidence: coverage aimed at, in (0, 1).

    Returns:
        Value in [-1, 1], lower end, upper end; None as in `cluster_jackknife`.

    Raises:
        ValueError: lengths differ, or confidence is outside (0, 1).

    Source: as `quadratic_weighted_kappa` and `cluster_jackknife`.
    """
    pairs = list(zip(a, b, strict=True))
    return cluster_jackknife(quadratic_weighted_kappa_of, grouped(pairs, clusters), confidence)


def gwet_ac2_estimate(
    ratings: Sequence[Sequence[int | None]],
    low: int,
    high: int,
    clusters: Sequence[Hashable] | None = None,
    confidence: float = 0.95,
) -> Ends:
    """`gwet_ac2` with its cluster jackknife interval.

    Args:
        ratings: one sequence for each unit with one rating for each rater, None where there is none.
        low: lowest rating of the scale.
        high: highest rating of the scale, above low.
        clusters: the cluster of each unit, in the same order; None for independent units.
        confidence: coverage aimed at, in (0, 1).

    Returns:
        Value at most 1, lower end, upper end; None as in `cluster_jackknife`.

    Raises:
        ValueError: lengths differ, a rating is outside [low, high], or confidence is outside (0, 1).

    Source: as `gwet_ac2` and `cluster_jackknife`.
    """

    def figure(counts: Mapping[tuple[int | None, ...], int]) -> float | None:
        return gwet_ac2_of(counts, low, high)

    return cluster_jackknife(figure, grouped([tuple(unit) for unit in ratings], clusters), confidence)


def krippendorff_alpha_ordinal_estimate(
    ratings: Sequence[Sequence[int | None]], clusters: Sequence[Hashable] | None = None, confidence: float = 0.95
) -> Ends:
    """`krippendorff_alpha_ordinal` with its cluster jackknife interval.

    Args:
        ratings: one sequence for each unit with one rating for each rater, None where there is none.
        clusters: the cluster of each unit, in the same order; None for independent units.
        confidence: coverage aimed at, in (0, 1).

    Returns:
        Value at most 1, lower end, upper end; None as in `cluster_jackknife`.

    Raises:
        ValueError: lengths differ, or confidence is outside (0, 1).

    Source: as `krippendorff_alpha_ordinal` and `cluster_jackknife`.
    """
    units = [tuple(unit) for unit in ratings]
    return cluster_jackknife(krippendorff_alpha_ordinal_of, grouped(units, clusters), confidence)


def grouped(units: Sequence[Unit], clusters: Sequence[Hashable] | None) -> list[list[Unit]]:
    """Units by cluster, as `cluster_jackknife` takes them.

    Args:
        units: anything, one for each unit.
        clusters: the cluster of each unit, in the same order; None where each unit stands for itself.

    Returns:
        The units of each cluster, in the order in which clusters first appear.

    Raises:
        ValueError: the two differ in length.

    Source: in-house.
    """
    if clusters is None:
        return [[unit] for unit in units]
    groups: dict[Hashable, list[Unit]] = {}
    for unit, cluster in zip(units, clusters, strict=True):
        groups.setdefault(cluster, []).append(unit)
    return list(groups.values())
