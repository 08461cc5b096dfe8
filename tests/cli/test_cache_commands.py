"""`judgekit cache` as its users meet it: what it prints, its exit codes, and that it never runs what it reads."""

import hashlib
import json
import os
import pickle
import pty
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from judgekit.core.cache_keys import KEY_VERSION, REPLY_PREFIX
from judgekit.storage.reply_cache import DiskReplyCache, checksum_of
from judgekit.testing import FaultServer
from tests.builders import read_json, read_lines, write_suite
from tests.cli.fork_server import ENVIRONMENT, judgekit, one_error_line

REPLY = json.dumps(
    {
        "text": '{"score": 5}',
        "finish_reason": "stop",
        "refusal": None,
        "usage": {"prompt_tokens": 7, "completion_tokens": 3, "cached_tokens": None},
        "served_model": "m",
        "fingerprint": None,
        "source": "content",
    }
)


def key(name: str, prefix: str = REPLY_PREFIX) -> str:
    return prefix + hashlib.sha256(name.encode()).hexdigest()


def fill(folder: Path, entries: dict[str, str]) -> Path:
    """A results folder with these entries in its cache."""
    cache = DiskReplyCache(folder / "results" / ".cache")
    cache.put_many(list(entries.items()))
    cache.close()
    return folder / "results" / ".cache" / "cache.db"


def tamper(database: Path, statement: str, *values: Any) -> None:
    connection = sqlite3.connect(database)
    with connection:
        connection.execute(statement, values)
    connection.close()


def make_old(folder: Path) -> None:
    """What a tool with another key version left: the same replies under keys that are never asked for again."""
    cache = DiskReplyCache(folder)
    for name in list(cache.keys()):
        text = cache.get(name)
        if name.startswith(REPLY_PREFIX) and text is not None:
            cache.put_many([(name.replace(REPLY_PREFIX, "reply:1:"), text)])
            cache.delete(name)
    cache.close()


def stats(folder: Path) -> Any:
    return json.loads(judgekit("cache", "stats", "--json", cwd=folder).stdout)


@pytest.fixture
def server() -> Iterator[FaultServer]:
    with FaultServer() as running:
        yield running


@pytest.mark.parametrize("command", ["stats", "verify", "clear"])
def test_an_absent_cache_is_said_and_is_no_error_and_none_is_made(tmp_path: Path, command: str) -> None:
    result = judgekit("cache", command, cwd=tmp_path)
    assert (result.returncode, result.stdout) == (0, "no cache at results/.cache\n")
    assert stats(tmp_path) == {"path": "results/.cache", "exists": False}
    assert list(tmp_path.iterdir()) == []


def test_stats_count_replies_capabilities_other_versions_and_damage_apart(tmp_path: Path, server: FaultServer) -> None:
    config = write_suite(tmp_path, server.base_url)
    judgekit("run", str(config), "--run-id", "a", cwd=tmp_path)
    database = fill(
        tmp_path, {key("old", "reply:1:"): "x", key("bare", ""): "x", key("z", "reply:9:"): "x", "odd": "x"}
    )
    tamper(
        database,
        "UPDATE Cache SET value = 'altered' WHERE rowid = (SELECT min(rowid) FROM Cache WHERE key LIKE 'reply:2%')",
    )
    record = stats(tmp_path)
    assert record["n_entries"] == 6 + 1 + 4
    assert record["n_replies"] == 5
    assert record["n_capabilities"] == 1
    assert record["n_outputs"] == 0
    assert record["n_damaged"] == 1
    assert record["n_other_versions"] == {"1": 2, "9": 1, "unknown": 1}
    assert record["key_version"] == KEY_VERSION
    assert record["bytes_on_disk"] >= database.stat().st_size > 0
    assert record["oldest"] <= record["newest"]
    text = judgekit("cache", "stats", cwd=tmp_path).stdout
    assert "  replies             5 (key version 2)\n" in text
    assert "4 (version 1: 2, version 9: 1, version unknown: 1); never asked for again" in text
    assert "1; see `judgekit cache verify`" in text


def test_results_dir_names_another_cache(tmp_path: Path) -> None:
    fill(tmp_path / "elsewhere", {key("a"): REPLY})
    result = judgekit("cache", "stats", "--json", "--results-dir", "elsewhere/results", cwd=tmp_path)
    assert json.loads(result.stdout)["n_replies"] == 1


