"""A model that is asked by batch: a run submits, waits, goes on after a kill at any step, and pays once."""

import asyncio
import json
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from judgekit.core.errors import Interrupted, ProviderError
from judgekit.core.runs import RunSummary
from judgekit.engine.passes import Observer
from judgekit.reports.run_text import dry_run_text
from judgekit.storage.batch_store import BatchStore
from judgekit.testing import BatchFaults, FaultServer, Reply, Request, as_responder, truncated_reply, verdict
from judgekit.workflows.batch import cancel_batches
from judgekit.workflows.dry_run import dry_run
from judgekit.workflows.job import start
from judgekit.workflows.models import Options
from judgekit.workflows.resuming import resume_job
from judgekit.workflows.run import run
from judgekit.workflows.setup import set_up
from tests.builders import case, output, read_lines, write_suite

GOOD = verdict(4, supported=["a"])
KEY = "sk-batch-0123456789abcdef"


def suite(folder: Path, server: FaultServer, n_cases: int = 6, **config: Any) -> Path:
    model = {"mode": "batch", "batch": {"poll_seconds": 0.01}, "max_attempts": 3, **config.pop("model", {})}
    return write_suite(folder, server.base_url, n_cases=n_cases, model=model, **config)


def begun(path: Path, observer: Observer | None = None) -> RunSummary:
    options = Options(results_dir=path.parent / "results", run_id="r", environment={"JUDGE_KEY": KEY})
    return asyncio.run(run(start(set_up(path, options), options), observer or Observer()))


def resumed(path: Path, observer: Observer | None = None) -> RunSummary:
    options = Options(results_dir=path.parent / "results", environment={"JUDGE_KEY": KEY})
    return asyncio.run(run(resume_job("r", path, options), observer or Observer()))


def judgments(path: Path) -> list[dict[str, Any]]:
    return read_lines(path.parent / "results" / "r" / "judgments.jsonl")


def measured(summary: RunSummary) -> int:
    return int(summary.judges["groundedness"]["n_judged"])


class Waits(Observer):
    """Keeps what is said while batches go on."""

    def __init__(self) -> None:
        self.texts: list[str] = []

    def waiting(self, text: str, *, is_new: bool) -> None:
        if is_new:
            self.texts.append(text)


@pytest.mark.slow
def test_a_run_submits_waits_and_judges_as_if_it_had_called(tmp_path: Path) -> None:
    with FaultServer(verdict(4, supported=["a"], reasoning=f"I was sent {KEY}")) as server:
        server.batch.faults.seconds = 0.4
        model = {"prices": {"input": 1e6, "output": 1e6}, "api_key_env": "JUDGE_KEY"}
        path = suite(tmp_path / "batch", server, model={**model, "batch": {"poll_seconds": 0.01, "max_requests": 4}})
        waits = Waits()
        summary = begun(path, waits)
        called = begun(suite(tmp_path / "calls", server, model={**model, "mode": None}))
        assert (summary.status, server.batch.n_created) == ("complete", 2)
        assert summary.overall["groundedness"] == called.overall["groundedness"]
        by_batch, by_call = judgments(path), judgments(tmp_path / "calls" / "config.json")
        assert sum(item["cost_usd"] for item in by_batch) == sum(item["cost_usd"] for item in by_call) / 2 > 0
        assert waits.texts[0] == "waiting for batches (2); Ctrl-C leaves them, and judgekit run --resume r goes on"
        assert waits.texts[1] == "model m: batch batch_0001 is in_progress: 0 of 4 answered"
        assert waits.texts[-1] == "model m: batch batch_0002 is completed: 2 of 2 answered"
        folder = path.parent / "results" / "r"
        assert not list(folder.glob("requests-*"))
        assert all(KEY.encode() not in file.read_bytes() for file in folder.iterdir() if file.is_file())
        assert server.batch.batches[0]["metadata"]["judgekit_run"] == "r"
        # The replies are in the cache, so the same run again asks nobody.
        again = Options(results_dir=path.parent / "results", run_id="s", environment={"JUDGE_KEY": KEY})
        assert asyncio.run(run(start(set_up(path, again), again), Observer())).status == "complete"
        assert server.batch.n_created == 2


def test_the_second_question_after_an_unreadable_reply_goes_into_a_second_batch(tmp_path: Path) -> None:
    def answer(request: Request) -> Reply:
        return as_responder("I would say four." if "A previous reply" not in request.text else GOOD)(request)

    with FaultServer(answer) as server:
        path = suite(tmp_path, server, n_cases=2, budget={"max_calls": 9})
        summary = begun(path)
        assert (summary.status, measured(summary), server.batch.n_created) == ("complete", 2, 2)
        assert [(len(item["earlier_attempts"]), item["n_requests"]) for item in judgments(path)] == [(1, 2)] * 2


