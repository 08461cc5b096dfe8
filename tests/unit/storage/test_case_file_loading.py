"""Files of cases and outputs as users have them: what is read, and what is said about what is not."""

import codecs
import gc
import hashlib
import json
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from judgekit.core.cases import Case, SystemOutput
from judgekit.core.data_files import DataFile
from judgekit.core.errors import InputError
from judgekit.storage.case_files import data_sha256, file_sha256, load_cases
from tests.readers import load_outputs


def written(folder: Path, name: str, data: str | bytes) -> Path:
    path = folder / name
    path.write_bytes(data.encode("utf-8") if isinstance(data, str) else data)
    return path


def cases_of(path: Path, **how: Any) -> list[Case]:
    return load_cases(DataFile(path=str(path), **how), path)


def outputs_of(path: Path, **how: Any) -> list[SystemOutput]:
    return load_outputs(DataFile(path=str(path), **how), path)


def complaint(path: Path, **how: Any) -> str:
    """What is said about a file of cases that cannot be used, without the folder."""
    with pytest.raises(InputError) as caught:
        cases_of(path, **how)
    return str(caught.value).replace(f"{path.parent}/", "")


def output_complaint(path: Path, **how: Any) -> str:
    with pytest.raises(InputError) as caught:
        outputs_of(path, **how)
    return str(caught.value).replace(f"{path.parent}/", "")


TWO = [{"id": "1", "question": "what is 2+2"}, {"id": "2", "question": "Größe 灯?"}]
AS_JSONL = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in TWO)
AS_JSON = json.dumps(TWO, ensure_ascii=False, indent=2)
AS_CSV = "id,question\r\n1,what is 2+2\r\n2,Größe 灯?\r\n"


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-32"])
@pytest.mark.parametrize(("name", "text"), [("c.jsonl", AS_JSONL), ("c.json", AS_JSON), ("c.csv", AS_CSV)])
def test_c01_c02_a_byte_order_mark_says_the_encoding_and_is_no_part_of_the_data(
    tmp_path: Path, name: str, text: str, encoding: str
) -> None:
    found = cases_of(written(tmp_path, name, text.encode(encoding)))
    assert [(case.id, case.question) for case in found] == [("1", "what is 2+2"), ("2", "Größe 灯?")]


@pytest.mark.parametrize(
    ("declared", "mark"),
    [("utf-8", "\ufeff"), ("UTF8", ""), ("utf-16-le", ""), ("utf-16-le", "\ufeff"), ("utf-16", "")],
)
@pytest.mark.parametrize("form", ["csv", "jsonl", "json"])
def test_c01_a_declared_encoding_copes_with_a_mark_too(tmp_path: Path, declared: str, mark: str, form: str) -> None:
    text = {"csv": AS_CSV, "jsonl": AS_JSONL, "json": AS_JSON}[form]
    path = written(tmp_path, f"c.{form}", (mark + text).encode(declared))
    assert [case.id for case in cases_of(path, encoding=declared)] == ["1", "2"]


def test_c01_a_mark_before_a_quoted_header_with_a_comma_and_one_inside_a_value(tmp_path: Path) -> None:
    path = written(tmp_path, "c.csv", '\ufeff"id, as text",question\r\n1,a\ufeffb\r\n')
    assert cases_of(path, fields={"id": "id, as text"})[0].question == "a\ufeffb"


