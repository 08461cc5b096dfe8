"""95% intervals and exact tests of proportions: of a rate, a pass share, the mean of a score that is only 0 or 1."""

import math
from collections.abc import Callable
from dataclasses import dataclass

from judgekit.stats.distributions import UPPER, Z, beta_quantile

_JUST_ABOVE = 1.0 + 1e-9
"""A tail has to be larger than the limit by more than rounding; at the limit itself the test rejects."""


@dataclass(frozen=True)
class Rate:
    """A proportion with what it is a proportion of."""

    value: float | None
    """`k / n`, in [0, 1]; None for no trials."""
    low: float | None
    """Lower end of Wilson's interval; None for no trials."""
    high: float | None
    k: int
    """Number of trials that count."""
    n: int
    """Number of trials."""


def rate(n_successes: int, n: int) -> Rate:
    """A proportion with its counts and ends; arguments, errors and source as for `wilson_interval`."""
    low, high = wilson_interval(n_successes, n) or (None, None)
    return Rate(n_successes / n if n else None, low, high, n_successes, n)


def wilson_interval(n_successes: float, n: float) -> tuple[float, float] | None:
    """Wilson's score interval of a proportion p = n_successes / n.

    `(p + z^2/2n -+ z sqrt(p(1-p)/n + z^2/4n^2)) / (1 + z^2/n)` with z the normal quantile of 97.5%: all
    proportions that a score test would not reject.

    Assumptions: independent trials with one probability, drawn from a population much larger than n. Unlike the
    textbook interval it keeps its coverage for small n and never has zero width: 0 of 20 still reaches 0.16.

    Args:
        n_successes: number of trials that count, 0 to n.
        n: number of trials; an effective number need not be whole.

    Returns:
        Lower and upper end in [0, 1], the proportion between them; the lower end is exactly 0.0 for no successes,
        the upper exactly 1.0 for nothing else. None for n = 0.

    Raises:
        ValueError: n_successes outside 0 to n.

    Source: Wilson 1927, "Probable Inference, the Law of Succession, and Statistical Inference"; recommended by
    Brown, Cai and DasGupta 2001, "Interval Estimation for a Binomial Proportion".
    """
    _check(n_successes, n)
    if n == 0:
        return None
    z2 = Z**2
    n_failures = n - n_successes
    centre = n_successes + 0.5 * z2
    half = math.sqrt(z2 * (n_successes * n_failures / n + 0.25 * z2))
    low = 0.0 if n_successes == 0 else max(0.0, (centre - half) / (n + z2))
    high = 1.0 if n_failures == 0 else min(1.0, (centre + half) / (n + z2))
    return low, high


def clopper_pearson_interval(n_successes: int, n: int) -> tuple[float, float] | None:
    """Clopper and Pearson's exact interval of a proportion: all p that neither exact one-sided test rejects.

    The lower end is the 2.5% quantile of Beta(s, n - s + 1), the upper the 97.5% quantile of Beta(s + 1, n - s), with s
    successes.

    Assumptions: independent trials with one probability, drawn from a population much larger than n. Covers at
    least 95%, mostly more: use it where a promise has to hold, `wilson_interval` where it is to be right on average.

    Args:
        n_successes: number of trials that count, 0 to n.
        n: number of trials.

    Returns:
        Lower and upper end in [0, 1], the proportion between them; exactly 0.0 below no successes, exactly 1.0 above
        nothing else. None for n = 0.

    Raises:
        ValueError: n_successes outside 0 to n.

    Source: Clopper and Pearson 1934, "The Use of Confidence or Fiducial Limits Illustrated in the Case of the
    Binomial".
    """
    _check(n_successes, n)
    if n == 0:
        return None
    tail = 1.0 - UPPER
    n_failures = n - n_successes
    low = beta_quantile(tail, n_successes, n_failures + 1) if n_successes else 0.0
    high = 1.0 - beta_quantile(tail, n_failures, n_successes + 1) if n_failures else 1.0
    return low, high


