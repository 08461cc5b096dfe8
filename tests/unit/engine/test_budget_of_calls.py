"""A budget and the calls that wait for room in it."""

import asyncio
import random
from collections.abc import Coroutine
from typing import Any

import pytest

from judgekit.core.cases import Usage
from judgekit.core.config import Budget, ModelConfig
from judgekit.core.errors import Interrupted
from judgekit.core.judgments import ModelRequest, ModelResponse
from judgekit.core.protocols import Provider
from judgekit.engine.budget import Hold, Spending, Spent
from judgekit.engine.limiter import AdaptiveLimiter
from judgekit.engine.model_runtime import ModelRuntime
from judgekit.engine.pinning import PinGuard


class Nobody(Provider):
    """Is never asked."""

    async def complete(self, request: ModelRequest) -> ModelResponse:
        """Fail the test."""
        raise AssertionError(request)


def runtime(model_id: str = "m", most: int = 100) -> ModelRuntime:
    config = ModelConfig(model="x", max_output_tokens=most)
    return ModelRuntime(model_id, config, Nobody(config), AdaptiveLimiter(64), PinGuard(model_id, config))


def request(n_tokens: int) -> ModelRequest:
    message = {"role": "user", "content": "x" * (4 * n_tokens)}
    return ModelRequest("p", None, "x", "x", (message,), {}, {}, "0" * 64)


def reply(prompt: int, completion: int) -> ModelResponse:
    return ModelResponse("text", usage=Usage(prompt_tokens=prompt, completion_tokens=completion))


class Caller:
    """Makes calls whose end the test decides."""

    def __init__(self, spending: Spending, model: ModelRuntime) -> None:
        self.spending, self.model = spending, model

    def hold(self, n_prompt: int = 100) -> Hold:
        return self.spending.hold_for(self.model, request(n_prompt))

    async def started(self, n_prompt: int = 100) -> tuple[Hold, "asyncio.Task[None]"]:
        hold = self.hold(n_prompt)
        task = asyncio.create_task(self.spending.start(hold))
        for _ in range(3):
            await asyncio.sleep(0)
        return hold, task

    def ended(self, hold: Hold, prompt: int = 100, completion: int = 10) -> None:
        self.spending.finish(hold, 1, self.spending.bill_of(hold, reply(prompt, completion)))


async def answered(caller: Caller) -> None:
    """One call that came back, so that others need not wait for the first."""
    hold, task = await caller.started()
    await task
    caller.ended(hold)


def played(play: Coroutine[Any, Any, None]) -> None:
    """Fails where a call waits for ever."""
    asyncio.run(asyncio.wait_for(play, 2))


def test_a_call_waits_while_others_hold_the_rest_and_goes_when_one_leaves_room() -> None:
    async def play() -> None:
        caller = Caller(Spending(Budget(max_tokens=620)), runtime())
        await answered(caller)  # 200 are set aside and 110 spent
        (a, _), (b, _) = await caller.started(), await caller.started()
        c, waits = await caller.started()
        assert not waits.done()  # 110 + 3 x 200 > 620
        caller.ended(a)
        await waits  # 220 + 2 x 200 = 620
        caller.ended(b)
        caller.ended(c)
        assert caller.spending.n_tokens == 440

    played(play())


def test_a_run_stops_only_once_nothing_runs_and_then_for_all_who_wait() -> None:
    async def play() -> None:
        caller = Caller(Spending(Budget(max_tokens=400)), runtime())
        await answered(caller)
        a, _ = await caller.started()
        waiting = [(await caller.started())[1] for _ in range(3)]
        assert not any(task.done() for task in waiting)
        caller.ended(a, completion=100)  # 310 are spent, and 200 more have no room
        results = await asyncio.gather(*waiting, return_exceptions=True)
        assert all(isinstance(result, Interrupted) for result in results)
        assert "310 spent, 90 left, nothing set aside for running calls" in str(results[0])
        with pytest.raises(Interrupted):
            await caller.spending.start(caller.hold(1))

    played(play())


def test_a_waiter_that_is_cancelled_holds_nothing_and_lets_others_go() -> None:
    async def play() -> None:
        caller = Caller(Spending(Budget(max_tokens=420)), runtime())
        await answered(caller)
        a, _ = await caller.started()  # 110 + 200
        _, large = await caller.started(200)
        b, small = await caller.started(1)
        assert not small.done()  # 110 + 200 + 101 has room, but who came first goes first
        large.cancel()
        await small
        _, waits = await caller.started(80)  # 110 + 200 + 101 + 180
        caller.ended(b, prompt=1, completion=0)
        assert not waits.done()
        caller.ended(a)  # 221 + 180: it is its turn, and it is cancelled before its next step
        waits.cancel()
        await asyncio.gather(waits, return_exceptions=True)
        assert waits.cancelled()
        spending = caller.spending
        assert (spending._n_running, spending._held_tokens, spending._held_calls) == (0, 0, 0)
        _, after = await caller.started(99)
        await after

    played(play())


