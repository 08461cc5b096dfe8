"""Failure cases of kind D, caching and resuming: each id once, through whole runs against a server."""

import json
import os
import pickle
import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from judgekit.core.errors import StorageError
from judgekit.storage.prompt_files import shipped
from judgekit.storage.recorder import Recorder
from judgekit.storage.reply_cache import DiskReplyCache
from judgekit.storage.run_folder import RunFolder
from judgekit.testing import (
    FaultServer,
    chat_reply,
    empty_reply,
    error_in_200,
    error_reply,
    filtered_reply,
    refused_reply,
    truncated_reply,
    with_latency,
)
from tests.builders import output, read_json, read_lines, write_suite
from tests.workflows.engine import after_capabilities, again, carried_out, good, resumed

pytestmark = pytest.mark.usefixtures("quick_waits")


def n_asked_by(folder: Path, server: FaultServer, run_id: str, **suite: Any) -> int:
    """Requests about cases that one more run of three cases makes."""
    before = len([entry for entry in server.log.chat if entry.body and entry.body["max_tokens"] > 16])
    ran = again(write_suite(folder, server.base_url, n_cases=3, **suite), server, run_id=run_id)
    assert ran.summary is not None
    return len(ran.asked) - before


def own_prompt(folder: Path, change: str) -> str:
    """A folder with groundedness/v1 in another wording."""
    source = shipped("prompts") / "groundedness" / "v1.toml"
    target = folder / "prompts" / "groundedness" / "v1.toml"
    target.parent.mkdir(parents=True, exist_ok=True)
    text = source.read_text(encoding="utf-8")
    assert text.count("support only") == 1
    target.write_text(text.replace("support only", f"support only ({change})"), encoding="utf-8")
    return "prompts"


def test_d02_whatever_is_sent_is_a_part_of_the_key(tmp_path: Path) -> None:
    with FaultServer(good()) as server:
        counts = [
            n_asked_by(tmp_path, server, f"r{number}", model=model)
            for number, model in enumerate(
                [
                    {"max_output_tokens": 512},
                    {"max_output_tokens": 1024},
                    {"max_output_tokens": 512, "seed": 7},
                    {"max_output_tokens": 512, "system_role": False},
                    {"max_output_tokens": 512},
                    {"max_output_tokens": 512, "timeout_seconds": 3, "max_attempts": 2, "max_concurrency": 1},
                ]
            )
        ]
    # Only the last two ask what was asked before.
    assert counts == [3, 3, 3, 3, 0, 0]


def test_d03_another_model_another_server_or_another_wording_is_asked_anew(tmp_path: Path) -> None:
    with FaultServer(good()) as server, FaultServer(good()) as other:
        counts = [
            n_asked_by(tmp_path, server, "first"),
            n_asked_by(tmp_path, server, "model", model={"model": "other-2025-01-01"}),
            n_asked_by(tmp_path, server, "wording", prompts_dir=own_prompt(tmp_path, "be strict")),
            n_asked_by(tmp_path, server, "wording-again", prompts_dir=own_prompt(tmp_path, "be strict")),
            n_asked_by(tmp_path, server, "same-version-other-text", prompts_dir=own_prompt(tmp_path, "be mild")),
            n_asked_by(tmp_path, other, "server"),
            n_asked_by(tmp_path, server, "first-again"),
        ]
    assert counts == [3, 3, 3, 0, 3, 3, 0]


def test_d04_a_threshold_is_applied_to_cached_replies_and_asks_nothing(tmp_path: Path) -> None:
    with FaultServer(good(3)) as server:
        rates = []
        for pass_score, n_expected in ((4, 3), (3, 0)):
            judges = [{"name": "groundedness", "model": "m", "args": {"pass_score": pass_score}}]
            assert n_asked_by(tmp_path, server, f"r{pass_score}", judges=judges) == n_expected
            metrics = read_json(tmp_path / "results" / f"r{pass_score}" / "metrics.json")
            rates.append(metrics["overall"]["groundedness_pass_rate"]["value"])
    assert rates == [0.0, 1.0]


