"""Any server that speaks OpenAI's chat completions: OpenAI, vLLM, llama.cpp, Ollama and others.

The official client carries the connection, the key and the address; its own retries are off, since they
multiply with ours, and requests go through its `post` with a ready body, which skips a parameter transform
that costs more than the rest of the call.
"""

import asyncio
import errno
import hashlib
import time
from collections.abc import Iterator, Mapping
from socket import gaierror
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import msgspec

from judgekit.core.canonical import canonical_json
from judgekit.core.cases import Usage
from judgekit.core.config import ModelConfig, is_local
from judgekit.core.judgments import ModelRequest, ModelResponse
from judgekit.core.protocols import CallError, Capabilities, ModelIdentity, Provider
from judgekit.providers.http_errors import error_from_status, redact
from judgekit.providers.probing import probe_capabilities

if TYPE_CHECKING:
    from openai import AsyncOpenAI

_decode = msgspec.json.Decoder().decode


class OpenAICompatible(Provider):
    """Chat completions over HTTP; one client and one connection pool for the whole run."""

    def __init__(self, model: ModelConfig, *, api_key: str | None = None) -> None:
        """Nothing is opened before the first request."""
        super().__init__(model, api_key=api_key)
        self._client: AsyncOpenAI | None = None
        self._timeout = model.timeout_seconds or 120.0

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
        if self._client is not None:
            client, self._client = self._client, None
            await client.close()

    async def get_json(self, url: str) -> Any | None:
        """The JSON at a path below base_url, or at an address; None where the server does not have it.

        Raises:
            CallError: the server cannot be reached.
        """
        try:
            return await self._exchange(url, None)
        except CallError as error:
            if error.kind in ("connection", "timeout"):
                raise
            return None

    async def _exchange(self, path: str, body: Mapping[str, Any] | None) -> Any:
        import httpx2
        from openai import APIConnectionError, APIStatusError, APITimeoutError

        client = self._client or self._open()
        try:
            async with asyncio.timeout(self._timeout):
                if body is None:
                    response = await client.get(path, cast_to=httpx2.Response)
                else:
                    response = await client.post(path, body=body, cast_to=httpx2.Response)
        except TimeoutError:
            raise self._timed_out() from None
        except APIStatusError as error:
            raise self._status_error(error.status_code, error.response) from None
        except APITimeoutError as error:
            # The aiohttp transport also calls a refused connection a time-out; its cause tells them apart.
            refused = any(isinstance(cause, ConnectionError | gaierror) for cause in causes(error))
            raise (self._connection_error(error) if refused else self._timed_out()) from None
        except (APIConnectionError, httpx2.HTTPError, OSError) as error:
            raise self._connection_error(error) from None
        return self._body(response)

    def _body(self, response: Any) -> Any:
        try:
            payload = _decode(response.content)
        except (msgspec.DecodeError, UnicodeDecodeError):
            kind = response.headers.get("content-type", "no content type")
            start = redact(response.content[:200].decode("utf-8", "replace"), self.api_key)
            message = f"HTTP {response.status_code} with {kind} instead of JSON: {start}"
            raise CallError("server_error", message, retryable=True) from None
        if isinstance(payload, dict) and payload.get("error") and not payload.get("choices"):
            inner = payload["error"]
            code = inner.get("code") if isinstance(inner, dict) else None
            status = code if isinstance(code, int) and 400 <= code < 600 else 500
            raise error_from_status(status, payload, {}, now=time.time(), secret=self.api_key)
        return payload

    def _status_error(self, status: int, response: Any) -> CallError:
        try:
            body = _decode(response.content)
        except (msgspec.DecodeError, UnicodeDecodeError):
            body = f"{response.headers.get('content-type', '')}: {response.content[:200].decode('utf-8', 'replace')}"
        headers = {name.lower(): value for name, value in response.headers.items()}
        return error_from_status(status, body, headers, now=time.time(), secret=self.api_key)

    def _connection_error(self, error: BaseException) -> CallError:
        chain = list(causes(error))
        if any(isinstance(cause, OSError) and cause.errno == errno.EMFILE for cause in chain):
            message = "too many open files; lower max_concurrency or raise `ulimit -n`"
            return CallError("connection", message, retryable=True)
        root = next((cause for cause in chain if isinstance(cause, OSError)), chain[0])
        text = redact(str(root), self.api_key) or type(root).__name__
        return CallError("connection", f"cannot reach {self.address()}: {text}", retryable=True)

    def _timed_out(self) -> CallError:
        return CallError("timeout", f"no reply within {self._timeout:g} s", retryable=True)

    def address(self) -> str:
        """The server, for messages."""
        return self.model.base_url or "https://api.openai.com/v1"

    def _open(self) -> "AsyncOpenAI":
        import httpx2
        from openai import AsyncOpenAI, DefaultAioHttpClient

        limits = httpx2.Limits(
            max_connections=self.model.max_concurrency, max_keepalive_connections=self.model.max_concurrency
        )
        timeout = httpx2.Timeout(self._timeout, pool=None)
        self._client = AsyncOpenAI(
            # An empty key would make the client read its own environment variable.
            api_key=self.api_key or "none",
            base_url=self.model.base_url,
            max_retries=0,
            timeout=timeout,
            http_client=DefaultAioHttpClient(limits=limits, timeout=timeout),
        )
        return self._client


