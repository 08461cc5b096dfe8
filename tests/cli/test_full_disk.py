"""A disk that is really full: a small file system in memory, mounted for the test."""

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from judgekit.testing import FaultServer, Reply, Request, plausible_verdict, with_latency
from tests.builders import read_json, read_lines, write_suite
from tests.cli.fork_server import judgekit, one_error_line

pytestmark = pytest.mark.slow

N_CASES = 200
N_KILOBYTES = 3072


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """An empty file system of three megabytes."""
    if not sys.platform.startswith("linux") or os.geteuid() != 0:
        pytest.skip("mounting a small file system takes root on Linux")
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={N_KILOBYTES}k", "tmpfs", str(disk)]
    mounted = subprocess.run(mount, capture_output=True, text=True, check=False)
    if mounted.returncode:
        pytest.skip(f"no small file system may be mounted here: {mounted.stderr.strip()}")
    try:
        yield disk
    finally:
        subprocess.run(["umount", str(disk)], check=True)


def fill(disk: Path, *, leave_kilobytes: int) -> Path:
    """A file that takes all room but this."""
    free = os.statvfs(disk)
    n_bytes = free.f_bavail * free.f_frsize - leave_kilobytes * 1024
    filler = disk / "filler"
    filler.write_bytes(b"\0" * n_bytes)
    return filler


def filling(disk: Path, *, once: Callable[[], bool], leave_kilobytes: int) -> Callable[[Request], Reply]:
    """Replies, and a disk that runs full under way."""
    is_filled = False

    def answer(request: Request) -> Reply:
        nonlocal is_filled
        if not is_filled and once():
            is_filled = True
            fill(disk, leave_kilobytes=leave_kilobytes)
        return plausible_verdict(request)

    return with_latency(0.004, then=answer)


@pytest.fixture
def server() -> Iterator[FaultServer]:
    with FaultServer(with_latency(0.004)) as running:
        yield running


# Room for nothing but the folder; for a file; for the first files, but not all the inputs.
@pytest.mark.parametrize("leave_kilobytes", [0, 4, 16, 40])
def test_a_run_on_a_full_disk_asks_nothing_and_begins_once_there_is_room(
    tmp_path: Path, small_disk: Path, server: FaultServer, leave_kilobytes: int
) -> None:
    config = write_suite(tmp_path, server.base_url, n_cases=N_CASES)
    results = small_disk / "results"
    filler = fill(small_disk, leave_kilobytes=leave_kilobytes)

    result = judgekit("run", str(config), "--run-id", "r", "--results-dir", str(results), "--no-cache")
    assert result.returncode == 4, result.stderr
    assert "No space left" in one_error_line(result)
    assert not server.log.chat
    assert not list(results.glob("r/.*.tmp"))

    filler.unlink()
    if (results / "r" / "manifest.json").exists():
        last = judgekit("run", "--resume", str(results / "r"), "--no-cache")
    else:
        last = judgekit("run", str(config), "--run-id", "r", "--results-dir", str(results), "--no-cache")
    assert last.returncode == 0, last.stderr
    assert_each_judged_once(results / "r")


def assert_each_judged_once(folder: Path) -> None:
    judged = [item["case_id"] for item in read_lines(folder / "judgments.jsonl")]
    assert sorted(judged) == sorted(f"c{number}" for number in range(N_CASES))
    metrics = read_json(folder / "metrics.json")
    assert metrics["status"] == "complete"
    assert metrics["overall"]["groundedness"]["n"] == N_CASES


