"""The interval of the difference of two paired proportions."""

import math

from judgekit.stats.distributions import normal_quantile


def paired_proportion_interval(
    n_only_first: int, n_only_second: int, n: int, confidence: float = 0.95
) -> tuple[float, float] | None:
    """Bonett and Price's interval of the difference, second minus first, of two proportions on the same cases.

    With one pair added to each of the two kinds that differ, `p12 = (b + 1) / (n + 2)`, `p21 = (c + 1) / (n + 2)`, the
    interval is `p21 - p12 -+ z sqrt((p12 + p21 - (p21 - p12)^2) / (n + 2))`, clipped to [-1, 1].

    Assumptions: independent pairs. Unlike the textbook interval it keeps near its coverage for small n and never has
    zero width: 20 pairs that are all alike still leave room for a difference of 0.13.

    Args:
        n_only_first: pairs where only the first is 1, at least 0.
        n_only_second: pairs where only the second is 1, at least 0.
        n: number of pairs.
        confidence: coverage aimed at, in (0, 1).

    Returns:
        Lower and upper end in [-1, 1]; from a confidence of 0.9, `(n_only_second - n_only_first) / n` is between them.
        Swapping the two flips the signs. None for n = 0.

    Raises:
        ValueError: a negative count, more differing pairs than pairs, or confidence outside (0, 1).

    Source: Bonett and Price 2012, "Adjusted Wald Confidence Interval for a Difference of Binomial Proportions Based on
    Paired Data"; recommended by Fagerland, Lydersen and Laake 2014, "Recommended Tests and Confidence Intervals for
    Paired Binomial Proportions".
    """
    if min(n_only_first, n_only_second) < 0 or n_only_first + n_only_second > n:
        raise ValueError(f"{n_only_first} and {n_only_second} differing pairs do not fit {n} pairs")
    if not 0.0 < confidence < 1.0:
        raise ValueError(f"confidence is in (0, 1), not {confidence}")
    if n == 0:
        return None
    first, second = (n_only_first + 1) / (n + 2), (n_only_second + 1) / (n + 2)
    centre = (n_only_second - n_only_first) / (n + 2)
    half = normal_quantile(0.5 + 0.5 * confidence) * math.sqrt((first + second - centre * centre) / (n + 2))
    return max(-1.0, centre - half), min(1.0, centre + half)
