"""`judgekit plan`: how many cases, answers to each and labels it takes to know what is wanted.

The spread comes from two stored runs (their paired differences), from one (its scores, and a correlation that is
assumed), or from stated figures. Nothing is asked and nothing is written.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from judgekit.analysis.plans import (
    ASSUMED_CORRELATION,
    PlanGoal,
    Spread,
    answers_plan,
    cases_plan,
    labels_plan,
    spread_of_differences,
    spread_of_scores,
    with_rate,
    with_repeats,
)
from judgekit.core.errors import ConfigError
from judgekit.core.scores import Column
from judgekit.workflows.compare import compared
from judgekit.workflows.compared_runs import CompareOptions, Side, Sides, open_runs
from judgekit.workflows.figure_values import Units, check_scored, figure_column, open_run, units_of, values_of
from judgekit.workflows.models import Options


@dataclass(frozen=True)
class PlanWanted:
    """What the command line asks; None: not said."""

    metric: str | None = None
    difference: float | None = None
    power: float = 0.8
    correlation: float | None = None
    """Of the scores of a case in two versions."""
    sd: float | None = None
    """Spread of a score over cases, where there is no run."""
    rate: float | None = None
    """Mean of a 0/1 score, where there is no run."""
    within: float | None = None
    """Half width of the interval of a judge's agreement."""
    agreement: float | None = None
    """The agreement that is expected."""


def plan(runs: Sequence[str], wanted: PlanWanted, options: Options) -> dict[str, Any]:
    """What it takes, as `judgekit plan --json` prints it.

    Args:
        runs: none, one run, or two: the baseline and a later version of the same system.
        wanted: what is to be known.
        options: where runs are kept.

    Raises:
        ConfigError: options that do not go together, no such run or figure, or two runs that cannot be compared.
        StorageError: a run is damaged.
    """
    _check(runs, wanted)
    labels = None if wanted.within is None else labels_plan(wanted.within, wanted.agreement)
    found: dict[str, Any] = {"metric": wanted.metric, "power": wanted.power, "level": 0.05}
    if wanted.difference is None:
        return {**found, "difference": None, "cases": None, "answers": None, "labels": labels}
    goal = PlanGoal(wanted.difference, wanted.power)
    spread = _spread(runs, wanted, options)
    return {
        **found,
        "difference": wanted.difference,
        "cases": cases_plan(spread, goal),
        "answers": answers_plan(spread, goal),
        "labels": labels,
    }


def _check(runs: Sequence[str], wanted: PlanWanted) -> None:
    stated = [name for name in ("sd", "rate") if getattr(wanted, name) is not None]
    if wanted.difference is None and wanted.within is None:
        raise ConfigError("say what is to be known: --difference 0.1, or --within 0.05 for human labels")
    if wanted.agreement is not None and wanted.within is None:
        raise ConfigError("--agreement belongs to --within, how exactly it is to be known")
    if len(runs) > 2:
        raise ConfigError(f"expected at most two runs, found {len(runs)}")
    if runs and stated:
        raise ConfigError(f"--{stated[0]} is for a plan without a run; a run says it itself")
    if wanted.correlation is not None and len(runs) == 2:
        raise ConfigError("--correlation is for one run or none; two runs say it themselves")
    _check_ranges(wanted)
    if wanted.difference is None:
        return
    if runs and wanted.metric is None:
        raise ConfigError("--metric is missing: the figure whose difference is to be found, such as groundedness")
    if not runs and len(stated) != 1:
        raise ConfigError("name a run, or state --sd of a score over cases, or --rate of a score that is 0 or 1")


def _check_ranges(wanted: PlanWanted) -> None:
    for name, low, high in (
        ("power", 0.5, 1.0),
        ("correlation", -1.0, 1.0),
        ("rate", 0.0, 1.0),
        ("within", 0.0, 0.5),
        ("difference", 0.0, float("inf")),
        ("sd", 0.0, float("inf")),
    ):
        value = getattr(wanted, name)
        if value is not None and not low < value < high:
            limits = f"above {low:g}" if high == float("inf") else f"between {low:g} and {high:g}"
            raise ConfigError(f"--{name} {value:g}: expected a number {limits}")
    if wanted.agreement is not None and not 0 <= wanted.agreement <= 1:
        raise ConfigError(f"--agreement {wanted.agreement:g}: expected a share from 0 to 1")
    if wanted.rate is not None and wanted.difference is not None and wanted.difference >= 1:
        raise ConfigError("--difference: rates differ by less than 1")


