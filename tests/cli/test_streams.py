"""Where the command line's own output goes: a closed stream, a full disk behind `>`, a reader that left."""

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import IO

import pytest

from tests.builders import output, read_json, write_suite
from tests.cli.fork_server import ENVIRONMENT, judgekit, one_error_line

pytestmark = pytest.mark.slow

FULL = Path("/dev/full")


@pytest.mark.skipif(not FULL.exists(), reason="no /dev/full on this system")
@pytest.mark.parametrize("command", [["run", "config.json"], ["validate", "config.json"], ["schema"], ["runs", "list"]])
def test_output_that_cannot_be_written_is_one_line_and_exit_code_4(tmp_path: Path, command: list[str]) -> None:
    write_suite(tmp_path, output_rows=[output(f"c{number}", abstained=False) for number in range(6)])
    judgekit("run", "config.json", "--run-id", "r", cwd=tmp_path)
    with FULL.open("w") as full:
        result = _written_to(full, [*command, *(["-q"] if command[0] == "run" else [])], tmp_path)
    assert result.returncode == 4
    assert one_error_line(result) == f"standard output: cannot be written: {os.strerror(28)}"


@pytest.mark.parametrize("command", ["run config.json -q", "validate config.json", "runs list", "runs show r"])
def test_a_closed_stdout_is_one_that_nobody_reads(tmp_path: Path, command: str) -> None:
    write_suite(tmp_path, output_rows=[output(f"c{number}", abstained=False) for number in range(6)])
    judgekit("run", "config.json", "--run-id", "r", cwd=tmp_path)
    result = _ended(["/bin/sh", "-c", f'"$0" -m judgekit {command} >&-', sys.executable], tmp_path)
    assert (result.returncode, result.stderr) == (0, "")


LEFT_EARLY = [
    "--help",
    "run --help",
    "schema",
    "validate config.json",
    "runs list",
    "runs show r --json",
    "report r",
    "run config.json -q",
    "run config.json -q --json",
    "rescore r",
    "spotcheck r -q --n 3 --against repeat",
]


@pytest.mark.parametrize("command", LEFT_EARLY)
def test_a_reader_that_leaves_early_ends_a_command_without_a_word(tmp_path: Path, command: str) -> None:
    write_suite(tmp_path, output_rows=[output(f"c{number}", abstained=False) for number in range(6)])
    assert judgekit("run", "config.json", "--run-id", "r", cwd=tmp_path).returncode == 0
    result = _without_a_reader(command, tmp_path)
    # 128 + 13, the number of SIGPIPE: 1 would say that a gate was missed, 0 that all of the output was read.
    assert (result.returncode, result.stderr) == (141, "")


def test_a_run_whose_reader_left_is_complete(tmp_path: Path) -> None:
    write_suite(tmp_path, output_rows=[output(f"c{number}", abstained=False) for number in range(6)])
    assert _without_a_reader("run config.json --run-id r", tmp_path).returncode == 141
    assert read_json(tmp_path / "results" / "r" / "manifest.json")["status"] == "complete"


def test_an_error_of_a_command_whose_reader_left_keeps_its_exit_code(tmp_path: Path) -> None:
    result = _without_a_reader("runs show nothing", tmp_path)
    assert result.returncode == 2
    assert "nothing" in one_error_line(result)


def _without_a_reader(command: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    """Run a command whose stdout is a pipe that nobody reads any more."""
    reading, writing = os.pipe()
    os.close(reading)
    try:
        return _written_to(writing, command.split(), cwd)
    finally:
        os.close(writing)


def _written_to(stdout: IO[str] | int, arguments: Sequence[str], cwd: Path) -> subprocess.CompletedProcess[str]:
    return _ended([sys.executable, "-m", "judgekit", *arguments], cwd, stdout)


def _ended(command: Sequence[str], cwd: Path, stdout: IO[str] | int | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command, cwd=cwd, env=ENVIRONMENT, stdout=stdout, stderr=subprocess.PIPE, text=True, timeout=60, check=False
    )
