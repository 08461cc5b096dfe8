"""The pytest plugin in a project of its own: each outcome as its user sees it, alone and in two processes."""

import json
import os
import subprocess
import sys
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

import pytest

from judgekit.testing import FaultServer, server_error, verdict
from tests.builders import REPOSITORY

pytestmark = pytest.mark.slow

CONFIG = {
    "models": {"m": {"provider": "lexical", "model": "overlap-2"}},
    "judges": [{"name": "groundedness", "model": "m"}],
}
IS_INSTALLED = any(entry.name == "judgekit" for entry in entry_points(group="pytest11"))

GOOD = """
GOOD = {"question": "How hot?", "answer": "It is 1240 degrees.", "retrieved": [{"text": "It is 1240 degrees."}]}
BAD = {"question": "How hot?", "answer": "Nobody knows.", "retrieved": [{"text": "It is 1240 degrees."}]}

"""


def project(folder: Path, tests: str, config: dict[str, Any] | None = None) -> Path:
    (folder / "judgekit.json").write_text(json.dumps(config or CONFIG))
    (folder / "pytest.ini").write_text("[pytest]\nfilterwarnings = error\n")
    (folder / "test_bot.py").write_text("import pytest\n" + GOOD + tests)
    return folder


def outcome(folder: Path, *arguments: str) -> tuple[int, str]:
    """Exit code and output of the project's own pytest."""
    plugin = [] if IS_INSTALLED else ["-p", "judgekit.pytest_plugin.hooks"]
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *plugin, *arguments]
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY)}
    environment.pop("PYTEST_ADDOPTS", None)
    for name in [name for name in environment if name.startswith("PYTEST_XDIST")]:
        del environment[name]
    done = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, check=False, timeout=120
    )
    return done.returncode, done.stdout + done.stderr


def runs(folder: Path) -> list[Path]:
    return sorted(path for path in (folder / "results").iterdir() if (path / "manifest.json").exists())


THREE = """
def test_good(judged):
    found = judged(**GOOD)
    assert found.groundedness >= 4
    assert found["groundedness_pass"] == 1
    assert found.reasons["groundedness"]

def test_regression(judged):
    assert judged(**BAD).groundedness >= 4

def test_plain():
    assert True
"""


@pytest.mark.parametrize("processes", [[], ["-n", "2"]])
def test_a_session_is_one_run_and_a_real_regression_fails_its_test(tmp_path: Path, processes: list[str]) -> None:
    code, text = outcome(project(tmp_path, THREE), *processes)
    assert code == 1, text
    assert "2 passed" in text
    assert "1 failed" in text
    assert "judgekit" in text
    assert "groundedness " in text
    (run,) = runs(tmp_path)
    ids = [json.loads(line)["id"] for line in (run / "cases.jsonl").read_text().splitlines()]
    assert ids == ["test_bot.py::test_good", "test_bot.py::test_regression"]
    assert run.name in text
    assert not (tmp_path / "results" / ".pytest" / "x").exists()


def test_nothing_is_judged_or_imported_where_no_test_uses_it(tmp_path: Path) -> None:
    tests = (
        "import sys\n\ndef test_plain():\n    assert not [n for n in sys.modules if n.startswith('judgekit.core')]\n"
    )
    (tmp_path / "test_bot.py").write_text(tests)
    code, text = outcome(tmp_path)
    assert code == 0, text
    assert "judgekit ==" not in text
    assert not (tmp_path / "results").exists()


def test_help_names_the_options(tmp_path: Path) -> None:
    _, text = outcome(tmp_path, "--help")
    assert "--judgekit-config=FILE" in text
    assert "--judgekit-update-baseline" in text


def remote(server: FaultServer) -> dict[str, Any]:
    model = {"model": "judge-2026-01-15", "base_url": server.base_url, "max_attempts": 1}
    return {**CONFIG, "models": {"m": model}}


