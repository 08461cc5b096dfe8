"""The batches of a run on disk: their state, the ids of their requests, and the replies, in one SQLite file.

Every step is one transaction, so that a killed process leaves either the step before or the step after.
"""

import hashlib
import secrets
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import IO, Any, Literal

import msgspec

from judgekit.core.batches import BATCHES, BatchPart
from judgekit.core.errors import StorageError
from judgekit.storage.run_files import disk_faults_named, replacing
from judgekit.storage.sqlite_files import is_broken

_SCHEMA = (
    "CREATE TABLE IF NOT EXISTS part (number INTEGER PRIMARY KEY, record TEXT NOT NULL)",
    "CREATE TABLE IF NOT EXISTS request (id TEXT PRIMARY KEY, part INTEGER NOT NULL, line BLOB, is_reply INTEGER NOT "
    "NULL DEFAULT 0, source TEXT, used_by TEXT) WITHOUT ROWID",
    "CREATE TABLE IF NOT EXISTS source (name TEXT PRIMARY KEY, record TEXT NOT NULL)",
)
_LOCK_SECONDS = 10

Outcome = Literal["stored", "known", "foreign id", "id twice"]
"""What became of a line: it was stored, it is there already, or nothing is used of it."""


@dataclass(frozen=True, slots=True)
class Found:
    """What is known of a request."""

    part: BatchPart
    line: bytes | None
    is_used: bool
    """Its error, or that there is no reply, has become a judgment: a resumed run may ask again."""
    is_used_here: bool
    """That was just now."""


class BatchStore:
    """Parts, requests and replies; one process at a time, which holds the run."""

    def __init__(self, folder: Path) -> None:
        """Open the file, or make it.

        Raises:
            StorageError: it cannot be opened, or is damaged.
        """
        self.folder = folder
        self._path = folder / BATCHES
        self._session = secrets.token_hex(8)
        with self._faults_named():
            self._connection = sqlite3.connect(self._path, timeout=_LOCK_SECONDS, isolation_level=None)
            for statement in _SCHEMA:
                self._connection.execute(statement)
            # Of parts that a killed process did not come to end.
            self._connection.execute("DELETE FROM request WHERE part NOT IN (SELECT number FROM part)")
            rows = self._connection.execute("SELECT record FROM part ORDER BY number").fetchall()
            self.parts = {part.number: part for part in (msgspec.json.decode(row[0], type=BatchPart) for row in rows)}
        self._last_number = max(self.parts, default=0)

    @staticmethod
    def is_there(folder: Path) -> bool:
        """Whether a run has batches."""
        return (folder / BATCHES).exists()

    @contextmanager
    def _faults_named(self) -> Iterator[None]:
        try:
            yield
        except (sqlite3.Error, msgspec.MsgspecError, OSError) as error:
            if not isinstance(error, msgspec.MsgspecError) and not is_broken(error, self._path):
                raise StorageError(f"{self._path}: cannot be used: {error}; mend that, then --resume") from None
            step = "put back the file as it was, or delete it: then its requests are submitted, and paid for, again"
            raise StorageError(f"{self._path}: damaged: {error}; {step}") from None

    def _do(self, statement: str, *values: Any) -> sqlite3.Cursor:
        with self._faults_named():
            return self._connection.execute(statement, values)

    def begin(self) -> None:
        """Begin a transaction, if there is none."""
        if not self._connection.in_transaction:
            self._do("BEGIN IMMEDIATE")

    def commit(self) -> None:
        """Make what was done since `begin` lasting."""
        if self._connection.in_transaction:
            self._do("COMMIT")

    def rollback(self) -> None:
        """Undo what was done since `begin`."""
        if self._connection.in_transaction:
            self._do("ROLLBACK")

    def close(self) -> None:
        """Undo what is not committed, and close the file."""
        self._connection.close()

    def save(self, part: BatchPart) -> BatchPart:
        """Store the state of a part."""
        # A reply that was taken twice is harmless; a state that is lost may cost a second batch.
        record = msgspec.json.encode(asdict(part)).decode()
        self._do("INSERT OR REPLACE INTO part (number, record) VALUES (?, ?)", part.number, record)
        self.commit()
        self.parts[part.number] = part
        return part

    def find(self, name: str) -> Found | None:
        """What is known of a request; None: nothing."""
        row = self._do("SELECT part, line, used_by FROM request WHERE id = ?", name).fetchone()
        if row is None or row[0] not in self.parts:
            return None
        return Found(self.parts[row[0]], row[1], row[2] is not None, row[2] == self._session)

    def part_of(self, name: str) -> int | None:
        """Number of the part that a request stands in; None: it is in none, or may be asked again."""
        row = self._do("SELECT part FROM request WHERE id = ? AND used_by IS NULL", name).fetchone()
        return None if row is None else int(row[0])

    def add(self, name: str, part: int) -> None:
        """Note that a request stands in a part."""
        self.begin()
        statement = (
            "INSERT INTO request (id, part) VALUES (?, ?) ON CONFLICT (id) DO UPDATE SET part = excluded.part, "
            "line = NULL, source = NULL, used_by = NULL "
            "WHERE NOT is_reply"
        )
        self._do(statement, name, part)

    def use(self, name: str) -> None:
        """Note that the error of a request becomes a judgment; to be committed once the judgment is on disk."""
        self.begin()
        self._do("UPDATE request SET used_by = ?, line = NULL WHERE id = ?", self._session, name)

    def give_up(self, part: BatchPart) -> None:
        """Note that nothing will come of the requests of a part, so that they may be asked again."""
        self.begin()
        self._do("UPDATE request SET used_by = '' WHERE part = ? AND line IS NULL", part.number)

    def n_without_line(self, part: int | None = None) -> int:
        """Requests, of one part or of all, of which neither a reply nor an error has come."""
        statement = "SELECT COUNT(*) FROM request WHERE line IS NULL AND used_by IS NULL AND part = COALESCE(?, part)"
        return int(self._do(statement, part).fetchone()[0])

    def take(self, name: str, line: bytes, *, is_reply: bool, source: str, part: int | None) -> Outcome:
        """Store a line for a request; the first reply counts, and an error only while there is none.

        Args:
            name: id of the request.
            line: as it came.
            is_reply: False for an error.
            source: the file that it stands in.
            part: the part that the request has to be of; None: any.
        """
        row = self._do("SELECT part, line, is_reply, source, used_by FROM request WHERE id = ?", name).fetchone()
        if row is None or part not in (None, row[0]):
            return "foreign id"
        _, before, was_reply, where, used_by = row
        if before is not None and where == source:
            return "id twice"
        if before == line or (used_by is not None and not is_reply):
            return "known"
        if was_reply:
            return "id twice" if is_reply else "known"
        statement = "UPDATE request SET line = ?, is_reply = ?, source = ?, used_by = NULL WHERE id = ?"
        self._do(statement, line, is_reply, source, name)
        return "stored"

    def forget(self, source: str) -> None:
        """Drop what a file has given."""
        self._do("UPDATE request SET line = NULL, is_reply = 0, source = NULL WHERE source = ?", source)

    def source(self, name: str) -> Any | None:
        """What was kept of a file that was imported; None if it was not."""
        row = self._do("SELECT record FROM source WHERE name = ?", name).fetchone()
        return None if row is None else msgspec.json.decode(row[0])

    def sources(self) -> list[Any]:
        """What was kept of each imported file."""
        return [msgspec.json.decode(row[0]) for row in self._do("SELECT record FROM source ORDER BY name")]

    def add_source(self, name: str, record: Any) -> None:
        """Keep what came of a file."""
        self._do("INSERT OR REPLACE INTO source VALUES (?, ?)", name, msgspec.json.encode(record).decode())

    def new_number(self) -> int:
        """Number of a new part, each once."""
        self._last_number += 1
        return self._last_number


