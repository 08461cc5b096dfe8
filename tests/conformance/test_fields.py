"""Worked values of field extraction, made by an independent reading of the definitions (see fields.jsonl)."""

import json
from pathlib import Path
from typing import Any

import pytest

from judgekit.metrics.fields import compare_fields

VECTORS = [
    json.loads(line) for line in (Path(__file__).parent / "fields.jsonl").read_text(encoding="utf-8").splitlines()
]


@pytest.mark.parametrize("vector", VECTORS, ids=range(len(VECTORS)))
def test_counts_and_figures_are_the_worked_ones_under_both_settings(vector: dict[str, Any]) -> None:
    for fn_counts, expect in vector["expect"].items():
        counts = compare_fields(vector["expected"], vector["extracted"], fn_counts=fn_counts).counts
        assert {name: getattr(counts, name) for name in expect} == pytest.approx(expect, abs=1e-9, rel=0)
