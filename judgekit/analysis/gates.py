"""Gates: conditions on the figures of a run, and what `compare --fail-on` asks of the differences between two."""

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from judgekit.analysis.deltas import named_delta
from judgekit.analysis.indexing_coverage import FIGURES_OVER, coverage_figure
from judgekit.analysis.joint import joint_columns
from judgekit.analysis.repeated_answers import pass_names
from judgekit.analysis.risk_coverage import risk_score
from judgekit.analysis.run_deltas import USAGE_COLUMNS
from judgekit.core.comparison import COVERAGE, WHOLE_RUNS, Comparison, Delta
from judgekit.core.components import Component
from judgekit.core.conditions import Gate, GateResult
from judgekit.core.errors import ConfigError, did_you_mean
from judgekit.core.familiar_names import name_hint
from judgekit.core.repeats import pass_figure
from judgekit.core.runs import RunSummary
from judgekit.core.scores import Estimate
from judgekit.stats.means import TOLERANCE

RELIABILITY_GATES = ("judge_reliability.disagreement_rate", "judge_reliability.spot_check_n")
"""Figures of the spot check that a gate can name."""

RISK_GATE = "risk_coverage.aurc"

INDEXING = "indexing_coverage."
"""Begins the names of figures of indexing coverage."""

REGRESSION = "regression"
SIGNIFICANT = "significant"
GATES = "gates"

OPERATION = frozenset({"error_rate", "timeout_rate", "empty_response_rate"})
"""0/1 scores that every run has, whatever it holds."""

SHOWN = 5
"""Names in one line."""

_WHOLE = ("cost.", "latency.judge.", INDEXING)
"""Begin the names of figures that `compare` has without an interval."""

_LATENCY = re.compile(r"latency\.(?!judge\.).+\.(p50|p95)_ms")
"""Latency of the system by stage."""

_CONDITION = re.compile(
    r"\s*(?P<metric>.+?)\s*(?P<op><=|>=|<|>)\s*(?P<limit>[+-]?(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?)\s*"
)


def check_gates(gates: Sequence[Gate], summary: RunSummary) -> tuple[GateResult, ...]:
    """Whether each gate on a limit holds; a figure without data fails it. For the others see `relative_gates`.

    A lower limit is held against the worst case where cases failed, so that failures can never help to pass.
    """
    return tuple(_check(gate, summary) for gate in gates)


def check_gate_names(
    gates: Sequence[Gate], components: Sequence[Component], *, has_indexing: bool = False, n_answers: int = 1
) -> None:
    """Refuse a gate on a figure that nothing in the run can give.

    Args:
        gates: of the config.
        components: metrics and judges of the run.
        has_indexing: the config names a file for coverage.
        n_answers: answers to the case that has most.

    Raises:
        ConfigError: names the nearest figure, or what a figure of indexing coverage lacks.
    """
    columns = [column for component in components for column in component.columns()]
    columns += joint_columns(columns)
    known = {column.aggregate or column.name for column in columns if column.aggregate != ""}
    known |= {figure.name for component in components for figure in component.pooled()}
    known |= {RISK_GATE} if risk_score(columns) else set()
    indexing = {INDEXING + name for name in FIGURES_OVER}
    open_names = tuple(f"{component.name}." for component in components if component.has_open_columns)
    known |= set(pass_names(columns, n_answers))
    for number, gate in enumerate(gates):
        if pass_figure(gate.metric.removesuffix(COVERAGE)) is not None:
            _check_pass_gate(gate, f"gates[{number}]: {gate.metric}", n_answers)
        if gate.not_worse_than is not None:
            _check_relative_gate(gate, f"gates[{number}]", known, open_names)
        elif gate.metric in indexing:
            _check_indexing_gate(gate, f"gates[{number}]: {gate.metric}", has_indexing=has_indexing)
        elif gate.metric.startswith(open_names):
            continue  # what a function gives is known once it has seen the cases; a figure that never comes fails
        elif gate.metric.removesuffix(COVERAGE) not in known and gate.metric not in RELIABILITY_GATES:
            hint = name_hint(gate.metric, {*known, *RELIABILITY_GATES, *indexing})
            raise ConfigError(f"gates[{number}]: no figure called {gate.metric!r} in this run{hint}")


def _check_indexing_gate(gate: Gate, where: str, *, has_indexing: bool) -> None:
    if not has_indexing:
        raise ConfigError(f'{where} needs "indexing" in the config, the file that says what became of each document')
    if gate.bound != "point" or gate.slice:
        raise ConfigError(f"{where} is counted over the whole corpus: it has no interval and no slices")


def _check_pass_gate(gate: Gate, where: str, n_answers: int) -> None:
    if n_answers < 2:
        raise ConfigError(f'{where} needs several answers to each case; add "repeats" to the config')
    if gate.not_worse_than is not None:
        raise ConfigError(
            f'{where} has no paired interval, so "not_worse_than" cannot be decided; use "op" and "value"'
        )
    if gate.slice:
        raise ConfigError(f"{where} is of all cases: it has no slices")


