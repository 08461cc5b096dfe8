"""What a config says of the requests to a model: the address, and additional fields of the body and headers."""

import ipaddress
import json
import math
import re
from collections.abc import Collection, Iterator, Mapping
from typing import Any
from urllib.parse import parse_qsl, quote, unquote_plus, urlsplit

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
    "logprobs": None,
    "top_logprobs": None,
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


def is_secret_name(name: str) -> bool:
    """Whether the name of a field or variable says that its value is a secret, as `OPENAI_API_KEY` does."""
    return _SECRET_NAME.search(name) is not None


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
        return "half of a surrogate pair, which is not a character" if has_half else None
    if isinstance(value, float) and not math.isfinite(value):
        return f"{value} is not JSON"
    if isinstance(value, int) and abs(value) >= 2**53:
        return "a whole number this large is not kept exactly by every server"
    is_plain = value is None or isinstance(value, bool | int | float)
    return None if is_plain else f"{type(value).__name__} is not JSON; put it in quotes to send it as text"


def check_headers(headers: dict[str, str], may_set: Collection[str] = ()) -> dict[str, str]:
    """The headers, if each may be set and no value is a secret written out.

    Args:
        headers: by name.
        may_set: names that judgekit sets itself for a model, and that may be set here.

    Raises:
        ValueError: names the header, never its value.
    """
    seen: set[str] = set()
    for name, value in headers.items():
        own = name.lower()
        if not _HEADER_NAME.fullmatch(name):
            raise ValueError(f"{name!r} is not the name of a header")
        if own in _OWN_HEADERS and own not in may_set:
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
    """What is wrong with a header's value once its variables stand in it; None if nothing is."""
    return None if _HEADER_VALUE.fullmatch(filled(value, variables)) else "holds characters that no header may have"


HIDDEN = "***"
"""Stands for a secret wherever an address is stored or shown."""

_VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")
_PLAIN_NAMES = frozenset({"api-version", "api_version", "version", "v", "deployment", "model", "region", "location"})
"""Parameters of a query whose values are shown; the value of any other may be a secret."""


def check_address(address: str) -> str:
    """A base_url as it is used: no slash at the end of its path.

    Raises:
        ValueError: it is not an address, or holds what does not belong there.
    """
    try:
        parts = urlsplit(address)
        _ = parts.port
    except ValueError:
        raise ValueError("expected an address such as http://127.0.0.1:8000/v1") from None
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError("expected an address such as http://127.0.0.1:8000/v1")
    if parts.username or parts.password:
        raise ValueError("a key does not belong into base_url; name its variable in api_key_env")
    if "#" in address:
        raise ValueError("a fragment (what stands behind `#`) is never sent to a server; leave it out")
    if _VARIABLE.search(address.partition("?")[0]):
        raise ValueError("${...} may stand for a value of the query only")
    for name, value in _parameters(parts.query):
        if "key" in name.lower() and not _VARIABLE.fullmatch(value):
            raise ValueError(
                "a key does not belong into base_url; name its variable in api_key_env, or where the server wants it "
                f"in the query, write {name}=${{NAME_OF_THE_VARIABLE}}"
            )
    path, mark, query = address.partition("?")
    return path.rstrip("/") + (mark + query if query else "")


def public_address(address: str) -> str:
    """The address with what may be a secret hidden; the name of a variable is none."""
    path, mark, query = address.partition("?")
    return path + mark + "&".join(_public(item) for item in query.split("&"))


def _public(item: str) -> str:
    name, mark, value = item.partition("=")
    is_plain = unquote_plus(name).lower() in _PLAIN_NAMES or _VARIABLE.fullmatch(value) is not None
    if not mark:
        # A query such as `?abc` is all value.
        return HIDDEN if name else ""
    return f"{name}={value if is_plain else HIDDEN}"


def has_hidden_values(address: str) -> bool:
    """Whether an address was stored without its secrets, so that it cannot be used."""
    return HIDDEN in address.partition("?")[2]


def variables_in(text: str) -> list[str]:
    """Names of the environment variables that a text refers to as `${NAME}`."""
    return _VARIABLE.findall(text)


def filled(text: str, variables: Mapping[str, str]) -> str:
    """The text with the values of its variables; one that has none stands for itself."""
    return _VARIABLE.sub(lambda match: variables.get(match[1], match[0]), text)


def split_address(address: str | None, variables: Mapping[str, str]) -> tuple[str | None, str]:
    """The address without its query, and the query with the values of its variables."""
    if address is None:
        return None, ""
    path, _, query = address.partition("?")
    return path, filled(query, {name: quote(value, safe="") for name, value in variables.items()})


def secret_values(address: str | None) -> list[str]:
    """What a query holds that may be a secret, as it is sent and decoded."""
    query = (address or "").partition("?")[2]
    found = []
    for item in query.split("&"):
        name, mark, value = item.partition("=")
        if unquote_plus(name).lower() not in _PLAIN_NAMES and not _VARIABLE.fullmatch(value):
            found += [value if mark else name, unquote_plus(value if mark else name)]
    return found


def _parameters(query: str) -> list[tuple[str, str]]:
    return parse_qsl(query, keep_blank_values=True)


def is_local(base_url: str | None) -> bool:
    """Whether an address is on this machine or a private network, where the user holds the weights."""
    if base_url is None:
        return False
    host = urlsplit(base_url).hostname or ""
    if host == "localhost" or host.endswith((".localhost", ".local", ".internal", ".lan")):
        return True
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return "." not in host  # a bare name, as between containers
    return address.is_private or address.is_loopback
