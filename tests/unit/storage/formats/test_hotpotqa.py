"""HotpotQA, MuSiQue and their like."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.readers import cases_of, complaint, needs_shared_files, outputs_of, said, shared, written

ROW: dict[str, Any] = {
    "_id": "h1",
    "question": "Who?",
    "answer": "Ada",
    "type": "bridge",
    "level": "hard",
    "context": [["T1", ["First.", " Second."]], ["T2", ["Third."]], ["Al\u00fb", ["Fourth."]]],
    "supporting_facts": [["T1", 1], ["Al\u00fb", 0], ["T1", 0], ["T2", 9]],
}
CASE = {
    "id": "h1",
    "question": "Who?",
    "category": "bridge",
    "difficulty": "hard",
    "gold_supports": [
        {"rel_path": "T1", "snippets": ["Second.", "First."]},
        {"rel_path": "Al\u00fb", "snippets": ["Fourth."]},
        {"rel_path": "T2"},
    ],
    "required_support_groups": [[0, 1, 2]],
    "expected_doc_ids": ["T1", "Al\u00fb", "T2"],
    "reference_answers": ["Ada"],
}


def test_c34_supporting_facts_are_gold_supports_and_paragraphs_are_hits(tmp_path: Path) -> None:
    path = written(tmp_path, "h.json", json.dumps([ROW]))
    assert [said(case) for case in cases_of(path)] == [CASE]
    hits = [("T1", "First. Second."), ("T2", "Third."), ("Al\u00fb", "Fourth.")]
    assert [said(output) for output in outputs_of(path)] == [
        {"case_id": "h1", "retrieved": [{"doc_id": name, "rel_path": name, "text": text} for name, text in hits]}
    ]


def test_rows_of_the_hub(tmp_path: Path) -> None:
    context = {"title": ["T1", "T2", "Al\u00fb"], "sentences": [pair[1] for pair in ROW["context"]]}
    facts = {"title": ["T1", "Al\u00fb", "T1", "T2"], "sent_id": [1, 0, 0, 9]}
    row = {**ROW, "context": context, "supporting_facts": facts}
    row["id"] = row.pop("_id")
    assert [said(case) for case in cases_of(written(tmp_path, "h.jsonl", json.dumps(row)))] == [CASE]


def test_musique(tmp_path: Path) -> None:
    row = {
        "id": "m1",
        "question": "Where?",
        "answer": "Bonn",
        "answer_aliases": ["Bonn, Germany", "Bonn"],
        "answerable": True,
        "paragraphs": [
            {"idx": 0, "title": "A", "paragraph_text": "a", "is_supporting": True},
            {"idx": 1, "title": "A", "paragraph_text": "b", "is_supporting": True},
            {"idx": 2, "title": "B", "paragraph_text": "c", "is_supporting": False},
        ],
    }
    path = written(tmp_path, "m.jsonl", json.dumps(row))
    assert [said(case) for case in cases_of(path)] == [
        {
            "id": "m1",
            "question": "Where?",
            "answerable": True,
            "gold_supports": [{"rel_path": "A", "snippets": ["a"]}, {"rel_path": "A", "snippets": ["b"]}],
            "required_support_groups": [[0, 1]],
            "expected_doc_ids": ["A"],
            "reference_answers": ["Bonn", "Bonn, Germany"],
        }
    ]
    assert [hit.text for hit in outputs_of(path)[0].retrieved] == ["a", "b", "c"]


def test_rows_without_ids_have_their_position(tmp_path: Path) -> None:
    path = written(tmp_path, "h.json", '[{"question": "a?", "answer": "x"}, {"question": "b?", "answer": "y"}]')
    notices: list[tuple[str, str]] = []
    found = cases_of(path, notices, format="hotpotqa")
    assert [(case.id, case.question, case.reference_answers) for case in found] == [
        ("1", "a?", ("x",)),
        ("2", "b?", ("y",)),
    ]
    assert [code for code, _ in notices] == ["ids_by_position"]
    assert complaint(path, "outputs", format="hotpotqa").startswith("h.json:1: holds no paragraphs; outputs need them")


def test_predictions_are_outputs(tmp_path: Path) -> None:
    path = written(tmp_path, "p.json", json.dumps({"answer": {"h1": "Ada"}, "sp": {"h1": [["T1", 0], ["T1", 1]]}}))
    assert [said(output) for output in outputs_of(path)] == [
        {"case_id": "h1", "answer": "Ada", "references": [{"rel_path": "T1"}]}
    ]
    assert complaint(path) == "p.json: holds predictions, no questions; it can be the file of outputs"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"context": "text"}, "h.json:1: $[0]: context: expected a list of [title, sentences], found a text"),
        ({"context": [["T1", "no list"]]}, "h.json:1: $[0]: context: expected a list of [title, sentences]"),
        ({"supporting_facts": [["T1"]]}, "h.json:1: $[0]: supporting_facts: expected a list of [title, number of"),
        ({"context": {"title": ["a"], "sentences": []}}, "h.json:1: $[0]: context: expected title and sentences, two"),
        ({"question": 5}, "h.json:1: $[0].question: expected a text, found a number"),
    ],
)
def test_what_does_not_fit_is_named(tmp_path: Path, change: dict[str, Any], message: str) -> None:
    assert complaint(written(tmp_path, "h.json", json.dumps([{**ROW, **change}]))).startswith(message)


@needs_shared_files
def test_published_files() -> None:
    first = cases_of(shared("hotpotqa/hotpotqa_train.head3.json"))[0]
    assert [support.rel_path for support in first.gold_supports] == ["Al\u00fb", "Lilu (mythology)"]
    assert first.gold_supports[0].snippets == (
        "In Akkadian and Sumerian mythology, it is associated with other demons like Gallu and Lilu.",
    )
    assert len(outputs_of(shared("hotpotqa/hotpotqa_train.head3.json"))[0].retrieved) == 10
    assert cases_of(shared("hotpotqa/musique_style_sample.json"))[0].reference_answers == ("Thomas C. Sudhof",)
    simple = cases_of(shared("hotpotqa/hotpot_dev_simplified.head20.json"), format="hotpotqa")
    assert (len(simple), simple[0].id, simple[0].category) == (20, "1", "comparison")
