"""Which run is meant."""

import json
from pathlib import Path

import pytest

from judgekit.core.errors import ConfigError
from judgekit.workflows.models import Options
from judgekit.workflows.selectors import find_run, select_run

RUNS = [
    # id, suite, created_at, tags
    ("demo-20260101-000000-aaaa", "demo", "2026-01-01", ["baseline"]),
    ("demo-20260102-000000-bbbb", "demo", "2026-01-02", ["baseline", "v2"]),
    ("other-20260103-000000-cccc", "other", "2026-01-03", []),
    ("v2", "v2", "2025-01-01", []),
]


@pytest.fixture
def results(tmp_path: Path) -> Path:
    for run_id, suite, created_at, tags in RUNS:
        folder = tmp_path / "results" / run_id
        folder.mkdir(parents=True)
        (folder / "manifest.json").write_text(json.dumps({"run_id": run_id, "name": suite, "created_at": created_at}))
        if tags:
            (folder / "tags.json").write_text(json.dumps({"tags": tags}))
    (tmp_path / "results" / "half").mkdir()
    (tmp_path / "results" / "torn").mkdir()
    (tmp_path / "results" / "torn" / "manifest.json").write_text("{")
    return tmp_path / "results"


@pytest.mark.parametrize(
    ("run", "expected"),
    [
        ("demo-20260101-000000-aaaa", "demo-20260101-000000-aaaa"),
        ("demo-20260101", "demo-20260101-000000-aaaa"),
        ("o", "other-20260103-000000-cccc"),
        ("latest", "other-20260103-000000-cccc"),
        ("latest:baseline", "demo-20260102-000000-bbbb"),
        ("latest:other", "other-20260103-000000-cccc"),
        # A tag goes before a suite of the same name.
        ("latest:v2", "demo-20260102-000000-bbbb"),
        ("v2", "v2"),
        # What does not exist is left to be named by whoever opens it.
        ("nothing", "nothing"),
        ("half", "half"),
    ],
)
def test_a_run_is_found_by_what_its_user_writes(results: Path, run: str, expected: str) -> None:
    assert select_run(run, results) == results / expected
    assert find_run(run, Options(results_dir=results)) == results / expected


def test_a_path_is_a_path(results: Path) -> None:
    path = results / RUNS[0][0]
    assert select_run(str(path), Path("elsewhere")) == path
    assert select_run(f"{path}/", Path("elsewhere")) == path


@pytest.mark.parametrize(
    ("run", "message"),
    [
        ("demo", "run 'demo': 2 runs in RESULTS begin so: demo-20260101-000000-aaaa, demo-20260102-000000-bbbb"),
        ("latest:nothing", "no run in RESULTS has the tag 'nothing' or is of that suite; tag one with"),
    ],
)
def test_what_is_not_one_run_is_an_error_that_says_the_next_step(results: Path, run: str, message: str) -> None:
    with pytest.raises(ConfigError) as raised:
        select_run(run, results)
    assert message.replace("RESULTS", str(results)) in str(raised.value)


def test_latest_of_an_empty_folder_or_none_is_an_error(tmp_path: Path) -> None:
    for folder in (tmp_path, tmp_path / "none"):
        with pytest.raises(ConfigError, match="latest: no run in"):
            select_run("latest", folder)


def test_a_run_that_is_called_latest_is_found_by_its_name(results: Path) -> None:
    (results / "latest").mkdir()
    (results / "latest" / "manifest.json").write_text("{}")
    assert select_run("latest", results) == results / "latest"
