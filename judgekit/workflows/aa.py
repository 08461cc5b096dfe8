"""`judgekit aa`: how often the gates of a run fail though nothing changed, from its folder alone.

What makes two runs of one system differ comes from a second run of it, from several answers to each case, or from what
the judge said when it was asked again; the more of it there is, the more of the chance is seen.
"""

import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from judgekit.analysis.estimates import FigureRules
from judgekit.analysis.gates import check_gate_names
from judgekit.analysis.plans import ASSUMED_CORRELATION
from judgekit.analysis.pseudo_runs import (
    SCOPES,
    AATest,
    AskedCase,
    GateCounts,
    GateUnderTest,
    JudgeNoise,
    Nature,
    judge_noise,
    of_column,
)
from judgekit.analysis.run_differences import causes
from judgekit.analysis.slices import check_dimensions, slice_values
from judgekit.core.cases import Case
from judgekit.core.components import Judge
from judgekit.core.conditions import Gate
from judgekit.core.errors import ConfigError
from judgekit.core.judgments import that_count
from judgekit.core.repeats import asked_id
from judgekit.core.scores import Column, Failed, Outcomes, Pooled
from judgekit.stats.proportions import rate
from judgekit.storage.config_files import load_config
from judgekit.workflows.compared_runs import Side, open_runs
from judgekit.workflows.figure_values import check_scored, figure_columns, open_run, units_of
from judgekit.workflows.judge_reliability import about
from judgekit.workflows.models import Options
from judgekit.workflows.stored import finished_summary
from judgekit.workflows.verdicts_again import verdicts_again

MOST_RUNS, FEWEST_RUNS = 1000, 100

MOST_STEPS = 2_000_000
"""Scores that are drawn, in all pseudo-runs together, unless their number is stated."""

MOST_ANSWERS = 100
"""Answers to a case that a gate may be about."""

_MISSING = Failed("not judged", by_judge=True)


@dataclass(frozen=True)
class AAWanted:
    """What the command line asks; None: not said."""

    again: str | None = None
    """A second run of the same system."""
    config: Path | None = None
    """A config with the gates; None: those of the run."""
    n_runs: int | None = None
    seed: int = 0
    correlation: float | None = None
    """Of a case's scores in two runs of the same system, where nothing stored says it."""


def aa(run: str, wanted: AAWanted, options: Options) -> dict[str, Any]:
    """How often each gate fails or is undecided on nothing, as `judgekit aa --json` prints it.

    Raises:
        ConfigError: no such run or gate, or a second run that is not of the same system.
        StorageError: a run is damaged.
    """
    with _opened(run, wanted.again, options) as sides:
        side = sides[0]
        gates = _gates(side, wanted.config)
        under_test, reasons = _under_test(gates, side)
        names = _column_names(under_test.values())
        nature, noise = _nature(sides, names, _dimensions(gates), wanted.correlation)
        config = side.stored.config
        rules = FigureRules(config.resampling_seed, config.min_n, config.cluster_by)
        test = AATest(list(under_test.values()), finished_summary(side.stored, run), rules, config.errors)
    n_runs = wanted.n_runs or _affordable(len(nature.cases) * max(1, len(under_test)))
    below = random.Random(wanted.seed).randrange  # noqa: S311  # a simulation, not a secret
    scopes = [scope for scope in SCOPES if under_test and (scope == "other" or nature.is_measured)]
    counts = {scope: test.test(nature, scope, n_runs, below) for scope in scopes}
    places = {number: place for place, number in enumerate(under_test)}
    found = []
    for number, gate in enumerate(gates):
        entry: dict[str, Any] = {"gate": _text(gate), "metric": gate.metric, "reason": reasons.get(number)}
        entry["is_relative"] = gate.not_worse_than is not None
        for scope in SCOPES:
            entry[scope] = _rates(counts[scope], places[number]) if scope in counts and number in places else None
        found.append(entry)
    return {
        "run_id": side.identity.run_id,
        "n_cases": len(nature.cases),
        "n_runs": n_runs,
        "seed": wanted.seed,
        "noise": noise,
        "gates": found,
        "any": {scope: vars(rate(counts[scope].n_any_failed, n_runs)) if scope in counts else None for scope in SCOPES},
        "method": f"{n_runs} pairs of pseudo-runs, wilson 95% of the rate among them",
    }


