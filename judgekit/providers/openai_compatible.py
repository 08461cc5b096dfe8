"""Any server that speaks OpenAI's chat completions: OpenAI, vLLM, llama.cpp, Ollama and others.

The official client carries the connection pool, the key, the address and the headers; its own retries are off, since
they multiply with ours. Requests go straight over the sessions of its pool with a ready body: the layers above, which
build a request and read a reply, cost several times the call itself.
"""

import asyncio
import errno
import os
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import replace
from functools import cache, cached_property
from socket import gaierror
from typing import TYPE_CHECKING, Any, ClassVar, Literal
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

import msgspec

from judgekit.core.config import ModelConfig
from judgekit.core.errors import ConfigError
from judgekit.core.judgments import ModelRequest, ModelResponse
from judgekit.core.masking import MaskedHeaders, Masker
from judgekit.core.protocols import Batching, CallError, Capabilities, ModelIdentity, Provider
from judgekit.core.request_fields import filled, is_local, secret_values, split_address, variables_in
from judgekit.providers.batch_endpoint import BatchEndpoint
from judgekit.providers.bodies import decode_body, is_stream, read_body, read_lines
from judgekit.providers.capabilities import find_capabilities, find_top_logprobs
from judgekit.providers.completions import read_completion, wire_body
from judgekit.providers.connection import CHAT, Connection, Sending
from judgekit.providers.http_errors import error_from_ok, error_from_redirect, error_from_status, redact
from judgekit.providers.rate_limits import rate_limits
from judgekit.providers.server_identity import identify_server

if TYPE_CHECKING:
    from ssl import SSLContext

    from aiohttp import ClientResponse

FILE_SECONDS = 1800.0
"""Wall-clock limit of sending or receiving a file, which has up to 200 MB."""


