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

_KEY_LIKE = re.compile(r"\b(sk|pk|rk|key|gsk|xai|hf|AIza)[-_][A-Za-z0-9*._-]{6,}|Bearer\s+\S+", re.IGNORECASE)
_CONTEXT = re.compile(
    r"context_length|maximum context|context (?:length|window|size)|too many tokens|prompt is too long"
    r"|exceeds? the (?:model'?s )?(?:maximum|available)",
    re.IGNORECASE,
)
_FILTER = re.compile(r"content[_ ]filter|content management policy|responsibleai|safety system", re.IGNORECASE)
_QUOTA = re.compile(
    r"insufficient[_ ]quota|exceeded your current quota|billing|credit balance|out of credits", re.IGNORECASE
)
_TEMPLATE = re.compile(r"TemplateError|system role|roles must alternate", re.IGNORECASE)
_FATAL_STATUS = {
    401: "the key is missing or wrong",
    403: "the key may not use this model",
    404: "no such model or address",
}
_RETRYABLE = {408, 409, 425, 429, 500, 502, 503, 504, 529}


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
    said = f"{code} {detail}"
    if status == 413 or (status != 429 and _CONTEXT.search(said)):
        return CallError("context_length", message)
    if _FILTER.search(said) and status < 500:
        return CallError("filtered", message)
    if _QUOTA.search(said) and status in (400, 402, 403, 429):
        return CallError("rate_limited", f"{message} (quota used up)", fatal=True)
    if status in _FATAL_STATUS:
        return CallError("bad_request", f"{_FATAL_STATUS[status]}: {message}", fatal=True)
    if status == 429:
        return _rate_limited(message, headers, now)
    if status >= 500 and _TEMPLATE.search(said):
        return CallError("bad_request", message)
    if status in _RETRYABLE or 520 <= status <= 526:
        kind: FailureKind = "timeout" if status == 408 else "server_error"
        return CallError(kind, message, retryable=True, retry_after_seconds=retry_after(headers, now))
    return CallError("server_error" if status >= 500 else "bad_request", message)


def _rate_limited(message: str, headers: Mapping[str, str], now: float) -> CallError:
    wait = retry_after(headers, now)
    if wait is not None and wait > LONGEST_WAIT_SECONDS:
        return CallError("rate_limited", f"{message}; the server asks to wait {in_words(wait)}", fatal=True)
    return CallError("rate_limited", message, retryable=True, retry_after_seconds=wait)


def retry_after(headers: Mapping[str, str], now: float) -> float | None:
    """Seconds that the server asks to wait, from `retry-after-ms` or `retry-after` (seconds or HTTP date).

    Returns:
        Seconds, at least 0; None where the headers say nothing usable.
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
        if math.isfinite(seconds):
            return max(0.0, seconds)
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
