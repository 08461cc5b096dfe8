"""Runs from Python: what is given in memory becomes a run folder like any other, and a result is a view of it."""

import ast
import asyncio
import json
import sys
from pathlib import Path
from typing import Any

import pytest

import judgekit
from judgekit.api.case_filter import parse_condition
from judgekit.api.live_bar import LiveBar, observer_here
from judgekit.core.cases import Case, SystemOutput
from judgekit.core.config import RunConfig
from judgekit.core.errors import ConfigError, InputError, ProviderError
from judgekit.engine.judging import Tally
from judgekit.engine.passes import Observer
from judgekit.systems.python import Python
from judgekit.testing import FaultServer
from tests.builders import case, output, write_suite

MODELS = {"m": {"provider": "lexical", "model": "overlap-2"}}
CASES = [case(f"c{number}") for number in range(1, 5)]
OUTPUTS = [output(f"c{number}") for number in range(1, 5)]
WRONG = {"case_id": "c2", "answer": "It is cold.", "retrieved": [{"text": "Kiln c2 is fired at 1240 degrees."}]}


def judged(tmp_path: Path, **more: Any) -> judgekit.RunResult:
    given = {"cases": CASES, "outputs": OUTPUTS, "judges": ["groundedness"], "models": MODELS, **more}
    return judgekit.evaluate(**given, results_dir=tmp_path)


def test_lists_are_judged_into_a_run_folder_that_every_command_reads(tmp_path: Path) -> None:
    result = judged(tmp_path, outputs=[OUTPUTS[0], WRONG, *OUTPUTS[2:]])
    assert result.status == "complete"
    assert result.overall["groundedness"].n == 4
    assert result.folder.parent == tmp_path
    assert {score.case_id for score in result.scores} == {"c1", "c2", "c3", "c4"}
    again = judgekit.open_run(result.run_id, results_dir=tmp_path)
    assert again.overall["groundedness"].value == result.overall["groundedness"].value
    assert judgekit.rejudge(result, judge="groundedness").overall["groundedness"].n == 4
    assert [record.case_id for record in result.cases("groundedness < 3")] == ["c2"]
    assert len(result.cases()) == 4


def test_models_and_objects_are_taken_as_they_are(tmp_path: Path) -> None:
    cases = [Case.model_validate(row) for row in CASES]
    outputs = [SystemOutput.model_validate(row) for row in OUTPUTS]
    result = judged(tmp_path, cases=cases, outputs=iter(outputs), judges=[{"name": "groundedness", "model": "m"}])
    assert result.overall["groundedness"].n == 4


def test_one_list_may_hold_questions_and_answers_under_other_names(tmp_path: Path) -> None:
    rows = [{"qid": "q1", "q": "How hot?", "a": "1240 degrees.", "ctx": ["It is 1240 degrees."]}]
    fields = {"id": "qid", "question": "q", "case_id": "qid", "answer": "a", "retrieved": "ctx"}
    result = judged(tmp_path, cases=rows, outputs=None, fields=fields)
    (record,) = result.cases()
    assert record.output is not None
    assert (record.case_id, record.output.answer, record.output.retrieved[0].text) == (
        "q1", "1240 degrees.", "It is 1240 degrees."
    )  # fmt: skip


def test_a_function_is_the_system_and_a_run_that_stopped_is_resumed(tmp_path: Path) -> None:
    asked: list[str] = []
    up = False

    def ask(item: Case) -> dict[str, Any]:
        if len(asked) == 2 and not up:
            raise ConnectionError("down")
        asked.append(item.id)
        return {"answer": item.question, "retrieved": [{"text": item.question}]}

    pace = {"stop_after": 2, "max_concurrency": 1}
    with pytest.raises(ProviderError, match="2 calls in a row failed"):
        judged(tmp_path, outputs=None, system=Python(function=ask, **pace), run_id="r")
    up = True
    system = Python(function=ask, **pace)
    result = judged(tmp_path, outputs=None, system=system, resume="r")
    assert result.run_id == "r"
    assert sorted(asked) == ["c1", "c2", "c3", "c4"]
    assert result.overall["groundedness"].n == 4


def test_results_of_a_function_are_recorded_with_its_name(tmp_path: Path) -> None:
    def ask(item: Case) -> str:
        return item.question

    result = judged(tmp_path, outputs=None, system=ask, judges=[], metrics=["operations"])
    config = json.loads((result.folder / "config.json").read_text())
    assert config["system"]["function"].endswith("ask")
    assert len(config["resolved"]["system"]["code_sha256"]) == 64


