"""Keys of the reply cache: kind, version and hash, and parts that change with it."""

from typing import Any

import pytest

from judgekit.core.cache_keys import PARTS, frame_parts, is_current, kind_and_version, request_key, short_hash
from judgekit.core.judgments import ModelRequest
from judgekit.core.text import canonical_sha256

HASH = "0f" * 32


def request(**changes: Any) -> ModelRequest:
    fields: dict[str, Any] = {
        "provider": "openai_compatible",
        "base_url": None,
        "model": "judge",
        "pinned_model": "judge@sha256:1",
        "messages": ({"role": "user", "content": "Is it?"},),
        "parameters": {"temperature": 0, "max_output_tokens": 512},
        "reply_schema": {"type": "object"},
        "prompt_sha256": HASH,
    }
    return ModelRequest(**{**fields, **changes})


def parts(asked: ModelRequest) -> dict[str, str]:
    return {**frame_parts(asked.frame()), "messages": short_hash(asked.messages_sha256())}


@pytest.mark.parametrize(
    ("key", "kind", "version", "current"),
    [
        (f"reply:2:{HASH}", "reply", "2", True),
        (f"capabilities:2:{HASH}", "capabilities", "2", True),
        (f"reply:1:{HASH}", "reply", "1", False),
        (f"reply:22:{HASH}", "reply", "22", False),
        (HASH, "reply", "1", False),  # version 1 had no prefix
        ("reply:2:short", "unknown", "unknown", False),
        (f"reply:2:{HASH}\n", "unknown", "unknown", False),
        (f"reply:٢:{HASH}", "unknown", "unknown", False),
        ("", "unknown", "unknown", False),
    ],
)
def test_a_key_tells_its_kind_and_version(key: str, kind: str, version: str, current: bool) -> None:
    assert kind_and_version(key) == (kind, version)
    assert is_current(key) is current


@pytest.mark.parametrize(
    ("part", "changes"),
    [
        ("provider", {"provider": "other"}),
        ("base_url", {"base_url": "http://127.0.0.1:8000/v1"}),
        ("model", {"pinned_model": "judge@sha256:2"}),
        ("parameters", {"parameters": {"temperature": 0.7, "max_output_tokens": 512}}),
        ("parameters", {"parameters": {"temperature": 0, "max_output_tokens": 1024}}),
        ("parameters", {"parameters": {"max_output_tokens": 512}}),
        ("parameters", {"parameters": {"temperature": None, "max_output_tokens": 512}}),
        ("reply_schema", {"reply_schema": {"type": "array"}}),
        ("prompt", {"prompt_sha256": "1f" * 32}),
        ("messages", {"messages": ({"role": "user", "content": "Is it? "},)}),
        ("messages", {"messages": ({"role": "system", "content": "Is it?"},)}),
        ("attempt", {"attempt": 2}),
    ],
)
def test_d02_d03_whatever_changes_the_key_changes_exactly_its_part(part: str, changes: dict[str, Any]) -> None:
    before, after = request(), request(**changes)
    assert before.key() != after.key()
    old, new = parts(before), parts(after)
    assert [name for name in PARTS if old[name] != new[name]] == [part]


def test_the_name_of_the_model_alone_is_no_part_of_the_key() -> None:
    assert request(model="alias").key() == request().key()


def test_a_key_is_made_of_its_two_hashes() -> None:
    asked = request()
    key = asked.key()
    assert key == request_key(canonical_sha256(asked.frame()), asked.messages_sha256())
    assert is_current(key)
    assert set(parts(asked)) == set(PARTS)