def causes(error: BaseException) -> Iterator[BaseException]:
    """An exception and what led to it, down to the first cause."""
    cause: BaseException | None = error
    while cause is not None:
        yield cause
        cause = cause.__cause__ or cause.__context__


def wire_body(request: ModelRequest) -> dict[str, Any]:
    """The body of a chat completion request."""
    parameters = request.parameters
    body: dict[str, Any] = {"model": request.model, "messages": [dict(message) for message in request.messages]}
    for name in ("temperature", "seed"):
        if name in parameters:
            body[name] = parameters[name]
    body[parameters["max_tokens_name"]] = parameters["max_output_tokens"]
    if parameters["response_format"] == "json_schema":
        schema = {"name": "verdict", "strict": True, "schema": dict(request.reply_schema)}
        body["response_format"] = {"type": "json_schema", "json_schema": schema}
    elif parameters["response_format"] == "json_object":
        body["response_format"] = {"type": "json_object"}
    return body


def read_completion(payload: Any, latency_seconds: float) -> ModelResponse:
    """A chat completion as our response; parts that a server leaves out stay None.

    Raises:
        CallError: the body is JSON, but no chat completion.
    """
    try:
        choice = payload["choices"][0]
        message = choice["message"]
        text, source = message.get("content"), "content"
        calls = message.get("tool_calls")
        if not text and calls:
            # Several calls are read together, so that different verdicts in them are seen to differ.
            text, source = "\n".join(call["function"]["arguments"] for call in calls), "tool_call"
        if isinstance(text, list):
            text = "".join(part.get("text", "") for part in text)
    except (TypeError, KeyError, IndexError, AttributeError):
        shown = str(payload)[:200]
        raise CallError("server_error", f"the reply is no chat completion: {redact(shown)}", retryable=True) from None
    return ModelResponse(
        text=text if isinstance(text, str) else None,
        finish_reason=choice.get("finish_reason"),
        refusal=message.get("refusal"),
        usage=_usage(payload.get("usage")),
        served_model=payload.get("model"),
        fingerprint=payload.get("system_fingerprint"),
        source="tool_call" if source == "tool_call" else "content",
        latency_seconds=latency_seconds,
    )


def _usage(usage: Any) -> Usage | None:
    if not isinstance(usage, dict):
        return None
    details = usage.get("prompt_tokens_details")
    cached = details.get("cached_tokens") if isinstance(details, dict) else None
    counts = (usage.get("prompt_tokens"), usage.get("completion_tokens"), cached)
    prompt, completion, cached = (count if isinstance(count, int) and count >= 0 else None for count in counts)
    return Usage.model_construct(prompt_tokens=prompt, completion_tokens=completion, cached_tokens=cached)


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