def test_a_config_may_be_a_mapping_or_an_object_with_paths_from_a_folder(tmp_path: Path) -> None:
    path = write_suite(tmp_path)
    document = json.loads(path.read_text())
    by_path = judgekit.run(path, results_dir=tmp_path / "r")
    by_mapping = judgekit.run(document, base=tmp_path, results_dir=tmp_path / "r")
    by_object = judgekit.run(RunConfig.model_validate(document), base=tmp_path, results_dir=tmp_path / "r")
    assert by_path.overall == by_mapping.overall == by_object.overall
    assert by_mapping.compare(by_path).document["deltas"]


def test_a_running_loop_can_await_runs_side_by_side(tmp_path: Path) -> None:
    async def both() -> tuple[judgekit.RunResult, judgekit.RunResult]:
        path = write_suite(tmp_path)
        one = judgekit.arun(path, results_dir=tmp_path / "r", run_id="one")
        two = judgekit.aevaluate(CASES, OUTPUTS, judges=["groundedness"], models=MODELS, results_dir=tmp_path / "r")
        return await asyncio.gather(one, two)

    assert [result.status for result in asyncio.run(both())] == ["complete", "complete"]


def test_gates_raise_with_figure_and_limit(tmp_path: Path) -> None:
    gate = {"metric": "groundedness_pass_rate", "op": ">=", "value": 0.99}
    judged(tmp_path, gates=[gate]).assert_gates()
    missed = judged(tmp_path, outputs=[OUTPUTS[0], WRONG, *OUTPUTS[2:]], gates=[gate])
    with pytest.raises(judgekit.GatesMissed, match=r"groundedness_pass_rate >= 0.99: missed, 0.75"):
        missed.assert_gates()
    with pytest.raises(ConfigError, match="the config has no gates"):
        judged(tmp_path).assert_gates()


def test_a_result_shows_itself_in_ten_lines_with_a_sentence_first_and_escapes_in_html(tmp_path: Path) -> None:
    result = judged(tmp_path, name="x")
    lines = repr(result).splitlines()
    assert lines[0].startswith("x, 4 cases: No gate says what is good enough; groundedness is 5.0 of 5")
    assert len(lines) <= 10
    assert str(result.folder) in lines[-1]
    assert "<table>" in result._repr_html_()
    finding = judgekit.Finding("<b>1 & 2</b>", {})
    assert finding._repr_html_().endswith(">&lt;b&gt;1 &amp; 2&lt;/b&gt;</pre>")


def test_a_table_leaves_out_scores_that_apply_to_no_case_and_a_record_is_short(tmp_path: Path) -> None:
    result = judged(tmp_path, outputs=[*OUTPUTS[:3], {"case_id": "c4", "error": {"kind": "timeout"}}])
    frame = result.to_pandas()
    assert "abstention_accuracy" in {score.name for score in result.scores}
    assert "abstention_accuracy" not in frame
    assert frame["groundedness"].dtype == "float64"
    assert frame["groundedness"].isna().tolist() == [False, False, False, True]
    assert frame["failure"].tolist()[3] == "system: timeout"
    assert len(repr(result.cases("groundedness >= 1"))) < 3000
    assert repr(result).startswith("evaluate, 4 cases: No gate says what is good enough; groundedness is 5.0 of 5")
    assert "3 (small), 1 failed" in repr(result)


def test_hostile_names_neither_act_on_a_terminal_nor_on_a_page(tmp_path: Path) -> None:
    cases = [{**CASES[0], "category": "<img src=x onerror=alert(1)>"}]
    result = judged(tmp_path / "<b>\x1b[31m", cases=cases, outputs=OUTPUTS[:1])
    assert "\x1b" not in repr(result)
    assert "\x1b" not in result._repr_html_()
    assert "<b>\ufffd" not in result._repr_html_()


