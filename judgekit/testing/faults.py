"""Replies that go wrong: on the connection, in the status, or in what they say."""

import time
from collections.abc import Mapping
from email.utils import formatdate
from math import ceil

from judgekit.testing.exchange import Fault, Reply
from judgekit.testing.replies import chat_reply, error_reply


def reset() -> Reply:
    """The connection is reset (RST) before any byte of a reply."""
    return Reply(fault=Fault("reset"))


def close_after_bytes(n_bytes: int, reply: Reply | None = None) -> Reply:
    """The connection is closed after `n_bytes` of the body; content-length promises more.

    Args:
        n_bytes: Bytes of the body that are sent, 0 or more.
        reply: What is cut; None cuts the default verdict.
    """
    return _with_fault(reply, Fault("close_after_bytes", n_bytes=n_bytes))


def hang() -> Reply:
    """Nothing is ever sent; ends when the client leaves or the server stops."""
    return Reply(fault=Fault("hang"))


def headers_then_trickle(interval_seconds: float, n_bytes: int = 1, reply: Reply | None = None) -> Reply:
    """Headers at once, then `n_bytes` of the body every `interval_seconds`, until it is complete."""
    return _with_fault(reply, Fault("headers_then_trickle", n_bytes=n_bytes, interval_seconds=interval_seconds))


def raw_bytes(content: bytes) -> Reply:
    """Bytes as they are in place of a reply, which need not be HTTP; then the connection is closed."""
    return Reply(body=content, fault=Fault("raw_bytes"))


def html_page(status: int = 502, text: str = "<html><body><h1>Bad gateway</h1></body></html>") -> Reply:
    """A page of a proxy or a login form where JSON is expected; with status 200 too."""
    return Reply(status, text, {"content-type": "text/html; charset=utf-8"}, Fault("html"))


def truncated_reply(content: str | None = '{"reasoning": "The answer correctly sta') -> Reply:
    """A reply that was cut at the output limit: finish reason `length`."""
    return _with_fault(chat_reply(content, finish_reason="length"), Fault("truncated"))


def empty_reply(content: str | None = "") -> Reply:
    """A reply without content: an empty text, white space, or None."""
    return _with_fault(chat_reply(content), Fault("empty"))


def refused_reply(refusal: str = "I can't help with that.") -> Reply:
    """The model declines in the message's `refusal` field."""
    return _with_fault(chat_reply(None, refusal=refusal), Fault("refused"))


def filtered_reply() -> Reply:
    """The provider's content filter ended the reply."""
    return _with_fault(chat_reply(None, finish_reason="content_filter"), Fault("filtered"))


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
    return _with_fault(reply, Fault("rate_limit"))


def server_error(status: int = 500, message: str = "The server had an error while processing your request") -> Reply:
    """A 5xx in OpenAI's form."""
    return _with_fault(error_reply(status, message), Fault("server_error"))


def overloaded(headers: Mapping[str, str] | None = None) -> Reply:
    """Status 529, as some providers say that they are overloaded."""
    reply = error_reply(529, "Overloaded", type="overloaded_error", headers=headers)
    return _with_fault(reply, Fault("overloaded"))


def _with_fault(reply: Reply | None, fault: Fault) -> Reply:
    if reply is None:
        return Reply(fault=fault)
    return Reply(reply.status, reply.body, reply.headers, fault, reply.delay_seconds, reply.fill)
