"""Files as text: what the system says about them, how they are encoded, their lines in pieces, and their hashes."""

import codecs
import hashlib
import io
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from judgekit.core.errors import InputError

_MARKS = (
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)


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


def encoding_of(given: str | None, stream: IO[bytes], path: Path) -> str:
    """The encoding of a file by its Python name, in the form that drops a byte order mark; rewinds the stream.

    Raises:
        InputError: an encoding that does not exist, or one that should have been named.
    """
    head = stream.read(4)
    stream.seek(0)
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


def utf8_pieces(stream: IO[bytes], encoding: str, size: int) -> Iterator[bytes]:
    """The file as UTF-8 in pieces of whole lines, without a byte order mark.

    Args:
        stream: the file.
        encoding: its Python name.
        size: bytes of a piece, about.

    Raises:
        UnicodeError: the file is not in its encoding, if that is another than UTF-8.
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
        yield b"".join([*begun, memoryview(data)[:end]])
        begun = [data[end:]]
    if rest := b"".join(begun):
        yield rest


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


Hashes = dict[Path, str]
"""SHA-256 of files that were read to the end, hexadecimal."""


@contextmanager
def hashed(path: Path, hashes: Hashes) -> Iterator[IO[bytes]]:
    """A file to be read from the start to the end in pieces; its hash is added once the end was met.

    Raises:
        OSError: it cannot be opened.
    """
    with _HashedFile(path) as stream:
        yield stream
        if stream.is_at_end:
            hashes[path] = stream.sha256.hexdigest()


class _HashedFile(io.FileIO):
    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.sha256 = hashlib.sha256()
        self.is_at_end = False

    def read(self, size: int | None = -1, /) -> bytes:
        data = super().read(-1 if size is None else size)
        self.sha256.update(data)
        self.is_at_end = not data or size in (-1, None)
        return data

    def seek(self, offset: int, whence: int = io.SEEK_SET, /) -> int:
        """Only back to the start."""
        if offset or whence != io.SEEK_SET:
            raise io.UnsupportedOperation("a file that is hashed is read in order")
        self.sha256, self.is_at_end = hashlib.sha256(), False
        return super().seek(0)
