"""The results database: its schema step by step, what it gives back, and what happens to a file it cannot use."""

import json
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from judgekit.core.errors import ConfigError, StorageError
from judgekit.core.history_points import HistoryPoint
from judgekit.storage.database import DATABASE, Database, RunRecord
from judgekit.storage.migrations import MIGRATIONS, SCHEMA_VERSION, migrate


def record(run_id: str = "r", **fields: Any) -> RunRecord:
    values: dict[str, Any] = {
        "run_id": run_id,
        "suite": "suite",
        "created_at": f"2026-01-01T00:00:00+00:00 {run_id}",
        "commit_hash": None,
        "config": {"name": "suite"},
        "aggregate": {"mrr": 0.5},
        "status": "complete",
        "n_cases": 2,
        "figures": {"mrr": [0.5, 2, 0]},
        "tags": [],
        "history": [],
        "points": [],
    }
    return RunRecord(**{**values, **fields})


def a_point(run_id: str = "r", **fields: Any) -> HistoryPoint:
    values: dict[str, Any] = {
        "run_id": run_id,
        "judge": "groundedness",
        "prompt_version": "v1",
        "dataset_sha256": "abc",
        "kind": "rejudge",
        "comparator": "m with v1",
        "created_at": "2026-01-01T00:00:00+00:00",
        "n_asked": 20,
        "n_pairs": 20,
        "n_disagree": 1,
        "n_failed": 0,
        "prompt_sha256": "p",
        "parser_version": "1",
    }
    return HistoryPoint(**{**values, **fields})


def rows(path: Path, statement: str) -> list[Any]:
    with closing(sqlite3.connect(path)) as connection:
        return connection.execute(statement).fetchall()


def schema(path: Path) -> list[Any]:
    return rows(path, "SELECT name, sql FROM sqlite_master WHERE name NOT LIKE 'sqlite_%' ORDER BY name")


