"""What the labelling page is told of a case: how it can be answered, and what was said before."""

from typing import Any

import pytest

from judgekit.core.cases import Criterion
from judgekit.core.human_labels import HumanLabel, LabelItem
from judgekit.core.judgments import CriterionVerdict, Verdict
from judgekit.core.verdict_kinds import Criteria, Kind, Labels, Scale, YesNo
from judgekit.reports.label_page import LabelPage
from judgekit.reports.label_text import choices
from judgekit.workflows.label_session import typed_label

KINDS = [
    Scale(),
    Scale(low=-2, high=10, cannot_tell=True),
    YesNo(cannot_tell=True),
    Labels(labels=("on", "off", "mixed"), cannot_tell=True),
    Labels(labels=("3", "1", "2")),
]
SHORT = Criterion(id="short", text="It is short.")


def told(kind: Kind, label: HumanLabel | None = None, criteria: tuple[Criterion, ...] = ()) -> dict[str, Any]:
    page = LabelPage("r", "j", "", "", kind, {})
    return page.case(LabelItem("c1", "h1", {"passages": ("p",), "answer": ("a",), "key_facts": ()}, criteria), label)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.kind)
def test_what_stands_beside_a_choice_is_read_as_that_choice(kind: Kind) -> None:
    found = choices(kind, {})
    assert len({item.typed for item in found}) == len(found)
    for item in found:
        label = typed_label(item.typed, kind)
        assert isinstance(label, Verdict)
        own = HumanLabel(case_id="c1", verdict=label)
        assert own.value == item.value
        assert told(kind, own)["questions"][0]["chosen"] == item.typed


def test_a_score_of_a_long_scale_is_typed() -> None:
    question = told(Scale(high=100), HumanLabel(case_id="c1", verdict=Verdict(score=57)))["questions"][0]
    assert (question["bounds"], question["choices"], question["chosen"]) == ([0, 100], [], "57")


def test_each_criterion_is_a_question() -> None:
    kind = Criteria(criteria=(SHORT,), cannot_tell=True)
    said = Verdict(criteria=(CriterionVerdict(id="short", met=False),))
    found = told(kind, HumanLabel(case_id="c1", verdict=said, comment="why"), (SHORT,))
    (question,) = found["questions"]
    assert (question["name"], question["text"], question["chosen"]) == ("short", "It is short.", "n")
    assert [item["typed"] for item in question["choices"]] == ["y", "n", "c"]
    assert (found["given"], found["comment"]) == ("short no", "why")


def test_passages_stand_last_and_what_is_empty_is_left_out() -> None:
    assert [part["title"] for part in told(Scale())["shown"]] == ["Answer", "Passages"]
