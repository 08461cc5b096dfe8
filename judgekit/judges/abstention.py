"""Abstention: does an answer decline to answer? Asked only if the system itself does not say."""

from functools import cached_property
from typing import ClassVar

from judgekit.core.cases import Case, SystemOutput
from judgekit.core.components import Judge
from judgekit.core.judgments import JudgeInput
from judgekit.core.scores import Column, Failed, NotApplicable
from judgekit.core.text import is_blank
from judgekit.core.verdict_kinds import YesNo


class Abstention(Judge):
    """Yes if the answer declines: it says that it does not know, or that the sources do not tell.

    Not applicable if the system's own word decides (`abstained`, or `grounded` false), and to an answer that is
    blank or absent. The metric family of the same name makes its figures of this verdict,
    and groundedness and correctness follow it. Source: in-house.
    """

    needs: ClassVar[tuple[tuple[str, ...], ...]] = (("output.answer",),)
    decisive_key: ClassVar[str] = "abstains"
    fills_gaps: ClassVar[bool] = True

    @cached_property
    def kind(self) -> YesNo:
        """Yes or no."""
        return YesNo()

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

    def columns(self) -> tuple[Column, ...]:
        """1 if the answer declines, which is right if no answer can be given."""
        own = Column(self.name, higher_is_better=False, binary=True, turns_if_unanswerable=True)
        return (own, *self.weighed_columns())
