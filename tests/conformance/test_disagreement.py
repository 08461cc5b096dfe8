"""Every worked value of section 9 of the metric definitions."""

import json
from pathlib import Path
from typing import Any

import pytest

from judgekit.analysis.spot_check_findings import spot_check_report
from judgekit.analysis.verdict_pairs import Pair
from judgekit.core.judgments import Verdict
from judgekit.core.verdict_kinds import Scale

LINES = Path(__file__).with_name("disagreement.jsonl").read_text(encoding="utf-8").split("\n")
VECTORS: list[dict[str, Any]] = [json.loads(line) for line in LINES if line]


@pytest.mark.parametrize("vector", VECTORS, ids=[f"line{number}" for number in range(1, len(VECTORS) + 1)])
def test_the_report_of_a_judge_has_the_worked_values(vector: dict[str, Any]) -> None:
    pairs = [
        Pair(f"c{number}", Verdict(score=first), Verdict(score=second))
        for number, (first, second) in enumerate(vector["pairs"])
    ]
    report = spot_check_report(pairs, kind=Scale(pass_score=4), seed=0, against={})
    report["wilson95"] = [report["interval"]["low"], report["interval"]["high"]]
    for name, value in vector["expect"].items():
        assert report[name] == (None if value is None else pytest.approx(value, abs=1e-9, rel=0)), name


def test_the_worked_values_cover_undefined_kappa_and_no_pairs() -> None:
    expected = [vector["expect"] for vector in VECTORS]
    assert any(values.get("quadratic_weighted_kappa", 0.0) is None for values in expected)
    assert any(values["spot_check_n"] == 0 for values in expected)
