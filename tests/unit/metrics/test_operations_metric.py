"""Failures of the system under test."""

from typing import Any

import pytest

from judgekit.core.cases import Case, SystemOutput
from judgekit.metrics.operations import Operations


@pytest.mark.parametrize(
    ("fields", "error", "timeout", "empty"),
    [
        ({"answer": "x"}, 0, 0, 0),
        ({"error": {"kind": "timeout"}}, 1, 1, 0),
        ({"error": {"kind": "api"}}, 1, 0, 0),
        ({"error": {"kind": "missing_output"}}, 1, 0, 0),
        ({"answer": "", "error": {"kind": "api"}}, 1, 0, 0),
        ({"answer": ""}, 1, 0, 1),
        ({"retrieved": [{"chunk_id": "k1"}]}, 0, 0, 0),
        ({"answer": "", "retrieved": [{"chunk_id": "k1"}]}, 1, 0, 1),
        ({"answer": "  \n"}, 1, 0, 1),
        ({}, 1, 0, 1),
        ({"answer": "", "abstained": True}, 0, 0, 0),
        ({"answer": "", "grounded": False}, 0, 0, 0),
        ({"answer": "", "grounded": True}, 1, 0, 1),
        ({"answer": "", "grounded": False, "abstained": False}, 1, 0, 1),
        ({"answer": "I do not know", "abstained": True}, 0, 0, 0),
    ],
)
def test_every_case_counts_as_failed_or_not(fields: dict[str, Any], error: int, timeout: int, empty: int) -> None:
    output = SystemOutput.model_validate({"case_id": "q", **fields})
    assert Operations().calculate(Case(id="q"), output) == {
        "error_rate": error,
        "timeout_rate": timeout,
        "empty_response_rate": empty,
    }


def test_the_columns_are_operational_and_lower_is_better() -> None:
    for column in Operations().columns():
        assert column.section == "operational"
        assert not column.higher_is_better
        assert column.binary
