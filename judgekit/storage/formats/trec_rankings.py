"""The queries of a large run, many at once, by arrays of a piece of the file.

What is unusual about a piece is left to the reader of lines, and what is unusual about a query is marked.
"""

from codecs import BOM_UTF8
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import IO

import numpy as np

from judgekit.core.collector import keep_freed_memory
from judgekit.storage.formats.decimals import Flags, Places
from judgekit.storage.formats.trec_columns import PAD, Columns, columns_of, gold_lines, repeated
from judgekit.storage.formats.trec_lines import RUN, Block, Lines, parts_of

_PIECE = 1 << 20


class RunQueries:
    """Queries, each with all its lines; an index is that of a query."""

    def __init__(self, columns: Columns, first_line: int, *, by_single: bool) -> None:
        """Prepare.

        Args:
            columns: of the queries.
            first_line: number of their first line.
            by_single: scores are compared as 32-bit floats, and equal ones are out of order.
        """
        self._columns = columns
        self._first_line = first_line
        self._first_rows = columns.first_lines.tolist()
        text = columns.piece[: columns.end].decode("ascii")
        begins, ends = columns.query_starts[columns.first_lines], columns.query_ends[columns.first_lines]
        self.keys = [text[begin:end] for begin, end in zip(begins.tolist(), ends.tolist(), strict=True)]
        self.lines: list[int] = (columns.first_lines + first_line).tolist()
        """Numbers of their first lines."""
        self.n_hits: list[int] = columns.n_hits.tolist()
        is_odd, tied = _order(columns, by_single=by_single)
        is_odd |= repeated(columns)
        self.odd: list[int] = np.flatnonzero(is_odd).tolist()
        """Queries that may have a document twice, or have another order than that of the file."""
        of_tied = columns.of_line[tied]
        of_tied = of_tied[~is_odd[of_tied]]
        self.n_tied = len(of_tied)
        """Hits with the score of the hit before, in queries that are not odd."""
        self.n_queries_with_ties = len(np.unique(of_tied))

    def block(self, index: int) -> Block:
        """The lines of a query."""
        start, n = self._first_rows[index], self.n_hits[index]
        columns, rows = self._columns, slice(start, start + n)
        documents = _cells(columns.piece, columns.id_starts[rows], columns.id_ends[rows])
        scores = _cells(columns.piece, columns.score_starts[rows], columns.score_ends[rows])
        values = list(map(float, scores))
        line = self.lines[index]
        query = self.keys[index].encode("ascii")
        return Block(query, range(line, line + n), documents, values, is_plain=True)

    def ranks(self, gold: Sequence[Sequence[str]]) -> list[tuple[int, ...]] | None:
        """Ascending ranks, by the order of the file, at which the wanted documents stand in each query.

        Args:
            gold: distinct ids for each query, none for odd ones.

        Returns:
            None where they have to be looked for one by one.
        """
        lines = gold_lines(self._columns, gold)
        if lines is None:
            return None
        of_query = self._columns.of_line[lines]
        ranks = (lines - self._columns.first_lines[of_query] + 1).tolist()
        bounds = np.searchsorted(of_query, np.arange(len(gold) + 1)).tolist()
        return [tuple(ranks[start:end]) for start, end in pairwise(bounds)]


def _cells(piece: bytes, starts: Places, ends: Places) -> list[bytes]:
    return [piece[start:end] for start, end in zip(starts.tolist(), ends.tolist(), strict=True)]


def _order(columns: Columns, *, by_single: bool) -> tuple[Flags, Places]:
    """For each query whether it is out of order, and the lines with the score of the line before."""
    wrong, same = columns.order
    within = np.ones(len(same), np.bool_)
    within[columns.first_lines[1:] - 1] = False
    is_odd = np.zeros(len(columns.first_lines), np.bool_)
    is_odd[columns.of_line[1:][(wrong | same if by_single else wrong) & within]] = True
    return is_odd, np.flatnonzero(same & within) + 1


def run_queries(stream: IO[bytes], *, by_single: bool) -> Iterator[Lines | RunQueries]:
    """The lines of a run in UTF-8, in order: queries with all their lines, or lines of which some are odd.

    Args:
        stream: the file.
        by_single: see `RunQueries`.
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
        if is_last and not begun.endswith(b"\n"):
            data = b"\n"
        length = data.rfind(b"\n") + 1
        if not length and not is_last:
            begun += data
            size = max(_PIECE, len(begun))
            continue
        piece = b"".join([begun, data[:length], PAD])
        end = len(piece) - len(PAD)
        columns = columns_of(piece, end, is_last=is_last, by_single=by_single)
        if columns is None:
            used = end
            for lines, n in parts_of(piece[:end], number, RUN):
                yield lines
                number += n
        else:
            used = columns.end
            if used:
                yield RunQueries(columns, number, by_single=by_single)
                number += len(columns.of_line)
        if is_last:
            return
        begun = piece[used:end] + data[length:]
        size = max(_PIECE, len(begun))
