"""report, view, and what run leaves for CI servers."""

import csv
import json
import signal
import urllib.request
from pathlib import Path
from xml.etree import ElementTree

import pytest

from judgekit.core.runs import config_changes
from tests.builders import output, read_json, seal_again, write_suite
from tests.cli.fork_server import judgekit, one_error_line
from tests.cli.test_commands import started
from tests.run_folders import write_run


def test_a_run_ends_with_a_report_and_says_nothing_of_it(tmp_path: Path) -> None:
    write_suite(tmp_path)
    result = judgekit("run", "config.json", "--run-id", "r", cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    assert (tmp_path / "results/r/report.html").read_text().startswith("<!doctype html>")
    # It is written last, from what is stored: written anew it is the same.
    before = (tmp_path / "results/r/report.html").read_bytes()
    assert judgekit("report", "r", cwd=tmp_path).stdout == "results/r/report.html\n"
    assert (tmp_path / "results/r/report.html").read_bytes() == before


def test_a_config_can_do_without_the_report(tmp_path: Path) -> None:
    write_suite(tmp_path, report=False)
    assert judgekit("run", "config.json", "--run-id", "r", cwd=tmp_path).returncode == 0
    assert not (tmp_path / "results/r/report.html").exists()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("form", "name", "start"),
    [
        ("html", "report.html", b"<!doctype html>"),
        ("md", "summary.md", b"# kilns: complete"),
        ("csv", "scores.csv", b"\xef\xbb\xbfcase_id,question,answer,"),
        ("parquet", "scores.parquet", b"PAR1"),
        ("judgments", "judgments.parquet", b"PAR1"),
        ("junit", "junit.xml", b"<?xml"),
    ],
)
def test_every_format_is_written_into_the_run_folder_or_where_one_says(
    tmp_path: Path, form: str, name: str, start: bytes
) -> None:
    folder = write_run(tmp_path / "elsewhere" / "r", 4)
    result = judgekit("report", str(folder), "--format", form, cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    assert (folder / name).read_bytes().startswith(start)
    result = judgekit("report", "r", "--results-dir", "elsewhere", "--format", form, "--out", "x", cwd=tmp_path)
    assert result.stdout == "x\n"
    assert (tmp_path / "x").read_bytes() == (folder / name).read_bytes()


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (("report", "nobody"), 2, "no run here (no such folder)"),
        (
            ("report", "killed", "--format", "md"),
            2,
            "no figures yet; resume it with: judgekit run --resume killed",
        ),
        (("report", "killed", "--format", "pdf"), 2, "--format pdf: no such format"),
        (("view", "--results-dir", "nowhere", "--no-open"), 2, "nowhere: no such folder"),
        (("view", "nobody", "--no-open"), 2, "no run here (no such folder)"),
    ],
)
def test_what_cannot_be_shown_is_one_line(tmp_path: Path, arguments: tuple[str, ...], code: int, words: str) -> None:
    write_run(tmp_path / "results" / "killed", 4, n_judged=1, status="running")
    result = judgekit(*arguments, cwd=tmp_path)
    assert result.returncode == code
    assert words in one_error_line(result)


def test_junit_is_written_where_a_gate_is_missed_too(tmp_path: Path) -> None:
    write_suite(tmp_path, gates=[{"metric": "error_rate", "op": "<=", "value": 0.1}], output_rows=[output("c0")])
    result = judgekit("run", "config.json", "--junit", "junit.xml", cwd=tmp_path)
    assert result.returncode == 1
    root = ElementTree.parse(tmp_path / "junit.xml").getroot()
    assert root is not None
    [failure] = root.findall(".//failure")
    assert failure.attrib["message"] == "error_rate <= 0.1: missed, 0.8333"


def test_github_gets_annotations_on_stderr_and_a_summary_of_the_step(tmp_path: Path) -> None:
    write_suite(tmp_path, gates=[{"metric": "error_rate", "op": "<=", "value": 0.1}], output_rows=[output("c0")])
    (tmp_path / "step.md").write_text("earlier\n")
    step = str(tmp_path / "step.md")
    result = judgekit(
        "run", "config.json", "--json", "--run-id", "r", cwd=tmp_path, GITHUB_ACTIONS="true", GITHUB_STEP_SUMMARY=step
    )
    assert result.returncode == 1
    assert json.loads(result.stdout)["run_id"] == "r"
    assert "::error title=gate missed%3A error_rate::error_rate <= 0.1: missed, 0.8333" in result.stderr.splitlines()
    assert [line for line in result.stderr.splitlines() if line.startswith("::warning title=cases_without_output::")]
    assert (tmp_path / "step.md").read_text().startswith("earlier\n# suite: complete")


