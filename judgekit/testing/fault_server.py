"""The server, in a thread of this process: what each address answers, and how replies are sent or spoiled."""

import asyncio
import json
import os
import re
import socket
import struct
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import TracebackType
from typing import Any, Final, Self

from aiohttp import web

from judgekit.testing.batch_service import BatchService
from judgekit.testing.exchange import TRANSPORT_FAULTS, Fault, Reply, Request
from judgekit.testing.log import LoggedRequest, RequestLog
from judgekit.testing.replies import error_reply
from judgekit.testing.scripts import Script, as_responder, plausible_verdict

HOST: Final = "127.0.0.1"
MODEL_PATHS: Final = ("/chat/completions", "/decisions")
"""How the addresses at which a model answers end; what stands before it differs from host to host."""
_BACKLOG: Final = 4096
_STOP_SECONDS: Final = 10.0
# l_onoff = 1, l_linger = 0: close() sends RST. The struct has shorts on Windows, ints elsewhere.
_LINGER_RESET: Final = struct.pack("hh" if os.name == "nt" else "ii", 1, 0)


@dataclass(slots=True)
class ServerInfo:
    """What the server says of itself; may be changed while it runs, as when a model is replaced in place."""

    models: tuple[str, ...] = ("judge-test",)
    """Ids in `GET /v1/models`, names in `GET /api/tags`."""
    meta: Mapping[str, Any] = field(default_factory=lambda: {"n_ctx_train": 8192, "n_params": 1_000_000})
    """`meta` of each entry of `GET /v1/models`."""
    build_info: str = "b1000-0000000"
    """Build of the server, in `GET /props`."""
    model_path: str = "/models/judge-test.gguf"
    """File of the model, in `GET /props`."""
    digests: Mapping[str, str] = field(default_factory=dict)
    """Digest by model in `GET /api/tags`; 64 zeros where absent."""
    n_loading: int = 0
    """So many requests, whatever they ask for, are answered by 503, as by a server that is still loading its model."""

    def page(self, path: str) -> dict[str, Any] | None:
        """The document at an address that is not for chat, or None."""
        match path:
            case "/v1/models" | "/models":
                entry = {"object": "model", "created": 0, "owned_by": "judgekit", "meta": dict(self.meta)}
                return {"object": "list", "data": [{"id": model, **entry} for model in self.models]}
            case "/props":
                return {"build_info": self.build_info, "model_path": self.model_path, "total_slots": 1}
            case "/api/tags":
                digests = {model: self.digests.get(model, "0" * 64) for model in self.models}
                entries = digests.items()
                return {"models": [{"name": name, "model": name, "digest": of, "size": 1} for name, of in entries]}
        return None


