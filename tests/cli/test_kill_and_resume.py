"""A run that is killed at any moment and resumed ends as if nothing had happened."""

import random
import re
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from judgekit.testing import FaultServer, Reply, Request, chat_reply, plausible_verdict, truncated_reply, with_latency
from tests.builders import case, read_json, read_lines, write_suite
from tests.cli.fork_server import Ended, ForkServer, Started
from tests.doubles.changes import alias_move
from tests.doubles.malformed import malformed_verdict

pytestmark = pytest.mark.slow

N_CASES = 40
N_CHECKED = 12
SEED = 20260131
WHOLE_FILES = ("config.json", "cases.jsonl", "prompts.json", "outputs.jsonl", "judge_inputs.jsonl", "scores.jsonl")
"""Files that are the same to the byte, however often the run was killed."""

CHANGES_WITH_TIME = ("created_at", "latency", "cost")


def reply_by_case(request: Request) -> Reply:
    """Always the same for a case: of ten, one is cut off, one never readable, one only when asked again, one fenced."""
    found = re.search(r"kiln c(\d+)", request.text)
    kind = int(found.group(1)) % 10 if found else 0
    asked_again = "A previous reply to this task could not be used" in request.text
    if kind == 3 or (kind == 5 and not asked_again):
        return chat_reply("I would rather not say.")
    if kind == 7:
        return truncated_reply()
    return malformed_verdict("fenced") if kind == 9 and "reference" in request.text else plausible_verdict(request)


@dataclass
class Suite:
    """A config, who runs it, and what an undisturbed run of it leaves."""

    folder: Path
    config: Path
    commands: ForkServer
    expected: dict[str, Any]
    steps: tuple[str, ...]
    seconds: float
    judgment_lines: list[bytes]
    n_tried: int = 0

    def results(self) -> Path:
        """A results folder of its own for an attempt, so that its cache is its own too."""
        self.n_tried += 1
        return self.folder / f"results-{self.n_tried}"

    def arguments(self, results: Path) -> tuple[str, ...]:
        """Those of the first start."""
        return ("run", str(self.config), "--run-id", "r", "--results-dir", str(results))


@pytest.fixture(scope="module")
def suite(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Suite]:
    folder = tmp_path_factory.mktemp("killed")
    script = with_latency(0.003, jitter_seconds=0.004, then=reply_by_case)
    with FaultServer(script, keep_bodies=False) as server, ForkServer(folder) as commands:
        model = {"base_url": server.base_url, "max_concurrency": 4, "timeout_seconds": 10}
        config = write_suite(
            folder,
            n_cases=N_CASES,
            case_rows=[case(f"c{number}", category="ab"[number % 2]) for number in range(N_CASES)],
            models={"m": {**model, "model": "judge-2025-01-01"}, "n": {**model, "model": "other-2025-01-01"}},
            judges=[{"name": "groundedness", "model": "m"}, {"name": "correctness", "model": "m"}],
            spot_check={"n": N_CHECKED, "model": "n"},
            seed=SEED,
            slices=["category"],
            gates=[{"metric": "error_rate", "op": "<=", "value": 0.5}],
        )
        made = Suite(folder, config, commands, {}, (), 0.0, [])
        results = made.results()
        ended = commands.run(*made.arguments(results), below=results)
        assert ended.returncode == 0, ended.text
        made.steps = ended.steps
        made.expected = account(results / "r")
        made.judgment_lines = (results / "r" / "judgments.jsonl").read_bytes().splitlines(keepends=True)
        started = time.monotonic()
        assert commands.run(*made.arguments(made.results())).returncode == 0
        made.seconds = time.monotonic() - started
        yield made


