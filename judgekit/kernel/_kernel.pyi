"""Loops over ranked ids, compiled where the package was built with a C compiler.

An id is plain if it is a text in ASCII that begins with no blank. Where a case has any other the reply for it is None,
and its ranks have to be found in Python.
"""

from collections.abc import Collection, Sequence
from typing import Any

SOURCES: str
"""A hash of the files that the module was compiled from."""

def ranks_in_lists(
    gold: Sequence[Collection[str]], lists: Sequence[Sequence[str]], depth: int
) -> tuple[list[tuple[int, ...] | None], list[int]]:
    """Ascending ranks at which gold ids stand first, and the number of distinct gold ids, for each case.

    The number is 0 where ranks are None.

    Args:
        gold: gold ids, for each case; plain in a list, tuple, set or frozenset, and 64 of them at most.
        lists: ids in rank order, for each case; plain in a list or tuple.
        depth: the largest cut-off; behind it only the first right rank counts, where none stands before.

    Raises:
        ValueError: there are not as many lists as collections of gold ids.
        OverflowError: the depth is no number of the machine.
    """

def ranks_in_texts(
    gold: Sequence[Collection[str]], texts: Sequence[Any], depth: int, with_hits: bool
) -> tuple[list[tuple[int, ...] | None], list[int]]:
    """Ascending ranks at which gold ids stand, and how many entries stand within the depth, for each case.

    Ranks are None also for a list with an entry that is not plain, as far as figures depend on it, or in which a gold
    id comes twice; the number is 0 there.

    Args:
        gold: as in `ranks_in_lists`.
        texts: lists of ids in rank order, for each case: bytes of valid JSON in ASCII without backslashes.
        depth: as in `ranks_in_lists`.
        with_hits: entries are hits, whose document and path are the id; else they are the ids.

    Raises:
        TypeError: a text has no bytes.
        BufferError: it has them in several places.
        ValueError: there are not as many texts as collections of gold ids.
        OverflowError: the depth is no number of the machine.
    """

def queries_of_run(
    piece: bytes, is_last: bool, by_single: bool
) -> tuple[list[str], list[int], list[int], list[int], int, int, int, bytes] | None:
    """The queries of a piece of a TREC run, without the last unless the file ends with it.

    Args:
        piece: whole lines, in ASCII.
        is_last: the file ends there.
        by_single: scores are compared as 32-bit floats, and equal ones are out of order.

    Returns:
        None where a line is blank, a comment, too short, without a finite number, or holds control characters. Else for
        each query its id, the byte at which it begins, and its number of lines; the indices of queries in which a
        document comes twice, or whose scores do not descend; how many hits have the score of the one before, and in how
        many queries, without those; the bytes that were used; and for each line where its document stands, for
        `ranks_in_run`.
    """

def ranks_in_run(
    piece: bytes, places: bytes, n_hits: Sequence[int], gold: Sequence[tuple[str, ...]]
) -> tuple[list[tuple[int, ...]], list[int]]:
    """Ascending ranks of the wanted documents, and the number of lines, for each query.

    Args:
        piece: see `queries_of_run`.
        places: see there, as all that follows.
        n_hits: number of lines.
        gold: distinct ids; none where a document comes twice.

    Raises:
        ValueError: there are fewer lines, other numbers of queries, or places that are not in the piece.
    """
