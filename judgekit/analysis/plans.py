"""How many cases, answers to each and labels a wanted difference takes, from the spread of what is known."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from judgekit.analysis.deltas import BINARY_METHOD, CLUSTER_METHOD, MEAN_METHOD
from judgekit.stats.means import mean, standard_deviation
from judgekit.stats.paired import minimum_detectable_effect
from judgekit.stats.power import (
    labels_for_proportion,
    pairs_for_mean,
    pairs_for_rate,
    pairs_for_rate_margin,
    sd_interval,
)
from judgekit.stats.proportions import wilson_interval
from judgekit.stats.repeated_measures import answer_variance, case_row

ASSUMED_CORRELATION = 0.5
"""Of the scores of one case in two versions of a system, where nothing says it."""

MOST_ANSWERS = 10
"""Answers to each case up to which a plan looks."""

NO_REPEATS = 'not known, since no case was asked twice; a run with "repeats": 3 tells what asking again is worth'

Ends = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Spread:
    """How much the paired difference of one unit varies: a case, or a cluster of cases."""

    sd: float
    ends: Ends | None
    """95% interval of sd."""
    rests_on: str
    """What it was found from, or what is assumed."""
    differing: float | None = None
    """Of a 0/1 score over independent cases, the share of pairs that differ; then sd is not asked."""
    n_units: int | None = None
    """Units at hand; None without a run."""
    cases_per_unit: float = 1.0
    unit: str = "cases"
    within: float | None = None
    """Variance of the difference that more answers to a case would average out, with one answer in each version; None
    if it is not known."""
    answers: float = 1.0
    """Answers to each case that sd is of."""

    def with_answers(self, n: int) -> "Spread":
        """With so many answers to each case instead; these cannot vary more than the differences do."""
        within = min(self.within or 0.0, self.sd**2 * self.answers)
        variance = self.sd**2 - within / self.answers + within / n
        return replace(self, sd=math.sqrt(variance), ends=None, answers=n, cases_per_unit=float(n))


@dataclass(frozen=True, slots=True)
class PlanGoal:
    """The difference that is to be found, and how surely."""

    difference: float
    power: float


def spread_of_differences(units: Sequence[Sequence[float]], rests_on: str, *, is_rate: bool, unit: str) -> Spread:
    """The spread of paired differences that are there, unit by unit.

    Of units of several cases it is that of the clustered mean: `sd(sum of (difference - mean) of a unit) G / n`.

    Args:
        units: b - a of the cases of each unit.
        rests_on: what they are.
        is_rate: differences of a 0/1 score over independent cases.
        unit: what a unit is called.
    """
    n = sum(map(len, units))
    values = [value for own in units for value in own]
    centre = mean(values) or 0.0
    sums = [math.fsum(value - centre for value in own) * len(units) / n for own in units] if n else []
    spread = Spread(
        sd=standard_deviation(sums) or 0.0,
        ends=sd_interval(sums),
        rests_on=rests_on,
        n_units=len(units),
        cases_per_unit=n / len(units) if units else 1.0,
        unit=unit,
    )
    if not is_rate:
        return spread
    n_differ = sum(value != 0 for value in values)
    return replace(spread, differing=n_differ / n if n else 0.0, ends=wilson_interval(n_differ, n))


def spread_of_scores(values: Sequence[float], correlation: float, *, is_rate: bool, rests_on: str) -> Spread:
    """The spread that the differences of two versions would have if their scores had the spread of these.

    `sd^2 = 2 var (1 - correlation)`; of a 0/1 score with rate p, `2 p (1 - p) (1 - correlation)` of the pairs differ.
    """
    sd, ends = standard_deviation(values) or 0.0, sd_interval(values)
    factor = math.sqrt(2 * (1 - correlation))
    turned = None if ends is None else (factor * ends[0], factor * ends[1])
    spread = Spread(factor * sd, turned, rests_on, n_units=len(values))
    if not is_rate:
        return spread
    n_high = sum(value == max(values) for value in values) if values else 0
    return with_rate(spread, n_high / len(values) if values else 0.0, correlation, wilson_interval(n_high, len(values)))


def with_rate(spread: Spread, rate: float, correlation: float, ends: Ends | None) -> Spread:
    """The spread of a 0/1 score of this rate, whose interval gives that of the share of pairs that differ."""
    found = sorted(_differing(p, correlation) for p in ends) if ends is not None else None
    if found and ends and ends[0] < 0.5 < ends[1]:
        found[1] = _differing(0.5, correlation)
    return replace(
        spread, differing=_differing(rate, correlation), ends=None if found is None else (found[0], found[1])
    )


def _differing(rate: float, correlation: float) -> float:
    return 2 * rate * (1 - rate) * (1 - correlation)


def with_repeats(spread: Spread, repeats: Sequence[Mapping[str, Sequence[float]]], n_versions: int = 2) -> Spread:
    """The same, with what the answers to one case differ by.

    Args:
        spread: of the mean of the answers to each case.
        repeats: by run, the scores of the answers to each case.
        n_versions: versions that the difference is of; one run stands for both.
    """
    parts = [found for run in repeats if (found := _within(run)) is not None]
    if len(parts) < len(repeats):
        return spread
    variance = math.fsum(parts) * n_versions / len(parts)
    sizes = [len(own) for run in repeats for own in run.values()]
    return replace(spread, within=variance, answers=mean(sizes) or 1.0)


def _within(run: Mapping[str, Sequence[float]]) -> float | None:
    return answer_variance(*map(math.fsum, zip(*(case_row(own) for own in run.values()), strict=True)))


def cases_plan(spread: Spread, goal: PlanGoal) -> dict[str, Any]:
    """How many cases find a difference, with the ends that come from not knowing the spread exactly; as JSON."""
    ends = [_needed(spread, goal, end) for end in spread.ends] if spread.ends is not None else [None, None]
    is_rate = spread.differing is not None
    has_clusters = spread.unit != "cases" or spread.answers > 1
    return {
        "n": _needed(spread, goal),
        "low": ends[0],
        "high": ends[1],
        "n_to_pass_as_margin": _needed_to_pass(spread, goal),
        "unit": spread.unit,
        "n_cases": _times(_needed(spread, goal), spread.cases_per_unit),
        "share_that_differs" if is_rate else "sd": spread.differing if is_rate else spread.sd,
        "interval": None if spread.ends is None else list(spread.ends),
        "rests_on": spread.rests_on,
        "answers_per_case": spread.answers,
        "n_here": spread.n_units,
        "detectable_here": _detectable(spread, goal.power),
        "method": CLUSTER_METHOD if has_clusters else BINARY_METHOD if is_rate else MEAN_METHOD,
    }


def _times(n: int | None, per_unit: float) -> int | None:
    return None if n is None else math.ceil(n * per_unit)


def _needed(spread: Spread, goal: PlanGoal, end: float | None = None) -> int | None:
    """Units that find the difference; `end` takes the place of the spread."""
    if spread.differing is None:
        return pairs_for_mean(spread.sd if end is None else end, goal.difference, goal.power)
    share = max(spread.differing if end is None else end, goal.difference)
    return pairs_for_rate((share - goal.difference) / 2, (share + goal.difference) / 2, goal.power)


def _needed_to_pass(spread: Spread, goal: PlanGoal) -> int | None:
    """Units with which a gate with this margin passes though nothing changed."""
    if spread.differing is None:
        return pairs_for_mean(spread.sd, goal.difference, goal.power)
    return pairs_for_rate_margin(spread.differing, goal.difference, goal.power) if spread.differing else None


def _detectable(spread: Spread, power: float) -> float | None:
    if spread.n_units is None:
        return None
    sd = math.sqrt(spread.differing) if spread.differing is not None else spread.sd
    return minimum_detectable_effect(sd, spread.n_units, power)


def answers_plan(spread: Spread, goal: PlanGoal) -> dict[str, Any]:
    """What asking each case several times is worth: cases and answers for each number of answers; as JSON."""
    if spread.within is None:
        return {"rows": [], "reason": NO_REPEATS, "within_sd": None}
    rows = []
    for n in range(1, MOST_ANSWERS + 1):
        needed = _needed(spread.with_answers(n), goal)
        if needed is not None:
            rows.append({"answers_per_case": n, "n_cases": needed, "n_answers": n * needed})
    reason = None if rows else "the answers to a case do not differ, nor do the cases"
    return {"rows": rows, "reason": reason, "within_sd": math.sqrt(spread.within)}


def labels_plan(within: float, agreement: float | None) -> dict[str, Any]:
    """How many human labels know the agreement of a judge within plus or minus `within`; as JSON."""
    return {
        "n": labels_for_proportion(0.5 if agreement is None else agreement, within),
        "n_at_most": labels_for_proportion(0.5, within),
        "within": within,
        "agreement": agreement,
        "method": "wilson 95%, half of its width",
    }
