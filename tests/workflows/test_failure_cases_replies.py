"""Failure cases of kind A, what judges reply: each id once, through a whole run against a server.

The ids are those of `shared/cases/failures.jsonl`. Verdicts are those of our groundedness judge: a whole number 0 to 5
with two lists of claims, pass at 4.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import pytest

from judgekit.core.errors import ProviderError
from judgekit.core.judgments import VerdictError
from judgekit.core.prompts import unfence
from judgekit.core.reply_values import read_flag
from judgekit.testing import (
    FaultServer,
    Reply,
    Script,
    as_responder,
    chat_reply,
    error_reply,
    refused_reply,
    sequence,
    tool_call,
    truncated_reply,
    verdict,
)
from tests.builders import case, output, read_lines, write_suite
from tests.doubles.strict import requires
from tests.workflows.engine import Ran, after_capabilities, again, carried_out, good

pytestmark = pytest.mark.usefixtures("quick_waits")

NONE = '"supported_claims": [], "unsupported_claims": []'


@dataclass(frozen=True)
class Row:
    """What the judge replies, and what must stand in the judgment."""

    reply: Script
    score: int | None = None
    failure: str | None = None
    """Kind of the failure where there is no score."""
    says: str = ""
    """What the message of the failure names."""
    n_requests: int = 1
    reasoning: str | None = None
    path: str | None = None
    """How the verdict was read."""
    flags: list[str] = field(default_factory=list)


def said(score: Any, reasoning: str = "ok", claims: str = NONE) -> str:
    """The verdict as text, the score written as it is given."""
    return f'{{"reasoning": "{reasoning}", {claims}, "score": {score}}}'


def unreadable(reply: Script, says: str = "") -> Row:
    """A reply that is asked once more, and then is a failure."""
    return Row(reply, failure="invalid", says=says, n_requests=2)


LISTS = '"supported_claims": ["one"], "unsupported_claims": ["two", "three"]'
CUT_LIST = '"supported_claims": ["one", ...], "unsupported_claims": []'
SCHEMA = '{"type": "object", "properties": {"score": {"type": "integer", "minimum": 1}}, "required": ["score"]}'
PYTHON = "{'reasoning': \"doesn't overclaim\", 'supported_claims': [], 'unsupported_claims': [], 'score': 4}"
COMMENTED = said("4 // as the rubric says\n", "line one\nline two, see http://x.example/a")
NESTED = f'{{"reasoning": "weak", {NONE}, "score": 2, "parts": {{"style": {{"score": 5}}, "facts": {{"score": 1}}}}}}'
BRACES = said(4, r"`}` and \"{\" are fine")
RENAMED = f'{{"Reasoning": "ok", {NONE.title()}, "Score": 4}}'

ROWS = [
    pytest.param(Row(f"```json\n{said(4)}\n```\n", 4, path="fence"), id="A01"),
    pytest.param(unreadable(f"```json\n{said(9)}\n```\n", "outside 0 to 5"), id="A01-off-the-scale"),
    pytest.param(Row(f"<think>\nmaybe {said(1)}\n</think>\n{said(4, 'final')}", 4, reasoning="final"), id="A02"),
    pytest.param(
        Row(said(2, "leaks <think>plan</think> tags"), 2, reasoning="leaks <think>plan</think> tags"), id="A03"
    ),
    pytest.param(Row(truncated_reply('<think>it says {"score": 3'), failure="truncated"), id="A05"),
    pytest.param(Row(PYTHON, 4, reasoning="doesn't overclaim", path="object+python"), id="A09"),
    pytest.param(Row(COMMENTED, 4, reasoning="line one\nline two, see http://x.example/a"), id="A10"),
    pytest.param(Row(said(3, r"format \$#,##0 and \(x\)"), 3, reasoning=r"format \$#,##0 and \(x\)"), id="A11"),
    pytest.param(
        Row(said(3, r"uses \frac{1}{2} and \text{x}"), 3, reasoning="uses \frac{1}{2} and \text{x}"), id="A12"
    ),
    pytest.param(unreadable(f"Here:\n\n{said(4, claims=CUT_LIST)}\n\nHope this helps.", "incomplete"), id="A13"),
    pytest.param(Row(f"Here:\n\n{said(4)}\n\nHope this helps.", 4, path="object"), id="A13-prose-only"),
    pytest.param(unreadable(f'It wrote {{"score": 5, "note": "x",\nMine: {said(1)}', "not closed"), id="A15"),
    pytest.param(Row(f"So: {BRACES} done", 4, reasoning='`}` and "{" are fine'), id="A16"),
    pytest.param(Row(NESTED, 2, path="strict"), id="A17"),
    pytest.param(Row(truncated_reply('{"score": 5, "reasoning": "The ans'), failure="truncated"), id="A19"),
    pytest.param(Row(truncated_reply(None), failure="truncated"), id="A20"),
    pytest.param(Row(refused_reply("I can't help."), failure="refused", says="I can't help."), id="A22"),
    pytest.param(Row(chat_reply(None, tool_calls=[tool_call(said(4))]), 4, path="tool_call+strict"), id="A25"),
    pytest.param(unreadable(chat_reply(None, tool_calls=[tool_call('{"score": 4, "reasoning": "o')])), id="A25-cut"),
    pytest.param(unreadable("Out of 3 checks it gets a 2"), id="A27"),
    pytest.param(Row(said('"4.0"'), 4, path="strict+text"), id="A30"),
    pytest.param(unreadable(said(3.5), "whole number"), id="A31"),
    pytest.param(Row(said("4.0"), 4), id="A31-whole"),
    pytest.param(unreadable(said(7), "outside 0 to 5"), id="A32"),
    pytest.param(unreadable(said(-1), "outside 0 to 5"), id="A32-below"),
    pytest.param(unreadable(said(85), "outside 0 to 5"), id="A32-percent"),
    pytest.param(unreadable(said("NaN"), "NaN"), id="A34"),
    pytest.param(unreadable(said("null"), "missing or null"), id="A35"),
    pytest.param(unreadable(said("true"), "true/false"), id="A36"),
    pytest.param(Row(said(4, "हाँ, सही है"), 4, reasoning="हाँ, सही है"), id="A39-reasons"),
    pytest.param(Row(RENAMED, 4, path="strict+keys"), id="A40"),
    pytest.param(unreadable(f'{{"rating": 4, "reasoning": "ok", {NONE}}}', "score"), id="A40-renamed"),
    pytest.param(unreadable(f'{{"score": 2, "Score": 4, "reasoning": "", {NONE}}}', "twice"), id="A40-both"),
    pytest.param(unreadable(f'{{"score": 4, "reasoning": "x", {NONE}, "score": 2}}', "twice"), id="A41"),
    pytest.param(Row(said(4, r"nice \ud83c\udf78"), 4, reasoning="nice \N{COCKTAIL GLASS}"), id="A42"),
    pytest.param(Row(said(4, r"bad \udcb2"), 4, reasoning="bad \N{REPLACEMENT CHARACTER}"), id="A43"),
    pytest.param(Row(said(4, "bad \udcb2"), 4, reasoning="bad \N{REPLACEMENT CHARACTER}"), id="A43-in-the-body"),
    pytest.param(Row(said(5, claims=LISTS), 5, flags=["inconsistent"]), id="A48"),
    pytest.param(unreadable('{"reasoning": "it ignores the question"}', "score"), id="A49"),
    pytest.param(unreadable(SCHEMA, "repeats the JSON Schema"), id="A62"),
    pytest.param(unreadable('{"properties": {"score": 4}}'), id="A62-filled-in"),
    pytest.param(unreadable("Rating: [[5]]"), id="A63"),
    pytest.param(unreadable("Rating: [[100]]"), id="A63-off-the-scale"),
]


ALL_ROWS: dict[str, Row] = {str(param.id).lower(): cast("Row", param.values[0]) for param in ROWS}
"""By id in lower case, which is also the id of the case."""


@pytest.fixture(scope="module")
def all_rows(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ran]:
    """One run over all rows, a case for each."""

    def answer(request: Any) -> Reply:
        replies = (row.reply for name, row in ALL_ROWS.items() if f"kiln {name} " in request.text.lower())
        return as_responder(next(replies, verdict(3)))(request)

    cases, outputs = [case(name) for name in ALL_ROWS], [output(name) for name in ALL_ROWS]
    yield carried_out(tmp_path_factory.mktemp("replies"), answer, case_rows=cases, output_rows=outputs)


@pytest.mark.parametrize("row", ROWS)
def test_a_reply_is_read_as_what_it_says_or_not_at_all(row: Row, all_rows: Ran, request: pytest.FixtureRequest) -> None:
    case_id = request.node.callspec.id.lower()
    judgment = all_rows.judgments[case_id]
    verdict_ = judgment["verdict"]
    assert judgment["n_requests"] == row.n_requests
    assert judgment["flags"] == row.flags
    if row.failure is not None:
        assert verdict_ is None
        assert judgment["failure"]["kind"] == row.failure
        assert row.says in judgment["failure"]["message"]
    else:
        assert judgment["failure"] is None
        assert verdict_["score"] == row.score
        assert type(verdict_["score"]) is int
        assert row.reasoning in (None, verdict_["reasoning"])
        assert row.path in (None, judgment["parse_path"])
    scores = {item["name"]: item for item in read_lines(all_rows.folder / "scores.jsonl") if item["case_id"] == case_id}
    assert scores["groundedness"]["value"] == row.score
    assert scores["groundedness"]["reason"] == (None if row.failure is None else f"failed: judge {row.failure}")


def test_unreadable_replies_are_counted_and_never_averaged(all_rows: Ran) -> None:
    good_scores = [row.score for row in ALL_ROWS.values() if row.score is not None]
    figure = all_rows.metrics["overall"]["groundedness"]
    assert (figure["n"], figure["n_error"]) == (len(good_scores), len(ROWS) - len(good_scores))
    assert figure["value"] == pytest.approx(sum(good_scores) / len(good_scores), abs=1e-4)


def test_a12_and_a01_raw_replies_are_kept_as_they_came(all_rows: Ran) -> None:
    assert all_rows.judgments["a12"]["raw_reply"] == said(3, r"uses \frac{1}{2} and \text{x}")
    assert all_rows.judgments["a01"]["raw_reply"] == f"```json\n{said(4)}\n```\n"


def test_a19_a_cut_reply_names_the_limit_and_its_judgment_the_value(all_rows: Ran) -> None:
    judgment = all_rows.judgments["a19"]
    assert "max_output_tokens" in judgment["failure"]["message"]
    assert judgment["parameters"]["max_output_tokens"] == 1024


def test_a37_words_for_yes_and_no_are_read_from_a_closed_list() -> None:
    # No shipped judge asks for true or false; this is the reader that a yes/no judge uses.
    assert [read_flag({"x": word}, "x") for word in ("false", "No", "0", "TRUE", "yes", "1", True)] == [
        *[False] * 3,
        *[True] * 4,
    ]
    for value in ("maybe", "", 1, None, "falsey"):
        with pytest.raises(VerdictError, match="expected true or false"):
            read_flag({"x": value}, "x")


def test_a39_a_word_of_another_language_is_no_yes() -> None:
    for word in ("はい", "हाँ", "oui", "да"):
        with pytest.raises(VerdictError, match="expected true or false"):
            read_flag({"x": word}, "x")


def test_a44_other_scripts_reach_the_judge_as_they_are(tmp_path: Path) -> None:
    rows = [output("c0", answer="서울", retrieved=[{"text": "서울은 수도이다"}])]
    with FaultServer(good()) as server:
        ran = again(write_suite(tmp_path, server.base_url, n_cases=1, output_rows=rows), server)
        (sent,) = ran.asked
    user = sent["messages"][1]["content"]
    assert "서울은 수도이다" in user
    assert "\\uc11c" not in user


def test_a43_a_lone_surrogate_in_an_answer_is_replaced_before_it_is_sent(tmp_path: Path) -> None:
    rows = [output("c0", answer="bad byte \udcb2 here")]
    ran = carried_out(tmp_path, good(), n_cases=1, output_rows=rows)
    assert ran.only["verdict"]["score"] == 4
    assert "bad byte \N{REPLACEMENT CHARACTER} here" in ran.asked[0]["messages"][1]["content"]


def test_a48_the_derived_rate_comes_from_the_claims_and_not_from_the_score(tmp_path: Path) -> None:
    ran = carried_out(tmp_path, after_capabilities(said(5, claims=LISTS)), n_cases=1)
    # One of three claims is supported.
    rate = ran.metrics["overall"]["groundedness.unsupported_claim_rate"]
    assert rate["value"] == pytest.approx(2 / 3, abs=1e-4)
    schema = ran.asked[0]["response_format"]["json_schema"]["schema"]
    assert next(iter(schema["properties"])) == "reasoning"
    assert list(schema["properties"])[-1] == "score"


def test_a51_a_model_that_refuses_temperature_0_stops_the_run_before_any_case(tmp_path: Path) -> None:
    ran = carried_out(tmp_path, requires(temperature=False))
    assert isinstance(ran.error, ProviderError)
    assert ran.error.exit_code == 3
    assert "judge-2025-01-01 refuses temperature 0" in str(ran.error)
    assert ran.asked == []
    assert ran.server.log.totals.n_requests == 2  # the refusal, and the same without temperature


def test_a52_where_it_is_allowed_the_temperature_is_on_record_everywhere(tmp_path: Path) -> None:
    ran = carried_out(tmp_path, requires(temperature=False), n_cases=2, model={"allow_provider_temperature": True})
    assert all("temperature" not in body for body in ran.asked)
    assert ran.manifest["models"]["m"]["capabilities"]["temperature"] is False
    assert ran.metrics["judges"]["groundedness"]["temperature_accepted"] is False
    assert "temperature_not_accepted" in ran.warnings
    at_zero = carried_out(tmp_path / "other", good(), n_cases=2)
    keys = [{item["key"] for item in run.judgments.values()} for run in (ran, at_zero)]
    assert not keys[0] & keys[1]


def test_a54_a_refused_seed_is_left_out_once_and_for_all_and_only_what_is_set_is_sent(tmp_path: Path) -> None:
    ran = carried_out(tmp_path, requires(seed=False))
    assert [entry.status for entry in ran.server.log.chat].count(422) == 1
    assert len(ran.judgments) == 6
    assert "seed_not_accepted" in ran.warnings
    wanted = {"model", "messages", "stream", "temperature", "max_tokens", "response_format"}
    assert all(set(body) == wanted for body in ran.asked)


def test_a55_logprobs_are_never_asked_for(tmp_path: Path) -> None:
    # Scores are whole numbers that the judge writes; nothing is weighted by token probabilities.
    ran = carried_out(tmp_path, requires(logprobs=False))
    assert len(ran.judgments) == 6
    assert not any("logprobs" in key for entry in ran.server.log.chat for key in entry.body or {})


@pytest.mark.parametrize(
    ("takes", "used"),
    [({"json_schema": False}, "json_object"), ({"json_schema": False, "json_object": False}, "text")],
)
def test_a56_a_refused_reply_format_gives_way_to_the_next_one(tmp_path: Path, takes: dict[str, Any], used: str) -> None:
    ran = carried_out(tmp_path, requires(**takes, then=good()))
    assert {item["parameters"]["response_format"] for item in ran.judgments.values()} == {used}
    assert {item["verdict"]["score"] for item in ran.judgments.values()} == {4}
    n_refused = [entry.status for entry in ran.server.log.chat].count(400)
    assert n_refused == len(takes)


def test_a56_a_passing_server_fault_during_the_capability_call_costs_no_reply_format(tmp_path: Path) -> None:
    ran = carried_out(tmp_path, sequence([error_reply(500, "oops"), error_reply(502, "oops"), good()]))
    assert {item["parameters"]["response_format"] for item in ran.judgments.values()} == {"json_schema"}


def test_a56_a_server_that_faults_at_one_format_each_time_is_asked_in_the_next(tmp_path: Path) -> None:
    def answer(request: Any) -> Reply:
        kind = (request.get("response_format") or {}).get("type")
        return error_reply(500, "Internal server error") if kind == "json_schema" else good()

    ran = carried_out(tmp_path, answer)
    assert {item["parameters"]["response_format"] for item in ran.judgments.values()} == {"json_object"}


def test_a58_the_prompt_says_json_and_names_every_field_whatever_the_format(tmp_path: Path) -> None:
    ran = carried_out(tmp_path, requires(json_schema=False, json_word=True, then=good()))
    assert len(ran.judgments) == 6
    assert {entry.status for entry in ran.server.log.chat} == {200, 400}  # 400: json_schema, once
    text = json.dumps(ran.asked[0]["messages"])
    assert all(word in text for word in ("JSON", "score", "supported_claims", "unsupported_claims"))


def test_a59_an_error_that_is_a_plain_text_is_read_too(tmp_path: Path) -> None:
    def answer(request: Any) -> Reply:
        kind = (request.get("response_format") or {}).get("type", "text")
        if kind == "json_object":
            return Reply(400, {"error": "'response_format.type' must be 'json_schema' or 'text'"})
        return Reply(400, {"error": "no json_schema here"}) if kind == "json_schema" else good()

    ran = carried_out(tmp_path, answer)
    assert {item["parameters"]["response_format"] for item in ran.judgments.values()} == {"text"}


def test_a61_a_model_without_system_role_gets_one_message_and_no_storm_of_retries(tmp_path: Path) -> None:
    ran = carried_out(tmp_path, requires(system_role=False, then=good()))
    assert [entry.status for entry in ran.server.log.chat].count(500) == 1
    assert [[message["role"] for message in body["messages"]] for body in ran.asked] == [["user"]] * 6
    other = carried_out(tmp_path / "other", good())
    assert not {item["key"] for item in ran.judgments.values()} & {item["key"] for item in other.judgments.values()}


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param('C:\\new\\table "x"\nline2', id="A64"),
        pytest.param("{question} {0} {{}} {{ answer }} {% for %} ${x} %s", id="A65"),
    ],
)
def test_the_judge_sees_the_answer_letter_by_letter(tmp_path: Path, answer: str) -> None:
    ran = carried_out(tmp_path, good(), n_cases=1, output_rows=[output("c0", answer=answer)])
    fields = dict(unfence(ran.asked[0]["messages"][1]["content"]))
    assert fields["answer"] == answer


def test_a_schema_that_was_filled_in_is_asked_again_with_its_keys_named(tmp_path: Path) -> None:
    # As a model of 1.5 billion weights replied to every case at a server without response_format.
    filled_in = """```json
{
  "type": "object",
  "additionalProperties": false,
  "required": ["reasoning", "supported_claims", "unsupported_claims", "score"],
  "properties": {
    "reasoning": "The answer contradicts the passages.",
    "supported_claims": [],
    "unsupported_claims": ["No refund is available for opened items."],
    "score": 1
  }
}
```"""
    ran = carried_out(tmp_path, after_capabilities(chat_reply(filled_in), good(4)), n_cases=1)
    assert ran.only["verdict"]["score"] == 4
    assert ran.only["earlier_attempts"][0]["failure"]["kind"] == "invalid"
    first, second = (body["messages"][-1]["content"] for body in ran.asked)
    assert second.startswith(first)
    assert second.removeprefix(first).strip() == (
        "A previous reply to this task could not be used: the reply repeats the JSON Schema instead of filling it in. "
        'Reply with one JSON object only whose own keys are "reasoning", "supported_claims", "unsupported_claims", '
        '"score".'
    )
