"""Runs on executors: what is lost is judged again, what is committed counts once, and limits are shared."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import psutil
import pytest

from judgekit.core.errors import ConfigError, Interrupted, ProviderError, StorageError
from judgekit.core.runs import RunSummary
from judgekit.core.shard_tasks import Executor, ShardTask
from judgekit.engine.passes import Observer
from judgekit.executors.event_loop import run_local
from judgekit.storage import shard_parts
from judgekit.storage.run_folder import RunFolder
from judgekit.storage.shard_parts import ShardParts
from judgekit.testing import FaultServer, with_latency
from judgekit.workflows import sharding
from judgekit.workflows.job import RunJob, start
from judgekit.workflows.models import Options
from judgekit.workflows.resuming import resume_job
from judgekit.workflows.run import run
from judgekit.workflows.setup import set_up
from tests.builders import REPOSITORY, read_json, read_lines, write_suite
from tests.cli.fork_server import ENVIRONMENT
from tests.workflows.engine import is_capability_call
from tests.workflows.test_merge import carried_out, figures, on_kiln, suite

Work = Callable[[ShardTask], Any]


class Lost(Exception):
    """What an engine raises about a worker that died."""


class Threads(Executor):
    """Shards in threads of this process, and what befalls some of them."""

    befalls: Callable[[Work, ShardTask], Any] = lambda work, task: work(task)

    @contextmanager
    def session(self, work: Work) -> Iterator[Callable[[ShardTask], Future[Any]]]:
        with ThreadPoolExecutor(self.workers) as threads:
            yield lambda task: threads.submit(self.befalls, work, task)


def on_threads(job: RunJob, befalls: Callable[[Work, ShardTask], Any] | None = None, **fields: Any) -> RunSummary:
    job.executor = Threads(**{"workers": 2, "shards": 4, **fields, **({"befalls": befalls} if befalls else {})})
    return run_local(lambda: run(job, Observer()))


def new_job(path: Path, **options: Any) -> RunJob:
    wanted = Options(run_id="whole", **options)
    return start(set_up(path, wanted), wanted)


def resumed_job(path: Path) -> RunJob:
    return resume_job(str(path.parent / "results" / "whole"), None, Options())


def once(shard: str, what: Callable[[Work, ShardTask], Any]) -> Callable[[Work, ShardTask], Any]:
    """What befalls the first attempt of one shard."""
    seen: list[str] = []

    def befalls(work: Work, task: ShardTask) -> Any:
        if task.shard == shard and not seen:
            seen.append(shard)
            return what(work, task)
        return work(task)

    return befalls


def lost_before(_: Work, task: ShardTask) -> Any:
    raise Lost("the worker was killed")


def cancelled(_: Work, task: ShardTask) -> Any:
    """The engine has lost its scheduler, and takes back what it was given."""
    raise CancelledError


def lost_under_way(work: Work, task: ShardTask) -> Any:
    """The worker has claimed its attempt and dies."""
    ShardParts(Path(task.parts_dir)).claim(task.shard)
    raise Lost("the worker was killed")


def lost_before_commit(work: Work, task: ShardTask) -> Any:
    work(task)
    name = ShardParts(Path(task.parts_dir)).attempts(int(task.shard.split("/")[0]))[-1]
    (Path(task.parts_dir) / f"{name}.commit.json").unlink()
    raise Lost("the worker was killed")


def lost_after_commit(work: Work, task: ShardTask) -> Any:
    work(task)
    raise Lost("the worker was killed")


def twice(work: Work, task: ShardTask) -> Any:
    """The engine thinks the first worker lost, and both finish; their clocks differ by an hour."""
    work(task)
    (record,) = Path(task.parts_dir).glob("part-2of4-*.commit.json")
    text = record.read_text()
    record.unlink()
    answer = work(task)
    record.write_text(text)  # only now the first one comes to its commit
    assert work(task) == (0, "")  # a third one finds that nothing is left to do
    first, second = ShardParts(Path(task.parts_dir)).attempts(2)
    for name, seconds in ((first, 3600), (second, -3600)):
        for path in (Path(task.parts_dir)).glob(f"{name}*"):
            os.utime(path, (path.stat().st_mtime + seconds,) * 2)
    return answer


def full_disk(work: Work, task: ShardTask) -> Any:
    return 4, "part-2of4-1/judgments.jsonl: cannot be written: No space left on device"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("what", "is_told"),
    [
        (lambda work, task: work(task), False),
        (lost_before, False),
        (cancelled, False),
        (lost_under_way, True),
        (lost_before_commit, True),
        (lost_after_commit, False),
        (twice, True),
        (full_disk, False),
    ],
)
def test_whatever_befalls_a_worker_every_input_counts_once(
    tmp_path: Path, what: Callable[[Work, ShardTask], Any], is_told: bool
) -> None:
    path = suite(tmp_path, spot_check={"n": 5, "model": "strict"}, seed=3)
    carried_out(path, "plain")
    summary = on_threads(new_job(path), once("2/4", what))
    assert ("attempts_lost" in {notice.code for notice in summary.warnings}) == is_told
    found, plain = figures(path, "whole"), figures(path, "plain")
    found["warnings"] = [item for item in found["warnings"] if item["code"] != "attempts_lost"]
    assert found == plain
    folder = tmp_path / "results" / "whole"
    questions = [(item["judge"], item["case_id"], item["role"]) for item in read_lines(folder / "judgments.jsonl")]
    assert len(questions) == len(set(questions))
    assert not (folder / "parts").exists()
    assert RunFolder.open(folder).manifest().shards[1]["run_id"] == (
        "part-2of4-2" if what in (lost_under_way, lost_before_commit) else "part-2of4-1"
    )


@pytest.fixture
def hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fractions of a second in place of minutes."""
    for name, seconds in (("LOOK", 0.05), ("LOST", 1.0), ("BEGIN", 0.7), ("START", 1.0), ("END", 0.2)):
        monkeypatch.setattr(sharding, f"{name}_SECONDS", seconds)
    monkeypatch.setattr(shard_parts, "BEAT_SECONDS", 0.1)


