"""Tests of a rate that may be looked at after every pair: e-values, their detector, and how many pairs decide.

An e-value is a bet against a hypothesis: under it the expected gain is at most 1, so that 20 or more is as rare as
1 in 20, whenever one looks and whenever one stops. Everything is on the log scale.
"""

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import Literal

from judgekit.stats.distributions import Z, log_beta_power, log_beta_tail

DECIDED = 20.0
"""An e-value from here on decides; its chance under the hypothesis is at most 1 / 20, over all looks together."""

_LOG_DECIDED = math.log(DECIDED)
_MOST_PAIRS = 1_000_000

Side = Literal["above", "below"]


def log_e_value(n_flips: int, n: int, m0: float) -> float:
    """Log of the beta-binomial e-value against "the rate of flips is at most m0".

    The likelihood of the flips at rates above m0, averaged over these (each as likely), over that at m0:
    `lnB(1+s, 1+t-s) + ln(1 - I_m0(1+s, 1+t-s)) - ln(1 - m0) - s ln m0 - (t-s) ln(1-m0)` with s flips in t pairs and I
    the regularised incomplete beta function.

    Assumptions: pairs are drawn so that each flips with a chance of at most m0 given those before, if the
    hypothesis holds. Drawing without replacement from a finite run only makes alarms rarer.

    Args:
        n_flips: number of pairs with a flip, 0 to n.
        n: number of pairs.
        m0: largest rate that is all right, in (0, 1).

    Returns:
        Any finite number; 0.0 for no pairs. `log(DECIDED)` or more speaks for a rate above m0; a negative number
        only says that the bet lost so far, not that the rate is below m0: see `decide`.

    Raises:
        ValueError: n_flips outside 0 to n, or m0 outside (0, 1).

    Source: Robbins 1970, "Statistical Methods Related to the Law of the Iterated Logarithm", mixture with a beta
    prior; Ramdas, Grunwald, Vovk and Shafer 2023, "Game-theoretic Statistics and Safe Anytime-valid Inference".
    """
    if not 0 <= n_flips <= n:
        raise ValueError(f"flips must be between 0 and the {n} pairs, not {n_flips}")
    if not 0.0 < m0 < 1.0:
        raise ValueError(f"a rate to test against is in (0, 1), not {m0}")
    if n == 0:
        return 0.0
    return _log_mass_above(n_flips, n, m0) - _log_mass_above(0, 0, m0)


@lru_cache(maxsize=1 << 16)  # a detector asks for the same few counts over and over
def _log_mass_above(s: int, t: int, m0: float) -> float:
    """`lnB(1+s, 1+t-s) + ln(1 - I_m0(1+s, 1+t-s)) - s ln m0 - (t-s) ln(1-m0)`, less a constant in s and t.

    Taken through `log(m0^(1+s) (1-m0)^(1+t-s) / B(1+s, 1+t-s))`, which does not lose digits for large counts.
    """
    return log_beta_tail(1 + s, 1 + t - s, m0) - log_beta_power(1 + s, 1 + t - s, m0)


def e_detector(counts: Sequence[tuple[int, int]], m0: float) -> list[float]:
    """Log of the e-detector after each point of a timeline: has the rate risen above m0 at some time?

    `M_t = sum over starts j <= t of E_{j..t}`, E the e-value of points j to t together. Each start is a bet that
    the change came there, so a long quiet time before a change does not hide it.

    Assumptions: as `log_e_value`, at each point. The mean time to a false alarm at `M_t >= c` is at least c points;
    the chance of one within T points is at most T / c.

    Args:
        counts: flips and checked pairs of each history point, in the order of time.
        m0: largest rate that is all right, in (0, 1).

    Returns:
        `log M_t`, one for each point; empty for no points.

    Raises:
        ValueError: flips outside 0 to n in a point, or m0 outside (0, 1).

    Source: Shin, Ramdas and Rinaldo 2024, "E-detectors: a Nonparametric Framework for Sequential Change Detection",
    the Shiryaev-Roberts form.
    """
    logs = []
    for end in range(len(counts)):
        flips = checked = 0
        bets = []
        for s, t in reversed(counts[: end + 1]):
            flips += s
            checked += t
            bets.append(log_e_value(flips, checked, m0))
        largest = max(bets)
        logs.append(largest + math.log(math.fsum(math.exp(bet - largest) for bet in bets)))
    return logs


def decide(n_flips: int, n: int, threshold: float) -> Side | None:
    """On which side of a threshold the rate of flips is, if the pairs so far tell.

    `above` where the e-value against "at most the threshold" is 20 or more, `below` where that against "at least the
    threshold" is, which is the same test of the pairs without a flip against 1 - threshold. May be asked after
    every pair; each side is wrong at most once in 20 times.

    Args:
        n_flips: number of pairs with a flip, 0 to n.
        n: number of pairs.
        threshold: the rate to tell from, in (0, 1).

    Returns:
        `above`, `below`, or None if it is open.

    Raises:
        ValueError: n_flips outside 0 to n, or threshold outside (0, 1).

    Source: as `log_e_value`.
    """
    if log_e_value(n_flips, n, threshold) >= _LOG_DECIDED:
        return "above"
    if log_e_value(n - n_flips, n, 1.0 - threshold) >= _LOG_DECIDED:
        return "below"
    return None


def n_to_decide(rate: float, threshold: float, n_population: int | None = None) -> int | None:
    """How many checked pairs until Wilson's interval leaves the threshold out, if the rate stays what it is.

    The interval leaves m0 out where the score test rejects it: `n >= z^2 m0 (1 - m0) / (rate - m0)^2`.

    Args:
        rate: share of flips so far, in [0, 1].
        threshold: the rate to tell from, in (0, 1).
        n_population: number of pairs there are; checking all of them decides at the latest.

    Returns:
        Number of pairs in all, those checked so far included, at least 1; None if the rate is the threshold, so
        that no number of pairs decides, and more than a million is needed.

    Raises:
        ValueError: rate outside [0, 1], or threshold outside (0, 1).

    Source: Wilson 1927, "Probable Inference, the Law of Succession, and Statistical Inference", solved for n.
    """
    if not 0.0 <= rate <= 1.0:
        raise ValueError(f"a rate is in [0, 1], not {rate}")
    if not 0.0 < threshold < 1.0:
        raise ValueError(f"a threshold is in (0, 1), not {threshold}")
    gap = (rate - threshold) ** 2
    needed = Z * Z * threshold * (1.0 - threshold) / gap if gap > 0.0 else math.inf
    if n_population is not None:
        return min(n_population, math.ceil(min(needed, n_population)))
    return max(1, math.ceil(needed)) if needed <= _MOST_PAIRS else None
