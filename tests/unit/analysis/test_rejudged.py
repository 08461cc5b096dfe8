"""How verdicts differ from those of the parent."""

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from judgekit.analysis.verdict_pairs import Pair, VerdictChanges, verdict_changes
from judgekit.core.judgments import JudgeFailure, Verdict
from judgekit.core.verdict_kinds import Kind, Scale, YesNo

LATE = JudgeFailure(kind="timeout", message="late")


def changes_of(pairs: Mapping[str, Sequence[Pair]], kinds: Mapping[str, Kind]) -> dict[str, Any]:
    found = {name: VerdictChanges(kinds[name]) for name in pairs}
    for name, own in pairs.items():
        for pair in own:
            found[name].add(pair)
    return verdict_changes(found, seed=0)


def test_changes_are_counted_over_cases_with_two_verdicts() -> None:
    scored = [(5, 5), (4, 5), (3, 1), (2, 2)]
    pairs = [Pair(f"c{n}", Verdict(score=a), Verdict(score=b)) for n, (a, b) in enumerate(scored)]
    found = changes_of(
        {"groundedness": [*pairs, Pair("f", LATE, Verdict(score=5))]}, {"groundedness": Scale(pass_score=4)}
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
    found = changes_of(pairs, {"a": Scale(pass_score=4), "b": YesNo()})
    assert (found["n"], found["changed"], found["mean_signed_difference"]) == (4, 1, 0.5)


def test_without_a_pair_nothing_is_claimed() -> None:
    found = changes_of({"a": [Pair("x", LATE, LATE)]}, {"a": Scale()})
    assert (found["n"], found["n_unscored"], found["mean_signed_difference"], found["p"]) == (0, 1, None, None)
