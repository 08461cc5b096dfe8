"""Exports that others read: Every Eval Ever by its published schemas, Inspect's scores by its own reader."""

import csv
import hashlib
import importlib.util
import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import judgekit
from judgekit.workflows.report import write_report

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


def test_both_files_follow_the_published_schemas(exported: tuple[dict[str, Any], Path]) -> None:
    if not SCHEMAS.is_dir():
        pytest.skip(f"{SCHEMAS} is not there: the schemas are not a part of the repository")
    jsonschema = pytest.importorskip("jsonschema")
    document, path = exported

    def faults(name: str, value: Any) -> list[str]:
        schema = json.loads((SCHEMAS / f"{name}.schema.json").read_text())
        return [error.message for error in jsonschema.Draft202012Validator(schema).iter_errors(value)]

    assert faults("eval", document) == []
    for record in list(samples(path))[::50]:
        assert faults("instance_level_eval", record) == []


def test_what_inspect_reads_has_the_judges_scores_and_reasons(run: judgekit.RunResult) -> None:
    path = write_report(run.folder, "inspect")
    records = list(samples(path))
    values = [record["value"]["groundedness"] for record in records]
    known = [value for value in values if value is not None]
    assert len(known) == run.overall["groundedness"].n
    assert all(record["explanation"] for record in records)
    # Ids are those of cases, each once, so that nobody's score is another's.
    assert len({record["id"] for record in records}) == len(records)


@pytest.mark.slow
def test_inspect_itself_finds_the_same_mean(run: judgekit.RunResult, tmp_path: Path) -> None:
    if importlib.util.find_spec("inspect_ai") is None:
        pytest.skip("inspect_ai is not installed")
    from inspect_ai import Task, eval, score  # type: ignore[import-not-found]
    from inspect_ai.dataset import MemoryDataset, Sample  # type: ignore[import-not-found]
    from inspect_ai.scorer import mean, precomputed_scores  # type: ignore[import-not-found]

    path = write_report(run.folder, "inspect")
    dataset = MemoryDataset([Sample(id=record.case_id, input="x") for record in run.cases()])
    [log] = eval(Task(dataset=dataset, solver=[]), model="mockllm/model", display="none", log_dir=str(tmp_path))
    scored = score(log, precomputed_scores(str(path), metrics={"groundedness": [mean()]}), display="none")
    (found,) = scored.results.scores
    assert found.metrics["mean"].value == pytest.approx(run.overall["groundedness"].value)


def test_hostile_texts_are_only_texts_in_every_export(tmp_path: Path) -> None:
    hostile = '=HYPERLINK("http://x")\x1b[31m\u202egnp'
    cases = [{"id": "=1+1", "question": hostile, "category": hostile, "reference_answers": [hostile]}]
    outputs = [{"case_id": "=1+1", "answer": hostile, "retrieved": [{"text": hostile}]}]
    models = {"m": {"provider": "lexical", "model": "overlap-2"}}
    result = judgekit.evaluate(cases, outputs, judges=["groundedness"], models=models, results_dir=tmp_path)
    for form in ("csv", "inspect", "every-eval-ever"):
        path = write_report(result.folder, form)
        for file in [path, *path.parent.glob("*_samples.jsonl")]:
            text = file.read_text()
            assert "\x1b" not in text
            assert "\u202e" not in text
    rows = list(csv.reader(io.StringIO((result.folder / "scores.csv").read_text())))
    assert all(not cell.startswith("=") for row in rows for cell in row)
