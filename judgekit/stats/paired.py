"""Two sets of scores on the same cases: tests and intervals of their difference, many tests at once, and power."""

import hashlib
import math
from collections import Counter
from collections.abc import Sequence
from fractions import Fraction
from itertools import accumulate
from typing import NamedTuple

from judgekit.stats.distributions import student_t_quantile
from judgekit.stats.means import mean, mean_interval

_MOST_STEPS = 30_000_000
"""Additions that an exact sign-flip test may take: about two seconds."""

_FINEST_GRID = 5040
"""Largest denominator of differences that are taken as whole multiples of a fraction; ranks up to 10 need 2520."""

_OFTEN = 16
"""Differences of one size from which on counting signs is quicker than adding them."""

_ROUNDING = 1e-9
_MOST_PAIRS = 1_000_000_000


def sign_flip_p(
    differences: Sequence[float], seed: int, n_draws: int = 10_000, most_steps: int = _MOST_STEPS
) -> tuple[float, bool] | None:
    """Sign-flip permutation test that paired differences are as likely up as down: two-sided p of their mean.

    If the two scores of a case could be swapped, each difference is as likely negative as positive. p is the share of
    the 2^n sign patterns whose sum is at least as far from 0 as the one seen. Where the differences are whole
    multiples of one fraction, as of scores 0 to 5, the distribution of the sum is built up exactly, difference by
    difference; else patterns are drawn and `p = (1 + hits) / (1 + n_draws)`.

    Assumptions: independent cases; under the hypothesis, differences symmetric around 0.

    Args:
        differences: second score minus first, one finite number for each case.
        seed: decides which patterns are drawn, where they are; the same seed gives the same p everywhere.
        n_draws: number of patterns drawn where the exact distribution would take too long.
        most_steps: additions that the exact distribution may take; less where many tests are made at once.

    Returns:
        p in (0, 1], and whether it is exact. p = 1.0 where all differences are 0; None for no differences.

    Raises:
        ValueError: a difference is NaN or infinite, or n_draws below 1.

    Source: Fisher 1935, "The Design of Experiments", section 21; Phipson and Smyth 2010, "Permutation P-values Should
    Never Be Zero"; the build-up as in Pagano and Tritchler 1983, "On Obtaining Permutation Distributions in Polynomial
    Time".
    """
    if not all(map(math.isfinite, differences)):
        raise ValueError("a sign-flip test is asked for over differences that are not all finite numbers")
    if n_draws < 1:
        raise ValueError(f"number of draws is at least 1, not {n_draws}")
    if not differences:
        return None
    moving = [difference for difference in differences if difference != 0]
    if not moving:
        return 1.0, True
    whole = _as_whole_numbers(moving)
    if whole is not None and sum(accumulate(sorted(map(abs, whole)))) <= most_steps:
        return _exact_p(whole), True
    return _drawn_p(moving, seed, n_draws), False


