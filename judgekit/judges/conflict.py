"""Conflict: does an answer state that the sources contradict each other?"""

from functools import cached_property
from typing import ClassVar

from judgekit.core.cases import Case, SystemOutput
from judgekit.core.components import Judge
from judgekit.core.judgments import JudgeInput
from judgekit.core.scores import Column, Failed, NotApplicable
from judgekit.core.text import is_blank
from judgekit.core.verdict_kinds import YesNo


class Conflict(Judge):
    """Yes if the answer tells its reader that the sources disagree.

    For cases whose `recency_conflict_rule` is `acknowledge_both`; not applicable to others. An abstention is judged
    like any answer: "the notes disagree, so I cannot say" states the conflict. The score `recency_conflict` takes this
    verdict. Source: in-house.
    """

    needs: ClassVar[tuple[tuple[str, ...], ...]] = (("case.recency_conflict_rule",), ("output.answer",))
    decisive_key: ClassVar[str] = "states_conflict"
    fills_gaps: ClassVar[bool] = True

    @cached_property
    def kind(self) -> YesNo:
        """Yes or no."""
        return YesNo()

    def build_input(self, case: Case, output: SystemOutput) -> JudgeInput | NotApplicable | Failed:
        """Variables `question`, `answer`."""
        if case.recency_conflict_rule != "acknowledge_both":
            return NotApplicable("recency_conflict_rule is not acknowledge_both")
        if output.error is not None:
            return Failed(output.error.kind)
        if output.answer is None or is_blank(output.answer):
            return Failed("no_answer" if output.answer is None else "blank_answer")
        return JudgeInput(
            case_id=case.id, judge=self.name, variables={"question": case.question, "answer": output.answer}
        )

    def columns(self) -> tuple[Column, ...]:
        """1 if the answer states the conflict, which is what such a case asks for."""
        return (Column(self.name, binary=True), *self.weighed_columns())
