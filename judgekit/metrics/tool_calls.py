"""Tool calls: does the system call the tools that it should, in the right order and with the right arguments?"""

from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any, ClassVar, Self

from pydantic import PrivateAttr, model_validator

from judgekit.core.cases import Case, SystemOutput, ToolCall
from judgekit.core.components import Metric, MetricReport
from judgekit.core.conversations import tool_calls_of
from judgekit.core.errors import ConfigError
from judgekit.core.scores import Column, Estimate, Failed, NotApplicable, Outcome, Outcomes
from judgekit.metrics.field_rules import ComparatorError, Rules, function_names
from judgekit.metrics.fields import FieldComparer
from judgekit.stats.assignment import cheapest_assignment

MOST_PAIRS = 10_000
"""Pairs of calls of one tool that are compared to find out which go together; of more, calls go together in order."""

_NAMES = tuple(f"tool_calls.{name}" for name in ("name_recall", "name_precision", "order", "arguments", "exact"))
_NO_LABEL = NotApplicable("no expected_tool_calls")
_NO_TURNS = NotApplicable("no turns", by_output=True)
_NONE_EXPECTED = NotApplicable("no call expected")
_NONE_MADE = NotApplicable("no call made")
_TOO_FEW = NotApplicable("fewer than two expected calls made")
_NO_ARGUMENTS = NotApplicable("no expected call with arguments made")
_COMPARATOR = Failed("comparator", by_judge=True)
_FINE = 10**9
"""Shares are paired as whole numbers of a billionth, so that ties are ties."""


class ToolCalls(Metric):
    """Tools that the system called in its turns against `expected_tool_calls`; in [0, 1], higher is better.

    A call is made if the system called a tool of its name; a tool that is expected twice has to be called twice.

    * `tool_calls.name_recall`: expected calls made / expected calls.
    * `tool_calls.name_precision`: expected calls made / all calls; not applicable if there is none.
    * `tool_calls.order`: of the expected calls made, the share in the expected order: the longest run of names that
      both lists have in this order, others in between, / expected calls made. Not applicable to fewer than two.
    * `tool_calls.arguments`: mean over the expected calls made that say their arguments of equal arguments / arguments
      of either call, leaf by leaf. Calls of one tool go together so that this is largest.
    * `tool_calls.exact`: 1 if the calls are the expected ones and no others, with all arguments equal and in order.

    If no call is expected, only the precision (0 if there is a call) and `tool_calls.exact` apply.
    Not applicable without `expected_tool_calls`, and to an output without `turns`.

    Source: in-house; length of the longest common subsequence as in Hyyrö 2004, "Bit-parallel LCS-length computation
    revisited".
    """

    needs: ClassVar[tuple[tuple[str, ...], ...]] = (("case.expected_tool_calls",), ("output.turns",))

    arguments: Rules = {}
    """Comparators by path, which begins with the tool: `search.query`; left out: exact."""
    any_order: bool = False
    """Whether `tool_calls.exact` takes the calls in any order."""
    _functions: dict[str, Callable[[Any, Any], bool]] = PrivateAttr(default_factory=dict)

    @model_validator(mode="after")
    def _rules_hold(self) -> Self:
        try:
            FieldComparer(self.arguments)
        except ConfigError as error:
            raise ValueError(str(error).replace("fields:", "arguments:", 1)) from None
        return self

    @property
    def function_names(self) -> tuple[str, ...]:
        """`package.module:function` of every comparator that is a Python function."""
        return function_names(self.arguments)

    def with_functions(self, functions: Mapping[str, Callable[[Any, Any], bool]]) -> "ToolCalls":
        """The same family with the functions that its comparators name; loading them is not for a pure layer."""
        bound = self.model_copy()
        bound._functions = dict(functions)
        return bound

    @cached_property
    def _comparer(self) -> FieldComparer:
        return FieldComparer(self.arguments, functions=self._functions)

    def columns(self) -> tuple[Column, ...]:
        return tuple([Column(name, binary=name == _NAMES[-1]) for name in _NAMES])

    def calculate(self, case: Case, output: SystemOutput) -> Outcomes:
        outcome: Outcome
        if case.expected_tool_calls is None:
            outcome = _NO_LABEL
        elif output.error is not None:
            outcome = Failed(output.error.kind)
        elif output.turns is None:
            outcome = _NO_TURNS
        else:
            try:
                return self._compared(case.expected_tool_calls, tool_calls_of(output))
            except ComparatorError:
                # A function of the user's own is an instrument like a judge: its failure says nothing of the system.
                outcome = _COMPARATOR
        return dict.fromkeys(_NAMES, outcome)

    def open_report(self) -> "MetricReport | None":
        return _RuleReport(self) if self.arguments else None

    def paths_of(self, case: Case) -> set[str]:
        """Paths of the expected arguments, as rules name them."""
        calls = case.expected_tool_calls or ()
        return {path for call in calls for path in self._comparer.compare({call.name: call.arguments}, None).by_field}

    def _compared(self, expected: Sequence[ToolCall], made: Sequence[ToolCall]) -> Outcomes:
        wanted, called = [call.name for call in expected], [call.name for call in made]
        n_met = (Counter(wanted) & Counter(called)).total()
        n_in_order = _longest_common(wanted, called) if n_met else 0
        shares = self._shares(expected, made)
        is_exact = n_met == len(wanted) == len(called) and all(share == 1.0 for share in shares)
        outcomes: tuple[Outcome, ...] = (
            n_met / len(wanted) if wanted else _NONE_EXPECTED,
            n_met / len(called) if called else _NONE_MADE,
            n_in_order / n_met if n_met > 1 else _TOO_FEW,
            sum(shares) / len(shares) if shares else _NO_ARGUMENTS,
            float(is_exact and (self.any_order or self._are_in_order(expected, made))),
        )
        return dict(zip(_NAMES, outcomes, strict=True))

    def _shares(self, expected: Sequence[ToolCall], made: Sequence[ToolCall]) -> list[float]:
        """Share of equal arguments of every expected call that says its arguments and was made."""
        wanted, called = defaultdict(list), defaultdict(list)
        for call in expected:
            if call.arguments is not None:
                wanted[call.name].append(call)
        for call in made:
            called[call.name].append(call)
        return [share for name, calls in wanted.items() for share in self._paired(calls, called[name])]

    def _paired(self, expected: Sequence[ToolCall], made: Sequence[ToolCall]) -> list[float]:
        """Shares of the pairs of calls of one tool."""
        if len(expected) * len(made) > MOST_PAIRS:
            return [self._alike(one, other) for one, other in zip(expected, made, strict=False)]
        alike = [[self._alike(one, other) for other in made] for one in expected]
        costs = [[-round(share * _FINE) for share in line] for line in alike]
        return [alike[row][column] for row, column in cheapest_assignment(costs)]

    def _are_in_order(self, expected: Sequence[ToolCall], made: Sequence[ToolCall]) -> bool:
        return all(
            one.name == other.name and (one.arguments is None or self._alike(one, other) == 1.0)
            for one, other in zip(expected, made, strict=True)
        )

    def _alike(self, expected: ToolCall, made: ToolCall) -> float:
        """Equal arguments / arguments of either call; 1 if neither has one."""
        counts = self._comparer.compare({expected.name: expected.arguments}, {made.name: made.arguments}).counts
        n_all = counts.total_gt_fields + counts.hallucination
        return counts.true_positives / n_all if n_all else 1.0


