"""How many calls may be in flight: as many as the config allows and the server bears."""

import asyncio
import time
from collections import deque
from collections.abc import Callable

from judgekit.core.protocols import CallError

PAUSE_SECONDS = 5.0
"""After a server fault the limit does not grow for so long."""


class AdaptiveLimiter:
    """Slots for calls to one model: additive growth, cut by half on a rate limit, paused on server faults.

    It starts at the configured maximum, which its user has chosen, and returns to it after a cut.
    """

    def __init__(self, most: int, clock: Callable[[], float] = time.monotonic) -> None:
        """Allow `most` calls in flight at first and at most."""
        self.most = most
        self.limit = float(most)
        self.n_in_flight = 0
        self.n_cuts = 0
        self._clock = clock
        self._last_cut = float("-inf")
        self._paused_until = float("-inf")
        self._waiting: deque[asyncio.Future[None]] = deque()

    async def acquire(self) -> None:
        """Wait for a slot."""
        while self.n_in_flight >= int(self.limit):
            waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._waiting.append(waiter)
            try:
                await waiter
            except asyncio.CancelledError:
                self._wake()
                raise
        self.n_in_flight += 1

    def release(self) -> None:
        """Give a slot back."""
        self.n_in_flight -= 1
        self._wake()

    def observe(self, error: CallError | None) -> None:
        """Learn from one attempt: None is a success."""
        now = self._clock()
        if error is None:
            if self.limit < self.most and now >= self._paused_until:
                self.limit = min(float(self.most), self.limit + 1.0 / self.limit)
            return
        if error.kind == "rate_limited":
            # Calls already in flight fail together; only the first of them is news.
            if now - self._last_cut >= 1.0:
                self.limit = max(1.0, self.limit / 2)
                self._last_cut = now
                self.n_cuts += 1
        elif error.kind in ("server_error", "connection", "timeout"):
            self._paused_until = now + PAUSE_SECONDS

    def _wake(self) -> None:
        free = int(self.limit) - self.n_in_flight
        while free > 0 and self._waiting:
            waiter = self._waiting.popleft()
            if not waiter.done():
                waiter.set_result(None)
                free -= 1
