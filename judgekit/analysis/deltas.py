"""The differences of two runs, figure by figure, over the cases where both have a value."""

import math
from array import array
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from judgekit.analysis.estimates import ErrorPolicy, pooled_row
from judgekit.core.comparison import COVERAGE, WHOLE_RUNS, Delta
from judgekit.core.scores import SUM_METHOD, Column, Failed, NotApplicable, Outcome, Pooled, Scale
from judgekit.stats.clusters import cluster_sums, clustered_mean
from judgekit.stats.means import mean, mean_interval, pooled_estimate, standard_deviation
from judgekit.stats.paired import holm, minimum_detectable_effect, paired_proportion_interval, sign_flip_p
from judgekit.stats.proportions import mcnemar_exact

SEED = 0
"""Of the permutation tests, where patterns are drawn."""

MOST_STEPS = 2_000_000
"""Additions of one exact permutation test; there are dozens in a comparison."""

BINARY_METHOD = "paired, bonett-price 95%, mcnemar exact"
CLUSTER_METHOD = "paired, clustered t 95%, sign-flip permutation of clusters"
MEAN_METHOD = "paired, t 95%, sign-flip permutation"
POOLED_METHOD = "pooled over paired cases, jackknife 95%"

_COVERAGE_SCALE = Scale(unit="share", high=1.0, better="higher")

Scores = Mapping[str, Outcome]
"""What one run says of one case, by score name."""


def _floats() -> "array[float]":
    return array("d")


@dataclass(slots=True)
class Pairs:
    """The values of one score in both runs."""

    column: Column | None
    """None if nothing is known of the score."""
    a: "array[float]" = field(default_factory=_floats)
    b: "array[float]" = field(default_factory=_floats)
    clusters: "array[int]" = field(default_factory=lambda: array("q"))
    """Cluster of each pair, if the runs have clusters."""
    only_a: "array[float]" = field(default_factory=_floats)
    only_b: "array[float]" = field(default_factory=_floats)
    with_worst: "array[float]" = field(default_factory=_floats)
    """Differences of cases that failed in one run alone, with the worst value there."""
    worst_clusters: "array[int]" = field(default_factory=lambda: array("q"))
    """Cluster of each of these, if the runs have clusters."""
    n_failed_a: int = 0
    n_failed_b: int = 0
    n_unbounded: int = 0
    """Cases with a value in a alone, of which nothing says what b could have scored at worst."""

    def add(self, a: Outcome | None, b: Outcome | None, policy: ErrorPolicy, cluster: int | None = None) -> None:
        """Count one case, with the number of its cluster if there are some; None if a run says nothing of it."""
        self.n_failed_a += isinstance(a, Failed)
        self.n_failed_b += isinstance(b, Failed)
        if policy == "as_zero":
            a, b = self._as_worst(a), self._as_worst(b)
        if isinstance(a, float):
            if isinstance(b, float):
                self.a.append(a)
                self.b.append(b)
                if cluster is not None:
                    self.clusters.append(cluster)
                return
            self.only_a.append(a)
            if not isinstance(b, NotApplicable):
                if self._worst is None:
                    self.n_unbounded += 1
                else:
                    self._add_worst(self._worst - a, cluster)
        elif isinstance(b, float):
            self.only_b.append(b)
            if isinstance(a, Failed) and self._worst is not None:
                self._add_worst(b - self._worst, cluster)

    def _add_worst(self, difference: float, cluster: int | None) -> None:
        self.with_worst.append(difference)
        if cluster is not None:
            self.worst_clusters.append(cluster)

    @property
    def _worst(self) -> float | None:
        """None also where neither way is better."""
        column = self.column
        is_known = column is not None and column.has_direction and math.isfinite(column.worst)
        return float(column.worst) if column is not None and is_known else None

    def _as_worst(self, outcome: Outcome | None) -> Outcome | None:
        """The worst value for a case that the system failed; a judge's failure is never a score."""
        if isinstance(outcome, Failed) and not outcome.by_judge and self._worst is not None:
            return self._worst
        return outcome

    @property
    def is_binary(self) -> bool:
        """Whether the score can only be its lowest or highest value; of an unknown one, whether it was only 0 or 1."""
        if self.column is not None:
            return self.column.binary
        return all(value in (0.0, 1.0) for values in (self.a, self.b) for value in values)

    def differences(self) -> list[float]:
        """B - a of each case with both."""
        return [second - first for first, second in zip(self.a, self.b, strict=True)]


