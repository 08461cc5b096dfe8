"""Ranked figures of many cases as columns, gathered from the positions of their gold.

Of a case only a few integers are kept. Cases that share them share one row of figures, which is computed once; a column
is made when it is asked for.
"""

from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from operator import itemgetter
from typing import Any, Literal

from judgekit.core.scores import Column, Failed, NotApplicable, Outcome
from judgekit.metrics.positions import Labels, Positions, SameRanks
from judgekit.metrics.ranking import figures_at, hit_at, reciprocal_rank, within
from judgekit.metrics.retrieval import NO_GROUPS, NO_SUPPORTS, Retrieval
from judgekit.metrics.retrieval_ids import MRR_CUTOFF, NO_CHUNKS, NO_DOCS, RetrievalIds

_NOT_APPLICABLE = -1
_FAILED = -2
_WITHOUT_GROUPS = -3

Part = Literal["chunks", "docs", "supports"]
Origin = tuple[int, str, int | None]
"""What a column is made from: names with the same origin have the same values."""


Key = tuple[int, tuple[int, ...]] | tuple[int, tuple[int, ...], tuple[int, ...]]
"""n_gold, ranks of what is right, and of what gains where that is less."""


class _Part:
    """One kind of gold over all cases."""

    __slots__ = ("codes", "keys")

    def __init__(self) -> None:
        self.keys: dict[Key, int] = {}
        """Numbered in the order of coming, with ranks up to the largest cut-off, or the first where none is so near."""
        self.codes = array("i")
        """For each case the number of its key, or why it has none."""

    def add(self, n_gold: int, right: tuple[int, ...], gaining: tuple[int, ...], depth: int) -> None:
        """One case with positions."""
        if not n_gold:
            self.fail(0)
            return
        near = _near(depth, right)
        key = (n_gold, near) if right is gaining else (n_gold, near, within(depth, gaining))
        self.codes.append(self.keys.setdefault(key, len(self.keys)))

    def add_all(self, n_gold: list[int], ranks: list[tuple[int, ...]], depth: int) -> None:
        """Many cases, in each of which all that is right stands there for the first time."""
        near = [found if not found or found[-1] <= depth else _near(depth, found) for found in ranks]
        numbers = list(map(self.keys.get, zip(n_gold, near, strict=True)))
        if None in numbers or 0 in n_gold:
            for n, found in zip(n_gold, near, strict=True):
                self.add(n, found, found, depth)
        else:
            self.codes.extend(numbers)  # type: ignore[arg-type]  # none is None

    def fail(self, n_gold: int) -> None:
        """One case without positions."""
        self.codes.append(_FAILED if n_gold else _NOT_APPLICABLE)

    def fail_all(self, n: int) -> None:
        """Many cases without gold."""
        self.codes.extend(array("i", (_NOT_APPLICABLE,)) * n)

    def copy(self) -> "_Part":
        made = _Part()
        made.keys, made.codes = dict(self.keys), self.codes[:]
        return made


def _near(depth: int, ranks: tuple[int, ...]) -> tuple[int, ...]:
    """The ranks that decide figures with cut-offs up to a depth, and the rank of the first."""
    return within(depth, ranks) or ranks[:1]


