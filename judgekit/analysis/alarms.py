"""The alarm of a spot check: a rate of disagreement against its threshold, and whether the sample decides."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from judgekit.core.spot_checks import DESIGN
from judgekit.stats.clusters import clustered_wilson
from judgekit.stats.means import TOLERANCE
from judgekit.stats.proportions import hypergeometric_interval, wilson_interval
from judgekit.stats.sequential import decide, log_e_value, n_to_decide

DEFAULT_THRESHOLD = 0.20
INTERVAL_METHOD = "wilson 95%"
EXACT_METHOD = "hypergeometric 95%"


@dataclass(frozen=True, slots=True)
class Draw:
    """How a sample was drawn, as far as its figures hang on it."""

    n_population: int | None = None
    """Judge inputs that it was drawn from; None where that is not known."""
    adaptive: bool = False
    """It grew until the check was decided, so that intervals for a sample of fixed size do not hold."""
    design: str = DESIGN


def interval(n_disagree: int, n: int) -> dict[str, Any]:
    """Wilson's interval of a rate of disagreement, for rows like these: `low`, `high`, `method`.

    Args:
        n_disagree: pairs that disagree.
        n: pairs with two verdicts; 0 gives ends of None.

    Source: Wilson 1927.
    """
    low, high = wilson_interval(n_disagree, n) or (None, None)
    return {"low": low, "high": high, "method": INTERVAL_METHOD}


def future_interval(flags: Sequence[bool], clusters: Sequence[int] | None = None) -> dict[str, Any]:
    """The interval of a rate of disagreement for rows like these, see `interval`, also by cluster.

    Args:
        flags: for each pair with two verdicts whether they disagree; none gives ends of None.
        clusters: number of the case's cluster, in the same order; None: cases are independent.

    Source: as `interval` and `clustered_wilson`.
    """
    if clusters is None or not flags:
        return interval(sum(flags), len(flags))
    found = clustered_wilson(flags, clusters)
    return {"low": found.low, "high": found.high, "method": found.method}


def exact_interval(n_disagree: int, n: int, n_population: int | None) -> dict[str, Any] | None:
    """The exact interval of the rate over this run, see `hypergeometric_interval`; None where its size is not known.

    Args:
        n_disagree: pairs that disagree.
        n: pairs with two verdicts; 0 gives ends of None.
        n_population: pairs that the run would give if all were judged twice.

    Source: as `hypergeometric_interval`.
    """
    if n_population is None:
        return None
    low, high = hypergeometric_interval(n_disagree, n, n_population) or (None, None)
    return {"low": low, "high": high, "method": EXACT_METHOD}


def rate_against_threshold(
    n_disagree: int, n: int, threshold: float, draw: Draw | None = None, future: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """A rate of disagreement, with its interval and what it says about the threshold.

    `fired`: the rate is above the threshold. `status`: `alarm` if fired; `ok` only if the upper end of the interval
    is not above the threshold either, where the interval is the exact one of this run if its size is known; else
    `inconclusive`. A sample that grew is `ok` where an e-value says "below", or where nothing is left to draw.

    Args:
        n_disagree: pairs that disagree.
        n: pairs with two verdicts.
        threshold: rate above which the check fires, in (0, 1).
        draw: how the pairs were drawn; None: nothing is known of that.
        future: from `future_interval`; None: cases are independent.

    Returns:
        The rate is None and the status `inconclusive` for no pairs.

    Source: in-house.
    """
    draw = draw or Draw()
    rate = n_disagree / n if n else None
    fired = rate is not None and rate > threshold + TOLERANCE
    return {
        "disagreement_rate": rate,
        "spot_check_n": n,
        "n_disagree": n_disagree,
        "interval": dict(future or interval(n_disagree, n)),
        "threshold": threshold,
        "fired": fired,
        "status": "alarm" if fired else "ok" if _is_below(n_disagree, n, threshold, draw, future) else "inconclusive",
    }


def alarm(
    n_disagree: int, n: int, threshold: float, draw: Draw, future: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """The `alarm` part of a judge's report: see `rate_against_threshold`, and how many pairs would decide.

    `n_to_decide`: pairs in all after which Wilson's interval leaves the threshold out if the rate stays what it is,
    at most those of the run; only where the status is `inconclusive` and there is a rate.

    Args:
        n_disagree: pairs that disagree.
        n: pairs with two verdicts.
        threshold: rate above which the check fires, in (0, 1).
        draw: how the pairs were drawn.
        future: from `future_interval`; None: cases are independent.

    Source: in-house.
    """
    found = rate_against_threshold(n_disagree, n, threshold, draw, future)
    needed = None
    if found["status"] == "inconclusive" and n:
        needed = n_to_decide(n_disagree / n, threshold, n_population=draw.n_population)
        if needed is not None:  # the exact interval is a little wider, so a few more may be needed than Wilson's says
            needed = max(needed, n + 1)
    return {
        "threshold": threshold,
        "rate": found["disagreement_rate"],
        "fired": found["fired"],
        "status": found["status"],
        "upper": _upper(n_disagree, n, draw, future),
        "n_to_decide": needed,
        "adaptive": _sequential(n_disagree, n, threshold) if draw.adaptive else None,
    }


def _is_below(n_disagree: int, n: int, threshold: float, draw: Draw, future: Mapping[str, Any] | None) -> bool:
    if not n:
        return False
    if draw.adaptive and n != draw.n_population:
        return decide(n_disagree, n, threshold) == "below"
    upper = _upper(n_disagree, n, draw, future)
    return upper is not None and upper <= threshold + TOLERANCE


def _upper(n_disagree: int, n: int, draw: Draw, future: Mapping[str, Any] | None) -> float | None:
    found = exact_interval(n_disagree, n, draw.n_population) or future or interval(n_disagree, n)
    upper: float | None = found["high"]
    return upper


def _sequential(n_disagree: int, n: int, threshold: float) -> dict[str, Any]:
    return {
        "decided": decide(n_disagree, n, threshold),
        "log_e_above": log_e_value(n_disagree, n, threshold),
        "log_e_below": log_e_value(n - n_disagree, n, 1.0 - threshold),
    }
