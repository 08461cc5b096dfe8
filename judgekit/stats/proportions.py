"""Intervals of proportions: of a rate, a pass share, the mean of a score that is only 0 or 1."""

import math

from judgekit.stats.distributions import normal_quantile


def wilson_interval(n_successes: int, n: int, confidence: float = 0.95) -> tuple[float, float] | None:
    """Wilson's score interval of a proportion p = n_successes / n.

    `(p + z^2/2n -+ z sqrt(p(1-p)/n + z^2/4n^2)) / (1 + z^2/n)` with z the normal quantile of (1 + confidence) / 2:
    all proportions that a score test would not reject.

    Assumptions: independent trials with one probability, drawn from a population much larger than n. Unlike the
    textbook interval it keeps its coverage for small n and never has zero width: 0 of 20 still reaches 0.16.

    Args:
        n_successes: number of trials that count, 0 to n.
        n: number of trials.
        confidence: coverage aimed at, in (0, 1).

    Returns:
        Lower and upper end in [0, 1], the proportion between them; the lower end is exactly 0.0 for no successes,
        the upper exactly 1.0 for nothing else. None for n = 0.

    Raises:
        ValueError: n_successes outside 0 to n, or confidence outside (0, 1).

    Source: Wilson 1927, "Probable Inference, the Law of Succession, and Statistical Inference"; recommended by
    Brown, Cai and DasGupta 2001, "Interval Estimation for a Binomial Proportion".
    """
    if not 0 <= n_successes <= n:
        raise ValueError(f"successes must be between 0 and the {n} trials, not {n_successes}")
    if not 0.0 < confidence < 1.0:
        raise ValueError(f"confidence is in (0, 1), not {confidence}")
    if n == 0:
        return None
    z2 = normal_quantile(0.5 + 0.5 * confidence) ** 2
    n_failures = n - n_successes
    centre = n_successes + 0.5 * z2
    half = math.sqrt(z2 * (n_successes * n_failures / n + 0.25 * z2))
    low = 0.0 if n_successes == 0 else max(0.0, (centre - half) / (n + z2))
    high = 1.0 if n_failures == 0 else min(1.0, (centre + half) / (n + z2))
    return low, high
