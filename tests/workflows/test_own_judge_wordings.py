"""How own judges are worded: schemas that hosts take, verdicts alone, and second wordings for spot checks."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

import judgekit
from judgekit.core.errors import ProviderError
from judgekit.testing import FaultServer, Reply, Request, chat_reply, error_reply, with_chances
from tests.builders import read_json, read_lines, write_suite
from tests.cli.fork_server import judgekit as run_command
from tests.own_judges import BRAND, MEDICAL, RULES, STEADY, TONE, answering, own_suite, reply_of
from tests.workflows.engine import is_capability_call


def asked(server: FaultServer) -> list[dict[str, Any]]:
    """Bodies of the requests about cases."""
    return [entry.body for entry in server.log.chat if entry.body and not is_capability_call(entry.body)]


def schema_of(body: dict[str, Any]) -> dict[str, Any]:
    """The reply schema of a request."""
    schema: dict[str, Any] = body["response_format"]["json_schema"]["schema"]
    return schema


def refusing_bounds(score: Any) -> Any:
    """A server that takes no bounds in a schema, as Anthropic does."""

    def answer(request: Request) -> Reply:
        for name in ("minimum", "maximum", "minItems", "maxItems", "minLength", "maxLength"):
            if f'"{name}"' in json.dumps(request.body):
                message = f"output_format.schema: For 'integer' type, property '{name}' is not supported"
                return error_reply(400, message, type="invalid_request_error")
        return chat_reply('{"ready": true}') if is_capability_call(request.body) else reply_of(score, "score")

    return answer


@pytest.mark.parametrize(("scale", "is_listed"), [([1, 5], True), ([0, 100], True), ([0, 500], False)])
def test_a_scale_of_any_length_has_no_bounds_in_its_schema(tmp_path: Path, scale: list[int], is_listed: bool) -> None:
    judge = {"name": "tone", "ask": "Is it polite?", "scale": scale, "model": "m"}
    with FaultServer(refusing_bounds(scale[1])) as server:
        judgekit.run(own_suite(tmp_path, server, judge, n_cases=2), run_id="a")
        schema = schema_of(asked(server)[0])
    assert ("enum" in schema["properties"]["score"]) is is_listed
    assert read_json(tmp_path / "results" / "a" / "metrics.json")["overall"]["tone"]["value"] == scale[1]


@pytest.mark.parametrize("score", [501, -1, 4.5, "501"])
def test_a_score_off_a_scale_that_the_schema_cannot_hold_is_no_verdict(tmp_path: Path, score: Any) -> None:
    judge = {"name": "tone", "ask": "Is it polite?", "scale": [0, 500], "model": "m"}
    with FaultServer(refusing_bounds(score)) as server, pytest.raises(ProviderError, match="tone"):
        judgekit.run(own_suite(tmp_path, server, judge, n_cases=2), run_id="a")
    found = read_json(tmp_path / "results" / "a" / "metrics.json")["overall"]["tone"]
    assert (found["value"], found["n_error"]) == (None, 2)


# a verdict alone


def with_probabilities(request: Request) -> Reply:
    """Writes 4 or yes and nothing else, half decided."""
    n = request.get("top_logprobs", 0)
    if is_capability_call(request.body):
        return with_chances(chat_reply('{"ready": true}'), "true", {"true": 0.9, "false": 0.1}, n)
    key = next(iter(schema_of(request.body)["properties"]))
    value, chances = (4, {"4": 0.5, "2": 0.5}) if key == "score" else (True, {"true": 0.6, "false": 0.4})
    return with_chances(chat_reply(json.dumps({key: value})), json.dumps(value), chances, n)


def test_a_verdict_alone_has_the_probabilities_of_a_scale_and_of_yes(tmp_path: Path) -> None:
    judges = [{**judge, "scoring": "expected", "prompt_version": "v3"} for judge in (TONE, MEDICAL)]
    with FaultServer(with_probabilities) as server:
        judgekit.run(own_suite(tmp_path, server, *judges, n_cases=3), run_id="a")
        bodies = asked(server)
    overall = read_json(tmp_path / "results" / "a" / "metrics.json")["overall"]
    assert (overall["tone"]["value"], overall["tone.expected"]["value"]) == (4.0, 3.0)
    assert (overall["medical"]["value"], overall["medical.p_yes"]["value"]) == (1.0, 0.6)
    assert {tuple(schema_of(body)["required"]) for body in bodies} == {("score",), ("answer",)}
    assert all("no reasoning" in json.dumps(body) for body in bodies)
    assert not any('"reasoning"' in json.dumps(body) for body in bodies)
    judgment = read_lines(tmp_path / "results" / "a" / "judgments.jsonl")[0]
    assert (judgment["verdict"]["reasoning"], judgment["flags"]) == ("", [])


@pytest.mark.parametrize("judge", [BRAND, RULES], ids=["labels", "criteria"])
def test_labels_and_criteria_may_stand_alone_too(tmp_path: Path, judge: dict[str, Any]) -> None:
    def alone(request: Request) -> Reply:
        reply = answering(STEADY)(request)
        if is_capability_call(request.body):
            return reply
        assert isinstance(reply.body, Mapping)
        payload = json.loads(reply.body["choices"][0]["message"]["content"])
        del payload["reasoning"]
        return chat_reply(json.dumps(payload))

    with FaultServer(alone) as server:
        judgekit.run(own_suite(tmp_path, server, {**judge, "prompt_version": "v3"}, n_cases=4), run_id="a")
    found = read_json(tmp_path / "results" / "a" / "metrics.json")["judges"][str(judge["name"])]
    assert (found["n_judged"], found["n_failed"]) == (4, 0)


def test_a_second_wording_reasons_as_the_first_one_does(tmp_path: Path) -> None:
    with FaultServer(answering(STEADY)) as server:
        path = own_suite(tmp_path, server)
        judgekit.run(path, run_id="a")
        done = run_command("spotcheck", "a", "--n", "4", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "note" not in done.stderr
    reports = read_json(tmp_path / "results" / "a" / "metrics.json")["judge_reliability"]["by_judge"]
    assert {report["against"]["prompt_version"] for report in reports.values()} == {"v2"}


# nobody to ask


def wording(folder: Path, version: str, ask: str) -> None:
    path = folder / "prompts" / "tone" / f"{version}.toml"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f'judge = "tone"\nversion = "{version}"\nask = "{ask}"\nscale = [1, 5]\n', encoding="utf-8")


@pytest.mark.slow
def test_a_judge_without_anyone_else_to_ask_is_asked_again_and_the_spot_check_says_so(tmp_path: Path) -> None:
    wording(tmp_path, "v1", str(TONE["ask"]))
    with FaultServer(answering(STEADY)) as server:
        judges = [{"name": "tone", "model": "m"}]
        judgekit.run(
            write_suite(tmp_path, server.base_url, n_cases=4, judges=judges, prompts_dir="prompts"), run_id="a"
        )
        alone = run_command("spotcheck", "a", "--n", "3", cwd=tmp_path)
        wanted = run_command("spotcheck", "a", "--n", "3", "--against", "repeat", cwd=tmp_path)
        wording(tmp_path, "v2", f"{TONE['ask']} Would a guest say so?")
        other = run_command("spotcheck", "a", "--n", "3", cwd=tmp_path)
    assert [done.returncode for done in (alone, wanted, other)] == [0, 0, 0], alone.stderr
    [line] = [line for line in alone.stderr.splitlines() if "note: " in line]
    assert "note: tone: no other wording of it and no other model is there, so it is asked again itself" in line
    assert "add a wording, <prompts_dir>/tone/NAME.toml, or a model" in line
    assert "Not decided for tone: the same judge, asked again, disagrees in 0 of 3" in alone.stdout
    assert "note" not in wanted.stderr + other.stderr
    assert "prompt v2" in other.stdout
