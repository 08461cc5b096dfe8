"""Abstention: does an answer decline to answer? Asked only if the system itself does not say."""

from collections.abc import Mapping
from typing import Any, ClassVar

from judgekit.core.cases import Case, SystemOutput
from judgekit.core.components import Judge
from judgekit.core.judgments import JudgeInput, Verdict
from judgekit.core.scores import Column, Failed, NotApplicable, Outcomes
from judgekit.core.text import is_blank
from judgekit.judges.parsing import read_flag, read_text


class Abstention(Judge):
    """Yes if the answer declines: it says that it does not know, or that the sources do not tell.

    Not applicable if the system's own word decides (`abstained`, or `grounded` false), and to an answer that is
    blank or absent. The metric family of the same name makes its figures of this verdict,
    and groundedness and correctness follow it. Source: in-house.
    """

    needs: ClassVar[tuple[tuple[str, ...], ...]] = (("output.answer",),)
    verdict_keys: ClassVar[tuple[str, ...]] = ("reasoning", "abstains")
    decisive_key: ClassVar[str] = "abstains"
    fills_gaps: ClassVar[bool] = True

    def build_input(self, case: Case, output: SystemOutput) -> JudgeInput | NotApplicable | Failed:
        """Variables `question`, `answer`."""
        if output.error is not None:
            return Failed(output.error.kind)
        if output.abstained is not None:
            return NotApplicable("the abstained flag says")
        if output.grounded is False:
            return NotApplicable("grounded is false")
        if output.answer is None or is_blank(output.answer):
            return NotApplicable("no answer" if output.answer is None else "blank answer")
        return JudgeInput(
            case_id=case.id, judge=self.name, variables={"question": case.question, "answer": output.answer}
        )

    def read_verdict(self, payload: Mapping[str, Any]) -> Verdict:
        """Yes or no, and the reasoning."""
        return Verdict(answer=read_flag(payload, self.decisive_key), reasoning=read_text(payload, "reasoning"))

    def columns(self) -> tuple[Column, ...]:
        """1 if the answer declines."""
        return (Column(self.name, higher_is_better=False, binary=True, turns_if_unanswerable=True),)

    def scores(self, verdict: Verdict) -> Outcomes:
        """1 for yes, 0 for no; a verdict that says neither is a failure, never 0."""
        return {self.name: Failed("invalid", by_judge=True) if verdict.answer is None else float(verdict.answer)}
