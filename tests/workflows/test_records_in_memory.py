"""A run is judged, judged again and checked while few of its records are in memory at any one time."""

import json
from pathlib import Path

import pytest

import judgekit
from judgekit.workflows.models import Options
from judgekit.workflows.rescore import rescore
from tests.records_alive import records_counted
from tests.workflows.stored_suites import check, rejudge

N_CASES = 400
MOST = 60
"""Records of one kind that may be alive at once."""


def write_suite(folder: Path) -> Path:
    folder.mkdir()
    with (folder / "cases.jsonl").open("w") as cases, (folder / "outputs.jsonl").open("w") as outputs:
        for number in range(N_CASES):
            name = f"c{number}"
            cases.write(
                json.dumps({"id": name, "question": "How hot is the kiln?", "reference_answers": ["Hot."]}) + "\n"
            )
            hit = {"chunk_id": "k", "text": f"The kiln of case {number} is hot."}
            answer = f"The kiln of case {number} is {'hot' if number % 3 else 'cold and old'}."
            outputs.write(json.dumps({"case_id": name, "answer": answer, "retrieved": [hit]}) + "\n")
    config = {
        "name": "many",
        "cases": "cases.jsonl",
        "system": {"name": "recorded", "path": "outputs.jsonl"},
        "judges": [{"name": "groundedness", "model": "overlap"}],
        "models": {
            "overlap": {"provider": "lexical", "model": "overlap-2"},
            "strict": {"provider": "lexical", "model": "overlap-strict-2"},
        },
        "seed": 1,
        "report": False,
        "results_dir": "results",
    }
    (folder / "config.json").write_text(json.dumps(config))
    return folder / "config.json"


@pytest.fixture
def stored(tmp_path: Path) -> Path:
    judgekit.run(write_suite(tmp_path / "suite"), run_id="a")
    return tmp_path / "suite" / "results" / "a"


def test_a_run_holds_few_records_at_a_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with records_counted(monkeypatch) as most:
        judgekit.run(write_suite(tmp_path / "suite"), run_id="a")

    assert most.keys() == {"Case", "SystemOutput", "JudgeInput", "Judgment"}
    assert max(most.values()) < MOST, most


def test_a_rejudge_holds_few_records_at_a_time(stored: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with records_counted(monkeypatch) as most:
        summary = rejudge(stored, "b", model="strict")

    assert summary.rejudged is not None
    assert summary.rejudged["n"] == N_CASES
    assert most.keys() == {"Case", "SystemOutput", "JudgeInput", "Judgment"}
    assert max(most.values()) < MOST, most


def test_a_rescore_holds_few_records_at_a_time(stored: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with records_counted(monkeypatch) as most:
        found = rescore(str(stored), Options())

    assert found["changes"] == []
    assert max(most.values()) < MOST, most


def test_a_spot_check_holds_few_records_at_a_time(stored: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with records_counted(monkeypatch) as most:
        summary = check(stored, against="model:strict", n=10)

    assert summary.judge_reliability is not None
    assert summary.judge_reliability["by_judge"]["groundedness"]["spot_check_n"] == 10
    assert max(most.values()) < MOST, most
