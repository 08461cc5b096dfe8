"""What yes/no judges share: how their verdict is read and scored."""

from collections.abc import Mapping
from typing import Any

from judgekit.core.judgments import Verdict
from judgekit.core.scores import Failed, Outcome
from judgekit.judges.parsing import read_flag, read_text


def read_yes_no(payload: Mapping[str, Any], key: str) -> Verdict:
    """The verdict of a reply with the reasoning and one true/false value.

    Raises:
        VerdictError: the value is missing, or is neither.
    """
    return Verdict(answer=read_flag(payload, key), reasoning=read_text(payload, "reasoning"))


def yes_is_one(verdict: Verdict) -> Outcome:
    """1 for yes, 0 for no; a verdict that says neither is a failure, never 0."""
    return Failed("invalid", by_judge=True) if verdict.answer is None else float(verdict.answer)
