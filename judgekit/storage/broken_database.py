"""What a broken SQLite file shows itself by; a locked or read-only one is whole and stays where it is."""

import sqlite3
from pathlib import Path

BROKEN = (sqlite3.DatabaseError, UnicodeDecodeError)
"""What `sqlite3` raises over a broken file; the second where a name in its schema is no text."""

_CODES = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_ERROR)
"""The last is said of our own fixed statements if tables or columns are not those that we made."""


def is_broken(error: BaseException, path: Path) -> bool:
    """Whether the file is no database, or a broken one.

    Args:
        error: what came of opening or using it.
        path: the file.
    """
    if isinstance(error, sqlite3.Error):
        code = getattr(error, "sqlite_errorcode", None)
        return path.is_dir() or (code is not None and code & 0xFF in _CODES)
    return isinstance(error, UnicodeDecodeError)