def _check_relative_gate(gate: Gate, where: str, known: Collection[str], open_names: tuple[str, ...]) -> None:
    name = gate.metric
    if name in RELIABILITY_GATES or name == RISK_GATE or name.startswith(_WHOLE):
        hint = 'it has no paired interval, so "not_worse_than" cannot be decided'
        raise ConfigError(f'{where}: {name} is of the whole run: {hint}; use "op" and "value"')
    is_of_the_system = _LATENCY.fullmatch(name) is not None or name in {column.name for column in USAGE_COLUMNS}
    if not (is_of_the_system or name.removesuffix(COVERAGE) in known or name.startswith(open_names)):
        raise ConfigError(f"{where}: no figure called {name!r} in this run{name_hint(name, known)}")


def _check(gate: Gate, summary: RunSummary) -> GateResult:
    op, limit = gate.limit
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
    passed = observed is not None and _holds(observed, op, limit)
    shown = note if observed is None else f"{_digits(observed, limit)}{f' ({note})' if note else ''}"
    message = f"{gate.metric}{where} {op} {limit:g}: {'passed' if passed else 'missed'}, {shown}"
    return GateResult(
        metric=gate.metric,
        op=op,
        value=limit,
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
    if summary.indexing_coverage is not None:
        flat |= {INDEXING + name: coverage_figure(summary.indexing_coverage, name) for name in FIGURES_OVER}
    flat[RISK_GATE] = (summary.operational.get("risk_coverage") or {}).get("aurc")
    return {**flat, **summary.operational, **summary.overall}, ""


def _cases_behind(metric: str, summary: RunSummary) -> int:
    """How many documents, chunks or pairs a figure without an estimate rests on."""
    if metric.startswith(INDEXING):
        return int(coverage_figure(summary.indexing_coverage or {}, FIGURES_OVER[metric.removeprefix(INDEXING)]) or 0)
    return int((summary.judge_reliability or {}).get("spot_check_n", 1))


def _observed(gate: Gate, found: Estimate) -> tuple[float | None, int, str]:
    if found.value is None:
        return None, found.n, f"no data ({found.n} of {found.n + found.n_error + found.n_not_applicable} cases)"
    if found.n_error and found.worst is None:
        return None, found.n, f"{found.n_error} failed cases, and no bound on what they would add"
    wants_high = gate.limit[0] in (">=", ">")
    if gate.bound == "lower":
        observed, note = found.low, "lower end of the interval"
    elif gate.bound == "upper":
        observed, note = found.high, "upper end of the interval"
    else:
        observed, note = found.value, ""
    ends = [end for end in (found.worst, found.best) if end is not None]
    if ends:
        # Of a share of which neither way is better, the end that the gate is about is the worse one.
        worse = (min if wants_high else max)([*ends, *([] if observed is None else [observed])])
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


def _holds(value: float, op: str, limit: float) -> bool:
    """Whether a condition holds, where values within rounding count as equal."""
    if op in (">=", "<="):
        return value >= limit - TOLERANCE if op == ">=" else value <= limit + TOLERANCE
    return value > limit + TOLERANCE if op == ">" else value < limit - TOLERANCE


def _digits(observed: float, limit: float) -> str:
    """Four decimals, or as many as it takes to tell the value from the limit."""
    short = f"{observed:.4f}"
    return short if float(short) != limit or observed == limit else f"{observed:.10g}"


@dataclass(frozen=True, slots=True)
class Condition:
    """A difference that fails: `recall_any@5<-0.02`."""

    metric: str
    op: str
    limit: float

    @property
    def text(self) -> str:
        """As it is written."""
        return f"{self.metric}{self.op}{self.limit:g}"


FailOn = str | Condition
"""`regression`, `significant`, `gates`, or a condition."""


def parse_fail_on(texts: Iterable[str]) -> tuple[FailOn, ...]:
    """What `--fail-on` asks.

    Raises:
        ConfigError: none of the four forms.
    """
    return tuple(_parsed(text) for text in texts)


def _parsed(text: str) -> FailOn:
    if text in (REGRESSION, SIGNIFICANT, GATES):
        return text
    match = _CONDITION.fullmatch(text)
    if match is None:
        hint = did_you_mean(text, (REGRESSION, SIGNIFICANT, GATES)) if text.isalpha() else ""
        raise ConfigError(
            f"--fail-on {text!r}: expected {REGRESSION}, {SIGNIFICANT}, {GATES}, or a difference b - a such as "
            f"'recall_any@5<-0.02' or 'empty_result>0.02' (in quotes){hint}"
        )
    return Condition(match["metric"], match["op"], float(match["limit"]))


def failures(comparison: Comparison, wanted: Sequence[FailOn]) -> tuple[str, ...]:
    """One line for each condition that the comparison meets, naming what was found; empty if none is.

    A difference that is not known meets its condition: missing data must not pass. Where cases failed in one run
    alone, the difference with the worst value for them is held against the limit too, so that a failing run cannot
    pass by leaving its hard cases out; where nothing says what the worst value is, as in a figure of sums, the
    condition is met.

    Raises:
        ConfigError: a condition names a figure that neither run has, or the two are one run.
    """
    if wanted and comparison.same_run is not None:
        raise ConfigError(f"--fail-on: {comparison.same_run}; a run passes every gate against itself, name another")
    found = [_failure(comparison, item) for item in wanted]
    return tuple(line for line in found if line is not None)


def _failure(comparison: Comparison, wanted: FailOn) -> str | None:
    if isinstance(wanted, Condition):
        return _condition(comparison, wanted)
    if wanted == REGRESSION:
        return _regression(comparison)
    if wanted == GATES:
        return _failed_gates(comparison)
    if all(delta.p_holm is None for delta in comparison.deltas):
        return "significant: no figure of the two runs can be tested"
    gap = _gap(comparison)
    if gap is not None:
        return f"significant: {gap}"
    worse = [f"{delta.name} {delta.delta:+.4f}" for delta in comparison.deltas if delta.verdict == "worse"]
    return f"significant: {_some(worse, 'figures')} worse" if worse else None


def _failed_gates(comparison: Comparison) -> str | None:
    """Gates of b relative to a that are missed, or undecided where that fails."""
    if not comparison.gates:
        return f"{GATES}: the config of {comparison.run_b} has no gate with not_worse_than"
    failed = [gate.message for gate in comparison.gates if gate.fails]
    return f"{GATES}: {'; '.join(failed)}" if failed else None


def _regression(comparison: Comparison) -> str | None:
    """Cases that are one, by their first correct hit or by a judge or 0/1 score; or what cannot be compared."""
    lost = [query.query_id for query in comparison.per_query if "regression" in query.kinds]
    if lost:
        hits = sum(query.kind == "regression" for query in comparison.per_query)
        counts = {"first correct hit": hits} | {name: found["regression"] for name, found in comparison.kinds.items()}
        named = [f"{name} {n}" for name, n in counts.items() if n]
        return f"regression: {_some(lost)}; {_some(named, 'scores')}"
    gap = _gap(comparison)
    if gap is None and not _is_anything_compared(comparison):
        gap = "nothing to compare, no case has an expected hit or a score in both runs"
    return None if gap is None else f"regression: {gap}"


def _gap(comparison: Comparison) -> str | None:
    """What one of the runs has no value of at all, so that nothing of it is compared."""
    if comparison.dropped:
        missing = " and no ".join(comparison.dropped)
        return f"{comparison.run_b} has no {missing}, so nothing of it can be compared"
    kinds = comparison.kinds
    untold = [f"{name} ({n} failed)" for name, n in comparison.untold.items() if name not in kinds]
    if untold:
        return f"{comparison.run_a} has no value of {_some(untold, 'scores')}, so nothing can be compared"
    return None


def _is_anything_compared(comparison: Comparison) -> bool:
    """Whether a case has hits to compare, or a judge or 0/1 score beside those of operation, which any run has."""
    kinds = comparison.counts
    if any(kinds[kind] for kind in ("win", "loss", "regression", "draw")):
        return True
    return not comparison.kinds.keys() <= OPERATION


def _condition(comparison: Comparison, wanted: Condition) -> str | None:
    delta = named_delta(comparison.deltas, wanted.metric)
    names = [found.name for found in comparison.deltas]
    if wanted.metric in comparison.left_out:
        spans = [name for name in names if "span" in name]
        raise ConfigError(
            f"--fail-on {wanted.text!r}: {wanted.metric} goes by chunk id, and the runs have different chunkers, so it "
            f"is not compared; those by characters are: {', '.join(spans)}"
        )
    if wanted.metric in comparison.without_value:
        return f"{wanted.text}: {wanted.metric} has no value in either run"
    if delta is None:
        hint = name_hint(wanted.metric, names)
        raise ConfigError(f"--fail-on {wanted.text!r}: no figure called {wanted.metric!r} in these runs{hint}")
    if delta.delta is None:
        values = ("no value" if value is None else f"{value:.4f}" for value in (delta.a, delta.b))
        where = " then ".join(values) if delta.method == WHOLE_RUNS else f"{delta.n} cases with a value in both runs"
        return f"{wanted.text}: no difference is known ({where})"
    if delta.n_unbounded:
        cases = "1 case" if delta.n_unbounded == 1 else f"{delta.n_unbounded} cases"
        what = "and nothing says what they would make of the difference"
        return f"{wanted.text}: {cases} with a value in a failed in b, {what}"
    held = [("", delta.delta)]
    if delta.delta_if_failed_worst is not None:
        held.append((_failed(delta), delta.delta_if_failed_worst))
    for note, value in held:
        if _holds(value, wanted.op, wanted.limit):
            return f"{wanted.text}: {wanted.metric} {delta.a:.4f} to {delta.b:.4f}, difference {value:+.4f}{note}"
    return None


def _failed(delta: Delta) -> str:
    return f" with failed cases as the worst ({delta.n_failed_a} in a, {delta.n_failed_b} in b)"


def _some(names: Sequence[str], what: str = "cases") -> str:
    more = f", ... ({len(names)} {what})" if len(names) > SHOWN else ""
    return ", ".join(names[:SHOWN]) + more
