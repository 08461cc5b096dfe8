"""Addresses of servers, and the variables and secrets that their queries and headers hold."""

import re
from collections.abc import Mapping
from urllib.parse import parse_qsl, quote, unquote_plus, urlsplit

HIDDEN = "***"
"""Stands for a secret wherever an address is stored or shown."""

_VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")
_PLAIN_NAMES = frozenset({"api-version", "api_version", "version", "v", "deployment", "model", "region", "location"})
"""Parameters of a query whose values are shown; the value of any other may be a secret."""


def check_address(address: str) -> str:
    """A base_url as it is used: no slash at the end of its path.

    Raises:
        ValueError: it is no address, or holds what does not belong there.
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
