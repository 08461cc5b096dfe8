"""Asking a live system: whatever goes wrong with one case is an error row, and failures in a row stop the run."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from judgekit.core.cases import Case, SystemOutput
from judgekit.core.errors import ProviderError
from judgekit.core.masking import Masker
from judgekit.core.protocols import Ask, AskError, Surroundings, System
from judgekit.engine import system_calls
from judgekit.engine.passes import Observer
from judgekit.engine.system_calls import SystemCalls


class Nobody(System):
    """A system whose session is not opened here."""

    @asynccontextmanager
    async def session(self, surroundings: Surroundings) -> AsyncIterator[Ask]:
        raise NotImplementedError
        yield


class Shelf(dict[str, str]):
    """A reply cache in memory."""

    def stored_at(self, key: str) -> str | None:
        return None

    def put_many(self, items: Any) -> None:
        self.update(items)

    def close(self) -> None: ...


def asked(
    ask: Callable[[Case], Any], n: int = 1, cache: Shelf | None = None, secret: str | None = None, **settings: Any
) -> list[SystemOutput]:
    """The outputs for so many cases, in the order in which they came."""
    found: list[SystemOutput] = []
    system = Nobody(**{"stop_after": 100, **settings})
    calls = SystemCalls(system, {}, cache, Observer(), Masker([secret]))

    def write(output: SystemOutput, reply: tuple[str, str] | None) -> None:
        found.append(output)
        if reply is not None and cache is not None:
            cache.put_many([reply])

    async def awaited(case: Case) -> Any:
        result = ask(case)
        return await result if asyncio.iscoroutine(result) else result

    asyncio.run(calls.run(awaited, [Case(id=f"q{number}") for number in range(1, n + 1)], write))
    return found


@pytest.fixture(autouse=True)
def _no_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(system_calls, "FIRST_WAIT_SECONDS", 0.001)


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ("Four", {"answer": "Four"}),
        ("", {"answer": ""}),
        ({"answer": "Four", "abstained": False}, {"answer": "Four", "abstained": False}),
        ({"case_id": "q1", "retrieved": [{"chunk_id": "a"}]}, {"answer": None}),
        (SystemOutput(case_id="q1", answer="Four"), {"answer": "Four"}),
    ],
)
def test_a_text_a_mapping_and_an_output_are_answers(answer: Any, expected: dict[str, Any]) -> None:
    (output,) = asked(lambda _: answer)
    assert output.error is None
    assert {name: getattr(output, name) for name in expected} == expected
    assert output.latency_seconds["total"] >= 0


@pytest.mark.parametrize(
    ("answer", "kind", "message"),
    [
        (None, "invalid_output", "expected a text, a mapping or a SystemOutput, found NoneType None"),
        (float("nan"), "invalid_output", "found float nan"),
        ({"answr": "Four"}, "invalid_output", "$.answr"),
        ({"answer": "x", "confidence": float("nan")}, "invalid_output", "$.confidence"),
        ({"case_id": "q7", "answer": "x"}, "wrong_case", "asked about case 'q1', and the answer is for 'q7'"),
        (SystemOutput(case_id="q7"), "wrong_case", "the answer is for 'q7'"),
    ],
)
def test_anything_else_is_an_error_row_that_says_what_came(answer: Any, kind: str, message: str) -> None:
    (output,) = asked(lambda _: answer)
    assert output.error is not None
    assert output.error.kind == kind
    assert message in output.error.message


def test_a_repeat_may_be_answered_under_the_id_of_its_case() -> None:
    calls = SystemCalls(Nobody(), {}, None, Observer(), Masker([]))
    found: list[SystemOutput] = []

    async def ask(case: Case) -> SystemOutput:
        return SystemOutput(case_id="q1", answer="Four")

    cases = [Case(id="q1#2", metadata={"repeat_of": "q1"})]
    asyncio.run(calls.run(ask, cases, lambda output, _: found.append(output)))
    assert [(output.case_id, output.answer) for output in found] == [("q1#2", "Four")]


def test_what_may_pass_is_asked_again_and_what_may_not_is_not() -> None:
    seen: list[str] = []

    def ask(case: Case) -> str:
        seen.append(case.id)
        if case.id == "q1" and seen.count("q1") < 3:
            raise AskError("connection", "refused", retryable=True)
        if case.id == "q2":
            raise AskError("api", "no such index")
        return "x"

    outputs = asked(ask, 3, max_concurrency=1)
    assert [seen.count(case_id) for case_id in ("q1", "q2", "q3")] == [3, 1, 1]
    assert [output.error and output.error.kind for output in outputs] == [None, "api", None]


def test_a_call_that_hangs_is_a_timeout_after_all_attempts() -> None:
    async def ask(case: Case) -> str:
        await asyncio.sleep(30)
        return "x"

    (output,) = asked(ask, timeout_seconds=0.01, max_attempts=2)
    assert output.error is not None
    assert (output.error.kind, output.error.message) == ("timeout", "no answer within 0.01 s")


def test_an_exception_is_an_error_row_without_secrets_and_in_one_line() -> None:
    def ask(case: Case) -> str:
        raise ValueError("key s3cr3t-0123456789\nis refused" + "x" * 2000)

    (output,) = asked(ask, secret="s3cr3t-0123456789")
    assert output.error is not None
    assert output.error.kind == "exception"
    assert "s3cr3t" not in output.error.message
    assert "\n" not in output.error.message
    assert len(output.error.message) <= 500


def test_failures_in_a_row_stop_the_run_and_one_success_counts_anew() -> None:
    def ask(case: Case) -> str:
        if case.id in ("q3", "q8"):
            return "x"
        raise AskError("connection", "refused")

    with pytest.raises(ProviderError, match=r"4 calls in a row failed, the last one with connection: refused; fix it"):
        asked(ask, 12, max_concurrency=1, stop_after=4)
    assert len(asked(ask, 12, max_concurrency=1, stop_after=5)) == 12


def test_as_many_cases_are_asked_at_once_as_the_system_allows() -> None:
    running, most = 0, 0

    async def ask(case: Case) -> str:
        nonlocal running, most
        running += 1
        most = max(most, running)
        await asyncio.sleep(0.002)
        running -= 1
        return "x"

    assert len(asked(ask, 20, max_concurrency=3)) == 20
    assert most == 3


def test_an_answer_is_cached_by_version_and_input_and_never_without_a_version() -> None:
    seen: list[str] = []

    def ask(case: Case) -> str:
        seen.append(case.id)
        if case.id == "q2":
            raise AskError("api", "no")
        return "x"

    shelf = Shelf()
    asked(ask, 2, shelf)
    assert not shelf
    asked(ask, 2, shelf, version="1")
    assert len(shelf) == 1  # a failure is not kept
    again = asked(ask, 2, shelf, version="1", max_concurrency=7)
    assert sorted(seen) == ["q1", "q1", "q2", "q2", "q2"]
    assert {output.case_id: output.answer for output in again} == {"q1": "x", "q2": None}
    asked(ask, 1, shelf, version="2")
    assert seen.count("q1") == 3
    shelf.update(dict.fromkeys(shelf, '{"case_id": "q9"}'))  # an entry of another case is not believed
    assert [output.case_id for output in asked(ask, 1, shelf, version="1")] == ["q1"]
