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


def test_a_test_run(tmp_path: Path) -> None:
    case = {
        "name": "t",
        "input": "q",
        "actualOutput": "a",
        "completionTime": 1.5,
        "metricsData": [{"score": 0.9}],
        "trace": {},
    }
    path = written(tmp_path, "run.json", json.dumps({"testCases": [case], "conversationalTestCases": [{}]}, indent=1))
    notices: list[tuple[str, str]] = []
    assert said(outputs_of(path, notices)[0]) == {
        "case_id": "1",
        "answer": "a",
        "latency_seconds": {"total": 1.5},
        "metadata": {"name": "t", "metricsData": [{"score": 0.9}]},
    }
    assert [code for code, _ in notices] == ["format_detected", "conversations_left_out", "ids_by_position"]
    path = written(tmp_path, "run.json", json.dumps({"testCases": [{**case, "input": 4}]}, indent=1))
    assert complaint(path).startswith("run.json:3: $.testCases[0].input: expected a text, found a number")


def test_conversations_are_refused_in_one_line(tmp_path: Path) -> None:
    path = written(tmp_path, "c.csv", "scenario,turns\na,[]\nb,[]\n")
    assert complaint(path) == "c.csv:2: a conversation (turns); only single questions are read"
    path = written(tmp_path, "run.json", json.dumps({"testCases": [], "conversationalTestCases": [{}]}))
    assert complaint(path) == "run.json: holds conversations only; single questions are read"


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
    assert "\n" not in complaint(shared("deepeval/convo_goldens.csv"))
