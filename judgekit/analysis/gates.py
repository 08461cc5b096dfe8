"""Gates: conditions on figures that make a run pass or fail."""

from collections.abc import Mapping, Sequence
from typing import Any

from judgekit.analysis.indexing import FIGURES_WITH_N
from judgekit.analysis.joint import joint_columns
from judgekit.analysis.risk_coverage import risk_score
from judgekit.core.components import Component
from judgekit.core.config import Gate
from judgekit.core.errors import ConfigError, did_you_mean
from judgekit.core.runs import GateResult, RunSummary
from judgekit.core.scores import Estimate
from judgekit.stats.means import TOLERANCE

RELIABILITY_GATES = ("judge_reliability.disagreement_rate", "judge_reliability.spot_check_n")
"""Figures of the spot check that a gate can name."""

RISK_GATE = "risk_coverage.aurc"

INDEXING = "indexing_coverage."
"""Begins the names of figures of indexing coverage."""


COVERAGE = ".coverage"
"""`<figure>.coverage`: the share of cases with a value, of those that a figure applies to or would, had the output what
it needs."""


def check_gates(gates: tuple[Gate, ...], summary: RunSummary) -> tuple[GateResult, ...]:
    """Whether each gate holds; a figure without data fails it.

    A lower limit is held against the worst case where cases failed, so that failures can never help to pass.
    """
    return tuple(_check(gate, summary) for gate in gates)


def check_gate_names(gates: Sequence[Gate], components: Sequence[Component], *, has_indexing: bool = False) -> None:
    """Refuse a gate on a figure that nothing in the run can give.

    Args:
        gates: the gates of the config.
        components: metrics and judges of the run.
        has_indexing: whether the config names a file for indexing coverage.

    Raises:
        ConfigError: names the nearest figure, or what a figure of indexing coverage lacks.
    """
    columns = [column for component in components for column in component.columns()]
    columns += joint_columns(columns)
    known = {column.aggregate or column.name for column in columns if column.aggregate != ""}
    known |= {figure.name for component in components for figure in component.pooled()}
    known |= {RISK_GATE} if risk_score(columns) else set()
    indexing = {INDEXING + name for name in FIGURES_WITH_N}
    for number, gate in enumerate(gates):
        if gate.metric in indexing:
            _check_indexing_gate(gate, f"gates[{number}]: {gate.metric}", has_indexing=has_indexing)
        elif gate.metric.removesuffix(COVERAGE) not in known and gate.metric not in RELIABILITY_GATES:
            hint = did_you_mean(gate.metric, {*known, *RELIABILITY_GATES, *indexing})
            raise ConfigError(f"gates[{number}]: no figure called {gate.metric!r} in this run{hint}")


def _check_indexing_gate(gate: Gate, where: str, *, has_indexing: bool) -> None:
    if not has_indexing:
        raise ConfigError(f'{where} needs "indexing" in the config, the file that says what became of each document')
    if gate.bound != "point" or gate.slice:
        raise ConfigError(f"{where} is counted over the whole corpus: it has no interval and no slices")


def _check(gate: Gate, summary: RunSummary) -> GateResult:
    figures, where = _figures(gate, summary)
    found = figures.get(gate.metric.removesuffix(COVERAGE))
    observed, n, note = None, 0, ""
    if isinstance(found, Estimate) and gate.metric.endswith(COVERAGE):
        observed, n, note = _coverage(found)
    elif gate.metric not in figures:
        note = "no data"
    elif isinstance(found, Estimate):
        observed, n, note = _observed(gate, found)
    elif isinstance(found, int | float) and not isinstance(found, bool):
        observed, n = float(found), _cases_behind(gate.metric, summary)
    else:
        note = "no data"
    passed = observed is not None and _holds(observed, gate.op, gate.value)
    shown = note if observed is None else f"{_digits(observed, gate.value)}{f' ({note})' if note else ''}"
    message = f"{gate.metric}{where} {gate.op} {gate.value:g}: {'passed' if passed else 'missed'}, {shown}"
    return GateResult(
        metric=gate.metric,
        op=gate.op,
        value=gate.value,
        bound=gate.bound,
        slice=dict(gate.slice),
        observed=observed,
        n=n,
        passed=passed,
        message=message,
    )


def _figures(gate: Gate, summary: RunSummary) -> tuple[Mapping[str, Any], str]:
    if gate.slice:
        ((dimension, value),) = gate.slice.items()
        return summary.slices.get(dimension, {}).get(value, {}), f" [{dimension}={value}]"
    reliability = summary.judge_reliability or {}
    flat = {f"judge_reliability.{name}": value for name, value in reliability.items()}
    flat |= {INDEXING + name: figure for name, (figure, _) in _indexing(summary).items()}
    flat[RISK_GATE] = (summary.operational.get("risk_coverage") or {}).get("aurc")
    return {**flat, **summary.operational, **summary.overall}, ""


def _indexing(summary: RunSummary) -> dict[str, tuple[Any, int]]:
    """Figures of indexing coverage, each with what it counts; empty where the run has none."""
    coverage = summary.indexing_coverage
    return {} if coverage is None else {name: read(coverage) for name, read in FIGURES_WITH_N.items()}


def _cases_behind(metric: str, summary: RunSummary) -> int:
    """How many documents, chunks or pairs a figure without an estimate rests on."""
    if metric.startswith(INDEXING):
        return _indexing(summary)[metric.removeprefix(INDEXING)][1]
    return int((summary.judge_reliability or {}).get("spot_check_n", 1))


def _observed(gate: Gate, found: Estimate) -> tuple[float | None, int, str]:
    if found.value is None:
        return None, found.n, f"no data ({found.n} of {found.n + found.n_error + found.n_not_applicable} cases)"
    if found.n_error and found.worst is None:
        return None, found.n, f"{found.n_error} failed cases, and no bound on what they would add"
    wants_high = gate.op in (">=", ">")
    if gate.bound == "lower":
        observed, note = found.low, "lower end of the interval"
    elif gate.bound == "upper":
        observed, note = found.high, "upper end of the interval"
    else:
        observed, note = found.value, ""
    if found.worst is not None:
        worse = found.worst if observed is None else (min if wants_high else max)(observed, found.worst)
        if worse != observed:
            observed, note = worse, f"{found.n_error} failed cases counted as the worst"
    if observed is None:
        return None, found.n, f"no interval from {found.n} cases"
    return observed, found.n, note


def _coverage(found: Estimate) -> tuple[float | None, int, str]:
    n_wanted = found.n + found.n_error + found.n_no_input
    if not n_wanted:
        return None, 0, f"no data (0 of {found.n_not_applicable} cases)"
    return found.n / n_wanted, n_wanted, f"{found.n} of {n_wanted} cases"


def _holds(observed: float, op: str, limit: float) -> bool:
    if op == ">=":
        return observed >= limit - TOLERANCE
    if op == ">":
        return observed > limit + TOLERANCE
    if op == "<=":
        return observed <= limit + TOLERANCE
    return observed < limit - TOLERANCE


def _digits(observed: float, limit: float) -> str:
    """Four decimals, or as many as it takes to tell the value from the limit."""
    short = f"{observed:.4f}"
    return short if float(short) != limit or observed == limit else f"{observed:.10g}"
