"""Where the gold of a case stands in a list of hits: the few integers that ranked figures are functions of.

`positions_of_output` reads hits as they are; `positions_of_ids` reads columns of ids in rank order, which a reader of
millions of lines has sooner than hits. Both find the same.
"""

from collections.abc import Container, Iterable, Sequence, Set
from typing import NamedTuple, TypeVar

from judgekit.core.cases import Case, Hit, Support, SystemOutput
from judgekit.core.text import normalise_path
from judgekit.metrics.anchors import GoldSupports, SnippetMode, by_rank, first_occurrences
from judgekit.metrics.headings import split_case, split_output

IdT = TypeVar("IdT", str, bytes)

Ranks = Sequence[int]
"""Ascending 1-based ranks."""

Column = Sequence[str | None]
"""An id of each hit, in rank order; empty where no hit has one."""

Columns = tuple[Column, Column, Column]
"""Chunk ids, document ids and normalised paths."""


class SupportRanks(NamedTuple):
    """Ranks of what matches the gold supports."""

    right: Ranks
    """Hits that match some support."""
    gaining: Ranks
    """Hits that are the first to match some support."""
    complete: Ranks
    """Ranks at which the groups that are matched in full become so."""


class Positions(NamedTuple):
    """Where the gold stands in one output; each tuple is empty too where the case has no such gold."""

    chunks: tuple[int, ...]
    docs: tuple[int, ...]
    right: tuple[int, ...]
    gaining: tuple[int, ...]
    complete: tuple[int, ...]
    n_hits: int
    """Hits in the list, or those that were looked at; none only where there is none."""


class SameRanks(NamedTuple):
    """Many outputs, column by column, in each of which several kinds of gold stand at the same ranks."""

    with_chunks: bool
    """Chunks, documents and supports are the same; else the last two are, and there is no expected chunk."""
    case_ids: list[str]
    n_gold: list[int]
    """Distinct gold ids."""
    ranks: list[tuple[int, ...]]
    """Ascending ranks at which they stand first."""
    n_hits: list[int]
    """Hits in the list, or those that were looked at."""


class Labels(NamedTuple):
    """What the ranked figures need of a case; each is empty where the case does not have it."""

    chunks: tuple[str, ...] = ()
    """Distinct expected chunk ids."""
    docs: tuple[str, ...] = ()
    """Distinct expected document ids."""
    paths: tuple[str, ...] = ()
    """Distinct normalised paths of the supports, where each support is a whole file; else empty."""
    supports: GoldSupports | None = None
    """The supports, where they are more than whole files."""
    groups: tuple[tuple[int, ...], ...] = ()
    """Groups of supports, where `supports` has them."""

    @property
    def are_same(self) -> bool:
        """Whether expected chunks, documents and whole files are the same ids, and there are some."""
        return bool(self.chunks) and self.chunks is self.docs is self.paths and self.supports is None

    @property
    def n_supports(self) -> int:
        """Number of distinct supports."""
        return self.supports.n_distinct if self.supports is not None else len(self.paths)


def labels_of(case: Case, snippets: SnippetMode = "if_text", delimiter: str | None = None) -> Labels:
    """The labels of a case, prepared for many hits; headings that are one text are split at the delimiter too."""
    chunks = tuple(dict.fromkeys(case.expected_chunk_ids or ()))
    docs = tuple(dict.fromkeys(case.expected_doc_ids or ()))
    if not case.gold_supports:
        return Labels(chunks, docs)
    if case.required_support_groups or any(support.heading_path or support.snippets for support in case.gold_supports):
        supports = GoldSupports(split_case(case, delimiter).gold_supports, snippets)
        supports.delimiter = delimiter
        return Labels(chunks, docs, (), supports, case.required_support_groups)
    return Labels(chunks, docs, tuple(dict.fromkeys([normalise_path(one.rel_path) for one in case.gold_supports])))


def chunk_ranks(expected: Set[str], first: Iterable[tuple[int, Hit]]) -> list[int]:
    """Ranks of the expected chunks.

    Args:
        expected: chunk ids.
        first: (rank, hit), ascending, each chunk id once.
    """
    return [rank for rank, hit in first if hit.chunk_id in expected]


