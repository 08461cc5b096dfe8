"""Scores of a run as Inspect's scorer `precomputed_scores` reads them: a line for each case."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from judgekit.core.runs import CaseRecord
from judgekit.reports.safe_text import inert
from judgekit.reports.score_table import is_score_of


def inspect_names(names: Sequence[str], judges: Iterable[str]) -> list[str]:
    """The scores that say what the judges say; without a judge, all scores.

    A judge that gives labels has no score of its own name: whether it passes stands for it, or else a score for each
    of its labels, since Inspect takes means of numbers only.
    """
    found: list[str] = []
    for judge in judges:
        own = [name for name in names if is_score_of(judge, name)]
        found += next(([name] for name in (judge, f"{judge}_pass") if name in own), own)
    return found or list(names)


def inspect_records(cases: Iterable[CaseRecord], names: Sequence[str]) -> Iterator[dict[str, Any]]:
    """The record of each case that has one of the scores.

    A score without a value is null, and the reason stands in the metadata. A case without any is left out, so that
    Inspect counts it as unscored.

    Args:
        cases: the cases of a run.
        names: the scores.
    """
    for record in cases:
        values = {name: record.scores.get(name, (None, None))[0] for name in names}
        if all(value is None for value in values.values()):
            continue
        why = {name: reason for name in names if (reason := record.scores.get(name, (None, None))[1]) is not None}
        verdicts = {
            judgment.judge: judgment.verdict
            for judgment in sorted(record.judgments, key=lambda judgment: judgment.judge)
            if judgment.role == "primary" and judgment.verdict is not None
        }
        said = [f"{judge}: {inert(verdict.reasoning)}" for judge, verdict in verdicts.items() if verdict.reasoning]
        labels = {judge: inert(verdict.label) for judge, verdict in verdicts.items() if verdict.label is not None}
        answer = None if record.output is None else record.output.answer
        yield {
            "id": record.case_id,
            "value": next(iter(values.values())) if len(values) == 1 else values,
            "answer": None if answer is None else inert(answer),
            "explanation": "\n".join(said) or None,
            "metadata": {**({"not_scored": why} if why else {}), **({"labels": labels} if labels else {})},
        }
