"""Correctness: does the answer answer the question, by the reference if there is one?"""

from functools import cached_property
from typing import Annotated, ClassVar

from pydantic import Field

from judgekit.core.cases import Case, SystemOutput
from judgekit.core.components import Judge
from judgekit.core.judgments import JudgeInput
from judgekit.core.scores import Failed, NotApplicable, Outcomes
from judgekit.core.verdict_kinds import Scale
from judgekit.judges.passages import passages, unjudgeable


class Correctness(Judge):
    """Whole number 0 (completely wrong) to 5 (fully correct and complete).

    An abstention has the worst score if the case is answerable, whatever the judge says of it, and does not apply
    otherwise: abstention metrics cover it. Source: in-house.
    """

    needs: ClassVar[tuple[tuple[str, ...], ...]] = (("case.question",), ("output.answer",))

    pass_score: Annotated[int, Field(ge=1, le=5)] = 4
    """Smallest score that counts as a pass."""
    top_k: Annotated[int, Field(ge=1)] = 10
    """Passages shown to the judge, best rank first."""

    @cached_property
    def kind(self) -> Scale:
        """0 to 5."""
        return Scale(pass_score=self.pass_score)

    def build_input(self, case: Case, output: SystemOutput) -> JudgeInput | NotApplicable | Failed:
        """Variables `question`, `answer`, `passages`, `reference_answers`, `key_facts`."""
        if not case.question.strip():
            return NotApplicable("no question")
        reason = unjudgeable(case, output)
        if reason is not None:
            return reason
        variables = {
            "question": case.question,
            "answer": output.answer or "",
            "passages": passages(output, self.top_k),
            "reference_answers": list(case.reference_answers),
            "key_facts": list(case.key_facts),
        }
        return JudgeInput(case_id=case.id, judge=self.name, variables=variables)

    def abstained_scores(self) -> Outcomes:
        """0 and no pass."""
        return {self.name: 0.0, f"{self.name}_pass": 0.0}
