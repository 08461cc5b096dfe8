"""The results database: an index of the run folders beside it, in one SQLite file.

Nothing stands in it that does not stand in a folder, so it can be deleted and built again at any time. Every
statement has parameters; no text of a run ever becomes a part of one.
"""

import fcntl
import json
import secrets
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from judgekit.core.errors import StorageError
from judgekit.core.history_points import HistoryPoint
from judgekit.storage.migrations import is_newest, migrate
from judgekit.storage.sqlite_files import BROKEN, cannot_be_written, is_broken, open_copy, open_to_read, set_journal

DATABASE = "judgekit.db"
"""Stands beside the runs of a results folder."""

_BUSY_SECONDS = 60.0
"""How long to wait for another process that writes."""

_RUN_TABLES = ("run_facts", "run_tags", "aggregate_history", "drift_checks", "eval_query_results", "eval_runs")

_PUT_RUN = (
    "INSERT INTO eval_runs (run_id, suite, config_snapshot_json, aggregate_json, commit_hash, created_at) "
    "VALUES (?, ?, ?, ?, ?, ?)"
)
_PUT_RESULT = "INSERT OR REPLACE INTO eval_query_results (run_id, query_id, result_json) VALUES (?, ?, ?)"
_PUT_FACTS = "INSERT INTO run_facts (run_id, status, n_cases, figures_json) VALUES (?, ?, ?, ?)"
_PUT_TAG = "INSERT OR IGNORE INTO run_tags (run_id, tag) VALUES (?, ?)"
_PUT_HISTORY = (
    "INSERT INTO aggregate_history (run_id, number, metrics_version, judgekit, replaced_at, aggregate_json) "
    "VALUES (?, ?, ?, ?, ?, ?)"
)
_PUT_POINT = (
    "INSERT OR REPLACE INTO drift_checks "
    "(check_id, run_id, judge, prompt_version, dataset_sha256, created_at, check_json) VALUES (?, ?, ?, ?, ?, ?, ?)"
)
_LIST = (
    "SELECT r.run_id, r.suite, r.created_at, r.commit_hash, r.aggregate_json, f.status, f.n_cases, f.figures_json, "
    "(SELECT json_group_array(tag) FROM (SELECT tag FROM run_tags t WHERE t.run_id = r.run_id ORDER BY tag)) "
    "FROM eval_runs r JOIN run_facts f ON f.run_id = r.run_id "
    "WHERE (? IS NULL OR r.suite = ?) "
    "AND (? IS NULL OR EXISTS (SELECT 1 FROM run_tags t WHERE t.run_id = r.run_id AND t.tag = ?)) "
    "ORDER BY r.created_at DESC, r.run_id DESC LIMIT ?"
)
_POINTS = (
    "SELECT check_json FROM drift_checks WHERE (? IS NULL OR judge = ?) "
    "AND (? IS NULL OR substr(dataset_sha256, 1, length(?)) = ?) ORDER BY created_at, check_id"
)
_STATEMENTS = tuple(
    (statement, statement.count("?"))
    for statement in (_PUT_RUN, _PUT_RESULT, _PUT_FACTS, _PUT_TAG, _PUT_HISTORY, _PUT_POINT, _LIST, _POINTS)
)


@dataclass(frozen=True)
class ListedRun:
    """A run as `judgekit runs list` shows it."""

    run_id: str
    suite: str
    created_at: str
    commit_hash: str | None
    aggregate: dict[str, Any]
    """The figures of `aggregate_json`."""
    status: str
    n_cases: int
    figures: dict[str, Any]
    """By name: value, n, n_error."""
    tags: Sequence[str]


@dataclass(frozen=True)
class RunRecord(ListedRun):
    """What the database holds of one run."""

    config: dict[str, Any]
    history: Sequence[dict[str, Any]]
    """Aggregates of earlier scorings, oldest first."""
    points: Sequence[HistoryPoint]


class DatabaseFault(StorageError):
    """The database and no folder is at fault."""


