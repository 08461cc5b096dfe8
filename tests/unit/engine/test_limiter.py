"""The adaptive limiter, on a clock of the test's own."""

import asyncio

import pytest

from judgekit.core.protocols import CallError, RateLimits
from judgekit.engine import limiter as module
from judgekit.engine.limiter import AdaptiveLimiter
from judgekit.providers.rate_limits import rate_limits, seconds


class Clock:
    """A clock that moves when told, and when someone sleeps."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now

    async def sleep(self, delay: float) -> None:
        self.now += delay


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """A clock that the limiter sleeps by."""
    found = Clock()
    monkeypatch.setattr("judgekit.engine.limiter.asyncio.sleep", found.sleep)
    return found


RATE_LIMITED = CallError("rate_limited", "slow down", retryable=True)
SERVER_ERROR = CallError("server_error", "oops", retryable=True)


def test_calls_that_fail_together_cut_the_limit_once() -> None:
    clock = Clock()
    limiter = AdaptiveLimiter(64, clock)
    for _ in range(10):
        limiter.observe(RATE_LIMITED)
    assert limiter.limit == 32
    clock.now += 2
    limiter.observe(RATE_LIMITED)
    assert (limiter.limit, limiter.n_cuts) == (16, 2)


def test_the_limit_grows_by_one_a_round_and_never_above_the_maximum() -> None:
    limiter = AdaptiveLimiter(8, Clock())
    limiter.observe(RATE_LIMITED)
    assert limiter.limit == 4
    for _ in range(4):
        limiter.observe(None)
    # 4 + 1/4, then + 1/4.25, ...: close to one more after as many successes as there were slots.
    assert 4.9 < limiter.limit < 5
    for _ in range(100):
        limiter.observe(None)
    assert limiter.limit == 8


def test_the_limit_is_at_least_one() -> None:
    clock = Clock()
    limiter = AdaptiveLimiter(2, clock)
    for _ in range(5):
        limiter.observe(RATE_LIMITED)
        clock.now += 2
    assert limiter.limit == 1


def test_growth_rests_for_a_while_after_a_server_fault() -> None:
    clock = Clock()
    limiter = AdaptiveLimiter(8, clock)
    limiter.observe(RATE_LIMITED)
    limiter.observe(SERVER_ERROR)
    limiter.observe(None)
    assert limiter.limit == 4
    clock.now += module.PAUSE_SECONDS
    limiter.observe(None)
    assert limiter.limit > 4


def test_no_more_calls_than_slots_are_in_flight_and_a_cancelled_waiter_blocks_nobody() -> None:
    async def scenario() -> int:
        limiter = AdaptiveLimiter(2)
        most = 0

        async def call() -> None:
            nonlocal most
            await limiter.acquire()
            most = max(most, limiter.n_in_flight)
            await asyncio.sleep(0.001)
            limiter.release()

        tasks = [asyncio.create_task(call()) for _ in range(20)]
        await asyncio.sleep(0)
        tasks[5].cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        assert limiter.n_in_flight == 0
        return most

    assert asyncio.run(scenario()) == 2


def test_a_used_up_request_limit_is_waited_for_until_its_reset(clock: Clock) -> None:
    async def scenario() -> None:
        limiter = AdaptiveLimiter(8, clock)
        await limiter.acquire(100)
        limiter.learn(RateLimits(remaining_requests=1, requests_reset_seconds=7.0))
        await limiter.acquire(100)  # the one that is left
        assert clock.now == 100.0
        await limiter.acquire(100)
        assert clock.now == 107.0

    asyncio.run(scenario())


def test_a_token_limit_lets_small_calls_pass_and_holds_large_ones(clock: Clock) -> None:
    async def scenario() -> None:
        limiter = AdaptiveLimiter(8, clock)
        await limiter.acquire(10)
        limiter.learn(RateLimits(remaining_tokens=500, tokens_reset_seconds=90.0))
        await limiter.acquire(400)
        assert clock.now == 100.0
        await limiter.acquire(400)
        # Looked at again after 60 s, then after the rest of the 90.
        assert clock.now == 190.0

    asyncio.run(scenario())


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("6m0s", 360.0),
        ("20ms", 0.02),
        ("1h2m3.5s", 3723.5),
        ("1.5", 1.5),
        ("2d", 172800.0),
        ("1735689600", None),
        ("", None),
        ("soon", None),
        ("5x", None),
        (None, None),
    ],
)
def test_reset_times(text: str | None, expected: float | None) -> None:
    assert seconds(text) == (None if expected is None else pytest.approx(expected))


def test_headers_without_limits_say_nothing_and_damaged_counts_are_left_out() -> None:
    assert rate_limits({"content-type": "application/json"}) is None
    found = rate_limits({"x-ratelimit-remaining-requests": "-1", "x-ratelimit-remaining-tokens": "150"})
    assert found == RateLimits(remaining_tokens=150)
