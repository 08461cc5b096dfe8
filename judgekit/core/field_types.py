"""What fields of data files may hold: texts, ids, lists and objects, with absent and empty kept apart."""

import json
import math
from typing import Annotated, Any, TypeVar

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict

from judgekit.core.text import canonical_id, clean_text, instant_of


def _text(value: object) -> object:
    """A missing float (NaN) in a text field is a missing text, never the word 'nan'."""
    if isinstance(value, str):
        return value if value.isascii() else clean_text(value)
    return None if isinstance(value, float) and math.isnan(value) else value


def _question(value: object) -> object:
    """A missing question is a blank one; 0, false and the like are not a question and stay wrong."""
    text = _text(value)
    return "" if text is None else text


def _optional_list(value: object) -> object:
    """NaN stands for an absent list, never for an empty one; a text is refused, so that it is not read by letters."""
    if isinstance(value, float) and math.isnan(value):
        return None
    if isinstance(value, str):
        raise ValueError(f"expected a list, found the text {value[:40]!r}; write it as a list of one")
    return value


def absent_is_empty(value: object) -> object:
    """A list in which an absent one counts as empty."""
    found = _optional_list(value)
    return () if found is None else found


def _one_or_more(value: object) -> object:
    """A list in which one text counts as a list of one, and a blank one as none."""
    if isinstance(value, str):
        return (value,) if value.strip() else ()
    return absent_is_empty(value)


def _arguments(value: object) -> object:
    """Arguments of a tool call as an object; a text that is no JSON object is kept, since the system wrote it so."""
    if not isinstance(value, str):
        return _plain(value)
    try:
        found = json.loads(value) if value.strip() else {}
    except (ValueError, RecursionError):
        found = None
    return _plain(found) if isinstance(found, dict) else clean_text(value)


def _date(value: str | None) -> str | None:
    """A blank date is none; any other has to be one, since dates are compared."""
    if value is None or not value.strip():
        return None
    instant_of(value)
    return value


DEEPEST = 100
"""Levels of nesting in metadata; what is deeper could be read but not written again."""


def _plain(value: object, depth: int = 0) -> object:
    """Metadata as JSON can hold it: lone surrogates replaced, NaN and infinities made null.

    Raises:
        ValueError: nested too deeply, a key that is not a text, or a value that JSON does not have.
    """
    if value is None or isinstance(value, bool | int):
        return value
    if isinstance(value, str):
        return clean_text(value)
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if depth > DEEPEST:
        raise ValueError(f"nested deeper than {DEEPEST} levels")
    if isinstance(value, dict):
        if not all(isinstance(key, str) for key in value):
            raise ValueError("expected texts as keys")
        return {clean_text(key): _plain(item, depth + 1) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item, depth + 1) for item in value]
    raise ValueError(f"expected values that JSON has, found {type(value).__name__}")


Id = Annotated[str, BeforeValidator(canonical_id)]
"""An id: text or whole number in the file, compared as text after NFC."""

Text = Annotated[str, BeforeValidator(_text)]
OptionalText = Annotated[str | None, BeforeValidator(_text)]
Question = Annotated[str, BeforeValidator(_question)]
Date = Annotated[OptionalText, AfterValidator(_date)]
Arguments = Annotated[dict[str, Any] | str | None, BeforeValidator(_arguments)]
"""Of a tool call: an object, or a text that is none."""

T = TypeVar("T")
ListOf = Annotated[tuple[T, ...], BeforeValidator(absent_is_empty)]
OptionalListOf = Annotated[tuple[T, ...] | None, BeforeValidator(_optional_list)]
OptionalIds = OptionalListOf[Id]
Texts = ListOf[Text]
TextOrTexts = Annotated[tuple[Text, ...], BeforeValidator(_one_or_more)]
Object = Annotated[dict[str, Any], BeforeValidator(_plain)]
"""A JSON object as it stands, with NaN and infinities made null."""
Metadata = Object


class Record(BaseModel):
    """Base of everything read from data files: frozen, unknown fields refused."""

    model_config = ConfigDict(frozen=True, extra="forbid", str_strip_whitespace=False)
