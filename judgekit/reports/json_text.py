"""JSON for a terminal or the log of a CI job: the same content, of which nothing can act on what shows it."""

import json
import re
from typing import Any

from judgekit.reports.figures import COMMAND_MARK, is_unprintable


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
    return re.sub(r"[^\x20-\x7e\n]", _escaped, text)


def _escaped(match: re.Match[str]) -> str:
    return json.dumps(match[0])[1:-1] if is_unprintable(match[0]) else match[0]
