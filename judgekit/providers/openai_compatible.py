"""Any server that speaks OpenAI's chat completions: OpenAI, vLLM, llama.cpp, Ollama and others.

The official client carries the connection pool, the key, the address and the headers; its own retries are off, since
they multiply with ours. Requests go straight over its pool with a ready body: the client's way of building a request
and reading a reply costs three times the call itself.
"""

import asyncio
import errno
import hashlib
import json
import os
import time
from collections.abc import Iterator, Mapping
from socket import gaierror
from typing import Any
from urllib.parse import urlsplit

import msgspec

from judgekit.core.canonical import canonical_json
from judgekit.core.config import ModelConfig, is_local
from judgekit.core.errors import ConfigError
from judgekit.core.judgments import ModelRequest, ModelResponse
from judgekit.core.protocols import CallError, Capabilities, ModelIdentity, Provider
from judgekit.core.text import clean_text
from judgekit.providers.completions import read_completion, wire_body
from judgekit.providers.connection import Connection, proxy_for
from judgekit.providers.http_errors import error_from_ok, error_from_status, redact
from judgekit.providers.probing import probe_capabilities
from judgekit.providers.rate_limits import rate_limits

_decode = msgspec.json.Decoder().decode


class OpenAICompatible(Provider):
    """Chat completions over HTTP; one client and one connection pool for the whole run."""

    def __init__(self, model: ModelConfig, *, api_key: str | None = None) -> None:
        """Nothing is opened before the first request."""
        super().__init__(model, api_key=api_key)
        self._connection: Connection | None = None
        self._timeout = model.timeout_seconds or 120.0
        self._has_answered = False

    async def complete(self, request: ModelRequest) -> ModelResponse:
        """One chat completion, with a wall-clock limit from sending to the last byte."""
        started = time.perf_counter()
        payload = await self._exchange("/chat/completions", wire_body(request))
        return read_completion(payload, time.perf_counter() - started)

    async def probe(self) -> Capabilities:
        """Which parameters the model takes; one small call where it takes them all."""
        return await probe_capabilities(self)

    async def identify(self) -> ModelIdentity:
        """A hash over what a local server says of the model it has loaded; nothing for a hosted one."""
        if self.model.base_url is None or not (is_local(self.model.base_url) or self.model.pin.build_hash):
            return ModelIdentity()
        return await identify_server(self)

    async def close(self) -> None:
        """Close the connection pool."""
        if self._connection is not None:
            connection, self._connection = self._connection, None
            await connection.client.close()

    async def get_json(self, url: str) -> Any | None:
        """The JSON at a path below base_url, or at an address; None where the server does not have it.

        Raises:
            CallError: the server cannot be reached, or says that it cannot answer yet.
        """
        try:
            return await self._exchange(url, None)
        except CallError as error:
            # A server that is still loading its model says nothing of it, which is not having nothing to say.
            if error.kind in ("connection", "timeout") or error.status in (429, 503):
                raise
            return None

    async def _exchange(self, path: str, body: Mapping[str, Any] | None) -> Any:
        import httpx2

        connection = self._connection or self._open()
        request = connection.request(path, None if body is None else msgspec.json.encode(body))
        try:
            async with asyncio.timeout(self._timeout):
                response = await connection.pool.send(request)
        except TimeoutError:
            raise self._timed_out() from None
        except httpx2.TimeoutException as error:
            # The aiohttp transport calls every connection that cannot be made a time-out; its cause tells them apart.
            refused = any(isinstance(cause, OSError) and not isinstance(cause, TimeoutError) for cause in causes(error))
            raise (self._connection_error(error) if refused else self._timed_out()) from None
        except (httpx2.HTTPError, OSError) as error:
            raise self._connection_error(error) from None
        if self.on_rate_limits is not None:
            limits = rate_limits(response.headers)
            if limits is not None:
                self.on_rate_limits(limits)
        if response.status_code >= 400:
            raise self._status_error(response.status_code, response)
        self._has_answered = True
        return self._body(response)

    def _content(self, response: Any) -> bytes:
        """The body, without the key that a proxy may have put into it."""
        content: bytes = response.content
        # Stand-ins for a key, such as `none`, are words that a reply may hold.
        is_secret = self.api_key is not None and len(self.api_key) >= 8
        return content.replace((self.api_key or "").encode(), b"[key]") if is_secret else content

    def _body(self, response: Any) -> Any:
        content = self._content(response)
        try:
            payload = decode_body(content)
        except ValueError:
            kind = response.headers.get("content-type", "no content type")
            start = redact(content.decode("utf-8", "replace"))[:200]
            message = f"HTTP {response.status_code} with {kind} instead of JSON: {start}"
            raise CallError("server_error", message, retryable=True) from None
        if isinstance(payload, dict) and (payload.get("error") or payload.get("object") == "error"):
            raise error_from_ok(payload, lower_names(response.headers), now=time.time(), secret=self.api_key)
        return payload

    def _status_error(self, status: int, response: Any) -> CallError:
        self._has_answered = True
        content = self._content(response)
        try:
            body = decode_body(content)
        except ValueError:
            text = redact(content.decode("utf-8", "replace"))[:200]
            body = f"{response.headers.get('content-type', '')}: {text}"
        error = error_from_status(status, body, lower_names(response.headers), now=time.time(), secret=self.api_key)
        error.status = status
        return error

    def _connection_error(self, error: BaseException) -> CallError:
        chain = list(causes(error))
        if any(isinstance(cause, OSError) and cause.errno == errno.EMFILE for cause in chain):
            message = "too many open files; lower max_concurrency or raise `ulimit -n`"
            return CallError("connection", message, retryable=True)
        root = next((cause for cause in chain if isinstance(cause, OSError)), chain[0])
        # What the system says is shorter than the client's account, which has the address and its TLS settings again.
        said = [os.strerror(cause.errno) for cause in chain if isinstance(cause, ConnectionError) and cause.errno]
        text = said[-1] if said else redact(str(root), self.api_key) or type(root).__name__
        proxy = proxy_for(self.address())
        through = f" through the proxy of {proxy[0]}" if proxy is not None else ""
        message = f"cannot reach {self.address()}{through}: {text}"
        # An address that never answered and takes no connection is a wrong address, and asking again is in vain.
        is_wrong = not self._has_answered and any(
            isinstance(cause, ConnectionRefusedError | gaierror) for cause in chain
        )
        return CallError("connection", message, retryable=not is_wrong, fatal=is_wrong)

    def _timed_out(self) -> CallError:
        return CallError("timeout", f"no reply within {self._timeout:g} s", retryable=True)

    def address(self) -> str:
        """The server, for messages."""
        return self.model.base_url or "https://api.openai.com/v1"

    def _open(self) -> Connection:
        import httpx2
        from openai import AsyncOpenAI, DefaultAioHttpClient

        proxy = proxy_for(self.address())
        if proxy is not None and proxy[1].startswith("socks"):
            raise ConfigError(
                f"{proxy[0]} names a SOCKS proxy for {self.address()}, which is not supported; "
                "name an HTTP proxy, or except the host in NO_PROXY"
            )
        limits = httpx2.Limits(
            max_connections=self.model.max_concurrency, max_keepalive_connections=self.model.max_concurrency
        )
        timeout = httpx2.Timeout(self._timeout, pool=None)
        pool = DefaultAioHttpClient(limits=limits, timeout=timeout)
        client = AsyncOpenAI(
            # An empty key would make the client read its own environment variable.
            api_key=self.api_key or "none",
            base_url=self.model.base_url,
            max_retries=0,
            timeout=timeout,
            http_client=pool,
        )
        self._connection = Connection(client, pool)
        return self._connection


