"""How SQLite keeps its journal: by the file system that a folder is on, or as the variable says."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

import judgekit
from judgekit.core.errors import ConfigError
from judgekit.storage import sqlite_files
from judgekit.storage.database import Database
from judgekit.storage.reply_cache import DiskReplyCache
from judgekit.storage.sqlite_files import JOURNAL_VARIABLE, journal_mode
from tests.builders import write_suite


def mounted(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, *mounts: tuple[Path, str]) -> None:
    """Let the system say that a file system of some type is at each of the places, the root being ext4."""
    lines = [
        f"{number} 1 0:{number} / {str(place).replace(' ', chr(92) + '040')} rw,relatime shared:1 - {kind} server:/x rw"
        for number, (place, kind) in enumerate([(Path("/"), "ext4"), *mounts], start=20)
    ]
    (tmp_path / "mountinfo").write_text("\n".join(["a torn line", *lines]) + "\n")
    monkeypatch.setattr(sqlite_files, "_MOUNTS", tmp_path / "mountinfo")
    monkeypatch.delenv(JOURNAL_VARIABLE, raising=False)


@pytest.mark.parametrize(
    ("kind", "mode"),
    [
        ("nfs", "delete"),
        ("nfs4", "delete"),
        ("cifs", "delete"),
        ("smb3", "delete"),
        ("9p", "delete"),
        ("lustre", "delete"),
        ("fuse.sshfs", "delete"),
        ("fuse.s3fs", "delete"),
        ("ext4", "wal"),
        ("xfs", "wal"),
        ("overlay", "wal"),
        ("tmpfs", "wal"),
        ("fuseblk", "wal"),  # a disk with NTFS
    ],
)
def test_a_network_file_system_gets_no_wal(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, kind: str, mode: str
) -> None:
    mounted(monkeypatch, tmp_path, (tmp_path / "my share", kind))
    assert journal_mode(tmp_path / "my share" / "team" / "results") == mode
    assert journal_mode(tmp_path / "my share2") == "wal"


def test_the_innermost_mount_decides_and_of_two_at_one_place_the_later(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    share = tmp_path / "share"
    mounted(monkeypatch, tmp_path, (share / "disk", "xfs"), (share, "xfs"), (share, "nfs4"))
    assert journal_mode(share / "a") == "delete"
    assert journal_mode(share / "disk" / "a") == "wal"


def test_a_link_is_followed_to_the_share_it_leads_to(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    share = tmp_path / "share"
    share.mkdir()
    (tmp_path / "results").symlink_to(share)
    mounted(monkeypatch, tmp_path, (share, "nfs4"))
    assert journal_mode(tmp_path / "results") == "delete"


def test_the_variable_says_it_where_the_system_cannot(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    mounted(monkeypatch, tmp_path, (tmp_path, "nfs4"))
    monkeypatch.setenv(JOURNAL_VARIABLE, "WAL")
    assert journal_mode(tmp_path) == "wal"
    monkeypatch.setenv(JOURNAL_VARIABLE, "memory")
    with pytest.raises(ConfigError, match="JUDGEKIT_SQLITE_JOURNAL: expected wal or delete, found 'memory'"):
        journal_mode(tmp_path)
    monkeypatch.delenv(JOURNAL_VARIABLE)
    monkeypatch.setattr(sqlite_files, "_MOUNTS", tmp_path / "no such file")  # not Linux
    assert journal_mode(tmp_path) == "wal"


def modes(results: Path) -> list[str]:
    """Of the reply cache, which is opened once more, and of the results database."""
    cache = DiskReplyCache(results / ".cache")
    cache.put_many([("key", "reply")])
    assert cache.get("key") == "reply"
    cache.close()
    found = []
    for path in (results / ".cache" / "cache.db", results / "judgekit.db"):
        with closing(sqlite3.connect(path)) as connection:
            found.append(connection.execute("PRAGMA journal_mode").fetchone()[0])
    return found


@pytest.mark.slow
def test_a_run_on_a_share_uses_no_wal_also_in_databases_that_were_made_on_a_disk(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    config = write_suite(tmp_path)
    results = tmp_path / "results"
    monkeypatch.setenv(JOURNAL_VARIABLE, "wal")
    judgekit.run(config, run_id="on-disk")
    assert modes(results) == ["wal", "wal"]
    mounted(monkeypatch, tmp_path, (results, "nfs4"))
    judgekit.run(config, run_id="on-share")
    assert modes(results) == ["delete", "delete"]
    assert not [*results.rglob("*-wal"), *results.rglob("*-shm")]
    assert {run.run_id for run in Database(results).runs()} == {"on-disk", "on-share"}
