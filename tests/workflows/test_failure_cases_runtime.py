"""Failure cases of kind F, concurrency and runtime, and a storm of faults; last, that no case is without a test."""

import asyncio
import re
import signal
import subprocess
import sys
import threading
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import judgekit
from judgekit.core.cases import Case, SystemOutput
from judgekit.core.errors import ProviderError
from judgekit.core.scores import Outcomes
from judgekit.judges.groundedness import Groundedness
from judgekit.metrics.answer_checks import AnswerChecks
from judgekit.storage.recorder import Recorder
from judgekit.testing import FaultServer, chat_reply, with_latency
from tests.builders import output, read_json, read_lines, write_suite
from tests.cli.fork_server import Ended
from tests.cli.fork_server import judgekit as judgekit_command
from tests.doubles.storms import REPLY_MIX, RETRYABLE_MIX, SeededFaults, seeded_faults
from tests.workflows.engine import Ran, after_capabilities, again, carried_out, good, is_capability_call, resumed

pytestmark = pytest.mark.usefixtures("quick_waits")


def test_f01_a_run_inside_a_running_loop_works_and_works_again(tmp_path: Path) -> None:
    with FaultServer(good()) as server:
        config = write_suite(tmp_path, server.base_url)

        async def cell() -> list[str]:
            return [judgekit.run(config, run_id=f"r{number}").status for number in range(2)]

        assert asyncio.run(cell()) == ["complete", "complete"]


@pytest.mark.slow
def test_f01_an_interrupted_cell_stops_the_run_behind_it(tmp_path: Path) -> None:
    with FaultServer(with_latency(0.05, then=good())) as server:
        config = write_suite(tmp_path, server.base_url, n_cases=400, model={"max_concurrency": 2})

        def interrupt() -> None:
            server.log.wait_for(10)
            signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)

        async def cell() -> None:
            threading.Thread(target=interrupt).start()
            judgekit.run(config, run_id="r")

        # As in a notebook, whose loop leaves Ctrl-C to Python; asyncio.run has a handler of its own.
        loop = asyncio.new_event_loop()
        try:
            with pytest.raises(KeyboardInterrupt):
                loop.run_until_complete(cell())
        finally:
            loop.close()
        n_asked = server.log.totals.n_requests
        assert 0 < n_asked < 300
        assert threading.active_count() < 10
        assert not [thread for thread in threading.enumerate() if thread.name == "judgekit-loop"]
        assert server.log.totals.n_requests == n_asked
    assert read_json(tmp_path / "results" / "r" / "manifest.json")["status"] == "interrupted"


class LoopOfAnotherKind(asyncio.SelectorEventLoop):
    """Like uvloop's, a loop that nothing can be patched into."""

    __slots__ = ()


def test_f02_a_loop_that_cannot_be_patched_is_left_alone(tmp_path: Path) -> None:
    # uvloop is no dependency; what matters is that no loop is patched, whatever its class.
    with FaultServer(good()) as server:
        config = write_suite(tmp_path, server.base_url)

        async def request_handler() -> str:
            before = asyncio.get_running_loop()
            status: str = judgekit.run(config, run_id="r").status
            assert asyncio.get_running_loop() is before
            return status

        with asyncio.Runner(loop_factory=LoopOfAnotherKind) as runner:
            status = runner.run(request_handler())
    assert status == "complete"
    assert "nest_asyncio" not in sys.modules


THREE_RUNS = """
import gc, sys, judgekit
for number in range(3):
    result = judgekit.run(sys.argv[1], run_id=f"r{number}", use_cache=False)
    assert result.summary.judges["groundedness"]["n_judged"] == 20
    gc.collect()
"""


@pytest.mark.slow
def test_f04_three_runs_in_one_process_leave_no_warning_behind(tmp_path: Path) -> None:
    with FaultServer(good()) as server:
        config = write_suite(tmp_path, server.base_url, n_cases=20)
        flags = ["-X", "dev", "-W", "error::ResourceWarning", "-W", "error::RuntimeWarning"]
        command = [sys.executable, *flags, "-c", THREE_RUNS, str(config)]
        result = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert result.returncode == 0, result.stderr
    for word in ("ResourceWarning", "never retrieved", "never awaited", "Event loop is closed", "Traceback"):
        assert word not in result.stderr


