"""Exports that others read: Every Eval Ever by its published schemas, Inspect's scores by its own reader."""

import csv
import gc
import hashlib
import importlib.util
import io
import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import judgekit
from judgekit.core.errors import ConfigError
from judgekit.reports.inspect_scores import inspect_names
from judgekit.testing import FaultServer, Reply, Request, chat_reply, error_reply
from judgekit.workflows.report import write_report
from tests.builders import write_lines
from tests.own_judges import BRAND, MEDICAL, OWN, STEADY, answering, case_number, own_suite, telling, without_pass

SCHEMAS = Path(__file__).parents[3] / "shared" / "data" / "schemas" / "every_eval_ever"


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> judgekit.RunResult:
    """The shipped example, held against its labels, with a hostile case."""
    folder = tmp_path_factory.mktemp("shared")
    result = judgekit.run("quickstart", results_dir=folder, run_id="q")
    labels = Path(judgekit.__file__).parents[1] / "configs" / "quickstart" / "labels.jsonl"
    judgekit.calibrate(result, labels)
    return result


@pytest.fixture(scope="module")
def exported(run: judgekit.RunResult, tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, Any], Path]:
    """The document, and the file of samples."""
    root = tmp_path_factory.mktemp("repository")
    path = write_report(run.folder, "every-eval-ever", root)
    document = json.loads(path.read_text())
    return document, root / document["detailed_evaluation_results"]["file_path"]


def samples(path: Path) -> Iterator[dict[str, Any]]:
    return (json.loads(line) for line in path.read_text().splitlines())


def test_every_figure_with_a_value_is_a_result_with_its_interval_and_what_is_not_in_it(
    run: judgekit.RunResult, exported: tuple[dict[str, Any], Path]
) -> None:
    document, _ = exported
    found = {result["evaluation_name"]: result for result in document["evaluation_results"]}
    assert found.keys() <= run.overall.keys()
    figure, result = run.overall["groundedness"], found["groundedness"]
    details = result["score_details"]
    assert details["score"] == pytest.approx(figure.value, abs=1e-4)
    interval = details["uncertainty"]["confidence_interval"]
    assert (interval["lower"], interval["upper"]) == (
        pytest.approx(figure.low, abs=1e-4), pytest.approx(figure.high, abs=1e-4)
    )  # fmt: skip
    assert details["uncertainty"]["num_samples"] == figure.n
    assert (details["details"]["n_error"], details["details"]["n_not_applicable"]) == ("3", "6")
    judging = result["metric_config"]["llm_scoring"]
    assert judging["judges"][0]["model_info"]["name"] == "overlap-2"
    assert "rests on the passages" in judging["input_prompt"]
    assert found["correctness"]["metric_config"]["llm_scoring"]["expert_baseline"] == pytest.approx(3.5893)
    assert "llm_scoring" not in found["recall_any@5"]["metric_config"]
    assert found["over_abstention_rate"]["metric_config"]["lower_is_better"] is True


def test_each_sample_belongs_to_a_result_and_the_file_is_the_one_that_is_named(
    run: judgekit.RunResult, exported: tuple[dict[str, Any], Path]
) -> None:
    document, path = exported
    about = document["detailed_evaluation_results"]
    assert hashlib.sha256(path.read_bytes()).hexdigest() == about["checksum"]
    records = list(samples(path))
    assert len(records) == about["total_rows"]
    known = {result["evaluation_result_id"] for result in document["evaluation_results"]}
    assert {record["evaluation_result_id"] for record in records} <= known
    grounded = [record for record in records if record["evaluation_name"] == "groundedness"]
    assert len(grounded) == run.overall["groundedness"].n
    mean = sum(record["evaluation"]["score"] for record in grounded) / len(grounded)
    assert mean == pytest.approx(run.overall["groundedness"].value)


def check_schemas(document: dict[str, Any], records: list[dict[str, Any]]) -> None:
    if not SCHEMAS.is_dir():
        pytest.skip(f"{SCHEMAS} is not there: the schemas are not a part of the repository")
    jsonschema = pytest.importorskip("jsonschema")

    def faults(name: str, value: Any) -> list[str]:
        schema = json.loads((SCHEMAS / f"{name}.schema.json").read_text())
        return [error.message for error in jsonschema.Draft7Validator(schema).iter_errors(value)]

    assert faults("eval", document) == []
    for record in records:
        assert faults("instance_level_eval", record) == []