@pytest.mark.slow
@pytest.mark.usefixtures("hurry")
def test_a_worker_without_a_sign_of_life_is_lost_though_its_engine_waits_for_it(tmp_path: Path) -> None:
    path = suite(tmp_path)
    carried_out(path, "one")
    hung = threading.Event()

    def hangs(work: Work, task: ShardTask) -> Any:
        """The worker has claimed its attempt and stands still; it goes on once all is over."""
        ShardParts(Path(task.parts_dir)).claim(task.shard)
        hung.wait(30)
        return 0, ""

    try:
        on_threads(new_job(path), once("2/4", hangs))
    finally:
        hung.set()
    found, one = figures(path, "whole"), figures(path, "one")
    assert [item["code"] for item in found.pop("warnings")] == ["executor_not_ended", "attempts_lost", *(
        item["code"] for item in one.pop("warnings"))]  # fmt: skip
    assert found == one


@pytest.mark.slow
@pytest.mark.usefixtures("hurry")
def test_a_worker_that_waits_for_long_is_not_lost(tmp_path: Path) -> None:
    path = suite(tmp_path)
    tasks: list[str] = []

    def waits(work: Work, task: ShardTask) -> Any:
        tasks.append(task.shard)
        parts = ShardParts(Path(task.parts_dir))
        with parts.beating(parts.claim(task.shard)):
            time.sleep(2.5)
        return work(task)

    on_threads(new_job(path), waits, shards=2)
    assert sorted(tasks) == ["1/2", "2/2"]


class Idle(Executor):
    """Takes tasks, and has no workers; or does not come that far."""

    stands_still_at: str = "tasks"

    @contextmanager
    def session(self, work: Work) -> Iterator[Callable[[ShardTask], Future[Any]]]:
        if self.stands_still_at == "start":
            time.sleep(4)
        yield lambda task: Future()
        if self.stands_still_at == "end":
            time.sleep(4)


