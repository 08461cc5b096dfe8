"""Failure cases of the second list, what a server refuses or botches for good, and what the user is told."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from judgekit.cli.app import app
from judgekit.core.errors import ConfigError, ProviderError
from judgekit.core.protocols import RateLimits
from judgekit.core.text import in_words
from judgekit.engine.limiter import AdaptiveLimiter
from judgekit.testing import FaultServer, Reply, Request, chat_reply, error_reply
from tests.builders import read_lines, write_suite
from tests.workflows.engine import after_capabilities, again, carried_out, good, is_capability_call, resumed

pytestmark = pytest.mark.usefixtures("quick_waits")

PROMPT = """
judge = "groundedness"
version = "own"
system = "Judge whether the answer is grounded."
user = '''{{ answer | data("answer") }} {{ reply_schema }}'''

[reply_schema]
%s
"""
OBJECT = 'type = "object"\nrequired = ["score"]\n[reply_schema.properties.score]\ntype = "integer"\n'


def with_prompt(folder: Path, schema: str) -> dict[str, Any]:
    """Keys of a config that names a wording of the user's own, which is written."""
    path = folder / "prompts" / "groundedness" / "own.toml"
    path.parent.mkdir(parents=True)
    path.write_text(PROMPT % schema)
    return {
        "prompts_dir": "prompts",
        "judges": [{"name": "groundedness", "model": "m", "prompt_version": "own"}],
    }


@pytest.mark.parametrize(
    "end",
    ["\n" * 40, " \n\t" * 30, "\\n" * 40, " " * 5000, "\n    \\t" * 20],
    ids=["\\n", "mixed", "escaped", "long", "both"],
)
def test_t2_16_a_reply_that_runs_out_in_white_space_names_the_key_that_helps(tmp_path: Path, end: str) -> None:
    reply = chat_reply('{\n "reasoning": "x",' + end, finish_reason="length", usage={"completion_tokens": 1024})
    ran = carried_out(tmp_path, after_capabilities(reply), n_cases=1)
    assert ran.only["failure"]["kind"] == "truncated"
    assert ran.only["failure"]["message"] == (
        "the reply was cut off at max_output_tokens after 1024 tokens, and its end is white space only, so a larger "
        "limit will not help; set reply_format to json_object or text for this model"
    )


@pytest.mark.parametrize("end", ["", " and then", "\n        ", '\n        "a'])
def test_t2_16_a_reply_that_is_cut_off_in_its_text_wants_a_larger_limit(tmp_path: Path, end: str) -> None:
    ran = carried_out(
        tmp_path, after_capabilities(chat_reply('{"reasoning": "x' + end, finish_reason="length")), n_cases=1
    )
    assert "raise it for this model" in ran.only["failure"]["message"]


def test_t2_16_a_model_that_botches_a_schema_judges_with_another_format(tmp_path: Path) -> None:
    def answer(request: Request) -> Reply:
        if is_capability_call(request.body):
            return chat_reply('{"ready": true}')
        if request.reply_schema is not None:
            return chat_reply('{\n "reasoning": "x",' + "\n" * 900, finish_reason="length")
        return good()

    ran = carried_out(tmp_path, answer, n_cases=2, model={"reply_format": "json_object"})
    assert [item["verdict"]["score"] for item in ran.judgments.values()] == [4, 4]


@pytest.mark.parametrize(
    ("schema", "said"),
    [
        ("[reply_schema.properties.score]\ntype = 'integer'", "$.reply_schema: expected the schema of an object"),
        ("type = 'array'", "$.reply_schema: expected the schema of an object"),
        ("type = 'object'\nproperties = 3", "$.reply_schema.properties: expected a table"),
        ("type = 'object'\nrequired = ['score']", "$.reply_schema.required: expected a list of names"),
        (
            "type = 'object'\n[reply_schema.properties.score]\ntype = 'int'",
            "$.reply_schema.properties.score.type: expected one of array",
        ),
        ("type = 'object'\n[reply_schema.properties]\nscore = 3", "$.reply_schema.properties.score: expected a schema"),
    ],
)
def test_t2_42_validate_refuses_a_reply_schema_that_no_server_takes(tmp_path: Path, schema: str, said: str) -> None:
    config = write_suite(tmp_path, "http://127.0.0.1:9/v1", **with_prompt(tmp_path, schema))
    result = CliRunner().invoke(app, ["validate", str(config)])
    assert result.exit_code == 2
    assert f"{tmp_path / 'prompts/groundedness/own.toml'}: {said}" in result.output