def hypergeometric_interval(n_successes: int, n_sampled: int, n_population: int) -> tuple[float, float] | None:
    """Exact interval of the proportion in a finite population, from a simple random sample without replacement.

    With K successes in the population, the sample has a hypergeometric number of them. The interval goes from the
    smallest to the largest K / N that neither exact one-sided test rejects: `P(X >= s | K)` and `P(X <= s | K)` both
    above 2.5%.

    Assumptions: every sample of this size was equally likely. The interval is about these N units, not about further
    ones like them; a full count has zero width, and rightly.

    Args:
        n_successes: number of sampled units that count, 0 to n_sampled.
        n_sampled: number of units in the sample, 0 to n_population.
        n_population: number of units sampled from.

    Returns:
        Lower and upper end in [0, 1], both a whole number of units over n_population. None for an empty sample.

    Raises:
        ValueError: n_successes outside 0 to n_sampled, or n_sampled above n_population.

    Source: Buonaccorsi 1987, "A Note on Confidence Intervals for Proportions in Finite Populations"; Wright 1991,
    "Exact Confidence Bounds when Sampling from Small Finite Universes".
    """
    _check(n_successes, n_sampled)
    if n_sampled > n_population:
        raise ValueError(f"a sample of {n_sampled} cannot come from a population of {n_population}")
    if n_sampled == 0:
        return None
    tail = (1.0 - UPPER) * _JUST_ABOVE
    n_failures = n_sampled - n_successes
    fewest, most = n_successes, n_population - n_failures
    low = _first(fewest, most, lambda k: _upper_tail(n_successes, n_sampled, k, n_population) > tail)
    worst = _first(n_failures, n_population - low, lambda k: _upper_tail(n_failures, n_sampled, k, n_population) > tail)
    return low / n_population, (n_population - worst) / n_population


def mcnemar_exact(n_only_first: int, n_only_second: int) -> float:
    """McNemar's exact test that two paired 0/1 scores have the same mean: two-sided p.

    Only pairs that differ tell them apart. If neither is better, each of these n pairs is a fair coin:
    `p = min(1, 2 P(B <= min(b, c)))`, B ~ Binomial(b + c, 1/2).

    Assumptions: independent pairs.

    Args:
        n_only_first: pairs where only the first succeeds, at least 0.
        n_only_second: pairs where only the second succeeds, at least 0.

    Returns:
        In (0, 1]; 1.0 where no pair differs. The smallest float above 0 stands for what is smaller still.

    Raises:
        ValueError: a negative count.

    Source: McNemar 1947, "Note on the Sampling Error of the Difference between Correlated Proportions or
    Percentages"; Fagerland, Lydersen and Laake 2013, "The McNemar Test for Binary Matched-pairs Data".
    """
    if n_only_first < 0 or n_only_second < 0:
        raise ValueError(f"numbers of pairs are at least 0, not {n_only_first} and {n_only_second}")
    n = n_only_first + n_only_second
    ways = term = 1
    for i in range(min(n_only_first, n_only_second)):
        term = term * (n - i) // (i + 1)
        ways += term
    if 2 * ways >= 1 << n:
        return 1.0
    return max(ways / (1 << (n - 1)), math.ulp(0.0))


def fisher_exact_rise(n_before: int, of_before: int, n_after: int, of_after: int) -> float:
    """Fisher's exact one-sided test that a rate rose: p of so many or more of the successes after.

    `P(X >= n_after)`, X hypergeometric: how many of all successes fall into the second sample if the rate is the same.

    Assumptions: two independent samples of independent units.

    Args:
        n_before: successes of the first sample, 0 to of_before.
        of_before: its size.
        n_after: successes of the second sample, 0 to of_after.
        of_after: its size.

    Returns:
        In [0, 1]; 1.0 where a sample is empty or nothing succeeds.

    Raises:
        ValueError: successes outside 0 to the size of their sample.

    Source: Fisher 1935, "The Logic of Inductive Inference".
    """
    _check(n_before, of_before)
    _check(n_after, of_after)
    return _upper_tail(n_after, of_after, n_before + n_after, of_before + of_after)


def _check(n_successes: float, n: float) -> None:
    if not 0 <= n_successes <= n:
        raise ValueError(f"successes must be between 0 and the {n} trials, not {n_successes}")


def _first(low: int, high: int, holds: Callable[[int], bool]) -> int:
    """Smallest number in [low, high] for which a condition holds that goes on to hold; high if there is none."""
    while low < high:
        middle = (low + high) // 2
        if holds(middle):
            high = middle
        else:
            low = middle + 1
    return low


def _upper_tail(s: int, n: int, k: int, total: int) -> float:
    """`P(X >= s)` of a sample of n from `total` units with k successes."""
    least, most = max(0, n - (total - k)), min(n, k)
    if s <= least:
        return 1.0
    if s > most:
        return 0.0
    centre = n * k / total
    upwards = s > centre
    i = s if upwards else s - 1
    term = math.exp(_log_choose(k, i) + _log_choose(total - k, n - i) - _log_choose(total, n))
    terms = []
    while least <= i <= most and term > 0.0:
        terms.append(term)
        if upwards:
            term *= (k - i) * (n - i) / ((i + 1) * (total - k - n + i + 1))
        else:
            term *= i * (total - k - n + i) / ((k - i + 1) * (n - i + 1))
        i += 1 if upwards else -1
    area = math.fsum(terms)
    return area if upwards else 1.0 - area


def _log_choose(n: int, k: int) -> float:
    return math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1)