class RankingColumns:
    """The ranked scores of the families `retrieval_ids` and `retrieval`, column by column.

    Score names, definitions and values are those of the families; figures come from the same functions.
    """

    def __init__(self, ids: RetrievalIds | None = None, anchors: Retrieval | None = None) -> None:
        """Prepare for no case.

        Args:
            ids: cut-offs of the figures by id.
            anchors: cut-offs of the figures by gold support.
        """
        self._ids = ids or RetrievalIds()
        self._anchors = anchors or Retrieval()
        self._depth = max(MRR_CUTOFF, *self._ids.ks, *self._anchors.ks, *self._anchors.mrr_ks)
        self.case_ids: list[str] = []
        self._failures: dict[int, str] = {}
        shared = _Part()
        self._parts: dict[Part, _Part] = {"chunks": shared, "docs": shared, "supports": shared}
        """Kinds of gold that have had the same positions in all cases so far share one."""
        self._complete = array("i")
        """For each case the rank at which a group is complete, 0 for none, or why there is none."""
        self._empty = array("b")
        self._specs = self._specified()
        self._cache: dict[Origin, array[float]] = {}
        self._counts: dict[int, Counter[int]] = {}
        """How often each code comes, by the identity of the codes."""
        self._getters: dict[int, Callable[[Any], Iterable[float]]] = {}
        self._tables: dict[tuple[int, tuple[int, ...]], dict[tuple[str, int | None], list[float]]] = {}

    def __len__(self) -> int:
        return len(self.case_ids)

    @property
    def n_empty(self) -> int:
        """Cases in which nothing was retrieved, among them those that failed."""
        return self._empty.count(1)

    def add(self, case_id: str, labels: Labels, found: Positions | Failed) -> None:
        """Take one case."""
        if isinstance(found, Failed):
            self._fail(labels, found.kind, len(self.case_ids))
            self.case_ids.append(case_id)
            return
        gold, gold_docs, gold_paths, supports, groups = labels
        chunks, docs, right, gaining, complete, n_hits = found
        are_together = supports is None and gold_docs is gold_paths and docs is right is gaining
        if are_together and gold is gold_docs and chunks is docs:
            self.add_ranks(case_id, len(gold), chunks, n_hits)
            return
        self._forget()
        self._part_ways(together=are_together)
        self._parts["chunks"].add(len(gold), chunks, chunks, self._depth)
        self._parts["docs"].add(len(gold_docs), docs, docs, self._depth)
        if self._parts["supports"] is not self._parts["docs"]:
            self._parts["supports"].add(labels.n_supports, right, gaining, self._depth)
        without = _WITHOUT_GROUPS if labels.n_supports else _NOT_APPLICABLE
        self._complete.append((complete or (0,))[0] if groups else without)
        self._empty.append(not n_hits)
        self.case_ids.append(case_id)

    def add_ranks(self, case_id: str, n_gold: int, ranks: tuple[int, ...], n_hits: int) -> None:
        """Take one case whose gold ids are chunks, documents and paths at once.

        Args:
            case_id: of the case.
            n_gold: number of distinct gold ids.
            ranks: ascending ranks at which they stand first.
            n_hits: length of the list.
        """
        self.add_same(SameRanks(True, [case_id], [n_gold], [ranks], [n_hits]))

    def add_same(self, found: SameRanks) -> None:
        """Take many cases."""
        n = len(found.case_ids)
        self._forget()
        if not found.with_chunks:
            self._part_ways(together=True)
        chunks, docs, supports = self._parts.values()
        if found.with_chunks:
            chunks.add_all(found.n_gold, found.ranks, self._depth)
        else:
            chunks.fail_all(n)
        if docs is not chunks:
            docs.add_all(found.n_gold, found.ranks, self._depth)
        if supports is not docs:
            supports.add_all(found.n_gold, found.ranks, self._depth)
        if 0 in found.n_gold:
            self._complete.extend([_WITHOUT_GROUPS if gold else _NOT_APPLICABLE for gold in found.n_gold])
        else:
            self._complete.extend(array("i", (_WITHOUT_GROUPS,)) * n)
        if 0 in found.n_hits:
            self._empty.extend([not n_hits for n_hits in found.n_hits])
        else:
            self._empty.extend(array("b", (0,)) * n)
        self.case_ids += found.case_ids

    def _distinct_parts(self) -> Iterable[_Part]:
        return {id(part): part for part in self._parts.values()}.values()

    def _forget(self) -> None:
        self._cache.clear()
        self._counts.clear()
        self._getters.clear()

    def _fail(self, labels: Labels, kind: str, number: int) -> None:
        self._forget()
        self._failures[number] = kind
        self._part_ways(together=False)
        self._parts["chunks"].fail(len(labels.chunks))
        self._parts["docs"].fail(len(labels.docs))
        self._parts["supports"].fail(labels.n_supports)
        without = _WITHOUT_GROUPS if labels.n_supports else _NOT_APPLICABLE
        self._complete.append(_FAILED if labels.groups else without)
        self._empty.append(1)

    def _part_ways(self, *, together: bool) -> None:
        """Keep chunks for themselves, and unless they stay together documents and supports too."""
        parts = self._parts
        if parts["chunks"] is parts["docs"]:
            parts["chunks"] = parts["docs"].copy()
        if parts["docs"] is parts["supports"] and not together:
            parts["supports"] = parts["docs"].copy()

    def arrange(self, case_ids: Iterable[str]) -> None:
        """Put the cases in this order; each must be there."""
        self._forget()
        wanted = list(case_ids)
        if wanted == self.case_ids:
            return
        number_of = {case_id: number for number, case_id in enumerate(self.case_ids)}
        order = [number_of[case_id] for case_id in wanted]
        for part in self._distinct_parts():
            part.codes = array("i", map(part.codes.__getitem__, order))
        self._complete = array("i", map(self._complete.__getitem__, order))
        self._empty = array("b", map(self._empty.__getitem__, order))
        self._failures = {new: self._failures[old] for new, old in enumerate(order) if old in self._failures}
        self.case_ids = wanted

    def columns(self) -> list[Column]:
        """The score names that this has, in the order of the families."""
        return [column for family in (self._ids, self._anchors) for column in family.columns() if column.name in self]

    def __contains__(self, name: object) -> bool:
        return name in self._specs

    def values(self, name: str) -> "array[float]":
        """The scores of the cases that have one, in the order of the cases (see `places`); not to be changed.

        Raises:
            KeyError: no such score.
        """
        origin = self.origin(name)
        found = self._cache.get(origin)
        if found is None:
            codes, table = self._coded(name)
            found = self._cache[origin] = array("d", self._getter(codes)(table))
        return found

    def _getter(self, codes: Sequence[int]) -> Callable[[Any], Iterable[float]]:
        """Takes the values of all codes that are not negative, several times as fast as a loop."""
        found = self._getters.get(id(codes))
        if found is None:
            wanted = [code for code in codes if code >= 0]
            found = itemgetter(*wanted) if len(wanted) > 1 else lambda table: [table[code] for code in wanted]
            self._getters[id(codes)] = found
        return found

    def counts(self, name: str) -> Counter[float]:
        """How often each of `values` comes.

        Raises:
            KeyError: no such score.
        """
        codes, table = self._coded(name)
        counts: Counter[float] = Counter()
        for code, n in self._counted(codes).items():
            if code >= 0:
                counts[table[code]] += n
        return counts

    def places(self, name: str) -> "array[int]":
        """Indices of the cases that have a score."""
        codes, _ = self._coded(name)
        return array("l", [number for number, code in enumerate(codes) if code >= 0])

    def n_not_applicable(self, name: str) -> int:
        """Cases to which the score does not apply."""
        counts = self._counted(self._codes(name))
        return counts[_NOT_APPLICABLE] + counts[_WITHOUT_GROUPS]

    def n_failed(self, name: str) -> int:
        """Cases that should have a score and have none, since the system failed."""
        return self._counted(self._codes(name))[_FAILED]

    def _counted(self, codes: Sequence[int]) -> Counter[int]:
        found = self._counts.get(id(codes))
        if found is None:
            found = self._counts[id(codes)] = Counter(codes)
        return found

    def outcomes(self, name: str) -> Iterator[Outcome]:
        """What the family says about each case: a number, not applicable, or failed."""
        codes, table = self._coded(name)
        reasons = {_NOT_APPLICABLE: self._specs[name][3], _WITHOUT_GROUPS: NO_GROUPS}
        for number, code in enumerate(codes):
            if code >= 0:
                yield table[code]
            else:
                yield Failed(self._failures[number]) if code == _FAILED else reasons[code]

    def origin(self, name: str) -> Origin:
        """Names with equal origins have equal values, so that what follows from them need not be computed twice."""
        part, what, k, _ = self._specs[name]
        return (id(self._parts[part]) if part is not None else 0, what, k)

    def _specified(self) -> dict[str, tuple[Part | None, str, int | None, NotApplicable]]:
        """(part, figure, cut-off, why it may not apply) by score name."""
        ids, anchors = self._ids, self._anchors
        specs: dict[str, tuple[Part | None, str, int | None, NotApplicable]] = {}
        for k, hit, precision, recall in zip(ids.ks, ids.hit_names, ids.precision_names, ids.recall_names, strict=True):
            specs[hit] = ("chunks", "hit", k, NO_CHUNKS)
            specs[precision] = ("chunks", "precision", k, NO_CHUNKS)
            specs[recall] = ("docs", "recall", k, NO_DOCS)
        specs["mrr_chunk"] = ("chunks", "mrr", MRR_CUTOFF, NO_CHUNKS)
        specs["empty_result"] = (None, "empty", None, NO_CHUNKS)
        for k, hit, precision, ndcg in zip(
            anchors.ks, anchors.any_names, anchors.precision_names, anchors.ndcg_names, strict=True
        ):
            specs[hit] = ("supports", "hit", k, NO_SUPPORTS)
            specs[precision] = ("supports", "precision", k, NO_SUPPORTS)
            specs[ndcg] = ("supports", "ndcg", k, NO_SUPPORTS)
        specs.update({name: ("supports", "mrr", k, NO_SUPPORTS) for k, name in anchors.mrr_names})
        specs.update({name: (None, "complete", k, NO_SUPPORTS) for k, name in anchors.all_names})
        return specs

    def _codes(self, name: str) -> "array[int]":
        part, what, _, _ = self._specs[name]
        if part is None:
            return self._empty if what == "empty" else self._complete
        return self._parts[part].codes

    def _coded(self, name: str) -> tuple["array[int]", "Sequence[float] | Mapping[int, float]"]:
        """A code for each case, and the values of codes that are not negative."""
        part, what, k, _ = self._specs[name]
        codes = self._codes(name)
        if part is not None:
            return codes, self._table(part)[what, k]
        if what == "empty":
            return codes, (0.0, 1.0)
        assert k is not None  # noqa: S101  # for the type checker: the rest has a cut-off
        return codes, {rank: hit_at(k, (rank,) if rank else ()) for rank in self._counted(codes) if rank >= 0}

    def _table(self, name: Part) -> dict[tuple[str, int | None], list[float]]:
        """The figures of each key, by (figure, cut-off)."""
        part = self._parts[name]
        ks = self._anchors.ks if name == "supports" else self._ids.ks
        found = self._tables.get((id(part), ks))
        if found is None or len(next(iter(found.values()), ())) < len(part.keys):
            found = {(what, k): [] for what in ("hit", "recall", "precision", "ndcg") for k in ks}
            columns = list(found.values())
            for n_gold, right, *gaining in part.keys:
                figures = figures_at(ks, n_gold, right, gaining[0] if gaining else right)
                for column, value in zip(columns, [one for row in figures for one in row], strict=True):
                    column.append(value)
            for k in {MRR_CUTOFF, *(k for k, _ in self._anchors.mrr_names)}:
                found["mrr", k] = [reciprocal_rank(key[1], k) for key in part.keys]
            self._tables[id(part), ks] = found
        return found
