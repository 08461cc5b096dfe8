"""Metrics from Python files that a config names: what they give, what is refused, and what stored runs do."""

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import judgekit
from judgekit.cli.app import app
from judgekit.core.errors import ConfigError
from judgekit.core.runs import RunSummary
from judgekit.core.scores import Estimate
from judgekit.workflows.models import Options
from judgekit.workflows.rescore import rescore
from judgekit.workflows.setup import set_up
from tests.builders import read_lines

CODE = """
def short(case, output):
    return len(output.answer) < 4

def size(case, output):
    return len(output.answer)
"""


class Project:
    """A folder with a config, three answers and one failed output."""

    def __init__(self, place: Path) -> None:
        self.place = place
        self.results = place / "results"
        outputs: list[dict[str, Any]] = [{"case_id": f"q{n}", "answer": "x" * n} for n in (2, 3, 7)]
        outputs.append({"case_id": "q9", "error": {"kind": "timeout", "message": "too slow"}})
        cases = [{"id": output["case_id"], "question": "why"} for output in outputs]
        for name, rows in (("cases", cases), ("outputs", outputs)):
            (place / f"{name}.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
        self.write(CODE)

    def write(self, code: str, name: str = "own.py") -> None:
        (self.place / name).write_text(code)

    def config(self, *metrics: Any, **more: Any) -> Path:
        path = self.place / "config.json"
        system = {"name": "recorded", "path": "outputs.jsonl"}
        data = {"name": "own", "cases": "cases.jsonl", "system": system, "metrics": metrics, "slices": [], **more}
        path.write_text(json.dumps(data))
        return path

    def run(self, *metrics: Any, run_id: str = "a", **more: Any) -> RunSummary:
        summary: RunSummary = judgekit.run(
            self.config(*metrics, **more), results_dir=self.results, run_id=run_id
        ).summary
        return summary

    def judgekit(self, *arguments: str) -> Any:
        return CliRunner().invoke(app, [*arguments, "--results-dir", str(self.results)])


def figures(summary: RunSummary) -> dict[str, Estimate]:
    """The figures of a run that are estimates."""
    return {name: found for name, found in summary.overall.items() if isinstance(found, Estimate)}


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path)


def test_yes_or_no_is_a_share_and_a_number_a_mean_and_failed_outputs_count_as_failed(project: Project) -> None:
    found = figures(project.run("file:own.py:short", "file:own.py:size"))
    assert found["short"].value == pytest.approx(2 / 3)
    assert (found["short"].n, found["short"].n_error) == (3, 1)
    assert (found["short"].worst, found["short"].best) == (0.5, 0.75)
    assert (found["size"].value, found["size"].worst, found["size"].best) == (4.0, None, None)


@pytest.mark.parametrize(
    ("returned", "error"),
    [
        ("1 / 0", "ZeroDivisionError"),
        ("float('nan')", "finite number"),
        ("float('inf')", "finite number"),
        ("'yes'", "found str"),
        ("{'a': {'b': 1}}", "for 'a', found dict"),
        ("{1: 2}", "a key is a short text"),
        ("{str(n): n for n in range(101)}", "more than 100 keys"),
    ],
)
def test_what_is_no_score_is_a_failure_of_its_case_and_named(project: Project, returned: str, error: str) -> None:
    project.write(f"def odd(case, output):\n    return {returned} if case.id == 'q2' else 1.0\n")
    summary = project.run("file:own.py:odd")
    assert (figures(summary)["odd"].n, figures(summary)["odd"].n_error) == (2, 2)
    (warning,) = [item.message for item in summary.warnings if item.code == "internal_error"]
    assert error in warning
    assert "'q2'" in warning
    lines = read_lines(project.results / "a" / "scores.jsonl")
    assert [line["reason"] for line in lines if line["case_id"] == "q2"] == ["failed: internal"]


def test_a_mapping_gives_a_figure_for_each_key_and_none_is_not_applicable(project: Project) -> None:
    project.write(
        "def form(case, output):\n    return {'q2': {'a': True}, 'q3': None}.get(case.id, {'a': False, 'b': 5})"
    )
    gates = [{"metric": "form.a", "op": ">=", "value": 0.9}, {"metric": "form.c", "op": ">=", "value": 0}]
    summary = project.run("file:own.py:form", gates=gates)
    assert (figures(summary)["form.a"].value, figures(summary)["form.a"].n_not_applicable) == (0.5, 1)
    assert (figures(summary)["form.b"].value, figures(summary)["form.b"].n) == (5.0, 1)
    assert [gate.passed for gate in summary.gates] == [False, False]
    assert "form" not in summary.overall


def test_bounds_say_what_failed_cases_count_as(project: Project) -> None:
    marked = "@judgekit.bounds(0, 7, higher_is_better=False)\ndef size"
    project.write("import judgekit\n" + CODE.replace("def size", marked))
    found = figures(project.run("file:own.py:size", errors="as_zero"))["size"]
    assert (found.value, found.n, found.n_error) == (4.75, 4, 0)  # (2 + 3 + 7 + 7) / 4
    project.write(CODE)
    found = figures(project.run("file:own.py:size", errors="as_zero", run_id="b"))["size"]
    assert (found.value, found.n, found.n_error) == (4.0, 3, 1)


