"""What the server received and what it answered."""

import re
import threading
import time
from collections import Counter, deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from judgekit.testing.exchange import Request

_SECRET_HEADERS = frozenset({"authorization", "proxy-authorization", "api-key", "x-api-key"})
_N_KEPT_WITHOUT_BODIES = 1000


@dataclass(slots=True)
class LoggedRequest:
    """One request, and what became of it."""

    method: str
    path: str
    headers: Mapping[str, str]
    """Names in lower case; of keys only the last 4 characters. Empty where bodies are not kept."""
    body: Any
    """The decoded JSON; None if there is no body, it does not parse, or bodies are not kept."""
    is_chat: bool
    arrived_at: float
    """Seconds of the monotonic clock (`time.monotonic`), for differences."""
    status: int | None = None
    """None until answered, and where no status line was sent."""
    fault: str | None = None
    """Kind of the fault that was played."""
    usage: Mapping[str, Any] | None = None
    """Token counts as sent."""
    answered_at: float | None = None
    """When the last byte was handed over; None while in flight, or where the client left first."""
    client_left: bool = False
    """The client closed the connection before its answer was complete."""


@dataclass(frozen=True, slots=True)
class Totals:
    """Counts over the life of a server."""

    n_requests: int = 0
    """Chat requests received."""
    n_ok: int = 0
    """Chat requests answered with a status below 300 and without a fault."""
    n_other: int = 0
    """Requests other than chat: models, props, tags, unknown paths."""
    n_client_left: int = 0
    prompt_tokens: int = 0
    """Sum of `usage.prompt_tokens` as sent."""
    completion_tokens: int = 0
    n_in_flight: int = 0
    max_in_flight: int = 0
    statuses: Mapping[str, int] = field(default_factory=dict)
    """Chat requests by status sent; `none` where there was no status line."""
    faults: Mapping[str, int] = field(default_factory=dict)
    """Chat requests by kind of fault."""


class RequestLog:
    """Every request in order of arrival. Safe to read from any thread.

    Args:
        keep_bodies: Keep headers and bodies, of all requests. If False (long benchmarks) only the last 1,000
            entries are kept, without them; totals always count everything.
    """

    def __init__(self, keep_bodies: bool = True) -> None:
        self._keep_bodies = keep_bodies
        self._changed = threading.Condition()
        self._entries: deque[LoggedRequest] = deque(maxlen=None if keep_bodies else _N_KEPT_WITHOUT_BODIES)
        self._n_by_name: Counter[str] = Counter()
        self._statuses: Counter[str] = Counter()
        self._faults: Counter[str] = Counter()
        self._n_in_flight = 0
        self._max_in_flight = 0

    @property
    def entries(self) -> tuple[LoggedRequest, ...]:
        """All requests that are kept, those other than chat included."""
        with self._changed:
            return tuple(self._entries)

    @property
    def chat(self) -> tuple[LoggedRequest, ...]:
        """The chat requests that are kept."""
        return tuple(entry for entry in self.entries if entry.is_chat)

    @property
    def totals(self) -> Totals:
        with self._changed:
            return Totals(
                **self._n_by_name,
                n_in_flight=self._n_in_flight,
                max_in_flight=self._max_in_flight,
                statuses=dict(self._statuses),
                faults=dict(self._faults),
            )

    def wait_for(self, n_requests: int, timeout_seconds: float = 10.0) -> None:
        """Waits until so many chat requests have arrived.

        Raises:
            TimeoutError: Fewer came in time.
        """
        with self._changed:
            if not self._changed.wait_for(lambda: self._n_by_name["n_requests"] >= n_requests, timeout_seconds):
                n_seen = self._n_by_name["n_requests"]
                raise TimeoutError(f"{n_seen} of {n_requests} chat requests came within {timeout_seconds} s")

    def begin(self, request: Request, is_chat: bool) -> LoggedRequest:
        """Notes a request that has arrived, and sets its `n_in_flight`."""
        keep = self._keep_bodies
        headers = masked_headers(request.headers) if keep else {}
        body = request.body if keep else None
        entry = LoggedRequest(request.method, request.path, headers, body, is_chat, time.monotonic())
        with self._changed:
            self._entries.append(entry)
            self._n_by_name["n_requests" if is_chat else "n_other"] += 1
            self._n_in_flight += 1
            self._max_in_flight = max(self._max_in_flight, self._n_in_flight)
            request.n_in_flight = self._n_in_flight
            self._changed.notify_all()
        return entry

    def end(self, entry: LoggedRequest, status: int | None, usage: Mapping[str, Any] | None = None) -> None:
        """Notes that the last byte (or the fault) was handed over."""
        with self._changed:
            entry.status, entry.usage, entry.answered_at = status, usage, time.monotonic()
            self._count(entry)

    def abandon(self, entry: LoggedRequest) -> None:
        """Notes that the client left, or the server stopped, before the answer was complete."""
        with self._changed:
            entry.client_left = True
            self._n_by_name["n_client_left"] += 1
            self._count(entry)

    def _count(self, entry: LoggedRequest) -> None:
        self._n_in_flight -= 1
        if not entry.is_chat:
            return
        self._statuses[str(entry.status or "none")] += 1
        if entry.fault is not None:
            self._faults[entry.fault] += 1
        elif entry.status is not None and entry.status < 300:
            self._n_by_name["n_ok"] += 1
        if entry.usage:
            for name in ("prompt_tokens", "completion_tokens"):
                n_tokens = entry.usage.get(name)
                self._n_by_name[name] += n_tokens if isinstance(n_tokens, int) else 0


def masked_headers(headers: Mapping[str, str]) -> dict[str, str]:
    """The headers with keys masked: the scheme and the last 4 characters stay, of short keys nothing."""
    return {name: _masked(value) if name in _SECRET_HEADERS else value for name, value in headers.items()}


def _masked(value: str) -> str:
    match = re.fullmatch(r"(?:(\w+) +)?(.*)", value, re.DOTALL)
    scheme, secret = match.groups() if match else (None, value)
    masked = f"****{secret[-4:]}" if len(secret) >= 12 else "****"
    return f"{scheme} {masked}" if scheme else masked