@pytest.mark.slow
@pytest.mark.usefixtures("hurry")
@pytest.mark.parametrize(
    ("place", "error", "said"),
    [
        ("tasks", Interrupted, r"shard \d/4 after 3 tries: no worker has taken it up within 0.7 s; are there any\?"),
        ("end", Interrupted, r"no worker has taken it up within 0.7 s"),
        ("start", ConfigError, r"executor idle: has not started within 1 s"),
    ],
)
def test_no_wait_for_an_engine_is_without_an_end(
    tmp_path: Path, place: str, error: type[Exception], said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Idle, "name", "idle")
    job = new_job(suite(tmp_path))
    job.executor = Idle(workers=2, shards=4, stands_still_at=place)
    began = time.monotonic()
    with pytest.raises(error, match=said):
        run_local(lambda: run(job, Observer()))
    assert time.monotonic() - began < 60
    assert ("executor_not_ended" in dict(job.warnings)) == (place != "tasks")


@pytest.mark.slow
def test_the_driver_draws_the_spot_check_once_and_each_worker_asks_about_its_part(tmp_path: Path) -> None:
    path = suite(tmp_path, spot_check={"n": 7, "model": "strict"})  # without a seed
    samples: list[Any] = []

    def befalls(work: Work, task: ShardTask) -> Any:
        samples.append(task.samples)
        return work(task)

    on_threads(new_job(path), befalls)
    whole = tmp_path / "results" / "whole"
    drawn = {record.judge: record.case_ids for record in RunFolder(whole).spot_checks()}
    assert [len(case_ids) for case_ids in drawn.values()] == [7]
    assert samples == [drawn] * 4
    asked = [item["case_id"] for item in read_lines(whole / "judgments.jsonl") if item["role"] == "spot_check"]
    assert sorted(asked) == sorted(drawn["groundedness"])


@pytest.mark.slow
def test_a_bad_shard_does_not_stop_the_others_and_the_driver_takes_up_what_is_committed(tmp_path: Path) -> None:
    path = suite(tmp_path)
    asked: list[str] = []

    def bad(work: Work, task: ShardTask) -> Any:
        asked.append(task.shard)
        return lost_before(work, task) if task.shard == "1/4" else work(task)

    with pytest.raises(Interrupted) as caught:
        on_threads(new_job(path), bad)
    assert str(caught.value) == (
        "shard 1/4 after 3 tries: its worker was lost: Lost: the worker was killed; 3 of 4 shards are done and kept; "
        "resume with --resume"
    )
    assert sorted(asked) == ["1/4", "1/4", "1/4", "2/4", "3/4", "4/4"]
    manifest = read_json(tmp_path / "results" / "whole" / "manifest.json")
    assert (manifest["status"], manifest["shards"]) == ("interrupted", [])
    asked.clear()

    def good(work: Work, task: ShardTask) -> Any:
        asked.append(task.shard)
        return work(task)

    assert on_threads(resumed_job(path), good, shards=99).status == "complete"  # a run keeps its number of shards
    assert asked == ["1/4"]
    carried_out(path, "plain")
    found, plain = figures(path, "whole"), figures(path, "plain")
    assert (found["overall"], found["slices"], found["gates"]) == (plain["overall"], plain["slices"], plain["gates"])


def test_a_driver_that_was_killed_finds_what_is_committed(tmp_path: Path) -> None:
    path = suite(tmp_path)

    class Killed(BaseException):
        pass

    def stop(work: Work, task: ShardTask) -> Any:
        if task.shard == "3/4":
            raise Killed
        return work(task)

    with pytest.raises(Killed):
        on_threads(new_job(path), stop, workers=1)
    assert read_json(tmp_path / "results" / "whole" / "manifest.json")["status"] == "running"
    asked: list[str] = []

    def good(work: Work, task: ShardTask) -> Any:
        asked.append(task.shard)
        return work(task)

    assert on_threads(resumed_job(path), good).status == "complete"
    assert asked == ["3/4", "4/4"]


