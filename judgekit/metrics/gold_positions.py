"""Where the gold of a case stands in a list of hits: the few integers that ranked figures are functions of.

`positions_of_output` reads hits as they are; `positions_near` reads ids in rank order, which a reader of millions of
lines has sooner than hits. Both find the same.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeVar

from judgekit.core.cases import Case, Hit, Support, SystemOutput
from judgekit.core.text import normalise_path
from judgekit.metrics.gold_evidence import (
    GoldSupports,
    by_rank,
    first_occurrences,
    split_case,
    split_output,
)
from judgekit.metrics.ranking import within

Ranks = tuple[int, ...]
"""Ascending 1-based ranks."""

Ids = Sequence[str | None]
"""An id of each hit, in rank order; empty if no hit has one."""


HitT = TypeVar("HitT")


class Gold(NamedTuple):
    """What the ranked figures need of a case; each part is empty if the case does not have it."""

    chunks: tuple[str, ...] = ()
    """Distinct expected chunk ids."""
    docs: tuple[str, ...] = ()
    """Distinct expected document ids."""
    paths: tuple[str, ...] = ()
    """Distinct normalised paths of the supports, if each support is a whole file; else empty."""
    supports: GoldSupports | None = None
    """The supports, if they are more than whole files."""
    groups: tuple[tuple[int, ...], ...] = ()
    """Groups of indices into `supports` that are needed together."""

    @property
    def n_supports(self) -> int:
        """Number of distinct supports."""
        return self.supports.n_distinct if self.supports is not None else len(self.paths)


class Positions(NamedTuple):
    """Where the gold stands in one output; ranks are empty too if the case has no such gold."""

    n_chunks: int = 0
    """Distinct expected chunks."""
    chunks: Ranks = ()
    """Ranks at which they stand."""
    n_docs: int = 0
    docs: Ranks = ()
    """Ranks at which expected documents stand first."""
    n_supports: int = 0
    right: Ranks = ()
    """Ranks of hits that match some support."""
    gaining: Ranks = ()
    """Ranks of hits that are the first to match some support."""
    groups: tuple[tuple[int, ...], ...] = ()
    """For each required group, the rank at which each of its distinct supports is matched first; 0: never."""
    is_empty: bool = True
    """Nothing was retrieved."""

    def up_to(self, depth: int) -> "Positions":
        """What decides figures with cut-offs up to a depth: ranks so near, or the first if there is none."""
        n_chunks, chunks, n_docs, docs, n_supports, right, gaining, groups, is_empty = self
        if chunks is docs is right is gaining and (not chunks or chunks[-1] <= depth):
            return self
        near = _near(depth, chunks)
        near_docs = near if docs is chunks else _near(depth, docs)
        near_right = near_docs if right is docs else _near(depth, right)
        gaining = within(depth, gaining)
        return Positions(n_chunks, near, n_docs, near_docs, n_supports, near_right, gaining, groups, is_empty)


def _near(depth: int, ranks: Ranks) -> Ranks:
    return within(depth, ranks) or ranks[:1]


def gold_of(case: Case, delimiter: str | None = None) -> Gold:
    """The gold of a case, prepared for many hits; headings that are one text are split at the delimiter too."""
    chunks = tuple(dict.fromkeys(case.expected_chunk_ids or ()))
    docs = tuple(dict.fromkeys(case.expected_doc_ids or ()))
    if not case.gold_supports:
        return Gold(chunks, docs)
    if case.required_support_groups or any(support.heading_path or support.snippets for support in case.gold_supports):
        supports = GoldSupports(split_case(case, delimiter).gold_supports, delimiter=delimiter)
        return Gold(chunks, docs, (), supports, case.required_support_groups)
    return Gold(chunks, docs, tuple(dict.fromkeys([normalise_path(one.rel_path) for one in case.gold_supports])))


def positions_of_output(gold: Gold, output: SystemOutput) -> Positions:
    """Where the gold stands among the hits of an output, by the ranks that these carry."""
    supports = gold.supports
    if supports is not None:
        output = split_output(output, supports.delimiter)
    elif gold.paths:
        supports = GoldSupports([Support(rel_path=path) for path in gold.paths])
    ranked = by_rank(output.retrieved)
    first = first_occurrences(ranked)
    right, gaining, first_rank = _support_ranks(supports, first) if supports is not None else ((), (), {})
    expected = set(gold.chunks)
    return Positions(
        n_chunks=len(gold.chunks),
        chunks=tuple([rank for rank, hit in first if hit.chunk_id in expected]) if expected else (),
        n_docs=len(gold.docs),
        docs=_doc_ranks(set(gold.docs), ranked) if gold.docs else (),
        n_supports=gold.n_supports,
        right=right,
        gaining=gaining,
        groups=tuple([tuple([first_rank.get(index, 0) for index in dict.fromkeys(group)]) for group in gold.groups]),
        is_empty=not ranked,
    )


def empty_positions(gold: Gold) -> Positions:
    """The positions in an output without hits, or in one that is an error: only how much gold there is."""
    groups = tuple([(0,) * len(set(group)) for group in gold.groups])
    return Positions(len(gold.chunks), (), len(gold.docs), (), gold.n_supports, groups=groups)


def _doc_ranks(missing: set[str], ranked: Sequence[tuple[int, Hit]]) -> Ranks:
    ranks: list[int] = []
    for rank, hit in ranked:
        if hit.doc_id in missing:
            missing.remove(hit.doc_id)
            ranks.append(rank)
    return tuple(ranks)


def _support_ranks(supports: GoldSupports, first: Sequence[tuple[int, Hit]]) -> tuple[Ranks, Ranks, dict[int, int]]:
    """`right` and `gaining` of `Positions`, and the first rank of each support that is matched."""
    right: list[int] = []
    gaining: list[int] = []
    first_rank: dict[int, int] = {}
    for rank, hit in first:
        matched = supports.matched_by(hit)
        if matched:
            right.append(rank)
            new = [index for index in matched if index not in first_rank]
            if new:
                gaining.append(rank)
                first_rank.update(dict.fromkeys(new, rank))
    return tuple(right), tuple(gaining), first_rank


def positions_near(
    gold: Gold, hits: Sequence[HitT], depth: int, ids_of: Callable[[Sequence[HitT]], tuple[Ids, Ids, Ids]]
) -> Positions:
    """Where gold whose supports are whole files stands, as far as it decides figures with cut-offs up to a depth.

    Hits behind the depth are looked at only if some kind of gold does not stand before them.

    Args:
        gold: without `supports`.
        hits: in rank order.
        depth: the largest cut-off.
        ids_of: gives the chunk ids of hits, none of which comes twice, their document ids and normalised paths.
    """
    near = _positions_of_ids(gold, *ids_of(hits[:depth]))
    if len(hits) <= depth or (
        (near.docs or not gold.docs) and (near.right or not gold.paths) and (near.chunks or not gold.chunks)
    ):
        return near
    return _positions_of_ids(gold, *ids_of(hits))


def _positions_of_ids(gold: Gold, chunks: Ids, docs: Ids, paths: Ids) -> Positions:
    in_docs = first_places(gold.docs, docs)
    n_docs, is_empty = len(gold.docs), not paths
    if chunks is docs is paths and gold.chunks is gold.docs is gold.paths:
        return Positions(n_docs, in_docs, n_docs, in_docs, n_docs, in_docs, in_docs, (), is_empty)
    in_chunks = first_places(gold.chunks, chunks)
    gaining = in_docs if gold.paths is gold.docs and paths == docs else first_places(gold.paths, paths)
    right = gaining
    if gaining and sum([paths.count(path) for path in gold.paths]) > len(gaining):
        wanted = set(gold.paths)
        right = tuple([rank for rank, path in enumerate(paths, start=1) if path in wanted])
    return Positions(len(gold.chunks), in_chunks, n_docs, in_docs, len(gold.paths), right, gaining, (), is_empty)


_MANY = 16
"""Gold ids from which on one pass over the list is faster than a search for each."""


def first_places(gold: tuple[str, ...], ids: Ids) -> Ranks:
    """Ascending ranks at which distinct gold ids stand first in a list of ids."""
    if len(gold) > _MANY:
        first = {one: rank for rank, one in reversed(list(enumerate(ids, start=1)))}
        return tuple(sorted([first[one] for one in gold if one in first]))
    return tuple(sorted([ids.index(one) + 1 for one in gold if one in ids]))
