"""The reply cache: text only, checked, never evicted, shared by processes, and not stopped by damage."""

import os
import pickle
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import judgekit
from judgekit.core.errors import StorageError
from judgekit.storage import reply_cache
from judgekit.storage.reply_cache import DamagedEntry, DiskReplyCache, TextDisk

ENVIRONMENT = {**os.environ, "PYTHONPATH": str(Path(judgekit.__file__).parents[1])}


@pytest.fixture
def cache(tmp_path: Path) -> Iterator[DiskReplyCache]:
    opened = DiskReplyCache(tmp_path / "cache")
    yield opened
    opened.close()


def tamper(cache: DiskReplyCache, statement: str, *values: Any) -> None:
    connection = sqlite3.connect(cache.folder / "cache.db")
    with connection:
        connection.execute(statement, values)
    connection.close()


@pytest.mark.parametrize(
    "text",
    ["", "{}", "a\nb", "\n", "\\", "灯 😀", "\0", "a\ud800b", "\udfff\ud800", '\\"\ud800', "x" * 2_000_000, "\r\n"],
)
def test_every_text_comes_back_as_it_was(cache: DiskReplyCache, text: str) -> None:
    cache.put_many([("key", text), ("other", "x")])
    assert cache.get("key") == text
    assert cache.get("missing") is None
    assert cache.n_damaged == 0


