"""SQLite files that are broken, or that stand where nothing can be written, as on a read-only disk."""

import shutil
import sqlite3
import tempfile
from pathlib import Path

_CANNOT_WRITE = (sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY)
"""What SQLite says where it cannot make the files that stand beside a database in WAL mode."""


def cannot_be_written(error: sqlite3.Error) -> bool:
    """Whether a database could not be opened since nothing can be written beside it."""
    code = getattr(error, "sqlite_errorcode", None)
    return code is not None and code & 0xFF in _CANNOT_WRITE


def open_to_read(path: Path, timeout: float) -> sqlite3.Connection:
    """A connection for reading only; where SQLite cannot make its files beside the database, it does without them.

    Raises:
        sqlite3.Error: it cannot be read.
    """
    address = f"{path.resolve().as_uri()}?mode=ro"
    try:
        return _tried(address, timeout)
    except sqlite3.OperationalError as error:
        if not cannot_be_written(error):
            raise
        if _has_log(path):
            return open_copy(path, timeout)
        try:
            # Nobody can write it, so SQLite may take it as it is.
            return _tried(f"{address}&immutable=1", timeout)
        except sqlite3.OperationalError:
            raise error from None


def open_copy(path: Path, timeout: float) -> sqlite3.Connection:
    """A connection to a copy that is gone once it is closed, with what the log beside the database holds.

    Raises:
        sqlite3.Error: it cannot be read, or not be copied.
    """
    with tempfile.TemporaryDirectory(prefix="judgekit-") as folder:
        copy = Path(folder) / "copy.db"
        try:
            shutil.copyfile(path, copy)
            if _has_log(path):
                shutil.copyfile(_log_of(path), _log_of(copy))
        except OSError as error:
            raise sqlite3.OperationalError(f"cannot be copied to be read: {error.strerror or error}") from None
        connection = sqlite3.connect(copy, timeout=timeout, isolation_level=None)
        try:
            # One file, which stays readable through its connection after its name is gone.
            connection.execute("PRAGMA journal_mode = MEMORY").fetchone()
            connection.execute("PRAGMA user_version").fetchone()
        except BaseException:
            connection.close()
            raise
        return connection


def _tried(address: str, timeout: float) -> sqlite3.Connection:
    connection = sqlite3.connect(address, uri=True, timeout=timeout, isolation_level=None)
    try:
        connection.execute("SELECT name FROM sqlite_schema LIMIT 1").close()
    except BaseException:
        connection.close()
        raise
    return connection


def _has_log(path: Path) -> bool:
    try:
        return _log_of(path).stat().st_size > 0
    except OSError:
        return False


def _log_of(path: Path) -> Path:
    return path.with_name(f"{path.name}-wal")


BROKEN = (sqlite3.DatabaseError, UnicodeDecodeError)
"""What `sqlite3` raises over a broken file; the second where a name in its schema is not a text."""

_CODES = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_ERROR)
"""The last is said of our own fixed statements if tables or columns are not those that we made."""


def is_broken(error: BaseException, path: Path) -> bool:
    """Whether the file is not a database, or a broken one."""
    if isinstance(error, sqlite3.Error):
        code = getattr(error, "sqlite_errorcode", None)
        return path.is_dir() or (code is not None and code & 0xFF in _CODES)
    return isinstance(error, UnicodeDecodeError)
