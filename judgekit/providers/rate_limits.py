"""What a reply's headers say of the server's limits."""

import re
from collections.abc import Iterable, Mapping
from typing import Any

from judgekit.core.protocols import RateLimits

_UNIT = (
    r"(?:ms|m(?:illi)?sec(?:ond)?s?|s(?:ec(?:ond)?s?)?|m(?:in(?:ute)?s?)?|h(?:ours?|rs?)?|d(?:ays?)?|w(?:eeks?)?)"
    r"(?![a-z])"
)
_NUMBER = r"\d{1,3}(?:,\d{3})+|\d+(?:\.\d+)?"
_PART_TEXT = rf"(?:(?:{_NUMBER})\s*|\ban?\s+)\(?{_UNIT}"
_PART = re.compile(rf"({_NUMBER}|\ban?\b)\s*\(?([a-z]+)")
_WAIT = re.compile(
    r"\b(?:again|retry(?:ing|delay)?|wait(?:ing)?|resets?|refresh(?:es)?|available|allowed|back|after)\b(?:(?!\b(?:per|each|every|any|tokens?|requests?)\b)[^\d\n]){0,20}?"
    rf"({_PART_TEXT}(?:(?:\s|,|and)*{_PART_TEXT}){{0,3}})",
    re.IGNORECASE,
)
_BARE_WAIT = re.compile(r"\bretry.after\b\D{0,3}(\d+(?:\.\d+)?)(?![\w:/-])", re.IGNORECASE)
_CLOCK = re.compile(r"\b(?:again|retry|wait|resets?)\s+(?:in|for)\s+(\d{1,2}):([0-5]\d):([0-5]\d)\b", re.IGNORECASE)
"""A span as hours, minutes and seconds; `at` or `after` would make it a time of the day."""
_FIELD = re.compile(
    r"retry_?(?:after|delay)(?:_?seconds?)?\W{1,5}(\d+(?:\.\d+)?)(ms|s|m|h)?(?![\w:/.-])", re.IGNORECASE
)
"""A field of an error body that says how long to wait, such as `"retryDelay": "34s"`."""
_A_TIME = 1e8
"""A number this large is a time since the epoch, not a span."""
_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0, "w": 604800.0}


def rate_limits(headers: Mapping[str, str]) -> RateLimits | None:
    """The limits in `x-ratelimit-*` headers, as OpenAI, Azure, Groq and others send them; None without any."""
    requests, tokens = headers.get("x-ratelimit-remaining-requests"), headers.get("x-ratelimit-remaining-tokens")
    if requests is None and tokens is None:
        return None
    return RateLimits(
        remaining_requests=_count(requests),
        remaining_tokens=_count(tokens),
        requests_reset_seconds=seconds(headers.get("x-ratelimit-reset-requests")),
        tokens_reset_seconds=seconds(headers.get("x-ratelimit-reset-tokens")),
    )


def _count(text: str | None) -> int | None:
    return int(text) if text is not None and text.isascii() and text.isdigit() else None


def seconds(text: str | None) -> float | None:
    """`6m0s`, `20ms`, `1.5` or `1h2m3s` in seconds; None for anything else."""
    if text is None:
        return None
    text = text.strip()
    if re.fullmatch(r"\d+(\.\d+)?", text):
        return float(text) if float(text) < _A_TIME else None
    parts = _PART.findall(text)
    if not parts or "".join(number + unit for number, unit in parts) != text:
        return None
    return _total(parts) if all(unit in _SECONDS for _, unit in parts) else None


def wait_in_text(text: str) -> float | None:
    """Seconds that an error message asks to wait, such as `Please try again in 1m12s`; None if it names none."""
    match = _WAIT.search(text[:2000])
    if match is not None:
        return _total(_PART.findall(match[1].lower())) or None
    clock = _CLOCK.search(text[:2000])
    if clock is not None:
        return float(int(clock[1]) * 3600 + int(clock[2]) * 60 + int(clock[3])) or None
    bare = _BARE_WAIT.search(text[:2000])
    return (float(bare[1]) or None) if bare is not None else None


def wait_in_fields(body: Any) -> float | None:
    """Seconds that a field of an error body asks to wait, at any depth; None if there is none."""
    match = _FIELD.search(str(body)[:4000]) if isinstance(body, Mapping | list) else None
    if match is None or float(match[1]) >= _A_TIME:
        return None
    return float(match[1]) * _SECONDS[(match[2] or "s").lower()] or None


def _total(parts: Iterable[tuple[str, str]]) -> float:
    """Seconds in all; `a minute` is one, and units count by their first letter, but for milliseconds."""
    total = 0.0
    for number, unit in parts:
        letter = "ms" if unit.startswith(("ms", "mil")) else unit[0]
        total += _SECONDS[letter] * (1.0 if number.startswith("a") else float(number.replace(",", "")))
    return total
