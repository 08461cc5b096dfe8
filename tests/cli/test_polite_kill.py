"""A polite kill (SIGTERM), as a job scheduler or a container sends it, is taken as Ctrl-C by every command."""

import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from judgekit.testing import FaultServer, Reply, Request, verdict
from tests.builders import read_json, read_lines, write_suite
from tests.cli.fork_server import ENVIRONMENT, judgekit

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("ends_processes")]


def ignore_ctrl_c() -> None:
    """As a shell starts a command with `&` in a script."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def waiting(
    *arguments: str, cwd: Path, until: str, stream: str, before: Callable[[], None] | None = None
) -> subprocess.Popen[str]:
    """A command that has come to the point where it waits."""
    process = subprocess.Popen(
        [sys.executable, "-u", "-m", "judgekit", *arguments],
        cwd=cwd,
        env=ENVIRONMENT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=before,  # noqa: PLW1509  # no other thread of this process is at work
    )
    source = getattr(process, stream)
    seen = ""
    while until not in seen:
        character = source.read(1)
        assert character, f"ended after {seen!r}"
        seen += character
    return process


def test_labelling_that_is_killed_says_how_to_go_on(tmp_path: Path) -> None:
    write_suite(tmp_path)
    judgekit("run", "config.json", "--run-id", "r", cwd=tmp_path)
    process = waiting("label", "r", cwd=tmp_path, until="q quit: ", stream="stdout")
    process.send_signal(signal.SIGTERM)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "judgekit: error: interrupted; what was labelled is kept; the same command resumes" in errors


def test_the_viewer_stops(tmp_path: Path) -> None:
    write_suite(tmp_path)
    judgekit("run", "config.json", "--run-id", "r", cwd=tmp_path)
    process = waiting("view", "--no-open", "--port", "0", cwd=tmp_path, until="Ctrl-C to stop", stream="stderr")
    process.send_signal(signal.SIGTERM)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 0
    assert errors.splitlines()[-1] == "stopped"


def test_a_run_in_the_background_of_a_script_heeds_it_too_and_can_go_on(tmp_path: Path) -> None:
    asked = threading.Event()

    def slow(request: Request) -> Reply:
        if '{"ready": true}' not in request.text:
            asked.set()
            time.sleep(0.2)
        return verdict(4, supported=["hot"])

    with FaultServer(slow) as server:
        write_suite(tmp_path, server.base_url, n_cases=200, model={"max_concurrency": 1})
        process = subprocess.Popen(
            [sys.executable, "-m", "judgekit", "run", "config.json", "--run-id", "r"],
            cwd=tmp_path,
            env=ENVIRONMENT,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            preexec_fn=ignore_ctrl_c,  # noqa: PLW1509  # the one other thread waits for requests
        )
        assert asked.wait(60)
        time.sleep(0.5)
        process.send_signal(signal.SIGTERM)
        _, errors = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "judgekit: error: interrupted; resume with: judgekit run --resume" in errors
    assert "Traceback" not in errors
    assert read_json(tmp_path / "results" / "r" / "manifest.json")["status"] == "interrupted"
    assert 0 < len(read_lines(tmp_path / "results" / "r" / "judgments.jsonl")) < 200


def test_the_viewer_in_the_background_stops_too(tmp_path: Path) -> None:
    write_suite(tmp_path)
    judgekit("run", "config.json", "--run-id", "r", cwd=tmp_path)
    arguments = ("view", "--no-open", "--port", "0")
    process = waiting(*arguments, cwd=tmp_path, until="Ctrl-C to stop", stream="stderr", before=ignore_ctrl_c)
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=60)
    assert process.returncode == 0