def account(folder: Path) -> dict[str, Any]:
    """All of a run folder that must not depend on whether the run was disturbed."""
    judgments = read_lines(folder / "judgments.jsonl")
    metrics = read_json(folder / "metrics.json")
    for name in CHANGES_WITH_TIME:
        del metrics[name]
    del metrics["operational"]["wall_seconds"], metrics["operational"]["n_resumed"]
    manifest = read_json(folder / "manifest.json")
    models = manifest["models"].values()
    return {
        "files": sorted(path.name for path in folder.iterdir()),
        "judged": sorted((item["role"], item["judge"], item["case_id"]) for item in judgments),
        "verdicts": {
            f"{item['role']} {item['judge']} {item['case_id']}": item["verdict"] or item["failure"]
            for item in judgments
        },
        "readings": sorted((item["case_id"], item.get("parse_path") or "") for item in judgments),
        "metrics": metrics,
        "manifest": (manifest["status"], manifest["reason"], manifest["counts"]),
        "builds": [(model["build_hash"], model["build_source"], model["capabilities"]) for model in models],
        **{
            name: (folder / name).read_bytes().decode()
            for name in (
                "config.json",
                "cases.jsonl",
                "prompts.json",
                "outputs.jsonl",
                "judge_inputs.jsonl",
                "scores.jsonl",
            )
        },
    }


def stage(folder: Path) -> str:
    """How far a run had come, by what it left."""
    if not folder.exists():
        return "no folder"
    if not (folder / "judgments.jsonl").exists():
        return "inputs"
    if not any("scores.jsonl" in path.name for path in folder.iterdir()):
        return "judging"
    return "complete" if read_json(folder / "manifest.json")["status"] == "complete" else "figures"


def tear(suite: Suite, folder: Path, rng: random.Random) -> bool:
    """Leave a part of a line at the end of the judgments, as a kill halfway through a write does."""
    path = folder / "judgments.jsonl"
    if stage(folder) not in ("judging", "figures"):
        return False
    line = rng.choice(suite.judgment_lines)
    with path.open("ab") as stream:
        stream.write(line[: rng.randrange(1, len(line))])
    return True


