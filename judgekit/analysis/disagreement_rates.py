"""How far judges can be trusted: a rate of disagreement against its threshold, for one judge and for all of a run."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from judgekit.stats.clusters import clustered_wilson
from judgekit.stats.means import TOLERANCE
from judgekit.stats.proportions import hypergeometric_interval, wilson_interval
from judgekit.stats.sequential import decide, log_e_value, n_to_decide

DEFAULT_THRESHOLD = 0.20

KEPT_PARTS = ("anchors", "corrected", "comparator_value", "drift", "bridge", "probes")
"""Parts of a judge's report that do not come from a spot check, so that a new check leaves them as they are."""

PARTS_OF_VERDICTS = ("anchors", "corrected", "comparator_value", "bridge")
"""Of these, what rests on all verdicts of the run and holds no more once there are others."""


@dataclass(frozen=True, slots=True)
class Draw:
    """How a sample was drawn, as far as its figures depend on it."""

    n_population: int | None = None
    """Judge inputs that it was drawn from; None if that is not known."""
    adaptive: bool = False
    """It grew until the spot check was decided, so that intervals for a sample of fixed size do not hold."""


def future_interval(flags: Sequence[bool], clusters: Sequence[int] | None = None) -> dict[str, Any]:
    """Wilson's interval of a rate of disagreement, for rows like these: `low`, `high`, `method`.

    Over clusters if their numbers are given beside the flags, see `clustered_wilson`; no flags give ends of None.
    """
    if clusters is None or not flags:
        return _wilson(sum(flags), len(flags))
    found = clustered_wilson(flags, clusters)
    return {"low": found.low, "high": found.high, "method": found.method}


def _wilson(n_disagree: int, n: int) -> dict[str, Any]:
    low, high = wilson_interval(n_disagree, n) or (None, None)
    return {"low": low, "high": high, "method": "wilson 95%"}


def exact_interval(n_disagree: int, n: int, n_population: int | None) -> dict[str, Any] | None:
    """The exact interval of the rate over this run, see `hypergeometric_interval`; None if its size is not known."""
    if n_population is None:
        return None
    low, high = hypergeometric_interval(n_disagree, n, n_population) or (None, None)
    return {"low": low, "high": high, "method": "hypergeometric 95%"}


