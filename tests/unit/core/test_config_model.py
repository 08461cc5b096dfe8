"""What a config may say."""

from typing import Any

import pytest
from pydantic import ValidationError

from judgekit.core.conditions import Gate
from judgekit.core.config import ModelConfig, RunConfig
from judgekit.core.request_fields import is_local
from judgekit.engine.pinning import is_floating

BASE: dict[str, Any] = {"name": "s", "cases": "c.jsonl", "system": {"name": "recorded", "path": "o.jsonl"}}
MODELS = {"m": {"model": "x"}, "n": {"model": "y"}}
JUDGES = [{"name": "groundedness", "model": "m"}]


def test_the_smallest_config_and_its_defaults() -> None:
    config = RunConfig.model_validate(BASE)
    assert config.cases_file.path == "c.jsonl"
    assert config.system.args == {"path": "o.jsonl"}
    assert config.slices == ("category", "difficulty", "tags", "vaults", "answerable")
    assert (config.errors, config.judges, config.spot_check) == ("exclude", (), None)


@pytest.mark.parametrize(
    ("parts", "said"),
    [
        ({"judges": JUDGES}, r"judges\[0\].model names 'm', but models is empty"),
        ({"judges": JUDGES, "models": {"n": MODELS["n"]}}, "but models has n"),
        ({"judges": JUDGES * 2, "models": MODELS}, "'groundedness' is listed twice"),
        ({"spot_check": {"model": "m"}, "models": MODELS}, "there are no judges to check"),
        (
            {"spot_check": {}, "judges": JUDGES, "models": MODELS},
            'name a second prompt_version or model .*"repeat": true',
        ),
        (
            {"spot_check": {"repeat": True, "model": next(iter(MODELS))}, "judges": JUDGES, "models": MODELS},
            "repeat asks the judge itself again; leave it out, or prompt_version and model",
        ),
        ({"spot_check": {"model": "z"}, "judges": JUDGES, "models": MODELS}, "spot_check.model names 'z'"),
        (
            {"spot_check": {"model": "n", "judge": "z"}, "judges": JUDGES, "models": MODELS},
            "spot_check.judge names 'z', which is not among the judges",
        ),
        ({"name": "../x"}, "String should match pattern"),
        ({"name": ""}, "String should match pattern"),
        ({"name": "n" * 65}, "String should match pattern"),
        ({"name": "x\n"}, "String should match pattern"),
        ({"unknown": 1}, "Extra inputs"),
        ({"slices": "category"}, "valid tuple"),
        ({"models": {"m": {"model": "x", "pin": {"build_hash": ""}}}}, "at least 1 character"),
        ({"models": {"m": {"model": "x", "pin": {"served_model": ""}}}}, "at least 1 character"),
        ({"budget": {"max_usd": 0}}, "greater than 0"),
        ({"budget": {"max_usd": float("inf")}}, "finite"),
        ({"budget": {"max_usd": float("nan")}}, "finite|greater"),
    ],
)
def test_a_config_that_cannot_work_is_refused(parts: dict[str, Any], said: str) -> None:
    with pytest.raises(ValidationError, match=said):
        RunConfig.model_validate({**BASE, **parts})


@pytest.mark.parametrize("value", [float("nan"), float("inf"), "high"])
def test_the_limit_of_a_gate_is_a_finite_number(value: Any) -> None:
    with pytest.raises(ValidationError):
        Gate.model_validate({"metric": "m", "op": ">=", "value": value})


@pytest.mark.parametrize(
    ("written", "name"),
    [
        ("OPENAI_API_KEY", "OPENAI_API_KEY"),
        ("${OPENAI_API_KEY}", "OPENAI_API_KEY"),
        ("my_key", "my_key"),
        ("TEAM_2_OPENAI_API_KEY_2026", "TEAM_2_OPENAI_API_KEY_2026"),
        ("hf_token", "hf_token"),
        ("KEY1", "KEY1"),
        (None, None),
    ],
)
def test_a_key_is_named_by_its_variable(written: str | None, name: str | None) -> None:
    assert ModelConfig(model="x", api_key_env=written).api_key_env == name


