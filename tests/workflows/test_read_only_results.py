"""A results folder that cannot be written, as on a read-only disk or in a colleague's home: it can still be read."""

import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

import judgekit
from judgekit.core.errors import StorageError
from judgekit.storage.database import DATABASE, Database
from judgekit.testing import FaultServer
from tests.builders import write_suite
from tests.workflows.engine import good

MOUNTED = 'mount --bind "$1" "$1" && mount -o remount,bind,ro "$1" && shift && "$@"'


def can_mount() -> bool:
    """Whether this user may have mounts of his own, as most Linux systems allow."""
    if shutil.which("unshare") is None:
        return False
    return subprocess.run(["unshare", "-rm", "true"], capture_output=True, check=False).returncode == 0


needs_mounts = pytest.mark.skipif(not can_mount(), reason="a read-only mount needs `unshare -rm`")


def read_only(folder: Path, *command: str) -> subprocess.CompletedProcess[str]:
    """A command of judgekit, for which this folder stands on a read-only disk."""
    inner = ["sh", "-c", MOUNTED, "sh", str(folder), sys.executable, "-m", "judgekit", *command]
    return subprocess.run(
        ["unshare", "-rm", *inner], capture_output=True, text=True, check=False, cwd=folder.parent, timeout=60
    )


@pytest.fixture
def results(tmp_path: Path) -> Path:
    """A folder with one run that was judged by a server, with its database and its cache."""
    with FaultServer(good()) as server:
        judgekit.run(write_suite(tmp_path, server.base_url, spot_check={"n": 3, "repeat": True}), run_id="r")
    return tmp_path / "results"


def with_log(results: Path) -> None:
    """Leave what was written last in the log beside the database, as a process that was killed does."""
    saved = results.parent / "saved"
    saved.mkdir()
    path = results / DATABASE
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("UPDATE eval_runs SET suite = 'from-the-log'")
        connection.commit()
        for file in (path, path.with_name(f"{DATABASE}-wal")):
            shutil.copyfile(file, saved / file.name)
    for file in saved.iterdir():
        shutil.copyfile(file, results / file.name)
    path.with_name(f"{DATABASE}-shm").unlink(missing_ok=True)


def of_older_schema(results: Path) -> None:
    """Take the last table away, so that the database is of the schema before."""
    with closing(sqlite3.connect(results / DATABASE)) as connection:
        connection.execute("DROP TABLE drift_checks")
        connection.execute("PRAGMA user_version = 2")


@needs_mounts
@pytest.mark.slow
def test_attack_15_lists_drift_and_cache_work_on_a_read_only_folder(results: Path) -> None:
    assert read_only(results, "runs", "tag", "r", "x").returncode == 4, "the folder can be written after all"
    for command, said in (
        (("runs", "list"), "groundedness"),
        (("runs", "show", "latest"), "suite, "),
        (("drift",), "groundedness"),
        (("cache", "stats"), "replies"),
    ):
        done = read_only(results, *command)
        assert (done.returncode, done.stderr) == (0, ""), command
        assert said in done.stdout


@needs_mounts
@pytest.mark.parametrize(
    ("change", "said"), [(with_log, "from-the-log"), (of_older_schema, "suite")], ids=["log", "older-schema"]
)
def test_attack_15_what_a_log_holds_and_an_older_schema_are_read_too(
    results: Path, change: Callable[[Path], None], said: str
) -> None:
    change(results)
    done = read_only(results, "runs", "list")
    assert (done.returncode, done.stderr) == (0, "")
    assert said in done.stdout


def test_attack_15_a_database_that_nobody_can_open_is_still_one_line(tmp_path: Path) -> None:
    (tmp_path / DATABASE).mkdir()
    with pytest.raises(StorageError, match="cannot be read: "):
        Database(tmp_path).runs()
