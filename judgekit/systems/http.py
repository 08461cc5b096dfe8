"""A service that answers over HTTP: `"system": {"name": "http", "url": "http://localhost:8000/ask"}`."""

import asyncio
import json
import re
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Annotated, Any, Literal
from urllib.parse import quote, urljoin, urlsplit

import aiohttp
from pydantic import Field, JsonValue, field_validator, model_validator
from yarl import URL

from judgekit.core.answers import INVALID
from judgekit.core.cases import Case
from judgekit.core.errors import ConfigError, ProviderError, did_you_mean
from judgekit.core.protocols import Ask, AskError, Surroundings, System
from judgekit.core.request_fields import (
    check_address,
    check_headers,
    filled,
    header_problem,
    public_address,
    secret_values,
    split_address,
    variables_in,
)
from judgekit.systems.http_presets import PRESETS

_PLACEHOLDER = re.compile(r"\{\{\s*([A-Za-z_][A-Za-z0-9_]*(?:\.[A-Za-z0-9_-]+)*)\s*\}\}")
_REACH_SECONDS = 10.0
_SHOWN = 160
"""Characters of an answer that is not one, in messages."""


class Http(System):
    """Sends one request a case, and reads the fields of an output from the JSON that comes back."""

    url: str
    """Fields of the case such as `{{id}}` may stand in its path, `${NAME}` of an environment variable in its query."""
    method: Literal["POST", "PUT", "GET"] = "POST"
    headers: dict[str, str] = {}
    """A secret is written as `${NAME}` of an environment variable."""
    body: JsonValue = None
    """JSON in which `{{question}}`, `{{metadata.topic}}` and the like stand for what the case has; left out: the
    preset's, or `{"question": "{{question}}"}`. A text that is nothing but `{{tags}}` becomes the list itself."""
    params: dict[str, str] = {}
    """Added to the query, with the same placeholders."""
    preset: str | None = None
    """A known shape of answers; `fields` and `body` go before what it says."""
    fields: dict[str, str] = {}
    """Our field name -> path in the answer, as for a file of outputs: {"answer": "result.text",
    "retrieved[].text": "result.chunks[].content"}."""
    error: str | None = None
    """Path of what says, in an answer with status 200, that there is none; left out: `error`."""
    latency_unit: Literal["s", "ms"] | None = None
    """Unit of `latency_seconds` in the answer; left out: the preset's, or seconds."""
    health: str | None = None
    """Address that is asked first, relative to `url`, and answers with a status below 400; left out: only whether the
    port is open is checked."""
    max_bytes: Annotated[int, Field(ge=1)] = 20_000_000
    """An answer that is longer is an error row of kind `too_large`."""

    @model_validator(mode="after")
    def _can_be_sent(self) -> "Http":
        check_address(self.url)
        check_headers(self.headers, may_set=("authorization", "accept", "content-type"))
        if _PLACEHOLDER.search(self.url.partition("?")[2]):
            raise ValueError('url: {{...}} may stand in the path only; give the query as "params"')
        if self.method == "GET" and self.body is not None:
            raise ValueError("body: a GET has none; use params")
        for text in _texts([self.url, self.body, self.params]):
            for name in _PLACEHOLDER.findall(text):
                head = name.partition(".")[0]
                if head not in Case.model_fields:
                    raise ValueError(f"{{{{{name}}}}}: a case has no {head!r}{did_you_mean(head, Case.model_fields)}")
        return self

    @field_validator("preset")
    @classmethod
    def _is_known(cls, value: str | None) -> str | None:
        if value is not None and value not in PRESETS:
            raise ValueError(f"no preset called {value!r}{did_you_mean(value, PRESETS)}")
        return value

    def settings(self) -> dict[str, Any]:
        """As of every system, with the secrets of the address hidden."""
        return {**super().settings(), "url": public_address(self.url)}

    def facts(self, surroundings: Surroundings) -> Mapping[str, Any]:
        """Check that `fields` are fields of an output."""
        surroundings.reply_reader(self._fields)
        return {}

    def secrets(self, surroundings: Surroundings) -> Sequence[str]:
        """Values of its environment variables, and what may be a secret in the query."""
        named = [surroundings.variables.get(name, "") for name in self._variables]
        return [*named, *secret_values(self.url)]

    def sees(self, case: Case) -> Any:
        """The request without headers."""
        fields = case.model_dump(mode="json")
        in_path = [_at(fields, name) for name in _PLACEHOLDER.findall(self.url)]
        return [_filled_in(self._body, fields), _filled_in(self.params, fields), in_path]

    @property
    def _variables(self) -> list[str]:
        return [name for text in (self.url, *self.headers.values()) for name in variables_in(text)]

    @property
    def _fields(self) -> dict[str, str]:
        return {**(PRESETS[self.preset].fields if self.preset else {}), **self.fields}

    @property
    def _body(self) -> Any:
        if self.method == "GET" or self.body is not None:
            return self.body
        return PRESETS[self.preset].body if self.preset else {"question": "{{question}}"}

    @asynccontextmanager
    async def session(self, surroundings: Surroundings) -> AsyncIterator[Ask]:
        """Look up secrets, see that somebody is there, and keep connections open."""
        variables = {name: surroundings.variables.get(name, "").strip() for name in self._variables}
        for name, value in variables.items():
            if not value:
                raise ConfigError(f"system.headers or system.url: environment variable {name} is not set")
        for name, value in self.headers.items():
            problem = header_problem(value, variables)
            if problem is not None:
                raise ConfigError(f"system.headers.{name}: the value of its variable {problem}")
        headers = {name: filled(value, variables) for name, value in self.headers.items()}
        read = surroundings.reply_reader(self._fields)
        connector = aiohttp.TCPConnector(limit=self.max_concurrency)
        timeout = aiohttp.ClientTimeout(total=None)
        async with aiohttp.ClientSession(
            connector=connector, timeout=timeout, headers=headers, trust_env=True, auto_decompress=True
        ) as client:
            await self._reach(client)

            async def ask(case: Case) -> Mapping[str, Any]:
                return self._output(await self._reply(client, case, variables), read)

            yield ask

    async def _reach(self, client: aiohttp.ClientSession) -> None:
        """See that the service is there, before the first case.

        Raises:
            ProviderError: it is not.
        """
        shown = public_address(self.health or self.url)
        try:
            async with asyncio.timeout(_REACH_SECONDS):
                if self.health is None:
                    parts = urlsplit(self.url)
                    port = parts.port or (443 if parts.scheme == "https" else 80)
                    _, writer = await asyncio.open_connection(parts.hostname, port)
                    writer.close()
                    return
                async with client.get(urljoin(self.url, self.health)) as response:
                    if response.status < 400:
                        return
                    why = f"answered {response.status}"
        except TimeoutError:
            why = f"did not answer within {_REACH_SECONDS:g} s"
        except (OSError, aiohttp.ClientError) as error:
            why = f"cannot be reached: {_cause(error)}"
        raise ProviderError(f"system http: {shown} {why}; start the service, or correct the address")

    async def _reply(self, client: aiohttp.ClientSession, case: Case, variables: Mapping[str, str]) -> Any:
        """The decoded answer to one request.

        Raises:
            AskError: there is none.
        """
        fields = case.model_dump(mode="json")
        path, query = split_address(self.url, variables)
        address = _PLACEHOLDER.sub(lambda match: quote(_as_text(_at(fields, match[1])), safe=""), path or "")
        url = URL(address + (f"?{query}" if query else ""), encoded=True)
        if self.params:
            url = url.update_query({name: _as_text(_filled_in(text, fields)) for name, text in self.params.items()})
        body = _filled_in(self._body, fields)
        try:
            async with client.request(
                self.method, url, json=body if self.method != "GET" else None, allow_redirects=False
            ) as response:
                content = bytearray()
                async for piece in response.content.iter_any():
                    content += piece
                    if len(content) > self.max_bytes:
                        raise AskError("too_large", f"the answer is longer than {self.max_bytes:,} bytes")
                _check_status(response, content)
                return _decoded(response, content)
        except (OSError, aiohttp.ClientError) as error:
            raise AskError("connection", _cause(error), retryable=True) from None

    def _output(self, reply: Any, read: Callable[[Mapping[str, Any]], Mapping[str, Any]]) -> Mapping[str, Any]:
        """The fields of an output in an answer.

        Raises:
            AskError: it says that there is none, or has none of the fields.
        """
        if isinstance(reply, str):
            return {"answer": reply}
        if not isinstance(reply, Mapping):
            raise AskError(INVALID, f"expected a JSON object, found a {type(reply).__name__}")
        found = dict(read(reply))
        found.pop("error", None)
        said = _at(reply, self.error or "error")
        if said and (self.error is not None or "answer" not in found):
            raise AskError("api", _as_text(said)[:_SHOWN])
        if not found:
            keys = ", ".join(map(str, list(reply)[:8])) or "no fields"
            raise AskError(INVALID, f'the answer has {keys}; say which is which by "fields": {{"answer": ...}}')
        unit = self.latency_unit or (PRESETS[self.preset].latency_unit if self.preset else "s")
        latency = found.get("latency_seconds")
        if unit == "ms" and isinstance(latency, Mapping):
            found["latency_seconds"] = {
                name: value / 1000 if isinstance(value, int | float) else value for name, value in latency.items()
            }
        return found


