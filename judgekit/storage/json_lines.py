"""Where in a JSON text a path stands, so that errors can name a line."""

import json
import re
from collections.abc import Iterator, Sequence

_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[{}\[\],:]|[^\s{}\[\],:"]+', re.DOTALL)

Path = tuple[str | int, ...]


def line_of(text: str, path: Sequence[str | int]) -> int | None:
    """The 1-based line on which the value at `path` starts, or its nearest parent that exists.

    Args:
        text: valid JSON.
        path: keys and indices from the root.
    """
    wanted = tuple(path)
    best: int | None = None
    best_depth = -1
    for place, line in _values(text):
        if best_depth < len(place) <= len(wanted) and place == wanted[: len(place)]:
            best, best_depth = line, len(place)
    return best


def repeated_keys(text: str) -> list[tuple[Path, int, int]]:
    """Path, first and second line of every key that stands twice in one object; parsers keep the last in silence.

    Args:
        text: valid JSON.
    """
    seen: dict[Path, int] = {}
    repeated = []
    for place, line in _values(text):
        if place in seen:
            repeated.append((place, seen[place], line))
            # What stands below belongs to the second value from here on.
            seen = {other: at for other, at in seen.items() if other[: len(place)] != place}
        seen[place] = line
    return repeated


def _values(text: str) -> Iterator[tuple[Path, int]]:
    """Path and line of every value, in the order of the text."""
    stack: list[str | int] = []
    expecting_key: list[bool] = []
    line = 1
    position = 0
    for match in _TOKEN.finditer(text):
        token = match[0]
        line += text.count("\n", position, match.start())
        position = match.start()
        if token in "}]":
            stack.pop()
            expecting_key.pop()
        elif token == ",":
            last = stack[-1]
            if isinstance(last, int):
                stack[-1] = last + 1
            else:
                expecting_key[-1] = True
        elif token != ":":
            if stack and expecting_key[-1]:
                stack[-1] = json.loads(token, strict=False)
                expecting_key[-1] = False
                continue
            yield tuple(stack), line
            if token in "{[":
                stack.append("" if token == "{" else 0)
                expecting_key.append(token == "{")
