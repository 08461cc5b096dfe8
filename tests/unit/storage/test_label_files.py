"""Files of labels in every shape that people have them, and what is said of what cannot be read."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from judgekit.core.errors import ConfigError, InputError
from judgekit.core.human_labels import LabelFile, LabelItem, Sheet
from judgekit.storage.label_files import read_labels, read_value
from judgekit.storage.label_sheets import LabelJournal, cell_text, read_sheet, write_sheet

Given = set[tuple[str, str, int | None, bool | None]]


def written(folder: Path, name: str, content: str | bytes) -> Path:
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def given_in(found: LabelFile) -> Given:
    return {(label.case_id, label.annotator, label.score, label.passed) for label in found.labels}


TWO: Given = {("a", "ida", 4, None), ("b", "ida", None, True)}

SHAPES: dict[str, str | bytes] = {
    "long.csv": "case_id,annotator,label\na,ida,4\nb,ida,yes\n",
    "crlf.csv": "case_id,annotator,label\r\na,ida,4\r\nb,ida,yes\r\n",
    "semicolons.csv": "case_id;annotator;label\na;ida;4\nb;ida;JA\n".replace("JA", "TRUE"),
    "tabs.tsv": "case_id\tannotator\tlabel\na\tida\t4\nb\tida\tpass\n",
    "excel.csv": "\ufeffsep=;\r\ncase_id;annotator;label\r\na;ida;4,0\r\nb;ida;Yes\r\n",
    "utf16.csv": "case_id,annotator,label\na,ida,4\nb,ida,true\n".encode("utf-16"),
    "wide.csv": "case_id,question,ida\na,Why?,4\nb,How?,y\n",
    "rows.jsonl": '{"case_id": "a", "annotator": "ida", "score": 4}\n{"id": "b", "annotator": "ida", "pass": 1}\n',
    "nested.jsonl": '{"case_id": "a", "labels": {"ida": 4}}\n{"case_id": "b", "labels": {"ida": true, "tom": null}}\n',
    "list.json": '[{"case_id": "a", "ida": 4}, {"case_id": "b", "ida": true}]',
    "torn.jsonl": '{"case_id": "a", "ida": 4}\n{"case_id": "b", "ida": true}\n{"case_id": "c", "id',
}


@pytest.mark.parametrize("name", SHAPES)
def test_every_shape_gives_the_same_two_labels(tmp_path: Path, name: str) -> None:
    found = read_labels(written(tmp_path, name, SHAPES[name]))
    assert given_in(found) == TWO
    assert found.problems == ()


def test_a_column_for_each_annotator(tmp_path: Path) -> None:
    found = read_labels(written(tmp_path, "w.csv", "case_id,ida,tom,topic\na,5,3,kilns\nb,,0,clay\n"))
    assert given_in(found) == {("a", "ida", 5, None), ("a", "tom", 3, None), ("b", "tom", 0, None)}
    assert [problem.partition(": ")[2] for problem in found.problems] == [
        "column 'topic' holds no label and is left out"
    ]


def test_what_is_no_label_is_named_with_its_line_and_the_rest_is_read(tmp_path: Path) -> None:
    text = "case_id,annotator,label\na,ida,4\nb,ida,good\nc,ida,3.5\n,ida,1\nd,ida,2,extra\ne,ida,0\n"
    found = read_labels(path := written(tmp_path, "l.csv", text))
    assert {label.case_id for label in found.labels} == {"a", "e"}
    assert list(found.problems) == [
        f"{path}:3: case 'b': 'good' is not a label; expected a whole number, or yes or no",
        f"{path}:4: case 'c': 3.5 is not a whole number; give each annotator's label and not their mean",
        f"{path}:5: no case_id",
        f"{path}:6: 4 cells, but the header has 3",
    ]


def test_plain_excel_csv_in_cp1252_is_read_and_said(tmp_path: Path) -> None:
    found = read_labels(written(tmp_path, "l.csv", "case_id;annotator;label\na;José;4\n".encode("cp1252")))
    assert given_in(found) == {("a", "José", 4, None)}
    assert "cp1252" in found.problems[0]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "the file is empty"),
        ("case_id,label\n", "holds no label"),
        ("question,answer\nWhy?,So.\n", "no case_id"),
        ("case_id,label,label\na,1,2\n", "column 'label' comes twice"),
    ],
)
def test_a_file_without_a_label_is_refused(tmp_path: Path, content: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        read_labels(written(tmp_path, "l.csv", content))


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"no\.csv: no such file"):
        read_labels(tmp_path / "no.csv")


@pytest.mark.parametrize(
    ("value", "column", "label"),
    [
        (" 5 ", "label", (5, None)),
        ("3,0", "label", (3, None)),
        (-1, "label", (-1, None)),
        (1, "pass", (None, True)),
        ("0", "pass", (None, False)),
        (False, "score", (None, False)),
        ("NO", "label", (None, False)),
        ("", "label", None),
        (None, "label", None),
        (float("nan"), "label", "'nan' is not a label; expected a whole number, or yes or no"),
        ("inf", "label", "'inf' is not a label; expected a whole number, or yes or no"),
        (2, "pass", "2 is neither pass (1) nor fail (0)"),
        ([4], "label", "'[4]' is not a label; expected a whole number, or yes or no"),
    ],
)
def test_a_value_is_a_score_a_class_nothing_or_named(value: object, column: str, label: object) -> None:
    assert read_value(value, column) == label


@given(st.one_of(st.text(), st.integers(), st.floats(), st.booleans(), st.none()))
def test_any_value_is_one_of_these(value: object) -> None:
    found = read_value(value)
    assert found is None or isinstance(found, str) or sum(part is None for part in found) == 1


# The file that grows


def test_a_torn_line_is_cut_off_before_more_is_written(tmp_path: Path) -> None:
    path = written(tmp_path, "labels.jsonl", '{"case_id": "a", "judge": "j", "score": 4}\n{"case_id": "b", "sc')
    journal = LabelJournal(path)
    journal.keep({"case_id": "b", "judge": "j", "score": 1})
    journal.close()
    assert [(label.case_id, label.score) for label in read_labels(path).labels] == [("a", 4), ("b", 1)]


def test_a_last_line_that_is_whole_stays(tmp_path: Path) -> None:
    path = written(tmp_path, "labels.jsonl", '{"case_id": "a", "score": 4}')
    journal = LabelJournal(path)
    journal.keep({"case_id": "b", "score": 1})
    journal.close()
    assert [label.case_id for label in read_labels(path).labels] == ["a", "b"]


# Sheets

NASTY = (
    "=1+1",
    "+SUM(A1)",
    "-7",
    "@x",
    "\tx",
    "007",
    "1e5",
    "MAR1",
    "2025-01-02",
    "'q",
    "q;1",
    'q"1',
    "line\nfeed",
    "ü",
)


def item(case_id: str, **fields: Any) -> LabelItem:
    about = {"question": "Why?", "answer": "So.", "passages": (("a.md", "Text."),), "references": ()}
    return LabelItem(
        **{"case_id": case_id, "input_sha256": "0" * 64, "key_facts": (), "citations": (), **about, **fields}
    )


def sheet_of(items: list[LabelItem]) -> Sheet:
    ids = tuple(one.case_id for one in items)
    return Sheet(run_id="r", judge="correctness", seed=7, n_population=40, case_ids=ids)


def filled(path: Path, delimiter: str, encoding: str, mangle: bool) -> Path:
    """The sheet as a spreadsheet program saves it, with a 4 in every row, and ids that look like numbers changed."""
    import csv
    import io

    rows = list(csv.reader(io.StringIO(path.read_bytes().decode("utf-8-sig"), newline="")))
    at = {name: place for place, name in enumerate(rows[0])}
    for row in rows[1:]:
        row[at["label"]] = "4"
        if mangle:
            row[at["case_id"]] = "1.00E+05"
    stream = io.StringIO()
    csv.writer(stream, delimiter=delimiter, lineterminator="\r\n").writerows(rows)
    saved = path.with_name("saved.csv")
    saved.write_bytes(stream.getvalue().encode(encoding))
    return saved


@pytest.mark.parametrize(("delimiter", "encoding"), [(",", "utf-8-sig"), (";", "utf-8-sig"), (";", "cp1252")])
@pytest.mark.parametrize("mangle", [False, True])
def test_a_sheet_comes_back_with_every_case(tmp_path: Path, delimiter: str, encoding: str, mangle: bool) -> None:
    items = [item(case_id) for case_id in NASTY]
    path = tmp_path / "sheet.csv"
    write_sheet(path, sheet_of(items), items)
    back = read_sheet(filled(path, delimiter, encoding, mangle))
    assert [row.key for row in back.rows] == [one.key for one in items]
    assert len({one.key for one in items}) == len(items)
    assert (back.judge, back.seed, back.n) == ("correctness", 7, len(items))
    assert {row.score for row in back.rows} == {4}


def test_a_sheet_holds_no_formula_no_verdict_and_no_cell_that_is_too_long(tmp_path: Path) -> None:
    items = [item("=1+1", answer="=cmd|x", question="@a", passages=(("s", "w" * 50_000),), references=("\r=x",))]
    path = tmp_path / "sheet.csv"
    write_sheet(path, sheet_of(items), items)
    import csv

    with path.open(encoding="utf-8-sig", newline="") as stream:
        rows = list(csv.reader(stream))
    assert all(not cell.lstrip().startswith(("=", "+", "-", "@")) for cell in rows[1])
    assert max(map(len, rows[1])) < 32_767
    assert rows[0][-4:] == ["label", "annotator", "comment", "sheet"]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.text())
def test_a_cell_never_runs_as_a_formula(text: str) -> None:
    cell = cell_text(text)
    assert not cell.lstrip().startswith(("=", "+", "-", "@"))
    assert all(character == "\n" or ord(character) >= 32 for character in cell)


def test_a_sheet_is_never_written_over(tmp_path: Path) -> None:
    path = written(tmp_path, "sheet.csv", "labels of a week")
    with pytest.raises(ConfigError, match="exists already"):
        write_sheet(path, sheet_of([item("a")]), [item("a")])
    assert path.read_text() == "labels of a week"


def test_a_sheet_of_another_kind_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="expected the columns key"):
        read_sheet(written(tmp_path, "s.csv", "a,b\n1,2\n"))


def test_a_sheet_line_says_what_was_drawn(tmp_path: Path) -> None:
    sheet = sheet_of([item("a"), item("b")])
    path = written(tmp_path, "l.jsonl", json.dumps({"sheet": sheet.model_dump(mode="json")}) + "\n")
    assert read_labels(path).sheets == (sheet,)
    path.write_text('{"sheet": {"run_id": "r"}}\n{"case_id": "a", "score": 1}\n')
    found = read_labels(path)
    assert found.sheets == ()
    assert "damaged sheet" in found.problems[0]
