"""The hits of one query of a run at once, where its lines differ in document, rank and score alone.

That is so in what nearly every system writes. Taking out what all lines share, with the line feed between, leaves half
of the cells to be made, and shows by its length that no line is out of the ordinary.
"""

import re
from collections.abc import Iterator
from typing import IO

from judgekit.storage.formats.trec_lines import RUN, Block, Lines, is_plain, numbers_of, part_of, pieces_of

_BLANKS = b" \t\n\r\x0b\x0c"
_NO_BLANKS = bytes(set(range(256)) - set(_BLANKS))
_FEW = 32
"""Hits of a query below which its lines are read faster with those of others."""
_TRIES = 4
"""Queries with few hits in a row after which the rest of a piece is read so."""
_PIECE = 1 << 17

_first_line = re.compile(rb"(([^\s#]\S*)[ \t]\S+[ \t])\S+([ \t])\S+([ \t])\S+([ \t]\S[^\n]*\n)").match
"""Groups: all before the document; the query; what parts document, rank and score; all behind the score."""


def rankings_of(stream: IO[bytes], encoding: str) -> Iterator[Lines | Block]:
    """The lines of a run in order: those of a query together, others as they are.

    Args:
        stream: the file.
        encoding: its Python name.

    Raises:
        UnicodeError: the file is not in its encoding, as far as that is needed to find its lines.
    """
    number = 1
    for piece in pieces_of(stream, encoding, _PIECE):
        plain = is_plain(piece)
        start = size = n_short = 0
        while n_short < _TRIES and (found := _block_at(piece, start, size, number, plain)) is not None:
            block, end = found
            yield block
            size, start = end - start, end
            number += len(block.documents)
            n_short = n_short + 1 if len(block.documents) < _FEW else 0
        while start < len(piece):
            end = piece.rfind(b"\n", start, start + (_PIECE >> 2)) + 1
            part = piece[start : end or len(piece)]
            lines, n = part_of(part, number, RUN)
            yield lines
            start += len(part)
            number += n


def _block_at(piece: bytes, start: int, size: int, number: int, plain: bool) -> tuple[Block, int] | None:
    """The lines of a query that starts here, and where they end; None where some line is out of the ordinary."""
    line = _first_line(piece, start)
    if line is None:
        return None
    opening, query, one, other, closing = line.groups()
    end = _end_of(piece, start, size, opening, line.end())
    delimiter = closing + opening
    length = end - start - len(delimiter)
    body = piece[start + len(opening) : end - len(closing)].replace(delimiter, b"\n")
    blanks = body.translate(None, _NO_BLANKS)
    n = len(blanks) // 3 + 1
    # Each line feed is one that was put in, and each line has its three cells.
    if len(body) != length - (n - 1) * (len(delimiter) - 1) or blanks + b"\n" != (one + other + b"\n") * n:
        return None
    if not piece.endswith(closing, start, end):
        return None
    cells = body.split()
    values = numbers_of(cells[2::3])
    if len(cells) != 3 * n or values is None:
        return None
    return Block(query, range(number, number + n), cells[::3], values, plain), end


def _end_of(piece: bytes, start: int, size: int, opening: bytes, second: int) -> int:
    """Where the lines of a query end, or what looks like it; most queries have about as many as the one before."""
    end_and_opening = b"\n" + opening
    width = size + (size >> 5) + 2 * (second - start)
    while True:
        last = piece.rfind(end_and_opening, start, start + width) + 1 or start
        end = piece.find(b"\n", last) + 1
        if not end:  # the last line of the file, without a line feed
            return last
        if not piece.startswith(opening, end):
            return end
        width *= 2
