"""The recorder: order, batches, full disks and faults of what it calls."""

import os
import resource
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

import judgekit
from judgekit.core.errors import StorageError
from judgekit.storage.recorder import BATCH_ROWS, Recorder
from judgekit.storage.reply_cache import DiskReplyCache


class FakeCache:
    """Keeps what it is given; `fault` is raised by every write."""

    def __init__(self, fault: Exception | None = None) -> None:
        self.batches: list[list[tuple[str, str]]] = []
        self.fault = fault
        self.n_closed = 0

    def get(self, key: str) -> str | None:
        return dict(pair for batch in self.batches for pair in batch).get(key)

    def stored_at(self, key: str) -> str | None:
        return None

    def put_many(self, items: Sequence[tuple[str, str]]) -> None:
        if self.fault is not None:
            raise self.fault
        self.batches.append(list(items))

    def close(self) -> None:
        self.n_closed += 1


def test_lines_keep_their_order_and_come_in_batches(tmp_path: Path) -> None:
    cache = FakeCache()
    recorder = Recorder(tmp_path / "j.jsonl", cache)
    for number in range(1000):
        recorder.put(b"%d" % number, (str(number), "reply"), None)
    recorder.close()
    assert (tmp_path / "j.jsonl").read_bytes().splitlines() == [b"%d" % number for number in range(1000)]
    assert [key for batch in cache.batches for key, _ in batch] == [str(number) for number in range(1000)]
    assert max(map(len, cache.batches)) <= BATCH_ROWS
    assert len(cache.batches) < 500
    assert cache.n_closed == 1
    assert recorder.cache_warning is None


def test_an_existing_file_is_appended_to(tmp_path: Path) -> None:
    for text in (b"one", b"two"):
        recorder = Recorder(tmp_path / "j.jsonl", None)
        recorder.put(text, None, None)
        recorder.close()
    assert (tmp_path / "j.jsonl").read_bytes() == b"one\ntwo\n"


def test_committed_is_called_after_both_are_stored(tmp_path: Path) -> None:
    path, cache = tmp_path / "j.jsonl", FakeCache()
    seen: list[tuple[bytes, str | None]] = []
    recorder = Recorder(path, cache)
    recorder.put(b"line", ("key", "reply"), lambda: seen.append((path.read_bytes(), cache.get("key"))))
    recorder.close()
    assert seen == [(b"line\n", "reply")]


def test_a_single_line_is_written_without_waiting_for_a_full_batch(tmp_path: Path) -> None:
    recorder, stored = Recorder(tmp_path / "j.jsonl", None), threading.Event()
    recorder.put(b"line", None, stored.set)
    assert stored.wait(10)
    recorder.close()


def test_d11_a_cache_that_cannot_be_written_only_warns(tmp_path: Path) -> None:
    recorder = Recorder(tmp_path / "j.jsonl", FakeCache(StorageError("cache: disk is full")))
    for number in range(600):
        recorder.put(b"%d" % number, ("k", "v"), None)
    recorder.close()
    assert recorder.cache_warning == "cache: disk is full"
    assert len((tmp_path / "j.jsonl").read_bytes().splitlines()) == 600


def wait_for_error(put: Callable[[], None]) -> StorageError:
    for _ in range(500):
        try:
            put()
        except StorageError as error:
            return error
        time.sleep(0.01)
    raise AssertionError("no error came")


def test_d11_a_full_device_stops_the_run_and_reports_nothing_as_stored() -> None:
    stored: list[int] = []
    recorder = Recorder(Path("/dev/full"), None)
    error = wait_for_error(lambda: recorder.put(b"line", None, lambda: stored.append(1)))
    assert str(error) == "/dev/full: cannot be written: No space left on device; free space, then --resume"
    with pytest.raises(StorageError, match="No space left on device"):
        recorder.close()
    assert stored == []


FULL = """
import resource, signal, sys
from pathlib import Path
from judgekit.core.errors import StorageError
from judgekit.storage.recorder import Recorder
resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
recorder = Recorder(Path(sys.argv[1]), None)
try:
    for number in range(500):
        recorder.put(b"%03d " % number + b"x" * 60, None, None)
    recorder.close()
except StorageError as error:
    print(error)
"""


def test_d11_a_disk_that_fills_up_in_the_middle_of_a_line_leaves_whole_lines_only(tmp_path: Path) -> None:
    path = tmp_path / "j.jsonl"
    environment = {**os.environ, "PYTHONPATH": str(Path(judgekit.__file__).parents[1])}
    command = [sys.executable, "-c", FULL, str(path)]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=60, check=True)
    assert done.stdout == f"{path}: cannot be written: File too large; free space, then --resume\n"
    # 65 bytes a line: 15 whole lines are 975 bytes, the sixteenth does not fit into the 1000 that the limit allows.
    assert path.read_bytes().endswith(b"\n")
    assert [line[:3] for line in path.read_bytes().splitlines()] == [b"%03d" % number for number in range(15)]
    assert resource.getrlimit(resource.RLIMIT_FSIZE)[0] != 1000


@pytest.mark.parametrize("where", ["cache", "committed"])
def test_a_fault_of_what_it_calls_is_an_error_and_not_a_dead_thread(tmp_path: Path, where: str) -> None:
    def committed() -> None:
        if where == "committed":
            raise RuntimeError("loop is closed")

    recorder = Recorder(tmp_path / "j.jsonl", FakeCache(RuntimeError("bug") if where == "cache" else None))
    error = wait_for_error(lambda: recorder.put(b"line", ("k", "v"), committed))
    assert "cannot be written: RuntimeError: " in str(error)
    with pytest.raises(StorageError, match="RuntimeError"):
        recorder.close()


def test_a_file_that_cannot_be_opened_is_a_storage_error(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match="cannot be written: Is a directory"):
        Recorder(tmp_path, None)


def test_closing_twice_is_harmless(tmp_path: Path) -> None:
    recorder = Recorder(tmp_path / "j.jsonl", None)
    recorder.close()
    recorder.close()


def test_replies_with_lone_surrogates_do_not_cost_a_judgment(tmp_path: Path) -> None:
    cache = DiskReplyCache(tmp_path / "cache")
    recorder = Recorder(tmp_path / "j.jsonl", cache)
    recorder.put(b"line", ("k", "a\ud800b"), None)
    recorder.close()
    assert recorder.cache_warning is None
    assert cache.get("k") == "a\ud800b"
    assert (tmp_path / "j.jsonl").read_bytes() == b"line\n"
    cache.close()
