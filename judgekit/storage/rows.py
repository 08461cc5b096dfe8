"""Rows of JSONL, JSON and CSV files, each with the place where it stands."""

import codecs
import csv
import io
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, get_args

import msgspec

from judgekit.core.data_files import DataFile, FormatName
from judgekit.core.errors import InputError
from judgekit.storage.hashed_file import Hashes, hashed
from judgekit.storage.problems import Location, kind_of
from judgekit.storage.ready import Labelled, Rankings, Ready

OWN_FORMATS = {".jsonl": "jsonl", ".ndjson": "jsonl", ".json": "json", ".csv": "csv"}
"""Formats that this file reads, by extension."""

KNOWN_FORMATS = ", ".join(get_args(FormatName))
"""For messages."""

BLANKS = b" \t\r\n"
"""What may stand around a record on its line."""

_PIECE = 1 << 18
_ARENA = 1 << 24
"""Bytes that are asked for and given back once: a C library then keeps freed pieces, and they cost no page faults."""


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
    file: str = ""
    """The file inside a folder or archive."""
    place: Location | None = None
    """Keys and indices from the root of a JSON document, from which the line is found where it is needed."""
    origin: Origin | None = None
    """Set for records of a foreign format."""
    ready: Ready | None = None
    """What ranked figures need of the record, in place of `data`, where the reader was asked for no more."""
    body: bytes = b""
    """The line that `ready` was made from, should more be needed."""


ReadyRow = Row | Labelled | Rankings
"""A record, or many that are made into what ranked figures need."""


def read_rows(source: DataFile, path: Path) -> Iterator[Row]:
    """Every record of a file, in order; a record that cannot be read comes with its problem.

    Raises:
        InputError: the file as a whole cannot be read: missing, empty, wrong encoding, wrong shape.
    """
    kind = source.format if source.format in OWN_FORMATS.values() else OWN_FORMATS.get(path.suffix.lower())
    if kind is None:
        raise InputError(f'{path}: unknown extension {path.suffix!r}; set "format" to one of {KNOWN_FORMATS}')
    with faults_named(path, f"a {kind} file"), path.open("rb") as stream:
        encoding = encoding_of(source.encoding, stream, path)
        reader = {"jsonl": _jsonl, "json": _json, "csv": _csv}[kind]
        with undecodable_named(path, encoding):
            yield from reader(stream, path, encoding)


@contextmanager
def faults_named(path: Path, expected: str) -> Iterator[None]:
    """Turn what the system says about a file into one line.

    Raises:
        InputError: the file is missing, is a folder, or cannot be read.
    """
    try:
        yield
    except FileNotFoundError:
        raise InputError(f"{path}: no such file") from None
    except IsADirectoryError:
        raise InputError(f"{path}: is a folder, expected {expected}") from None
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror or error}") from None
    except RecursionError:
        raise InputError(f"{path}: nested too deeply") from None


@contextmanager
def undecodable_named(path: Path, encoding: str) -> Iterator[None]:
    """Say where a file stops being what its encoding says.

    Raises:
        InputError: with line and byte.
    """
    try:
        yield
    except UnicodeDecodeError:
        raise InputError(_undecodable(path, encoding)) from None
    except UnicodeError as error:
        raise InputError(f"{path}: is not {encoding}: {error}") from None


def read_text(source: DataFile, path: Path) -> str:
    """A whole file, decoded, without its byte order mark.

    Raises:
        InputError: it is missing, or not in its encoding.
    """
    with faults_named(path, "a file"), path.open("rb") as stream:
        encoding = encoding_of(source.encoding, stream, path)
        with undecodable_named(path, encoding):
            return stream.read().decode(encoding)


def encoding_of(given: str | None, stream: IO[bytes], path: Path) -> str:
    """The encoding of a file by its Python name, in the form that drops a byte order mark; rewinds the stream.

    Raises:
        InputError: an encoding that does not exist, or one that should have been named.
    """
    head = stream.read(4)
    stream.seek(0)
    return _encoding(given, head, path)


