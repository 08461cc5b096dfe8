"""The family `tool_calls`: expected calls against the calls of the system's turns."""

import time
from typing import Any

import pytest
from pydantic import ValidationError

from judgekit.core.cases import Case, SystemOutput
from judgekit.core.scores import Failed, NotApplicable, Outcomes
from judgekit.metrics.tool_calls import ToolCalls

NAMES = ("name_recall", "name_precision", "order", "arguments", "exact")

Calls = list[tuple[str, Any]] | list[str] | None


def rows(calls: Calls) -> list[dict[str, Any]] | None:
    if calls is None:
        return None
    return [{"name": one} if isinstance(one, str) else {"name": one[0], "arguments": one[1]} for one in calls]


def outcomes(expected: Calls, made: Calls, family: ToolCalls | None = None, **output: Any) -> Outcomes:
    turns = None if made is None else [{"role": "assistant", "tool_calls": rows(made)}]
    case = Case.model_validate({"id": "c", "expected_tool_calls": rows(expected)})
    found = SystemOutput.model_validate({"case_id": "c", "turns": turns, **output})
    return (family or ToolCalls()).calculate(case, found)


def figures(expected: Calls, made: Calls, family: ToolCalls | None = None) -> list[float | None]:
    found = outcomes(expected, made, family).values()
    return [None if isinstance(outcome, NotApplicable) else outcome for outcome in found]  # type: ignore[misc]


@pytest.mark.parametrize(
    ("expected", "made", "wanted"),
    [
        # recall, precision, order, arguments, exact
        pytest.param(["a", "b"], ["a", "b"], [1, 1, 1, None, 1], id="as expected"),
        pytest.param(["a", "b"], ["b", "a"], [1, 1, 1 / 2, None, 0], id="turned around: 1 of 2 in order"),
        pytest.param(["a", "b", "c"], ["x", "a", "y", "c"], [2 / 3, 2 / 4, 1, None, 0], id="others in between"),
        pytest.param(["a", "b", "c", "d"], ["d", "a", "b", "c"], [1, 1, 3 / 4, None, 0], id="a b c of 4 in order"),
        pytest.param(["a", "a"], ["a"], [1 / 2, 1, None, None, 0], id="twice expected, once made"),
        pytest.param(["a"], ["a", "a"], [1, 1 / 2, None, None, 0], id="once expected, twice made"),
        pytest.param(["a"], ["b"], [0, 0, None, None, 0], id="another tool"),
        pytest.param(["a"], [], [0, None, None, None, 0], id="no call"),
        pytest.param([], [], [None, None, None, None, 1], id="none expected, none made"),
        pytest.param([], ["a"], [None, 0, None, None, 0], id="none expected, one made"),
    ],
)
def test_names_and_their_order(expected: Calls, made: Calls, wanted: list[float | None]) -> None:
    assert figures(expected, made) == wanted


@pytest.mark.parametrize(
    ("expected", "made", "share", "exact"),
    [
        pytest.param([("a", {"x": 1, "y": 2})], [("a", {"y": 2, "x": 1})], 1.0, 1.0, id="equal"),
        pytest.param([("a", {"x": 1, "y": 2})], [("a", {"x": 1, "y": 3})], 1 / 2, 0.0, id="one of two"),
        # x is right; y was not expected: 1 of 2.
        pytest.param([("a", {"x": 1})], [("a", {"x": 1, "y": 3})], 1 / 2, 0.0, id="one too many"),
        pytest.param([("a", {})], [("a", {})], 1.0, 1.0, id="no arguments on both sides"),
        pytest.param([("a", {})], [("a", None)], 1.0, 1.0, id="a call without arguments has none"),
        pytest.param([("a", {})], [("a", {"x": 1})], 0.0, 0.0, id="none expected"),
        pytest.param(["a"], [("a", {"x": 1})], None, 1.0, id="any arguments"),
        pytest.param([("a", {"x": 1})], [("a", '{"x": 1}')], 1.0, 1.0, id="JSON text"),
        pytest.param([("a", {"x": 1})], [("a", '{"x": 1')], 0.0, 0.0, id="broken JSON"),
        pytest.param([("a", {})], [("a", "oops")], 0.0, 0.0, id="broken JSON where none is expected"),
        pytest.param([("a", {"x": "Rome"})], [("a", {"x": "rome"})], 0.0, 0.0, id="case counts"),
        # The first call goes with the second expected one and the other way round.
        pytest.param([("a", {"x": 1}), ("a", {"x": 2})], [("a", {"x": 2}), ("a", {"x": 1})], 1.0, 0.0, id="crossed"),
        # x of 1 is equal, the other has no partner: mean over the one expected call made.
        pytest.param([("a", {"x": 1}), ("a", {"x": 2})], [("a", {"x": 2})], 1.0, 0.0, id="one made"),
        pytest.param([("a.b", {"": 1})], [("a.b", {"": 1})], 1.0, 1.0, id="odd names"),
    ],
)
def test_arguments(expected: Calls, made: Calls, share: float | None, exact: float) -> None:
    assert figures(expected, made)[3:] == [share, exact]