LATIN = '{"id": "1", "question": "caf\u00e9"}\n'.encode("latin-1")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "data", "how", "said"),
    [
        ("c.jsonl", b'{"id": "0"}\n' + LATIN, {}, 'c.jsonl:2: byte 40 of the file is not utf-8; set "encoding"'),
        ("c.json", b"[" + LATIN + b"]", {}, "c.json:1: byte 29 of the file is not utf-8"),
        ("c.json", codecs.BOM_UTF8 + b"[" + LATIN + b"]", {}, "c.json:1: byte 32 of the file is not utf-8"),
        ("c.csv", b"id,question\n" + b"1,q\n" * 50000 + b"2,caf\xe9\n", {}, "c.csv:50002: byte 200017 of the file"),
        ("c.jsonl", b'{"id": "1\xe9"}', {"encoding": "ascii"}, "byte 9 of the file is not ascii; set another"),
        ("c.csv", "id\n1\n".encode("utf-16-le"), {}, 'without a byte order mark has; if it is that, set "encoding"'),
        ("c.csv", "id\n1\n".encode("utf-16-be"), {}, '"encoding": "utf-16-be"'),
        ("c.csv", b"id,question\n1,q\n", {"encoding": "utf-16"}, "is not utf-16"),
        ("c.json", "[1]".encode("utf-16") + b"x", {}, "is not utf-16"),
        ("c.csv", b"id\n1\n", {"encoding": "klingon"}, "c.csv: unknown encoding 'klingon'; \"utf-8\""),
        ("c.csv", b"id\n1\n", {"encoding": "base64"}, "c.csv: unknown encoding 'base64'"),
    ],
)
def test_c02_what_is_not_in_its_encoding_is_refused_with_the_byte(
    tmp_path: Path, name: str, data: bytes, how: dict[str, str], said: str
) -> None:
    message = complaint(written(tmp_path, name, data), **how)
    assert said in message
    assert "\n" not in message


def test_c02_the_hint_works(tmp_path: Path) -> None:
    assert cases_of(written(tmp_path, "c.jsonl", LATIN), encoding="cp1252")[0].question == "café"


def test_c04_only_line_feeds_end_a_record(tmp_path: Path) -> None:
    path = written(tmp_path, "o.jsonl", '{"id":"a","answer":"x\u2028y"}\n\n \t\r\n{"id":"b","answer":"z\u0085w"}\r\n')
    assert [(row.case_id, row.answer) for row in outputs_of(path)] == [("a", "x\u2028y"), ("b", "z\u0085w")]


@pytest.mark.parametrize(
    ("ids", "expected"),
    [
        ([1, "-2", "10", "01"], ["1", "-2", "10", "01"]),
        ([10**30, -5], [str(10**30), "-5"]),
        (["Gro\u0308\u00dfe.md"], ["Gr\u00f6\u00dfe.md"]),
    ],
    ids=["C06", "C06-big", "C18"],
)
def test_ids_are_compared_as_text_in_the_order_of_the_file(tmp_path: Path, ids: list[Any], expected: list[str]) -> None:
    path = written(tmp_path, "c.jsonl", "\n".join(json.dumps({"id": one}) for one in ids))
    assert [case.id for case in cases_of(path)] == expected


@pytest.mark.parametrize(
    "pair", [[1, "1"], ["Caf\u00e9", "Cafe\u0301"], [-2, "-2"]], ids=["C06", "C18", "C06-negative"]
)
def test_ids_that_are_the_same_after_all_are_refused_with_both_lines(tmp_path: Path, pair: list[Any]) -> None:
    path = written(tmp_path, "c.jsonl", f'{{"id": {json.dumps(pair[0])}}}\n\n{{"id": {json.dumps(pair[1])}}}\n')
    assert complaint(path).startswith("c.jsonl:3: $: id ")
    assert complaint(path).endswith(" is already on line 1")


def test_a_duplicate_in_a_one_line_list_is_named_by_both_places(tmp_path: Path) -> None:
    assert complaint(written(tmp_path, "c.json", '[{"id": 1}, {"id": 2}, {"id": "1"}]')) == (
        "c.json:1: $[2]: id '1' is already on line 1 ($[0])"
    )


@pytest.mark.parametrize("bad", ["true", "1.0", "null", '""', '"  "', "[1]"])
def test_c06_what_is_no_id_is_refused(tmp_path: Path, bad: str) -> None:
    assert complaint(written(tmp_path, "c.jsonl", f'{{"id": {bad}}}')).startswith("c.jsonl:1: $.id: ")