def test_a_run_that_is_cancelled_stops_and_can_be_resumed(tmp_path: Path) -> None:
    asked: list[str] = []

    async def ask(item: Case) -> dict[str, Any]:
        asked.append(item.id)
        await asyncio.sleep(0 if len(asked) == 1 else 60)
        return {"answer": item.question, "retrieved": [{"text": item.question}]}

    async def given_up() -> None:
        system = Python(function=ask, max_concurrency=1)
        run = asyncio.create_task(
            judgekit.aevaluate(CASES, system=system, judges=["groundedness"], models=MODELS, results_dir=tmp_path,
                               run_id="r")
        )  # fmt: skip
        while len(asked) < 2:
            await asyncio.sleep(0.01)
        run.cancel()
        with pytest.raises(asyncio.CancelledError):
            await run

    asyncio.run(given_up())
    n_asked = len(asked)
    manifest = json.loads((tmp_path / "r" / "manifest.json").read_text())
    assert (manifest["status"], n_asked) == ("interrupted", 2)


def test_what_a_function_does_wrong_is_a_row_of_the_outputs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def ask(item: Case) -> Any:
        print("noise of", item.id)  # noqa: T201
        if item.id == "c1":
            raise ValueError("no kiln")
        return {"c2": float("nan"), "c3": {"answer": "x", "confidence": float("nan")}, "c4": asyncio.sleep}[item.id]

    result = judged(tmp_path, outputs=None, system=ask, judges=[], metrics=["operations"])
    errors = {record.case_id: record.output.error for record in result.cases() if record.output is not None}
    assert {name: error and error.kind for name, error in errors.items()} == {
        "c1": "exception", "c2": "invalid_output", "c3": "invalid_output", "c4": "invalid_output"
    }  # fmt: skip
    assert errors["c1"] is not None and errors["c1"].message.startswith("ValueError: no kiln")
    assert result.overall["error_rate"].value == 1.0
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "noise of c1" in captured.err


@pytest.mark.filterwarnings("ignore:coroutine")
def test_a_coroutine_that_nobody_awaits_is_no_answer(tmp_path: Path) -> None:
    async def slow(item: Case) -> str:
        return item.question

    def forgets(item: Case) -> dict[str, Any]:
        return {"answer": slow(item)}

    result = judged(tmp_path, outputs=None, system=forgets, judges=[], metrics=["operations"])
    assert [kind for _, kind in result.failures] == ["system: invalid_output"] * 4


def test_failures_are_listed_with_their_case(tmp_path: Path) -> None:
    outputs = [*OUTPUTS[:3], {"case_id": "c4", "error": {"kind": "timeout"}}]
    assert judged(tmp_path, outputs=outputs).failures == [("c4", "system: timeout")]


def test_second_opinions_labels_and_comparisons_are_findings(tmp_path: Path) -> None:
    result = judged(tmp_path)
    checked = judgekit.spotcheck(result, against="repeat")
    assert checked.text.startswith("No alarm for groundedness: the same judge, asked again, disagrees in 0 of 4")
    assert checked.document["judge_reliability"]["disagreement_rate"] == 0.0
    labels = tmp_path / "labels.jsonl"
    labels.write_text("".join(json.dumps({"case_id": f"c{n}", "score": 5}) + "\n" for n in range(1, 5)))
    found = judgekit.calibrate(result, labels)
    assert found.folder is not None
    assert "groundedness" in found.document["judges"]
    from_rows = judgekit.calibrate(result, [{"case_id": f"c{n}", "score": 5} for n in range(1, 5)])
    assert from_rows.text.splitlines()[1:] == found.text.splitlines()[1:]
    with pytest.raises(InputError, match=r"labels: \[0\]: expected a mapping, found int 5"):
        judgekit.calibrate(result, [5])
    assert judged(tmp_path).compare(result).text


def test_answers_of_two_runs_are_preferred_side_by_side(tmp_path: Path) -> None:
    with FaultServer() as server:
        models = {"m": {"model": "m-2026-01-01", "base_url": server.base_url}}
        one = judged(tmp_path, outputs=[OUTPUTS[0], WRONG, *OUTPUTS[2:]], models=models, run_id="one")
        two = judged(tmp_path, models=models, run_id="two")
        found = judgekit.prefer(one, two)
    assert (found.status, found.summary.cases["n"], list(found.summary.judges)) == ("complete", 4, ["preference"])


def test_keys_stand_in_the_env_file_of_the_folder_where_paths_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("KILN_KEY", raising=False)
    models = {
        "m": {
            "model": "m-2026-01-01",
            "base_url": "http://127.0.0.1:9/v1",
            "api_key_env": "KILN_KEY",
            "max_attempts": 1,
        }
    }
    with pytest.raises(ConfigError, match="environment variable KILN_KEY is not set"):
        judged(tmp_path, models=models)
    Path(".env").write_text("KILN_KEY=sk-kiln-secret\n")
    with pytest.raises(ProviderError):
        judged(tmp_path, models=models)
    stored = [path.read_bytes() for path in tmp_path.rglob("*") if path.is_file() and path.name != ".env"]
    assert not any(b"sk-kiln-secret" in content for content in stored)


