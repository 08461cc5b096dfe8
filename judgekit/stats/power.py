"""How many pairs or labels it takes: to find a difference, to pass a margin, to know a proportion."""

import math
from collections import Counter
from collections.abc import Callable, Sequence
from statistics import NormalDist

from judgekit.stats.distributions import UPPER, Z, regularised_beta, student_t_quantile
from judgekit.stats.means import jackknife_variance, standard_deviation
from judgekit.stats.paired import minimum_detectable_effect, paired_proportion_interval
from judgekit.stats.proportions import wilson_interval

MOST = 10_000_000
"""More cases than this are not planned."""

_MOST_EXACT = 20_000
"""Pairs up to which the power of a rule for 0/1 scores is summed; the normal formula stands beyond."""

_TAIL = 7.0
"""Standard deviations from its mean beyond which a binomial count is left out: less than 1e-11."""

Rule = Callable[[int, int], bool]
"""Whether a test of so many pairs that fell and rose finds what it looks for; more that rose never undo it."""


def pairs_for_mean(sd: float, difference: float, power: float) -> int | None:
    """How many pairs find a mean difference of this size: the smallest n whose detectable effect is not larger.

    As many let a run pass a margin of that size if nothing changed: the whole 95% interval is then within it.

    Args:
        sd: standard deviation of the paired differences, at least 0.
        difference: mean difference to be found, above 0, in units of the score.
        power: chance of finding it, in (0.5, 1).

    Returns:
        At least 2. None for sd = 0, which says nothing about the spread, and beyond `MOST`.

    Raises:
        ValueError: sd, difference or power out of range.

    Source: as `minimum_detectable_effect`.
    """
    if difference <= 0:
        raise ValueError(f"a difference to be found is above 0, not {difference}")

    def finds(n: int) -> bool:
        effect = minimum_detectable_effect(sd, n, power)
        return effect is not None and effect <= difference

    return None if sd == 0 else _first(2, finds)


def pairs_for_rate(down: float, up: float, power: float) -> int | None:
    """How many pairs McNemar's exact test needs to find that more 0/1 scores rise than fall, at 0.05.

    Args:
        down: share of pairs that fall, at least 0.
        up: share of pairs that rise, above `down`; both together at most 1.
        power: chance of finding it, in (0.5, 1).

    Returns:
        From this number on the power is reached, but for the saw teeth of an exact test. None beyond `MOST`.

    Raises:
        ValueError: a share or power out of range.

    Source: Connor 1987, "Sample Size for Testing Differences in Proportions for the Paired-sample Design", for where
    to begin; the power is summed over all outcomes.
    """
    if not 0 <= down < up or down + up > 1:
        raise ValueError(f"shares {down} that fall and {up} that rise leave nothing to find")
    share, difference = down + up, up - down
    spread = Z * math.sqrt(share) + NormalDist().inv_cdf(power) * math.sqrt(max(0.0, share - difference**2))
    start = (spread / difference) ** 2
    # McNemar's exact test, two-sided: where more rise, p is twice the tail of the coin.
    return _pairs_for_rule(
        down, up, power, start, lambda b, c, _: c > b and 2 * _upper_tail(c, b + c, 0.5) <= 0.05 * (1 + 1e-12)
    )


def pairs_for_rate_margin(share: float, margin: float, power: float) -> int | None:
    """How many pairs of 0/1 scores let a run pass a margin if nothing changed, by Bonett and Price's interval.

    Args:
        share: share of pairs that differ, half of them each way, in (0, 1].
        margin: how much lower the second rate may be, above 0.
        power: chance of passing, in (0.5, 1).

    Returns:
        As `pairs_for_rate`.

    Raises:
        ValueError: a share, margin or power out of range.

    Source: as `paired_proportion_interval`.
    """
    if not 0 < share <= 1 or margin <= 0:
        raise ValueError(f"a share that differs is in (0, 1] and a margin above 0, not {share} and {margin}")
    start = share * ((Z + NormalDist().inv_cdf(power)) / margin) ** 2
    return _pairs_for_rule(
        share / 2, share / 2, power, start, lambda b, c, n: paired_proportion_interval(b, c, n)[0] >= -margin
    )


