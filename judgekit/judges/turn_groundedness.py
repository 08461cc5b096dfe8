"""Groundedness per turn: does each answer of a conversation rest on what was retrieved by then?"""

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field

from judgekit.core.cases import Case, Criterion, Message, SystemOutput
from judgekit.core.components import Judge
from judgekit.core.conversations import conversation_of, messages_of
from judgekit.core.judgments import JudgeInput, Verdict
from judgekit.core.scores import Column, Failed, NotApplicable, Outcome, Outcomes
from judgekit.core.text import is_blank
from judgekit.core.verdict_kinds import Criteria
from judgekit.judges.from_rubric import settled
from judgekit.judges.passages import NO_TEXT, passages

_NO_TURNS = NotApplicable("no turns", by_output=True)
_NO_ANSWER = NotApplicable("no answer in the turns", by_output=True)
_ALL_GROUNDED = NotApplicable("every answer is grounded", label="none")


class TurnGroundedness(Judge):
    """Share of the system's answers that are grounded: every claim is supported by what stands above it.

    That is what was retrieved for the answer or before it, what tools returned, and what the user said; later passages
    count for later answers only. An answer that claims nothing is grounded. Answers are asked about in one request,
    each by its name, or in one each; a reply that leaves one out is no verdict. Answers that the case brings are not
    judged. Not applicable if nothing was retrieved and no tool returned anything.

    Source: in-house.
    """

    needs: ClassVar[tuple[tuple[str, ...], ...]] = (("output.turns",),)
    decisive_key: ClassVar[str] = "answers"

    pass_share: Annotated[float, Field(gt=0, le=1)] = 1.0
    """Smallest share of grounded answers that counts as a pass."""
    top_k: Annotated[int, Field(ge=1)] = 10
    """Passages of one message shown to the judge, best rank first."""
    calls: Literal["one", "each"] = "one"
    """`each`: a call for every answer, which shows the conversation up to it and nothing of what came later."""

    @cached_property
    def kind(self) -> Criteria:
        """A criterion for each answer; how many there are depends on the case."""
        return Criteria(pass_share=self.pass_share)

    def build_input(self, case: Case, output: SystemOutput) -> JudgeInput | NotApplicable | Failed:
        """Variables `conversation` (messages with their passages, answers with a name) and `criteria`."""
        if output.error is not None:
            return Failed(output.error.kind)
        if output.turns is None:
            return _NO_TURNS
        shown = list(self._shown(case, output, output.turns))
        names = [message["answer"] for message in shown if message["answer"]]
        if not names:
            return _NO_ANSWER
        while not shown[-1]["answer"]:  # what comes after the last answer is nobody's evidence
            shown.pop()
        criteria = [Criterion(id=name, text="Every claim is supported by what stands above it.") for name in names]
        variables = {"conversation": shown, "criteria": [item.model_dump() for item in criteria]}
        built = JudgeInput(case_id=case.id, judge=self.name, variables=variables)
        return self.not_asked(built) or built

    def not_asked(self, judge_input: JudgeInput) -> NotApplicable | None:
        """Nothing can be said if there is nothing that an answer could rest on."""
        for message in judge_input.variables["conversation"]:
            if message["passages"] or (message["role"] == "tool" and not is_blank(message["text"])):
                return None
        return NO_TEXT

    def parts(self, judge_input: JudgeInput) -> Sequence[JudgeInput]:
        """All answers at once, or each with what was known by then."""
        if self.calls == "one":
            return (judge_input,)
        conversation = judge_input.variables["conversation"]
        places = [place for place, message in enumerate(conversation, start=1) if message["answer"]]
        found = []
        for place, criterion in zip(places, judge_input.variables["criteria"], strict=True):
            seen = [{**message, "answer": ""} for message in conversation[: place - 1]]
            variables = {"conversation": [*seen, conversation[place - 1]], "criteria": [criterion]}
            found.append(judge_input.model_copy(update={"variables": variables}))
        return found

    def check_verdict(self, verdict: Verdict, judge_input: JudgeInput) -> Verdict:
        """Every answer has its verdict, in the order of the conversation, and there is no other.

        Raises:
            VerdictError: one is missing, or is not one that was asked about.
        """
        return settled(self.kind, verdict, judge_input)

    def columns(self) -> tuple[Column, ...]:
        """Those of criteria, and the number of the first answer that is not grounded, of which there is no mean."""
        name = f"{self.name}.first_ungrounded_turn"
        first = Column(name, low=1.0, high=float("inf"), aggregate="", distribution=True)
        return (*super().columns(), first)

    def scores(self, verdict: Verdict) -> Outcomes:
        """Share, pass and first ungrounded answer."""
        met = [item.met for item in verdict.criteria or ()]
        first: Outcome = float(met.index(False) + 1) if False in met else _ALL_GROUNDED
        return {**super().scores(verdict), f"{self.name}.first_ungrounded_turn": first if met else Failed("invalid")}

    def _shown(self, case: Case, output: SystemOutput, turns: tuple[Message, ...]) -> Iterator[dict[str, Any]]:
        messages = messages_of(case, output)
        n_before, n_answers = len(messages) - len(turns), 0
        for message, shown in zip(messages, conversation_of(case, output), strict=True):
            is_answer = message.role == "assistant" and message.text is not None and not is_blank(message.text)
            is_judged = is_answer and shown["number"] > n_before
            n_answers += is_judged
            retrieved = SystemOutput(case_id=case.id, retrieved=message.retrieved or ())
            found = [passage for passage in passages(retrieved, self.top_k) if not is_blank(passage["text"])]
            yield {**shown, "answer": f"answer_{n_answers}" if is_judged else "", "passages": found}
