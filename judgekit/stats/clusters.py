"""Means over cases that come in groups, such as the answers of several systems to one question."""

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass

from judgekit.stats.distributions import student_t_quantile
from judgekit.stats.means import mean


@dataclass(frozen=True)
class ClusteredMean:
    """A mean with a standard error that allows for cases of one cluster being alike."""

    value: float | None
    """The mean; None for no cases."""

    standard_error: float | None
    """At least 0.0; None for fewer than two clusters."""

    low: float | None
    """Lower end; None with the standard error, and where it is 0."""

    high: float | None
    """Upper end; None with the lower one."""

    n: int
    """Number of cases."""

    n_clusters: int
    """Number of clusters; the number of cases where they stand for themselves."""


def clustered_mean(
    values: Sequence[float], clusters: Sequence[Hashable] | None = None, confidence: float = 0.95
) -> ClusteredMean:
    """Mean of all cases with Student's interval over clusters.

    `se^2 = G / (G - 1) sum_g (sum_{i in g} (v_i - mean))^2 / n^2` with G clusters, t with G - 1 degrees of freedom.
    With one case in each cluster it is Student's interval of the mean.

    Assumptions: independent clusters; cases of one may be alike in any way. Too narrow below some 15 clusters, or where
    one cluster holds most of the cases.

    Args:
        values: finite numbers, one for each case.
        clusters: the cluster of each case, in the same order; None for independent cases.
        confidence: coverage aimed at, in (0, 1).

    Returns:
        The mean with its error. No ends where the error is 0: equal values say nothing about their spread.

    Raises:
        ValueError: lengths differ, a value is not finite, or confidence is outside (0, 1).

    Source: Liang and Zeger 1986, "Longitudinal Data Analysis Using Generalized Linear Models", for the mean alone;
    Miller 2024, "Adding Error Bars to Evals".
    """
    if not 0.0 < confidence < 1.0:
        raise ValueError(f"confidence is in (0, 1), not {confidence}")
    n = len(values)
    labels: Sequence[Hashable] = range(n) if clusters is None else clusters
    parts: dict[Hashable, list[float]] = {}
    for value, label in zip(values, labels, strict=True):
        parts.setdefault(label, []).append(value)
    centre, n_clusters = mean(values), len(parts)
    if centre is None or n_clusters < 2:
        return ClusteredMean(centre, None, None, None, n, n_clusters)
    squares = math.fsum(math.fsum(value - centre for value in part) ** 2 for part in parts.values())
    error = math.sqrt(squares * n_clusters / (n_clusters - 1)) / n
    if error <= 1e-12 * max(map(abs, values)):
        return ClusteredMean(centre, 0.0, None, None, n, n_clusters)
    half = student_t_quantile(0.5 + 0.5 * confidence, n_clusters - 1) * error
    return ClusteredMean(centre, error, centre - half, centre + half, n, n_clusters)