def test_a_run_takes_only_the_cases_that_are_named(tmp_path: Path) -> None:
    result = judgekit.run(write_suite(tmp_path), case="c2", results_dir=tmp_path / "r")
    assert [record.case_id for record in result.cases()] == ["c2"]


SECRET = "sk-proj-4f9a8b7c6d5e4f3a2b1c0d9e8f7a6b5c"


@pytest.mark.parametrize(
    ("models", "message"),
    [
        (
            {"m": {"model": "gpt-5-2025-08-07", "api_key_env": SECRET}},
            "api_key_env: expected the name of an env",
        ),
        (
            {"m": {"model": "x", "base_url": f"http://h/v1?code={SECRET}"}},
            r"m.base_url: holds what may be a secret",
        ),
        ({"m": {"model": "x", "extra_headers": {"x-auth": SECRET}}}, "models.m.extra_headers"),
    ],
)
def test_a_secret_in_a_config_is_refused_before_it_reaches_the_disk(
    tmp_path: Path, models: dict[str, Any], message: str
) -> None:
    with pytest.raises(ConfigError, match=message) as raised:
        judged(tmp_path / "r", models=models)
    assert SECRET not in str(raised.value)
    assert list(tmp_path.iterdir()) == []


def test_a_secret_in_the_address_of_a_live_system_is_refused_too(tmp_path: Path) -> None:
    system = {"name": "http", "url": f"http://127.0.0.1:9/ask?code={SECRET}"}
    with pytest.raises(ConfigError, match=r"system.url: holds what may be a secret"):
        judged(tmp_path / "r", outputs=None, system=system)
    assert list(tmp_path.iterdir()) == []


