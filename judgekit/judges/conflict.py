"""Conflict: does an answer state that the sources contradict each other?"""

from collections.abc import Mapping
from typing import Any, ClassVar

from judgekit.core.cases import Case, SystemOutput
from judgekit.core.components import Judge
from judgekit.core.judgments import JudgeInput, Verdict
from judgekit.core.scores import Column, Failed, NotApplicable, Outcomes
from judgekit.core.text import is_blank
from judgekit.judges.parsing import read_flag, read_text


class Conflict(Judge):
    """Yes if the answer tells its reader that the sources disagree.

    For cases whose `recency_conflict_rule` is `acknowledge_both`; not applicable to others. An abstention is judged
    like any answer: "the notes disagree, so I cannot say" states the conflict. The score `recency_conflict` takes this
    verdict. Source: in-house.
    """

    needs: ClassVar[tuple[tuple[str, ...], ...]] = (("case.recency_conflict_rule",), ("output.answer",))
    verdict_keys: ClassVar[tuple[str, ...]] = ("reasoning", "states_conflict")
    decisive_key: ClassVar[str] = "states_conflict"
    fills_gaps: ClassVar[bool] = True

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

    def read_verdict(self, payload: Mapping[str, Any]) -> Verdict:
        """Yes or no, and the reasoning."""
        return Verdict(answer=read_flag(payload, self.decisive_key), reasoning=read_text(payload, "reasoning"))

    def columns(self) -> tuple[Column, ...]:
        """1 if the answer states the conflict."""
        return (Column(self.name, binary=True),)

    def scores(self, verdict: Verdict) -> Outcomes:
        """1 for yes, 0 for no; a verdict that says neither is a failure, never 0."""
        return {self.name: Failed("invalid", by_judge=True) if verdict.answer is None else float(verdict.answer)}
