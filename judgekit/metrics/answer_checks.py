"""Checks of the answer's text that need no judge."""

from typing import ClassVar

from judgekit.core.cases import Case, SystemOutput
from judgekit.core.components import Metric
from judgekit.core.scores import Column, Failed, NotApplicable, Outcomes
from judgekit.core.stored_text import TEXT_NOT_STORED
from judgekit.core.text import nfc

_NO_KEYWORDS = NotApplicable("no must_contain and no forbidden")
_NO_ANSWER = NotApplicable("no answer")


class AnswerChecks(Metric):
    """Keywords that the answer must and must not contain.

    `keyword_groundedness`: 1 if every `must_contain` text is in the answer and no `forbidden` one is, else 0;
    substrings after NFC, case counts; in [0, 1], higher is better. A blank answer contains nothing. Not
    applicable if both lists are empty or no answer came back.

    Source: in-house.
    """

    needs: ClassVar[tuple[tuple[str, ...], ...]] = (("case.must_contain", "case.forbidden"), ("output.answer",))

    def columns(self) -> tuple[Column, ...]:
        return (Column("keyword_groundedness", binary=True),)

    def calculate(self, case: Case, output: SystemOutput) -> Outcomes:
        if not case.must_contain and not case.forbidden:
            return {"keyword_groundedness": _NO_KEYWORDS}
        if output.error is not None:
            return {"keyword_groundedness": Failed(output.error.kind)}
        if output.answer is None:
            return {"keyword_groundedness": _NO_ANSWER}
        if output.answer_left_out:
            return {"keyword_groundedness": TEXT_NOT_STORED}
        answer = nfc(output.answer)
        kept = all(nfc(text) in answer for text in case.must_contain) and not any(
            nfc(text) in answer for text in case.forbidden
        )
        return {"keyword_groundedness": 1.0 if kept else 0.0}
