"""A web server for one person on this machine: it knows who may ask, and leaves what is answered to others.

Only loopback is listened on. A request is answered if it names this machine as its host, so that a page from elsewhere
cannot reach it through a name that it points here, and if no other page sent it. Whoever may change something also
needs the token of the address, which only the terminal shows, and sends JSON, which a form of another page cannot.
"""

import hmac
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from io import BytesIO
from shutil import copyfileobj
from typing import IO
from urllib.parse import parse_qs, urlsplit

from judgekit.core.errors import ConfigError
from judgekit.reports.pages import policy
from judgekit.reports.runs_page import render_message

HOSTS = frozenset({"127.0.0.1", "localhost", "[::1]"})
"""Host names that requests may use."""

HTML = "text/html; charset=utf-8"
JSON = "application/json"

MOST_SENT = 100_000
"""Bytes that a request may send."""


@dataclass(frozen=True)
class Asked:
    """A request that may be answered."""

    target: str
    """Path and query of the address, as they came."""
    known_tag: str | None = None
    """The version that the browser has, from `If-None-Match`."""
    sent: bytes | None = None
    """What is sent, if something is to be changed; None if it is only asked."""


@dataclass
class Answer:
    """What is sent for one request."""

    status: HTTPStatus
    body: IO[bytes]
    policy: str
    headers: Mapping[str, str] = field(default_factory=dict)
    content_type: str = HTML


def page(status: HTTPStatus, text: str, **headers: str) -> Answer:
    """A page without a script that is not kept by the browser."""
    return Answer(status, BytesIO(text.encode("utf-8", "replace")), policy(), {"Cache-Control": "no-store", **headers})


def message(status: HTTPStatus, title: str, text: str, **headers: str) -> Answer:
    """A page that says why there is nothing else to see."""
    return page(status, render_message(title, text), **headers)


def open_local(
    answering: Callable[[Asked], Answer], port: int, *, token: str | None = None, changing: bool = False
) -> ThreadingHTTPServer:
    """A server on loopback that is ready to serve.

    Args:
        answering: gives the answer to a request; several threads call it at once.
        port: its port; 0 takes a free one.
        token: what `?token=` of every address must be; None: nothing.
        changing: POST may change something. Everything else is GET and HEAD.

    Raises:
        ConfigError: the port is taken.
    """

    class Handler(_Handler):
        answer = staticmethod(answering)

    Handler.token, Handler.methods = token, ("GET", "HEAD", "POST") if changing else ("GET", "HEAD")
    try:
        server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
    except OSError as error:
        raise ConfigError(
            f"port {port} cannot be used: {error.strerror or error}; choose another --port, or 0 for a free one"
        ) from None
    Handler.port = server.server_port
    return server


class _Handler(BaseHTTPRequestHandler):
    """Checks a request and sends the answer."""

    answer: Callable[[Asked], Answer]
    methods: tuple[str, ...]
    token: str | None
    port: int
    server_version = "judgekit"
    sys_version = ""
    timeout = 30

    def do_GET(self) -> None:
        """Answer; to HEAD without a body."""
        self._send(self._refusal() or self.answer(Asked(self.path, self.headers.get("If-None-Match"))))

    def do_HEAD(self) -> None:
        self.do_GET()

    def __getattr__(self, name: str) -> object:
        if name == "do_POST" and "POST" in self.methods:
            return self._change
        if name.startswith("do_"):
            return self._refuse_method
        raise AttributeError(name)

    def _change(self) -> None:
        refusal = self._refusal() or self._unfit()
        if refusal is not None:
            self.close_connection = True  # what is sent was not read
            self._send(refusal)
            return
        self._send(self.answer(Asked(self.path, sent=self.rfile.read(int(self.headers["Content-Length"])))))

    def _refuse_method(self) -> None:
        *most, last = self.methods
        self.close_connection = True
        refusal = f"Only {', '.join(most)} and {last} are answered here."
        self._send(message(HTTPStatus.METHOD_NOT_ALLOWED, "Not allowed", refusal, Allow=", ".join(self.methods)))

    def _refusal(self) -> Answer | None:
        """Why a request is not answered: another host, another page, or no token."""
        host, origin = self._only("Host"), self._only("Origin")
        if not self.path.startswith("/") or not self._is_ours(host or ""):
            wanted = "This server answers on this machine only, under 127.0.0.1 or localhost."
            return self._refused("Wrong host", wanted)
        is_foreign = origin is not None and origin.lower() != f"http://{host}".lower()
        if is_foreign or (self.command == "POST" and origin is None):
            return self._refused("Another page", "Another page than this server's own asked for this.")
        if self.token is not None and not self._has_token(self.token):
            return self._refused("No token", "Open the address as the terminal shows it, with its token.")
        return None

    def _refused(self, title: str, why: str) -> Answer:
        return page(HTTPStatus.FORBIDDEN, render_message(title, why, listed=self.token is None))

    def _unfit(self) -> Answer | None:
        """Why what is sent is not read."""
        length = self._only("Content-Length") or ""
        if not (length.isascii() and length.isdecimal()):
            return message(HTTPStatus.LENGTH_REQUIRED, "No length", "The request does not say how long it is.")
        if int(length[:12]) > MOST_SENT:
            return message(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "Too long", f"At most {MOST_SENT} bytes are taken.")
        if (self._only("Content-Type") or "").partition(";")[0].strip().lower() != JSON:
            return message(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, "Not JSON", f"Send {JSON}.")
        return None

    def _only(self, name: str) -> str | None:
        """A header; None if there is none, empty if there are several."""
        found = self.headers.get_all(name) or []
        return found[0] if len(found) == 1 else "" if found else None

    def _is_ours(self, host: str) -> bool:
        name, colon, port = host.rpartition(":")
        if not colon or host.endswith("]"):
            name, port = host, "80"
        return name.lower() in HOSTS and port == str(self.port)

    def _has_token(self, token: str) -> bool:
        given = parse_qs(urlsplit(self.path).query).get("token", [])
        return len(given) == 1 and hmac.compare_digest(given[0].encode("utf-8", "replace"), token.encode())

    def _send(self, answer: Answer) -> None:
        with answer.body as body:
            length = body.seek(0, os.SEEK_END)
            body.seek(0)
            self.send_response(answer.status)
            self.send_header("Content-Type", answer.content_type)
            if answer.status != HTTPStatus.NOT_MODIFIED:
                self.send_header("Content-Length", str(length))
            self.send_header("Content-Security-Policy", f"{answer.policy}; frame-ancestors 'none'")
            self.send_header("X-Content-Type-Options", "nosniff")
            self.send_header("Referrer-Policy", "no-referrer")
            self.send_header("Cross-Origin-Resource-Policy", "same-origin")
            for name, value in answer.headers.items():
                self.send_header(name, value)
            self.end_headers()
            if self.command != "HEAD":
                copyfileobj(body, self.wfile)

    def log_message(self, format: str, *args: object) -> None:
        """Log nothing: requests are private, and foreign text would reach the terminal."""
