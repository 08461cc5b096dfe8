"""From the outcomes of single cases to estimates, for all cases and for each slice."""

import math
from array import array
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import repeat
from typing import Literal

from judgekit.core.scores import SUM_METHOD, Column, Estimate, Failed, NotApplicable, Outcome, Outcomes, Pooled
from judgekit.stats.bootstrap import Interval, Resampling, Row, bootstrap_mean, bootstrap_pooled
from judgekit.stats.clusters import cluster_sums, clustered_bootstrap_mean, clustered_wilson
from judgekit.stats.means import mean_of_counts
from judgekit.stats.proportions import wilson_interval

ErrorPolicy = Literal["exclude", "as_zero"]

Figures = dict[str, Estimate | dict[str, int]]


@dataclass(frozen=True, slots=True)
class FigureRules:
    """How the figures of a run are made, apart from its error policy."""

    seed: int = 0
    """Seed of the bootstrap."""
    min_n: int = 5
    """A figure over fewer cases is marked as small."""
    cluster_by: str | None = None
    """Dimension whose values say which cases belong together; None: cases are independent."""
    has_intervals: bool = True
    """False where only values are asked for, as of many pseudo-runs."""

    @property
    def resampling(self) -> Resampling:
        """What the bootstrap draws."""
        return Resampling(self.seed, "cases" if self.cluster_by is None else "clusters")


DEFAULT_RULES = FigureRules()

NOT_ASKED = Interval(None, None, "no interval asked for")


@dataclass(slots=True)
class ColumnTally:
    """The values of one column over a set of cases, and how many cases have none."""

    counted: Counter[float] = field(default_factory=Counter)
    """How often each value comes that is not in `values`, so that memory does not grow with the number of cases."""
    values: "array[float]" = field(default_factory=lambda: array("d"))
    """The value of each case that has a cluster."""
    clusters: "array[int]" = field(default_factory=lambda: array("q"))
    """Cluster of each of `values`."""
    failed_clusters: "array[int]" = field(default_factory=lambda: array("q"))
    """Cluster of each case that the system failed, if the run has clusters."""
    n_not_applicable: int = 0
    n_no_input: int = 0
    """Of those that do not apply, cases whose output lacks what the score needs."""
    n_error: int = 0
    n_judge_error: int = 0
    """Of the errors, those of the judge."""
    labels: Counter[str] = field(default_factory=Counter)
    """Of the cases without a value, those that the distribution counts by name."""

    def counts(self) -> Counter[float]:
        """How often each value comes."""
        counts = Counter(self.counted)
        counts.update(self.values)
        return counts

    def add(self, outcome: Outcome, cluster: int | None = None) -> None:
        """Count one case, with the number of its cluster if the run has clusters."""
        if not isinstance(outcome, float):
            self.add_without_value(_gap(outcome))
            if cluster is not None and isinstance(outcome, Failed) and not outcome.by_judge:
                self.failed_clusters.append(cluster)
        elif cluster is None:
            self.counted[outcome] += 1
        else:
            self.values.append(outcome)
            self.clusters.append(cluster)

    def add_without_value(self, gap: "_Gap", n: int = 1) -> None:
        """Count so many cases that have no value, all for the same reason."""
        has_failed, is_marked, label = gap
        if has_failed:
            self.n_error += n
            self.n_judge_error += n * is_marked
        else:
            self.n_not_applicable += n
            self.n_no_input += n * is_marked
            if label is not None:
                self.labels[label] += n


_Gap = tuple[bool, bool, str | None]
"""Of an outcome without a value, what is counted: whether it failed; whether by the judge, or for lack of an input; and
the name that the distribution counts it by."""


def _gap(outcome: NotApplicable | Failed) -> _Gap:
    if isinstance(outcome, NotApplicable):
        return False, outcome.by_output, outcome.label
    return True, outcome.by_judge, None


def pooled_row(figure: Pooled, outcomes: Mapping[str, Outcome]) -> tuple[float, ...] | None:
    """What a case adds to the sums of a figure; None if it has a value of none of the scores."""
    values = [outcomes.get(name) for name in figure.over]
    if not any(isinstance(value, float) for value in values):
        return None
    return tuple(value if isinstance(value, float) else 0.0 for value in values)


