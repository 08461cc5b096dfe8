"""Two sets of scores on the same cases: tests and 95% intervals of their difference, many tests at once, and power."""

import hashlib
import math
from collections import Counter
from collections.abc import Sequence
from fractions import Fraction
from itertools import accumulate
from typing import NamedTuple

from judgekit.stats.distributions import UPPER, Z, student_t_quantile
from judgekit.stats.means import quantile_of_sorted

_MOST_STEPS = 30_000_000
"""Additions that an exact sign-flip test may take: about two seconds."""

_N_DRAWS = 10_000
"""Sign patterns that are drawn where an exact test would take longer."""

_FINEST_GRID = 5040
"""Largest denominator of differences that are taken as whole multiples of a fraction; ranks up to 10 need 2520."""

_OFTEN = 16
"""Differences of one size from which on counting signs is quicker than adding them."""

_ROUNDING = 1e-9

_POWER = 0.8
"""Chance of finding the difference that `minimum_detectable_effect` gives."""


def sign_flip_p(differences: Sequence[float], seed: int, most_steps: int = _MOST_STEPS) -> tuple[float | None, bool]:
    """Sign-flip permutation test that paired differences are as likely up as down: two-sided p of their mean.

    If the two scores of a case could be swapped, each difference is as likely negative as positive. p is the share of
    the 2^n sign patterns whose sum is at least as far from 0 as the one seen. Where the differences are whole
    multiples of one fraction, as of scores 0 to 5, the distribution of the sum is built up exactly, difference by
    difference; else 10,000 patterns are drawn and `p = (1 + hits) / (1 + 10,000)`.

    Assumptions: independent cases; under the hypothesis, differences symmetric around 0.

    Args:
        differences: second score minus first, one finite number for each case.
        seed: decides which patterns are drawn, where they are; the same seed gives the same p everywhere.
        most_steps: additions that the exact distribution may take; less where many tests are made at once.

    Returns:
        p in (0, 1], and whether it is exact. p is 1.0 if all differences are 0, None without any.

    Raises:
        ValueError: a difference is NaN or infinite.

    Source: Fisher 1935, "The Design of Experiments", section 21; Phipson and Smyth 2010, "Permutation P-values Should
    Never Be Zero"; the build-up as in Pagano and Tritchler 1983, "On Obtaining Permutation Distributions in Polynomial
    Time".
    """
    if not all(map(math.isfinite, differences)):
        raise ValueError("a sign-flip test is asked for over differences that are not all finite numbers")
    if not differences:
        return None, True
    moving = [difference for difference in differences if difference != 0]
    if not moving:
        return 1.0, True
    whole = _as_whole_numbers(moving)
    if whole is not None and sum(accumulate(sorted(map(abs, whole)))) <= most_steps:
        return _exact_p(whole), True
    return _drawn_p(moving, seed), False


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


def _drawn_p(differences: Sequence[float], seed: int) -> float:
    """Signs come in bits: of a size that comes often those turned up are counted, eight others have 256 sums."""
    often, tables = _prepared([abs(difference) for difference in differences])
    limit = abs(math.fsum(differences)) - _ROUNDING * math.fsum(map(abs, differences))
    width = len(tables) + sum(group.n_bytes for group in often)
    hits = 0
    for draw in range(_N_DRAWS):
        signs = hashlib.shake_256(f"sign flips {seed} {draw}".encode()).digest(width)
        total = sum(map(list.__getitem__, tables, signs))
        start = len(tables)
        for size, n, n_bytes, mask in often:
            n_up = (int.from_bytes(signs[start : start + n_bytes], "big") & mask).bit_count()
            total += size * (2 * n_up - n)
            start += n_bytes
        hits += abs(total) >= limit
    return (1 + hits) / (1 + _N_DRAWS)


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


