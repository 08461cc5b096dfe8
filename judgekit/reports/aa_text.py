"""An A/A test on the terminal: how often gates fail by chance in one sentence, then gate by gate."""

from collections.abc import Mapping, Sequence
from typing import Any

from judgekit.reports.safe_text import printable_line
from judgekit.reports.tables import aligned

MOST_FAILED = 0.05
"""Share of runs of an unchanged system that may fail by a gate before something is to be done about it."""

MOST_BY_CHANCE = 0.5
"""Above, the system is on the wrong side of a limit and not there by chance."""

MOST_UNDECIDED = 0.2

_SCOPES = {"same": "the same cases", "other": "other cases like these"}


def aa_lines(found: Mapping[str, Any]) -> list[str]:
    """The lines of an A/A test, the answer first."""
    lines = [_answer(found), ""]
    shown = [scope for scope in _SCOPES if found["any"][scope] is not None]
    if shown:
        rows = [("gate", *(f"{what}, {_SCOPES[scope]}" for scope in shown for what in ("missed", "undecided")))]
        rows += [
            (item["gate"], *(_cell(item, scope, what) for scope in shown for what in ("missed", "undecided")))
            for item in found["gates"]
            if item["reason"] is None
        ]
        lines += [*aligned(rows), ""]
    lines += [f"not tested: {item['gate']}: {item['reason']}" for item in found["gates"] if item["reason"]]
    lines += [
        f"what differs by chance: {found['noise']['text']}",
        f"method: {found['method']}, seed {found['seed']}, {found['n_cases']} cases of {found['run_id']}; an A/A test",
    ]
    if found["any"]["same"] is None and shown:
        lines.append("the same cases: not known, since nothing stored says how a second run of them would differ")
    return [printable_line(line) for line in lines]


def _answer(found: Mapping[str, Any]) -> str:
    scope = "same" if found["any"]["same"] is not None else "other"
    overall = found["any"][scope]
    if overall is None:
        return "No gate of this run can be tested: none rests on scores of single cases. Next: see docs/plan.md."
    n = sum(item[scope] is not None for item in found["gates"])
    gates = "its gate fails" if n == 1 else f"at least one of {n} gates fails"
    text = f"If nothing changes, {gates} in {_rate(overall)} of runs of {_SCOPES[scope]}."
    return f"{text} Next: {_next(found, scope)}"


def _next(found: Mapping[str, Any], scope: str) -> str:
    tested = [item for item in found["gates"] if item[scope] is not None]
    failing, failed = _most(tested, scope, "failed")
    if failed["value"] > MOST_BY_CHANCE:
        return f"`{failing}` fails in {_percent(failed)}, which is no chance: fix the system, or move the limit."
    if failed["value"] > MOST_FAILED:
        return f"move the limit of `{failing}`, which fails in {_percent(failed)}, or {_more(found)}."
    open_, undecided = _most(tested, scope, "undecided")
    if undecided["value"] > MOST_UNDECIDED:
        return f"widen the margin of `{open_}`, which is undecided in {_percent(undecided)}, or {_more(found)}."
    if found["noise"]["source"] in ("assumed", "stated"):
        return 'measure what differs by chance: "repeats": 2 in the config, or name a second run of the same system.'
    return "nothing; what these gates find is seldom chance."


def _most(tested: Sequence[Mapping[str, Any]], scope: str, what: str) -> tuple[str, Mapping[str, Any]]:
    """The gate of which this comes most often, and how often."""
    item = max(tested, key=lambda item: float(item[scope][what]["value"]))
    return item["gate"], item[scope][what]


def _more(found: Mapping[str, Any]) -> str:
    return f"take more cases (judgekit plan {found['run_id']} says how many)"


def _cell(item: Mapping[str, Any], scope: str, what: str) -> str:
    """How often; nothing where it cannot be."""
    return _rate(item[scope][what]) if what == "missed" or item["is_relative"] else ""


def _rate(found: Mapping[str, Any]) -> str:
    return f"{_percent(found)} ({100 * found['low']:.1f} to {100 * found['high']:.1f})"


def _percent(found: Mapping[str, Any]) -> str:
    return f"{100 * found['value']:.1f}%"
