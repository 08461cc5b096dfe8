"""`judgekit runs`, `judgekit rescore` and `judgekit drift` as their users meet them."""

import json
import os
import pty
import re
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

import judgekit as library
from judgekit import __version__
from judgekit.core.history_points import HistoryPoint
from judgekit.storage.database import DATABASE
from judgekit.storage.run_folder import RunFolder
from judgekit.storage.run_index import add_point
from judgekit.workflows.models import Options
from judgekit.workflows.stored_runs import delete_run
from tests.builders import read_json, seal_again, weekly_point, write_suite
from tests.cli.fork_server import ENVIRONMENT, judgekit, one_error_line

pytestmark = pytest.mark.slow  # each test starts processes


def suite(folder: Path, *run_ids: str, **fields: Any) -> Path:
    """Runs in a results folder that the command line finds from `folder`."""
    config = write_suite(folder, **fields)
    for run_id in run_ids:
        library.run(config, run_id=run_id)
    return folder / "results"


def test_runs_are_listed_newest_first_with_figures_and_tags(tmp_path: Path) -> None:
    suite(tmp_path, "demo-1", "demo-2")
    suite(tmp_path, "other-1", name="other", n_cases=2)
    tagged = judgekit("runs", "tag", "demo-1", "baseline", cwd=tmp_path)
    assert (tagged.returncode, tagged.stdout) == (0, "demo-1: baseline\n")
    header, *lines = judgekit("runs", "list", cwd=tmp_path).stdout.splitlines()
    assert header.split() == ["run", "suite", "when", "status", "cases", "figures", "tags"]
    assert sorted(line.split()[0] for line in lines) == ["demo-1", "demo-2", "other-1"]
    [row] = [line for line in lines if line.startswith("demo-1")]
    assert re.search(r"suite +\d{4}-\d\d-\d\d \d\d:\d\d +complete +6 +groundedness 5\.000 \(6\) +baseline$", row)
    for options, expected in (
        (["--suite", "other"], ["other-1"]),
        (["--tag", "baseline"], ["demo-1"]),
        (["--suite", "other", "--tag", "baseline"], []),
    ):
        found = json.loads(judgekit("runs", "list", "--json", *options, cwd=tmp_path).stdout)
        assert [run["run_id"] for run in found] == expected
    assert len(json.loads(judgekit("runs", "list", "--json", "--limit", "2", cwd=tmp_path).stdout)) == 2
    assert judgekit("runs", "list", "--tag", "none", cwd=tmp_path).stdout == "no runs\n"


def test_tags_stand_in_the_folder_and_survive_a_new_index(tmp_path: Path) -> None:
    results = suite(tmp_path, "demo-1", "demo-2")
    judgekit("runs", "tag", "demo-1", "baseline", cwd=tmp_path)
    judgekit("runs", "tag", "demo-1", "v2", cwd=tmp_path)
    assert read_json(results / "demo-1" / "tags.json") == {"tags": ["baseline", "v2"]}
    (results / DATABASE).unlink()
    assert judgekit("runs", "reindex", cwd=tmp_path).stdout == "runs indexed: 2\n"
    [run] = json.loads(judgekit("runs", "list", "--json", "--tag", "v2", cwd=tmp_path).stdout)
    assert (run["run_id"], run["tags"]) == ("demo-1", ["baseline", "v2"])
    assert judgekit("runs", "tag", "latest:v2", "v2", "--remove", cwd=tmp_path).stdout == "demo-1: baseline\n"
    error = judgekit("runs", "tag", "demo-1", "v2", "--remove", cwd=tmp_path)
    assert (error.returncode, one_error_line(error)) == (2, "results/demo-1: has no tag 'v2'; it has: baseline")
    error = judgekit("runs", "tag", "demo-1", "a/b", cwd=tmp_path)
    assert error.returncode == 2


def test_a_run_is_shown_from_its_folder(tmp_path: Path) -> None:
    results = suite(tmp_path, "demo-1")
    (results / DATABASE).unlink()
    shown = judgekit("runs", "show", "demo", cwd=tmp_path)
    lines = shown.stdout.splitlines()
    assert (shown.returncode, lines[0][:16], lines[-1]) == (0, "suite, 6 cases: ", "results/demo-1")
    document = json.loads(judgekit("runs", "show", "latest", "--json", cwd=tmp_path).stdout)
    assert document["metrics"] == read_json(results / "demo-1" / "metrics.json")
    missing = judgekit("runs", "show", "nothing", cwd=tmp_path)
    hint = "name a run elsewhere by its path, or its folder of runs by --results-dir"
    where = f"results/nothing: no run here (no such folder); {hint}"
    assert (missing.returncode, one_error_line(missing)) == (2, where)


