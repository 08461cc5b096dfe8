"""Risk and coverage: how much better would the answers be if only the most confident ones were given?"""

import math
from array import array
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from itertools import groupby
from operator import itemgetter
from typing import Any

from judgekit.analysis.estimates import DEFAULT_RULES, ColumnTally, ErrorPolicy, FigureRules
from judgekit.core.scores import Column, Estimate, NotApplicable, Outcome
from judgekit.stats.clusters import cluster_sums
from judgekit.stats.means import jackknife_interval

RISK_SCORES = ("correctness_pass", "keyword_groundedness")
"""Scores in [0, 1] of which 1 less is the risk of a case; the first that the run has is taken."""

MOST_POINTS = 50
"""Points of the curve that are stored."""

FULL_CONFIDENCE = 1.0

Pair = tuple[float, float]
"""Confidence and risk of one case."""


@dataclass(frozen=True, slots=True)
class CurvePoint:
    """What is had by answering where confidence is at least `confidence`."""

    confidence: float
    coverage: float
    """Share of the cases that are answered, in (0, 1]."""
    risk: float
    """Mean risk of those, in [0, 1]."""
    n: int
    """Cases that are answered."""


def risk_coverage_curve(pairs: Iterable[Pair]) -> list[CurvePoint]:
    """The curve, from the most confident cases to all; cases of one confidence enter in one step.

    `coverage(c) = |cases with confidence >= c| / n`, `risk(c)` = mean risk of these cases. No threshold can part equal
    confidences, so they are one point, and the order of cases cannot change the curve.

    Args:
        pairs: confidence (any order is taken, higher is surer) and risk (0 right, 1 wrong) of each case.

    Returns:
        Points by ascending coverage, the last at 1; empty for no cases.

    Source: Geifman and El-Yaniv 2017, "Selective Classification for Deep Neural Networks".
    """
    steps = _steps(pairs)
    total = sum(len(risks) for _, risks in steps)
    points: list[CurvePoint] = []
    n, risk = 0, 0.0
    for confidence, risks in steps:
        n += len(risks)
        risk += math.fsum(risks)
        points.append(CurvePoint(confidence, n / total, risk / n, n))
    return points


def area_under_curve(points: Sequence[CurvePoint]) -> float | None:
    """AURC: mean over the cases of the risk at the step in which they enter, `sum (coverage step) * risk`.

    Without equal confidences this is the mean of the selective risks at coverage 1/n, 2/n, ... 1.

    Returns:
        In [0, 1], lower is better; the mean risk where confidence says nothing; None for no points.

    Source: Geifman, Uziel and El-Yaniv 2019, "Bias-Reduced Uncertainty Estimation for Deep Neural Classifiers".
    """
    if not points:
        return None
    before = [0, *[point.n for point in points]]
    sums = [(point.n - n) * point.risk for n, point in zip(before, points, strict=False)]
    return math.fsum(sums) / points[-1].n


def risk_score(columns: Iterable[Column]) -> str | None:
    """The score that the risk of a case comes from; None if the run has none."""
    names = {column.name for column in columns}
    return next((name for name in RISK_SCORES if name in names), None)


class RiskCoverage:
    """Gathers confidence and score of the cases of a run."""

    def __init__(self, score: str, rules: FigureRules = DEFAULT_RULES) -> None:
        """Take 1 less the score called `score` as risk."""
        self.score = score
        self._rules = rules
        self._confidences = array("d")
        self._scores = array("d")
        self._tally = ColumnTally()

    def add(self, confidence: float | None, outcome: Outcome, cluster: int | None = None) -> None:
        """Count one case: failed if its score is, not applicable without a score or a confidence."""
        if isinstance(outcome, float):
            if confidence is None:
                outcome = NotApplicable("no confidence")
            else:
                self._confidences.append(confidence)
                self._scores.append(outcome)
        self._tally.add(outcome, cluster)

    def report(self, policy: ErrorPolicy) -> dict[str, Any] | None:
        """The `risk_coverage` object of metrics.json; None if no case has both confidence and score.

        A case that failed could have had any confidence: `worst` takes it for wrong at full confidence, `best` for
        right. With `as_zero`, what the system failed is counted in the first way.
        """
        if not self._confidences:
            return None
        tally, n_error, how = self._tally, self._tally.n_error, ""
        pairs = [(sure, 1.0 - score) for sure, score in zip(self._confidences, self._scores, strict=True)]
        clusters = tally.clusters
        n_by_system = n_error - tally.n_judge_error
        if policy == "as_zero" and n_by_system:
            pairs += [(FULL_CONFIDENCE, 1.0)] * n_by_system
            clusters = clusters + tally.failed_clusters
            n_error, how = tally.n_judge_error, ", errors as worst"
        clustered = self._rules.cluster_by is not None
        points = risk_coverage_curve(pairs)
        value = area_under_curve(points)
        low, high = _interval(pairs, value, clusters if clustered else None)
        jackknife = f"jackknife 95%, {len(set(clusters))} clusters" if clustered else "jackknife 95%"
        aurc = Estimate(
            value=value,
            low=low,
            high=high,
            n=len(pairs),
            n_not_applicable=tally.n_not_applicable,
            n_error=n_error,
            worst=_with_failed(pairs, n_error, 1.0),
            best=_with_failed(pairs, n_error, 0.0),
            method=f"area under the risk-coverage curve{how}, {jackknife}",
            small=len(pairs) < self._rules.min_n,
        )
        return {"risk": f"1 - {self.score}", "aurc": aurc, "points": [asdict(point) for point in thinned(points)]}


