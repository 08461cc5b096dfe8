"""What an HTTP error of a model server means: whether asking again helps, and whether anything does."""

import math
import re
from collections.abc import Mapping
from email.utils import parsedate_to_datetime
from typing import Any
from urllib.parse import urljoin, urlsplit, urlunsplit

from judgekit.core.judgments import FailureKind
from judgekit.core.protocols import CallError
from judgekit.core.text import in_words
from judgekit.providers.rate_limits import wait_in_fields, wait_in_text

LONGEST_WAIT_SECONDS = 120.0
"""A server that asks to wait longer is not waited for: the run stops and can be resumed."""

_KEY_LIKE = re.compile(
    r"\b(?:sk|pk|rk|key|gsk|xai|hf|AIza)[-_][A-Za-z0-9*._-]{6,}|Bearer\s+(?!token\b)\S+|(?<=api key provided: )\S+",
    re.IGNORECASE,
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
_OUTPUT_LIMIT = re.compile(r"output limit was reached", re.IGNORECASE)
"""How OpenAI says of a reasoning model, with status 400, what others say with a finish reason."""
_QUOTA = re.compile(
    r"insufficient[_ ]quota|exceeded your current quota|billing(?:_| details| hard limit)|credit balance"
    r"|out of credits",
    re.IGNORECASE,
)
_LASTING_QUOTA = re.compile(r"per ?day|limit: 0\b", re.IGNORECASE)
"""What a quota says for which waiting a minute is no use, although the reply names a wait."""
_KEY_REFUSED = re.compile(r"api[ _]key (?:not valid|expired|not found)", re.IGNORECASE)
"""How Gemini says in a reply with status 400 what others say with 401."""
_FORM = re.compile(
    r"TemplateError|system role|got system|roles must alternate|response_format|json_schema|json_object|grammar",
    re.IGNORECASE,
)
"""What a server fault says if the form of the request is to blame: asking the same again does not help."""
_FATAL_STATUS = {
    401: "the key is missing or wrong",
    402: "the account has no credit",
    403: "the key may not use this model",
    404: "no such model or address",
}
_RETRYABLE: Mapping[int, FailureKind] = {408: "timeout", 409: "server_error", 425: "server_error", 429: "rate_limited"}
_PERMANENT = {501, 505}
"""Server errors that say that the server will never be able to; every other 5xx may pass."""

_REMEDIES = (
    (re.compile(r"enable_thinking"), 'set "extra_body": {"enable_thinking": false} for this model'),
    (
        re.compile(r"reasoning[_.]?effort", re.IGNORECASE),
        'set "reasoning_effort" of this model to what it takes, or leave it out',
    ),
    (
        re.compile(
            r"(?:only|must|need|require)[^.]{0,40}\bstream|\bstream(?:ing)?\b[^.]{0,40}\b(?:only|must|required)", re.I
        ),
        "calls here are not streamed, so this model cannot be asked; name another one, or another server",
    ),
    (
        re.compile(r"api[-_ ]version", re.IGNORECASE),
        'set it in base_url, as in "https://.../v1?api-version=2024-10-21"',
    ),
)
"""What you can set if a server says so."""

_MESSAGES = ("message", "detail", "msg", "Message")
"""Fields of an error body with what is wrong; the last is Amazon's."""

_STATUS_OF_CODE = {
    "insufficient_quota": 429,
    "rate_limit_exceeded": 429,
    "invalid_api_key": 401,
    "model_not_found": 404,
    "context_length_exceeded": 400,
    "invalid_request_error": 400,
}
"""The status that a code would have come with, for error bodies that come with status 200."""


def redact(text: str) -> str:
    """The text without anything that looks like a key, on one line, 400 characters at most."""
    return " ".join(_KEY_LIKE.sub("[key]", text).split())[:400]


def error_from_status(
    status: int, body: Any, headers: Mapping[str, str], *, now: float, shown: str | None = None
) -> CallError:
    """The failure that an error status means.

    Args:
        status: HTTP status, or the one that the code in a reply without an error status means.
        body: decoded JSON, or text; secrets are masked already.
        headers: response headers, found by names in lower case; secrets are masked already.
        now: seconds since the epoch, for a Retry-After that is a date.
        shown: how the message begins if `status` is not what the server sent.
    """
    detail, code, parameter = _detail(body)
    message = f"{shown or f'HTTP {status}'}: {redact(detail) or 'no message'}"
    if parameter and parameter not in detail:
        message += f" ({redact(parameter)[:80]})"
    if headers.get("x-request-id"):
        message += f" (request {redact(headers['x-request-id'])[:80]})"
    said = f"{code} {parameter} {detail}"
    of_this_case = _of_this_case(status, said)
    if of_this_case is not None:
        advice = "; raise max_output_tokens for this model" if of_this_case == "truncated" else ""
        return CallError(of_this_case, message + advice)
    if status in (400, 402, 403, 429) and _is_used_up(body, detail, said):
        return CallError("rate_limited", f"{message} (quota used up)", fatal=True)
    if status == 400 and _KEY_REFUSED.search(detail):
        status = 401
    if status in _FATAL_STATUS:
        return CallError("bad_request", f"{_FATAL_STATUS[status]}: {message}", fatal=True)
    if status in _RETRYABLE or (status >= 500 and status not in _PERMANENT):
        wait = retry_after(headers, now) or wait_in_text(detail) or wait_in_fields(body)
        kind = _RETRYABLE.get(status, "server_error")
        if wait is not None and wait > LONGEST_WAIT_SECONDS:
            return CallError(kind, f"{message}; the server asks to wait {in_words(wait)}", fatal=True)
        return CallError(kind, message, retryable=True, retry_after_seconds=wait)
    remedy = next((text for pattern, text in _REMEDIES if pattern.search(said)), None)
    message += f"; {remedy}" if remedy else ""
    return CallError("server_error" if status >= 500 else "bad_request", message)


def error_from_redirect(status: int, request_url: str, location: str | None, suffix: str) -> CallError:
    """A redirect, which is never followed: it may lead to another host, and most turn a POST into a GET.

    Args:
        status: 3xx.
        request_url: where the request went.
        location: where the server points to, as its header says.
        suffix: what follows base_url in `request_url`.
    """
    if not location:
        return CallError("bad_request", f"HTTP {status} without an address to go to", fatal=True)
    try:
        parts = urlsplit(urljoin(request_url, location))
        target = urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))
    except ValueError:
        target = location
    base = target.removesuffix(suffix)
    advice = f"set base_url to {redact(base)}" if base != target else "set base_url to the address of the API itself"
    message = f"HTTP {status}: redirected to {redact(target)}, which is not followed; {advice} if you trust it"
    return CallError("bad_request", message, fatal=True)


