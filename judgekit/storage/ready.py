"""What readers of rankings make of a record at once, where ranked figures need no more of it than ids."""

from collections.abc import Sequence, Set
from typing import Protocol

import msgspec

from judgekit.metrics.positions import Labels, Positions, places_of


class Scattered(Exception):
    """The lines of one query stand in several places of a file, so it cannot be scored as it is read."""


class Ready(Protocol):
    """A case or an output."""

    @property
    def key(self) -> str:
        """The id of the case."""


class ReadyOutput(Ready, Protocol):
    """An output."""

    def positions(self, labels: Labels) -> Positions | None:
        """Where the labels stand; None where that takes the whole record."""


class Labelled(msgspec.Struct, frozen=True, gc=False):
    """A case."""

    key: str
    labels: Labels


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
