"""What a run found, in one or two sentences: is it good, how certain is that, and what to do next."""

from collections.abc import Iterator, Mapping
from typing import Any

from judgekit.core.case_parts import cases_text
from judgekit.core.conditions import GateResult
from judgekit.core.runs import RunSummary
from judgekit.core.scores import Estimate
from judgekit.reports.figures import by_judge, interval_text, number, percent, value_text
from judgekit.reports.headline import main_figures
from judgekit.reports.preference_text import preference_lines, reading_command

_BOUNDS = {">=": "at least", ">": "more than", "<=": "at most", "<": "less than"}

MOST_FAILED = 0.5
"""Share of missing outcomes from which a run says nothing about the answers."""


def run_sentence(summary: RunSummary) -> str:
    """Is it good, with how much certainty, and the next step; foreign text in it is as it came."""
    return " ".join([_finding(summary), *_caution(summary)])


def run_title(summary: RunSummary) -> str:
    """`support-bot, 40 cases`; of a run that is not complete also its state and why."""
    why = f" ({summary.reason})" if summary.reason else ""
    state = "" if summary.status == "complete" else f", {summary.status}{why}"
    return f"{summary.name}, {cases_text(summary.cases)}{state}"


def _finding(summary: RunSummary) -> str:
    broken = _broken(summary)
    if broken:
        return broken
    unfinished = "" if summary.status == "complete" else "The run is not finished, so this is of a part: "
    text = next(iter(preference_lines(summary)), "") or _by_gates(summary)
    return f"{unfinished}{text}" if unfinished else f"{text[:1].upper()}{text[1:]}"


def _broken(summary: RunSummary) -> str:
    failed = summary.operational.get("error_rate")
    rate = failed.value if isinstance(failed, Estimate) else None
    judges = {name: _with_unasked(name, judge, summary) for name, judge in summary.judges.items()}
    return all_failed(summary.run_id, int(summary.cases["n"]), rate, judges)


def _with_unasked(name: str, judge: Mapping[str, Any], summary: RunSummary) -> Mapping[str, Any]:
    """The record of a judge; in an unfinished run the cases that it was not asked about count as failed."""
    figure = summary.overall.get(name)
    if summary.status == "complete" or not isinstance(figure, Estimate):
        return {**judge, "reason": summary.reason}
    return {**judge, "n_failed": figure.n_error, "n_judged": figure.n, "reason": summary.reason}


def all_failed(run_id: str, n: int, error_rate: float | None, judges: Mapping[str, Mapping[str, Any]]) -> str:
    """That nearly every call failed, so that no figure says anything of the answers; else nothing.

    Args:
        run_id: the run.
        n: its cases.
        error_rate: share of them in which the system failed, in [0, 1]; None if it is not known.
        judges: records of the judges, as metrics.json has them.
    """
    if error_rate is not None and error_rate > MOST_FAILED:
        return (
            f"The system failed in {round(error_rate * n)} of {n} cases, so the figures tell little of its answers. "
            "The table of cases has each failure."
        )
    for name, judge in judges.items():
        n_failed, n_asked = judge["n_failed"], judge["n_judged"] + judge["n_failed"]
        if n_asked and n_failed > MOST_FAILED * n_asked:
            kinds = ", ".join(judge["failures"]) or judge.get("reason") or "not asked yet"
            return (
                f"The judge {name} gave no verdict in {n_failed} of {n_asked} cases ({kinds}), so its figures "
                f"say nothing about the answers. See what is wrong with `judgekit doctor`, then ask again with "
                f"`judgekit run --resume {run_id}`."
            )
    return ""


def _by_gates(summary: RunSummary) -> str:
    if not summary.gates:
        why = "gates are not checked on a part of the cases" if summary.n_gates else "no gate says what is good enough"
        named = " and ".join(_with_interval(summary, *item) for item in main_figures(summary)[:2])
        return f"{why}; {named}." if named else f"{why}, and no figure has data."
    states = {state: [gate for gate in summary.gates if gate.state == state] for state in ("missed", "undecided")}
    n, missed, undecided = len(summary.gates), states["missed"], states["undecided"]
    all_gates = {1: "the only gate", 2: "both gates"}.get(n, f"all {n} gates")
    if missed:
        more = f" and {len(missed) - 2} more" if len(missed) > 2 else ""
        named = "; ".join(_asked(gate, summary) for gate in missed[:2])
        return f"not good enough: {len(missed)} of {_counted(n, 'gate')} missed. {named}{more}."
    if undecided:
        named = ", ".join(gate.metric for gate in undecided[:3])
        against = undecided[0].baseline
        reason = against.reason if against is not None and against.low is None else None
        more = f"The reason: {reason}." if reason else "More cases would narrow the intervals."
        return f"not decided: {len(undecided)} of {_counted(n, 'gate')} undecided ({named}), none missed. {more}"
    close = [gate.metric for gate in summary.gates if _may_miss(gate, summary)]
    if not close:
        return f"good enough: {all_gates} passed."
    which = "it" if n == 1 else ", ".join(close[:3]) + (f" and {len(close) - 3} more" if len(close) > 3 else "")
    reach = "reaches" if len(close) == 1 else "reach"
    interval_of = "its interval" if n == 1 else f"the interval{'' if len(close) == 1 else 's'} of {which}"
    return f"good enough on these cases: {all_gates} passed, but {interval_of} {reach} past the limit."


