"""One client and its connection pool, and the proxy that the environment sets for it."""

import os
from typing import TYPE_CHECKING
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

if TYPE_CHECKING:
    from httpx2 import AsyncClient, Request
    from openai import AsyncOpenAI


class Connection:
    """The official client and its pool, and what every request over it shares."""

    def __init__(self, client: "AsyncOpenAI", pool: "AsyncClient") -> None:
        """Fix address and headers, which are the same for the whole run."""
        import httpx2

        self.client = client
        self.pool = pool
        self._request = httpx2.Request
        self._chat = client.base_url.join("chat/completions")
        headers = {**client.default_headers, **client.auth_headers}
        self._headers = httpx2.Headers({name: value for name, value in headers.items() if isinstance(value, str)})

    def request(self, path: str, content: bytes | None) -> "Request":
        """A request for a path below the base address, or for a whole address; without content it is a GET."""
        if content is not None and path == "/chat/completions":
            return self._request("POST", self._chat, headers=self._headers, content=content)
        method = "GET" if content is None else "POST"
        return self._request(
            method, self.client.base_url.join(path.lstrip("/")), headers=self._headers, content=content
        )


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