def test_c07_csv_cells_are_text_and_an_empty_answer_is_an_answer(tmp_path: Path) -> None:
    path = written(tmp_path, "o.csv", "id,answer\n00123,NA\n00124,null\n00125,\n")
    assert [(row.case_id, row.answer) for row in outputs_of(path)] == [
        ("00123", "NA"),
        ("00124", "null"),
        ("00125", ""),
    ]


def test_c08_nan_and_null_are_absent_and_never_words(tmp_path: Path) -> None:
    row = '{"id": 1, "answer": NaN, "retrieved": null, "citations": NaN, "abstained": NaN, "n": NaN, "d": {"a": [NaN]}}'
    (found,) = outputs_of(written(tmp_path, "o.jsonl", row))
    assert (found.answer, found.retrieved, found.citations, found.abstained) == (None, (), None, None)
    assert found.metadata == {"n": None, "d": {"a": [None]}}


def test_c08_nan_for_expected_documents_is_not_the_empty_list_that_asks_for_a_refusal(tmp_path: Path) -> None:
    rows = '{"id": 1, "expected_doc_ids": NaN, "question": NaN, "answerable": NaN}\n{"id": 2, "expected_doc_ids": []}'
    first, second = cases_of(written(tmp_path, "c.jsonl", rows))
    assert (first.expected_doc_ids, first.question, first.answerable) == (None, "", None)
    assert second.expected_doc_ids == ()


@pytest.mark.parametrize(
    ("separator", "texts"), [("|", ["north", "south"]), (None, ["north|south"])], ids=["declared", "not-declared"]
)
def test_c10_list_cells_are_split_by_a_declared_separator_only(
    tmp_path: Path, separator: str | None, texts: list[str]
) -> None:
    path = written(tmp_path, "g.csv", "qid,actual_output,retrieval_context\nq,a,north|south\n")
    fields = {"case_id": "qid", "answer": "actual_output", "retrieved": "retrieval_context"}
    (found,) = outputs_of(path, fields=fields, list_separator=separator)
    assert [hit.text for hit in found.retrieved] == texts


def test_c16_blank_empty_and_missing_answers_stay_apart(tmp_path: Path) -> None:
    path = written(tmp_path, "o.jsonl", '{"id": 1, "answer": "  "}\n{"id": 2, "answer": ""}\n{"id": 3}\n')
    assert [row.answer for row in outputs_of(path)] == ["  ", "", None]


def test_c27_heading_paths_stay_lists_or_the_text_they_were(tmp_path: Path) -> None:
    rows = '{"id": 1, "retrieved": [{"heading_path": ["Guide", "Backup/Restore"]}, {"heading_path": "A > B"}]}'
    first, second = outputs_of(written(tmp_path, "o.jsonl", rows))[0].retrieved
    assert (first.heading_path, second.heading_path) == (("Guide", "Backup/Restore"), "A > B")


def test_c29_metadata_as_an_object_or_as_its_text(tmp_path: Path) -> None:
    path = written(
        tmp_path,
        "c.jsonl",
        '{"id": 1, "metadata": "{\\"n\\": {\\"a\\": [1, 2]}}"}\n{"id": 2, "metadata": {"name": "y"}}',
    )
    assert [case.metadata for case in cases_of(path)] == [{"n": {"a": [1, 2]}}, {"name": "y"}]


@pytest.mark.parametrize("bad", ['"[1]"', '"not json"', "[1]", "7"])
def test_c29_metadata_that_is_no_object_is_refused(tmp_path: Path, bad: str) -> None:
    message = complaint(written(tmp_path, "c.jsonl", f'{{"id": 1, "metadata": {bad}}}'))
    assert message.startswith("c.jsonl:1: $: metadata: expected an object")


