"""Names with dots, such as `gold.answers`, that lead into nested objects, and with `[]` into lists of them."""

import ast
import difflib
import json
import warnings
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from pydantic import BaseModel

from judgekit.core.cases import DocumentPlace, Hit, Support
from judgekit.core.errors import InputError, did_you_mean

ABSENT = object()
"""Stands for a value that is not there; None is a value."""

EACH = "[]"
"""After a name: each item of a list."""


def look_up(data: Mapping[str, Any], dotted: str) -> Any:
    """The value under a name, taken as a whole first and then part by part; `ABSENT` if there is none.

    A number leads to an item of a list, from 0. A text that is JSON, as in a cell of a CSV file, is entered like what
    it stands for. With `[]` in the name the value is a list: of each item what the rest of the name says, None if
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
    found = _walked(data, dotted)
    head = dotted.rpartition(".")[0]
    while found is ABSENT and head:  # a name with dots of its own, and what is inside its value
        if head in data:
            found = _walked(data[head], dotted[len(head) + 1 :])
        head = head.rpartition(".")[0]
    return found


def items_of(data: Mapping[str, Any], dotted: str) -> Any:
    """The items that the last `[]` of a name stands for, as one list; `ABSENT` without any."""
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
    """The value that a text holds as JSON, or as Python's `str` prints it; `ABSENT` if it is neither."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        pass
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # what Python says of escapes in texts that are not literals
            return ast.literal_eval(text.strip())
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        return ABSENT


LISTS: dict[str, type[BaseModel]] = {"retrieved": Hit, "gold_supports": Support, "references": DocumentPlace}
"""Fields whose entries have parts that can be mapped."""

NEAR = 0.87
"""From this similarity on, a name that is unknown is taken for a slip."""


class ListParts:
    """The entries of one list field."""

    def __init__(self, head: str, parts: Mapping[str, str]) -> None:
        """Prepare for one file.

        Args:
            head: our field.
            parts: part of an entry -> name in the file.

        Raises:
            InputError: an entry has no such part.
        """
        self._head, self._parts = head, parts
        self._model = LISTS[head]
        self.example = max(parts.values(), key=lambda theirs: EACH in theirs)
        """A name in the file of one of the parts, if one with `[]` is among them."""
        self._keeps_rest = "metadata" in self._model.model_fields
        for part in parts:
            first, _, rest = part.partition(".")
            if first not in self._model.model_fields or (rest and first != "metadata"):
                hint = did_you_mean(first, self._model.model_fields)
                raise InputError(f'"fields" names {f"{head}{EACH}.{part}"!r}, but an entry has no such part{hint}')
        self.taken = {theirs.partition(EACH)[0] for theirs in parts.values()} if self._keeps_rest else set()
        """Names in the file whose values are in the entries as a whole."""

    def entries(self, record: Mapping[str, Any], matched: set[str]) -> Any:
        """The entries of a record; `ABSENT` if it has none of their parts.

        Args:
            record: as it stands in the file.
            matched: takes our names of the parts that it has.

        Raises:
            ValueError: parallel lists of different lengths, or a key that looks like a slip.
        """
        columns = self._columns(record, matched)
        if not columns:
            return ABSENT
        shortest, longest = (pick(columns, key=lambda part: len(columns[part])) for pick in (min, max))
        if len(columns[shortest]) != len(columns[longest]):
            raise ValueError(
                f"{self._parts[longest]} has {len(columns[longest])} entries, "
                f"but {self._parts[shortest]} has {len(columns[shortest])}"
            )
        entries: list[dict[str, Any]] = [{} for _ in columns[shortest]]
        if self._keeps_rest:
            self._add_rest(record, entries)
        for part, values in columns.items():
            first, _, rest = part.partition(".")
            for entry, value in zip(entries, values, strict=True):
                if rest:
                    entry.setdefault("metadata", {})[rest] = value
                else:
                    entry[first] = value
        return entries

    def _columns(self, record: Mapping[str, Any], matched: set[str]) -> dict[str, list[Any]]:
        """Of each part what the entries have."""
        columns = {}
        for part, theirs in self._parts.items():
            value = look_up(record, theirs)
            if value is not ABSENT:
                matched.add(f"{self._head}{EACH}.{part}")
            elif EACH in theirs and (items := items_of(record, theirs)) is not ABSENT:
                value = [None] * len(items)  # they are entries all the same
            if value is not ABSENT and value is not None:
                columns[part] = value if isinstance(value, list) else [value] if value != "" else []
        return columns

    def _add_rest(self, record: Mapping[str, Any], entries: list[dict[str, Any]]) -> None:
        """What the mapping does not name: parts of ours, and metadata."""
        mapped: dict[str, set[str]] = {}
        for theirs in self._parts.values():
            name, each, rest = theirs.rpartition(EACH)
            mapped.setdefault(name + each, set()).add(rest.removeprefix("."))
        for name, taken in mapped.items():
            items = items_of(record, name) if name else []
            if items is ABSENT or len(items) != len(entries):
                continue
            for entry, item in zip(entries, items, strict=True):
                for key, value in _rest_of(item, taken):
                    self._add(entry, key, value)

    def _add(self, entry: dict[str, Any], key: str, value: Any) -> None:
        if key == "metadata" and isinstance(value, Mapping):
            entry.setdefault("metadata", {}).update(value)
        elif key in self._model.model_fields and key != "metadata":
            entry[key] = value
        else:
            near = difflib.get_close_matches(key, self._model.model_fields, n=1, cutoff=NEAR)
            if near:
                raise ValueError(f"unknown key {key!r} in a hit; did you mean {near[0]!r}? Map it or rename it")
            entry.setdefault("metadata", {})[key] = value


def _rest_of(item: Any, taken: set[str]) -> Iterator[tuple[str, Any]]:
    if isinstance(item, Mapping):
        yield from ((str(key), value) for key, value in item.items() if key not in taken)
