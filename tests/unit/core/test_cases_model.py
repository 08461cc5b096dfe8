"""Cases and outputs as they are built in code: by systems, by tests, by readers of other formats."""

import datetime as dt
import json
import math
from typing import Any

import pytest
from pydantic import ValidationError

from judgekit.core.cases import Case, SystemOutput
from judgekit.core.field_types import DEEPEST

NAN = float("nan")


@pytest.mark.parametrize("field", ["expected_chunk_ids", "expected_doc_ids"])
@pytest.mark.parametrize(("value", "expected"), [(None, None), (NAN, None), ([], ()), ([1, "b"], ("1", "b"))])
def test_absent_labels_and_empty_ones_stay_apart(field: str, value: Any, expected: Any) -> None:
    assert getattr(Case.model_validate({"id": 1, field: value}), field) == expected


@pytest.mark.parametrize(("value", "expected"), [(None, None), (NAN, None), ([], ())])
def test_no_citations_reported_and_none_given_stay_apart(value: Any, expected: Any) -> None:
    assert SystemOutput.model_validate({"case_id": 1, "citations": value}).citations == expected


@pytest.mark.parametrize("field", ["tags", "vaults", "must_contain", "forbidden", "reference_answers", "key_facts"])
@pytest.mark.parametrize("value", [None, NAN, []])
def test_other_lists_count_as_empty_when_absent(field: str, value: Any) -> None:
    assert getattr(Case.model_validate({"id": 1, field: value}), field) == ()


@pytest.mark.parametrize(("value", "expected"), [(None, ""), (NAN, ""), ("", ""), ("q\ud800", "q\ufffd")])
def test_a_missing_question_is_blank(value: Any, expected: str) -> None:
    assert Case.model_validate({"id": 1, "question": value}).question == expected


@pytest.mark.parametrize("value", [0, False, [], {}, 7])
def test_what_is_no_text_is_no_question(value: Any) -> None:
    with pytest.raises(ValidationError, match="question"):
        Case.model_validate({"id": 1, "question": value})


@pytest.mark.parametrize(
    "part",
    [
        {"must_contain": "abc"},
        {"expected_doc_ids": "abc"},
        {"gold_supports": "abc"},
        {"tags": [NAN]},
        {"unknown": 1},
        {"id": ""},
        {"id": True},
        {"recency_conflict_rule": "newest"},
        {"gold_supports": [{"rel_path": NAN}]},
        {"gold_supports": [{"rel_path": "a"}], "required_support_groups": [[1]]},
        {"gold_supports": [{"rel_path": "a"}], "required_support_groups": [[-1]]},
        {"gold_supports": [{"rel_path": "a"}], "required_support_groups": [[]]},
        {"required_support_groups": [[0]]},
    ],
)
def test_a_case_that_cannot_be_meant_is_refused(part: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        Case.model_validate({"id": 1, **part})


@pytest.mark.parametrize(
    "part",
    [
        {"retrieved": "text"},
        {"retrieved": [{"rank": 2}, {"rank": 2}]},
        {"retrieved": [{"rank": 2}, {}]},
        {"retrieved": [{"rank": 0}]},
        {"retrieved": [{"score": NAN}]},
        {"retrieved": [{"score": math.inf}]},
        {"latency_seconds": {"total": -0.1}},
        {"latency_seconds": {"total": math.inf}},
        {"usage": {"prompt_tokens": -1}},
        {"citations": [{"citation": ""}]},
        {"answer": 42},
    ],
)
def test_an_output_that_cannot_be_meant_is_refused(part: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        SystemOutput.model_validate({"case_id": 1, **part})


def test_ranks_may_be_given_for_all_some_or_none() -> None:
    for ranks in ([3, 1, 2], [None, None, 7], [None, None]):
        hits = [{"rank": rank} for rank in ranks]
        assert len(SystemOutput.model_validate({"case_id": 1, "retrieved": hits}).retrieved) == len(hits)


def nested(depth: int) -> Any:
    value: Any = 1
    for _ in range(depth):
        value = [value]
    return value


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ({"a": dt.date(2026, 1, 1)}, "expected values that JSON has, found date"),
        ({"a": {1, 2}}, "found set"),
        ({"a": {1: 2}}, "expected texts as keys"),
        ({"a": nested(DEEPEST + 1)}, f"nested deeper than {DEEPEST} levels"),
        ([1], "valid dictionary"),
    ],
)
def test_metadata_holds_what_can_be_written_again(value: Any, said: str) -> None:
    with pytest.raises(ValidationError, match=said):
        Case.model_validate({"id": 1, "metadata": value})


def test_metadata_is_cleaned() -> None:
    given = {"n\ud800": NAN, "inf": -math.inf, "t": ("a\udfff", [True, 1, 0.5, None]), "deep": nested(DEEPEST - 1)}
    case = Case.model_validate({"id": 1, "metadata": given})
    assert case.metadata["n\ufffd"] is None
    assert case.metadata["inf"] is None
    assert case.metadata["t"] == ["a\ufffd", [True, 1, 0.5, None]]
    assert Case.model_validate_json(case.model_dump_json()) == case
    json.dumps(case.model_dump(mode="json"), allow_nan=False, ensure_ascii=False).encode("utf-8")


def test_every_text_of_an_output_can_be_written() -> None:
    bad = "x\ud800"
    output = SystemOutput.model_validate(
        {
            "case_id": bad,
            "answer": bad,
            "retrieved": [{"chunk_id": bad, "text": bad, "heading_path": [bad], "rel_path": bad}],
            "citations": [{"citation": bad}],
            "error": {"kind": bad, "message": bad},
            "latency_seconds": {bad: 1},
            "versions": {bad: bad},
            "scope": {"selected_folders": [bad]},
            "references": [{"rel_path": bad, "heading_path": bad}],
        }
    )
    assert "\ufffd" in output.model_dump_json()


def test_criteria_of_a_case_need_something_to_meet() -> None:
    rude = {"id": "rude", "text": "It is rude.", "weight": -1}
    with pytest.raises(ValidationError, match="no weight is above 0"):
        Case.model_validate({"id": "a", "criteria": [rude]})
    found = Case.model_validate({"id": "a", "criteria": [rude, {"id": "short", "text": "It is short."}]})
    assert [item.weight for item in found.criteria] == [-1.0, 1.0]