def test_c30_a_context_of_three_megabytes_and_one_of_five_hundred_parts(tmp_path: Path) -> None:
    rows = [{"id": 1, "retrieved": ["lorem " * 500_000]}, {"id": 2, "retrieved": ["x"] * 500}]
    big, many = outputs_of(written(tmp_path, "o.jsonl", "\n".join(map(json.dumps, rows))))
    assert len(big.retrieved[0].text or "") == 3_000_000
    assert len(many.retrieved) == 500


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            '{"version": 1, "data": []}',
            "expected a list of objects, found an object with keys version, data; write one",
        ),
        ('"text"', "expected a list of objects, found a text"),
        ("[]", "c.json: the list is empty"),
        (" \n", "c.json: the file is empty"),
        ('[{"id": 1},\n 7]', "c.json:2: $[1]: expected an object, found a number"),
        ('[{"id": 1}\n {"id": 2}]', "c.json:2: not valid JSON: Expecting ',' delimiter (column 2)"),
        ('[{"id": 1},\n]', "c.json:2: not valid JSON"),
        ('[{"id": 1}', "c.json:1: not valid JSON"),
        ('[{"id": 1},', "c.json:1: not valid JSON"),
        ("[", "c.json:1: not valid JSON"),
        ("[{,}]", "c.json:1: not valid JSON"),
        ('[{"id": 1}]\n[]', "c.json:2: not valid JSON: Extra data"),
        ('{"id": 1}\n{"id": 2}', 'if each line is a record, set "format": "jsonl"'),
        ("[" * 100_000, "c.json: nested too deeply"),
        ('[{"id": 1, "x": ' + "[" * 100_000 + "]" * 100_000 + "}]", "c.json: nested too deeply"),
        ('[{"id": ' + "1" * 5000 + "}]", "too many digits; write it as a text"),
    ],
)
def test_c34_a_json_file_of_another_shape_is_told_what_was_expected(tmp_path: Path, text: str, said: str) -> None:
    message = complaint(written(tmp_path, "c.json", text))
    assert said in message
    assert "\n" not in message


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ('{"id": "b", "quest', "$: not valid JSON: Unterminated string starting at (column 13)"),
        ("[1]", '$: expected an object, found a list; if the file is one JSON document, set "format": "json"'),
        ("{", 'if the file is one JSON document, set "format": "json"'),
        ("null", "$: expected an object, found nothing"),
        ('{"id": 1, "x": ' + "[" * 100_000 + "]" * 100_000 + "}", "$: nested too deeply"),
        ('{"id": 1, "x": ' + "[" * 500 + "]" * 500 + "}", "$.metadata: nested deeper than 100 levels"),
        ('{"id": ' + "1" * 5000 + "}", "$: holds a number with too many digits"),
        ('{"id": 1, "must_contain": "abc"}', "$.must_contain: expected a list, found the text 'abc'"),
        ('{"id": 1, "must_contain": [null]}', "$.must_contain[0]: expected a text, found nothing"),
        ('{"id": 1, "question": 0}', "$.question: expected a text, found a number"),
        ('{"id": 1, "answerable": "maybe"}', "$.answerable: expected true or false, found a text"),
        ('{"id": 1, "gold_supports": [{"path": "x"}]}', "$.gold_supports[0].rel_path: required, but missing"),
        ('{"id": 1, "gold_supports": [{"rel_path": "x", "snipets": []}]}', "unknown key; did you mean 'snippets'?"),
        (
            '{"id": 1, "gold_supports": [{"rel_path": "x", "heading_path": 5}]}',
            "expected a list or a text, found a number",
        ),
        ('{"id": 1, "gold_supports": [{"rel_path": "x", "heading_path": [5]}]}', "heading_path[0]: expected a text"),
        ('{"id": 1, "required_support_groups": [[0]]}', "$: required_support_groups is given without gold_supports"),
        ('{"id": 1, "questoin": "?"}', "$: unknown field 'questoin'; did you mean 'question'?"),
        ('{"qid": 1, "text": "?"}', "$.id: required, but missing; the record has qid, text; if one of them is it, set"),
    ],
)
def test_one_bad_record_is_named_with_line_and_path_and_the_others_do_not_hide_it(
    tmp_path: Path, line: str, said: str
) -> None:
    message = complaint(written(tmp_path, "c.jsonl", f'{{"id": "a"}}\n{line}\n{{"id": "z"}}\n'))
    assert message.startswith("c.jsonl:2: ")
    assert said in message.splitlines()[0] + message.splitlines()[-1]


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ({"id": True}, "$.id: an id is text or a whole number"),
        ({"case_id": 1, "retrieved": [{"rank": 1}, {"rank": 1}]}, "$: case '1': retrieved: rank 1 comes twice"),
        ({"case_id": 1, "retrieved": [{}, {"rank": 1}]}, "rank 1 comes twice (a hit without a rank has its position)"),
        (
            {"case_id": 1, "retrieved": [{"content": "x"}]},
            '$.retrieved[0]: unknown key content; to read such hits, set "fields": {"retrieved[].text": "',
        ),
        ({"case_id": 1, "retrieved": [3]}, "$.retrieved[0]: expected an object, found a number"),
        ({"case_id": 1, "retrieved": [{"rank": 0}]}, "$.retrieved[0].rank: input should be greater than or equal to 1"),
        (
            {"case_id": 1, "usage": {"prompt_tokens": "a"}},
            "$.usage.prompt_tokens: expected a whole number, found a text",
        ),
        ({"case_id": 1, "latency_seconds": {"total": -1}}, "$.latency_seconds.total: input should be greater"),
        ({"case_id": 1, "citation": ["x"]}, "unknown field 'citation'; did you mean 'citations'?"),
    ],
)
def test_a_bad_output_is_named_with_its_path(tmp_path: Path, row: dict[str, Any], said: str) -> None:
    assert said in output_complaint(written(tmp_path, "o.jsonl", json.dumps(row)))