@pytest.mark.slow
def test_a_part_that_was_cut_is_exit_code_4_and_judged_again_once_its_record_is_gone(tmp_path: Path) -> None:
    path = suite(tmp_path)

    def cut(work: Work, task: ShardTask) -> Any:
        answer = work(task)
        lines = Path(task.parts_dir) / "part-2of4-1" / "outputs.jsonl"
        lines.write_bytes(lines.read_bytes()[:-9])
        return answer

    with pytest.raises(StorageError, match=r"outputs.jsonl.*; or delete .*part-2of4-1.commit.json"):
        on_threads(new_job(path), once("2/4", cut))
    (tmp_path / "results" / "whole" / "parts" / "part-2of4-1.commit.json").unlink()
    assert on_threads(resumed_job(path)).status == "complete"


def test_an_engine_that_does_not_start_leaves_no_run_behind(tmp_path: Path) -> None:
    class Broken(Threads):
        def session(self, work: Work) -> Any:
            raise RuntimeError("no workers\nare left")

    path = suite(tmp_path)
    job = new_job(path)
    job.executor = Broken()
    with pytest.raises(ConfigError, match=r"executor .*: does not start: RuntimeError: no workers are left"):
        run_local(lambda: run(job, Observer()))
    assert not (tmp_path / "results" / "whole").exists()


def test_results_that_a_worker_writes_elsewhere_are_not_found(tmp_path: Path) -> None:
    path = suite(tmp_path)
    with pytest.raises(Interrupted, match=r"not into .*parts, which all workers must see"):
        on_threads(new_job(path), lambda work, task: (0, ""))


@pytest.mark.slow
@pytest.mark.parametrize(("code", "error"), [(2, ConfigError), (3, ProviderError)])
def test_what_no_other_worker_could_do_is_not_tried_again(tmp_path: Path, code: int, error: type[Exception]) -> None:
    asked: list[str] = []

    def refused(work: Work, task: ShardTask) -> Any:
        asked.append(task.shard)
        return (code, "no key here") if task.shard == "2/4" else work(task)

    path = suite(tmp_path)
    with pytest.raises(error, match="shard 2/4: no key here; 3 of 4 shards are done and kept"):
        on_threads(new_job(path), refused)
    assert sorted(asked) == ["1/4", "2/4", "3/4", "4/4"]
    assert on_threads(resumed_job(path)).status == "complete"


@pytest.mark.slow
@pytest.mark.parametrize("is_cached", [True, False])
def test_a_budget_is_shared_by_all_workers_and_what_a_lost_one_had_left_comes_back(
    tmp_path: Path, is_cached: bool
) -> None:
    with FaultServer(on_kiln()) as server:
        path = write_suite(tmp_path, server.base_url, n_cases=40, budget={"max_calls": 20})
        with pytest.raises(Interrupted, match=r"budget.max_calls of 20 does not hold one more call; \d of 4 shards"):
            on_threads(new_job(path, use_cache=is_cached), once("1/4", lost_under_way))
        asked = [entry for entry in server.log.chat if entry.body and not is_capability_call(entry.body)]
        assert 15 <= len(asked) <= 20
        document = read_json(path)
        path.write_text(json.dumps({**document, "budget": {"max_calls": 100}}))
        assert on_threads(resumed_job(path)).judges["groundedness"]["n_judged"] == 40
        asked = [entry for entry in server.log.chat if entry.body and not is_capability_call(entry.body)]
        assert len(asked) == 40 if is_cached else len(asked) <= 60


@pytest.mark.slow
def test_calls_in_flight_are_those_of_one_process(tmp_path: Path) -> None:
    most = 0

    def answer(request: Any) -> Any:
        nonlocal most
        most = max(most, request.n_in_flight)
        return on_kiln()(request)

    with FaultServer(with_latency(0.02, then=answer)) as server:
        path = write_suite(tmp_path, server.base_url, n_cases=40, model={"max_concurrency": 5})
        on_threads(new_job(path), workers=2)
    assert 2 <= most <= 4  # a whole share of 5 each


