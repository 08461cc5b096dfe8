"""Rows of JSONL, JSON, CSV and .xlsx files, each with the place where it stands."""

import json
import os
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, TypeVar

import msgspec

from judgekit.core.cases import Case, SystemOutput
from judgekit.core.data_files import DataFile
from judgekit.core.errors import InputError
from judgekit.storage.documents import records_of
from judgekit.storage.dotted import field_heads
from judgekit.storage.encodings import Hashes, encoding_of, faults_named, hashed, undecodable_named, utf8_pieces
from judgekit.storage.format_names import formats_named
from judgekit.storage.problems import Location, kind_of
from judgekit.storage.table_rows import Record, checked_header, csv_records, sheet_records

OWN_FORMATS = {
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".json": "json",
    ".csv": "csv",
    ".tsv": "csv",
    ".xlsx": "xlsx",
    ".xlsm": "xlsx",
}
"""Formats that this file reads, by extension."""

_OTHER_SHEETS = (".xls", ".xlsb", ".ods", ".numbers")
_FIELDS = {*Case.model_fields, *SystemOutput.model_fields}

_BLANKS = b" \t\r\n"
"""What may stand around a record on its line."""

_PIECE = 1 << 18

T = TypeVar("T")

Notices = list[tuple[str, str]]
"""(code, message) of what the reader of the numbers should know."""


@dataclass(frozen=True, slots=True)
class Origin:
    """What a record of a foreign format was made from."""

    record: Mapping[str, Any]
    """The record as it stands in the file."""
    names: Mapping[str, str] = field(default_factory=dict)
    """Our field name -> name in the file."""


class Row(msgspec.Struct, frozen=True):
    """One record of a file, or what is wrong with it."""

    line: int
    """1-based line on which the record starts; 0: see `place`, or the format has no lines."""
    path: str
    """Where the record stands inside the line or file: `$` or `$[3]`, or `query '7'`."""
    data: dict[str, Any] | None
    problem: str | None = None
    from_csv: bool = False
    has_commas: bool = False
    """Numbers have decimal commas, as in files whose cells are separated by semicolons."""
    file: str = ""
    """The file inside a folder or archive."""
    place: Location | None = None
    """Keys and indices from the root of a JSON document, from which the line is found where it is needed."""
    origin: Origin | None = None
    """Set for records of a foreign format."""


def read_rows(source: DataFile, path: Path) -> Iterator[Row]:
    """Every record of a file, in order; a record that cannot be read comes with its problem.

    Raises:
        InputError: the file as a whole cannot be read: missing, empty, wrong encoding, wrong shape.
    """
    kind = source.format if source.format in OWN_FORMATS.values() else OWN_FORMATS.get(path.suffix.lower())
    if kind is None:
        raise InputError(unknown_extension(path))
    if source.records is not None and kind != "json":
        raise InputError(f'{path}: "records" is for JSON and YAML documents, this is a {kind} file')
    with faults_named(path, f"a {kind} file"), path.open("rb") as stream:
        if kind == "xlsx":
            yield from _table(source, sheet_records(stream, path, source.part), path)
            return
        encoding = encoding_of(source.encoding, stream, path)
        with undecodable_named(path, encoding):
            if kind == "csv":
                with csv_records(stream, path, encoding, source.separator) as (separator, records):
                    yield from _table(source, records, path, has_commas=separator == ";")
            else:
                json_lines = _lines(stream, path, encoding, jsonl_row)
                yield from _json(source, stream, path, encoding) if kind == "json" else json_lines


def unknown_extension(path: Path) -> str:
    """What is said of a file whose extension says nothing."""
    if path.suffix.lower() in _OTHER_SHEETS:
        return f"{path}: {path.suffix} is not read; save the sheet as .xlsx or as CSV UTF-8"
    return f'{path}: unknown extension {path.suffix!r}; set "format" to one of {formats_named()}'


def read_text(source: DataFile, path: Path) -> str:
    """A whole file, decoded, without its byte order mark.

    Raises:
        InputError: it is missing, or not in its encoding.
    """
    with faults_named(path, "a file"), path.open("rb") as stream:
        encoding = encoding_of(source.encoding, stream, path)
        with undecodable_named(path, encoding):
            return stream.read().decode(encoding)


def read_jsonl(source: DataFile, path: Path, make: Callable[[bytes, int], T], hashes: Hashes) -> Iterator[T]:
    """What is made of each line of a JSONL file.

    Args:
        source: how the file is read.
        path: where it is.
        make: from a line without blanks around it, and its number.
        hashes: takes that of the file.

    Raises:
        InputError: as for `read_rows`.
    """
    with faults_named(path, "a jsonl file"), hashed(path, hashes) as stream:
        encoding = encoding_of(source.encoding, stream, path)
        with undecodable_named(path, encoding):
            yield from _lines(stream, path, encoding, make)


def _lines(stream: IO[bytes], path: Path, encoding: str, make: Callable[[bytes, int], T]) -> Iterator[T]:
    """What is made of each line that is not blank; only line feeds end a line, U+2028, U+0085 and the like are text."""
    is_empty, first = True, 1
    for piece in utf8_pieces(stream, encoding, _PIECE):
        lines = piece.split(b"\n")
        for number, line in enumerate(lines, start=first):
            body = line.strip(_BLANKS)
            if body:
                is_empty = False
                yield make(body, number)
        first += len(lines) - 1
    if is_empty:
        raise InputError(f"{path}: the file is empty")