def utf8_pieces(stream: IO[bytes], encoding: str, size: int) -> Iterator[bytes]:
    """The file as UTF-8 in pieces of whole lines, without a byte order mark.

    Args:
        stream: the file.
        encoding: its Python name.
        size: bytes of a piece, about.

    Raises:
        UnicodeError: the file is not in its encoding, where that is another than UTF-8.
    """
    if encoding != "utf-8-sig":
        # Decoded as a whole: a line feed is two bytes here.
        stream = io.BytesIO(stream.read().decode(encoding).encode("utf-8", "surrogatepass"))
    if stream.read(len(codecs.BOM_UTF8)) != codecs.BOM_UTF8:
        stream.seek(0)
    begun: list[bytes] = []
    while data := stream.read(size):
        end = data.rfind(b"\n") + 1
        if not end:
            begun.append(data)
            continue
        yield b"".join([*begun, data[:end]])
        begun = [data[end:]]
    if rest := b"".join(begun):
        yield rest


def is_plain(piece: bytes) -> bool:
    """Whether ids and paths are compared as they are: all is ASCII, without a backslash or `./`."""
    # One byte is found many times faster than two, and most ids have no slash.
    return piece.isascii() and b"\\" not in piece and (b"/" not in piece or b"./" not in piece)


def _encoding(given: str | None, head: bytes, path: Path) -> str:
    """The encoding by its Python name, in the form that drops a byte order mark."""
    by_mark = next((name for mark, name in _MARKS if head.startswith(mark)), None)
    if given is None:
        if by_mark is None and b"\0" in head:
            guess = "utf-16-be" if head.startswith(b"\0") else "utf-16-le"
            raise InputError(
                f"{path}: has zero bytes at the start, as UTF-16 without a byte order mark has; "
                f'if it is that, set "encoding": "{guess}"'
            )
        return by_mark or "utf-8-sig"
    try:
        name = codecs.lookup(given).name
        "".encode(name)
    except LookupError:
        raise InputError(f'{path}: unknown encoding {given!r}; "utf-8", "utf-16" and "cp1252" are common') from None
    if name == "utf-8":
        return "utf-8-sig"
    return by_mark if by_mark is not None and name.startswith(by_mark) else name


_MARKS = (
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)


def _undecodable(path: Path, encoding: str) -> str:
    """Where a file stops being what its encoding says: decoders of streams only know the place in their own buffer."""
    name = encoding.removesuffix("-sig")
    hint = 'set "encoding", for example "cp1252"' if name == "utf-8" else 'set another "encoding", or save it as UTF-8'
    data = path.read_bytes()
    try:
        data.decode(name)
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        return f"{path}:{line}: byte {error.start} of the file is not {name}; {hint}"
    return f"{path}: is not {name}; {hint}"


def ready_jsonl(
    source: DataFile, path: Path, make: Callable[[bytes, Sequence[int], int], Iterator[ReadyRow]], hashes: Hashes
) -> Iterator[ReadyRow]:
    """The records of a JSONL file, made into what ranked figures need where `make` can.

    Args:
        source: how the file is read.
        path: where it is.
        make: from whole lines, their ends and the number of the first.
        hashes: takes that of the file.

    Raises:
        InputError: as for `read_rows`.
    """
    bytes(_ARENA)
    number, is_empty = 1, True
    with faults_named(path, "a jsonl file"), hashed(path, hashes) as stream:
        encoding = encoding_of(source.encoding, stream, path)
        with undecodable_named(path, encoding):
            for piece in utf8_pieces(stream, encoding, _PIECE):
                ends = line_ends(piece)
                for found in make(piece, ends, number):
                    yield found
                    is_empty = False
                number += len(ends)
    if is_empty:
        raise InputError(f"{path}: the file is empty")


def _jsonl(stream: IO[bytes], path: Path, encoding: str) -> Iterator[Row]:
    n_rows = 0
    first = 1
    for piece in utf8_pieces(stream, encoding, _PIECE):
        for body, number in lines_in(piece, first):
            n_rows += 1
            yield jsonl_row(body, number)
        first += piece.count(b"\n")
    if not n_rows:
        raise InputError(f"{path}: the file is empty")


def line_ends(piece: bytes) -> list[int]:
    """Where the lines of a piece end; the last needs no line feed."""
    ends = []
    end = piece.find(b"\n")  # several times as fast as counting them
    while end >= 0:
        ends.append(end)
        end = piece.find(b"\n", end + 1)
    if not piece.endswith(b"\n"):
        ends.append(len(piece))
    return ends


def lines_in(piece: bytes, first: int) -> Iterator[tuple[bytes, int]]:
    """The lines of a piece that are not blank, without blanks around, and their numbers.

    Only line feeds end a record; U+2028, U+0085 and the like are text.
    """
    for number, line in enumerate(piece.split(b"\n"), start=first):
        body = line.strip(BLANKS)
        if body:
            yield body, number


