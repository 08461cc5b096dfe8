"""A reply that comes as a stream, although none was asked for, put together as one completion."""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from judgekit.core.protocols import CallError

_LINE_END = re.compile(r"\r\n|\r|\n")
_FIELDS = ("", "event", "id", "retry")
"""Names of lines that carry no data; the empty one is a comment."""


def event_data(content: bytes) -> Iterator[str]:
    """The data of each event up to `[DONE]`; text that is no field of an event, such as a bare object, counts too."""
    lines: list[str] = []
    for line in [*_LINE_END.split(content.decode("utf-8-sig", "replace")), ""]:
        name, _, value = line.partition(":")
        if line and name not in _FIELDS:
            lines.append(value.removeprefix(" ") if name == "data" else line)
        elif not line and lines:
            data = "\n".join(lines).strip()
            lines = []
            if data == "[DONE]":
                return
            # An object with `data: [DONE]` on the next line has no blank line between the two.
            yield data.removesuffix("[DONE]")


def lines_of_json(content: bytes) -> list[str]:
    """The lines of a stream that sends one JSON object a line.

    Raises:
        ValueError: a line is no object.
    """
    # Records of a sequence begin with a separator of their own.
    lines = [line.strip(" \t\x1e") for line in _LINE_END.split(content.decode("utf-8-sig", "replace"))]
    lines = [line for line in lines if line]
    if not all(line.startswith("{") and line.endswith("}") for line in lines):
        raise ValueError("a line is no JSON object")
    return lines


def streamed_reply(events: Iterable[Any]) -> Any:
    """The completion that the events of a stream add up to.

    Raises:
        ValueError: an event is no object.
        CallError: the stream ends before the reply does.
    """
    fields: dict[str, Any] = {}
    pieces: dict[int, dict[str, list[Any]]] = {}
    reasons: dict[int, Any] = {}
    for event in events:
        if not isinstance(event, Mapping):
            raise ValueError("an event is no JSON object")
        choices = event.get("choices")
        choices = [item for item in choices if isinstance(item, Mapping)] if isinstance(choices, list) else []
        if event.get("error") or any(item.get("error") for item in choices):
            return event
        fields |= {name: value for name, value in event.items() if value is not None}
        for choice in choices:
            index = index_of(choice)
            # A whole completion sent as one event has a message in its place.
            delta = choice.get("delta") or choice.get("message")
            for name, value in delta.items() if isinstance(delta, Mapping) else ():
                pieces.setdefault(index, {}).setdefault(name, []).append(value)
            reasons[index] = choice.get("finish_reason") or reasons.get(index)
    if not reasons:
        raise ValueError("no event holds a part of a reply")
    first = min(reasons)
    message = {name: _joined(name, values) for name, values in pieces.get(first, {}).items()}
    if reasons[first] is None:
        said = str(message.get("content") or "")
        raise CallError("server_error", f"the event stream ended before the reply did: {said[:200]}", retryable=True)
    return {**fields, "choices": [{"index": first, "message": message, "finish_reason": reasons[first]}]}


def _joined(name: str, values: list[Any]) -> Any:
    """Texts and lists one after the other, calls of tools by their index; of anything else the last."""
    values = [value for value in values if value is not None]
    if name == "role":
        return values[0] if values else None
    if all(isinstance(value, str) for value in values):
        return "".join(values) if values else None
    if all(isinstance(value, list) for value in values):
        return _calls(values) if name == "tool_calls" else [item for value in values for item in value]
    return values[-1]


def _calls(values: Iterable[list[Any]]) -> list[dict[str, Any]]:
    calls: dict[int, dict[str, Any]] = {}
    for value in values:
        for place, part in enumerate(value):
            function = part.get("function") if isinstance(part, Mapping) else None
            if not isinstance(function, Mapping):
                continue
            call = calls.setdefault(index_of(part, place), {"type": "function", "function": {"arguments": ""}})
            call["function"]["name"] = call["function"].get("name") or function.get("name")
            call["function"]["arguments"] += str(function.get("arguments") or "")
    return list(calls.values())


def index_of(item: Mapping[str, Any], default: int = 0) -> int:
    """The place of a choice, or of a call of a tool, among its kind."""
    index = item.get("index")
    return index if isinstance(index, int) else default