@pytest.mark.slow
def test_a_failure_is_recorded_once_for_each_case_while_other_cases_go_on_in_further_batches(tmp_path: Path) -> None:
    def unreadable_at_first(request: Request) -> Reply:
        return as_responder("four" if "A previous reply" not in request.text else GOOD)(request)

    with FaultServer(unreadable_at_first) as server:
        server.batch.faults.missing = 0.4
        twins = [output(f"c{number}") | {"answer": f"twin {number // 2}"} for number in range(16)]
        cases = [case(f"c{number}") | {"question": f"twin {number // 2}"} for number in range(16)]
        path = suite(tmp_path, server, case_rows=cases, output_rows=twins)
        summary = begun(path)
        found = summary.judges["groundedness"]
        assert found["failures"].keys() == {"server_error"}
        assert 0 < found["n_judged"] < found["n_judged"] + found["n_failed"] == len(judgments(path)) == 16
        # Equal questions are one request, and what failed is not asked again before a resume.
        assert server.batch.n_created == 2
        assert max(server.batch.asked.values()) == 1


@pytest.mark.parametrize(
    ("faults", "kinds", "left_out"),
    [
        ({"missing": 0.5}, {"server_error"}, None),
        ({"expired": 0.5}, {"expired"}, None),
        ({"failed": 0.5}, {"server_error"}, None),
        ({"twice": 1.0, "n_foreign": 2}, set(), "foreign id (2), id twice (12)"),
        ({"is_cut": True}, {"server_error"}, "not JSON (1)"),
    ],
)
@pytest.mark.slow
def test_what_a_batch_does_not_answer_is_a_failure_and_asked_again_on_resume(
    tmp_path: Path, faults: dict[str, Any], kinds: set[str], left_out: str | None
) -> None:
    with FaultServer(GOOD) as server:
        server.batch.faults = BatchFaults(**faults)
        path = suite(tmp_path, server, n_cases=12)
        summary = begun(path)
        failures = summary.judges["groundedness"]["failures"]
        assert (summary.status, failures.keys()) == ("complete", kinds)
        n_failed = sum(failures.values())
        warnings = {warning.code: warning.message for warning in summary.warnings}
        assert warnings.get("batch_lines_left_out", "").endswith(left_out or "")
        assert ("batch_lines_left_out" in warnings) == (left_out is not None)
        assert len(judgments(path)) == 12
        if kinds:
            assert 0 < n_failed < 12
            server.batch.faults = BatchFaults()
            summary = resumed(path)
            assert (measured(summary), server.batch.n_created) == (12, 2)
            assert server.batch.asked.total() == 12 + n_failed


def test_a_batch_that_fails_validation_stops_the_run_and_is_made_again(tmp_path: Path) -> None:
    with FaultServer(GOOD) as server:
        server.batch.faults.is_invalid = True
        path = suite(tmp_path, server)
        with pytest.raises(ProviderError, match="batch batch_0001 failed validation: line 1: invalid_json_line: This"):
            begun(path)
        server.batch.faults = BatchFaults(is_there=False)
        with pytest.raises(
            ProviderError, match=r'a batch of 6 requests: .*HTTP 404.*no batch endpoint, leave "mode" out'
        ):
            resumed(path)
        server.batch.faults = BatchFaults()
        assert measured(resumed(path)) == 6


@pytest.mark.slow
def test_faults_of_the_endpoint_are_ridden_out_and_nothing_is_submitted_twice(tmp_path: Path) -> None:
    with FaultServer(GOOD) as server:
        steps = ("upload", "create", "retrieve", "content")
        server.batch.faults = BatchFaults(lost=dict.fromkeys(steps, 1), refused=dict.fromkeys((*steps, "list"), 1))
        path = suite(tmp_path, server, model={"max_attempts": 6})
        assert measured(begun(path)) == 6
        assert server.batch.n_created == 1


def test_a_batch_whose_id_was_lost_is_found_by_its_file_or_said_to_be_unknown(tmp_path: Path) -> None:
    with FaultServer(GOOD) as server:
        server.batch.faults = BatchFaults(lost={"create": 1}, keeps_metadata=False)
        path = suite(tmp_path, server, model={"max_attempts": 1})
        with pytest.raises(ProviderError, match="a batch of 6 requests: cannot reach"):
            begun(path)
        server.batch.faults.lists = False
        with pytest.raises(ProviderError, match="a batch of 6 requests: "):
            resumed(path)
        server.batch.faults.lists = True
        assert (measured(resumed(path)), server.batch.n_created) == (6, 1)


