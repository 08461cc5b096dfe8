"""Gates relative to a baseline: is a figure worse than there by more than a margin, and can these pairs tell?"""

from collections.abc import Iterator
from typing import NamedTuple

from judgekit.analysis.deltas import CLUSTER_METHOD, MEAN_METHOD, named_delta
from judgekit.core.comparison import Comparison, Delta
from judgekit.core.conditions import INTERVAL, NOT_WORSE, AgainstBaseline, Gate, GateResult
from judgekit.stats.means import TOLERANCE

LEAST_ALIKE = 6
"""Pairs, or clusters, from which on equal differences are evidence of themselves: with 6 that all lie on one side of a
limit the sign-flip test has p = 2 / 2^6 = 0.03, with 5 it has 0.06."""


class Decision(NamedTuple):
    """What the paired interval says of a margin."""

    passed: bool | None
    """None: undecided."""
    observed: float | None
    """The difference b - a that decides."""
    low: float | None = None
    high: float | None = None
    reason: str | None = None
    """Why it is undecided."""
    note: str = ""


class _Ends(NamedTuple):
    observed: float
    low: float
    high: float
    note: str


def decide(delta: Delta, margin: float) -> Decision:
    """Whether a figure is worse in b than in a by more than a margin.

    It passes if the whole 95% interval of the paired difference is on the good side of the margin, it is missed if the
    whole interval is beyond it, and it is undecided if the margin lies within. The interval is that of `compare`. Where
    cases failed in one run alone, the interval with the worst value for them decides if it is worse. Of differences
    that are all equal, which have no interval, the difference itself decides from `LEAST_ALIKE` pairs on.

    Assumptions: those of the interval. A figure that is worse by just the margin passes in 2.5% of cases, and one that
    is worse by less is missed in at most as many.

    Args:
        delta: the figure in both runs.
        margin: how much worse it may be, at least 0, in the unit of the figure.

    Returns:
        The decision, with the difference and ends that it was made by.

    Source: non-inferiority by a two-sided interval, as in Piaggio et al. 2012, "Reporting of Noninferiority and
    Equivalence Randomized Trials"; the interval as in `paired_delta`.
    """
    if delta.higher_is_better is None:
        return Decision(None, delta.delta, reason="it is not known which way is better")
    if delta.n_unbounded:
        what = "cases with a value in the baseline failed, and nothing says what they would have added"
        return Decision(None, delta.delta, reason=f"{delta.n_unbounded} {what}")
    if delta.delta is None and delta.delta_if_failed_worst is None:
        return Decision(None, None, reason="no case has a value in both runs")
    found = list(_intervals(delta))
    if None in found:
        few = f"{delta.n} pairs are too few for an interval" if delta.n_units < LEAST_ALIKE else "it has no interval"
        return Decision(None, delta.delta, reason=few)
    turn = 1.0 if delta.higher_is_better else -1.0
    # In the direction of "better" the end that matters is the lower one; of two intervals the worse one decides.
    observed, low, high, note = min((ends for ends in found if ends), key=lambda ends: _turned(ends, turn))
    worst, best = sorted((turn * low, turn * high))
    if worst >= -margin - TOLERANCE:
        return Decision(True, observed, low, high, note=note)
    if best < -margin - TOLERANCE:
        return Decision(False, observed, low, high, note=note)
    return Decision(
        None, observed, low, high, f"{-turn * margin:+g} lies within the interval, so {delta.n} pairs do not tell", note
    )


def _turned(ends: _Ends, turn: float) -> float:
    return min(turn * ends.low, turn * ends.high)


def _intervals(delta: Delta) -> Iterator[_Ends | None]:
    """The interval of the pairs, and that with failed cases as the worst; None for one that is not known."""
    if delta.delta is not None:
        yield _ends(delta, delta.delta, delta.low, delta.high, "")
    if delta.delta_if_failed_worst is not None:
        n_failed = delta.n_failed_a + delta.n_failed_b
        note = f"{n_failed} failed case{'' if n_failed == 1 else 's'} counted as the worst"
        yield _ends(delta, delta.delta_if_failed_worst, delta.low_if_failed_worst, delta.high_if_failed_worst, note)