def killed_after(command: Started, seconds: float) -> Ended:
    """SIGKILL after so many seconds, or its end where that comes first."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline and command.is_running():
        time.sleep(0.001)
    command.kill()
    return command.ended()


def gone_on(suite: Suite, results: Path, *, kill_after: float | None = None) -> Ended:
    """`--resume`; a run that was killed before it began is started again, as the message says."""
    arguments: tuple[str, ...] = ("run", "--resume", str(results / "r"))
    if not (results / "r" / "manifest.json").exists():
        refused = suite.commands.run(*arguments)
        assert refused.returncode == 2
        lines = refused.text.splitlines()
        assert len(lines) == 1, refused.text
        begun = (results / "r").exists()
        assert ("start it again: judgekit run CONFIG --run-id r" if begun else "(no such folder)") in lines[0]
        arguments = suite.arguments(results)
    if kill_after is not None:
        return killed_after(suite.commands.start(*arguments), kill_after)
    return suite.commands.run(*arguments)


def assert_undisturbed(suite: Suite, results: Path, last: Ended) -> None:
    """The files are those of an undisturbed run."""
    was_complete = last.returncode == 2 and "this run is complete" in last.text
    assert last.returncode == 0 or was_complete, last.text
    found = account(results / "r")
    for name, value in suite.expected.items():
        assert found[name] == value, name
    assert len(set(found["judged"])) == len(found["judged"]) == 2 * (N_CASES + N_CHECKED)


def test_killed_before_each_step_on_the_disk(suite: Suite) -> None:
    rng = random.Random(SEED)
    stages: Counter[str] = Counter()
    for number, step in enumerate(suite.steps):
        results = suite.results()
        killed = suite.commands.run(*suite.arguments(results), below=results, dies_before=number)
        assert killed.returncode == -signal.SIGKILL, (step, killed.text)
        stages[stage(results / "r")] += 1
        if number % 2:
            tear(suite, results / "r", rng)
        if number % 5 == 0:
            gone_on(suite, results, kill_after=rng.uniform(0.0, suite.seconds))
        assert_undisturbed(suite, results, gone_on(suite, results))
    assert stages["no folder"] >= 2
    assert stages["inputs"] >= 8
    assert stages["judging"] >= 2
    assert stages["figures"] >= 6


@pytest.mark.parametrize("number", range(19))
def test_killed_at_a_random_moment(suite: Suite, number: int) -> None:
    rng = random.Random(SEED + number)
    results = suite.results()
    # Strata of the whole run, so that no part of it is left out.
    killed_after(suite.commands.start(*suite.arguments(results)), suite.seconds * (number + rng.random()) / 19)
    is_torn = tear(suite, results / "r", rng) if number % 2 else False
    if number % 4 == 1:
        gone_on(suite, results, kill_after=rng.uniform(0.0, suite.seconds))
    assert_undisturbed(suite, results, gone_on(suite, results))
    if is_torn:
        assert (results / "r" / "judgments.jsonl").read_bytes().endswith(b"}\n")


@pytest.mark.parametrize("number", range(6))
def test_the_real_command_killed_at_a_random_moment(suite: Suite, number: int) -> None:
    rng = random.Random(SEED - number)
    results = suite.results()
    command = [sys.executable, "-m", "judgekit"]
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    process = subprocess.Popen([*command, *suite.arguments(results)], **quiet)  # type: ignore[call-overload]
    # The first one dies while it starts; the others at some time after the folder is there.
    deadline = time.monotonic() + 30
    while number and not (results / "r").exists() and time.monotonic() < deadline:
        time.sleep(0.001)
    time.sleep(rng.uniform(0.0, suite.seconds * 0.9))
    process.kill()
    process.wait()

    if not (results / "r" / "manifest.json").exists():
        last = gone_on(suite, results)
    else:
        again = subprocess.run(
            [*command, "run", "--resume", str(results / "r")], capture_output=True, text=True, check=False, timeout=60
        )
        last = Ended(again.returncode, again.stdout, again.stderr)
    assert_undisturbed(suite, results, last)


def test_a_line_that_the_kernel_tore_is_cut_off_and_its_call_made_again(suite: Suite) -> None:
    results = suite.results()
    limit = 60_000
    killed = suite.commands.run(*suite.arguments(results), "--no-cache", file_limit=limit)
    assert killed.returncode == -signal.SIGXFSZ
    path = results / "r" / "judgments.jsonl"
    torn = path.read_bytes()
    assert len(torn) == limit
    whole = torn[: torn.rfind(b"\n") + 1]
    assert 0 < len(whole) < limit

    last = suite.commands.run("run", "--resume", str(results / "r"), "--no-cache")

    assert path.read_bytes().startswith(whole)
    assert_undisturbed(suite, results, last)


def test_a_run_that_was_killed_before_it_began_is_started_again_under_its_name(suite: Suite) -> None:
    results = suite.results()
    (results / "r").mkdir(parents=True)
    (results / "r" / ".lock").touch()
    (results / "r" / "config.json").write_text("{}")
    (results / "r" / ".manifest.json.1.tmp").write_text("{")
    assert_undisturbed(suite, results, gone_on(suite, results))


def test_a_folder_of_something_else_is_not_taken_for_a_run_that_was_killed(suite: Suite) -> None:
    results = suite.results()
    (results / "r").mkdir(parents=True)
    (results / "r" / "thesis.txt").write_text("mine")
    ended = suite.commands.run(*suite.arguments(results))
    assert ended.returncode == 2
    assert "exists already" in ended.text
    assert [path.name for path in (results / "r").iterdir()] == ["thesis.txt"]


@pytest.mark.parametrize("what", ["name", "build"])
def test_a_model_that_moved_while_the_run_was_dead_is_refused_on_resume(tmp_path: Path, what: str) -> None:
    with FaultServer(with_latency(0.02, then=alias_move("judge-a", "judge-b", 10**6))) as server:
        config = write_suite(tmp_path, server.base_url, n_cases=N_CASES, model={"max_concurrency": 2})
        with ForkServer(tmp_path) as commands:
            folder = tmp_path / "results" / "r"
            command = commands.start("run", str(config), "--run-id", "r", "--no-cache")
            deadline = time.monotonic() + 30
            while not (folder / "judgments.jsonl").exists() or not (folder / "judgments.jsonl").stat().st_size:
                assert time.monotonic() < deadline
                time.sleep(0.002)
            command.kill()
            assert command.ended().returncode == -signal.SIGKILL
            if what == "name":
                server.play(alias_move("judge-a", "judge-b", 0))
            else:
                server.info.build_info = "b2000-0000000"
            ended = commands.run("run", "--resume", str(folder), "--no-cache")
    assert ended.returncode == 3, ended.text
    assert {"name": "the reply comes from judge-b, expected judge-a", "build": "begun with sha256:"}[what] in ended.text
    assert {item["served_model"] for item in read_lines(folder / "judgments.jsonl")} == {"judge-a"}