def paired_proportion_interval(n_only_first: int, n_only_second: int, n: int) -> tuple[float, float]:
    """Bonett and Price's interval of the difference, second minus first, of two proportions on the same cases.

    With one pair added to each of the two kinds that differ, `p12 = (b + 1) / (n + 2)`, `p21 = (c + 1) / (n + 2)`, the
    interval is `p21 - p12 -+ z sqrt((p12 + p21 - (p21 - p12)^2) / (n + 2))`, clipped to [-1, 1].

    Assumptions: independent pairs. Unlike the textbook interval it keeps near its coverage for small n and never has
    zero width: 20 pairs that are all alike still leave room for a difference of 0.13.

    Args:
        n_only_first: pairs where only the first is 1, at least 0.
        n_only_second: pairs where only the second is 1, at least 0.
        n: number of pairs, at least 1.

    Returns:
        Lower and upper end in [-1, 1], `(n_only_second - n_only_first) / n` between them. Swapping the two flips the
        signs.

    Raises:
        ValueError: no pairs, a negative count, or more differing pairs than pairs.

    Source: Bonett and Price 2012, "Adjusted Wald Confidence Interval for a Difference of Binomial Proportions Based on
    Paired Data"; recommended by Fagerland, Lydersen and Laake 2014, "Recommended Tests and Confidence Intervals for
    Paired Binomial Proportions".
    """
    if min(n_only_first, n_only_second) < 0 or n < max(1, n_only_first + n_only_second):
        raise ValueError(f"{n_only_first} and {n_only_second} differing pairs do not fit {n} pairs")
    first, second = (n_only_first + 1) / (n + 2), (n_only_second + 1) / (n + 2)
    centre = (n_only_second - n_only_first) / (n + 2)
    half = Z * math.sqrt((first + second - centre * centre) / (n + 2))
    return max(-1.0, centre - half), min(1.0, centre + half)


def paired_quantile_interval(a: Sequence[float], b: Sequence[float], q: float) -> tuple[float, float] | None:
    """An interval for `quantile(b, q) - quantile(a, q)` of pairs.

    The standard error of each quantile comes from the width of its own interval between order statistics (ranks
    `n q -+ z sqrt(n q (1 - q))`); with r the correlation of "below its quantile" in a and in b,
    `variance = se_a^2 + se_b^2 - 2 r se_a se_b`, and the interval is the difference -+ z of its root.

    Assumptions: independent pairs, and enough of them that the ranks exist: some 75 for q = 0.95, 8 for the median.

    Args:
        a: finite numbers.
        b: finite numbers, one for each of `a`, in the same order.
        q: share of the values below, in (0, 1).

    Returns:
        Lower and upper end; None if there are too few pairs.

    Source: Woodruff 1952, "Confidence Intervals for Medians and Other Position Measures"; for pairs, Bonett and Price
    2020, "Interval estimation for linear functions of medians in within-subjects and mixed designs".
    """
    n = len(a)
    half = Z * math.sqrt(n * q * (1 - q))
    low, high = math.floor(n * q - half), math.ceil(n * q + half)
    if low < 1 or high > n:
        return None
    orders = sorted(a), sorted(b)
    errors = [(order[high - 1] - order[low - 1]) / (2 * Z) for order in orders]
    first, second = (quantile_of_sorted(order, q) for order in orders)
    below = sum(x <= first and y <= second for x, y in zip(a, b, strict=True)) / n
    correlation = max(-1.0, min(1.0, (below - q * q) / (q * (1 - q))))
    variance = errors[0] ** 2 + errors[1] ** 2 - 2 * correlation * errors[0] * errors[1]
    width = Z * math.sqrt(max(0.0, variance))
    difference = second - first
    return difference - width, difference + width


def holm(p_values: Sequence[float | None]) -> list[float | None]:
    """Holm's adjustment of p values of several tests: the chance of any false alarm stays below the level.

    With the m values sorted, the i-th becomes `max over j <= i of min(1, (m - j + 1) p_j)`.

    Assumptions: none on how the tests depend on each other.

    Args:
        p_values: one for each test, in [0, 1]; None if there was no test, which does not count in m.

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
        p_values: one for each test, in [0, 1]; None if there was no test, which does not count in m.

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


def minimum_detectable_effect(sd: float, n: int, power: float = _POWER) -> float | None:
    """Smallest mean difference that n pairs would find: `(t_{0.975} + t_power) sd / sqrt(n)`, n - 1 df.

    Assumptions: a two-sided Student test of the mean paired difference at 0.05; within 0.03 of the exact power from
    n = 10.

    Args:
        sd: standard deviation of the paired differences, at least 0.
        n: number of pairs.
        power: chance of finding it, in (0.5, 1).

    Returns:
        Above 0.0, in units of the score. None for fewer than two pairs, and for sd = 0: equal differences say nothing
        about their spread.

    Raises:
        ValueError: a negative or infinite sd, or another power.

    Source: Bloom 1995, "Minimum Detectable Effects: a Simple Way to Report the Statistical Power of Experimental
    Designs".
    """
    if not 0.0 <= sd < math.inf:
        raise ValueError(f"a standard deviation is at least 0 and finite, not {sd}")
    if not 0.5 < power < 1:
        raise ValueError(f"a chance of finding something is between 0.5 and 1, not {power}")
    if n < 2 or sd == 0:
        return None
    return (student_t_quantile(UPPER, n - 1) + student_t_quantile(power, n - 1)) * sd / math.sqrt(n)
