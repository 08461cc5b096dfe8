"""Scores as CSV: formulas are defused, numbers stay numbers."""

import csv
import io
import re
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judgekit.core.cases import Case, OutputError, SystemOutput
from judgekit.core.errors import ConfigError
from judgekit.core.judgments import FailureKind, Judgment, Verdict
from judgekit.core.runs import CaseRecord
from judgekit.reports.score_table import ScoreTable, defused


@pytest.mark.parametrize(
    ("text", "cell"),
    [
        ("=1+1", "'=1+1"),
        ("+1 555 0100", "'+1 555 0100"),
        ("-cmd", "'-cmd"),
        ("@SUM(A1)", "'@SUM(A1)"),
        ("\t=1", "'\t=1"),
        ("\r=1", "'\n=1"),
        ("  =1", "'  =1"),
        ("\n=1", "'\n=1"),
        ("\uff1d1", "'\uff1d1"),
        ("\x00=1", "\ufffd=1"),
        ("-5", "-5"),
        ("+3.25", "+3.25"),
        ("-1,000.5", "-1,000.5"),
        ("-5-5", "'-5-5"),
        ("\n\t=1", "'\n\t=1"),
        ("\n\t", "'\n\t"),
        ("plain = text", "plain = text"),
        ("", ""),
    ],
)
def test_a_text_that_a_spreadsheet_would_run_gets_an_apostrophe(text: str, cell: str) -> None:
    assert defused(text) == cell


@given(st.text(max_size=30))
def test_no_cell_begins_with_what_starts_a_formula_but_a_plain_number(text: str) -> None:
    cell = defused(text)
    start = cell.lstrip(" \n\u3000\xa0")[:1]
    assert start not in ("=", "@", "\t", "\r", "\uff1d", "\uff20")
    if start in ("+", "-"):
        float(cell.replace(",", ""))


def judgment(case_id: str, verdict: Verdict) -> Judgment:
    return Judgment(
        case_id=case_id,
        judge="groundedness",
        prompt_version="v1",
        prompt_sha256="0",
        input_sha256="0",
        model_id="m",
        provider="lexical",
        model="overlap-2",
        key="reply:2:0",
        parameters={},
        parser_version=2,
        created_at="2026-11-29T00:00:00+00:00",
        verdict=verdict,
    )


def record(case_id: str, question: str, answer: str | None, **scores: tuple[float | None, str | None]) -> CaseRecord:
    error = None if answer is not None else OutputError(kind="timeout")
    return CaseRecord(
        case_id=case_id,
        case=Case(id=case_id, question=question),
        output=SystemOutput(case_id=case_id, answer=answer, error=error),
        scores=scores,
    )


def test_the_table_has_a_row_a_case_and_empty_cells_where_there_is_no_number() -> None:
    records = [
        record("c1", "one\ntwo", 'a "b", c', mrr=(0.5, None), f1=(None, "n/a: no labels")),
        record("c2", "q", None, mrr=(None, "failed: timeout"), f1=(1.0, None)),
        CaseRecord(case_id="c3"),
    ]
    text = "".join(ScoreTable(["mrr", "f1", "unused"], records).csv_lines(records))
    rows = list(csv.reader(io.StringIO(text)))
    assert rows == [
        ["case_id", "question", "answer", "failure", "mrr", "f1"],
        ["c1", "one\ntwo", 'a "b", c', "", "0.5", ""],
        ["c2", "q", "", "system: no answer came in time (timeout)", "", "1.0"],
        ["c3", "", "", "", "", ""],
    ]


def test_a_judge_has_its_reason_beside_its_score_and_references_and_categories_are_there() -> None:
    case = Case(id="c1", question="q", reference_answers=("one", "two"), category="=cmd")
    given = judgment("c1", Verdict(score=4, reasoning="It is so."))
    records = [
        CaseRecord(case_id="c1", case=case, scores={"groundedness": (4.0, None)}, judgments=(given,)),
        CaseRecord(case_id="c2", scores={"groundedness": (None, "n/a: abstained")}),
    ]
    rows = list(csv.reader(io.StringIO("".join(ScoreTable(["groundedness"], records).csv_lines(records)))))
    assert rows == [
        ["case_id", "question", "reference", "category", "groundedness", "groundedness.reason"],
        ["c1", "q", "one\ntwo", "'=cmd", "4.0", "It is so."],
        ["c2", "", "", "", "", "n/a: abstained"],
    ]


