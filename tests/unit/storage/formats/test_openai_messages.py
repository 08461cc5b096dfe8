"""Lists of messages as the OpenAI API takes them, and what else may stand in a conversation."""

import json
import re
import time
from pathlib import Path
from typing import Any

import pytest

from judgekit.core.conversations import conversation_of
from tests.builders import REPOSITORY
from tests.readers import cases_of, complaint, outputs_of, said, written

CALL = {"id": "k1", "type": "function", "function": {"name": "lookup", "arguments": '{"isbn": "978"}'}}
MESSAGES: list[dict[str, Any]] = [
    {"role": "developer", "content": "Be brief."},
    {"role": "user", "content": [{"type": "text", "text": "Is it in?"}, {"type": "image_url", "image_url": {}}]},
    {"role": "assistant", "content": None, "tool_calls": [CALL], "refusal": None},
    {"role": "tool", "tool_call_id": "k1", "content": "in stock: 2"},
    {"role": "assistant", "content": "Yes, two copies."},
]


def test_a_conversation_is_a_case_and_its_output(tmp_path: Path) -> None:
    row = {"custom_id": "c1", "messages": MESSAGES, "tools": [{"type": "function"}], "category": "stock"}
    path = written(tmp_path, "chat.jsonl", json.dumps(row))
    notices: list[tuple[str, str]] = []
    assert said(cases_of(path, notices)[0]) == {
        "id": "c1",
        "question": "Is it in?",
        "category": "stock",
        "messages": [
            {"role": "system", "text": "Be brief."},
            {"role": "user", "text": "Is it in?", "left_out": ["image_url"]},
        ],
        "metadata": {"tools": [{"type": "function"}]},
    }
    assert notices == [
        ("format_detected", 'chat.jsonl: read as openai, by its keys; fix that with "format": "openai"'),
        ("message_parts_left_out", "chat.jsonl: parts of messages that are not text are left out: 1 image_url"),
        ("conversation_fields_kept", "chat.jsonl: kept in metadata: tools"),
    ]
    assert said(outputs_of(path)[0]) == {
        "case_id": "c1",
        "answer": "Yes, two copies.",
        "turns": [
            {"role": "assistant", "tool_calls": [{"name": "lookup", "arguments": {"isbn": "978"}, "id": "k1"}]},
            {"role": "tool", "text": "in stock: 2", "tool_call_id": "k1"},
            {"role": "assistant", "text": "Yes, two copies."},
        ],
        "metadata": {"tools": [{"type": "function"}]},
    }


def test_one_document_is_one_conversation(tmp_path: Path) -> None:
    path = written(tmp_path, "chat.json", json.dumps({"messages": MESSAGES}))
    assert [case.id for case in cases_of(path)] == ["1"]


def test_a_list_that_waits_for_an_answer_is_a_case_alone(tmp_path: Path) -> None:
    waiting = [*MESSAGES, {"role": "user", "content": "Reserve one."}]
    path = written(tmp_path, "chat.jsonl", json.dumps({"messages": waiting}))
    case = cases_of(path)[0]
    assert (case.question, len(case.messages or ())) == ("Reserve one.", 6)
    beside = written(tmp_path, "beside.jsonl", json.dumps({"messages": waiting, "answer": "Done.", "key_facts": ["f"]}))
    assert said(outputs_of(beside)[0]) == {"case_id": "1", "answer": "Done."}
    assert (cases_of(beside)[0].key_facts, cases_of(beside)[0].metadata) == (("f",), {})
    assert complaint(path, "outputs") == (
        "chat.jsonl:1: messages end with the user's, so there is no answer; give the outputs in another file"
    )


def test_our_own_records_take_messages_of_any_shape(tmp_path: Path) -> None:
    row = {"id": "a", "messages": MESSAGES[:2], "expected_tool_calls": [CALL, "greet"]}
    case = cases_of(written(tmp_path, "c.jsonl", json.dumps(row)))[0]
    assert said(case)["expected_tool_calls"] == [
        {"name": "lookup", "arguments": {"isbn": "978"}, "id": "k1"},
        {"name": "greet"},
    ]
    assert case.question == "Is it in?"
    row = {"case_id": "a", "turns": [{"role": "assistant", "text": "Yes.", "retrieved": ["p1", {"text": "p2"}]}]}
    output = outputs_of(written(tmp_path, "o.jsonl", json.dumps(row)))[0]
    assert (output.answer, [hit.text for hit in (output.turns or ())[0].retrieved or ()]) == ("Yes.", ["p1", "p2"])
    path = written(tmp_path, "h.jsonl", json.dumps({"id": "h", "prompt": MESSAGES[:2]}))
    assert cases_of(path, fields={"messages": "prompt"})[0].question == "Is it in?"


