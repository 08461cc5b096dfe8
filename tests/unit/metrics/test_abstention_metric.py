"""Abstention: sources, per-case scores, pooled F1."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judgekit.core.cases import Case, SystemOutput
from judgekit.core.judgments import Verdict
from judgekit.core.scores import Failed, NotApplicable
from judgekit.metrics.abstention import Abstention, abstained, abstention_f1, abstention_scores


def output_of(**fields: Any) -> SystemOutput:
    return SystemOutput.model_validate({"case_id": "q", **fields})


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"answer": "x", "abstained": True, "grounded": True}, (True, "flag")),
        ({"answer": "", "abstained": False, "grounded": False}, (False, "flag")),
        ({"answer": "x", "grounded": False}, (True, "grounded")),
        ({"answer": "x", "grounded": True}, (None, "judge")),
        ({"answer": "x"}, (None, "judge")),
        ({"answer": " \n"}, (True, "blank")),
        ({"answer": "", "grounded": True}, (True, "blank")),
        ({}, (None, "no_answer")),
        ({"answer": "", "error": {"kind": "api"}, "abstained": True}, (None, "error")),
    ],
)
def test_the_first_source_that_can_say_decides(fields: dict[str, Any], expected: object) -> None:
    output = output_of(**fields)
    assert abstained(output) == expected
    said = {"abstention": Verdict(answer=True)}
    assert Abstention().sources(output, said) == {"abstained": abstained(output)[1]}
    in_its_place = {"judge": "rule"}.get(abstained(output)[1], abstained(output)[1])
    assert Abstention().sources(output, {}) == {"abstained": in_its_place}


ANSWERABLE, UNANSWERABLE = NotApplicable("answerable is true"), NotApplicable("answerable is false")
NO_LABEL = NotApplicable("answerable is not labelled")
JUDGE_FAILED = Failed("judge invalid", by_judge=True)


@pytest.mark.parametrize(
    ("answerable", "fields", "expected"),
    [
        # abstained, then the three scores that go by the label
        (False, {"abstained": True}, [1.0, 1.0, 0.0, UNANSWERABLE]),
        (False, {"abstained": False}, [0.0, 0.0, 1.0, UNANSWERABLE]),
        (True, {"abstained": True}, [1.0, ANSWERABLE, ANSWERABLE, 1.0]),
        (True, {"abstained": False}, [0.0, ANSWERABLE, ANSWERABLE, 0.0]),
        (None, {"abstained": True}, [1.0, NO_LABEL, NO_LABEL, NO_LABEL]),
        # without a flag and without the judge, the shipped rule
        (False, {"answer": "x"}, [0.0, 0.0, 1.0, UNANSWERABLE]),
        (False, {"answer": "The notes do not say."}, [1.0, 1.0, 0.0, UNANSWERABLE]),
        (True, {"answer": "x"}, [0.0, ANSWERABLE, ANSWERABLE, 0.0]),
        (True, {"answer": "I don't know."}, [1.0, ANSWERABLE, ANSWERABLE, 1.0]),
        (
            True,
            {},
            [NotApplicable("no answer and no flag"), ANSWERABLE, ANSWERABLE, NotApplicable("no answer and no flag")],
        ),
        (False, {"error": {"kind": "api"}}, [Failed("api"), Failed("api"), Failed("api"), UNANSWERABLE]),
        (True, {"error": {"kind": "api"}}, [Failed("api"), ANSWERABLE, ANSWERABLE, Failed("api")]),
        (None, {"error": {"kind": "api"}}, [Failed("api"), NO_LABEL, NO_LABEL, NO_LABEL]),
    ],
)
def test_scores_go_by_the_label_of_the_case(
    answerable: bool | None, fields: dict[str, Any], expected: list[object]
) -> None:
    outcomes = Abstention().calculate(Case(id="q", answerable=answerable), output_of(**fields))
    assert list(outcomes.values()) == expected
    assert list(outcomes) == [column.name for column in Abstention().columns()]


def test_a_judge_verdict_gives_the_same_scores_as_a_flag() -> None:
    flagged = Abstention().calculate(Case(id="q", answerable=False), output_of(abstained=True))
    assert {"abstained": 1.0, **abstention_scores(False, True)} == flagged


@pytest.mark.parametrize(
    ("answerable", "fields", "said", "expected"),
    [
        (False, {"answer": "x"}, Verdict(answer=True), [1.0, 1.0, 0.0, UNANSWERABLE]),
        (False, {"answer": "x"}, Verdict(answer=False), [0.0, 0.0, 1.0, UNANSWERABLE]),
        (True, {"answer": "x"}, Verdict(answer=True), [1.0, ANSWERABLE, ANSWERABLE, 1.0]),
        (None, {"answer": "x"}, Verdict(answer=True), [1.0, NO_LABEL, NO_LABEL, NO_LABEL]),
        # a judge without a verdict leaves a gap, never a score
        (False, {"answer": "x"}, JUDGE_FAILED, [JUDGE_FAILED, JUDGE_FAILED, JUDGE_FAILED, UNANSWERABLE]),
        (True, {"answer": "x"}, JUDGE_FAILED, [JUDGE_FAILED, ANSWERABLE, ANSWERABLE, JUDGE_FAILED]),
        # where something else decides, the judge is not heard
        (False, {"answer": "x", "abstained": False}, Verdict(answer=True), None),
        (False, {"answer": "x", "grounded": False}, Verdict(answer=False), None),
        (False, {"answer": " "}, NotApplicable("blank answer"), None),
        (False, {}, NotApplicable("no answer"), None),
        (False, {"error": {"kind": "api"}}, Failed("api"), None),
    ],
)
def test_the_judge_decides_where_nothing_else_does(
    answerable: bool | None, fields: dict[str, Any], said: Verdict | NotApplicable | Failed, expected: object
) -> None:
    case = Case(id="q", answerable=answerable)
    outcomes = Abstention().calculate_judged(case, output_of(**fields), {"abstention": said})
    assert (list(outcomes.values()) or None) == expected
    assert list(outcomes) in ([], [column.name for column in Abstention().columns()])


@pytest.mark.parametrize(
    ("sums", "expected"),
    [
        ((3, 1, 2), 2 / 3),  # precision 3/5, recall 3/4: 2 * .6 * .75 / 1.35 = .6667
        ((4, 0, 0), 1.0),
        ((0, 2, 0), 0.0),
        ((0, 0, 1), 0.0),
        ((0, 0, 0), None),
    ],
)
def test_f1_of_abstaining_as_a_prediction_of_unanswerable(
    sums: tuple[float, float, float], expected: float | None
) -> None:
    assert abstention_f1(*sums) == pytest.approx(expected)


def test_the_pooled_figure_sums_columns_that_exist() -> None:
    (pooled,) = Abstention().pooled()
    assert pooled.name == "abstention_f1"
    assert pooled.over == tuple([column.name for column in Abstention().columns()][1:])
    assert pooled.function(3.0, 1.0, 2.0) == pytest.approx(2 / 3)


@given(st.lists(st.tuples(st.booleans(), st.booleans())))
def test_f1_is_that_of_precision_and_recall(cases: list[tuple[bool, bool]]) -> None:
    """`cases` holds (answerable, abstained)."""
    right = sum(not answerable and declined for answerable, declined in cases)
    missed = sum(not answerable and not declined for answerable, declined in cases)
    over = sum(answerable and declined for answerable, declined in cases)
    value = abstention_f1(right, missed, over)
    if right:
        precision, recall = right / (right + over), right / (right + missed)
        assert value == pytest.approx(2 * precision * recall / (precision + recall))
    else:
        assert value == (0.0 if missed or over else None)
