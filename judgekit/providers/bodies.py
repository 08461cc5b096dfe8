"""The body of a reply: read up to a limit, decompressed, and decoded, an event stream too."""

import json
import re
import zlib
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import msgspec

from judgekit.core.protocols import CallError
from judgekit.core.text import clean_text
from judgekit.providers.event_streams import event_data, lines_of_json, streamed_reply

if TYPE_CHECKING:
    from httpx2 import Response

MOST_BYTES = 8 * 2**20
"""A reply with more bytes, once decompressed, is not read to its end."""

ENCODINGS = "gzip, deflate"
"""What the server may compress with."""

_EVENT = re.compile(rb"^(?:data:|event:|: )", re.MULTILINE)
_ENCODING = b"content-encoding"
_decode = msgspec.json.Decoder().decode


async def read_body(response: "Response") -> bytes:
    """All bytes of a reply, decompressed; the reply is closed.

    Raises:
        CallError: it is larger than `MOST_BYTES`, or not compressed as its headers say.
    """
    try:
        inflate = _inflating(response.headers.raw)
        pieces: list[bytes] = []
        n_bytes = 0
        async for piece in response.aiter_raw():
            part = piece if inflate is None else inflate(piece, MOST_BYTES + 1 - n_bytes)
            n_bytes += len(part)
            if n_bytes > MOST_BYTES:
                raise CallError(
                    "server_error", f"the reply is larger than {MOST_BYTES // 2**20} MB; it was not read to its end"
                )
            pieces.append(part)
        return b"".join(pieces)
    finally:
        await response.aclose()


def _inflating(raw: Iterable[tuple[bytes, bytes]]) -> "_Inflating | None":
    """What decompresses a reply with these headers; None where it is not compressed."""
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
                pieces = event_data(content) if _EVENT.search(content) else lines_of_json(content)
                return streamed_reply(_with_whole_characters(item) for item in pieces)
    except RecursionError:
        raise ValueError("nested too deeply") from None


def is_stream(kind: str, content: bytes) -> bool:
    """Whether a body that cannot be read is a stream of events or of JSON lines.

    Args:
        kind: its content type.
        content: the body.
    """
    if any(word in kind.lower() for word in ("event-stream", "ndjson", "jsonl", "json-seq")):
        return True
    try:
        return _EVENT.match(content.lstrip()) is not None or len(lines_of_json(content)) > 1
    except ValueError:
        return False


def _with_whole_characters(content: bytes | str) -> Any:
    return json.loads(clean_text(json.dumps(json.loads(content), ensure_ascii=False)))
