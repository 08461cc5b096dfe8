"""Several answers to each case: where the variance of scores lies, how reliably cases pass, and what more calls buy."""

import math
from array import array
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from judgekit.analysis.estimates import ErrorPolicy, FigureRules, Figures
from judgekit.analysis.judge_calls import PerVerdict
from judgekit.analysis.score_variance import variance_notes, variance_record
from judgekit.analysis.slices import Clusters
from judgekit.core.cases import Case
from judgekit.core.repeats import ALL_PASS, ANY_PASSES, REPEAT_OF, REPEATS_TOGETHER, asked_id
from judgekit.core.runs import Notices
from judgekit.core.scores import Column, Estimate, Failed, Outcomes
from judgekit.stats.bootstrap import Interval, Resampling, Row, bootstrap_mean
from judgekit.stats.clusters import cluster_sums, clustered_bootstrap_mean, clustered_wilson
from judgekit.stats.means import mean
from judgekit.stats.proportions import wilson_interval
from judgekit.stats.repeated_measures import all_pass, any_passes, case_row, squared_deviations

MOST_K = 10
"""pass^k for every k up to this; above, only for all answers."""

MOST_NAMED = 10
"""Cases whose answers differ that are listed for each figure."""


def numbers_drawn(n_answers: int) -> list[int]:
    """Each k of pass^k for cases with so many answers; none for a single one."""
    if n_answers < 2:
        return []
    return [*range(1, min(n_answers, MOST_K) + 1), *([n_answers] if n_answers > MOST_K else [])]


def most_answers(cases: Collection[Case]) -> int:
    """Answers to the case that has most."""
    found = Counter(asked_id(case) for case in cases if REPEAT_OF in case.metadata)
    if found:
        found.update(case.id for case in cases if REPEAT_OF not in case.metadata and case.id in found)
    return max(found.values(), default=min(len(cases), 1))


def can_pass(column: Column) -> bool:
    """Whether an answer passes or fails in a score, so that there is a pass^k of it."""
    is_shown = column.aggregate != "" and column.section == "overall"
    return is_shown and column.binary and column.has_direction and not column.turns_if_unanswerable


def pass_names(columns: Iterable[Column], n_answers: int) -> list[str]:
    """Names of every pass^k and pass@k of a run."""
    return [
        f"{column.aggregate or column.name}.{sign}{k}"
        for column in columns
        if can_pass(column)
        for sign in (ALL_PASS, ANY_PASSES)
        for k in numbers_drawn(n_answers)
    ]


@dataclass(frozen=True)
class VerdictsAgain:
    """What judges said when they were asked about the same answers again, in the same wording of the same model."""

    scores: Mapping[str, Mapping[str, Sequence[float]]] = field(default_factory=dict)
    """By case id and score name: by the verdict of the run first, then by each further one."""
    n_later: Mapping[str, int] = field(default_factory=dict)
    """By judge: verdicts that came more than a day after the run's."""


@dataclass(slots=True)
class _Answers:
    """The scores of one column, each with the number of the case that was asked."""

    column: Column
    values: "array[float]" = field(default_factory=lambda: array("d"))
    cases: "array[int]" = field(default_factory=lambda: array("q"))
    failed: "array[int]" = field(default_factory=lambda: array("q"))
    """Case of each answer that the system failed to give."""
    unjudged: "array[int]" = field(default_factory=lambda: array("q"))
    """Case of each answer that the judge failed to judge."""
    verdicts: list[tuple[int, Sequence[float]]] = field(default_factory=list)
    """Case, and the scores of an answer that was judged more than once."""

    def by_case(self) -> dict[int, list[float]]:
        """The scores of the answers to each case that has any."""
        found: defaultdict[int, list[float]] = defaultdict(list)
        for case, value in zip(self.cases, self.values, strict=True):
            found[case].append(value)
        return found