def rate_against_threshold(
    n_disagree: int, n: int, threshold: float, draw: Draw | None = None, future: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """A rate of disagreement, with its interval and what it says about the threshold.

    `fired`: the rate is above the threshold. `status`: `alarm` if fired; `ok` only if the upper end of the interval
    is not above the threshold either, where the interval is the exact one of this run if its size is known; else
    `inconclusive`. A sample that grew is `ok` if an e-value says "below", or if nothing is left to draw.

    Args:
        n_disagree: pairs that disagree.
        n: pairs with two verdicts.
        threshold: rate above which the spot check fires, in (0, 1).
        draw: how the pairs were drawn; None: not known.
        future: from `future_interval`; None: cases are independent.

    Returns:
        The rate is None and the status `inconclusive` for no pairs.
    """
    draw = draw or Draw()
    rate = n_disagree / n if n else None
    fired = rate is not None and rate > threshold + TOLERANCE
    return {
        "disagreement_rate": rate,
        "spot_check_n": n,
        "n_disagree": n_disagree,
        "interval": dict(future or _wilson(n_disagree, n)),
        "threshold": threshold,
        "fired": fired,
        "status": "alarm" if fired else "ok" if _is_below(n_disagree, n, threshold, draw, future) else "inconclusive",
    }


def alarm(
    n_disagree: int, n: int, threshold: float, draw: Draw, future: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """The `alarm` part of a judge's report: `rate_against_threshold`, and how many pairs would decide.

    `n_to_decide`: pairs in all after which Wilson's interval leaves the threshold out if the rate stays what it is,
    at most those of the run; only if the status is `inconclusive` and there is a rate.
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
        "adaptive": {
            "decided": decide(n_disagree, n, threshold),
            "log_e_above": log_e_value(n_disagree, n, threshold),
            "log_e_below": log_e_value(n - n_disagree, n, 1.0 - threshold),
        }
        if draw.adaptive
        else None,
    }


def _is_below(n_disagree: int, n: int, threshold: float, draw: Draw, future: Mapping[str, Any] | None) -> bool:
    if not n:
        return False
    if draw.adaptive and n != draw.n_population:
        return decide(n_disagree, n, threshold) == "below"
    upper = _upper(n_disagree, n, draw, future)
    return upper is not None and upper <= threshold + TOLERANCE


def _upper(n_disagree: int, n: int, draw: Draw, future: Mapping[str, Any] | None) -> float | None:
    found = exact_interval(n_disagree, n, draw.n_population) or future or _wilson(n_disagree, n)
    upper: float | None = found["high"]
    return upper


def judge_reliability(
    by_judge: Mapping[str, Mapping[str, Any]],
    threshold: float = DEFAULT_THRESHOLD,
    clusters: Mapping[str, int] | None = None,
) -> dict[str, Any]:
    """The `judge_reliability` object of metrics.json: the headline over all judges checked, and each of them.

    The headline pools the pairs: sum of `n_disagree` / sum of `spot_check_n`; so do the inconsistent verdicts. A
    warning is raised for each judge that fired. The headline is a weighted mean of the judges' rates, so where all
    share one threshold it cannot be above it without such a judge; a bad judge beside good ones still warns.

    Assumptions: the pooled interval takes pairs as independent. Two judges checked on the same cases are not quite,
    so it is somewhat too narrow then; the intervals of single judges are not touched by this, nor is it with clusters.

    Args:
        by_judge: report of each judge by name, from `spot_check_report`.
        threshold: the threshold of the headline, in (0, 1); that of the judges' reports.
        clusters: number of the cluster of each case by its id; None: cases are independent.

    Returns:
        A strict-JSON object with the headline keys, `by_judge` and `warnings`, a list of (code, message). No judges,
        or none with a pair of two verdicts: the rate and the ends of the interval are None.
    """

    def total(key: str) -> int:
        return sum(report[key] for report in by_judge.values())

    rows = [row for report in by_judge.values() for row in report["sample"] if row["disagrees"] is not None]
    groups = None if clusters is None else [clusters[row["case_id"]] for row in rows]
    future = future_interval([row["disagrees"] for row in rows], groups)
    return {
        **rate_against_threshold(total("n_disagree"), total("spot_check_n"), threshold, future=future),
        "n_asked": total("n_asked"),
        "n_unscored": total("n_unscored"),
        **inconsistent_rate(total("n_inconsistent"), total("n_verdicts")),
        "by_judge": {name: dict(report) for name, report in by_judge.items()},
        "warnings": [
            ("judge_unstable", unstable_warning(name, report)) for name, report in by_judge.items() if report["fired"]
        ],
    }


def inconsistent_rate(n_inconsistent: int, n_verdicts: int) -> dict[str, Any]:
    """Share of verdicts that contradict themselves, with its counts; None for no verdicts."""
    return {
        "inconsistent_rate": n_inconsistent / n_verdicts if n_verdicts else None,
        "n_inconsistent": n_inconsistent,
        "n_verdicts": n_verdicts,
    }


def unstable_warning(name: str, report: Mapping[str, Any], second: str = "the second opinion") -> str:
    """Why a judge is unstable, in one sentence, from the report of a spot check that fired."""
    ends = report["interval"]
    interval = ends["method"] if ends["low"] is None else f"95% interval {ends['low']:.2f} to {ends['high']:.2f}"
    return (
        f"judge {name}: {report['n_disagree']} of {report['spot_check_n']} spot-checked verdicts disagree with "
        f"{second} (rate {report['disagreement_rate']:.2f}, {interval}), more than {report['threshold']:.2f}; read the "
        "disagreeing cases before its scores are relied on"
    )


def kept_parts(reliability: Mapping[str, Any] | None, judge: str, names: Sequence[str] = KEPT_PARTS) -> dict[str, Any]:
    """What an earlier `judge_reliability` of metrics.json says of a judge that does not come from a spot check."""
    report = ((reliability or {}).get("by_judge") or {}).get(judge) or {}
    return {name: report[name] for name in names if name in report}