def doc_ranks(expected: Set[str], ranked: Iterable[tuple[int, Hit]]) -> list[int]:
    """Ranks at which the expected documents stand first.

    Args:
        expected: document ids.
        ranked: (rank, hit), ascending.
    """
    missing = set(expected)
    ranks: list[int] = []
    for rank, hit in ranked:
        if hit.doc_id in missing:
            missing.remove(hit.doc_id)
            ranks.append(rank)
    return ranks


def support_ranks(
    gold: GoldSupports, groups: Sequence[tuple[int, ...]], first: Iterable[tuple[int, Hit]]
) -> SupportRanks:
    """Ranks of what matches the gold supports.

    Args:
        gold: the supports of a case.
        groups: groups of indices into them.
        first: (rank, hit), ascending, each chunk id once.
    """
    right: list[int] = []
    gaining: list[int] = []
    first_rank: dict[int, int] = {}
    for rank, hit in first:
        matched = gold.matched_by(hit)
        if matched:
            right.append(rank)
            new = [index for index in matched if index not in first_rank]
            if new:
                gaining.append(rank)
                first_rank.update(dict.fromkeys(new, rank))
    complete = [
        max([first_rank[index] for index in group]) for group in groups if all(index in first_rank for index in group)
    ]
    return SupportRanks(right, gaining, sorted(complete))


def positions_of_output(labels: Labels, output: SystemOutput) -> Positions:
    """Where the labels stand among the hits of an output, by the ranks that these carry."""
    supports = labels.supports
    if supports is not None:
        output = split_output(output, supports.delimiter)
    ranked = by_rank(output.retrieved)
    first = first_occurrences(ranked)
    if supports is None and labels.paths:
        supports = GoldSupports([Support(rel_path=path) for path in labels.paths])
    found = support_ranks(supports, labels.groups, first) if supports is not None else SupportRanks((), (), ())
    return Positions(
        tuple(chunk_ranks(set(labels.chunks), first)) if labels.chunks else (),
        tuple(doc_ranks(set(labels.docs), ranked)) if labels.docs else (),
        tuple(found.right),
        tuple(found.gaining),
        tuple(found.complete),
        len(ranked),
    )


def positions_of_ids(labels: Labels, columns: Columns, n_hits: int) -> Positions:
    """Where labels whose supports are whole files stand, from columns of ids in rank order.

    Args:
        labels: without `supports`.
        columns: ids of the hits; no chunk id comes twice.
        n_hits: how many hits there are, or how many were looked at.
    """
    chunks, docs, paths = columns
    found_chunks = places_of(labels.chunks, chunks) if labels.chunks else ()
    found_docs = places_of(labels.docs, docs) if labels.docs else ()
    if not labels.paths:
        return Positions(found_chunks, found_docs, (), (), (), n_hits)
    same = labels.paths is labels.docs and paths is docs
    gaining = right = found_docs if same else places_of(labels.paths, paths)
    if right and sum([paths.count(path) for path in labels.paths]) > len(right):
        wanted = set(labels.paths)
        right = tuple([rank for rank, path in enumerate(paths, start=1) if path in wanted])
    return Positions(found_chunks, found_docs, right, gaining, (), n_hits)


_MANY = 16
"""Gold ids from which on one pass over the list is quicker than a search for each."""


def places_of(
    gold: Sequence[IdT], ids: Sequence[IdT | None], distinct: Container[IdT | None] | None = None
) -> tuple[int, ...]:
    """Ascending ranks at which gold ids stand first in a list of ids.

    Args:
        gold: distinct ids.
        ids: in rank order.
        distinct: the same ids, where the caller has them as a set.
    """
    if len(gold) == 1:
        only = gold[0]
        return (ids.index(only) + 1,) if only in (ids if distinct is None else distinct) else ()
    if len(gold) > _MANY:
        missing = set(gold)
        found = []
        for rank, one in enumerate(ids, start=1):
            if one in missing:
                missing.remove(one)
                found.append(rank)
        return tuple(found)
    found = [ids.index(one) + 1 for one in gold if one in (ids if distinct is None else distinct)]
    if len(found) > 1:
        found.sort()
    return tuple(found)
