"""The queries of a run, many at once, by the compiled loops.

What is unusual about a piece is left to the reader of lines, and what is unusual about a query is marked.
"""

from codecs import BOM_UTF8
from collections.abc import Iterator
from typing import IO, NamedTuple

from judgekit.core.collector import keep_freed_memory
from judgekit.kernel import kernel
from judgekit.storage.encodings import is_plain
from judgekit.storage.formats.trec_lines import RUN, Block, Lines, blocks_of, parts_of

_PIECE = 1 << 18


class _Cut(NamedTuple):
    """What the compiled loops say about the lines of a piece; an index is that of a query."""

    keys: list[str]
    starts: list[int]
    """Where the first line of each begins."""
    n_hits: list[int]
    odd: list[int]
    """Those that have a document twice, or another order than that of the file."""
    n_tied: int
    """Hits with the score of the hit before, in queries that are not odd."""
    n_queries_with_ties: int
    end: int
    """Behind the last line of the last query."""
    places: bytes
    """For each line, where its document stands."""


class RunQueries:
    """Queries, each with all its lines; an index is that of a query."""

    def __init__(self, piece: bytes, cut: _Cut, first_line: int) -> None:
        """Prepare.

        Args:
            piece: the lines.
            cut: what is known of them.
            first_line: number of the first.
        """
        self._piece = piece
        self._cut = cut
        self.keys = cut.keys
        self.n_hits = cut.n_hits
        self.odd = cut.odd
        self.n_tied = cut.n_tied
        self.n_queries_with_ties = cut.n_queries_with_ties
        self.lines: list[int] = []
        """Numbers of their first lines."""
        for n in cut.n_hits:
            self.lines.append(first_line)
            first_line += n
        self.next_line = first_line
        """Number of the line behind them."""

    def block(self, index: int) -> Block:
        """The lines of a query."""
        starts = [*self._cut.starts, self._cut.end]
        lines = self._piece[starts[index] : starts[index + 1]]
        found, *more = [block for part, _ in parts_of(lines, self.lines[index], RUN) for block in blocks_of(part)]
        for block in more:
            found = found.with_more(block)
        return found

    def ranks(self, gold: list[tuple[str, ...]]) -> list[tuple[int, ...]]:
        """Ascending ranks, by the order of the file, at which the wanted documents stand in each query.

        Args:
            gold: distinct ids for each query, none for odd ones.
        """
        ranks, _ = kernel.ranks_in_run(self._piece, self._cut.places, self.n_hits, gold)
        return ranks


def run_queries(stream: IO[bytes], *, by_single: bool) -> Iterator[Lines | RunQueries]:
    """The lines of a run in UTF-8, in order: queries with all their lines, or lines of which some are odd.

    Args:
        stream: the file.
        by_single: scores are compared as 32-bit floats, and equal ones are out of order.
    """
    keep_freed_memory()
    if stream.read(len(BOM_UTF8)) != BOM_UTF8:
        stream.seek(0)
    number, begun, size = 1, b"", _PIECE
    while True:
        data = stream.read(size)
        is_last = not data
        if is_last and not begun:
            return
        length = len(data) if is_last else data.rfind(b"\n") + 1
        if not length and not is_last:
            begun += data
            size = max(_PIECE, len(begun))
            continue
        piece = b"".join([begun, memoryview(data)[:length]])
        found = kernel.queries_of_run(piece, is_last, by_single) if is_plain(piece) else None
        used = len(piece)
        if found is None:
            for lines, n in parts_of(piece, number, RUN):
                yield lines
                number += n
        else:
            queries = RunQueries(piece, _Cut(*found), number)
            used = found[6]
            if queries.keys:
                yield queries
            number = queries.next_line
        if is_last:
            return
        begun = piece[used:] + data[length:]
        size = max(_PIECE, len(begun))