class FaultServer:
    """An OpenAI-compatible server on 127.0.0.1 whose replies, and faults, are scripted.

        with FaultServer([rate_limited(retry_after_seconds=1), verdict(4)]) as server:
            ask(server.base_url)
            assert server.log.totals.n_requests == 2

    Leaving the `with` block stops the server, ends its connections (hanging ones too), and raises what a responder
    raised, unless the block is already failing.

    Args:
        script: A responder, a reply, or a list played in order of arrival (`as_responder`); None answers every
            request with a plausible verdict.
        port: 0 picks a free one.
        info: What the server says of itself.
        keep_bodies: See `RequestLog`.
    """

    def __init__(
        self,
        script: Script | None = None,
        *,
        port: int = 0,
        info: ServerInfo | None = None,
        keep_bodies: bool = True,
    ) -> None:
        self.info = info or ServerInfo()
        """What the server says of itself; change its fields at any time."""
        self.log = RequestLog(keep_bodies)
        """What was received and answered."""
        self.errors: list[Exception] = []
        """What responders raised, and what could not be sent."""
        self.batch = BatchService(self._line_answer)
        """Its files and batches, and what goes wrong with them."""
        self.responder = as_responder(script)
        self._asked_port = port
        self._port: int | None = None
        self._n_chat = 0
        self._thread: threading.Thread | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stop: asyncio.Event | None = None
        self._start_error: OSError | None = None

    def play(self, script: Script | None) -> None:
        """Changes the script; requests that are already being answered keep their reply."""
        self.responder = as_responder(script)

    @property
    def port(self) -> int:
        """The port; it stays readable after `stop`.

        Raises:
            RuntimeError: The server was never started.
        """
        if self._port is None:
            raise RuntimeError("the server is not started")
        return self._port

    @property
    def root_url(self) -> str:
        """The address without `/v1`."""
        return f"http://{HOST}:{self.port}"

    @property
    def base_url(self) -> str:
        """The address to give to a client."""
        return f"{self.root_url}/v1"

    def start(self) -> Self:
        """Listens. A stopped server may be started again.

        Raises:
            OSError: The port is taken.
            RuntimeError: The server is running.
        """
        if self._thread is not None:
            raise RuntimeError("the server is already running")
        ready = threading.Event()
        self._start_error = None
        self._thread = threading.Thread(target=self._run, args=(ready,), name="judgekit-fault-server", daemon=True)
        self._thread.start()
        ready.wait()
        if self._start_error is not None:
            self._thread.join()
            self._thread = None
            raise self._start_error
        return self

    def stop(self) -> None:
        """Stops listening and ends all connections. Does nothing if the server is not running.

        Raises:
            RuntimeError: The thread does not end, because a responder blocks it.
        """
        if self._thread is None or self._loop is None or self._stop is None:
            return
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(_STOP_SECONDS)
        if self._thread.is_alive():
            raise RuntimeError(f"the server did not stop within {_STOP_SECONDS:g} s; does a responder block?")
        self._thread = self._loop = self._stop = None

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()
        if error is None and self.errors:
            raise self.errors[0]

    def _run(self, ready: threading.Event) -> None:
        try:
            # Stopping needs a selector loop, whatever the platform's default or an installed policy.
            with asyncio.Runner(loop_factory=asyncio.SelectorEventLoop) as runner:
                runner.run(self._serve(ready))
        except OSError as error:
            self._start_error = error
        finally:
            ready.set()

    async def _serve(self, ready: threading.Event) -> None:
        self._loop, self._stop = asyncio.get_running_loop(), asyncio.Event()
        http = web.Server(self._handle, handler_cancellation=True, access_log=None)
        listener = await self._loop.create_server(http, HOST, self._asked_port, backlog=_BACKLOG)
        self._port = listener.sockets[0].getsockname()[1]
        ready.set()
        await self._stop.wait()
        # asyncio loses a connection that it is accepting while it closes the listener: nobody closes that socket.
        # So accepting stops first, and what was accepted arrives within three turns of the loop.
        self._loop.remove_reader(listener.sockets[0].fileno())
        for _ in range(3):
            await asyncio.sleep(0)
        listener.close()
        while http.connections:
            for connection in http.connections:
                if connection.transport is not None:
                    connection.transport.abort()
            await asyncio.sleep(0)

    async def _handle(self, received: web.BaseRequest) -> web.StreamResponse:
        raw_body = await received.content.read()
        # A client that takes the server for its proxy names the whole address.
        target = re.sub(r"^https?://[^/]+", "", received.raw_path)
        path, _, query = target.partition("?")
        headers = {name.lower(): value for name, value in received.headers.items()}
        request = Request(received.method, path, headers, raw_body, index=self._n_chat, query=query)
        is_chat = path.endswith(MODEL_PATHS)
        self._n_chat += is_chat
        entry = self.log.begin(request, is_chat)
        try:
            reply = self._answer(request, is_chat)
            entry.fault = reply.fault.kind if reply.fault is not None else None
            if reply.delay_seconds > 0:
                await asyncio.sleep(reply.delay_seconds)
            try:
                return await self._play(reply, request, received, entry)
            except (TypeError, ValueError, LookupError) as error:
                self.errors.append(error)
                _transport_of(received).abort()
                return await _until_closed()
        finally:
            if entry.answered_at is None:
                self.log.abandon(entry)

    def _answer(self, request: Request, is_chat: bool) -> Reply:
        if self.info.n_loading:
            self.info.n_loading -= 1
            return error_reply(503, "Loading model", code="unavailable_error")
        page = self.info.page(request.path) if request.method == "GET" else None
        if page is not None:
            return Reply(body=page)
        found = self.batch.answer(request)
        if found is not None:
            return found
        if not is_chat:
            return error_reply(404, f"Not found: {request.method} {request.path}", code="not_found")
        if request.method != "POST":
            return error_reply(405, f"{request.method} is not allowed here", headers={"allow": "POST"})
        if not isinstance(request.body, dict):
            return error_reply(400, "We could not parse the JSON body of your request.", code="invalid_json")
        return self._respond(request)

    def _respond(self, request: Request) -> Reply:
        """What the script says, or an error that tells what it raised."""
        try:
            reply = self.responder(request)
            if not isinstance(reply, Reply):
                raise TypeError(f"a responder returns a Reply, found {type(reply).__name__}")
        except Exception as error:  # noqa: BLE001 - handed on to the test's own thread when the server stops
            self.errors.append(error)
            reply = error_reply(500, f"the responder raised {error!r}", headers={"x-should-retry": "false"})
            return replace(reply, fault=Fault("responder_raised"))
        return reply

    def _line_answer(self, raw_body: bytes) -> tuple[int, Any]:
        """Status and body of the reply to one line of a batch, by the same script."""
        request = Request("POST", "/v1/chat/completions", {}, raw_body, index=self._n_chat)
        self._n_chat += 1
        reply = self._respond(request)
        if reply.fault is not None and reply.fault.kind in TRANSPORT_FAULTS:
            return 500, {"error": {"message": "The server had an error.", "type": "server_error"}}
        return reply.status, json.loads(_encoded(_filled(reply, request))[0])

    async def _play(
        self, reply: Reply, request: Request, received: web.BaseRequest, entry: LoggedRequest
    ) -> web.StreamResponse:
        """Sends the reply, or plays its fault.

        The log is written before the last byte goes out, so that a client that has its reply finds it there.
        """
        body = _filled(reply, request)
        content, content_type = _encoded(body)
        headers = {"content-type": content_type, **{name.lower(): value for name, value in reply.headers.items()}}
        fault = reply.fault
        if fault is None or fault.kind not in TRANSPORT_FAULTS:
            self.log.end(entry, reply.status, _usage_of(body))
            return web.Response(status=reply.status, body=content, headers=headers)
        transport = _transport_of(received)
        response = web.StreamResponse(status=reply.status, headers=headers)
        match fault.kind:
            case "reset":
                self.log.end(entry, None)
                connection: socket.socket = transport.get_extra_info("socket")
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _LINGER_RESET)
                transport.abort()
            case "raw_bytes":
                self.log.end(entry, None)
                transport.write(content)
                transport.close()
            case "close_after_bytes":
                response.content_length = max(len(content), fault.n_bytes + 1)
                self.log.end(entry, reply.status)
                await response.prepare(received)
                await response.write(content[: fault.n_bytes])
                transport.close()
            case "headers_then_trickle":
                response.content_length = len(content)
                entry.status = reply.status
                await response.prepare(received)
                n_bytes = max(1, fault.n_bytes)
                for start in range(0, len(content), n_bytes):
                    await asyncio.sleep(fault.interval_seconds)
                    if start + n_bytes >= len(content):
                        self.log.end(entry, reply.status, _usage_of(body))
                    await response.write(content[start : start + n_bytes])
                return response
        return await _until_closed()


