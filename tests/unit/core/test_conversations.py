"""Conversations as cases and outputs hold them, and as judges see them."""

import json

import pytest
from pydantic import ValidationError

from judgekit.core.cases import Case, SystemOutput
from judgekit.core.conversations import conversation_of

ASKED = [
    {"role": "system", "text": "Be kind."},
    {"role": "user", "text": "Hello"},
    {"role": "assistant", "text": "Hi."},
    {"role": "user", "text": "When?"},
    {"role": "user", "left_out": ["image"]},
]
TURNS = [
    {"role": "assistant", "tool_calls": [{"name": "time", "arguments": {"zone": "é", "at": 1}}, {"name": "now"}]},
    {"role": "tool", "name": "time", "text": "12:00"},
    {"role": "assistant", "text": "At noon.\nSharp."},
]


def test_the_question_is_the_last_message_of_the_user_and_the_answer_the_last_of_the_system() -> None:
    case = Case.model_validate({"id": 1, "messages": ASKED})
    assert (case.question, "question" in case.model_fields_set) == ("When?", True)
    assert Case.model_validate({"id": 1, "messages": ASKED, "question": "q"}).question == "q"
    assert Case.model_validate({"id": 1, "messages": []}).question == ""
    assert SystemOutput.model_validate({"case_id": 1, "turns": TURNS}).answer == "At noon.\nSharp."
    assert SystemOutput.model_validate({"case_id": 1, "turns": TURNS[:2]}).answer is None
    assert SystemOutput.model_validate({"case_id": 1, "turns": TURNS, "error": {"kind": "api"}}).answer is None
    assert Case.model_validate_json(case.model_dump_json()) == case


def test_cases_of_the_same_fields_do_not_mix_them_up() -> None:
    plain = Case.model_validate({"id": 1, "tags": ["a"]})
    Case.model_validate({"id": 2, "messages": ASKED})
    assert plain.model_fields_set == {"id", "tags"}
    assert plain.model_copy(update={"lang": "en"}).model_fields_set == {"id", "tags", "lang"}
    assert Case.model_validate({"id": 3, "tags": []}).model_fields_set == {"id", "tags"}


def test_a_conversation_is_one_list() -> None:
    case = Case.model_validate({"id": 1, "messages": ASKED})
    output = SystemOutput.model_validate({"case_id": 1, "turns": TURNS})
    assert conversation_of(case, output)[3:] == [
        {"number": 4, "role": "user", "text": "When?"},
        {"number": 5, "role": "user", "text": "(left out: image)"},
        {"number": 6, "role": "assistant", "text": 'calls time {"at":1,"zone":"é"}\ncalls now {}'},
        {"number": 7, "role": "tool", "text": "time:\n12:00"},
        {"number": 8, "role": "assistant", "text": "At noon.\nSharp."},
    ]


@pytest.mark.parametrize(
    ("case", "output", "expected"),
    [
        ({"question": "q"}, {"answer": "a"}, []),
        ({"messages": ASKED[:2]}, {"answer": "a"}, ["Be kind.", "Hello", "a"]),
        ({"question": "q"}, {"turns": TURNS[2:]}, ["q", "At noon.\nSharp."]),
        ({"question": "q"}, {"turns": ASKED[3:4] + TURNS[2:]}, ["When?", "At noon.\nSharp."]),
        ({"messages": ASKED[:2]}, {"error": {"kind": "api"}}, ["Be kind.", "Hello"]),
    ],
)
def test_what_stands_in_no_message_is_added(
    case: dict[str, object], output: dict[str, object], expected: list[str]
) -> None:
    found = conversation_of(
        Case.model_validate({"id": 1, **case}), SystemOutput.model_validate({"case_id": 1, **output})
    )
    assert [message["text"] for message in found] == expected


def test_a_role_that_is_none_and_a_rank_that_comes_twice_are_refused() -> None:
    with pytest.raises(ValidationError, match=r"messages\.0\.role"):
        Case.model_validate({"id": 1, "messages": [{"role": "critic"}]})
    hits = [{"text": "a", "rank": 1}, {"text": "b", "rank": 1}]
    with pytest.raises(ValidationError, match=r"turns\[0\].retrieved: rank 1 comes twice"):
        SystemOutput.model_validate({"case_id": 1, "turns": [{"role": "assistant", "retrieved": hits}]})


def test_hits_of_turns_are_those_of_the_output_if_it_has_no_others() -> None:
    turns: list[dict[str, object]] = [
        {"role": "assistant", "retrieved": [{"text": "b", "rank": 2}, {"text": "a", "rank": 1}]},
        {"role": "assistant", "text": "x", "retrieved": [{"text": "c", "rank": 1}]},
    ]
    output = SystemOutput.model_validate({"case_id": 1, "turns": turns})
    assert [(hit.text, hit.rank) for hit in output.retrieved] == [("c", None), ("a", None), ("b", None)]
    assert "retrieved" in output.model_fields_set
    assert SystemOutput.model_validate({"case_id": 1, "turns": turns, "retrieved": []}).retrieved == ()
    assert "retrieved" not in SystemOutput.model_validate({"case_id": 1, "turns": TURNS}).model_fields_set
    assert SystemOutput.model_validate_json(output.model_dump_json()) == output


def test_lone_surrogates_are_replaced_everywhere() -> None:
    turn = {"role": "assistant", "text": "\ud800", "tool_calls": [{"name": "\ud800", "arguments": {"a": "\ud800"}}]}
    output = SystemOutput.model_validate({"case_id": 1, "turns": [turn]})
    assert "\ud800" not in json.dumps(output.model_dump(), ensure_ascii=False)