def test_twenty_problems_are_named_and_the_rest_is_counted(tmp_path: Path) -> None:
    rows = "".join(f'{{"id": {number % 50}}}\n' for number in range(100))
    lines = complaint(written(tmp_path, "c.jsonl", rows)).splitlines()
    assert len(lines) == 21
    assert lines[19] == "c.jsonl:70: $: id '19' is already on line 20"
    assert lines[20] == "... and 30 more"


def test_what_is_wrong_in_many_records_is_said_once(tmp_path: Path) -> None:
    rows = [{"id": n, "must_contain": f"text {n}", "tags": [1, 2]} for n in range(9)]
    path = written(tmp_path, "c.jsonl", "".join(json.dumps(row) + "\n" for row in [{"id": "x", "question": 5}, *rows]))
    others = "(the same in 8 more records, on lines 3, 4, 5, 6, 7 ...)"
    assert complaint(path).splitlines() == [
        "c.jsonl:1: $.question: expected a text, found a number",
        "c.jsonl:2: $.must_contain: expected a list, found the text 'text 0'; write it as a list of one " + others,
        "c.jsonl:2: $.tags[0]: expected a text, found a number " + others,
    ]
    path = written(tmp_path, "c.json", json.dumps({"results": rows[:2]}))
    assert complaint(path).splitlines()[1].endswith("found a number (the same in 1 more record)")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "c.csv: the file is empty"),
        ("\n\n", "c.csv: the file is empty"),
        ("id,question\n", "c.csv: the file has a header but no rows"),
        ("id,question,id\n1,a,2\n", "c.csv:1: column 'id' comes twice in the header; rename one of them"),
        ("id,question\n1,a\n2\n", "c.csv:3: $: 1 cells, but the header has 2"),
        ("id,question\n1,a,b\n", "c.csv:2: $: 3 cells, but the header has 2"),
        ('id,question\n1,a\n2,"b\n3,c\n', "c.csv:3: not valid CSV in the record that starts here: a quote is opened"),
        ('id,question\n1,"a"b\n', "c.csv:2: not valid CSV in the record that starts here"),
        ('id,must_contain\n1,"[a, b]"\n', "$: must_contain: starts like a list, but is not one"),
        ("id,gold_supports\n1,work/a.md\n", "$: gold_supports: expected JSON in this cell"),
        ("id,required_support_groups\n1,x y\n", "$: required_support_groups: expected JSON in this cell"),
        ("id,answerable\n1,perhaps\n", "$.answerable: expected true or false, found a text"),
        (",frage\n1,a\n", "$.id: required, but missing; the record has frage"),
    ],
)
def test_a_csv_file_that_cannot_be_read_is_told_why(tmp_path: Path, text: str, said: str) -> None:
    assert said in complaint(written(tmp_path, "c.csv", text))


