"""Means, quantiles and figures pooled over cases, with their 95% intervals, and the rounding of stored values.

Everything here is a function of the multiset of values: sums are exactly rounded, so the order of cases cannot
change a digit. NaN and infinities are refused, never averaged.
"""

import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from decimal import ROUND_HALF_EVEN, Context, Decimal
from itertools import chain, repeat

from judgekit.stats.distributions import UPPER, regularised_beta, student_t_quantile

TOLERANCE = 1e-9
"""A figure meets a limit that it misses by no more than this; gates, comparisons and alarms share it."""

SAME = 1e-12
"""Relative spread below which values differ by rounding only."""

_FOUR_DECIMALS = Decimal("0.0001")
_ROUNDING = Context(prec=40, rounding=ROUND_HALF_EVEN)


def mean(values: Sequence[float]) -> float | None:
    """Arithmetic mean, `sum(values) / n`, rounded in effect once.

    An exactly rounded sum divided by n is rounded twice: `fsum([.7, .7, .7]) / 3` is 0.6999999999999998. So the
    exact sum of what is left, `fsum(v - m for all v) / n`, is added; the mean of a constant is that constant, and
    the mean lies between the smallest and the largest value. Decimals that binary floats cannot hold still leave an
    error in the last digit, in other sums as here, so whoever compares a mean to a limit allows `TOLERANCE`.

    Args:
        values: finite numbers, in any order.

    Returns:
        The mean; None for no values.

    Raises:
        ValueError: a value is NaN or infinite.
        OverflowError: the sum is beyond the largest float.

    Source: Shewchuk 1997, "Adaptive Precision Floating-Point Arithmetic", as in `math.fsum`; the second pass as in
    Chan, Golub and LeVeque 1983, "Algorithms for Computing the Sample Variance".
    """
    return _mean(values, len(values))


def mean_of_counts(counts: Mapping[float, int]) -> float | None:
    """`mean` of values that come as counts, to the same digit, in time that grows with the distinct ones alone."""
    return _mean([part for value, count in counts.items() for part in _times(value, count)], sum(counts.values()))


def _mean(parts: Sequence[float], n: int) -> float | None:
    """The mean of n values whose sum is that of the parts."""
    if n == 0:
        return None
    first = math.fsum(parts) / n
    if not math.isfinite(first):
        raise ValueError("a mean is asked for over values that are not all finite numbers")
    return first + math.fsum(chain(parts, _times(-first, n))) / n


def _times(value: float, count: int) -> list[float]:
    """Floats whose exact sum is `value * count`: a product with a power of two is not rounded."""
    return [math.ldexp(value, bit) for bit in range(count.bit_length()) if count >> bit & 1]


def mean_interval(values: Sequence[float]) -> tuple[float | None, float | None, float | None]:
    """A mean, such as that of paired differences, with Student's interval.

    `mean -+ t s / sqrt(n)`, s^2 with n - 1, t the 97.5% quantile with n - 1 degrees of freedom.

    Assumptions: independent cases, and a mean that is near normal: rough below some 15 skewed values.

    Args:
        values: finite numbers, in any order.

    Returns:
        Mean, lower end, upper end. The mean is None for no values. The ends are None for fewer than two, which say
        nothing about their spread, and if all are the same: their width would be zero, a claim of certainty that
        five equal scores do not support. The next case may differ, and how far cannot be told from these.

    Raises:
        ValueError: a value is NaN or infinite.

    Source: Student 1908, "The Probable Error of a Mean".
    """
    centre = mean(values)
    n = len(values)
    if centre is None or n < 2 or math.isclose(min(values), max(values), rel_tol=SAME):
        return centre, None, None
    squares = math.fsum([(value - centre) ** 2 for value in values])
    half = student_t_quantile(UPPER, n - 1) * math.sqrt(squares / (n - 1) / n)
    return centre, centre - half, centre + half


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
        0 to 1; None if a sample has fewer than two values. Without any spread: 1.0 where the means are the same,
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


def paired_t_p(mean_difference: float, sd: float, n: int) -> float | None:
    """Two-sided p value of the paired t test from mean, standard deviation and number of differences.

    `t = mean / (sd / sqrt(n))` with n - 1 degrees of freedom.

    Assumptions: independent pairs, more than a few of them; differences without long tails.

    Args:
        mean_difference: mean of the differences.
        sd: their standard deviation with n - 1, at least 0.
        n: their number.

    Returns:
        0 to 1; None for fewer than two. Without any spread: 1.0 if the mean is 0, else 0.0.

    Raises:
        ValueError: a standard deviation below 0.

    Source: Student 1908, "The Probable Error of a Mean".
    """
    if sd < 0.0:
        raise ValueError(f"a standard deviation is at least 0, not {sd}")
    if n < 2:
        return None
    if sd == 0.0:
        return 1.0 if mean_difference == 0.0 else 0.0
    t_squared = (mean_difference / sd) ** 2 * n
    return regularised_beta((n - 1) / 2.0, 0.5, (n - 1) / (n - 1 + t_squared)) if math.isfinite(t_squared) else 0.0


def quantile(values: Sequence[float], q: float) -> float | None:
    """The q-quantile by linear interpolation between order statistics, NumPy's default.

    With the values sorted from 0 to n - 1, the value at position `q (n - 1)`, and in between the straight line.

    Args:
        values: finite numbers, in any order.
        q: share of the values below, in [0, 1]; 0.5 is the median.

    Returns:
        Between the smallest and the largest value; None for no values.

    Raises:
        ValueError: a value is NaN or infinite, or q is outside [0, 1].

    Source: definition 7 of Hyndman and Fan 1996, "Sample Quantiles in Statistical Packages".
    """
    if not 0.0 <= q <= 1.0:
        raise ValueError(f"q of a quantile is in [0, 1], not {q}")
    if not all(map(math.isfinite, values)):
        raise ValueError("a quantile is asked for over values that are not all finite numbers")
    if not values:
        return None
    return quantile_of_sorted(sorted(values), q)


