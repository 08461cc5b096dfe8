"""Ranked figures of many cases as columns, gathered from the positions of their gold.

Of a case only a few integers are kept. Cases that share them share one row of scores, which the families of a run
calculate once.
"""

from array import array
from collections import Counter
from collections.abc import Iterable, Iterator
from functools import cached_property
from operator import itemgetter

from judgekit.core.scores import Column, Failed, NotApplicable, Outcome, Outcomes
from judgekit.metrics.gold_positions import Positions
from judgekit.metrics.multi_hop import MultiHop
from judgekit.metrics.retrieval import Retrieval
from judgekit.metrics.retrieval_ids import MRR_CUTOFF, RetrievalIds


class RankingColumns:
    """The ranked scores of the families `retrieval_ids`, `retrieval` and `multi_hop`, column by column."""

    def __init__(self, ids: RetrievalIds, supports: Retrieval) -> None:
        """Prepare for no case.

        Args:
            ids: the family of figures by id.
            supports: the family of figures by gold support.
        """
        self._families = (ids, supports, MultiHop())
        self.depth = max((MRR_CUTOFF, *ids.ks, *supports.ks, *supports.mrr_ks))
        """The largest cut-off: what stands behind it matters only if nothing right comes before."""
        self.case_ids: list[str] = []
        self._numbers: dict[tuple[Positions, Failed | None], int] = {}
        """Rows of scores by what they follow from, in the order of coming."""
        self._codes = array("i")
        """For each case the number of its row."""
        self._tables: dict[str, list[Outcome]] = {}
        self._origins: dict[tuple[object, ...], int] = {}
        self._values: dict[int, array[float]] = {}

    def __len__(self) -> int:
        return len(self.case_ids)

    def add(self, case_id: str, found: Positions, failed: Failed | None = None) -> None:
        """Take one case; all must be there before a figure is asked for."""
        row = (found.up_to(self.depth), failed)
        self.case_ids.append(case_id)
        self._codes.append(self._numbers.setdefault(row, len(self._numbers)))

    def arrange(self, case_ids: Iterable[str]) -> None:
        """Put the cases in this order; each must be there."""
        wanted = list(case_ids)
        if wanted != self.case_ids:
            code_of = dict(zip(self.case_ids, self._codes, strict=True))
            self.case_ids, self._codes = wanted, array("i", map(code_of.__getitem__, wanted))

    @property
    def positions(self) -> list[Positions]:
        """The distinct positions of the gold."""
        return [found for found, _ in self._numbers]

    def columns(self) -> list[Column]:
        """The score names that this has, in the order of the families."""
        names = {name for family in self._families for name in family.ranked(Positions())}
        return [column for family in self._families for column in family.columns() if column.name in names]

    def values(self, name: str) -> "array[float]":
        """The scores of the cases that have one, in the order of the cases (see `places`); not to be changed.

        Raises:
            KeyError: no such score.
        """
        origin = self.origin(name)
        if origin not in self._values:
            try:
                self._values[origin] = array("d", self.outcomes(name))  # type: ignore[arg-type]  # it says so
            except TypeError:  # some case has no score
                self._values[origin] = array("d", [one for one in self.outcomes(name) if isinstance(one, float)])
        return self._values[origin]

    def counts(self, name: str) -> Counter[float]:
        """How often each of `values` comes."""
        counts: Counter[float] = Counter()
        for code, n in self._counted.items():
            outcome = self._table(name)[code]
            if isinstance(outcome, float):
                counts[outcome] += n
        return counts

    def places(self, name: str) -> "array[int]":
        """Indices of the cases that have a score."""
        return array("l", [number for number, one in enumerate(self.outcomes(name)) if isinstance(one, float)])

    def n_not_applicable(self, name: str) -> int:
        """Cases to which the score does not apply."""
        return self._n_of(name, NotApplicable)

    def n_failed(self, name: str) -> int:
        """Cases that should have a score and have none, since the system failed."""
        return self._n_of(name, Failed)

    def _n_of(self, name: str, kind: type[object]) -> int:
        table = self._table(name)
        return sum(n for code, n in self._counted.items() if isinstance(table[code], kind))

    def outcomes(self, name: str) -> Iterator[Outcome]:
        """What the family says about each case: a number, not applicable, or failed."""
        return map(self._table(name).__getitem__, self._codes)

    def origin(self, name: str) -> int:
        """Names with equal origins have equal values, so that what follows from them need not be computed twice."""
        key = tuple([one if isinstance(one, float) else type(one) for one in self._table(name)])
        return self._origins.setdefault(key, len(self._origins))

    @cached_property
    def _rows(self) -> list[Outcomes]:
        ids, supports, hops = self._families
        return [{**ids.ranked(*row), **supports.ranked(*row), **hops.ranked(*row)} for row in self._numbers]

    @cached_property
    def _counted(self) -> Counter[int]:
        return Counter(self._codes)

    def _table(self, name: str) -> list[Outcome]:
        """The score of each row."""
        if name not in self._tables:
            self._tables[name] = list(map(itemgetter(name), self._rows))
        return self._tables[name]
