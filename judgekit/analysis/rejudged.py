"""How the verdicts of a rejudge differ from those of the run that it judges again."""

from collections.abc import Mapping, Sequence
from typing import Any

from judgekit.analysis.pairs import Pair, compare_pair
from judgekit.stats.means import mean_interval
from judgekit.stats.paired import sign_flip_p

MOST_NAMED = 50
"""Changed cases that are listed for each judge."""


def verdict_changes(
    by_judge: Mapping[str, Sequence[Pair]], pass_scores: Mapping[str, int | None], seed: int
) -> dict[str, Any]:
    """The part `rejudged` of metrics.json: over all judges that were asked again, and under `by_judge` for each.

    A verdict is `changed` where the score, or the yes/no answer, is another one; `n_disagree` counts those that
    contradict each other by the rule of the spot check. `mean_signed_difference` is new - old with Student's interval
    over cases, `p` that of a sign-flip permutation.

    Assumptions: the overall interval takes the verdicts of two judges on one case as independent, which they are not
    quite; those of single judges do not.

    Args:
        by_judge: by judge, each case with its old and its new verdict.
        pass_scores: by judge, the lowest score that passes; None: the judge has no pass class.
        seed: for the sign flips, where they are drawn.

    Returns:
        A strict-JSON object; rates and means are None where no case has two verdicts. A case without one of the two
        is in `n_unscored` and in no denominator.

    Source: in-house.
    """
    reports = {name: _changes(pairs, pass_scores.get(name), seed) for name, pairs in by_judge.items()}
    differences = [difference for name in by_judge for difference in reports[name].pop("differences")]
    counts = ("n", "n_unscored", "changed", "n_disagree")
    totals = {key: sum(report[key] for report in reports.values()) for key in counts}
    return {**totals, **_shift(differences, seed), "by_judge": reports}


def _changes(pairs: Sequence[Pair], pass_score: int | None, seed: int) -> dict[str, Any]:
    compared = [(pair, compare_pair(pair, pass_score)) for pair in pairs]
    scored = [(pair, item) for pair, item in compared if item is not None]
    changed = [(pair, item) for pair, item in scored if item.first != item.second]
    differences = [item.second - item.first for _, item in scored]
    return {
        "n": len(scored),
        "n_unscored": len(pairs) - len(scored),
        "changed": len(changed),
        "n_disagree": sum(item.disagrees for _, item in scored),
        **_shift(differences, seed),
        "cases": [
            {"case_id": pair.case_id, "before": item.first, "after": item.second} for pair, item in changed[:MOST_NAMED]
        ],
        "differences": differences,
    }


def _shift(differences: Sequence[int], seed: int) -> dict[str, Any]:
    mean, low, high = mean_interval(differences)
    tested = sign_flip_p(differences, seed)
    return {"mean_signed_difference": mean, "low": low, "high": high, "p": None if tested is None else tested[0]}