def paired_delta(name: str, pairs: Pairs) -> Delta:
    """The difference of one mean; its p is not adjusted yet.

    `delta = mean(b - a)` over the cases with a value in both. A 0/1 score has Bonett and Price's interval and McNemar's
    exact test, any other one Student's interval and the sign-flip permutation test of the mean. If cases come in
    clusters, both kinds have Student's interval over clusters, and whole clusters change sign. If no case has both,
    `a` and `b` are the means of the cases that have one, and there is no difference.

    Assumptions: independent cases, or independent clusters of them.

    Source: see `stats.paired`, `stats.proportions.mcnemar_exact` and `stats.clusters`.
    """
    delta, differences = untested_delta(name, pairs), pairs.differences()
    if not differences:
        return delta
    if pairs.clusters:
        return _with_cluster_test(delta, differences, pairs.clusters)
    if pairs.is_binary:
        return _with_binary_test(delta, *_down_and_up(differences), max(map(abs, differences)) or 1.0)
    p, _ = sign_flip_p(differences, SEED, MOST_STEPS)
    return replace(delta, p=p, mde=_mde(standard_deviation(differences), len(differences)))


def untested_delta(name: str, pairs: Pairs) -> Delta:
    """The difference of one mean with its interval, as in `paired_delta`, without its test."""
    differences = pairs.differences()
    n = len(differences)
    column = pairs.column
    delta = Delta(
        name=name,
        a=mean(pairs.a if n else pairs.only_a),
        b=mean(pairs.b if n else pairs.only_b),
        delta=mean(differences),
        n=n,
        scale=None if column is None else column.scale,
        method=CLUSTER_METHOD if pairs.clusters else BINARY_METHOD if pairs.is_binary else MEAN_METHOD,
        n_only_a=len(pairs.only_a),
        n_only_b=len(pairs.only_b),
        n_failed_a=pairs.n_failed_a,
        n_failed_b=pairs.n_failed_b,
        n_unbounded=pairs.n_unbounded,
        n_units=len(set(pairs.clusters)) if pairs.clusters else n,
    )
    if pairs.with_worst:
        whole = [*differences, *pairs.with_worst]
        low, high = difference_interval(whole, pairs.clusters + pairs.worst_clusters, is_binary=pairs.is_binary)
        delta = replace(delta, delta_if_failed_worst=mean(whole), low_if_failed_worst=low, high_if_failed_worst=high)
    if not n:
        return delta
    low, high = difference_interval(differences, pairs.clusters, is_binary=pairs.is_binary)
    return replace(delta, low=low, high=high)


def difference_interval(
    differences: Sequence[float], clusters: Sequence[int], *, is_binary: bool
) -> tuple[float | None, float | None]:
    """The 95% interval of a mean paired difference, by the method of `paired_delta`.

    Args:
        differences: b - a, one for each pair, at least one.
        clusters: the cluster of each; empty if pairs are independent.
        is_binary: the score can only be its lowest or highest value.

    Returns:
        Lower and upper end; None if equal differences say nothing about their spread.

    Source: as for `paired_delta`.
    """
    if clusters:
        found = clustered_mean(differences, clusters)
        return found.low, found.high
    if is_binary:
        low, high = paired_proportion_interval(*_down_and_up(differences), len(differences))
        scale = max(map(abs, differences)) or 1.0
        return low * scale, high * scale
    return mean_interval(differences)[1:]


def _down_and_up(differences: Sequence[float]) -> tuple[int, int]:
    return sum(item < 0 for item in differences), sum(item > 0 for item in differences)


