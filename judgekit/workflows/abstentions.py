"""Abstentions of a run: one source says which outputs are some, and judges follow it."""

from collections import Counter
from collections.abc import Collection, Sequence
from typing import Any

from judgekit.core.cases import Case, SystemOutput
from judgekit.core.components import Judge, Verdicts
from judgekit.core.judgments import Verdict
from judgekit.core.scores import Failed, NotApplicable, Outcomes
from judgekit.judges.passages import ABSTAINED
from judgekit.metrics.abstention import Decided, abstained, whether_abstained


def following(judge: Judge, case: Case, decided: Decided, said: Verdict | NotApplicable | Failed) -> Outcomes | None:
    """The scores that a judge gets from what decides about abstentions; None where its own word stands.

    An abstention has the worst scores on an answerable case, and none otherwise. Where it is not known whether the
    output abstained, since the abstention judge failed, it is not known whether the judge applies either. What cannot
    be judged for another reason, such as no retrieved text, stays so; and a blank answer stays a failure
    but where it is right, so that a system that falls silent cannot raise a mean.
    """
    worst = judge.abstained_scores()
    value, source = decided
    if worst is None or (isinstance(said, NotApplicable) and said != ABSTAINED):
        return None
    names = [column.name for column in judge.columns()]
    if isinstance(value, Failed) and source == "judge" and isinstance(said, Verdict):
        return dict.fromkeys(names, Failed(f"abstention {value.kind}", by_judge=True))
    if value is not True or (source == "blank" and case.answerable is not False):
        return None
    return worst if case.answerable else dict.fromkeys(names, ABSTAINED)


class Abstentions:
    """Which outputs of a run are abstentions, and what says so, counted case by case."""

    def __init__(self) -> None:
        """None so far."""
        self._sources: Counter[str] = Counter()
        self._found: Counter[str] = Counter()
        self._n_answered = 0

    def of(self, case: Case, output: SystemOutput, verdicts: Verdicts) -> Decided:
        """Whether an output abstained; counted."""
        value, source = decided = whether_abstained(output, verdicts.get("abstention"))
        self._sources[source] += 1
        self._found[source] += value is True
        self._n_answered += source == "rule" and value is False and case.answerable is False
        return decided

    def record(self) -> dict[str, Any] | None:
        """`source`: what decides where the system does not say; counts of cases and of abstentions by source."""
        if not self._sources.keys() - {"no_answer", "error"}:
            return None
        source = next((name for name in ("judge", "rule") if self._sources[name]), "flag")
        return {"source": source, "by_source": dict(self._sources), "n_abstained": dict(+self._found)}

    def warnings(self) -> list[tuple[str, str]]:
        """Said where the rule found an abstention, or none where one is due: figures hang on it."""
        if not self._found["rule"] and not self._n_answered:
            return []
        text = (
            f"the shipped rule took {self._found['rule']} of {self._sources['rule']} answers for abstentions by their "
            "words, and figures follow it; outputs with `abstained`, or the judge abstention, would say it better"
        )
        if self._n_answered:
            text += (
                f"; {self._n_answered} to unanswerable questions count as answers, which is wrong where they decline "
                "in words that the rule does not know"
            )
        return [("abstention_by_rule", text)]


def missing_source(
    judges: Collection[str], cases: Sequence[Case], outputs: Sequence[SystemOutput]
) -> list[tuple[str, str]]:
    """What a run lacks to say which outputs are abstentions, for the check before it."""
    labelled = any(case.answerable is not None for case in cases)
    n_open = sum(output.error is None and abstained(output)[1] == "judge" for output in outputs)
    if not n_open or "abstention" in judges or not (labelled or judges):
        return []
    text = (
        f"{n_open} of {len(outputs)} outputs have no `abstained` flag and there is no judge abstention, so the shipped "
        "rule will decide by their words which of them are abstentions"
    )
    return [("abstention_by_rule", text)]
