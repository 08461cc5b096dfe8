"""Draws with replacement that depend on a seed and a number of units only, and sums over them.

Pure layers take no dice, so the bits come from SHAKE-128 (FIPS 202), a hash of any length, over seed and number of
units: the same on every machine, and free of any state that an order of calls could change. All figures over n units
share one set of draws; each is a valid bootstrap, and equal columns get equal intervals.

Units are sorted by value before they are drawn, so what matters of one resample is how many of its draws lie at or
above each place where the value steps up. These counts are added up many draws at a time, as the digits of one large
whole number, which makes a resample of a column cost its number of distinct values and not its number of cases.
"""

import math
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache
from hashlib import shake_128
from itertools import accumulate, pairwise
from operator import mul

N_RESAMPLES = 2000

MOST_UNITS = 100
"""Most units that are drawn from; a count of draws must fit a byte, and beyond, resampling tells nothing new."""

MOST_PATTERNS = 500
"""Where fewer different resamples are possible, each is summed once and not as often as it comes."""


@lru_cache(maxsize=MOST_UNITS)
def draws(seed: int, n: int) -> bytes:
    """`n` rounds of `N_RESAMPLES` independent draws from 0 to n - 1, each equally likely.

    Byte `round * N_RESAMPLES + i` is a draw of resample i. A random byte b stands for b mod n; bytes from the largest
    multiple of n on are thrown away, so that no draw is favoured.

    Args:
        seed: any whole number.
        n: number of units, 1 to `MOST_UNITS`.
    """
    fair = 256 - 256 % n
    wanted = N_RESAMPLES * n
    # At least 2 of 3 bytes are kept, so twice as many as wanted are enough beyond any doubt.
    bits = shake_128(f"judgekit bootstrap: seed {seed}, {n} units".encode()).digest(2 * wanted)
    return bits.translate(bytes(value % n for value in range(256)), bytes(range(fair, 256)))[:wanted]


@lru_cache(maxsize=8192)
def draws_from(seed: int, n: int, place: int) -> bytes:
    """How many draws of each resample are `place` or more: one byte for each resample."""
    marks = draws(seed, n).translate(bytes(value >= place for value in range(256)))
    rounds = (marks[start : start + N_RESAMPLES] for start in range(0, len(marks), N_RESAMPLES))
    total = sum(int.from_bytes(flags, "little") for flags in rounds)  # at most MOST_UNITS a byte: nothing is carried
    return total.to_bytes(N_RESAMPLES, "little")


def resampled_sums(values: Sequence[float], counts: tuple[int, ...], seed: int) -> list[float]:
    """Sum of a column in each resample: `n v_0 + sum_j (v_j - v_(j-1)) #(draws at or above the place of v_j)`.

    Args:
        values: value of each kind of unit; units are numbered in this order.
        counts: how many units of each kind there are; `MOST_UNITS` in all at most.
        seed: any whole number.

    Returns:
        `N_RESAMPLES` sums over n draws each. Their order depends on `counts` and `seed` alone, so that sums of several
        columns over the same units can be put side by side.
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