def jsonl_row(body: bytes, number: int) -> Row:
    try:
        data = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        # The standard parser also takes bare NaN, which other tools write, and says where a fault stands.
        text = body.decode("utf-8")
        try:
            data = json.loads(text)
        except json.JSONDecodeError as error:
            hint = '; if the file is one JSON document, set "format": "json"' if body in (b"[", b"{") else ""
            return Row(number, "$", None, f"not valid JSON: {error.msg} (column {error.colno}){hint}")
        except RecursionError:
            return Row(number, "$", None, "nested too deeply")
        except ValueError:
            return Row(number, "$", None, "holds a number with too many digits; write it as a text")
    if not isinstance(data, dict):
        hint = '; if the file is one JSON document, set "format": "json"' if isinstance(data, list) else ""
        return Row(number, "$", None, f"expected an object, found {kind_of(data)}{hint}")
    return Row(number, "$", data)


def _json(stream: IO[bytes], path: Path, encoding: str) -> Iterator[Row]:
    """Item by item, so that only one is held beside the text."""
    text = stream.read().decode(encoding)
    if not text.strip():
        raise InputError(f"{path}: the file is empty")
    number = -1
    try:
        if not text.lstrip().startswith("["):
            found = _shape(json.loads(text))
            raise InputError(
                f"{path}: unsupported shape: expected a list of objects, found {found}; write one object a record, "
                f'or set "format" to what it is: {KNOWN_FORMATS}'
            )
        for number, (line, item) in enumerate(_items(text)):
            if isinstance(item, dict):
                yield Row(line, f"$[{number}]", item)
            else:
                yield Row(line, f"$[{number}]", None, f"expected an object, found {kind_of(item)}")
    except json.JSONDecodeError as error:
        hint = '; if each line is a record, set "format": "jsonl"' if error.msg == "Extra data" else ""
        message = f"not valid JSON: {error.msg} (column {error.colno}){hint}"
        raise InputError(f"{path}:{error.lineno}: {message}") from None
    except ValueError:
        raise InputError(f"{path}: holds a number with too many digits; write it as a text") from None
    if number < 0:
        raise InputError(f"{path}: the list is empty")


def _shape(value: object) -> str:
    return kind_of(value) + (f" with keys {', '.join(list(value)[:5])}" if isinstance(value, dict) else "")


def _items(text: str) -> Iterator[tuple[int, Any]]:
    """Line and value of each item of the outermost list.

    Raises:
        json.JSONDecodeError: the text is no JSON.
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


def _csv(stream: IO[bytes], path: Path, encoding: str) -> Iterator[Row]:
    """Columns without a name, such as the index that pandas writes, are left out; so are rows of blank cells."""
    csv.field_size_limit(2**31 - 1)
    text = io.TextIOWrapper(stream, encoding=encoding, newline="")
    line = 1
    names: list[str] | None = None
    n_rows = 0
    try:
        reader = csv.reader(text, strict=True)
        for cells in reader:
            start, line = line, reader.line_num + 1
            if not any(cell.strip() for cell in cells):
                continue
            if names is None:
                names = _csv_header(cells, f"{path}:{start}")
                continue
            n_rows += 1
            if len(cells) != len(names):
                yield Row(start, "$", None, f"{len(cells)} cells, but the header has {len(names)}", from_csv=True)
                continue
            data = {name: cell for name, cell in zip(names, cells, strict=True) if name}
            yield Row(start, "$", data, from_csv=True)
    except csv.Error as error:
        message = "a quote is opened and not closed" if "unexpected end" in str(error) else error
        raise InputError(f"{path}:{line}: not valid CSV in the record that starts here: {message}") from None
    finally:
        text.detach()
    if names is None:
        raise InputError(f"{path}: the file is empty")
    if not n_rows:
        raise InputError(f"{path}: the file has a header but no rows")


def _csv_header(cells: list[str], where: str) -> list[str]:
    names = [cell.strip() for cell in cells]
    if len(names) == 1 and re.search(r"[;\t|]", names[0]):
        raise InputError(f"{where}: the header is one column, {names[0][:60]!r}; cells must be separated by commas")
    twice = sorted({name for name in names if name and names.count(name) > 1})
    if twice:
        raise InputError(f"{where}: column {twice[0]!r} comes twice in the header; rename one of them")
    return names