@pytest.mark.parametrize(
    "message",
    [
        "Invalid schema for response_format 'verdict': In context=(), 'additionalProperties' is required",
        "response_format.json_schema.schema: keyword not permitted",
        "failed to parse grammar",
    ],
)
def test_t2_42_a_schema_that_the_server_refuses_is_told_after_one_call(tmp_path: Path, message: str) -> None:
    script = after_capabilities(error_reply(400, message))
    ran = carried_out(tmp_path, script, n_cases=30, model={"max_concurrency": 16}, **with_prompt(tmp_path, OBJECT))
    assert isinstance(ran.error, ConfigError)
    assert len(ran.asked) == 1
    said = str(ran.error)
    assert said.startswith(f"{tmp_path / 'prompts/groundedness/own.toml'}: ")
    assert f"refuses its reply_schema: HTTP 400: {message}" in said


def test_t2_42_a_refusal_that_is_about_one_case_does_not_stop_the_run(tmp_path: Path) -> None:
    script = after_capabilities(good(), error_reply(400, "the database schema in this text was flagged"), good())
    ran = carried_out(tmp_path, script, n_cases=3, model={"max_concurrency": 1}, **with_prompt(tmp_path, OBJECT))
    assert ran.error is None
    assert [item["failure"] is None for item in ran.judgments.values()] == [True, False, True]


@pytest.mark.parametrize("command", ["validate", "run"])
def test_t2_48_debug_adds_the_traceback_and_keeps_the_exit_code(tmp_path: Path, command: str) -> None:
    wrong = tmp_path / "wrong.json"
    wrong.write_text('{"name": "x", "casess": 1}')
    result = CliRunner().invoke(app, [command, str(wrong), "--debug"])
    assert result.exit_code == 2
    assert "Traceback (most recent call last)" in result.output
    assert "judgekit: error: " in result.output


def test_t2_48_debug_keeps_the_exit_code_of_a_provider_that_refuses(tmp_path: Path) -> None:
    with FaultServer(error_reply(401, "no such key")) as server:
        config = write_suite(tmp_path, server.base_url)
        result = CliRunner().invoke(app, ["run", str(config), "--debug", "--quiet"])
    assert result.exit_code == 3
    assert "Traceback (most recent call last)" in result.output


def test_a_run_that_a_model_refused_before_any_judgment_can_be_resumed_with_what_it_wants(tmp_path: Path) -> None:
    def answer(request: Request) -> Reply:
        if request.get("enable_thinking") is not False:
            return error_reply(400, "parameter.enable_thinking must be set to false for non-streaming calls")
        return chat_reply('{"ready": true}') if is_capability_call(request.body) else good()

    with FaultServer(answer) as server:
        ran = again(write_suite(tmp_path, server.base_url, n_cases=2), server)
        assert isinstance(ran.error, ProviderError)
        write_suite(tmp_path, server.base_url, n_cases=2, model={"extra_body": {"enable_thinking": False}})
        mended = resumed(ran)
        assert mended.error is None
        assert len(mended.judgments) == 2

        write_suite(tmp_path, server.base_url, n_cases=2, model={"extra_body": {"enable_thinking": False, "k": 1}})
        assert "nothing to resume" in str(resumed(ran).error)


class Clock:
    """A clock that moves when someone sleeps."""

    def __init__(self) -> None:
        self.now = 0.0
        self.slept: list[float] = []

    def __call__(self) -> float:
        return self.now

    async def sleep(self, delay: float) -> None:
        self.slept.append(delay)
        self.now += delay


