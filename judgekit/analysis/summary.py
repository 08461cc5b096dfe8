"""A run as figures: everything that metrics.json holds, from outcomes, outputs and judgments."""

from array import array
from collections import defaultdict
from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any

from judgekit.analysis.estimates import DEFAULT_RULES, ErrorPolicy, FigureRules, Figures, Tally
from judgekit.analysis.input_mismatches import NameForms
from judgekit.analysis.risk_coverage import RiskCoverage, risk_score
from judgekit.analysis.slices import MOST_VALUES, Clusters, doc_types, slice_values
from judgekit.core.cases import Case, SystemOutput
from judgekit.core.scores import Column, Outcomes, Pooled
from judgekit.stats.means import quantile

DOC_TYPE_METRIC = "recall_any@5"
"""The column that is shown for each document type."""


class RunTally:
    """Gathers cases one by one; `overall`, `slices` and the rest read the result."""

    def __init__(
        self,
        columns: Sequence[Column],
        pooled: Sequence[Pooled],
        dimensions: Sequence[str],
        policy: ErrorPolicy,
        rules: FigureRules = DEFAULT_RULES,
    ) -> None:
        """Prepare for the columns of all metrics and judges of a run."""
        self._policy = policy
        self._clusters = None if rules.cluster_by is None else Clusters(rules.cluster_by)
        self._overall = Tally(columns, pooled, rules)
        self._slices: dict[str, defaultdict[str, Tally]] = {
            dimension: defaultdict(self._overall.empty) for dimension in dimensions
        }
        coverage = [column for column in columns if column.name == DOC_TYPE_METRIC]
        self._by_type: defaultdict[str, Tally] | None = (
            defaultdict(partial(Tally, coverage, (), rules)) if coverage else None
        )
        score = risk_score(columns)
        self._risk = None if score is None else RiskCoverage(score, rules)
        self._latency: dict[str, array[float]] = defaultdict(lambda: array("d"))
        self._forms = NameForms()
        self._left_out: list[tuple[str, str]] = []

    def add(self, case: Case, output: SystemOutput, outcomes: Outcomes) -> None:
        """Count one case."""
        cluster = None if self._clusters is None else self._clusters.number(case)
        counted = self._overall.sorted(outcomes)
        self._overall.count(counted, cluster)
        for dimension, tallies in self._slices.items():
            for value in slice_values(case, dimension):
                tallies[value].count(counted, cluster)
        self._forms.add(case, output)
        if self._by_type is not None:
            for value in doc_types(case):
                self._by_type[value].add({DOC_TYPE_METRIC: outcomes[DOC_TYPE_METRIC]}, cluster)
        if self._risk is not None:
            self._risk.add(output.confidence, outcomes[self._risk.score], cluster)
        for stage, seconds in output.latency_seconds.items():
            self._latency[stage].append(seconds)
        for dimension in [name for name, tallies in self._slices.items() if len(tallies) > MOST_VALUES]:
            del self._slices[dimension]
            text = f"slices: {dimension} has more than {MOST_VALUES} values and is left out"
            self._left_out.append(("too_many_slices", text))

    def add_judge_latencies(self, seconds: Iterable[float]) -> None:
        """Count how long judgments took."""
        if values := array("d", seconds):
            self._latency["judge"].extend(values)

    @property
    def warnings(self) -> list[tuple[str, str]]:
        """(code, message) of what a reader of the figures must know."""
        return [*self._left_out, *self._forms.warnings()]

    def overall(self) -> Figures:
        """Estimates over all cases."""
        return self._overall.figures(self._policy)

    def slices(self) -> dict[str, dict[str, Figures]]:
        """Estimates by dimension and value; a dimension that no case is labelled with is empty."""
        return {
            dimension: {value: tally.figures(self._policy) for value, tally in sorted(tallies.items())}
            for dimension, tallies in self._slices.items()
        }

    def operational(self) -> dict[str, Any]:
        """Error rates, coverage by document type, and the risk-coverage curve."""
        found: dict[str, Any] = dict(self._overall.figures(self._policy, "operational"))
        if self._by_type is not None:
            found["coverage_by_doc_type"] = {
                value: tally.figures(self._policy)[DOC_TYPE_METRIC] for value, tally in sorted(self._by_type.items())
            }
        found["risk_coverage"] = None if self._risk is None else self._risk.report(self._policy)
        return found

    def latency(self) -> dict[str, dict[str, float | int | None]]:
        """p50 and p95 in milliseconds by stage."""
        return {
            stage: {
                "p50_ms": _milliseconds(quantile(values, 0.5)),
                "p95_ms": _milliseconds(quantile(values, 0.95)),
                "n": len(values),
            }
            for stage, values in sorted(self._latency.items())
        }


def _milliseconds(seconds: float | None) -> float | None:
    return None if seconds is None else seconds * 1000
