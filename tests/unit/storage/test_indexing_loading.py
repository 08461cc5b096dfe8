"""Files of indexed documents: what is read, and one line for what is wrong."""

from pathlib import Path

import pytest

from judgekit.core.data_files import DataFile
from judgekit.core.errors import InputError
from judgekit.core.indexed_documents import IndexedDocument
from judgekit.storage.indexing_files import load_indexed_documents


def load(path: Path, text: str, **source: object) -> list[IndexedDocument]:
    path.write_text(text, encoding="utf-8")
    return load_indexed_documents(DataFile.model_validate({"path": path.name, **source}), path)


def test_jsonl_and_csv_say_the_same(tmp_path: Path) -> None:
    lines = (
        '{"doc_id": 7, "n_chunks": 2, "skipped": {"empty": 1}, "chunk_tokens": [3, 4], "n_embedded": NaN, "more": 1}\n'
    )
    table = 'doc_id,n_chunks,skipped,chunk_tokens,n_embedded\n7,2,"{""empty"": 1}","[3, 4]",\n'
    expected = [IndexedDocument(doc_id="7", n_chunks=2, skipped={"empty": 1}, chunk_tokens=(3, 4))]
    assert load(tmp_path / "a.jsonl", lines) == load(tmp_path / "a.csv", table) == expected


def test_fields_can_have_other_names(tmp_path: Path) -> None:
    fields = {"doc_id": "path", "rel_path": "path", "n_chunks": "stats.chunks", "skipped.context_length": "too_long"}
    [found] = load(tmp_path / "a.jsonl", '{"path": "a.md", "stats": {"chunks": 3}, "too_long": 1}\n', fields=fields)
    assert found == IndexedDocument(doc_id="a.md", rel_path="a.md", n_chunks=3, skipped={"context_length": 1})


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"doc_id": "a"}\n', 'a.jsonl:1: $.n_chunks: required, but missing; the record has doc_id; set "fields"'),
        ('{"doc_id": "a", "n_chunks": "x"}\n', "a.jsonl:1: $.n_chunks: expected a whole number"),
        ('{"doc_id": "a", "n_chunks": 1, "chunk_tokens": [1, -2]}\n', "a.jsonl:1: $.chunk_tokens[1]: "),
        ('{"doc_id": "a", "n_chunks": 1, "n_attempted": 1}\n', "a.jsonl:1: $: n_attempted says nothing by itself"),
        ('{"doc_id": "a", "n_chunk": 1}\n', "a.jsonl:1: $: unknown field 'n_chunk'; did you mean 'n_chunks'?"),
        ('{"doc_id": "a", "n_chunks": 1}\n[]\n', "a.jsonl:2: $: expected an object, found a list"),
        (
            '{"doc_id": "a", "n_chunks": 1}\n{"doc_id": "a", "n_chunks": 1}\n',
            "a.jsonl:2: $: doc_id 'a' is already on line 1",
        ),
        ("", "a.jsonl: the file is empty"),
    ],
)
def test_each_fault_is_one_line_with_its_place(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(InputError) as caught:
        load(tmp_path / "a.jsonl", text)
    assert str(caught.value).startswith(f"{tmp_path}/{message}")
    assert "\n" not in str(caught.value)


def test_many_faults_are_counted(tmp_path: Path) -> None:
    with pytest.raises(InputError) as caught:
        load(tmp_path / "a.jsonl", "{}\n" * 30)
    # Two missing fields in each of 30 rows are two problems.
    assert [line.partition("; ")[0].partition("$.")[2] for line in str(caught.value).split("\n")] == [
        "doc_id: required, but missing",
        "n_chunks: required, but missing",
    ]
    assert str(caught.value).count("(the same in 29 more records, on lines 2, 3, 4, 5, 6 ...)") == 2
    rows = "".join(f'{{"doc_id": "d{number % 30}", "n_chunks": 1}}\n' for number in range(60))
    with pytest.raises(InputError) as caught:
        load(tmp_path / "b.jsonl", rows)
    *_, before, last = str(caught.value).split("\n")
    assert before.endswith("b.jsonl:50: $: doc_id 'd19' is already on line 20")
    assert last == "... and 10 more"


def test_a_mapping_to_no_field_of_ours_is_refused(tmp_path: Path) -> None:
    with pytest.raises(
        InputError, match="'n_chunk', which is not a field of an indexed document; did you mean 'n_chunks'"
    ):
        load(tmp_path / "a.jsonl", "{}\n", fields={"n_chunk": "x"})
    with pytest.raises(InputError, match="read from jsonl, json, csv or xlsx"):
        load(tmp_path / "a.jsonl", "{}\n", format="trec")
    with pytest.raises(InputError, match="no such file"):
        load_indexed_documents(DataFile(path="b.jsonl"), tmp_path / "b.jsonl")