@pytest.mark.slow
def test_a_batch_that_has_no_room_is_submitted_again_and_a_lost_connection_is_waited_for(tmp_path: Path) -> None:
    with FaultServer(GOOD) as server:
        server.batch.faults = BatchFaults(n_without_room=1, lost={"retrieve": 2})
        settings = {"poll_seconds": 0.05, "max_requests": 3}
        waits = Waits()
        path = suite(tmp_path, server, model={"batch": settings, "max_attempts": 1})
        assert measured(begun(path, waits)) == 6
        statuses = [batch["status"] for batch in server.batch.batches]
        assert (statuses.count("completed"), set(statuses)) == (2, {"completed", "failed"})
        assert any("submitted again when another one is over" in text for text in waits.texts)
        assert server.batch.asked.total() == 6


def test_a_file_that_is_gone_leaves_failures_and_a_batch_that_is_gone_can_be_given_up(tmp_path: Path) -> None:
    with FaultServer(GOOD) as server:
        path = suite(tmp_path / "file", server, n_cases=2)
        with pytest.raises(asyncio.CancelledError):
            asyncio.run(_interrupted(path))
        assert server.batch.batches[0]["status"] == "completed"
        server.batch.files.clear()
        with pytest.raises(ProviderError, match=r"every call failed: server_error \(2\)"):
            resumed(path)
        assert measured(resumed(path)) == 2
        path = suite(tmp_path / "batch", server, n_cases=2)
        with pytest.raises(asyncio.CancelledError):
            asyncio.run(_interrupted(path))
        server.batch.forget_batches()
        with pytest.raises(ProviderError, match="HTTP 404"):
            resumed(path)
        assert asyncio.run(cancel_batches("r", Options(results_dir=path.parent / "results"))) == 1
        assert measured(resumed(path)) == 2


def test_a_budget_holds_before_a_batch_is_submitted(tmp_path: Path) -> None:
    with FaultServer(GOOD) as server:
        path = suite(tmp_path, server, budget={"max_calls": 4})
        with pytest.raises(Interrupted, match=r"budget.max_calls of 4 is reached"):
            begun(path)
        assert (server.batch.asked.total(), len(judgments(path))) == (4, 4)
        path = suite(tmp_path, server, budget={"max_calls": 6})
        assert (resumed(path).status, server.batch.asked.total()) == ("complete", 6)


@pytest.mark.slow
def test_a_run_goes_on_by_calls_once_its_batches_are_stopped(tmp_path: Path) -> None:
    with FaultServer(GOOD) as server:
        server.batch.faults = BatchFaults(seconds=60)
        path = suite(tmp_path, server, n_cases=3)
        with pytest.raises(asyncio.CancelledError):
            asyncio.run(_interrupted(path))
        assert server.batch.batches[0]["status"] == "in_progress"
        options = Options(results_dir=path.parent / "results")
        assert asyncio.run(cancel_batches("r", options)) == 1
        path = suite(tmp_path, server, n_cases=3, model={"mode": None})
        with pytest.raises(ProviderError, match=r"every call failed: expired \(3\)"):
            resumed(path)
        n_calls = server.log.totals.n_requests
        assert measured(resumed(path)) == 3
        assert (server.log.totals.n_requests, server.batch.n_created) == (n_calls + 3, 1)


async def _interrupted(path: Path) -> None:
    options = Options(results_dir=path.parent / "results", run_id="r")
    task = asyncio.create_task(run(start(set_up(path, options), options), _Cancels()))
    await task


class _Cancels(Observer):
    """Does what Ctrl-C does, once a batch is waited for."""

    def waiting(self, text: str, *, is_new: bool) -> None:
        for task in asyncio.all_tasks():
            task.cancel()


@pytest.mark.slow
def test_a_second_opinion_is_a_request_of_its_own(tmp_path: Path) -> None:
    with FaultServer() as server:
        path = suite(tmp_path, server, spot_check={"n": 3, "repeat": True}, seed=1)
        assert begun(path).status == "complete"
        assert (server.batch.n_created, len(server.batch.asked), server.batch.asked.total()) == (2, 9, 9)


