"""What a reply's headers say of the server's limits."""

import re
from collections.abc import Mapping

from judgekit.core.protocols import RateLimits

_PART = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h|d)")
_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}


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
    """`6m0s`, `20ms`, `1.5` or `1h2m3s` in seconds; None where it is none of these."""
    if text is None:
        return None
    text = text.strip()
    if re.fullmatch(r"\d+(\.\d+)?", text):
        return float(text)
    parts = _PART.findall(text)
    if not parts or "".join(number + unit for number, unit in parts) != text:
        return None
    return sum(float(number) * _SECONDS[unit] for number, unit in parts)
