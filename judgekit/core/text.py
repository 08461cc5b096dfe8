"""Small rules that everything else relies on: texts, ids, dates, and the one byte form of a JSON value."""

import hashlib
import json
import re
import unicodedata
from collections.abc import Collection, Mapping, Sequence
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any


def clean_text(text: str) -> str:
    """The same text with lone surrogates replaced by U+FFFD, so that it can always be written as UTF-8."""
    if text.isascii():
        return text
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        # A pair that was decoded as two halves is put together first; what is still alone is replaced.
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text


_UNSEEN = frozenset({"Cc", "Cf", "Zs", "Zl", "Zp"})
_FILLERS = frozenset("\u034f\u115f\u1160\u2800\u3164\uffa0")
"""Letters, signs and marks that show nothing."""


def is_blank(text: str) -> bool:
    """Whether a text shows nothing: white space, fillers, and control and format characters show nothing."""
    return not text.strip() or all(map(_is_unseen, text))


def _is_unseen(char: str) -> bool:
    return char.isspace() or char in _FILLERS or unicodedata.category(char) in _UNSEEN


MOST_OF_CELL = 32_000
"""Characters of a cell of a CSV; a spreadsheet program cuts what is longer than 32,767 and breaks the row."""

_FORMULA = re.compile(r"\s*[=+\-@\uff1d\uff0b\uff0d\uff20\t\r]")
_NUMBER = re.compile(r"[+-]?\d+([.,]\d+)*")


def spreadsheet_cell(text: str) -> str:
    """The text as a cell that a spreadsheet program shows: cut if it is too long, and with a `'` if it would be run.

    A plain number stays. Control characters must be gone, since some programs skip them and run what follows.
    """
    if len(text) > MOST_OF_CELL:
        text = f"{text[:MOST_OF_CELL]} [cut: {len(text) - MOST_OF_CELL} more characters]"
    return f"'{text}" if _FORMULA.match(text) and not _NUMBER.fullmatch(text) else text


def canonical_id(value: object) -> object:
    """An id as compared: whole numbers become their digits, text is NFC; `7` equals `"7"`, `"07"` does not.

    Other types are handed on unchanged, so that the model's own check names them.

    Raises:
        ValueError: true, false, or a text with nothing in it.
    """
    if isinstance(value, str):
        if not value or value.isspace():
            raise ValueError("an id is empty")
        return value if value.isascii() else unicodedata.normalize("NFC", clean_text(value))
    if isinstance(value, bool):
        raise ValueError("an id is text or a whole number, found true/false")
    if isinstance(value, int):
        return str(value)
    return value


def are_plain_ids(ids: Collection[object]) -> bool:
    """Whether ids are texts without white space that are compared as they are, and none is empty; False if in doubt."""
    try:
        text = "".join(ids)  # type: ignore[arg-type]  # it says what is not text
    except TypeError:
        return False
    return text.isascii() and all(ids) and (not ids or text.split() == [text])


def canonical_ids(ids: Sequence[object]) -> Sequence[str]:
    """Ids as compared, see `canonical_id`; of other types than text and numbers nothing is said.

    Raises:
        ValueError: one is empty, true or false.
    """
    if are_plain_ids(ids):
        return ids  # type: ignore[return-value]  # all are texts
    return [canonical_id(one) for one in ids]  # type: ignore[misc]


def nfc(text: str) -> str:
    """The text in Unicode normal form C; ASCII, the common case, is handed back at once."""
    return text if text.isascii() else unicodedata.normalize("NFC", text)


def normalise_path(path: str) -> str:
    r"""The path as compared: NFC, `\` read as `/`, a leading `./` dropped; case counts."""
    return nfc(path).replace("\\", "/").removeprefix("./")


def in_words(seconds: float) -> str:
    """`3 h`, `5 min` or `20 s`."""
    for size, unit in ((86400, "days"), (3600, "h"), (60, "min")):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds:.3g} s"


_CANONICAL = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def canonical_json(value: Any) -> bytes:
    """Sorted keys, no white space, UTF-8, strict (no NaN): equal values give equal bytes.

    Raises:
        ValueError: the value holds NaN or an infinity.
    """
    return _CANONICAL.encode(value).encode("utf-8", "surrogatepass")


def canonical_sha256(value: Any) -> str:
    """SHA-256 of the canonical JSON, hexadecimal."""
    return hashlib.sha256(canonical_json(value)).hexdigest()


def instant_of(text: str) -> datetime:
    """The instant that an ISO 8601 date or date-time names. A date is its midnight, no zone counts as UTC.

    Raises:
        ValueError: it is neither.
    """
    try:
        moment = datetime.fromisoformat(text.strip())
    except ValueError:
        raise ValueError(
            f"expected an ISO 8601 date such as 2025-03-09, or a date with a time, found {text[:40]!r}"
        ) from None
    return moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)


def hash_of_messages(messages: Sequence[Mapping[str, str]]) -> str:
    """SHA-256 over role, length and text of every message, hexadecimal.

    Args:
        messages: each with `role` and `content`.
    """
    digest = hashlib.sha256()
    if messages and messages[0]["role"] == "system":
        digest, messages = _hash_of(messages[0]["content"]).copy(), messages[1:]
    for message in messages:
        _feed(digest, message["role"], message["content"])
    return digest.hexdigest()


def _feed(digest: "hashlib._Hash", role: str, text: str) -> None:
    content = text.encode("utf-8", "surrogatepass")
    digest.update(f"{role} {len(content)}\n".encode())
    digest.update(content)


@lru_cache(maxsize=64)
def _hash_of(instructions: str) -> "hashlib._Hash":
    """The hash after the instructions, which all requests of a wording begin with."""
    digest = hashlib.sha256()
    _feed(digest, "system", instructions)
    return digest
