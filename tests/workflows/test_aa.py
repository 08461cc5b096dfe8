"""`judgekit aa`, as its user calls it: from one run, from two, from several answers, from what the judge said again."""

import json
import random
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import judgekit
from judgekit.cli.app import app
from judgekit.testing import FaultServer, Reply, Request, verdict
from tests.builders import case, output, write_suite
from tests.workflows.stored_suites import check

N = 40

LIMIT = {"metric": "keyword_groundedness", "op": ">=", "value": 0.7}
RELATIVE = {"metric": "keyword_groundedness", "not_worse_than": "latest:main", "margin": 0.1}


def run(folder: Path, run_id: str, seed: int, n_answers: int = 1, **config: Any) -> None:
    """A run of a system that is right in about three of four answers, by chance."""
    rng = random.Random(seed)
    cases, outputs = [], []
    for number in range(N):
        for answer in range(1, n_answers + 1):
            name = f"c{number}" if answer == 1 else f"c{number}#{answer}"
            more: dict[str, Any] = {"category": "hot" if number % 2 else "cold"}
            more |= {"metadata": {"repeat_of": f"c{number}"}} if n_answers > 1 else {}
            cases.append(case(name, must_contain=["1240"], **more))
            right = rng.random() < 0.75
            outputs.append(output(name, answer=f"Kiln {name} is fired at 1240 degrees." if right else "It is cold."))
    document = {"gates": [LIMIT, RELATIVE], **config}
    path = write_suite(folder / "suite", case_rows=cases, output_rows=outputs, **document)
    judgekit.run(path, run_id=run_id, results_dir=folder / "results")


def aa(folder: Path, *words: str, code: int = 0) -> Any:
    found = CliRunner().invoke(app, ["aa", *words, "--results-dir", str(folder / "results")])
    assert found.exit_code == code, found.output
    return json.loads(found.output) if "--json" in words and code == 0 else found.output


@pytest.mark.slow
def test_a_second_run_of_the_same_system_says_how_often_gates_fail_on_nothing(tmp_path: Path) -> None:
    run(tmp_path, "a", 1)
    run(tmp_path, "b", 2)
    found = aa(tmp_path, "a", "b", "--json")
    limit, relative = found["gates"]
    assert found["noise"]["text"] == "two runs, a and b; 1 answer to each case in each pseudo-run"
    for scope in ("same", "other"):
        assert 0 < limit[scope]["missed"]["value"] < 0.7
        assert limit[scope]["undecided"]["k"] == 0
        assert relative[scope]["undecided"]["value"] > 0.5  # 15 of 40 pairs differ by chance: the interval is -0.2 wide
        assert found["any"][scope]["k"] >= max(gate[scope]["failed"]["k"] for gate in found["gates"])
    assert limit["same"]["missed"]["low"] < limit["same"]["missed"]["value"] < limit["same"]["missed"]["high"]
    assert aa(tmp_path, "a", "b", "--json") == found
    assert aa(tmp_path, "a", "b", "--json", "--seed", "1")["gates"] != found["gates"]
    text = aa(tmp_path, "a", "b")
    assert text.startswith("If nothing changes, at least one of 2 gates fails in ")
    assert " of runs of the same cases. Next: move the limit of `keyword_groundedness >= 0.7`" in text


@pytest.mark.slow
def test_one_run_alone_knows_other_cases_only(tmp_path: Path) -> None:
    run(tmp_path, "a", 1)
    found = aa(tmp_path, "a", "--json")
    assert (found["any"]["same"], [gate["same"] for gate in found["gates"]]) == (None, [None, None])
    assert found["noise"]["source"] == "assumed"
    assert 0 < found["gates"][0]["other"]["missed"]["value"] < 0.7
    wide, close = (
        aa(tmp_path, "a", "--correlation", text, "--json")["gates"][1]["other"]["undecided"]["value"]
        for text in ("0", "0.95")
    )
    assert wide > close
    text = aa(tmp_path, "a")
    assert "a correlation of 0.5 between two runs is assumed" in text
    assert "the same cases: not known, since nothing stored says how a second run of them would differ" in text


