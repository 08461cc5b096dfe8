"""Adding lines to files that other processes may add to, and mending what a crash left at the end of one."""

import errno
import fcntl
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from judgekit.core.errors import StorageError


@contextmanager
def appending(path: Path) -> Iterator[Callable[[bytes], None]]:
    """What adds lines to a file, which no other process adds to meanwhile; a torn last line is cut off first.

    Raises:
        StorageError: it cannot be written; a line is added as a whole or not at all.
    """
    try:
        with path.open("ab", buffering=0) as stream:
            fcntl.flock(stream, fcntl.LOCK_EX)
            repair_tail(path)

            def append(line: bytes) -> None:
                size = stream.seek(0, os.SEEK_END)
                try:
                    if stream.write(line + b"\n") <= len(line):
                        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
                    os.fsync(stream.fileno())
                except OSError:
                    with suppress(OSError):
                        os.ftruncate(stream.fileno(), size)
                    raise

            yield append
    except OSError as error:
        raise StorageError(f"{path}: cannot be written: {error.strerror or error}") from None


def repair_tail(path: Path) -> int:
    """Cut off a last line without a line feed; returns the number of bytes dropped.

    Raises:
        StorageError: the file cannot be read or cut.
    """
    if not path.exists():
        return 0
    try:
        with path.open("rb+") as stream:
            size = stream.seek(0, os.SEEK_END)
            keep = _end_of_last_line(stream, size)
            if keep != size:
                stream.truncate(keep)
            return size - keep
    except OSError as error:
        raise StorageError(f"{path}: cannot be repaired: {error.strerror or error}") from None


def _end_of_last_line(stream: IO[bytes], size: int) -> int:
    position = size
    while position:
        start = max(0, position - 65536)
        stream.seek(start)
        found = stream.read(position - start).rfind(b"\n")
        if found >= 0:
            return start + found + 1
        position = start
    return 0