def _ends(delta: Delta, observed: float, low: float | None, high: float | None, note: str) -> _Ends | None:
    if low is not None and high is not None:
        return _Ends(observed, low, high, note)
    is_mean = delta.method in (MEAN_METHOD, CLUSTER_METHOD)
    if is_mean and max(delta.n_units, delta.n_failed_a + delta.n_failed_b) >= LEAST_ALIKE:
        return _Ends(observed, observed, observed, f"{note}, all pairs alike" if note else "all pairs alike")
    return None


def held_against(gate: Gate, comparison: Comparison) -> GateResult:
    """Whether a gate holds that is relative to a baseline, which is run a of a comparison that allows mismatches.

    A difference that is not of the systems alone decides nothing: then the gate is undecided, with the cause.
    """
    reason = _of_no_use(comparison)
    delta = named_delta(comparison.deltas, gate.metric)
    reason = reason or _mixed(gate, comparison, delta)
    if reason is not None or delta is None:
        return undecided(gate, reason or _absent(gate, comparison), comparison.run_a)
    decision = decide(delta, gate.margin or 0.0)
    notes = [f"in {delta.n_units} clusters"] if 0 < delta.n_units < delta.n else []
    notes += [decision.note] if decision.note else []
    if comparison.only_in_a:
        notes.append(f"{len(comparison.only_in_a)} cases of the baseline are not in this run")
    return _result(gate, comparison.run_a, decision, delta, notes)


def undecided(gate: Gate, reason: str, run_id: str | None = None) -> GateResult:
    """The result of a gate about which nothing can be said, and why."""
    return _result(gate, run_id, Decision(None, None, reason=reason), None, [])


def _of_no_use(comparison: Comparison) -> str | None:
    """Why no difference of two runs is one of the systems."""
    if comparison.same_run is not None:
        return f"{comparison.same_run}; a run passes every gate against itself"
    if any(code == "same_answers" for code, _ in comparison.notices):
        return "both runs judge the same answers, so a difference is of the judge and not of the system"
    for cause in comparison.causes:
        is_about_all = cause.kind == "metric" and not cause.metrics
        if (cause.is_refused and cause.kind == "dataset") or is_about_all:
            hint = "rescore the baseline" if is_about_all else "make a run of the same cases the baseline"
            return f"the runs cannot be compared, {cause.line}; {hint}"
    return None


def _mixed(gate: Gate, comparison: Comparison, delta: Delta | None) -> str | None:
    if delta is None or not delta.mixed:
        return None
    hint = f"`judgekit compare {comparison.run_a} {comparison.run_b}` says how to make them comparable"
    return f"the difference of {gate.metric} is not of the systems alone, {', '.join(delta.mixed)}; {hint}"


def _absent(gate: Gate, comparison: Comparison) -> str:
    if gate.metric in comparison.left_out:
        return "it goes by chunk id, and the runs have different chunkers"
    return "neither run has a value of it" if gate.metric in comparison.without_value else "neither run has it"


def _result(gate: Gate, run_id: str | None, decision: Decision, delta: Delta | None, notes: list[str]) -> GateResult:
    baseline = AgainstBaseline(
        not_worse_than=gate.not_worse_than or "",
        run_id=run_id,
        higher_is_better=None if delta is None else delta.higher_is_better,
        low=decision.low,
        high=decision.high,
        method="" if delta is None else delta.method,
        undecided=gate.undecided,
        reason=decision.reason,
    )
    n = 0 if delta is None else delta.n
    state = {True: "passed", False: "missed", None: "undecided"}[decision.passed]
    shown = [] if decision.observed is None else [_shown(decision, n, notes)]
    named = gate.not_worse_than if run_id in (None, gate.not_worse_than) else f"{gate.not_worse_than} ({run_id})"
    what = f"{gate.metric} not worse than {named} by more than {gate.margin:g}"
    return GateResult(
        metric=gate.metric,
        op=NOT_WORSE,
        value=gate.margin or 0.0,
        bound=INTERVAL,
        observed=decision.observed,
        n=n,
        passed=decision.passed,
        message=f"{what}: {state}, {'; '.join([*shown, *filter(None, [decision.reason])])}",
        baseline=baseline,
    )


def _shown(decision: Decision, n: int, notes: list[str]) -> str:
    interval = "" if decision.low is None else f"95% {decision.low:+.4f} to {decision.high:+.4f}, "
    details = ", ".join([f"{n} pair{'' if n == 1 else 's'}", *notes])
    return f"{decision.observed:+.4f} ({interval}{details})"