@pytest.mark.parametrize(
    ("code", "name", "error"),
    [
        ("def f(:\n", "f", r"own.py:1: not valid Python"),
        ("import os\nboom()\n", "f", r"own.py:2: NameError"),
        ("import sys\n\nsys.exit(1)\n", "f", r"own.py:3: SystemExit"),
        ("import beside\n", "f", r"own.py:1: ModuleNotFoundError.*not the files beside it"),
        (CODE, "shrot", r"own.py has no 'shrot'; did you mean 'short'\?"),
        ("LIMIT = 5\n", "LIMIT", r"own.py:1: LIMIT is of type int; expected a function"),
        ("class A:\n    pass\n", "A", r"own.py:1: A is a class that extends something else"),
        ("import judgekit\nclass A(judgekit.Metric):\n    pass\n", "A", r"own.py:2: A lacks calculate, columns"),
        ("async def f(case, output):\n    return 1\n", "f", r"own.py:1: f is async"),
        ("def f(case):\n    return 1\n", "f", r"own.py:1: f takes 1 arguments"),
        ("def f(case, output, columns):\n    return 1\n", "f", r"own.py:1: f: its argument 'columns' cannot be given"),
        ("def f(case, output, k):\n    return 1\n", "f", r"metrics\[0\] \(f\): \$.k: field required"),
        (
            "def error_rate(case, output):\n    return 1\n",
            "error_rate",
            "gives a score 'error_rate' already",
        ),
        (
            "import judgekit\n@judgekit.bounds\ndef f(case, output):\n    return 1\n",
            "f",
            r"own.py:2: TypeError",
        ),
    ],
)
def test_what_cannot_be_a_metric_is_refused_with_file_and_line(
    project: Project, code: str, name: str, error: str
) -> None:
    project.write("X = 1\n", "beside.py")
    project.write(code)
    with pytest.raises(ConfigError, match=error) as caught:
        set_up(project.config(f"file:own.py:{name}", "operations"), Options())
    assert "\n" not in str(caught.value)
    assert caught.value.exit_code == 2


def test_a_file_that_is_not_there_and_a_name_of_another_form_are_refused(project: Project) -> None:
    with pytest.raises(ConfigError, match=r"metrics\[0\]: no file none.py \(looked for .*none.py\)"):
        set_up(project.config("file:none.py:f"), Options())
    with pytest.raises(ConfigError, match=r"config.json:1: \$.metrics\[0\]: expected file:PATH.py:NAME"):
        set_up(project.config("file:own.py"), Options())


def test_a_file_does_not_take_the_place_of_a_module_of_its_name(project: Project) -> None:
    project.write("import json\n\ndef size(case, output):\n    return len(json.dumps(output.answer))\n", "json.py")
    assert figures(project.run("file:json.py:size"))["size"].value == 6.0  # two quotes more


def test_a_changed_file_is_refused_on_resume(project: Project) -> None:
    project.run("file:own.py:size")
    manifest = project.results / "a" / "manifest.json"
    manifest.write_text(json.dumps({**json.loads(manifest.read_text()), "status": "interrupted"}))
    project.write(CODE + "# another\n")
    found = project.judgekit("run", "--resume", "a")
    assert found.exit_code == 2
    assert "resolved.metrics.size.code_sha256 changed since it was started" in found.output


def test_rescore_uses_the_file_as_it_is_and_says_that_it_changed(project: Project) -> None:
    project.run("file:own.py:size")
    project.run("file:own.py:size", run_id="b")
    project.write(CODE.replace("return len(output.answer)\n", "return 2 * len(output.answer)\n"))
    found = rescore("a", Options(results_dir=project.results))
    assert [(item["old"]["value"], item["new"]["value"]) for item in found["changes"]] == [(4.0, 8.0)]
    assert [item["code"] for item in found["warnings"]] == ["code_changed"]
    compared = project.judgekit("compare", "b", "a", "--stats")
    assert "settings of size (code_sha256" in compared.output


def test_a_stored_run_is_compared_without_its_file_and_rescored_from_another_folder(project: Project) -> None:
    project.run("file:own.py:size")
    project.run("file:own.py:size", run_id="b")
    moved = project.place / "moved"
    moved.mkdir()
    (project.place / "own.py").rename(moved / "own.py")
    (project.place / "own.py").write_text("raise SystemExit('executed')\n")
    assert "no difference at all in 1 figures: size" in project.judgekit("compare", "a", "b", "--stats").output
    (project.place / "own.py").unlink()
    found = project.judgekit("rescore", "a")
    assert found.exit_code == 2
    assert f"no file own.py (looked for {project.place / 'own.py'})" in found.output
    assert "--from-dir" in found.output
    assert "no figure changed" in project.judgekit("rescore", "a", "--from-dir", str(moved)).output
    again = project.judgekit("rejudge", "a", "--run-id", "c")
    assert "has no judges" in again.output


def test_a_class_whose_scores_are_not_its_columns_fails_its_cases_and_not_the_run(project: Project) -> None:
    project.write(
        "import judgekit\nfrom judgekit.core.scores import Column\n\n\nclass Pair(judgekit.Metric):\n"
        "    def columns(self):\n        return (Column('pair.a'), Column('pair.b'))\n\n"
        "    def calculate(self, case, output):\n"
        "        return {'pair.a': 1, 'pair.b': 0} if case.id == 'q2' else {'pair.a': float('nan')}\n"
    )
    summary = project.run("file:own.py:Pair")
    assert (figures(summary)["pair.a"].value, figures(summary)["pair.a"].n_error) == (1.0, 3)
    assert "pair.b on one side only" in summary.warnings[0].message
