"""docs/reliability.md on the shipped example: its commands run as they stand there, and print what it shows of them."""

import os
import re
import subprocess
import sys

import pytest

from judgekit.analysis.drift_states import drift_report
from judgekit.reports.timelines import drift_text
from tests.builders import REPOSITORY, weekly_point

pytestmark = pytest.mark.slow

PAGE = (REPOSITORY / "docs" / "reliability.md").read_text(encoding="utf-8")
[EXAMPLE] = re.findall(r"## On the shipped example\n.*?```bash\n(.*?)```", PAGE, re.DOTALL)
EXCERPTS = re.findall(r"```text\n(.*?)```", PAGE, re.DOTALL)
[DRIFTED] = [excerpt for excerpt in EXCERPTS if excerpt.startswith("groundedness v1 on data set")]
"""The one excerpt that is not of the example, which has no history of twelve weeks."""
FLIPS = (1, 1, 2, 1, 1, 2, 2, 0, 8, 6, 6, 6)
"""Of 20 pairs each week: 10 of 160 in eight weeks, then 26 of 80 in four."""


@pytest.fixture(scope="module")
def printed(tmp_path_factory: pytest.TempPathFactory) -> str:
    """All that the commands print, one after the other in one shell, in a folder that has of a checkout its configs."""
    folder = tmp_path_factory.mktemp("checkout")
    (folder / "configs").symlink_to(REPOSITORY / "configs")
    short = folder / "bin" / "judgekit"
    short.parent.mkdir()
    short.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m judgekit "$@"\n')
    short.chmod(0o755)
    environment = {
        **os.environ,
        "PATH": f"{short.parent}:{os.environ['PATH']}",
        "PYTHONPATH": os.pathsep.join([str(REPOSITORY), os.environ.get("PYTHONPATH", "")]),
    }
    # `label` asks a person; here it finds the end of its input and stops.
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", EXAMPLE],
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_example_has_every_command_of_the_page() -> None:
    named = {line.split()[1] for line in EXAMPLE.splitlines()}
    assert named >= set(re.findall(r"^\| .* \| \[`judgekit (\w+)`\]", PAGE, re.MULTILINE))


@pytest.mark.parametrize(
    "excerpt", [item for item in EXCERPTS if item != DRIFTED], ids=lambda item: " ".join(item.split()[:2])
)
def test_what_the_page_shows_is_what_the_commands_print(printed: str, excerpt: str) -> None:
    lines = printed.splitlines()
    assert [line for line in excerpt.splitlines() if line not in lines] == []


def test_the_drift_that_the_page_shows_is_what_is_said_of_such_a_history() -> None:
    judge = {"comparator": "judge-2025-01-01 with v1", "dataset_sha256": "adc514737fa5" + "0" * 52}
    points = [weekly_point(week, n_disagree, **judge) for week, n_disagree in enumerate(FLIPS, start=1)]
    said = drift_text(drift_report(points).document()).splitlines()
    assert [line for line in DRIFTED.splitlines() if line not in said] == []
