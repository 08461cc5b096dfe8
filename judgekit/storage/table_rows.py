"""Tables as records of texts: CSV and the like, whose separator is found, and spreadsheets (.xlsx).

openpyxl is imported only when a spreadsheet is read.
"""

import csv
import datetime
import io
import re
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import zip_longest
from pathlib import Path
from typing import IO, Any
from xml.etree.ElementTree import ParseError

from judgekit.core.errors import InputError
from judgekit.storage.problems import one_part

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
    """The separator with which most of the first records have as many cells as the header; the comma if none has."""
    best, best_rank = ",", (0.0, 0)
    for separator in SEPARATORS:
        records = _first_records(head, separator, is_whole=is_whole)
        if not records or len(records[0]) < 2:
            continue
        n_alike = sum(len(record) == len(records[0]) for record in records)
        rank = (n_alike / len(records), len(records[0]))
        if rank > best_rank:
            best, best_rank = separator, rank
    return best


def _first_records(head: str, separator: str, *, is_whole: bool) -> list[list[str]]:
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


UNPACKED_BYTES = 256 * 1024**2
"""A few kilobytes of a workbook can stand for any number of cells."""

_UNREADABLE = (zipfile.BadZipFile, zlib.error, ParseError, EOFError, KeyError, ValueError, TypeError, AttributeError,
               IndexError, NotImplementedError, RuntimeError)  # fmt: skip


def sheet_records(stream: IO[bytes], path: Path, part: str | None) -> Iterator[Record]:
    """The rows of a sheet that are not blank, the header among them, with their numbers.

    Args:
        stream: the workbook.
        path: names it in messages.
        part: name of the sheet; None: the only one that is not blank.

    Raises:
        InputError: openpyxl is not installed, the workbook cannot be read, or several sheets and none named.
    """
    try:
        from openpyxl import load_workbook
        from openpyxl.utils.exceptions import InvalidFileException
    except ImportError:
        raise InputError(
            f"{path}: reading .xlsx needs openpyxl: pip install openpyxl; or save the sheet as CSV UTF-8"
        ) from None
    import warnings

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # what openpyxl says of charts, rules and styles
            _check_size(stream, path)
            values = load_workbook(stream, read_only=True, data_only=True)
            formulas = load_workbook(stream, read_only=True)
            name = _chosen(values, part, path)
            found = list(_filled_rows(values[name], formulas[name], f"{path}: sheet {name!r}"))
    except (*_UNREADABLE, InvalidFileException) as error:
        raise InputError(
            f"{path}: is not a readable .xlsx file ({' '.join(str(error).split())[:100]}); save it as .xlsx without a "
            "password, or as CSV UTF-8"
        ) from None
    yield from found


def _check_size(stream: IO[bytes], path: Path) -> None:
    with zipfile.ZipFile(stream) as archive:
        n_bytes = sum(info.file_size for info in archive.infolist())
    if n_bytes > UNPACKED_BYTES:
        raise InputError(f"{path}: unpacks to more than {UNPACKED_BYTES // 1024**2} MiB; save the sheet as CSV UTF-8")
    stream.seek(0)


def _chosen(book: Any, part: str | None, path: Path) -> str:
    names = [sheet.title for sheet in book.worksheets]
    if part is None and len(names) > 1:
        names = [name for name in names if _is_filled(book[name])] or names[:1]
    return one_part(part, path, names, "sheet")


def _is_filled(sheet: Any) -> bool:
    sheet.reset_dimensions()
    return any(value is not None for row in sheet.iter_rows(values_only=True) for value in row)


def _filled_rows(values: Any, formulas: Any, where: str) -> Iterator[Record]:
    """The header and what stands beneath it; what stands beside that has no name and is left out."""
    values.reset_dimensions()  # what a file says of its size may be wrong
    formulas.reset_dimensions()
    width, begun = 0, 1
    for number, texts in _rows(values, formulas, where):
        width = max((place for place, text in enumerate(texts, start=1) if text.strip()), default=0)
        begun = number + 1
        if width:
            yield number, texts[:width]
            break
    for number, texts in _rows(values, formulas, where, min_row=begun, max_col=width) if width else ():
        if any(text.strip() for text in texts):
            yield number, texts + [""] * (width - len(texts))


def _rows(values: Any, formulas: Any, where: str, **part: int) -> Iterator[Record]:
    pairs = zip(values.iter_rows(**part), formulas.iter_rows(**part), strict=True)
    for number, (cells, sources) in enumerate(pairs, start=part.get("min_row", 1)):
        yield number, [_text(cell, source, where) for cell, source in zip_longest(cells, sources)]


def _text(cell: Any, source: Any, where: str) -> str:
    """What a CSV file would hold for a cell: of a formula the stored value."""
    from openpyxl.utils.escape import unescape

    value = cell.value
    if value is None:
        if source is not None and source.data_type == "f" and cell.data_type != "str":
            raise InputError(
                f"{where}: cell {cell.coordinate} holds a formula without a value; open and save the file in a "
                "spreadsheet program"
            )
        return ""
    if cell.data_type == "e":
        raise InputError(f"{where}: cell {cell.coordinate} holds the error {value}; clear or correct it")
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**53:
        return str(int(value))
    if isinstance(value, datetime.datetime) and value.time() == datetime.time():
        return value.date().isoformat()
    if isinstance(value, datetime.date | datetime.time):
        return value.isoformat()
    return unescape(value) if isinstance(value, str) and "_x" in value else str(value)  # a CR is _x000D_ in Excel
