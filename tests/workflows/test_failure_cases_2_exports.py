"""Exports of other tools, and labels that say the opposite: what is read from them counts as it is meant."""

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from judgekit.cli.app import app
from tests.builders import read_json, read_lines, write_lines

DECLINES = {"id": "1", "question": "Who dug the canal?", "answer": "I don't know."}
ANSWERS = {"id": "2", "question": "How deep is it?", "answer": "Six metres."}


def run(folder: Path, text: str, name: str = "rows.json", **fields: str) -> tuple[int, str]:
    """A run without judges on one file of cases and outputs; exit code and what it said on stderr."""
    (folder / name).write_text(text, encoding="utf-8")
    cases = {"path": name, "fields": fields}
    config = {"name": "exports", "cases": cases, "system": {"path": name}, "judges": []}
    (folder / "config.json").write_text(json.dumps(config), encoding="utf-8")
    words = ["run", str(folder / "config.json"), "--results-dir", str(folder / "results"), "--run-id", "r"]
    result = CliRunner().invoke(app, words)
    return result.exit_code, result.stderr


def value(folder: Path, figure: str) -> Any:
    return read_json(folder / "results" / "r" / "metrics.json")["overall"][figure]["value"]


@pytest.mark.parametrize(
    ("name", "yes", "no"),
    [
        pytest.param("is_impossible", True, False, id="T2-09-flag"),
        pytest.param("unanswerable", 1, 0, id="T2-09-number"),
        pytest.param("Is Unanswerable", "yes", "no", id="T2-09-words"),
    ],
)
def test_a_label_that_says_the_opposite_of_answerable_is_turned_around(
    tmp_path: Path, name: str, yes: Any, no: Any
) -> None:
    rows = json.dumps([{**DECLINES, name: yes}, {**ANSWERS, name: no}])
    if isinstance(yes, str):
        rows = f"id,question,answer,{name}\n1,Who?,I don't know.,{yes}\n2,How deep?,Six metres.,{no}\n"
    code, said = run(tmp_path, rows, "rows.csv" if isinstance(yes, str) else "rows.json", answerable=name)
    assert code == 0, said
    # the one unanswerable case is declined, the one answerable case is answered
    assert value(tmp_path, "abstention_accuracy") == 1.0
    assert value(tmp_path, "over_abstention_rate") == 0.0


@pytest.mark.parametrize("name", ["unanswerable", "is_impossible"])
def test_t2_09_such_a_label_is_not_left_aside_unseen_nor_taken_for_a_slip(tmp_path: Path, name: str) -> None:
    code, said = run(tmp_path, json.dumps([{**DECLINES, name: True}, {**ANSWERS, name: False}]))
    assert code == 2
    assert f"field '{name}' says the opposite of 'answerable'" in said
    assert "did you mean" not in said
    both = [{**DECLINES, name: True, "answerable": False}, {**ANSWERS, name: False, "answerable": True}]
    assert run(tmp_path, json.dumps(both), **{f"metadata.{name}": name})[0] == 0


def test_t2_19_flags_of_a_spreadsheet_in_another_language_are_flags(tmp_path: Path) -> None:
    table = "id;question;answer;answerable\n1;Wer?;I don't know.;FALSCH\n2;Wie tief?;Sechs Meter.;WAHR\n3;a;b;0.0\n"
    code, said = run(tmp_path, table, "rows.csv")
    assert code == 0, said
    # two unanswerable cases, one of which is declined
    assert value(tmp_path, "abstention_accuracy") == 0.5


@pytest.mark.parametrize("blank", ["\u200b", "\ufeff \u00a0", "\u3164\u2060"])
def test_t2_44_an_answer_of_which_nothing_can_be_seen_is_blank(tmp_path: Path, blank: str) -> None:
    rows = [{**DECLINES, "answer": blank, "answerable": False}, {**ANSWERS, "answer": blank, "answerable": True}]
    code, said = run(tmp_path, json.dumps(rows))
    assert code == 0, said
    scores = read_lines(tmp_path / "results" / "r" / "scores.jsonl")
    assert [row["value"] for row in scores if row["name"] == "empty_response_rate"] == [1.0, 1.0]
    assert value(tmp_path, "abstention_accuracy") == 1.0


LANGSMITH = (
    "id,inputs,outputs,reference_outputs\n"
    'r1,"{""question"": ""How deep?""}","{""answer"": ""six metres"", ""documents"": [{""page_content"": '
    '""six metres"", ""metadata"": {""source"": ""a.md""}}]}","{""answer"": ""six""}"\n'
)
PHOENIX = (
    "context.span_id,attributes.input.value,attributes.output.value,attributes.retrieval.documents\n"
    's1,How deep?,six metres,"[{""document.content"": ""six metres"", ""document.id"": ""d1""}]"\n'
)
LANGFUSE = {"id": "t", "input": {"query": "How deep?"}, "output": {"text": "six"}, "expectedOutput": {"answer": "nine"}}
LANGFUSE_TEXTS = {"id": "t", "input": "How deep?", "output": "six", "expectedOutput": "nine"}
MLFLOW = {"columns": ["inputs", "ground_truth", "outputs"], "data": [["How deep?", "nine", "six"]]}


@pytest.mark.parametrize(
    ("name", "text", "answer", "references", "hits"),
    [
        pytest.param("ls.csv", LANGSMITH, "six metres", ["six"], ["six metres"], id="T2-20-langsmith"),
        pytest.param("ph.csv", PHOENIX, "six metres", [], ["six metres"], id="T2-20-phoenix"),
        pytest.param("lf.jsonl", json.dumps(LANGFUSE), "six", ["nine"], [], id="T2-20-langfuse"),
        pytest.param("lf.json", json.dumps({"data": [LANGFUSE_TEXTS]}), "six", ["nine"], [], id="T2-20-langfuse-texts"),
        pytest.param("table.json", json.dumps(MLFLOW), "six", ["nine"], [], id="T2-22-mlflow"),
    ],
)
def test_exports_of_tracing_tools_are_read_as_they_are(
    tmp_path: Path, name: str, text: str, answer: str, references: list[str], hits: list[str]
) -> None:
    (tmp_path / name).write_text(text, encoding="utf-8")
    made = CliRunner().invoke(app, ["init", str(tmp_path / "out"), "--from", str(tmp_path / name)])
    assert made.exit_code == 0, made.stderr
    words = ["run", str(tmp_path / "out" / "config.json"), "--results-dir", str(tmp_path), "--run-id", "r"]
    assert CliRunner().invoke(app, words).exit_code == 0
    (case,), (output,) = (read_lines(tmp_path / "r" / f"{kind}.jsonl") for kind in ("cases", "outputs"))
    assert "deep" in case["question"]
    assert list(case.get("reference_answers") or []) == references
    assert output["answer"] == answer
    assert [hit["text"] for hit in output.get("retrieved") or []] == hits


def test_t2_22_what_is_called_like_records_is_suggested_first(tmp_path: Path) -> None:
    code, said = run(tmp_path, json.dumps({"config": [{"a": 1}], "results": [DECLINES]}))
    assert code == 2
    assert "if 'results' holds the records" in said


def test_init_says_why_no_row_can_be_read(tmp_path: Path) -> None:
    path = write_lines(tmp_path / "rows.jsonl", [{"question": "How deep?", "metadata": 3}])
    made = CliRunner().invoke(app, ["init", str(tmp_path / "out"), "--from", str(path)])
    assert made.exit_code == 2
    assert "cannot be read as cases: row" in made.stderr
    assert "metadata" in made.stderr