def test_only_replies_with_a_verdict_are_cached(tmp_path: Path) -> None:
    bad = [
        error_reply(400, "no"),
        error_in_200("no", code=400),
        truncated_reply(),
        empty_reply(),
        refused_reply(),
        filtered_reply(),
        chat_reply("four"),
        good(1, usage={"prompt_tokens": 1}),
    ]

    def answer(request: Any) -> Any:
        number = next((n for n in range(len(bad)) if f"kiln c{n} " in request.text.lower()), None)
        return good() if number is None else bad[number]

    rows = [output(f"c{number}", retrieved=[{"text": "x" * 3000}]) for number in range(len(bad) + 1)]
    with FaultServer(answer) as server:
        config = write_suite(tmp_path, server.base_url, n_cases=len(bad) + 1, output_rows=rows)
        first = again(config, server, run_id="first")
        n_first = len(first.asked)
        second = again(config, server, run_id="second")
    failed = {name for name, item in second.judgments.items() if item["failure"]}
    assert failed == {f"c{number}" for number in range(len(bad))}
    assert len(second.asked) - n_first == n_first - 1
    assert [item["from_cache"] for item in second.judgments.values()].count(True) == 1


@pytest.mark.parametrize("reply", [good(), chat_reply("four"), truncated_reply(), error_reply(400, "no")])
def test_equal_questions_of_one_run_make_the_calls_of_one(tmp_path: Path, reply: Any) -> None:
    same = [output(f"c{number}", answer="Same.", retrieved=[{"text": "Same."}]) for number in range(12)]
    script = after_capabilities(reply)
    ran = carried_out(tmp_path, with_latency(0.01, then=script), output_rows=same, n_cases=12)
    assert len(ran.judgments) == 12
    assert len({json.dumps([item["verdict"], item["failure"]]) for item in ran.judgments.values()}) == 1
    n_calls = sum(item["n_requests"] for item in ran.judgments.values())
    assert n_calls == len(ran.asked)
    if reply.status == 200:
        # A reply that cannot be read is asked once more.
        assert n_calls == (2 if "four" in str(reply.body) else 1)


ONE_RUN = "import sys, judgekit; judgekit.run(sys.argv[1], run_id=sys.argv[2])"


@pytest.mark.slow
@pytest.mark.usefixtures("ends_processes")
def test_d07_processes_share_a_cache_and_all_finish(tmp_path: Path) -> None:
    n_processes, n_cases = 4, 80
    with FaultServer(good()) as server:
        config = write_suite(tmp_path, server.base_url, n_cases=n_cases)
        processes = [
            subprocess.Popen(
                [sys.executable, "-c", ONE_RUN, str(config), f"r{number}"], stderr=subprocess.PIPE, text=True
            )
            for number in range(n_processes)
        ]
        errors = [process.communicate(timeout=120)[1] for process in processes]
    assert [process.returncode for process in processes] == [0] * n_processes, errors
    for number in range(n_processes):
        folder = tmp_path / "results" / f"r{number}"
        assert len(read_lines(folder / "judgments.jsonl")) == n_cases
        assert not [
            notice for notice in read_json(folder / "metrics.json")["warnings"] if notice["code"].startswith("cache")
        ]
    keys = list(DiskReplyCache(tmp_path / "results" / ".cache").keys())
    assert len(keys) == len(set(keys)) == n_cases + 1  # and what the model takes


def test_d09_a_broken_cache_is_set_aside_and_the_run_goes_on(tmp_path: Path) -> None:
    with FaultServer(good()) as server:
        config = write_suite(tmp_path, server.base_url)
        first = again(config, server, run_id="first")
        judged = (first.folder / "judgments.jsonl").read_bytes()
        database = tmp_path / "results" / ".cache" / "cache.db"
        database.write_bytes(database.read_bytes()[:100] + b"\0" * 4000)
        for name in ("cache.db-wal", "cache.db-shm"):
            database.with_name(name).unlink(missing_ok=True)
        second = again(config, server, run_id="second")
    assert second.summary is not None
    assert "set aside as" in second.warnings["cache_damaged"]
    assert len(list((tmp_path / "results").glob(".cache.corrupt-*"))) == 1
    assert (first.folder / "judgments.jsonl").read_bytes() == judged
    assert len(DiskReplyCache(tmp_path / "results" / ".cache").get(second.judgments["c0"]["key"]) or "") > 10


