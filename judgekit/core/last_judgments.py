"""Which judgment counts for a question that was asked more than once."""

from collections.abc import Container, Iterator
from dataclasses import dataclass

from judgekit.core.checks import RUN_CHECK
from judgekit.core.judgments import Judgment

TRANSPORT_KINDS = frozenset({"connection", "timeout", "server_error", "rate_limited", "internal"})
"""Failures that say nothing about the case; a resumed run asks these again."""


@dataclass(frozen=True)
class JudgmentKey:
    """One question: which judge, in which role, about which case."""

    role: str
    judge: str
    case_id: str
    check: str | None = None
    """The spot check that it belongs to, or set and name of the probe; None where it belongs to none."""
    member: str | None = None
    """Of a panel: key of the member's model."""

    @classmethod
    def of(cls, judgment: Judgment) -> "JudgmentKey":
        """The question that a judgment answers."""
        check = (judgment.check or RUN_CHECK) if judgment.role == "spot_check" else judgment.check
        member = judgment.model_id if judgment.role == "member" else None
        return cls(judgment.role, judgment.judge, judgment.case_id, check, member)


def last_judgments(
    judgments: Iterator[Judgment], reasoned: Container[tuple[str, str]] = ()
) -> dict[JudgmentKey, Judgment]:
    """The judgment that counts for each question: the last one, and never a failure after a verdict.

    Without its raw reply and its reasoning, so that memory does not grow with the length of replies.

    Args:
        judgments: in the order in which they came.
        reasoned: (judge, case id) of judgments that keep their reasoning.
    """
    found: dict[JudgmentKey, Judgment] = {}
    for judgment in judgments:
        key = JudgmentKey.of(judgment)
        old = found.get(key)
        if old is None or old.verdict is None or judgment.verdict is not None:
            verdict = judgment.verdict
            if verdict is not None and (judgment.judge, judgment.case_id) not in reasoned:
                verdict = verdict.model_copy(update={"reasoning": ""})
            found[key] = judgment.model_copy(update={"raw_reply": None, "verdict": verdict})
    return found