def coverage_delta(delta: Delta) -> Delta:
    """The difference of the share of cases for which a figure has a value; its p is not adjusted yet.

    Of the cases where at least one run has a value, those that do not apply among them, so that a run which makes a
    score not applicable to its bad cases is seen. Bonett and Price's interval, and McNemar's exact test. There is no
    value if neither run has one.
    """
    n = delta.n + delta.n_only_a + delta.n_only_b
    found = Delta(
        name=f"{delta.name}{COVERAGE}",
        a=(delta.n + delta.n_only_a) / n if n else None,
        b=(delta.n + delta.n_only_b) / n if n else None,
        delta=(delta.n_only_b - delta.n_only_a) / n if n else None,
        n=n,
        scale=_COVERAGE_SCALE,
        method=BINARY_METHOD,
        mixed=delta.mixed,
    )
    if not n:
        return found
    low, high = paired_proportion_interval(delta.n_only_a, delta.n_only_b, n)
    return _with_binary_test(replace(found, low=low, high=high, n_units=n), delta.n_only_a, delta.n_only_b, 1.0)


def named_delta(deltas: Iterable[Delta], name: str) -> Delta | None:
    """The difference of a figure, or of `NAME.coverage` of any figure over cases; None if there is none."""
    by_name = {delta.name: delta for delta in deltas}
    of_figure = by_name.get(name.removesuffix(COVERAGE))
    if name not in by_name and of_figure is not None and of_figure.method != WHOLE_RUNS:
        return coverage_delta(of_figure)
    return by_name.get(name)


def _with_binary_test(delta: Delta, n_down: int, n_up: int, scale: float) -> Delta:
    """Test of a score that is 0 or `scale`, of which n_down cases fell and n_up rose."""
    differences = [*[-scale] * n_down, *[scale] * n_up, *[0.0] * (delta.n - n_down - n_up)]
    mde = _mde(standard_deviation(differences), delta.n)
    return replace(delta, p=mcnemar_exact(n_down, n_up), mde=mde)


def _with_cluster_test(delta: Delta, differences: Sequence[float], clusters: Sequence[int]) -> Delta:
    found = clustered_mean(differences, clusters)
    sd = None if found.standard_error is None else found.standard_error * math.sqrt(found.n_clusters)
    sums = [row[0] for row in cluster_sums([(difference,) for difference in differences], clusters)]
    p, _ = sign_flip_p(sums, SEED, MOST_STEPS)
    return replace(delta, p=p, mde=_mde(sd, found.n_clusters))


def _mde(sd: float | None, n: int) -> float | None:
    return None if sd is None else minimum_detectable_effect(sd, n)


@dataclass(slots=True)
class PooledPairs:
    """The sums that a pooled figure is made of, in both runs."""

    figure: Pooled
    rows: dict[int, list[tuple[float, ...]]] = field(default_factory=dict)
    """What cases with values in both runs add to the sums of a, and behind these to those of b; by cluster."""
    n_only_a: int = 0
    n_only_b: int = 0
    n_failed_a: int = 0
    n_failed_b: int = 0
    n_unbounded: int = 0

    def add(self, a: Scores, b: Scores, cluster: int | None = None) -> None:
        """Count one case, with the number of its cluster if there are some."""
        first, second = pooled_row(self.figure, a), pooled_row(self.figure, b)
        if first is not None and second is not None:
            self.rows.setdefault(len(self.rows) if cluster is None else cluster, []).append((*first, *second))
            return
        over = self.figure.over
        self.n_only_a += first is not None
        self.n_only_b += second is not None
        self.n_unbounded += first is not None and not all(isinstance(b.get(name), NotApplicable) for name in over)
        self.n_failed_a += any(isinstance(a.get(name), Failed) for name in over)
        self.n_failed_b += any(isinstance(b.get(name), Failed) for name in over)

    def delta(self) -> Delta:
        """The difference of the figure, with a jackknife interval over pairs or clusters; there is no test of it."""
        figure, width = self.figure, len(self.figure.over)

        def value(sums: Sequence[float]) -> float | None:
            return sums[0] if figure.is_total else figure.function(*sums)

        def difference(*sums: float) -> float | None:
            first, second = value(sums[:width]), value(sums[width:])
            return None if first is None or second is None else second - first

        units = [tuple(map(math.fsum, zip(*rows, strict=True))) for rows in self.rows.values()]
        columns = list(zip(*units, strict=True))
        sums = [math.fsum(column) for column in columns]
        found = Delta(
            name=figure.name,
            a=value(sums[:width]) if sums else None,
            b=value(sums[width:]) if sums else None,
            delta=difference(*sums) if sums else None,
            n=sum(map(len, self.rows.values())),
            scale=figure.scale,
            method=SUM_METHOD if figure.is_total else POOLED_METHOD,
            n_only_a=self.n_only_a,
            n_only_b=self.n_only_b,
            n_failed_a=self.n_failed_a,
            n_failed_b=self.n_failed_b,
            n_unbounded=self.n_unbounded,
        )
        if figure.is_total or found.delta is None:
            return found
        _, low, high = pooled_estimate(columns, difference)
        return replace(found, low=low, high=high)