def test_a_run_is_deleted_only_where_that_is_said(tmp_path: Path) -> None:
    results = suite(tmp_path, "demo-1", "demo-2")
    refused = judgekit("runs", "delete", "demo-1", cwd=tmp_path)
    assert refused.returncode == 2
    assert re.fullmatch(
        r"would delete results/demo-1 \(\d+ files, 0\.\d MB\); say --yes where nobody can be asked",
        one_error_line(refused),
    )
    with RunFolder(results / "demo-1").locked():
        busy = judgekit("runs", "delete", "demo-1", "--yes", cwd=tmp_path)
    assert busy.returncode == 4
    assert "another process is writing this run" in one_error_line(busy)
    assert (results / "demo-1" / "metrics.json").is_file()
    done = judgekit("runs", "delete", "demo-1", "--yes", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (0, "deleted results/demo-1\n")
    assert sorted(path.name for path in results.iterdir() if path.is_dir()) == ["demo-2"]
    with closing(sqlite3.connect(results / DATABASE)) as connection:
        assert connection.execute("SELECT DISTINCT run_id FROM eval_query_results").fetchall() == [("demo-2",)]


@pytest.mark.parametrize(("answer", "is_left"), [("n\n", True), ("y\n", False)])
@pytest.mark.usefixtures("ends_processes")
def test_deleting_asks_on_a_terminal(tmp_path: Path, answer: str, is_left: bool) -> None:
    results = suite(tmp_path, "demo-1")
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "judgekit", "runs", "delete", "latest"],
        cwd=tmp_path,
        env=ENVIRONMENT,
        stdin=theirs,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    os.write(ours, answer.encode())
    _, stderr = process.communicate(timeout=30)
    os.close(ours)
    os.close(theirs)
    assert process.returncode == 0
    assert re.search(r"delete results/demo-1 \(\d+ files, .* MB\)\? \[y/N\]", stderr)
    assert (results / "demo-1").is_dir() == is_left


