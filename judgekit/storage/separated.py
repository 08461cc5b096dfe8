"""Tables of separated cells, such as CSV: which separator a file has, and its records with their lines."""

import csv
import io
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from judgekit.core.errors import InputError

Record = tuple[int, list[str]]
"""1-based line on which a record starts, and its cells."""

SEPARATORS = {",": "comma", ";": "semicolon", "\t": "tab", "|": "bar"}
"""What is found by itself, in this order where all else is equal."""

_HEAD = 1 << 16
_MOST_COMPARED = 20
_SEP_LINE = re.compile(r'"?sep=(.)"?[\r\n]*', re.IGNORECASE)


@contextmanager
def csv_records(
    stream: IO[bytes], path: Path, encoding: str, separator: str | None
) -> Iterator[tuple[str, Iterator[Record]]]:
    """The separator of a file, and the records that are not blank, the header among them.

    A first line `sep=X`, as Excel knows it, is not a record.

    Args:
        stream: the file.
        path: names it in messages.
        encoding: its Python name.
        separator: what stands between cells; None: the first line says so, or it is found by the header.

    Raises:
        InputError: not valid CSV; raised while the records are read.
    """
    text = io.TextIOWrapper(stream, encoding=encoding, newline="")
    try:
        head = text.read(_HEAD)
        text.seek(0)
        first = head.splitlines(keepends=True)[:1]
        named = _SEP_LINE.fullmatch(first[0]) if first else None
        if separator is None:
            separator = named[1] if named is not None else separator_of(head, is_whole=len(head) < _HEAD)
        yield separator, _read(text, path, separator, n_before=int(named is not None))
    finally:
        text.detach()


def _read(text: io.TextIOWrapper, path: Path, separator: str, n_before: int) -> Iterator[Record]:
    csv.field_size_limit(2**31 - 1)
    for _ in range(n_before):
        next(text)
    line = 1 + n_before
    try:
        reader = csv.reader(text, strict=True, delimiter=separator)
        for cells in reader:
            start, line = line, reader.line_num + 1 + n_before
            if any(cell.strip() for cell in cells):
                yield start, cells
    except csv.Error as error:
        message = "a quote is opened and not closed" if "unexpected end" in str(error) else error
        raise InputError(f"{path}:{line}: not valid CSV in the record that starts here: {message}") from None


def separator_of(head: str, *, is_whole: bool) -> str:
    """The separator with which most of the first records have as many cells as the header; the comma where none has.

    Args:
        head: the first characters of a file.
        is_whole: these are all.
    """
    best, best_rank = ",", (0.0, 0)
    for separator in SEPARATORS:
        records = _records(head, separator, is_whole=is_whole)
        if not records or len(records[0]) < 2:
            continue
        n_alike = sum(len(record) == len(records[0]) for record in records)
        rank = (n_alike / len(records), len(records[0]))
        if rank > best_rank:
            best, best_rank = separator, rank
    return best


def _records(head: str, separator: str, *, is_whole: bool) -> list[list[str]]:
    """The first records that are not blank, up to one that is not CSV with this separator."""
    records: list[list[str]] = []
    reader = csv.reader(io.StringIO(head, newline=""), strict=True, delimiter=separator)
    try:
        for cells in reader:
            if any(cell.strip() for cell in cells):
                records.append(cells)
            if len(records) > _MOST_COMPARED:
                break
    except csv.Error:
        return records
    return records if is_whole or len(records) < 2 else records[:-1]


def checked_header(cells: list[str], where: str, separator: str | None) -> list[str]:
    """The names of columns; one without a name is "".

    Args:
        cells: the header.
        where: file and line, for messages.
        separator: as the user gave it.

    Raises:
        InputError: a name comes twice, or the separator is another.
    """
    names = [cell.strip() for cell in cells]
    if len(names) == 1 and separator is not None and any(other in names[0] for other in SEPARATORS):
        raise InputError(f'{where}: the header is one column, {names[0][:60]!r}, with the "separator" {separator!r}')
    twice = sorted({name for name in names if name and names.count(name) > 1})
    if twice:
        raise InputError(f"{where}: column {twice[0]!r} comes twice in the header; rename one of them")
    return names
