"""Means and proportions over cases that come in clusters, such as the questions about one document.

Cases of one cluster tend to succeed or fail together, so that they say less than as many independent ones. What is
drawn at random is the clusters, and figures over cases are ratios of sums over clusters.
"""

import math
from collections import defaultdict
from collections.abc import Hashable, Sequence
from dataclasses import dataclass

from judgekit.stats.bootstrap import Interval, Limits, Resampling, Row, bootstrap_pooled
from judgekit.stats.distributions import UPPER, Z, student_t_quantile
from judgekit.stats.means import mean
from judgekit.stats.proportions import wilson_interval


@dataclass(frozen=True)
class ClusteredMean:
    """A mean with a standard error that allows for cases of one cluster being alike."""

    value: float | None
    """The mean; None for no cases."""
    standard_error: float | None
    """At least 0.0; None for fewer than two clusters."""
    low: float | None
    """Lower end; None with the standard error, and if it is 0."""
    high: float | None
    n: int
    """Number of cases."""
    n_clusters: int
    """Number of clusters; the number of cases where they stand for themselves."""


def clustered_mean(values: Sequence[float], clusters: Sequence[Hashable] | None = None) -> ClusteredMean:
    """Mean of all cases with Student's 95% interval over clusters.

    `se^2 = G / (G - 1) sum_g (sum_{i in g} (v_i - mean))^2 / n^2` with G clusters, t with G - 1 degrees of freedom.
    With one case in each cluster it is Student's interval of the mean.

    Assumptions: independent clusters; cases of one may be alike in any way. Too narrow below some 15 clusters, or if
    one cluster holds most of the cases.

    Args:
        values: finite numbers, one for each case.
        clusters: the cluster of each case, in the same order; None for independent cases.

    Returns:
        The mean with its error. No ends if the error is 0: equal values say nothing about their spread.

    Raises:
        ValueError: lengths differ, or a value is not finite.

    Source: Liang and Zeger 1986, "Longitudinal Data Analysis Using Generalized Linear Models", for the mean alone;
    Miller 2024, "Adding Error Bars to Evals".
    """
    n = len(values)
    names: Sequence[Hashable] = range(n) if clusters is None else clusters
    parts: defaultdict[Hashable, list[float]] = defaultdict(list)
    for value, name in zip(values, names, strict=True):
        parts[name].append(value)
    centre, n_clusters = mean(values), len(parts)
    if centre is None or n_clusters < 2:
        return ClusteredMean(centre, None, None, None, n, n_clusters)
    squares = math.fsum(math.fsum(value - centre for value in part) ** 2 for part in parts.values())
    error = math.sqrt(squares * n_clusters / (n_clusters - 1)) / n
    if error <= 1e-12 * max(map(abs, values)):
        return ClusteredMean(centre, 0.0, None, None, n, n_clusters)
    half = student_t_quantile(UPPER, n_clusters - 1) * error
    return ClusteredMean(centre, error, centre - half, centre + half, n, n_clusters)


def cluster_sums(rows: Sequence[Row], clusters: Sequence[int]) -> list[Row]:
    """Sums of the rows of each cluster, and behind them its number of cases; one row for each cluster, ascending.

    Args:
        rows: numbers of each case, all rows of one length.
        clusters: number of the case's cluster, in the same order.

    Returns:
        Exactly rounded sums, so that the order of cases cannot change them; empty for no cases.

    Raises:
        ValueError: the two differ in length.
    """
    members: defaultdict[int, list[Row]] = defaultdict(list)
    for row, cluster in zip(rows, clusters, strict=True):
        members[cluster].append(row)
    return sorted((*map(math.fsum, zip(*own, strict=True)), float(len(own))) for own in members.values())


def clustered_bootstrap_mean(
    values: Sequence[float], clusters: Sequence[int], limits: Limits, resampling: Resampling
) -> Interval:
    """Bootstrap interval of a mean over cases, whose clusters are resampled; see `bootstrap_pooled`.

    The mean is `sum of the clusters' sums / sum of their sizes`, so that clusters of unequal size are drawn rightly.

    Args:
        values: one finite number for each case.
        clusters: number of the case's cluster, in the same order.
        limits: smallest and largest value possible.
        resampling: the seed, and what the units are.

    Returns:
        The ends; None for fewer than two clusters, and if all clusters have one and the same mean.

    Source: Davison and Hinkley 1997, "Bootstrap Methods and their Application", section 3.8; as for
    `bootstrap_pooled`.
    """
    return bootstrap_pooled(cluster_sums([(value,) for value in values], clusters), _ratio, limits, resampling)


def _ratio(total: float, size: float) -> float | None:
    return total / size if size else None


def clustered_wilson(flags: Sequence[bool], clusters: Sequence[int]) -> Interval:
    """Wilson's 95% interval of a proportion over clustered cases, with the number of cases that they are worth.

    With s_g of m_g cases of cluster g successes, G clusters, p = sum s / n and
    `v = G / (G - 1) sum (s_g - p m_g)^2 / n^2`, the design effect is `v / (p (1 - p) / n)`, at least 1. Wilson's
    interval is taken of p with `n* = n / design effect * (z / t)^2` cases, z the normal and t Student's quantile with
    G - 1 degrees of freedom. If all cases are equal v says nothing; then n* is G: as if those of a cluster could
    not differ.

    Assumptions: independent clusters. Unlike a bootstrap of the clusters it never has zero width.

    Args:
        flags: for each case whether it is a success.
        clusters: number of the case's cluster, in the same order.

    Returns:
        The ends in [0, 1], the proportion between them; None for fewer than two clusters.

    Source: Korn and Graubard 1998, "Confidence Intervals for Proportions with Small Expected Number of Positive
    Counts Estimated from Survey Data" (n*); with Wilson's interval: Franco, Little, Louis and Slud 2019, "Comparative
    Study of Confidence Intervals for Proportions in Complex Sample Surveys".
    """
    rows = cluster_sums([(float(flag),) for flag in flags], clusters)
    n_clusters = len(rows)
    if n_clusters < 2:
        return Interval(None, None, "no interval: fewer than 2 clusters")
    n = math.fsum(size for _, size in rows)
    p = math.fsum(successes for successes, _ in rows) / n
    if p in (0.0, 1.0):
        worth, how = float(n_clusters), f"wilson 95% of {n_clusters} clusters, all cases equal"
    else:
        squares = math.fsum((successes - p * size) ** 2 for successes, size in rows)
        variance = n_clusters / (n_clusters - 1) * squares / (n * n)
        effect = max(1.0, variance / (p * (1.0 - p) / n))
        worth = n / effect * (Z / student_t_quantile(UPPER, n_clusters - 1)) ** 2
        how = f"wilson 95%, design effect {effect:.2f}, {n_clusters} clusters"
    low, high = wilson_interval(p * worth, worth) or (None, None)
    return Interval(low, high, how)
