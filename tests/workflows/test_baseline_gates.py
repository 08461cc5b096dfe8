"""Gates relative to a baseline, from the config to the exit code, the reports and what a CI server shows."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from typer.testing import CliRunner

import judgekit
from judgekit.cli.app import app
from judgekit.core.errors import ConfigError
from judgekit.core.runs import RunSummary
from judgekit.storage.run_list import list_runs
from judgekit.workflows.compare import compare
from judgekit.workflows.compared_runs import CompareOptions, open_runs
from judgekit.workflows.models import Options
from judgekit.workflows.rescore import rescore
from judgekit.workflows.stored_runs import tag_run
from tests.builders import case, output, read_json, write_suite

N = 30

ANSWERED = {"metric": "keyword_groundedness", "not_worse_than": "latest:main", "margin": 0.2}


class Bench:
    """Runs of one suite in one folder, whose answers have the wanted word in some cases."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.results = folder, folder / "results"
        self.options = Options(results_dir=self.results)

    def config(self, *, wrong: Sequence[int] = (), failed: Sequence[int] = (), **config: Any) -> Path:
        rows = []
        for number in range(N):
            more: dict[str, Any] = {"answer": "It is cold."} if number in wrong else {}
            if number in failed:
                more = {"answer": None, "error": {"kind": "timeout", "message": "no answer"}}
            rows.append(output(f"c{number}", **more))
        suite = {"case_rows": [case(f"c{number}", must_contain=["1240"]) for number in range(N)], "output_rows": rows}
        return write_suite(self.folder / "suite", **{**suite, "gates": [ANSWERED], **config})

    def run(self, run_id: str, **suite: Any) -> RunSummary:
        found: RunSummary = judgekit.run(self.config(**suite), run_id=run_id, results_dir=self.results).summary
        return found

    def tag(self, run_id: str) -> None:
        tag_run(run_id, "main", self.options, remove=False)


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


def test_a_run_passes_misses_or_is_left_undecided_against_its_baseline(bench: Bench) -> None:
    first = bench.run("first").gates[0]
    assert (first.state, first.fails) == ("undecided", False)
    assert "no baseline yet, latest:main: no run in" in first.message
    bench.tag("first")
    same, few, many = bench.run("same"), bench.run("few", wrong=range(5)), bench.run("many", wrong=range(20))
    assert [run.gates[0].state for run in (same, few, many)] == ["passed", "undecided", "missed"]
    # Bonett and Price over 30 pairs: 5 fell, so -4 / 32 -+ 1.96 sqrt((7 / 32 - (5 / 32)^2) / 32) = -0.309 to -0.003
    stored = read_json(bench.results / "few" / "metrics.json")["gates"][0]
    assert (stored["passed"], stored["observed"], stored["n"]) == (None, -0.1667, 30)
    assert (stored["baseline"]["run_id"], stored["baseline"]["method"]) == (
        "first", "paired, bonett-price 95%, mcnemar exact",
    )  # fmt: skip
    with open_runs("first", "few", bench.options) as sides:
        delta = {item.name: item for item in compare(sides, CompareOptions()).deltas}["keyword_groundedness"]
    assert (stored["baseline"]["low"], stored["baseline"]["high"]) == pytest.approx((delta.low, delta.high), abs=5e-5)


def test_cases_that_fail_count_as_the_worst(bench: Bench) -> None:
    bench.run("first")
    bench.tag("first")
    found = bench.run("failing", failed=range(20)).gates[0]
    assert (found.state, found.n) == ("missed", 10)
    assert "20 failed cases counted as the worst" in found.message


def test_another_judge_leaves_its_figures_undecided_and_the_others_not(bench: Bench) -> None:
    gates = [ANSWERED, {**ANSWERED, "metric": "groundedness"}]
    bench.run("first", gates=gates)
    bench.tag("first")
    other = bench.run("other", gates=gates, model={"model": "overlap-strict-2"})
    assert [gate.state for gate in other.gates] == ["passed", "undecided"]
    assert "judge groundedness: model (overlap-2, then overlap-strict-2)" in other.gates[1].message
    assert "judgekit compare first other" in other.gates[1].message


def test_other_cases_leave_every_gate_undecided(bench: Bench) -> None:
    bench.run("first")
    bench.tag("first")
    path = bench.config()
    with (path.parent / "cases.jsonl").open("a", encoding="utf-8") as stream:
        stream.write(json.dumps(case("new")) + "\n")
    with (path.parent / "outputs.jsonl").open("a", encoding="utf-8") as stream:
        stream.write(json.dumps(output("new")) + "\n")
    found = judgekit.run(path, run_id="grown", results_dir=bench.results).summary.gates[0]
    assert found.state == "undecided"
    assert "the runs cannot be compared, data set (" in found.message


