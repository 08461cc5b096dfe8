"""Records that are read again each time they are asked for, so that memory does not grow with their number."""

import hashlib
from array import array
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import TypeVar, overload

from judgekit.core.errors import InputError

T_co = TypeVar("T_co", covariant=True)


class Streamed(Collection[T_co]):
    """A collection that holds how its items are read, and not the items.

    Going through it raises whatever reading raises, and `InputError` if there are not as many items as there were.
    """

    def __init__(self, read: Callable[[], Iterable[T_co]], n: int) -> None:
        """Take the items.

        Args:
            read: gives all items in their order, as often as it is called.
            n: number of items.
        """
        self._read = read
        self._n = n

    def __iter__(self) -> Iterator[T_co]:
        n_read = 0
        for item in self._read():
            n_read += 1
            yield item
        if n_read != self._n:
            raise InputError(f"a data file changed while it was read: {self._n} records before, now {n_read}")

    def __len__(self) -> int:
        return self._n

    def __contains__(self, item: object) -> bool:
        return any(item == other for other in self)


class IdList(Sequence[str]):
    """Ids in their order, in eight bytes each beside their text."""

    def __init__(self) -> None:
        """Begin with none."""
        self._text = bytearray()
        self._ends = array("Q", [0])

    def append(self, name: str) -> None:
        """Take the next id."""
        self._text += name.encode("utf-8", "surrogatepass")
        self._ends.append(len(self._text))

    def __len__(self) -> int:
        return len(self._ends) - 1

    @overload
    def __getitem__(self, index: int) -> str: ...

    @overload
    def __getitem__(self, index: slice) -> list[str]: ...

    def __getitem__(self, index: int | slice) -> str | list[str]:
        places = range(len(self))[index]
        if isinstance(places, range):
            return [self[place] for place in places]
        return self._text[self._ends[places] : self._ends[places + 1]].decode("utf-8", "surrogatepass")


class IdOrder:
    """Tells whether two files name the same ids in the same order, without keeping them."""

    def __init__(self, ids: Iterable[str] = ()) -> None:
        """Begin with some ids, or with none."""
        self._hash = hashlib.sha256()
        self.n = 0
        for name in ids:
            self.add(name)

    def add(self, name: str) -> None:
        """Take the next id."""
        data = name.encode("utf-8", "surrogatepass")
        self._hash.update(b"%d:%b" % (len(data), data))
        self.n += 1

    def __eq__(self, other: object) -> bool:
        return isinstance(other, IdOrder) and self._hash.digest() == other._hash.digest()

    __hash__ = None  # type: ignore[assignment]  # it changes with each id
