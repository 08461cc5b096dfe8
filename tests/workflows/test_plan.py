"""`judgekit plan`, from stored runs and from stated figures, as its user calls it."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import judgekit
from judgekit.cli.app import app
from tests.builders import REPOSITORY, case, output, write_suite

N = 40


def run(folder: Path, run_id: str, wrong: Sequence[str] = (), n_answers: int = 1, **config: Any) -> None:
    """A run whose answers lack the wanted word in some cases; with several answers, `c3#2` is the second of `c3`."""
    cases, outputs = [], []
    for number in range(N):
        for answer in range(1, n_answers + 1):
            name = f"c{number}" if answer == 1 else f"c{number}#{answer}"
            more = {"metadata": {"repeat_of": f"c{number}"}} if n_answers > 1 else {}
            cases.append(case(name, must_contain=["1240"], **more))
            outputs.append(output(name, answer="It is cold." if name in wrong else f"1240 degrees in {name}."))
    path = write_suite(folder / run_id, case_rows=cases, output_rows=outputs, **config)
    judgekit.run(path, run_id=run_id, results_dir=folder / "results")


def planned(folder: Path, *words: str, code: int = 0) -> Any:
    found = CliRunner().invoke(app, ["plan", *words, "--results-dir", str(folder / "results")])
    assert found.exit_code == code, found.output
    return json.loads(found.output) if "--json" in words and code == 0 else found.output


METRIC = ("--metric", "keyword_groundedness", "--difference", "0.1")


def test_two_runs_say_what_a_difference_takes(tmp_path: Path) -> None:
    run(tmp_path, "a", [f"c{number}" for number in range(4)])
    run(tmp_path, "b", [f"c{number}" for number in range(2, 8)])
    found = planned(tmp_path, "a", "b", *METRIC, "--json")
    # 2 cases rose and 4 fell: 6 of 40 differ
    assert (found["cases"]["share_that_differs"], found["cases"]["n_here"]) == (0.15, 40)
    assert found["cases"]["rests_on"] == "the paired differences of 40 cases of a and b"
    first = planned(tmp_path, "a", "b", *METRIC).splitlines()[0]
    n = found["cases"]["n"]
    assert first.startswith(f"To find a difference of 0.1 in keyword_groundedness with a chance of 80%, compare {n} ")
    assert f"There are 40: add {n - 40}, or settle for a difference of 0.18, which the 40 find." in first
    more = planned(tmp_path, "a", "b", *METRIC, "--power", "0.95", "--json")
    assert more["cases"]["n"] > n


def test_one_run_says_what_is_assumed(tmp_path: Path) -> None:
    run(tmp_path, "a", [f"c{number}" for number in range(4)])
    found = planned(tmp_path, "a", *METRIC, "--json")["cases"]
    assert found["share_that_differs"] == 0.09  # 2 * 0.1 * 0.9 * (1 - 0.5)
    assert "a correlation of 0.5 between two versions is assumed" in found["rests_on"]
    stated = planned(tmp_path, "a", *METRIC, "--correlation", "0.8", "--json")["cases"]
    assert stated["share_that_differs"] == 0.036
    assert "is stated" in stated["rests_on"]


def test_answers_to_each_case_are_weighed_against_cases(tmp_path: Path) -> None:
    wrong = [f"c{number}{answer}" for number in range(0, N, 2) for answer in ("", "#3")]
    run(tmp_path, "a", wrong, n_answers=3, cluster_by="metadata.repeat_of")
    found = planned(tmp_path, "a", *METRIC, "--json")
    assert (found["cases"]["n_here"], found["cases"]["unit"], found["cases"]["answers_per_case"]) == (N, "cases", 3.0)
    rows = {row["answers_per_case"]: row["n_cases"] for row in found["answers"]["rows"]}
    assert rows[1] > rows[3] > rows[10]
    assert abs(rows[3] - found["cases"]["n"]) <= 1
    text = planned(tmp_path, "a", *METRIC)
    assert "answers to each case  cases  answers in each run" in text


def test_stated_figures_need_no_run(tmp_path: Path) -> None:
    assert planned(tmp_path, "--sd", "1", "--difference", "0.5", "--json")["cases"]["n"] == 34
    assert planned(tmp_path, "--rate", "0.8", "--difference", "0.05", "--json")["cases"]["share_that_differs"] == 0.16
    labels = planned(tmp_path, "--within", "0.05", "--agreement", "0.8", "--json")["labels"]
    assert labels["n"] < labels["n_at_most"] == 381
    text = planned(tmp_path, "--within", "0.05")
    assert text.startswith("To know a judge's agreement with people within plus or minus 0.05, label 381 cases")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "say what is to be known: --difference 0.1, or --within 0.05"),
        (["--difference", "0.1"], "name a run, or state --sd of a score over cases, or --rate"),
        (["--difference", "0.1", "--sd", "1", "--rate", "0.5"], "name a run, or state --sd"),
        (["--difference", "-1", "--sd", "1"], "--difference -1: expected a number above 0"),
        (["--difference", "1", "--sd", "nan"], "--sd nan: expected a number above 0"),
        (["--difference", "0.1", "--rate", "1"], "--rate 1: expected a number between 0 and 1"),
        (["--difference", "0.1", "--sd", "1", "--power", "0.3"], "--power 0.3: expected a number between 0.5 and 1"),
        (["--within", "0.6"], "--within 0.6: expected a number between 0 and 0.5"),
        (["--agreement", "0.8", "--difference", "1", "--sd", "1"], "--agreement belongs to --within"),
        (["--within", "0.1", "--agreement", "1.2"], "--agreement 1.2: expected a share from 0 to 1"),
        (["a", "--difference", "0.1"], "--metric is missing"),
        (["a", "--difference", "0.1", "--sd", "1"], "--sd is for a plan without a run"),
        (["a", "b", "c", *METRIC], "expected at most two runs, found 3"),
        (["a", "a", *METRIC], "so their differences say nothing"),
        (["a", "a", *METRIC, "--correlation", "0.5"], "--correlation is for one run or none"),
        (["a", "--metric", "keyword_grounded", "--difference", "1"], "did you mean 'keyword_groundedness'"),
        (["a", "--metric", "abstention_f1", "--difference", "1"], "is made of sums, and this takes means"),
        (["x", *METRIC], "no run"),
    ],
)
def test_what_cannot_be_planned_is_one_line(tmp_path: Path, words: list[str], message: str) -> None:
    run(tmp_path, "a", ["c1"])
    assert message in planned(tmp_path, *words, code=2)


def test_the_commands_of_the_page_that_need_no_run_are_taken(tmp_path: Path) -> None:
    text = (REPOSITORY / "docs" / "plan.md").read_text(encoding="utf-8")
    lines = [line.partition("#")[0].split() for line in text.splitlines() if line.startswith("judgekit plan --")]
    assert len(lines) == 3
    for line in lines:
        assert planned(tmp_path, *line[2:]).startswith("To ")


def test_runs_that_do_not_differ_are_no_basis(tmp_path: Path) -> None:
    run(tmp_path, "a")
    run(tmp_path, "b")
    metric = ("--metric", "groundedness", "--difference", "0.5")
    assert "nothing can be planned: no two of these scores differ" in planned(tmp_path, "a", "b", *metric)


def test_runs_of_two_judges_are_refused(tmp_path: Path) -> None:
    run(tmp_path, "a")
    run(tmp_path, "b", model={"model": "overlap-strict-2"})
    assert "cannot be compared, since a difference would mix causes" in planned(tmp_path, "a", "b", *METRIC, code=2)
