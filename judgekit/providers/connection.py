"""One client and its connection pool, and the proxy that the environment sets for it."""

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

from judgekit.providers.bodies import ENCODINGS

if TYPE_CHECKING:
    from httpx2 import URL, AsyncClient, Request
    from openai import AsyncOpenAI

CHAT = "/chat/completions"
"""Where a completion is asked for, below base_url."""


class Connection:
    """The official client and its pool, and what every request over it shares."""

    def __init__(self, client: "AsyncOpenAI", pool: "AsyncClient", *, query: str, headers: Mapping[str, str]) -> None:
        """Fix address and headers, which are the same for the whole run.

        Args:
            client: knows the address without its query, and the headers.
            pool: sends.
            query: of base_url, for every request.
            headers: beside those of the client.
        """
        import httpx2

        self.client = client
        self.pool = pool
        self._request = httpx2.Request
        self._query = query
        self._chat = self._url(CHAT)
        own = {**client.default_headers, **client.auth_headers, "accept-encoding": ENCODINGS}
        self._headers = httpx2.Headers({name: value for name, value in own.items() if isinstance(value, str)})
        self._headers.update(headers)

    def request(self, path: str, content: bytes | None) -> "Request":
        """A request for a path below the base address, or for a whole address; without content it is a GET."""
        if content is not None and path == CHAT:
            return self._request("POST", self._chat, headers=self._headers, content=content)
        method = "GET" if content is None else "POST"
        return self._request(method, self._url(path), headers=self._headers, content=content)

    def _url(self, path: str) -> "URL":
        url = self.client.base_url.join(path.lstrip("/"))
        return url.copy_with(query=self._query.encode()) if self._query else url


def proxy_for(url: str) -> tuple[str, str] | None:
    """Name and address of the proxy that the environment sets for a URL; None where it sets none."""
    parts = urlsplit(url)
    proxies = getproxies()
    for kind in (parts.scheme, "all"):
        address = proxies.get(kind)
        if address and not proxy_bypass(parts.netloc):
            name = f"{kind}_proxy"
            return (name if os.environ.get(name) else name.upper()), address.lower()
    return None
