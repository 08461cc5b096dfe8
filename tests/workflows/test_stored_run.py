"""A run folder is enough to get back cases, outputs, wordings, judges and metrics."""

from pathlib import Path

import pytest

import judgekit
from judgekit.core.cases import Case
from judgekit.core.data_files import DataFile
from judgekit.core.errors import ConfigError, StorageError
from judgekit.storage.case_files import load_cases
from judgekit.storage.prompt_files import shipped
from judgekit.workflows.models import Options
from judgekit.workflows.stored import StoredRun, open_stored, stored_models
from tests.readers import load_outputs


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> StoredRun:
    results = tmp_path_factory.mktemp("results")
    judgekit.run("quickstart", results_dir=results, run_id="r")
    return open_stored("r", Options(results_dir=results))


def test_cases_and_outputs_come_back_as_they_were_read(stored: StoredRun) -> None:
    cases = load_cases(DataFile(path="cases.jsonl"), shipped("configs") / "quickstart" / "cases.jsonl")
    outputs = load_outputs(DataFile(path="outputs.jsonl"), shipped("configs") / "quickstart" / "outputs.jsonl")
    assert list(stored.folder.cases()) == cases
    assert [output.case_id for output in stored.folder.outputs()] == [case.id for case in cases]
    assert {output.case_id: output for output in stored.folder.outputs()} == {
        output.case_id: output for output in outputs
    }


def test_a_judge_and_its_wording_are_those_that_the_run_kept(stored: StoredRun) -> None:
    version = stored.judge_config("groundedness").prompt_version
    assert stored.prompt("groundedness", version).sha256 == stored.resolved["prompts"]["groundedness/v1"]
    assert stored.judge("groundedness").settings() == stored.resolved["judges"]["groundedness"]


def test_metrics_of_the_run_are_built_from_its_config(stored: StoredRun) -> None:
    assert {metric.name: metric.model_dump(mode="json") for metric in stored.metrics()} == stored.resolved["metrics"]


@pytest.mark.parametrize(
    ("ask", "message"),
    [
        (lambda run: run.judge("grounded"), "no judge 'grounded'; did you mean 'groundedness'?"),
        (lambda run: run.prompt("groundedness", "v9"), "no prompt version 'v9'"),
        (lambda run: stored_models(run, None, {"base"}, Options()), "no model 'base'"),
    ],
)
def test_what_a_run_does_not_have_is_named(stored: StoredRun, ask: object, message: str) -> None:
    with pytest.raises(ConfigError) as raised:
        ask(stored)  # type: ignore[operator]
    assert message in str(raised.value)


def test_a_run_that_kept_no_cases_gives_none(stored: StoredRun, tmp_path: Path) -> None:
    assert list(type(stored.folder)(tmp_path).cases()) == []
    assert type(stored.folder)(tmp_path).prompts() == {}


def test_a_damaged_line_is_named(tmp_path: Path, stored: StoredRun) -> None:
    (tmp_path / "cases.jsonl").write_text(Case(id="a").model_dump_json() + "\n{\n")
    with pytest.raises(StorageError, match=r"cases\.jsonl:2: damaged line"):
        list(type(stored.folder)(tmp_path).cases())
