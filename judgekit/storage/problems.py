"""What is wrong with a file that a user wrote, in its own words, and on which line of a JSON text it stands."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from difflib import get_close_matches
from typing import Any

from pydantic import BaseModel, ValidationError

from judgekit.core.errors import InputError, did_you_mean

MISSING = "required, but missing"
"""Message about an absent field."""

Location = tuple[str | int, ...]

_UNION_MEMBERS = ("str", "DataFile", "ComponentConfig", "YesNoFields")
_ADDED = ("function-", "[key]", "literal[", "tuple[", "dict[")
"""How parts of a location begin that name a validator or a member of a union."""
_EXPECTED = {
    "string_type": "a text",
    "model_type": "an object",
    "model_attributes_type": "an object",
    "dict_type": "an object",
    "tuple_type": "a list",
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "int_parsing": "a whole number",
    "float_type": "a number",
    "float_parsing": "a number",
    "finite_number": "a finite number",
    "bool_type": "true or false",
    "bool_parsing": "true or false",
}
_KINDS = {
    dict: "an object",
    list: "a list",
    tuple: "a list",
    str: "a text",
    bool: "true or false",
    int: "a number",
    float: "a number",
    type(None): "nothing",
}


def problems(error: ValidationError, model: type[BaseModel]) -> list[tuple[Location, str]]:
    """Place and plain message of everything that is wrong; values are never quoted, since one may be a key.

    Where a field takes one of several shapes, pydantic complains for each: at one place the shapes are joined,
    and a complaint about a whole gives way to one about its part.
    """
    expected: dict[Location, list[str]] = {}
    found: dict[Location, str] = {}
    messages: dict[Location, str] = {}
    for detail in error.errors(include_url=False):
        location = _location(detail["loc"])
        shape = _EXPECTED.get(detail["type"])
        if shape is not None:
            shapes = expected.setdefault(location, [])
            if shape not in shapes:
                shapes.append(shape)
            found[location] = _found(detail["input"], shape)
        elif detail["type"] == "literal_error" and location in expected:
            expected[location].append(str(detail["ctx"]["expected"]))
        else:
            absent = [place[-1] for place, said in messages.items() if said == MISSING and place[:-1] == location[:-1]]
            location, message = _narrowed(location, _message(detail, location, model, absent), model)
            messages.setdefault(location, message)
    for location, shapes in expected.items():
        messages.setdefault(location, f"expected {' or '.join(shapes)}{found[location]}")
    return [
        (location, message)
        for location, message in messages.items()
        if not any(other[: len(location)] == location and len(other) > len(location) for other in messages)
    ]


def one_part(part: str | None, path: object, parts: list[str], what: str) -> str:
    """The part of a source that is read: the one that is named, or the only one.

    Raises:
        InputError: no such part, or several and none named.
    """
    shown = ", ".join(map(repr, parts[:20]))
    if part is not None:
        if part not in parts:
            raise InputError(f"{path}: no {what} {part!r}; it has {shown or 'none'}")
        return part
    if len(parts) != 1:
        raise InputError(f'{path}: holds {len(parts)} {what}s, {shown}; name one with "part"')
    return parts[0]


def kind_of(value: object) -> str:
    """What a value is, as a user of JSON calls it."""
    return _KINDS.get(type(value), type(value).__name__)


def one_line(text: str) -> str:
    """The text with line feeds, control characters and lone surrogates escaped: names from a file may hold any."""
    return text if text.isprintable() else "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)


def _location(parts: Location) -> Location:
    """The place without what pydantic adds for validators, unions and keys."""
    return tuple(part for part in parts if part not in _UNION_MEMBERS and not str(part).startswith(_ADDED))


def _found(value: object, shape: str) -> str:
    kind = kind_of(value)
    return f", found {kind}" if kind != shape and not shape.endswith(kind.removeprefix("a ")) else ""


def _message(detail: Any, location: Location, model: type[BaseModel], absent: Sequence[str | int]) -> str:
    if detail["type"] == "missing":
        return MISSING
    if detail["type"] == "extra_forbidden":
        # A required key that is missing beside it is the likeliest to be meant.
        near = get_close_matches(str(location[-1]), map(str, absent), n=1)
        return f"unknown key{did_you_mean(str(location[-1]), near or known_keys(model, location[:-1]))}"
    if detail["type"] == "string_pattern_mismatch" and detail["ctx"]["pattern"] == r"\S":
        return "is blank"
    message = str(detail["msg"]).removeprefix("Value error, ")
    return f"{message[:1].lower()}{message[1:]}"


def _narrowed(location: Location, message: str, model: type[BaseModel]) -> tuple[Location, str]:
    """The place that a check of a whole object names in front of its message, as `labels: ...` or `levels.5: ...`."""
    head, colon, rest = message.partition(": ")
    names = head.split(".")
    if not colon:
        return location, message
    if location and head == location[-1]:
        return location, rest
    return ((*location, *names), rest) if names[0] in known_keys(model, location) else (location, message)


def known_keys(model: type[BaseModel], location: Location) -> list[str]:
    """Keys that the object at a place may have."""
    current: Any = model
    for part in location:
        if isinstance(current, type) and issubclass(current, BaseModel) and isinstance(part, str):
            field = current.model_fields.get(part)
            current = _inner_model(field.annotation) if field is not None else current
    fields: Mapping[str, Any] = current.model_fields if current is not None else {}
    return [field.alias or name for name, field in fields.items() if name != "schema_"]


def _inner_model(annotation: Any) -> Any:
    """The first model inside an annotation such as `tuple[Gate, ...]` or `str | DataFile`."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    for argument in getattr(annotation, "__args__", ()):
        found = _inner_model(argument)
        if found is not None:
            return found
    return None


_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[{}\[\],:]|[^\s{}\[\],:"]+', re.DOTALL)


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


def repeated_keys(text: str) -> list[tuple[Location, int, int]]:
    """Path, first and second line of every key that stands twice in one object; parsers keep the last in silence."""
    seen: dict[Location, int] = {}
    repeated = []
    for place, line in _values(text):
        if place in seen:
            repeated.append((place, seen[place], line))
            # What stands below belongs to the second value from here on.
            seen = {other: at for other, at in seen.items() if other[: len(place)] != place}
        seen[place] = line
    return repeated


def _values(text: str) -> Iterator[tuple[Location, int]]:
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
