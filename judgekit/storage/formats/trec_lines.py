"""The lines of TREC files, a piece of the file at a time.

Runs have tens of millions of lines, so a piece that is regular throughout is cut into cells at once and its columns are
taken by strides. Whatever is not regular (a comment, a blank line, another number of cells, an odd number) is read line
by line, with the same result.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from operator import gt
from typing import IO

import msgspec

from judgekit.storage.encodings import is_plain, utf8_pieces

_PIECE = 1 << 15  # the cells of a piece then stay in the processor's cache
_MARK = b"\0"
_SEPARATORS = (b"\x1c", b"\x1d", b"\x1e", b"\x1f")
"""Blank as text, but part of a cell as bytes."""
_decode_numbers = msgspec.json.Decoder(list[float]).decode


class Lines(msgspec.Struct, gc=False):
    """Lines of a piece: some columns of those that are good, and those that are not."""

    numbers: Sequence[int]
    """1-based line numbers, ascending."""
    columns: tuple[list[bytes], ...]
    """The columns asked for, without the one of numbers."""
    values: list[float]
    """The column of numbers."""
    faulty: list[tuple[int, list[bytes]]]
    """(line number, cells) of lines with too few cells, or without a number where one should be."""
    is_plain: bool
    """All bytes are ASCII and none is a backslash or starts `./`, so that ids and paths are compared as they are."""

    def rows(self, start: int) -> "Lines":
        """The lines from one on, without those that are faulty."""
        columns = tuple([column[start:] for column in self.columns])
        return Lines(self.numbers[start:], columns, self.values[start:], [], self.is_plain)

    def with_more(self, other: "Lines") -> "Lines":
        """This with the lines that follow; neither has faulty ones, nor anything between lines."""
        columns = tuple([mine + more for mine, more in zip(self.columns, other.columns, strict=True)])
        numbers = range(self.numbers[0], self.numbers[0] + len(self.numbers) + len(other.numbers))
        return Lines(numbers, columns, self.values + other.values, [], self.is_plain and other.is_plain)


@dataclass(frozen=True, slots=True)
class Shape:
    """What the lines of a file look like."""

    n_cells: int
    columns: tuple[int, ...]
    """Indices of the cells that are wanted."""
    number: int
    """Index of the cell that holds a number."""
    more_allowed: bool
    """Whether further cells are left aside."""


RUN = Shape(6, (0, 2), 4, more_allowed=True)
"""`query Q0 document rank score tag`; the rank is never read."""

QRELS = Shape(4, (0, 2), 3, more_allowed=False)
"""`query 0 document relevance`."""


def lines_of(stream: IO[bytes], encoding: str, shape: Shape) -> Iterator[Lines]:
    """The lines of a file, in order, without comments and blank lines; only line feeds end a line.

    Args:
        stream: the file.
        encoding: its Python name.
        shape: what a line looks like.

    Raises:
        UnicodeError: the file is not in its encoding, as far as that is needed to find its lines.
    """
    number = 1
    for piece in utf8_pieces(stream, encoding, _PIECE):
        found, n = _part_of(piece, number, shape)
        yield found
        number += n


def parts_of(text: bytes, first: int, shape: Shape) -> Iterator[tuple[Lines, int]]:
    """The lines of a part of a file, and how many there are with comments and blank ones, a piece at a time.

    Args:
        text: whole lines.
        first: number of the first.
        shape: what a line looks like.
    """
    start = 0
    while start < len(text):
        end = text.rfind(b"\n", start, start + _PIECE) + 1 or text.find(b"\n", start) + 1 or len(text)
        piece = text[start:end]
        found, n = _part_of(piece, first, shape)
        yield found, n
        first += n
        start = end


def _part_of(piece: bytes, first: int, shape: Shape) -> tuple[Lines, int]:
    n = piece.count(b"\n") + (not piece.endswith(b"\n"))
    return _regular(piece, n, first, shape) or _by_line(piece, first, shape), n


def _regular(piece: bytes, n: int, first: int, shape: Shape) -> Lines | None:
    """The columns of a piece by strides; None where some line is out of the ordinary."""
    if b"#" in piece and _may_have_comments(piece):
        return None
    if _MARK in piece:
        return None
    width = shape.n_cells + 1
    # With a mark at each end of a line, all marks stand right only if each line has its number of cells.
    cells = piece.replace(b"\n", b" \0 ").split()
    if not piece.endswith(b"\n"):
        cells.append(_MARK)
    if len(cells) != width * n or cells[shape.n_cells :: width].count(_MARK) != n:
        return None
    values = numbers_of(cells[shape.number :: width])
    if values is None:
        return None
    columns = tuple([cells[index::width] for index in shape.columns])
    return Lines(range(first, first + n), columns, values, [], _is_plain(piece))


def _is_plain(piece: bytes) -> bool:
    return is_plain(piece) and not any(mark in piece for mark in _SEPARATORS)


def _may_have_comments(piece: bytes) -> bool:
    """Whether some line may begin with `#`; blanks before it are rare and looked at line by line."""
    return piece.startswith(b"#") or b"\n#" in piece or b" #" in piece or b"\t#" in piece


def numbers_of(cells: list[bytes]) -> list[float] | None:
    """The cells as finite numbers, as C would read them; None where one is none."""
    try:
        # A parser of JSON reads numbers several times as fast; a cell that holds commas gives too many.
        values = _decode_numbers(b"[" + b",".join(cells) + b"]")
    except (msgspec.DecodeError, UnicodeDecodeError):
        found = [number_of(cell) for cell in cells]
        return None if None in found else [value for value in found if value is not None]
    return values if len(values) == len(cells) else None


def _by_line(piece: bytes, first: int, shape: Shape) -> Lines:
    numbers: list[int] = []
    values: list[float] = []
    columns: tuple[list[bytes], ...] = tuple([] for _ in shape.columns)
    faulty: list[tuple[int, list[bytes]]] = []
    lines = piece.split(b"\n")
    for number, line in enumerate(lines, start=first):
        cells = line.split(None, shape.n_cells) if shape.more_allowed else line.split()
        if not cells or cells[0][0] == 35:  # a comment
            continue
        fits = len(cells) >= shape.n_cells and (shape.more_allowed or len(cells) == shape.n_cells)
        value = number_of(cells[shape.number]) if fits else None
        if value is None:
            faulty.append((number, cells))
            continue
        numbers.append(number)
        values.append(value)
        for column, index in zip(columns, shape.columns, strict=True):
            column.append(cells[index])
    return Lines(numbers, columns, values, faulty, _is_plain(piece))


def number_of(cell: bytes) -> float | None:
    """A finite number, as C would read it; None where the cell is none."""
    try:
        value = float(cell)
    except ValueError:
        return None
    return value if math.isfinite(value) and b"_" not in cell else None


class Block(msgspec.Struct, gc=False):
    """Neighbouring lines that have one query."""

    query: bytes
    numbers: Sequence[int]
    """Their line numbers."""
    documents: list[bytes]
    values: list[float]
    """Their scores or relevances."""
    is_plain: bool

    def with_more(self, other: "Block") -> "Block":
        """This with the lines of another of the same query behind."""
        numbers = self.numbers if isinstance(self.numbers, list) else list(self.numbers)
        numbers.extend(other.numbers)
        self.documents += other.documents
        self.values += other.values
        return Block(self.query, numbers, self.documents, self.values, self.is_plain and other.is_plain)


def blocks_of(lines: Lines) -> Iterator[Block]:
    """The lines of a piece, query by query; the last may go on in the next piece."""
    queries, documents = lines.columns
    n = len(queries)
    start, guess = 0, 1
    while start < n:
        end = _end(queries, start, guess, n)
        guess = end - start
        yield Block(
            queries[start], lines.numbers[start:end], documents[start:end], lines.values[start:end], lines.is_plain
        )
        start = end


def _end(queries: list[bytes], start: int, guess: int, n: int) -> int:
    """Where the lines of a query end; most queries of a run have as many as the one before."""
    query = queries[start]
    end = min(start + guess, n)
    if queries[end - 1] != query or (end < n and queries[end] == query):
        low, end = start, n  # queries[low] is the query's; queries[end], where there is one, is not
        while end - low > 1:
            middle = (low + end) // 2
            low, end = (middle, end) if queries[middle] == query else (low, middle)
    if queries[start:end].count(query) == end - start:
        return end
    end = start + 1  # other queries in between
    while queries[end] == query:
        end += 1
    return end


def descends(scores: Sequence[float]) -> bool:
    """Whether each score is below the one before, so that the order is that of the file and nothing is tied."""
    return all(map(gt, scores, islice(scores, 1, None)))
