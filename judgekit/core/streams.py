"""Records that are read again each time they are asked for, so that memory does not grow with their number."""

import hashlib
from collections.abc import Callable, Collection, Iterable, Iterator
from typing import TypeVar

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
