"""SQLite files: how their journal is kept, and those that are broken or stand where nothing can be written."""

import os
import re
import shutil
import sqlite3
import tempfile
from pathlib import Path

from judgekit.core.errors import ConfigError

JOURNAL_VARIABLE = "JUDGEKIT_SQLITE_JOURNAL"
"""`wal` or `delete`: takes the place of what the file system says."""

_MOUNTS = Path("/proc/self/mountinfo")
_MOUNT_POINT = 4
"""Of a line of it, the word that says where the file system is mounted."""

_NETWORK = re.compile(
    r"nfs\d?|cifs|smb\d?|smbfs|9p|afs|ceph|lustre|gpfs|glusterfs|beegfs|ocfs2|gfs2|orangefs|pvfs2|virtiofs|davfs"
    r"|fuse\..*"
)
"""Types of file systems that several machines may mount, or that cannot share memory between processes."""


def journal_mode(folder: Path) -> str:
    """How a database in a folder keeps its journal: `wal`, or `delete` on a network file system.

    In WAL mode the processes share memory through a file, which works on one machine only: over NFS or SMB a database
    breaks without a word.

    Raises:
        ConfigError: the variable says neither.
    """
    wanted = os.environ.get(JOURNAL_VARIABLE, "").strip().lower()
    if wanted not in ("", "wal", "delete"):
        raise ConfigError(f"{JOURNAL_VARIABLE}: expected wal or delete, found {wanted!r}")
    return wanted or ("delete" if _NETWORK.fullmatch(_file_system(folder)) else "wal")


def set_journal(connection: sqlite3.Connection, folder: Path) -> None:
    """Keep the journal as fits the file system.

    It is kept in the file, so it is enough if it works once: SQLite does not wait for others here, and some file
    systems cannot do it.

    Raises:
        ConfigError: the variable says something else.
    """
    mode = journal_mode(folder)
    try:
        connection.execute(f"PRAGMA journal_mode = {mode}").fetchone()
    except sqlite3.OperationalError:
        return
    # Without the log a power cut may otherwise break the file.
    connection.execute(f"PRAGMA synchronous = {'NORMAL' if mode == 'wal' else 'FULL'}").close()


_SCRATCH_KIB = 4096


class _Scratch(sqlite3.Connection):
    """Is closed with the object that holds it."""

    def __del__(self) -> None:
        self.close()


def scratch_database(schema: str) -> sqlite3.Connection:
    """A database for the time of its connection: what does not fit into 4 MiB goes to a temporary file of SQLite's.

    It is closed at the latest once nothing holds it any more.

    Raises:
        sqlite3.Error: it cannot be made.
    """
    connection = sqlite3.connect("", isolation_level=None, check_same_thread=False, factory=_Scratch)
    try:
        connection.execute(f"PRAGMA cache_size = -{_SCRATCH_KIB}")
        connection.execute("PRAGMA journal_mode = OFF").fetchone()
        connection.execute(schema)
    except BaseException:
        connection.close()
        raise
    return connection


def _file_system(folder: Path) -> str:
    """The type of the file system that a folder is on, as Linux calls it; blank if that cannot be told."""
    try:
        mounts = _MOUNTS.read_text(encoding="utf-8", errors="surrogateescape")
        place = folder.resolve()
    except OSError:
        return ""
    found, depth = "", -1
    for line in mounts.splitlines():
        before, _, after = line.partition(" - ")
        words = before.split()
        if len(words) < _MOUNT_POINT + 1 or not after:
            continue
        point = Path(re.sub(r"\\([0-7]{3})", lambda octal: chr(int(octal[1], 8)), words[_MOUNT_POINT]))
        # Of two mounts at one point the later one is seen.
        if len(point.parts) >= depth and place.is_relative_to(point):
            found, depth = after.split()[0], len(point.parts)
    return found


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