def _spread(runs: Sequence[str], wanted: PlanWanted, options: Options) -> Spread:
    metric = wanted.metric or ""
    if len(runs) == 2:
        with open_runs(runs[0], runs[1], options) as sides:
            return _of_two(sides, metric)
    if runs:
        with open_run(runs[0], options) as side:
            return _of_one(side, metric, wanted.correlation)
    correlation = ASSUMED_CORRELATION if wanted.correlation is None else wanted.correlation
    rests_on = f"stated, and {_correlated(wanted.correlation)}"
    if wanted.rate is not None:
        return with_rate(Spread(0.0, None, rests_on), wanted.rate, correlation, None)
    return Spread((wanted.sd or 0.0) * (2 * (1 - correlation)) ** 0.5, None, rests_on)


def _correlated(said: float | None) -> str:
    if said is None:
        return f"a correlation of {ASSUMED_CORRELATION:g} between two versions is assumed"
    return f"a correlation of {said:g} between two versions is stated"


def _of_two(sides: Sides, metric: str) -> Spread:
    """The spread of what two runs differ by in each case."""
    for side in sides:
        check_scored(side)
    column = figure_column(sides[1], metric)
    comparison = compared(sides, CompareOptions())
    if comparison.same_run is not None:
        raise ConfigError(f"{comparison.same_run}, so their differences say nothing; name one of them alone")
    a, b = (values_of(side, column) for side in sides)
    edited = comparison.changed_cases
    pairs = {case_id: b[case_id] - a[case_id] for case_id in a if case_id in b and case_id not in edited}
    if len(pairs) < 2:
        raise ConfigError(f"{metric}: {len(pairs)} cases have a value in both runs, so there is no spread to plan with")
    units = units_of(sides[1])
    names = f"{comparison.run_a} and {comparison.run_b}"
    spread = spread_of_differences(
        _grouped(pairs, units),
        f"the paired differences of {len(pairs)} cases of {names}",
        is_rate=column.binary and not units.are_clusters and _has_unit_range(column),
        unit=_unit(units),
    )
    if not units.are_repeats:
        return spread
    repeats = [_by_unit({case_id: values[case_id] for case_id in pairs}, units) for values in (a, b)]
    return replace(with_repeats(spread, repeats), cases_per_unit=1.0)


def _of_one(side: Side, metric: str, said: float | None) -> Spread:
    """The spread of the scores of one run, for differences of two versions that correlate so."""
    correlation = ASSUMED_CORRELATION if said is None else said
    column = figure_column(side, metric)
    values = values_of(side, column)
    if len(values) < 2:
        raise ConfigError(f"{metric}: {len(values)} cases have a value, so there is no spread to plan with")
    units = units_of(side)
    rests_on = f"the scores of {len(values)} cases of {side.identity.run_id}, and {_correlated(said)}"
    if not units.are_clusters:
        is_rate = column.binary and _has_unit_range(column)
        return spread_of_scores(list(values.values()), correlation, is_rate=is_rate, rests_on=rests_on)
    spread = spread_of_differences(_grouped(values, units), rests_on, is_rate=False, unit=_unit(units))
    # Scores of one run take the place of differences: two of them, as far as they do not go together.
    factor = (2 * (1 - correlation)) ** 0.5
    ends = None if spread.ends is None else (factor * spread.ends[0], factor * spread.ends[1])
    spread = replace(spread, sd=factor * spread.sd, ends=ends)
    if not units.are_repeats:
        return spread
    return replace(with_repeats(spread, [_by_unit(values, units)]), cases_per_unit=1.0)


def _has_unit_range(column: Column) -> bool:
    return (column.low, column.high) == (0.0, 1.0)


def _unit(units: Units) -> str:
    return "clusters" if units.are_clusters and not units.are_repeats else "cases"


def _by_unit(values: Mapping[str, float], units: Units) -> dict[str, list[float]]:
    found: dict[str, list[float]] = {}
    for case_id, value in values.items():
        found.setdefault(str(units.of_case[case_id]), []).append(value)
    return found


def _grouped(values: Mapping[str, float], units: Units) -> list[list[float]]:
    return list(_by_unit(values, units).values())
