"""Scores of a run as Inspect's scorer `precomputed_scores` reads them: a line for each case."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from judgekit.core.runs import CaseRecord
from judgekit.reports.safe_text import inert


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
        said = [
            f"{judgment.judge}: {inert(judgment.verdict.reasoning)}"
            for judgment in record.judgments
            if judgment.role == "primary" and judgment.verdict is not None and judgment.verdict.reasoning
        ]
        answer = None if record.output is None else record.output.answer
        yield {
            "id": record.case_id,
            "value": next(iter(values.values())) if len(values) == 1 else values,
            "answer": None if answer is None else inert(answer),
            "explanation": "\n".join(said) or None,
            "metadata": {"not_scored": why} if why else {},
        }
