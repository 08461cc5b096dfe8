"""Runs with several answers to each case: their figures in every file, with the judge told apart from the system."""

import json
from pathlib import Path
from typing import Any

import pytest

import judgekit
from judgekit.core.errors import ConfigError
from judgekit.reports.run_text import plain_text
from judgekit.storage.run_folder import RunFolder
from judgekit.storage.run_records import read_summary
from judgekit.testing import FaultServer, Reply, Request, verdict
from judgekit.workflows.models import Options
from judgekit.workflows.rescore import rescore
from judgekit.workflows.setup import set_up
from tests.builders import case, output, read_json, read_lines, write_suite
from tests.workflows.stored_suites import check

N_CASES, N_ANSWERS = 4, 3

NAMES = [f"c{n}{mark}" for n in range(N_CASES) for mark in ("", "#2", "#3")]

BAD = {"c1#2", "c2#2", "c2#3", "c3", "c3#2", "c3#3"}
"""Of the cases 0, 1, 2 and 3 all 3, 2, 1 and no answers are good."""

PASSES = {"pass^1": 0.5, "pass^2": 0.3333, "pass^3": 0.25, "pass@1": 0.5, "pass@2": 0.6667, "pass@3": 0.75}
"""pass^2: (1 + 1/3 + 0 + 0) / 4; pass@2: (1 + 1 + 2/3 + 0) / 4."""


def cold(name: str) -> dict[str, Any]:
    """An answer that nothing supports."""
    return {**output(name), "answer": "The moon shines on cheese tonight."}