def _asked(gate: GateResult, summary: RunSummary) -> str:
    """`recall_any@5 is 61%, at least 70% was asked`."""
    where = "".join(f" in {dimension}={value}" for dimension, value in gate.slice.items())
    if gate.baseline is not None:
        change = "" if gate.observed is None else f" by {number(abs(gate.observed))}"
        return f"{gate.metric} is worse than the baseline{change}, {number(gate.value)} was allowed"
    if gate.observed is None:
        return f"{gate.metric}{where} has no value"
    figure, scale = _figure(gate, summary), summary.scales.get(gate.metric)
    shown = percent if scale is not None and scale.unit == "share" else number
    bound = "" if gate.bound == "point" else f" at the {gate.bound} end of its interval"
    if gate.bound == "point" and figure is not None and figure.n_error and figure.value != gate.observed:
        bound = " with its failed cases as the worst"
    return (
        f"{gate.metric}{where} is {shown(gate.observed)}{bound}, "
        f"{_BOUNDS.get(gate.op, gate.op)} {shown(gate.value)} was asked"
    )


def _figure(gate: GateResult, summary: RunSummary) -> Estimate | None:
    figures: Mapping[str, Any] = {**summary.operational, **summary.overall}
    for dimension, value in gate.slice.items():
        figures = summary.slices.get(dimension, {}).get(value, {})
    figure = figures.get(gate.metric)
    return figure if isinstance(figure, Estimate) else None


def _may_miss(gate: GateResult, summary: RunSummary) -> bool:
    """Whether a gate that is passed by the value alone has its limit inside the interval."""
    figure = _figure(gate, summary)
    if gate.baseline is not None or gate.bound != "point" or figure is None:
        return False
    if figure.low is None or figure.high is None:
        return False
    return figure.low < gate.value if gate.op in (">=", ">") else figure.high > gate.value


def _caution(summary: RunSummary) -> Iterator[str]:
    """What most limits the trust in the judges, with the next step."""
    if not summary.judges or _broken(summary):
        return
    reports = by_judge(summary.judge_reliability)
    alarmed = [name for name, found in reports.items() if (found.get("alarm") or {}).get("fired")]
    if alarmed:
        found = reports[alarmed[0]]
        n_disagree, n = found.get("n_disagree"), found.get("spot_check_n")
        how = f" in {n_disagree} of {n} checked cases" if n_disagree and n else ""
        yield (
            f"Do not rely on {alarmed[0]} yet: a second judge contradicts it{how}. "
            f"Label some answers yourself to find out which is right: `judgekit label {summary.run_id}`."
        )
    elif all(not judge.get("is_llm", True) for judge in summary.judges.values()):
        yield "No language model judged here: the word-overlap baseline shows how it works and measures little."
    else:
        yield from _people(summary, reports)


def _people(summary: RunSummary, reports: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    """How often the first judge is right by human labels; without any labels, that nobody knows it."""
    for name, found in reports.items():
        agreed = (found.get("anchors") or {}).get("class_agreement") or {}
        if agreed.get("n"):
            ends = f" ({percent(agreed['low'])} to {percent(agreed['high'])})" if agreed.get("low") is not None else ""
            n_same = round(agreed["value"] * agreed["n"])
            yield f"The judge {name} agrees with people in {n_same} of {agreed['n']} cases{ends}."
            if (command := reading_command(summary)) is not None:
                yield f"Read both answers of each pair: `{command}`."
            return
    yield f"Nobody has checked the judges against people yet: `judgekit label {summary.run_id}`."


def _with_interval(summary: RunSummary, name: str, figure: Estimate) -> str:
    scale = summary.scales.get(name)
    ends = interval_text(figure, scale)
    return f"{name} is {value_text(figure, scale)}{f' (95% {ends})' if ends else ''}"


def _counted(n: int, noun: str) -> str:
    return f"{n} {noun}" if n == 1 else f"{n} {noun}s"
