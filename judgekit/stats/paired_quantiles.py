"""The difference of two quantiles of paired values, such as the p95 of a latency before and after."""

import math
from collections.abc import Sequence
from statistics import NormalDist

from judgekit.stats.means import quantile_of_sorted


def paired_quantile_interval(
    a: Sequence[float], b: Sequence[float], q: float, confidence: float = 0.95
) -> tuple[float, float] | None:
    """An interval for `quantile(b, q) - quantile(a, q)` of pairs.

    The standard error of each quantile comes from the width of its own interval between order statistics (ranks
    `n q -+ z sqrt(n q (1 - q))`); with r the correlation of "below its quantile" in a and in b,
    `variance = se_a^2 + se_b^2 - 2 r se_a se_b`, and the interval is the difference -+ z of its root.

    Assumptions: independent pairs, and enough of them that the ranks exist: some 75 for q = 0.95, 8 for the median.

    Args:
        a: finite numbers.
        b: finite numbers, one for each of `a`, in the same order.
        q: share of the values below, in (0, 1).
        confidence: coverage aimed at, in (0, 1).

    Returns:
        Lower and upper end; None where there are too few pairs.

    Source: Woodruff 1952, "Confidence Intervals for Medians and Other Position Measures"; for pairs, Bonett and Price
    2020, "Interval estimation for linear functions of medians in within-subjects and mixed designs".
    """
    n = len(a)
    z = NormalDist().inv_cdf(0.5 + confidence / 2)
    half = z * math.sqrt(n * q * (1 - q))
    low, high = math.floor(n * q - half), math.ceil(n * q + half)
    if low < 1 or high > n:
        return None
    orders = sorted(a), sorted(b)
    errors = [(order[high - 1] - order[low - 1]) / (2 * z) for order in orders]
    first, second = (quantile_of_sorted(order, q) for order in orders)
    below = sum(x <= first and y <= second for x, y in zip(a, b, strict=True)) / n
    correlation = max(-1.0, min(1.0, (below - q * q) / (q * (1 - q))))
    variance = errors[0] ** 2 + errors[1] ** 2 - 2 * correlation * errors[0] * errors[1]
    width = z * math.sqrt(max(0.0, variance))
    difference = second - first
    return difference - width, difference + width
