"""Judges with probabilities: what these are worth beside the written verdict, and what they show of drift."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from judgekit.analysis.drift_states import drift_report
from judgekit.engine.passes import Observer
from judgekit.reports.calibration_report import calibration_lines
from judgekit.storage.run_folder import RunFolder
from judgekit.storage.stored_history import read_points
from judgekit.testing import FaultServer, Reply, Request, chat_reply, with_chances
from judgekit.workflows.calibrate import CalibrationWanted, calibrate
from judgekit.workflows.models import Options
from tests.builders import read_json, read_lines, write_lines, write_suite
from tests.workflows.engine import Ran, again, is_capability_call
from tests.workflows.stored_suites import rejudge

JUDGMENTS = "judgments.jsonl"

N = 40
JUDGE = {"name": "true", "ask": "Is it true?", "yes_no": {"pass": "yes"}, "model": "m", "scoring": "expected"}


def chance_of(number: int) -> float:
    """People pass even numbers; the judge always says yes, but is surer of them: 0.80 to 0.99 against 0.55 to 0.74."""
    return round((0.80 if number % 2 == 0 else 0.55) + (number // 2) / 100, 2)


def says_yes(request: Request) -> Reply:
    if is_capability_call(request.body):
        reply, chances = chat_reply('{"ready": true}'), {"true": 0.9, "false": 0.1}
    else:
        number = next(number for number in range(N - 1, -1, -1) if f"Kiln c{number} is" in request.text)
        yes = chance_of(number)
        chances = {"true": yes, "false": 1 - yes} if number < N - 2 else {"true": 0.6, "maybe": 0.4}
        reply = chat_reply('{"reasoning": "so it is", "answer": true}')
    return with_chances(reply, "true", chances, 20) if request.get("logprobs") else reply


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ran]:
    folder = tmp_path_factory.mktemp("suite")
    with FaultServer(says_yes) as server:
        yield again(write_suite(folder, server.base_url, judges=[JUDGE], n_cases=N), server)


def calibrated(run: Ran, folder: Path, passed: dict[str, bool]) -> dict[str, Any]:
    labels = write_lines(folder / "labels.jsonl", [{"case_id": name, "pass": value} for name, value in passed.items()])
    found = calibrate(str(run.folder), CalibrationWanted(labels=labels), Options(), Observer())[1]
    judge: dict[str, Any] = found["judges"]["true"]
    return judge


def test_the_probability_tells_what_the_written_verdict_does_not(run: Ran, tmp_path: Path) -> None:
    judge = calibrated(run, tmp_path, {f"c{number}": number % 2 == 0 for number in range(N)})
    found = judge["anchors"]["probabilities"]
    # the last two have too little probability on yes and no
    assert (found["n"], found["n_without"]) == (38, 2)
    # every even number is above every odd one; the written verdict is yes for all
    assert (found["auc"]["value"], found["auc_written"]["value"]) == (1.0, 0.5)
    chances = [(chance_of(number), number % 2 == 0) for number in range(N - 2)]
    brier = sum((chance - passed) ** 2 for chance, passed in chances) / len(chances)
    assert found["brier"]["value"] == pytest.approx(brier, abs=1e-4)
    assert found["brier"]["low"] < brier < found["brier"]["high"]
    assert found["ece"]["low"] < found["ece"]["value"] < found["ece"]["high"]
    # from the least of the even numbers on, all are right
    assert found["best_threshold"] == 0.8
    [best] = [row for row in found["thresholds"] if row["threshold"] == 0.8]
    assert (best["sensitivity"]["value"], best["specificity"]["value"]) == (1.0, 1.0)
    [at_half] = [row for row in found["thresholds"] if row["threshold"] == 0.5]
    assert (at_half["sensitivity"]["value"], at_half["specificity"]["value"]) == (1.0, 0.0)


def test_the_figures_are_printed_and_stand_in_the_reports(run: Ran, tmp_path: Path) -> None:
    judge = calibrated(run, tmp_path, {f"c{number}": number % 2 == 0 for number in range(N)})
    text = "\n".join(calibration_lines({"run_id": "r", "judges": {"true": judge}}))
    assert "AUC of the probability of a pass 1.000 of 38, 2 without; of the written verdict 0.500" in text
    assert "a pass from probability 0.800 separates best here: sensitivity 1.000, specificity 1.000" in text
    assert "pass from p   sensitivity" in text
    assert "AUC of the probability of a pass" in (run.folder / "summary.md").read_text()
    assert "a pass from probability 0.800" in (run.folder / "report.html").read_text()
    assert read_json(run.folder / "calibration.json")["judges"]["true"]["anchors"]["probabilities"]["n"] == 38


def test_labels_of_one_kind_leave_no_area_and_no_threshold(run: Ran, tmp_path: Path) -> None:
    judge = calibrated(run, tmp_path, {f"c{number}": True for number in range(10)})
    found = judge["anchors"]["probabilities"]
    assert (found["auc"]["value"], found["best_threshold"]) == (None, None)
    assert found["undefined_reason"] == "people pass every one of these cases, or none"
    assert "Brier score" in "\n".join(calibration_lines({"run_id": "r", "judges": {"true": judge}}))


def test_a_judge_without_probabilities_has_no_such_part(tmp_path: Path) -> None:
    judge = {**JUDGE, "scoring": "written"}
    with FaultServer(says_yes) as server:
        ran = again(write_suite(tmp_path, server.base_url, judges=[judge], n_cases=4), server)
    found = calibrated(ran, tmp_path, {"c0": True, "c1": False})
    assert found["anchors"]["probabilities"] is None
    assert "probability" not in json.dumps(calibration_lines({"run_id": "r", "judges": {"true": found}}))


@pytest.mark.usefixtures("runs_without_hashes")
def test_a_judge_whose_probabilities_fall_has_drifted_before_a_verdict_flips(tmp_path: Path) -> None:
    moved_by = 0.0

    def drifting(request: Request) -> Reply:
        reply = says_yes(request)
        if is_capability_call(request.body) or not request.get("logprobs"):
            return reply
        number = next(number for number in range(N - 1, -1, -1) if f"Kiln c{number} is" in request.text)
        yes = 0.9 - number / 100 - moved_by
        return with_chances(chat_reply('{"reasoning": "", "answer": true}'), "true", {"true": yes, "false": 1 - yes})

    with FaultServer(drifting) as server:
        ran = again(write_suite(tmp_path, server.base_url, judges=[JUDGE], n_cases=20), server)
        lines = [{**line, "created_at": "2026-01-01T00:00:00.000+00:00"} for line in read_lines(ran.folder / JUDGMENTS)]
        write_lines(ran.folder / JUDGMENTS, lines)
        rejudge(ran.folder, "quiet", use_cache=False)
        moved_by = 0.1
        rejudge(ran.folder, "moved", use_cache=False)
    quiet, moved = [point for point in read_points(RunFolder(ran.folder)) if point.kind == "rejudge"]
    assert quiet.chance_shift_mean == pytest.approx(0.0)
    assert (moved.n_disagree, moved.n_chances) == (0, 20)
    assert moved.chance_shift_mean == pytest.approx(-0.1)
    report = drift_report([quiet, moved])
    assert (report.state, report.chances and report.chances.now.created_at) == ("judge", moved.created_at)
