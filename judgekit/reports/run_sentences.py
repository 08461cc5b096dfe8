"""A run in a few plain sentences: is it good, how sure is that, and what comes next."""

from collections.abc import Iterator

from judgekit.core.runs import RunSummary, cases_text
from judgekit.core.scores import Estimate
from judgekit.reports.figures import by_judge, interval_text, percent, value_text
from judgekit.reports.headline import headline

_MOST_NAMED = 2
"""Gates, judges and figures that a sentence names one by one."""


def run_sentences(summary: RunSummary) -> list[str]:
    """Two to four sentences: how far the run came or how its gates stand, what the judges found, whether to believe it.

    The names of judges and configs in them are foreign text: escape it.
    """
    return [sentence for sentence in (_how_far(summary), *_found(summary), _trust(summary)) if sentence]


def _how_far(summary: RunSummary) -> str:
    if summary.status != "complete":
        why = f" ({summary.reason})" if summary.reason else ""
        return (
            f"{summary.name} is {summary.status}{why}: these are the figures of what was judged so far. "
            f"Resume it with `judgekit run --resume {summary.run_id}`."
        )
    where = f"on {cases_text(summary.cases)}"
    if not summary.gates:
        return f"{summary.name} ran {where}; " + ("no gate was set." if not summary.n_gates else "no gate was checked.")
    n = len(summary.gates)
    for state, verb in (("missed", "missed"), ("undecided", "undecided")):
        found = [gate for gate in summary.gates if gate.state == state]
        if found:
            named = "; ".join(gate.message for gate in found[:_MOST_NAMED])
            more = f"; and {len(found) - _MOST_NAMED} more" if len(found) > _MOST_NAMED else ""
            is_are = "is " if state == "undecided" and len(found) == 1 else "are " if state == "undecided" else ""
            return f"{summary.name}: {len(found)} of {n} gates {is_are}{verb} {where}: {named}{more}."
    passed = "its gate passed" if n == 1 else f"all {n} gates passed"
    return f"{summary.name}: {passed} {where}."


def _found(summary: RunSummary) -> Iterator[str]:
    """What the judges found, and what failed on the way to it."""
    figures = dict(headline(summary))
    told = []
    for name in [name for name in figures if name in summary.judges][:_MOST_NAMED]:
        figure, scale = figures[name], summary.scales.get(name)
        ends = interval_text(figure, scale)
        if figure.value is not None:
            told.append(f"{name} {value_text(figure, scale)}{f' ({ends})' if ends else ''}")
    if told:
        yield f"Judged: {' and '.join(told)}."
    errors = summary.operational.get("error_rate")
    if isinstance(errors, Estimate) and errors.value:
        n = round(errors.value * errors.n)
        yield f"{n} of {errors.n} answers failed; gates count them as the worst."


def _trust(summary: RunSummary) -> str:
    """How far the judges are to be believed, and what to do about it."""
    dead = [name for name, record in summary.judges.items() if record["n_failed"] and not record["n_judged"]]
    if dead:
        kinds = ", ".join(sorted(summary.judges[dead[0]]["failures"])) or "failed"
        return f"No call of {' and '.join(dead)} gave a verdict ({kinds}): mend that first; nothing here says how good."
    if not summary.judges:
        return ""
    checked = {
        name: part
        for name, part in by_judge(summary.judge_reliability).items()
        if part["disagreement_rate"] is not None
    }
    doubtful = [name for name, part in checked.items() if part["fired"]]
    if doubtful:
        part = checked[doubtful[0]]
        ends = part["interval"] or {}
        low, high = ends.get("low"), ends.get("high")
        between = "" if low is None or high is None else f" ({percent(low)} to {percent(high)})"
        return (
            f"Do not rely on {' and '.join(doubtful)} yet: a second opinion disagrees with {doubtful[0]} on "
            f"{percent(part['disagreement_rate'])} of {part['spot_check_n']} verdicts{between}; read those first."
        )
    if not checked:
        return "No spot check was made, so nothing says how far to believe the judges: `judgekit spotcheck` makes one."
    rates = [f"{name} {percent(part['disagreement_rate'])}" for name, part in checked.items()]
    return f"Spot checks found no cause for doubt (disagreement: {', '.join(rates)}); `judgekit calibrate` asks people."
