"""The reply cache as a whole: counted, checked and cleared. Rows are read as bytes, and never unpickled."""

import sqlite3
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from diskcache.core import MODE_RAW

from judgekit.core.cache_keys import KEY_VERSION, is_current, kind_and_version
from judgekit.core.errors import StorageError
from judgekit.storage.reply_cache import cause_of, time_text, unpacked
from judgekit.storage.run_files import disk_faults_named
from judgekit.storage.sqlite_files import BROKEN, is_broken, open_to_read

DATABASE = "cache.db"
_LOCK_SECONDS = 60
_BATCH_ROWS = 1024
_READ = (
    "SELECT rowid, CAST(key AS BLOB), typeof(key), raw, mode, filename, CAST(value AS BLOB), typeof(value),"
    " CAST(store_time AS REAL) FROM Cache"
)
"""Cast to bytes: what is stored as text need not be valid UTF-8."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One row of the cache."""

    row: int
    key: str
    """As it is stored; for a key that is not a text `row <number>`."""
    text: str | None
    """What is cached; None if the row is damaged."""
    stored_at: float | None
    """Seconds since 1970."""


class CacheReader:
    """An existing cache, opened for reading only: nothing is made, mended or set aside. A context manager."""

    def __init__(self, folder: Path) -> None:
        """Open it.

        Raises:
            StorageError: the database cannot be opened, or is damaged as a whole.
        """
        self.folder = folder
        self.n_damaged = 0
        try:
            self._connection = open_to_read(folder / DATABASE, _LOCK_SECONDS)
            try:
                self._connection.execute("SELECT rowid, key, raw, mode, filename, value FROM Cache LIMIT 1").close()
            except BROKEN:
                self._connection.close()
                raise
        except BROKEN as error:
            raise _unreadable(folder, error) from None

    def __enter__(self) -> "CacheReader":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the database."""
        self._connection.close()

    def entries(self) -> Iterator[Entry]:
        """Every row, streamed, with its checksum checked.

        Raises:
            StorageError: the database is damaged.
        """
        return self._read(_READ, ())

    def get(self, key: str) -> str | None:
        """The stored text; None if there is none, or it is damaged (counted in `n_damaged`)."""
        found = next(self._read(f"{_READ} WHERE key = ? AND raw = 1", (key,)), None)
        if found is not None and found.text is None:
            self.n_damaged += 1
        return found.text if found is not None else None

    def stored_at(self, key: str) -> str | None:
        """When an entry was stored (UTC, ISO 8601); None if that cannot be told."""
        found = next(self._read(f"{_READ} WHERE key = ? AND raw = 1", (key,)), None)
        return None if found is None else time_text(found.stored_at)

    def put_many(self, items: Sequence[tuple[str, str]]) -> None:  # noqa: ARG002  # the port's signature
        """Nothing can be stored here.

        Raises:
            StorageError: always.
        """
        raise StorageError(f"{self.folder}: opened for reading only")

    def _read(self, query: str, values: Sequence[Any]) -> Iterator[Entry]:
        try:
            with closing(self._connection.execute(query, values)) as rows:
                for row in rows:
                    yield _entry(row)
        except BROKEN as error:
            raise _unreadable(self.folder, error) from None


def open_reader(folder: Path) -> CacheReader | None:
    """The cache for reading, or None if there is none.

    Raises:
        StorageError: it cannot be read.
    """
    with disk_faults_named(folder, "cache cannot be read"):
        is_there = (folder / DATABASE).is_file()
    return CacheReader(folder) if is_there else None


def cache_record(reader: CacheReader) -> dict[str, Any]:
    """What is in a cache, as a strict-JSON object.

    Returns:
        `n_replies`, `n_outputs` and `n_capabilities` that a run can ask for, `n_other_versions` by version,
        `n_damaged`, `bytes_on_disk`, and when the oldest and newest entry were stored (UTC; None in an empty cache).
    """
    kinds: Counter[str] = Counter()
    other: Counter[str] = Counter()
    n_entries = n_damaged = 0
    oldest, newest = float("inf"), float("-inf")
    for entry in reader.entries():
        n_entries += 1
        if entry.stored_at is not None:
            oldest, newest = min(oldest, entry.stored_at), max(newest, entry.stored_at)
        kind, version = kind_and_version(entry.key)
        if entry.text is None:
            n_damaged += 1
        elif is_current(entry.key):
            kinds[kind] += 1
        else:
            other[version] += 1
    return {
        "path": str(reader.folder),
        "exists": True,
        "key_version": KEY_VERSION,
        "n_entries": n_entries,
        "n_replies": kinds["reply"],
        "n_outputs": kinds["output"],
        "n_capabilities": kinds["capabilities"],
        "n_other_versions": dict(sorted(other.items())),
        "n_damaged": n_damaged,
        "bytes_on_disk": _bytes_on_disk(reader.folder),
        "oldest": time_text(oldest, "seconds"),
        "newest": time_text(newest, "seconds"),
    }


def drop_rows(folder: Path, rows: Sequence[int]) -> int:
    """Delete entries by row, and give their space back to the disk.

    Returns:
        How many rows were still there.

    Raises:
        StorageError: the database cannot be written.
    """
    n_dropped = 0
    try:
        connection = sqlite3.connect(folder / DATABASE, timeout=_LOCK_SECONDS, isolation_level=None)
        with closing(connection):
            for start in range(0, len(rows), _BATCH_ROWS):
                batch = [(row,) for row in rows[start : start + _BATCH_ROWS]]
                connection.execute("BEGIN IMMEDIATE")
                n_dropped += connection.executemany("DELETE FROM Cache WHERE rowid = ?", batch).rowcount
                connection.execute("COMMIT")
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    except BROKEN as error:
        raise StorageError(f"{folder}: entries cannot be dropped: {cause_of(error)}") from None
    return n_dropped


def _entry(row: Sequence[Any]) -> Entry:
    number, key_bytes, key_type, raw, mode, filename, value, value_type, stored_at = row
    key = _decoded(key_bytes) if key_type == "text" else None
    is_ours = raw == 1 and mode == MODE_RAW and filename is None and value_type == "text"
    packed = _decoded(value) if is_ours else None
    text = unpacked(key, packed) if key is not None and packed is not None else None
    return Entry(number, f"row {number}" if key is None else key, text, stored_at)


def _decoded(data: bytes) -> str | None:
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        return None


def _bytes_on_disk(folder: Path) -> int:
    total = 0
    for suffix in ("", "-wal", "-shm"):
        with suppress(OSError):
            total += (folder / f"{DATABASE}{suffix}").stat().st_size
    return total


def _unreadable(folder: Path, error: BaseException) -> StorageError:
    if is_broken(error, folder / DATABASE):
        return StorageError(
            f"{folder}: the cache is damaged as a whole: {cause_of(error)}; delete the folder, it costs only new calls"
        )
    return StorageError(f"{folder}: cache cannot be read: {cause_of(error)}")
