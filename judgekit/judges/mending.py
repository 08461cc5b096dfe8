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
_NEXT_MEMBER = re.compile(r"\s*+(?:[}\s]*+\Z|,?\s*[\"'][A-Za-z_]+[\"']\s*:|,\s*[A-Za-z_]+\s*:)")
_WHOLE = re.compile(r"-?[0-9]+\.0+")
_SEPARATORS = re.compile(r"[\s,;]*+")
_MEMBER = re.compile(r"""[\s,;]*+(?:"(?P<quoted>[^"\\\n]{1,80})"|["']?(?P<plain>[A-Za-z_][\w-]{0,79})["']?)\s*+:\s*+""")
_BRACKET = re.compile(r"[{}\[\]]")
_BROKEN = object()


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
    repaired = _pieced_together(span, judge)
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


def _pieced_together(text: str, judge: Judge) -> Mapping[str, Any] | None:
    """Last resort, on a balanced object only: its members one by one, where commas or quotes are missing.

    What decides must stand in the text as valid JSON: the decisive key is named once only, and it and every list has a
    whole value. Only a text may be read up to the next key of the judge.
    """
    if len(re.findall(re.escape(judge.decisive_key), text, re.IGNORECASE)) != 1:
        return None
    names = (*judge.verdict_keys, *judge.optional_keys, judge.decisive_key)
    known = {name.casefold() for name in names}
    either = "|".join(map(re.escape, names))
    head = re.compile(rf"(?<![^\s,;{{\"'])(?:([\"'])(?:{either})\1|(?:{either}))\s*+:", re.IGNORECASE)
    found: dict[str, Any] = {}
    position, end = _inside(text)
    while match := _MEMBER.match(text, position, end):
        key = match["quoted"] or match["plain"]
        value, position = _value(text, match.end(), end)
        if value is _BROKEN:
            # Braces may belong to an object that holds a verdict of its own.
            begin, following = match.end(), head.search(text, match.end(), end)
            position = following.start() if following else end
            value = text[begin:position]
            is_text = fold(key) in known or value[:1] in ("'", '"')
            if not is_text or fold(key) == judge.decisive_key.casefold() or _BRACKET.search(value):
                return None
            value = _unquoted(value)
        if key in found:
            return None
        found[key] = value
    is_whole = _SEPARATORS.match(text, position, end)
    if is_whole is None or is_whole.end() != end or judge.decisive_key.casefold() not in map(fold, found):
        return None
    deciding = {key: item for key, item in found.items() if fold(key) in known and not isinstance(item, str)}
    deciding |= {key: item for key, item in found.items() if fold(key) == judge.decisive_key.casefold()}
    return found if all(stands(text, key, item) for key, item in deciding.items()) else None


def _inside(text: str) -> tuple[int, int]:
    """Where the members of an object begin and end, in as many braces as there are around it."""
    start, end = 1, len(text) - 1
    while start < end and text[start] == "{" and text[end - 1] == "}":
        start, end = start + 1, end - 1
    return start, end


def _value(text: str, start: int, end: int) -> tuple[Any, int]:
    """A valid value that another member or the end follows, and where it ends; `_BROKEN` for anything else."""
    try:
        value, stop = _LENIENT.raw_decode(text, start)
    except (ValueError, RecursionError):
        return _BROKEN, start
    is_followed = stop <= end and _NEXT_MEMBER.match(text, stop) is not None
    return (value, stop) if is_followed else (_BROKEN, start)


def _unquoted(text: str) -> str:
    """A text without the commas, blanks and one pair of quotes around it."""
    text = text.strip(" \t\r\n,;")
    is_quoted = len(text) > 1 and text[0] == text[-1] and text[0] in "\"'"
    return text[1:-1] if is_quoted else text


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