def jsonl_row(body: bytes, number: int) -> Row:
    try:
        data = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        # The standard parser also takes bare NaN, which other tools write, and says where a fault stands.
        text = body.decode("utf-8")
        try:
            data = json.loads(text)
        except (ValueError, RecursionError) as error:
            hint = '; if the file is one JSON document, set "format": "json"' if body in (b"[", b"{") else ""
            return Row(number, "$", None, json_problem(error) + hint)
    if not isinstance(data, dict):
        hint = '; if the file is one JSON document, set "format": "json"' if isinstance(data, list) else ""
        return Row(number, "$", None, f"expected an object, found {kind_of(data)}{hint}")
    return Row(number, "$", data)


def json_problem(error: ValueError | RecursionError) -> str:
    """What Python's parser of JSON found wrong."""
    if isinstance(error, json.JSONDecodeError):
        return f"not valid JSON: {error.msg} (column {error.colno})"
    if isinstance(error, RecursionError):
        return "nested too deeply"
    return "holds a number with too many digits; write it as a text"


def _json(source: DataFile, stream: IO[bytes], path: Path, encoding: str) -> Iterator[Row]:
    """Item by item, so that only one is held beside the text, if the file is a list."""
    text = stream.read().decode(encoding)
    if not text.strip():
        raise InputError(f"{path}: the file is empty")
    number = -1
    try:
        if not text.lstrip().startswith("[") or source.records is not None:
            yield from document_rows(source, json.loads(text), path)
            return
        for number, (line, item) in enumerate(_items(text)):
            if isinstance(item, dict):
                yield Row(line, f"$[{number}]", item)
            else:
                yield Row(line, f"$[{number}]", None, f"expected an object, found {kind_of(item)}")
    except json.JSONDecodeError as error:
        hint = '; if each line is a record, set "format": "jsonl"' if error.msg == "Extra data" else ""
        raise InputError(f"{path}:{error.lineno}: {json_problem(error)}{hint}") from None
    except ValueError as error:
        raise InputError(f"{path}: {json_problem(error)}") from None
    if number < 0:
        raise InputError(f"{path}: the list is empty")


def document_rows(source: DataFile, document: Any, path: Path) -> Iterator[Row]:
    """The records inside a parsed document that is not just a list of them.

    Raises:
        InputError: nothing in it is plainly a list of records.
    """
    for found in records_of(document, source.records, _FIELDS | field_heads(source.fields.values()), path):
        problem = found.problem
        if problem is None and not isinstance(found.item, dict):
            problem = f"expected an object, found {kind_of(found.item)}"
        yield Row(0, found.path, None if problem else found.item, problem, place=found.place)


def _items(text: str) -> Iterator[tuple[int, Any]]:
    """Line and value of each item of the outermost list.

    Raises:
        json.JSONDecodeError: the text is not JSON.
    """
    decoder = json.JSONDecoder()
    space = re.compile(r"[ \t\r\n]*")
    counted = 0
    line = 1
    position = text.index("[") + 1
    separator = "["
    while True:
        position = _end(space, text, position)
        if separator == "[" and text.startswith("]", position):
            separator = "]"
            position += 1
            break
        line += text.count("\n", counted, position)
        counted = position
        item, position = decoder.raw_decode(text, position)
        yield line, item
        position = _end(space, text, position)
        separator = text[position : position + 1]
        position += 1
        if separator != ",":
            break
    if separator != "]" or _end(space, text, position) != len(text):
        json.loads(text)  # names the fault and its place


def _end(space: re.Pattern[str], text: str, position: int) -> int:
    match = space.match(text, position)
    return match.end() if match else position


def _table(source: DataFile, records: Iterator[Record], path: Path, *, has_commas: bool = False) -> Iterator[Row]:
    """Columns without a name, such as the index that pandas writes, are left out."""
    header = next(records, None)
    if header is None:
        raise InputError(f"{path}: the file is empty")
    names = checked_header(header[1], f"{path}:{header[0]}", source.separator)
    line = 0
    for line, cells in records:
        if len(cells) != len(names):
            yield Row(line, "$", None, f"{len(cells)} cells, but the header has {len(names)}", from_csv=True)
        else:
            data = {name: cell for name, cell in zip(names, cells, strict=True) if name}
            yield Row(line, "$", data, from_csv=True, has_commas=has_commas)
    if not line:
        raise InputError(f"{path}: the file has a header but no rows")


def is_folder(path: Path) -> bool:
    """Whether a path is a folder; False if the system cannot say."""
    return os.path.isdir(path)  # noqa: PTH112  # Path.is_dir raises for a name that is too long


def is_plain_file(path: Path) -> bool:
    """Whether a path is a file; False if the system cannot say."""
    return os.path.isfile(path)  # noqa: PTH113


def has_own_suffix(path: Path) -> bool:
    """Whether the extension is that of JSONL, JSON or CSV."""
    return path.suffix.lower() in OWN_FORMATS
