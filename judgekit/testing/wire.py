"""HTTP/1.1 as far as the test server needs it: requests read from bytes, replies written to bytes."""

import http
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

_MAX_HEAD_BYTES: Final = 65_536
_MAX_BODY_BYTES: Final = 64 * 2**20
_PHRASES: Final = {status.value: status.phrase for status in http.HTTPStatus}


class BadRequestError(Exception):
    """The bytes are no HTTP/1.x request that this server reads."""


@dataclass(slots=True)
class WireRequest:
    """One request as it stood on the wire."""

    method: str
    path: str
    headers: dict[str, str]
    """Names in lower case; of a repeated header the last one."""
    keep_alive: bool
    body: bytes = b""
    query: str = ""
    """What stands behind `?` in the address."""


class RequestReader:
    """Cuts requests out of a stream of bytes."""

    def __init__(self) -> None:
        self._buffer = bytearray()
        self._head: WireRequest | None = None

    def feed(self, data: bytes) -> None:
        self._buffer += data

    def take_continue(self) -> bool:
        """Whether a head is read, its body is not, and the client waits for `100 Continue`; true once a request."""
        return self._head is not None and self._head.headers.pop("expect", "").lower() == "100-continue"

    def next(self) -> WireRequest | None:
        """The next whole request, or None until more bytes come.

        Raises:
            BadRequestError: The bytes cannot be read as a request.
        """
        if self._head is None:
            self._head = self._take_head()
        if self._head is None:
            return None
        body = self._take_body(self._head.headers)
        if body is None:
            return None
        request, self._head = self._head, None
        request.body = body
        return request

    def _take_head(self) -> WireRequest | None:
        end = self._buffer.find(b"\r\n\r\n")
        if end < 0:
            if len(self._buffer) > _MAX_HEAD_BYTES:
                raise BadRequestError("the headers are too long")
            return None
        first, *lines = self._buffer[:end].decode("latin-1").split("\r\n")
        del self._buffer[: end + 4]
        parts = first.split(" ")
        if len(parts) != 3 or not parts[2].startswith("HTTP/1."):
            raise BadRequestError("the first line is not `METHOD path HTTP/1.1`")
        headers = {}
        for line in lines:
            name, colon, value = line.partition(":")
            if not colon:
                raise BadRequestError("a header line has no colon")
            headers[name.lower()] = value.strip()
        connection = headers.get("connection", "").lower()
        keep_alive = connection != "close" if parts[2] == "HTTP/1.1" else connection == "keep-alive"
        path, _, query = parts[1].partition("?")
        return WireRequest(parts[0], path, headers, keep_alive, query=query)

    def _take_body(self, headers: Mapping[str, str]) -> bytes | None:
        if headers.get("transfer-encoding", "").lower() == "chunked":
            return self._take_chunks()
        length_text = headers.get("content-length", "0")
        if not length_text.isdecimal():
            raise BadRequestError("content-length is not a number")
        length = int(length_text)
        if length > _MAX_BODY_BYTES:
            raise BadRequestError("the body is too long")
        if len(self._buffer) < length:
            return None
        body = bytes(self._buffer[:length])
        del self._buffer[:length]
        return body

    def _take_chunks(self) -> bytes | None:
        """The body of a chunked request, once all of it is there; trailers are not read."""
        pieces, start = [], 0
        while True:
            line_end = self._buffer.find(b"\r\n", start)
            if line_end < 0:
                return None
            size_text = self._buffer[start:line_end].partition(b";")[0]
            try:
                size = int(size_text, 16)
            except ValueError:
                raise BadRequestError("the size of a chunk is not a number") from None
            start, end = line_end + 2, line_end + 2 + size
            if end > _MAX_BODY_BYTES:
                raise BadRequestError("the body is too long")
            if len(self._buffer) < end + 2:
                return None
            pieces.append(bytes(self._buffer[start:end]))
            start = end + 2
            if size == 0:
                del self._buffer[:start]
                return b"".join(pieces)


def encode_body(body: Mapping[str, Any] | str | bytes | None) -> tuple[bytes, str]:
    """The bytes of a reply's body and its content type."""
    if body is None:
        return b"", "text/plain"
    if isinstance(body, bytes):
        return body, "application/json"
    if isinstance(body, str):
        return body.encode("utf-8", "surrogatepass"), "text/plain; charset=utf-8"
    return json.dumps(body).encode(), "application/json"


def encode_head(status: int, headers: Mapping[str, str], content_type: str, n_bytes: int, keep_alive: bool) -> bytes:
    """Status line and headers, up to and with the blank line."""
    lines = [f"HTTP/1.1 {status} {_PHRASES.get(status, 'Status')}"]
    names = {name.lower() for name in headers}
    if "content-type" not in names:
        lines.append(f"content-type: {content_type}")
    if "content-length" not in names:
        lines.append(f"content-length: {n_bytes}")
    if not keep_alive:
        lines.append("connection: close")
    lines += [f"{name}: {value}" for name, value in headers.items()]
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")