def test_both_files_follow_the_published_schemas(exported: tuple[dict[str, Any], Path]) -> None:
    document, path = exported
    check_schemas(document, list(samples(path))[::50])


def test_no_figure_with_a_value_is_missing(run: judgekit.RunResult, exported: tuple[dict[str, Any], Path]) -> None:
    # Those of two judges and those that are made of sums are figures as well.
    found = {result["evaluation_name"]: result["metric_config"] for result in exported[0]["evaluation_results"]}
    figures = run.summary.overall.items()
    assert found.keys() == {name for name, figure in figures if getattr(figure, "value", None) is not None}
    assert found["correct_without_support"]["lower_is_better"] is True
    assert found["total_false_positives"]["max_score"] == "Infinity"
    assert "llm_scoring" in found["groundedness.unsupported_claim_rate"]


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory) -> judgekit.RunResult:
    """A judge of each kind; c1 has no verdict of any, c2 cannot be told for brand, and nothing passes for plain."""
    plain = without_pass({**BRAND, "name": "plain", "ask": "Which voice is it?"})
    judges = (*map(telling, OWN), plain)
    told = answering({**STEADY, "plain": STEADY["brand"]}, judges=judges)

    def says(request: Request) -> Reply:
        if '"ready"' not in request.text and case_number(request) == 1:
            return chat_reply("no idea")
        if "our brand voice" in request.text and case_number(request) == 2:
            return chat_reply('{"reasoning": "hard", "label": "cannot tell"}')
        return told(request)

    with FaultServer(says) as server:
        suite = own_suite(tmp_path_factory.mktemp("own"), server, *judges, n_cases=6, metrics=["operations"])
        return judgekit.run(suite, run_id="own")


def test_a_judge_of_labels_has_the_word_and_its_reason_in_the_table(own: judgekit.RunResult) -> None:
    rows = list(csv.DictReader(io.StringIO(write_report(own.folder, "csv").read_text("utf-8-sig"))))
    told = [(row["brand"], row["brand.reason"], row["brand.on"]) for row in rows[:4]]
    assert told == [
        ("on", "as asked", "1.0"),
        ("", "failed: judge invalid", ""),
        ("cannot tell", "hard", ""),
        ("mixed", "as asked", "0.0"),
    ]
    names = list(rows[0])
    assert names[names.index("brand") :][:3] == ["brand", "brand.reason", "brand.on"]
    assert "brand: the reply was no verdict (invalid)" in rows[1]["failure"]


def test_inspect_gets_a_file_for_each_judge_without_cases_that_have_no_score(own: judgekit.RunResult) -> None:
    folder = write_report(own.folder, "inspect")
    found = {path.stem: {line["id"]: line for line in samples(path)} for path in folder.iterdir()}
    assert {judge: len(lines) for judge, lines in found.items()} == {
        "tone": 5, "medical": 5, "brand": 4, "rules": 5, "plain": 5,
    }  # fmt: skip
    assert found["tone"]["c0"] == {
        "id": "c0",
        "value": 2.0,
        "answer": "Kiln c0 is fired at 1240 degrees.",
        "explanation": "as asked",
        "metadata": {},
    }
    assert (found["brand"]["c3"]["value"], found["brand"]["c3"]["metadata"]) == (0.0, {"label": "mixed"})
    # nothing passes for plain, so each of its labels is a number
    assert found["plain"]["c3"]["value"] == {"plain.on": 0.0, "plain.off": 0.0, "plain.mixed": 1.0}
    assert all("c1" not in lines for lines in found.values())
    assert "c2" not in found["brand"]


def test_of_a_preference_inspect_gets_whether_b_wins() -> None:
    names = ["better.win", "better.tie", "better.flip", "better.order_effect", "better_than"]
    assert inspect_names(names, "better") == ["better.win"]


def test_inspect_has_nothing_to_read_of_a_run_without_judges(tmp_path: Path) -> None:
    result = judgekit.evaluate([{"id": "c", "question": "q"}], [{"case_id": "c", "answer": "a"}], results_dir=tmp_path)
    with pytest.raises(ConfigError, match="no judges; --format csv"):
        write_report(result.folder, "inspect")


