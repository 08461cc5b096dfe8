"""Each kind of live system end to end, over the notes of the shipped example: a service of its own process, a program,
a function, a model. The figures are those that its recorded outputs give afterwards."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from judgekit.testing import FaultServer, chat_reply
from tests.builders import REPOSITORY

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("ends_processes")]

SERVICE = REPOSITORY / "tests" / "doubles" / "rag_service.py"
N_CASES = (REPOSITORY / "configs" / "quickstart" / "cases.jsonl").read_bytes().count(b"\n")


@contextmanager
def service(*arguments: str) -> Iterator[str]:
    """The address of the service, which is a process of its own."""
    process = subprocess.Popen([sys.executable, str(SERVICE), *arguments], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        yield process.stdout.readline().strip()
    finally:
        process.kill()
        process.communicate()


def suite(folder: Path, system: dict[str, Any], name: str = "config.json") -> Path:
    """The shipped example with another system."""
    shipped = REPOSITORY / "configs"
    config = json.loads((shipped / "quickstart.json").read_text())
    for key in ("$schema", "$comment", "gates"):
        config.pop(key)
    config["cases"] = str(shipped / "quickstart" / "cases.jsonl")
    config["indexing"] = str(shipped / "quickstart" / "indexing.jsonl")
    (folder / name).write_text(json.dumps({**config, "system": system}))
    return folder / name


def judgekit(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "judgekit", *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, timeout=120)


def run_of(folder: Path, *arguments: str) -> dict[str, Any]:
    """What `judgekit run --json` says."""
    done = judgekit(folder, "run", *arguments, "--json", "--results-dir", str(folder / "results"))
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)  # type: ignore[no-any-return]


def figures(found: dict[str, Any]) -> dict[str, Any]:
    return {name: found["metrics"][name] for name in ("overall", "slices", "judge_reliability")}


def recorded(folder: Path, run: dict[str, Any]) -> dict[str, Any]:
    """The same suite over the outputs that a run recorded."""
    config = json.loads((folder / "config.json").read_text())
    (folder / "recorded.json").write_text(json.dumps({**config, "system": {"path": f"{run['run_dir']}/outputs.jsonl"}}))
    return run_of(folder, "recorded.json")


def check(folder: Path, system: dict[str, Any]) -> dict[str, Any]:
    """A live run and the recorded one after it."""
    live = run_of(folder, str(suite(folder, system)))
    assert live["metrics"]["cases"]["n"] == N_CASES
    assert figures(recorded(folder, live)) == figures(live)
    return live


def test_a_service_over_http(tmp_path: Path) -> None:
    log = tmp_path / "asked.log"
    with service("--log", str(log)) as address:
        system = {"name": "http", "url": f"{address}/ask", "health": "/health", "preset": "rag_debug"}
        live = check(tmp_path, system)
    assert len(log.read_text().splitlines()) == N_CASES
    assert live["metrics"]["overall"]["recall_any@5"]["value"] > 0.5
    assert live["metrics"]["latency"].keys() >= {"retrieval", "generation", "total"}
    manifest = json.loads((Path(live["run_dir"]) / "manifest.json").read_text())
    assert manifest["versions"]["index_version"] == "notes-1"


def test_a_program(tmp_path: Path) -> None:
    check(tmp_path, {"name": "command", "run": [sys.executable, str(SERVICE), "--lines"]})


def test_a_function(tmp_path: Path) -> None:
    check(tmp_path, {"name": "python", "call": f"{SERVICE}:ask"})


def test_a_model(tmp_path: Path) -> None:
    with FaultServer(chat_reply("Two white flashes every 15 seconds.")) as server:
        system = {"name": "openai_chat", "model": "m-2026-01-15", "base_url": server.base_url}
        config = json.loads(suite(tmp_path, system).read_text())
        judges = [judge for judge in config["judges"] if judge["name"] == "correctness"]
        (tmp_path / "config.json").write_text(json.dumps({**config, "judges": judges}))
        live = run_of(tmp_path, "config.json")
        assert live["metrics"]["cases"]["n"] == N_CASES
        assert server.log.totals.n_requests == N_CASES + 1  # one call finds out what the model takes
    assert figures(recorded(tmp_path, live)) == figures(live)


def _asked(log: Path) -> Sequence[str]:
    return log.read_text().splitlines() if log.exists() else []


def test_a_run_that_is_killed_while_it_records_asks_no_case_twice(tmp_path: Path) -> None:
    log = tmp_path / "asked.log"
    slow = tmp_path / "slow.py"
    slow.write_text(
        "import sys, time\n"
        f"sys.path.insert(0, {str(SERVICE.parent)!r})\n"
        "import rag_service\n\n\n"
        "def ask(case):\n"
        f"    with open({str(log)!r}, 'a') as stream:\n"
        "        stream.write(case.id + chr(10))\n"
        "    time.sleep(0.15)\n"
        "    return rag_service.ask(case)\n"
    )
    config = suite(tmp_path, {"name": "python", "call": "slow.py:ask", "max_concurrency": 1})
    results = tmp_path / "results"
    command = [
        sys.executable,
        "-m",
        "judgekit",
        "run",
        str(config),
        "--results-dir",
        str(results),
        "--run-id",
        "killed",
    ]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    deadline = time.monotonic() + 60
    while len(_asked(log)) < 12 and time.monotonic() < deadline:
        time.sleep(0.02)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    before = list(_asked(log))
    kept = (results / "killed" / "outputs.partial.jsonl").read_bytes().count(b"\n")
    assert 9 <= kept < N_CASES
    done = judgekit(tmp_path, "run", "--resume", str(results / "killed"), "--json")
    assert done.returncode == 0, done.stderr
    asked = list(_asked(log))
    # Only what was in flight, and what the disk did not have yet, is asked again.
    assert len(asked) - N_CASES == len(before) - kept <= 2
    assert json.loads(done.stdout)["metrics"]["cases"]["n"] == N_CASES
    assert not (results / "killed" / "outputs.partial.jsonl").exists()


def test_record_says_what_was_answered_and_how_to_go_on(tmp_path: Path) -> None:
    config = suite(tmp_path, {"name": "python", "call": f"{SERVICE}:ask"})
    done = judgekit(tmp_path, "record", str(config), "--run-id", "r1", "--limit", "5")
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[0] == "python answered 5 of 5 cases. No judge was asked yet."
    assert "judgekit run --resume results/r1" in done.stdout
    assert judgekit(tmp_path, "run", "--resume", "r1").returncode == 0
