"""SQuAD, Quoref and DROP."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.readers import cases_of, complaint, needs_shared_files, outputs_of, said, shared, written

CONTEXT = "The kiln is fired at 1240 degrees."


def squad(*questions: dict[str, Any], **paragraph: Any) -> str:
    paragraphs = [{"context": CONTEXT, "qas": list(questions), **paragraph}]
    return json.dumps({"version": "v2.0", "data": [{"title": "Kiln", "paragraphs": paragraphs}]}, indent=1)


def answers(*texts: str) -> list[dict[str, Any]]:
    return [{"text": text, "answer_start": CONTEXT.find(text)} for text in texts]


def test_c34_questions_are_unnested(tmp_path: Path) -> None:
    text = squad(
        {"id": "1", "question": "How hot?", "answers": answers("1240", "1240 degrees", "1240"), "is_impossible": False},
        {"id": "2", "question": "Why?", "answers": [], "plausible_answers": answers("1240"), "is_impossible": True},
    )
    path = written(tmp_path, "s.json", text)
    notices: list[tuple[str, str]] = []
    assert [said(case) for case in cases_of(path, notices)] == [
        {
            "id": "1",
            "question": "How hot?",
            "answerable": True,
            "gold_supports": [{"rel_path": "Kiln", "snippets": ["1240", "1240 degrees"]}],
            "reference_answers": ["1240", "1240 degrees"],
            "metadata": {"title": "Kiln"},
        },
        {
            "id": "2",
            "question": "Why?",
            "answerable": False,
            "expected_doc_ids": [],
            "metadata": {"title": "Kiln", "plausible_answers": [{"text": "1240", "answer_start": 21}]},
        },
    ]
    assert notices == [("format_detected", 's.json: read as squad, by its keys; fix that with "format": "squad"')]
    assert [said(output) for output in outputs_of(path)] == [
        {"case_id": case_id, "retrieved": [{"doc_id": "Kiln", "rel_path": "Kiln", "text": CONTEXT}]}
        for case_id in ("1", "2")
    ]


def test_answers_beside_their_offset_are_counted(tmp_path: Path) -> None:
    path = written(
        tmp_path, "s.json", squad({"id": 1, "question": "?", "answers": [{"text": "kiln", "answer_start": 0}]})
    )
    notices: list[tuple[str, str]] = []
    cases_of(path, notices, format="squad")
    assert notices == [("answer_offsets", "s.json: 1 answers do not stand at their answer_start in the passage")]


def test_the_answer_of_quoref_and_drop_is_all_spans_together(tmp_path: Path) -> None:
    path = written(
        tmp_path, "q.json", squad({"id": 1, "question": "?", "answers": answers("kiln", "degrees")}, context_id="c")
    )
    assert cases_of(path)[0].reference_answers == ("kiln, degrees",)
    empty = {"number": "", "date": {"day": "", "month": "", "year": ""}, "spans": []}
    pairs = [
        {"query_id": "a", "question": "?", "answer": {**empty, "spans": ["x", "y"]}},
        {"query_id": "b", "question": "?", "answer": {**empty, "number": "4"}},
        {"query_id": "c", "question": "?", "answer": {**empty, "date": {"day": "2", "month": "May", "year": ""}}},
    ]
    path = written(tmp_path, "d.json", json.dumps({"nfl_1": {"passage": CONTEXT, "qa_pairs": pairs}}))
    assert [(case.id, case.reference_answers) for case in cases_of(path)] == [
        ("a", ("x, y",)),
        ("b", ("4",)),
        ("c", ("2 May",)),
    ]


def test_predictions_are_outputs_and_an_empty_one_is_a_refusal(tmp_path: Path) -> None:
    path = written(tmp_path, "p.json", '{"1": "1240", "2": ""}')
    assert [said(output) for output in outputs_of(path, format="squad")] == [
        {"case_id": "1", "answer": "1240"},
        {"case_id": "2", "answer": "", "abstained": True},
    ]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"data": [{"title": "x"}], "version": 1}', "$.data[0].id: required, but missing; the record has title"),
        (
            '{"data": [{"paragraphs": [{}]}]}',
            ":1: $.data[0].paragraphs[0]: expected an object, found nothing called qas",
        ),
        (squad({"id": 1, "question": 7}), ": $.data[0].paragraphs[0].qas[0].question: expected a text, found a number"),
        (
            squad({"id": 1}, {"question": "?"}),
            "qas[1].id: required, but missing; the record has question, title, context",
        ),
        (squad({"id": 1, "answers": "x"}), "answers: expected a list of objects with a text, found a text"),
        (
            squad({"id": 1}, {"id": 1}),
            "$.data[0].paragraphs[0].qas[1]: id '1' is already at $.data[0].paragraphs[0].qas[0]",
        ),
    ],
)
def test_c34_what_does_not_fit_is_named_by_its_place(tmp_path: Path, text: str, message: str) -> None:
    found = complaint(written(tmp_path, "s.json", text))
    assert message in found
    assert "\n" not in found


def test_the_line_of_a_record_is_found(tmp_path: Path) -> None:
    text = squad({"id": 1, "question": "?"}, {"id": 2, "question": 7})
    line = text[: text.index('"id": 2')].count("\n")  # its brace stands one line above
    assert complaint(written(tmp_path, "s.json", text)).startswith(f"s.json:{line}: $.data[0]")


def test_rows_of_the_hub(tmp_path: Path) -> None:
    row = {
        "id": "h",
        "title": "Kiln",
        "context": CONTEXT,
        "question": "?",
        "answers": {"text": ["1240"], "answer_start": [21]},
    }
    path = written(tmp_path, "s.jsonl", json.dumps(row))
    assert said(cases_of(path)[0]) == {
        "id": "h",
        "question": "?",
        "answerable": True,
        "gold_supports": [{"rel_path": "Kiln", "snippets": ["1240"]}],
        "reference_answers": ["1240"],
        "metadata": {"title": "Kiln"},
    }


@needs_shared_files
def test_c34_published_files() -> None:
    assert len(cases_of(shared("squad/squad.json"))) == 5
    # The ids of this fixture repeat, which is refused; its questions are distinct and can be the ids.
    assert "is already at $.data[0].paragraphs[0].qas[0]" in complaint(shared("squad/squad2.json"))
    found = cases_of(shared("squad/squad2.json"), fields={"id": "question"})
    assert [case.answerable for case in found].count(False) == 1
    assert len(found) == 6
    assert len(cases_of(shared("squad/drop.json"))) == 19
    assert len(cases_of(shared("squad/quoref_sample.json"))) == 4
    notices: list[tuple[str, str]] = []
    cases_of(shared("squad/squad2.json"), notices, fields={"id": "question"}, format="squad")
    assert notices == []  # every answer stands at its offset
