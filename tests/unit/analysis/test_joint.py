"""Figures that take both judges."""

import pytest

from judgekit.analysis.joint import JOINT_COLUMNS, joint_columns, joint_outcomes
from judgekit.core.scores import Column, Failed, NotApplicable, Outcome
from judgekit.judges.correctness import Correctness
from judgekit.judges.groundedness import Groundedness

ABSTAINED, NO_VERDICT = NotApplicable("abstained"), Failed("judge invalid", by_judge=True)


def outcomes(correct: Outcome, n_unsupported: Outcome, n_claims: Outcome = 3.0) -> dict[str, Outcome]:
    return {
        "correctness_pass": correct,
        "groundedness.n_unsupported_claims": n_unsupported,
        "groundedness.n_claims": n_claims,
    }


@pytest.mark.parametrize(
    ("correct", "n_unsupported", "n_claims", "expected"),
    [
        # correct and supported, correct without support, supported but incorrect
        (1.0, 0.0, 3.0, [1.0, 0.0, 0.0]),
        (1.0, 2.0, 3.0, [0.0, 1.0, 0.0]),
        (0.0, 0.0, 3.0, [0.0, 0.0, 1.0]),
        (0.0, 1.0, 3.0, [0.0, 0.0, 0.0]),
        (1.0, 0.0, 0.0, [NotApplicable("groundedness lists no claim")] * 3),
        (0.0, ABSTAINED, ABSTAINED, [ABSTAINED] * 3),
        (NO_VERDICT, 0.0, 3.0, [NO_VERDICT] * 3),
        (1.0, NO_VERDICT, NO_VERDICT, [NO_VERDICT] * 3),
        (NO_VERDICT, ABSTAINED, ABSTAINED, [ABSTAINED] * 3),
        (Failed("api"), Failed("api"), Failed("api"), [Failed("api")] * 3),
    ],
)
def test_each_case_falls_into_one_cell_or_none(
    correct: Outcome, n_unsupported: Outcome, n_claims: Outcome, expected: list[Outcome]
) -> None:
    found = joint_outcomes(outcomes(correct, n_unsupported, n_claims))
    assert found == dict(zip([column.name for column in JOINT_COLUMNS], expected, strict=True))


def test_joint_figures_need_both_judges() -> None:
    groundedness, correctness = Groundedness, Correctness
    groundedness.name, correctness.name = "groundedness", "correctness"
    both = [*groundedness().columns(), *correctness().columns()]
    assert joint_columns(both) == JOINT_COLUMNS
    assert joint_columns(groundedness().columns()) == joint_columns(correctness().columns()) == ()
    assert joint_columns([Column("correctness_pass")]) == ()