def test_a_judge_that_fails_is_an_error_and_not_a_failed_assertion(tmp_path: Path) -> None:
    tests = "def test_good(judged):\n    assert judged(**GOOD).groundedness >= 4\n"
    with FaultServer(server_error()) as server:
        code, text = outcome(project(tmp_path, tests, remote(server)))
    assert code == 1
    assert "1 error" in text
    assert "failed" not in text.splitlines()[-1]
    assert "JudgeFailed" in text


def test_a_flaky_judge_is_an_error_once_and_a_pass_the_next_time(tmp_path: Path) -> None:
    tests = "def test_good(judged):\n    assert judged(**GOOD).groundedness >= 4\n"
    with FaultServer() as server:
        folder = project(tmp_path, tests, remote(server))
        server.play(server_error())
        code, text = outcome(folder)
        assert (code, "1 error" in text) == (1, True), text
        server.play(verdict(5, supported=["hot"]))
        code, text = outcome(folder)
        assert (code, "1 passed" in text) == (0, True), text
        n_requests = server.log.totals.n_requests
        code, text = outcome(folder)
        assert (code, "1 passed" in text) == (0, True), text
        assert server.log.totals.n_requests == n_requests, "the reply was cached"


LIMITS = """
@pytest.mark.judge(groundedness_pass_rate=0.5)
@pytest.mark.parametrize("n", [{n}])
def test_quality(judged, n):
    for number in range(n):
        judged(**{which}, id=f"{{number}}")
"""


@pytest.mark.parametrize(
    ("n", "which", "arguments", "code", "said"),
    [
        (20, "GOOD", [], 0, "1 passed"),
        (20, "BAD", [], 1, "groundedness_pass_rate: 0 (n = 20, 0 to 0.161), expected at least 0.5"),
        (2, "GOOD", [], 0, "1 undecided"),
        (2, "GOOD", ["--judgekit-strict"], 1, "too few cases to tell"),
    ],
)
def test_a_limit_on_a_figure_is_passed_missed_or_not_decided(
    tmp_path: Path, n: int, which: str, arguments: list[str], code: int, said: str
) -> None:
    tests = LIMITS.format(n=n, which=which).replace(', id=f"{number}"', "")
    found, text = outcome(project(tmp_path, tests), *arguments)
    assert found == code, text
    assert said in text


def test_gates_of_the_config_hold_for_the_session_and_against_a_baseline(tmp_path: Path) -> None:
    gates = [{"metric": "groundedness", "not_worse_than": "latest:baseline", "margin": 0.1}]
    many = "\n".join(f"def test_{n}(judged):\n    judged(**GOOD)\n" for n in range(12))
    folder = project(tmp_path, many, {**CONFIG, "gates": gates})
    code, text = outcome(folder, "--judgekit-update-baseline")
    assert code == 0, text
    assert "tagged baseline" in text
    code, text = outcome(folder)
    assert code == 0, text
    (folder / "test_bot.py").write_text((folder / "test_bot.py").read_text().replace("judged(**GOOD)", "judged(**BAD)"))
    code, text = outcome(folder)
    assert code == 1, text
    assert "groundedness" in text
    assert "missed" in text


@pytest.mark.parametrize(
    ("tests", "said"),
    [
        ("def test_x(judged):\n    judged(quesion='x')\n", "no field called 'quesion'; did you mean 'question'?"),
        ("def test_x(judged):\n    judged(**GOOD).groundednes\n", "did you mean 'groundedness'?"),
        (
            "@pytest.mark.judge(groundednes=3)\ndef test_x(judged):\n    judged(**GOOD)\n",
            "did you mean 'groundedness'?",
        ),
    ],
)
def test_a_slip_is_named(tmp_path: Path, tests: str, said: str) -> None:
    code, text = outcome(project(tmp_path, tests))
    assert code == 1
    assert said in text


def test_without_a_config_the_error_says_where_it_was_looked_for(tmp_path: Path) -> None:
    project(tmp_path, "def test_x(judged):\n    judged(**GOOD)\n")
    (tmp_path / "judgekit.json").unlink()
    code, text = outcome(tmp_path)
    assert code == 1
    assert "judgekit.json: no such file; it holds models and judges (--judgekit-config names another)" in text