@settings(max_examples=100, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(text=st.text(alphabet=st.characters(codec=None)))
def test_any_text_comes_back(cache: DiskReplyCache, text: str) -> None:
    cache.put_many([("key", text)])
    assert cache.get("key") == text


def test_the_last_reply_of_a_key_counts_and_can_be_dropped(cache: DiskReplyCache) -> None:
    cache.put_many([("a", "1"), ("b", "2"), ("a", "3")])
    cache.put_many([])
    assert (cache.get("a"), sorted(cache.keys())) == ("3", ["a", "b"])
    cache.delete("a")
    cache.delete("a")
    assert (cache.get("a"), list(cache.keys())) == (None, ["b"])


class Payload:
    """Unpickled, it makes a file."""

    def __init__(self, target: Path) -> None:
        self.target = target

    def __reduce__(self) -> tuple[Any, tuple[str]]:
        return os.mkdir, (str(self.target),)


def test_d10_a_pickle_in_the_database_is_never_run_and_reads_as_a_miss(cache: DiskReplyCache, tmp_path: Path) -> None:
    cache.put_many([("key", "good"), ("other", "good")])
    payload = pickle.dumps(Payload(tmp_path / "ran"))
    tamper(cache, "UPDATE Cache SET mode = 4, value = ? WHERE key = 'key'", payload)
    assert cache.get("key") is None
    assert cache.n_damaged == 1
    assert cache.get("other") == "good"
    assert not (tmp_path / "ran").exists()
    cache.put_many([("key", "new")])
    assert cache.get("key") == "new"


def test_d10_a_pickled_key_is_neither_run_nor_listed(cache: DiskReplyCache, tmp_path: Path) -> None:
    cache.put_many([("key", "good")])
    payload = pickle.dumps(Payload(tmp_path / "ran"))
    tamper(cache, "INSERT INTO Cache (key, raw, mode, value) VALUES (?, 0, 1, 'x')", payload)
    tamper(cache, "INSERT INTO Cache (key, raw, mode, value) VALUES (?, 1, 1, 'x')", payload)
    assert list(cache.keys()) == ["key"]
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize("mode", [2, 3, 4])
def test_d10_a_row_that_names_a_file_neither_reads_nor_deletes_it(
    cache: DiskReplyCache, tmp_path: Path, mode: int
) -> None:
    victim = tmp_path / "precious.txt"
    victim.write_bytes(pickle.dumps(Payload(tmp_path / "ran")))
    cache.put_many([("key", "good"), ("gone", "good")])
    tamper(cache, "UPDATE Cache SET mode = ?, value = NULL, filename = '../precious.txt'", mode)
    assert cache.get("key") is None
    cache.put_many([("key", "new")])
    cache.delete("gone")
    assert cache.get("key") == "new"
    assert victim.exists()
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize(
    ("statement", "value"),
    [
        ("UPDATE Cache SET value = replace(value, 'score', 'scare')", None),
        ("UPDATE Cache SET value = substr(value, 1, 40)", None),
        ("UPDATE Cache SET value = ?", ""),
        ("UPDATE Cache SET value = ?", "no checksum"),
        ("UPDATE Cache SET value = ?", 7),
        ("UPDATE Cache SET value = ?", 1.5),
        ("UPDATE Cache SET value = ?", b"bytes"),
        ("UPDATE Cache SET value = CAST(x'ff41' AS TEXT)", None),
        ("UPDATE Cache SET value = substr(value, 1, 32) || '\\' || 'no json'", None),
        ("UPDATE Cache SET value = substr(value, 1, 32) || '\\' || '[1]'", None),
        ("UPDATE Cache SET value = NULL, mode = 0", None),
    ],
)
def test_a_changed_reply_fails_its_checksum_and_reads_as_a_miss(
    cache: DiskReplyCache, statement: str, value: object
) -> None:
    cache.put_many([("key", '{"score": 4, "reasoning": "score"}')])
    tamper(cache, statement, *([value] if "?" in statement else []))
    assert cache.get("key") is None
    assert cache.n_damaged == 1


def test_a_reply_under_another_key_is_not_believed(cache: DiskReplyCache) -> None:
    cache.put_many([("key", "good")])
    tamper(cache, "UPDATE Cache SET key = 'other'")
    assert cache.get("other") is None
    assert cache.n_damaged == 1


@pytest.mark.parametrize(
    "damage",
    [lambda data: b"\0" * len(data), lambda data: data[:100] + b"\0" * (len(data) - 100), lambda data: b"junk" * 9999],
    ids=["zeroed", "D09-header-only", "no-database"],
)
def test_d09_a_damaged_database_is_set_aside_and_a_new_one_begun(tmp_path: Path, damage: Any) -> None:
    folder = tmp_path / "cache"
    first = DiskReplyCache(folder)
    first.put_many([("key", "good")])
    first.close()
    for name in ("cache.db-wal", "cache.db-shm"):
        (folder / name).unlink(missing_ok=True)
    (folder / "cache.db").write_bytes(damage((folder / "cache.db").read_bytes()))
    for _ in range(2):
        cache = DiskReplyCache(folder)
        cache.put_many([("key", "new")])
        assert cache.get("key") == "new"
        cache.close()
    aside = [path.name for path in tmp_path.iterdir() if path.is_dir() and path != folder]
    assert len(aside) == 1
    assert aside[0].startswith("cache.corrupt-")
    assert (tmp_path / aside[0] / "cache.db").exists()


def test_two_damaged_databases_in_one_second_are_both_kept(tmp_path: Path) -> None:
    for _ in range(2):
        (tmp_path / "cache").mkdir(exist_ok=True)
        for path in (tmp_path / "cache").iterdir():
            path.unlink()
        (tmp_path / "cache" / "cache.db").write_bytes(b"junk" * 9999)
        cache = DiskReplyCache(tmp_path / "cache")
        assert cache.set_aside is not None
        assert cache.set_aside.is_dir()
        cache.close()
    assert len(list(tmp_path.glob("cache.corrupt-*"))) == 2


def test_a_locked_database_is_whole_and_stays_where_it_is(
    cache: DiskReplyCache, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """D07: a lock that is not given up degrades to an uncached run with a warning; it neither hangs nor loses."""
    cache.put_many([("key", "good")])
    cache.close()
    monkeypatch.setattr(reply_cache, "_LOCK_SECONDS", 0.2)
    impatient = DiskReplyCache(cache.folder)
    holder = sqlite3.connect(cache.folder / "cache.db", isolation_level=None)
    holder.execute("BEGIN IMMEDIATE")
    with pytest.raises(StorageError, match="reply cannot be cached: database is locked"):
        impatient.put_many([("key", "new")])
    with pytest.raises(StorageError, match="reply cannot be dropped: database is locked"):
        impatient.delete("key")
    assert impatient.get("key") == "good"
    holder.execute("ROLLBACK")
    holder.close()
    impatient.put_many([("key", "new")])
    assert impatient.get("key") == "new"
    impatient.close()
    assert [path.name for path in tmp_path.iterdir()] == ["cache"]


def test_a_database_that_cannot_be_opened_is_not_taken_for_a_damaged_one(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(StorageError, match="cache cannot be used: File exists"):
        DiskReplyCache(tmp_path / "file")


def test_a_read_only_database_is_an_error_and_not_an_endless_loop(cache: DiskReplyCache) -> None:
    cache.put_many([("key", "good")])
    cache._cache._con.execute("PRAGMA query_only = 1")
    with pytest.raises(StorageError, match="reply cannot be cached: attempt to write a readonly database"):
        cache.put_many([("key", "new")])


def test_d11_a_full_disk_is_named(cache: DiskReplyCache) -> None:
    connection = cache._cache._con
    connection.execute(f"PRAGMA max_page_count = {connection.execute('PRAGMA page_count').fetchone()[0]}")
    with pytest.raises(StorageError, match="reply cannot be cached: database or disk is full"):
        cache.put_many([(str(number), "x" * 100_000) for number in range(20)])
    connection.execute("PRAGMA max_page_count = 1000000")
    cache.put_many([("key", "good")])
    assert list(cache.keys()) == ["key"]


def test_nothing_is_ever_evicted(cache: DiskReplyCache) -> None:
    inner = cache._cache
    assert (inner.eviction_policy, inner.cull_limit, inner.statistics) == ("none", 0, 0)
    assert inner.size_limit >= 2**60
    connection = sqlite3.connect(cache.folder / "cache.db")
    assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    cache.put_many([(str(number), "x") for number in range(3000)])
    assert connection.execute("SELECT count(*), max(expire_time) FROM Cache").fetchone() == (3000, None)
    connection.close()


def test_settings_that_another_program_left_in_the_database_do_not_count(tmp_path: Path) -> None:
    cache = DiskReplyCache(tmp_path / "cache")
    tamper(cache, "UPDATE Settings SET value = 1 WHERE key IN ('size_limit', 'cull_limit')")
    tamper(cache, "UPDATE Settings SET value = 'least-recently-used' WHERE key = 'eviction_policy'")
    cache.close()
    again = DiskReplyCache(tmp_path / "cache")
    assert (again._cache.eviction_policy, again._cache.cull_limit) == ("none", 0)
    again.close()


def test_the_folder_is_for_its_owner_only(cache: DiskReplyCache) -> None:
    assert cache.folder.stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize("value", [b"bytes", 7, None, ["x"]])
def test_the_disk_stores_texts_and_nothing_else(cache: DiskReplyCache, value: Any) -> None:
    disk = TextDisk(str(cache.folder))
    with pytest.raises(TypeError):
        disk.put(value)
    with pytest.raises(TypeError):
        disk.store(value, read=False)
    with pytest.raises(DamagedEntry):
        disk.fetch(1, None, value, read=False)


WRITER = """
import sys
from pathlib import Path
from judgekit.storage.reply_cache import DiskReplyCache
cache = DiskReplyCache(Path(sys.argv[1]))
me = sys.argv[2]
for start in range(0, 200, 10):
    cache.put_many([(f"{me}-{n}", f"reply {me} {n}") for n in range(start, start + 10)] + [("shared", me)])
print(sum(cache.get(f"{me}-{n}") == f"reply {me} {n}" for n in range(200)), cache.n_damaged)
cache.close()
"""


@pytest.mark.parametrize("start", ["new", "damaged"])
@pytest.mark.slow
@pytest.mark.usefixtures("ends_processes")
def test_d07_eight_processes_that_write_at_once_lose_nothing(tmp_path: Path, start: str) -> None:
    folder = tmp_path / "cache"
    if start == "damaged":
        folder.mkdir()
        (folder / "cache.db").write_bytes(b"\0" * 8192)
    writers = [
        subprocess.Popen(
            [sys.executable, "-c", WRITER, str(folder), str(number)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=ENVIRONMENT,
        )
        for number in range(8)
    ]
    for writer in writers:
        out, err = writer.communicate(timeout=120)
        assert (out, err, writer.returncode) == ("200 0\n", "", 0)
    cache = DiskReplyCache(folder)
    assert len(list(cache.keys())) == 1601
    assert all(cache.get(f"{me}-{n}") == f"reply {me} {n}" for me in range(8) for n in range(200))
    cache.close()
    assert len(list(tmp_path.glob("cache.corrupt-*"))) == (start == "damaged")
