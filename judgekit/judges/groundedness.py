"""Groundedness: is every claim of the answer supported by the passages that the system retrieved?"""

from collections.abc import Mapping
from functools import cached_property
from typing import Annotated, Any, ClassVar

from pydantic import Field

from judgekit.core.cases import Case, SystemOutput
from judgekit.core.components import Judge
from judgekit.core.judgments import JudgeInput, Verdict
from judgekit.core.reply_values import read_text
from judgekit.core.scores import Column, Failed, NotApplicable, Outcome, Outcomes, Pooled
from judgekit.core.sentences import CITATION
from judgekit.core.text import is_blank
from judgekit.core.verdict_kinds import Scale
from judgekit.judges.parsing import read_quotes, read_texts
from judgekit.judges.passages import ABSTAINED, NO_TEXT, citations, folded, passages, unjudgeable


class Groundedness(Judge):
    """Whole number 0 (unrelated to the passages) to 5 (every claim supported, every major one cited).

    Not applicable if no retrieved text exists, and to an abstention; one on an answerable case has the worst score.
    From prompt v2 on the judge quotes the passages for each supported claim, and the quotes are looked up.

    Source: in-house.
    """

    needs: ClassVar[tuple[tuple[str, ...], ...]] = (("output.answer",), ("output.retrieved",))

    verdict_keys: ClassVar[tuple[str, ...]] = ("reasoning", "supported_claims", "unsupported_claims")
    optional_keys: ClassVar[tuple[str, ...]] = ("quotes",)

    pass_score: Annotated[int, Field(ge=1, le=5)] = 4
    """Smallest score that counts as a pass."""
    top_k: Annotated[int, Field(ge=1)] = 10
    """Passages shown to the judge, best rank first."""

    @cached_property
    def kind(self) -> Scale:
        """0 to 5."""
        return Scale(pass_score=self.pass_score)

    def build_input(self, case: Case, output: SystemOutput) -> JudgeInput | NotApplicable | Failed:
        """Variables `answer`, `passages`, `citations` (None: the system does not report any)."""
        if output.error is None and output.declared:
            return ABSTAINED
        reason = unjudgeable(case, output)
        if reason is not None:
            return reason
        shown = passages(output, self.top_k)
        variables = {"answer": output.answer, "passages": shown, "citations": citations(output, self.top_k)}
        built = JudgeInput(case_id=case.id, judge=self.name, variables=variables)
        return self.not_asked(built) or built

    def not_asked(self, judge_input: JudgeInput) -> NotApplicable | None:
        """Nothing can be said of an answer if nothing was retrieved that it could rest on."""
        texts = [passage.get("text") for passage in judge_input.variables.get("passages") or ()]
        return NO_TEXT if all(not text or is_blank(text) for text in texts) else None

    def abstained_scores(self) -> Outcomes:
        """0 and no pass; it makes no claims."""
        scores: Outcomes = dict.fromkeys([column.name for column in self.columns()], ABSTAINED)
        return {**scores, self.name: 0.0, f"{self.name}_pass": 0.0}

    def read_verdict(self, payload: Mapping[str, Any]) -> Verdict:
        """Score 0-5 with both lists of claims, flagged `inconsistent` if they contradict each other."""
        said = {**self.kind.read(payload, self.decisive_key), "reasoning": read_text(payload, "reasoning")}
        supported = read_texts(payload, "supported_claims")
        unsupported = read_texts(payload, "unsupported_claims")
        return Verdict(
            **said,
            supported_claims=supported,
            unsupported_claims=unsupported,
            quotes=read_quotes(payload, "quotes"),
            inconsistent=_contradicts(said.get("score") or 0, supported, unsupported),
        )

    def check_verdict(self, verdict: Verdict, judge_input: JudgeInput) -> Verdict:
        """Flagged `inconsistent` if a full score is given to an answer that cites nothing, and quotes looked up.

        Only an answer of a system that reports citations can cite nothing: its list is empty, and no mark such as
        `[1]` is in the text. A quote is real if the text of a passage has it as it is.
        Compared after Unicode NFC, with every run of white space as one space; case and punctuation count. A quote
        that runs over two passages is not real.
        """
        variables = judge_input.variables
        if verdict.score == 5 and variables.get("citations") == [] and CITATION.search(variables["answer"]) is None:
            verdict = verdict.model_copy(update={"inconsistent": True})
        if verdict.quotes is None:
            return verdict
        texts = [folded(passage["text"]) for passage in variables["passages"]]
        quotes = [
            quote.model_copy(update={"is_real": any(folded(quote.quote) in text for text in texts)})
            for quote in verdict.quotes
        ]
        return verdict.model_copy(update={"quotes": tuple(quotes)})

    def columns(self) -> tuple[Column, ...]:
        """Score, pass, the two counts that feed `unsupported_claim_rate`, and the share of quotes that are real."""
        return (
            *super().columns(),
            Column(f"{self.name}.n_unsupported_claims", high=float("inf"), higher_is_better=False, aggregate=""),
            Column(f"{self.name}.n_claims", high=float("inf"), aggregate=""),
            Column(f"{self.name}.quote_real_rate"),
        )

    def pooled(self) -> tuple[Pooled, ...]:
        """Share of all claims, over all judged answers, that no passage supports."""
        names = (f"{self.name}.n_unsupported_claims", f"{self.name}.n_claims")
        return (Pooled(f"{self.name}.unsupported_claim_rate", names, _share, higher_is_better=False),)

    def scores(self, verdict: Verdict) -> Outcomes:
        """The five columns; a part that the verdict lacks is a failure, never 0."""
        missing = Failed("invalid", by_judge=True)
        supported, unsupported = verdict.supported_claims, verdict.unsupported_claims
        has_claims = supported is not None and unsupported is not None
        n_unsupported = len(unsupported or ())
        n_claims = n_unsupported + len(supported or ())
        return {
            **super().scores(verdict),
            f"{self.name}.n_unsupported_claims": float(n_unsupported) if has_claims else missing,
            f"{self.name}.n_claims": float(n_claims) if has_claims else missing,
            f"{self.name}.quote_real_rate": _quote_real_rate(verdict),
        }


def _contradicts(score: int, supported: tuple[str, ...], unsupported: tuple[str, ...]) -> bool:
    """Whether score and claims cannot both be right.

    A claim in both lists; 5 with an unsupported claim; 5 without any claim, since nothing is supported then; 4
    with more unsupported claims than supported ones; 0 or 1 if every claim is supported.
    """
    if set(supported) & set(unsupported):
        return True
    if score == 5:
        return not supported or bool(unsupported)
    if score == 4:
        return len(unsupported) > len(supported)
    return score <= 1 and bool(supported) and not unsupported


def _quote_real_rate(verdict: Verdict) -> Outcome:
    if verdict.quotes is None:
        return NotApplicable("the prompt asks for no quotes")
    return verdict.n_real_quotes / len(verdict.quotes) if verdict.quotes else NotApplicable("no quotes")


def _share(n_unsupported: float, n_claims: float) -> float | None:
    return n_unsupported / n_claims if n_claims else None
