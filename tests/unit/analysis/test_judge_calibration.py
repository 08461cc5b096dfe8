"""A judge against people: every figure of a small table worked out by hand."""

from dataclasses import replace
from typing import Any

import pytest

from judgekit.analysis.judge_calibration import baseline_report, calibration_report, comparator_report
from judgekit.analysis.label_sets import Part, Readings, corrected_report
from judgekit.analysis.labelled_cases import LabelledCase
from judgekit.core.human_labels import HumanLabel
from judgekit.core.judgments import Verdict
from judgekit.core.verdict_kinds import Scale

SCALE = Scale(pass_score=4)


def case(case_id: str, scores: tuple[int, ...], judge: int, cluster: str | None = None) -> LabelledCase:
    labels = tuple(HumanLabel(case_id=case_id, verdict=Verdict(score=score)) for score in scores)
    return LabelledCase(case_id, cluster, labels, Verdict(score=judge), SCALE)


# people 5 5 4 4 2 0 (medians, the lower of two), judge 5 4 4 2 4 0
SIX = [
    case("a", (5, 5), 5),
    case("b", (5, 5), 4),
    case("c", (4, 5), 4),
    case("d", (4, 4), 2),
    case("e", (2, 3), 4),
    case("f", (0, 0), 0),
]


def report(cases: list[LabelledCase], cluster_by: str | None = None) -> dict[str, Any]:
    return calibration_report(cases, SCALE, cluster_by)


def test_the_judge_is_right_as_often_as_counting_says() -> None:
    found = report(SIX)
    # people pass a, b, c, d, of which the judge passes a, b, c; they fail e, f, of which it fails f
    assert (found["sensitivity"]["value"], found["sensitivity"]["n"]) == (0.75, 4)
    assert (found["specificity"]["value"], found["specificity"]["n"]) == (0.5, 2)
    assert found["class_agreement"]["k"] == 4
    assert found["youden"] == pytest.approx(0.25)
    # differences to the means 5 5 4.5 4 2.5 0: 0 -1 -0.5 -2 +1.5 0, which sum to -2
    assert found["bias"]["value"] == pytest.approx(-2 / 6)
    assert found["pass_bias"]["value"] == 0.0
    assert found["confusion"]["rows"][5] == [0, 0, 0, 0, 1, 1]
    assert found["confusion"]["rows"][2] == [0, 0, 0, 0, 1, 0]
    # kappa of classes: agreement 4/6, by chance (4*4 + 2*2)/36 = 20/36: (24 - 20) / (36 - 20) = 0.25
    assert found["agreement"]["class"]["cohen_kappa"]["value"] == pytest.approx(0.25)
    assert found["agreement"]["score"]["exact"] == pytest.approx(3 / 6)
    # annotators agree on the class everywhere; on the score all but in c and e
    assert found["humans"]["ceiling"]["value"] == 1.0
    assert found["humans"]["ceiling_exact_score"]["value"] == pytest.approx(4 / 6)
    by_threshold = {row["threshold"]: row["agreement"]["k"] for row in found["thresholds"]}
    # passing from 5 on: a of the four, e and f failed: 3 right; from 1 on: four right, e wrong, f right: 5
    assert by_threshold == {1: 5, 2: 5, 3: 4, 4: 4, 5: 3}


def test_no_direction_is_claimed_under_fifty_labels() -> None:
    lenient = [case(f"c{number}", (number % 3,), number % 3 + 1 + number % 2) for number in range(50)]
    assert report(lenient)["bias"]["direction"] == "lenient"
    few = report(lenient[:49])["bias"]
    assert few["low"] > 0
    assert few["direction"] is None
    assert few["direction_reason"] == "no direction is claimed under 50 labels (49)"


def test_answers_to_one_question_count_as_a_cluster() -> None:
    # the same case five times: as single cases the interval is far too narrow
    alike = [
        case(f"{question}{copy}", (score,), score - 1 - question % 2, str(question))
        for question, score in enumerate([5, 4, 3, 5, 4, 3, 5, 4])
        for copy in range(5)
    ]
    alone = [replace(c, cluster=None) for c in alike]
    clustered, single = report(alike, "question")["bias"], report(alone)["bias"]
    assert clustered["n_clusters"] == 8
    assert single["n_clusters"] == 40
    assert clustered["value"] == single["value"]
    # variance of a mean of 8 clusters of 5 equal cases: about 5 times that of 40 single ones
    assert clustered["standard_error"] / single["standard_error"] == pytest.approx((5 * 39 / 40 * 8 / 7) ** 0.5)


