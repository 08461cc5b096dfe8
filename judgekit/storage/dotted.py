"""Names with dots, such as `gold.answers`, that lead into nested objects, and with `[]` into lists of them."""

import ast
import json
import warnings
from collections.abc import Iterable, Mapping
from typing import Any

ABSENT = object()
"""Stands for a value that is not there; None is a value."""

EACH = "[]"
"""After a name: each item of a list."""


def look_up(data: Mapping[str, Any], dotted: str) -> Any:
    """The value under a name, taken as a whole first and then part by part; `ABSENT` where there is none.

    A number leads to an item of a list, from 0. A text that is JSON, as in a cell of a CSV file, is entered like what
    it stands for. With `[]` in the name the value is a list: of each item what the rest of the name says, None where
    the item has none.
    """
    if dotted in data:
        return data[dotted]
    if EACH in dotted:
        items = items_of(data, dotted)
        if items is ABSENT:
            return ABSENT
        rest = dotted.rpartition(EACH)[2].removeprefix(".")
        found = [part_of(item, rest) for item in items]
        return ABSENT if items and all(value is ABSENT for value in found) else [_given(value) for value in found]
    return _walked(data, dotted)


def items_of(data: Mapping[str, Any], dotted: str) -> Any:
    """The items that the last `[]` of a name stands for, as one list; `ABSENT` where there are none."""
    first, *rest = dotted.split(EACH)[:-1]
    found = look_up(data, first)
    items = [found] if found is not ABSENT and found is not None else []
    for name in [*rest, None]:
        items = [inner for item in items for inner in _as_items(item)]
        if name is None:
            break
        items = [part_of(item, name.removeprefix(".")) for item in items]
    return ABSENT if found is ABSENT or found is None else items


def part_of(item: Any, dotted: str) -> Any:
    """What a name leads to inside an item of a list; the item itself for the name ""."""
    if not dotted:
        return item
    item = opened(item, "{")
    return look_up(item, dotted) if isinstance(item, Mapping) else _walked(item, dotted)


def field_heads(names: Iterable[str]) -> set[str]:
    """The fields that dotted names begin with."""
    return {name.partition(".")[0].partition(EACH)[0] for name in names}


def _walked(value: Any, dotted: str) -> Any:
    for part in dotted.split("."):
        value = opened(value, "[{")
        if isinstance(value, list) and part.isdecimal() and int(part) < len(value):
            value = value[int(part)]
        elif isinstance(value, Mapping) and part in value:
            value = value[part]
        else:
            return ABSENT
    return value


def _given(value: Any) -> Any:
    return None if value is ABSENT else value


def _as_items(value: Any) -> list[Any]:
    value = opened(value, "[{")
    if value is ABSENT or value is None or value == "":
        return []
    return value if isinstance(value, list) else [value]


def opened(value: Any, marks: str) -> Any:
    """The object or list that a text holds as JSON, or as Python prints it; any other value as it is."""
    if not isinstance(value, str) or not value.lstrip().startswith(tuple(marks)):
        return value
    found = value_in(value)
    return value if found is ABSENT else found


def value_in(text: str) -> Any:
    """The value that a text holds as JSON, or as Python's `str` prints it; `ABSENT` where it is neither."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        pass
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # what Python says of escapes in texts that are no literals
            return ast.literal_eval(text.strip())
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        return ABSENT
