"""Several verdicts on one case: pairs, from a second opinion, a repeat or a rejudge, and the members of a panel.

A pair is one case judged twice, by the judge of the run and by what it is checked against. A pair without two
verdicts is a failure: it is listed and counted, but agrees with nothing and stands in no denominator.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any, Protocol

from judgekit.core.judgments import JudgeFailure, Verdict
from judgekit.stats.agreement import effective_votes
from judgekit.stats.means import mean_interval
from judgekit.stats.paired import sign_flip_p

MOST_NAMED = 50
"""Changed cases that are listed for each judge."""

Opinion = Verdict | JudgeFailure


class Sampler(Protocol):
    """The one thing asked of a source of randomness; `random.Random` has it."""

    def sample(self, population: Sequence[int], k: int) -> list[int]: ...


@dataclass(frozen=True, slots=True)
class Pair:
    """One case of the sample, judged twice."""

    case_id: str
    first: Opinion
    """What the run says."""
    second: Opinion
    """What the second model or wording says of the same judge input."""


@dataclass(frozen=True, slots=True)
class ScoredPair:
    """What is known of a pair with two verdicts; a yes/no answer is rated 1 or 0."""

    first: int
    second: int
    gap_over_one: bool
    class_flip: bool

    @property
    def disagrees(self) -> bool:
        """Whether the two contradict each other."""
        return self.gap_over_one or self.class_flip


def draw_sample(ids: Sequence[str], n: int, rng: Sampler) -> list[str]:
    """A simple random sample without replacement in the order of `ids`, see `draw_order`."""
    drawn = set(draw_order(ids, n, rng))
    return [case_id for case_id in ids if case_id in drawn]


def draw_order(ids: Sequence[str], n: int, rng: Sampler) -> list[str]:
    """A random order of n ids, of which every beginning is a simple random sample: for a sample that may grow.

    Args:
        ids: what to draw from. The same ids in the same order and the same seed give the same sample, so give them
            in the order of the cases and not in the order in which judgments came back.
        n: number of ids wanted at most, at least 0; more than there are takes all.
        rng: a seeded source of randomness.

    Raises:
        ValueError: n is below 0.
    """
    if n < 0:
        raise ValueError(f"a sample has at least 0 ids, not {n}")
    return [ids[position] for position in rng.sample(range(len(ids)), min(n, len(ids)))]


def compare_pair(pair: Pair, pass_score: int | None) -> ScoredPair | None:
    """A pair as ratings and disagreements, see `compare_verdicts`; None if one of the two is a failure."""
    if isinstance(pair.first, JudgeFailure) or isinstance(pair.second, JudgeFailure):
        return None
    return compare_verdicts(pair.first, pair.second, pass_score)


def compare_verdicts(first: Verdict, second: Verdict, pass_score: int | None) -> ScoredPair:
    """Whether two verdicts on one case contradict each other.

    Scores: they differ by more than one point, or one passes (score >= pass_score) and the other does not. Yes/no
    verdicts: the answers differ.

    Args:
        first: verdict of the run.
        second: verdict of the second opinion.
        pass_score: lowest score that passes; None: the judge has no pass class.

    Raises:
        ValueError: the verdicts are of different kinds, or one of them says nothing.
    """
    if first.score is not None and second.score is not None:
        gap = abs(first.score - second.score) > 1
        flip = pass_score is not None and (first.score >= pass_score) != (second.score >= pass_score)
        return ScoredPair(first.score, second.score, gap, flip)
    if first.answer is None or second.answer is None:
        raise ValueError("two verdicts can be compared where both are scores or both are yes/no answers")
    return ScoredPair(int(first.answer), int(second.answer), False, first.answer != second.answer)


def raw_verdict(opinion: Opinion) -> int | bool | None:
    """The score or the answer of a verdict, as stored; None for a failure."""
    if isinstance(opinion, JudgeFailure):
        return None
    return opinion.answer if opinion.score is None else opinion.score


def verdict_changes(
    by_judge: Mapping[str, Sequence[Pair]], pass_scores: Mapping[str, int | None], seed: int
) -> dict[str, Any]:
    """The part `rejudged` of metrics.json: over all judges that were asked again, and under `by_judge` for each.

    A verdict is `changed` if the score, or the yes/no answer, is another one; `n_disagree` counts those that
    contradict each other by the rule of the spot check. `mean_signed_difference` is new - old with Student's interval
    over cases, `p` that of a sign-flip permutation.

    Assumptions: the overall interval takes the verdicts of two judges on one case as independent, which they are not
    quite; those of single judges do not.

    Args:
        by_judge: by judge, each case with its old and its new verdict.
        pass_scores: by judge, the lowest score that passes; None: the judge has no pass class.
        seed: for the sign flips, if they are drawn.

    Returns:
        A strict-JSON object; rates and means are None if no case has two verdicts. A case without one of the two
        is in `n_unscored` and in no denominator.
    """
    reports = {name: _changes(pairs, pass_scores.get(name), seed) for name, pairs in by_judge.items()}
    differences = [difference for report in reports.values() for difference in report.pop("differences")]
    counts = ("n", "n_unscored", "changed", "n_disagree")
    totals = {key: sum(report[key] for report in reports.values()) for key in counts}
    return {**totals, **_shift(differences, seed), "by_judge": reports}


def _changes(pairs: Sequence[Pair], pass_score: int | None, seed: int) -> dict[str, Any]:
    compared = [(pair.case_id, compare_pair(pair, pass_score)) for pair in pairs]
    scored = [(case_id, item) for case_id, item in compared if item is not None]
    changed = [(case_id, item) for case_id, item in scored if item.first != item.second]
    differences = [item.second - item.first for _, item in scored]
    return {
        "n": len(scored),
        "n_unscored": len(pairs) - len(scored),
        "changed": len(changed),
        "n_disagree": sum(item.disagrees for _, item in scored),
        **_shift(differences, seed),
        "cases": [
            {"case_id": case_id, "before": item.first, "after": item.second} for case_id, item in changed[:MOST_NAMED]
        ],
        "differences": differences,
    }


def _shift(differences: Sequence[int], seed: int) -> dict[str, Any]:
    mean, low, high = mean_interval(differences)
    p, _ = sign_flip_p(differences, seed)
    return {"mean_signed_difference": mean, "low": low, "high": high, "p": p}


def panel_record(
    members: Sequence[str],
    opinions: Sequence[Mapping[str, Opinion]],
    rulings: Mapping[str, int],
    pass_score: int | None,
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
        A strict-JSON object. Rates over no case are None; so are `effective_votes` and `mean_correlation` if no pair
        of members varies over common cases, with `undefined_reason`.

    Source: Kish 1965 for effective votes.
    """
    said = [[case.get(member) for member in members] for case in opinions]
    ratings = [[item.rating if isinstance(item, Verdict) else None for item in case] for case in said]
    by_member = dict(zip(members, zip(*ratings, strict=True), strict=True)) if ratings else dict.fromkeys(members, ())
    complete = [case for case in ratings if None not in case]
    votes = effective_votes([[None if value is None else float(value) for value in case] for case in ratings])
    record: dict[str, Any] = {
        "n_cases": len(ratings),
        "n_complete": len(complete),
        "n_unanimous": sum(len(set(case)) == 1 for case in complete),
        **rulings,
        "failures": {member: _failures([case[place] for case in said]) for place, member in enumerate(members)},
        "mean_rating": {member: _mean(given) for member, given in by_member.items()},
        "agreement": [
            {"members": [a, b], **_agreement(by_member[a], by_member[b], pass_score)}
            for a, b in combinations(members, 2)
        ],
        "mean_correlation": votes.mean_correlation,
        "effective_votes": votes.value,
    }
    if votes.value is None:
        record["undefined_reason"] = "no two members vary over common cases, or their ratings oppose each other"
    return record


def _failures(opinions: Sequence[Opinion | None]) -> dict[str, int]:
    return dict(sorted(Counter(said.kind for said in opinions if isinstance(said, JudgeFailure)).items()))


def _mean(ratings: Sequence[int | None]) -> float | None:
    found = [value for value in ratings if value is not None]
    return sum(found) / len(found) if found else None


def _agreement(first: Sequence[int | None], second: Sequence[int | None], pass_score: int | None) -> dict[str, Any]:
    """How often two members give the same rating, and are on the same side of the pass mark."""
    both = [(a, b) for a, b in zip(first, second, strict=True) if a is not None and b is not None]
    limit = 1 if pass_score is None else pass_score
    return {
        "n": len(both),
        "exact": sum(a == b for a, b in both) / len(both) if both else None,
        "same_class": sum((a >= limit) == (b >= limit) for a, b in both) / len(both) if both else None,
    }