def test_verify_lists_damaged_keys_exits_4_and_drops_them_when_told(tmp_path: Path) -> None:
    database = fill(tmp_path, {key("a"): REPLY, key("b"): REPLY, key("c"): REPLY})
    assert judgekit("cache", "verify", cwd=tmp_path).stdout == "results/.cache: all 3 entries are sound\n"
    tamper(database, "UPDATE Cache SET value = replace(value, '5', '4') WHERE key = ?", key("b"))
    before = database.read_bytes()
    result = judgekit("cache", "verify", cwd=tmp_path)
    assert result.returncode == 4
    assert result.stdout == f"damaged: {key('b')}\n"
    assert one_error_line(result).startswith("results/.cache: 1 of 3 entries are damaged; runs ask them again")
    assert database.read_bytes() == before
    dropped = judgekit("cache", "verify", "--delete", cwd=tmp_path)
    assert dropped.returncode == 0
    assert "dropped 1 damaged of 3 entries" in dropped.stdout
    assert judgekit("cache", "verify", cwd=tmp_path).returncode == 0
    cache = DiskReplyCache(database.parent)
    assert len(cache._cache) == len(list(cache.keys())) == 2  # diskcache's own counter agrees
    cache.close()


class Payload:
    """Unpickled, it makes a folder."""

    def __init__(self, target: Path) -> None:
        self.target = target

    def __reduce__(self) -> tuple[Any, tuple[str]]:
        return os.mkdir, (str(self.target),)


def test_d10_pickles_files_and_bytes_in_the_database_are_damage_and_are_never_run_nor_followed(tmp_path: Path) -> None:
    payload = pickle.dumps(Payload(tmp_path / "ran"))
    victim = tmp_path / "precious"
    victim.write_bytes(payload)
    database = fill(tmp_path, {key(name): REPLY for name in "abcdef"})
    tamper(database, "UPDATE Cache SET mode = 4, value = ? WHERE key = ?", payload, key("a"))
    tamper(database, "UPDATE Cache SET mode = 4, value = NULL, filename = '../../precious' WHERE key = ?", key("b"))
    tamper(database, "UPDATE Cache SET key = ?, raw = 0 WHERE key = ?", payload, key("c"))
    tamper(database, "UPDATE Cache SET value = CAST(x'ff41' AS TEXT) WHERE key = ?", key("d"))
    tamper(database, "UPDATE Cache SET key = CAST(x'ff41' AS TEXT) WHERE key = ?", key("e"))
    result = judgekit("cache", "verify", cwd=tmp_path)
    assert result.returncode == 4
    assert result.stdout.splitlines() == [
        f"damaged: {name}" for name in (key("a"), key("b"), "row 3", key("d"), "row 5")
    ]
    assert stats(tmp_path)["n_damaged"] == 5
    assert judgekit("cache", "export", "x.jsonl", cwd=tmp_path).returncode == 0
    assert judgekit("cache", "verify", "--delete", cwd=tmp_path).returncode == 0
    assert stats(tmp_path)["n_entries"] == 1
    assert victim.read_bytes() == payload
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize("command", [("stats",), ("verify",), ("clear", "--yes"), ("export", "x.jsonl")])
def test_a_database_that_is_none_is_one_line_and_exit_4_and_stays(tmp_path: Path, command: tuple[str, ...]) -> None:
    (tmp_path / "results" / ".cache").mkdir(parents=True)
    (tmp_path / "results" / ".cache" / "cache.db").write_bytes(b"junk" * 999)
    result = judgekit("cache", *command, cwd=tmp_path)
    assert result.returncode == 4
    assert "results/.cache: the cache is damaged as a whole" in one_error_line(result)
    assert (tmp_path / "results" / ".cache" / "cache.db").exists()


@pytest.mark.slow
def test_d21_entries_of_an_older_key_version_are_misses_told_in_one_line_and_can_be_dropped(
    tmp_path: Path, server: FaultServer
) -> None:
    config = write_suite(tmp_path, server.base_url)
    judgekit("run", str(config), "--run-id", "a", cwd=tmp_path)
    database = tmp_path / "results" / ".cache" / "cache.db"
    make_old(database.parent)
    n_requests = server.log.totals.n_requests

    result = judgekit("run", str(config), "--run-id", "b", cwd=tmp_path)

    assert result.returncode == 0, result.stderr
    assert server.log.totals.n_requests == n_requests + 6
    lines = [line for line in result.stdout.splitlines() if "key version" in line]
    assert len(lines) == 1
    assert "cached entries ignored: 6 of key version 1, since this judgekit writes key version 2" in lines[0]
    codes = [item["code"] for item in read_json(tmp_path / "results" / "b" / "metrics.json")["warnings"]]
    assert codes.count("cache_old_entries") == 1
    assert stats(tmp_path)["n_other_versions"] == {"1": 6}

    assert "dropped 6 entries of other key versions" in judgekit("cache", "clear", "--old", "-y", cwd=tmp_path).stdout
    assert stats(tmp_path)["n_replies"] == 6
    third = judgekit("run", str(config), "--run-id", "c", cwd=tmp_path)
    assert "cached entries ignored" not in third.stdout
    assert server.log.totals.n_requests == n_requests + 6


