"""Paths of fields: `a.b[0].c` names a value, `a.b[*].c` all of them.

A key stands as it is, after a dot unless it is the first. A key that is empty, has one of `.`, `[`, `]`, `"` in it or
a character that cannot be printed is written as a JSON text in brackets: `totals["net.eur"]`, `["a.b"].c`.
"""

import json
import re
from collections.abc import Iterable
from functools import lru_cache

Step = str | int | None
"""A key, an index, or None for any index."""

_DECODER = json.JSONDecoder()
_NOT_PLAIN = re.compile(r'[.\[\]"]')
_PLAIN_KEY = re.compile(r'[^.\[\]"]+')
_INDEX = re.compile(r"\[(\*|0|[1-9][0-9]*)\]")


@lru_cache(maxsize=8192)
def extend(path: str, step: Step) -> str:
    """The path of a value one step below `path`; the path of the whole object is empty.

    Raises:
        ValueError: a key that is no text.
    """
    if step is None:
        return f"{path}[*]"
    if isinstance(step, int):
        return f"{path}[{step}]"
    if not isinstance(step, str):
        raise ValueError(f"expected texts as keys, found {step!r}")
    if not step or not step.isprintable() or _NOT_PLAIN.search(step):
        return f"{path}[{json.dumps(step, ensure_ascii=False)}]"
    return f"{path}.{step}" if path else step


def write_path(steps: Iterable[Step]) -> str:
    """The text of a path."""
    path = ""
    for step in steps:
        path = extend(path, step)
    return path


def parse_path(text: str) -> tuple[Step, ...]:
    """The steps of a path.

    Raises:
        ValueError: the text is no path; says where.
    """
    steps: list[Step] = []
    position = 0
    while position < len(text) or not steps:
        step, position = _step(text, position, first=not steps)
        steps.append(step)
    if not isinstance(steps[0], str):
        raise ValueError(f"path {text!r} begins with an index, but the whole is an object")
    return tuple(steps)


def _step(text: str, position: int, *, first: bool) -> tuple[Step, int]:
    if text.startswith('["', position):
        try:
            key, position = _DECODER.raw_decode(text, position + 1)
        except ValueError:
            key = None
        if isinstance(key, str) and text.startswith("]", position):
            return key, position + 1
        raise ValueError(f'path {text!r}: a quoted key is not closed with "]')
    index = _INDEX.match(text, position)
    if index is not None:
        return None if index[1] == "*" else int(index[1]), index.end()
    if not first and not text.startswith(".", position):
        raise ValueError(f"path {text!r}: expected '.', '[*]' or an index at {text[position:]!r}")
    key_match = _PLAIN_KEY.match(text, position if first else position + 1)
    if key_match is None:
        raise ValueError(f"path {text!r}: expected a key at {text[position:]!r}")
    return key_match[0], key_match.end()
