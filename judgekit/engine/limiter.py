"""How many calls may be in flight: as many as the config allows and the server bears."""

import asyncio
import time
from collections import deque
from collections.abc import Callable

from judgekit.core.protocols import CallError, RateLimits

PAUSE_SECONDS = 5.0
"""After a server fault the limit does not grow for so long."""


LONGEST_PAUSE_SECONDS = 60.0
"""If a limit is full again much later, one call is made after so long, to see whether it is true."""

LONGEST_RESET_SECONDS = 120.0
"""Up to here a limit is simply waited for, as a `Retry-After` is."""

TOLD_FROM_SECONDS = 10.0
"""A pause of this length is told to the user."""


class Allowance:
    """What is left of one limit of the server, until it is full again."""

    __slots__ = ("_full_at", "_left", "_next_at")

    def __init__(self) -> None:
        self._left: int | None = None
        self._full_at = float("-inf")
        self._next_at = float("-inf")

    def set(self, left: int, reset_seconds: float | None, now: float) -> None:
        """Take over the server's figure."""
        reset = 1.0 if reset_seconds is None else reset_seconds
        self._left = left
        self._full_at = now + reset
        self._next_at = now + (reset if reset <= LONGEST_RESET_SECONDS else LONGEST_PAUSE_SECONDS)

    def take(self, n: int, now: float) -> None:
        """Count a call that is sent."""
        if self._left is None:
            return
        if self._left < n:
            # The one call that finds out; the others wait for what it says.
            self._next_at = now + LONGEST_PAUSE_SECONDS
        self._left -= n

    def seconds_until(self, n: int, now: float) -> float:
        """How long to wait before a call of this size; 0 if there is room or nothing is known."""
        if self._left is None or self._left >= n:
            return 0.0
        if now >= self._full_at:
            # The limit is full again, by how much only the next reply will tell.
            self._left = None
            return 0.0
        return max(0.0, min(self._next_at, self._full_at) - now)

    def reset_seconds(self, now: float) -> float:
        """Seconds until the limit is full again, as the server says."""
        return max(0.0, self._full_at - now)


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
        self._requests = Allowance()
        self._tokens = Allowance()
        self._told_at = float("-inf")
        self.on_pause: Callable[[float], None] = lambda _: None
        """Told of a longer pause: the seconds until the used-up limit is full again."""

    async def acquire(self, n_tokens: int = 0) -> None:
        """Wait for a slot, and for room in what the server says is left of its limits.

        Args:
            n_tokens: tokens that the call may use.
        """
        while True:
            while self.n_in_flight >= int(self.limit):
                waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
                self._waiting.append(waiter)
                try:
                    await waiter
                except asyncio.CancelledError:
                    self._wake()
                    raise
            now = self._clock()
            delay = max(self._requests.seconds_until(1, now), self._tokens.seconds_until(n_tokens, now))
            if delay <= 0.0:
                break
            self._tell(delay, now)
            await asyncio.sleep(delay)
        self.n_in_flight += 1
        self._requests.take(1, now)
        self._tokens.take(n_tokens, now)

    def _tell(self, delay: float, now: float) -> None:
        if delay >= TOLD_FROM_SECONDS and now - self._told_at >= LONGEST_PAUSE_SECONDS:
            self._told_at = now
            used_up = self._requests if self._requests.seconds_until(1, now) > 0.0 else self._tokens
            self.on_pause(used_up.reset_seconds(now))

    def learn(self, limits: RateLimits) -> None:
        """Take over what a reply says is left; calls still in flight are not counted in it yet."""
        now = self._clock()
        if limits.remaining_requests is not None:
            self._requests.set(limits.remaining_requests - self.n_in_flight + 1, limits.requests_reset_seconds, now)
        if limits.remaining_tokens is not None:
            self._tokens.set(limits.remaining_tokens, limits.tokens_reset_seconds, now)

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
