"""Where the command line's own output goes: a closed stream, a full disk behind `>`, a reader that left."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.builders import write_suite
from tests.cli.test_commands import ENVIRONMENT, judgekit, one_error_line

FULL = Path("/dev/full")


@pytest.mark.skipif(not FULL.exists(), reason="no /dev/full on this system")
@pytest.mark.parametrize("command", [["run", "config.json"], ["validate", "config.json"], ["schema"], ["runs", "list"]])
def test_output_that_cannot_be_written_is_one_line_and_exit_code_4(tmp_path: Path, command: list[str]) -> None:
    write_suite(tmp_path)
    judgekit("run", "config.json", "--run-id", "r", cwd=tmp_path)
    with FULL.open("w") as full:
        result = subprocess.run(
            [sys.executable, "-m", "judgekit", *command, *(["-q"] if command[0] == "run" else [])],
            cwd=tmp_path,
            env=ENVIRONMENT,
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            timeout=60,
            check=False,
        )
    assert result.returncode == 4
    assert one_error_line(result) == f"standard output: cannot be written: {os.strerror(28)}"


@pytest.mark.parametrize("command", ["run config.json -q", "validate config.json", "runs list", "runs show r"])
def test_a_closed_stdout_is_one_that_nobody_reads(tmp_path: Path, command: str) -> None:
    write_suite(tmp_path)
    judgekit("run", "config.json", "--run-id", "r", cwd=tmp_path)
    result = subprocess.run(
        ["/bin/sh", "-c", f'"$0" -m judgekit {command} >&-', sys.executable],
        cwd=tmp_path,
        env=ENVIRONMENT,
        stderr=subprocess.PIPE,
        text=True,
        timeout=60,
        check=False,
    )
    assert (result.returncode, result.stderr) == (0, "")
