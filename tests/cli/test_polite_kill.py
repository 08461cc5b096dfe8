"""A polite kill (SIGTERM), as a job scheduler or a container sends it, is taken as Ctrl-C by every command."""

import signal
import subprocess
import sys
from pathlib import Path

from tests.builders import write_suite
from tests.cli.test_commands import ENVIRONMENT, judgekit


def waiting(*arguments: str, cwd: Path, until: str, stream: str) -> subprocess.Popen[str]:
    """A command that has come to the point where it waits."""
    process = subprocess.Popen(
        [sys.executable, "-u", "-m", "judgekit", *arguments],
        cwd=cwd,
        env=ENVIRONMENT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
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
    assert "judgekit: error: interrupted; what was labelled is kept; the same command goes on" in errors


def test_the_viewer_stops(tmp_path: Path) -> None:
    write_suite(tmp_path)
    judgekit("run", "config.json", "--run-id", "r", cwd=tmp_path)
    process = waiting("view", "--no-open", "--port", "0", cwd=tmp_path, until="Ctrl-C to stop", stream="stderr")
    process.send_signal(signal.SIGTERM)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 0
    assert errors.splitlines()[-1] == "stopped"
