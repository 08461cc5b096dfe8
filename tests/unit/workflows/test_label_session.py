"""A person goes through a sheet: forwards, back, over, out, and on again another day."""

from pathlib import Path
from typing import Any

import pytest

from judgekit.core.human_labels import HumanLabel, LabelItem, Sheet
from judgekit.workflows.label import Labelling, Session


def items(n: int) -> list[LabelItem]:
    return [LabelItem(f"c{number}", f"h{number}", "Why?", "So.", (), (), (), ()) for number in range(n)]


def labelling(n: int = 4, scale: tuple[int, int] = (0, 5), given: tuple[str, ...] = ()) -> Labelling:
    sheet = Sheet(
        run_id="r", judge="correctness", seed=1, n_population=9, case_ids=tuple(f"c{number}" for number in range(n))
    )
    before = {case_id: HumanLabel(case_id=case_id, score=1) for case_id in given}
    return Labelling(sheet, items(n), scale, "ida", "5: right", before, Path("labels.jsonl"))


def went_through(typed: str, **about: Any) -> tuple[Session, list[dict[str, Any]]]:
    kept: list[dict[str, Any]] = []
    session = Session(labelling(**about), kept.append)
    for text in typed.split():
        session.answer(text)
    return session, kept


def test_labels_are_kept_as_they_come_with_what_was_labelled() -> None:
    session, kept = went_through("5 n")
    assert kept == [
        {"case_id": "c0", "judge": "correctness", "annotator": "ida", "input_sha256": "h0", "score": 5},
        {"case_id": "c1", "judge": "correctness", "annotator": "ida", "input_sha256": "h1", "pass": False},
    ]
    assert session.current is not None
    assert session.current.case_id == "c2"
    assert session.place == "3 of 4, 2 labelled"


@pytest.mark.parametrize(
    ("typed", "labels"),
    [
        ("1 2 3 4", ["c0 1", "c1 2", "c2 3", "c3 4"]),
        ("1 s 3", ["c0 1", "c2 3"]),
        ("1 b 2 3", ["c0 1", "c0 2 revised", "c1 3"]),
        ("b 1", ["c0 1"]),
        ("s b 1 2", ["c0 1", "c1 2"]),
        ("6 x ? 2", ["c0 2"]),
        ("1 2 b b 5 4", ["c0 1", "c1 2", "c0 5 revised", "c2 4"]),
        ("s s s s", []),
    ],
)
def test_every_way_through_a_sheet(typed: str, labels: list[str]) -> None:
    _, kept = went_through(typed)
    found = [f"{line['case_id']} {line['score']}{' revised' if line.get('revised') else ''}" for line in kept]
    assert found == labels


def test_what_is_not_understood_is_said_and_nothing_is_kept() -> None:
    session, kept = went_through("")
    for text, message in (
        ("9", "9 is off the scale of 0 to 5"),
        ("maybe", "'maybe' is not a label"),
        ("", "type a label"),
    ):
        assert session.answer(text) == "unread"
        assert message in session.message
    assert session.answer("?") == "help"
    assert session.answer("q") == "quit"
    assert kept == []


def test_a_yes_no_judge_takes_y_and_n_only() -> None:
    session, kept = went_through("1 y", scale=(0, 1))
    assert [line["pass"] for line in kept] == [True]
    assert session.n_labelled == 1


def test_another_day_goes_on_with_the_first_case_without_a_label() -> None:
    session, kept = went_through("3", given=("c0", "c2"))
    assert [line["case_id"] for line in kept] == ["c1"]
    assert session.current is not None
    assert session.current.case_id == "c3"
    session.answer("b")
    session.answer("0")
    assert kept[-1] == {**kept[-1], "case_id": "c2", "revised": True}


def test_at_the_end_there_is_nothing_left() -> None:
    session, _ = went_through("1 2 3 4")
    assert session.current is None
    assert session.answer("5") == "quit"
