"""A byte that changed in one of the two databases: readers say one line, writers set the file aside and go on."""

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

import judgekit
from judgekit.core.errors import StorageError
from judgekit.storage.cache_entries import cache_record, open_reader
from judgekit.storage.database import Database
from judgekit.storage.reply_cache import open_reply_cache
from judgekit.storage.run_index import reindex
from tests.builders import write_suite


def schema_byte(data: bytes) -> bytes:
    at = data.index(b"CREATE TABLE") + len(b"CREATE TABLE ")
    return data[:at] + b"\xff" + data[at + 1 :]


def other_column(data: bytes) -> bytes:
    """The text of the schema is whole and names another column than the program asks for."""
    return data.replace(b"drift_checks", b"drifd_checks").replace(b"store_time", b"stare_time")


DAMAGES = [
    pytest.param(schema_byte, id="a byte of the schema that is no text"),
    pytest.param(other_column, id="other names in the schema"),
    pytest.param(lambda data: data[:100] + bytes(3000) + data[3100:], id="zeros in the first page"),
    pytest.param(lambda data: data[: len(data) // 3], id="cut"),
    pytest.param(lambda _: b"these are my notes\n" * 300, id="a text file"),
]


def spoil(path: Path, damage: Callable[[bytes], bytes]) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    path.write_bytes(damage(path.read_bytes()))


@pytest.mark.parametrize("damage", DAMAGES)
def test_attack_04_a_broken_results_database_is_named_by_readers_and_cured_by_reindex(
    tmp_path: Path, damage: Callable[[bytes], bytes]
) -> None:
    judgekit.run(write_suite(tmp_path), run_id="r")
    results = tmp_path / "results"
    spoil(results / "judgekit.db", damage)
    for read in (Database(results).runs, Database(results).run_ids, Database(results).points):
        with pytest.raises(StorageError, match=r"judgekit\.db: cannot be read: .*`judgekit runs reindex` builds a new"):
            read()
    done = reindex(results, Database(results))
    assert (done.n_indexed, done.skipped) == (1, [])
    assert done.set_aside is not None
    assert [run.run_id for run in Database(results).runs()] == ["r"]


def test_attack_04_reindex_reads_the_whole_file_for_damage(tmp_path: Path) -> None:
    judgekit.run(write_suite(tmp_path, n_cases=40), run_id="r")
    results = tmp_path / "results"

    def last_page(data: bytes) -> bytes:
        return data[:-4096] + b"\xff" * 4096

    spoil(results / "judgekit.db", last_page)
    assert reindex(results, Database(results)).set_aside is not None
    assert reindex(results, Database(results)).set_aside is None


@pytest.mark.parametrize("damage", DAMAGES)
def test_attack_04_a_broken_reply_cache_is_set_aside_with_a_warning(
    tmp_path: Path, damage: Callable[[bytes], bytes]
) -> None:
    folder = tmp_path / ".cache"
    cache, _ = open_reply_cache(folder)
    assert cache is not None
    cache.put_many([(f"reply:{number}", "text") for number in range(20)])
    cache.close()
    spoil(folder / "cache.db", damage)

    with pytest.raises(StorageError, match=r"\.cache: the cache is damaged as a whole: "):
        reader = open_reader(folder)
        assert reader is not None
        with reader:
            cache_record(reader)
    again, [(code, message)] = open_reply_cache(folder)
    assert again is not None
    assert code == "cache_damaged"
    assert "set aside as" in message
    again.put_many([("reply:new", "text")])
    assert again.get("reply:new") == "text"
    again.close()


def test_attack_04_a_folder_in_the_place_of_a_database_costs_no_run(tmp_path: Path) -> None:
    config = write_suite(tmp_path)
    (tmp_path / "results" / "judgekit.db").mkdir(parents=True)
    summary = judgekit.run(config, run_id="r")
    assert summary.status == "complete"
    assert [notice.code for notice in summary.warnings if "set aside as" in notice.message] == ["index_damaged"]
    assert [run.run_id for run in Database(tmp_path / "results").runs()] == ["r"]

    (tmp_path / ".cache" / "cache.db").mkdir(parents=True)
    cache, [(code, _)] = open_reply_cache(tmp_path / ".cache")
    assert code == "cache_damaged"
    assert cache is not None
    cache.close()