def test_equal_scores_give_null_with_a_reason() -> None:
    found = report([case(f"c{number}", (4,), 4) for number in range(30)])
    score = found["agreement"]["score"]
    assert score["quadratic_weighted_kappa"]["value"] is None
    assert score["gwet_ac2"]["value"] is None
    assert "every score is the same" in score["undefined_reason"]
    assert found["specificity"]["value"] is None
    assert found["bias"]["value"] == 0.0
    assert found["humans"]["undefined_reason"] == "no case has labels of two annotators"


def test_pass_labels_leave_the_figures_of_scores_out() -> None:
    passes = [HumanLabel(case_id=f"c{n}", passed=n % 2 == 0) for n in range(8)]
    cases = [
        LabelledCase(label.case_id, None, (label,), Verdict(score=5 if n % 4 else 1), SCALE)
        for n, label in enumerate(passes)
    ]
    found = report(cases)
    assert found["agreement"]["score"]["n"] == 0
    assert found["bias"]["undefined_reason"] == "no case has a score from both a person and the judge"
    assert found["confusion"]["of"] == "fail (0) and pass (1)"
    assert found["class_agreement"]["n"] == 8


def test_without_any_case_nothing_is_a_number() -> None:
    found = report([])
    assert found["n"] == 0
    assert found["sensitivity"]["value"] is None
    assert found["bias"]["value"] is None
    assert found["confusion"] is None


def test_mcnemar_looks_at_cases_that_only_one_gets_right() -> None:
    # judge right on a, b, c, f; the other is right on a, d, e, f: b and c against d and e, p = 1
    other = {name: Verdict(score=5 if name in "ad" else 0) for name in "abcdef"}
    found = baseline_report(SIX, other, {})
    assert (found["n_only_judge_right"], found["n_only_baseline_right"], found["p"]) == (2, 2, 1.0)
    assert found["better"] is None
    many = [case(f"c{n}", (5,), 5) for n in range(60)]
    found = baseline_report(many, {c.case_id: Verdict(score=5 if n >= 8 else 0) for n, c in enumerate(many)}, {})
    # eight pairs, all on one side: p = 2 / 2^8
    assert (found["p"], found["better"]) == (2 / 256, "judge")


def test_a_flag_is_worth_what_the_labels_say() -> None:
    # wrong verdicts: d and e; flagged: d and a. P(wrong | flag) = 1/2, P(wrong) = 2/6, lift 1.5
    found = comparator_report(SIX, {name: name in "ad" for name in "abcdef"}, {})
    assert found["wrong_given_flag"]["value"] == 0.5
    assert found["wrong_given_agreement"]["value"] == 0.25
    assert found["lift"]["value"] == pytest.approx(1.5)
    assert (
        comparator_report(SIX, dict.fromkeys("abcdef", False), {})["undefined_reason"] == "no flagged case is labelled"
    )


RANDOM, UNKNOWN = Part("random", "drawn"), Part("unknown", "who knows")


def readings(n_human: int, n: int = 200) -> Readings:
    # people pass two of three; the judge is wrong on every tenth
    human = {f"c{i}": float(i % 3 != 0) for i in range(n)}
    judge = {name: value if i % 10 else 1.0 - value for i, (name, value) in enumerate(human.items())}
    return Readings({f"c{i}": human[f"c{i}"] for i in range(n_human)}, judge, None)


@pytest.mark.parametrize(
    ("n_human", "rule", "reason"),
    [
        (19, "none", "no mean is given under 20 labels (19)"),
        (20, "human-only", "the judge is used from 50 labels on (20)"),
        (49, "human-only", "the judge is used from 50 labels on (49)"),
        (50, "ppi++", None),
        (200, "human-only", "there is no further case"),
    ],
)
def test_the_number_of_labels_decides_what_is_said(n_human: int, rule: str, reason: str | None) -> None:
    found = corrected_report(readings(n_human), RANDOM, None)
    assert found["rule"] == rule
    assert (found["estimate"] is None) == (rule == "none")
    assert (found["lambda"] is not None) == (rule == "ppi++")
    assert found["reason"] is None if reason is None else reason in found["reason"]


def test_an_interval_for_this_run_is_narrower_than_one_for_cases_like_these() -> None:
    run, population = (corrected_report(readings(60), part, 0.1) for part in (RANDOM, UNKNOWN))
    assert (run["target"], population["target"]) == ("run", "population")
    assert run["high"] - run["low"] < population["high"] - population["low"]
    assert run["n_effective"] > 60
    assert 60 < run["labels_for_width"]["n"] <= 200
    assert corrected_report(readings(10), RANDOM, 0.1)["labels_for_width"]["n"] is None