def test_own_judges_are_told_with_their_question_and_what_has_no_direction(own: judgekit.RunResult) -> None:
    document = json.loads(write_report(own.folder, "every-eval-ever").read_text())
    path = own.folder / "every_eval_ever" / document["detailed_evaluation_results"]["file_path"]
    records = list(samples(path))
    check_schemas(document, records)
    found = {result["evaluation_name"]: result["metric_config"] for result in document["evaluation_results"]}
    about = found["brand.on"]["llm_scoring"]["additional_details"]
    assert (about["ask"], about["passes"], json.loads(about["labels"])) == (BRAND["ask"], "on", BRAND["labels"])
    assert found["plain.on"]["additional_details"] == {"has_direction": "false"}
    assert found["medical"]["lower_is_better"] is True
    plain = [record for record in records if record["evaluation_name"] == "plain.mixed"]
    assert not any(record["evaluation"]["is_correct"] for record in plain)
    assert all(record["metadata"]["has_direction"] == "false" for record in plain)
    assert not any(record["sample_id"] == "c1" and "brand" in record["evaluation_name"] for record in records)


def test_a_label_is_a_verdict_in_a_run_that_was_killed_before_it_had_scores(
    own: judgekit.RunResult, tmp_path: Path
) -> None:
    killed = shutil.copytree(own.folder, tmp_path / "own")
    (killed / "scores.jsonl").unlink()
    manifest = json.loads((killed / "manifest.json").read_text())
    (killed / "manifest.json").write_text(json.dumps({**manifest, "status": "running", "files": {}}))
    rows = list(csv.DictReader(io.StringIO(write_report(killed, "csv").read_text("utf-8-sig"))))
    assert [row["brand"] for row in rows[:4]] == ["on", "", "cannot tell", "mixed"]
    assert [row["failure"] for row in rows if row["case_id"] != "c1"] == [""] * 5


@pytest.mark.parametrize(("refuses", "told"), [(False, 0.0), (True, None)])
def test_a_temperature_is_told_only_if_every_member_of_a_panel_took_it(
    refuses: bool, told: float | None, tmp_path: Path
) -> None:
    def says(request: Request) -> Reply:
        body = request.body or {}
        if refuses and body.get("model", "").startswith("b") and "temperature" in body:
            return error_reply(400, "Unsupported value: 'temperature' does not support 0", param="temperature")
        return answering(STEADY, judges=(BRAND,))(request)

    panel = {"models": ["a", "b"], "rule": "majority"}
    judge = {"name": "brand", "ask": BRAND["ask"], "labels": BRAND["labels"], "panel": panel}
    with FaultServer(says) as server:
        model = {"base_url": server.base_url, "allow_provider_temperature": True}
        models = {name: {**model, "model": f"{name}-2025-01-01"} for name in "ab"}
        suite = own_suite(tmp_path, server, judge, n_cases=2, models=models)
        result = judgekit.run(suite, run_id="r")
    document = json.loads(write_report(result.folder, "every-eval-ever").read_text())
    [judging] = [
        found["metric_config"]["llm_scoring"]
        for found in document["evaluation_results"]
        if found["evaluation_name"] == "brand.on"
    ]
    assert judging["aggregation_method"] == "majority_vote"
    assert [judge["model_info"]["name"] for judge in judging["judges"]] == ["a-2025-01-01", "b-2025-01-01"]
    assert [judge.get("temperature") for judge in judging["judges"]] == [told, told]


@pytest.mark.parametrize(("judge", "figure"), [(MEDICAL, "medical_pass_rate"), (without_pass(MEDICAL), "medical")])
def test_labels_of_people_stand_at_the_figure_that_they_are_about(
    judge: dict[str, Any], figure: str, tmp_path: Path
) -> None:
    with FaultServer(answering(STEADY, judges=(judge,))) as server:
        result = judgekit.run(own_suite(tmp_path, server, judge, n_cases=4, metrics=["operations"]), run_id="r")
    rows = [{"case_id": f"c{n}", "judge": "medical", "label": "yes" if n < 3 else "no"} for n in range(4)]
    judgekit.calibrate(result, write_lines(tmp_path / "labels.jsonl", rows))
    document = json.loads(write_report(result.folder, "every-eval-ever").read_text())
    experts = {
        found["evaluation_name"]: found["metric_config"]["llm_scoring"]["expert_baseline"]
        for found in document["evaluation_results"]
        if "expert_baseline" in found["metric_config"].get("llm_scoring", {})
    }
    # three of four say yes; no is what passes, if anything does
    assert experts == {figure: 0.25 if "pass" in figure else 0.75}


