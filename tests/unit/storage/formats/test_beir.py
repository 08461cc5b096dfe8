"""BEIR folders: questions with judgements."""

import json
from pathlib import Path

import pytest

from judgekit.core.data_files import DataFile
from judgekit.core.errors import InputError
from judgekit.storage.case_files import data_sha256
from tests.readers import cases_of, complaint, needs_shared_files, outputs_of, said, shared, written

HEADER = "query-id\tcorpus-id\tscore\n"


def folder_of(tmp_path: Path, **splits: str) -> Path:
    queries = [{"_id": "q1", "text": "one?", "metadata": {"lang": "de"}}, {"_id": "q2", "text": "two?"}]
    written(tmp_path, "set/queries.jsonl", "".join(json.dumps(query) + "\n" for query in queries))
    for split, text in splits.items():
        written(tmp_path, f"set/qrels/{split}.tsv", HEADER + text)
    return tmp_path / "set"


def test_a_judged_query_is_a_case(tmp_path: Path) -> None:
    notices: list[tuple[str, str]] = []
    assert [said(case) for case in cases_of(folder_of(tmp_path, test="q1\td 1\t2\nq1\td2\t0\n"), notices)] == [
        {
            "id": "q1",
            "question": "one?",
            "gold_supports": [{"rel_path": "d 1"}],
            "expected_chunk_ids": ["d 1"],
            "expected_doc_ids": ["d 1"],
            "metadata": {"lang": "de", "n_judged": 2, "relevance": {"d 1": 2.0}},
        }
    ]
    assert notices == [("queries_without_judgements", "set: left out, no judgements for query 'q2'")]


def test_c26_a_judged_query_without_text_is_named_and_kept(tmp_path: Path) -> None:
    notices: list[tuple[str, str]] = []
    found = cases_of(folder_of(tmp_path, test="q1\td\t1\nq2\td\t1\nq9\td\t1\n"), notices)
    assert [(case.id, case.question) for case in found] == [("q1", "one?"), ("q2", "two?"), ("q9", "")]
    assert notices == [("judgements_without_query", "set: no question text for query 'q9'")]


def test_one_of_several_splits_is_named(tmp_path: Path) -> None:
    folder = folder_of(tmp_path, dev="q1\td\t1\n", test="q2\td\t1\n")
    assert complaint(folder) == "set: holds 2 splits, 'dev', 'test'; name one with \"part\""
    assert complaint(folder, part="train") == "set: no split 'train'; it has 'dev', 'test'"
    assert [case.id for case in cases_of(folder, part="dev")] == ["q1"]
    assert [case.id for case in cases_of(folder / "qrels" / "test.tsv")] == ["q2"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("q1\td\n", "set/qrels/test.tsv:2: $: expected 3 columns with tabs between (query, document, grade), found 2"),
        ("q1\td\tx\n", "set/qrels/test.tsv:2: $: grade 'x' is not a number"),
        ("q1\td\t1\nq1\td\t2\n", "set/qrels/test.tsv:3: $: query 'q1': document 'd' is judged twice"),
        ("", "set/qrels/test.tsv: the file has no judgements"),
        (
            "7\td\t1\n",
            "set: no query of queries.jsonl has judgements; queries have ids such as 'q1', judgements such as",
        ),
    ],
)
def test_what_is_wrong_is_named(tmp_path: Path, text: str, message: str) -> None:
    assert complaint(folder_of(tmp_path, test=text)).startswith(message)


def test_outputs_come_from_elsewhere(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="give your system's run as TREC"):
        outputs_of(folder_of(tmp_path, test="q1\td\t1\n"))


def test_the_hash_of_a_folder_is_over_what_is_read(tmp_path: Path) -> None:
    folder = folder_of(tmp_path, test="q1\td\t1\n")
    how = DataFile(path=str(folder))
    before = data_sha256(how, folder)
    written(folder, "corpus.jsonl", "{}")
    assert data_sha256(how, folder) == before
    written(folder, "qrels/test.tsv", HEADER + "q1\td\t0\n")
    assert data_sha256(how, folder) != before
    judgements = folder / "qrels" / "test.tsv"
    before = data_sha256(DataFile(path="test.tsv"), judgements)
    written(folder, "queries.jsonl", '{"_id": "q1", "text": "another?"}')
    assert data_sha256(DataFile(path="test.tsv"), judgements) != before


@needs_shared_files
def test_a_published_folder() -> None:
    found = cases_of(shared("beir"))
    assert len(found) == 10
    assert found[0].id == "sigir-20141"
    assert found[0].question.startswith("A 58-year-old African-American woman")
    assert sum(len(case.expected_doc_ids or ()) for case in found) == 43 + 27
