"""Differences of two runs beside those of scores: latency, cost, indexing, and the parts of system and judge in one."""

from array import array
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal

from judgekit.analysis.indexing_coverage import FIGURES_OVER, coverage_figure
from judgekit.core.cases import SystemOutput
from judgekit.core.comparison import WHOLE_RUNS, Delta
from judgekit.core.scores import Column, Outcomes, Scale
from judgekit.stats.means import mean, mean_interval, quantile_of_sorted
from judgekit.stats.paired import paired_quantile_interval, sign_flip_p

QUANTILES = ((0.5, "p50_ms"), (0.95, "p95_ms"))
QUANTILE_METHOD = "difference of quantiles over paired cases, woodruff 95%"

COST = ("usd", "n_calls", "n_from_cache", "prompt_tokens", "completion_tokens")
"""Figures of `cost` of metrics.json that are compared: those of the judges' calls."""

_LATENCY_SCALE = Scale(unit="count", better="lower")
"""Whole milliseconds."""

OTHER_CASES = "the runs have other cases"

ScoreByCase = Mapping[str, float]

_NEITHER_IS_BETTER = (
    "cost.n_from_cache",
    *(f"indexing_coverage.{name}" for name in ("n_docs_processed", "n_chunks", "n_chunks_attempted")),
    *(f"indexing_coverage.tokens_per_chunk.{name}" for name in ("min", "max", "mean", "p95")),
)

USAGE_COLUMNS = tuple(
    Column(f"usage.{name}", high=float("inf"), higher_is_better=False)
    for name in ("prompt_tokens", "completion_tokens")
)
"""Tokens that the system itself used for a case, where its outputs say so."""


def usage_outcomes(output: SystemOutput | None) -> Outcomes:
    """Tokens of one output by name; nothing if the output does not say."""
    usage = None if output is None else output.usage
    if usage is None:
        return {}
    found = {"usage.prompt_tokens": usage.prompt_tokens, "usage.completion_tokens": usage.completion_tokens}
    return {name: float(value) for name, value in found.items() if value is not None}


class LatencyPairs:
    """The latencies of the system by stage, over the cases where both runs have one."""

    def __init__(self) -> None:
        """Prepare for the first case."""
        self._pairs: dict[str, tuple[array[float], array[float]]] = {}
        self._only: dict[str, list[int]] = {}
        """Cases with a latency in a alone, in b alone, and of those in a alone, where b failed."""

    def add(self, a: SystemOutput | None, b: SystemOutput | None) -> None:
        """Count one case."""
        first, second = ({} if output is None else output.latency_seconds for output in (a, b))
        for stage in dict.fromkeys([*first, *second]):
            only = self._only.setdefault(stage, [0, 0, 0])
            if stage in first and stage in second:
                found = self._pairs.setdefault(stage, (array("d"), array("d")))
                found[0].append(1000 * first[stage])
                found[1].append(1000 * second[stage])
            else:
                only[stage not in first] += 1
                only[2] += stage in first and (b is None or b.error is not None)

    def deltas(self) -> Iterator[Delta]:
        """p50 and p95 of each stage in milliseconds, `latency.STAGE.p95_ms`; an interval where there are enough pairs.

        There is no test of it. If b failed and has no latency, nothing bounds what it would have been.
        """
        for stage, (only_a, only_b, n_failed) in sorted(self._only.items()):
            a, b = self._pairs.get(stage, (array("d"), array("d")))
            for q, name in QUANTILES:
                found = Delta(
                    name=f"latency.{stage}.{name}",
                    a=None,
                    b=None,
                    delta=None,
                    n=len(a),
                    scale=_LATENCY_SCALE,
                    method=QUANTILE_METHOD,
                    n_only_a=only_a,
                    n_only_b=only_b,
                    n_failed_b=n_failed,
                    n_unbounded=n_failed,
                )
                yield _with_quantiles(found, a, b, q) if a else found


def _with_quantiles(delta: Delta, a: Sequence[float], b: Sequence[float], q: float) -> Delta:
    first, second = quantile_of_sorted(sorted(a), q), quantile_of_sorted(sorted(b), q)
    low, high = paired_quantile_interval(a, b, q) or (None, None)
    return replace(delta, a=first, b=second, delta=second - first, low=low, high=high)


