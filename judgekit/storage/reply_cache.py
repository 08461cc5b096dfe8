"""The reply cache: good replies by request key, in one SQLite file, text only.

Nothing is ever unpickled: a row that is not text is damage, not data. Every entry carries a checksum, so
that a half-written or altered reply is asked again instead of believed. Nothing is evicted.
"""

import fcntl
import hashlib
import json
import secrets
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Any

from diskcache import Cache, Disk, Timeout
from diskcache.core import MODE_RAW

from judgekit.core.errors import StorageError

_NEVER_BITES = 2**62
"""Size limit in bytes; diskcache drops entries above it without a word."""

_LOCK_SECONDS = 60
"""How long to wait for another process that writes."""


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
        """A key as it was given; blank where the stored one is in any other form, which is never decoded."""
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


class DiskReplyCache:
    """Replies of past runs; safe for several processes at once."""

    def __init__(self, folder: Path) -> None:
        """Open or create the cache; a damaged database is set aside and a new one begun.

        Raises:
            StorageError: the folder cannot be used.
        """
        self.folder = folder
        self.n_damaged = 0
        self.set_aside: Path | None = None
        try:
            self._cache = self._open()
        except sqlite3.DatabaseError as error:
            if not _is_corrupt(error):
                raise StorageError(f"{folder}: cache cannot be used: {_cause(error)}") from None
            self._cache = self._begin_anew()

    def _begin_anew(self) -> Cache:
        """Set the damaged folder aside, once for all processes that find it damaged at the same time."""
        try:
            with self.folder.with_name(f".{self.folder.name}.lock").open("w") as lock:
                fcntl.flock(lock, fcntl.LOCK_EX)
                try:
                    return self._open()
                except sqlite3.DatabaseError:
                    stem = f"{self.folder.name}.corrupt-{datetime.now():%Y%m%d-%H%M%S}"
                    self.set_aside = self.folder.with_name(f"{stem}-{secrets.token_hex(2)}")
                    self.folder.rename(self.set_aside)
                    return self._open()
        except OSError as error:
            raise StorageError(f"{self.folder}: damaged cache cannot be set aside: {error.strerror or error}") from None

    def _open(self) -> Cache:
        try:
            self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            return Cache(
                str(self.folder),
                disk=TextDisk,
                timeout=_LOCK_SECONDS,
                eviction_policy="none",
                cull_limit=0,
                size_limit=_NEVER_BITES,
                statistics=0,
                sqlite_synchronous=1,
            )
        except OSError as error:
            raise StorageError(f"{self.folder}: cache cannot be used: {error.strerror or error}") from None

    def get(self, key: str) -> str | None:
        """The stored text; None where there is none, or where it is damaged (counted in `n_damaged`)."""
        try:
            entry = self._cache.get(key)
        except (DamagedEntry, sqlite3.DatabaseError):
            self.n_damaged += 1
            return None
        if entry is None:
            return None
        text = _unpacked(key, entry)
        if text is None:
            self.n_damaged += 1
        return text

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
                    self._cache.set(key, _packed(key, text))
        except (OSError, sqlite3.Error, Timeout) as error:
            raise StorageError(f"{self.folder}: reply cannot be cached: {_cause(error)}") from None

    def keys(self) -> Iterator[str]:
        """All keys, in no particular order."""
        return (key for key in self._cache if key)

    def delete(self, key: str) -> None:
        """Drop one entry.

        Raises:
            StorageError: the database cannot be written.
        """
        try:
            self._cache.delete(key)
        except (OSError, sqlite3.Error, Timeout) as error:
            raise StorageError(f"{self.folder}: reply cannot be dropped: {_cause(error)}") from None

    def close(self) -> None:
        """Close this thread's connection."""
        with suppress(sqlite3.Error):
            self._cache.close()


def _is_corrupt(error: sqlite3.DatabaseError) -> bool:
    """Whether the file is no database or a broken one; a locked or read-only one is whole and stays where it is."""
    code = getattr(error, "sqlite_errorcode", None)
    return code is not None and code & 0xFF in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)


def _cause(error: BaseException) -> str:
    """The first error: a failed rollback or a time-out of diskcache hides it."""
    while error.__context__ is not None:
        error = error.__context__
    return str(error) or type(error).__name__


def _packed(key: str, text: str) -> str:
    """Checksum and text; a text with lone surrogates, which SQLite refuses, is escaped as JSON after a backslash."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return f"{_checksum(key, text)}\\{json.dumps(text)}"
    return f"{_checksum(key, text)}\n{text}"


def _unpacked(key: str, entry: str) -> str | None:
    """The text of an entry; None where the checksum does not fit."""
    checksum, form, text = entry[:32], entry[32:33], entry[33:]
    if form == "\\":
        try:
            text = json.loads(text)
        except ValueError:
            return None
    if form not in ("\n", "\\") or not isinstance(text, str):
        return None
    return text if checksum == _checksum(key, text) else None


def _checksum(key: str, text: str) -> str:
    return hashlib.sha256(f"{key}\n{text}".encode("utf-8", "surrogatepass")).hexdigest()[:32]


def open_reply_cache(folder: Path) -> tuple[DiskReplyCache | None, list[tuple[str, str]]]:
    """The cache, or None where it cannot be used, and (code, message) of what the reader of a run should know."""
    try:
        cache = DiskReplyCache(folder)
    except StorageError as error:
        return None, [("cache_not_used", str(error))]
    if cache.set_aside is None:
        return cache, []
    return cache, [("cache_damaged", f"the reply cache was damaged and is set aside as {cache.set_aside}")]