def test_f05_an_error_of_our_own_reaches_the_caller_and_the_run_says_failed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def dying(*_: Any) -> None:
        raise RuntimeError("Event loop is closed")

    with FaultServer(good()) as server:
        config = write_suite(tmp_path, server.base_url)
        with monkeypatch.context() as patched:
            patched.setattr(Recorder, "put", dying)
            with pytest.raises(RuntimeError, match="Event loop is closed"):
                judgekit.run(config, run_id="r")
        folder = tmp_path / "results" / "r"
        assert read_json(folder / "manifest.json")["status"] == "failed"
        assert "Event loop is closed" in read_json(folder / "manifest.json")["reason"]
        assert resumed(Ran(config, folder, None, None, server)).error is None


OPEN_FILES = """
import os, resource, sys, threading
resource.setrlimit(resource.RLIMIT_NOFILE, (128, 128))
import judgekit, openai
from judgekit.testing import FaultServer
count = lambda: len(os.listdir("/proc/self/fd"))
most, done = [0], threading.Event()
def watch():
    while not done.wait(0.005):
        most[0] = max(most[0], count())
before = count()
threading.Thread(target=watch, daemon=True).start()
judgekit.run(sys.argv[1], run_id="r")
done.set()
print(before, most[0], count())
"""


@pytest.mark.slow
def test_f06_open_files_stay_near_the_number_of_calls_in_flight(tmp_path: Path) -> None:
    with FaultServer(with_latency(0.02, then=good())) as server:
        config = write_suite(tmp_path, server.base_url, n_cases=800, model={"max_concurrency": 64})
        command = [sys.executable, "-c", OPEN_FILES, str(config)]
        result = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
        assert result.returncode == 0, result.stderr
        assert server.log.totals.max_in_flight <= 64
    before, most, after = map(int, result.stdout.split())
    assert most <= before + 64 + 40
    assert after <= before + 5  # the cache's database stays open until the process ends
    assert read_json(tmp_path / "results" / "r" / "metrics.json")["judges"]["groundedness"]["n_judged"] == 800


MEMORY = """
import re, sys, threading, judgekit
# Pages of the cache's database that SQLite maps are the system's, and come and go.
used = lambda: int(re.search(r"RssAnon:\\s+(\\d+) kB", open("/proc/self/status").read())[1]) / 1024
most, done = [0.0], threading.Event()
def watch():
    while not done.wait(0.02):
        most[0] = max(most[0], used())
judgekit.run(sys.argv[1], run_id="warm", limit=50)
from judgekit.storage import recorder
recorder.BATCH_ROWS, recorder.MOST_WAITING = 16, 64
before = used()
threading.Thread(target=watch, daemon=True).start()
judgekit.run(sys.argv[1], run_id="r")
done.set()
print(most[0] - before)
"""


@pytest.mark.slow
def test_f07_memory_does_not_grow_with_the_length_of_replies(tmp_path: Path) -> None:
    # The case is 20,000 replies of 20 kB in 300 MB. Here 3,000 of them, 60 MB: held in memory they would come on top of
    # some 45 MB that SQLite and what waits for the disk take at most.
    reply = good(reasoning="word " * 4000)
    with FaultServer(reply, keep_bodies=False) as server:
        config = write_suite(tmp_path, server.base_url, n_cases=3000)
        command = [sys.executable, "-c", MEMORY, str(config)]
        result = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert result.returncode == 0, result.stderr
    assert (tmp_path / "results" / "r" / "judgments.jsonl").stat().st_size > 60e6
    assert float(result.stdout) < 70


def command_line(config: Path, folder: Path) -> Ended:
    return judgekit_command("run", config, "--run-id", "r", cwd=folder)


