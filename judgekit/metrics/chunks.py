"""Chunk sets: which of the expected chunks were found, and how much else came with them; ranks play no part.

`chunk_recall`, `chunk_precision` and `chunk_f1` are metrics for libraries: call them, or hand them on as objects with
`name` and `calculate`. The family `chunks` gives the same figures for the cases of a run.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Set
from typing import ClassVar, Generic, TypeVar

from judgekit.core.cases import Case, SystemOutput
from judgekit.core.components import Metric
from judgekit.core.scores import Column, Failed, NotApplicable, Outcomes
from judgekit.core.text import canonical_id

ChunkIds = Iterable[str | int]
"""Ids in any order; one that comes twice counts once, `7` and `"7"` are the same."""


SetT_contra = TypeVar("SetT_contra", contravariant=True)


class SetMetric(ABC, Generic[SetT_contra]):
    """A metric for libraries: what was retrieved and what should be to a number. Call it, or its `calculate`."""

    __slots__ = ()

    name: ClassVar[str]

    @abstractmethod
    def calculate(self, retrieved: SetT_contra, gold: SetT_contra) -> float:
        """The figure for what was retrieved and what should be; both in any order, what comes twice counts once."""

    def __call__(self, retrieved: SetT_contra, gold: SetT_contra) -> float:
        """As `calculate`."""
        return self.calculate(retrieved, gold)

    def __repr__(self) -> str:
        return self.name


class ChunkLevelMetric(SetMetric[ChunkIds]):
    """A chunk-level metric: two sets of chunk ids to a number. It holds no state."""

    __slots__ = ()


class ChunkRecall(ChunkLevelMetric):
    """`|R and G| / |G|`, in [0, 1], higher is better; 1.0 if G is empty.

    Source: van Rijsbergen 1979, "Information Retrieval", ch. 7.
    """

    __slots__ = ()
    name = "chunk_recall"

    def calculate(self, retrieved: ChunkIds, gold: ChunkIds) -> float:
        return _recall(_distinct(retrieved), _distinct(gold))


class ChunkPrecision(ChunkLevelMetric):
    """`|R and G| / |R|`, in [0, 1], higher is better; 0.0 if R is empty.

    Source: van Rijsbergen 1979, "Information Retrieval", ch. 7.
    """

    __slots__ = ()
    name = "chunk_precision"

    def calculate(self, retrieved: ChunkIds, gold: ChunkIds) -> float:
        return _precision(_distinct(retrieved), _distinct(gold))


class ChunkF1(ChunkLevelMetric):
    """`2 p r / (p + r)` of precision and recall, in [0, 1], higher is better; 0.0 if both are 0.

    Source: van Rijsbergen 1979, "Information Retrieval", ch. 7.
    """

    __slots__ = ()
    name = "chunk_f1"

    def calculate(self, retrieved: ChunkIds, gold: ChunkIds) -> float:
        found, wanted = _distinct(retrieved), _distinct(gold)
        return _f1(_precision(found, wanted), _recall(found, wanted))


def _distinct(ids: ChunkIds) -> Set[object]:
    if isinstance(ids, str):
        raise ValueError(f"expected chunk ids, found the text {ids[:40]!r}; write it as a list of one")
    return {canonical_id(item) for item in ids}


def _recall(retrieved: Set[object], gold: Set[object]) -> float:
    return len(retrieved & gold) / len(gold) if gold else 1.0


def _precision(retrieved: Set[object], gold: Set[object]) -> float:
    return len(retrieved & gold) / len(retrieved) if retrieved else 0.0


def _f1(precision: float, recall: float) -> float:
    return 2.0 * precision * recall / (precision + recall) if precision + recall else 0.0


chunk_recall = ChunkRecall()
chunk_precision = ChunkPrecision()
chunk_f1 = ChunkF1()

_NAMES = (chunk_recall.name, chunk_precision.name, chunk_f1.name)
_NO_CHUNKS = NotApplicable("no expected_chunk_ids")


class Chunks(Metric):
    """Retrieved chunks against expected ones, as sets; all in [0, 1], higher is better.

    `chunk_recall`, `chunk_precision` and `chunk_f1` of the distinct chunk ids of all hits and `expected_chunk_ids`.
    They do not apply without expected chunks: recall would be 1 and precision 0 whatever the system does. No hits:
    all are 0.

    Source: see `ChunkRecall`, `ChunkPrecision`, `ChunkF1`.
    """

    needs: ClassVar[tuple[tuple[str, ...], ...]] = (("case.expected_chunk_ids",), ("output.retrieved",))

    def columns(self) -> tuple[Column, ...]:
        return tuple([Column(name, by_chunk_id=True) for name in _NAMES])

    def calculate(self, case: Case, output: SystemOutput) -> Outcomes:
        if not case.expected_chunk_ids:
            return dict.fromkeys(_NAMES, _NO_CHUNKS)
        if output.error is not None:
            return dict.fromkeys(_NAMES, Failed(output.error.kind))
        gold = set(case.expected_chunk_ids)
        retrieved = {hit.chunk_id for hit in output.retrieved if hit.chunk_id is not None}
        recall, precision = _recall(retrieved, gold), _precision(retrieved, gold)
        return dict(zip(_NAMES, (recall, precision, _f1(precision, recall)), strict=True))
