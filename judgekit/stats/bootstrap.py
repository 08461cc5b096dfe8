"""Bootstrap intervals of means and of figures that are functions of sums over cases.

Up to `MOST_UNITS` units (cases, or clusters of cases): the BCa bootstrap with `N_RESAMPLES` seeded resamples. Above:
the ABC interval, which is what the BCa interval tends to with ever more resamples, from derivatives and without a
draw. Both err by O(1/n) only; from about a hundred units on, that is less than what 2000 resamples scatter.

Everything is a function of the multiset of units: they are counted and sorted first, so the order of cases cannot
change a digit. Draws depend on a seed and the number of units only. Pure layers take no dice, so the bits come from
SHAKE-128 (FIPS 202), a hash of any length: the same on every machine, and free of any state that an order of calls
could change. All figures over n units share one set of draws; each is a valid bootstrap, and equal columns get equal
intervals.
"""

import math
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from hashlib import shake_128
from itertools import accumulate, pairwise
from operator import mul
from statistics import NormalDist

from judgekit.stats.distributions import Z
from judgekit.stats.means import SAME, quantile_of_sorted

N_RESAMPLES = 2000

MOST_UNITS = 100
"""Most units that are drawn from; a count of draws must fit a byte, and beyond, resampling tells nothing new."""

MOST_PATTERNS = 500
"""Where fewer different resamples are possible, each is summed once and not as often as it comes."""

Row = tuple[float, ...]
"""What one unit adds to each of the sums."""

Counted = tuple[tuple[Row, int], ...]
"""Distinct rows, ascending, each with the number of units that have it."""

Function = Callable[..., float | None]

Limits = tuple[float, float]

MOST_UNDEFINED = 0.05
"""Share of resamples in which a figure may be undefined; they are left out. With more there is no interval."""

_TIE = 1e-9
"""Part of the range of the resampled figures within which one equals the figure itself."""

_STEP = 0.01
"""Step of numerical derivatives: by the weight of one unit as a part of that weight, else in standard errors."""


@dataclass(frozen=True, slots=True)
class Interval:
    """The ends of an interval, or the reason why there is none."""

    low: float | None
    high: float | None
    method: str
    """How the ends were made, such as `bca bootstrap 95%, 2000 resamples, seed 0`; else why there is no interval."""


@dataclass(frozen=True, slots=True)
class Resampling:
    """What is resampled, and with which seed."""

    seed: int = 0
    units: str = "cases"
    """`cases`, or `clusters` where cases are resampled together; for the text of `method`."""


def bootstrap_mean(counts: Mapping[float, int], limits: Limits, resampling: Resampling) -> Interval:
    """Bootstrap interval of the mean of independent values.

    Up to `MOST_UNITS` values: BCa. With theta the mean, theta* the mean of a resample, z0 the normal quantile of the
    share of theta* below theta (equal ones count half) and `a = sum (x - theta)^3 / (6 (sum (x - theta)^2)^1.5)`, the
    ends are the quantiles of theta* at `Phi(z0 + (z0 + z) / (1 - a (z0 + z)))`, z the normal quantile of 2.5% and
    97.5%. Above: ABC, which for a mean is `theta + s (a + z) / (1 - a (a + z))^2`, `s^2 = sum (x - theta)^2 / n^2`.

    Assumptions: independent values. Like every bootstrap it is too narrow for few values: see docs/metrics.md.

    Args:
        counts: how often each value comes.
        limits: smallest and largest value possible, to which the ends are clipped; may be infinite.
        resampling: the seed, and what the units are.

    Returns:
        The ends. None for fewer than two values, which say nothing about their spread, and for a constant column: its
        width would be zero, a claim of certainty that five equal scores do not support. The next case may differ, and
        how far cannot be told from these.

    Raises:
        ValueError: a value is NaN or infinite.

    Source: Efron 1987, "Better Bootstrap Confidence Intervals" (BCa); DiCiccio and Efron 1992, "More Accurate
    Confidence Intervals in Exponential Families" (ABC).
    """
    n = sum(counts.values())
    if not all(map(math.isfinite, counts)):
        raise ValueError("an interval is asked for over values that are not all finite numbers")
    if n < 2:
        return Interval(None, None, f"no interval: fewer than 2 {resampling.units}")
    if math.isclose(min(counts), max(counts), rel_tol=SAME):
        return Interval(None, None, "no interval: all values are equal")
    if n <= MOST_UNITS:
        return _bca_of_mean(tuple(sorted(counts.items())), limits, resampling)
    centre = math.fsum([value * count for value, count in counts.items()]) / n
    skew, root = _acceleration([(value - centre, count) for value, count in counts.items()])
    spread = root / n
    ends = [centre + spread * _abc_step(skew, skew + z) for z in (-Z, Z)]
    return _ends(ends, limits, _abc_method(resampling, n))