def test_paths_given_in_python_start_at_the_current_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("app.py").write_text("import os\ndef ask(case): return os.path.basename(os.getcwd())\n")
    Path("mine.py").write_text(
        "import judgekit\n"
        "@judgekit.bounds(low=0, high=100)\n"
        "def letters(case, output): return float(len(output.answer or ''))\n"
    )
    given = {"judges": [], "metrics": ["file:mine.py:letters"], "outputs": None}
    result = judged(tmp_path / "r", **given, system={"name": "python", "call": "app.py:ask"})
    assert result.overall["letters"].value == len(tmp_path.name)
    program = "import json, os, sys\nfor line in sys.stdin: print(json.dumps(os.getcwd()), flush=True)\n"
    Path("program.py").write_text(program)
    result = judged(tmp_path / "r", **given, system={"name": "command", "run": [sys.executable, "program.py"]})
    assert result.overall["letters"].value == len(str(tmp_path))
    Path("cases.jsonl").write_text(json.dumps(CASES[0]) + "\n")
    config = {"name": "x", "cases": Path("cases.jsonl"), "system": {"name": "python", "call": "app.py:ask"}}
    assert judgekit.run({**config, "metrics": ["file:mine.py:letters"]}).overall["letters"].n == 1


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"cases": []}, "cases: is empty"),
        ({"cases": [{"id": "a"}, {"id": "a"}]}, r"cases: \[1\]: id 'a' is already"),
        ({"cases": [{"id": "a"}, 4]}, r"cases: \[1\]: expected a mapping or a Case, found int 4"),
        ({"cases": [{"id": "a", "answerable": "maybe"}]}, r"cases: \[0\].answerable"),
        ({"cases": "cases.jsonl"}, "expected a list or a frame, found str; a file goes to judgekit.run"),
        ({"cases": 4}, "expected a list or a frame, found int"),
        (
            {"outputs": [{"answer": "x"}]},
            "their positions and the ids of the others cannot be joined",
        ),
        (
            {"fields": {"answr": "a"}},
            "names 'answr', which is not a field of a case; did you mean 'answerable'",
        ),
        ({"fields": {"answer": "a"}}, "outputs: \"fields\" maps 'answer' to 'a', which no record has"),
        ({"outputs": [{"case_id": "zz", "answer": "x"}]}, "no output belongs to a case"),
    ],
)
def test_wrong_data_is_named_by_its_place_in_the_list(tmp_path: Path, given: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        judged(tmp_path, **given)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"system": lambda _: "x"}, "outputs or a system, not both"),
        ({"outputs": None, "system": 4}, "expected a function of a case, found int"),
        ({"judges": ["groundednes"]}, "did you mean 'groundedness'"),
        ({"gats": []}, r"config: \$.gats: unknown key; did you mean 'gates'"),
        ({"judges": [{"name": "groundedness", "model": "other"}]}, r"config: .*judges\[0\].model names 'other'"),
        ({"min_n": float("nan")}, r"config: \$.min_n: expected a finite number"),
        ({"budget": object()}, r"config: \$.budget: expected a text or a number, found a object"),
    ],
)
def test_wrong_arguments_are_one_line(tmp_path: Path, given: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        judged(tmp_path, **given)


NAMES = ["groundedness", "correctness_pass", "recall_any@5"]


@pytest.mark.parametrize(
    ("text", "values", "met"),
    [
        ("groundedness < 3", {"groundedness": 2.0}, True),
        ("groundedness<3", {"groundedness": 3.0}, False),
        ("groundedness < 3", {"groundedness": None}, False),
        ("not groundedness < 3", {"groundedness": None}, False),
        ("not groundedness < 3", {"groundedness": 4.0}, True),
        ("groundedness < 3 and correctness_pass = 1", {"groundedness": 1.0, "correctness_pass": 1.0}, True),
        ("groundedness < 3 or correctness_pass == 1", {"groundedness": None, "correctness_pass": 1.0}, True),
        ("(groundedness > 3 or recall_any@5 = 1) and correctness_pass != 0",
         {"groundedness": 1.0, "recall_any@5": 1.0, "correctness_pass": 1.0}, True),
        ("groundedness >= 3 and groundedness <= 4", {"groundedness": 5.0}, False),
    ],
)  # fmt: skip
def test_a_condition_says_which_cases_are_meant(text: str, values: dict[str, float | None], met: bool) -> None:
    assert parse_condition(text, NAMES)(values) is met


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("groundednes < 3", "no score called 'groundednes'; did you mean 'groundedness'?"),
        ("groundedness", "expected one of <, <=, >, >=, = and !=, found the end"),
        ("groundedness < x", "expected a number, found 'x'"),
        ("groundedness < 3 3", "expected and, or, or the end, found '3'"),
        ("(groundedness < 3", "expected a closing bracket, found the end"),
        ("", "expected the name of a score, found the end"),
        ("__import__('os')", "cannot be read|no score|expected"),
    ],
)
def test_a_condition_that_is_none_is_refused(text: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        parse_condition(text, NAMES)


def test_public_names_have_types_and_no_other_name_has() -> None:
    (block,) = [node for node in ast.parse(Path(judgekit.__file__).read_text()).body if isinstance(node, ast.If)]
    typed = {
        alias.asname: node.module for node in block.body if isinstance(node, ast.ImportFrom) for alias in node.names
    }
    assert typed == judgekit._PUBLIC


class Drawn:
    """Stands for the display of a kernel."""

    def __init__(self) -> None:
        self.pages: list[str] = []

    def HTML(self, text: str) -> str:  # noqa: N802
        return text

    def display(self, page: str, *, display_id: bool) -> "Drawn":
        assert display_id
        self.pages.append(page)
        return self

    def update(self, page: str) -> None:
        self.pages.append(page)


def test_a_bar_is_drawn_at_the_beginning_and_the_end_and_in_between_now_and_then(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn = Drawn()
    monkeypatch.setitem(sys.modules, "IPython.display", drawn)
    bar = LiveBar()
    bar.note("<b>first</b>")
    outputs = [{**row, "answer": None} if row["case_id"] == "c4" else row for row in OUTPUTS]
    judged(tmp_path, outputs=outputs, observer=bar)
    bar.started("<i>", 2000)
    for n_done in range(1, 2001):
        bar.advanced("<i>", Tally(n_done=n_done, n_failed=1))
    bar.finished("<i>")
    first, *_, last = drawn.pages
    assert "&lt;b&gt;first&lt;/b&gt;" in first
    assert '<progress max="3" value="3"></progress> groundedness: 3 of 3, in ' in last
    assert '<progress max="2000" value="2000"></progress> &lt;i&gt;: 2000 of 2000, in ' in last
    assert last.endswith("1 failed</div></div>")
    assert len(drawn.pages) < 20


def test_without_a_notebook_nothing_is_drawn() -> None:
    assert type(observer_here()) is Observer