def test_negative_scores_stay_numbers() -> None:
    records = [CaseRecord(case_id="c1", scores={"shift": (-0.25, None)})]
    [_, line] = ScoreTable(["shift"], records).csv_lines(records)
    assert line == "c1,-0.25\n"


def judged(case_id: str, metadata: dict[str, Any], kind: str = "timeout") -> CaseRecord:
    verdict = Verdict(score=4, reasoning="=well said")
    return CaseRecord(
        case_id=case_id,
        case=Case(id=case_id, question="q", metadata=metadata),
        output=SystemOutput(case_id=case_id, answer=None, error=OutputError(kind=kind)),
        scores={"groundedness": (4.0, None), "mrr": (0.5, None)},
        judgments=[judgment(case_id, verdict)],
    )


def header(records: list[CaseRecord], columns: list[str]) -> list[str]:
    return list(ScoreTable(["groundedness", "mrr"], records, columns).columns)


def test_a_colleague_gets_what_judges_say_and_other_columns_by_name() -> None:
    records = [judged("c1", {"topic": "=1+1"}), judged("c2", {})]
    first = ["case_id", "question", "failure"]
    own = ["groundedness", "groundedness.reason"]
    assert header(records, []) == [*first, *own]
    assert header(records, ["mrr"]) == [*first, *own, "mrr"]
    assert header(records, ["all"]) == [*first, *own, "mrr"]
    assert header(records, ["metadata.topic"]) == [*first, "metadata.topic", *own]
    table = ScoreTable(["groundedness", "mrr"], records, ["metadata.topic"])
    [_, row, empty] = csv.reader(io.StringIO("".join(table.csv_lines(records))))
    assert row == ["c1", "q", "system: no answer came in time (timeout)", "'=1+1", "4.0", "'=well said"]
    assert empty[3] == ""


def test_a_column_that_is_not_there_is_named_with_what_there_is() -> None:
    with pytest.raises(ConfigError, match=r"--columns: no column 'metadata.topik'; did you mean 'metadata.topic'"):
        header([judged("c1", {"topic": "x"})], ["metadata.topik"])


def test_a_column_asked_for_twice_stands_once_and_one_without_a_value_stands_all_the_same() -> None:
    records = [judged("c1", {"topic": "x"})]
    wanted = ["retrieved", "retrieved", "metadata.topic", "metadata.topic", "f1", "groundedness.reason"]
    table = ScoreTable(["groundedness", "mrr", "f1"], records, wanted)
    names = list(table.columns)
    assert (names.count("retrieved"), names.count("metadata.topic"), names[-1]) == (1, 1, "f1")
    [row] = map(table.row, records)
    assert len(row) == len(names)
    assert dict(zip(names, row, strict=True))["groundedness"] == 4.0


def test_a_failure_of_a_kind_of_the_systems_own_is_said_too() -> None:
    told = [judged("c1", {}, "blank_answer")]
    [_, row] = csv.reader(io.StringIO("".join(ScoreTable([], told, []).csv_lines(told))))
    assert row[2] == "system: failed (blank_answer)"


def test_without_judges_the_scores_of_metrics_are_there() -> None:
    assert "mrr" in ScoreTable(["mrr"], [record("c1", "q", "a", mrr=(0.5, None))], []).columns


def test_every_kind_of_failure_has_its_words() -> None:
    told = [judged("c1", {}, kind) for kind in get_args(FailureKind)]
    rows = list(csv.reader(io.StringIO("".join(ScoreTable([], told, []).csv_lines(told)))))
    assert all(re.fullmatch(r"system: [a-z -]+ \(\w+\)", row[2]) for row in rows[1:])