def whole_run_figures(metrics: Mapping[str, Any]) -> dict[str, float | None]:
    """Figures of metrics.json that are of no single case: cost, tokens and latency of the judges, and indexing.

    By name, such as `cost.usd` and `indexing_coverage.no_chunks_rate`; None for one without a value.
    """
    cost, judge = metrics.get("cost") or {}, (metrics.get("latency") or {}).get("judge") or {}
    indexing = metrics.get("indexing_coverage")
    # Tokens of a part of the calls are not a total that can be compared with another run's.
    names = [name for name in COST if not (cost.get("n_without_usage") and name.endswith("_tokens"))]
    found = {f"cost.{name}": cost.get(name) for name in names}
    found |= {f"latency.judge.{name}": judge.get(name) for _, name in QUANTILES}
    if indexing is not None:
        found |= {f"indexing_coverage.{name}": coverage_figure(indexing, name) for name in FIGURES_OVER}
    return {name: float(value) if isinstance(value, int | float) else None for name, value in found.items()}


def whole_run_deltas(
    a: Mapping[str, float | None], b: Mapping[str, float | None], *, has_other_cases: bool
) -> Iterator[Delta]:
    """The differences of what `whole_run_figures` gives; they rest on no pairs and have no interval.

    `has_other_cases`: the runs do not have the same cases, so that totals are not of the system alone.
    """
    for name in dict.fromkeys([*a, *b]):
        first, second = a.get(name), b.get(name)
        yield Delta(
            name=name,
            a=first,
            b=second,
            delta=None if first is None or second is None else second - first,
            n=0,
            scale=_whole_run_scale(name),
            method=WHOLE_RUNS,
            mixed=(OTHER_CASES,) if has_other_cases and name.startswith("cost.") else (),
        )


def _whole_run_scale(name: str) -> Scale:
    better: Literal["higher", "lower"] = "higher" if name.endswith(".n_chunks_embedded") else "lower"
    unit: Literal["share", "number"] = "share" if name.endswith("_rate") else "number"
    return Scale(unit=unit, better=None if name in _NEITHER_IS_BETTER else better)


def bridge_figure(
    old: ScoreByCase, moved: ScoreByCase, new: ScoreByCase, *, same_judge: bool, seed: int
) -> dict[str, Any]:
    """The parts of one figure's change between two runs.

    With J the judge of the old run and J' that of the new one, over the cases that have all three scores:

    * `system` = mean of J'(new) - J'(old): one judge, two systems;
    * `judge` = mean of J'(old) - J(old): one system, two judges;
    * `total` = mean of J'(new) - J(old) = `system` + `judge`.

    Each with Student's interval of the paired differences and the p of a sign-flip permutation.

    Assumptions: independent cases; the old outputs judged by J' are those that J judged.

    Args:
        old: J(old), the scores of the old run by case id; a case without a score is absent.
        moved: J'(old), the old outputs judged by the new judge; `old` itself where the two judges are the same.
        new: J'(new), the scores of the new run.
        same_judge: the two judges are one, so that the judge part is 0 by construction.
        seed: for the sign flips, where they are drawn.

    Returns:
        A strict-JSON object. `n`: cases with all three scores; `n_left_out`: cases with one in the old and the new run,
        but none from the new judge on the old output; means are None for n = 0.

    Source: Student 1908 for the intervals.
    """
    shared = [case_id for case_id in old if case_id in new]
    cases = [case_id for case_id in shared if case_id in moved]
    judge = _part([moved[case_id] - old[case_id] for case_id in cases], seed)
    return {
        "n": len(cases),
        "n_left_out": len(shared) - len(cases),
        "old": _mean(old, cases),
        "old_by_new_judge": _mean(moved, cases),
        "new": _mean(new, cases),
        "total": _part([new[case_id] - old[case_id] for case_id in cases], seed),
        "system": _part([new[case_id] - moved[case_id] for case_id in cases], seed),
        "judge": {"value": judge["value"], "low": None, "high": None, "p": None, "by_construction": True}
        if same_judge
        else {**judge, "by_construction": False},
    }


def _part(differences: list[float], seed: int) -> dict[str, Any]:
    value, low, high = mean_interval(differences)
    p, _ = sign_flip_p(differences, seed)
    return {"value": value, "low": low, "high": high, "p": p}


def _mean(scores: ScoreByCase, cases: list[str]) -> float | None:
    return mean([scores[case_id] for case_id in cases])
