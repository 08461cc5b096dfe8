"""`judgekit.run` where an event loop is running already, many times in one process, and with few file descriptors."""

import importlib.util
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from judgekit.testing import FaultServer, with_latency
from tests.builders import REPOSITORY, read_json, read_lines, write_suite
from tests.doubles.server_process import ServerProcess

pytestmark = pytest.mark.slow


def cell(source: str) -> dict[str, Any]:
    """A code cell, not run yet."""
    return {"cell_type": "code", "execution_count": None, "id": "c", "metadata": {}, "outputs": [], "source": source}


def printed(executed: dict[str, Any]) -> list[str]:
    """What each cell printed; anything on stderr, such as a warning, fails the test."""
    texts = []
    for number, executed_cell in enumerate(executed["cells"]):
        streams = [output for output in executed_cell["outputs"] if output["output_type"] == "stream"]
        assert [stream["text"] for stream in streams if stream["name"] == "stderr"] == [], number
        texts.append("".join("".join(stream["text"]) for stream in streams))
    return texts


@pytest.fixture
def server() -> Iterator[FaultServer]:
    with FaultServer(with_latency(0.002)) as running:
        yield running


def test_a_notebook_runs_it_twice_and_awaits_between(tmp_path: Path, server: FaultServer) -> None:
    for package in ("nbconvert", "ipykernel"):
        if importlib.util.find_spec(package) is None:
            pytest.skip(f"{package} is not installed; it is in the dev extra")
    config = write_suite(tmp_path, server.base_url, n_cases=20)
    run = f"summary = judgekit.run({str(config)!r}, run_id={{!r}})\nprint(summary.overall['groundedness'].n)"
    cells = [
        cell("import asyncio, judgekit\n" + run.format("first")),
        cell("print(await asyncio.sleep(0, 'awaited'))\n" + run.format("second")),
        cell(f"third = await asyncio.to_thread(judgekit.run, {str(config)!r}, run_id='third')\nprint(third.status)"),
    ]
    for number, each in enumerate(cells):
        each["id"] = f"cell-{number}"
    kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
    notebook = {"cells": cells, "metadata": {"kernelspec": kernel}, "nbformat": 4, "nbformat_minor": 5}
    (tmp_path / "try.ipynb").write_text(json.dumps(notebook))
    own = {name: str(tmp_path / "home") for name in ("IPYTHONDIR", "JUPYTER_CONFIG_DIR", "JUPYTER_RUNTIME_DIR")}

    command = [sys.executable, "-m", "jupyter", "nbconvert", "--to", "notebook", "--execute"]
    result = subprocess.run(
        [*command, "--output", "done", "try.ipynb"],
        cwd=tmp_path,
        env={**os.environ, **own, "PYTHONPATH": str(REPOSITORY)},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )

    assert result.returncode == 0, result.stderr
    assert printed(read_json(tmp_path / "done.ipynb")) == ["20\n", "awaited\n20\n", "complete\n"]
    for run_id, n_cached in (("first", 0), ("second", 20), ("third", 20)):
        cost = read_json(tmp_path / "results" / run_id / "metrics.json")["cost"]
        assert cost["n_from_cache"] == n_cached


def script(text: str, *arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    """Run a script in which an unclosed file or connection is an error, and speaks up at exit at the latest."""
    return subprocess.run(
        [sys.executable, "-W", "default", "-W", "error::ResourceWarning", "-c", text, *arguments],
        cwd=cwd,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def test_three_runs_in_one_process_leave_nothing_open_and_say_nothing_at_exit(
    tmp_path: Path, server: FaultServer
) -> None:
    config = write_suite(tmp_path, server.base_url, n_cases=20)
    result = script(
        "import gc, os, sys, judgekit\n"
        "judgekit.run(sys.argv[1], run_id='r0')\n"
        "gc.collect(); before = sorted(os.listdir('/proc/self/fd'))\n"
        "for number in range(1, 4):\n"
        "    print(judgekit.run(sys.argv[1], run_id=f'r{number}', use_cache=number != 2).overall['groundedness'].n)\n"
        "assert sorted(os.listdir('/proc/self/fd')) == before\n"
        "gc.collect()\n",
        str(config),
        cwd=tmp_path,
    )
    assert result.returncode == 0, result.stderr
    assert result.stdout.split() == ["20", "20", "20"]
    assert result.stderr == ""


def test_it_runs_inside_a_loop_of_another_make_in_a_thread_and_none_is_patched(
    tmp_path: Path, server: FaultServer
) -> None:
    config = write_suite(tmp_path, server.base_url, n_cases=20)
    result = script(
        "import asyncio, os, sys, threading, judgekit\n"
        "class OtherLoop(asyncio.SelectorEventLoop):\n"
        "    'A loop that cannot be entered twice, as uvloop cannot.'\n"
        "    __slots__ = ()\n"
        "async def main(run_id):\n"
        "    assert type(asyncio.get_running_loop()) is OtherLoop\n"
        "    n = judgekit.run(sys.argv[1], run_id=run_id).overall['groundedness'].n\n"
        "    await asyncio.sleep(0)\n"
        "    assert 'nest_asyncio' not in sys.modules and asyncio.run.__module__ == 'asyncio.runners'\n"
        "    print(n, len(os.listdir('/proc/self/fd')))\n"
        "def work():\n"
        "    with asyncio.Runner(loop_factory=OtherLoop) as runner:\n"
        "        for number in range(4):\n"
        "            runner.run(main(f'r{number}'))\n"
        "thread = threading.Thread(target=work)\n"
        "thread.start()\n"
        "thread.join()\n",
        str(config),
        cwd=tmp_path,
    )
    assert result.returncode == 0, result.stderr
    assert result.stderr == ""
    lines = result.stdout.splitlines()
    assert len(lines) == 4
    assert len(set(lines)) == 1, "every run leaves as many files open as the first one"
    assert lines[0].startswith("20 ")
    for number in range(4):
        assert len(read_lines(tmp_path / "results" / f"r{number}" / "judgments.jsonl")) == 20


def test_sixty_four_calls_at_once_fit_into_128_file_descriptors_and_none_stays_open(tmp_path: Path) -> None:
    n_cases, concurrency = 2000, 64
    with ServerProcess("--latency-ms", "5") as server:
        config = write_suite(
            tmp_path, server.base_url, n_cases=n_cases, model={"max_concurrency": concurrency}, metrics=["operations"]
        )
        result = script(
            "import gc, os, resource, sys, threading, time, judgekit\n"
            "judgekit.run('quickstart', results_dir='warm')\n"  # what is imported once stays open once
            "judgekit.run(sys.argv[1], run_id='warm', limit=1)\n"
            "gc.collect()\n"
            "def n_open(): return len(os.listdir('/proc/self/fd')) - 1\n"
            "before, most, done = n_open(), 0, threading.Event()\n"
            "resource.setrlimit(resource.RLIMIT_NOFILE, (128, 128))\n"
            "def watch():\n"
            "    global most\n"
            "    while not done.wait(0.005): most = max(most, n_open())\n"
            "watcher = threading.Thread(target=watch); watcher.start()\n"
            "summary = judgekit.run(sys.argv[1], run_id='r')\n"
            "done.set(); watcher.join()\n"
            "after = n_open()\n"
            "print(summary.overall['groundedness'].n, before, most, after)\n",
            str(config),
            cwd=tmp_path,
        )
    assert result.returncode == 0, result.stderr
    assert result.stderr == ""
    n_judged, before, most, after = map(int, result.stdout.split())
    assert n_judged == n_cases
    assert after == before
    assert most <= concurrency + 40