@contextmanager
def _opened(run: str, again: str | None, options: Options) -> Iterator[Sequence[Side]]:
    if again is None:
        with open_run(run, options) as side:
            yield [side]
        return
    with open_runs(run, again, options) as sides:
        for side in sides:
            check_scored(side)
        a, b = (side.identity for side in sides)
        if a.run_id == b.run_id:
            raise ConfigError(f"{run} and {again} are one run, {a.run_id}; name a second run of the same system")
        other = [cause.line for cause in causes(a, b) if cause.kind != "config"]
        if other:
            raise ConfigError(f"{run} and {again} are not of the same system and judge: {', '.join(other)}")
        yield sides


def _gates(side: Side, config: Path | None) -> Sequence[Gate]:
    """The gates of the run, or those of another config as far as the run has their figures."""
    gates = side.stored.config.gates if config is None else load_config(config).gates
    if not gates:
        where = side.label if config is None else config
        raise ConfigError(f"{where}: has no gates; name a config that has some with --config")
    if config is not None:
        check_gate_names(gates, list(side.components.values()), has_indexing=True, n_answers=MOST_ANSWERS)
    check_dimensions(_dimensions(gates))
    return gates


def _under_test(gates: Sequence[Gate], side: Side) -> tuple[dict[int, GateUnderTest], dict[int, str]]:
    """By number, the gates that can be tested, and why the others cannot."""
    columns = figure_columns(side)
    pooled = {figure.name: figure for part in side.components.values() for figure in part.pooled()}
    found: dict[int, GateUnderTest] = {}
    reasons: dict[int, str] = {}
    for number, gate in enumerate(gates):
        figure: Column | Pooled | None = columns.get(gate.metric.removesuffix(".coverage"))
        figure = figure or pooled.get(gate.metric.removesuffix(".coverage"))
        if figure is None:
            reasons[number] = "it does not rest on scores of single cases and answers, so pseudo-runs have none of it"
        else:
            found[number] = GateUnderTest(gate, figure)
    return found, reasons


def _column_names(gates: Iterable[GateUnderTest]) -> list[str]:
    names: dict[str, None] = {}
    for item in gates:
        figure = item.figure
        names |= dict.fromkeys([figure.name] if isinstance(figure, Column) else figure.over)
    return list(names)


def _dimensions(gates: Sequence[Gate]) -> list[str]:
    return list(dict.fromkeys(dimension for gate in gates for dimension in gate.slice))


def _nature(
    sides: Sequence[Side], names: Sequence[str], dimensions: Sequence[str], said: float | None
) -> tuple[Nature, dict[str, Any]]:
    """What pseudo-runs are drawn from, and what is said of it."""
    side = sides[0]
    judges = _judges_again(side)
    wanted = list(dict.fromkeys([*names, *(judge.main for judge in judges)]))
    units = units_of(side)
    answers: dict[tuple[int, str], list[Outcomes]] = {}
    slices: dict[tuple[int, str], frozenset[tuple[str, str]]] = {}
    for case_id, unit in units.of_case.items():
        case = side.cases.case(case_id)
        if case is None:
            continue
        key = (unit, asked_id(case))
        answers.setdefault(key, []).extend(_readings(sides, case_id, wanted))
        slices.setdefault(key, _slices(case, dimensions))
    grouped: dict[int, list[AskedCase]] = {}
    for key, readings in answers.items():
        # Answers to one case are a unit of their own where cases are taken as independent.
        grouped.setdefault(key[0] if units.are_clusters else len(grouped), []).append(AskedCase(readings, slices[key]))
    cases = list(grouped.values())
    n_readings = max((len(case.readings) for unit in cases for case in unit), default=0)
    if n_readings > 1:
        noise = {"source": "answers", "text": _of_answers(sides, n_readings), "n": len(answers)}
        return Nature(cases, clustered=units.are_clusters), noise
    if judges:
        n = sum(len(seconds) for judge in judges for seconds in judge.seconds.values())
        text = f"{n} further verdicts of the judge on the same answers; how the system's answers differ is not known"
        return Nature(cases, judges, clustered=units.are_clusters), {"source": "judge", "text": text, "n": n}
    correlation = ASSUMED_CORRELATION if said is None else said
    how = "assumed" if said is None else "stated"
    what = f"a correlation of {correlation:g} between two runs is {how} for gates relative to a baseline"
    text = f"not known from what is stored; {what}"
    return Nature(cases, (), correlation, units.are_clusters), {"source": how, "text": text, "n": 0}


