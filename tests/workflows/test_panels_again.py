"""Panels from stored runs: judged again, by one model in their place, checked, and bridged."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

import judgekit
from judgekit.core.errors import ConfigError
from judgekit.core.judgments import Verdict
from judgekit.core.scores import Outcomes
from judgekit.engine.passes import Observer
from judgekit.executors.event_loop import run_local
from judgekit.judges.groundedness import Groundedness
from judgekit.metrics.answer_checks import AnswerChecks
from judgekit.storage.prompt_files import shipped
from judgekit.workflows.bridge import bridge
from judgekit.workflows.models import Options
from judgekit.workflows.rejudge import RejudgeWanted, open_rejudge
from judgekit.workflows.rescore import rescore
from judgekit.workflows.run import run as run_workflow
from tests.builders import read_json, read_lines
from tests.workflows.stored_suites import carried_out, check


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two runs of the shipped example: groundedness by a panel of two, and by one of them."""
    folder = tmp_path_factory.mktemp("panels")
    config = json.loads((shipped("configs") / "quickstart.json").read_text())
    del config["spot_check"]
    for name in ("cases", "indexing"):
        config[name] = str(shipped("configs") / config[name])
    config["system"]["path"] = str(shipped("configs") / config["system"]["path"])
    config["judges"][0] = {"name": "groundedness", "panel": {"models": ["baseline", "baseline-strict"], "quorum": 1}}
    (folder / "panel.json").write_text(json.dumps(config))
    config["judges"][0] = {"name": "groundedness", "model": "baseline-strict"}
    (folder / "single.json").write_text(json.dumps(config))
    for name in ("panel", "single"):
        judgekit.run(folder / f"{name}.json", results_dir=folder / "results", run_id=name)
    return folder / "results"


def rejudged(results: Path, again: RejudgeWanted, run_id: str) -> Path:
    job = open_rejudge("panel", again, Options(results_dir=results, run_id=run_id))
    run_local(lambda: run_workflow(job, Observer()))
    return results / run_id


def verdicts(folder: Path, role: str = "primary") -> dict[tuple[str, str], object]:
    lines = read_lines(folder / "judgments.jsonl")
    return {(item["judge"], item["case_id"]): item["verdict"] for item in lines if item["role"] == role}


def test_a_panel_judged_again_with_nothing_changed_says_the_same(results: Path) -> None:
    folder = rejudged(results, RejudgeWanted(judges=("groundedness",)), "again")
    assert verdicts(folder) == verdicts(results / "panel")
    assert (folder / "scores.jsonl").read_bytes() == (results / "panel" / "scores.jsonl").read_bytes()
    assert read_json(folder / "metrics.json")["rejudged"]["changed"] == 0


def test_judgments_of_a_panel_that_is_not_judged_again_are_copied_with_its_members(results: Path) -> None:
    folder = rejudged(results, RejudgeWanted(judges=("correctness",)), "kept")
    assert verdicts(folder, "member") == verdicts(results / "panel", "member") != {}
    assert verdicts(folder) == verdicts(results / "panel")


def test_one_model_takes_the_place_of_a_whole_panel(results: Path) -> None:
    folder = rejudged(results, RejudgeWanted(judges=("groundedness",), model="baseline-strict"), "alone")
    assert {item["role"] for item in read_lines(folder / "judgments.jsonl")} == {"primary"}
    assert verdicts(folder) == verdicts(results / "single")


def test_a_panel_is_checked_against_a_model_outside_it_only(results: Path) -> None:
    with pytest.raises(ConfigError, match="groundedness is a panel, and no model outside it"):
        check(results / "panel", judge="groundedness")
    with pytest.raises(ConfigError, match="is a panel; check it against a model outside it"):
        check(results / "panel", judge="groundedness", against="repeat")


def test_a_bridge_from_a_panel_to_one_model_knows_that_the_judge_changed(results: Path) -> None:
    _, found = bridge("panel", "single", Options(results_dir=results), carried_out)
    same = {name: item["same_judge"] for name, item in found["judges"].items()}
    assert same == {"groundedness": False, "correctness": True}
    assert found["old_by_new_judge"].startswith("panel-by-")


# scored again


def rescored(results: Path, run_id: str, tmp_path: Path) -> tuple[Path, dict[str, bytes], dict[str, Any]]:
    """A copy of a run scored again: its folder, the files as they were before, and the result."""
    folder = tmp_path / run_id
    shutil.copytree(results / run_id, folder)
    before = {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}
    return folder, before, rescore(str(folder), Options())


@pytest.mark.slow
@pytest.mark.parametrize(
    "again", [None, RejudgeWanted(judges=("groundedness",)), RejudgeWanted(judges=("correctness",))]
)
def test_scoring_a_panel_again_changes_nothing(results: Path, tmp_path: Path, again: RejudgeWanted | None) -> None:
    run_id = "panel" if again is None else f"rescored-{again.judges[0]}"
    if again is not None:
        rejudged(results, again, run_id)
    folder, before, result = rescored(results, run_id, tmp_path)
    assert result["changes"] == []
    after = {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}
    # The report names the time at which it was written; the manifest takes up spot checks that other runs have added.
    changed = {name for name in after if after[name] != before.get(name)}
    assert changed - {".lock", "report.html", "manifest.json"} == set()
    assert read_json(folder / "metrics.json")["judges"]["groundedness"]["panel"]["quorum"] == 1


def test_a_metric_family_that_changed_shows_beside_the_verdicts_of_a_panel(
    results: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    original = AnswerChecks.calculate

    def stricter(self: AnswerChecks, a_case: Any, an_output: Any) -> Outcomes:
        found = original(self, a_case, an_output)
        return {name: 0.0 if isinstance(value, float) else value for name, value in found.items()}

    monkeypatch.setattr(AnswerChecks, "calculate", stricter)
    folder, before, result = rescored(results, "panel", tmp_path)
    [change] = result["changes"]
    assert (change["name"], change["old"]["value"], change["new"]["value"]) == ("keyword_groundedness", 0.8, 0.0)
    assert (folder / "judgments.jsonl").read_bytes() == before["judgments.jsonl"]
    metrics, old = read_json(folder / "metrics.json"), json.loads(before["metrics.json"])
    assert metrics["judges"] == old["judges"]
    assert metrics["overall"]["groundedness"] == old["overall"]["groundedness"]
    assert len(read_lines(folder / "metrics_history.jsonl")) == 1


@pytest.mark.slow
def test_another_reading_of_verdicts_changes_the_scores_of_a_panel(
    results: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The panel's own verdicts are read, not those of its members.

    30 verdicts at 5, and one abstention on an answerable case, which is 0 whatever the judge says: 150 / 31.
    """
    original = Groundedness.scores

    def kinder(self: Groundedness, a_verdict: Verdict) -> Outcomes:
        return {**original(self, a_verdict), "groundedness": 5.0}

    monkeypatch.setattr(Groundedness, "scores", kinder)
    _, before, result = rescored(results, "panel", tmp_path)
    changes = {change["name"]: change for change in result["changes"]}
    assert changes["groundedness"]["new"]["value"] == 4.8387
    old = json.loads(before["metrics.json"])["overall"]["groundedness"]
    assert changes["groundedness"]["new"]["n"] == old["n"]
