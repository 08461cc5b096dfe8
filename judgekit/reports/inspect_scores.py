"""What a judge says of the cases of a run as Inspect's scorer `precomputed_scores` reads it: a line for each case.

A file has one judge: among several scores Inspect takes a null for a 0, and a case that has no line is unscored.
"""

from collections.abc import Sequence
from typing import Any

from judgekit.core.runs import CaseRecord
from judgekit.reports.safe_text import inert
from judgekit.reports.score_table import is_score_of


def inspect_names(names: Sequence[str], judge: str) -> list[str]:
    """The scores that say what a judge says: one, or of labels of which none passes one for each.

    Inspect takes means of numbers only, so of labels it is whether they pass, and of preferences whether B wins.

    Args:
        names: all scores of the run.
        judge: name of the judge.
    """
    own = [name for name in names if is_score_of(judge, name)]
    win = [f"{judge}.win"] if f"{judge}.order_effect" in own else []
    single = next((name for name in (judge, f"{judge}_pass", *win) if name in own), None)
    return [name for name in own if name != f"{judge}.cannot_tell"] if single is None else [single]


def inspect_record(record: CaseRecord, judge: str, names: Sequence[str]) -> dict[str, Any] | None:
    """The line of a case; None if the judge failed, does not apply or cannot tell, so that the case is unscored.

    Args:
        record: the case.
        judge: name of the judge.
        names: what `inspect_names` gives.
    """
    values = {name: record.scores.get(name, (None, None))[0] for name in names}
    if not values or None in values.values():
        return None
    verdict = next(
        (item.verdict for item in record.judgments if (item.role, item.judge) == ("primary", judge)),
        None,
    )
    answer = None if record.output is None else record.output.answer
    return {
        "id": record.case_id,
        "value": next(iter(values.values())) if len(values) == 1 else values,
        "answer": None if answer is None else inert(answer),
        "explanation": None if verdict is None else inert(verdict.reasoning) or None,
        "metadata": {} if verdict is None or verdict.label is None else {"label": inert(verdict.label)},
    }
