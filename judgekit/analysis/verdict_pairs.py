"""Several verdicts on one case: pairs, from a second opinion, a repeat or a rejudge, and the members of a panel.

A pair is one case judged twice, by the judge of the run and by what it is checked against. A pair without two
verdicts is a failure: it is listed and counted, but agrees with nothing and stands in no denominator.
"""

from array import array
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any, Protocol

from judgekit.core.judgments import JudgeFailure, Verdict
from judgekit.core.verdict_kinds import Kind, Said
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
    """What is known of a pair with two verdicts; yes is rated 1 and no 0, a label by its number."""

    first: float | None
    """Rating of the run's verdict; None: it cannot be told."""
    second: float | None
    gap_over_one: bool
    """They are too far apart: by more than one point on most scales."""
    class_flip: bool
    """One passes and the other does not; or they are another answer or label."""
    is_same: bool
    """They are equal in everything that decides."""
    difference: float | None
    """Second - first; None if either cannot be told, and of labels, which have no order."""

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


def compare_pair(pair: Pair, kind: Kind) -> ScoredPair | None:
    """A pair as ratings and disagreements, see `compare_verdicts`; None if one of the two is a failure."""
    if isinstance(pair.first, JudgeFailure) or isinstance(pair.second, JudgeFailure):
        return None
    return compare_verdicts(pair.first, pair.second, kind)


def compare_verdicts(first: Verdict, second: Verdict, kind: Kind) -> ScoredPair:
    """Whether two verdicts on one case contradict each other, as their kind says.

    Args:
        first: verdict of the run.
        second: verdict of the second opinion.
        kind: what verdicts of the judge are.

    Raises:
        ValueError: a verdict is of another kind, or says nothing.
    """
    gap, flip = kind.contradiction(first, second)
    ratings = kind.rating(first), kind.rating(second)
    difference = None
    if kind.is_ordered and ratings[0] is not None and ratings[1] is not None:
        difference = ratings[1] - ratings[0]
    return ScoredPair(*ratings, gap, flip, kind.is_same(first, second), difference)


def raw_verdict(opinion: Opinion) -> Said:
    """What a verdict says in one word, as stored; None for a failure."""
    return None if isinstance(opinion, JudgeFailure) else opinion.said


class VerdictChanges:
    """How the verdicts of one judge differ from earlier ones, counted as the pairs come."""

    def __init__(self, kind: Kind) -> None:
        """Begin without a pair.

        Args:
            kind: what verdicts of the judge are.
        """
        self.kind = kind
        self.differences = array("d")
        """New - old, of each pair that has it."""
        self._counts = dict.fromkeys(("n", "n_unscored", "changed", "n_disagree"), 0)
        self._cases: list[dict[str, Any]] = []

    def add(self, pair: Pair) -> None:
        """Count a case with its old and its new verdict."""
        compared = compare_pair(pair, self.kind)
        if compared is None:
            self._counts["n_unscored"] += 1
            return
        self._counts["n"] += 1
        self._counts["n_disagree"] += compared.disagrees
        if compared.difference is not None:
            self.differences.append(compared.difference)
        if not compared.is_same:
            self._counts["changed"] += 1
            if len(self._cases) < MOST_NAMED:
                said = {"before": raw_verdict(pair.first), "after": raw_verdict(pair.second)}
                self._cases.append({"case_id": pair.case_id, **said})

    def record(self, seed: int) -> dict[str, Any]:
        """What metrics.json says of the judge, see `verdict_changes`."""
        return {**self._counts, **_shift(self.differences, seed), "cases": list(self._cases)}


