"""Judges that are data: their question, kind of verdict and what they see come from a config or a prompt file."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any, ClassVar

from judgekit.core.cases import Case, Criterion, SystemOutput
from judgekit.core.components import Judge
from judgekit.core.conversations import conversation_of
from judgekit.core.judgments import JudgeInput, Verdict
from judgekit.core.reply_values import read_text
from judgekit.core.rubric_fields import Rubric
from judgekit.core.scores import Failed, NotApplicable
from judgekit.core.sentences import sentences
from judgekit.core.text import is_blank
from judgekit.core.verdict_kinds import Criteria, Kind, Preference
from judgekit.judges.passages import ABSTAINED, NO_TEXT, citations, passages

_NEEDS = {
    "question": ("case.question",),
    "answer": ("output.answer",),
    "passages": ("output.retrieved",),
    "references": ("case.reference_answers",),
    "key_facts": ("case.key_facts",),
    "citations": ("output.citations", "output.references"),
    "conversation": ("case.messages", "output.turns"),
}
_OF_THE_OUTPUT = ("answer", "passages", "citations", "conversation")
"""What each of two outputs has of its own."""

EQUAL = NotApplicable("equal answers")
"""Why nobody is asked which of two answers is better."""

VARIABLES = {"references": "reference_answers"}
"""Names of judge inputs, where they differ from what `sees` calls them."""


class RubricJudge(Judge):
    """Asks what its rubric says, about what its rubric lets it see."""

    selectable: ClassVar[bool] = False

    rubric: Rubric
    """Question, kind of verdict, and what is shown."""

    @cached_property
    def kind(self) -> Kind:
        """What the rubric says."""
        return self.rubric.kind

    def build_input(self, case: Case, output: SystemOutput) -> JudgeInput | NotApplicable | Failed:
        """What the rubric lets the judge see; not applicable if some of it is missing.

        An output that failed is a failure, as is an absent or blank answer; an abstention without a text is not
        applicable.
        """
        if output.error is not None:
            return Failed(output.error.kind)
        variables: dict[str, Any] = {}
        for name in self.rubric.shown:
            value = self._shown(name, case, output)
            if isinstance(value, NotApplicable | Failed):
                return value
            if name.startswith("metadata."):
                variables.setdefault("metadata", {})[name.removeprefix("metadata.")] = value
            else:
                variables[VARIABLES.get(name, name)] = value
        if self.rubric.criteria is not None:
            wanted = self._criteria(case, output)
            if isinstance(wanted, NotApplicable):
                return wanted
            # Another order for each case, so that a place in the list can do no lasting harm.
            turned = sorted(wanted, key=lambda item: hashlib.sha256(f"{case.id} {item.id}".encode()).digest())
            variables["criteria"] = [item.model_dump() for item in turned]
        return JudgeInput(case_id=case.id, judge=self.name, variables=variables)

    def _criteria(self, case: Case, output: SystemOutput) -> Sequence[Criterion] | NotApplicable:
        """The criteria of a case, or why it has none."""
        match self.rubric.criteria:
            case "passages":
                shown = [item for item in passages(output, self.rubric.top_k or 10) if not is_blank(item["text"])]
                return [Criterion(id=f"passage-{item['number']}", text=item["text"]) for item in shown] or NO_TEXT
            case "statements":
                texts = case.key_facts or tuple(sentences(next(iter(case.reference_answers), "")))
                numbered = enumerate((text for text in texts if not is_blank(text)), start=1)
                found = [Criterion(id=f"statement-{number}", text=text) for number, text in numbered]
                return found or NotApplicable("no reference answers")
            case "case":
                return case.criteria or NotApplicable("no criteria")
            case _:
                return self.rubric.fixed_criteria

    def parts(self, judge_input: JudgeInput) -> Sequence[JudgeInput]:
        """One input for each criterion, if the rubric wants each in a call of its own."""
        if self.rubric.calls != "each":
            return (judge_input,)
        variables = judge_input.variables
        alone = [{**variables, "criteria": [criterion]} for criterion in variables["criteria"]]
        return [judge_input.model_copy(update={"variables": item}) for item in alone]

    def check_verdict(self, verdict: Verdict, judge_input: JudgeInput) -> Verdict:
        """Criteria that were asked about held against what came back, with their weights.

        Raises:
            VerdictError: one is missing, or there is one that was not asked about.
        """
        if not isinstance(self.kind, Criteria) or self.kind.is_read_whole:
            return verdict
        return settled(self.kind, verdict, judge_input)

    def _shown(self, name: str, case: Case, output: SystemOutput) -> Any:
        """One thing that the judge sees, or why there is none."""
        match name:
            case "question":
                return case.question if case.question.strip() else NotApplicable("no question")
            case "answer":
                if output.answer is None:
                    return ABSTAINED if output.declared else Failed("no_answer")
                return Failed("blank_answer") if is_blank(output.answer) else output.answer
            case "passages":
                found = passages(output, self.rubric.top_k or 10)
                return NO_TEXT if all(is_blank(passage["text"]) for passage in found) else found
            case "references" | "key_facts":
                texts = case.reference_answers if name == "references" else case.key_facts
                return list(texts) or NotApplicable(f"no {VARIABLES.get(name, name).replace('_', ' ')}")
            case "citations":
                cited = citations(output, self.rubric.top_k or 10)
                return NotApplicable("no citations", by_output=True) if cited is None else cited
            case "conversation":
                return conversation_of(case, output) or NotApplicable("no conversation")
            case _:
                key = name.removeprefix("metadata.")
                value = case.metadata.get(key, output.metadata.get(key))
                is_missing = is_blank(value) if isinstance(value, str) else value in (None, [], {})
                return NotApplicable(f"no {name}") if is_missing else _as_text(value)


def settled(kind: Criteria, verdict: Verdict, judge_input: JudgeInput) -> Verdict:
    """A verdict on the criteria of its case, each there once and in their order, with their weights.

    Raises:
        VerdictError: one is missing, or there is one that was not asked about.
    """
    if verdict.criteria is None:
        return verdict
    wanted = [Criterion(**item) for item in judge_input.variables["criteria"]]
    found = {item.id: item for item in verdict.criteria}
    return verdict.model_copy(update={"criteria": kind.settled(found, wanted)})


class PreferenceJudge(RubricJudge):
    """Asks which of two answers is better, in both orders: `other` of an output is A, the output itself B."""

    def build_input(self, case: Case, output: SystemOutput) -> JudgeInput | NotApplicable | Failed:
        """What the rubric lets the judge see, A as `first` and B as `second`, each with passages of its own.

        Equal answers are a tie that nobody has to be asked about. Otherwise as of every rubric, for both outputs;
        metadata is that of the case, since what a system says of itself would be for one side only.
        """
        if output.other is None:
            return NotApplicable("no other answer")
        variables: dict[str, Any] = {}
        for place, side in (("first", output.other), ("second", output)):
            built = super().build_input(case, side.model_copy(update={"metadata": {}}))
            if not isinstance(built, JudgeInput):
                return built
            for name, value in built.variables.items():
                (variables.setdefault(place, {}) if name in _OF_THE_OUTPUT else variables)[name] = value
        if variables["first"]["answer"].strip() == variables["second"]["answer"].strip():
            return EQUAL
        return JudgeInput(case_id=case.id, judge=self.name, variables=variables)

    def read_verdict(self, payload: Mapping[str, Any]) -> Verdict:
        """What one of the two replies says."""
        said = Preference().read_pick(payload, self.decisive_key)
        return said.model_copy(update={"reasoning": read_text(payload, "reasoning")})

    def parts(self, judge_input: JudgeInput) -> Sequence[JudgeInput]:
        """The pair with A first, and with B first."""
        shown = judge_input.variables
        turned = {**shown, "first": shown["second"], "second": shown["first"]}
        return judge_input, judge_input.model_copy(update={"variables": turned})


def _as_text(value: object) -> str:
    if isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False)


def rubric_judge(name: str, rubric: Rubric) -> RubricJudge:
    """A judge of this name that asks what the rubric says."""
    compared = () if rubric.preference is None else (("output.other",),)
    needs = (*(_NEEDS[item] for item in rubric.shown if item in _NEEDS), *compared)
    fields = {"__module__": __name__, "name": name, "needs": needs, "decisive_key": rubric.kind.key}
    base = RubricJudge if rubric.preference is None else PreferenceJudge
    made: type[RubricJudge] = type(base.__name__, (base,), fields)
    return made(rubric=rubric)