@pytest.mark.parametrize(
    ("gate", "code"),
    [
        # 13 of 20 answers have nothing to do with their passages.
        pytest.param({"metric": "groundedness_pass_rate", "op": ">=", "value": 0.9}, 1, id="F10"),
        pytest.param({"metric": "groundedness_pass_rate", "op": ">=", "value": 0.35}, 0, id="F11"),
        pytest.param({"metric": "groundedness_pass_rate", "op": ">=", "value": 0.36}, 1, id="F11-just-missed"),
        pytest.param(None, 0, id="F11-no-gate"),
    ],
)
def test_the_exit_code_is_that_of_the_gate(tmp_path: Path, gate: dict[str, Any] | None, code: int) -> None:
    outputs = [output(f"c{n}") if n < 7 else output(f"c{n}", answer="Bananas sing loudly.") for n in range(20)]
    gates = [] if gate is None else [gate]
    result = command_line(write_suite(tmp_path, n_cases=20, output_rows=outputs, gates=gates), tmp_path)
    assert result.returncode == code, result.stderr
    assert ("gate: " in result.stdout) is (gate is not None)
    assert ("no gate was set" in result.stdout) is (gate is None)


def test_f12_a_run_without_a_single_verdict_is_no_success(tmp_path: Path) -> None:
    with FaultServer(after_capabilities(chat_reply("no idea"))) as server:
        gates = [{"metric": "groundedness", "op": ">=", "value": 4}]
        result = command_line(write_suite(tmp_path, server.base_url, n_cases=15, gates=gates), tmp_path)
    assert result.returncode == 3
    assert "measured 0 of 15" in result.stderr


