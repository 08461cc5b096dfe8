"""What `compare --fail-on` can ask, and whether a comparison has it."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from judgekit.analysis.deltas import coverage_delta
from judgekit.core.comparison import COVERAGE, WHOLE_RUNS, Comparison, Delta
from judgekit.core.errors import ConfigError, did_you_mean
from judgekit.stats.means import TOLERANCE

REGRESSION = "regression"
SIGNIFICANT = "significant"

OPERATION = frozenset({"error_rate", "timeout_rate", "empty_response_rate"})
"""0/1 scores that every run has, whatever it holds."""

SHOWN = 5
"""Names in one line."""

_CONDITION = re.compile(
    r"\s*(?P<metric>.+?)\s*(?P<op><=|>=|<|>)\s*(?P<limit>[+-]?(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?)\s*"
)


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
"""`regression`, `significant`, or a condition."""


def parse_fail_on(texts: Iterable[str]) -> tuple[FailOn, ...]:
    """What `--fail-on` asks.

    Raises:
        ConfigError: none of the three forms.
    """
    return tuple(_parsed(text) for text in texts)


def _parsed(text: str) -> FailOn:
    if text in (REGRESSION, SIGNIFICANT):
        return text
    match = _CONDITION.fullmatch(text)
    if match is None:
        hint = did_you_mean(text, (REGRESSION, SIGNIFICANT)) if text.isalpha() else ""
        raise ConfigError(
            f"--fail-on {text!r}: expected {REGRESSION}, {SIGNIFICANT}, or a difference b - a such as "
            f"'recall_any@5<-0.02' or 'empty_result>0.02' (in quotes){hint}"
        )
    return Condition(match["metric"], match["op"], float(match["limit"]))


def failures(comparison: Comparison, wanted: Sequence[FailOn]) -> tuple[str, ...]:
    """One line for each condition that the comparison meets, naming what was found; empty where none is.

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
    if all(delta.p_holm is None for delta in comparison.deltas):
        return "significant: no figure of the two runs can be tested"
    gap = _gap(comparison)
    if gap is not None:
        return f"significant: {gap}"
    worse = [f"{delta.name} {delta.delta:+.4f}" for delta in comparison.deltas if delta.verdict == "worse"]
    return f"significant: {_some(worse, 'figures')} worse" if worse else None


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
    by_name = {delta.name: delta for delta in comparison.deltas}
    of_figure = by_name.get(wanted.metric.removesuffix(COVERAGE))
    if wanted.metric.endswith(COVERAGE) and of_figure is not None and of_figure.method != WHOLE_RUNS:
        by_name.setdefault(wanted.metric, coverage_delta(of_figure))
    if wanted.metric in comparison.left_out:
        spans = [name for name in by_name if "span" in name]
        raise ConfigError(
            f"--fail-on {wanted.text!r}: {wanted.metric} goes by chunk id, and the runs have different chunkers, so it "
            f"is not compared; those by characters are: {', '.join(spans)}"
        )
    if wanted.metric in comparison.without_value:
        return f"{wanted.text}: {wanted.metric} has no value in either run"
    if wanted.metric not in by_name:
        hint = did_you_mean(wanted.metric, by_name)
        raise ConfigError(f"--fail-on {wanted.text!r}: no figure called {wanted.metric!r} in these runs{hint}")
    delta = by_name[wanted.metric]
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


def _holds(value: float, op: str, limit: float) -> bool:
    if op == "<":
        return value < limit - TOLERANCE
    if op == "<=":
        return value <= limit + TOLERANCE
    if op == ">":
        return value > limit + TOLERANCE
    return value >= limit - TOLERANCE


def _some(names: Sequence[str], what: str = "cases") -> str:
    more = f", ... ({len(names)} {what})" if len(names) > SHOWN else ""
    return ", ".join(names[:SHOWN]) + more
