"""Replies as an OpenAI-compatible server writes them, and replies that go wrong.

What goes wrong is the connection, the status, or what the reply says.
"""

import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from email.utils import formatdate
from math import ceil
from typing import Any

from judgekit.testing.exchange import Fault, Reply


def chat_reply(  # noqa: PLR0913 - the fields of the wire format, all but one by name
    content: str | None,
    *,
    finish_reason: str | None = "stop",
    refusal: str | None = None,
    tool_calls: Sequence[Mapping[str, Any]] | None = None,
    model: str | None = None,
    fingerprint: str | None = "fp_test",
    usage: Mapping[str, Any] | None = None,
) -> Reply:
    """A chat completion with one choice.

    Args:
        content: The message's content, or None.
        finish_reason: As the provider would say; `length` for a cut reply.
        refusal: The message's refusal; None leaves the field out.
        tool_calls: See `tool_call`; None leaves the field out.
        model: The served model; None echoes the requested one.
        fingerprint: `system_fingerprint`; None leaves the field out.
        usage: Token counts as sent. None counts characters / 4; an empty mapping leaves the field out.

    Returns:
        A reply with status 200; the server fills in what depends on the request.
    """
    message: dict[str, Any] = {"role": "assistant", "content": content}
    if refusal is not None:
        message["refusal"] = refusal
    if tool_calls is not None:
        message["tool_calls"] = list(tool_calls)
    body: dict[str, Any] = {"choices": [{"index": 0, "message": message, "finish_reason": finish_reason}]}
    if model is not None:
        body["model"] = model
    if fingerprint is not None:
        body["system_fingerprint"] = fingerprint
    if usage is not None:
        body["usage"] = dict(usage)
    return Reply(body=body, fill=True)


def tool_call(arguments: Mapping[str, Any] | str, name: str = "submit", call_id: str = "call_1") -> dict[str, Any]:
    """One entry of `tool_calls`; arguments that are text are sent as they are."""
    text = arguments if isinstance(arguments, str) else json.dumps(arguments)
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": text}}


def verdict_body(
    score: Any,
    *,
    reasoning: str = "as the sources say",
    supported: Sequence[str] | None = None,
    unsupported: Sequence[str] | None = None,
) -> dict[str, Any]:
    """The object a judge answers with: reasons first, claims if either list is given, the score last."""
    body: dict[str, Any] = {"reasoning": reasoning}
    if supported is not None or unsupported is not None:
        body["supported_claims"] = list(supported or ())
        body["unsupported_claims"] = list(unsupported or ())
    body["score"] = score
    return body


def verdict(
    score: Any,
    *,
    reasoning: str = "as the sources say",
    supported: Sequence[str] | None = None,
    unsupported: Sequence[str] | None = None,
    **chat_fields: Any,
) -> Reply:
    """A sound judge reply: correctness, or groundedness if a list of claims is given.

    Args:
        score: The score as written into the JSON; not checked, so that wrong ones can be sent.
        reasoning: The judge's reasons.
        supported: Supported claims.
        unsupported: Unsupported claims.
        **chat_fields: Passed on to `chat_reply` (`model`, `fingerprint`, `usage`, ...).
    """
    body = verdict_body(score, reasoning=reasoning, supported=supported, unsupported=unsupported)
    return chat_reply(json.dumps(body, ensure_ascii=False), **chat_fields)


def error_reply(
    status: int,
    message: str,
    *,
    code: str | None = None,
    type: str | None = None,
    param: str | None = None,
    headers: Mapping[str, str] | None = None,
) -> Reply:
    """An error in OpenAI's form: `{"error": {"message", "type", "param", "code"}}`."""
    usual = "server_error" if status >= 500 else "invalid_request_error"
    usual = {401: "authentication_error", 429: "rate_limit_error"}.get(status, usual)
    error = {"message": message, "type": type or usual, "param": param, "code": code}
    return Reply(status=status, body={"error": error}, headers=headers or {})


def reset() -> Reply:
    """The connection is reset (RST) before any byte of a reply."""
    return Reply(fault=Fault("reset"))


def close_after_bytes(n_bytes: int, reply: Reply | None = None) -> Reply:
    """The connection is closed after `n_bytes` of the body; content-length promises more.

    Args:
        n_bytes: Bytes of the body that are sent, 0 or more.
        reply: What is cut; None cuts the default verdict.
    """
    return replace(reply or Reply(), fault=Fault("close_after_bytes", n_bytes=n_bytes))


