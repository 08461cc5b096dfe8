"""What `compare --fail-on` can ask, and whether a comparison has it."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from judgekit.core.comparison import Comparison, Delta
from judgekit.core.errors import ConfigError, did_you_mean
from judgekit.stats.means import TOLERANCE

REGRESSION = "regression"
SIGNIFICANT = "significant"

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
    pass by leaving its hard cases out.

    Raises:
        ConfigError: a condition names a figure that neither run has.
    """
    found = [_failure(comparison, item) for item in wanted]
    return tuple(line for line in found if line is not None)


def _failure(comparison: Comparison, wanted: FailOn) -> str | None:
    if isinstance(wanted, Condition):
        return _condition(comparison, wanted)
    if wanted == REGRESSION:
        lost = [query.query_id for query in comparison.per_query if query.kind == "regression"]
        return f"regression: {_some(lost)}, found in {comparison.run_a} and not any more" if lost else None
    worse = [f"{delta.name} {delta.delta:+.4f}" for delta in comparison.deltas if delta.verdict == "worse"]
    return f"significant: {_some(worse, 'figures')} worse" if worse else None


def _condition(comparison: Comparison, wanted: Condition) -> str | None:
    by_name = {delta.name: delta for delta in comparison.deltas}
    if wanted.metric not in by_name:
        hint = did_you_mean(wanted.metric, by_name)
        raise ConfigError(f"--fail-on {wanted.text!r}: no figure called {wanted.metric!r} in these runs{hint}")
    delta = by_name[wanted.metric]
    if delta.delta is None:
        return f"{wanted.text}: no difference is known ({delta.n} cases with a value in both runs)"
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