def test_a_baseline_that_is_named_must_be_there_before_anything_is_written(bench: Bench) -> None:
    gate = {**ANSWERED, "not_worse_than": "frist"}
    with pytest.raises(ConfigError, match=r"gates\[0\]\.not_worse_than: no run 'frist' in"):
        bench.run("a", gates=[gate])
    assert not (bench.results / "a").exists()
    bench.run("first")
    assert bench.run("b", gates=[{**gate, "not_worse_than": "first"}]).gates[0].state == "passed"


def test_a_baseline_that_stopped_early_decides_nothing(bench: Bench) -> None:
    bench.run("first")
    bench.tag("first")
    path = bench.results / "first" / "manifest.json"
    path.write_text(json.dumps({**read_json(path), "status": "interrupted"}), encoding="utf-8")
    assert "the baseline is interrupted; finish it with: judgekit run --resume" in bench.run("b").gates[0].message


def test_a_damaged_baseline_costs_the_gate_and_not_the_run(bench: Bench) -> None:
    bench.run("first")
    bench.tag("first")
    (bench.results / "first" / "scores.jsonl").write_text("{", encoding="utf-8")
    summary = bench.run("b")
    assert (summary.status, summary.gates[0].state) == ("complete", "undecided")
    assert "scores.jsonl" in summary.gates[0].message


def test_rescoring_keeps_the_baseline_that_a_run_was_held_against(bench: Bench) -> None:
    bench.run("first", wrong=range(20))
    bench.tag("first")
    assert bench.run("second").gates[0].state == "passed"
    bench.run("third")
    bench.tag("third")
    found = rescore("second", bench.options)
    assert [gate["baseline"]["run_id"] for gate in found["gates"]] == ["first"]
    assert not found["fails"]


@pytest.mark.slow
def test_exit_codes_reports_and_ci_say_the_same(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    bench.run("first")
    bench.tag("first")
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    codes = {}
    for name, wrong, undecided in (
        ("open", 5, "warn"),
        ("strict", 5, "fail"),
        ("bad", 20, "warn"),
        ("good", 0, "fail"),
    ):
        path = bench.config(wrong=range(wrong), gates=[{**ANSWERED, "undecided": undecided}])
        junit = bench.folder / f"{name}.xml"
        words = ["run", str(path), "--run-id", name, "--results-dir", str(bench.results), "--junit", str(junit), "-q"]
        found = CliRunner().invoke(app, words)
        root = ElementTree.fromstring(junit.read_text(encoding="utf-8"))
        red = [int(root.attrib[kind]) for kind in ("failures", "errors")]
        assert bool(sum(red)) is bool(found.exit_code)
        levels = [line[2:].partition(" ")[0] for line in found.output.splitlines() if "title=gate" in line]
        codes[name] = (found.exit_code, int(root.attrib["skipped"]), levels)
    assert codes == {
        "open": (0, 1, ["warning"]), "strict": (1, 0, ["error"]), "bad": (1, 0, ["error"]), "good": (0, 0, []),
    }  # fmt: skip
    assert "* **undecided**: keyword" in (bench.results / "open" / "summary.md").read_text(encoding="utf-8")
    page = (bench.results / "open" / "report.html").read_text(encoding="utf-8")
    assert '<li class="notice warn"><strong>undecided</strong> <span>keyword_groundedness not worse than' in page
    counts = {entry.run_id: (entry.n_missed, entry.n_undecided) for entry in list_runs(bench.results)}
    assert counts == {"first": (0, 1), "open": (0, 1), "strict": (0, 1), "bad": (1, 0), "good": (0, 0)}


def test_compare_holds_the_gates_of_b_against_a(bench: Bench) -> None:
    bench.run("first")
    bench.run("bad", wrong=range(20))
    words = ["compare", "first", "bad", "--results-dir", str(bench.results), "--fail-on", "gates"]
    found = CliRunner().invoke(app, [*words, "--stats"])
    assert found.exit_code == 1
    assert "gates relative to a baseline:\n  keyword_groundedness not worse than latest:main (first)" in found.output
    assert "--fail-on gates: keyword_groundedness" in found.output
    document = json.loads(CliRunner().invoke(app, [*words[:-2], "--format", "json"]).output)
    assert [gate["passed"] for gate in document["gates"]] == [False]
    html = CliRunner().invoke(app, [*words[:-2], "--format", "html"]).output
    assert '<p class="notice bad"><strong>missed</strong>' in html


def test_the_result_in_python_never_says_that_an_undecided_gate_passed(bench: Bench) -> None:
    found = judgekit.run(bench.config(), run_id="a", results_dir=bench.results)
    assert "Not decided: 1 of 1 gate undecided" in repr(found)
    bench.tag("a")
    assert "the only gate passed" in repr(judgekit.run(bench.config(), run_id="b", results_dir=bench.results))


def test_several_gates_say_that_they_are_not_corrected(bench: Bench) -> None:
    gates = [ANSWERED, {**ANSWERED, "metric": "error_rate"}]
    bench.run("a", gates=gates)
    text = (bench.results / "a" / "summary.md").read_text(encoding="utf-8")
    assert "2 gates are relative to a baseline; each has its own 95% interval, not corrected for their number" in text
