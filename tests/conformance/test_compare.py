"""First correct hits of two runs against independently worked values."""

import json
from pathlib import Path
from typing import Any

import pytest

from judgekit.analysis.case_changes import kind_of
from judgekit.core.cases import Case, SystemOutput
from judgekit.metrics.first_hits import HitMatching, first_hits

ROWS = [json.loads(line) for line in (Path(__file__).parent / "compare.jsonl").read_text("utf-8").splitlines()]


BY_UNION = {"q26": {"a_rank": None, "b_rank": 2, "kind": "win"}}
"""Rows that were worked out hit by hit. The hits up to a rank count together: in q26, b's first two hits cover
[175, 195) and [191, 251), so 37 + 16 = 53 of the 100 characters [128, 228) of c5, at rank 2."""


def test_there_are_rows_of_both_ways_to_match() -> None:
    assert len(ROWS) >= 120
    assert {row["chunker_version_match"] for row in ROWS} == {"exact", "fallback_doc_span"}


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["case"]["id"])
def test_ranks_and_kind_are_as_worked_out(row: dict[str, Any]) -> None:
    matching = HitMatching(by_chunk_id=row["chunker_version_match"] == "exact")
    case = Case.model_validate(row["case"])
    a, b = SystemOutput.model_validate(row["a"]), SystemOutput.model_validate(row["b"])

    found = first_hits(case, a, b, matching)

    assert found is not None
    assert {"a_rank": found.a_rank, "b_rank": found.b_rank, "kind": kind_of(found.a_rank, found.b_rank)} == (
        BY_UNION.get(row["case"]["id"], row["expect"])
    )
