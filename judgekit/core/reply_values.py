"""Values in a model's reply: read as what they plainly are, or refused with a reason. Nothing is guessed."""

import re
import unicodedata
from collections.abc import Mapping
from typing import Any

from judgekit.core.judgments import VerdictError
from judgekit.core.text import clean_text

_WHOLE_TEXT = re.compile(r"\s*(?:[0-9]{1,6}|-[1-9][0-9]{0,5})(?:\.0{1,9})?\s*")
_FLAGS = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}
_QUOTES = "\"'`\u201c\u201d\u2018\u2019"


def read_score(payload: Mapping[str, Any], key: str, low: int, high: int) -> int:
    """A whole number on the scale; `4.0` and the text `"4"` are 4, everything else is refused.

    Raises:
        VerdictError: missing, wrong type, not whole, or outside low..high.
    """
    value = payload.get(key)
    if isinstance(value, str) and _WHOLE_TEXT.fullmatch(value):
        value = float(value)
    if value is None or isinstance(value, bool) or not isinstance(value, int | float):
        raise VerdictError("invalid", f"{key!r} is {type_name(value)}, expected a whole number {low} to {high}")
    if isinstance(value, float) and not value.is_integer():
        raise VerdictError("invalid", f"{key!r} is {value}, expected a whole number {low} to {high}")
    if not low <= value <= high:
        raise VerdictError("invalid", f"{key!r} is {str(value)[:20]}, outside {low} to {high}")
    return int(value)


def read_flag(payload: Mapping[str, Any], key: str) -> bool:
    """Yes or no: `true` or `false`, or one of the words true, yes, 1, false, no, 0 as text, in any case.

    Raises:
        VerdictError: missing, or anything else; a word of another language is none of these.
    """
    value = payload.get(key)
    if isinstance(value, str):
        value = _FLAGS.get(value.strip().casefold(), value)
    if not isinstance(value, bool):
        raise VerdictError("invalid", f"{key!r} is {type_name(value)}, expected true or false")
    return value


def read_text(payload: Mapping[str, Any], key: str) -> str:
    """A text; missing is blank, since it decides nothing.

    Raises:
        VerdictError: present, but not a text.
    """
    value = payload.get(key)
    if value is None:
        return ""
    if not isinstance(value, str):
        raise VerdictError("invalid", f"{key!r} is {type_name(value)}, expected a text")
    return clean_text(value)


def type_name(value: object) -> str:
    """The type of a decoded value in words, with the beginning of a text."""
    names = {dict: "an object", list: "a list", str: "a text", bool: "true/false", int: "a number", float: "a number"}
    if value is None:
        return "missing or null"
    shown = f" ({value[:40]!r})" if isinstance(value, str) else ""
    return names.get(type(value), type(value).__name__) + shown


def folded_word(text: str) -> str:
    """A word without case, white space around it and one pair of quotes, so that `"On"` is `on`."""
    text = unicodedata.normalize("NFKC", text).strip()
    if len(text) > 1 and text[0] in _QUOTES and text[-1] in _QUOTES:
        text = text[1:-1].strip()
    return " ".join(text.casefold().split())
