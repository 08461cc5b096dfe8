"""From the outcomes of single cases to estimates, for all cases and for each slice."""

import math
from array import array
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Literal

from judgekit.core.scores import SUM_METHOD, Column, Estimate, NotApplicable, Outcome, Outcomes, Pooled
from judgekit.stats.means import mean, mean_interval, pooled_estimate
from judgekit.stats.proportions import wilson_interval

ErrorPolicy = Literal["exclude", "as_zero"]

Figures = dict[str, Estimate | dict[str, int]]


class ColumnTally:
    """The values of one column over a set of cases, and how many cases have none."""

    __slots__ = ("labels", "n_error", "n_judge_error", "n_not_applicable", "values")

    def __init__(self) -> None:
        self.values = array("d")
        self.n_not_applicable = 0
        self.n_error = 0
        self.n_judge_error = 0
        """Of the errors, those of the judge."""
        self.labels: Counter[str] = Counter()
        """Of the cases without a value, those that the distribution counts by name."""

    def add(self, outcome: Outcome) -> None:
        """Count one case."""
        if isinstance(outcome, float):
            self.values.append(outcome)
        elif isinstance(outcome, NotApplicable):
            self.n_not_applicable += 1
            if outcome.label is not None:
                self.labels[outcome.label] += 1
        else:
            self.n_error += 1
            self.n_judge_error += outcome.by_judge


class Tally:
    """All columns over one set of cases: the whole run, or one slice."""

    def __init__(self, columns: Sequence[Column], pooled: Sequence[Pooled]) -> None:
        """Prepare for the columns; a case must bring an outcome for each."""
        self._columns = columns
        self._pooled = pooled
        self._tallies = {column.name: ColumnTally() for column in columns}
        self._rows: dict[str, list[tuple[float, ...]]] = {figure.name: [] for figure in pooled}
        self._missing: dict[str, list[int]] = {figure.name: [0, 0] for figure in pooled}
        self.n_cases = 0

    def add(self, outcomes: Outcomes) -> None:
        """Count one case."""
        self.n_cases += 1
        for name, tally in self._tallies.items():
            tally.add(outcomes[name])
        for figure in self._pooled:
            values = [outcomes[name] for name in figure.over]
            numbers = tuple(value if isinstance(value, float) else 0.0 for value in values)
            if any(isinstance(value, float) for value in values):
                self._rows[figure.name].append(numbers)
            else:
                failed = not all(isinstance(value, NotApplicable) for value in values)
                self._missing[figure.name][failed] += 1

    def figures(self, policy: ErrorPolicy, section: str = "overall") -> Figures:
        """Estimates by name in metrics.json."""
        found: Figures = {}
        for column in self._columns:
            if column.section != section:
                continue
            tally = self._tallies[column.name]
            if column.aggregate != "":
                found[column.aggregate or column.name] = estimate(column, tally, policy)
            if column.distribution:
                found[f"{column.name}.distribution"] = distribution(column, tally)
        if section == "overall":
            for figure in self._pooled:
                n_not_applicable, n_error = self._missing[figure.name]
                found[figure.name] = pool(figure, self._rows[figure.name], n_not_applicable, n_error)
        return found


def distribution(column: Column, tally: ColumnTally) -> dict[str, int]:
    """How often each value came, and each named outcome that is none."""
    counts = Counter(int(value) for value in tally.values)
    low = int(column.low)
    high = int(column.high) if math.isfinite(column.high) else max(counts, default=low - 1)
    return {**{str(value): counts[value] for value in range(low, high + 1)}, **dict(sorted(tally.labels.items()))}


def estimate(column: Column, tally: ColumnTally, policy: ErrorPolicy) -> Estimate:
    """The mean of a column with its 95% interval and what it rests on.

    With `as_zero`, a case that the system failed counts as the worst value and `method` says so; a judge's failure
    is never a score. `worst` and `best` say what the failed cases left could make of the mean.
    """
    values: Sequence[float] = tally.values
    n_error = tally.n_error
    how = "mean"
    n_by_system = n_error - tally.n_judge_error
    if policy == "as_zero" and n_by_system:
        values = array("d", [*tally.values, *([column.worst] * n_by_system)])
        n_error, how = tally.n_judge_error, "mean, errors as worst"
    n = len(values)
    value = mean(values)
    interval: tuple[float, float] | None
    if column.binary:
        n_high = sum(1 for item in values if item == column.high)
        interval, method = wilson_interval(n_high, n), f"{how}, wilson 95%"
    else:
        interval, method = mean_interval(values, column.low, column.high), f"{how}, t 95%"
    worst = best = None
    if n_error:
        total = (value or 0.0) * n
        worst = (total + n_error * column.worst) / (n + n_error)
        best = (total + n_error * column.best) / (n + n_error)
    return Estimate(
        value=None if value is None else value,
        low=None if interval is None else interval[0],
        high=None if interval is None else interval[1],
        n=n,
        n_not_applicable=tally.n_not_applicable,
        n_error=n_error,
        worst=worst,
        best=best,
        method=method,
    )


def pool(figure: Pooled, rows: Sequence[tuple[float, ...]], n_not_applicable: int, n_error: int) -> Estimate:
    """A figure of sums over cases, with a jackknife interval; a plain sum has none."""
    if figure.is_total:
        total = math.fsum(row[0] for row in rows) if rows else None
        counts = {"n": len(rows), "n_not_applicable": n_not_applicable, "n_error": n_error}
        return Estimate(value=total, **counts, method=SUM_METHOD)
    columns = list(zip(*rows, strict=True)) if rows else [() for _ in figure.over]
    value, low, high = pooled_estimate(columns, figure.function, figure.low, figure.high)
    ends = (figure.low, figure.high) if figure.higher_is_better else (figure.high, figure.low)
    return Estimate(
        value=None if value is None else value,
        low=None if low is None else low,
        high=None if high is None else high,
        n=len(rows),
        n_not_applicable=n_not_applicable,
        n_error=n_error,
        # What failed cases would add to the sums is not bounded, so the ends are those of the scale.
        worst=ends[0] if n_error else None,
        best=ends[1] if n_error else None,
        method="pooled over cases, jackknife 95%",
    )


class SlicedTally:
    """A tally of all cases and one for each value of each dimension."""

    def __init__(self, columns: Sequence[Column], pooled: Sequence[Pooled], dimensions: Sequence[str]) -> None:
        """Prepare for the columns and dimensions."""
        self._columns = columns
        self._pooled = pooled
        self.overall = Tally(columns, pooled)
        self.slices: dict[str, dict[str, Tally]] = {dimension: {} for dimension in dimensions}

    def add(self, outcomes: Outcomes, memberships: Mapping[str, Iterable[str]]) -> None:
        """Count one case, in all slices that it belongs to."""
        self.overall.add(outcomes)
        for dimension, values in memberships.items():
            tallies = self.slices[dimension]
            for value in values:
                tally = tallies.get(value)
                if tally is None:
                    tally = tallies[value] = Tally(self._columns, self._pooled)
                tally.add(outcomes)
