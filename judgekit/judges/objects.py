"""Objects in a text: where they begin and end, which of them holds a verdict, and what it says.

Broken JSON is mended only in ways that cannot change what it says.
"""

import json
import re
import unicodedata
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NoReturn

from judgekit.core.components import Judge
from judgekit.core.judgments import Verdict, VerdictError

BRACE = re.compile(r"[{}]")
BRACE_OR_STRING = re.compile(r'[{}]|"(?:[^"\\]|\\.)*+(?:"|\Z)', re.DOTALL)
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
    raise VerdictError("invalid", f"the reply holds {name}, which is not a number")


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


@dataclass(frozen=True, slots=True)
class Found:
    """A decoded object, the text it was read from, and how."""

    payload: Mapping[str, Any]
    source: str
    path: str


def top_level_spans(text: str) -> Iterator[tuple[int, int]]:
    """Start and end of balanced `{...}` outside any other; braces inside JSON strings do not count.

    Raises:
        VerdictError: braces do not pair, so that an object may be a part of something else.
    """
    depth = start = position = 0
    while mark := (BRACE_OR_STRING if depth else BRACE).search(text, position):
        position = mark.end()
        if mark[0] == "{":
            start = start if depth else mark.start()
            depth += 1
        elif mark[0] == "}":
            if not depth:
                raise VerdictError("invalid", "the reply closes an object that was not opened")
            depth -= 1
            if not depth:
                yield start, position
    if depth:
        raise VerdictError("invalid", "the reply holds an object that is not closed")


def verdict_object(span: str, judge: Judge) -> Found | None:
    """A balanced span as an object with a verdict; None if it is something else, such as `{a, b}`.

    Raises:
        VerdictError: the span may hold a verdict, but says nothing certain.
    """
    decisive = judge.decisive_key.casefold()
    is_mentioned = decisive in span.casefold()
    if not is_mentioned and '"' not in span and "'" not in span:
        return None
    how = ""
    try:
        payload = decode(span)
    except ValueError:
        if not is_mentioned:
            raise VerdictError("invalid", "an object of the reply is not valid JSON") from None
        payload, how = _mend(span, judge)
    if decisive in map(fold, payload):
        return Found(payload, span, how)
    if how or _holds_deeper(payload, decisive):
        raise VerdictError("invalid", f"{judge.decisive_key!r} is inside another object of the reply")
    return None


def _holds_deeper(payload: Mapping[str, Any], key: str) -> bool:
    """Whether a nested object gives the key a value; a schema, whose value is an object, does not."""
    waiting: list[Any] = [payload]
    while waiting:
        value = waiting.pop()
        if isinstance(value, dict):
            if any(fold(name) == key and not isinstance(item, dict) for name, item in value.items()):
                return True
            waiting.extend(value.values())
        elif isinstance(value, list):
            waiting.extend(value)
    return False


def read_object(found: Found, judge: Judge, asked: Collection[str]) -> tuple[Verdict, str]:
    """The verdict of a decoded object, whose keys may be written in another case.

    Returns:
        The verdict, and what had to be read with good will, as a part of the parse path.
    """
    payload = found.payload
    names = {*judge.verdict_keys, judge.decisive_key, *asked}
    known: dict[str, str] = {}
    named: dict[str, Any] = {}
    mended = ""
    for key, value in payload.items():
        name = key
        if key not in names:
            known = known or {name.casefold(): name for name in names}
            name = known.get(fold(key), key)
        if name in named:
            raise VerdictError("invalid", f"{name!r} comes twice in the reply, in different spelling")
        if name != key:
            mended = "+keys"
            if key.lower() != name.lower():
                raise VerdictError("invalid", f"the reply has {key[:40]!a} for {name!r}")
        if name in asked and found.path.endswith("+repaired") and not _stands(found.source, key, value):
            raise VerdictError("invalid", f"{name!r} cannot be read without guessing")
        named[name] = value
    if judge.decisive_key not in named:
        if "properties" in payload and "type" in payload:
            raise VerdictError("invalid", "the reply repeats the JSON Schema instead of filling it in")
        raise VerdictError("invalid", f"the reply has no {judge.decisive_key!r}")
    _settle_optional(named, judge, asked)
    if not judge.kind.is_plain(named[judge.decisive_key]):
        mended += "+text"
    return judge.read_verdict(named), mended


def _settle_optional(named: dict[str, Any], judge: Judge, asked: Collection[str]) -> None:
    """Drop optional keys that were not asked for; the others must be there."""
    for name in judge.optional_keys:
        if name not in asked:
            named.pop(name, None)
        elif name not in named:
            raise VerdictError("invalid", f"the reply has no {name!r}")


def _mend(span: str, judge: Judge) -> tuple[Mapping[str, Any], str]:
    """A span as an object, mended as little as it needs, and how."""
    plain = _without(_TRAILING_COMMA, _without(_COMMENT, span))
    key = judge.decisive_key.casefold()
    if plain.casefold().count(key) != span.casefold().count(key):
        raise VerdictError("invalid", f"{judge.decisive_key!r} is in a comment")
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
        raise VerdictError("invalid", f"an object with {judge.decisive_key!r} is not valid JSON")
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
    """Last resort, on a balanced object only: its members one by one, if commas or quotes are missing.

    What decides must be in the text as valid JSON: the decisive key is named once only, and it and every list has a
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
    return found if all(_stands(text, key, item) for key, item in deciding.items()) else None


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


def _stands(text: str, key: str, value: object) -> bool:
    """Whether the text names the key once, with the value as valid JSON."""
    places = list(re.finditer(rf"(?<!\w){re.escape(key)}[\"']?\s*:\s*", text, re.IGNORECASE))
    if len(places) != 1:
        return False
    found, _ = _value(text, places[0].end(), len(text))
    return type(found) is type(value) and found == value
