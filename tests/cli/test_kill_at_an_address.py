"""A run at an address that is killed at any step: nobody finds a manifest without its files, and it can be resumed."""

import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.builders import read_json, write_suite
from tests.cli.fork_server import Ended, ForkServer

pytestmark = pytest.mark.slow

N_KILLED = 12
"""Steps that are tried, beside every one at the address itself."""


@dataclass
class Machines:
    """Several machines beside one store, anew for each attempt."""

    folder: Path
    config: str
    commands: ForkServer

    def run(self, attempt: str, machine: str, *words: str, dies_before: int | None = None) -> Ended:
        """Run a command line on one of the machines."""
        folder = self.folder / attempt
        return self.commands.run(
            *words,
            *("--results-dir", f"file://{folder}/store"),
            environment={"JUDGEKIT_REMOTE_DIR": str(folder / machine)},
            below=folder,
            dies_before=dies_before,
        )

    def judge(self, attempt: str, dies_before: int | None = None) -> Ended:
        return self.run(attempt, "first", "run", self.config, "--run-id", "r", "-q", dies_before=dies_before)

    def overall(self, attempt: str) -> Any:
        """The figures at the address."""
        return read_json(self.folder / attempt / "store/r/metrics.json")["overall"]


@pytest.fixture(scope="module")
def machines(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Machines]:
    pytest.importorskip("fsspec", reason="fsspec is an extra")
    folder = tmp_path_factory.mktemp("machines")
    with ForkServer(folder) as commands:
        yield Machines(folder, str(write_suite(folder / "suite", n_cases=3)), commands)


def tried(steps: tuple[str, ...]) -> list[int]:
    """Some steps of a command, and more of those at the address, the first and the last among them."""
    in_store = [number for number, step in enumerate(steps) if " /store/" in step]
    assert in_store
    return sorted({*range(0, len(steps), max(1, len(steps) // N_KILLED)), *in_store[::3], in_store[-1]})


def test_a_new_run_survives_a_kill_at_any_step(machines: Machines) -> None:
    whole = machines.judge("whole")
    assert whole.returncode == 0, whole.text
    for step in tried(whole.steps):
        name, at = f"run-{step}", f"{step}: {whole.steps[step]}"
        assert machines.judge(name, dies_before=step).returncode == -9
        seen = machines.run(name, "second", "runs", "show", "r")
        assert seen.returncode in (0, 2), f"{at}\n{seen.text}"
        resumed = machines.run(name, "first", "run", machines.config, "--resume", "r", "-q")
        if "no run here" in resumed.stderr:
            resumed = machines.judge(name)
        assert resumed.returncode == 0 or "there is nothing to resume" in resumed.stderr, f"{at}\n{resumed.text}"
        seen = machines.run(name, "second", "runs", "show", "r")
        assert seen.returncode == 0, f"{at}\n{resumed.text}\n{seen.text}"
        assert machines.overall(name) == machines.overall("whole")


@pytest.mark.parametrize("words", [("rescore", "r"), ("runs", "tag", "r", "main")])
def test_a_complete_run_survives_a_kill_of_what_changes_it(machines: Machines, words: tuple[str, ...]) -> None:
    base = f"base-{words[0]}"
    assert machines.judge(base).returncode == 0
    (machines.folder / base / "first").rename(machines.folder / f"first-of-{base}")
    shutil.copytree(machines.folder / base, machines.folder / f"{base}-whole")
    whole = machines.run(f"{base}-whole", "second", *words)
    assert whole.returncode == 0, whole.text
    for step in tried(whole.steps):
        name, at = f"{base}-{step}", f"{step}: {whole.steps[step]}"
        shutil.copytree(machines.folder / base, machines.folder / name)
        assert machines.run(name, "second", *words, dies_before=step).returncode == -9
        seen = machines.run(name, "third", "runs", "show", "r")
        assert seen.returncode == 0, f"{at}\n{seen.text}"
        again = machines.run(name, "second", *words)
        assert again.returncode == 0, f"{at}\n{again.text}"
        seen = machines.run(name, "third", "runs", "show", "r")
        assert seen.returncode == 0, f"{at}\n{again.text}\n{seen.text}"
        assert machines.overall(name) == machines.overall(base)
        assert read_json(machines.folder / name / "store/r/manifest.json")["changing"] is False, at
