"""A run at an address that is killed at any step: nobody finds a manifest without its files, and it can be resumed."""

from pathlib import Path

import pytest

from tests.builders import read_json, write_suite
from tests.cli.fork_server import Ended, ForkServer

pytestmark = pytest.mark.slow

N_KILLED = 12


def test_a_run_at_an_address_survives_a_kill_at_any_step(tmp_path: Path) -> None:
    pytest.importorskip("fsspec", reason="fsspec is an extra")
    config = str(write_suite(tmp_path / "suite", n_cases=3))

    with ForkServer(tmp_path) as commands:

        def run(attempt: str, machine: str, *words: str, dies_before: int | None = None) -> Ended:
            folder = tmp_path / attempt
            return commands.run(
                *words,
                *("--results-dir", f"file://{folder}/store"),
                environment={"JUDGEKIT_REMOTE_DIR": str(folder / machine)},
                below=folder,
                dies_before=dies_before,
            )

        whole = run("whole", "first", "run", config, "--run-id", "r", "-q")
        assert whole.returncode == 0, whole.text
        expected = read_json(tmp_path / "whole/store/r/metrics.json")["overall"]
        n_steps = len(whole.steps)
        in_store = [number for number, step in enumerate(whole.steps) if " /store/" in step]
        assert in_store[0] < in_store[-1] < n_steps
        for step in sorted({*range(0, n_steps, n_steps // N_KILLED), *in_store}):
            name = f"attempt-{step}"
            assert run(name, "first", "run", config, "--run-id", "r", "-q", dies_before=step).returncode == -9
            seen = run(name, "second", "runs", "show", "r")
            assert seen.returncode in (0, 2), (step, whole.steps[step], seen.text)
            resumed = run(name, "first", "run", config, "--resume", "r", "-q")
            if "no run here" in resumed.stderr:
                resumed = run(name, "first", "run", config, "--run-id", "r", "-q")
            assert resumed.returncode == 0 or "there is nothing to resume" in resumed.stderr, (step, resumed.text)
            shown = run(name, "second", "runs", "show", "r")
            assert shown.returncode == 0, f"{step}: {whole.steps[step]}\n{resumed.text}\n{shown.text}"
            assert read_json(tmp_path / name / "store/r/metrics.json")["overall"] == expected
