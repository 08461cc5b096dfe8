"""`judgekit calibrate` and `judgekit probe` at the command line; what the page shows of them is what they print."""

import json
import re
from pathlib import Path

import pytest

import judgekit
from tests.builders import REPOSITORY, read_json
from tests.cli.fork_server import Ended
from tests.cli.fork_server import judgekit as run_command

LABELS = REPOSITORY / "configs" / "quickstart" / "labels.jsonl"
PAGE = (REPOSITORY / "docs" / "reliability.md").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("example")
    judgekit.run("quickstart", results_dir=place / "results", run_id="demo")
    return place


def command(folder: Path, *arguments: str) -> Ended:
    return run_command(*arguments, cwd=folder)


def shown(first_line: str) -> list[str]:
    found: list[str] = re.findall(r"```text\n(.*?)```", PAGE, re.DOTALL)
    [block] = [block for block in found if block.startswith(first_line)]
    return block.splitlines()


def test_calibrate_prints_what_the_page_shows(folder: Path) -> None:
    done = command(folder, "calibrate", "demo", "--labels", str(LABELS), "--stats")
    assert done.returncode == 0, done.stderr
    assert [line for line in shown("correctness against mira") if line not in done.stdout.splitlines()] == []
    assert done.stdout.splitlines()[-1] == "results/demo"
    summary = (folder / "results" / "demo" / "summary.md").read_text(encoding="utf-8")
    assert "## Human labels" in summary
    assert "| correctness | score | 3.19 of 5 | 3.59 of 5 | 2.81 to 4.37 |" in summary


def test_probe_prints_what_the_page_shows(folder: Path) -> None:
    done = command(folder, "probe", "demo", "--judge", "groundedness", "--stats")
    assert done.returncode == 0, done.stderr
    assert [line for line in shown("groundedness: baseline") if line not in done.stdout.splitlines()] == []
    assert "| groundedness | answer_padded | stay | 30 |" in (folder / "results/demo/summary.md").read_text()


@pytest.mark.slow
def test_json_is_one_strict_object_on_stdout(folder: Path) -> None:
    done = command(folder, "calibrate", "demo", "--labels", str(LABELS), "--json", "--width", "0.5")
    found = json.loads(done.stdout, parse_constant=pytest.fail)
    assert found.pop("sentence").startswith("correctness agrees with people in 26 of 28 cases")
    assert found == read_json(folder / "results" / "demo" / "calibration.json")
    assert found["judges"]["correctness"]["corrected"]["score"]["labels_for_width"]["n"] > 28
    done = command(folder, "probe", "demo", "--judge", "correctness", "--probes", "blank_answer", "--json", "-q")
    found = json.loads(done.stdout, parse_constant=pytest.fail)
    assert found["correctness"]["probes"]["blank_answer"]["lowest"]["value"] == 1.0


def test_labels_of_unknown_cases_are_named_and_the_rest_is_computed(folder: Path) -> None:
    path = folder / "labels.csv"
    path.write_text("case_id,ida\nq01-lamp-flashes,5\nq02-lamp-range,9\nghost,4\nq04-hooves,no idea\n")
    done = command(folder, "calibrate", "demo", "--labels", str(path), "--judge", "correctness")
    assert done.returncode == 0, done.stderr
    assert "labels.csv:5: case 'q04-hooves': 'no idea' is not a label" in done.stderr
    assert "1 label left out, for cases that the run does not have: 'ghost'" in done.stdout
    assert "1 label left out, off the scale of 0 to 5: 'q02-lamp-range'" in done.stdout
    assert done.stdout.startswith("correctness agrees with people in 1 of 1 cases (95% 21% to 100%); too few labels")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("calibrate", "nowhere", "--labels", "x.csv"), "no run here"),
        (("calibrate", "demo", "--labels", "x.csv"), "x.csv: no such file"),
        (("calibrate", "demo"), "has no labels.jsonl; name a file by --labels, or make one: judgekit label demo"),
        (("probe", "demo", "--probes", "blank"), "no probe 'blank'; known: answer_padded, blank_answer"),
        (("label", "demo"), "name the judge to label for by --judge (groundedness, correctness)"),
    ],
)
def test_what_is_wrong_is_one_line_and_exit_code_two(folder: Path, arguments: tuple[str, ...], message: str) -> None:
    done = command(folder, *arguments)
    assert done.returncode == 2
    [line] = done.stderr.splitlines()
    assert message in line
