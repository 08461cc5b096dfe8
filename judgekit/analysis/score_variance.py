"""Where the variance of a score lies, in cases, system or judge, and what more calls would make of its interval."""

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from judgekit.analysis.judge_calls import PerVerdict
from judgekit.stats.bootstrap import Function, Limits, Resampling, Row, bootstrap_pooled
from judgekit.stats.repeated_measures import (
    Design,
    answer_variance,
    case_variance,
    generalizability,
    judge_variance,
    system_variance,
)

N_CALLS = 1000
"""Calls of which is said what they would buy."""

FEWEST_CASES = 30
"""Below, 95% intervals of variances cover less: in simulations with 12 cases down to 83%."""

TOGETHER = "system and judge"
"""What varies between answers to a case where nothing tells whether the system did or the judge."""

_VARIANCE: Limits = (0.0, math.inf)


def variance_record(
    rows: Sequence[Row], judge: str | None, calls: Mapping[str, PerVerdict], resampling: Resampling
) -> dict[str, Any]:
    """The variance of one score by where it comes from, and what follows from it.

    Args:
        rows: of `case_row`, summed up over what is resampled.
        judge: the judge that gives the score; None: it is calculated, so that no judge varies.
        calls: by judge of the run, what a verdict takes.
        resampling: the seed, and what the units are.

    Returns:
        `components`, `generalizability`, `same_system` (how far two such runs differ by chance) and `next_calls`; the
        last two None if a variance is not known, or if nothing varies.
    """
    sums = [math.fsum(column) for column in zip(*rows, strict=True)]
    components = _components(rows, sums, judge, resampling)
    return {
        "components": components,
        "generalizability": _estimated(rows, sums, generalizability, (0.0, 1.0), resampling),
        **_forecast(components, sums, calls, judge),
    }


def _components(
    rows: Sequence[Row], sums: Sequence[float], judge: str | None, resampling: Resampling
) -> dict[str, dict[str, Any]]:
    """By source of variance: the variance, never below 0, its interval and its share of all, if all are known."""
    figures: dict[str, Function] = {"case": case_variance}
    if judge is None:
        figures["system"] = answer_variance
    elif judge_variance(*sums) is None:
        figures[TOGETHER] = answer_variance
    else:
        figures |= {"system": system_variance, "judge": judge_variance}
    found = {}
    for name, function in figures.items():
        part = _estimated(rows, sums, function, _VARIANCE, resampling)
        estimate = part.pop("value")
        found[name] = {"variance": None if estimate is None else max(0.0, estimate), "estimate": estimate, **part}
    variances = [part["variance"] for part in found.values()]
    total = 0.0 if None in variances else math.fsum(variances)
    for part in found.values():
        part["share"] = part["variance"] / total if total > 0 else None
    return found


def _estimated(
    rows: Sequence[Row], sums: Sequence[float], function: Function, limits: Limits, resampling: Resampling
) -> dict[str, Any]:
    interval = bootstrap_pooled(rows, function, limits, resampling)
    return {"value": function(*sums), "low": interval.low, "high": interval.high, "method": interval.method}


def variance_notes(components: Mapping[str, Any], n_cases: int, n_later: int) -> Iterator[str]:
    """What a reader of the components must know.

    Args:
        components: of `variance_record`.
        n_cases: cases with an answer.
        n_later: verdicts on the same answers that came more than a day after the run's.
    """
    if TOGETHER in components:
        yield (
            "system and judge together: no answer was judged again by the same judge, so nothing tells which of the "
            "two differs; `judgekit spotcheck RUN --against repeat` asks it again"
        )
    for name, part in components.items():
        if part["estimate"] is not None and part["estimate"] < 0:
            yield f"the estimate for {name} is {part['estimate']:.4g}, which no variance can be; it is taken as 0"
    if "judge" in components and n_later:
        yield (
            f"{n_later} verdicts came more than a day after those of the run: if the judge changed meanwhile, that is "
            "in its variance"
        )
    if n_cases < FEWEST_CASES:
        yield f"{n_cases} cases: intervals of variances are too narrow below {FEWEST_CASES}"


def _forecast(
    components: Mapping[str, Any], sums: Sequence[float], calls: Mapping[str, PerVerdict], judge: str | None
) -> dict[str, Any]:
    variances = [part["variance"] for part in components.values()]
    if None in variances or not any(variances):
        return {"same_system": None, "next_calls": None}
    part = {name: item["variance"] for name, item in components.items()}
    design = Design(
        case=part["case"],
        system=part.get("system", part.get(TOGETHER, 0.0)),
        judge=part.get("judge", 0.0),
        n_cases=sums[0],
        n_answers=sums[1],
        squares=sums[2],
    )
    per_answer = 1.0 + math.fsum(item.calls for item in calls.values())
    usd = [item.usd for item in calls.values()]
    judged = None if None in usd else math.fsum(item or 0.0 for item in usd)
    n_answers = N_CALLS / per_answer
    options: dict[str, Any] = {
        "cases": _option(design.with_cases(n_answers), n_answers / (sums[1] / sums[0]), n_answers, judged),
        "answers": _option(design.with_answers(n_answers), n_answers, n_answers, judged),
        "verdicts": None,
    }
    own = calls.get(judge or "")
    if "judge" in components and own is not None and own.calls > 0:
        n_verdicts = N_CALLS / own.calls
        options["verdicts"] = _option(design.with_verdicts(n_verdicts), n_verdicts, n_verdicts, own.usd)
    # Of equal ones the first: a new case says more about other cases, and about the next run, than the same one again.
    best = min(
        (name for name, item in options.items() if item), key=lambda name: round(options[name]["half_width"], 12)
    )
    more = {"answers_each": round(sums[1] / sums[0], 1), "best": best}
    return {
        "same_system": design.same_cases(),
        "next_calls": {"n_calls": N_CALLS, "half_width": design.half_width(), **options, **more},
    }


def _option(design: Design, n: float, n_verdicts: float, usd: float | None) -> dict[str, Any]:
    """One way to spend the calls: what they buy, the half width then, and what the judges cost, if that is known."""
    return {"n": int(n), "half_width": design.half_width(), "judge_usd": None if usd is None else n_verdicts * usd}
