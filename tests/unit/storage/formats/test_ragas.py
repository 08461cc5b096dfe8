"""Rows of Ragas, new and old."""

import csv
import io
import json
from pathlib import Path
from typing import Any

import pytest

from tests.readers import cases_of, complaint, needs_shared_files, outputs_of, said, shared, written

NEW = {"user_input": "q?", "response": "a", "retrieved_contexts": ["c1", "c2"], "reference": "r", "faithfulness": 0.5}
OLD = {"id": 7, "question": "q?", "answer": "a", "contexts": ["c1"], "ground_truths": ["r", "s"]}


def test_new_names(tmp_path: Path) -> None:
    path = written(tmp_path, "r.jsonl", json.dumps(NEW))
    notices: list[tuple[str, str]] = []
    assert said(cases_of(path, notices)[0]) == {
        "id": "1",
        "question": "q?",
        "reference_answers": ["r"],
        "metadata": {"faithfulness": 0.5},
    }
    assert [code for code, _ in notices] == ["format_detected", "ids_by_position"]
    assert said(outputs_of(path)[0]) == {
        "case_id": "1",
        "answer": "a",
        "retrieved": [{"text": "c1"}, {"text": "c2"}],
        "metadata": {"faithfulness": 0.5},
    }


def test_old_names(tmp_path: Path) -> None:
    path = written(tmp_path, "r.json", json.dumps([OLD, {**OLD, "id": 8, "ground_truths": None, "ground_truth": "t"}]))
    found = cases_of(path)
    assert [(case.id, case.reference_answers) for case in found] == [("7", ("r", "s")), ("8", ("t",))]
    assert [hit.text for hit in outputs_of(path)[0].retrieved] == ["c1"]


def test_c08_bare_nan_is_absent(tmp_path: Path) -> None:
    path = written(
        tmp_path,
        "r.json",
        '[{"user_input": "q", "response": NaN, "reference": NaN, "retrieved_contexts": NaN, "f": NaN}]',
    )
    assert said(cases_of(path)[0]) == {"id": "1", "question": "q", "metadata": {"f": None}}
    assert said(outputs_of(path)[0]) == {"case_id": "1", "metadata": {"f": None}}


def test_ids_of_contexts_are_chunk_ids(tmp_path: Path) -> None:
    row = {**NEW, "retrieved_context_ids": ["a", 2], "reference_context_ids": [2]}
    path = written(tmp_path, "r.jsonl", json.dumps(row))
    assert cases_of(path)[0].expected_chunk_ids == ("2",)
    assert [(hit.chunk_id, hit.text) for hit in outputs_of(path)[0].retrieved] == [("a", "c1"), ("2", "c2")]
    row["retrieved_context_ids"] = ["a"]
    message = complaint(written(tmp_path, "r.jsonl", json.dumps(row)), "outputs")
    assert message == "r.jsonl:1: $: 2 retrieved_contexts, but 1 retrieved_context_ids"


@pytest.mark.parametrize(
    ("cell", "contexts"),
    [
        ('"[""a"", ""b""]"', ["a", "b"]),
        ('"[\'it\'\'s\', ""it\'s""]"', None),
        ("\"['a', 'b, c']\"", ["a", "b, c"]),
        ('"[]"', []),
        ("a|b", ["a|b"]),
    ],
)
def test_c10_list_cells_of_csv(tmp_path: Path, cell: str, contexts: list[str] | None) -> None:
    path = written(tmp_path, "r.csv", f"user_input,response,retrieved_contexts,reference\nq,a,{cell},r\n")
    if contexts is None:
        assert "a list without commas" in complaint(path, "outputs")
    else:
        assert [hit.text for hit in outputs_of(path)[0].retrieved] == contexts


@pytest.mark.parametrize("cell", ["\"['a' 'b']\"", "\"['a'\n 'b']\""])
def test_a_numpy_array_printed_into_a_cell_is_refused(tmp_path: Path, cell: str) -> None:
    path = written(tmp_path, "r.csv", f"user_input,response,retrieved_contexts,reference\nq,a,{cell},r\n")
    assert complaint(path, "outputs") == (
        "r.csv:2: $: retrieved_contexts: a list without commas, as numpy prints arrays; write it as a JSON list"
    )


MESSAGES = [
    {"content": "Weather in Paris?", "type": "human", "metadata": None},
    {"content": "", "type": "ai", "tool_calls": [{"name": "weather", "args": {"city": "Paris"}}]},
    {"content": "18 degrees", "type": "tool"},
    {"content": "It is 18 degrees.", "type": "ai"},
]