@pytest.mark.parametrize(
    "url",
    [
        "localhost:8000",
        "ftp://h/v1",
        "http://",
        "http://u:p@h/v1",
        "https://h/v1?api_key=abc",
        "http://[::1",
        "",
        "https:///v1",
    ],
)
def test_an_address_that_is_none_or_holds_a_secret_is_refused(url: str) -> None:
    with pytest.raises(ValidationError):
        ModelConfig(model="x", base_url=url)


def test_small_forms_are_normalised() -> None:
    config = ModelConfig.model_validate({"model": "x", "base_url": "http://h:1/v1/", "timeout_seconds": None})
    assert (config.base_url, config.timeout_seconds) == ("http://h:1/v1", 120.0)


@pytest.mark.parametrize(
    ("model", "floats"),
    [
        ("gpt-4o", True),
        ("gpt-4.1", True),
        ("claude-sonnet-latest", True),
        ("model-2024-08-06-latest", True),
        ("gpt-4o-2024-08-06", False),
        ("gpt-4-0613", False),
        ("claude-sonnet-4-20250514", False),
        ("gemini-1.5-pro-001", False),
        ("org/Name-3.1-8B", False),
        ("org/name", True),
        ("name@sha256:0123456789abcdef", False),
        # https://platform.claude.com/docs/en/about-claude/models/model-ids-and-versions: from 4.6 on a name without a
        # date is the one name of a fixed model; before, it is an alias of the last date.
        ("claude-opus-4-6", False),
        ("claude-sonnet-4-6", False),
        ("claude-opus-4-7", False),
        ("claude-sonnet-5", False),
        ("claude-opus-5-5", False),
        ("us.anthropic.claude-sonnet-4-6", False),
        ("anthropic.claude-opus-4-6-v1", False),
        ("anthropic/claude-opus-4.7", False),
        ("claude-opus-4-5", True),
        ("claude-haiku-4-5", True),
        ("claude-opus-4-1", True),
        ("claude-opus-4", True),
        ("claude-opus-4-0", True),
        ("claude-3-7-sonnet", True),
        ("anthropic/claude-sonnet-4.5", True),
        ("claude-opus-4-7@default", True),
        ("claude-opus-latest", True),
        ("claude-opus", True),
        ("claude-mythos-preview", True),
        # https://docs.aws.amazon.com/bedrock/latest/userguide/model-ids.html: an ID ends in its version.
        ("openai.gpt-oss-120b-1:0", False),
        ("amazon.nova-pro-v1:0", False),
        ("deepseek.v3-v1:0", False),
        ("openai.gpt-oss-120b", True),
        # One vendor's name behind a router moves as it does at the vendor.
        ("openai/gpt-4.1", True),
        ("openai/gpt-4.1-2025-04-14", False),
        ("google/gemini-2.5-flash", True),
        ("gemini-3.5-flash", True),
        ("x-ai/grok-4.1-fast", True),
        ("mistralai/mistral-medium-3.1", True),
        ("mistralai/mistral-small-3.2-24b-instruct", False),
        ("qwen/qwen3.5-plus", True),
        ("Qwen/Qwen2.5-7B-Instruct", False),
        ("google/gemma-1.1-7b-it", False),
        ("mistralai/mixtral-0.1-8x7b", False),
        ("zai-org/GLM-4.6", False),
        ("accounts/fireworks/models/llama-v3p1-8b-instruct", False),
    ],
)
def test_a_name_floats_unless_a_date_or_version_holds_it(model: str, floats: bool) -> None:
    assert is_floating(model) is floats


@pytest.mark.parametrize(
    ("url", "local"),
    [
        (None, False),
        ("http://localhost:8000/v1", True),
        ("http://127.0.0.1:1/v1", True),
        ("http://[::1]:1/v1", True),
        ("http://10.1.2.3/v1", True),
        ("http://vllm:8000/v1", True),
        ("http://gpu.lan/v1", True),
        ("https://api.openai.com/v1", False),
        ("http://8.8.8.8/v1", False),
    ],
)
def test_private_addresses_are_local(url: str | None, local: bool) -> None:
    assert is_local(url) is local
