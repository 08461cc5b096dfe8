"""Objects in a text: where they begin and end, which of them holds a verdict, and what it says."""

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from judgekit.core.components import Judge
from judgekit.core.judgments import Verdict, VerdictError
from judgekit.judges.mending import decode, fold, mend, stands

_BRACE = re.compile(r"[{}]")
_BRACE_OR_STRING = re.compile(r'[{}]|"(?:[^"\\]|\\.)*+(?:"|\Z)', re.DOTALL)


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
    while mark := (_BRACE_OR_STRING if depth else _BRACE).search(text, position):
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
    """A balanced span as an object with a verdict; None where it is something else, such as `{a, b}`.

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
            raise VerdictError("invalid", "an object of the reply is no valid JSON") from None
        payload, how = mend(span, judge)
    if decisive in map(fold, payload):
        return Found(payload, span, how)
    if how or _holds_deeper(payload, decisive):
        raise VerdictError("invalid", f"{judge.decisive_key!r} stands inside another object of the reply")
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
    known = {name.casefold(): name for name in (*judge.verdict_keys, judge.decisive_key, *asked)}
    named: dict[str, Any] = {}
    mended = ""
    for key, value in payload.items():
        name = known.get(fold(key), key)
        if name in named:
            raise VerdictError("invalid", f"{name!r} comes twice in the reply, in different spelling")
        if name != key:
            mended = "+keys"
            if key.lower() != name.lower():
                raise VerdictError("invalid", f"the reply has {key[:40]!a} for {name!r}")
        if name in asked and found.path.endswith("+repaired") and not stands(found.source, key, value):
            raise VerdictError("invalid", f"{name!r} cannot be read without guessing")
        named[name] = value
    if judge.decisive_key not in named:
        if "properties" in payload and "type" in payload:
            raise VerdictError("invalid", "the reply repeats the JSON Schema instead of filling it in")
        raise VerdictError("invalid", f"the reply has no {judge.decisive_key!r}")
    _settle_optional(named, judge, asked)
    if isinstance(named[judge.decisive_key], str):
        mended += "+text"
    return judge.read_verdict(named), mended


def _settle_optional(named: dict[str, Any], judge: Judge, asked: Collection[str]) -> None:
    """Drop optional keys that were not asked for; the others must be there."""
    for name in judge.optional_keys:
        if name not in asked:
            named.pop(name, None)
        elif name not in named:
            raise VerdictError("invalid", f"the reply has no {name!r}")