def test_executors_that_are_not_there_are_refused_before_any_call(tmp_path: Path) -> None:
    for entry, said in (
        ({"name": "dusk"}, "executor: none called 'dusk'; did you mean 'dask'"),
        ({"name": "dask", "wrkers": 2}, "executor (dask): $.wrkers"),
        ({"name": "dask", "workers": 0}, "executor (dask): $.workers"),
        ({"workers": 2}, "executor: local takes no arguments; dask or ray does"),
    ):
        with pytest.raises(ConfigError) as caught:
            set_up(suite(tmp_path, executor=entry), Options())
        assert said in str(caught.value)
    assert set_up(suite(tmp_path, executor={"name": "local"}), Options()).executor is None
    assert set_up(suite(tmp_path, executor={"name": "dask"}), Options(shard="1/2")).executor is None


ENGINES = [
    pytest.param("dask", id="dask"),
    pytest.param("ray", id="ray", marks=pytest.mark.skipif(find_spec("ray") is None, reason="Ray is not installed")),
]


@pytest.mark.slow
@pytest.mark.parametrize("name", ENGINES)
def test_shipped_executors_keep_the_contract(tmp_path: Path, name: str) -> None:
    program = (
        "import sys, pathlib\n"
        f"from judgekit.executors.{name} import {name.title()}\n"
        "from judgekit.testing import check_executor\n"
        "if __name__ == '__main__':\n"
        f"    check_executor({name.title()}(workers=2), pathlib.Path(sys.argv[1]))\n"
    )
    (tmp_path / "check.py").write_text(program)
    (tmp_path / "shards").mkdir()
    command = [sys.executable, str(tmp_path / "check.py"), str(tmp_path / "shards")]
    done = subprocess.run(
        command, cwd=REPOSITORY, env=ENVIRONMENT, capture_output=True, text=True, timeout=250, check=False
    )
    assert done.returncode == 0, done.stderr


def workers_of(pid: int) -> list[int]:
    """Processes below a process that judge shards."""
    return [
        child.pid
        for child in psutil.Process(pid).children(recursive=True)
        if any(word in " ".join(child.cmdline()) for word in ("spawn_main", "ray::"))
    ]


@pytest.mark.slow
@pytest.mark.parametrize("name", ENGINES)
@pytest.mark.usefixtures("ends_processes")
def test_a_worker_that_is_killed_costs_its_shard_and_no_figure(tmp_path: Path, name: str) -> None:
    with FaultServer(with_latency(0.05, then=on_kiln())) as server:
        path = write_suite(
            tmp_path, server.base_url, n_cases=120, executor={"name": name, "workers": 2, "shards": 6},
        )  # fmt: skip
        command = [sys.executable, "-m", "judgekit", "run", str(path), "--run-id", "whole", "--quiet"]
        environment = {
            **ENVIRONMENT,
            "PYTHONPATH": os.pathsep.join([str(REPOSITORY), os.environ.get("PYTHONPATH", "")]),
        }
        process = subprocess.Popen(command, cwd=tmp_path, env=environment, stderr=subprocess.PIPE, text=True)
        wait_for(lambda: server.log.totals.n_requests > 30)
        parts = ShardParts(tmp_path / "results" / "whole" / "parts")
        wait_for(lambda: any(not parts.is_committed(attempt) for attempt in parts.attempts()))
        os.kill(workers_of(process.pid)[-1], signal.SIGKILL)
        _, said = process.communicate(timeout=200)
        assert process.returncode == 0, said
        asked = [entry for entry in server.log.chat if entry.body and not is_capability_call(entry.body)]
    judgments = read_lines(tmp_path / "results" / "whole" / "judgments.jsonl")
    assert sorted(item["case_id"] for item in judgments) == sorted(f"c{number}" for number in range(120))
    assert 120 <= len(asked) <= 124  # what was in flight in the lost worker, two calls, is paid for again


def wait_for(holds: Callable[[], bool], seconds: float = 100.0) -> None:
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.02)
