"""`judgekit drift` as its users meet it: what fails a pipeline, what is accepted, and a weekly run that was killed."""

import json
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from judgekit.core.cache_keys import REPLY_PREFIX
from judgekit.storage.reply_cache import DiskReplyCache
from judgekit.testing import FaultServer, Request, plausible_verdict, verdict, with_latency
from tests.builders import read_json, read_lines, write_suite
from tests.cli.fork_server import ENVIRONMENT, judgekit

LONG_AGO = "2026-01-01T00:00:00.000+00:00"


def age_the_cache(folder: Path) -> None:
    """The cached replies were given long ago."""
    cache = DiskReplyCache(folder / "results" / ".cache")
    for key in [key for key in cache.keys() if key.startswith(REPLY_PREFIX)]:  # noqa: SIM118  # no mapping
        reply = {**json.loads(cache.get(key) or ""), "replied_at": LONG_AGO}
        cache.put_many([(key, json.dumps(reply))])
    cache.close()


def suite(folder: Path, server: FaultServer, **config: Any) -> None:
    at = {"base_url": server.base_url, "max_concurrency": 2}
    write_suite(
        folder,
        n_cases=30,
        models={"m": {**at, "model": "m-2025-01-01"}, "other": {**at, "model": "other-2025-01-01"}},
        results_dir=None,
        **config,
    )


def ran(folder: Path, run_id: str) -> Any:
    done = judgekit("run", "config.json", "--run-id", run_id, "-q", cwd=folder)
    assert done.returncode == 0, done.stderr
    return done


@pytest.mark.slow
def test_a_history_in_which_nothing_was_asked_fails_a_pipeline_and_says_so(tmp_path: Path) -> None:
    with FaultServer(plausible_verdict) as server:
        suite(tmp_path, server)
        ran(tmp_path, "a")
        age_the_cache(tmp_path)
        again = ran(tmp_path, "b")
    days = r"judge groundedness was not asked: all 30 verdicts from the cache, newest \d+ days old: nothing is known"
    assert re.search(days, again.stdout)
    plain = judgekit("drift", cwd=tmp_path)
    assert plain.returncode == 0
    assert plain.stdout.startswith("groundedness v1 was never asked again, so nothing says that it did not drift")
    failing = judgekit("drift", "--fail-on-drift", cwd=tmp_path)
    assert failing.returncode == 1
    assert "note: groundedness v1: not asked, so nothing says that it did not drift" in failing.stderr


@pytest.mark.slow
def test_an_alarm_lasts_until_it_is_accepted(tmp_path: Path) -> None:
    state = {"moved": False}

    def judge(request: Request) -> Any:
        if '"ready"' in request.text:
            return plausible_verdict(request)
        is_m = str(request.body["model"]).startswith("m-")
        return verdict(1, unsupported=["x"]) if is_m and state["moved"] else verdict(5, supported=["x"])

    with FaultServer(judge) as server:
        suite(tmp_path, server, spot_check={"n": 5, "model": "other"})
        ran(tmp_path, "a")
        few = judgekit("drift", "--fail-on-drift", cwd=tmp_path)
        assert (few.returncode, "insufficient, so nothing says" in few.stderr) == (0, True)
        age_the_cache(tmp_path)
        state["moved"] = True
        ran(tmp_path, "b")
        found = judgekit("drift", "--fail-on-drift", "--stats", cwd=tmp_path)
        assert found.returncode == 1
        assert found.stdout.startswith("groundedness v1 drifted: it judges the same answers differently.")
        assert "the same judge asked again later, m-2025-01-01 with v1: 20 of 20 contradict" in found.stdout
        refused = judgekit("drift", "--usual", "0.2", cwd=tmp_path)
        assert (refused.returncode, "add --accept" in refused.stderr) == (2, True)
        accepted = judgekit("drift", "--accept", "--reason", "a new\x1b[31m snapshot", cwd=tmp_path)
        assert accepted.returncode == 0, accepted.stderr
        assert "`judgekit cache clear` lets the next run ask for new ones" in accepted.stderr
        assert "\x1b" not in accepted.stdout
        assert judgekit("cache", "clear", "--yes", cwd=tmp_path).returncode == 0
        ran(tmp_path, "c")  # new verdicts, by the judge as it is now
        age_the_cache(tmp_path)
        ran(tmp_path, "d")
    quiet = judgekit("drift", "--fail-on-drift", cwd=tmp_path)
    assert quiet.returncode == 0, quiet.stdout
    assert quiet.stdout.startswith("No drift of groundedness v1 was found in 7 points.")


@pytest.mark.slow
@pytest.mark.usefixtures("ends_processes")
def test_a_run_that_is_killed_while_it_asks_again_goes_on_with_the_same_cases(tmp_path: Path) -> None:
    with FaultServer(with_latency(0.05, then=plausible_verdict)) as server:
        suite(tmp_path, server, spot_check={"n": 2, "model": "other"})
        ran(tmp_path, "a")
        age_the_cache(tmp_path)
        path = tmp_path / "results" / "b" / "judgments.jsonl"
        command = [sys.executable, "-m", "judgekit", "run", "config.json", "--run-id", "b", "-q"]
        process = subprocess.Popen(command, cwd=tmp_path, env=ENVIRONMENT, stderr=subprocess.DEVNULL)
        deadline = time.monotonic() + 30
        # 30 cached verdicts, then 2 second opinions and 20 repeats
        while time.monotonic() < deadline and (not path.exists() or path.read_bytes().count(b"\n") < 38):
            time.sleep(0.01)
        process.send_signal(signal.SIGKILL)
        process.wait()
        [record] = [item for item in read_json(path.parent / "checks.json")["checks"] if item["check"] == "again"]
        assert record["complete"] is False
        n_before = len(read_lines(path))
        assert 38 <= n_before < 52
        n_calls = len(server.log.chat)
        resumed = judgekit("run", "--resume", "b", "-q", cwd=tmp_path)
        assert resumed.returncode == 0, resumed.stderr
        # what was stored is not asked again
        assert len(server.log.chat) - n_calls == 52 - n_before
    [after] = [item for item in read_json(path.parent / "checks.json")["checks"] if item["check"] == "again"]
    assert (after["case_ids"], after["seed"], after["complete"]) == (record["case_ids"], record["seed"], True)
    lines = [item["case_id"] for item in read_lines(path) if item.get("check") == "again"]
    assert sorted(lines) == sorted(after["case_ids"])
