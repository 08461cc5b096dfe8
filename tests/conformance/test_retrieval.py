"""Every worked value of sections 1 to 3 of the metric definitions."""

import json
from pathlib import Path
from typing import Any

import pytest

from judgekit.core.cases import Case, SystemOutput
from judgekit.core.components import Metric
from judgekit.core.scores import Failed, NotApplicable, Outcomes
from judgekit.metrics.answer_checks import AnswerChecks
from judgekit.metrics.retrieval import Retrieval
from judgekit.metrics.retrieval_ids import RetrievalIds

LINES = Path(__file__).with_name("retrieval.jsonl").read_text(encoding="utf-8").split("\n")
VECTORS: list[dict[str, Any]] = [json.loads(line) for line in LINES if line]


def families(vector: dict[str, Any]) -> list[Metric]:
    return [Retrieval(ks=vector["k"], snippets=vector["snippets"]), RetrievalIds(ks=vector["k"]), AnswerChecks()]


@pytest.mark.parametrize("vector", VECTORS, ids=[vector["case"]["id"] for vector in VECTORS])
def test_exactly_the_expected_names_are_numbers_and_each_is_right(vector: dict[str, Any]) -> None:
    case = Case.model_validate(vector["case"])
    output = SystemOutput.model_validate(vector["output"])
    outcomes: Outcomes = {}
    for metric in families(vector):
        outcomes.update(metric.calculate(case, output))
    numbers = {name: value for name, value in outcomes.items() if isinstance(value, float)}
    assert numbers == pytest.approx(vector["expect"], abs=1e-9, rel=0)
    missing = [value for name, value in outcomes.items() if name not in numbers]
    assert all(isinstance(value, NotApplicable | Failed) for value in missing)


def test_every_score_of_the_three_families_has_a_worked_value() -> None:
    covered = {name for vector in VECTORS for name in vector["expect"]}
    assert covered == {column.name for metric in families(VECTORS[0]) for column in metric.columns()}