def verdict_changes(by_judge: Mapping[str, VerdictChanges], seed: int) -> dict[str, Any]:
    """The part `rejudged` of metrics.json: over all judges that were asked again, and under `by_judge` for each.

    A verdict is `changed` if the score, or the yes/no answer, is another one; `n_disagree` counts those that
    contradict each other by the rule of the spot check. `mean_signed_difference` is new - old with Student's interval
    over cases, `p` that of a sign-flip permutation; None if verdicts have no order, and over all judges if their
    scales differ.

    Assumptions: the overall interval takes the verdicts of two judges on one case as independent, which they are not
    quite; those of single judges do not.

    Args:
        by_judge: what was counted of each judge.
        seed: for the sign flips, if they are drawn.

    Returns:
        A strict-JSON object; rates and means are None if no case has two verdicts. A case without one of the two
        is in `n_unscored` and in no denominator.
    """
    reports = {name: changes.record(seed) for name, changes in by_judge.items()}
    differences = [difference for changes in by_judge.values() for difference in changes.differences]
    # Points of one scale and of another do not add up; yes and no count as 1 and 0 beside any.
    if len({changes.kind.bounds for changes in by_judge.values() if changes.kind.is_ordered} - {(0, 1)}) > 1:
        differences = []
    counts = ("n", "n_unscored", "changed", "n_disagree")
    totals = {key: sum(report[key] for report in reports.values()) for key in counts}
    return {**totals, **_shift(differences, seed), "by_judge": reports}


def _shift(differences: Sequence[float], seed: int) -> dict[str, Any]:
    mean, low, high = mean_interval(differences)
    p, _ = sign_flip_p(differences, seed)
    return {"mean_signed_difference": mean, "low": low, "high": high, "p": p}


def panel_record(
    members: Sequence[str],
    opinions: Sequence[Mapping[str, Opinion]],
    rulings: Mapping[str, int],
    kind: Kind,
) -> dict[str, Any]:
    """The object `panel` of a judge in metrics.json; figures are not yet rounded.

    `effective_votes` = k / (1 + (k - 1) rho), with rho the mean correlation of the members' ratings over the cases. Of
    bare ratings it is a lower bound: members that are right agree for that reason alone. Yes is rated 1, no 0.

    Args:
        members: keys of the models, in the order of the config.
        opinions: what the members say, case by case; a member that was not asked is absent.
        rulings: `n_ties` and `n_below_quorum` of the panel.
        kind: what verdicts of the judge are.

    Returns:
        A strict-JSON object. Rates over no case are None; so are `effective_votes` and `mean_correlation` if no pair
        of members varies over common cases, with `undefined_reason`.

    Source: Kish 1965 for effective votes.
    """
    said = [[case.get(member) for member in members] for case in opinions]
    ratings = [[kind.rating(item) if isinstance(item, Verdict) else None for item in case] for case in said]
    by_member = dict(zip(members, zip(*ratings, strict=True), strict=True)) if ratings else dict.fromkeys(members, ())
    complete = [case for case in ratings if None not in case]
    # The numbers of labels stand for nothing, so they correlate with nothing.
    votes = effective_votes(ratings if kind.is_ordered else [])
    record: dict[str, Any] = {
        "n_cases": len(ratings),
        "n_complete": len(complete),
        "n_unanimous": sum(len(set(case)) == 1 for case in complete),
        **rulings,
        "failures": {member: _failures([case[place] for case in said]) for place, member in enumerate(members)},
        "mean_rating": {member: _mean(given) if kind.is_ordered else None for member, given in by_member.items()},
        "agreement": [
            {"members": [members[a], members[b]], **_agreement([(case[a], case[b]) for case in said], kind)}
            for a, b in combinations(range(len(members)), 2)
        ],
        "mean_correlation": votes.mean_correlation,
        "effective_votes": votes.value,
    }
    if votes.value is None:
        why = "no two members vary over common cases, or their ratings oppose each other"
        record["undefined_reason"] = why if kind.is_ordered else "labels have no order, so votes do not correlate"
    return record


def _failures(opinions: Sequence[Opinion | None]) -> dict[str, int]:
    return dict(sorted(Counter(said.kind for said in opinions if isinstance(said, JudgeFailure)).items()))


def _mean(ratings: Sequence[float | None]) -> float | None:
    found = [value for value in ratings if value is not None]
    return sum(found) / len(found) if found else None


def _agreement(pairs: Sequence[tuple[Opinion | None, Opinion | None]], kind: Kind) -> dict[str, Any]:
    """How often two members say the same, and are on the same side of the pass mark."""
    both = [(a, b) for a, b in pairs if isinstance(a, Verdict) and isinstance(b, Verdict)]
    sides = [(kind.side(a), kind.side(b)) for a, b in both]
    sides = [pair for pair in sides if None not in pair]
    return {
        "n": len(both),
        "exact": sum(kind.is_same(a, b) for a, b in both) / len(both) if both else None,
        "same_class": sum(a == b for a, b in sides) / len(sides) if sides else None,
    }