def test_a_conversation_is_told_turn_by_turn(tmp_path: Path) -> None:
    messages = [
        {"role": "user", "text": "Hi"},
        {"role": "assistant", "text": "Hello"},
        {"role": "user", "text": "Hot?"},
    ]
    calls = [{"name": "look", "arguments": {"kiln": 3, "deep": {"a": 1}}, "id": "t1"}]
    turns = [
        {"role": "assistant", "tool_calls": calls},
        {"role": "tool", "text": "1240", "tool_call_id": "t1"},
        {"role": "assistant", "text": "It is hot."},
    ]
    cases = [{"id": "c", "messages": messages}]
    result = judgekit.evaluate(cases, [{"case_id": "c", "turns": turns}], results_dir=tmp_path)
    document = json.loads(write_report(result.folder, "every-eval-ever").read_text())
    path = result.folder / "every_eval_ever" / document["detailed_evaluation_results"]["file_path"]
    records = list(samples(path))
    check_schemas(document, records)
    told = records[0]
    assert (told["interaction_type"], told["output"], told["evaluation"]["num_turns"]) == ("multi_turn", None, 6)
    assert told["messages"][3]["tool_calls"] == [
        {"id": "t1", "name": "look", "arguments": {"kiln": "3", "deep": '{"a": 1}'}}
    ]
    [attribution] = told["answer_attribution"]
    assert (attribution["source"], attribution["extracted_value"]) == ("messages[5].content", "It is hot.")


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::DeprecationWarning")  # of Inspect itself
def test_inspect_itself_finds_the_same_means(own: judgekit.RunResult, tmp_path: Path) -> None:
    if importlib.util.find_spec("inspect_ai") is None:
        pytest.skip("inspect_ai is not installed")
    from inspect_ai import Task, eval, score  # type: ignore[import-not-found]
    from inspect_ai.dataset import MemoryDataset, Sample  # type: ignore[import-not-found]
    from inspect_ai.scorer import mean, precomputed_scores  # type: ignore[import-not-found]

    folder = write_report(own.folder, "inspect")
    dataset = MemoryDataset([Sample(id=record.case_id, input="x") for record in own.cases()])
    [log] = eval(Task(dataset=dataset, solver=[]), model="mockllm/model", display="none", log_dir=str(tmp_path))
    for judge, figure in (("tone", "tone"), ("brand", "brand_pass_rate"), ("rules", "rules")):
        scorer = precomputed_scores(str(folder / f"{judge}.jsonl"), metrics=[mean()])
        (found,) = score(log, scorer, display="none").results.scores
        # Failures and what cannot be told are in neither mean.
        assert found.metrics["mean"].value == pytest.approx(own.overall[figure].value, abs=1e-4)
        assert found.scored_samples == own.overall[figure].n
    gc.collect()  # streams that Inspect leaves open


def test_hostile_texts_are_only_texts_in_every_export(tmp_path: Path) -> None:
    hostile = '=HYPERLINK("http://x")\x1b[31m\u202egnp'
    cases = [{"id": "=1+1", "question": hostile, "category": hostile, "reference_answers": [hostile]}]
    outputs = [{"case_id": "=1+1", "answer": hostile, "retrieved": [{"text": hostile}]}]
    models = {"m": {"provider": "lexical", "model": "overlap-2"}}
    result = judgekit.evaluate(cases, outputs, judges=["groundedness"], models=models, results_dir=tmp_path)
    for form in ("csv", "inspect", "every-eval-ever"):
        path = write_report(result.folder, form)
        for file in path.iterdir() if path.is_dir() else [path, *path.parent.glob("*_samples.jsonl")]:
            text = file.read_text()
            assert "\x1b" not in text
            assert "\u202e" not in text
    rows = list(csv.reader(io.StringIO((result.folder / "scores.csv").read_text("utf-8-sig"))))
    assert all(not cell.startswith("=") for row in rows for cell in row)