class RepeatedAnswers:
    """Gathers answers one by one; only for a run in which a case is answered more than once."""

    def __init__(self, columns: Sequence[Column], policy: ErrorPolicy, rules: FigureRules) -> None:
        """Prepare for these columns.

        Args:
            columns: of all metrics and judges; a case must bring an outcome for each.
            policy: what a failed answer is in pass^k; in a variance it is always missing.
            rules: seed, what is small, and what is resampled together.
        """
        self._policy, self._rules = policy, rules
        self._answers = [
            _Answers(column) for column in columns if column.aggregate != "" and column.section == "overall"
        ]
        by_case = rules.cluster_by in (None, REPEATS_TOGETHER)
        self._numbering = None if by_case or rules.cluster_by is None else Clusters(rules.cluster_by)
        self._numbers: dict[str, int] = {}
        self._first_ids: list[str] = []
        self._clusters: list[int] = []
        self._n_asked: list[int] = []

    def add(self, case: Case, outcomes: Outcomes, again: Mapping[str, Sequence[float]] | None = None) -> None:
        """Count one answer, with what `VerdictsAgain` has of it."""
        number = self._numbers.setdefault(asked_id(case), len(self._numbers))
        if number == len(self._n_asked):
            self._n_asked.append(0)
            self._first_ids.append(case.id)
            self._clusters.append(number if self._numbering is None else self._numbering.number(case))
        self._n_asked[number] += 1
        for found in self._answers:
            name = found.column.name
            outcome = outcomes[name]
            if isinstance(outcome, float):
                found.values.append(outcome)
                found.cases.append(number)
                said = again.get(name, ()) if again else ()
                # A score that follows from something else, such as an abstention, is not the verdict's.
                if len(said) > 1 and said[0] == outcome:
                    found.verdicts.append((number, said))
            elif isinstance(outcome, Failed):
                (found.unjudged if outcome.by_judge else found.failed).append(number)

    @property
    def n_answers(self) -> int:
        """Answers to the case that has most."""
        return max(self._n_asked, default=0)

    def warnings(self) -> Notices:
        """Said if intervals take answers to one case for independent cases."""
        if self._rules.cluster_by is not None or self.n_answers < 2:
            return []
        text = (
            f"{sum(self._n_asked)} answers to {len(self._n_asked)} cases, but intervals take them for as many cases; "
            f'add "cluster_by": "{REPEATS_TOGETHER}"'
        )
        return [("repeats_apart", text)]

    def pass_figures(self) -> Figures:
        """pass^k and pass@k of each score that passes or fails, by name."""
        found: Figures = {}
        for answers in self._answers:
            if can_pass(answers.column):
                found |= self._pass_figures(answers)
        return found

    def _pass_figures(self, answers: _Answers) -> Figures:
        name, counts = answers.column.aggregate or answers.column.name, self._counts(answers)
        if not any(item.n + item.n_failed for item in counts):
            return {}
        return {
            f"{name}.{sign}{k}": self._pass_figure(sign, k, counts)
            for sign in (ALL_PASS, ANY_PASSES)
            for k in numbers_drawn(self.n_answers)
        }

    def _counts(self, answers: _Answers) -> "list[_Passed]":
        """By case, how many answers pass, have a score, and failed."""
        passed = Counter(
            case for case, value in zip(answers.cases, answers.values, strict=True) if value == answers.column.best
        )
        n, failed, unjudged = Counter(answers.cases), Counter(answers.failed), Counter(answers.unjudged)
        if self._policy == "as_zero":
            n.update(failed)
            failed = Counter()
        failed.update(unjudged)
        return [_Passed(passed[case], n[case], failed[case]) for case in range(len(self._n_asked))]

    def _pass_figure(self, sign: str, k: int, counts: "Sequence[_Passed]") -> Estimate:
        share = all_pass if sign == ALL_PASS else any_passes
        told = [(case, item) for case, item in enumerate(counts) if item.n >= k]
        wanted = [item for item in counts if item.n + item.n_failed >= k]
        values = [share(item.n_passed, item.n, k) for _, item in told]
        worst = best = None
        if any(item.n_failed for item in wanted):
            worst = mean([share(item.n_passed, item.n + item.n_failed, k) for item in wanted])
            best = mean([share(item.n_passed + item.n_failed, item.n + item.n_failed, k) for item in wanted])
        interval = self._interval(values, [self._clusters[case] for case, _ in told])
        how = "all of" if sign == ALL_PASS else "at least one of"
        return Estimate(
            value=mean(values),
            low=interval.low,
            high=interval.high,
            n=len(values),
            n_not_applicable=len(counts) - len(wanted),
            n_error=len(wanted) - len(values),
            worst=worst,
            best=best,
            method=f"mean over cases of the share of draws in which {how} {k} answers pass, {interval.method}",
            small=len(values) < self._rules.min_n,
        )

    @property
    def _resampling(self) -> Resampling:
        return Resampling(self._rules.seed, "cases" if self._numbering is None else "clusters")

    def _interval(self, values: Sequence[float], clusters: Sequence[int]) -> Interval:
        """Wilson's where each case has 0 or 1, which alone has a width if all cases have the same."""
        if set(values) <= {0.0, 1.0}:
            if self._numbering is not None:
                return clustered_wilson([value == 1.0 for value in values], clusters)
            low, high = wilson_interval(sum(values), len(values)) or (None, None)
            return Interval(low, high, "wilson 95%")
        if self._numbering is not None:
            return clustered_bootstrap_mean(values, clusters, (0.0, 1.0), self._resampling)
        return bootstrap_mean(Counter(values), (0.0, 1.0), self._resampling)

    def record(
        self, judges: Mapping[str, str], calls: Mapping[str, PerVerdict], n_later: Mapping[str, int]
    ) -> dict[str, Any]:
        """The part `repeats` of metrics.json.

        Args:
            judges: by score name, the judge whose verdict it rests on; a score without one is calculated.
            calls: by judge, what a verdict takes.
            n_later: of `VerdictsAgain`.
        """
        return {
            "n_cases": len(self._n_asked),
            "n_answers": sum(self._n_asked),
            "cases_by_answers": {str(n): count for n, count in sorted(Counter(self._n_asked).items())},
            "calls_per_answer": 1.0 + math.fsum(item.calls for item in calls.values()),
            "figures": self.figures(judges, calls, n_later),
        }

    def figures(
        self, judges: Mapping[str, str], calls: Mapping[str, PerVerdict], n_later: Mapping[str, int]
    ) -> dict[str, dict[str, Any]]:
        """By name, what is known of each figure of which a case has two answers with a score; arguments as `record`."""
        found = {}
        for answers in self._answers:
            name, judge = answers.column.aggregate or answers.column.name, judges.get(answers.column.name)
            record = self._figure(answers, judge, calls, n_later.get(judge or "", 0))
            if record is not None:
                found[name] = record
        return found

    def _figure(
        self, answers: _Answers, judge: str | None, calls: Mapping[str, PerVerdict], n_later: int
    ) -> dict[str, Any] | None:
        by_case = answers.by_case()
        if len(by_case) == len(answers.values):
            return None
        found = variance_record(self._rows(answers, by_case), judge, calls, self._resampling)
        return {
            "judge": judge,
            "n_cases": len(by_case),
            "n_answers": len(answers.values),
            "n_judged_again": len(answers.verdicts),
            **found,
            "notes": list(variance_notes(found["components"], len(by_case), n_later)),
            "differ": _differing(answers.column, by_case, self._first_ids),
        }

    def _rows(self, answers: _Answers, by_case: Mapping[int, Sequence[float]]) -> list[Row]:
        """What each unit that is resampled adds to the sums of variances."""
        centre = math.fsum(answers.values) / len(answers.values)
        again: defaultdict[int, list[Sequence[float]]] = defaultdict(list)
        for case, said in answers.verdicts:
            again[case].append(said)
        rows = [case_row(scores, again.get(case, ()), centre) for case, scores in by_case.items()]
        if self._numbering is None:
            return rows
        # Behind the sums of a cluster stands its size, which no figure takes.
        return [row[:-1] for row in cluster_sums(rows, [self._clusters[case] for case in by_case])]


@dataclass(frozen=True, slots=True)
class _Passed:
    """Of one case: answers that pass, that have a score, and that failed."""

    n_passed: int
    n: int
    n_failed: int


def _differing(column: Column, by_case: Mapping[int, Sequence[float]], ids: Sequence[str]) -> dict[str, Any]:
    """Cases whose answers differ in this score, those that differ most first."""
    passes = can_pass(column)
    spread = {
        case: found / len(scores) for case, scores in by_case.items() if (found := squared_deviations(scores)) > 0
    }
    most = sorted(spread, key=lambda case: (-spread[case], case))[:MOST_NAMED]
    return {
        "n": len(spread),
        "cases": [
            {
                "case_id": ids[case],
                "n": len(by_case[case]),
                "n_passed": by_case[case].count(column.best) if passes else None,
                "mean": mean(by_case[case]),
                "low": min(by_case[case]),
                "high": max(by_case[case]),
            }
            for case in most
        ],
    }