def test_csv_cells_may_hold_quotes_line_feeds_and_a_megabyte(tmp_path: Path) -> None:
    big = "x" * 1_000_000
    path = written(tmp_path, "c.csv", f'\n"id",question\r\n1,"a ""b"",\r\nc"\r\n,\r\n2,{big}\r\n3.5,c\r\n1,again\r\n')
    message = complaint(path)
    # The record on line 3 takes two lines, so the duplicate of it stands on line 8.
    assert message == "c.csv:8: $: id '1' is already on line 3"
    path = written(tmp_path, "c.csv", f'id,question\n1,"a ""b"",\r\nc"\n2,{big}\n')
    assert [case.question for case in cases_of(path)] == ['a "b",\r\nc', big]


def test_csv_cells_are_read_by_the_type_of_their_field(tmp_path: Path) -> None:
    path = written(
        tmp_path,
        "c.csv",
        ",id,question,answerable,tags,gold_supports,expected_doc_ids,category,colour,n_in\n"
        '0,1,q,Yes,"[""a"", ""b""]","[{""rel_path"": ""x.md""}]",7,,red,3\n1,2,,,,,,,,\n',
    )
    first, second = cases_of(path, fields={"metadata.tokens": "n_in"})
    assert (first.answerable, first.tags, first.expected_doc_ids) == (True, ("a", "b"), ("7",))
    assert first.gold_supports[0].rel_path == "x.md"
    assert first.metadata == {"colour": "red", "tokens": "3"}
    assert (second.question, second.answerable, second.tags, second.expected_doc_ids) == ("", None, (), None)


def test_fields_are_renamed_nested_and_split_into_parts(tmp_path: Path) -> None:
    row = {"qid": 7, "resp": {"text": "yes"}, "ctx": ["a", "b"], "id": "row-1", "ms": 0.25, "n_in": 9, "cites": ["c1"]}
    path = written(tmp_path, "o.json", json.dumps([row]))
    fields = {
        "case_id": "qid",
        "answer": "resp.text",
        "retrieved": "ctx",
        "latency_seconds.total": "ms",
        "usage.prompt_tokens": "n_in",
        "citations": "cites",
    }
    (found,) = outputs_of(path, fields=fields)
    assert (found.case_id, found.answer, [hit.text for hit in found.retrieved]) == ("7", "yes", ["a", "b"])
    assert found.latency_seconds == {"total": 0.25}
    assert found.usage is not None
    assert found.usage.prompt_tokens == 9
    assert found.citations is not None
    assert found.citations[0].citation == "c1"
    assert found.metadata["id"] == "row-1"


def test_parts_can_come_from_csv_cells(tmp_path: Path) -> None:
    path = written(tmp_path, "o.csv", "id,answer,ms,tok\n1,a,0.5,9\n2,b,,\n")
    first, second = outputs_of(path, fields={"latency_seconds.total": "ms", "usage.prompt_tokens": "tok"})
    assert first.latency_seconds == {"total": 0.5}
    assert (second.latency_seconds, second.usage) == ({}, None)


