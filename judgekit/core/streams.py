"""Records that are read again each time they are asked for, so that memory does not grow with their number."""

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