def _of_this_case(status: int, said: str) -> FailureKind | None:
    """The kind of a refusal that is due to what this request holds; None for any other error."""
    if status == 413:
        return "context_length"
    if status >= 500 and _FORM.search(said):
        return "bad_request"
    if status in (401, 402, 404, 429):
        return None
    if _OUTPUT_LIMIT.search(said):
        return "truncated"
    if _CONTEXT.search(said):
        return "context_length"
    return "filtered" if status < 500 and _FILTER.search(said) else None


def _is_used_up(body: Any, detail: str, said: str) -> bool:
    """Whether a quota is used up for good; Gemini says the same of a limit per minute, with the time to wait."""
    if not _QUOTA.search(said):
        return False
    names_wait = wait_in_text(detail) is not None or wait_in_fields(body) is not None
    return not names_wait or _LASTING_QUOTA.search(str(body)) is not None


def error_from_ok(body: Mapping[str, Any], headers: Mapping[str, str], *, now: float) -> CallError:
    """The failure that an error body with status 200 means, by the status that its code names."""
    inner = body.get("error") or body
    code = inner.get("code") if isinstance(inner, Mapping) else None
    status = _STATUS_OF_CODE.get(str(code), 500)
    digits = str(code)
    if digits.isdecimal() and 400 <= int(digits[:9]) < 600:
        status = int(digits)
    named = f" (code {redact(digits)[:40]})" if code is not None else ""
    return error_from_status(status, body, headers, now=now, shown=f"an error in a reply with HTTP 200{named}")


def retry_after(headers: Mapping[str, str], now: float) -> float | None:
    """Seconds that the server asks to wait, from `retry-after-ms` or `retry-after` (seconds or HTTP date).

    Returns:
        Seconds, above 0; None if the headers say nothing usable. A wait of 0 and a date that has passed do not count:
        they would use up all attempts at once.
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


def _detail(body: Any) -> tuple[str, str, str]:
    """(message, code, parameter) of an error body, whatever its shape."""
    if isinstance(body, list) and len(body) == 1:
        body = body[0]
    if isinstance(body, Mapping):
        inner = body.get("error", body)
        if isinstance(inner, str):
            return inner, "", ""
        if isinstance(inner, Mapping):
            message = next((inner[name] for name in _MESSAGES if inner.get(name)), None) or str(dict(inner))
            code = " ".join(str(inner.get(key) or "") for key in ("code", "type"))
            return str(message), code, str(inner.get("param") or "")
    return str(body)[:2000], "", ""
