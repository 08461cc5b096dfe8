"""Ranking figures on plain integers: what every `@k` score is computed from.

A ranked list enters as the ascending 1-based ranks at which something right stands, so that a reader of
millions of rows can call these functions without building a case or a hit. "No gold" is not a number: the
caller says "not applicable" before, and the functions that divide by the gold refuse `n_gold < 1`.
"""

import math
from bisect import bisect_right
from collections.abc import Sequence
from functools import cache, lru_cache
from typing import Annotated, NamedTuple

from pydantic import AfterValidator, Field

_TABLE_SIZE = 256

DISCOUNTS: tuple[float, ...] = (0.0, *(1.0 / math.log2(rank + 1) for rank in range(1, _TABLE_SIZE + 1)))
"""`1 / log2(rank + 1)` by rank; index 0 is no rank and gains nothing."""

IDEAL_GAINS: tuple[float, ...] = tuple(math.fsum(DISCOUNTS[: n + 1]) for n in range(_TABLE_SIZE + 1))
"""DCG of n right hits at ranks 1 to n, by n."""


def _distinct(ks: tuple[int, ...]) -> tuple[int, ...]:
    if len(set(ks)) < len(ks):
        raise ValueError(f"a cut-off comes twice: {list(ks)}")
    return ks


Cutoffs = Annotated[tuple[Annotated[int, Field(ge=1, strict=True)], ...], AfterValidator(_distinct)]
"""Config type for cut-offs: distinct whole numbers, each at least 1."""


@cache
def names_at(name: str, ks: tuple[int, ...]) -> tuple[str, ...]:
    """The score names of a figure at cut-offs."""
    return tuple([f"{name}@{k}" for k in ks])


def hit_at(k: int, ranks: Sequence[int]) -> float:
    """1.0 if something right has rank <= k, else 0.0; 0.0 for no ranks.

    Args:
        k: cut-off, at least 1.
        ranks: ascending 1-based ranks of what is right.

    Source: success@k of trec_eval.
    """
    return 1.0 if ranks and ranks[0] <= k else 0.0


def reciprocal_rank(ranks: Sequence[int], k: int | None = None) -> float:
    """1 / rank of the first right hit, in (0, 1]; 0.0 for no ranks or if that rank is beyond `k`.

    Args:
        ranks: ascending 1-based ranks of what is right.
        k: cut-off; None looks at the whole list.

    Source: Voorhees 1999, "The TREC-8 Question Answering Track Report".
    """
    if not ranks or (k is not None and ranks[0] > k):
        return 0.0
    return 1.0 / ranks[0]


def precision_at(k: int, ranks: Sequence[int]) -> float:
    """Right hits with rank <= k, divided by k (also if the list is shorter); in [0, 1], 0.0 for no ranks.

    Args:
        k: cut-off, at least 1.
        ranks: ascending distinct 1-based ranks of right hits.

    Source: P@k of trec_eval.
    """
    return bisect_right(ranks, k) / k


def recall_at(k: int, n_gold: int, ranks: Sequence[int]) -> float:
    """Share of the gold found with rank <= k; in [0, 1], 0.0 for no ranks.

    Args:
        k: cut-off, at least 1.
        n_gold: number of distinct gold items, at least 1.
        ranks: ascending ranks, one for each gold item found: its first.

    Raises:
        ValueError: no gold, for which recall is not defined.

    Source: recall@k of trec_eval.
    """
    if n_gold < 1:
        raise ValueError("recall is not defined without gold")
    return bisect_right(ranks, k) / n_gold


def ndcg_at(k: int, n_gold: int, ranks: Sequence[int]) -> float:
    """Normalised discounted cumulative gain with binary gains: `DCG@k / DCG@k of the ideal list`.

    `DCG@k = sum of 1 / log2(rank + 1)` over ranks <= k; the ideal list has min(k, n_gold) right hits in front.
    Exactly rounded sums keep the value within [0, 1]; 0.0 for no ranks.

    Args:
        k: cut-off, at least 1.
        n_gold: number of distinct gold items, at least 1.
        ranks: ascending distinct ranks that gain, at most `n_gold` of them.

    Raises:
        ValueError: no gold, for which there is no ideal list.

    Source: Järvelin and Kekäläinen 2002, "Cumulated Gain-Based Evaluation of IR Techniques".
    """
    if n_gold < 1:
        raise ValueError("ndcg is not defined without gold")
    n_within = bisect_right(ranks, k)
    if n_within == 0:
        return 0.0
    return _gain(ranks[:n_within]) / _ideal_gain(min(k, n_gold))


class Figures(NamedTuple):
    """The figures of one ranked list, each a tuple with one value for each cut-off."""

    hit: tuple[float, ...]
    recall: tuple[float, ...]
    precision: tuple[float, ...]
    ndcg: tuple[float, ...]


@lru_cache(maxsize=1 << 13)  # most lists of a data set share these few integers with others
def figures_at(ks: tuple[int, ...], n_gold: int, right: tuple[int, ...], gaining: tuple[int, ...]) -> Figures:
    """Every figure with a cut-off, from the few integers that they are functions of.

    This is the one place where lists become figures: the families of a run and the readers of rankings call it alike.

    Args:
        ks: cut-offs, each at least 1.
        n_gold: number of distinct gold items, at least 1.
        right: ascending distinct ranks at which something right stands.
        gaining: those of the ranks at which something right stands for the first time, at most `n_gold`.

    Returns:
        `hit_at` and `precision_at` of `right`, `recall_at` and `ndcg_at` of `gaining`.

    Raises:
        ValueError: no gold.
    """
    return Figures(
        tuple([hit_at(k, right) for k in ks]),
        tuple([recall_at(k, n_gold, gaining) for k in ks]),
        tuple([precision_at(k, right) for k in ks]),
        tuple([ndcg_at(k, n_gold, gaining) for k in ks]),
    )


def within(k: int, ranks: Sequence[int]) -> tuple[int, ...]:
    """The ranks that are at most `k`, of ascending ones."""
    return tuple(ranks if not ranks or ranks[-1] <= k else ranks[: bisect_right(ranks, k)])


def _gain(ranks: Sequence[int]) -> float:
    if len(ranks) == 1 and ranks[0] <= _TABLE_SIZE:
        return DISCOUNTS[ranks[0]]
    if ranks[-1] <= _TABLE_SIZE:
        return math.fsum([DISCOUNTS[rank] for rank in ranks])
    return math.fsum([1.0 / math.log2(rank + 1) for rank in ranks])


def _ideal_gain(n: int) -> float:
    return IDEAL_GAINS[n] if n <= _TABLE_SIZE else _gain(range(1, n + 1))