class DeltaTally:
    """Gathers cases that are in both runs, one by one; `deltas` reads the result."""

    def __init__(
        self,
        columns: Iterable[Column],
        pooled: Iterable[Pooled],
        policy: ErrorPolicy,
        judges: Mapping[str, str] | None = None,
    ) -> None:
        """Prepare for the columns and pooled figures of both runs; a score without a column is compared too.

        `judges`: by judge, the figure that says for which cases it has a verdict, so that this is compared too.
        """
        self._judges = dict(judges or {})
        self.without_value: tuple[str, ...] = ()
        """Figures that neither run has a value of, once `deltas` was read."""
        self._pairs = {column.name: Pairs(column) for column in columns}
        self._pooled = [PooledPairs(figure) for figure in {figure.name: figure for figure in pooled}.values()]
        self._policy = policy

    def add(self, a: Scores, b: Scores, cluster: int | None = None) -> None:
        """Count one case, with the number of its cluster if there are some."""
        for name in dict.fromkeys([*a, *b]):
            if name not in self._pairs:
                self._pairs[name] = Pairs(None)
            self._pairs[name].add(a.get(name), b.get(name), self._policy, cluster)
        for figure in self._pooled:
            figure.add(a, b, cluster)

    def deltas(
        self,
        overall_a: Mapping[str, Any],
        overall_b: Mapping[str, Any],
        mixed: Callable[[str], tuple[str, ...]],
        others: Iterable[Delta] = (),
    ) -> tuple[Delta, ...]:
        """One difference for each figure that either run has, p values adjusted by Holm over all that have one.

        Args:
            overall_a: figures of the whole run a, as metrics.json has them.
            overall_b: those of run b.
            mixed: why the difference of a score or figure is not of the systems alone.
            others: differences of what is not a score of a case.
        """
        found = []
        for name, pairs in self._pairs.items():
            figure = None if pairs.column is None else pairs.column.aggregate  # empty: it feeds a pooled figure only
            if figure != "":
                found.append(replace(paired_delta(figure or name, pairs), mixed=mixed(name)))
        found += [replace(pooled.delta(), mixed=mixed(pooled.figure.name)) for pooled in self._pooled]
        by_name = {delta.name: delta for delta in found}
        judged = [
            replace(coverage_delta(by_name[figure]), name=f"{judge}{COVERAGE}")
            for judge, figure in self._judges.items()
            if figure in by_name
        ]
        found = [*found, *judged, *others]
        self.without_value = tuple(delta.name for delta in found if delta.a is None and delta.b is None)
        found = [delta for delta in found if delta.a is not None or delta.b is not None]
        adjusted = holm([delta.p for delta in found])
        return tuple(
            _with_overall(replace(delta, p_holm=p), overall_a.get(delta.name), overall_b.get(delta.name))
            for delta, p in zip(found, adjusted, strict=True)
        )


def _with_overall(delta: Delta, a: Any, b: Any) -> Delta:
    (a_value, a_n), (b_value, b_n) = _value_of(a), _value_of(b)
    return replace(delta, a_overall=a_value, a_n=a_n, b_overall=b_value, b_n=b_n)


def _value_of(figure: Any) -> tuple[float | None, int]:
    value = figure.get("value") if isinstance(figure, Mapping) else None
    if not isinstance(value, int | float) or not math.isfinite(value):
        return None, 0
    return float(value), figure.get("n", 0)