def test_a_disk_that_runs_full_stops_the_run_between_two_lines_and_it_goes_on_once_there_is_room(
    tmp_path: Path, small_disk: Path, server: FaultServer
) -> None:
    results = small_disk / "results"
    path = results / "r" / "judgments.jsonl"
    # Two pages are left: the next batch of lines is longer, so its write ends within a line.
    server.play(filling(small_disk, once=lambda: path.exists() and path.stat().st_size > 4096, leave_kilobytes=8))
    config = write_suite(tmp_path, server.base_url, n_cases=N_CASES)

    result = judgekit("run", str(config), "--run-id", "r", "--results-dir", str(results), "--no-cache")

    assert result.returncode == 4, result.stderr
    assert f"{path}: cannot be written: No space left on device; free space, then --resume" in one_error_line(result)
    kept = path.read_bytes()
    assert kept.endswith(b"\n")
    assert 0 < len(read_lines(path)) < N_CASES
    # The line that did not fit stops the asking.
    assert len(server.log.chat) < N_CASES
    assert not list(results.glob("r/.*.tmp"))

    again = judgekit("run", "--resume", str(results / "r"), "--no-cache")
    assert again.returncode == 4
    assert "No space left" in one_error_line(again)
    assert path.read_bytes().startswith(kept)

    kept = path.read_bytes()
    (small_disk / "filler").unlink()
    last = judgekit("run", "--resume", str(results / "r"), "--no-cache")
    assert last.returncode == 0, last.stderr
    assert path.read_bytes().startswith(kept)
    assert_each_judged_once(results / "r")


def test_criteria_asked_each_by_itself_survive_a_full_disk_whole(
    tmp_path: Path, small_disk: Path, server: FaultServer
) -> None:
    """A judgment of several calls is there with all of them, or not at all."""
    results = small_disk / "results"
    path = results / "r" / "judgments.jsonl"
    server.play(filling(small_disk, once=lambda: path.exists() and path.stat().st_size > 4096, leave_kilobytes=8))
    criteria = {"short": "It is short.", "source": "It names its source."}
    judge = {"name": "rules", "ask": "Does it keep the rules?", "criteria": criteria, "calls": "each", "model": "m"}
    config = write_suite(tmp_path, server.base_url, n_cases=N_CASES, judges=[judge])

    result = judgekit("run", str(config), "--run-id", "r", "--results-dir", str(results), "--no-cache")

    assert result.returncode == 4, result.stderr
    assert f"{path}: cannot be written: No space left on device; free space, then --resume" in one_error_line(result)
    kept = path.read_bytes()
    n_kept = len(read_lines(path))
    assert 0 < n_kept < N_CASES
    (small_disk / "filler").unlink()
    assert judgekit("run", "--resume", str(results / "r"), "--no-cache").returncode == 0
    assert path.read_bytes().startswith(kept)
    judged = read_lines(path)
    assert sorted(item["case_id"] for item in judged) == sorted(f"c{number}" for number in range(N_CASES))
    assert {tuple(said["id"] for said in item["verdict"]["criteria"]) for item in judged} <= {
        ("short", "source"),
        ("source", "short"),
    }


@pytest.mark.parametrize(("when", "code"), [("before", "cache_not_used"), ("under way", "cache_not_written")])
def test_a_reply_cache_on_a_full_disk_is_a_warning_and_nothing_is_lost(
    tmp_path: Path, small_disk: Path, server: FaultServer, when: str, code: str
) -> None:
    config = write_suite(tmp_path, server.base_url, n_cases=N_CASES)
    folder = tmp_path / "results" / "r"
    folder.parent.mkdir()
    (small_disk / "cache").mkdir()
    (folder.parent / ".cache").symlink_to(small_disk / "cache")
    if when == "before":
        fill(small_disk, leave_kilobytes=0)
    else:
        judgments = folder / "judgments.jsonl"
        begun = lambda: judgments.exists() and judgments.stat().st_size > 0  # noqa: E731
        server.play(filling(small_disk, once=begun, leave_kilobytes=0))

    result = judgekit("run", str(config), "--run-id", "r")

    assert result.returncode == 0, result.stderr
    assert_each_judged_once(folder)
    (warning,) = (item for item in read_json(folder / "metrics.json")["warnings"] if item["code"].startswith("cache"))
    assert warning["code"] == code
    assert "database or disk is full" in warning["message"]
    assert f"[{code}]" in result.stdout

    (small_disk / "filler").unlink()
    assert judgekit("run", str(config), "--run-id", "s").returncode == 0
    second = read_json(tmp_path / "results" / "s" / "metrics.json")
    assert not [item for item in second["warnings"] if item["code"].startswith("cache")]
    # What was stored before the disk was full is still there.
    assert (second["cost"]["n_from_cache"] > 0) == (when == "under way")
