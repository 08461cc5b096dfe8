"""Goldens, test cases and test runs of DeepEval."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.readers import cases_of, complaint, needs_shared_files, outputs_of, said, shared, written

GOLDEN = {
    "input": "q?",
    "actual_output": "a",
    "expected_output": "e",
    "retrieval_context": ["north", "south"],
    "context": ["ideal"],
    "name": "N",
    "source_file": None,
}


def test_goldens_in_snake_and_camel_case(tmp_path: Path) -> None:
    camel = {
        "input": "q?",
        "actualOutput": "a",
        "expectedOutput": "e",
        "retrievalContext": ["north", "south"],
        "context": ["ideal"],
        "name": "N",
    }
    for name, golden in [("snake.json", GOLDEN), ("camel.json", camel)]:
        path = written(tmp_path, name, json.dumps([golden]))
        case = said(cases_of(path)[0])
        assert case.pop("metadata").items() >= {"name": "N", "context": ["ideal"]}.items()
        assert case == {"id": "1", "question": "q?", "reference_answers": ["e"]}
        assert said(outputs_of(path)[0]) == {
            "case_id": "1",
            "answer": "a",
            "retrieved": [{"text": "north"}, {"text": "south"}],
            "metadata": {"name": "N"},
        }


CSV = "input,actual_output,retrieval_context\nq,a,north|south\n"


@pytest.mark.parametrize(
    ("how", "texts"),
    [
        pytest.param({}, ["north|south"], id="no guess"),
        pytest.param({"list_separator": "|"}, ["north", "south"], id="separator"),
        pytest.param({"format": "deepeval"}, ["north", "south"], id="format"),
        pytest.param({"format": "deepeval", "list_separator": ";"}, ["north|south"], id="another separator"),
        pytest.param(
            {"fields": {"answer": "actual_output", "retrieved": "retrieval_context", "case_id": "input"}},
            ["north|south"],
            id="mapped by hand",
        ),
    ],
)
def test_c10_list_cells_are_split_only_where_the_config_says_so(
    tmp_path: Path, how: dict[str, Any], texts: list[str]
) -> None:
    path = written(tmp_path, "goldens.csv", CSV)
    assert [hit.text for hit in outputs_of(path, **how)[0].retrieved] == texts


@pytest.mark.parametrize("above", [[], ["testRunData"]])
def test_a_test_run(tmp_path: Path, above: list[str]) -> None:
    def run(**lists: Any) -> Path:
        return written(tmp_path, "run.json", json.dumps({above[0]: lists} if above else lists, indent=1))

    case = {
        "name": "t",
        "input": "q",
        "actualOutput": "a",
        "completionTime": 1.5,
        "metricsData": [{"score": 0.9}],
        "trace": {},
    }
    path = run(testCases=[case], conversationalTestCases=[])
    notices: list[tuple[str, str]] = []
    assert said(outputs_of(path, notices)[0]) == {
        "case_id": "1",
        "answer": "a",
        "latency_seconds": {"total": 1.5},
        "metadata": {"name": "t", "metricsData": [{"score": 0.9}]},
    }
    assert [code for code, _ in notices] == ["format_detected", "ids_by_position"]
    place = ".".join(["$", *above, "testCases[0].input"])
    found = complaint(run(testCases=[{**case, "input": 4}]))
    assert found.startswith(f"run.json:{3 + len(above)}: {place}: expected a text, found a number")


TURNS = [
    {"role": "user", "content": "Book a room.", "user_id": "u1"},
    {
        "role": "assistant",
        "content": "Which day?",
        "retrieval_context": ["Rooms: A, B."],
        "tools_called": [
            {"name": "rooms", "input_parameters": {"floor": 2}, "output": ["A", "B"], "reasoning": "free?"}
        ],
    },
    {"role": "user", "content": "Monday."},
    {"role": "assistant", "content": "Room A is yours."},
    {"role": "user", "content": "Thanks!"},
]


def test_a_conversation_is_a_case_with_what_came_before_the_first_turn_of_the_system(tmp_path: Path) -> None:
    row = {"scenario": "a room", "turns": TURNS, "expected_outcome": "booked", "chatbot_role": "clerk"}
    path = written(tmp_path, "c.json", json.dumps([row]))
    notices: list[tuple[str, str]] = []
    assert said(cases_of(path, notices)[0]) == {
        "id": "1",
        "question": "Monday.",
        "messages": [{"role": "user", "text": "Book a room.", "metadata": {"user_id": "u1"}}],
        "metadata": {"scenario": "a room", "expected_outcome": "booked", "chatbot_role": "clerk"},
    }
    assert notices[2:] == [
        ("message_fields_kept", "c.json: kept in the metadata of messages: 1 user_id"),
        ("tool_call_fields_left_out", "c.json: left out of tool calls: 1 reasoning"),
        ("conversation_fields_kept", "c.json: kept in metadata: scenario, expected_outcome, chatbot_role"),
    ]
    assert said(outputs_of(path)[0]) == {
        "case_id": "1",
        "answer": "Room A is yours.",
        "retrieved": [{"text": "Rooms: A, B."}],
        "turns": [
            {"role": "assistant", "tool_calls": [{"name": "rooms", "arguments": {"floor": 2}}]},
            {"role": "tool", "name": "rooms", "text": '["A","B"]'},
            {"role": "assistant", "text": "Which day?", "retrieved": [{"text": "Rooms: A, B."}]},
            {"role": "user", "text": "Monday."},
            {"role": "assistant", "text": "Room A is yours."},
            {"role": "user", "text": "Thanks!"},
        ],
    }


def test_a_test_run_may_hold_questions_and_conversations(tmp_path: Path) -> None:
    run = {"testCases": [{"input": "q", "actualOutput": "a"}], "conversationalTestCases": [{"turns": TURNS}]}
    path = written(tmp_path, "run.json", json.dumps(run))
    assert [case.question for case in cases_of(path)] == ["q", "Monday."]
    path = written(tmp_path, "run.json", json.dumps({**run, "testCases": []}))
    assert [output.answer for output in outputs_of(path)] == ["Room A is yours."]


def test_tools_of_a_single_question(tmp_path: Path) -> None:
    row = {**GOLDEN, "toolsCalled": [{"name": "map", "output": "N"}], "expectedTools": [{"name": "map"}]}
    path = written(tmp_path, "g.json", json.dumps([row]))
    assert said(cases_of(path)[0])["expected_tool_calls"] == [{"name": "map"}]
    assert said(outputs_of(path)[0])["turns"] == [
        {"role": "assistant", "tool_calls": [{"name": "map"}]},
        {"role": "tool", "name": "map", "text": "N"},
        {"role": "assistant", "text": "a"},
    ]
    path = written(tmp_path, "g.json", json.dumps([{**GOLDEN, "tools_called": [], "expected_tools": []}]))
    assert cases_of(path)[0].expected_tool_calls == ()
    assert said(outputs_of(path)[0])["turns"] == [{"role": "assistant", "text": "a"}]


def test_sources_metadata_and_mcp_calls_of_turns(tmp_path: Path) -> None:
    turn = {
        "role": "assistant",
        "content": "Yes.",
        "retrievalContext": [{"context": "Open.", "source": "hours.md"}],
        "toolsCalled": [{"name": "a"}],
        "mcp_tools_called": [{"name": "b", "args": {"x": 1}, "result": {"content": []}}],
        "additionalMetadata": {"mood": "calm"},
    }
    path = written(
        tmp_path, "c.json", json.dumps([{"scenario": "s", "turns": [{"role": "user", "content": "q"}, turn]}])
    )
    assert said(outputs_of(path)[0])["turns"] == [
        {"role": "assistant", "tool_calls": [{"name": "a"}, {"name": "b", "arguments": {"x": 1}}]},
        {"role": "tool", "name": "b", "text": '{"content":[]}'},
        {
            "role": "assistant",
            "text": "Yes.",
            "retrieved": [{"rel_path": "hours.md", "text": "Open."}],
            "metadata": {"mood": "calm"},
        },
    ]


@pytest.mark.parametrize(
    ("turns", "message"),
    [
        ("[]", "$: turns: holds no messages"),
        ("", "$: turns: none yet; let DeepEval simulate the conversation first"),
        ("[1]", "$: turns[0]: expected an object, found a number"),
        ("hello", "$: turns: expected a list, found a text"),
    ],
)
def test_a_conversation_that_is_none_is_named(tmp_path: Path, turns: str, message: str) -> None:
    path = written(tmp_path, "c.csv", f"scenario,turns\na,{turns}\n")
    assert complaint(path) == f"c.csv:2: {message}"


@needs_shared_files
def test_published_files() -> None:
    from_json = cases_of(shared("deepeval/goldens.json"))
    from_csv = cases_of(shared("deepeval/goldens.csv"), format="deepeval")
    assert len(from_json) == len(from_csv) == 15
    assert [case.question for case in from_json] == [case.question for case in from_csv]
    assert [case.metadata["context"] for case in from_json] == [case.metadata["context"] for case in from_csv]
    hits = [[hit.text for hit in output.retrieved] for output in outputs_of(shared("deepeval/goldens.json"))]
    cells = outputs_of(shared("deepeval/goldens.csv"), format="deepeval")
    assert hits == [[hit.text for hit in output.retrieved] for output in cells]
    assert outputs_of(shared("deepeval/test_run_sample.json"))[0].answer == "{...}"
    conversations = outputs_of(shared("deepeval/convo_goldens.csv"))
    assert [bool(output.turns and output.answer) for output in conversations] == [True] * len(conversations)
    assert (
        cases_of(shared("deepeval/convo_goldens.csv"))[0].question == "What's the weather like in Paris this weekend?"
    )
    called = [(output.turns or ())[0].tool_calls for output in cells[:10]]
    assert [call[0].name for call in called] == [(case.expected_tool_calls or ())[0].name for case in from_csv[:10]]