def _of_answers(sides: Sequence[Side], n_readings: int) -> str:
    n = n_readings // 2
    each = f"{n} answer{'' if n == 1 else 's'} to each case in each pseudo-run"
    if len(sides) == 1:
        return f"up to {n_readings} answers to each case; {each}"
    a, b = (side.identity.run_id for side in sides)
    is_rejudge = sides[1].stored.manifest.parent == a or sides[0].stored.manifest.parent == b
    what = "the verdicts of both runs on the same answers, the judge's chance alone" if is_rejudge else "two runs"
    return f"{what}, {a} and {b}; {each}"


def _readings(sides: Sequence[Side], case_id: str, names: Sequence[str]) -> list[Outcomes]:
    """What each run says of one answer; a run that lacks the case says nothing."""
    found = [side.cases.scores(case_id) for side in sides if side.cases.case(case_id) is not None]
    return [of_column(scores, names, _MISSING) for scores in found]


def _slices(case: Case, dimensions: Sequence[str]) -> frozenset[tuple[str, str]]:
    return frozenset((dimension, value) for dimension in dimensions for value in slice_values(case, dimension))


def _judges_again(side: Side) -> list[JudgeNoise]:
    """How the verdicts of each judge wander that was asked again about some answers."""
    stored = side.stored
    records = [record for record in stored.folder.spot_checks() if record.kind == "repeat"]
    if not records:
        return []
    components = [side.components.get(name) for name in dict.fromkeys(record.judge for record in records)]
    judges = [judge for judge in components if isinstance(judge, Judge)]  # none from a Python file, which is not run
    asked_again = about((record.judge, record.case_ids) for record in records)
    again = verdicts_again(judges, records, that_count(stored.folder.judgments(wanted=asked_again)))
    found = [judge_noise(judge.columns()[0].name, _of(again.scores.values(), judge.columns())) for judge in judges]
    return [noise for noise in found if noise.seconds]


def _of(scores: Iterable[Mapping[str, Sequence[float]]], columns: Sequence[Column]) -> list[dict[str, Sequence[float]]]:
    """The scores of one judge alone."""
    names = {column.name for column in columns}
    return [{name: values for name, values in own.items() if name in names} for own in scores]


def _affordable(n_scores: int) -> int:
    return max(FEWEST_RUNS, min(MOST_RUNS, MOST_STEPS // max(1, n_scores)))


def _text(gate: Gate) -> str:
    if gate.not_worse_than is not None:
        return f"{gate.metric} not worse than {gate.not_worse_than} by more than {gate.margin:g}"
    op, limit = gate.limit
    bound = "" if gate.bound == "point" else f" ({gate.bound} end)"
    where = "".join(f" [{dimension}={value}]" for dimension, value in gate.slice.items())
    return f"{gate.metric}{where} {op} {limit:g}{bound}"


def _rates(counts: GateCounts, place: int) -> dict[str, Any]:
    n = counts.n_runs
    return {
        "missed": vars(rate(counts.states[place]["missed"], n)),
        "undecided": vars(rate(counts.states[place]["undecided"], n)),
        "failed": vars(rate(counts.n_failed[place], n)),
    }