def test_f14_one_unexpected_exception_costs_one_case(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read_verdict = Groundedness.read_verdict

    def faulty(self: Groundedness, payload: Any) -> Any:
        if payload["reasoning"] == "c5":
            raise ZeroDivisionError("a bug")
        return read_verdict(self, payload)

    monkeypatch.setattr(Groundedness, "read_verdict", faulty)

    def answer(request: Any) -> Any:
        return good(reasoning="c5" if "kiln c5 " in request.text.lower() else "")

    ran = carried_out(tmp_path, answer, n_cases=20)
    failure = ran.judgments["c5"]["failure"]
    assert failure["kind"] == "internal"
    assert re.fullmatch(r"ZeroDivisionError: a bug \(test_failure_cases_runtime\.py:\d+\)", failure["message"])
    assert ran.judgments["c5"]["n_requests"] == 1  # it was paid for
    assert ran.judgments["c5"]["usage"]["prompt_tokens"] > 0
    assert ran.metrics["judges"]["groundedness"]["n_judged"] == 19
    assert ran.metrics["cost"]["n_calls"] == 20


@pytest.mark.parametrize("where", ["build_input", "scores"])
def test_f14_a_bug_anywhere_in_a_judge_costs_the_cases_that_it_meets(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    sound = getattr(Groundedness, where)
    n_calls = 0

    def faulty(self: Groundedness, *given: Any) -> Any:
        nonlocal n_calls
        n_calls += 1
        if n_calls == 3:
            raise KeyError("a bug")
        return sound(self, *given)

    monkeypatch.setattr(Groundedness, where, faulty)
    ran = carried_out(tmp_path, good())
    assert ran.summary is not None
    figure = ran.metrics["overall"]["groundedness"]
    assert (figure["n"], figure["n_error"], figure["value"]) == (5, 1, 4.0)
    assert "groundedness: KeyError: 'a bug' (case 'c2'" in ran.warnings["internal_error"]
    reasons = Counter(
        item["reason"] for item in read_lines(ran.folder / "scores.jsonl") if item["name"] == "groundedness"
    )
    assert reasons == {None: 5, "failed: internal": 1}


def test_f14_a_bug_in_a_metric_costs_its_figures_of_that_case(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calculate = AnswerChecks.calculate

    def faulty(self: AnswerChecks, case_: Case, output_: SystemOutput) -> Outcomes:
        if case_.id == "c1":
            raise ValueError("a bug")
        return calculate(self, case_, output_)

    monkeypatch.setattr(AnswerChecks, "calculate", faulty)
    ran = carried_out(tmp_path, good())
    assert ran.metrics["overall"]["groundedness"]["n"] == 6
    rows = [item for item in read_lines(ran.folder / "scores.jsonl") if item["reason"] == "failed: internal"]
    assert {item["case_id"] for item in rows} == {"c1"}


def test_f14_a_prompt_that_cannot_be_rendered_costs_its_case(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from judgekit.core.prompts import PromptTemplate

    render = PromptTemplate.render

    def faulty(self: PromptTemplate, variables: Any) -> Any:
        if "c4" in str(variables["answer"]):
            raise ValueError("a bug")
        return render(self, variables)

    monkeypatch.setattr(PromptTemplate, "render", faulty)
    ran = carried_out(tmp_path, good())
    assert ran.judgments["c4"]["failure"]["kind"] == "internal"
    assert ran.judgments["c4"]["n_requests"] == 0
    assert ran.metrics["judges"]["groundedness"]["n_judged"] == 5


def test_every_model_is_probed_before_the_first_case(tmp_path: Path) -> None:
    models = {name: {"model": f"{name}-2025-01-01", "max_concurrency": 2} for name in ("m", "second")}

    def answer(request: Any) -> Any:
        from judgekit.testing import error_reply

        if request.model.startswith("second"):
            return error_reply(400, "'temperature' does not support 0 with this model", param="temperature")
        return good()

    with FaultServer(answer) as server:
        for model in models.values():
            model["base_url"] = server.base_url
        ran = again(write_suite(tmp_path, server.base_url, models=models, spot_check={"model": "second"}), server)
    assert isinstance(ran.error, ProviderError)
    assert ran.asked == []


N_CALLS = 10_000
KEY = "storm-key-f00dcafe-0123456789"


class Storm:
    """20% of replies go wrong, on the way or in what they say; what was billed and lost is noted."""

    def __init__(self) -> None:
        # The capability call is of no case, and its outcome is another test's business.
        self._faults: SeededFaults = seeded_faults(0.2, seed=11, mix={**RETRYABLE_MIX, **REPLY_MIX})
        self.n_capability_calls = 0

    def __call__(self, request: Any) -> Any:
        assert request.headers["authorization"] == f"Bearer {KEY}"
        if is_capability_call(request.body):
            self.n_capability_calls += 1
            return chat_reply('{"ready": true}', usage={"prompt_tokens": 0, "completion_tokens": 0})
        return self._faults(request)


@pytest.mark.slow
def test_ten_thousand_calls_in_a_storm_of_faults_add_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STORM_KEY", KEY)
    model = {"api_key_env": "STORM_KEY", "max_concurrency": 64}
    storm = Storm()
    with FaultServer(storm, keep_bodies=False) as server:
        ran = again(write_suite(tmp_path, server.base_url, n_cases=N_CALLS, model=model), server)
        totals = server.log.totals
    assert ran.summary is not None

    rows = read_lines(ran.folder / "judgments.jsonl")
    assert len(rows) == len({row["case_id"] for row in rows}) == N_CALLS
    assert all((row["verdict"] is None) is not (row["failure"] is None) for row in rows)
    record = ran.summary.judges["groundedness"]
    kinds = Counter(row["failure"]["kind"] for row in rows if row["failure"])
    assert record["failures"] == dict(sorted(kinds.items()))
    assert record["n_judged"] + sum(kinds.values()) == N_CALLS
    # What says nothing about the case was asked again, five times at most: lost is 0.2 ** 5 of it, if anything.
    assert kinds["truncated"] and kinds["refused"] and kinds["filtered"]
    assert sum(kinds[name] for name in ("connection", "server_error", "rate_limited", "timeout")) < N_CALLS * 0.003
    figure = ran.summary.overall["groundedness"]
    assert isinstance(figure, judgekit.Estimate)
    assert (figure.n, figure.n_error) == (record["n_judged"], sum(kinds.values()))

    cost = ran.summary.cost
    assert cost["n_calls"] == totals.n_requests - storm.n_capability_calls
    assert cost["prompt_tokens"] == totals.prompt_tokens
    assert cost["completion_tokens"] == totals.completion_tokens
    assert totals.max_in_flight <= 64
    assert set(totals.faults) >= {"rate_limit", "server_error", "overloaded", "reset", "close_after_bytes", "html"}
    for path in tmp_path.rglob("*"):
        if path.is_file():
            assert KEY.encode() not in path.read_bytes(), path
