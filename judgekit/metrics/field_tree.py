"""Paths of fields, and the rules of single fields as a tree: those of a config, and those of a JSON Schema.

A path such as `a.b[0].c` names a value, `a.b[*].c` all of them. A key stands as it is, after a dot unless it is the
first. A key that is empty, has one of `.`, `[`, `]`, `"` in it or a character that cannot be printed is written as a
JSON text in brackets: `totals["net.eur"]`, `["a.b"].c`.
"""

import json
import re
from collections.abc import Hashable, Iterable, Iterator, Mapping
from functools import lru_cache, reduce
from typing import Any

from judgekit.core.errors import did_you_mean
from judgekit.metrics.field_rules import (
    Comparator,
    DateRule,
    FunctionRule,
    ListRule,
    Rules,
    Unreadable,
    kind_of,
)

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
        ValueError: a key that is not a text.
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
    return reduce(extend, steps, "")


def parse_path(text: str) -> tuple[Step, ...]:
    """The steps of a path.

    Raises:
        ValueError: the text is not a path; says at which place.
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


class FieldNode:
    """What is declared of one place in an object."""

    __slots__ = ("at", "children", "flat", "item", "listing", "rule")

    def __init__(self) -> None:
        self.children: dict[str, FieldNode] = {}
        self.item: FieldNode | None = None
        """Of every item of a list."""
        self.at: dict[int, FieldNode] = {}
        """Of single items; they come before `item`."""
        self.rule: Comparator | None = None
        self.listing: ListRule | None = None
        self.flat = True
        """No set and no aligned list here or below, and no single items: a value is the sum of its leaves."""

    def step(self, step: Step) -> "FieldNode":
        """The node one step below, made if there is none."""
        if step is None:
            self.item = self.item or FieldNode()
            return self.item
        if isinstance(step, int):
            return self.at.setdefault(step, FieldNode())
        return self.children.setdefault(step, FieldNode())

    def finish(self) -> "FieldNode":
        """Let single items inherit from `item`, and mark what is flat; called once, when all rules are there."""
        for node in self.at.values():
            if self.item is not None:
                node.inherit(self.item)
        below = [*self.children.values(), *self.at.values(), *([self.item] if self.item is not None else [])]
        self.flat = self.listing is None and not self.at and all([node.finish().flat for node in below])
        return self

    def inherit(self, other: "FieldNode") -> None:
        """Take over what `other` declares and this does not."""
        if self.rule is None and self.listing is None:
            self.rule, self.listing = other.rule, other.listing
        for key, node in other.children.items():
            self.step(key).inherit(node)
        for index, node in other.at.items():
            self.step(index).inherit(node)
        if other.item is not None:
            self.step(None).inherit(other.item)


PLAIN = FieldNode()
"""Nothing is declared, here or below."""


def plant(rules: Rules, schema: Mapping[str, Any] | None) -> tuple[FieldNode, tuple[str, ...]]:
    """The tree of all rules, and notes on what of the schema is not understood.

    A rule comes before what the schema says of the same place.

    Raises:
        ValueError: a path that is none, or a schema that is none.
    """
    root = FieldNode()
    notes = tuple(_from_schema(root, schema, "$")) if schema is not None else ()
    for path, rule in rules.items():
        node = root
        try:
            for step in parse_path(path):
                node = node.step(step)
        except ValueError as error:
            raise ValueError(f"fields: {error}") from None
        if isinstance(rule, ListRule):
            node.rule, node.listing = None, rule
        else:
            node.rule, node.listing = rule, None
    return root.finish(), notes


class SchemaRule(Comparator):
    """A value of one of the declared types, among the declared values, in the declared format."""

    types: frozenset[str] | None
    values: frozenset[Hashable] | None
    date: DateRule | None

    def read(self, value: Any) -> Hashable:
        kind = kind_of(value)
        if self.types is not None and kind not in self.types and not (kind == "number" and self._is_integer(value)):
            raise Unreadable
        if self.values is not None and (kind, value) not in self.values:
            raise Unreadable
        return self.date.read(value) if self.date is not None else (kind, value)

    def _is_integer(self, value: float) -> bool:
        return self.types is not None and "integer" in self.types and value == int(value)


_DATES = {"date": DateRule(only="date"), "date-time": DateRule(only="date-time")}
_TYPES = ("array", "boolean", "integer", "null", "number", "object", "string")
_UNDERSTOOD = {"type", "format", "properties", "items", "enum"}
_NO_MATTER = {
    *("$schema", "$id", "$anchor", "$comment", "title", "description", "default", "examples", "deprecated"),
    *("readOnly", "writeOnly", "required", "additionalProperties", "unevaluatedProperties"),
}
"""Annotations, and what says which fields are there: that is for the expected object to say."""


def _from_schema(node: FieldNode, schema: Any, where: str) -> Iterator[str]:
    """Plant what a schema (draft 2020-12: type, format, properties, items, enum) says; yields notes on the rest."""
    if isinstance(schema, bool):
        return
    if not isinstance(schema, Mapping):
        raise ValueError(f"schema: {where}: expected an object")
    for word in schema:
        if word not in _UNDERSTOOD and word not in _NO_MATTER:
            yield f"{where}: {word}"
    properties = schema.get("properties", {})
    if not isinstance(properties, Mapping):
        raise ValueError(f"schema: {where}.properties: expected an object")
    for key, part in properties.items():
        yield from _from_schema(node.step(key), part, extend(where, key))
    if "items" in schema:
        yield from _from_schema(node.step(None), schema["items"], extend(where, None))
    form = schema.get("format")
    if form is not None and form not in _DATES:
        yield f"{where}: format {form}"
    types = _types(schema["type"], where) if "type" in schema else None
    values = _values(schema["enum"], where) if "enum" in schema else None
    date = _DATES.get(form) if isinstance(form, str) else None
    if types is not None or values is not None or date is not None:
        node.rule = SchemaRule(types=types, values=values, date=date)


def _types(found: Any, where: str) -> frozenset[str]:
    names = [found] if isinstance(found, str) else found
    if not isinstance(names, list | tuple) or not all(isinstance(name, str) for name in names):
        raise ValueError(f"schema: {where}.type: expected a type or a list of types")
    for name in names:
        if name not in _TYPES:
            raise ValueError(f"schema: {where}.type: no type {name!r}{did_you_mean(name, _TYPES)}")
    return frozenset(names)


def _values(found: Any, where: str) -> frozenset[Hashable]:
    if not isinstance(found, list | tuple):
        raise ValueError(f"schema: {where}.enum: expected a list")
    kinds = [(kind_of(value), value) for value in found]
    return frozenset((kind, value) for kind, value in kinds if kind not in ("object", "array"))


def bind(rules: Rules, functions: Mapping[str, Any]) -> Rules:
    """The rules with functions in place of their names, as far as they are known."""
    return {
        path: FunctionRule(function=functions.get(rule.function, rule.function))
        if isinstance(rule, FunctionRule) and isinstance(rule.function, str)
        else rule
        for path, rule in rules.items()
    }
