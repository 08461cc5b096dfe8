"""One connection of a client: reads requests one after the other and sends, or spoils, their replies."""

import asyncio
import json
import os
import socket
import struct
from collections.abc import Callable, Mapping
from typing import Any, Final

from judgekit.testing.exchange import TRANSPORT_FAULTS, Reply, Request
from judgekit.testing.log import LoggedRequest
from judgekit.testing.plausible import plausible_verdict
from judgekit.testing.replies import error_reply
from judgekit.testing.service import CHAT_PATHS, Service, completed_body
from judgekit.testing.wire import BadRequestError, RequestReader, WireRequest, encode_body, encode_head

# l_onoff = 1, l_linger = 0: close() sends RST. The struct has shorts on Windows, ints elsewhere.
_LINGER_RESET: Final = struct.pack("hh" if os.name == "nt" else "ii", 1, 0)


class Connection(asyncio.Protocol):
    """The server's end of one connection.

    Args:
        service: Answers the requests.
        open_connections: The set in which the connection stands while it is open.
    """

    def __init__(self, service: Service, open_connections: set["Connection"]) -> None:
        self._service = service
        self._open_connections = open_connections
        self._reader = RequestReader()
        self._transport: asyncio.Transport
        self._timer: asyncio.TimerHandle | None = None
        self._entry: LoggedRequest | None = None
        """The request that is being answered; the next one is not read before it is done."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        if not isinstance(transport, asyncio.Transport):
            raise TypeError("the server needs a stream transport")
        self._transport = transport
        self._open_connections.add(self)

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - asyncio's signature
        self._open_connections.discard(self)
        if self._timer is not None:
            self._timer.cancel()
        if self._entry is not None:
            self._service.log.abandon(self._entry)
            self._entry = None

    def data_received(self, data: bytes) -> None:
        self._reader.feed(data)
        if self._entry is None:
            self._serve()

    def abort(self) -> None:
        """Ends the connection at once."""
        self._transport.abort()

    def _serve(self) -> None:
        """Answers what has come in, until a reply has to wait or the bytes run out."""
        while self._entry is None and not self._transport.is_closing():
            try:
                wire = self._reader.next()
            except BadRequestError as error:
                refusal = error_reply(400, str(error))
                self._transport.write(self._encoded(refusal, refusal.body, keep_alive=False))
                self._transport.close()
                return
            if wire is None:
                if self._reader.take_continue():
                    self._transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")
                return
            self._begin(wire)

    def _begin(self, wire: WireRequest) -> None:
        is_chat = wire.path in CHAT_PATHS
        n_before = self._service.n_chat
        self._service.n_chat += is_chat
        request = Request(wire.method, wire.path, wire.headers, wire.body, _decoded(wire.body), n_before)
        request.query = wire.query
        self._entry = self._service.log.begin(request, is_chat)
        reply = self._service.answer(request)
        self._entry.fault = reply.fault.kind if reply.fault is not None else None
        if reply.delay_seconds > 0:
            self._later(reply.delay_seconds, lambda: self._play(reply, request, wire.keep_alive))
        else:
            self._play(reply, request, wire.keep_alive)

    def _later(self, seconds: float, act: Callable[[], None]) -> None:
        def run() -> None:
            self._timer = None
            act()
            self._serve()

        self._timer = asyncio.get_running_loop().call_later(seconds, run)

    def _play(self, reply: Reply, request: Request, keep_alive: bool) -> None:
        """Sends the reply, or plays its fault; a reply that cannot be written ends the connection."""
        try:
            self._send(reply, request, keep_alive)
        except (TypeError, ValueError, LookupError) as error:
            self._service.errors.append(error)
            self._transport.abort()

    def _send(self, reply: Reply, request: Request, keep_alive: bool) -> None:
        # The log is written before the last byte goes out, so that a client that has its reply finds it there.
        fault = reply.fault
        if fault is None or fault.kind not in TRANSPORT_FAULTS:
            body = self._filled(reply, request)
            message = self._encoded(reply, body, keep_alive)
            self._end(reply.status, body)
            self._transport.write(message)
            if not keep_alive:
                self._transport.close()
        elif fault.kind == "reset":
            self._end(None)
            self._reset()
        elif fault.kind == "raw_bytes":
            self._end(None)
            self._transport.write(encode_body(reply.body)[0])
            self._transport.close()
        elif fault.kind == "close_after_bytes":
            self._cut(reply, request, fault.n_bytes)
        elif fault.kind == "headers_then_trickle":
            self._trickle(reply, request, max(1, fault.n_bytes), fault.interval_seconds)

    @staticmethod
    def _encoded(reply: Reply, body: Mapping[str, Any] | str | bytes | None, keep_alive: bool) -> bytes:
        content, content_type = encode_body(body)
        return encode_head(reply.status, reply.headers, content_type, len(content), keep_alive) + content

    def _reset(self) -> None:
        connection_socket: socket.socket = self._transport.get_extra_info("socket")
        connection_socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _LINGER_RESET)
        self._transport.abort()

    def _cut(self, reply: Reply, request: Request, n_bytes: int) -> None:
        content, content_type = encode_body(self._filled(reply, request))
        n_promised = max(len(content), n_bytes + 1)
        head = encode_head(reply.status, reply.headers, content_type, n_promised, keep_alive=True)
        self._end(reply.status)
        self._transport.write(head + content[:n_bytes])
        self._transport.close()

    def _trickle(self, reply: Reply, request: Request, n_bytes: int, interval_seconds: float) -> None:
        body = self._filled(reply, request)
        content, content_type = encode_body(body)
        self._transport.write(encode_head(reply.status, reply.headers, content_type, len(content), keep_alive=True))
        if self._entry is not None:
            self._entry.status = reply.status

        def send(start: int) -> None:
            end = start + n_bytes
            if end < len(content):
                self._later(interval_seconds, lambda: send(end))
            else:
                self._end(reply.status, body)
            self._transport.write(content[start:end])

        self._later(interval_seconds, lambda: send(0))

    def _end(self, status: int | None, body: Any = None) -> None:
        entry, self._entry = self._entry, None
        if entry is not None:
            usage = body.get("usage") if isinstance(body, Mapping) else None
            self._service.log.end(entry, status, usage if isinstance(usage, Mapping) else None)

    @staticmethod
    def _filled(reply: Reply, request: Request) -> Mapping[str, Any] | str | bytes | None:
        """The body to send; where a transport fault has none of its own, the default verdict's."""
        if reply.body is None and reply.fault is not None and reply.fault.kind in TRANSPORT_FAULTS:
            reply = plausible_verdict(request)
        if reply.fill and isinstance(reply.body, Mapping):
            return completed_body(reply.body, request)
        return reply.body


def _decoded(body: bytes) -> Any:
    if not body:
        return None
    try:
        return json.loads(body)
    except (ValueError, RecursionError):
        return None
