"""Files that are hashed as they are read, so that the hash is of the bytes that the figures rest on."""

import hashlib
import io
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

Hashes = dict[Path, str]
"""SHA-256 of files that were read to the end, hexadecimal."""


@contextmanager
def hashed(path: Path, hashes: Hashes) -> Iterator[IO[bytes]]:
    """A file to be read from the start to the end in pieces; its hash is added once the end was met.

    Args:
        path: the file.
        hashes: takes the hash.

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