def test_a_run_is_deleted_where_the_database_is_locked_and_its_entry_goes_later(tmp_path: Path) -> None:
    results = suite(tmp_path, "demo-1", "demo-2")
    options = Options(results_dir=results)
    with closing(sqlite3.connect(results / DATABASE, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        deleted = delete_run("demo-1", options, lambda _: True, busy_seconds=0.05)
    assert deleted is not None
    [(code, message)] = deleted[1]
    assert code == "index_not_written"
    assert "database is locked; `judgekit runs reindex` drops the entry later" in message
    assert not (results / "demo-1").exists()
    assert judgekit("runs", "reindex", cwd=tmp_path).stdout == "runs indexed: 1; entries without a run dropped: 1\n"


def test_runs_that_are_not_indexed_or_gone_are_said(tmp_path: Path) -> None:
    results = suite(tmp_path, "demo-1", "demo-2")
    (results / "demo-1").rename(results / "demo-3")
    listed = judgekit("runs", "list", cwd=tmp_path)
    assert "1 run in results not in the results database; `judgekit runs reindex` adds them" in listed.stderr
    assert "complete, folder gone" in next(line for line in listed.stdout.splitlines() if line.startswith("demo-1"))
    reindexed = judgekit("runs", "reindex", cwd=tmp_path)
    assert "skipped: results/demo-3: holds run 'demo-1'; name the folder as the run" in reindexed.stderr
    assert reindexed.stdout == "runs indexed: 1; entries without a run dropped: 1; folders skipped: 1\n"


def test_a_folder_without_runs_is_an_error_of_one_line(tmp_path: Path) -> None:
    for command in (["runs", "list"], ["runs", "reindex"], ["rescore", "--all"]):
        result = judgekit(*command, cwd=tmp_path)
        assert result.returncode == 2
        assert "results: no folder of runs" in one_error_line(result)
    assert list(tmp_path.iterdir()) == []


def test_rescoring_says_what_changed_and_ends_with_the_gates(tmp_path: Path) -> None:
    results = suite(tmp_path, "demo-1", gates=[{"metric": "groundedness", "op": ">=", "value": 4.5}])
    metrics = read_json(results / "demo-1" / "metrics.json")
    metrics["overall"]["groundedness"]["value"] = 4.0
    (results / "demo-1" / "metrics.json").write_text(json.dumps(metrics))
    seal_again(results / "demo-1")
    result = judgekit("rescore", "demo", cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    first, change, gate = result.stdout.splitlines()
    versions = f"judgekit {__version__}, metrics version 2"
    assert first == f"demo-1: 1 figure changed ({versions} -> {versions}; stored verdicts kept)"
    assert change.split() == ["groundedness", "4.0000", "(6)", "->", "5.0000", "(6)"]
    assert gate == "  gate: groundedness >= 4.5: passed, 5.0000"
    [document] = json.loads(judgekit("rescore", "--all", "--json", cwd=tmp_path).stdout)
    assert document["changes"] == []

    config = read_json(results / "demo-1" / "config.json")
    config["gates"][0].update(op="<=")
    (results / "demo-1" / "config.json").write_text(json.dumps(config))
    seal_again(results / "demo-1")
    assert judgekit("rescore", "demo", cwd=tmp_path).returncode == 1
    (results / "demo-1" / "cases.jsonl").unlink()
    seal_again(results / "demo-1")
    error = judgekit("rescore", "demo", cwd=tmp_path)
    assert error.returncode == 2
    assert "run its config again: judgekit run " in one_error_line(error)
    everything = judgekit("rescore", "--all", cwd=tmp_path)
    assert (everything.returncode, everything.stdout) == (2, "")
    assert "skipped: results/demo-1: written before runs kept their cases" in everything.stderr
    assert judgekit("rescore", cwd=tmp_path).returncode == 2


def weekly(results: Path, run_id: str, flips: list[int]) -> None:
    """A history of weekly re-judgings of a run."""
    for week, n_disagree in enumerate(flips):
        point = weekly_point(week + 1, n_disagree, run_id=run_id)
        assert add_point(results / run_id, point) == []


@pytest.mark.parametrize(("flips", "state", "code"), [([1] * 8, "none", 0), ([1, 0, 1, 1, 9, 8, 7], "judge", 1)])
def test_drift_is_said_in_text_in_json_as_a_picture_and_by_exit_code(
    tmp_path: Path, flips: list[int], state: str, code: int
) -> None:
    results = suite(tmp_path, "demo-1")
    weekly(results, "demo-1", flips)
    result = judgekit("drift", "--fail-on-drift", "--stats", "--svg", "drift.svg", cwd=tmp_path)
    assert result.returncode == code, result.stderr
    since = " since run demo-1" if state == "judge" else ""
    assert f"\ngroundedness v1 on data set dddddddddddd: {state}{since}\n" in result.stdout
    bars = re.search(r"100%\): (\S+)$", result.stdout, re.MULTILINE)
    assert bars is not None
    assert len(bars[1]) == len(flips)
    picture = ElementTree.parse(tmp_path / "drift.svg").getroot()
    assert len(picture.findall("{http://www.w3.org/2000/svg}rect")) == len(flips)
    [document] = json.loads(judgekit("drift", "--json", "--suite", "suite", "--dataset", "ddd", cwd=tmp_path).stdout)
    assert (document["state"], len(document["timeline"])) == (state, len(flips))
    assert judgekit("drift", cwd=tmp_path).returncode == 0


def test_a_spot_check_of_a_stored_run_and_a_rejudge_are_points_of_the_history(tmp_path: Path) -> None:
    suite(tmp_path, "demo-1")
    for number in range(2):
        asked = judgekit("spotcheck", "demo", "--against", "repeat", "--seed", str(number), cwd=tmp_path)
        assert asked.returncode == 0, asked.stderr
    [document] = json.loads(judgekit("drift", "--json", cwd=tmp_path).stdout)
    # Asked at once, so it is the noise floor, and nothing is tested yet.
    assert [(row["kind"], row["n_pairs"]) for row in document["timeline"]] == [("noise_floor", 6)] * 2
    assert document["state"] == "insufficient"
    judgekit("rejudge", "demo", cwd=tmp_path)
    assert len(json.loads(judgekit("runs", "list", "--json", cwd=tmp_path).stdout)) == 2
    before = json.loads(judgekit("runs", "list", "--json", cwd=tmp_path).stdout)
    judgekit("runs", "reindex", cwd=tmp_path)
    assert json.loads(judgekit("runs", "list", "--json", cwd=tmp_path).stdout) == before
    [document] = json.loads(judgekit("drift", "--json", cwd=tmp_path).stdout)
    # The embedded judge keeps no cache, so it was really asked again.
    assert [(row["kind"], row["n_pairs"]) for row in document["timeline"]] == [("noise_floor", 6)] * 3


def test_drift_without_points_says_how_to_get_some(tmp_path: Path) -> None:
    results = suite(tmp_path, "demo-1")
    error = judgekit("drift", cwd=tmp_path)
    assert error.returncode == 2
    assert "`judgekit spotcheck RUN` or a `spot_check` in the config makes one" in one_error_line(error)
    weekly(results, "demo-1", [1])
    error = judgekit("drift", "--judge", "grounded", cwd=tmp_path)
    assert "did you mean 'groundedness'?" in one_error_line(error)
    error = judgekit("drift", "--since", "nothing", cwd=tmp_path)
    assert one_error_line(error) == "--since nothing: run nothing has no such points"
    assert judgekit("drift", "--since", "latest", cwd=tmp_path).returncode == 0


def test_hostile_names_cannot_write_into_the_terminal_or_the_picture(tmp_path: Path) -> None:
    results = suite(tmp_path, "demo-1")
    bad = "\x1b[31mx</title><script>alert(1)</script>\u202e"
    weekly(results, "demo-1", [1])
    point = HistoryPoint.model_validate_json((results / "demo-1" / "drift_checks.jsonl").read_bytes())
    add_point(results / "demo-1", point.model_copy(update={"comparator": bad, "judge": "bad"}))
    result = judgekit("drift", "--judge", "bad", "--svg", "drift.svg", cwd=tmp_path)
    assert "\x1b" not in result.stdout
    assert "\u202e" not in result.stdout
    assert "<script>" not in (tmp_path / "drift.svg").read_text()
    ElementTree.parse(tmp_path / "drift.svg")