class Database:
    """The results database of one folder of runs; safe for several processes at once.

    Every call raises `ConfigError` if the database is of a newer judgekit, and `StorageError` if it cannot be read or
    written; what could not be written as a whole is as it was.
    """

    def __init__(self, results_dir: Path, *, busy_seconds: float = _BUSY_SECONDS) -> None:
        """Name the database; it is opened, and made if there is none, by the first call that needs it."""
        self.path = results_dir / DATABASE
        self.set_aside: Path | None = None
        """Where a damaged database was moved to."""
        self._busy_seconds = busy_seconds

    def make_ready(self) -> None:
        """Make the database if there is none, bring it to the newest schema, set a damaged one aside.

        Unlike all other calls it reads the whole file for damage, since it is what mends any.

        Raises:
            ConfigError: it is of a newer judgekit.
            StorageError: it cannot be written.
        """
        with self._reported("written"), closing(self._open_mended(check_all=True)):
            pass

    def put_run(self, record: RunRecord | Callable[[], RunRecord], results: Iterable[tuple[str, str]]) -> None:
        """Write all of a run in one transaction, in place of what there is of it.

        Args:
            record: the run, or what reads it. A reader is called once nobody else can write, so that what another
                process adds to the folder and then to the database is not lost between the two.
            results: query id and `result_json` of each case; drawn from while writing.

        Raises:
            ConfigError: the database is of a newer judgekit.
            StorageError: it cannot be written, or `results` cannot be read; it is as it was.
        """
        with self._writing() as connection:
            record = record() if callable(record) else record
            run_id = record.run_id
            _delete(connection, run_id)
            run = (_json(record.config), _json(record.aggregate), record.commit_hash, record.created_at)
            connection.execute(_PUT_RUN, (run_id, record.suite, *run))
            connection.executemany(_PUT_RESULT, ((run_id, query_id, text) for query_id, text in results))
            connection.execute(_PUT_FACTS, (run_id, record.status, record.n_cases, _json(record.figures)))
            connection.executemany(_PUT_TAG, ((run_id, tag) for tag in record.tags))
            history = [
                (run_id, number, old["metrics_version"], old["scored_by"], old["replaced_at"], _json(old["aggregate"]))
                for number, old in enumerate(record.history)
            ]
            connection.executemany(_PUT_HISTORY, history)
            connection.executemany(_PUT_POINT, map(_point_row, record.points))

    def put_tags(self, run_id: str, tags: Sequence[str]) -> bool:
        """Write the tags of a run in place of the old ones; False if the run is not indexed."""
        with self._writing() as connection:
            if connection.execute("SELECT 1 FROM eval_runs WHERE run_id = ?", (run_id,)).fetchone() is None:
                return False
            connection.execute("DELETE FROM run_tags WHERE run_id = ?", (run_id,))
            connection.executemany(_PUT_TAG, ((run_id, tag) for tag in tags))
            return True

    def put_point(self, point: HistoryPoint) -> bool:
        """Add a point to the history of a judge; False if its run is not indexed."""
        with self._writing() as connection:
            if connection.execute("SELECT 1 FROM eval_runs WHERE run_id = ?", (point.run_id,)).fetchone() is None:
                return False
            connection.execute(_PUT_POINT, _point_row(point))
            return True

    def delete_run(self, run_id: str) -> None:
        """Drop all of a run."""
        with self._writing() as connection:
            _delete(connection, run_id)

    def runs(self, suite: str | None = None, tag: str | None = None, limit: int | None = None) -> list[ListedRun]:
        """Runs, the newest first; none if there is no database."""
        rows = self._rows(_LIST, suite, suite, tag, tag, -1 if limit is None else limit)
        try:
            return [_listed(row) for row in rows]
        except (ValueError, TypeError) as error:
            raise StorageError(f"{self.path}: damaged entry: {error}; run `judgekit runs reindex`") from None

    def run_ids(self) -> set[str]:
        """Ids of all runs."""
        return {row[0] for row in self._rows("SELECT run_id FROM eval_runs")}

    def points(self, judge: str | None = None, dataset: str | None = None) -> list[HistoryPoint]:
        """Points of the histories of judges, the oldest first: of one judge, on the data set whose hash begins so."""
        rows = self._rows(_POINTS, judge, judge, dataset, dataset, dataset)
        try:
            return [HistoryPoint.model_validate_json(row[0]) for row in rows]
        except ValueError as error:
            raise StorageError(f"{self.path}: damaged history point: {error}; run `judgekit runs reindex`") from None

    @contextmanager
    def _writing(self) -> Iterator[sqlite3.Connection]:
        """A connection inside a transaction that is kept if the block ends well."""
        with self._reported("written"), closing(self._open_mended()) as connection:
            connection.execute("BEGIN IMMEDIATE")
            try:
                yield connection
                connection.execute("COMMIT")
            except BaseException:
                with suppress(sqlite3.Error):
                    connection.rollback()
                raise

    def _rows(self, statement: str, *values: str | int | None) -> list[Sequence[Any]]:
        """What a statement finds; nothing if there is no database."""
        if not self.path.exists():
            return []
        with self._reported("read"), closing(self._open_to_read()) as connection:
            return connection.execute(statement, values).fetchall()

    @contextmanager
    def _reported(self, what: str) -> Iterator[None]:
        try:
            yield
        except BROKEN as error:
            hint = "; it is damaged, `judgekit runs reindex` builds a new one" if is_broken(error, self.path) else ""
            raise DatabaseFault(f"{self.path}: cannot be {what}: {error}{hint}") from None

    def _open(self, *, check_all: bool = False) -> sqlite3.Connection:
        connection = sqlite3.connect(self.path, timeout=self._busy_seconds, isolation_level=None)
        try:
            connection.execute("PRAGMA foreign_keys = ON")
            connection.execute("PRAGMA synchronous = NORMAL")
            migrate(connection, str(self.path))
            for statement, n_values in _STATEMENTS:
                # Compiled only, which shows whether tables and columns are ours.
                connection.execute(f"EXPLAIN {statement}", (None,) * n_values).close()
            if check_all and (found := connection.execute("PRAGMA integrity_check(1)").fetchone()[0]) != "ok":
                raise _Corrupt(found)
            # With WAL, readers never wait for a writer.
            set_journal(connection, self.path.parent)
        except BaseException:
            connection.close()
            raise
        return connection

    def _open_to_read(self) -> sqlite3.Connection:
        """A connection for reading; on a read-only disk one that needs to write nothing."""
        try:
            return self._open()
        except sqlite3.OperationalError as error:
            if not cannot_be_written(error):
                raise
        connection = open_to_read(self.path, self._busy_seconds)
        try:
            if not is_newest(connection, str(self.path)):
                connection.close()
                connection = open_copy(self.path, self._busy_seconds)
                migrate(connection, str(self.path))
        except BaseException:
            connection.close()
            raise
        return connection

    def _open_mended(self, *, check_all: bool = False) -> sqlite3.Connection:
        """A connection; a damaged file is set aside first, once for all processes that find it so."""
        try:
            return self._open(check_all=check_all)
        except BROKEN as error:
            if not is_broken(error, self.path):
                raise
        try:
            with self.path.with_name(f".{self.path.name}.lock").open("w") as lock:
                fcntl.flock(lock, fcntl.LOCK_EX)
                try:
                    return self._open(check_all=check_all)
                except BROKEN as error:
                    if not is_broken(error, self.path):
                        raise
                    self._move_away()
                    return self._open()
        except OSError as error:
            raise DatabaseFault(f"{self.path}: damaged, and cannot be set aside: {error.strerror or error}") from None

    def _move_away(self) -> None:
        name = f"{self.path.name}.corrupt-{datetime.now():%Y%m%d-%H%M%S}-{secrets.token_hex(2)}"
        self.set_aside = self.path.with_name(name)
        self.path.rename(self.set_aside)
        for suffix in ("-wal", "-shm"):
            with suppress(FileNotFoundError):
                self.path.with_name(self.path.name + suffix).rename(self.path.with_name(name + suffix))


class _Corrupt(sqlite3.DatabaseError):
    """What a check of the whole file found."""

    sqlite_errorcode = sqlite3.SQLITE_CORRUPT


def _delete(connection: sqlite3.Connection, run_id: str) -> None:
    for table in _RUN_TABLES:
        # A statement takes no table as parameter; the names are ours.
        connection.execute(f"DELETE FROM {table} WHERE run_id = ?", (run_id,))  # noqa: S608


def _point_row(point: HistoryPoint) -> tuple[str, ...]:
    about = (point.judge, point.prompt_version, point.dataset_sha256, point.created_at)
    return (point.check_id, point.run_id, *about, point.model_dump_json())


def _listed(row: Sequence[Any]) -> ListedRun:
    run_id, suite, created_at, commit, aggregate, status, n_cases, figures, tags = row
    decoded = [json.loads(text) for text in (aggregate, figures, tags)]
    return ListedRun(run_id, suite, created_at, commit, decoded[0], status, n_cases, decoded[1], tuple(decoded[2]))


def _json(value: Any) -> str:
    # ASCII only, so that a lone surrogate, which SQLite refuses, stays an escape.
    return json.dumps(value, sort_keys=True, allow_nan=False, separators=(",", ":"))
