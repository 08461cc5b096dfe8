"""Stored runs scored again from their folders alone."""

import json
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import judgekit
from judgekit import __version__
from judgekit.core.errors import ConfigError, RunBusy, StorageError
from judgekit.core.scores import Outcomes
from judgekit.metrics.answer_checks import AnswerChecks
from judgekit.storage.database import DATABASE, Database
from judgekit.storage.run_folder import RunFolder
from judgekit.storage.run_index import reindex
from judgekit.workflows.models import Options
from judgekit.workflows.rescore import rescore
from tests.builders import case, output, read_json, read_lines, seal_again, write_suite

FILES = ("scores.jsonl", "metrics.json", "summary.md")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A run whose suite files are gone."""
    cases = [case(f"c{n}", must_contain=["fired"] if n else ["absent"]) for n in range(4)]
    outputs = [output(f"c{n}") for n in range(3)] + [{"case_id": "c3", "error": {"kind": "timeout"}}]
    gates = [{"metric": "keyword_groundedness", "op": ">=", "value": 0.5}]
    config = write_suite(tmp_path, case_rows=cases, output_rows=outputs, gates=gates)
    judgekit.run(config, run_id="r")
    for path in (config, tmp_path / "cases.jsonl", tmp_path / "outputs.jsonl"):
        path.unlink()
    return tmp_path / "results" / "r"


def rescored(folder: Path) -> dict[str, Any]:
    return rescore(str(folder), Options())


def files(folder: Path) -> dict[str, bytes]:
    return {name: (folder / name).read_bytes() for name in FILES}


def edit(path: Path, change: Callable[[Any], None]) -> None:
    document = read_json(path)
    change(document)
    path.write_text(json.dumps(document))


def test_the_same_metrics_give_the_same_files_and_no_history(folder: Path) -> None:
    before = files(folder)
    result = rescored(folder)
    assert result["changes"] == []
    assert files(folder) == before
    assert not (folder / "metrics_history.jsonl").exists()


def test_a_metric_that_changed_is_said_kept_in_history_and_indexed(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # c0 misses its keyword, c1 and c2 have it: 2 of 3.
    assert read_json(folder / "metrics.json")["overall"]["keyword_groundedness"]["value"] == 0.6667
    monkeypatch.setattr("judgekit.workflows.rescore.METRICS_VERSION", 3)
    original = AnswerChecks.calculate

    def stricter(self: AnswerChecks, a_case: Any, an_output: Any) -> Outcomes:
        found = original(self, a_case, an_output)
        return found if a_case.id == "c3" else {**found, "keyword_groundedness": 0.0 if a_case.id != "c1" else 1.0}

    monkeypatch.setattr(AnswerChecks, "calculate", stricter)
    result = rescored(folder)
    [change] = [item for item in result["changes"] if item["name"] == "keyword_groundedness"]
    assert change["old"]["value"] == 0.6667
    assert change["new"]["value"] == 0.3333
    assert result["old_version"] == f"judgekit {__version__}, metrics version 2"
    assert result["new_version"] == f"judgekit {__version__}, metrics version 3"
    # The gate that was passed is missed now, and the file says so.
    assert [gate["passed"] for gate in result["gates"]] == [False]
    metrics = read_json(folder / "metrics.json")
    assert (metrics["gates"][0]["passed"], metrics["metrics_version"], metrics["scored_by"]) == (False, 3, __version__)
    assert "0.333" in (folder / "summary.md").read_text()
    scores = {
        line["case_id"]: line["value"] for line in read_lines(folder / "scores.jsonl") if line["name"] == change["name"]
    }
    assert scores == {"c0": 0.0, "c1": 1.0, "c2": 0.0, "c3": None}
    [old] = read_lines(folder / "metrics_history.jsonl")
    assert (old["metrics_version"], old["scored_by"]) == (2, __version__)
    assert old["figures"]["keyword_groundedness"]["value"] == 0.6667
    assert stored(folder) == ([0.3333], [(0, 2, __version__, 0.6667)])
    # The database can be built again with it.
    (folder.parent / DATABASE).unlink()
    reindex(folder.parent, Database(folder.parent))
    assert stored(folder) == ([0.3333], [(0, 2, __version__, 0.6667)])


def stored(folder: Path) -> tuple[list[Any], list[Any]]:
    """`groundedness` of the aggregate now, and the history of it."""
    with closing(sqlite3.connect(folder.parent / DATABASE)) as connection:
        now = connection.execute("SELECT aggregate_json FROM eval_runs").fetchall()
        rows = connection.execute("SELECT number, metrics_version, judgekit, aggregate_json FROM aggregate_history")
        old = [(*row[:3], json.loads(row[3])["groundedness"]) for row in rows.fetchall()]
    return [json.loads(row[0])["groundedness"] for row in now], old


@pytest.mark.usefixtures("runs_without_hashes")
def test_stored_verdicts_spot_checks_costs_and_times_are_kept(folder: Path) -> None:
    interval = {"low": 0.0, "high": 0.5, "method": "wilson 95%"}
    checked = {"disagreement_rate": 0.1, "spot_check_n": 10, "interval": interval, "n_asked": 10, "n_unscored": 0}

    def change(metrics: Any) -> None:
        metrics["judge_reliability"] = checked
        metrics["operational"]["wall_seconds"] = 123.0
        metrics["warnings"] = [
            {"code": "judge_unstable", "message": "kept"},
            {"code": "index_not_written", "message": "over"},
        ]
        metrics["overall"]["mrr"]["value"] = 0.123

    edit(folder / "metrics.json", change)
    judgments = (folder / "judgments.jsonl").read_bytes()
    result = rescored(folder)
    assert [item["name"] for item in result["changes"]] == ["mrr"]
    metrics = read_json(folder / "metrics.json")
    assert metrics["judge_reliability"] == checked
    assert metrics["operational"]["wall_seconds"] == 123.0
    assert [notice["code"] for notice in metrics["warnings"]] == ["judge_unstable"]
    assert (folder / "judgments.jsonl").read_bytes() == judgments


@pytest.mark.usefixtures("runs_without_hashes")
def test_a_verdict_that_was_edited_away_is_a_failure_and_not_asked_again(folder: Path) -> None:
    lines = read_lines(folder / "judgments.jsonl")
    (folder / "judgments.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines[1:]))
    rescored(folder)
    figure = read_json(folder / "metrics.json")["overall"]["groundedness"]
    # c3 failed, c0 is no longer judged.
    assert (figure["n"], figure["n_error"]) == (2, 2)


def test_the_history_keeps_the_same_figures_once_after_a_kill_between_the_two_writes(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    edit(folder / "metrics.json", lambda metrics: metrics["overall"]["mrr"].update(value=0.123))
    seal_again(folder)

    def killed(*_: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("judgekit.workflows.rescore.write_summary", killed)
        with pytest.raises(KeyboardInterrupt):
            rescored(folder)
    assert read_json(folder / "metrics.json")["overall"]["mrr"]["value"] == 0.123
    rescored(folder)
    assert len(read_lines(folder / "metrics_history.jsonl")) == 1


@pytest.mark.usefixtures("runs_without_hashes")
@pytest.mark.parametrize(
    ("spoil", "kind", "message"),
    [
        (lambda folder: (folder / "cases.jsonl").unlink(), ConfigError, "written before runs kept their cases"),
        (lambda folder: (folder / "metrics.json").unlink(), ConfigError, "this run has no metrics.json"),
        (lambda folder: (folder / "metrics.json").write_text("{"), StorageError, "damaged"),
        (
            lambda folder: edit(folder / "metrics.json", lambda metrics: metrics.update(schema_version=2)),
            ConfigError,
            "written by a newer judgekit",
        ),
        (
            lambda folder: edit(folder / "manifest.json", lambda manifest: manifest.update(status="running")),
            ConfigError,
            "this run is not finished",
        ),
        (
            lambda folder: (folder / "outputs.jsonl").write_bytes(b""),
            StorageError,
            "case 'c0' has no output in its place",
        ),
        (
            lambda folder: edit(folder / "config.json", lambda config: config.update(metrics=["gone"])),
            ConfigError,
            "gone",
        ),
    ],
)
def test_a_run_that_cannot_be_scored_says_why_and_stays_as_it_is(
    folder: Path, spoil: Callable[[Path], Any], kind: type[Exception], message: str
) -> None:
    spoil(folder)
    before = {name: (folder / name).read_bytes() for name in FILES if (folder / name).exists()}
    with pytest.raises(kind) as raised:
        rescored(folder)
    assert message in str(raised.value)
    assert {name: (folder / name).read_bytes() for name in FILES if (folder / name).exists()} == before


def test_a_run_that_another_process_writes_is_refused(folder: Path) -> None:
    with RunFolder(folder).locked(), pytest.raises(RunBusy):
        rescored(folder)


@pytest.mark.usefixtures("runs_without_hashes")
def test_a_figure_that_the_run_did_not_have_is_new(folder: Path) -> None:
    edit(folder / "metrics.json", lambda metrics: metrics["overall"].pop("mrr"))
    [change] = rescored(folder)["changes"]
    assert (change["name"], change["old"]) == ("mrr", None)
