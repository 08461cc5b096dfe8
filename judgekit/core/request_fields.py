"""What a config may add to the requests of a model: fields of the body, and headers."""

import json
import math
import re
from collections.abc import Iterator, Mapping
from typing import Any

from judgekit.core.addresses import filled, variables_in

_OWN_FIELDS = {
    "messages": None,
    "model": "model",
    "temperature": None,
    "seed": "seed",
    "stream": None,
    "stream_options": None,
    "response_format": "reply_format",
    "n": None,
    "max_tokens": "max_output_tokens",
    "max_completion_tokens": "max_output_tokens",
    "max_output_tokens": "max_output_tokens",
    "reasoning_effort": "reasoning_effort",
    "extra_body": None,
    "extra_headers": "extra_headers",
}
"""Fields of a request that the engine sets itself, and the key of the model that says how."""

_OWN_HEADERS = {
    "authorization": "api_key_env",
    "accept": None,
    "accept-encoding": None,
    "connection": None,
    "content-encoding": None,
    "content-length": None,
    "content-type": None,
    "expect": None,
    "host": None,
    "proxy-authorization": None,
    "te": None,
    "trailer": None,
    "transfer-encoding": None,
    "upgrade": None,
}

_SECRET_NAME = re.compile(
    r"(?:^|[-_])(?:api[-_]?key|.*apikey|key|token|secret|password|passwd|auth(?:orization)?|credentials?|cookie"
    r"|signature|session)$",
    re.IGNORECASE,
)
_HEADER_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_HEADER_VALUE = re.compile(r"[!-~]([ -~]*[!-~])?")
_KEY_START = re.compile(r"(sk|pk|rk|gsk|csk|hf|xai|r8|ghp|github_pat|nvapi|fw|tgp)[_-]|AIza|Bearer ", re.IGNORECASE)
"""How keys of well-known services begin."""
_MOST_BYTES = 100_000
_DEEPEST = 20


def looks_like_a_key(text: str) -> bool:
    """Whether what could be a variable's name is more likely a key: with digits, long, and not CAPITALS_AND_LINES."""
    if not any(character.isdigit() for character in text):
        return False
    is_long_mix = len(text) >= 16 and (text.upper() != text or "_" not in text)
    return is_long_mix or _KEY_START.match(text) is not None


def check_body(fields: dict[str, Any]) -> dict[str, Any]:
    """The fields, if each may be set and all of them are strict JSON.

    Raises:
        ValueError: names the field and what to do instead.
    """
    for name in fields:
        own = name.strip().lower()
        if own in _OWN_FIELDS:
            instead = _OWN_FIELDS[own]
            raise ValueError(
                f"{name!r} is set by judgekit itself" + (f"; use the key {instead!r} of the model" if instead else "")
            )
    for path, name, value in _walk(fields, "", 0):
        if _SECRET_NAME.search(name) and isinstance(value, str):
            raise ValueError(f"{path}: a key does not belong here, since this is stored; name it in extra_headers")
        if isinstance(value, str) and _KEY_START.match(value) and looks_like_a_key(value):
            raise ValueError(f"{path}: this looks like a key, which does not belong here; name it in extra_headers")
    if len(json.dumps(fields)) > _MOST_BYTES:
        raise ValueError(f"more than {_MOST_BYTES:,} bytes")
    return fields


def _walk(value: Any, path: str, depth: int) -> Iterator[tuple[str, str, Any]]:
    """(path, name, value) of everything in a JSON value.

    Raises:
        ValueError: it is not strict JSON.
    """
    if depth > _DEEPEST:
        raise ValueError(f"nested more than {_DEEPEST} deep")
    if isinstance(value, Mapping):
        for name, item in value.items():
            if not isinstance(name, str):
                raise ValueError(f"{path or 'a name'}: names of fields are texts, found {name!r}")
            where = f"{path}.{name}" if path else name
            yield where, name, item
            yield from _walk(item, where, depth + 1)
    elif isinstance(value, list | tuple):
        for number, item in enumerate(value):
            yield f"{path}[{number}]", "", item
            yield from _walk(item, f"{path}[{number}]", depth + 1)
    else:
        problem = _not_json(value)
        if problem is not None:
            raise ValueError(f"{path}: {problem}")


def _not_json(value: Any) -> str | None:
    """Why a value that is neither object nor list is not strict JSON."""
    if isinstance(value, str):
        has_half = any("\ud800" <= character <= "\udfff" for character in value)
        return "half of a surrogate pair, which is no character" if has_half else None
    if isinstance(value, float) and not math.isfinite(value):
        return f"{value} is not JSON"
    if isinstance(value, int) and abs(value) >= 2**53:
        return "a whole number this large is not kept exactly by every server"
    is_plain = value is None or isinstance(value, bool | int | float)
    return None if is_plain else f"{type(value).__name__} is not JSON; put it in quotes to send it as text"


def check_headers(headers: dict[str, str]) -> dict[str, str]:
    """The headers, if each may be set and no value is a secret written out.

    Raises:
        ValueError: names the header, never its value.
    """
    seen: set[str] = set()
    for name, value in headers.items():
        own = name.lower()
        if not _HEADER_NAME.fullmatch(name):
            raise ValueError(f"{name!r} is not the name of a header")
        if own in _OWN_HEADERS:
            instead = _OWN_HEADERS[own]
            raise ValueError(
                f"{name!r} is set by judgekit itself" + (f"; use the key {instead!r} of the model" if instead else "")
            )
        if own in seen:
            raise ValueError(f"{name!r} is there twice, in another case")
        seen.add(own)
        if not _HEADER_VALUE.fullmatch(value):
            raise ValueError(f"{name}: a value is visible ASCII text in one line, without blanks at its ends")
        if variables_in(value):
            continue
        if _SECRET_NAME.search(own) or (_KEY_START.match(value) and looks_like_a_key(value)):
            raise ValueError(f"{name}: write a secret as ${{NAME}} of an environment variable that holds it")
    return headers


def header_problem(value: str, variables: Mapping[str, str]) -> str | None:
    """What is wrong with a header's value once its variables stand in it; None where nothing is."""
    return None if _HEADER_VALUE.fullmatch(filled(value, variables)) else "holds characters that no header may have"
