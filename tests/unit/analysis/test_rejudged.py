"""How verdicts differ from those of the parent."""

import pytest

from judgekit.analysis.verdict_pairs import Pair, verdict_changes
from judgekit.core.judgments import JudgeFailure, Verdict
from judgekit.core.verdict_kinds import Scale, YesNo

LATE = JudgeFailure(kind="timeout", message="late")


def test_changes_are_counted_over_cases_with_two_verdicts() -> None:
    scored = [(5, 5), (4, 5), (3, 1), (2, 2)]
    pairs = [Pair(f"c{n}", Verdict(score=a), Verdict(score=b)) for n, (a, b) in enumerate(scored)]
    found = verdict_changes(
        {"groundedness": [*pairs, Pair("f", LATE, Verdict(score=5))]}, {"groundedness": Scale(pass_score=4)}, 0
    )
    report = found["by_judge"]["groundedness"]
    assert (report["n"], report["n_unscored"], report["changed"], report["n_disagree"]) == (4, 1, 2, 1)
    # differences 0, 1, -2, 0
    assert report["mean_signed_difference"] == pytest.approx(-0.25)
    assert report["cases"] == [
        {"case_id": "c1", "before": 4, "after": 5},
        {"case_id": "c2", "before": 3, "after": 1},
    ]
    assert (found["n"], found["changed"]) == (4, 2)


def test_judges_are_pooled_by_cases() -> None:
    pairs = {
        "a": [Pair("x", Verdict(score=1), Verdict(score=3))],
        "b": [Pair(str(n), Verdict(answer=True), Verdict(answer=True)) for n in range(3)],
    }
    found = verdict_changes(pairs, {"a": Scale(pass_score=4), "b": YesNo()}, 0)
    assert (found["n"], found["changed"], found["mean_signed_difference"]) == (4, 1, 0.5)


def test_without_a_pair_nothing_is_claimed() -> None:
    found = verdict_changes({"a": [Pair("x", LATE, LATE)]}, {"a": Scale()}, 0)
    assert (found["n"], found["n_unscored"], found["mean_signed_difference"], found["p"]) == (0, 1, None, None)