def test_attack_05_a_limit_that_is_used_up_for_hours_lets_one_call_a_minute_pass_and_says_so(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock, told = Clock(), list[float]()
    monkeypatch.setattr("judgekit.engine.limiter.asyncio.sleep", clock.sleep)

    async def scenario() -> None:
        limiter = AdaptiveLimiter(8, clock)
        limiter.on_pause = told.append
        await limiter.acquire()
        limiter.learn(RateLimits(remaining_requests=0, requests_reset_seconds=6 * 3600.0))
        await limiter.acquire()
        assert clock.now == 60.0
        # Nothing came back yet, so the next call waits for another minute.
        await limiter.acquire()
        assert clock.now == 120.0
        limiter.learn(RateLimits(remaining_requests=50, requests_reset_seconds=60.0))
        await limiter.acquire()
        assert clock.now == 120.0

    asyncio.run(scenario())
    # Told at the beginning of each minute: 6 hours, and a minute less.
    assert told == [21600.0, 21540.0]


def test_attack_05_a_pause_is_said_on_stderr_while_it_lasts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("judgekit.engine.limiter.LONGEST_PAUSE_SECONDS", 0.02)
    monkeypatch.setattr("judgekit.engine.limiter.TOLD_FROM_SECONDS", 0.01)
    used_up = {"x-ratelimit-remaining-requests": "0", "x-ratelimit-reset-requests": "6h0m0s"}
    replies = [Reply(body=reply.body, headers=used_up, fill=True) for reply in (good(), good())]
    with FaultServer(after_capabilities(*replies)) as server:
        config = write_suite(tmp_path, server.base_url, n_cases=2, model={"max_concurrency": 1})
        result = CliRunner().invoke(app, ["run", str(config)])
    assert result.exit_code == 0
    said = "waiting, since the server says that its limit is used up for 6 h; one call is made after a minute"
    assert f"groundedness: {said}" in result.stderr
    assert len(read_lines(next((tmp_path / "results").glob("*/judgments.jsonl")))) == 2


@pytest.mark.parametrize(("seconds", "words"), [(20, "20 s"), (300, "5 min"), (10800, "3 h"), (172800, "2 days")])
def test_waits_are_told_in_words(seconds: float, words: str) -> None:
    assert in_words(seconds) == words


def test_attack_10_a_stored_run_asks_for_the_config_where_its_address_had_a_secret(tmp_path: Path) -> None:
    with FaultServer(after_capabilities(good())) as server:
        config = write_suite(tmp_path, f"{server.base_url}?token=plain-token-77", n_cases=2)
        ran = again(config, server)
        command = ["spotcheck", str(ran.folder), "--against", "repeat", "--n", "1", "--quiet"]
        without = CliRunner().invoke(app, command)
        assert without.exit_code == 2
        assert "models.m.base_url: a run does not store secrets of an address; name the config by --config" in (
            without.output
        )
        n_asked = len(server.log.chat)
        checked = CliRunner().invoke(app, [*command, "--config", str(config)])
        assert checked.exit_code == 0, checked.output
        assert len(server.log.chat) == n_asked + 1


def test_what_a_model_said_beside_its_refusal_is_kept(tmp_path: Path) -> None:
    reply = chat_reply("the rest of what it said", refusal="I decline")
    ran = carried_out(tmp_path, after_capabilities(reply), n_cases=1)
    assert ran.only["failure"]["kind"] == "refused"
    assert ran.only["raw_reply"] == "I decline\n\nthe rest of what it said"


def test_a_run_that_was_begun_before_keys_were_added_can_be_resumed(tmp_path: Path) -> None:
    with FaultServer(after_capabilities(good(), error_reply(401, "gone"))) as server:
        config = write_suite(tmp_path, server.base_url, n_cases=3, model={"max_concurrency": 1})
        ran = again(config, server)
        stored = ran.folder / "config.json"
        document = json.loads(stored.read_text())
        for name in ("extra_body", "extra_headers", "reply_format", "reasoning_effort"):
            document["models"]["m"].pop(name, None)
        stored.write_text(json.dumps(document))
        server.play(after_capabilities(good()))
        assert resumed(ran).error is None
