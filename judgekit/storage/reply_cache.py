"""The reply cache: good replies by request key, in one SQLite file, text only.

Nothing is ever unpickled: a row that is not text is damage, not data. Every entry carries a checksum, so
that a half-written or altered reply is asked again instead of believed. Nothing is evicted.
"""

import fcntl
import hashlib
import json
import os
import secrets
import sqlite3
import threading
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, closing, nullcontext, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from diskcache import Cache, Disk, Timeout
from diskcache.core import MODE_RAW

from judgekit.core.cache_keys import KEY_VERSION, PREFIXES, kind_and_version
from judgekit.core.errors import StorageError
from judgekit.core.text import clean_text
from judgekit.storage.sqlite_files import BROKEN, is_broken, journal_mode

_NEVER_BITES = 2**62
"""Size limit in bytes; diskcache drops entries above it without a word."""

_MAPPED_BYTES = 2**26
"""Of the database, what SQLite may read as memory; none over a network, where other machines write to it."""

_LOOK_UP = "SELECT mode, filename, value FROM Cache WHERE key = ? AND raw = 1"
_ALL_COLUMNS = (
    "SELECT rowid, key, raw, store_time, expire_time, access_time, access_count, tag, size, mode, filename, value "
    "FROM Cache LIMIT 0"
)
_STORED_AT = "SELECT CAST(store_time AS REAL) FROM Cache WHERE key = ? AND raw = 1"
_LOCK_SECONDS = 60
"""How long to wait for another process that writes."""

_N_MOVES = 100
"""How often the folder may be set aside by others while it is locked; after that it is used without a lock."""


_BROKEN = (*BROKEN, AttributeError, KeyError, TypeError, ValueError)
"""What diskcache raises over a broken file: it believes the settings that it reads from it."""


def _after(prefix: str) -> str:
    """The least text above all that start with the prefix."""
    return prefix[:-1] + chr(ord(prefix[-1]) + 1)


CACHE_FOLDER = ".cache"
"""Stands beside the runs of a results folder."""

_BESIDE_CURRENT = tuple(zip(["", *map(_after, sorted(PREFIXES))], [*sorted(PREFIXES), "\U0010ffff"], strict=True))
_KEYS_BETWEEN = "SELECT key FROM Cache WHERE key >= ? AND key < ? AND typeof(key) = 'text'"


class DamagedEntry(Exception):
    """A row of the cache that this class did not write."""


class TextDisk(Disk):  # type: ignore[misc]  # diskcache ships no types
    """Stores texts in the database itself and refuses everything else."""

    def put(self, key: Any) -> tuple[Any, bool]:
        """A key as it is stored."""
        if not isinstance(key, str):
            raise TypeError(f"keys are texts, found {type(key).__name__}")
        return key, True

    def get(self, key: Any, raw: bool) -> str:
        """A key as it was given; blank if the stored one is in any other form, which is never decoded."""
        return key if raw and isinstance(key, str) else ""

    def store(self, value: Any, read: bool, key: Any = None) -> tuple[int, int, None, Any]:  # noqa: ARG002  # its signature
        """A value as it is stored."""
        if read or not isinstance(value, str):
            raise TypeError(f"values are texts, found {type(value).__name__}")
        return 0, MODE_RAW, None, value

    def fetch(self, mode: int, filename: str | None, value: Any, read: bool) -> str:
        """A value as it was given; a row in any other form is never decoded."""
        if mode != MODE_RAW or filename is not None or read or not isinstance(value, str):
            raise DamagedEntry("a value is not text")
        return value

    def remove(self, file_path: str) -> None:
        """Nothing: no entry of ours has a file, so a row that names one must not get it deleted."""


class _Database(Cache):  # type: ignore[misc]  # diskcache ships no types
    """diskcache's, which leaves its connection open if it cannot read the database."""

    def __init__(self, *arguments: Any, **settings: Any) -> None:
        try:
            super().__init__(*arguments, **settings)
        except BaseException:
            self.close()
            raise