def test_comparators_and_any_order() -> None:
    family = ToolCalls.model_validate(
        {"arguments": {"a.city": "text", '["b.c"].n': {"compare": "number", "absolute": 1}}}
    )
    expected: Calls = [("a", {"city": "Rome"}), ("b.c", {"n": 3})]
    assert figures(expected, [("a", {"city": " ROME"}), ("b.c", {"n": 4})], family) == [1, 1, 1, 1.0, 1.0]
    turned: Calls = [("b.c", {"n": 5}), ("a", {"city": "rome"})]
    assert figures(expected, turned, family)[3:] == [1 / 2, 0.0]
    turned = [("b.c", {"n": 4}), ("a", {"city": "rome"})]
    assert figures(expected, turned, family)[4] == 0.0
    assert figures(expected, turned, family.model_copy(update={"any_order": True}))[4] == 1.0


def test_only_what_the_system_calls_counts() -> None:
    turns = [
        {"role": "user", "tool_calls": [{"name": "a"}]},
        {"role": "assistant", "tool_calls": [{"name": "b"}]},
        {"role": "tool", "text": "done"},
    ]
    case = Case.model_validate({"id": "c", "expected_tool_calls": [{"name": "a"}, {"name": "b"}]})
    found = ToolCalls().calculate(case, SystemOutput.model_validate({"case_id": "c", "turns": turns}))
    assert (found["tool_calls.name_recall"], found["tool_calls.name_precision"]) == (1 / 2, 1.0)


def test_what_is_missing_has_a_reason() -> None:
    assert set(outcomes(None, ["a"]).values()) == {NotApplicable("no expected_tool_calls")}
    assert set(outcomes(None, None, error={"kind": "api"}).values()) == {NotApplicable("no expected_tool_calls")}
    assert set(outcomes(["a"], None).values()) == {NotApplicable("no turns", by_output=True)}
    assert set(outcomes(["a"], None, error={"kind": "timeout"}).values()) == {Failed("timeout")}
    assert set(outcomes(["a"], None)) == {f"tool_calls.{name}" for name in NAMES}


@pytest.mark.parametrize(
    "rules", [{"a.x": "nearly"}, {"[0].x": "text"}, {"a.x": {"compare": "number", "absolute": -1}}]
)
def test_rules_that_are_none_are_refused(rules: dict[str, Any]) -> None:
    with pytest.raises(ValidationError, match="arguments"):
        ToolCalls.model_validate({"arguments": rules})


def test_a_slip_in_a_path_and_a_comparator_that_fails_are_said() -> None:
    def broken(expected: Any, made: Any) -> bool:
        raise KeyError("x")

    family = ToolCalls.model_validate({"arguments": {"a.x": {"compare": "python", "function": "m:f"}, "a.yy": "text"}})
    assert family.function_names == ("m:f",)
    report = family.with_functions({"m:f": broken}).open_report()
    assert report is not None
    case = Case.model_validate({"id": "c", "expected_tool_calls": rows([("a", {"x": 1, "y": 2})])})
    turns = [{"role": "assistant", "tool_calls": rows([("a", {"x": 1})])}]
    found = report.calculate(case, SystemOutput.model_validate({"case_id": "c", "turns": turns}))
    assert set(found.values()) == {Failed("comparator", by_judge=True)}
    assert report.warnings() == [
        ("fields_not_found", "tool_calls: arguments: no value at 'a.yy'; did you mean 'a.y'?"),
        ("comparator_failed", "tool_calls: a comparator failed in 1 cases"),
    ]
    assert (report.document({}), report.digest(), ToolCalls().open_report()) == (None, None, None)


@pytest.mark.slow
def test_ten_thousand_calls_take_no_longer_than_a_few_seconds() -> None:
    calls = [("a", {"x": number}) for number in range(10_000)]
    started = time.perf_counter()
    assert figures(calls, calls) == [1, 1, 1, 1.0, 1.0]
    # t0 to t3 are expected 1429 times and t4 1428 times, and each is called 2000 times.
    expected, made = [f"t{i % 7}" for i in range(10_000)], [f"t{i % 5}" for i in range(10_000)]
    assert figures(expected, made)[0] == 0.7144
    assert time.perf_counter() - started < 20
