"""How good probabilities are, held against what people say: AUC, Brier score, calibration error, and a threshold."""

import math
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace

from judgekit.stats.clusters import ClusteredMean, cluster_sums, clustered_mean
from judgekit.stats.distributions import UPPER, student_t_quantile
from judgekit.stats.means import pooled_estimate

N_BINS = 10
"""Bins of equal width in which probability and share are compared."""


def area_under_curve(
    scores: Sequence[float], positive: Sequence[bool], clusters: Sequence[Hashable] | None = None
) -> ClusteredMean:
    """Area under the ROC curve: how likely a positive case has a higher score than a negative one.

    `mean over all pairs of a positive and a negative case of (1 if its score is higher, 1/2 if equal, else 0)`. With
    `d_i` the share of the other kind's cases that case i is on the right side of, less the area, over the number of its
    own kind, `se^2 = G / (G - 1) sum_g (sum_{i in g} d_i)^2` over G clusters. The interval is
    `logit(area) -+ t se / (area (1 - area))`, t with G - 1 degrees of freedom, turned back, so that it stays in [0, 1].

    Assumptions: independent clusters; cases of one may be alike in any way. Rough below some ten cases of either kind.

    Args:
        scores: finite numbers, one for each case, higher for what is more likely positive.
        positive: whether people call the case positive, in the same order.
        clusters: the cluster of each case, in the same order; None for independent cases.

    Returns:
        Value in [0, 1]: 1 if every positive case has the higher score, 0.5 by chance. None without a case of either
        kind. No ends for fewer than two clusters, and where the area is 0 or 1 or shows no spread.

    Raises:
        ValueError: lengths differ, or a score is not finite.

    Source: DeLong, DeLong and Clarke-Pearson 1988, "Comparing the Areas under Two or More Correlated Receiver Operating
    Characteristic Curves"; clusters: Obuchowski 1997, "Nonparametric Analysis of Clustered ROC Curve Data"; ends:
    Pepe 2003, "The Statistical Evaluation of Medical Tests for Classification and Prediction", chapter 5.
    """
    if not all(map(math.isfinite, scores)):
        raise ValueError("an area is asked for over scores that are not all finite numbers")
    names: Sequence[Hashable] = range(len(scores)) if clusters is None else clusters
    rows = list(zip(scores, map(bool, positive), names, strict=True))
    n, n_clusters = len(rows), len(set(names))
    sides = {kind: sorted(score for score, is_positive, _ in rows if is_positive == kind) for kind in (True, False)}
    if not sides[True] or not sides[False]:
        return ClusteredMean(None, None, None, None, n, n_clusters)
    shares = [_share_below(score, sides[not kind], is_higher=kind) for score, kind, _ in rows]
    area = math.fsum(share for share, (_, kind, _) in zip(shares, rows, strict=True) if kind) / len(sides[True])
    parts: defaultdict[Hashable, list[float]] = defaultdict(list)
    for share, (_, kind, name) in zip(shares, rows, strict=True):
        parts[name].append((share - area) / len(sides[kind]))
    if n_clusters < 2:
        return ClusteredMean(area, None, None, None, n, n_clusters)
    squares = math.fsum(math.fsum(part) ** 2 for part in parts.values())
    error = math.sqrt(squares * n_clusters / (n_clusters - 1))
    if error <= 1e-12 or not 0.0 < area < 1.0:
        return ClusteredMean(area, error, None, None, n, n_clusters)
    centre, half = math.log(area / (1.0 - area)), student_t_quantile(UPPER, n_clusters - 1) * error
    low, high = (1.0 / (1.0 + math.exp(-(centre + side * half / (area * (1.0 - area))))) for side in (-1.0, 1.0))
    return ClusteredMean(area, error, low, high, n, n_clusters)


def _share_below(score: float, others: Sequence[float], *, is_higher: bool) -> float:
    """The share of the other kind's cases that a case is on the right side of; equal ones count half."""
    n_below, n_up_to = bisect_left(others, score), bisect_right(others, score)
    share = (n_below + n_up_to) / (2 * len(others))
    return share if is_higher else 1.0 - share


def brier_score(
    probabilities: Sequence[float], positive: Sequence[bool], clusters: Sequence[Hashable] | None = None
) -> ClusteredMean:
    """Mean of `(p - y)^2`, with y 1 for a positive case and 0 for another; see `clustered_mean`.

    Args:
        probabilities: that each case is positive, in [0, 1].
        positive: whether people call it positive, in the same order.
        clusters: the cluster of each case, in the same order; None for independent cases.

    Returns:
        Value in [0, 1], lower is better; 0.25 for one that always says 0.5. The ends are clipped to it.

    Raises:
        ValueError: lengths differ.

    Source: Brier 1950, "Verification of Forecasts Expressed in Terms of Probability".
    """
    pairs = zip(probabilities, map(float, positive), strict=True)
    found = clustered_mean([(p - y) ** 2 for p, y in pairs], clusters)
    if found.low is None or found.high is None:
        return found
    return replace(found, low=max(0.0, found.low), high=min(1.0, found.high))