def hang() -> Reply:
    """Nothing is ever sent; ends when the client leaves or the server stops."""
    return Reply(fault=Fault("hang"))


def headers_then_trickle(interval_seconds: float, n_bytes: int = 1, reply: Reply | None = None) -> Reply:
    """Headers at once, then `n_bytes` of the body every `interval_seconds`, until it is complete."""
    return replace(reply or Reply(), fault=Fault("headers_then_trickle", n_bytes, interval_seconds))


def raw_bytes(content: bytes) -> Reply:
    """Bytes as they are in place of a reply, which need not be HTTP; then the connection is closed."""
    return Reply(body=content, fault=Fault("raw_bytes"))


def html_page(status: int = 502, text: str = "<html><body><h1>Bad gateway</h1></body></html>") -> Reply:
    """A page of a proxy or a login form where JSON is expected; with status 200 too."""
    return Reply(status, text, {"content-type": "text/html; charset=utf-8"}, Fault("html"))


def truncated_reply(content: str | None = '{"reasoning": "The answer correctly sta') -> Reply:
    """A reply that was cut at the output limit: finish reason `length`."""
    return replace(chat_reply(content, finish_reason="length"), fault=Fault("truncated"))


def empty_reply(content: str | None = "") -> Reply:
    """A reply without content: an empty text, white space, or None."""
    return replace(chat_reply(content), fault=Fault("empty"))


def refused_reply(refusal: str = "I can't help with that.") -> Reply:
    """The model declines in the message's `refusal` field."""
    return replace(chat_reply(None, refusal=refusal), fault=Fault("refused"))


def filtered_reply() -> Reply:
    """The provider's content filter ended the reply."""
    return replace(chat_reply(None, finish_reason="content_filter"), fault=Fault("filtered"))


def error_in_200(message: str = "Upstream provider returned an error", code: int | str = 502) -> Reply:
    """Status 200 with an error for a body and no choices, as routers send it."""
    return Reply(200, {"error": {"message": message, "code": code}}, fault=Fault("error_in_200"))


def rate_limited(
    *,
    retry_after_seconds: float | None = None,
    retry_after_ms: float | None = None,
    retry_after_date_seconds: float | None = None,
    remaining_requests: int | None = None,
    message: str = "Rate limit reached for requests",
    code: str = "rate_limit_exceeded",
) -> Reply:
    """Status 429 with the headers that are asked for.

    Args:
        retry_after_seconds: `retry-after` as a number.
        retry_after_ms: `retry-after-ms`.
        retry_after_date_seconds: `retry-after` as an HTTP date so far from now (that is, from this call), rounded
            up to a whole second.
        remaining_requests: `x-ratelimit-remaining-requests`, with `x-ratelimit-limit-requests` and `-reset-`.
        message: The provider's text.
        code: The provider's code; `insufficient_quota` for the one that no waiting cures.
    """
    headers: dict[str, str] = {}
    if retry_after_seconds is not None:
        headers["retry-after"] = f"{retry_after_seconds:g}"
    if retry_after_date_seconds is not None:
        headers["retry-after"] = formatdate(ceil(time.time() + retry_after_date_seconds), usegmt=True)
    if retry_after_ms is not None:
        headers["retry-after-ms"] = f"{retry_after_ms:g}"
    if remaining_requests is not None:
        headers["x-ratelimit-limit-requests"] = "60"
        headers["x-ratelimit-remaining-requests"] = str(remaining_requests)
        headers["x-ratelimit-reset-requests"] = "1s"
    error_type = "insufficient_quota" if code == "insufficient_quota" else "requests"
    reply = error_reply(429, message, code=code, type=error_type, headers=headers)
    return replace(reply, fault=Fault("rate_limit"))


def server_error(status: int = 500, message: str = "The server had an error while processing your request") -> Reply:
    """A 5xx in OpenAI's form."""
    return replace(error_reply(status, message), fault=Fault("server_error"))


def overloaded(headers: Mapping[str, str] | None = None) -> Reply:
    """Status 529, as some providers say that they are overloaded."""
    return replace(error_reply(529, "Overloaded", type="overloaded_error", headers=headers), fault=Fault("overloaded"))