def at_version(path: Path, version: int) -> None:
    """A database as the judgekit of a schema version left it."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        for statements in MIGRATIONS[:version]:
            for statement in statements:
                connection.execute(statement)
        if version:
            connection.execute(
                "INSERT INTO eval_runs VALUES ('old', 'suite', '{}', '{}', 'c0ffee', '2025-01-01T00:00:00+00:00')"
            )
            connection.execute("INSERT INTO eval_query_results VALUES ('old', 'q1', '{}')")
        connection.execute(f"PRAGMA user_version = {version}")


@pytest.mark.parametrize("version", range(SCHEMA_VERSION + 1))
def test_a_database_of_every_version_becomes_the_newest_and_keeps_its_rows(tmp_path: Path, version: int) -> None:
    fresh, old = tmp_path / "fresh", tmp_path / "old"
    fresh.mkdir()
    old.mkdir()
    Database(fresh).put_run(record(), [])
    at_version(old / DATABASE, version)
    Database(old).put_run(record(), [])
    assert schema(old / DATABASE) == schema(fresh / DATABASE)
    assert rows(old / DATABASE, "PRAGMA user_version") == [(SCHEMA_VERSION,)]
    kept = [("old", "c0ffee")] if version else []
    assert rows(old / DATABASE, "SELECT run_id, commit_hash FROM eval_runs WHERE run_id = 'old'") == kept


def test_the_tables_that_other_tools_read_have_the_columns_that_they_expect(tmp_path: Path) -> None:
    Database(tmp_path).put_run(record(), [("q1", "{}")])
    columns = {
        table: [row[1] for row in rows(tmp_path / DATABASE, f"PRAGMA table_info({table})")]
        for table in ("eval_runs", "eval_query_results")
    }
    assert columns == {
        "eval_runs": ["run_id", "suite", "config_snapshot_json", "aggregate_json", "commit_hash", "created_at"],
        "eval_query_results": ["run_id", "query_id", "result_json"],
    }


def test_a_database_of_a_newer_version_is_refused_and_left_as_it_is(tmp_path: Path) -> None:
    at_version(tmp_path / DATABASE, SCHEMA_VERSION)
    with closing(sqlite3.connect(tmp_path / DATABASE)) as connection:
        connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION + 1}")
    before = (tmp_path / DATABASE).read_bytes()
    database = Database(tmp_path)
    calls: list[Callable[[], Any]] = [
        lambda: database.put_run(record(), []),
        database.runs,
        lambda: database.delete_run("r"),
    ]
    for call in calls:
        with pytest.raises(ConfigError) as raised:
            call()
        assert "written by a newer judgekit (schema 4; this one reads up to 3)" in str(raised.value)
    assert (tmp_path / DATABASE).read_bytes() == before


def test_a_migration_that_fails_leaves_the_version_before(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    at_version(tmp_path / DATABASE, 1)
    broken = (*MIGRATIONS[:2], ("CREATE TABLE extra (a)", "CREATE TABLE eval_runs (a)"))
    monkeypatch.setattr("judgekit.storage.migrations.MIGRATIONS", broken)
    with closing(sqlite3.connect(tmp_path / DATABASE, isolation_level=None)) as connection:
        with pytest.raises(sqlite3.OperationalError):
            migrate(connection, "x")
        assert not connection.in_transaction
    assert rows(tmp_path / DATABASE, "PRAGMA user_version") == [(1,)]
    tables = {row[0] for row in rows(tmp_path / DATABASE, "SELECT name FROM sqlite_master WHERE type = 'table'")}
    assert tables == {"eval_runs", "eval_query_results"}


def test_a_run_comes_back_as_it_was_put_and_is_replaced_as_a_whole(tmp_path: Path) -> None:
    database = Database(tmp_path)
    old = {"metrics_version": 1, "scored_by": "0.1.0", "replaced_at": "t", "aggregate": {"mrr": 0.4}}
    database.put_run(record(tags=["b", "a"], history=[old], points=[a_point()]), [("q1", "{}"), ("q2", "{}")])
    database.put_run(record(tags=["c"], n_cases=1), [("q3", '{"scores":{}}')])
    [run] = database.runs()
    assert (run.tags, run.n_cases, run.aggregate, run.figures) == (("c",), 1, {"mrr": 0.5}, {"mrr": [0.5, 2, 0]})
    assert rows(database.path, "SELECT query_id, result_json FROM eval_query_results") == [("q3", '{"scores":{}}')]
    assert rows(database.path, "SELECT * FROM aggregate_history") == []
    assert database.points() == []


def test_texts_of_a_run_are_never_a_part_of_a_statement(tmp_path: Path) -> None:
    database = Database(tmp_path)
    nasty = "'; DROP TABLE eval_runs; --"
    database.put_run(record(nasty, suite=nasty, tags=[nasty], config={"a": "\ud800\x00"}), [(nasty, "{}")])
    assert [run.run_id for run in database.runs(suite=nasty, tag=nasty)] == [nasty]
    assert database.runs(suite="' OR 1=1 --") == []
    database.delete_run("' OR 1=1 --")
    assert database.run_ids() == {nasty}


def test_runs_are_listed_newest_first_by_suite_and_tag_and_up_to_a_limit(tmp_path: Path) -> None:
    database = Database(tmp_path)
    database.put_run(record("a", tags=["x"]), [])
    database.put_run(record("b", suite="other", tags=["x", "y"]), [])
    database.put_run(record("c"), [])
    assert [run.run_id for run in database.runs()] == ["c", "b", "a"]
    assert [run.run_id for run in database.runs(limit=1)] == ["c"]
    assert [run.run_id for run in database.runs(suite="suite")] == ["c", "a"]
    assert [run.run_id for run in database.runs(tag="x")] == ["b", "a"]
    assert database.runs(suite="other", tag="y")[0].tags == ("x", "y")


def test_a_run_that_is_deleted_takes_all_its_rows_along(tmp_path: Path) -> None:
    database = Database(tmp_path)
    old: dict[str, Any] = {"metrics_version": 1, "scored_by": None, "replaced_at": "t", "aggregate": {}}
    for run_id in ("a", "b"):
        database.put_run(record(run_id, tags=["x"], history=[old], points=[a_point(run_id)]), [("q", "{}")])
    database.delete_run("a")
    tables = ("eval_runs", "eval_query_results", "run_facts", "run_tags", "aggregate_history", "drift_checks")
    for table in tables:
        assert rows(database.path, f"SELECT run_id FROM {table}") == [("b",)], table


def test_tags_and_points_of_a_run_that_is_not_indexed_are_answered_with_no(tmp_path: Path) -> None:
    database = Database(tmp_path)
    assert not database.put_tags("r", ["x"])
    assert not database.put_point(a_point())
    database.put_run(record(), [])
    assert database.put_tags("r", ["x"])
    assert database.put_point(a_point())
    assert database.put_point(a_point())  # the same one again
    assert database.runs()[0].tags == ("x",)
    assert database.points() == [a_point()]


def test_points_are_found_by_judge_and_by_the_beginning_of_the_data_set(tmp_path: Path) -> None:
    database = Database(tmp_path)
    points = [a_point(), a_point(judge="correctness"), a_point(dataset_sha256="xyz", created_at="2025")]
    database.put_run(record(points=points), [])
    assert [point.created_at for point in database.points("groundedness")] == ["2025", points[0].created_at]
    assert database.points(dataset="ab") == [point for point in database.points() if point.dataset_sha256 == "abc"]
    assert database.points(dataset="%") == []


def test_reading_makes_no_database(tmp_path: Path) -> None:
    database = Database(tmp_path)
    assert (database.runs(), database.run_ids(), database.points()) == ([], set(), [])
    assert list(tmp_path.iterdir()) == []


def test_results_that_cannot_be_read_to_the_end_leave_the_old_ones(tmp_path: Path) -> None:
    database = Database(tmp_path)
    database.put_run(record(), [("q1", "{}")])

    def results() -> Any:
        yield "q2", "{}"
        raise StorageError("scores.jsonl: damaged")

    with pytest.raises(StorageError, match="damaged"):
        database.put_run(record(suite="new"), results())
    assert rows(database.path, "SELECT query_id FROM eval_query_results") == [("q1",)]
    assert [run.suite for run in database.runs()] == ["suite"]


@pytest.mark.parametrize("content", [b"SQLite format 3\x00" + bytes(4000), b"not a database at all" * 60])
def test_a_damaged_database_is_set_aside_by_a_writer_and_named_by_a_reader(tmp_path: Path, content: bytes) -> None:
    (tmp_path / DATABASE).write_bytes(content)
    with pytest.raises(StorageError, match="it is damaged, `judgekit runs reindex` builds a new one"):
        Database(tmp_path).runs()
    database = Database(tmp_path)
    database.put_run(record(), [])
    assert database.set_aside is not None
    assert database.set_aside.read_bytes() == content
    assert [run.run_id for run in database.runs()] == ["r"]


def test_a_locked_database_is_an_error_after_the_wait_and_never_set_aside(tmp_path: Path) -> None:
    Database(tmp_path).put_run(record(), [])
    with closing(sqlite3.connect(tmp_path / DATABASE, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        database = Database(tmp_path, busy_seconds=0.05)
        with pytest.raises(StorageError, match="cannot be written: database is locked"):
            database.put_run(record("s"), [])
        assert database.set_aside is None
        # Readers do not wait for it.
        assert [run.run_id for run in database.runs()] == ["r"]
    assert json.loads(json.dumps([run.run_id for run in Database(tmp_path).runs()])) == ["r"]
