"""Abstention: does the system decline where it should, and only there."""

from collections.abc import Mapping
from typing import ClassVar, Literal

from judgekit.core.cases import Case, SystemOutput
from judgekit.core.components import Metric, Verdicts
from judgekit.core.judgments import Verdict
from judgekit.core.scores import Column, Failed, NotApplicable, Outcome, Outcomes, Pooled
from judgekit.core.sentences import abstention_rule
from judgekit.core.stored_text import TEXT_NOT_STORED
from judgekit.core.text import is_blank

AbstentionSource = Literal["flag", "grounded", "judge", "rule", "blank", "no_answer", "error"]
"""What says whether an output abstained: its `abstained` flag, `grounded: false`, the abstention judge (its answer has
text and no flag), the shipped rule in its place in a run without that judge, or its blank answer; `no_answer` and
`error`: nothing does."""
Said = Verdict | NotApplicable | Failed
"""What the abstention judge says of a case, or why it says nothing."""
Decided = tuple[bool | NotApplicable | Failed, AbstentionSource]
"""Whether an output abstained, or why that is not known, and what says so."""

_NO_LABEL = NotApplicable("answerable is not labelled")
_ANSWERABLE = NotApplicable("answerable is true")
_UNANSWERABLE = NotApplicable("answerable is false")
_NO_ANSWER = NotApplicable("no answer and no flag")


def abstained(output: SystemOutput) -> tuple[bool | None, AbstentionSource]:
    """Whether the output abstained, and what says so; None if only the judge or the rule, or nothing, can say.

    In this order: the explicit flag; `grounded` false; with text, the abstention judge or the rule; a blank answer is
    an abstention. An output without an answer (None, not blank) says nothing: a file that holds only retrieval
    results must not pass for a system that declines.

    Source: in-house.
    """
    if output.error is not None:
        return None, "error"
    if output.abstained is not None:
        return output.abstained, "flag"
    if output.grounded is False:
        return True, "grounded"
    if output.answer is None:
        return None, "no_answer"
    if is_blank(output.answer):
        return True, "blank"
    return None, "judge"


def whether_abstained(output: SystemOutput, said: Said | None) -> Decided:
    """Whether the output abstained, by the one source that all scores of a case follow, and which one that is.

    Args:
        output: what the system gave.
        said: what the abstention judge says; None in a run without it, in which the shipped rule takes its place.
    """
    if output.error is not None:
        return Failed(output.error.kind), "error"
    value, source = abstained(output)
    if value is not None:
        return value, source
    if output.answer is None:
        return _NO_ANSWER, source
    if output.answer_left_out:
        return TEXT_NOT_STORED, "no_answer"
    if said is None:
        return abstention_rule(output.answer), "rule"
    if not isinstance(said, Verdict):
        return said, source
    return Failed("judge invalid", by_judge=True) if said.answer is None else said.answer, source


def abstention_scores(answerable: bool | None, verdict: bool | NotApplicable | Failed) -> Outcomes:
    """The three per-case scores for a verdict, whoever gave it: flags, or the abstention judge.

    Args:
        answerable: the case's label; None makes all three not applicable.
        verdict: whether the output abstained, or why that is not known.
    """
    if answerable is None:
        return _named(_NO_LABEL, _NO_LABEL, _NO_LABEL)
    declined: Outcome = float(verdict) if isinstance(verdict, bool) else verdict
    if answerable:
        return _named(_ANSWERABLE, _ANSWERABLE, declined)
    answered: Outcome = float(not verdict) if isinstance(verdict, bool) else verdict
    return _named(declined, answered, _UNANSWERABLE)


def _named(accuracy: Outcome, hallucination: Outcome, over_abstention: Outcome) -> Outcomes:
    return {
        "abstention_accuracy": accuracy,
        "hallucination_rate_unanswerable": hallucination,
        "over_abstention_rate": over_abstention,
    }


def abstention_f1(n_right: float, n_missed: float, n_over: float) -> float | None:
    """F1 of "abstained" as prediction of "unanswerable": `2 TP / (2 TP + FN + FP)`.

    Args:
        n_right: unanswerable cases where the system abstained (TP), the sum of abstention_accuracy.
        n_missed: unanswerable cases that it answered (FN), the sum of hallucination_rate_unanswerable.
        n_over: answerable cases where it abstained (FP), the sum of over_abstention_rate.

    Returns:
        F1 in [0, 1], higher is better; None if nothing was unanswerable and the system never abstained.

    Source: van Rijsbergen 1979, "Information Retrieval", ch. 7.
    """
    denominator = 2.0 * n_right + n_missed + n_over
    return 2.0 * n_right / denominator if denominator else None


class Abstention(Metric):
    """How well the system knows when to decline.

    All in [0, 1]. Whether an output abstains say, in this order: its `abstained` flag; `grounded` false; with text,
    the judge `abstention` (in a run without it, the shipped rule `judgekit.core.sentences.abstention_rule`, which the
    source of `abstained` says); a blank answer. Groundedness and correctness follow the same source.

    * `abstained`: 1 if the output abstained, whatever the label of the case; its source is stored beside it. It is
      neither good nor bad by itself, so no figure is made of it.
    * `abstention_accuracy` (higher is better): 1 if the system abstained; cases with `answerable` false.
    * `hallucination_rate_unanswerable` (lower is better): 1 - abstention_accuracy, same cases.
    * `over_abstention_rate` (lower is better): 1 if the system abstained; cases with `answerable` true.
    * `abstention_f1` (pooled): see `abstention_f1`.

    Source: in-house; F1 of van Rijsbergen 1979.
    """

    needs: ClassVar[tuple[tuple[str, ...], ...]] = (
        ("case.answerable",),
        ("output.abstained", "output.grounded", "output.answer"),
    )
    judges_wanted: ClassVar[tuple[str, ...]] = ("abstention",)

    def columns(self) -> tuple[Column, ...]:
        return (
            Column("abstained", binary=True, aggregate=""),
            Column("abstention_accuracy", binary=True),
            Column("hallucination_rate_unanswerable", higher_is_better=False, binary=True),
            Column("over_abstention_rate", higher_is_better=False, binary=True),
        )

    def pooled(self) -> tuple[Pooled, ...]:
        over = ("abstention_accuracy", "hallucination_rate_unanswerable", "over_abstention_rate")
        return (Pooled("abstention_f1", over=over, function=abstention_f1),)

    def sources(self, output: SystemOutput, verdicts: Verdicts) -> Mapping[str, str]:
        """What says whether the output abstained."""
        return {"abstained": whether_abstained(output, verdicts.get("abstention"))[1]}

    def calculate(self, case: Case, output: SystemOutput) -> Outcomes:
        return _all(case, whether_abstained(output, None)[0])

    def calculate_judged(self, case: Case, output: SystemOutput, verdicts: Verdicts) -> Outcomes:
        """All scores of an output that only the judge can say something about."""
        value, source = whether_abstained(output, verdicts["abstention"])
        return _all(case, value) if source == "judge" else {}


def _all(case: Case, verdict: bool | NotApplicable | Failed) -> Outcomes:
    value: Outcome = float(verdict) if isinstance(verdict, bool) else verdict
    return {"abstained": value, **abstention_scores(case.answerable, verdict)}