@lru_cache(maxsize=2048)  # many slices of a run hold the same few values
def _bca_of_mean(counted: tuple[tuple[float, int], ...], limits: Limits, resampling: Resampling) -> Interval:
    values, counts = zip(*counted, strict=True)
    n = sum(counts)
    centre = math.fsum([value * count for value, count in counted]) / n
    skew, _ = _acceleration([(value - centre, count) for value, count in counted])
    means = sorted([total / n for total in resampled_sums(values, counts, resampling.seed)])
    return _bca(means, centre, skew, limits, resampling, n)


def bootstrap_pooled(
    rows: Iterable[Row] | Mapping[Row, int], function: Function, limits: Limits, resampling: Resampling
) -> Interval:
    """Bootstrap interval of a figure that is a function of sums over units, such as a micro F1 or a ratio of sums.

    As `bootstrap_mean`, with the figure of each resample's sums for theta*, and for a the jackknife:
    `a = sum d^3 / (6 (sum d^2)^1.5)` with d the mean of the figures without one unit less the figure without this
    unit. Above `MOST_UNITS` units ABC, with derivatives by the weights of units.

    Assumptions: independent units, and a figure that is smooth near its sums: true of ratios, not of medians.

    Args:
        rows: what each unit adds to each sum, in any order, or how often each of these comes; finite numbers.
        function: sums to figure; None if it is undefined. Called once for each distinct set of sums.
        limits: smallest and largest figure possible, to which the ends are clipped.
        resampling: the seed, and what the units are.

    Returns:
        The ends. None for fewer than two units; where the figure is undefined, for all units, without one of them, or
        in more than 5% of the resamples; and where no unit changes it (zero width, see `bootstrap_mean`).

    Raises:
        ValueError: a number that is not finite.

    Source: as for `bootstrap_mean`; Efron and Tibshirani 1993, "An Introduction to the Bootstrap", chapters 14 and 22.
    """
    counts = Counter(rows)
    n = counts.total()
    if not all(math.isfinite(number) for row in counts for number in row):
        raise ValueError("an interval is asked for over values that are not all finite numbers")
    if n < 2:
        return Interval(None, None, f"no interval: fewer than 2 {resampling.units}")
    counted = tuple(sorted(counts.items()))
    return (_cached if n <= MOST_UNITS else _pooled)(counted, function, limits, resampling)


def _pooled(counted: Counted, function: Function, limits: Limits, resampling: Resampling) -> Interval:
    value, without = _without_one(counted, function)
    if value is None:
        return Interval(None, None, "no interval: undefined")
    if without is None:
        return Interval(None, None, f"no interval: undefined without one of the {resampling.units}")
    if math.isclose(min(without)[0], max(without)[0], rel_tol=SAME):
        return Interval(None, None, f"no interval: none of the {resampling.units} changes it")
    n = sum(count for _, count in without)
    if n > MOST_UNITS:
        return _abc(counted, function, limits, resampling)
    centre = math.fsum([found * count for found, count in without]) / n
    acceleration, _ = _acceleration([(centre - found, count) for found, count in without])
    figures = [(function(*resampled), times) for resampled, times in _resamples(counted, resampling.seed).items()]
    defined = sorted([found for found, times in figures if found is not None for _ in range(times)])
    if len(defined) < (1.0 - MOST_UNDEFINED) * N_RESAMPLES:
        return Interval(None, None, "no interval: undefined in more than 5% of the resamples")
    return _bca(defined, value, acceleration, limits, resampling, n)


_cached = lru_cache(maxsize=2048)(_pooled)