def test_text_and_calls_of_one_message_in_one_object(tmp_path: Path) -> None:
    content = {"text": "Let me see.", "tool_calls": [{"name": "weather", "args": {}}]}
    row = {"user_input": [MESSAGES[0], {"content": content, "type": "ai"}], "reference": "r"}
    path = written(tmp_path, "r.jsonl", json.dumps(row))
    call = {"name": "weather", "arguments": {}}
    assert said(outputs_of(path)[0])["turns"] == [{"role": "assistant", "text": "Let me see.", "tool_calls": [call]}]


@pytest.mark.parametrize("name", ["r.jsonl", "json.csv", "python.csv"])
def test_a_conversation(tmp_path: Path, name: str) -> None:
    row: dict[str, Any] = {
        "user_input": MESSAGES,
        "reference": "18 degrees",
        "reference_tool_calls": [{"name": "weather", "args": {"city": "Paris"}}],
        "reference_topics": ["weather"],
    }
    cells = {key: value if isinstance(value, str) else json.dumps(value) for key, value in row.items()}
    if name == "python.csv":
        cells["user_input"] = str(MESSAGES)
    stream = io.StringIO()
    writer = csv.DictWriter(stream, list(cells))
    writer.writeheader()
    writer.writerow(cells)
    path = written(tmp_path, name, json.dumps(row) if name == "r.jsonl" else stream.getvalue())
    notices: list[tuple[str, str]] = []
    case = cases_of(path, notices)[0]
    assert said(case) == {
        "id": "1",
        "question": "Weather in Paris?",
        "messages": [{"role": "user", "text": "Weather in Paris?"}],
        "reference_answers": ["18 degrees"],
        "expected_tool_calls": [{"name": "weather", "arguments": {"city": "Paris"}}],
        "metadata": {"reference_topics": ["weather"] if name == "r.jsonl" else '["weather"]'},
    }
    assert notices[-1] == ("conversation_fields_kept", f"{name}: kept in metadata: reference_topics")
    output = said(outputs_of(path)[0])
    assert output["answer"] == "It is 18 degrees."
    assert output["turns"] == [
        {"role": "assistant", "text": "", "tool_calls": [{"name": "weather", "arguments": {"city": "Paris"}}]},
        {"role": "tool", "text": "18 degrees"},
        {"role": "assistant", "text": "It is 18 degrees."},
    ]


def test_a_mapping_goes_before_the_format_and_keys_of_ours_are_kept(tmp_path: Path) -> None:
    row = {**NEW, "topic": "bread", "tags": ["x"], "qid": "k", "latency_seconds": {"total": 2.0}}
    path = written(tmp_path, "r.jsonl", json.dumps(row))
    case = cases_of(path, fields={"id": "qid", "category": "topic"})[0]
    assert (case.id, case.category, case.tags, case.question) == ("k", "bread", ("x",), "q?")
    assert "topic" not in case.metadata
    output = outputs_of(path, fields={"case_id": "qid"})[0]
    assert (output.case_id, output.latency_seconds, output.answer) == ("k", {"total": 2.0}, "a")
    assert "unknown field" not in said(case)
    wrong = complaint(path, fields={"category": "topick"})
    assert wrong.endswith("\"fields\" maps 'category' to 'topick', which no record has; did you mean 'topic'?")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"user_input": 5}, "r.jsonl:1: $.user_input: expected a text, found a number"),
        ({"reference": {"a": 1}}, "r.jsonl:1: $: reference: expected a list, found an object"),
    ],
)
def test_errors_name_the_field_of_the_file(tmp_path: Path, change: dict[str, Any], message: str) -> None:
    assert complaint(written(tmp_path, "r.jsonl", json.dumps({**NEW, **change}))) == message


@needs_shared_files
def test_published_files() -> None:
    path = shared("ragas/ragas_results.head4.json")
    found = cases_of(path)
    assert len(found) == 4
    assert all(case.metadata["faithfulness"] is None for case in found)
    assert found[0].reference_answers == ("KES 148,000.",)
    assert len(outputs_of(path)[0].retrieved) > 0
    assert [case.id for case in cases_of(shared("ragas/rag_outputs.head4.json"))] == ["1", "2", "3", "4"]
    assert "unsupported shape" in complaint(shared("ragas/evaluation_summary.json"))