def lower_names(headers: Any) -> dict[str, str]:
    """Headers with their names in lower case."""
    return {name.lower(): value for name, value in headers.items()}


def decode_body(content: bytes) -> Any:
    """A JSON body; halves of surrogate pairs, which msgspec refuses, are put together or replaced.

    Raises:
        ValueError: no JSON, or nested too deeply.
    """
    try:
        try:
            return _decode(content)
        except (msgspec.DecodeError, UnicodeDecodeError):
            return json.loads(clean_text(json.dumps(json.loads(content), ensure_ascii=False)))
    except RecursionError:
        raise ValueError("nested too deeply") from None


def causes(error: BaseException) -> Iterator[BaseException]:
    """An exception and what led to it, down to the first cause."""
    cause: BaseException | None = error
    while cause is not None:
        yield cause
        cause = cause.__cause__ or cause.__context__


async def identify_server(provider: OpenAICompatible) -> ModelIdentity:
    """What a server says of the loaded model: Ollama's digest, else llama.cpp's /props and /v1/models.

    Raises:
        CallError: the server cannot be reached.
    """
    listing = await provider.get_json("/models")
    entries = listing.get("data") if isinstance(listing, dict) else None
    entries = [entry for entry in entries or () if isinstance(entry, dict)]
    served = tuple(str(entry.get("id")) for entry in entries)
    parts = urlsplit(provider.address())
    root = f"{parts.scheme}://{parts.netloc}"
    tags = await provider.get_json(f"{root}/api/tags")
    for entry in (tags.get("models") or ()) if isinstance(tags, dict) else ():
        if provider.model.model in (entry.get("name"), entry.get("model")) and entry.get("digest"):
            return ModelIdentity(build_hash=f"sha256:{entry['digest']}", source="/api/tags", served_models=served)
    facts: dict[str, Any] = {}
    props = await provider.get_json(f"{root}/props")
    if isinstance(props, dict):
        facts |= {key: props[key] for key in ("build_info", "model_path", "model_ftype") if key in props}
        if isinstance(props.get("chat_template"), str):
            facts["chat_template_sha256"] = hashlib.sha256(props["chat_template"].encode()).hexdigest()
    own = next((entry for entry in entries if entry.get("id") == provider.model.model), entries[0] if entries else {})
    facts |= {key: own[key] for key in ("id", "meta", "root", "max_model_len", "owned_by") if own.get(key) is not None}
    if not facts:
        return ModelIdentity(served_models=served)
    digest = hashlib.sha256(canonical_json(facts)).hexdigest()
    source = "/props and /v1/models" if isinstance(props, dict) else "/v1/models"
    return ModelIdentity(build_hash=f"sha256:{digest}", source=source, served_models=served, facts=facts)
