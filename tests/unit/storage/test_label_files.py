"""Files of labels in every shape that people have them, and what is said of what cannot be read."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from judgekit.core.cases import Criterion
from judgekit.core.errors import ConfigError, InputError
from judgekit.core.human_labels import LabelFile, LabelItem, Sheet
from judgekit.core.judgments import Verdict
from judgekit.core.verdict_kinds import Criteria, Labels, Scale, YesNo
from judgekit.storage.label_files import read_labels, read_value
from judgekit.storage.label_sheets import LabelJournal, cell_text, read_sheet, write_sheet

SCORES = {None: Scale(pass_score=4), "j": Scale(pass_score=4)}

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
    found = read_labels(written(tmp_path, name, SHAPES[name]), SCORES)
    assert given_in(found) == TWO
    assert found.problems == ()


def test_a_column_for_each_annotator(tmp_path: Path) -> None:
    found = read_labels(written(tmp_path, "w.csv", "case_id,ida,tom,topic\na,5,3,kilns\nb,,0,clay\n"), SCORES)
    assert given_in(found) == {("a", "ida", 5, None), ("a", "tom", 3, None), ("b", "tom", 0, None)}
    assert [problem.partition(": ")[2] for problem in found.problems] == [
        "column 'topic' holds no label and is left out"
    ]


def test_what_is_no_label_is_named_with_its_line_and_the_rest_is_read(tmp_path: Path) -> None:
    text = "case_id,annotator,label\na,ida,4\nb,ida,good\nc,ida,3.5\n,ida,1\nd,ida,2,extra\ne,ida,0\n"
    found = read_labels(path := written(tmp_path, "l.csv", text), SCORES)
    assert {label.case_id for label in found.labels} == {"a", "e"}
    assert list(found.problems) == [
        f"{path}:3: case 'b': 'good' is not a label; expected a whole number, or yes or no",
        f"{path}:4: case 'c': 3.5 is not a whole number; give each annotator's label and not their mean",
        f"{path}:5: no case_id",
        f"{path}:6: 4 cells, but the header has 3",
    ]


def test_plain_excel_csv_in_cp1252_is_read_and_said(tmp_path: Path) -> None:
    found = read_labels(written(tmp_path, "l.csv", "case_id;annotator;label\na;José;4\n".encode("cp1252")), SCORES)
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
        read_labels(written(tmp_path, "l.csv", content), SCORES)


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"no\.csv: no such file"):
        read_labels(tmp_path / "no.csv", SCORES)


@pytest.mark.parametrize(
    ("value", "column", "label"),
    [
        (" 5 ", "label", 5),
        ("3,0", "label", 3),
        (-1, "label", -1),
        (1, "pass", True),
        ("0", "pass", False),
        (False, "score", False),
        ("NO", "label", False),
        ("", "label", None),
        (None, "label", None),
        (float("nan"), "label", "'nan' is not a label; expected a whole number, or yes or no"),
        ("inf", "label", "'inf' is not a label; expected a whole number, or yes or no"),
        (2, "pass", "2 is neither pass (1) nor fail (0)"),
        ([4], "label", "'[4]' is not a label; expected a whole number, or yes or no"),
    ],
)
def test_a_value_is_a_score_a_class_nothing_or_named(value: object, column: str, label: object) -> None:
    if isinstance(label, str):
        with pytest.raises(ValueError, match=re.escape(label)):
            read_value(value, SCORES[None], column)
    else:
        found = read_value(value, SCORES[None], column)
        assert (found.score if isinstance(found, Verdict) else found) == label


BRAND = Labels(labels=("on", "off brand", "3"), passing=("on",), cannot_tell=True)
RULES = Criteria(criteria=(Criterion(id="short", text="Short."), Criterion(id="next", text="A next step.")))


@pytest.mark.parametrize(
    ("value", "label"),
    [
        ("ON", "on"),
        (' "off  brand"', "off brand"),
        (3, "3"),
        ("cannot tell", "cannot tell"),
        ("pass", True),
        ("mixed", "'mixed' is not a label; expected one of on, off brand, 3, cannot tell"),
        (1, "'1' is not a label; expected one of"),
        ("", None),
    ],
)
def test_labels_are_read_by_name_whatever_their_case(value: object, label: object) -> None:
    try:
        found = read_value(value, BRAND)
    except ValueError as error:
        assert str(label) in str(error)
    else:
        assert (found.said if isinstance(found, Verdict) else found) == label


def test_yes_is_an_answer_of_a_yes_no_judge_whatever_passes() -> None:
    advice = YesNo(passing=False)
    assert [read_value(word, advice) for word in ("yes", "n", 1, "0", True)] == [
        Verdict(answer=answer) for answer in (True, False, True, False, True)
    ]
    assert read_value("fail", advice) is False
    with pytest.raises(ValueError, match="'maybe' is not a label; expected yes or no"):
        read_value("maybe", advice)


CRITERIA_FILES: dict[str, str] = {
    "columns.csv": "case_id,annotator,short,next\na,ida,yes,no\nb,ida,,\n",
    "object.jsonl": '{"case_id": "a", "annotator": "ida", "label": {"short": true, "next": 0}}\n',
    "annotators.jsonl": '{"case_id": "a", "labels": {"ida": {"short": "met", "next": "not met"}}}\n',
    "lines.csv": 'case_id,annotator,label\na,ida,"short = yes\nnext = no"\nb,ida,"short = \nnext = "\n',
}


@pytest.mark.parametrize("name", CRITERIA_FILES)
def test_criteria_stand_in_columns_objects_or_lines(tmp_path: Path, name: str) -> None:
    [label] = read_labels(written(tmp_path, name, CRITERIA_FILES[name]), {None: RULES}).labels
    assert (label.case_id, label.annotator, label.value) == ("a", "ida", {"short": True, "next": False})


def test_what_is_neither_met_nor_not_met_is_named(tmp_path: Path) -> None:
    text = "case_id,short,next\na,yes,perhaps\nb,yes,cannot tell\nc,no,no\n"
    found = read_labels(written(tmp_path, "l.csv", text), {None: RULES})
    assert [label.case_id for label in found.labels] == ["c"]
    assert [problem.partition(": case ")[2] for problem in found.problems] == [
        "'a': 'perhaps' for 'next' is not a label; expected yes or no",
        "'b': 'cannot tell' for 'next' is not a label; expected yes or no",
    ]


def test_each_judge_has_labels_of_its_own_kind(tmp_path: Path) -> None:
    rows = [("brand", "on"), ("brand", "4"), ("tone", "4"), ("tone", "on"), ("gone", "anything")]
    text = "".join(f'{{"case_id": "a", "judge": "{judge}", "label": "{label}"}}\n' for judge, label in rows)
    found = read_labels(written(tmp_path, "l.jsonl", text), {"brand": BRAND, "tone": Scale()})
    assert [(label.judge, label.value) for label in found.labels] == [
        ("brand", "on"),
        ("tone", 4),
        ("gone", "anything"),
    ]
    assert len(found.problems) == 2


@given(
    st.one_of(st.text(), st.integers(), st.floats(), st.booleans(), st.none()),
    st.sampled_from([Scale(), YesNo(), BRAND, RULES, None]),
)
def test_any_value_is_a_label_nothing_or_refused_in_words(value: object, kind: Any) -> None:
    try:
        found = read_value(value, kind)
    except ValueError as error:
        assert "label" in str(error)
    else:
        assert found is None or isinstance(found, bool | Verdict)


# The file that grows


def test_a_torn_line_is_cut_off_before_more_is_written(tmp_path: Path) -> None:
    path = written(tmp_path, "labels.jsonl", '{"case_id": "a", "judge": "j", "score": 4}\n{"case_id": "b", "sc')
    journal = LabelJournal(path)
    journal.keep({"case_id": "b", "judge": "j", "score": 1})
    journal.close()
    assert [(label.case_id, label.score) for label in read_labels(path, SCORES).labels] == [("a", 4), ("b", 1)]


def test_a_last_line_that_is_whole_stays(tmp_path: Path) -> None:
    path = written(tmp_path, "labels.jsonl", '{"case_id": "a", "score": 4}')
    journal = LabelJournal(path)
    journal.keep({"case_id": "b", "score": 1})
    journal.close()
    assert [label.case_id for label in read_labels(path, SCORES).labels] == ["a", "b"]


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


def item(case_id: str, criteria: tuple[Criterion, ...] = (), **shown: Any) -> LabelItem:
    texts = {"question": ("Why?",), "passages": ("[1] a.md\nText.",), "answer": ("So.",), **shown}
    return LabelItem(case_id=case_id, input_sha256="0" * 64, shown=texts, criteria=criteria)


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
    write_sheet(path, sheet_of(items), items, SCORES[None])
    back = read_sheet(filled(path, delimiter, encoding, mangle), {"correctness": SCORES[None]})
    assert [row.key for row in back.rows] == [one.key for one in items]
    assert len({one.key for one in items}) == len(items)
    assert (back.judge, back.seed, back.n) == ("correctness", 7, len(items))
    assert {row.label for row in back.rows} == {Verdict(score=4)}


def test_a_sheet_holds_no_formula_no_verdict_and_no_cell_that_is_too_long(tmp_path: Path) -> None:
    items = [
        item(
            "=1+1",
            answer=("=cmd|x",),
            question=("@a",),
            passages=("w" * 50_000,),
            references=("\r=x",),
            **dict[str, Any]({"=x": ("y",)}),
        )
    ]
    path = tmp_path / "sheet.csv"
    write_sheet(path, sheet_of(items), items, SCORES[None])
    import csv

    with path.open(encoding="utf-8-sig", newline="") as stream:
        rows = list(csv.reader(stream))
    assert all(not cell.lstrip().startswith(("=", "+", "-", "@")) for row in rows for cell in row)
    assert max(map(len, rows[1])) < 32_767
    assert rows[0][-4:] == ["label", "annotator", "comment", "sheet"]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.text())
def test_a_cell_never_runs_as_a_formula(text: str) -> None:
    cell = cell_text(text)
    if cell.lstrip().startswith(("=", "+", "-", "@")):
        float(cell.replace(",", ""))  # a plain number
    assert all(character == "\n" or ord(character) >= 32 for character in cell)


def test_a_sheet_of_criteria_has_a_line_for_each_and_comes_back(tmp_path: Path) -> None:
    import csv

    path = tmp_path / "sheet.csv"
    items = [item(case_id, RULES.criteria) for case_id in ("a", "b", "c")]
    write_sheet(path, sheet_of(items), items, RULES)
    with path.open(encoding="utf-8-sig", newline="") as stream:
        rows = list(csv.DictReader(stream))
    assert rows[0]["label"] == "short = \nnext = "
    assert rows[0]["expected"] == "no | yes\nshort: Short.\nnext: A next step."
    rows[0]["label"] = "short = yes\nnext = No"
    rows[1]["label"] = "short = maybe\nnext = no"
    with path.open("w", encoding="utf-8-sig", newline="") as stream:
        writer = csv.DictWriter(stream, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    back = read_sheet(path, {"correctness": RULES})
    [row] = back.rows
    assert isinstance(row.label, Verdict)
    assert [(one.id, one.met) for one in row.label.criteria or ()] == [("short", True), ("next", False)]
    assert back.n_blank == 1
    assert "'maybe' for 'short' is not a label" in back.problems[0]


def test_a_sheet_is_never_written_over(tmp_path: Path) -> None:
    path = written(tmp_path, "sheet.csv", "labels of a week")
    with pytest.raises(ConfigError, match="exists already"):
        write_sheet(path, sheet_of([item("a")]), [item("a")], SCORES[None])
    assert path.read_text() == "labels of a week"


def test_a_sheet_of_another_kind_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="expected the columns key"):
        read_sheet(written(tmp_path, "s.csv", "a,b\n1,2\n"), SCORES)


def test_a_sheet_line_says_what_was_drawn(tmp_path: Path) -> None:
    sheet = sheet_of([item("a"), item("b")])
    path = written(tmp_path, "l.jsonl", json.dumps({"sheet": sheet.model_dump(mode="json")}) + "\n")
    assert read_labels(path, SCORES).sheets == (sheet,)
    path.write_text('{"sheet": {"run_id": "r"}}\n{"case_id": "a", "score": 1}\n')
    found = read_labels(path, SCORES)
    assert found.sheets == ()
    assert "damaged sheet" in found.problems[0]


def test_a_label_that_is_taken_back_gives_way_to_the_one_before_it(tmp_path: Path) -> None:
    def line(**more: Any) -> str:
        return json.dumps({"case_id": "a", "judge": "j", "annotator": "ida", **more})

    lines = [line(score=4, comment="fine"), line(score=1, revised=True), line(annotator="tom", score=2)]
    back = line(taken_back=True)
    found = read_labels(written(tmp_path, "once.jsonl", "\n".join([*lines, back])), SCORES)
    assert [(label.annotator, label.score, label.comment) for label in found.labels] == [
        ("ida", 4, "fine"),
        ("tom", 2, ""),
    ]
    twice = read_labels(written(tmp_path, "twice.jsonl", "\n".join([*lines, back, back, back])), SCORES)
    assert [label.annotator for label in twice.labels] == ["tom"]
    again = read_labels(written(tmp_path, "again.jsonl", "\n".join([*lines, back, line(score=5)])), SCORES)
    assert [label.score for label in again.labels] == [4, 2, 5]
