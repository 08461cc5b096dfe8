"""Lines of batch files: what endpoints and vLLM write, and what nobody should."""

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest

from judgekit.core.judgments import ModelRequest
from judgekit.core.protocols import CallError
from judgekit.providers.batch_lines import received, request_line, response_of
from judgekit.providers.bodies import MOST_BYTES, read_lines

BODY = {
    "model": "m",
    "created": 1_760_000_000,
    "choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "four"}}],
    "usage": {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15},
}


def line(**fields: Any) -> bytes:
    found = {"id": "b", "custom_id": "q1", "response": {"status_code": 200, "body": BODY}, "error": None}
    return json.dumps(found | fields).encode()


def test_a_reply_has_its_text_its_tokens_and_its_time_and_no_latency() -> None:
    assert received(line()).is_reply
    found = response_of(line())
    assert (found.text, found.served_model, found.latency_seconds) == ("four", "m", None)
    assert found.replied_at == "2025-10-09T08:53:20.000+00:00"
    assert found.usage is not None
    assert found.usage.prompt_tokens == 10


@pytest.mark.parametrize("response", [BODY, {"status_code": 200, "body": {**BODY, "created": "yesterday"}}])
def test_forms_of_other_versions_are_replies_too(response: Any) -> None:
    assert response_of(line(response=response)).text == "four"


@pytest.mark.parametrize(
    ("fields", "kind", "problem"),
    [
        ({"response": None, "error": {"code": "batch_expired", "message": "late"}}, "expired", "batch_expired"),
        ({"response": None, "error": {"code": "batch_cancelled", "message": "no"}}, "expired", "batch_cancelled"),
        ({"response": None, "error": {"message": "?", "code": 429}}, "rate_limited", "rate_limited"),
        ({"response": None, "error": "boom"}, "server_error", "server_error"),
        ({"response": None, "error": {"code": ["x"], "message": {"a": 1}}}, "server_error", "server_error"),
        ({"response": None}, "server_error", "server_error"),
        ({"response": 7}, "server_error", "server_error"),
        ({"response": {"status_code": "500", "body": None}}, "server_error", "server_error"),
        ({"response": {"status_code": 503, "body": "<html>"}}, "server_error", "status 503"),
        ({"response": {"status_code": 401, "body": {"error": "x"}}}, "bad_request", "status 401"),
        ({"response": {"status_code": 200, "body": [1]}}, "server_error", "server_error"),
        ({"response": {"status_code": 200, "body": {"choices": [{"message": 3}]}}}, "server_error", "server_error"),
        (
            {
                "response": {"status_code": 400, "body": None},
                "error": {"error": {"message": "maximum context length is 8192 tokens", "code": 400}},
            },
            "context_length",
            "status 400",
        ),
    ],
)
def test_what_is_no_reply_has_the_kind_of_the_same_error_of_a_call(
    fields: dict[str, Any], kind: str, problem: str
) -> None:
    found = received(line(**fields))
    assert (found.custom_id, found.is_reply, found.problem) == ("q1", False, problem)
    with pytest.raises(CallError) as caught:
        response_of(line(**fields))
    # It says nothing of the other requests of the batch.
    assert (caught.value.kind, caught.value.fatal, caught.value.retryable) == (kind, False, False)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (b"", "not JSON"),
        (b"{", "not JSON"),
        (b"\xff\xfe", "not JSON"),
        (b"[" * 100_000, "not JSON"),
        (b"NaN", "no custom_id"),
        (b"[1]", "no custom_id"),
        (b'{"custom_id": 5}', "no custom_id"),
    ],
)
def test_a_line_that_names_no_request_is_none(text: bytes, problem: str) -> None:
    found = received(text)
    assert (found.custom_id, found.problem) == (None, problem)


def test_a_request_with_half_a_character_is_a_line_all_the_same() -> None:
    messages = ({"role": "user", "content": "a\nb \ud83d"},)
    parameters = {"max_output_tokens": 16, "max_tokens_name": "max_tokens", "response_format": "text"}
    request = ModelRequest("openai_compatible", None, "m", "m", messages, parameters, {}, "p")
    text = request_line("q1", request)
    assert text.count(b"\n") == 1
    found = json.loads(text)
    assert (found["custom_id"], found["method"], found["url"]) == ("q1", "POST", "/v1/chat/completions")
    assert found["body"]["messages"][0]["content"] == "a\nb \ud83d"


class _File:
    """A reply whose body comes in pieces."""

    def __init__(self, pieces: list[bytes], headers: list[tuple[bytes, bytes]] | None = None) -> None:
        self.raw_headers = headers or []
        self.content = self
        self._pieces = pieces

    async def iter_any(self) -> AsyncIterator[bytes]:
        for piece in self._pieces:
            yield piece


def read(response: Any) -> list[bytes]:
    found: list[bytes] = []
    asyncio.run(read_lines(response, found.append))
    return found


def test_lines_come_whole_wherever_a_file_is_cut_into_pieces() -> None:
    text = b"one\n\ntwo and more\nthree"
    for size in range(1, len(text) + 1):
        pieces = [text[start : start + size] for start in range(0, len(text), size)]
        assert read(_File(pieces)) == [b"one", b"", b"two and more", b"three"]
    assert read(_File([])) == []


def test_a_line_without_end_is_not_read_to_its_end() -> None:
    response = _File([b"x" * (MOST_BYTES // 2)] * 3)
    with pytest.raises(CallError, match="a line of a file is larger than 8 MB"):
        read(response)
    with pytest.raises(CallError, match="a file is compressed"):
        read(_File([b"x"], [(b"Content-Encoding", b"gzip")]))