class PartWriter:
    """Writes requests to files of limited size, a line each; nothing of a part is known before its file is whole."""

    def __init__(
        self, store: BatchStore, path_of: Callable[[int, int], Path], first: BatchPart, limits: tuple[int, int]
    ) -> None:
        """Prepare; no file is made before the first line.

        Args:
            store: where the requests of each part are noted.
            path_of: path of a file by its place, from 1, and the number of its part.
            first: what all parts share.
            limits: requests and bytes of one file at most.
        """
        self.parts: list[BatchPart] = []
        self._store = store
        self._path_of = path_of
        self._shared = first
        self._limits = limits
        self._stack = ExitStack()
        self._stream: IO[bytes] | None = None
        self._digest = hashlib.sha256()
        self._number = self._n_requests = self._n_bytes = 0
        self._numbers: set[int] = set()

    def add(self, name: str, line: bytes) -> bool:
        """Write a request; False if it is there already.

        Raises:
            StorageError: it cannot be written, or is larger than a file may be.
        """
        if self._store.part_of(name) in self._numbers:
            return False
        most_requests, most_bytes = self._limits
        if len(line) > most_bytes:
            raise StorageError(f"request {name[:12]} has {len(line):,} bytes, more than a batch file may have")
        if self._stream is not None and (self._n_requests >= most_requests or self._n_bytes + len(line) > most_bytes):
            self._end_part()
        if self._stream is None:
            self._number = self._store.new_number()
            self._numbers.add(self._number)
            self._digest, self._n_requests, self._n_bytes = hashlib.sha256(), 0, 0
            path = self._path_of(len(self.parts) + 1, self._number)
            self._stream = self._stack.enter_context(replacing(path))
        self._store.add(name, self._number)
        with disk_faults_named(self._path_of(len(self.parts) + 1, self._number), "cannot be written"):
            self._stream.write(line)
        self._digest.update(line)
        self._n_requests += 1
        self._n_bytes += len(line)
        return True

    def close(self) -> list[BatchPart]:
        """End the last file; the parts that were written."""
        if self._stream is not None:
            self._end_part()
        return self.parts

    def discard(self) -> None:
        """Leave the last file unwritten."""
        self._stream = None
        self._store.rollback()
        with suppress(_Discarded), self._stack:
            raise _Discarded

    def _end_part(self) -> None:
        self._stream = None
        self._stack.close()
        path = self._path_of(len(self.parts) + 1, self._number)
        part = replace(
            self._shared,
            number=self._number,
            path=str(path),
            n_requests=self._n_requests,
            n_bytes=self._n_bytes,
            sha256=self._digest.hexdigest(),
        )
        self.parts.append(self._store.save(part))


class _Discarded(Exception):
    """Tells a file that is being replaced to stay as it was."""