def test_clear_needs_yes_where_nobody_can_be_asked_and_gives_the_space_back(tmp_path: Path) -> None:
    database = fill(tmp_path, {key(str(number)): "x" * 5000 for number in range(1500)})
    refused = judgekit("cache", "clear", cwd=tmp_path)
    assert refused.returncode == 2
    assert "would drop 1,500 entries; say --yes" in one_error_line(refused)
    assert stats(tmp_path)["n_entries"] == 1500
    size = database.stat().st_size
    cleared = judgekit("cache", "clear", "--yes", cwd=tmp_path)
    assert (cleared.returncode, cleared.stdout) == (0, "results/.cache: dropped 1,500 entries\n")
    assert stats(tmp_path)["n_entries"] == 0
    assert database.stat().st_size < size / 10


@pytest.mark.parametrize(("answer", "n_left"), [("n\n", 1), ("y\n", 0)])
@pytest.mark.slow
@pytest.mark.usefixtures("ends_processes")
def test_clear_asks_on_a_terminal(tmp_path: Path, answer: str, n_left: int) -> None:
    fill(tmp_path, {key("a"): REPLY})
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "judgekit", "cache", "clear"],
        cwd=tmp_path,
        env=ENVIRONMENT,
        stdin=theirs,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    os.write(ours, answer.encode())
    _, stderr = process.communicate(timeout=30)
    os.close(ours)
    os.close(theirs)
    assert process.returncode == 0
    assert "drop 1 entries? [y/N]" in stderr
    assert ("nothing was dropped" in stderr) == (n_left == 1)
    assert stats(tmp_path)["n_entries"] == n_left


@pytest.mark.slow
def test_exported_replies_answer_a_run_on_another_machine(tmp_path: Path, server: FaultServer) -> None:
    config = write_suite(tmp_path / "one", server.base_url)
    judgekit("run", str(config), "--run-id", "a", cwd=tmp_path / "one")
    exported = judgekit("cache", "export", "../replies.jsonl", cwd=tmp_path / "one")
    assert exported.stdout == "../replies.jsonl: 6 replies; left out: 0 damaged, 0 of other key versions\n"
    other = write_suite(tmp_path / "two", server.base_url)
    imported = judgekit("cache", "import", "../replies.jsonl", cwd=tmp_path / "two")
    assert "6 replies imported; 0 were there already" in imported.stdout
    again = judgekit("cache", "import", "../replies.jsonl", cwd=tmp_path / "two")
    assert "0 replies imported; 6 were there already" in again.stdout
    judgekit("run", str(other), "--run-id", "a", cwd=tmp_path / "two")
    judgments = read_lines(tmp_path / "two" / "results" / "a" / "judgments.jsonl")
    assert [item["from_cache"] for item in judgments] == [True] * 6


def line(name: str = "a", reply: str = REPLY, **changes: str) -> dict[str, str]:
    return {"key": key(name), "reply": reply, "checksum": checksum_of(key(name), reply), **changes}


@pytest.mark.parametrize(
    ("bad", "needle"),
    [
        (
            json.dumps(line(reply=REPLY.replace("5", "4"), checksum=line()["checksum"])).encode(),
            "checksum does not fit",
        ),
        (b"{", "not valid JSON"),
        (b"\x80\x04\x95pickle", "not text: byte 0 is not UTF-8"),
        (b"[1]", "expected an object of the texts key, reply and checksum"),
        (json.dumps({**line(), "extra": "x"}).encode(), "expected an object of the texts"),
        (json.dumps({**line(), "reply": 7}).encode(), "expected an object of the texts"),
        (json.dumps(line(reply="[]")).encode(), "no cached reply"),
        (json.dumps(line(reply=REPLY.replace('"stop"', "7"))).encode(), "no cached reply"),
        (json.dumps({"key": "k", "reply": REPLY, "checksum": checksum_of("k", REPLY)}).encode(), "not one of a reply"),
        (b"[" * 100_000, "not valid JSON"),
    ],
)
def test_import_refuses_what_is_no_sound_text_by_line_and_then_imports_nothing(
    tmp_path: Path, bad: bytes, needle: str
) -> None:
    good = json.dumps(line("good")).encode()
    (tmp_path / "x.jsonl").write_bytes(good + b"\n" + bad + b"\n")
    result = judgekit("cache", "import", "x.jsonl", cwd=tmp_path)
    assert result.returncode == 2
    error = one_error_line(result)
    assert error.startswith("x.jsonl:2: ")
    assert needle in error
    assert stats(tmp_path)["exists"] is False