class Trap:
    """Unpickled, it makes a folder."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> Any:
        return os.mkdir, (str(self.path),)


def test_d10_nothing_in_the_cache_is_ever_unpickled(tmp_path: Path) -> None:
    trap = tmp_path / "trapped"
    payload = pickle.dumps(Trap(trap))
    with FaultServer(good()) as server:
        config = write_suite(tmp_path, server.base_url)
        again(config, server, run_id="first")
        cache = tmp_path / "results" / ".cache"
        assert cache.stat().st_mode & 0o777 == 0o700
        (cache / "00.val").write_bytes(payload)
        with sqlite3.connect(cache / "cache.db") as connection:
            connection.execute("UPDATE Cache SET mode = 4, value = ?", (payload,))
        connection.close()
        second = again(config, server, run_id="second")
    assert second.summary is not None
    assert not trap.exists()
    assert [item["from_cache"] for item in second.judgments.values()] == [False] * 6


def test_d11_a_cache_that_cannot_be_written_is_a_warning(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: Any) -> None:
        raise StorageError("reply cannot be cached: No space left on device")

    monkeypatch.setattr(DiskReplyCache, "put_many", full)
    ran = carried_out(tmp_path, good())
    assert ran.summary is not None
    assert len(ran.judgments) == 6
    assert "No space left on device" in ran.warnings["cache_not_written"]


class FullDisk:
    """A stream that takes so many lines, and then half a line."""

    def __init__(self, stream: Any, n_lines: int) -> None:
        self._stream, self._n_left = stream, n_lines

    def write(self, data: bytes) -> int:
        lines = data.splitlines(keepends=True)
        if len(lines) <= self._n_left:
            self._n_left -= len(lines)
            return int(self._stream.write(data))
        if self._n_left >= 0:
            fits = b"".join(lines[: self._n_left]) + lines[self._n_left][:20]
            self._n_left = -1
            return int(self._stream.write(fits))
        raise OSError(28, "No space left on device")

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


@pytest.mark.slow
def test_d11_a_full_disk_stops_the_calls_and_keeps_what_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def small(path: Path, cache: Any) -> Recorder:
        recorder = Recorder(path, cache)
        recorder._stream = FullDisk(recorder._stream, 10)  # type: ignore[assignment]
        return recorder

    with FaultServer(with_latency(0.03, then=good())) as server:
        config = write_suite(tmp_path, server.base_url, n_cases=60, model={"max_concurrency": 2})
        with monkeypatch.context() as patched:
            patched.setattr("judgekit.workflows.run.Recorder", small)
            ran = again(config, server)
        n_paid = len(ran.asked)
        assert isinstance(ran.error, StorageError)
        assert ran.error.exit_code == 4
        assert "No space left on device" in str(ran.error)
        assert n_paid < 40
        assert len(read_lines(ran.folder / "judgments.jsonl")) == 10  # whole lines, all of them
        whole = resumed(ran)
    assert whole.summary is not None
    assert sorted(whole.judgments) == sorted(f"c{number}" for number in range(60))


def test_d20_a_file_that_cannot_be_replaced_stays_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # Runs on POSIX only (files are locked with flock), where a reader never stands in the way of a rename; what can
    # still fail, as on a full or read-only disk, is an error that leaves the old file whole and nothing beside it.
    folder = RunFolder.create(tmp_path, "r")
    folder.write_json("metrics.json", {"old": True})

    def refuse(*_: Any) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "replace", refuse)
    with pytest.raises(StorageError, match=r"metrics\.json: cannot be written: Permission denied"):
        folder.write_json("metrics.json", {"old": False})
    monkeypatch.undo()
    assert folder.read_json("metrics.json") == {"old": True}
    assert [path.name for path in folder.path.iterdir()] == ["metrics.json"]


def test_d21_entries_of_another_key_version_are_misses_and_stay_where_they_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with FaultServer(good()) as server:
        first = n_asked_by(tmp_path, server, "first")
        with monkeypatch.context() as patched:
            patched.setattr("judgekit.core.judgments.KEY_VERSION", 99)
            other = n_asked_by(tmp_path, server, "other-version")
        back = n_asked_by(tmp_path, server, "back")
    assert (first, other, back) == (3, 3, 0)
