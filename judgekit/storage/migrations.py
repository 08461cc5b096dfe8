"""The schema of the results database, step by step: a released step is never changed, only followed by another."""

import sqlite3

from judgekit.core.errors import ConfigError

MIGRATIONS: tuple[tuple[str, ...], ...] = (
    (
        """CREATE TABLE eval_runs (
            run_id TEXT PRIMARY KEY,
            suite TEXT NOT NULL,
            config_snapshot_json TEXT NOT NULL,
            aggregate_json TEXT NOT NULL,
            commit_hash TEXT,
            created_at TEXT NOT NULL
        )""",
        """CREATE TABLE eval_query_results (
            run_id TEXT NOT NULL REFERENCES eval_runs (run_id) ON DELETE CASCADE,
            query_id TEXT NOT NULL,
            result_json TEXT NOT NULL,
            PRIMARY KEY (run_id, query_id)
        )""",
        "CREATE INDEX eval_runs_by_suite ON eval_runs (suite, created_at)",
    ),
    (
        """CREATE TABLE run_facts (
            run_id TEXT PRIMARY KEY REFERENCES eval_runs (run_id) ON DELETE CASCADE,
            status TEXT NOT NULL,
            n_cases INTEGER NOT NULL,
            figures_json TEXT NOT NULL
        )""",
        """CREATE TABLE run_tags (
            run_id TEXT NOT NULL REFERENCES eval_runs (run_id) ON DELETE CASCADE,
            tag TEXT NOT NULL,
            PRIMARY KEY (run_id, tag)
        ) WITHOUT ROWID""",
        """CREATE TABLE aggregate_history (
            run_id TEXT NOT NULL REFERENCES eval_runs (run_id) ON DELETE CASCADE,
            number INTEGER NOT NULL,
            metrics_version INTEGER NOT NULL,
            judgekit TEXT,
            replaced_at TEXT NOT NULL,
            aggregate_json TEXT NOT NULL,
            PRIMARY KEY (run_id, number)
        ) WITHOUT ROWID""",
    ),
    (
        """CREATE TABLE drift_checks (
            check_id TEXT PRIMARY KEY,
            run_id TEXT NOT NULL REFERENCES eval_runs (run_id) ON DELETE CASCADE,
            judge TEXT NOT NULL,
            prompt_version TEXT NOT NULL,
            dataset_sha256 TEXT NOT NULL,
            created_at TEXT NOT NULL,
            check_json TEXT NOT NULL
        )""",
        "CREATE INDEX drift_checks_by_judge ON drift_checks (judge, created_at)",
        "CREATE INDEX drift_checks_by_run ON drift_checks (run_id)",
    ),
)
"""By step the statements that lead from the version before to its own; `PRAGMA user_version` counts the steps."""

SCHEMA_VERSION = len(MIGRATIONS)


def migrate(connection: sqlite3.Connection, name: str) -> None:
    """Bring a database to the newest schema, in one transaction; several processes may do so at once.

    Raises:
        ConfigError: it was written by a newer judgekit.
        sqlite3.Error: it cannot be read or written; it is as it was.
    """
    if is_newest(connection, name):
        return
    connection.execute("BEGIN IMMEDIATE")
    try:
        # Read again: another process may have done it while this one waited.
        for statements in MIGRATIONS[_version(connection, name) :]:
            for statement in statements:
                connection.execute(statement)
        # A pragma takes no parameter; the number is ours.
        connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION:d}")
        connection.execute("COMMIT")
    except BaseException:
        connection.rollback()
        raise


def is_newest(connection: sqlite3.Connection, name: str) -> bool:
    """Whether a database has the newest schema.

    Raises:
        ConfigError: it was written by a newer judgekit.
        sqlite3.Error: it cannot be read.
    """
    return _version(connection, name) == SCHEMA_VERSION


def _version(connection: sqlite3.Connection, name: str) -> int:
    version = int(connection.execute("PRAGMA user_version").fetchone()[0])
    if version > SCHEMA_VERSION:
        raise ConfigError(
            f"{name}: written by a newer judgekit (schema {version}; this one reads up to {SCHEMA_VERSION}); upgrade "
            "judgekit, or move the file away and run `judgekit runs reindex`"
        )
    return version