class DiskReplyCache:
    """Replies of past runs; safe for several processes at once."""

    def __init__(self, folder: Path) -> None:
        """Open or create the cache; a damaged database is set aside and a new one begun.

        Raises:
            StorageError: the folder cannot be used.
        """
        self.folder = folder
        self._here = threading.local()
        self.n_damaged = 0
        self.set_aside: Path | None = None
        with self._held(fcntl.LOCK_SH):
            cache = self._whole()
        self._cache = self._begin_again() if cache is None else cache

    def _whole(self) -> Cache | None:
        """The cache, opened; None if it is damaged."""
        try:
            return self._open()
        except _BROKEN as error:
            if isinstance(error, BROKEN) and not is_broken(error, self.folder / "cache.db"):
                raise StorageError(f"{self.folder}: cache cannot be used: {cause_of(error)}") from None
            return None

    def _begin_again(self) -> Cache:
        """Set the damaged folder aside, once for all processes that find it damaged at the same time."""
        try:
            with self._held(fcntl.LOCK_EX):
                if (cache := self._whole()) is not None:
                    return cache
                stem = f"{self.folder.name}.corrupt-{datetime.now():%Y%m%d-%H%M%S}"
                self.set_aside = self.folder.with_name(f"{stem}-{secrets.token_hex(2)}")
                self.folder.rename(self.set_aside)
        except OSError as error:
            raise StorageError(f"{self.folder}: damaged cache cannot be set aside: {error.strerror or error}") from None
        with self._held(fcntl.LOCK_SH):
            if (cache := self._whole()) is not None:
                return cache
        raise StorageError(f"{self.folder}: cache cannot be used: a new one is damaged at once")

    def _held(self, how: int) -> AbstractContextManager[Any]:
        """Lock the folder while it is opened (shared), or looked at and set aside (exclusive).

        SQLite goes by names: a database that is moved while it is opened would take the journal of the new one for its
        own. Where nothing can be locked, as in a folder for reading only, there is no lock.
        """
        path = self.folder / "cache.lock"
        for _ in range(_N_MOVES):
            try:
                self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            except OSError as error:
                if isinstance(error, FileExistsError) and not os.path.lexists(self.folder):
                    continue
                raise StorageError(f"{self.folder}: cache cannot be used: {error.strerror or error}") from None
            try:
                lock = path.open("a")
            except FileNotFoundError:
                continue
            except OSError:
                break
            with suppress(OSError):
                fcntl.flock(lock, how)
            with suppress(FileNotFoundError):
                if os.path.samefile(lock.fileno(), path):  # noqa: PTH121  # a descriptor has no path
                    return lock
            lock.close()
        return nullcontext()

    def _open(self) -> Cache:
        try:
            with_wal = journal_mode(self.folder) == "wal"
            cache = _Database(
                str(self.folder),
                disk=TextDisk,
                timeout=_LOCK_SECONDS,
                eviction_policy="none",
                cull_limit=0,
                size_limit=_NEVER_BITES,
                statistics=0,
                sqlite_journal_mode="wal" if with_wal else "delete",
                sqlite_mmap_size=_MAPPED_BYTES if with_wal else 0,
                sqlite_synchronous=1 if with_wal else 2,
            )
            # Each thread has a connection of its own; this one may never use the cache again.
            cache.close()
            with closing(sqlite3.connect(self.folder / "cache.db", timeout=_LOCK_SECONDS)) as connection:
                connection.execute(_ALL_COLUMNS).close()
            return cache
        except OSError as error:
            raise StorageError(f"{self.folder}: cache cannot be used: {error.strerror or error}") from None

    def get(self, key: str) -> str | None:
        """The stored text; None if there is none, or it is damaged (counted in `n_damaged`)."""
        try:
            row = self._row(_LOOK_UP, key)
        except BROKEN:
            self.n_damaged += 1
            return None
        if row is None:
            return None
        mode, filename, value = row
        is_text = mode == MODE_RAW and filename is None and isinstance(value, str)
        text = unpacked(key, value) if is_text else None
        if text is None:
            self.n_damaged += 1
        return text

    def stored_at(self, key: str) -> str | None:
        """When an entry was stored (UTC, ISO 8601); None if that cannot be told."""
        try:
            row = self._row(_STORED_AT, key)
        except BROKEN:
            return None
        return None if row is None else time_text(row[0])

    def _row(self, statement: str, key: str) -> Any:
        """The row of a key, by this thread's own connection: that costs half of diskcache's way to it."""
        connection = getattr(self._here, "connection", None)
        if connection is None:
            connection = sqlite3.connect(self.folder / "cache.db", timeout=_LOCK_SECONDS, isolation_level=None)
            self._here.connection = connection
        return connection.execute(statement, (key,)).fetchone()

    def put_many(self, items: Sequence[tuple[str, str]]) -> None:
        """Store replies in one transaction.

        Raises:
            StorageError: the disk is full or the database cannot be written.
        """
        if not items:
            return
        try:
            # Without retry: diskcache would ask a database that cannot be written again and again without end.
            with self._cache.transact(retry=False):
                for key, text in items:
                    self._cache.set(key, packed(key, text))
        except (OSError, *_BROKEN, Timeout) as error:
            raise StorageError(f"{self.folder}: reply cannot be cached: {cause_of(error)}") from None

    def keys(self) -> Iterator[str]:
        """All keys, in no particular order."""
        return (key for key in self._cache if key)

    def n_other_versions(self) -> Counter[str]:
        """Entries that no run of this version can ask for, by the version of their key.

        The index is asked for what stands before, between and after the prefixes in use, so that a cache without any
        costs nothing.
        """
        found: Counter[str] = Counter()
        try:
            with closing(sqlite3.connect(self.folder / "cache.db", timeout=_LOCK_SECONDS)) as connection:
                for bounds in _BESIDE_CURRENT:
                    for (key,) in connection.execute(_KEYS_BETWEEN, bounds):
                        found[kind_and_version(key)[1]] += 1
        except BROKEN:
            found.clear()
        return found

    def delete(self, key: str) -> None:
        """Drop one entry.

        Raises:
            StorageError: the database cannot be written.
        """
        try:
            self._cache.delete(key)
        except (OSError, *_BROKEN, Timeout) as error:
            raise StorageError(f"{self.folder}: reply cannot be dropped: {cause_of(error)}") from None

    def close(self) -> None:
        """Close this thread's connections; the next use opens others."""
        with suppress(sqlite3.Error):
            connection = getattr(self._here, "connection", None)
            if connection is not None:
                self._here.connection = None
                connection.close()
            self._cache.close()


