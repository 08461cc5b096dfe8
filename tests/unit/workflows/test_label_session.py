"""A person goes through a sheet: forwards, back, over, out, and on again another day."""

from pathlib import Path
from typing import Any

import pytest

from judgekit.core.cases import Criterion
from judgekit.core.human_labels import HumanLabel, LabelItem, Sheet
from judgekit.core.judgments import Verdict
from judgekit.core.verdict_kinds import Criteria, Kind, Labels, Scale, YesNo
from judgekit.workflows.label import Labelling
from judgekit.workflows.label_session import Session

BRAND = Labels(labels=("on", "off", "mixed"), passing=("on",), cannot_tell=True)
RULES = Criteria(
    criteria=(Criterion(id="short", text="It is short."), Criterion(id="next", text="It names a next step.")),
    cannot_tell=True,
)


def items(n: int, kind: Kind) -> list[LabelItem]:
    criteria = kind.criteria if isinstance(kind, Criteria) else ()
    return [
        LabelItem(f"c{number}", f"h{number}", {"question": ("Why?",), "answer": ("So.",)}, criteria)
        for number in range(n)
    ]


def labelling(n: int = 4, kind: Kind = Scale(pass_score=4), given: tuple[str, ...] = ()) -> Labelling:  # noqa: B008
    sheet = Sheet(
        run_id="r", judge="correctness", seed=1, n_population=9, case_ids=tuple(f"c{number}" for number in range(n))
    )
    before = {case_id: HumanLabel(case_id=case_id, verdict=Verdict(score=1)) for case_id in given}
    return Labelling(sheet, items(n, kind), kind, "ida", "5: right", before, Path("labels.jsonl"))


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
    session, kept = went_through("1 y", kind=YesNo())
    assert [line["label"] for line in kept] == ["yes"]
    assert session.n_labelled == 1


def test_a_label_is_typed_by_name_or_number_and_c_is_what_cannot_be_told() -> None:
    session, kept = went_through("OFF 3 c 0 4 y nowhere on", kind=BRAND)
    assert [line["label"] for line in kept] == ["off", "mixed", "cannot tell", "on"]
    assert session.current is None


def test_a_label_that_is_called_like_a_number_is_that_one() -> None:
    _, kept = went_through("1 2", kind=Labels(labels=("3", "2", "1")))
    assert [line["label"] for line in kept] == ["1", "2"]


def test_criteria_are_asked_about_one_after_the_other() -> None:
    session, kept = went_through("y", n=2, kind=RULES)
    assert kept == []
    assert session.criterion is not None
    assert session.criterion.id == "next"
    # back to the first one; then not met, and what cannot be told; half a case is never kept
    for text, step in (("b", "answered"), ("n", "answered"), ("2", "unread"), ("c", "labelled"), ("y", "answered")):
        assert session.answer(text) == step
    assert [line["label"] for line in kept] == [{"short": False, "next": "cannot tell"}]
    assert session.answer("q") == "quit"
    assert len(kept) == 1


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