@dataclass(slots=True)
class _PooledTally:
    """What each case adds to the sums of a figure, and how many cases add nothing."""

    figure: Pooled
    counted: Counter[Row] = field(default_factory=Counter)
    """How often each row comes that is not in `rows`."""
    rows: list[Row] = field(default_factory=list)
    """The row of each case that has a cluster."""
    clusters: "array[int]" = field(default_factory=lambda: array("q"))
    n_not_applicable: int = 0
    n_error: int = 0

    def add(self, row: Row | None, cluster: int | None, *, applies: bool) -> None:
        """Count one case by its row; without a row, by whether one of the scores applies to it."""
        if row is not None:
            if cluster is None:
                self.counted[row] += 1
            else:
                self.rows.append(row)
                self.clusters.append(cluster)
        elif applies:
            self.n_error += 1
        else:
            self.n_not_applicable += 1

    def _column(self, place: int) -> Iterator[float]:
        """One number of each row."""
        for row, n in self.counted.items():
            yield from repeat(row[place], n)
        for row in self.rows:
            yield row[place]

    def estimate(self, rules: FigureRules) -> Estimate:
        """The figure with a bootstrap interval; a plain sum has none."""
        figure, n = self.figure, self.counted.total() + len(self.rows)
        counts = {
            "n": n,
            "n_not_applicable": self.n_not_applicable,
            "n_error": self.n_error,
            "small": n < rules.min_n,
        }
        sums = [math.fsum(self._column(place)) for place in range(len(figure.over))]
        if figure.is_total:
            return Estimate(value=sums[0] if n else None, **counts, method=SUM_METHOD)
        units = self.counted
        if rules.cluster_by is not None:
            # Behind the sums of a cluster stands its size, which the figure does not take.
            units = Counter(row[:-1] for row in cluster_sums(self.rows, self.clusters))
        interval = NOT_ASKED
        if rules.has_intervals:
            interval = bootstrap_pooled(units, figure.function, (figure.low, figure.high), rules.resampling)
        worst, best = (figure.low, figure.high) if figure.higher_is_better else (figure.high, figure.low)
        return Estimate(
            value=figure.function(*sums) if n else None,
            low=interval.low,
            high=interval.high,
            **counts,
            # What failed cases would add to the sums is not bounded, so the ends are those of the scale.
            worst=worst if self.n_error else None,
            best=best if self.n_error else None,
            method=f"pooled over cases, {interval.method}",
        )


_MOST_PATTERNS = 4096
"""Patterns of many columns that are told apart, so that a tally keeps no more."""

_Pattern = tuple[tuple[int, _Gap], ...]
"""Columns without a value by their places."""


@dataclass(frozen=True, slots=True)
class CaseOutcomes:
    """The outcomes of one case, put in the form that every tally of a run counts."""

    outcomes: Outcomes
    values: Sequence[tuple[int, float]]
    """Place of a column, and its value."""
    gaps: Sequence[_Pattern]
    """The columns without a value: one pattern, which other cases have too, or a few."""
    rows: Sequence[tuple[Row | None, bool]]
    """By pooled figure: what the case adds to its sums, and whether one of its scores applies."""


class _Sorting:
    """Puts the outcomes of a case in the form that tallies count, once for all of them."""

    def __init__(self, columns: Sequence[Column], pooled: Sequence[Pooled]) -> None:
        self.columns, self.pooled = columns, pooled
        self._names = [column.name for column in columns]
        self._known: set[_Pattern] = set()

    def sorted(self, outcomes: Outcomes) -> CaseOutcomes:
        values: list[tuple[int, float]] = []
        gaps: list[tuple[int, _Gap]] = []
        for place, name in enumerate(self._names):
            outcome = outcomes[name]
            if isinstance(outcome, float):
                values.append((place, outcome))
            else:
                gaps.append((place, _gap(outcome)))
        rows = [(pooled_row(figure, outcomes), _applies(figure, outcomes)) for figure in self.pooled]
        return CaseOutcomes(outcomes, values, self._patterns(tuple(gaps)), rows)

    def _patterns(self, gaps: _Pattern) -> Sequence[_Pattern]:
        if gaps not in self._known:
            if len(self._known) >= _MOST_PATTERNS:
                return [(gap,) for gap in gaps]
            self._known.add(gaps)
        return [gaps]


def _applies(figure: Pooled, outcomes: Outcomes) -> bool:
    return not all(isinstance(outcomes[name], NotApplicable) for name in figure.over)