def test_conversations_in_cells_of_our_own_table(tmp_path: Path) -> None:
    cell = json.dumps([{"role": "user", "text": "Is it in?"}]).replace('"', '""')
    path = written(tmp_path, "c.csv", f'id,messages,expected_tool_calls\na,"{cell}",[]\nb,,\n')
    assert [(case.question, case.expected_tool_calls) for case in cases_of(path)] == [("Is it in?", ()), ("", None)]


@pytest.mark.parametrize(
    ("messages", "message"),
    [
        ([*MESSAGES, {"role": "critic", "content": "x"}], "messages[5].role: expected one of system, developer, user"),
        ([*MESSAGES, {"content": "x"}], "messages[5].role: expected one of"),
        ([*MESSAGES, "x"], "messages[5]: expected an object, found a text"),
        ([*MESSAGES, {"role": "user", "content": 5}], "messages[5].content: expected a text or a list of parts, found"),
        ([*MESSAGES, {"role": "user", "content": [5]}], "messages[5].content[0]: expected an object or a text, found"),
        (
            [*MESSAGES, {"role": "assistant", "tool_calls": [{"function": {}}]}],
            "messages[5].tool_calls[0]: a tool call needs the name of its tool",
        ),
        (
            [*MESSAGES, {"role": "assistant", "tool_calls": [{"name": "a", "arguments": [1]}]}],
            "messages[5].tool_calls[0].arguments: expected an object or its JSON, found a list",
        ),
        ([*MESSAGES, {"role": "user", "content": "x", "metadata": 1}], "messages[5].metadata: expected an object"),
    ],
)
def test_what_is_no_message_is_named_with_its_place(tmp_path: Path, messages: list[Any], message: str) -> None:
    path = written(tmp_path, "chat.jsonl", json.dumps({"messages": messages}))
    assert complaint(path).startswith(f"chat.jsonl:1: $: {message}")


def test_an_empty_list_is_no_conversation(tmp_path: Path) -> None:
    path = written(tmp_path, "chat.jsonl", '{"messages": []}')
    assert complaint(path) == complaint(path, format="openai") == "chat.jsonl:1: $: messages: holds no messages"


def test_results_without_a_call_are_kept_and_counted(tmp_path: Path) -> None:
    def call(**more: Any) -> dict[str, Any]:
        return {"role": "assistant", "tool_calls": [{"function": {"name": "f", "arguments": "{}"}, **more}]}

    result = {"role": "tool", "content": "r"}
    turns = [
        result,  # no call before it: 1
        call(id="a"),
        {**result, "tool_call_id": "b"},  # no such call: 2
        {**result, "tool_call_id": "a"},
        call(),
        call(id="a"),  # an id twice is no fault
        result,
        {**result, "tool_call_id": "a"},
    ]
    path = written(tmp_path, "o.jsonl", json.dumps({"case_id": 1, "turns": turns, "answer": "x"}))
    notices: list[tuple[str, str]] = []
    assert len(outputs_of(path, notices)[0].turns or ()) == 8
    message = "o.jsonl: 2 tool results belong to no call before them; they are kept as they are"
    assert notices == [("tool_results_without_call", message)]


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ('{"a": 1}', {"a": 1}),
        ({"a": float("nan")}, {"a": None}),
        ("", {}),
        ('{"a": ', '{"a": '),
        ("[1]", "[1]"),
        ("[" * 100_000, "[" * 100_000),
    ],
)
def test_arguments_are_an_object_or_the_text_that_the_system_wrote(
    tmp_path: Path, arguments: Any, expected: Any
) -> None:
    turns = [{"role": "assistant", "function_call": {"name": "f", "arguments": arguments}}]
    path = written(tmp_path, "o.jsonl", json.dumps({"case_id": 1, "turns": turns}))
    assert (outputs_of(path)[0].turns or ())[0].tool_calls[0].arguments == expected


def test_ten_thousand_messages(tmp_path: Path) -> None:
    turns = [message for _ in range(2_500) for message in MESSAGES[1:]]
    path = written(tmp_path, "chat.jsonl", json.dumps({"messages": turns}))
    started = time.perf_counter()
    case, output = cases_of(path)[0], outputs_of(path)[0]
    assert (len(case.messages or ()), len(output.turns or ())) == (1, 9_999)
    assert time.perf_counter() - started < 5


def test_the_conversation_of_the_data_page(tmp_path: Path) -> None:
    text = (REPOSITORY / "docs" / "data.md").read_text(encoding="utf-8").partition("## Conversations")[2]
    case_block, output_block = re.findall(r"```json\n(.*?)```", text, re.DOTALL)[:2]
    case = cases_of(written(tmp_path, "c.jsonl", json.dumps(json.loads(case_block))))[0]
    output = outputs_of(written(tmp_path, "o.jsonl", json.dumps(json.loads(output_block))))[0]
    assert f"the question is `{case.question}`, and the answer `{output.answer}`" in text
    assert len(conversation_of(case, output)) == 5