@pytest.mark.slow
def test_several_answers_to_each_case_are_split_in_halves(tmp_path: Path) -> None:
    run(tmp_path, "a", 1, n_answers=4, cluster_by="metadata.repeat_of")
    found = aa(tmp_path, "a", "--json")
    assert found["n_cases"] == N
    assert found["noise"]["text"] == "up to 4 answers to each case; 2 answers to each case in each pseudo-run"
    assert found["gates"][1]["same"]["undecided"]["n"] == found["n_runs"] == 1000


def test_what_a_judge_said_when_it_was_asked_again_is_its_chance(tmp_path: Path) -> None:
    calls = {"n": 0}

    def answer(_: Request) -> Reply:
        calls["n"] += 1  # every third one is off
        is_off = calls["n"] % 3 == 0
        return verdict(1, supported=[], unsupported=["a"]) if is_off else verdict(5, supported=["a"], unsupported=[])

    with FaultServer(answer) as server:
        gates = [{"metric": "groundedness", "op": ">=", "value": 3.5}]
        path = write_suite(tmp_path / "suite", server.base_url, n_cases=20, gates=gates)
        judgekit.run(path, run_id="a", results_dir=tmp_path / "results")
        check(tmp_path / "results" / "a", n="20", against="repeat")
    found = aa(tmp_path, "a", "--json")
    assert (found["noise"]["source"], found["noise"]["n"]) == ("judge", 20)
    assert found["gates"][0]["same"] is not None


def test_gates_of_another_config_and_of_slices_are_tested_and_others_named(tmp_path: Path) -> None:
    run(tmp_path, "a", 1)
    run(tmp_path, "b", 2)
    sliced = {**LIMIT, "slice": {"category": "hot"}, "bound": "lower"}
    other = write_suite(
        tmp_path / "other",
        gates=[
            sliced,
            {"metric": "error_rate", "op": "<=", "value": 0.1},
            {"metric": "risk_coverage.aurc", "op": "<=", "value": 1},
        ],
    )
    found = aa(tmp_path, "a", "b", "--config", str(other), "--runs", "50", "--json")
    assert [gate["reason"] is None for gate in found["gates"]] == [True, True, False]
    assert found["gates"][0]["gate"] == "keyword_groundedness [category=hot] >= 0.7 (lower end)"
    assert found["gates"][0]["same"]["missed"]["value"] > 0.8  # 20 cases seldom show 0.7 with their lower end
    assert found["gates"][1]["same"]["missed"]["k"] == 0
    text = aa(tmp_path, "a", "b", "--config", str(other), "--runs", "50")
    assert "which is no chance: fix the system, or move the limit." in text
    assert "not tested: risk_coverage.aurc <= 1: it does not rest on scores of single cases" in text


def test_what_cannot_be_tested_is_one_line(tmp_path: Path) -> None:
    run(tmp_path, "a", 1)
    run(tmp_path, "none", 1, gates=[])
    run(tmp_path, "other", 2, model={"model": "overlap-strict-2"})
    assert "none: has no gates; name a config that has some with --config" in aa(tmp_path, "none", code=2)
    assert "are one run, a; name a second run of the same system" in aa(tmp_path, "a", "a", code=2)
    message = aa(tmp_path, "a", "other", code=2)
    assert (
        "are not of the same system and judge: judge groundedness: model (overlap-2, then overlap-strict-2)" in message
    )
    assert aa(tmp_path, "x", code=2)
    typo = write_suite(tmp_path / "typo", gates=[{**LIMIT, "metric": "keyword_grounded"}])
    assert "did you mean 'keyword_groundedness'" in aa(tmp_path, "a", "--config", str(typo), code=2)
    nowhere = write_suite(tmp_path / "nowhere", gates=[{**LIMIT, "slice": {"colour": "red"}}])
    assert "colour" in aa(tmp_path, "a", "--config", str(nowhere), code=2)


@pytest.mark.parametrize("words", [("--runs", "3"), ("--correlation", "1.5")])
def test_options_out_of_range_are_refused(tmp_path: Path, words: tuple[str, str]) -> None:
    aa(tmp_path, "a", *words, code=2)
