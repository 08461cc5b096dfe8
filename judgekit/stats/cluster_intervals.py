"""Means and proportions over cases that come in clusters, such as the questions about one document.

Cases of one cluster tend to succeed or fail together, so that they say less than as many independent ones. What is
drawn at random is the clusters, and figures over cases are ratios of sums over clusters.
"""

import math
from collections.abc import Sequence

from judgekit.stats.bootstrap import Interval, Limits, Resampling, Row, bootstrap_pooled
from judgekit.stats.distributions import normal_quantile, student_t_quantile
from judgekit.stats.proportions import wilson_interval


def cluster_sums(rows: Sequence[Row], clusters: Sequence[int]) -> list[Row]:
    """Sums of the rows of each cluster, and behind them its number of cases; one row for each cluster, ascending.

    Args:
        rows: numbers of each case, all rows of one length.
        clusters: number of the case's cluster, in the same order.

    Returns:
        Exactly rounded sums, so that the order of cases cannot change them; empty for no cases.

    Raises:
        ValueError: the two differ in length.

    Source: in-house.
    """
    members: dict[int, list[Row]] = {}
    for row, cluster in zip(rows, clusters, strict=True):
        members.setdefault(cluster, []).append(row)
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
        resampling: seed and confidence.

    Returns:
        The ends; None for fewer than two clusters, and where all clusters have one and the same mean.

    Source: Davison and Hinkley 1997, "Bootstrap Methods and their Application", section 3.8; as for
    `bootstrap_pooled`.
    """
    rows = cluster_sums([(value,) for value in values], clusters)
    return bootstrap_pooled(rows, ratio, limits, resampling)


def ratio(total: float, size: float) -> float | None:
    """`total / size`; None for a size of 0."""
    return total / size if size else None


def clustered_wilson(flags: Sequence[bool], clusters: Sequence[int], confidence: float = 0.95) -> Interval:
    """Wilson's interval of a proportion over clustered cases, with the number of cases that they are worth.

    With s_g of m_g cases of cluster g successes, G clusters, p = sum s / n and
    `v = G / (G - 1) sum (s_g - p m_g)^2 / n^2`, the design effect is `v / (p (1 - p) / n)`, at least 1. Wilson's
    interval is taken of p with `n* = n / design effect * (z / t)^2` cases, z the normal and t Student's quantile with
    G - 1 degrees of freedom. Where all cases are equal v says nothing; then n* is G: as if those of a cluster could
    not differ.

    Assumptions: independent clusters. Unlike a bootstrap of the clusters it never has zero width.

    Args:
        flags: for each case whether it is a success.
        clusters: number of the case's cluster, in the same order.
        confidence: coverage aimed at, in (0, 1).

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
    name = f"wilson {confidence:.0%}"
    if p in (0.0, 1.0):
        ends = wilson_interval(p * n_clusters, n_clusters, confidence)
        return _interval(ends, f"{name} of {n_clusters} clusters, all cases equal")
    squares = math.fsum((successes - p * size) ** 2 for successes, size in rows)
    variance = n_clusters / (n_clusters - 1) * squares / (n * n)
    effect = max(1.0, variance / (p * (1.0 - p) / n))
    tail = 0.5 + 0.5 * confidence
    worth = n / effect * (normal_quantile(tail) / student_t_quantile(tail, n_clusters - 1)) ** 2
    ends = wilson_interval(p * worth, worth, confidence)
    return _interval(ends, f"{name}, design effect {effect:.2f}, {n_clusters} clusters")


def _interval(ends: tuple[float, float] | None, method: str) -> Interval:
    return Interval(None, None, "no interval: no cases") if ends is None else Interval(*ends, method)