class Tally:
    """All columns over one set of cases: the whole run, or one slice."""

    def __init__(self, columns: Sequence[Column], pooled: Sequence[Pooled], rules: FigureRules = DEFAULT_RULES) -> None:
        """Prepare for the columns; a case must bring an outcome for each."""
        self._sorting = _Sorting(columns, pooled)
        self._rules = rules
        self._columns = [(column, ColumnTally()) for column in columns]
        self._counted = [tally.counted for _, tally in self._columns]
        self._pooled = [_PooledTally(figure) for figure in pooled]
        self._gaps: Counter[_Pattern] = Counter()
        """Patterns that are not in the columns yet."""

    def empty(self) -> "Tally":
        """Another tally of the same columns, for cases that this one sorts."""
        other = Tally(self._sorting.columns, self._sorting.pooled, self._rules)
        other._sorting = self._sorting
        return other

    def add(self, outcomes: Outcomes, cluster: int | None = None) -> None:
        """Count one case, with the number of its cluster if the run has clusters."""
        self.count(self.sorted(outcomes), cluster)

    def sorted(self, outcomes: Outcomes) -> CaseOutcomes:
        """The outcomes of a case as this tally and its `empty` ones count them."""
        return self._sorting.sorted(outcomes)

    def count(self, case: CaseOutcomes, cluster: int | None = None) -> None:
        """Count one case whose outcomes are sorted."""
        if cluster is None:
            counted = self._counted
            for place, value in case.values:
                counted[place][value] += 1
            for pattern in case.gaps:
                self._gaps[pattern] += 1
        else:
            for column, tally in self._columns:
                tally.add(case.outcomes[column.name], cluster)
        for figure, (row, applies) in zip(self._pooled, case.rows, strict=True):
            figure.add(row, cluster, applies=applies)

    def figures(self, policy: ErrorPolicy, section: str = "overall") -> Figures:
        """Estimates by name in metrics.json."""
        for pattern, n in self._gaps.items():
            for place, gap in pattern:
                self._columns[place][1].add_without_value(gap, n)
        self._gaps.clear()
        found: Figures = {}
        for column, tally in self._columns:
            if column.section != section:
                continue
            if column.aggregate != "":
                found[column.aggregate or column.name] = estimate(column, tally, policy, self._rules)
            if column.distribution:
                found[f"{column.name}.distribution"] = _distribution(column, tally)
        if section == "overall":
            found |= {pooled.figure.name: pooled.estimate(self._rules) for pooled in self._pooled}
        return found


def _distribution(column: Column, tally: ColumnTally) -> dict[str, int]:
    """How often each value came, and each named outcome that is none."""
    counts: Counter[int] = Counter()
    for value, n in tally.counts().items():
        counts[int(value)] += n
    low = int(column.low)
    high = int(column.high) if math.isfinite(column.high) else max(counts, default=low - 1)
    return {**{str(value): counts[value] for value in range(low, high + 1)}, **dict(sorted(tally.labels.items()))}


def estimate(column: Column, tally: ColumnTally, policy: ErrorPolicy, rules: FigureRules) -> Estimate:
    """The mean of a column with its 95% interval and what it rests on.

    With `as_zero`, a case that the system failed counts as the worst value and `method` says so; a judge's failure
    is never a score. `worst` and `best` say what the failed cases left could make of the mean.
    """
    n_error = tally.n_error
    how = "mean"
    can_be_worst = column.has_direction and math.isfinite(column.worst)
    n_as_worst = n_error - tally.n_judge_error if policy == "as_zero" and can_be_worst else 0
    counts = tally.counts()
    if n_as_worst:
        counts[column.worst] += n_as_worst
        n_error, how = tally.n_judge_error, "mean, errors as worst"
    n = counts.total()
    value = mean_of_counts(counts)
    if not rules.has_intervals:
        interval = NOT_ASKED
    elif rules.cluster_by is None:
        interval = _interval(column, counts, rules)
    else:
        interval = _clustered_interval(column, tally, n_as_worst, rules)
    worst = best = None
    if n_error:
        total = (value or 0.0) * n
        # A range without an end says nothing of what failed cases would make of the mean.
        worst, best = (
            (total + n_error * end) / (n + n_error) if math.isfinite(end) else None
            for end in (column.worst, column.best)
        )
    return Estimate(
        value=value,
        low=interval.low,
        high=interval.high,
        n=n,
        n_not_applicable=tally.n_not_applicable,
        n_no_input=tally.n_no_input,
        n_error=n_error,
        worst=worst,
        best=best,
        method=f"{how}, {interval.method}",
        small=n < rules.min_n,
    )


def _interval(column: Column, counts: Counter[float], rules: FigureRules) -> Interval:
    if column.binary:
        low, high = wilson_interval(counts[column.high], counts.total()) or (None, None)
        return Interval(low, high, "wilson 95%")
    return bootstrap_mean(counts, (column.low, column.high), rules.resampling)


def _clustered_interval(column: Column, tally: ColumnTally, n_as_worst: int, rules: FigureRules) -> Interval:
    values, clusters = tally.values, tally.clusters
    if n_as_worst:
        values = array("d", [*values, *([column.worst] * n_as_worst)])
        clusters = clusters + tally.failed_clusters
    if column.binary:
        return clustered_wilson([value == column.high for value in values], clusters)
    return clustered_bootstrap_mean(values, clusters, (column.low, column.high), rules.resampling)
