"""What a panel of judges is worth: how often its members agree, tie and fail, and how many votes they amount to."""

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Any

from judgekit.core.judgments import JudgeFailure, Verdict
from judgekit.stats.agreement import effective_votes

Opinions = Mapping[str, Verdict | JudgeFailure]
"""What each member says of one case, by key of its model."""


def panel_record(
    members: Sequence[str], opinions: Sequence[Opinions], rulings: Mapping[str, int], pass_score: int | None
) -> dict[str, Any]:
    """The object `panel` of a judge in metrics.json; figures are not yet rounded.

    `effective_votes` = k / (1 + (k - 1) rho), with rho the mean correlation of the members' ratings over the cases. Of
    bare ratings it is a lower bound: members that are right agree for that reason alone. Yes is rated 1, no 0.

    Args:
        members: keys of the models, in the order of the config.
        opinions: what the members say, case by case; a member that was not asked is absent.
        rulings: `n_ties` and `n_below_quorum` of the panel.
        pass_score: lowest score that passes; None: the judge has no pass class.

    Returns:
        A strict-JSON object. Rates over no case are None; so are `effective_votes` and `mean_correlation` where no pair
        of members varies over common cases, with `undefined_reason`.

    Source: in-house; Kish 1965 for effective votes.
    """
    ratings = [[_rating(case.get(member)) for member in members] for case in opinions]
    complete = [case for case in ratings if None not in case]
    votes = effective_votes([[None if value is None else float(value) for value in case] for case in ratings])
    record: dict[str, Any] = {
        "n_cases": len(ratings),
        "n_complete": len(complete),
        "n_unanimous": sum(len(set(case)) == 1 for case in complete),
        **rulings,
        "failures": {member: _failures(member, opinions) for member in members},
        "mean_rating": {member: _mean([case[place] for case in ratings]) for place, member in enumerate(members)},
        "agreement": [
            _agreement((a, b), [(case[members.index(a)], case[members.index(b)]) for case in ratings], pass_score)
            for a, b in combinations(members, 2)
        ],
        "mean_correlation": votes.mean_correlation,
        "effective_votes": votes.value,
    }
    if votes.value is None:
        record["undefined_reason"] = "no two members vary over common cases, or their ratings oppose each other"
    return record


def _rating(opinion: Verdict | JudgeFailure | None) -> int | None:
    return opinion.rating if isinstance(opinion, Verdict) else None


def _failures(member: str, opinions: Sequence[Opinions]) -> dict[str, int]:
    kinds = Counter(said.kind for case in opinions if isinstance(said := case.get(member), JudgeFailure))
    return dict(sorted(kinds.items()))


def _mean(ratings: Sequence[int | None]) -> float | None:
    found = [value for value in ratings if value is not None]
    return sum(found) / len(found) if found else None


def _agreement(
    members: tuple[str, str], pairs: Sequence[tuple[int | None, int | None]], pass_score: int | None
) -> dict[str, Any]:
    """How often two members give the same rating, and are on the same side of the pass mark."""
    both = [(a, b) for a, b in pairs if a is not None and b is not None]
    limit = 1 if pass_score is None else pass_score
    n_equal = sum(a == b for a, b in both)
    n_same_class = sum((a >= limit) == (b >= limit) for a, b in both)
    return {
        "members": list(members),
        "n": len(both),
        "exact": n_equal / len(both) if both else None,
        "same_class": n_same_class / len(both) if both else None,
    }
