"""The connection to a server that speaks OpenAI's protocol: the official client's pool, with our requests on it."""

from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager
from functools import partial
from typing import TYPE_CHECKING, Any

from judgekit.providers.bodies import ENCODINGS

if TYPE_CHECKING:
    from aiohttp import ClientResponse, ClientSession
    from httpx2 import AsyncClient
    from openai import AsyncOpenAI
    from yarl import URL

CHAT = "/chat/completions"
"""Where a completion is asked for, below base_url."""

Sending = AbstractAsyncContextManager["ClientResponse"]
"""A request that is sent when it is entered."""


class Connection:
    """The official client and the session of its pool, and what every request over it shares."""

    def __init__(
        self, client: "AsyncOpenAI", pool: "AsyncClient", query: str, headers: Mapping[str, str], seconds: float
    ) -> None:
        """Take the session that the pool asks the address of the client with.

        Args:
            client: has key, address and headers.
            pool: of the client.
            query: what follows every path.
            headers: of every request, beside those of the client.
            seconds: limit of connecting, and of waiting for a piece of a reply.
        """
        import aiohttp
        import httpx2

        self.client = client
        self._query = query
        self._chat = self._url(CHAT)
        # The pool has one transport for each proxy that the environment sets, and one for addresses without.
        transport: Any = pool._transport_for_url(client.base_url)
        transport.client = transport.get_client()
        self._session: ClientSession = transport.client
        own = {**client.default_headers, "accept-encoding": ENCODINGS}
        given = httpx2.Headers({name: value for name, value in own.items() if isinstance(value, str)})
        given.update(headers)
        self._json = partial(aiohttp.BytesPayload, content_type=given.pop("content-type", "application/json"))
        self._form = aiohttp.FormData
        self._session.headers.update(given)
        self._options: dict[str, Any] = {
            "allow_redirects": False,  # one may lead the judged texts to another host
            "auto_decompress": False,
            "timeout": aiohttp.ClientTimeout(total=None, sock_connect=seconds, sock_read=seconds),
        }
        if (proxy := transport.proxy) is not None:
            auth = aiohttp.BasicAuth(*proxy.auth) if proxy.auth else None
            self._options |= {"proxy": str(proxy.url), "proxy_auth": auth, "proxy_headers": proxy.headers}

    def request(self, path: str, content: bytes | None, headers: Mapping[str, str] | None = None) -> Sending:
        """A request for a path below the base address, or for a whole address; without content it is a GET."""
        url = self._chat if path == CHAT else self._url(path)
        data = None if content is None else self._json(content)
        method = "GET" if data is None else "POST"
        return self._session.request(method, url, data=data, headers=headers, **self._options)

    def form(self, path: str, fields: Mapping[str, str], files: Mapping[str, Any]) -> Sending:
        """A request with a form, whose files are read while they are sent."""
        form = self._form(fields)
        for name, (filename, stream, kind) in files.items():
            form.add_field(name, stream, filename=filename, content_type=kind)
        return self._session.request("POST", self._url(path), data=form, **self._options)

    def _url(self, path: str) -> "URL":
        from yarl import URL

        url = self.client.base_url.join(path.lstrip("/"))
        if self._query:
            query = self._query.encode()
            url = url.copy_with(query=url.query + b"&" + query if url.query else query)
        return URL(str(url))
