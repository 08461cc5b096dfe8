"""A plan on the terminal: what it takes in one sentence, then what that rests on."""

from collections.abc import Mapping
from typing import Any

from judgekit.reports.safe_text import printable_line
from judgekit.reports.tables import aligned


def plan_lines(found: Mapping[str, Any]) -> list[str]:
    """The lines of a plan, the answer first."""
    lines = []
    if found["cases"] is not None:
        lines += [_answer(found), "", *_cases(found, found["cases"]), *_answers(found["answers"])]
    if found["labels"] is not None:
        if lines:
            lines.append("")
        lines += _labels(found["labels"])
    return [printable_line(line) for line in lines]


def _answer(found: Mapping[str, Any]) -> str:
    cases = found["cases"]
    figure = f" in {found['metric']}" if found["metric"] else ""
    goal = f"To find a difference of {found['difference']:g}{figure} with a chance of {_percent(found['power'])}"
    if cases["n"] is None:
        why = "no two of these scores differ" if not cases.get("sd", 1.0) else "it is too small for any number of cases"
        return f"{goal}, nothing can be planned: {why}. Name two runs that differ, or state --sd."
    ends = (
        ""
        if cases["low"] is None or cases["high"] is None
        else f" (95% {cases['low']:,} to {cases['high']:,} {cases['unit']})"
    )
    answers = "" if cases["answers_per_case"] <= 1 else f", each asked {cases['answers_per_case']:g} times"
    text = f"{goal}, compare {cases['n']:,} {cases['unit']}{answers}{ends}."
    here, detectable = cases["n_here"], cases["detectable_here"]
    if here is None:
        return text
    if here >= cases["n"]:
        return f"{text} The {here:,} at hand are enough."
    least = "" if detectable is None else f", or settle for a difference of {detectable:.2g}, which the {here:,} find"
    return f"{text} There are {here:,}: add {cases['n'] - here:,}{least}."


def _percent(share: float) -> str:
    return f"{100 * share:g}%"


def _cases(found: Mapping[str, Any], cases: Mapping[str, Any]) -> list[str]:
    spread = cases.get("share_that_differs", cases.get("sd"))
    what = "pairs that differ" if "share_that_differs" in cases else "standard deviation of the paired differences"
    interval = cases["interval"]
    ends = "" if interval is None else f" (95% {interval[0]:.3g} to {interval[1]:.3g})"
    lines = [f"rests on: {cases['rests_on']}", f"{what}: {spread:.3g}{ends}"]
    passes = cases["n_to_pass_as_margin"]
    if passes is not None:
        lines.append(
            f"a gate with margin {found['difference']:g}: with {passes:,} {cases['unit']} a run in which nothing "
            f"changed passes with a chance of {_percent(found['power'])}"
        )
    if cases["unit"] == "clusters" and cases["n_cases"] is not None:
        lines.append(f"clusters as large as these: {cases['n_cases']:,} cases")
    lines.append(f"method: {cases['method']}; one figure at 5%, more if `compare` adjusts for many")
    return lines


def _answers(answers: Mapping[str, Any]) -> list[str]:
    if not answers["rows"]:
        return [f"answers to each case: {answers['reason']}"]
    rows = [("answers to each case", "cases", "answers in each run")]
    rows += [
        (str(row["answers_per_case"]), f"{row['n_cases']:,}", f"{row['n_answers']:,}")
        for row in answers["rows"]
        if row["answers_per_case"] in (1, 2, 3, 5, 10)
    ]
    return ["", *aligned(rows)]


def _labels(labels: Mapping[str, Any]) -> list[str]:
    n, agreement = labels["n"], labels["agreement"]
    goal = f"To know a judge's agreement with people within plus or minus {labels['within']:g}"
    if n is None:
        return [f"{goal}, more labels are needed than anybody has."]
    if agreement is None:
        return [f"{goal}, label {n:,} cases, whatever it is; fewer if --agreement says what you expect."]
    most = f"; {labels['n_at_most']:,} whatever it is" if labels["n_at_most"] is not None else ""
    return [f"{goal}, label {n:,} cases drawn at random if it is {agreement:g}{most}.", f"method: {labels['method']}"]
