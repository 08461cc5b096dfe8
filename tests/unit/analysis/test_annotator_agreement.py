"""How far people agree so far, by hand."""

from typing import Any

import pytest

from judgekit.analysis.annotator_agreement import annotator_agreement
from judgekit.core.human_labels import HumanLabel
from judgekit.core.judgments import Verdict
from judgekit.core.verdict_kinds import Kind, Labels, Scale, YesNo

TONE = Labels(labels=("warm", "cold"), cannot_tell=True)


def labels(annotator: str, key: str, *values: Any) -> list[HumanLabel]:
    return [
        HumanLabel(case_id=f"c{number}", annotator=annotator, verdict=Verdict(**{key: value}))
        for number, value in enumerate(values)
    ]


@pytest.mark.parametrize(
    ("kind", "key", "first", "second", "kappa"),
    [
        # 4 of 6 the same; by chance 3/6 * 3/6 twice: (4/6 - 1/2) / (1 - 1/2)
        (TONE, "label", "warm warm warm cold cold cold", "warm warm cold cold cold warm", 1 / 3),
        (YesNo(), "answer", "1 1 1 0 0 0", "1 1 0 0 0 1", 1 / 3),
        # squares: 2 * 1 / 6 seen; expected 6 * (21 + 27) - 2 * 9 * 11 = 90; 1 - 6 * 2 / 90
        (Scale(), "score", "1 1 1 1 1 4", "1 1 2 2 1 4", 1 - 12 / 90),
    ],
)
def test_kappa_is_that_of_the_kind(kind: Kind, key: str, first: str, second: str, kappa: float) -> None:
    read: Any = str if key == "label" else int if key == "score" else lambda text: text == "1"
    both = [*labels("ida", key, *map(read, first.split())), *labels("tom", key, *map(read, second.split()))]
    (found,) = annotator_agreement(both, kind)
    assert (found.n_cases, found.n_same, found.n_labels) == (6, 4, 6)
    assert found.kappa == pytest.approx(kappa)


def test_the_last_label_of_a_person_counts_and_three_people_are_three_pairs() -> None:
    given = [*labels("ida", "score", 1, 2, 3, 4, 5), *labels("ida", "score", 5)]
    given += [*labels("tom", "score", 5, 2, 3, 4, 5), *labels("eve", "score", 5)]
    found = {(pair.first, pair.second): pair for pair in annotator_agreement(given, Scale())}
    assert found["ida", "tom"].n_same == 5
    assert found["eve", "ida"].n_same is None
    assert "1 case labelled by both; agreement is shown from 5 on" in found["eve", "tom"].words


def test_what_cannot_be_told_is_a_label_but_no_score() -> None:
    untold = [HumanLabel(case_id="c5", annotator=name, verdict=Verdict(cannot_tell=True)) for name in ("ida", "tom")]
    scores = [*labels("ida", "score", 1, 2, 3, 4, 5), *labels("tom", "score", 1, 2, 3, 4, 5), *untold]
    (found,) = annotator_agreement(scores, Scale(cannot_tell=True))
    assert (found.n_same, found.n_labels, found.kappa) == (6, 6, 1.0)


def test_labels_that_are_all_the_same_have_no_kappa() -> None:
    (found,) = annotator_agreement([*labels("ida", "score", *"33333"), *labels("tom", "score", *"33333")], Scale())
    assert found.words.endswith("5 of 5 (100%), kappa not defined, every label is the same")


def test_pass_and_fail_are_held_against_scores_by_their_side() -> None:
    passed = [HumanLabel(case_id=f"c{number}", annotator="tom", passed=number > 2) for number in range(6)]
    (found,) = annotator_agreement([*labels("ida", "score", 0, 1, 2, 3, 4, 5), *passed], Scale(pass_score=4))
    assert (found.n_same, found.n_labels) == (5, 6)
