"""A change between two runs judged by different judges, split into what the system did and what the judge did."""

from collections.abc import Mapping
from typing import Any

from judgekit.stats.means import mean, mean_interval
from judgekit.stats.paired import sign_flip_p

Scores = Mapping[str, float]
"""Score by case id; a case without a score is absent."""


def bridge_figure(old: Scores, moved: Scores, new: Scores, *, same_judge: bool, seed: int) -> dict[str, Any]:
    """The parts of one figure's change between two runs.

    With J the judge of the old run and J' that of the new one, over the cases that have all three scores:

    * `system` = mean of J'(new) - J'(old): one judge, two systems;
    * `judge` = mean of J'(old) - J(old): one system, two judges;
    * `total` = mean of J'(new) - J(old) = `system` + `judge`.

    Each with Student's interval of the paired differences and the p of a sign-flip permutation.

    Assumptions: independent cases; the old outputs judged by J' are those that J judged.

    Args:
        old: J(old), the scores of the old run.
        moved: J'(old), the old outputs judged by the new judge; `old` itself where the two judges are the same.
        new: J'(new), the scores of the new run.
        same_judge: the two judges are one, so that the judge part is 0 by construction.
        seed: for the sign flips, where they are drawn.

    Returns:
        A strict-JSON object. `n`: cases with all three scores; `n_left_out`: cases with one in the old and the new run,
        but none from the new judge on the old output; means are None for n = 0.

    Source: in-house; Student 1908 for the intervals.
    """
    shared = [case_id for case_id in old if case_id in new]
    cases = [case_id for case_id in shared if case_id in moved]
    judge = _part([moved[case_id] - old[case_id] for case_id in cases], seed)
    return {
        "n": len(cases),
        "n_left_out": len(shared) - len(cases),
        "old": _mean(old, cases),
        "old_by_new_judge": _mean(moved, cases),
        "new": _mean(new, cases),
        "total": _part([new[case_id] - old[case_id] for case_id in cases], seed),
        "system": _part([new[case_id] - moved[case_id] for case_id in cases], seed),
        "judge": {"value": judge["value"], "low": None, "high": None, "p": None, "by_construction": True}
        if same_judge
        else {**judge, "by_construction": False},
    }


def _part(differences: list[float], seed: int) -> dict[str, Any]:
    value, low, high = mean_interval(differences)
    tested = sign_flip_p(differences, seed)
    return {"value": value, "low": low, "high": high, "p": None if tested is None else tested[0]}


def _mean(scores: Scores, cases: list[str]) -> float | None:
    return mean([scores[case_id] for case_id in cases])
