"""Broken JSON mended only in ways that cannot change what it says: the lenient end of the parser."""

import json
import re
import unicodedata
from collections.abc import Mapping
from typing import Any, NoReturn

from judgekit.core.components import Judge
from judgekit.core.judgments import VerdictError

# An open string or comment reaches to the end, so that no position is scanned twice.
_STRING = r'"(?:[^"\\]|\\.)*+(?:"|\Z)' + r"|'(?:[^'\\]|\\.)*+(?:'|\Z)"
_COMMENT = re.compile(_STRING + r"|(//[^\r\n{}]*|#[^\r\n{}]*|/\*[^{}]*?(?:\*/|(?=[{}])|\Z))", re.DOTALL)
"""Group 1: a comment, which ends before a brace, since it may hold no object."""
_TRAILING_COMMA = re.compile(_STRING + r"|(,)(?=\s*[}\]])", re.DOTALL)
_DOTS = re.compile(_STRING + r"|(\.\.\.|…)", re.DOTALL)
_PYTHON = re.compile(_STRING + r"|\b(?:True|False|None)\b", re.DOTALL)
_PYTHON_WORDS = {"True": "true", "False": "false", "None": "null"}
_PYTHON_ESCAPE = re.compile(r"\\'|\\x([0-9a-fA-F]{2})|\\.|\"", re.DOTALL)
_ESCAPE = re.compile(r'\\(?:(["\\/bfnrt]|u[0-9a-fA-F]{4})|(.)|$)', re.DOTALL)
_NEXT_MEMBER = re.compile(r"\s*(?:[}\s]*\Z|,?\s*[\"'][A-Za-z_]+[\"']\s*:|,\s*[A-Za-z_]+\s*:)")
_WHOLE = re.compile(r"-?[0-9]+\.0+")
_REPAIRABLE_CHARACTERS = 20_000
"""Longer objects are not handed to json-repair, whose time grows faster than their length."""


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise VerdictError("invalid", "a key comes twice in the reply")
    return found


def _no_constant(name: str) -> NoReturn:
    raise VerdictError("invalid", f"the reply holds {name}, which is no number")


def _plain_number(text: str) -> float | str:
    """A number; what is whole only by rounding or an exponent (4.9999999999999999999, 50e-1) stays text."""
    value = float(text)
    return text if value.is_integer() and not _WHOLE.fullmatch(text) else value


_STRICT = json.JSONDecoder(object_pairs_hook=_unique, parse_constant=_no_constant, parse_float=_plain_number)
_LENIENT = json.JSONDecoder(
    object_pairs_hook=_unique, parse_constant=_no_constant, parse_float=_plain_number, strict=False
)


def decode(text: str, *, lenient: bool = False) -> Any:
    """JSON with duplicate keys and NaN refused; they are verdicts that say two things or nothing."""
    try:
        return (_LENIENT if lenient else _STRICT).decode(text)
    except RecursionError:
        raise ValueError("nested too deeply") from None


def fold(key: str) -> str:
    """A key without case, outer white space and compatibility forms: what looks like it is equal to it."""
    return unicodedata.normalize("NFKC", key).strip().casefold()


def mend(span: str, judge: Judge) -> tuple[Mapping[str, Any], str]:
    """A span as an object, mended as little as it needs, and how."""
    plain = _without(_TRAILING_COMMA, _without(_COMMENT, span))
    key = judge.decisive_key.casefold()
    if plain.casefold().count(key) != span.casefold().count(key):
        raise VerdictError("invalid", f"{judge.decisive_key!r} stands in a comment")
    for how, text in (
        ("+lenient", plain),
        ("+escapes", _legal_escapes(plain)),
        ("+python", _legal_escapes(_from_python(plain))),
    ):
        try:
            return decode(text, lenient=True), how
        except ValueError:
            continue
    if any(match[1] for match in _DOTS.finditer(span)):
        raise VerdictError("invalid", "the object is abbreviated with '...', so its lists are incomplete")
    repaired = _repaired(span, judge) if len(span) <= _REPAIRABLE_CHARACTERS else None
    if repaired is None:
        raise VerdictError("invalid", f"an object with {judge.decisive_key!r} is no valid JSON")
    return repaired, "+repaired"


def _without(pattern: re.Pattern[str], text: str) -> str:
    """The text without what the pattern's group matches; strings stay."""
    return pattern.sub(lambda match: "" if match[1] else match[0], text)


def _legal_escapes(text: str) -> str:
    """Backslashes that start no JSON escape are doubled; the others stay."""
    return _ESCAPE.sub(lambda match: match[0] if match[1] else "\\" + match[0], text)


def _from_python(text: str) -> str:
    """Python's quotes and words as JSON's; nothing is evaluated."""

    def escape(match: re.Match[str]) -> str:
        if match[1]:
            return "\\u00" + match[1]
        return {"\\'": "'", '"': '\\"'}.get(match[0], match[0])

    def token(match: re.Match[str]) -> str:
        if match[0].startswith("'"):
            return '"' + _PYTHON_ESCAPE.sub(escape, match[0][1:-1]) + '"'
        return _PYTHON_WORDS.get(match[0], match[0])

    return _PYTHON.sub(token, text)


def _repaired(text: str, judge: Judge) -> Mapping[str, Any] | None:
    """Last resort, on a balanced object only: json-repair, for what stands around the values that decide.

    json-repair guesses (`4 out of 5` becomes 4, the last of two keys wins, lists are closed), so the decisive
    key may be named once only, and it and every list must stand in the text as valid JSON of the same value.
    """
    if len(re.findall(re.escape(judge.decisive_key), text, re.IGNORECASE)) != 1:
        return None
    import json_repair

    try:
        value = json_repair.loads(text, skip_json_loads=True)
    except Exception:  # noqa: BLE001  # guesswork that fails is no verdict, and must not end a run
        return None
    if not isinstance(value, dict) or judge.decisive_key.casefold() not in map(fold, value):
        return None
    known = {name.casefold() for name in judge.verdict_keys}
    deciding = {key: item for key, item in value.items() if fold(key) in known and not isinstance(item, str)}
    deciding |= {key: item for key, item in value.items() if fold(key) == judge.decisive_key.casefold()}
    return value if all(stands(text, key, item) for key, item in deciding.items()) else None


def stands(text: str, key: str, value: object) -> bool:
    """Whether the text names the key once, with the value as valid JSON."""
    places = list(re.finditer(rf"(?<!\w){re.escape(key)}[\"']?\s*:\s*", text, re.IGNORECASE))
    if len(places) != 1:
        return False
    try:
        found, end = _LENIENT.raw_decode(text, places[0].end())
    except (ValueError, RecursionError):
        return False
    return type(found) is type(value) and found == value and _NEXT_MEMBER.match(text, end) is not None
