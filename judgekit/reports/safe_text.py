"""Foreign text made safe for what shows it: a terminal, the log of a CI job, JSON, a page, a picture."""

import html
import json
import re
import unicodedata
from typing import Any

COMMAND_MARK = re.compile(r"##(?=\[|vso\[|teamcity\[)|(?<![\w:>)\]])::(?=[A-Za-z])", re.IGNORECASE)
"""What begins a command to GitHub Actions, Azure Pipelines or TeamCity in the log of a job."""

_UNPRINTABLE = frozenset({"Cc", "Cf", "Cs", "Co", "Zl", "Zp"})
_UNSAFE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff\ufdd0-\ufdef\ufffe\uffff]",
)
"""Control characters but tab and line feed, overrides of the writing direction, and what UTF-8 cannot hold."""


def printable(text: str) -> str:
    """The text without what could act on what shows it.

    Control characters and direction marks, which could rewrite a terminal, are replaced; marks that begin a command to
    a CI in its log are parted by a space.
    """
    if "##" in text or "::" in text:
        text = COMMAND_MARK.sub(lambda match: f"{match[0][0]} {match[0][1]}", text)
    if text.isascii() and text.isprintable():
        return text
    return "".join(
        "\ufffd" if character not in "\n\t" and _is_unprintable(character) else character for character in text
    )


def printable_line(text: str) -> str:
    """The text as one printable line, so that a line feed in a name cannot begin a line that nobody wrote."""
    return re.sub(r"[\n\t]", " ", printable(text))


def _is_unprintable(character: str) -> bool:
    """Whether a character is a control character, a direction mark or the like."""
    return unicodedata.category(character) in _UNPRINTABLE


def inert(text: str) -> str:
    """Text for a page without characters that hide, reorder or break what stands around it; each becomes U+FFFD.

    Marks that scripts need, such as joiners and plain direction marks, stay.
    """
    # Nothing unsafe is printable, and to ask that is ten times as quick as to look for it.
    if text.isprintable() or text.replace("\n", "").replace("\t", "").isprintable():
        return text
    return _UNSAFE.sub("\ufffd", text.replace("\r\n", "\n"))


def picture_text(text: str) -> str:
    """Text for an element or attribute of an SVG."""
    return html.escape(printable(text), quote=True)


def json_text(document: Any, *, indent: int | None = None, sort_keys: bool = True) -> str:
    r"""A document as strict JSON; control characters, direction marks and commands to a CI are escaped as `\u....`.

    Args:
        document: dicts, lists, texts, numbers, booleans and None.
        indent: spaces a level; None writes one line.
        sort_keys: whether keys are sorted.

    Returns:
        The text, without a line end after it.
    """
    text = json.dumps(document, ensure_ascii=False, allow_nan=False, indent=indent, sort_keys=sort_keys)
    # A command that begins with colons would have to begin a line, where JSON has a quote.
    text = COMMAND_MARK.sub(lambda match: match[0].replace("##", "\\u0023\\u0023"), text)
    if text.isascii() and "\x7f" not in text:
        return text
    return re.sub(r"[^\x20-\x7e\n]", _escaped_json, text)


def _escaped_json(match: re.Match[str]) -> str:
    return json.dumps(match[0])[1:-1] if _is_unprintable(match[0]) else match[0]
