"""What readers of rankings make of records at once, where ranked figures need no more of them than ids."""

from collections.abc import Sequence, Set
from typing import TYPE_CHECKING, Protocol

import msgspec

from judgekit.metrics.positions import Labels, Positions, SameRanks, places_of

if TYPE_CHECKING:
    from judgekit.storage.rows import Row


class Scattered(Exception):
    """The lines of one query stand in several places of a file, so it cannot be scored as it is read."""


class Labelled(msgspec.Struct, frozen=True, gc=False):
    """Some cases of a file, column by column."""

    keys: Sequence[str]
    """Their ids."""
    lines: Sequence[int]
    labels: Sequence[Labels]


class Ready(Protocol):
    """An output."""

    @property
    def key(self) -> str:
        """The id of the case."""

    def positions(self, labels: Labels) -> Positions | None:
        """Where the labels stand; None where that takes the whole record."""


class Rankings(Protocol):
    """Some outputs of a file."""

    @property
    def keys(self) -> Sequence[str]:
        """The ids of their cases."""

    @property
    def lines(self) -> Sequence[int]:
        """Where they stand."""

    def place(self, wanted: Sequence[Labels | None]) -> tuple[list[SameRanks], list[int]]:
        """Where labels stand, and the indices of outputs that have to be read one by one.

        Args:
            wanted: labels for each output, None where no case has its id.
        """

    def row(self, index: int) -> "Row":
        """One output alone."""


class Listed(msgspec.Struct, frozen=True, gc=False):
    """An output that is a list of ids, each of which is a chunk, a document and a path; all are ASCII."""

    key: str
    ids: list[bytes]
    """By rank, no id twice, none of which a path would be written otherwise."""
    distinct: Set[bytes]
    """The same."""

    def positions(self, labels: Labels) -> Positions | None:
        """Where the labels stand; None where that takes more than ids."""
        if labels.supports is not None:
            return None
        gold = labels.chunks
        chunks = self._places(gold)
        docs = chunks if labels.docs is gold else self._places(labels.docs)
        paths = chunks if labels.paths is gold else self._places(labels.paths)
        return Positions(chunks, docs, paths, paths, (), len(self.ids))

    def _places(self, gold: Sequence[str]) -> tuple[int, ...]:
        return places_of(list(map(str.encode, gold)), self.ids, self.distinct)
