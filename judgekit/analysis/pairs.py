"""Pairs of verdicts: which cases are drawn for a second opinion, and when two verdicts contradict each other.

A pair is one case judged twice, by the judge of the run and by what it is checked against. A pair without two
verdicts is a failure: it is listed and counted, but agrees with nothing and stands in no denominator.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from judgekit.core.judgments import JudgeFailure, Verdict


class Sampler(Protocol):
    """The one thing asked of a source of randomness; `random.Random` has it."""

    def sample(self, population: Sequence[int], k: int) -> list[int]: ...


@dataclass(frozen=True, slots=True)
class Pair:
    """One case of the sample, judged twice."""

    case_id: str
    first: Verdict | JudgeFailure
    """What the run says."""
    second: Verdict | JudgeFailure
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
    """A simple random sample without replacement: every set of n ids is as likely as any other.

    Args:
        ids: what to draw from. The same ids in the same order and the same seed give the same sample, so give them
            in the order of the cases and not in the order in which judgments came back.
        n: number of ids wanted, at least 0; more than there are takes all.
        rng: a seeded source of randomness.

    Returns:
        min(n, len(ids)) ids in the order of `ids`.

    Raises:
        ValueError: n is below 0.
    """
    return [ids[position] for position in sorted(_drawn(ids, n, rng))]


def draw_order(ids: Sequence[str], n: int, rng: Sampler) -> list[str]:
    """A random order of n ids, of which every beginning is a simple random sample: for a sample that may grow.

    Args:
        ids: what to draw from, see `draw_sample`.
        n: number of ids wanted at most, at least 0; more than there are takes all.
        rng: a seeded source of randomness.

    Returns:
        min(n, len(ids)) ids in random order.

    Raises:
        ValueError: n is below 0.
    """
    return [ids[position] for position in _drawn(ids, n, rng)]


def _drawn(ids: Sequence[str], n: int, rng: Sampler) -> list[int]:
    if n < 0:
        raise ValueError(f"a sample has at least 0 ids, not {n}")
    return rng.sample(range(len(ids)), min(n, len(ids)))


def pair_disagrees(first: Verdict, second: Verdict, pass_score: int | None) -> bool:
    """Whether two verdicts on one case contradict each other.

    Scores: they differ by more than one point, or one passes (score >= pass_score) and the other does not. Yes/no
    verdicts: the answers differ.

    Args:
        first: verdict of the run.
        second: verdict of the check.
        pass_score: lowest score that passes; None: the judge has no pass class.

    Raises:
        ValueError: the verdicts are of different kinds, or one of them says nothing.

    Source: in-house.
    """
    return _compare(first, second, pass_score).disagrees


def compare_pair(pair: Pair, pass_score: int | None) -> ScoredPair | None:
    """A pair as ratings and disagreements.

    Args:
        pair: one case judged twice.
        pass_score: lowest score that passes; None: the judge has no pass class.

    Returns:
        None where one of the two is a failure.

    Raises:
        ValueError: the verdicts are of different kinds, or one of them says nothing.

    Source: in-house.
    """
    if isinstance(pair.first, JudgeFailure) or isinstance(pair.second, JudgeFailure):
        return None
    return _compare(pair.first, pair.second, pass_score)


def _compare(first: Verdict, second: Verdict, pass_score: int | None) -> ScoredPair:
    if first.score is not None and second.score is not None:
        gap = abs(first.score - second.score) > 1
        flip = pass_score is not None and (first.score >= pass_score) != (second.score >= pass_score)
        return ScoredPair(first.score, second.score, gap, flip)
    if first.answer is None or second.answer is None:
        raise ValueError("two verdicts can be compared where both are scores or both are yes/no answers")
    return ScoredPair(int(first.answer), int(second.answer), False, first.answer != second.answer)