class OpenAICompatible(Provider):
    """Chat completions over HTTP; one client and one connection pool for the whole run."""

    probabilities: ClassVar[Literal["none", "tokens", "stated"]] = "tokens"
    uses_proxy: ClassVar[bool] = True
    """Whether requests go through the proxy that the environment sets."""

    def __init__(self, model: ModelConfig, *, api_key: str | None = None) -> None:
        """Nothing is opened before the first request."""
        super().__init__(model, api_key=api_key)
        self._connection: Connection | None = None
        self._timeout = model.timeout_seconds or 120.0
        self._has_answered = False

    async def complete(self, request: ModelRequest) -> ModelResponse:
        """One chat completion, with a wall-clock limit from sending to the last byte."""
        started = time.perf_counter()
        payload, headers = await self._exchange(CHAT, wire_body(request))
        response = read_completion(payload, time.perf_counter() - started, headers)
        if response.upstream is None:
            return response
        # Its name may come from a header, which may hold secrets.
        return replace(response, upstream=self._masker.text(response.upstream))

    async def find_capabilities(self) -> Capabilities:
        """Which parameters the model takes; one small call if it takes them all."""
        return await find_capabilities(self)

    async def find_top_logprobs(self, known: Capabilities) -> int:
        """How many alternatives of a token the model gives; one small call if it gives twenty."""
        return await find_top_logprobs(self, known)

    async def identify(self) -> ModelIdentity:
        """A hash over what a local server says of the model it has loaded; nothing for a hosted one."""
        if self.model.base_url is None or not (is_local(self.model.base_url) or self.model.pin.build_hash):
            return ModelIdentity()
        return await identify_server(self)

    def batches(self) -> Batching | None:
        """Its `/files` and `/batches`."""
        return BatchEndpoint(self)

    async def close(self) -> None:
        """Close the connection pool."""
        if self._connection is not None:
            connection, self._connection = self._connection, None
            await connection.client.close()

    async def get_json(self, url: str) -> Any | None:
        """The JSON at a path below base_url, or at an address; None if the server does not have it.

        Raises:
            CallError: the server cannot be reached, or says that it cannot answer yet.
        """
        try:
            return (await self._exchange(url, None))[0]
        except CallError as error:
            # A server that is still loading its model may know it later.
            is_wrong = error.fatal and error.status is None
            if error.kind in ("connection", "timeout") or error.status in (429, 503) or is_wrong:
                raise
            return None

    async def post_form(self, path: str, fields: Mapping[str, str], files: Mapping[str, Any]) -> Any:
        """The JSON that a form with files is answered by.

        Raises:
            CallError: the server refuses it, or cannot be reached.
        """
        connection = self._connection or self._open()
        request = connection.form(path, fields, files)
        return (await self._answer(request, max(self._timeout, FILE_SECONDS)))[0]

    async def exchange(self, path: str, body: Mapping[str, Any] | None) -> Any:
        """The JSON that a path below base_url answers a body with, or a GET without one.

        Raises:
            CallError: the server refuses it, or cannot be reached.
        """
        return (await self._exchange(path, body))[0]

    async def download(self, path: str, take: Callable[[bytes], None]) -> None:
        """Hand out every line of a file on the server, without secrets.

        Raises:
            CallError: the server does not give it, or not to its end.
        """

        def without_secrets(line: bytes) -> None:
            take(self._masked_line(line) if self._masker.may_stand_in(line) else line)

        async def read(response: "ClientResponse") -> bytes:
            if response.status != 200:
                return await read_body(response)
            await read_lines(response, without_secrets)
            return b""

        connection = self._connection or self._open()
        request = connection.request(path, None, {"accept-encoding": "identity"})
        response, content = await self._send(request, max(self._timeout, FILE_SECONDS), read)
        if response.status != 200:
            raise self._status_error(response, MaskedHeaders(response.raw_headers, self._masker), content)

    def _masked_line(self, line: bytes) -> bytes:
        try:
            return msgspec.json.encode(self._masker.value(decode_body(line)))
        except (ValueError, CallError):
            return self._masker.text(line.decode("utf-8", "replace")).encode()

    async def _exchange(self, path: str, body: Mapping[str, Any] | None) -> tuple[Any, Mapping[str, str]]:
        """Decoded body and headers of a reply to one request; errors as of `_answer`."""
        connection = self._connection or self._open()
        request = connection.request(path, None if body is None else msgspec.json.encode(body))
        return await self._answer(request, self._timeout)

    async def _answer(self, request: Sending, seconds: float) -> tuple[Any, Mapping[str, str]]:
        """Decoded body and headers of a reply, without secrets; all that a server says comes through here."""
        response, content = await self._send(request, seconds)
        self._has_answered = True
        headers, status = MaskedHeaders(response.raw_headers, self._masker), response.status
        if self.on_rate_limits is not None and (limits := rate_limits(headers)) is not None:
            self.on_rate_limits(limits)
        if 200 <= status < 300:
            return self._body(status, headers, content), headers
        raise self._status_error(response, headers, content)

    async def _send(
        self, request: Sending, seconds: float, read: Callable[["ClientResponse"], Awaitable[bytes]] = read_body
    ) -> tuple["ClientResponse", bytes]:
        """The reply to a request, and its body; a CallError if there is none, or one that is not HTTP."""
        import aiohttp

        try:
            async with asyncio.timeout(seconds), request as response:
                return response, await read(response)
        except CallError:
            raise
        except TimeoutError:
            raise self._timed_out(seconds) from None
        except (
            aiohttp.ClientConnectionError,
            aiohttp.ClientPayloadError,
            aiohttp.ClientHttpProxyError,
            aiohttp.InvalidURL,
            OSError,
        ) as error:
            raise self._connection_error(error) from None
        except Exception as error:  # noqa: BLE001  # whatever a transport makes of bytes that are not HTTP
            raise self._not_http(error) from None

    def _body(self, status: int, headers: Mapping[str, str], content: bytes) -> Any:
        try:
            payload = decode_body(content)
            if self._masker.may_stand_in(content):
                payload = self._masker.value(payload)
        except CallError as error:
            # It quotes what was said so far.
            raise CallError(error.kind, redact(self._masker.text(str(error))), retryable=error.retryable) from None
        except ValueError:
            kind = headers.get("content-type", "no content type")
            start = self._shown(content)
            if is_stream(kind, content):
                message = f'the server streams its reply in spite of "stream": false, and it cannot be read: {start}'
                # A server that streams does so with every reply.
                raise CallError("server_error", message, fatal=True) from None
            message = f"HTTP {status} with {kind} instead of JSON: {start}"
            raise CallError("server_error", message, retryable=True) from None
        if isinstance(payload, dict) and (payload.get("error") or payload.get("object") == "error"):
            fault = error_from_ok(payload, headers, now=time.time())
            fault.status = status
            raise fault
        return payload

    def _status_error(self, response: "ClientResponse", headers: Mapping[str, str], content: bytes) -> CallError:
        error = self._error_of(response.status, headers, content, str(response.url))
        error.status = response.status
        return error

    def _error_of(self, status: int, headers: Mapping[str, str], content: bytes, url: str) -> CallError:
        if 300 <= status < 400:
            return error_from_redirect(status, url.partition("?")[0], headers.get("location"), CHAT)
        if not 400 <= status < 600:
            message = f"HTTP {status:03d}, which is not a reply to a request: {self._shown(content)}"
            return CallError("server_error", message)
        try:
            body = self._masker.value(decode_body(content))
        except (ValueError, CallError):
            body = f"{headers.get('content-type', '')}: {self._shown(content)}"
        return error_from_status(status, body, headers, now=time.time())

    def _shown(self, content: bytes) -> str:
        """The beginning of a body that cannot be read."""
        return redact(self._masker.text(content[:4000].decode("utf-8", "replace")))[:200]

    def _connection_error(self, error: BaseException) -> CallError:
        chain = list(_causes(error))
        if any(isinstance(cause, OSError) and cause.errno == errno.EMFILE for cause in chain):
            message = "too many open files; lower max_concurrency or raise `ulimit -n`"
            return CallError("connection", message, retryable=True)
        root = next((cause for cause in chain if isinstance(cause, OSError)), chain[0])
        # What the system says is shorter than the client's account, which has the address and its TLS settings again.
        said = [os.strerror(cause.errno) for cause in chain if isinstance(cause, ConnectionError) and cause.errno]
        text = said[-1] if said else self._words_of(root)
        proxy = _proxy_for(self.address())
        through = f" through the proxy of {proxy[0]}" if proxy is not None else ""
        message = f"cannot reach {self.address()}{through}: {text}"
        # An address that never answered and takes no connection is a wrong address, and asking again does not help.
        is_refused = any(isinstance(cause, ConnectionRefusedError | gaierror) for cause in chain)
        is_wrong = is_refused and not self._has_answered
        return CallError("connection", message, retryable=not is_wrong, fatal=is_wrong)

    def _not_http(self, error: Exception) -> CallError:
        what = f"what answers there is not HTTP as it should be: {self._words_of(error)}"
        message = f"cannot reach {self.address()}: {what}"
        # An address that never answered is a wrong one, as if nothing listened there.
        return CallError("server_error", message, retryable=self._has_answered, fatal=not self._has_answered)

    def _words_of(self, error: BaseException) -> str:
        """What an exception says, without the status 400 that aiohttp makes up for a reply that it cannot read."""
        words = [cause.message for cause in _causes(error) if hasattr(cause, "message")]
        if words and not isinstance(words[0], str):
            return "the connection was closed before the reply was complete"
        return redact(self._masker.text(words[0] if words else str(error)))[:200].rstrip(" ^") or type(error).__name__

    @staticmethod
    def _timed_out(seconds: float) -> CallError:
        return CallError("timeout", f"no reply within {seconds:g} s", retryable=True)

    def address(self) -> str:
        """The server, for messages."""
        return self.model.public_url or "https://api.openai.com/v1"

    @cached_property
    def _masker(self) -> Masker:
        return Masker([self.api_key, *self.variables.values(), *secret_values(self.model.base_url)])

    def _open(self) -> Connection:
        import httpx2
        from openai import AsyncOpenAI, DefaultAioHttpClient

        proxy = _proxy_for(self.address()) if self.uses_proxy else None
        if proxy is not None and proxy[1].startswith("socks"):
            raise ConfigError(
                f"{proxy[0]} names a SOCKS proxy for {self.address()}, which is not supported; "
                "name an HTTP proxy, or except the host in NO_PROXY"
            )
        limits = httpx2.Limits(
            max_connections=self.model.max_concurrency, max_keepalive_connections=self.model.max_concurrency
        )
        timeout = httpx2.Timeout(self._timeout, pool=None)
        pool = DefaultAioHttpClient(verify=_tls(), limits=limits, timeout=timeout, trust_env=self.uses_proxy)
        address, query = split_address(self.model.base_url, self.variables)
        client = AsyncOpenAI(
            # An empty key would make the client read its own environment variable.
            api_key=self.api_key or "none",
            base_url=address,
            max_retries=0,
            timeout=timeout,
            http_client=pool,
        )
        # Commands that need no key leave out the headers whose variables are not set.
        headers = {
            name: filled(value, self.variables)
            for name, value in self.model.extra_headers.items()
            if self.variables.keys() >= set(variables_in(value))
        }
        # Without a key the client would send a made-up one, which hosts that take it in another header refuse.
        key = client.auth_headers if self.api_key else {}
        self._connection = Connection(client, pool, query, {**key, **headers}, self._timeout)
        return self._connection


@cache
def _tls() -> "SSLContext":
    """The certificates of servers are checked against it; kept, since it takes 20 ms to read."""
    import httpx2

    return httpx2.create_ssl_context()


def _proxy_for(url: str) -> tuple[str, str] | None:
    """Name and address of the proxy that the environment sets for a URL; None if it sets none."""
    parts = urlsplit(url)
    for kind in (parts.scheme, "all"):
        address = getproxies().get(kind)
        if address and not proxy_bypass(parts.netloc):
            name = f"{kind}_proxy"
            return (name if os.environ.get(name) else name.upper()), address.lower()
    return None


def _causes(error: BaseException) -> Iterator[BaseException]:
    """An exception and what led to it, down to the first cause."""
    cause: BaseException | None = error
    while cause is not None:
        yield cause
        cause = cause.__cause__ or cause.__context__