@pytest.mark.parametrize(("value", "expected"), [("KES 5", ("KES 5",)), ("", ()), (["a", "b"], ("a", "b"))])
def test_a_text_that_is_mapped_to_reference_answers_is_the_one_right_answer(
    tmp_path: Path, value: Any, expected: tuple[str, ...]
) -> None:
    path = written(tmp_path, "c.json", json.dumps([{"id": 1, "truth": value}]))
    assert cases_of(path, fields={"reference_answers": "truth"})[0].reference_answers == expected


def test_a_field_that_is_mapped_and_also_there_keeps_both(tmp_path: Path) -> None:
    path = written(tmp_path, "c.jsonl", '{"qid": "q7", "id": "row-1"}')
    (case,) = cases_of(path, fields={"id": "qid"})
    assert (case.id, case.metadata) == ("q7", {"id": "row-1"})


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"questoin": "q"}, "\"fields\" names 'questoin', which is not a field of a case; did you mean 'question'?"),
        ({"id.x": "q"}, "\"fields\" names 'id.x', but id has no parts to map"),
        ({"question": "qustion"}, "c.jsonl: \"fields\" maps 'question' to 'qustion', which no record has; known: id"),
    ],
)
def test_a_mapping_that_cannot_be_meant_is_refused(tmp_path: Path, fields: dict[str, str], said: str) -> None:
    assert complaint(written(tmp_path, "c.jsonl", '{"id": 1}'), fields=fields).startswith(said)


def test_a_mapped_name_may_be_absent_from_single_records(tmp_path: Path) -> None:
    path = written(tmp_path, "c.jsonl", '{"id": 1}\n{"id": 2, "kind": "x"}')
    assert [case.category for case in cases_of(path, fields={"category": "kind"})] == [None, "x"]


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("none.jsonl", "none.jsonl: no such file"),
        ("none", "none: no such file"),
        ("none.run", "none.run: no such file"),
        ("folder.jsonl", "folder.jsonl: is a folder, expected a jsonl file"),
        ("cases.xml", "cases.xml: unknown extension '.xml'; set \"format\" to one of jsonl, json, csv, xlsx, yaml"),
        ("empty.jsonl", "empty.jsonl: the file is empty"),
        ("n" * 300 + ".jsonl", "cannot be read: File name too long"),
    ],
)
def test_a_file_that_is_not_there_or_holds_nothing(tmp_path: Path, name: str, said: str) -> None:
    (tmp_path / "folder.jsonl").mkdir()
    (tmp_path / "empty.jsonl").touch()
    (tmp_path / "cases.xml").touch()
    assert said in complaint(tmp_path / name)


def test_the_hash_of_a_file_is_over_its_bytes(tmp_path: Path) -> None:
    # SHA-256 of "abc", FIPS 180-2 appendix B.1
    expected = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
    assert file_sha256(written(tmp_path, "x", "abc")) == expected
    with pytest.raises(InputError, match="cannot be read: Is a directory"):
        file_sha256(tmp_path)


def test_lone_surrogates_never_leave_the_loader(tmp_path: Path) -> None:
    row = r'{"id": "1\ud800", "question": "a\udfffb", "note": {"k\ud800": "\ude00"}, "tags": ["\ud83d\ude00"]}'
    (case,) = cases_of(written(tmp_path, "c.jsonl", row))
    case.model_dump_json().encode("utf-8")
    assert (case.id, case.question, case.tags) == ("1\ufffd", "a\ufffdb", ("😀",))


def test_the_garbage_collector_is_as_it_was_after_loading(tmp_path: Path) -> None:
    path = written(tmp_path, "c.jsonl", '{"id": 1.5}')
    assert gc.isenabled()
    complaint(path)
    assert gc.isenabled()


