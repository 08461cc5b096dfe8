"""A run is judged, judged again and checked while few of its records are in memory at any one time."""

import json
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any, cast

import pytest
from pydantic import BaseModel

import judgekit
from judgekit.core.cases import Case, SystemOutput
from judgekit.core.judgments import JudgeInput, Judgment
from judgekit.workflows.models import Options
from judgekit.workflows.rescore import rescore
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


@contextmanager
def counted(monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, int]]:
    """By kind of record, how many were alive at once at most, of those that are read from lines and their copies."""
    most: dict[str, int] = {}
    with monkeypatch.context() as patch:
        for model in (Case, SystemOutput, JudgeInput, Judgment):
            counter = _Counter(model, most)
            read = cast("Any", model.model_validate_json).__func__
            patch.setattr(model, "model_validate_json", classmethod(counter.made_by(read)))
            patch.setattr(model, "model_copy", counter.made_by(model.model_copy))
        yield most


class _Counter:
    """Knows which records of one kind are alive."""

    def __init__(self, model: type[BaseModel], most: dict[str, int]) -> None:
        self._name, self._most = model.__name__, most
        self._alive: weakref.WeakValueDictionary[int, BaseModel] = weakref.WeakValueDictionary()
        self._numbers = count()

    def made_by(self, make: Callable[..., BaseModel]) -> Callable[..., BaseModel]:
        def counted(*args: Any, **kwargs: Any) -> BaseModel:
            record = make(*args, **kwargs)
            self._alive[next(self._numbers)] = record
            self._most[self._name] = max(self._most.get(self._name, 0), len(self._alive))
            return record

        return counted


@pytest.fixture
def stored(tmp_path: Path) -> Path:
    judgekit.run(write_suite(tmp_path / "suite"), run_id="a")
    return tmp_path / "suite" / "results" / "a"


def test_a_run_holds_few_records_at_a_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with counted(monkeypatch) as most:
        judgekit.run(write_suite(tmp_path / "suite"), run_id="a")

    assert most.keys() == {"Case", "SystemOutput", "JudgeInput", "Judgment"}
    assert max(most.values()) < MOST, most


def test_a_rejudge_holds_few_records_at_a_time(stored: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with counted(monkeypatch) as most:
        summary = rejudge(stored, "b", model="strict")

    assert summary.rejudged is not None
    assert summary.rejudged["n"] == N_CASES
    assert most.keys() == {"Case", "SystemOutput", "JudgeInput", "Judgment"}
    assert max(most.values()) < MOST, most


def test_a_rescore_holds_few_records_at_a_time(stored: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with counted(monkeypatch) as most:
        found = rescore(str(stored), Options())

    assert found["changes"] == []
    assert max(most.values()) < MOST, most


def test_a_spot_check_holds_few_records_at_a_time(stored: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with counted(monkeypatch) as most:
        summary = check(stored, against="model:strict", n=10)

    assert summary.judge_reliability is not None
    assert summary.judge_reliability["by_judge"]["groundedness"]["spot_check_n"] == 10
    assert max(most.values()) < MOST, most