def paired_rule_power(down: float, up: float, n: int, rule: Rule) -> float:
    """Chance that a rule about pairs of 0/1 scores holds: the sum over all counts of pairs that fell and rose.

    The number that differ is binomial, and of these the number that rose is. Counts further than 7 standard deviations
    out are left out.

    Args:
        down: share of pairs that fall.
        up: share of pairs that rise; both together in [0, 1].
        n: number of pairs.
        rule: of (fell, rose); if it holds, it holds with more that rose and fewer that fell.

    Returns:
        In [0, 1].

    Source: in-house; Suissa and Shuster 1991, "The 2 x 2 Matched-pairs Trial: Exact Unconditional Design and Analysis".
    """
    share = down + up
    if share == 0:
        return float(rule(0, 0))
    half = _TAIL * math.sqrt(n * share * (1 - share)) + 1
    low, high = max(0, math.floor(n * share - half)), min(n, math.ceil(n * share + half))
    total = 0.0
    for differing in range(low, high + 1):
        least = _least_that_rise(differing, rule)
        if least is not None:
            tail = 1.0 if least == 0 else _upper_tail(least, differing, up / share)
            total += _binomial(differing, n, share) * tail
    return min(1.0, total)


def _least_that_rise(differing: int, rule: Rule) -> int | None:
    """Fewest of the differing pairs that must have risen for a rule to hold; None if it never does."""
    if not rule(0, differing):
        return None
    low, high = -1, differing
    while high - low > 1:
        middle = (low + high) // 2
        if rule(differing - middle, middle):
            high = middle
        else:
            low = middle
    return high


def _binomial(k: int, n: int, p: float) -> float:
    if p == 1.0:
        return float(k == n)
    log = math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1)
    return math.exp(log + (k * math.log(p) if k else 0.0) + (n - k) * math.log1p(-p))


def _upper_tail(k: int, n: int, p: float) -> float:
    """`P(X >= k)`, X binomial, for k from 1."""
    return 1.0 if p == 1.0 else regularised_beta(k, n - k + 1, p)


def _pairs_for_rule(
    down: float, up: float, power: float, start: float, rule: Callable[[int, int, int], bool]
) -> int | None:
    """The number that a formula gives, raised to where the summed power is reached at it and somewhat above."""
    if not 0.5 < power < 1:
        raise ValueError(f"a chance of finding something is between 0.5 and 1, not {power}")
    n = max(2, math.ceil(start))
    if n > MOST:
        return None

    def reaches(pairs: int) -> bool:
        return paired_rule_power(down, up, pairs, lambda b, c: rule(b, c, pairs)) >= power

    while n <= _MOST_EXACT and not reaches(n):
        n += max(1, n // 100)
    return n


def labels_for_proportion(expected: float, within: float) -> int | None:
    """How many labels know a proportion within plus or minus `within`: half the width of Wilson's interval.

    Args:
        expected: the proportion that will be found, in [0, 1]; 0.5 asks for most.
        within: half width, in (0, 0.5).

    Returns:
        At least 1; None beyond `MOST`.

    Raises:
        ValueError: one out of range.

    Source: as `wilson_interval`.
    """
    if not 0 <= expected <= 1 or not 0 < within < 0.5:
        raise ValueError(f"a proportion is in [0, 1] and a half width in (0, 0.5), not {expected} and {within}")

    def knows(n: int) -> bool:
        low, high = wilson_interval(expected * n, n) or (0.0, 1.0)
        return (high - low) / 2 <= within

    return _first(1, knows)


def sd_interval(values: Sequence[float]) -> tuple[float, float] | None:
    """A 95% interval of a standard deviation that does not rest on normal values: jackknife of its logarithm.

    Args:
        values: finite numbers, such as paired differences.

    Returns:
        Lower and upper end; None for fewer than three values, without spread, and if one value makes all of it.

    Source: Miller 1968, "Jackknifing Variances".
    """
    sd, n = standard_deviation(values), len(values)
    if sd is None or n < 3 or sd == 0:
        return None
    centre = math.fsum(values) / n
    squares = [(value - centre) ** 2 for value in values]
    total = math.fsum(squares)
    # Leaving one out takes n / (n - 1) of its square from the sum.
    left = [(total - square * n / (n - 1)) / (n - 2) for square in squares]
    if min(left) <= 1e-12 * sd**2:
        return None
    half = student_t_quantile(UPPER, n - 1) * math.sqrt(
        jackknife_variance(Counter(math.log(item) / 2 for item in left), n)
    )
    return sd * math.exp(-half), sd * math.exp(half)


def _first(least: int, holds: Callable[[int], bool]) -> int | None:
    """The smallest number from `least` on for which a condition holds that goes on to hold; None beyond `MOST`."""
    low, high = least - 1, least
    while not holds(high):
        low, high = high, 2 * high
        if high > 2 * MOST:
            return None
    while high - low > 1:
        middle = (low + high) // 2
        if holds(middle):
            high = middle
        else:
            low = middle
    return high if high <= MOST else None