class _RuleReport(MetricReport):
    """Rules that no argument was compared by, and comparators that failed; there is no file."""

    file_name = ""

    def __init__(self, family: ToolCalls) -> None:
        self._family = family
        self._known: set[str] = set()
        self._n_failed = 0

    def calculate(self, case: Case, output: SystemOutput) -> Outcomes:
        self._known |= self._family.paths_of(case)
        outcomes = self._family.calculate(case, output)
        self._n_failed += _COMPARATOR in outcomes.values()
        return outcomes

    def document(self, figures: Mapping[str, Estimate | dict[str, int]]) -> None:  # noqa: ARG002 - the port's signature
        return None

    def digest(self) -> None:
        return None

    def warnings(self) -> list[tuple[str, str]]:
        unmet = self._family._comparer.unmet(self._known) if self._known else []
        found = [("fields_not_found", f"tool_calls: arguments: {'; '.join(unmet)}")] if unmet else []
        if self._n_failed:
            found.append(("comparator_failed", f"tool_calls: a comparator failed in {self._n_failed} cases"))
        return found


def _longest_common(one: Sequence[str], other: Sequence[str]) -> int:
    """Length of the longest common subsequence; a zero bit of the row is a step of it."""
    places: defaultdict[str, int] = defaultdict(int)
    for index, name in enumerate(one):
        places[name] |= 1 << index
    full = (1 << len(one)) - 1
    row = full
    for name in other:
        met = row & places[name]
        row = ((row + met) | (row - met)) & full
    return len(one) - row.bit_count()
