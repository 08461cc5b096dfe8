"""Failure cases of the second round: data as people have it. The ids are those of the list of failure cases."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest

import judgekit
from judgekit.core.errors import ConfigError
from tests.builders import read_json
from tests.readers import cases_of, complaint, needs_shared_files, outputs_of, said, shared, written

Notices = list[tuple[str, str]]


def as_lines(*rows: dict[str, Any]) -> str:
    return "".join(json.dumps(row) + "\n" for row in rows)


LANGCHAIN = {
    "page_content": "The ferry leaves at nine.",
    "metadata": {"source": "ferry.md", "page": 3},
    "type": "Document",
}
LANGCHAIN_FIELDS = {
    "retrieved[].text": "retrieved[].page_content",
    "retrieved[].rel_path": "retrieved[].metadata.source",
}


def test_t2_11_parts_of_hits_are_mapped_and_the_rest_is_kept_with_the_hit(tmp_path: Path) -> None:
    path = written(tmp_path, "o.jsonl", as_lines({"case_id": "a", "answer": "At nine.", "retrieved": [LANGCHAIN]}))
    (found,) = outputs_of(path, fields=LANGCHAIN_FIELDS)
    assert said(found)["retrieved"] == [
        {
            "text": "The ferry leaves at nine.",
            "rel_path": "ferry.md",
            "metadata": {"source": "ferry.md", "page": 3, "type": "Document"},
        }
    ]
    assert found.metadata == {}


@pytest.mark.parametrize(
    ("hit", "fields"),
    [
        (LANGCHAIN, '"retrieved[].text": "retrieved[].page_content", "retrieved[].rel_path": "retrieved[].metadata.s'),
        ({"node": {"text": "x", "id_": "n"}}, '"retrieved[].text": "retrieved[].node.text"'),
        ({"content": "x", "meta": {"name": "a.md"}}, '"retrieved[].rel_path": "retrieved[].meta.name"'),
        ({"id": 7, "payload": {"text": "x"}}, '"retrieved[].chunk_id": "retrieved[].id"'),
        ({"content": "x", "doc_uri": "a.md"}, '"retrieved[].rel_path": "retrieved[].doc_uri"'),
    ],
    ids=["T2-11-langchain", "T2-11-llamaindex", "T2-11-haystack", "T2-11-payload", "T2-11-doc_uri"],
)
def test_t2_11_the_error_for_a_foreign_hit_says_how_to_map_it(tmp_path: Path, hit: Any, fields: str) -> None:
    path = written(tmp_path, "o.jsonl", as_lines({"case_id": "a", "retrieved": [hit, hit]}))
    message = complaint(path, "outputs")
    assert message.startswith("o.jsonl:1: $.retrieved[0]: unknown key")
    assert fields in message
    assert "\n" not in message
    mapping = json.loads(message.partition('"fields": ')[2].partition("; what")[0])
    (found,) = outputs_of(path, fields=mapping)  # what is said works
    assert found.retrieved[0].text in ("x", "The ferry leaves at nine.")


@pytest.mark.parametrize(
    ("record", "fields", "hits"),
    [
        (
            {"contexts": [{"content": "x", "score": 0.5, "doc": {"id": 7}}, {"content": "y"}]},
            {"retrieved[].text": "contexts[].content", "retrieved[].doc_id": "contexts[].doc.id"},
            [{"doc_id": "7", "text": "x", "score": 0.5, "metadata": {"doc": {"id": 7}}}, {"text": "y"}],
        ),
        (
            {"texts": ["x", "y"], "ids": [1, 2]},
            {"retrieved[].text": "texts[]", "retrieved[].chunk_id": "ids[]"},
            [{"chunk_id": "1", "text": "x"}, {"chunk_id": "2", "text": "y"}],
        ),
        (
            {"documents": [["x", "y"]], "ids": [["a", "b"]]},
            {"retrieved[].text": "documents[][]", "retrieved[].chunk_id": "ids[][]"},
            [{"chunk_id": "a", "text": "x"}, {"chunk_id": "b", "text": "y"}],
        ),
        (
            {"docs": [{"t": "x", "from": 2, "to": 3, "path": ["A", "B"], "d": "k"}]},
            {
                "retrieved[].text": "docs[].t",
                "retrieved[].heading_path": "docs[].path",
                "retrieved[].metadata.document": "docs[].d",
            },
            [{"text": "x", "heading_path": ["A", "B"], "metadata": {"document": "k", "from": 2, "to": 3}}],
        ),
        ({"context": "x", "title": "t"}, {"retrieved[].text": "context", "retrieved[].rel_path": "title"}, [
            {"text": "x", "rel_path": "t"}
        ]),
        ({"contexts": []}, {"retrieved[].text": "contexts[].content"}, []),
        (
            {"pairs": [[{"page_content": "x"}, 0.5], [{"page_content": "y"}, 0.25]]},
            {"retrieved[].text": "pairs[].0.page_content", "retrieved[].score": "pairs[].1"},
            [{"text": "x", "score": 0.5}, {"text": "y", "score": 0.25}],
        ),
    ],
    ids=["objects", "parallel", "nested", "headings", "one", "none", "pairs"],
)  # fmt: skip
def test_t2_11_hits_come_from_lists_of_any_name(tmp_path: Path, record: Any, fields: Any, hits: Any) -> None:
    path = written(tmp_path, "o.jsonl", as_lines({"case_id": "a", **record}))
    (found,) = outputs_of(path, fields=fields)
    assert said(found).get("retrieved", []) == hits


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"retrieved[].text": "contexts[].contnt"}, "maps 'retrieved[].text' to 'contexts[].contnt', which no record"),
        ({"retrieved[].txt": "contexts[].content"}, "an entry has no such part; did you mean 'text'?"),
        ({"citations[].text": "x[].y"}, 'parts of entries are named as in "retrieved[].text"'),
        ({"retrieved": "contexts", "retrieved[].text": "contexts[].content"}, "as a whole and 'retrieved[].text' too"),
        ({"retrieved[].text": "contexts[].content", "retrieved[].doc_id": "more[]"}, "more[] has 2 entries, but con"),
        ({"retrieved[].doc_id": "contexts[].content"}, "$: unknown key 'chunkid' in a hit; did you mean"),
        ({"retrieved[].text": "contexts[].n", "retrieved[].metadata.t": "contexts[].txt"}, "$.contexts[0].n: expected"),
    ],
)
def test_t2_11_a_mapping_of_parts_that_cannot_be_meant_is_one_line(tmp_path: Path, fields: Any, message: str) -> None:
    slip = {"chunkid": 1} if fields == {"retrieved[].doc_id": "contexts[].content"} else {}
    row = {"case_id": "a", "contexts": [{"content": "x", "txt": "y", "n": 1, **slip}], "more": [1, 2]}
    path = written(tmp_path, "o.jsonl", as_lines(row))
    found = complaint(path, "outputs", fields=fields)
    assert message in found
    assert "\n" not in found


def test_t2_11_a_hit_without_the_mapped_part_is_a_hit_all_the_same(tmp_path: Path) -> None:
    rows: list[dict[str, Any]] = [
        {"id": 1, "docs": [{"t": "x"}, {"u": 1}]},
        {"id": 2, "docs": [{"u": 2}]},
        {"id": 3},
        {"id": 4, "docs": None},
    ]
    found = outputs_of(written(tmp_path, "o.jsonl", as_lines(*rows)), fields={"retrieved[].text": "docs[].t"})
    assert [said(output).get("retrieved") for output in found] == [
        [{"text": "x"}, {"metadata": {"u": 1}}],
        [{"metadata": {"u": 2}}],
        None,
        None,
    ]


def test_t2_11_a_fault_in_a_part_that_is_not_mapped_has_its_place_in_the_file(tmp_path: Path) -> None:
    path = written(tmp_path, "o.jsonl", as_lines({"id": 1, "docs": [{"t": "x", "rank": 0}]}))
    assert complaint(path, "outputs", fields={"retrieved[].text": "docs[].t"}).startswith("o.jsonl:1: $.docs[0].rank: ")


def test_t2_38_records_under_results_with_hits_of_their_own_name(tmp_path: Path) -> None:
    row = {
        "query_id": "0",
        "query": "How deep?",
        "gt_answer": "Six metres.",
        "response": "Six.",
        "retrieved_context": [{"doc_id": "000", "text": "It is six metres deep."}],
    }
    path = written(tmp_path, "inputs.json", json.dumps({"results": [row]}))
    (found,) = cases_of(path, fields={"id": "query_id", "question": "query", "reference_answers": "gt_answer"})
    assert (found.id, found.question, found.reference_answers) == ("0", "How deep?", ("Six metres.",))
    (output,) = outputs_of(path, fields={"case_id": "query_id", "answer": "response", "retrieved": "retrieved_context"})
    assert said(output)["retrieved"] == [{"doc_id": "000", "text": "It is six metres deep."}]


@needs_shared_files
def test_t2_38_the_published_file() -> None:
    fields = {"case_id": "query_id", "answer": "response", "retrieved": "retrieved_context"}
    found = outputs_of(shared("public/ragchecker_checking_inputs.head4.json"), fields=fields)
    assert found
    assert all(output.answer and output.retrieved[0].doc_id for output in found)


@pytest.mark.parametrize(
    ("name", "data", "how"),
    [
        ("de.csv", "\ufeffid;question;answer\r\n1;\"Wie tief; der Hafen?\";Sechs, sieben Meter\r\n", {}),
        ("sep.csv", "sep=;\r\nid;question;answer\r\n1;\"Wie tief; der Hafen?\";\r\n", {}),
        ("quoted-sep.csv", "\"sep=|\"\nid|question\n1|Wie tief; der Hafen?\n", {}),
        ("t.tsv", "id\tquestion\n1\tWie tief; der Hafen?\n", {}),
        ("t.csv", "id\tquestion\n1\tWie tief; der Hafen?\n".encode("utf-16"), {}),
        ("bar.csv", "id|question\n1|Wie tief; der Hafen?\n", {}),
        ("comma.csv", "id,\"a;b;c\",question\n1,x;y;z,Wie tief; der Hafen?\n", {}),
        ("mixed.csv", "id;question, in full;question\n1;a, b;\"Wie tief; der Hafen?\"\n", {}),
        ("given.csv", "id^question\n1^Wie tief; der Hafen?\n", {"separator": "^"}),
        ("1252.csv", "id;question;note\n1;\"Wie tief; der Hafen?\";Größe\n".encode("cp1252"), {"encoding": "cp1252"}),
    ],
    ids=lambda value: f"T2-19-{value}" if isinstance(value, str) and value.endswith(("csv", "tsv")) else "",
)  # fmt: skip
def test_t2_19_tables_with_other_separators_are_read(tmp_path: Path, name: str, data: Any, how: Any) -> None:
    (found,) = cases_of(written(tmp_path, name, data), **how)
    assert (found.id, found.question) == ("1", "Wie tief; der Hafen?")


def test_t2_19_lines_are_counted_from_the_line_that_names_the_separator(tmp_path: Path) -> None:
    path = written(tmp_path, "c.csv", 'sep=;\r\nid;question\r\n1;"a\nb"\r\n1;c\r\n')
    assert complaint(path) == "c.csv:5: $: id '1' is already on line 3"


@pytest.mark.parametrize(
    ("data", "how", "message"),
    [
        ("id;question\n1;a\n", {"separator": ","}, "c.csv:1: the header is one column, 'id;question', with the \"sep"),
        ("id;question\n1;a;b\n", {}, "c.csv:2: $: 3 cells, but the header has 2"),
    ],
)
def test_t2_19_a_wrong_separator_is_named(tmp_path: Path, data: str, how: Any, message: str) -> None:
    assert message in complaint(written(tmp_path, "c.csv", data), **how)


def test_t2_19_a_separator_is_one_character() -> None:
    with pytest.raises(ValueError, match="expected one character such as ';' or a tab, found '::'"):
        judgekit_data_file(separator="::")


def judgekit_data_file(**how: Any) -> Any:
    from judgekit.core.data_files import DataFile

    return DataFile(path="x.csv", **how)


def test_t2_19_decimal_commas_are_read_where_semicolons_separate_cells(tmp_path: Path) -> None:
    path = written(tmp_path, "o.csv", "id;answer;confidence;seconds\n1;1,5;0,72;1,9\n")
    (found,) = outputs_of(path, fields={"latency_seconds.total": "seconds"})
    assert (found.answer, found.confidence, found.latency_seconds) == ("1,5", 0.72, {"total": 1.9})


def workbook(path: Path, *sheets: tuple[str, list[list[Any]]]) -> Path:
    openpyxl = pytest.importorskip("openpyxl", reason="openpyxl is not installed: pip install -e '.[dev]'")
    book = openpyxl.Workbook()
    book.remove(book.active)
    for name, rows in sheets:
        sheet = book.create_sheet(name)
        for row in rows:
            sheet.append(row)
    book.save(path)
    return path


def test_t2_19_a_workbook_is_read_like_a_csv_file(tmp_path: Path) -> None:
    import datetime

    rows: list[list[Any]] = [
        ["id", "question", "answerable", "tags", "metadata", "asked", None],
        [7, "How deep?", True, '["a", "b"]', '{"k": 1}', datetime.datetime(2025, 3, 9), None],
        [None] * 7,
        ["x8", 42, False, None, None, datetime.datetime(2025, 3, 9, 10, 30), None],
        [9.5, "Why?", None, "c", None, 0.25, None],
    ]
    path = workbook(tmp_path / "golden.xlsx", ("Sheet1", rows), ("Sheet2", []))
    found = cases_of(path)
    assert [said(case) for case in found] == [
        {"id": "7", "question": "How deep?", "answerable": True, "tags": ["a", "b"],
         "metadata": {"k": 1, "asked": "2025-03-09"}},
        {"id": "x8", "question": "42", "answerable": False, "metadata": {"asked": "2025-03-09T10:30:00"}},
        {"id": "9.5", "question": "Why?", "tags": ["c"], "metadata": {"asked": "0.25"}},
    ]  # fmt: skip


def test_t2_19_a_sheet_is_named_where_there_are_several(tmp_path: Path) -> None:
    table: list[list[Any]] = [["id", "question"], [1, "q"]]
    path = workbook(tmp_path / "g.xlsx", ("one", table), ("two", [*table, [2, "r"]]))
    assert complaint(path) == "g.xlsx: holds 2 sheets, 'one', 'two'; name one with \"part\""
    assert [case.id for case in cases_of(path, part="two")] == ["1", "2"]
    assert complaint(path, part="three") == "g.xlsx: no sheet 'three'; it has 'one', 'two'"


def test_t2_19_of_formulas_the_stored_value_is_read_and_one_without_is_refused(tmp_path: Path) -> None:
    path = workbook(tmp_path / "g.xlsx", ("one", [["id", "question"], ["=1+1", "q"]]))
    message = complaint(path)
    assert message.startswith("g.xlsx: sheet 'one': cell A2 holds a formula without a value; open and save")


def test_t2_19_errors_of_a_sheet_name_its_row(tmp_path: Path) -> None:
    path = workbook(tmp_path / "g.xlsx", ("one", [["id", "answerable"], [1, "perhaps"]]))
    assert complaint(path) == "g.xlsx:2: $.answerable: expected true or false, found a text"


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("g.xlsx", "g.xlsx: is not a readable .xlsx file"),
        ("g.xls", "g.xls: .xls is not read; save the sheet as .xlsx or as CSV UTF-8"),
        ("g.ods", "g.ods: .ods is not read; save the sheet as .xlsx or as CSV UTF-8"),
    ],
)
def test_t2_19_what_is_not_a_workbook_is_told_what_to_save(tmp_path: Path, name: str, message: str) -> None:
    pytest.importorskip("openpyxl", reason="openpyxl is not installed")
    assert complaint(written(tmp_path, name, b"\xd0\xcf\x11\xe0")).startswith(message)


def test_t2_19_without_openpyxl_one_sentence_says_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "openpyxl", None)
    assert complaint(written(tmp_path, "g.xlsx", b"PK")) == (
        "g.xlsx: reading .xlsx needs openpyxl: pip install openpyxl; or save the sheet as CSV UTF-8"
    )


@pytest.mark.parametrize(
    "cells",
    [
        '"{""question"": ""How deep?""}","{""answer"": ""six""}"',
        "\"{'question': 'How deep?'}\",\"{'answer': 'six', 'n': None}\"",
        '"{""question"": ""How deep?""}","{""answer"": [""six""]}"',
    ],
    ids=["T2-20-json", "T2-20-python", "T2-20-list"],
)
def test_t2_20_a_dotted_name_reaches_into_a_cell(tmp_path: Path, cells: str) -> None:
    path = written(tmp_path, "c.csv", f"id,input,expectedOutput\n1,{cells}\n")
    (found,) = cases_of(path, fields={"question": "input.question", "reference_answers": "expectedOutput.answer"})
    assert (found.question, found.reference_answers) == ("How deep?", ("six",))


def test_t2_20_hits_in_a_cell_and_texts_in_json_lines_are_entered_too(tmp_path: Path) -> None:
    cell = json.dumps([{"content": "x", "uri": "a.md"}]).replace('"', '""')
    fields = {"retrieved[].text": "hits[].content", "retrieved[].rel_path": "hits[].uri"}
    path = written(tmp_path, "o.csv", f'id,answer,hits\n1,a,"{cell}"\n')
    assert said(outputs_of(path, fields=fields)[0])["retrieved"] == [{"text": "x", "rel_path": "a.md"}]
    path = written(tmp_path, "o.jsonl", as_lines({"id": 1, "output": json.dumps({"answer": "six"})}))
    assert outputs_of(path, fields={"answer": "output.answer"})[0].answer == "six"


ROW = {"id": "1", "question": "How deep?", "answer": "six"}


@pytest.mark.parametrize(
    "document",
    [
        {"columns": ["id", "question", "answer"], "index": [0], "data": [["1", "How deep?", "six"]]},
        {"columns": ["question", "answer"], "index": ["1"], "data": [["How deep?", "six"]]},
        {name: {"0": value} for name, value in ROW.items()},
        {name: {"1": value} for name, value in ROW.items() if name != "id"},
        {"0": ROW},
        {"1": {"question": "How deep?", "answer": "six"}, "2": {"question": "Why?", "answer": "so"}},
        {"schema": {"fields": [{"name": "index"}], "primaryKey": ["index"]}, "data": [{"index": 0, **ROW}]},
        {name: [value] for name, value in ROW.items()},
        {"results": [ROW]},
        {"version": 2, "data": [ROW]},
    ],
    ids=["split", "split-index", "columns", "columns-index", "index", "by-id", "table", "lists", "results", "data"],
)
def test_t2_22_records_that_do_not_stand_at_the_top_are_found(tmp_path: Path, document: Any) -> None:
    found = cases_of(written(tmp_path, "c.json", json.dumps(document)))
    assert said(found[0]) == {"id": "1", "question": "How deep?", "metadata": {"answer": "six"}}


def test_t2_22_a_key_says_where_the_records_are(tmp_path: Path) -> None:
    document = {"run": {"items": [ROW], "others": [{"x": 1}]}}
    path = written(tmp_path, "c.json", json.dumps(document))
    assert cases_of(path, records="run.items")[0].id == "1"
    assert complaint(path) == (
        "c.json: unsupported shape: expected a list of objects, found an object with keys run; if 'run.items' holds "
        'the records, set "records": "run.items" (there are also \'run.others\')'
    )
    assert complaint(path, records="run.itms").endswith("did you mean 'run.items'?")
    path = written(tmp_path, "c.json", json.dumps(document, indent=1).replace('"id": "1"', '"id": 1.5'))
    assert complaint(path, records="run.items").startswith("c.json:4: $.run.items[0].id: ")


@pytest.mark.parametrize(
    ("document", "message"),
    [
        ({"a": {"x": 1}, "b": {"x": 2}}, "if this is a table, write one object a record, as pandas does with orient="),
        ({"question": "q", "results": [{"text": "t"}]}, 'if \'results\' holds the records, set "records": "results"'),
        ({"question": "q", "answer": "a"}, "one record alone is written as a list of one"),
        ({"columns": ["id", "question"], "data": [["1"]]}, "$.data[0]: 1 values, but there are 2 columns"),
    ],
)
def test_t2_22_what_is_not_plainly_a_list_of_records_is_named(tmp_path: Path, document: Any, message: str) -> None:
    assert message in complaint(written(tmp_path, "c.json", json.dumps(document)))


def test_t2_22_rows_of_other_formats_are_found_under_a_key_too(tmp_path: Path) -> None:
    row = {"user_input": "How deep?", "response": "six", "reference": "six", "retrieved_contexts": ["t"]}
    notices: Notices = []
    path = written(tmp_path, "r.json", json.dumps({"results": [row]}))
    (found,) = cases_of(path, notices)
    assert found.reference_answers == ("six",)
    assert "format_detected" in dict(notices)


def test_t2_37_nested_gold_becomes_expected_ids_and_parallel_columns_become_hits(tmp_path: Path) -> None:
    pa = pytest.importorskip("pyarrow")
    import pyarrow.parquet as pq

    gold = [[["k1"]], [["a"], ["b", "c"]]]
    pq.write_table(pa.table({"qid": ["1", "2"], "query": ["q", "r"], "retrieval_gt": gold}), tmp_path / "qa.parquet")
    one, two = cases_of(
        tmp_path / "qa.parquet", fields={"id": "qid", "question": "query", "expected_chunk_ids": "retrieval_gt"}
    )
    assert (one.expected_chunk_ids, one.gold_supports, one.required_support_groups) == (("k1",), (), ())
    assert two.expected_chunk_ids == ("a", "b", "c")
    assert two.required_support_groups == ((0, 1), (0, 2))  # a, and b or c
    columns = {"qid": ["1"], "retrieved_ids": [["a", "b"]], "retrieved_contents": [["t1", "t2"]]}
    pq.write_table(pa.table(columns), tmp_path / "out.parquet")
    (output,) = outputs_of(tmp_path / "out.parquet", fields={"case_id": "qid", "retrieved": "retrieved_contents"})
    assert said(output)["retrieved"] == [
        {"chunk_id": one, "doc_id": one, "rel_path": one, "text": text} for one, text in (("a", "t1"), ("b", "t2"))
    ]


def test_t2_37_lists_of_different_lengths_are_refused(tmp_path: Path) -> None:
    path = written(tmp_path, "o.jsonl", as_lines({"id": 1, "retrieved_ids": ["a", "b"], "retrieved": ["t"]}))
    assert complaint(path, "outputs") == (
        "o.jsonl:1: $: retrieved_ids: the record has retrieved too, with 1 entries for 2 ids"
    )


@needs_shared_files
def test_t2_37_the_published_file() -> None:
    pytest.importorskip("pyarrow")
    fields = {
        "id": "qid",
        "question": "query",
        "reference_answers": "generation_gt",
        "expected_chunk_ids": "retrieval_gt",
    }
    found = cases_of(shared("public/autorag_qa_data_sample.parquet"), fields=fields)
    assert len(found) == 10
    assert all(case.expected_chunk_ids and not case.gold_supports for case in found)


@pytest.mark.parametrize(
    ("cell", "texts", "n_warned"),
    [
        ("[Applause] Thank you all.", ["[Applause] Thank you all."], 1),
        ("[1] According to the log", ["[1] According to the log"], 1),
        ('["Hello" she said] and left', ['["Hello" she said] and left'], 1),
        ("[12]", ["[12]"], 1),
        ("['a', 'b']", ["a", "b"], 0),
        ('["a", "b"]', ["a", "b"], 0),
        ("[]", [], 0),
    ],
)
def test_t2_43_a_passage_that_begins_with_a_bracket_is_a_text(
    tmp_path: Path, cell: str, texts: list[str], n_warned: int
) -> None:
    escaped = cell.replace('"', '""')
    notices: Notices = []
    path = written(tmp_path, "o.csv", f'id,answer,contexts\n1,ok,"{escaped}"\n')
    (found,) = outputs_of(path, notices, fields={"retrieved": "contexts"})
    assert [hit.text for hit in found.retrieved] == texts
    path = written(tmp_path, "r.csv", f'user_input,response,reference,retrieved_contexts\nq,ok,r,"{escaped}"\n')
    (found,) = outputs_of(path, notices)
    assert [hit.text for hit in found.retrieved] == texts
    assert [code for code, _ in notices].count("cells_like_lists") == 2 * n_warned


def test_t2_43_ids_and_labels_in_brackets_are_still_refused(tmp_path: Path) -> None:
    path = written(tmp_path, "c.csv", 'id,expected_doc_ids\n1,"[a, b]"\n')
    assert complaint(path) == "c.csv:2: $: expected_doc_ids: starts like a list, but is not one"


@pytest.mark.parametrize(
    ("cell", "texts", "is_warned"),
    [
        ("| Plan | Price |\n| Pro | $20 ||plain chunk", ["Plan", "Price", "Pro", "$20", "plain chunk"], True),
        ("cat a.txt | grep b|next", ["cat a.txt", "grep b", "next"], True),
        ("one|two", ["one", "two"], False),
        ("one||two", ["one", "two"], True),
        ("|", [], True),
    ],
    ids=["T2-17-table", "T2-17-shell", "T2-17-plain", "T2-17-blank", "T2-17-nothing"],
)
def test_t2_17_blank_pieces_are_no_hits_and_doubtful_cells_are_counted(
    tmp_path: Path, cell: str, texts: list[str], is_warned: bool
) -> None:
    notices: Notices = []
    path = written(tmp_path, "g.csv", f'input,actual_output,retrieval_context\nq,a,"{cell}"\n')
    (found,) = outputs_of(path, notices, format="deepeval")
    assert [hit.text for hit in found.retrieved] == texts
    said_of_cells = dict(notices).get("cells_cut_at_bars", "")
    assert bool(said_of_cells) == is_warned
    assert not is_warned or ("1 cell" in said_of_cells and "JSON" in said_of_cells)


def test_t2_38_a_run_reads_mapped_hits_from_the_config_alone(tmp_path: Path) -> None:
    """Both sides of one file, as a user has it."""
    rows = [
        {"q": f"c{n}", "ask": "How deep?", "gold": ["a.md"], "out": "six", "docs": [{"body": "t", "uri": "a.md"}]}
        for n in range(3)
    ]
    written(tmp_path, "all.json", json.dumps({"items": rows}))
    config = {
        "name": "mapped",
        "cases": {
            "path": "all.json",
            "fields": {"id": "q", "question": "ask", "gold_supports[].rel_path": "gold[]"},
        },
        "system": {
            "path": "all.json",
            "fields": {
                "case_id": "q",
                "answer": "out",
                "retrieved[].text": "docs[].body",
                "retrieved[].rel_path": "docs[].uri",
            },
        },
        "metrics": ["retrieval"],
        "results_dir": "results",
    }
    judgekit.run(written(tmp_path, "config.json", json.dumps(config)), run_id="r")
    figures = read_json(tmp_path / "results" / "r" / "metrics.json")
    assert figures["overall"]["mrr"]["value"] == 1.0


def hub_rows(*answers: list[str]) -> list[dict[str, Any]]:
    return [
        {
            "id": f"s{number}",
            "title": "Harbour",
            "context": "The harbour is six metres deep.",
            "question": "How deep?",
            "answers": {"text": texts, "answer_start": [15] * len(texts)},
        }
        for number, texts in enumerate(answers, start=1)
    ]


@pytest.mark.parametrize("name", ["h.jsonl", "h.json", "h.parquet"], ids=lambda name: f"T2-09-{name}")
@pytest.mark.parametrize("answers", [(["six metres"], []), ([], ["six metres"]), ([], [""], ["six metres"])])
def test_t2_09_a_question_with_empty_answers_should_be_refused(
    tmp_path: Path, name: str, answers: tuple[list[str], ...]
) -> None:
    rows = hub_rows(*answers)
    path = tmp_path / name
    if name.endswith("parquet"):
        pa = pytest.importorskip("pyarrow")
        import pyarrow.parquet as pq

        pq.write_table(pa.Table.from_pylist(rows), path)
    else:
        written(tmp_path, name, json.dumps(rows) if name == "h.json" else as_lines(*rows))
    notices: Notices = []
    for case, texts in zip(cases_of(path, notices), answers, strict=True):
        if texts == ["six metres"]:
            assert (case.answerable, case.expected_doc_ids, len(case.gold_supports)) == (True, None, 1)
        else:
            assert (case.answerable, case.expected_doc_ids, case.gold_supports) == (False, (), ())
            assert case.reference_answers == ()
    assert [code for code, _ in notices] == ["format_detected"]


def test_t2_09_a_file_without_any_answer_is_not_labelled_and_it_is_said(tmp_path: Path) -> None:
    notices: Notices = []
    found = cases_of(written(tmp_path, "test.jsonl", as_lines(*hub_rows([], [], []))), notices)
    assert [(case.answerable, case.expected_doc_ids, case.gold_supports) for case in found] == [(None, None, ())] * 3
    assert "not one question has an answer" in dict(notices)["labels_missing"]


def test_t2_09_what_the_original_file_says_comes_first(tmp_path: Path) -> None:
    qas = [
        {"id": "1", "question": "q", "answers": [{"text": "six", "answer_start": 0}], "is_impossible": False},
        {"id": "2", "question": "q", "answers": [], "is_impossible": True},
        {"id": "3", "question": "q", "answers": [], "is_impossible": False},
    ]
    data = {"data": [{"title": "t", "paragraphs": [{"context": "six", "qas": qas}]}]}
    found = cases_of(written(tmp_path, "dev.json", json.dumps(data)))
    assert [case.answerable for case in found] == [True, False, True]
    assert [len(case.gold_supports) for case in found] == [1, 0, 0]


def recency(*dates: str, cited: str) -> tuple[dict[str, Any], dict[str, Any]]:
    supports = [{"rel_path": f"{number}.md", "date": date} for number, date in enumerate(dates)]
    case = {"id": "1", "recency_conflict_rule": "cite_newer", "gold_supports": supports}
    return case, {"case_id": "1", "answer": "a", "retrieved": [], "references": [{"rel_path": cited}]}


@pytest.mark.parametrize(
    ("dates", "newest"),
    [
        (("2025-03-09", "2025-03-11"), "1.md"),
        (("2025-03-11T01:00:00+05:00", "2025-03-10T22:00:00Z"), "1.md"),  # 20:00Z and 22:00Z of the 10th
        (("2025-03-11T01:00:00-05:00", "2025-03-11T05:00:00+00:00"), "0.md"),  # 06:00Z and 05:00Z
        (("2025-03-11", "2025-03-10T23:59:59"), "0.md"),  # midnight of the 11th, a second before
        (("20250312", "2025-03-11T23:00"), "0.md"),
        (("2025-03-11", "2025-03-11T00:30+01:00"), "0.md"),  # no zone counts as UTC: 00:00Z and 23:30Z the day before
    ],
)
def test_t2_10_dates_are_compared_as_instants(tmp_path: Path, dates: tuple[str, str], newest: str) -> None:
    for cited in ("0.md", "1.md"):
        case, output = recency(*dates, cited=cited)
        written(tmp_path, "c.jsonl", as_lines(case))
        written(tmp_path, "o.jsonl", as_lines(output))
        config = {"name": "dates", "cases": "c.jsonl", "system": {"path": "o.jsonl"}, "metrics": ["retrieval"]}
        summary = judgekit.run(written(tmp_path, "config.json", json.dumps(config)), results_dir=tmp_path / "results")
        assert summary.overall["recency_conflict"].value == (1.0 if cited == newest else 0.0)


@pytest.mark.parametrize(
    "date", ["2025-3-9", "09.03.2025", "03/09/2025", "9 March 2025", "2025-13-01", "2025-02-30", "March", "2025-03"]
)
def test_t2_10_a_date_that_is_not_iso_8601_is_refused_with_its_place(tmp_path: Path, date: str) -> None:
    case, _ = recency("2025-03-11", date, cited="")
    assert complaint(written(tmp_path, "c.jsonl", as_lines(case))) == (
        "c.jsonl:1: $.gold_supports[1].date: expected an ISO 8601 date such as 2025-03-09, or a date with a time, "
        f"found '{date}'"
    )
    path = written(tmp_path, "c.json", json.dumps([case], indent=1))
    assert "c.json:2: $[0].gold_supports[1].date" in complaint(path)


def test_t2_10_a_blank_date_is_none(tmp_path: Path) -> None:
    case, _ = recency("", " ", cited="")
    assert [support.date for support in cases_of(written(tmp_path, "c.jsonl", as_lines(case)))[0].gold_supports] == [
        None,
        None,
    ]


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("c.csv", "question,answer\nq,a\nr,b\n"),
        ("c.csv", ",question,answer\n0,q,a\n1,r,b\n"),
        ("c.jsonl", as_lines({"question": "q", "answer": "a"}, {"question": "r", "answer": "b"})),
        ("c.json", json.dumps([{"question": "q", "answer": "a"}, {"question": "r", "answer": "b"}])),
        ("c.jsonl", as_lines({"question": "q", "answer": "a", "paid": 1}, {"question": "r", "answer": "b"})),
        ("c.yaml", "- question: q\n  answer: a\n- question: r\n  answer: b\n"),
        ("c.json", json.dumps({"question": ["q", "r"], "answer": ["a", "b"]})),
    ],
)
def test_rows_without_ids_have_their_positions_on_both_sides(tmp_path: Path, name: str, data: str) -> None:
    notices: Notices = []
    path = written(tmp_path, name, data)
    assert [(case.id, case.question) for case in cases_of(path, notices)] == [("1", "q"), ("2", "r")]
    assert [(output.case_id, output.answer) for output in outputs_of(path, notices)] == [("1", "a"), ("2", "b")]
    assert [code for code, _ in notices] == ["ids_by_position"] * 2


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({"qid": 1, "question": "q"}, "$.id: required, but missing; the record has qid, question"),
        ({"ID": 1, "question": "q"}, "$.id: required, but missing; the record has ID, question"),
        ({"#": 1, "question": "q"}, "$.id: required, but missing"),
        ({"sample_id": 1, "question": "q"}, "$.id: required, but missing"),
        ({"queryId": 1, "question": "q"}, "$.id: required, but missing"),
        ({"id": None, "question": "q"}, "$.id: "),
        ({"text": "t", "gold": "g"}, "$.id: required, but missing; the record has text, gold"),
        ({"id": "", "question": "q"}, "$.id: an id is empty"),
    ],
)
def test_rows_with_an_id_of_another_name_are_not_numbered(tmp_path: Path, row: Any, message: str) -> None:
    assert message in complaint(written(tmp_path, "c.jsonl", as_lines(row)))


def run_of(folder: Path, cases: list[dict[str, Any]], outputs: list[dict[str, Any]]) -> Any:
    written(folder, "c.jsonl", as_lines(*cases))
    written(folder, "o.jsonl", as_lines(*outputs))
    config = {"name": "x", "cases": "c.jsonl", "system": {"path": "o.jsonl"}, "metrics": ["answer_checks"]}
    return judgekit.run(written(folder, "config.json", json.dumps(config)), results_dir=folder / "results")


QUESTIONS = [{"question": "q", "must_contain": ["a"]}, {"question": "r", "must_contain": ["b"]}]


@pytest.mark.parametrize(
    ("cases", "outputs", "message"),
    [
        (
            QUESTIONS,
            [{"answer": "a"}],
            "neither cases nor outputs have ids, and 2 cases and 1 outputs cannot be",
        ),
        (QUESTIONS, [{"id": n, "answer": "a"} for n in (0, 1)], "cases have no ids, and their positions and the ids"),
        (
            [{"id": "a", "must_contain": ["a"]}, {"id": 1}],
            [{"answer": "a"}] * 2,
            "outputs have no ids, and their positions and the ids of",
        ),
    ],
)
def test_positions_join_only_what_lines_up(tmp_path: Path, cases: list[Any], outputs: list[Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        run_of(tmp_path, cases, outputs)
    with pytest.raises(ConfigError, match=message):
        run_score(tmp_path)


def run_score(folder: Path) -> Any:
    from judgekit.core.data_files import DataFile
    from judgekit.workflows.score import score

    return score(DataFile(path=str(folder / "c.jsonl")), DataFile(path=str(folder / "o.jsonl")))


def test_positions_join_files_of_equal_length_and_ids_that_are_positions(tmp_path: Path) -> None:
    summary = run_of(tmp_path, QUESTIONS, [{"answer": "a"}, {"answer": "b"}])
    assert summary.overall["keyword_groundedness"].value == 1.0
    numbered = [{"id": 1, "answer": "a"}, {"id": 2, "answer": "b"}]
    assert run_of(tmp_path, QUESTIONS, numbered).overall["keyword_groundedness"].value == 1.0


@pytest.mark.parametrize(
    ("tags", "found"), [("a", ("a",)), ("a, b", ("a, b",)), ("", ()), (" ", ()), (["a", "b"], ("a", "b"))]
)
def test_tags_and_vaults_may_be_one_text(tmp_path: Path, tags: Any, found: tuple[str, ...]) -> None:
    path = written(tmp_path, "c.jsonl", as_lines({"id": 1, "tags": tags, "vaults": tags}))
    (case,) = cases_of(path)
    assert (case.tags, case.vaults) == (found, found)


@pytest.mark.parametrize(
    ("name", "row", "items"),
    [
        ("r.jsonl", {"user_input": "q", "response": "a", "retrieved_contexts": [LANGCHAIN]}, "retrieved_contexts[]"),
        ("d.jsonl", {"input": "q", "actual_output": "a", "retrieval_context": [LANGCHAIN]}, "retrieval_context[]"),
        ("own.jsonl", {"id": 1, "answer": "a", "retrieved": [{"words": "x"}]}, "retrieved[].words"),
    ],
)
def test_t2_11_rows_of_other_formats_with_foreign_hits_are_told_too(
    tmp_path: Path, name: str, row: dict[str, Any], items: str
) -> None:
    path = written(tmp_path, name, as_lines(row))
    message = complaint(path, "outputs")
    assert f'"retrieved[].text": "{items}' in message
    assert "\n" not in message
    form = {"r.jsonl": "ragas", "d.jsonl": "deepeval"}.get(name)
    mapping = json.loads(message.partition('"fields": ')[2].partition("; what")[0])
    (found,) = outputs_of(path, fields=mapping, format=form)
    assert found.answer == "a"
    assert found.retrieved[0].text in ("x", "The ferry leaves at nine.")


def test_t2_19_a_workbook_that_unpacks_to_too_much_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = workbook(tmp_path / "g.xlsx", ("one", [["id", "question"], [1, "q"]]))
    monkeypatch.setattr("judgekit.storage.table_rows.UNPACKED_BYTES", 1000)
    assert "unpacks to more than" in complaint(path)


def test_t2_19_a_run_on_a_workbook_with_a_sheet_for_each_side(tmp_path: Path) -> None:
    cases: list[list[Any]] = [["id", "question", "must_contain"], [1, "q", "six"], [2, "r", "nine"]]
    outputs: list[list[Any]] = [["id", "answer"], [1, "six metres"], [2, "ten"]]
    workbook(tmp_path / "suite.xlsx", ("golden", cases), ("answers", outputs))
    config = {
        "name": "sheets",
        "cases": {"path": "suite.xlsx", "part": "golden"},
        "system": {"path": "suite.xlsx", "part": "answers"},
        "metrics": ["answer_checks"],
    }
    summary = judgekit.run(written(tmp_path, "config.json", json.dumps(config)), results_dir=tmp_path / "results")
    assert summary.overall["keyword_groundedness"].value == 0.5  # one of two answers has its word


def test_t2_11_metadata_of_hits_is_converted_and_changes_no_figure(tmp_path: Path) -> None:
    from judgekit.core.data_files import DataFile
    from judgekit.storage.converting import convert

    source = written(tmp_path, "o.jsonl", as_lines({"case_id": "1", "answer": "a", "retrieved": [LANGCHAIN]}))
    file = DataFile(path=str(source), fields=LANGCHAIN_FIELDS)
    for name in ("x.jsonl", "x.json", "x.csv"):
        convert(file, source, tmp_path / name, "outputs", [])
        assert outputs_of(tmp_path / name) == outputs_of(source, fields=LANGCHAIN_FIELDS)
    written(tmp_path, "c.jsonl", as_lines({"id": "1", "gold_supports": [{"rel_path": "ferry.md"}]}))
    (tmp_path / "o.jsonl").write_bytes((tmp_path / "x.jsonl").read_bytes())
    assert run_score(tmp_path).estimates["mrr"].value == 1.0


def test_t2_37_gold_in_groups_beside_hits_without_paths_is_not_0_in_silence(tmp_path: Path) -> None:
    written(tmp_path, "c.jsonl", as_lines({"id": 1, "gt": [["a"], ["b", "c"]]}))
    written(tmp_path, "o.jsonl", as_lines({"id": 1, "answer": "x", "ids": ["a", "c"], "texts": ["t", "u"]}))
    parallel = {"retrieved[].chunk_id": "ids[]", "retrieved[].text": "texts[]"}
    for fields, recall, is_warned in (
        (parallel, 0.0, True),
        ({**parallel, "retrieved[].rel_path": "ids[]"}, 1.0, False),
        ({"retrieved_ids": "ids", "retrieved": "texts"}, 1.0, False),
    ):
        config = {
            "name": "groups",
            "cases": {"path": "c.jsonl", "fields": {"expected_chunk_ids": "gt"}},
            "system": {"path": "o.jsonl", "fields": fields},
        }
        summary = judgekit.run(written(tmp_path, "config.json", json.dumps(config)), results_dir=tmp_path / "results")
        assert summary.overall["recall_all@5"].value == recall
        assert ("hits_lack_names" in [warning.code for warning in summary.warnings]) is is_warned


def test_t2_19_what_stands_beside_the_table_of_a_sheet_is_left_out(tmp_path: Path) -> None:
    import time

    rows: list[list[Any]] = [[], [], ["id", "question", None], [1, "q"], [], [2, "r", None, "a note"], [3]]
    path = workbook(tmp_path / "g.xlsx", ("one", rows))
    assert [said(case) for case in cases_of(path)] == [{"id": "1", "question": "q"}, {"id": "2", "question": "r"},
                                                       {"id": "3"}]  # fmt: skip
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook()
    book.active.append(["id", "question"])
    for number in range(2, 2002):
        book.active.cell(number, 1, number)
        book.active.cell(number, 16384, "far away")  # the last column that a sheet has
    book.save(tmp_path / "wide.xlsx")
    begun = time.process_time()
    assert len(cases_of(tmp_path / "wide.xlsx")) == 2000
    assert time.process_time() - begun < 5  # 33 million cells would take longer
