"""Figures that take two judges: is an answer right, and right for a reason that stands in what was retrieved?"""

from collections.abc import Iterable

from judgekit.core.scores import Column, Failed, NotApplicable, Outcomes

JOINT_COLUMNS = (
    Column("correct_and_supported", binary=True),
    Column("correct_without_support", higher_is_better=False, binary=True),
    Column("supported_but_incorrect", higher_is_better=False, binary=True),
)
"""What `joint_outcomes` gives. The share that is missing to 1 is neither correct nor supported."""

CORRECT = "correctness_pass"
N_UNSUPPORTED = "groundedness.n_unsupported_claims"
N_CLAIMS = "groundedness.n_claims"

JOINT_JUDGES = "correctness and groundedness"


def joint_columns(columns: Iterable[Column]) -> tuple[Column, ...]:
    """The joint columns of a run with these columns; none unless both judges are among them."""
    names = {column.name for column in columns}
    return JOINT_COLUMNS if names >= {CORRECT, N_UNSUPPORTED, N_CLAIMS} else ()


def joint_outcomes(outcomes: Outcomes) -> Outcomes:
    """The joint scores of one case, each 0 or 1; at most one of them is 1.

    Correct: correctness passes. Supported: groundedness lists claims, and none that is unsupported.

    * `correct_and_supported` (higher is better).
    * `correct_without_support` (lower is better): right by luck, or from what the model knew before.
    * `supported_but_incorrect` (lower is better): faithful to passages that do not answer the question.

    Returns:
        Not applicable if one of the two judges is, or if no claim is listed; else failed if one of the two
        has no verdict.
    """
    parts = [outcomes[name] for name in (CORRECT, N_UNSUPPORTED, N_CLAIMS)]
    missing = [part for kind in (NotApplicable, Failed) for part in parts if isinstance(part, kind)]
    if missing or parts[2] == 0.0:
        reason = missing[0] if missing else NotApplicable("groundedness lists no claim")
        return {column.name: reason for column in JOINT_COLUMNS}
    correct, supported = parts[0] == 1.0, parts[1] == 0.0
    flags = (correct and supported, correct and not supported, supported and not correct)
    return {column.name: float(flag) for column, flag in zip(JOINT_COLUMNS, flags, strict=True)}