async def _until_closed() -> web.StreamResponse:
    """Waits until the connection is lost, which cancels the handler that waits."""
    return await asyncio.get_running_loop().create_future()  # type: ignore[no-any-return]


def _transport_of(received: web.BaseRequest) -> asyncio.Transport:
    if not isinstance(received.transport, asyncio.Transport):
        raise ConnectionResetError("the client has left")
    return received.transport


def _encoded(body: Mapping[str, Any] | str | bytes | None) -> tuple[bytes, str]:
    """The bytes of a reply's body and its content type."""
    if body is None:
        return b"", "text/plain"
    if isinstance(body, bytes):
        return body, "application/json"
    if isinstance(body, str):
        return body.encode("utf-8", "surrogatepass"), "text/plain; charset=utf-8"
    return json.dumps(body).encode(), "application/json"


def _usage_of(body: Any) -> Mapping[str, Any] | None:
    usage = body.get("usage") if isinstance(body, Mapping) else None
    return usage if isinstance(usage, Mapping) else None


def _filled(reply: Reply, request: Request) -> Mapping[str, Any] | str | bytes | None:
    """The body to send: a transport fault without a body gets the default verdict, a chat body its id and usage."""
    if reply.body is None and reply.fault is not None and reply.fault.kind in TRANSPORT_FAULTS:
        reply = plausible_verdict(request)
    if not (reply.fill and isinstance(reply.body, Mapping)):
        return reply.body
    filled = {
        "id": f"chatcmpl-{request.index}",
        "object": "chat.completion",
        "created": int(time.time()),
        "model": request.model,
        **reply.body,
    }
    usage = filled.get("usage")
    if usage is None:
        message = filled["choices"][0].get("message", {})
        n_prompt, n_completion = len(request.text) // 4, len(message.get("content") or "") // 4
        counts = {"prompt_tokens": n_prompt, "completion_tokens": n_completion}
        filled["usage"] = {**counts, "total_tokens": n_prompt + n_completion}
    elif not usage:
        del filled["usage"]
    return filled