def rows() -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Cases and outputs as `repeats` makes them."""
    cases = [case(name, metadata={"repeat_of": name[:2]}) for name in NAMES]
    return cases, [cold(name) if name in BAD else output(name) for name in NAMES]


def suite(folder: Path, base_url: str | None = None, **config: Any) -> Path:
    cases, outputs = rows()
    given = {"cluster_by": "metadata.repeat_of", **config}
    return write_suite(folder, base_url, case_rows=cases, output_rows=outputs, **given)


def judged(folder: Path, run_id: str = "r", **config: Any) -> Path:
    judgekit.run(suite(folder, **config), run_id=run_id)
    return folder / "results" / run_id


def passed(run: Path) -> dict[str, float]:
    figures = read_json(run / "metrics.json")["overall"]
    start = "groundedness_pass_rate."
    return {name.removeprefix(start): item["value"] for name, item in figures.items() if name.startswith(start)}


def variances(run: Path, name: str = "groundedness") -> dict[str, float]:
    found = read_json(run / "metrics.json")["repeats"]["figures"][name]["components"]
    return {source: part["variance"] for source, part in found.items()}


def test_recorded_answers_have_pass_figures_and_variances(tmp_path: Path) -> None:
    run = judged(tmp_path)
    metrics = read_json(run / "metrics.json")
    assert passed(run) == PASSES
    repeats = metrics["repeats"]
    assert (repeats["n_cases"], repeats["n_answers"], repeats["cases_by_answers"]) == (4, 12, {"3": 4})
    assert repeats["calls_per_answer"] == 1.0  # the embedded judge takes none
    rate = repeats["figures"]["groundedness_pass_rate"]
    # within: (0 + 2/3 + 2/3 + 0) / 8 = 1/6; case means 1, 2/3, 1/3, 0: variance 5/27; less 1/6 / 3: 7/54
    assert variances(run, "groundedness_pass_rate") == {"case": 0.1296, "system and judge": 0.1667}
    assert [found["case_id"] for found in rate["differ"]["cases"]] == ["c1", "c2"]
    assert metrics["overall"]["groundedness_pass_rate"]["n"] == 12


def test_the_same_file_with_repeats_in_the_config_gives_the_same(tmp_path: Path) -> None:
    first = judged(tmp_path / "a")
    cases = [case(f"c{n}") for n in range(N_CASES)]
    path = write_suite(tmp_path / "b", case_rows=cases, output_rows=rows()[1], repeats=N_ANSWERS)
    judgekit.run(path, run_id="r")
    one, other = (read_json(run / "metrics.json") for run in (first, tmp_path / "b" / "results" / "r"))
    assert one["overall"] == other["overall"]
    assert one["repeats"] == other["repeats"]


def test_one_answer_a_case_has_none_of_it(tmp_path: Path) -> None:
    judgekit.run(write_suite(tmp_path), run_id="r")
    metrics = read_json(tmp_path / "results" / "r" / "metrics.json")
    assert metrics["repeats"] is None
    assert not [name for name in metrics["overall"] if ".pass" in name]
    assert "Answers that differ" not in (tmp_path / "results" / "r" / "summary.md").read_text()


def test_it_is_said_in_the_terminal_in_summary_and_page(tmp_path: Path) -> None:
    run = judged(tmp_path)
    summary = read_summary(RunFolder.open(run))
    assert summary is not None
    lines = plain_text(summary).splitlines()
    assert any(line.startswith("groundedness: variance ") and "2 of 4 cases differ" in line for line in lines)
    [passes] = [line for line in lines if line.startswith("groundedness_pass_rate: pass^3")]
    assert passes == (
        "groundedness_pass_rate: pass^3 0.250 (0.046 to 0.699), all of 3 answers to a case; "
        "pass@3 0.750 (0.301 to 0.954), at least one of them"
    )
    # four cases are too few to say what more calls would buy
    assert not any(line.startswith("spend the next") for line in lines)
    # pass^k is no figure of the first screen
    assert not any(line.startswith("groundedness_pass_rate.pass") for line in lines)
    text = (run / "summary.md").read_text()
    assert "## Answers that differ\n\n4 cases, 3 answers each." in text
    assert "| `groundedness_pass_rate` | 0.500" in text
    page = (run / "report.html").read_text()
    assert '<section id="answers"' in page
    assert 'data-case="c1"' in page
    assert 'class="part-system-and-judge"' in page


def test_gates_hold_pass_figures(tmp_path: Path) -> None:
    gates = [
        {"metric": "groundedness_pass_rate.pass^2", "op": ">=", "value": 0.3},
        {"metric": "groundedness_pass_rate.pass@3", "op": ">=", "value": 0.8},
    ]
    run = judged(tmp_path, gates=gates)
    assert [gate["passed"] for gate in read_json(run / "metrics.json")["gates"]] == [True, False]


@pytest.mark.parametrize(
    ("gate", "message"),
    [
        ({"metric": "groundedness_pass_rate.pass^4"}, "no figure called 'groundedness_pass_rate.pass^4' in this run"),
        ({"metric": "groundedness_passrate.pass^2"}, "did you mean 'groundedness_pass_rate.pass^2'"),
        ({"metric": "groundedness_pass_rate.pass^2", "slice": {"category": "a"}}, "is of all cases: it has no slices"),
    ],
)
def test_gates_on_what_there_is_not_are_refused_before_any_call(
    tmp_path: Path, gate: dict[str, Any], message: str
) -> None:
    path = suite(tmp_path, gates=[{"op": ">=", "value": 0.5, **gate}])
    with pytest.raises(ConfigError, match=message.replace("^", r"\^")):
        set_up(path, Options())


def test_gates_on_pass_figures_need_several_answers_and_no_baseline(tmp_path: Path) -> None:
    gate = {"metric": "groundedness_pass_rate.pass^2", "op": ">=", "value": 0.5}
    with pytest.raises(ConfigError, match=r'needs several answers to each case; add "repeats" to the config'):
        set_up(write_suite(tmp_path / "a", gates=[gate]), Options())
    relative = {"metric": gate["metric"], "not_worse_than": "latest:main", "margin": 0.1}
    with pytest.raises(ConfigError, match="has no paired interval"):
        set_up(suite(tmp_path / "b", gates=[relative]), Options())


def test_answers_that_are_not_kept_together_are_a_warning(tmp_path: Path) -> None:
    run = judged(tmp_path, cluster_by=None)
    [text] = [
        item["message"] for item in read_json(run / "metrics.json")["warnings"] if item["code"] == "repeats_apart"
    ]
    assert text.endswith('add "cluster_by": "metadata.repeat_of"')
    assert passed(run) == PASSES


def moody(request: Request) -> Reply:
    """A judge that is in another mood every fourth time."""
    moody.n = getattr(moody, "n", 0) + 1  # type: ignore[attr-defined]
    good = ("moon" not in request.text) != (moody.n % 4 == 0)  # type: ignore[attr-defined]
    return verdict(5, supported=["hot"]) if good else verdict(1, unsupported=["cold"])


def test_a_spot_check_with_the_judge_itself_parts_judge_and_system(tmp_path: Path) -> None:
    with FaultServer(moody) as server:
        run = judged(tmp_path, base_url=server.base_url)
        assert list(variances(run)) == ["case", "system and judge"]
        assert read_json(run / "metrics.json")["repeats"]["calls_per_answer"] == 2.0
        check(run, against="repeat", n=8)
        check(run, against="repeat", n=6)
    figures = read_json(run / "metrics.json")["repeats"]["figures"]
    found = figures["groundedness"]
    first: dict[str, float] = {}
    again: dict[str, list[float]] = {}
    for item in read_lines(run / "judgments.jsonl"):
        score = item["verdict"]["score"]
        if item["role"] == "primary":
            first[item["case_id"]] = score
        else:
            again.setdefault(item["case_id"], []).append(score)
    said = [[first[name], *scores] for name, scores in again.items()]
    squares = sum(sum((score - sum(scores) / len(scores)) ** 2 for score in scores) for scores in said)
    judge = squares / sum(len(scores) - 1 for scores in said)
    assert judge > 0
    assert found["components"]["judge"]["variance"] == pytest.approx(judge, abs=1e-4)
    assert found["n_judged_again"] == len(said)
    assert found["next_calls"]["verdicts"]["n"] == 1000
    # what no judge gives has kept its figures
    assert list(figures["hit@5"]["components"] if "hit@5" in figures else {"case": 0, "system": 0}) == [
        "case",
        "system",
    ]
    assert "judge" in (run / "report.html").read_text()
    before = read_json(run / "metrics.json")
    assert rescore(str(run), Options())["changes"] == []
    assert read_json(run / "metrics.json")["repeats"] == before["repeats"]


def test_failed_answers_are_missing_and_counted(tmp_path: Path) -> None:
    cases, outputs = rows()
    failed = {"c0#3": {"kind": "timeout"}, "c3": {"kind": "timeout"}}
    outputs = [
        {"case_id": row["case_id"], "error": failed[row["case_id"]]} if row["case_id"] in failed else row
        for row in outputs
    ]
    path = write_suite(tmp_path, case_rows=cases, output_rows=outputs, cluster_by="metadata.repeat_of")
    judgekit.run(path, run_id="r")
    metrics = read_json(tmp_path / "results" / "r" / "metrics.json")
    figure = metrics["overall"]["groundedness_pass_rate.pass^3"]
    # c1 and c2 have three answers, not all good; c0 could still be 1, c3 not
    assert (figure["value"], figure["n"], figure["n_error"]) == (0.0, 2, 2)
    assert (figure["worst"], figure["best"]) == (0.0, 0.25)
    assert metrics["repeats"]["figures"]["groundedness"]["n_answers"] == 10


def test_repeats_under_names_of_ones_own_work_too(tmp_path: Path) -> None:
    names = {"c0": "first", "c0#2": "second", "c0#3": "third"}
    cases, outputs = rows()
    for row in cases:
        row["id"] = names.get(row["id"], row["id"])
    for row in outputs:
        row["case_id"] = names.get(row["case_id"], row["case_id"])
    path = write_suite(tmp_path, case_rows=cases, output_rows=outputs, cluster_by="metadata.repeat_of")
    judgekit.run(path, run_id="r")
    assert passed(tmp_path / "results" / "r") == PASSES
    assert json.dumps(read_json(tmp_path / "results" / "r" / "metrics.json")["repeats"])


def test_answers_to_a_single_case_tell_nothing_of_cases(tmp_path: Path) -> None:
    cases, outputs = (found[3:6] for found in rows())
    path = write_suite(tmp_path, case_rows=cases, output_rows=outputs, cluster_by="metadata.repeat_of")
    judgekit.run(path, run_id="r")
    summary = read_summary(RunFolder.open(tmp_path / "results" / "r"))
    assert summary is not None
    assert "groundedness: variances are not known; the answers to 1 of 1 cases differ" in plain_text(summary)


def test_pass_figures_are_printed_of_as_many_answers_as_most_cases_have(tmp_path: Path) -> None:
    cases, outputs = rows()
    outputs = [
        {"case_id": row["case_id"], "error": {"kind": "timeout"}} if row["case_id"] in ("c0#2", "c1#3") else row
        for row in outputs
    ]
    path = write_suite(tmp_path, case_rows=cases, output_rows=outputs, cluster_by="metadata.repeat_of")
    judgekit.run(path, run_id="r")
    summary = read_summary(RunFolder.open(tmp_path / "results" / "r"))
    assert summary is not None
    assert "groundedness_pass_rate: pass^2 " in plain_text(summary)


def test_runs_whose_answers_all_failed_have_no_variances_and_say_nothing_of_them(tmp_path: Path) -> None:
    outputs = [{"case_id": name, "error": {"kind": "timeout"}} for name in NAMES]
    path = write_suite(tmp_path, case_rows=rows()[0], output_rows=outputs, cluster_by="metadata.repeat_of")
    judgekit.run(path, run_id="r")
    metrics = read_json(tmp_path / "results" / "r" / "metrics.json")
    assert "groundedness" not in metrics["repeats"]["figures"]
    figure = metrics["overall"]["groundedness_pass_rate.pass^2"]
    assert (figure["value"], figure["n"], figure["n_error"], figure["worst"], figure["best"]) == (None, 0, 4, 0.0, 1.0)