def thinned(points: Sequence[CurvePoint], most: int = MOST_POINTS) -> list[CurvePoint]:
    """At most `most` points, evenly spread over the steps; the first and the last stay."""
    if len(points) <= most:
        return list(points)
    return [points[round(number * (len(points) - 1) / (most - 1))] for number in range(most)]


def _steps(pairs: Iterable[Pair]) -> list[tuple[float, list[float]]]:
    """Confidences, descending, each with the risks of its cases."""
    ordered = sorted(pairs, reverse=True)
    return [(confidence, [risk for _, risk in group]) for confidence, group in groupby(ordered, key=itemgetter(0))]


def _with_failed(pairs: Sequence[Pair], n_failed: int, risk: float) -> float | None:
    if not n_failed:
        return None
    return area_under_curve(risk_coverage_curve([*pairs, *[(FULL_CONFIDENCE, risk)] * n_failed]))


def _interval(
    pairs: Sequence[Pair], value: float | None, clusters: Sequence[int] | None
) -> tuple[float | None, float | None]:
    """Jackknife interval of the area, by case or by cluster.

    A cluster's share of the variance comes from the sum of its cases' pseudo-values: what these do together is what
    leaving the cluster out would do, up to terms of second order.
    """
    n = len(pairs)
    if value is None or n < 2 or len({risk for _, risk in pairs}) < 2:
        return None, None
    without = _without_one(pairs)
    if clusters is None:
        return jackknife_interval(value, Counter(without[pair] for pair in pairs), n, (0.0, 1.0))
    excess = [(value - without[pair],) for pair in pairs]
    moves = [total for total, _ in cluster_sums(excess, clusters)]
    n_clusters = len(moves)
    if n_clusters < 2:
        return None, None
    scale = (n - 1) / n * n_clusters / (n_clusters - 1)  # a mean then has the interval of its clusters' sums
    left_out = Counter(value - scale * move for move in moves)
    return jackknife_interval(value, left_out, n_clusters, (0.0, 1.0))


def _without_one(pairs: Sequence[Pair]) -> dict[Pair, float]:
    """The area without one case, by its confidence and risk, from sums before and after its step.

    With n_g cases in step g, N_g up to its end and risk sum S_g there, the area is `sum n_g S_g / N_g / n`. Without a
    case of step h with risk r, steps before h keep their term, step h has `(n_h - 1)(S_h - r) / (N_h - 1)`, and each
    later one `n_g (S_g - r) / (N_g - 1)`.
    """
    steps = _steps(pairs)
    n = len(pairs)
    points = risk_coverage_curve(pairs)
    sizes = [len(risks) for _, risks in steps]
    sums = [point.risk * point.n for point in points]
    before = 0.0
    after = math.fsum(sizes[g] * sums[g] / (points[g].n - 1) for g in range(1, len(steps)))
    weight = math.fsum(sizes[g] / (points[g].n - 1) for g in range(1, len(steps)))
    without: dict[Pair, float] = {}
    for h, (confidence, risks) in enumerate(steps):
        if h:
            after -= sizes[h] * sums[h] / (points[h].n - 1)
            weight -= sizes[h] / (points[h].n - 1)
        for risk in set(risks):
            own = (sizes[h] - 1) * (sums[h] - risk) / (points[h].n - 1) if points[h].n > 1 else 0.0
            without[confidence, risk] = (before + own + after - risk * weight) / (n - 1)
        before += sizes[h] * sums[h] / points[h].n
    return without
