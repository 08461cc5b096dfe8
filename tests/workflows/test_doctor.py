"""`judgekit doctor`: what it finds out of models and of what a config lacks, and its exit codes."""

import json
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from judgekit.testing import FaultServer, Reply, chat_reply, error_reply
from tests.builders import read_json, write_suite
from tests.cli.fork_server import Ended
from tests.cli.fork_server import judgekit as command
from tests.workflows.engine import after_capabilities

SENTENCE = '{"sentence": "Air scatters blue light most."}'
KEY = "f00d-cafe-of-some-service-0123456789"


def doctor(config: Path, *arguments: str, **environment: str) -> Ended:
    return command("doctor", config.name, *arguments, cwd=config.parent, **environment)


def examined(folder: Path, script: Any, **suite: Any) -> tuple[Ended, dict[str, Any], FaultServer]:
    with FaultServer(script) as server:
        config = write_suite(folder, server.base_url, **suite)
        ended = doctor(config, "--json")
    return ended, json.loads(ended.stdout), server


def question(request: Any) -> str:
    return str(request.body["messages"][-1]["content"])


def test_a_model_that_repeats_itself_is_ready(tmp_path: Path) -> None:
    ended, found, server = examined(tmp_path, after_capabilities(chat_reply(SENTENCE, fingerprint="fp_1")))
    assert ended.returncode == 0, ended.stderr
    assert found["finding"].startswith("Ready: 1 model reached, and says the same bytes five times")
    model = found["models"]["m"]
    assert (model["served_models"], model["fingerprints"]) == (["judge-2025-01-01"], ["fp_1"])
    assert model["capabilities"]["response_format"] == "json_schema"
    assert model["asked"]["replies"] == [SENTENCE] * 5
    asked = [entry.body for entry in server.log.chat if "sky looks blue" in json.dumps(entry.body)]
    assert len(asked) == 5
    assert len({json.dumps(body) for body in asked}) == 1
    assert asked[0]["temperature"] == 0
    assert found["n_calls"] == 8 == len(server.log.chat) - 1  # and one that finds out what it takes
    assert not (tmp_path / "results").exists()


@pytest.mark.parametrize(
    ("places", "when"),
    [
        ({0}, "between the first time and the next ones and beside other questions"),
        ({3, 4}, "beside other questions"),
        ({1}, "between the first time and the next ones"),
    ],
)
def test_bytes_that_differ_are_said_with_when(tmp_path: Path, places: set[int], when: str) -> None:
    numbers = count()

    def answer(request: Any) -> Reply:
        is_same = "sky looks blue" in question(request)
        return chat_reply('{"sentence": "Else."}' if is_same and next(numbers) in places else SENTENCE)

    ended, found, _ = examined(tmp_path, after_capabilities(answer))
    assert ended.returncode == 0
    assert found["models"]["m"]["asked"]["n_different"] == 2
    assert f"2 different replies to the same question asked 5 times, {when};" in found["notes"][-1]
    assert "0 of 1 says the same bytes five times" in found["finding"]


@pytest.mark.parametrize(
    ("script", "suite", "code", "said"),
    [
        (error_reply(401, f"Incorrect API key provided: {KEY}"), {"model": {"api_key_env": "MY_KEY"}}, 3, "401"),
        (SENTENCE, {"model": {"api_key_env": "GONE_KEY"}}, 2, "GONE_KEY is not set"),
        (SENTENCE, {"model": {"pin": {"served_model": "another"}}}, 3, "expected another"),
        (SENTENCE, {"budget": {"max_calls": 3}}, 2, "budget"),
        (SENTENCE, {"budget": {"max_usd": 1}}, 2, "the price of model m is not known"),
        (SENTENCE, {"metrics": ["extraction"]}, 2, "needs expected_fields, which no case has"),
        (SENTENCE, {"cases": "gone.jsonl"}, 2, "gone.jsonl"),
    ],
)
def test_what_stands_in_the_way_is_said_with_its_exit_code(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: Any, suite: dict[str, Any], code: int, said: str
) -> None:
    (tmp_path / ".env").write_text(f"MY_KEY={KEY}\n")
    answer = chat_reply(script) if isinstance(script, str) else script
    ended, found, _ = examined(tmp_path, after_capabilities(answer) if isinstance(script, str) else answer, **suite)
    assert ended.returncode == code == found["exit_code"], found
    assert found["finding"].startswith("Not ready: ")
    assert said in found["problems"][0]["message"]
    assert KEY not in ended.stdout + ended.stderr


def test_a_server_that_is_not_there_does_not_hide_what_the_config_lacks(tmp_path: Path) -> None:
    ended = doctor(write_suite(tmp_path, "http://127.0.0.1:9/v1"))
    assert ended.returncode == 3
    lines = ended.stdout.splitlines()
    assert lines[0] == "Not ready: model m: cannot reach http://127.0.0.1:9/v1: Connection refused."
    assert any(line.split()[:2] == ["m", "no"] for line in lines)
    assert "  metrics spans needs expected_spans, which no case has" in lines


def test_a_live_system_is_not_asked_and_that_is_said(tmp_path: Path) -> None:
    config = write_suite(tmp_path, system={"name": "command", "run": ["false"]})
    ended = doctor(config, "--json")
    assert ended.returncode == 0, ended.stdout
    found = json.loads(ended.stdout)
    assert "system command is not asked, so fields of its outputs are not looked at" in found["notes"]
    assert not any(name.startswith("output.") for item in found["lacks"] for group in item["missing"] for name in group)


def test_hostile_names_do_not_reach_the_terminal(tmp_path: Path) -> None:
    with FaultServer(after_capabilities(chat_reply(SENTENCE, model="evil\x1b[2J\nReady: all is well"))) as server:
        config = write_suite(tmp_path, server.base_url)
        ended = doctor(config)
    assert "\x1b" not in ended.stdout
    assert not any(line.startswith("Ready: all is well") for line in ended.stdout.splitlines())


def test_the_config_is_left_as_it_is(tmp_path: Path) -> None:
    config = write_suite(tmp_path)
    before = read_json(config)
    assert doctor(config).returncode == 0
    assert read_json(config) == before
    assert {path.name for path in tmp_path.iterdir()} == {"config.json", "cases.jsonl", "outputs.jsonl"}