@pytest.mark.slow
@pytest.mark.parametrize("name", ["o.jsonl", "o.json", "o.csv"])
def test_a_hundred_times_the_rows_take_no_more_than_their_share_of_time(tmp_path: Path, name: str) -> None:
    def seconds(n_rows: int) -> float:
        rows = [{"id": number, "answer": "word " * 20, "topic": "x"} for number in range(n_rows)]
        text = {
            "o.jsonl": "\n".join(map(json.dumps, rows)),
            "o.json": json.dumps(rows, indent=1),
            "o.csv": "id,answer,topic\n" + "".join(f"{row['id']},{row['answer']},x\n" for row in rows),
        }[name]
        path = written(tmp_path, name, text)
        start = time.process_time()
        assert len(outputs_of(path)) == n_rows
        return time.process_time() - start

    seconds(10)
    small = min(seconds(200) for _ in range(3))
    # Quadratic work would take a hundred times the share; three times leaves room for a busy machine.
    assert seconds(20_000) < 3 * 100 * max(small, 0.001)


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=12), inner, max_size=4),
    max_leaves=12,
)
FIELD_NAMES = st.sampled_from([*SystemOutput.model_fields, *Case.model_fields, "id", "note"]) | st.text(max_size=8)


@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(rows=st.lists(st.dictionaries(FIELD_NAMES, JSON_VALUES, max_size=5) | JSON_VALUES, min_size=1, max_size=4))
@pytest.mark.slow
def test_any_json_gives_records_that_can_be_written_or_one_line_errors(tmp_path: Path, rows: list[Any]) -> None:
    texts = {"o.jsonl": "\n".join(map(json.dumps, rows)), "o.json": json.dumps(rows)}
    for name, text in texts.items():
        path = written(tmp_path, name, text)
        for load in (cases_of, outputs_of):
            try:
                found = load(path)
            except InputError as error:
                assert all(line.startswith((str(path), "... and")) for line in str(error).split("\n"))
            else:
                for record in found:
                    json.dumps(record.model_dump(mode="json"), allow_nan=False, ensure_ascii=False).encode("utf-8")


@settings(max_examples=200, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.binary(max_size=200) | st.text(alphabet='[]{},:"\\ \n\r1ai\ufeff', max_size=60).map(str.encode))
@pytest.mark.parametrize("name", ["c.jsonl", "c.json", "c.csv"])
def test_any_bytes_give_cases_or_an_input_error(tmp_path: Path, name: str, data: bytes) -> None:
    try:
        cases_of(written(tmp_path, name, data))
    except InputError as error:
        assert str(tmp_path) in str(error)


def test_a_text_that_is_mapped_to_retrieved_is_the_one_passage_and_an_unmapped_one_is_refused(tmp_path: Path) -> None:
    path = written(tmp_path, "o.jsonl", '{"id": 1, "context": "one passage"}\n{"id": 2, "context": " "}')
    found = outputs_of(path, fields={"retrieved": "context"})
    assert [[hit.text for hit in output.retrieved] for output in found] == [["one passage"], []]
    message = output_complaint(written(tmp_path, "o.jsonl", '{"id": 1, "retrieved": "one passage"}'))
    assert message == "o.jsonl:1: $.retrieved: expected a list, found the text 'one passage'; write it as a list of one"


def test_the_hash_of_a_tsv_file_is_that_of_its_bytes_whatever_its_format(tmp_path: Path) -> None:
    path = tmp_path / "cases.tsv"
    for form, text in ((None, "id\tquestion\n1\tq\n"), ("inspect", "input\ttarget\nq\ta\n"), ("trec", "q1 0 d1 1\n")):
        path.write_text(text)
        assert data_sha256(DataFile(path="cases.tsv", format=form), path) == hashlib.sha256(text.encode()).hexdigest()