@dataclass(frozen=True)
class CalibrationError:
    """How far probabilities are from the shares that they should be."""

    value: float | None
    """At least 0.0, lower is better; None for no cases."""
    low: float | None
    """Lower end; None for fewer than two clusters, and if no case changes the value."""
    high: float | None
    n: int
    if_calibrated: float | None
    """What the value would be on average if every probability were right: few cases never come out at 0."""


def calibration_error(
    probabilities: Sequence[float], positive: Sequence[bool], clusters: Sequence[Hashable] | None = None
) -> CalibrationError:
    """Expected calibration error over ten bins of equal width, with a jackknife interval.

    `sum_b |sum_{i in b} (p_i - y_i)| / n`: how far the mean probability of each bin is from its share of positive
    cases, weighted by its cases. A bin holds its upper edge, and the first one also 0. If every probability were right,
    a bin's sum would be near normal with variance `v_b = sum p_i (1 - p_i)`, so that the mean is
    `sum_b sqrt(2 v_b / pi) / n`.

    Assumptions: independent clusters; the interval is rough where bins are near their share, since the sign of a bin
    may turn.

    Args:
        probabilities: that each case is positive, in [0, 1].
        positive: whether people call it positive, in the same order.
        clusters: the cluster of each case, in the same order; None for independent cases.

    Returns:
        Value in [0, 1] with ends that are clipped to it.

    Raises:
        ValueError: lengths differ, or a probability is outside [0, 1].

    Source: Naeini, Cooper and Hauskrecht 2015, "Obtaining Well Calibrated Probabilities Using Bayesian Binning";
    interval as `pooled_estimate`.
    """
    if not all(0.0 <= p <= 1.0 for p in probabilities):
        raise ValueError("a probability is outside 0 to 1")
    pairs = list(zip(probabilities, map(float, positive), strict=True))
    n = len(pairs)
    if n == 0:
        return CalibrationError(None, None, None, 0, None)
    bins = [max(0, math.ceil(p * N_BINS) - 1) for p, _ in pairs]
    rows = [
        tuple(p - y if own == place else 0.0 for place in range(N_BINS))
        for (p, y), own in zip(pairs, bins, strict=True)
    ]
    names: Sequence[Hashable] = range(n) if clusters is None else clusters
    numbers = {name: number for number, name in enumerate(dict.fromkeys(names))}
    sums = cluster_sums(rows, [numbers[name] for name in names])
    value, low, high = pooled_estimate(list(zip(*sums, strict=True)), _mean_distance, (0.0, 1.0))
    spread = [math.fsum(p * (1.0 - p) for (p, _), own in zip(pairs, bins, strict=True) if own == b) for b in set(bins)]
    expected = math.fsum(math.sqrt(2.0 * variance / math.pi) for variance in spread) / n
    return CalibrationError(value, low, high, n, expected)


def _mean_distance(*sums: float) -> float | None:
    *distances, n = sums
    return math.fsum(map(abs, distances)) / n if n else None


def best_threshold(probabilities: Sequence[float], positive: Sequence[bool]) -> float | None:
    """The threshold on a probability that separates positive cases best: with the largest Youden index.

    Thresholds in question are the probabilities themselves; a case passes from the threshold on. Of thresholds that
    separate equally well, the one nearest to 0.5 counts, and of those the lower one.

    Assumptions: the same cases choose the threshold and show what it is worth, so that new cases will do worse.

    Args:
        probabilities: that each case is positive.
        positive: whether people call it positive, in the same order.

    Returns:
        None without a case of either kind, and if no threshold is better than passing every case.

    Raises:
        ValueError: lengths differ.

    Source: Youden 1950, "Index for Rating Diagnostic Tests".
    """
    pairs = list(zip(probabilities, map(bool, positive), strict=True))
    sides = {kind: sorted(p for p, is_positive in pairs if is_positive == kind) for kind in (True, False)}
    if not sides[True] or not sides[False]:
        return None

    def youden(threshold: float) -> float:
        passed = [1.0 - bisect_left(sides[kind], threshold) / len(sides[kind]) for kind in (True, False)]
        return passed[0] - passed[1]

    best = max(sorted(set(probabilities)), key=lambda p: (round(youden(p), 12), -abs(p - 0.5)))
    return best if youden(best) > 1e-12 else None