def _check_status(response: aiohttp.ClientResponse, content: bytes | bytearray) -> None:
    status = response.status
    if status < 300:
        return
    shown = " ".join(bytes(content[: 4 * _SHOWN]).decode("utf-8", "replace").split())[:_SHOWN]
    said = f"status {status}" + (f": {shown}" if shown else "")
    if status < 400:
        raise AskError("redirected", f"status {status}: it points to {response.headers.get('Location', 'nowhere')}")
    if status == 429:
        after = response.headers.get("Retry-After", "")
        seconds = float(after) if after.isdecimal() else None
        raise AskError("rate_limited", said, retryable=True, retry_after_seconds=seconds)
    if status in (408, 504):
        raise AskError("timeout", said, retryable=True)
    raise AskError("server_error" if status >= 500 else "refused", said, retryable=status >= 500)


def _decoded(response: aiohttp.ClientResponse, content: bytes | bytearray) -> Any:
    """The answer as JSON, or as plain text where the service says that it is one."""
    try:
        if response.content_type == "text/plain":
            return content.decode("utf-8")
        return json.loads(content)
    except (ValueError, RecursionError):
        what = "HTML" if "html" in response.content_type else response.content_type
        shown = " ".join(bytes(content[: 4 * _SHOWN]).decode("utf-8", "replace").split())[:_SHOWN]
        raise AskError(INVALID, f"expected JSON, found {what}: {shown or 'nothing'}") from None


def _texts(value: Any) -> list[str]:
    if isinstance(value, str):
        return [value]
    if isinstance(value, Mapping):
        value = value.values()
    elif not isinstance(value, list):
        return []
    return [text for item in value for text in _texts(item)]


def _filled_in(template: Any, fields: Mapping[str, Any]) -> Any:
    """A template with what a case has; a text that is nothing but `{{name}}` becomes the value itself."""
    if isinstance(template, str):
        whole = _PLACEHOLDER.fullmatch(template)
        if whole is not None:
            return _at(fields, whole[1])
        return _PLACEHOLDER.sub(lambda match: _as_text(_at(fields, match[1])), template)
    if isinstance(template, Mapping):
        return {name: _filled_in(item, fields) for name, item in template.items()}
    return [_filled_in(item, fields) for item in template] if isinstance(template, list) else template


def _at(value: Any, path: str) -> Any:
    """What stands at a path of names; None if nothing does."""
    for part in path.split("."):
        value = value.get(part) if isinstance(value, Mapping) else None
    return value


def _as_text(value: Any) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _cause(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
