"""The body of a reply: read up to a limit, decompressed, and decoded.

A reply that comes as a stream, although none was asked for, is put together as one completion.
"""

import json
import re
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import msgspec

from judgekit.core.protocols import CallError
from judgekit.core.text import clean_text

if TYPE_CHECKING:
    from aiohttp import ClientResponse

MOST_BYTES = 8 * 2**20
"""A reply with more bytes, once decompressed, is not read to its end."""

ENCODINGS = "gzip, deflate"
"""What the server may compress with."""

_LINE_END = re.compile(r"\r\n|\r|\n")
_FIELDS = ("", "event", "id", "retry")
"""Names of lines that carry no data; the empty one is a comment."""

_EVENT = re.compile(rb"^(?:data:|event:|: )", re.MULTILINE)
_ENCODING = b"content-encoding"
_decode = msgspec.json.Decoder().decode


async def read_body(response: "ClientResponse") -> bytes:
    """All bytes of a reply, decompressed.

    Raises:
        CallError: it is larger than `MOST_BYTES`, or not compressed as its headers say.
    """
    inflate = _inflating(response.raw_headers)
    pieces: list[bytes] = []
    n_bytes = 0
    async for piece in response.content.iter_any():
        part = piece if inflate is None else inflate(piece, MOST_BYTES + 1 - n_bytes)
        n_bytes += len(part)
        if n_bytes > MOST_BYTES:
            raise CallError(
                "server_error", f"the reply is larger than {MOST_BYTES // 2**20} MB; it was not read to its end"
            )
        pieces.append(part)
    return b"".join(pieces)


async def read_lines(response: "ClientResponse", take: Callable[[bytes], None]) -> None:
    """Hand out the lines of a reply as they come, the last one also without a line feed.

    Raises:
        CallError: a line is larger than `MOST_BYTES`, or the reply is compressed.
    """
    if _inflating(response.raw_headers) is not None:
        raise CallError("server_error", "a file is compressed, which was not asked for")
    rest: list[bytes] = []
    n_rest = 0
    async for piece in response.content.iter_any():
        *whole, last = piece.split(b"\n")
        for line in whole:
            take(b"".join([*rest, line]))
            rest, n_rest = [], 0
        rest.append(last)
        n_rest += len(last)
        if n_rest > MOST_BYTES:
            raise CallError("server_error", f"a line of a file is larger than {MOST_BYTES // 2**20} MB")
    if n_rest:
        take(b"".join(rest))


def _inflating(raw: Iterable[tuple[bytes, bytes]]) -> "_Inflating | None":
    """What decompresses a reply with these headers; None if it is not compressed."""
    found = [value.strip().lower().decode("utf-8", "replace") for name, value in raw if name.lower() == _ENCODING]
    encoding = ", ".join(value for value in found if value not in ("", "identity"))
    return _Inflating(encoding) if encoding else None


class _Inflating:
    """Decompresses piece by piece, and no more than is asked for."""

    def __init__(self, encoding: str) -> None:
        if encoding not in ("gzip", "x-gzip", "deflate"):
            message = f"the reply is compressed as {clean_text(encoding)[:40]}, which was not asked for"
            raise CallError("server_error", message)
        self._object = zlib.decompressobj(wbits=47 if encoding != "deflate" else 15)
        self._may_be_raw = encoding == "deflate"

    def __call__(self, piece: bytes, most: int) -> bytes:
        try:
            return self._object.decompress(piece, most)
        except zlib.error as error:
            if self._may_be_raw:
                # Some servers send deflate without the zlib header that belongs to it.
                self._may_be_raw = False
                self._object = zlib.decompressobj(wbits=-15)
                return self(piece, most)
            raise CallError("server_error", f"the compressed reply is damaged: {error}", retryable=True) from None


def decode_body(content: bytes) -> Any:
    """A JSON body, or the completion that an event stream adds up to.

    Halves of surrogate pairs, which msgspec refuses, are put together or replaced.

    Raises:
        ValueError: it is neither, or nested too deeply.
        CallError: a stream ends before the reply does.
    """
    try:
        try:
            return _decode(content)
        except (msgspec.DecodeError, UnicodeDecodeError):
            try:
                return _with_whole_characters(content)
            except ValueError:
                pieces = _event_data(content) if _EVENT.search(content) else _lines_of_json(content)
                return _streamed_reply(_with_whole_characters(item) for item in pieces)
    except RecursionError:
        raise ValueError("nested too deeply") from None


def is_stream(kind: str, content: bytes) -> bool:
    """Whether a body of this content type that cannot be read is a stream of events or of JSON lines."""
    if any(word in kind.lower() for word in ("event-stream", "ndjson", "jsonl", "json-seq")):
        return True
    try:
        return _EVENT.match(content.lstrip()) is not None or len(_lines_of_json(content)) > 1
    except ValueError:
        return False


def _with_whole_characters(content: bytes | str) -> Any:
    return json.loads(clean_text(json.dumps(json.loads(content), ensure_ascii=False)))


def _event_data(content: bytes) -> Iterator[str]:
    """The data of each event up to `[DONE]`; text that is not a field, such as a bare object, counts too."""
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


def _lines_of_json(content: bytes) -> list[str]:
    """The lines of a stream that sends one JSON object a line; a ValueError if one is not an object."""
    # Records of a sequence begin with a separator of their own.
    stripped = (line.strip(" \t\x1e") for line in _LINE_END.split(content.decode("utf-8-sig", "replace")))
    lines = [line for line in stripped if line]
    if not all(line.startswith("{") and line.endswith("}") for line in lines):
        raise ValueError("a line is not a JSON object")
    return lines


def _streamed_reply(events: Iterable[Any]) -> Any:
    """The completion that the events of a stream add up to.

    Raises:
        ValueError: an event is not an object.
        CallError: the stream ends before the reply does.
    """
    fields: dict[str, Any] = {}
    pieces: dict[int, dict[str, list[Any]]] = {}
    reasons: dict[int, Any] = {}
    for event in events:
        if not isinstance(event, Mapping):
            raise ValueError("an event is not a JSON object")
        choices = event.get("choices")
        choices = [item for item in choices if isinstance(item, Mapping)] if isinstance(choices, list) else []
        if event.get("error") or any(item.get("error") for item in choices):
            return event
        fields |= {name: value for name, value in event.items() if value is not None}
        for choice in choices:
            index = _index_of(choice)
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
            call = calls.setdefault(_index_of(part, place), {"type": "function", "function": {"arguments": ""}})
            call["function"]["name"] = call["function"].get("name") or function.get("name")
            call["function"]["arguments"] += str(function.get("arguments") or "")
    return list(calls.values())


def _index_of(item: Mapping[str, Any], default: int = 0) -> int:
    """The place of a choice, or of a call of a tool, among its kind."""
    index = item.get("index")
    return index if isinstance(index, int) else default
