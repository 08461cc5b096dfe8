"""Which labels count, what several people say together, and whether the labelled part is random."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judgekit.analysis.label_sets import count_labels, label_counts, labelled_part
from judgekit.analysis.labelled_cases import LabelledCase, majority
from judgekit.core.human_labels import HumanLabel, Sheet
from judgekit.core.judgments import CriterionVerdict, Verdict
from judgekit.core.verdict_kinds import Criteria, Kind, Labels, Scale, YesNo
from judgekit.core.written_labels import together

SCALE = Scale(pass_score=4)
INPUTS = {"a": "ha", "b": "hb", "c": "hc"}


def label(case_id: str, score: int | None = None, annotator: str = "ida", **fields: object) -> HumanLabel:
    verdict = None if score is None else Verdict(score=score)
    return HumanLabel.model_validate({"case_id": case_id, "verdict": verdict, "annotator": annotator, **fields})


def counted(*labels: HumanLabel):  # type: ignore[no-untyped-def]
    return count_labels(labels, "correctness", {*INPUTS, "skipped"}, INPUTS, SCALE)


def test_what_does_not_count_is_named_and_the_rest_does() -> None:
    found = counted(
        label("a", 4),
        label("ghost", 3, place="l.csv:3"),
        label("skipped", 3),
        label("b", 7, place="l.csv:5"),
        label("b", 2, judge="groundedness"),
        label("c", 1, input_sha256="of another answer"),
    )
    assert {case_id: dict(given) for case_id, given in found.by_case.items()} == {"a": {"ida": label("a", 4)}}
    assert list(found.notes) == [
        "1 label left out, for cases that the run does not have: 'ghost' (l.csv:3)",
        "1 label left out, for cases that correctness was not asked about: 'skipped'",
        "1 label left out, given to another answer than the one judged here: 'c'",
        "1 label left out, off the scale of 0 to 5: 'b' (l.csv:5)",
    ]
    assert found.counts == {
        "n_unknown": 1,
        "n_not_asked": 1,
        "n_another": 1,
        "n_off_scale": 1,
        "n_partial": 0,
        "n_duplicates": 0,
        "n_contradictions": 0,
    }


def test_of_two_labels_by_one_person_the_last_counts() -> None:
    found = counted(
        label("a", 4), label("a", 2), label("b", 3), label("b", 3), label("c", 1), label("c", 5, revised=True)
    )
    assert [[one and one.score for one in found.of_case(case_id)] for case_id in ("a", "b", "c")] == [[2], [3], [5]]
    assert (found.counts["n_duplicates"], found.counts["n_contradictions"]) == (2, 1)
    assert "the last one counts: 'a'" in found.notes[0]
    assert "with the same value" in found.notes[1]


def test_many_unknown_cases_are_counted_and_five_are_named() -> None:
    [note] = counted(*[label(f"x{number}", 1) for number in range(8)]).notes
    assert note.startswith("8 labels left out, for cases that the run does not have")
    assert note.endswith("'x4' and 3 more")


def test_half_a_label_is_none() -> None:
    found = counted(label("a", 4), label("b", 3, is_partial=True))
    assert list(found.by_case) == ["a"]
    assert list(found.notes) == ["1 label left out, with a criterion missing, or one that was not asked about: 'b'"]


def labelled(kind: Kind, *labels: HumanLabel | None, says: Verdict | None = None) -> LabelledCase:
    return LabelledCase("a", None, labels, says or Verdict(), kind)


def test_scores_and_classes_stand_side_by_side() -> None:
    found = counted(label("a", 4), label("a", None, "tom", passed=False), label("b", 3, "tom"))
    assert found.annotators == ("ida", "tom")
    assert labelled(SCALE, *found.of_case("a")).classes == (True, False)
    assert labelled(SCALE, *found.of_case("b")).classes == (None, False)
    assert labelled(Scale(), *found.of_case("b")).classes == (None, None)
    assert label_counts(found) == {"ida": 1, "tom": 2}


@pytest.mark.parametrize(
    ("scores", "typical", "mean"),
    [([4, 5], 4, 4.5), ([3, None, 5], 3, 4.0), ([1, 5, 5], 5, 11 / 3), ([None], None, None)],
)
def test_people_together(scores: list[int | None], typical: int | None, mean: float | None) -> None:
    case = labelled(SCALE, *(None if score is None else label("a", score) for score in scores))
    assert (case.people and case.people.score) == typical
    assert case.human_points == (None if mean is None else pytest.approx(mean))


@given(st.lists(st.integers(0, 5), min_size=1, max_size=6), st.integers(1, 5))
def test_the_majority_passes_just_where_the_typical_score_does(scores: list[int], pass_score: int) -> None:
    typical = together([Verdict(score=score) for score in scores], Scale())
    assert typical is not None
    assert typical.score is not None
    assert majority([score >= pass_score for score in scores]) == (typical.score >= pass_score)


BRAND = Labels(labels=("on", "off", "mixed"), cannot_tell=True)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("on on off", "on"),
        ("on off", None),
        ("on off mixed on", "on"),
        ("on ?", "on"),
        ("on ? ?", "cannot tell"),
        ("? on off", None),
        ("?", "cannot tell"),
        ("", None),
    ],
)
def test_of_labels_the_most_frequent_counts_and_none_if_there_are_two(words: str, said: str | None) -> None:
    verdicts = [Verdict(cannot_tell=True) if word == "?" else Verdict(label=word) for word in words.split()]
    found = together(verdicts, BRAND)
    assert (found and found.said) == said


def test_criteria_are_settled_one_by_one_and_a_tie_is_not_met() -> None:
    def says(*met: bool | None) -> Verdict:
        return Verdict(criteria=tuple(CriterionVerdict(id=str(n), met=value) for n, value in enumerate(met)))

    found = together([says(True, True, None), says(True, False, None), says(False, None, True)], Criteria())
    assert found is not None
    # two of three; one of the two who can tell is a tie; two of three cannot tell
    assert [item.met for item in found.criteria or ()] == [True, False, None]


def test_a_verdict_is_right_by_its_class_or_else_by_its_label() -> None:
    on, off = Verdict(label="on"), Verdict(label="off")
    person = HumanLabel(case_id="a", verdict=on)
    assert [labelled(BRAND, person).is_right(verdict) for verdict in (on, off)] == [True, False]
    assert labelled(BRAND, person).is_right(Verdict(cannot_tell=True)) is None
    both_pass = Labels(labels=("on", "off", "mixed"), passing=("on", "off"))
    assert labelled(both_pass, person).is_right(off) is True
    assert labelled(YesNo(passing=False), HumanLabel(case_id="a", passed=True)).is_right(Verdict(answer=False)) is True


def sheet(*case_ids: str, seed: int = 1, n_population: int = 6) -> Sheet:
    return Sheet(run_id="r", judge="correctness", seed=seed, n_population=n_population, case_ids=case_ids)


@pytest.mark.parametrize(
    ("labelled", "sheets", "kind", "reason"),
    [
        ("abcdef", (), "census", "every judged case"),
        ("abc", (), "unknown", "no sheet"),
        ("ab", (sheet("a", "b", "c"),), "random", "seed 1"),
        ("abcd", (sheet("a", "b"), sheet("a", "b", "c", "d")), "random", "seed 1"),
        ("ac", (sheet("a", "b", "c"),), "unknown", "1 case of the sheet skipped"),
        ("abf", (sheet("a", "b", "c"),), "unknown", "1 of the labelled cases are not on the sheet"),
        ("ab", (sheet("a", "b"), sheet("b", "a", seed=2)), "unknown", "several sheets"),
        ("ab", (sheet("a", "b", n_population=9),), "unknown", "drawn from 9 cases, the run has 6"),
    ],
)
def test_labels_are_a_random_part_only_where_a_sheet_says_so(
    labelled: str, sheets: tuple[Sheet, ...], kind: str, reason: str
) -> None:
    part = labelled_part("correctness", list(labelled), 6, sheets)
    assert part.kind == kind
    assert reason in part.reason