def quantile_of_sorted(ordered: Sequence[float], q: float) -> float:
    """The q-quantile of at least one finite number, in ascending order; see `quantile`."""
    position = q * (len(ordered) - 1)
    below = math.floor(position)
    left, right = ordered[below], ordered[min(below + 1, len(ordered) - 1)]
    share = position - below
    if share >= 0.5:  # from the nearer end, so that neither end is overshot
        return float(right - (right - left) * (1.0 - share))
    return float(left + (right - left) * share)


def pooled_estimate(
    columns: Sequence[Sequence[float]],
    function: Callable[..., float | None],
    limits: tuple[float, float] = (-math.inf, math.inf),
) -> tuple[float | None, float | None, float | None]:
    """A figure that is a function of sums over cases, such as a micro F1, with its jackknife interval.

    `value = f(S)` with S the sums of the columns; with `f_i = f(S - row i)` and m their mean,
    `se^2 = (n-1)/n sum((f_i - m)^2)` and the interval is `value -+ t se`, t with n - 1 degrees of freedom, clipped.
    Time is linear in the cases, and the function is called once for each distinct row.

    Assumptions: independent cases, and a function that is smooth near S: true of ratios of sums, not of medians.
    With many cases that all weigh little; one case that holds most of the sums makes the interval unreliable.

    Args:
        columns: one sequence for each argument of `function`, all with one finite number for each case.
        function: sums to value, in the order of the columns; None if the figure is undefined.
        limits: smallest and largest value possible.

    Returns:
        Value, lower end, upper end. The value is None for no cases or if the function says so; the ends are
        None with it, for fewer than two cases, where the figure is undefined without one of the cases, and if
        no case changes it (zero width, see `mean_interval`).

    Raises:
        ValueError: no columns, columns of different lengths, or a number that is not finite.

    Source: Tukey 1958, "Bias and Confidence in Not-quite Large Samples"; Efron and Tibshirani 1993, "An
    Introduction to the Bootstrap", chapter 11.
    """
    lengths = {len(column) for column in columns}
    if len(lengths) != 1:
        raise ValueError(f"a pooled figure needs columns of one length, not {sorted(lengths)}")
    n = lengths.pop()
    if n == 0:
        return None, None, None
    sums = [math.fsum(column) for column in columns]
    if not all(map(math.isfinite, sums)):
        raise ValueError("a pooled figure is asked for over values that are not all finite numbers")
    value = function(*sums)
    if value is None or n < 2:
        return value, None, None
    without_one: Counter[float] = Counter()
    for row, count in Counter(zip(*columns, strict=True)).items():
        left = function(*[total - part for total, part in zip(sums, row, strict=True)])
        if left is None:
            return value, None, None
        without_one[left] += count
    return value, *jackknife_interval(value, without_one, n, limits)


def jackknife_interval(
    value: float, without_one: Mapping[float, int], n: int, limits: tuple[float, float]
) -> tuple[float | None, float | None]:
    """Interval of a figure from its values without each of the cases.

    With m the mean of these values, `se^2 = (n-1)/n sum((f_i - m)^2)` and the interval is `value -+ t se`, t with
    n - 1 degrees of freedom, clipped.

    Assumptions: independent cases, and a figure that no single case changes much.

    Args:
        value: the figure over all cases.
        without_one: the figure without one case -> how many cases give this value; n in all.
        n: number of cases, at least 2.
        limits: smallest and largest value possible; may be infinite.

    Returns:
        Lower and upper end; None if no case changes the figure (zero width, see `mean_interval`).

    Source: Tukey 1958, "Bias and Confidence in Not-quite Large Samples".
    """
    if math.isclose(min(without_one), max(without_one), rel_tol=SAME):
        return None, None
    half = student_t_quantile(UPPER, n - 1) * math.sqrt(jackknife_variance(without_one, n))
    return max(limits[0], value - half), min(limits[1], value + half)


def jackknife_variance(without_one: Mapping[float, int], n: int) -> float:
    """Variance of a figure from its values without each of n cases: `(n-1)/n sum((f_i - m)^2)`, m their mean.

    Arguments and source as for `jackknife_interval`.
    """
    centre = math.fsum(_spread_out(without_one)) / n
    return math.fsum((value - centre) ** 2 for value in _spread_out(without_one)) * (n - 1) / n


def _spread_out(counts: Mapping[float, int]) -> Iterator[float]:
    return chain.from_iterable(repeat(value, count) for value, count in counts.items())


def round4(value: float) -> float:
    """A value as it is stored: four decimals, half to even on the decimal form that `repr` shows.

    So 0.00015 becomes 0.0002 and 0.12345 becomes 0.1234, as on paper, whatever the binary neighbour; `round` looks
    at the binary value. -0.0 becomes 0.0.

    Args:
        value: a finite number.

    Returns:
        The nearest number with four decimals, never -0.0.

    Raises:
        ValueError: NaN or infinite, which strict JSON cannot hold.

    Source: in-house.
    """
    value = float(value)
    if not math.isfinite(value):
        raise ValueError(f"{value} cannot be stored: results hold finite numbers or null")
    if value.is_integer():
        return value + 0.0
    return float(Decimal(repr(value)).quantize(_FOUR_DECIMALS, context=_ROUNDING)) + 0.0