@lru_cache(maxsize=4)  # several figures of the same units follow one another
def _resamples(counted: Counted, seed: int) -> Counter[Row]:
    """The sums of each resample, and how often each came."""
    rows, counts = zip(*counted, strict=True)
    columns = [resampled_sums(column, counts, seed) for column in zip(*rows, strict=True)]
    return Counter(zip(*columns, strict=True))


def _bca(
    resampled: Sequence[float], value: float, acceleration: float, limits: Limits, resampling: Resampling, n: int
) -> Interval:
    """Ends from the sorted figures of the resamples."""
    tie = _TIE * (resampled[-1] - resampled[0])
    share = (bisect_left(resampled, value - tie) + bisect_right(resampled, value + tie)) / (2 * len(resampled))
    if not 0.0 < share < 1.0:
        return Interval(None, None, "no interval: the figure lies outside of its resamples")
    z0 = NormalDist().inv_cdf(share)
    ends = []
    for z in (-Z, Z):
        drop = 1.0 - acceleration * (z0 + z)
        if drop <= 0.0:
            return Interval(None, None, "no interval: too skewed")
        ends.append(quantile_of_sorted(resampled, NormalDist().cdf(z0 + (z0 + z) / drop)))
    of = "" if resampling.units == "cases" else f" of {n} {resampling.units}"
    how = f"{len(resampled)} resamples{of}, seed {resampling.seed}"
    return _ends(ends, limits, f"bca bootstrap 95%, {how}")


@lru_cache(maxsize=MOST_UNITS)
def draws(seed: int, n: int) -> bytes:
    """`n` rounds of `N_RESAMPLES` independent draws from 0 to n - 1, each equally likely.

    Byte `round * N_RESAMPLES + i` is a draw of resample i. A random byte b stands for b mod n; bytes from the largest
    multiple of n on are thrown away, so that no draw is favoured.
    """
    fair = 256 - 256 % n
    wanted = N_RESAMPLES * n
    # At least 2 of 3 bytes are kept, so twice as many as wanted are enough beyond any doubt.
    bits = shake_128(f"judgekit bootstrap: seed {seed}, {n} units".encode()).digest(2 * wanted)
    return bits.translate(bytes(value % n for value in range(256)), bytes(range(fair, 256)))[:wanted]


@lru_cache(maxsize=8192)
def draws_from(seed: int, n: int, place: int) -> bytes:
    """How many draws of each resample are `place` or more: one byte for each resample.

    Added up for all resamples at once, as the digits of one large whole number.
    """
    marks = draws(seed, n).translate(bytes(value >= place for value in range(256)))
    rounds = (marks[start : start + N_RESAMPLES] for start in range(0, len(marks), N_RESAMPLES))
    total = sum(int.from_bytes(flags, "little") for flags in rounds)  # at most MOST_UNITS a byte: nothing is carried
    return total.to_bytes(N_RESAMPLES, "little")


def resampled_sums(values: Sequence[float], counts: tuple[int, ...], seed: int) -> list[float]:
    """Sum of a column in each resample: `n v_0 + sum_j (v_j - v_(j-1)) #(draws at or above the place of v_j)`.

    Units are sorted, so that a resample costs the number of distinct values and not that of cases. The order of the
    sums depends on `counts` and `seed` alone, so that several columns over the same units can be put side by side.

    Args:
        values: value of each kind of unit; units are numbered in this order.
        counts: how many units of each kind there are; `MOST_UNITS` in all at most.
        seed: any whole number.
    """
    n = sum(counts)
    start = n * float(values[0])
    steps = [value - before for before, value in pairwise(values)]
    if math.comb(n + len(steps), n) <= MOST_PATTERNS:
        patterns = _patterns(counts, seed)
        return [total for drawn, times in patterns for total in [start + sum(map(mul, steps, drawn))] * times]
    sums = [start] * N_RESAMPLES
    for step, drawn in zip(steps, _drawn(counts, seed), strict=True):
        if step:
            sums = [total + step * times for total, times in zip(sums, drawn, strict=True)]
    return sums


def _drawn(counts: tuple[int, ...], seed: int) -> list[bytes]:
    """For each kind but the first, how many draws of each resample are of this kind or a later one."""
    n = sum(counts)
    return [draws_from(seed, n, place) for place in accumulate(counts[:-1])]