@pytest.mark.slow
def test_two_models_go_by_batch_beside_one_that_is_called(tmp_path: Path) -> None:
    with FaultServer(GOOD) as server:
        path = suite(tmp_path, server, n_cases=5)
        document = json.loads(path.read_text())
        batched = document["models"]["m"]
        called = {name: value for name, value in batched.items() if name not in ("mode", "batch")}
        document["models"] |= {"n": {**batched, "seed": 2}, "o": {**called, "seed": 3}}
        document["judges"] = [{"name": "groundedness", "panel": {"models": ["m", "n", "o"]}}]
        path.write_text(json.dumps(document))
        assert begun(path).judges["groundedness"]["n_judged"] == 5
        assert (server.batch.n_created, server.batch.asked.total()) == (2, 10)
        roles = [(item["role"], item["model_id"]) for item in judgments(path)]
        assert sorted(set(roles)) == [("member", "m"), ("member", "n"), ("member", "o"), ("primary", "panel")]


@pytest.mark.slow
def test_replies_that_were_paid_for_are_all_read_even_if_the_first_twenty_are_useless(tmp_path: Path) -> None:
    def cut_off(request: Request) -> Reply:
        return truncated_reply() if "c24" not in request.text else as_responder(GOOD)(request)

    with FaultServer(cut_off) as server:
        rows = [output(f"c{number}") | {"answer": f"answer c{number}"} for number in range(25)]
        path = suite(tmp_path, server, n_cases=25, output_rows=rows)
        found = begun(path).judges["groundedness"]
        assert (found["failures"], found["n_judged"]) == ({"truncated": 24}, 1)


def test_a_dry_run_says_half_the_price(tmp_path: Path) -> None:
    with FaultServer() as server:
        found = {}
        for factor in (None, 1.0, 0.25):
            model = {"prices": {"input": 1, "output": 2}, "mode": "batch" if factor else None}
            path = suite(tmp_path, server, model={**model, "batch": {"price_factor": factor or 0.5}})
            options = Options(results_dir=tmp_path / "results")
            document = asyncio.run(dry_run(set_up(path, options), options))
            found[factor] = document["usd_at_most"]
        assert "\nmodel m is asked by batch, at 0.25 of its price" in dry_run_text(document)
        assert found[1.0] == found[None] > 0
        assert found[0.25] == pytest.approx(found[None] / 4)


@pytest.mark.slow
@pytest.mark.parametrize("step", ["upload", "create", "retrieve", "content"])
def test_a_run_that_is_killed_at_a_step_goes_on_there_and_pays_once(tmp_path: Path, step: str) -> None:
    with FaultServer() as server:
        server.batch.faults.hung[step] = 1  # the server does it, and the process is gone before it hears of it
        path = suite(tmp_path, server, n_cases=20, model={"max_attempts": 1, "timeout_seconds": 60})
        command = [sys.executable, "-m", "judgekit", "run", str(path), "--run-id", "r", "--quiet"]
        process = subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            for _ in range(600):
                if server.batch.calls[step] or process.poll() is not None:
                    break
                time.sleep(0.05)
            assert server.batch.calls[step] == 1
        finally:
            process.send_signal(signal.SIGKILL)
            process.wait()
        summary = resumed(path)
        assert (summary.status, measured(summary), server.batch.n_created) == ("complete", 20, 1)
        assert server.batch.asked.total() == 20
        assert len(judgments(path)) == 20


class _Killed(BaseException):
    """In the place of a signal, between two statements."""


@pytest.mark.slow
def test_a_run_that_is_killed_before_or_after_any_stored_step_goes_on_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = BatchStore.save
    with FaultServer(GOOD) as server:
        for number in range(1, 8):
            for is_before in (True, False):
                n_saved = 0

                def save(store: BatchStore, part: Any, at: int = number, early: bool = is_before) -> Any:
                    nonlocal n_saved
                    n_saved += 1
                    if n_saved == at and early:
                        raise _Killed
                    found = real(store, part)
                    if n_saved == at:
                        raise _Killed
                    return found

                n_created = server.batch.n_created
                path = suite(tmp_path / f"{number}-{is_before}", server, n_cases=2)
                monkeypatch.setattr(BatchStore, "save", save)
                try:
                    begun(path)
                except _Killed:
                    assert n_saved == number
                else:
                    assert n_saved < number
                monkeypatch.setattr(BatchStore, "save", real)
                folder = path.parent / "results" / "r"
                if json.loads((folder / "manifest.json").read_text())["status"] != "complete":
                    assert measured(resumed(path)) == 2
                assert server.batch.n_created == n_created + 1
                assert len(judgments(path)) == 2
