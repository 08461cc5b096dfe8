"""Whether two means differ, from their summaries alone."""

import math

from judgekit.stats.distributions import regularised_beta


def welch_p(mean_a: float, sd_a: float, n_a: int, mean_b: float, sd_b: float, n_b: int) -> float | None:
    """Two-sided p value of Welch's t test from means, standard deviations and counts.

    `t = (mean_a - mean_b) / sqrt(sd_a^2 / n_a + sd_b^2 / n_b)` with Welch-Satterthwaite degrees of freedom.

    Assumptions: two independent samples of more than a few values each; they may differ in spread.

    Args:
        mean_a: mean of the first sample.
        sd_a: its standard deviation with n - 1, at least 0.
        n_a: its size.
        mean_b: mean of the second sample.
        sd_b: its standard deviation.
        n_b: its size.

    Returns:
        0 to 1; None where a sample has fewer than two values. Without any spread: 1.0 where the means are the same,
        0.0 where they are not.

    Raises:
        ValueError: a standard deviation below 0.

    Source: Welch 1947, "The Generalization of 'Student's' Problem when Several Different Population Variances are
    Involved".
    """
    if sd_a < 0.0 or sd_b < 0.0:
        raise ValueError(f"a standard deviation is at least 0, not {min(sd_a, sd_b)}")
    if n_a < 2 or n_b < 2:
        return None
    part_a, part_b = sd_a * sd_a / n_a, sd_b * sd_b / n_b
    variance = part_a + part_b
    gap = mean_a - mean_b
    if variance == 0.0:
        return 1.0 if gap == 0.0 else 0.0
    freedom = variance**2 / (part_a**2 / (n_a - 1) + part_b**2 / (n_b - 1))
    t_squared = gap * gap / variance
    return regularised_beta(freedom / 2.0, 0.5, freedom / (freedom + t_squared)) if math.isfinite(t_squared) else 0.0
