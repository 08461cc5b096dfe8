"""What a panel is worth."""

import pytest

from judgekit.analysis.verdict_pairs import panel_record
from judgekit.core.judgments import JudgeFailure, Verdict
from judgekit.core.verdict_kinds import Scale


def opinions(*cases: tuple[int | None, ...]) -> list[dict[str, Verdict | JudgeFailure]]:
    def said(score: int | None) -> Verdict | JudgeFailure:
        return JudgeFailure(kind="refused", message="no") if score is None else Verdict(score=score)

    return [{name: said(score) for name, score in zip("abc", case, strict=False)} for case in cases]


NO_RULINGS = {"n_ties": 0, "n_below_quorum": 0}


def test_copies_of_one_judge_are_one_vote() -> None:
    record = panel_record(("a", "b", "c"), opinions((5, 5, 5), (1, 1, 1), (3, 3, 3)), NO_RULINGS, Scale(pass_score=4))
    assert record["mean_correlation"] == pytest.approx(1.0)
    assert record["effective_votes"] == pytest.approx(1.0)
    assert (record["n_cases"], record["n_complete"], record["n_unanimous"]) == (3, 3, 3)
    assert [row["exact"] for row in record["agreement"]] == [1.0, 1.0, 1.0]


def test_two_judges_with_half_a_correlation() -> None:
    # a: 0 0 4 4, b: 0 4 0 4 are unrelated (rho 0): two votes; a with itself and one change:
    record = panel_record(("a", "b"), opinions((0, 0), (0, 4), (4, 0), (4, 4)), NO_RULINGS, Scale(pass_score=4))
    assert record["effective_votes"] == pytest.approx(2.0)
    # a: 0 0 4 4, b: 0 4 4 4: cov 2, var 4 and 3 (population), rho = 2 / sqrt(12) = 0.5774; 2 / 1.5774 = 1.2679
    record = panel_record(("a", "b"), opinions((0, 0), (0, 4), (4, 4), (4, 4)), NO_RULINGS, Scale(pass_score=4))
    assert record["effective_votes"] == pytest.approx(1.2679, abs=1e-4)
    assert record["agreement"][0] == {"members": ["a", "b"], "n": 4, "exact": 0.75, "same_class": 0.75}
    assert record["mean_rating"] == {"a": 2.0, "b": 3.0}


def test_failures_stand_in_no_denominator() -> None:
    record = panel_record(
        ("a", "b"), opinions((5, None), (None, None), (4, 3)), {"n_ties": 1, "n_below_quorum": 1}, Scale(pass_score=4)
    )
    assert (record["n_cases"], record["n_complete"], record["n_unanimous"]) == (3, 1, 0)
    assert record["failures"] == {"a": {"refused": 1}, "b": {"refused": 2}}
    assert record["mean_rating"] == {"a": 4.5, "b": 3.0}
    assert record["agreement"] == [{"members": ["a", "b"], "n": 1, "exact": 0.0, "same_class": 0.0}]
    assert record["effective_votes"] is None
    assert "vary" in record["undefined_reason"]


def test_a_panel_that_judged_nothing_has_no_figures() -> None:
    record = panel_record(("a", "b"), [], NO_RULINGS, Scale())
    assert record["mean_rating"] == {"a": None, "b": None}
    assert record["agreement"] == [{"members": ["a", "b"], "n": 0, "exact": None, "same_class": None}]
    assert record["effective_votes"] is None
