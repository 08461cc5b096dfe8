"""A/A tests: how often the gates of a run fail though nothing changed, from pseudo-runs that are drawn from it."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from judgekit.analysis.deltas import Pairs, PooledPairs, named_delta, untested_delta
from judgekit.analysis.estimates import ErrorPolicy, FigureRules, Tally
from judgekit.analysis.gates import check_gates
from judgekit.analysis.relative_gates import decide
from judgekit.core.comparison import COVERAGE
from judgekit.core.conditions import Gate, GateState
from judgekit.core.runs import RunSummary
from judgekit.core.scores import Column, Outcome, Outcomes, Pooled

Scope = Literal["same", "other"]
"""`same`: the cases of the run again. `other`: cases like these, drawn with replacement."""

SCOPES: tuple[Scope, ...] = ("same", "other")

Below = Callable[[int], int]
"""A random whole number from 0 and below this one."""

Readings = Sequence[Outcomes]


@dataclass(frozen=True, slots=True)
class AskedCase:
    """One case with all answers that are stored of it."""

    readings: Readings
    """Its scores by column: one for each answer, or for each run of the same system."""
    slices: frozenset[tuple[str, str]] = frozenset()
    """(dimension, value) of each slice that it is in."""


@dataclass(frozen=True, slots=True)
class JudgeNoise:
    """What a judge said of answers that it was asked about again."""

    main: str
    """The column by whose first value a second one is drawn."""
    seconds: Mapping[float, Sequence[Mapping[str, float]]]
    """By that value, the scores of a further verdict, by column."""

    def moved(self, outcomes: Outcomes, below: Below) -> Outcomes:
        """The scores with those of the judge as another verdict would have them."""
        first = outcomes.get(self.main)
        drawn = self.seconds.get(first) if isinstance(first, float) else None
        if not drawn:
            return outcomes
        second = drawn[below(len(drawn))]
        return {
            name: second.get(name, value) if isinstance(value, float) else value for name, value in outcomes.items()
        }


@dataclass(frozen=True)
class Nature:
    """What is drawn from: units of cases, and what makes two runs of the same system differ."""

    units: Sequence[Sequence[AskedCase]]
    """Clusters of cases; one case each where cases are independent."""
    judges: Sequence[JudgeNoise] = ()
    """Used where no case has several readings."""
    correlation: float | None = None
    """Assumed of the scores of a case in two runs, if nothing stored says how they differ; None: something does."""
    clustered: bool = False
    """Whether a run takes the answers of a unit together."""
    cases: Sequence[AskedCase] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "cases", [case for unit in self.units for case in unit])

    @property
    def is_measured(self) -> bool:
        """Whether something stored says how two runs of the same system differ."""
        return self.correlation is None

    def pair(self, case: AskedCase, below: Below) -> tuple[Readings, Readings]:
        """What two runs of the same system say of a case, with as many answers each.

        Of several readings, two halves that share none. With one: what its judge may say instead; where that is not
        known, the same with a chance of the correlation, and else what is said of another case.
        """
        n = len(case.readings)
        if n > 1:
            shuffled = list(case.readings)
            for place in range(n - 1):
                other = place + below(n - place)
                shuffled[place], shuffled[other] = shuffled[other], shuffled[place]
            return shuffled[: n // 2], shuffled[n // 2 : 2 * (n // 2)]
        outcomes = case.readings[0]
        if self.correlation is not None:
            is_same = below(1_000_000) < self.correlation * 1_000_000
            return case.readings, case.readings if is_same else self.cases[below(len(self.cases))].readings[:1]
        for judge in self.judges:
            outcomes = judge.moved(outcomes, below)
        return case.readings, [outcomes]


@dataclass(frozen=True)
class GateUnderTest:
    """A gate, and what its figure is made of: a column, or sums."""

    gate: Gate
    figure: Column | Pooled


@dataclass(frozen=True)
class GateCounts:
    """How often each gate came out how, and how often a run would fail by any of them."""

    states: Sequence[Counter[GateState]]
    n_failed: Sequence[int]
    """Of each gate, pseudo-runs with exit code 1 for it."""
    n_any_failed: int
    n_runs: int


@dataclass(frozen=True)
class AATest:
    """Gates, and the rules by which the run makes its figures."""

    gates: Sequence[GateUnderTest]
    summary: RunSummary
    """Of the run; its figures are replaced by those of pseudo-runs."""
    rules: FigureRules
    policy: ErrorPolicy

    def test(self, nature: Nature, scope: Scope, n_runs: int, below: Below) -> GateCounts:
        """Draw pseudo-runs and hold every gate against them.

        A gate on a limit is held against the second of two runs, a gate relative to a baseline against the first. Both
        are of the same system, so whatever is missed is missed by chance.

        Assumptions: cases (or clusters) of `other` are independent; the stored answers and verdicts are as different
        as those to come. A gate on a limit is tested as if the true figure were that of the run.

        Args:
            nature: what is drawn from.
            scope: whether cases are drawn too.
            n_runs: pairs of pseudo-runs.
            below: draws.

        Source: Kohavi, Longbotham, Sommerfield and Henne 2009, "Controlled Experiments on the Web" (A/A tests);
        Efron and Tibshirani 1993, "An Introduction to the Bootstrap" (resampling cases).
        """
        states: list[Counter[GateState]] = [Counter() for _ in self.gates]
        n_failed = [0] * len(self.gates)
        n_any = 0
        for _ in range(n_runs):
            any_failed = False
            for number, (state, fails) in enumerate(self._one(nature, scope, below)):
                states[number][state] += 1
                n_failed[number] += fails
                any_failed = any_failed or fails
            n_any += any_failed
        return GateCounts(states, n_failed, n_any, n_runs)

    def _one(self, nature: Nature, scope: Scope, below: Below) -> list[tuple[GateState, bool]]:
        held = [
            _OnLimit(item, self) if item.gate.not_worse_than is None else _OnBaseline(item, self) for item in self.gates
        ]
        n = len(nature.units)
        for number in range(n):
            unit = nature.units[number if scope == "same" else below(n)]
            cluster = number if nature.clustered else None
            for case in unit:
                first, second = nature.pair(case, below)
                for gate in held:
                    gate.add(case, first, second, cluster)
        return [gate.outcome() for gate in held]


class _OnLimit:
    """A gate on a limit, over a pseudo-run."""

    def __init__(self, item: GateUnderTest, test: AATest) -> None:
        self._gate, self._test = item.gate, test
        rules = replace(test.rules, has_intervals=item.gate.bound != "point")
        figure = item.figure
        self._tally = Tally([figure], [], rules) if isinstance(figure, Column) else Tally([], [figure], rules)

    def add(self, case: AskedCase, _: Readings, second: Readings, cluster: int | None) -> None:
        """Count one case of the second run."""
        if set(self._gate.slice.items()) <= case.slices:
            for outcomes in second:
                self._tally.add(outcomes, cluster)

    def outcome(self) -> tuple[GateState, bool]:
        """How the gate came out, and whether a run fails by it."""
        policy = self._test.policy
        figures = {**self._tally.figures(policy), **self._tally.figures(policy, "operational")}
        part: dict[str, Any] = {"overall": figures}
        if self._gate.slice:
            ((dimension, value),) = self._gate.slice.items()
            part = {"slices": {dimension: {value: figures}}}
        [result] = check_gates([self._gate], self._test.summary.model_copy(update=part))
        return result.state, result.fails


class _OnBaseline:
    """A gate relative to a baseline, over two pseudo-runs of which the first is the baseline."""

    def __init__(self, item: GateUnderTest, test: AATest) -> None:
        self._gate, self._policy = item.gate, test.policy
        self._pairs = Pairs(item.figure) if isinstance(item.figure, Column) else PooledPairs(item.figure)
        self._name = item.figure.name

    def add(self, _: AskedCase, first: Readings, second: Readings, cluster: int | None) -> None:
        """Count one case of both runs."""
        for a, b in zip(first, second, strict=True):
            if isinstance(self._pairs, PooledPairs):
                self._pairs.add(a, b, cluster)
            else:
                self._pairs.add(a.get(self._name), b.get(self._name), self._policy, cluster)

    def outcome(self) -> tuple[GateState, bool]:
        """How the gate came out, and whether a run fails by it."""
        gate, name = self._gate, self._gate.metric.removesuffix(COVERAGE)
        of_both = self._pairs.delta() if isinstance(self._pairs, PooledPairs) else untested_delta(name, self._pairs)
        delta = named_delta([of_both], gate.metric)
        passed = None if delta is None else decide(delta, gate.margin or 0.0).passed
        if passed is None:
            return "undecided", gate.undecided == "fail"
        return ("passed", False) if passed else ("missed", True)


def judge_noise(main: str, again: Sequence[Mapping[str, Sequence[float]]]) -> JudgeNoise:
    """How the verdicts of a judge wander, from answers that it was asked about more than once.

    Args:
        main: the column that says the verdict in one number.
        again: of each such answer, by column the score of each verdict, the run's own first.
    """
    seconds: dict[float, list[dict[str, float]]] = {}
    for scores in again:
        own = scores.get(main, ())
        for place in range(1, len(own)):
            second = {name: values[place] for name, values in scores.items() if place < len(values)}
            seconds.setdefault(own[0], []).append(second)
    return JudgeNoise(main, seconds)


def of_column(outcomes: Mapping[str, Outcome], names: Sequence[str], missing: Outcome) -> Outcomes:
    """The outcomes of these columns alone; `missing` where there is none."""
    return {name: outcomes.get(name, missing) for name in names}
