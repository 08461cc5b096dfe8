"""Two processes in one results folder, and two on one run."""

import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from judgekit.storage.database import Database
from judgekit.storage.run_folder import RunFolder
from judgekit.storage.stored_history import read_points
from judgekit.testing import FaultServer, with_latency
from tests.builders import read_json, read_lines, write_suite

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("ends_processes")]

N_CASES = 60


def started(*arguments: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "judgekit", *arguments]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def judged(folder: Path) -> list[str]:
    return sorted(item["case_id"] for item in read_lines(folder / "judgments.jsonl"))


ALL = sorted(f"c{number}" for number in range(N_CASES))


@pytest.fixture
def server() -> Iterator[FaultServer]:
    with FaultServer(with_latency(0.05)) as running:
        yield running


def test_a_second_resume_of_a_run_that_is_being_written_is_refused_and_loses_nothing(
    tmp_path: Path, server: FaultServer
) -> None:
    config = write_suite(tmp_path, server.base_url, n_cases=N_CASES, model={"max_concurrency": 1})
    folder = tmp_path / "results" / "r"
    first = started("run", str(config), "--run-id", "r")
    deadline = time.monotonic() + 30
    while not (folder / "judgments.jsonl").exists() or not (folder / "judgments.jsonl").stat().st_size:
        assert time.monotonic() < deadline
        time.sleep(0.01)

    second = started("run", "--resume", str(folder))
    stdout, stderr = second.communicate(timeout=30)

    assert first.poll() is None, "the first one was done before the second one could meet it"
    assert second.returncode == 4
    wanted = f"judgekit: error: {folder}: another process is writing this run; wait for it or stop it"
    assert stderr.splitlines() == [wanted]
    assert stdout == ""
    _, errors = first.communicate(timeout=60)
    assert first.returncode == 0, errors
    assert judged(folder) == ALL
    assert read_json(folder / "metrics.json")["overall"]["groundedness"]["n"] == N_CASES
    assert read_json(folder / "manifest.json")["n_resumed"] == 0
    assert len(server.log.chat) == N_CASES + 1  # the probe


def test_two_resumes_at_once_of_a_killed_run_judge_every_case_once(tmp_path: Path, server: FaultServer) -> None:
    config = write_suite(tmp_path, server.base_url, n_cases=N_CASES, model={"max_concurrency": 8})
    folder = tmp_path / "results" / "r"
    killed = started("run", str(config), "--run-id", "r")
    server.log.wait_for(10)
    killed.kill()
    killed.communicate()

    both = [started("run", "--resume", str(folder)) for _ in range(2)]
    ends = [process.communicate(timeout=60) for process in both]

    # One goes on with it. The other one is refused: the run is being written, was just written, or is complete.
    assert sorted(process.returncode for process in both) in ([0, 2], [0, 4]), ends
    assert judged(folder) == ALL
    assert read_json(folder / "metrics.json")["status"] == "complete"


def test_two_runs_in_one_results_folder_share_the_cache_and_both_complete(tmp_path: Path, server: FaultServer) -> None:
    config = write_suite(tmp_path, server.base_url, n_cases=N_CASES, model={"max_concurrency": 8})
    runs = {run_id: started("run", str(config), "--run-id", run_id) for run_id in ("a", "b")}
    for run_id, process in runs.items():
        _, errors = process.communicate(timeout=60)
        assert process.returncode == 0, errors
        folder = tmp_path / "results" / run_id
        assert judged(folder) == ALL
        metrics = read_json(folder / "metrics.json")
        assert metrics["overall"]["groundedness"]["n"] == N_CASES
        assert not [item for item in metrics["warnings"] if item["code"].startswith(("cache", "index"))]
    assert {run.run_id: run.status for run in Database(tmp_path / "results").runs()} == dict.fromkeys(runs, "complete")
    with sqlite3.connect(tmp_path / "results" / ".cache" / "cache.db") as connection:
        (n_replies,) = connection.execute("SELECT count(*) FROM Cache WHERE key LIKE 'reply%'").fetchone()
    connection.close()
    assert n_replies == N_CASES

    third = started("run", str(config), "--run-id", "c")
    _, errors = third.communicate(timeout=60)
    assert third.returncode == 0, errors
    cost = read_json(tmp_path / "results" / "c" / "metrics.json")["cost"]
    assert (cost["n_from_cache"], cost["n_calls"]) == (N_CASES, 0)


def test_two_starts_under_one_name_at_once_give_one_whole_run(tmp_path: Path, server: FaultServer) -> None:
    config = write_suite(tmp_path, server.base_url, n_cases=N_CASES, model={"max_concurrency": 8})
    both = [started("run", str(config), "--run-id", "r") for _ in range(2)]
    ends = [process.communicate(timeout=60) for process in both]
    assert sorted(process.returncode for process in both) in ([0, 2], [0, 4]), ends
    assert judged(tmp_path / "results" / "r") == ALL


def test_a_run_two_rejudges_a_spot_check_and_new_indexes_at_once_lose_nothing(
    tmp_path: Path, server: FaultServer
) -> None:
    at = {"base_url": server.base_url, "max_concurrency": 8}
    config = write_suite(
        tmp_path,
        n_cases=N_CASES,
        models={"m": {**at, "model": "m-2025-01-01"}, "other": {**at, "model": "other-2025-01-01"}},
        judges=[{"name": "groundedness", "model": "m"}],
    )
    results = tmp_path / "results"
    where = ("--results-dir", str(results))
    _, errors = (first := started("run", str(config), "--run-id", "a")).communicate(timeout=60)
    assert first.returncode == 0, errors

    commands = {
        "b": ("run", str(config), "--run-id", "b", "--no-cache"),
        "same": ("rejudge", "a", "--run-id", "same", "--no-cache", *where),
        "other": ("rejudge", "a", "--run-id", "other", "--model", "other", *where),
        "spotcheck": ("spotcheck", "a", "--against", "repeat", "--n", "20", *where),
    }
    running = {name: started(*command) for name, command in commands.items()}
    n_indexed = 0
    while any(process.poll() is None for process in running.values()):
        reindex = started("runs", "reindex", *where)
        _, errors = reindex.communicate(timeout=60)
        assert reindex.returncode == 0, errors
        n_indexed += 1
    for name, process in running.items():
        _, errors = process.communicate(timeout=60)
        assert process.returncode == 0, (name, errors)

    assert n_indexed >= 1
    for run_id in ("b", "same", "other"):
        assert judged(results / run_id) == ALL
        codes = {item["code"] for item in read_json(results / run_id / "metrics.json")["warnings"]}
        assert not [code for code in codes if code.startswith(("cache", "index", "drift"))]
    database = Database(results)
    assert {run.run_id: run.status for run in database.runs()} == dict.fromkeys(("a", "b", "same", "other"), "complete")
    # The spot check of the run, and a point of each rejudge.
    points = sorted((point.kind, point.comparator, point.n_pairs) for point in database.points() if point.kind != "run")
    assert points == [
        ("noise_floor", "m-2025-01-01 with v1", 20),
        ("noise_floor", "m-2025-01-01 with v1", N_CASES),
        ("spot_check", "other-2025-01-01 with v1", N_CASES),
    ]
    assert read_points(RunFolder(results / "a")) == [point for point in database.points() if point.run_id == "a"]
    assert read_json(results / "a" / "metrics.json")["judge_reliability"]["spot_check_n"] == 20
