"""How far people agree who label the same cases, while they are at it."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations

from judgekit.core.human_labels import HumanLabel
from judgekit.core.kind import Kind
from judgekit.stats.agreement import cohen_kappa, quadratic_weighted_kappa

LEAST_SHARED = 5
"""Cases that two people have both labelled from which their agreement is told; of fewer it would tell the labels."""


@dataclass(frozen=True)
class PairAgreement:
    """How far two people agree."""

    first: str
    second: str
    n_cases: int
    """Cases that both have labelled."""
    n_same: int | None
    """Labels that are the same, of criteria each for itself; None for too few cases."""
    n_labels: int
    kappa: float | None
    """Weighted where labels have an order; None for too few cases, and if every label is the same."""

    @property
    def words(self) -> str:
        """In one line."""
        who = f"{self.first} and {self.second}"
        both = f"{self.n_cases} case{'' if self.n_cases == 1 else 's'} labelled by both"
        if self.n_same is None:
            return f"{who}: {both}; agreement is shown from {LEAST_SHARED} on"
        same = f"the same label in {self.n_same} of {self.n_labels} ({self.n_same / self.n_labels:.0%})"
        kappa = "not defined, every label is the same" if self.kappa is None else f"{self.kappa:.2f}"
        return f"{who}: {both}, {same}, kappa {kappa}"


def annotator_agreement(labels: Iterable[HumanLabel], kind: Kind) -> list[PairAgreement]:
    """The agreement of any two people with a case in common.

    Args:
        labels: of one judge on the answers of one run; of several by one person on a case the last counts.
        kind: what verdicts of the judge are.
    """
    by_person: dict[str, dict[str, HumanLabel]] = {}
    for label in labels:
        by_person.setdefault(label.annotator, {})[label.case_id] = label
    found = []
    for first, second in combinations(sorted(by_person), 2):
        own, others = by_person[first], by_person[second]
        shared = [(own[case_id], others[case_id]) for case_id in own if case_id in others]
        if shared:
            found.append(_pair(first, second, shared, kind))
    return found


def _pair(first: str, second: str, shared: Sequence[tuple[HumanLabel, HumanLabel]], kind: Kind) -> PairAgreement:
    pairs = [
        (case, a, b)
        for case, (one, other) in enumerate(shared)
        for a, b in zip(*_codes(one, other, kind), strict=False)
        if a is not None and b is not None
    ]
    if len(shared) < LEAST_SHARED or not pairs:
        return PairAgreement(first, second, len(shared), None, 0, None)
    told = [(case, a, b) for case, a, b in pairs if kind.is_nominal or _CANNOT_TELL not in (a, b)]
    agreement = cohen_kappa if kind.is_nominal else quadratic_weighted_kappa
    kappa = agreement([a for _, a, _ in told], [b for _, _, b in told], [case for case, _, _ in told]).value
    return PairAgreement(first, second, len(shared), sum(a == b for _, a, b in pairs), len(pairs), kappa)


_CANNOT_TELL = -1_000_000
"""Stands for what cannot be told: a label like others, but no score."""


def _codes(one: HumanLabel, other: HumanLabel, kind: Kind) -> tuple[Sequence[int | None], Sequence[int | None]]:
    """Both labels as numbers, one for each part: of verdicts their categories, else pass or fail."""
    if one.verdict is not None and other.verdict is not None:
        first, second = (
            (_CANNOT_TELL,) if verdict.cannot_tell else kind.categories(verdict)
            for verdict in (one.verdict, other.verdict)
        )
        return first, second
    return (_side(one, kind),), (_side(other, kind),)


def _side(label: HumanLabel, kind: Kind) -> int | None:
    side = label.passed if label.verdict is None else kind.side(label.verdict)
    return None if side is None else int(side)
