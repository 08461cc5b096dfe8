"""What an HTTP error of a model server means: whether asking again helps, and whether anything does."""

import math
import re
from collections.abc import Mapping
from email.utils import parsedate_to_datetime
from typing import Any

from judgekit.core.judgments import FailureKind
from judgekit.core.protocols import CallError

LONGEST_WAIT_SECONDS = 120.0
"""A server that asks to wait longer is not waited for: the run stops and can be resumed."""

_KEY_LIKE = re.compile(
    r"\b(?:sk|pk|rk|key|gsk|xai|hf|AIza)[-_][A-Za-z0-9*._-]{6,}|Bearer\s+\S+|(?<=api key provided: )\S+", re.IGNORECASE
)
_CONTEXT = re.compile(
    r"context_length|maximum context|context (?:length|window|size)|too many tokens|prompt is too long"
    r"|exceeds? the (?:model'?s )?(?:maximum|available)",
    re.IGNORECASE,
)
_FILTER = re.compile(
    r"content[_ ]filter|content management policy|responsibleai|safety system|moderation|input was flagged",
    re.IGNORECASE,
)
_QUOTA = re.compile(
    r"insufficient[_ ]quota|exceeded your current quota|billing(?:_| details| hard limit)|credit balance"
    r"|out of credits",
    re.IGNORECASE,
)
_FORM = re.compile(
    r"TemplateError|system role|roles must alternate|response_format|json_schema|json_object|grammar", re.IGNORECASE
)
"""What a server fault says where the form of the request is to blame: asking the same again does not help."""
_FATAL_STATUS = {
    401: "the key is missing or wrong",
    402: "the account has no credit",
    403: "the key may not use this model",
    404: "no such model or address",
}
_RETRYABLE: Mapping[int, FailureKind] = {408: "timeout", 409: "server_error", 425: "server_error", 429: "rate_limited"}
_PERMANENT = {501, 505}
"""Server errors that say that the server will never be able to; every other 5xx may pass."""

_STATUS_OF_CODE = {
    "insufficient_quota": 429,
    "rate_limit_exceeded": 429,
    "invalid_api_key": 401,
    "model_not_found": 404,
    "context_length_exceeded": 400,
    "invalid_request_error": 400,
}
"""The status that a code would have come with, for error bodies that come with status 200."""


def redact(text: str, secret: str | None = None) -> str:
    """The text without anything that looks like a key, on one line, 400 characters at most."""
    if secret and len(secret) >= 4:
        text = text.replace(secret, "[key]")
    return " ".join(_KEY_LIKE.sub("[key]", text).split())[:400]


def error_from_status(
    status: int, body: Any, headers: Mapping[str, str], *, now: float, secret: str | None = None
) -> CallError:
    """The failure that an error status stands for.

    Args:
        status: HTTP status, or the code inside a 200 that carries an error body.
        body: decoded JSON, or text.
        headers: response headers, names in lower case.
        now: seconds since the epoch, for a Retry-After that is a date.
        secret: the key that was sent; never shown.
    """
    detail, code = _detail(body)
    message = f"HTTP {status}: {redact(detail, secret) or 'no message'}"
    if headers.get("x-request-id"):
        message += f" (request {redact(headers['x-request-id'], secret)[:80]})"
    said = f"{code} {detail}"
    of_this_case = _of_this_case(status, said)
    if of_this_case is not None:
        return CallError(of_this_case, message)
    if _QUOTA.search(said) and status in (400, 402, 403, 429):
        return CallError("rate_limited", f"{message} (quota used up)", fatal=True)
    if status in _FATAL_STATUS:
        return CallError("bad_request", f"{_FATAL_STATUS[status]}: {message}", fatal=True)
    if status in _RETRYABLE or (status >= 500 and status not in _PERMANENT):
        return _again_later(_RETRYABLE.get(status, "server_error"), message, headers, now)
    return CallError("server_error" if status >= 500 else "bad_request", message)


def _of_this_case(status: int, said: str) -> FailureKind | None:
    """The kind of a refusal that is due to what this request holds; None for any other error."""
    if status == 413:
        return "context_length"
    if status >= 500 and _FORM.search(said):
        return "bad_request"
    if status in (401, 402, 404, 429):
        return None
    if _CONTEXT.search(said):
        return "context_length"
    return "filtered" if status < 500 and _FILTER.search(said) else None


def error_from_ok(body: Mapping[str, Any], headers: Mapping[str, str], *, now: float, secret: str | None) -> CallError:
    """The failure that an error body stands for which came with status 200, by the status that its code names."""
    inner = body.get("error") or body
    code = inner.get("code") if isinstance(inner, Mapping) else None
    status = _STATUS_OF_CODE.get(str(code), 500)
    digits = str(code)
    if digits.isdecimal() and 400 <= int(digits[:9]) < 600:
        status = int(digits)
    return error_from_status(status, body, headers, now=now, secret=secret)


def _again_later(kind: FailureKind, message: str, headers: Mapping[str, str], now: float) -> CallError:
    wait = retry_after(headers, now)
    if wait is not None and wait > LONGEST_WAIT_SECONDS:
        return CallError(kind, f"{message}; the server asks to wait {in_words(wait)}", fatal=True)
    return CallError(kind, message, retryable=True, retry_after_seconds=wait)


def retry_after(headers: Mapping[str, str], now: float) -> float | None:
    """Seconds that the server asks to wait, from `retry-after-ms` or `retry-after` (seconds or HTTP date).

    Returns:
        Seconds, above 0; None where the headers say nothing usable. A wait of 0, or a date that has passed, is none:
        it would use up all attempts at once.
    """
    for name, scale in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        text = headers.get(name, "").strip()
        if not text:
            continue
        try:
            seconds = float(text) * scale
        except ValueError:
            try:
                seconds = parsedate_to_datetime(text).timestamp() - now
            except (ValueError, TypeError):
                continue
        if math.isfinite(seconds) and seconds > 0:
            return seconds
    return None


def in_words(seconds: float) -> str:
    """`3 h`, `5 min` or `20 s`."""
    for size, unit in ((86400, "days"), (3600, "h"), (60, "min")):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds:.3g} s"


def _detail(body: Any) -> tuple[str, str]:
    """(message, code) of an error body, whatever its shape."""
    if isinstance(body, Mapping):
        inner = body.get("error", body)
        if isinstance(inner, str):
            return inner, ""
        if isinstance(inner, Mapping):
            message = inner.get("message") or inner.get("detail") or inner.get("msg") or str(dict(inner))
            code = " ".join(str(inner.get(key) or "") for key in ("code", "type", "param"))
            return str(message), code
    if isinstance(body, bytes):
        body = body.decode("utf-8", "replace")
    return str(body)[:2000], ""
