"""One thread that writes judgments and replies in batches, so that the event loop never waits for a disk."""

import os
import threading
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import IO

from judgekit.core.errors import StorageError
from judgekit.core.protocols import ReplyCache
from judgekit.storage.run_files import disk_faults_named

BATCH_ROWS = 256
BATCH_SECONDS = 0.05
MOST_WAITING = 16 * BATCH_ROWS
"""Items in memory that wait for the disk, at most."""

Item = tuple[bytes, tuple[str, str] | None, Callable[[], None] | None]


class Recorder:
    """Appends judgment lines to a file and replies to a cache.

    Replies are stored before the judgments that rest on them. A cache that cannot be written is given up with
    a warning; a judgment file that cannot be written is an error, which the next `put` and `close` raise. Nothing is
    written after it, and what was not written is never reported as committed.
    """

    def __init__(self, path: Path, cache: ReplyCache | None) -> None:
        """Open the file for appending and start the thread.

        Raises:
            StorageError: the file cannot be opened.
        """
        self._path = path
        self._cache = cache
        self._waiting: deque[Item] = deque()
        self._wake = threading.Event()
        self._closing = False
        self._error: StorageError | None = None
        self.cache_warning: str | None = None
        with disk_faults_named(path, "cannot be written"):
            # Unbuffered, so that nothing half-written is left to flush on close after a full disk.
            self._stream: IO[bytes] = path.open("ab", buffering=0)
        self._thread = threading.Thread(target=self._run, name="judgekit-recorder", daemon=True)
        self._thread.start()

    def put(self, line: bytes, reply: tuple[str, str] | None, committed: Callable[[], None] | None) -> None:
        """Queue one judgment line and the reply to cache; `committed` is called once both are stored.

        A reply that is one of several behind a judgment comes with a blank line, of which nothing is written.

        Raises:
            StorageError: an earlier line could not be written.
        """
        if self._error is not None:
            raise self._error
        self._waiting.append((line, reply, committed))
        if len(self._waiting) >= BATCH_ROWS:
            self._wake.set()
            while len(self._waiting) > MOST_WAITING and self._error is None and self._thread.is_alive():
                # The disk is slower than the judging: give it the processor rather than hold ever more in memory.
                time.sleep(0.001)

    def close(self) -> None:
        """Write what is queued and close the file.

        Raises:
            StorageError: a line could not be written.
        """
        self._closing = True
        self._wake.set()
        self._thread.join()
        self._stream.close()
        if self._error is not None:
            raise self._error

    def _run(self) -> None:
        last_round = False
        while not last_round:
            # Waking by the clock and not by every item keeps the two threads from taking turns on each.
            self._wake.wait(BATCH_SECONDS)
            self._wake.clear()
            last_round = self._closing
            while self._waiting and self._error is None:
                batch = [self._waiting.popleft() for _ in range(min(BATCH_ROWS, len(self._waiting)))]
                try:
                    self._store(batch)
                except Exception as error:  # noqa: BLE001  # a thread that dies in silence would lose all that follows
                    self._error = StorageError(f"{self._path}: cannot be written: {type(error).__name__}: {error}")
        if self._cache is not None:
            self._cache.close()

    def _store(self, batch: list[Item]) -> None:
        if self._cache is not None:
            try:
                self._cache.put_many([reply for _, reply, _ in batch if reply is not None])
            except StorageError as error:
                self.cache_warning = str(error)
                self._cache.close()
                self._cache = None
        self._append(b"".join(line + b"\n" for line, _, _ in batch if line))
        if self._error is None:
            for _, _, committed in batch:
                if committed is not None:
                    committed()

    def _append(self, data: bytes) -> None:
        n_written = 0
        start = None
        try:
            start = self._stream.seek(0, os.SEEK_END)
            while n_written < len(data):
                n_written += self._stream.write(data[n_written:]) or 0
        except OSError as error:
            # Half a line would be dropped on resume anyway; cutting it off keeps the file whole for readers.
            if start is not None:
                with suppress(OSError):
                    self._stream.truncate(start + data.rfind(b"\n", 0, n_written) + 1)
            why = error.strerror or error
            self._error = StorageError(f"{self._path}: cannot be written: {why}; free space, then --resume")
