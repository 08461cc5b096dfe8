"""What a test is given: it judges answers, and holds figures over them against limits."""

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any

import pytest

from judgekit.pytest_plugin.sessions import JudgeFailed, Session

if TYPE_CHECKING:
    from judgekit.api.results import RunResult
    from judgekit.core.scores import Estimate


class NotDecided(Exception):
    """Too few cases to tell whether a figure is beyond its limit."""


class JudgedCase:
    """What was found about one answer. A score that a judge failed to give, or that does not apply, raises."""

    def __init__(self, scores: Mapping[str, tuple[float | None, str | None]], reasons: Mapping[str, str]) -> None:
        self.scores = scores
        """By name: the value, and the reason if there is none."""
        self.reasons = reasons
        """By judge: why it judged so."""

    def __getitem__(self, name: str) -> float:
        from judgekit.core.familiar_names import name_hint

        if name not in self.scores:
            raise KeyError(f"no score called {name!r}{name_hint(name, self.scores)}")
        value, reason = self.scores[name]
        if value is None:
            raise JudgeFailed(f"{name}: {reason}")
        return value

    def __getattr__(self, name: str) -> float:
        if name.startswith("_"):
            raise AttributeError(name)
        try:
            return self[name]
        except KeyError as error:
            raise AttributeError(error.args[0]) from None

    def __repr__(self) -> str:
        values = {name: value for name, (value, _) in self.scores.items() if value is not None}
        return f"JudgedCase({values}, reasons={dict(self.reasons)})"


class Judged:
    """Judges answers, and remembers those of its test."""

    def __init__(self, state: Session, test: str, marker: pytest.Mark | None) -> None:
        self._state, self._test = state, test
        self._limits: dict[str, float] = {}
        for limits in (*marker.args, marker.kwargs) if marker else ():
            self._limits.update(limits)
        self._pairs: list[dict[str, Any]] = []

    def __call__(self, case: Any = None, output: Any = None, **fields: Any) -> JudgedCase:
        """Judge one answer.

        Args:
            case: a `Case` or its fields; left out: made of `fields`.
            output: a `SystemOutput`, its fields, or the text of the answer; left out: made of `fields`.
            fields: of the case and of the output, such as `question`, `reference_answers`, `answer`, `retrieved`.

        Raises:
            ConfigError: there is no config, or it cannot be used.
            InputError: a field is wrong.
        """
        pair = self._state.pair(case, output, fields, f"{self._test}{f' ({len(self._pairs) + 1})' * bool(self._pairs)}")
        result, _ = self._state.judge([pair])
        self._pairs.append(pair)
        self._state.keep(pair)
        (record,) = result.cases()
        reasons = {item.judge: item.verdict.reasoning for item in record.judgments if item.verdict is not None}
        return JudgedCase(record.scores, reasons)

    def check_limits(self) -> None:
        """Hold the figures over the cases of the test against their limits.

        Raises:
            AssertionError: one is beyond its limit, with its whole interval.
            NotDecided: too few cases to tell.
            JudgeFailed: a judge has no verdict on some of them.
        """
        if not self._limits or not self._pairs:
            return
        result, lower_is_better = self._state.judge(self._pairs)
        lines = [_held(name, limit, result, lower_is_better) for name, limit in self._limits.items()]
        missed = [text for state, text in lines if state == "missed"]
        if missed:
            raise AssertionError("\n".join(missed))
        if open_ := [text for state, text in lines if state == "undecided"]:
            raise NotDecided("\n".join(open_))


def _held(name: str, limit: float, result: "RunResult", lower_is_better: Collection[str]) -> tuple[str, str]:
    """Whether a figure is on the right side of its limit with its whole interval, and the line that says so."""
    from judgekit.core.errors import ConfigError
    from judgekit.core.familiar_names import name_hint

    figure = result.overall.get(name)
    if figure is None:
        raise ConfigError(f"marker judge: no figure called {name!r}{name_hint(name, result.overall)}")
    n_cases = figure.n + figure.n_error
    if figure.n_error:
        raise JudgeFailed(f"{name}: {figure.n_error} of {n_cases} cases have no score, since a call failed")
    if figure.value is None:
        raise JudgeFailed(f"{name}: applies to none of the cases")
    sign = -1 if name in lower_is_better else 1
    low, high = sorted(sign * end for end in _ends(figure))
    state = "passed" if low >= sign * limit else "missed" if high < sign * limit else "undecided"
    side, more = "at most" if sign < 0 else "at least", "; too few cases to tell" if state == "undecided" else ""
    ends = f", {figure.low:.3g} to {figure.high:.3g}" if figure.low is not None and figure.high is not None else ""
    return state, f"{name}: {figure.value:.3g} (n = {figure.n}{ends}), expected {side} {limit:g}{more}"


def _ends(figure: "Estimate") -> tuple[float, float]:
    """The interval of a figure; without one, the value itself if there are enough cases, else anything."""
    if figure.low is not None and figure.high is not None:
        return figure.low, figure.high
    return (float("-inf"), float("inf")) if figure.small or figure.value is None else (figure.value, figure.value)