def _as_whole_numbers(differences: Sequence[float]) -> list[int] | None:
    """The differences in units of the largest fraction that all of them are multiples of; None if there is none."""
    unit_below = 1
    fractions: dict[float, Fraction] = {}
    for difference in set(differences):
        near = Fraction(difference).limit_denominator(_FINEST_GRID)
        if abs(float(near) - difference) > _ROUNDING * abs(difference):
            return None
        fractions[difference] = near
        unit_below = math.lcm(unit_below, near.denominator)
        if unit_below > _FINEST_GRID:
            return None
    whole = {difference: int(near * unit_below) for difference, near in fractions.items()}
    unit = math.gcd(*whole.values())
    return [whole[difference] // unit for difference in differences]


def _exact_p(differences: Sequence[int]) -> float:
    """Through the sum of those differences that are turned up: the whole sum is twice that, less all of them."""
    sizes = sorted(map(abs, differences))
    chances = [1.0]
    for size in sizes:
        gap = [0.0] * size
        chances = [0.5 * (down + up) for down, up in zip(chances + gap, gap + chances, strict=True)]
    most = sum(sizes)
    seen = abs(sum(differences))
    tail = math.fsum(chances[(most + seen) // 2 :])  # most and seen are both even or both odd
    return min(1.0, max(2.0 * tail, math.ulp(0.0))) if seen else 1.0


def _drawn_p(differences: Sequence[float], seed: int, n_draws: int) -> float:
    """Signs come in bits: of a size that comes often those turned up are counted, eight others have 256 sums."""
    often, tables = _prepared([abs(difference) for difference in differences])
    limit = abs(math.fsum(differences)) - _ROUNDING * math.fsum(map(abs, differences))
    width = len(tables) + sum(group.n_bytes for group in often)
    hits = 0
    for draw in range(n_draws):
        signs = hashlib.shake_256(f"sign flips {seed} {draw}".encode()).digest(width)
        total = sum(map(list.__getitem__, tables, signs))
        start = len(tables)
        for size, n, n_bytes, mask in often:
            n_up = (int.from_bytes(signs[start : start + n_bytes], "big") & mask).bit_count()
            total += size * (2 * n_up - n)
            start += n_bytes
        hits += abs(total) >= limit
    return (1 + hits) / (1 + n_draws)


class _Often(NamedTuple):
    """Differences of one size, which comes often."""

    size: float
    n: int
    n_bytes: int
    mask: int


def _prepared(sizes: Sequence[float]) -> tuple[list[_Often], list[list[float]]]:
    """Sizes that come often, and the signed sums of the others in eights; the order of sizes does not matter."""
    counts = sorted(Counter(sizes).items())
    often = [_Often(size, n, (n + 7) // 8, (1 << n) - 1) for size, n in counts if n >= _OFTEN]
    rest = [size for size, n in counts if n < _OFTEN for _ in range(n)]
    return often, [_signed_sums(rest[start : start + 8]) for start in range(0, len(rest), 8)]


def _signed_sums(sizes: Sequence[float]) -> list[float]:
    sums = [0.0]
    for size in [*sizes, *[0.0] * (8 - len(sizes))]:
        sums = [total - size for total in sums] + [total + size for total in sums]
    return sums


def paired_interval(
    differences: Sequence[float], confidence: float = 0.95
) -> tuple[float | None, float | None, float | None]:
    """Mean paired difference with Student's interval, see `mean_interval`.

    Assumptions: independent cases, and a mean that is near normal.

    Args:
        differences: second score minus first, one finite number for each case.
        confidence: coverage aimed at, in (0, 1).

    Returns:
        Mean, lower end, upper end. The mean is None for no differences; the ends are None with it, for fewer than
        two differences and where all are the same, which says nothing about their spread.

    Raises:
        ValueError: a difference is NaN or infinite, or confidence outside (0, 1).

    Source: Student 1908, "The Probable Error of a Mean".
    """
    ends = mean_interval(differences, -math.inf, math.inf, confidence)
    return mean(differences), *(ends or (None, None))


def holm(p_values: Sequence[float | None]) -> list[float | None]:
    """Holm's adjustment of p values of several tests: the chance of any false alarm stays below the level.

    With the m values sorted, the i-th becomes `max over j <= i of min(1, (m - j + 1) p_j)`.

    Assumptions: none on how the tests depend on each other.

    Args:
        p_values: one for each test, in [0, 1]; None where there was no test, which does not count in m.

    Returns:
        Adjusted values in the same order, None for None; empty for no tests.

    Raises:
        ValueError: a value outside [0, 1].

    Source: Holm 1979, "A Simple Sequentially Rejective Multiple Test Procedure".
    """
    order = _sorted_tests(p_values)
    steps = [min(1.0, (len(order) - rank) * p) for rank, (p, _) in enumerate(order)]
    return _in_order(p_values, order, list(accumulate(steps, max)))


def benjamini_hochberg(p_values: Sequence[float | None]) -> list[float | None]:
    """Benjamini and Hochberg's adjustment of p values: the share of false ones among the alarms stays below the level.

    With the m values sorted, the i-th becomes `min over j >= i of min(1, m p_j / j)`.

    Assumptions: independent tests, or tests that depend on each other positively.

    Args:
        p_values: one for each test, in [0, 1]; None where there was no test, which does not count in m.

    Returns:
        Adjusted values in the same order, None for None; empty for no tests.

    Raises:
        ValueError: a value outside [0, 1].

    Source: Benjamini and Hochberg 1995, "Controlling the False Discovery Rate: a Practical and Powerful Approach to
    Multiple Testing".
    """
    order = _sorted_tests(p_values)
    steps = [min(1.0, max(p, len(order) * p / rank)) for rank, (p, _) in enumerate(order, start=1)]
    return _in_order(p_values, order, list(accumulate(reversed(steps), min))[::-1])


def _sorted_tests(p_values: Sequence[float | None]) -> list[tuple[float, int]]:
    for p in p_values:
        if p is not None and not 0.0 <= p <= 1.0:
            raise ValueError(f"a p value is in [0, 1], not {p}")
    return sorted((p, place) for place, p in enumerate(p_values) if p is not None)


def _in_order(
    p_values: Sequence[float | None], order: Sequence[tuple[float, int]], adjusted: Sequence[float]
) -> list[float | None]:
    result: list[float | None] = [None] * len(p_values)
    for (_, place), value in zip(order, adjusted, strict=True):
        result[place] = value
    return result


def standard_deviation(values: Sequence[float]) -> float | None:
    """Standard deviation with n - 1: `sqrt(sum((v - mean)^2) / (n - 1))`.

    Args:
        values: finite numbers, in any order.

    Returns:
        At least 0.0; None for fewer than two values.

    Raises:
        ValueError: a value is NaN or infinite.

    Source: standard.
    """
    centre = mean(values)
    if centre is None or len(values) < 2:
        return None
    return math.sqrt(math.fsum([(value - centre) ** 2 for value in values]) / (len(values) - 1))


def minimum_detectable_effect(sd: float, n: int, alpha: float = 0.05, power: float = 0.8) -> float | None:
    """Smallest mean difference that n pairs would find: `(t_{1 - alpha/2} + t_power) sd / sqrt(n)`, n - 1 df.

    Assumptions: a two-sided Student test of the mean paired difference; power within 0.03 of the exact one
        from n = 10.

    Args:
        sd: standard deviation of the paired differences, at least 0.
        n: number of pairs.
        alpha: level of the test, in (0, 1).
        power: chance of finding a difference of this size, in (0, 1), above alpha / 2.

    Returns:
        Above 0.0, in units of the score. None for fewer than two pairs, and for sd = 0: equal differences say nothing
        about their spread.

    Raises:
        ValueError: a negative or infinite sd, or alpha or power out of range.

    Source: Bloom 1995, "Minimum Detectable Effects: a Simple Way to Report the Statistical Power of Experimental
    Designs".
    """
    _check_power(sd, alpha, power)
    if n < 2 or sd == 0:
        return None
    return _multiplier(n, alpha, power) * sd / math.sqrt(n)


def n_for_difference(sd: float, effect: float, alpha: float = 0.05, power: float = 0.8) -> int | None:
    """How many pairs find a mean difference of this size: the smallest n whose detectable effect is not larger.

    Args:
        sd: standard deviation of the paired differences, at least 0.
        effect: mean difference to be found, in units of the score; the sign does not matter.
        alpha: level of the test, in (0, 1).
        power: chance of finding it, in (0, 1), above alpha / 2.

    Returns:
        At least 2. None for effect = 0, for sd = 0, and where more than a billion pairs are needed.

    Raises:
        ValueError: a negative or infinite sd, or alpha or power out of range.

    Source: as `minimum_detectable_effect`.
    """
    _check_power(sd, alpha, power)
    if sd == 0 or effect == 0:
        return None
    goal = abs(effect) / sd
    low, high = 1, 2
    while _multiplier(high, alpha, power) / math.sqrt(high) > goal:
        low, high = high, 2 * high
        if high > _MOST_PAIRS:
            return None
    while high - low > 1:
        middle = (low + high) // 2
        if _multiplier(middle, alpha, power) / math.sqrt(middle) > goal:
            low = middle
        else:
            high = middle
    return high


def _multiplier(n: int, alpha: float, power: float) -> float:
    return student_t_quantile(1.0 - 0.5 * alpha, n - 1) + student_t_quantile(power, n - 1)


def _check_power(sd: float, alpha: float, power: float) -> None:
    if not 0.0 <= sd < math.inf:
        raise ValueError(f"a standard deviation is at least 0 and finite, not {sd}")
    if not 0.0 < alpha < 1.0:
        raise ValueError(f"the level of a test is in (0, 1), not {alpha}")
    if not 0.5 * alpha < power < 1.0:
        raise ValueError(f"power is above half the level and below 1, not {power}")