def test_the_first_call_of_each_model_goes_alone_and_a_failed_one_tells_nothing() -> None:
    async def play() -> None:
        spending = Spending(Budget(max_tokens=100_000))
        one, other = Caller(spending, runtime("one")), Caller(spending, runtime("other"))
        first, _ = await one.started()
        _, second = await one.started()
        assert not second.done()
        spending.finish(first, 3, None)  # failed
        await second
        _, third = await one.started()
        assert not third.done()
        third.cancel()
        await asyncio.gather(third, return_exceptions=True)
        _, elsewhere = await other.started()
        await elsewhere

    played(play())


def test_without_limits_of_size_nobody_waits() -> None:
    async def play() -> None:
        caller = Caller(Spending(Budget()), runtime())
        tasks = [(await caller.started())[1] for _ in range(20)]
        assert all(task.done() for task in tasks)

    played(play())


def test_what_calls_take_is_learned_and_set_aside_for_the_next() -> None:
    async def play() -> None:
        caller = Caller(Spending(Budget(max_tokens=100_000)), runtime())
        assert caller.hold().tokens == 200
        hold, _ = await caller.started()
        caller.ended(hold, prompt=300, completion=700)
        assert caller.hold().tokens == 1000
        assert caller.hold(10).tokens == 730
        hold, _ = await caller.started()
        caller.ended(hold, prompt=100, completion=1)
        assert caller.hold().tokens == 1000  # the most counts

    played(play())


def test_requests_that_are_made_again_take_room_of_their_own() -> None:
    async def play() -> None:
        caller = Caller(Spending(Budget(max_calls=3)), runtime())
        first, _ = await caller.started()
        second, _ = await caller.started()
        assert caller.spending.may_ask_again()
        assert not caller.spending.may_ask_again()
        caller.spending.finish(first, 2, None)
        assert not caller.spending.may_ask_again()
        caller.spending.finish(second, 1, None)
        assert caller.spending.n_calls == 3
        with pytest.raises(Interrupted, match="max_calls of 3 is reached: 3 made"):
            await caller.spending.start(caller.hold())

    played(play())


def test_the_calls_of_a_judgment_are_summed_with_what_is_not_known() -> None:
    spending, model = Spending(Budget()), runtime()
    model.price, model.price_source = (lambda usage: usage.known_tokens / 1000), "config"
    hold = spending.hold_for(model, request(100))
    spent = Spent()
    spent.add(1, spending.bill_of(hold, reply(100, 10)))
    assert spent.cost_usd == pytest.approx(0.11)
    assert (spent.cost_source, spent.unmetered) == ("config", None)
    spent.add(1, spending.bill_of(hold, ModelResponse("text")))
    # The second call counts with the 200 that were set aside, and its cost is not known.
    assert spent.unmetered is not None
    assert (spent.unmetered.n_calls, spent.unmetered.tokens) == (1, 200)
    assert spent.unmetered.usd == pytest.approx(0.11 + 0.2)
    assert (spent.cost_usd, spent.cost_source) == (None, None)
    assert spent.usage is not None
    assert (spent.usage.prompt_tokens, spent.usage.completion_tokens) == (100, 10)


@pytest.mark.parametrize("seed", range(40))
def test_whatever_calls_take_within_their_size_no_budget_is_exceeded_and_nobody_waits_for_ever(seed: int) -> None:
    dice = random.Random(seed)
    limit = dice.randint(300, 5_000)
    budget = Budget(
        max_tokens=limit, max_calls=dice.choice([None, 7, 25]), max_usd=dice.choice([None, dice.uniform(0.5, 4)])
    )
    spending = Spending(budget)
    models = [runtime("one", 100), runtime("two", 300)]
    for model in models:
        model.price, model.price_source = (lambda usage: usage.known_tokens / 1000), "config"
    n_stopped = 0

    async def call(model: ModelRuntime, n_prompt: int) -> None:
        nonlocal n_stopped
        hold = spending.hold_for(model, request(n_prompt))
        try:
            await spending.start(hold)
        except Interrupted:
            n_stopped += 1
            return
        n_requests = 1
        while dice.random() < 0.2 and spending.may_ask_again():
            n_requests += 1
            await asyncio.sleep(0)
        for _ in range(dice.randint(0, 5)):
            await asyncio.sleep(0)
        if dice.random() < 0.1:
            spending.finish(hold, n_requests, None)
            return
        most = model.config.max_output_tokens
        response = ModelResponse("text") if dice.random() < 0.2 else reply(n_prompt, dice.randint(0, most))
        spending.finish(hold, n_requests, spending.bill_of(hold, response))

    async def play() -> None:
        n_workers = dice.choice([1, 4, 16, 64])
        left = [(dice.choice(models), dice.randint(100, 200)) for _ in range(60)]

        async def work() -> None:
            while left and not n_stopped:
                await call(*left.pop())

        await asyncio.gather(*(work() for _ in range(n_workers)))

    played(play())
    assert spending.n_tokens <= limit
    assert spending.n_calls <= (budget.max_calls or 10**9)
    assert spending.usd <= (budget.max_usd or 10**9) + 1e-9
    assert spending._n_running == spending._held_calls == spending._held_tokens == 0
