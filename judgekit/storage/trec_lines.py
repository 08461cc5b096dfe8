"""The lines of TREC files, neighbours of one query together.

Runs have tens of millions of lines, so a piece of a file that is regular throughout is cut into cells at once and its
columns are taken by strides. Whatever is not regular (a comment, a blank line, another number of cells, an odd number)
is read line by line, with the same result.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import IO, NamedTuple

import msgspec

from judgekit.core.errors import InputError
from judgekit.storage.encodings import utf8_pieces
from judgekit.storage.record_formats import Source
from judgekit.storage.rows import Row

_PIECE = 1 << 15  # the cells of a piece then stay in the processor's cache
_MARK = b"\0"
_decode_numbers = msgspec.json.Decoder(list[float]).decode


class Block(msgspec.Struct, gc=False):
    """Neighbouring lines of one query."""

    query: bytes
    numbers: Sequence[int]
    """Their line numbers."""
    documents: list[bytes]
    values: list[float]
    """Their scores or relevances."""

    def texts(self) -> list[str]:
        """The document ids."""
        return b"\n".join(self.documents).decode("utf-8").split("\n")

    def with_more(self, other: "Block") -> "Block":
        """This with the lines of another of the same query behind."""
        numbers = [*self.numbers, *other.numbers]
        return Block(self.query, numbers, self.documents + other.documents, self.values + other.values)


@dataclass(frozen=True, slots=True)
class _Shape:
    """What the lines of a file look like: the query first, the document third."""

    n_cells: int
    number: int
    """Index of the cell that holds a number."""
    more_allowed: bool
    """Whether further cells are left aside."""


_RUN = _Shape(6, 4, more_allowed=True)
"""`query Q0 document rank score tag`; the rank is never read."""

_QRELS = _Shape(4, 3, more_allowed=False)
"""`query 0 document relevance`."""


def blocks(stream: IO[bytes], encoding: str, source: Source) -> Iterator[Row | Block]:
    """The lines of a file, neighbours of one query together, and rows for lines that are wrong.

    Raises:
        InputError: the file is empty, or judgements where results are wanted, or the other way round.
    """
    is_cases = source.kind == "cases"
    shape, bad_line = (_QRELS, _no_judgement) if is_cases else (_RUN, _no_result)
    last: Block | None = None
    is_empty, number = True, 1
    for piece in utf8_pieces(stream, encoding, _PIECE):
        lines = _regular(piece, number, shape) or _by_line(piece, number, shape)
        number += piece.count(b"\n")
        for faulty, cells in lines.faulty:
            is_first = is_empty and not (lines.numbers and lines.numbers[0] < faulty)
            yield bad_line(faulty, cells, source, is_first=is_first)
            is_empty = False
        for block in lines.blocks():
            is_empty = False
            if last is not None and last.query == block.query:
                last = last.with_more(block)
                continue
            if last is not None:
                yield last
            last = block
    if last is not None:
        yield last
    elif is_empty:
        raise InputError(f"{source.path}: the file has no {'judgements' if is_cases else 'results'}")


class _Lines(NamedTuple):
    """The lines of a piece: three columns of those that are good, and those that are not."""

    numbers: Sequence[int]
    """1-based line numbers, ascending."""
    queries: list[bytes]
    documents: list[bytes]
    values: list[float]
    faulty: Sequence[tuple[int, list[bytes]]] = ()
    """(line number, cells) of lines with too few cells, or without a number where one should be."""

    def blocks(self) -> Iterator[Block]:
        """Neighbouring lines with one query; the last may go on in the next piece."""
        start = 0
        for query, group in groupby(self.queries):
            end = start + len(list(group))
            yield Block(query, self.numbers[start:end], self.documents[start:end], self.values[start:end])
            start = end


def _regular(piece: bytes, first: int, shape: _Shape) -> _Lines | None:
    """The columns of a piece by strides; None if some line is out of the ordinary."""
    if _MARK in piece or (b"#" in piece and _may_have_comments(piece)):
        return None
    n = piece.count(b"\n") + (not piece.endswith(b"\n"))
    width = shape.n_cells + 1
    # With a mark at the end of each line, all marks stand right only if each line has its number of cells.
    cells = piece.removesuffix(b"\n").replace(b"\n", b" \0 ").split()
    cells.append(_MARK)
    if len(cells) != width * n or cells[shape.n_cells :: width].count(_MARK) != n:
        return None
    try:
        # A parser of JSON reads numbers several times as fast as `float`; a cell that holds commas gives too many.
        values = _decode_numbers(b"[" + b",".join(cells[shape.number :: width]) + b"]")
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None
    return _Lines(range(first, first + n), cells[::width], cells[2::width], values) if len(values) == n else None


def _may_have_comments(piece: bytes) -> bool:
    return piece.startswith(b"#") or b"\n#" in piece or b" #" in piece or b"\t#" in piece


def _by_line(piece: bytes, first: int, shape: _Shape) -> _Lines:
    found: list[tuple[int, bytes, bytes, float]] = []
    faulty: list[tuple[int, list[bytes]]] = []
    for number, line in enumerate(piece.split(b"\n"), start=first):
        cells = line.split(None, shape.n_cells) if shape.more_allowed else line.split()
        if not cells or cells[0].startswith(b"#"):
            continue
        fits = len(cells) >= shape.n_cells and (shape.more_allowed or len(cells) == shape.n_cells)
        value = _number_of(cells[shape.number]) if fits else None
        if value is None:
            faulty.append((number, cells))
        else:
            found.append((number, cells[0], cells[2], value))
    numbers, queries, documents, values = map(list, zip(*found, strict=True)) if found else ([], [], [], [])
    return _Lines(numbers, queries, documents, values, faulty)


def _number_of(cell: bytes) -> float | None:
    """A finite number, as C would read it; None if the cell is none."""
    try:
        value = float(cell)
    except ValueError:
        return None
    return value if math.isfinite(value) and b"_" not in cell else None


def _wrong(number: int, problem: str) -> Row:
    return Row(number, "$", None, problem)


def _no_judgement(number: int, cells: list[bytes], source: Source, *, is_first: bool) -> Row:
    if len(cells) != _QRELS.n_cells:
        if is_first and len(cells) >= _RUN.n_cells:
            raise InputError(
                f"{source.path}:{number}: {len(cells)} columns, as a run has; judgements have 4 "
                "(query 0 document relevance); a run is outputs"
            )
        return _wrong(number, f"expected 4 columns (query 0 document relevance), found {len(cells)}")
    return _wrong(number, f"relevance {cells[3].decode('utf-8', 'replace')!r} is not a number")


def _no_result(number: int, cells: list[bytes], source: Source, *, is_first: bool) -> Row:
    if len(cells) < _RUN.n_cells:
        if is_first and len(cells) == _QRELS.n_cells:
            raise InputError(
                f"{source.path}:{number}: 4 columns, as judgements (qrels) have; a run has 6 "
                "(query Q0 document rank score tag); qrels are cases"
            )
        return _wrong(number, f"expected 6 columns (query Q0 document rank score tag), found {len(cells)}")
    return _wrong(number, f"score {cells[4].decode('utf-8', 'replace')!r} is not a finite number")
