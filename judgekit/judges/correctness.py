"""Correctness: does the answer answer the question, by the reference if there is one?"""

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar

from pydantic import Field

from judgekit.core.cases import Case, SystemOutput
from judgekit.core.components import Judge
from judgekit.core.judgments import JudgeInput, Verdict
from judgekit.core.scores import Column, Failed, NotApplicable, Outcomes
from judgekit.judges.parsing import read_score, read_text
from judgekit.judges.passages import passages, unjudgeable


class Correctness(Judge):
    """Whole number 0 (completely wrong) to 5 (fully correct and complete).

    An abstention has the worst score if the case is answerable, whatever the judge says of it, and does not apply
    otherwise: abstention metrics cover it. Source: in-house.
    """

    needs: ClassVar[tuple[tuple[str, ...], ...]] = (("case.question",), ("output.answer",))

    verdict_keys: ClassVar[tuple[str, ...]] = ("reasoning", "score")

    pass_score: Annotated[int, Field(ge=1, le=5)] = 4
    """Smallest score that counts as a pass."""
    top_k: Annotated[int, Field(ge=1)] = 10
    """Passages shown to the judge, best rank first."""

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

    def read_verdict(self, payload: Mapping[str, Any]) -> Verdict:
        """Score 0-5 and the reasoning."""
        return Verdict(score=read_score(payload, "score", 0, 5), reasoning=read_text(payload, "reasoning"))

    def columns(self) -> tuple[Column, ...]:
        """Score and pass."""
        return (
            Column(self.name, high=5.0, distribution=True),
            Column(f"{self.name}_pass", binary=True, aggregate=f"{self.name}_pass_rate"),
        )

    def scores(self, verdict: Verdict) -> Outcomes:
        """The two columns; a verdict without a score is a failure, never 0."""
        if verdict.score is None:
            return {self.name: Failed("invalid"), f"{self.name}_pass": Failed("invalid")}
        return {self.name: float(verdict.score), f"{self.name}_pass": float(verdict.score >= self.pass_score)}