@lru_cache(maxsize=1024)
def _patterns(counts: tuple[int, ...], seed: int) -> list[tuple[tuple[int, ...], int]]:
    """The different resamples of a few units of few kinds, and how often each came."""
    return list(Counter(zip(*_drawn(counts, seed), strict=True)).items()) or [((), N_RESAMPLES)]


def _without_one(counted: Counted, function: Function) -> tuple[float | None, list[tuple[float, int]] | None]:
    """The figure, and what it is without one unit of each kind; None if some of these are undefined."""
    sums = _sums(counted)
    found = [(function(*[total - part for total, part in zip(sums, row, strict=True)]), n) for row, n in counted]
    known = [(value, count) for value, count in found if value is not None]
    return function(*sums), known if len(known) == len(found) else None


def _abc(counted: Counted, function: Function, limits: Limits, resampling: Resampling) -> Interval:
    sums = _sums(counted)
    n = sum(count for _, count in counted)

    def moved(by: float, direction: Sequence[float]) -> float:
        found = function(*[total + by * part for total, part in zip(sums, direction, strict=True)])
        return math.nan if found is None else found  # it shows in the ends, and never leaves this function

    value = moved(0.0, sums)
    first, second = [], []
    for row, count in counted:
        # The weight of this unit goes up by a step, that of all others down so that n units are left.
        direction = [n * part - total for part, total in zip(row, sums, strict=True)]
        up, down = moved(_STEP / n, direction), moved(-_STEP / n, direction)
        first.append(((up - down) * n / (2.0 * _STEP), count))
        second.append(count * (up - 2.0 * value + down) * (n / _STEP) ** 2)
    acceleration, root = _acceleration(first)
    spread = root / n
    # Of all ways to weight the units, the one along which the figure changes most.
    steepest = [
        math.fsum(count * part * slope for part, (slope, count) in zip(parts, first, strict=True)) / (n * spread)
        for parts in zip(*[row for row, _ in counted], strict=True)
    ]
    quadratic = (moved(_STEP, steepest) - 2.0 * value + moved(-_STEP, steepest)) / (2.0 * spread * _STEP**2)
    curvature = math.fsum(second) / (2.0 * n * n * spread) - quadratic
    share = 2.0 * NormalDist().cdf(acceleration) * NormalDist().cdf(-curvature)
    if not 0.0 < share < 1.0:
        return Interval(None, None, "no interval: too skewed")
    z0 = NormalDist().inv_cdf(share)
    ends = [moved(_abc_step(acceleration, z0 + z), steepest) for z in (-Z, Z)]
    return _ends(ends, limits, _abc_method(resampling, n))


def _abc_step(acceleration: float, w: float) -> float:
    """How many standard errors to go for a normal deviate w: `w / (1 - a w)^2`."""
    return w / (1.0 - acceleration * w) ** 2


def _abc_method(resampling: Resampling, n: int) -> str:
    of = "" if resampling.units == "cases" else f", {n} {resampling.units}"
    return f"abc bootstrap 95%{of}"


def _acceleration(deviations: Sequence[tuple[float, int]]) -> tuple[float, float]:
    """`sum d^3 / (6 (sum d^2)^1.5)` over deviations with their counts, and `sqrt(sum d^2)`; some are not 0."""
    largest = max([abs(d) for d, _ in deviations])  # cubes of very small or large ones would leave the range of floats
    scaled = [(d / largest, count) for d, count in deviations]
    squares = math.fsum([count * d * d for d, count in scaled])
    cubes = math.fsum([count * d * d * d for d, count in scaled])
    return cubes / (6.0 * squares**1.5), math.sqrt(squares) * largest


def _sums(counted: Counted) -> list[float]:
    parts = [[count * number for number in row] for row, count in counted]
    return [math.fsum(column) for column in zip(*parts, strict=True)]


def _ends(ends: Sequence[float], limits: Limits, method: str) -> Interval:
    if not all(map(math.isfinite, ends)):
        return Interval(None, None, "no interval: undefined at one of its ends")
    low, high = min(ends), max(ends)
    return Interval(min(max(limits[0], low), limits[1]), max(min(limits[1], high), limits[0]), method)