def cause_of(error: BaseException) -> str:
    """The first error: a failed rollback or a time-out of diskcache hides it."""
    while error.__context__ is not None:
        error = error.__context__
    return str(error) or type(error).__name__


def time_text(seconds: float | None, timespec: str = "milliseconds") -> str | None:
    """Seconds since 1970 as UTC, ISO 8601; None if they are not a time."""
    try:
        return None if seconds is None else datetime.fromtimestamp(seconds, UTC).isoformat(timespec=timespec)
    except (ValueError, OverflowError, OSError):
        return None


def packed(key: str, text: str) -> str:
    """Checksum and text; a text with lone surrogates, which SQLite refuses, is escaped as JSON after a backslash."""
    if clean_text(text) != text:
        return f"{checksum_of(key, text)}\\{json.dumps(text)}"
    return f"{checksum_of(key, text)}\n{text}"


def unpacked(key: str, entry: str) -> str | None:
    """The text of an entry; None if the checksum does not fit."""
    checksum, form, text = entry[:32], entry[32:33], entry[33:]
    if form == "\\":
        try:
            text = json.loads(text)
        except ValueError:
            return None
    if form not in ("\n", "\\") or not isinstance(text, str):
        return None
    return text if checksum == checksum_of(key, text) else None


def checksum_of(key: str, text: str) -> str:
    """Over key and text, so that a reply under another key is not believed either."""
    return hashlib.sha256(f"{key}\n{text}".encode("utf-8", "surrogatepass")).hexdigest()[:32]


def open_reply_cache(folder: Path) -> tuple[DiskReplyCache | None, list[tuple[str, str]]]:
    """The cache, or None if it cannot be used, and (code, message) of what the reader of a run should know."""
    try:
        cache = DiskReplyCache(folder)
    except StorageError as error:
        return None, [("cache_not_used", str(error))]
    if cache.set_aside is not None:
        return cache, [("cache_damaged", f"the reply cache was damaged and is set aside as {cache.set_aside}")]
    old = cache.n_other_versions()
    if not old:
        return cache, []
    which = " and ".join(f"{n:,} of key version {version}" for version, n in sorted(old.items()))
    message = (
        f"cached entries ignored: {which}, since this judgekit writes key version {KEY_VERSION}; "
        "drop them with `judgekit cache clear --old`"
    )
    return cache, [("cache_old_entries", message)]