def test_export_leaves_out_what_no_run_can_use_and_import_does_too(tmp_path: Path) -> None:
    database = fill(tmp_path, {key("a"): REPLY, key("b"): REPLY, key("old", "reply:1:"): REPLY})
    tamper(database, "UPDATE Cache SET value = 'x' WHERE key = ?", key("b"))
    result = judgekit("cache", "export", "x.jsonl", cwd=tmp_path)
    assert "1 replies; left out: 1 damaged, 1 of other key versions" in result.stdout
    # an entry of an older judgekit, which does not hold the time of its reply, gets that at which it was stored
    [exported] = read_lines(tmp_path / "x.jsonl")
    reply = json.loads(exported["reply"])
    assert datetime.now(UTC) - datetime.fromisoformat(reply.pop("replied_at")) < timedelta(hours=1)
    assert (exported["key"], reply) == (line("a")["key"], json.loads(REPLY))
    old = key("old", "reply:1:")
    (tmp_path / "y.jsonl").write_text(json.dumps({"key": old, "reply": REPLY, "checksum": checksum_of(old, REPLY)}))
    assert (
        "0 replies imported; 0 were there already, 1 of" in judgekit("cache", "import", "y.jsonl", cwd=tmp_path).stdout
    )


@pytest.mark.parametrize(
    ("arguments", "code", "needle"),
    [
        (("export", "x.jsonl", "--results-dir", "none"), 2, "no cache at none/.cache, nothing to export"),
        (("export", "here.jsonl"), 2, "here.jsonl: exists already"),
        (("export", "nowhere/x.jsonl"), 2, "nowhere/x.jsonl: no such folder"),
        (("import", "nowhere.jsonl"), 2, "nowhere.jsonl: no such file"),
        (("import", "results"), 2, "results: is not a plain file"),
        (("why", "nowhere", "c1"), 2, "results/nowhere: no run here"),
        (("why", "nowhere", "c1", "quikstart"), 2, "did you mean 'quickstart'?"),
    ],
)
def test_what_the_user_can_mend_is_one_line_and_exit_2(
    tmp_path: Path, arguments: tuple[str, ...], code: int, needle: str
) -> None:
    fill(tmp_path, {key("a"): REPLY})
    (tmp_path / "here.jsonl").touch()
    result = judgekit("cache", *arguments, cwd=tmp_path)
    assert result.returncode == code
    assert needle in one_error_line(result)


def test_why_prints_the_parts_and_the_conclusion_as_text_and_as_json(tmp_path: Path, server: FaultServer) -> None:
    config = write_suite(tmp_path, server.base_url)
    judgekit("run", str(config), "--run-id", "a", cwd=tmp_path)
    lines = judgekit("cache", "why", "a", "c1", cwd=tmp_path).stdout.splitlines()
    assert lines[0].startswith(
        "case c1, judge groundedness: the stored judgment came from the model, not from the cache"
    )
    assert "  prompt        same      v1 (" in "\n".join(lines)
    assert lines[-1] == "would be answered from the cache"
    write_suite(tmp_path, server.base_url, model={"max_output_tokens": 99})
    changed = judgekit("cache", "why", "a", "c1", "--judge", "groundedness", cwd=tmp_path).stdout
    assert ": max_output_tokens 1024 -> 99\n" in changed
    assert changed.endswith("would be asked: parameters changed\n")
    [record] = json.loads(judgekit("cache", "why", "a", "c1", "--json", cwd=tmp_path).stdout)
    assert record["changed"] == ["parameters"]
    assert record["would_hit"] is False


def test_why_needs_no_key_of_a_hosted_model(tmp_path: Path, server: FaultServer) -> None:
    config = write_suite(tmp_path, server.base_url, model={"api_key_env": "SOME_KEY"})
    assert judgekit("run", str(config), "--run-id", "a", cwd=tmp_path, SOME_KEY="sk-abcdefgh").returncode == 0
    result = judgekit("cache", "why", "a", "c1", cwd=tmp_path, SOME_KEY="")
    assert result.returncode == 0, result.stderr
    assert result.stdout.endswith("would be answered from the cache\n")


@pytest.mark.parametrize("command", ["stats", "verify", "why", "export", "import", "clear"])
def test_every_command_has_an_example_in_its_help(tmp_path: Path, command: str) -> None:
    assert f"judgekit cache {command} " in judgekit("cache", command, "--help", cwd=tmp_path).stdout