def test_outside_github_nothing_is_announced(tmp_path: Path) -> None:
    write_suite(tmp_path, output_rows=[output("c0")])
    assert "::" not in judgekit("run", "config.json", cwd=tmp_path, GITHUB_ACTIONS="").stderr


def test_a_step_summary_that_cannot_be_written_costs_nothing(tmp_path: Path) -> None:
    write_suite(tmp_path)
    result = judgekit("run", "config.json", cwd=tmp_path, GITHUB_ACTIONS="true", GITHUB_STEP_SUMMARY=str(tmp_path))
    assert result.returncode == 0
    assert "warning: the summary of this step cannot be written" in result.stderr


@pytest.mark.slow
def test_view_prints_its_address_serves_and_ends_with_ctrl_c(tmp_path: Path) -> None:
    write_run(tmp_path / "results" / "r", 4)
    process = started("view", "r", "--port", "0", "--no-open", cwd=tmp_path)
    try:
        assert process.stdout is not None
        address = process.stdout.readline().strip()
        assert address.endswith("/runs/r/")
        with urllib.request.urlopen(address, timeout=20) as response:
            assert b"kilns: complete" in response.read()
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=20)
    finally:
        process.kill()
    assert process.returncode == 0
    assert "Traceback" not in errors


def test_a_resumed_run_may_change_its_mind_about_the_report(tmp_path: Path) -> None:
    assert config_changes({"report": True, "seed": 0}, {"report": False, "seed": 1}) == ["seed"]
    write_suite(tmp_path, report=False)
    judgekit("run", "config.json", "--run-id", "r", cwd=tmp_path)
    assert read_json(tmp_path / "results/r/config.json")["report"] is False


@pytest.mark.slow
def test_figures_stand_in_one_order_whether_they_are_fresh_or_read_back(tmp_path: Path) -> None:
    fresh = judgekit("quickstart", "-q", cwd=tmp_path)
    assert fresh.returncode == 0, fresh.stderr
    folder = tmp_path / fresh.stdout.splitlines()[-1]
    summary, metrics = (folder / "summary.md").read_bytes(), (folder / "metrics.json").read_bytes()
    names = list(read_json(folder / "metrics.json")["overall"])
    assert names != sorted(names)

    back = judgekit("report", str(folder), "--format", "md", "--out", "back.md", cwd=tmp_path)
    assert back.returncode == 0, back.stderr
    assert (tmp_path / "back.md").read_bytes() == summary
    assert judgekit("spotcheck", str(folder), "-q", "--against", "repeat", cwd=tmp_path).returncode == 0
    assert list(read_json(folder / "metrics.json")["overall"]) == names
    (folder / "metrics.json").write_bytes(metrics)
    seal_again(folder)
    assert judgekit("rescore", str(folder), cwd=tmp_path).returncode == 0
    assert ((folder / "summary.md").read_bytes(), (folder / "metrics.json").read_bytes()) == (summary, metrics)
    shown = judgekit("runs", "show", str(folder), cwd=tmp_path).stdout.splitlines()
    rows = fresh.stdout.splitlines()[:10]
    assert shown[: len(rows)] == rows


@pytest.mark.slow
def test_a_text_that_is_too_long_for_a_cell_is_cut_visibly_and_that_is_said_once(tmp_path: Path) -> None:
    long = "".join(f"{number:07} " for number in range(5000))  # 40,000 characters
    rows = [{"case_id": "c0", "answer": long}, {"case_id": "c1", "answer": long}, {"case_id": "c2", "answer": "short"}]
    config = write_suite(tmp_path, n_cases=3, output_rows=rows, judges=[], metrics=["operations"], report=False)
    assert judgekit("run", config.name, "--run-id", "r", cwd=tmp_path).returncode == 0
    done = judgekit("report", "r", "--format", "csv", "--out", "x.csv", cwd=tmp_path)
    assert done.stderr == (
        "note: 2 texts are too long for a cell of Excel and end with [cut: ...]; --format parquet has all of it\n"
    )
    with (tmp_path / "x.csv").open(encoding="utf-8-sig", newline="") as file:
        answers = [row["answer"] for row in csv.DictReader(file)]
    assert answers[0].endswith(" [cut: 8000 more characters]")
    assert max(map(len, answers)) < 32_767
    assert answers[2] == "short"
