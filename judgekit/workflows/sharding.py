"""A run whose shards are judged by workers: handed out, tried again if a worker is lost, and put together at the end.

What a worker judged is in the folder of parts and counts once it is committed, so the driver may be lost as well: the
run is resumed, and only shards without a committed attempt are judged.
"""

import asyncio
import threading
import time
from collections import Counter, deque
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from concurrent.futures import Future
from contextlib import ExitStack, asynccontextmanager, suppress
from contextvars import copy_context
from dataclasses import dataclass, field
from functools import partial
from queue import SimpleQueue
from typing import Any

from judgekit.core.config import Budget
from judgekit.core.errors import ConfigError, Interrupted, JudgekitError, ProviderError, StorageError
from judgekit.core.runs import Notices
from judgekit.core.shard_tasks import Executor, ShardTask
from judgekit.engine.budget import Spending
from judgekit.engine.judging import Tally
from judgekit.engine.passes import Observer
from judgekit.storage.leases import KINDS, LEASES, BudgetLeases
from judgekit.storage.run_folder import RunFolder
from judgekit.storage.shard_parts import PARTS, ShardParts
from judgekit.workflows.job import RunJob
from judgekit.workflows.merge import take_parts
from judgekit.workflows.run_spot_checks import samples_for_shards

TRIES = 3
"""How often a shard is tried before the run goes on without it."""

LOST = 1
"""Beside exit codes: the worker was lost, or failed in a way that nobody foresaw."""

LOOK_SECONDS = 5.0
"""How often the driver looks for signs of life."""

LOST_SECONDS = 180.0
"""A worker is lost that has given none for so long."""

BEGIN_SECONDS = 600.0
"""So long may a shard wait, at each try, for a worker that takes it up: a cluster may start machines first."""

START_SECONDS, END_SECONDS = 600.0, 60.0
"""So long may an engine take to start and to end."""

_ERRORS: dict[int, type[JudgekitError]] = {2: ConfigError, 3: ProviderError, 4: StorageError}

_MAY_PASS = (LOST, StorageError.exit_code)
"""What another worker may do better: a lost one, or one whose disk is full."""


class _Attempt:
    """One shard that is handed over, and what is seen of it. Clocks of other machines do not matter."""

    def __init__(self, parts: ShardParts, number: int) -> None:
        """To be made before the shard is handed over."""
        self.number = number
        self._parts = parts
        self._before = set(parts.attempts(number))
        self._signs: list[int] = []
        self._since = time.monotonic()

    def why_lost(self) -> str | None:
        """What is wrong if its worker is lost, though its engine has not said so."""
        now = time.monotonic()
        signs = [self._parts.last_beat(name) for name in self._parts.attempts(self.number) if name not in self._before]
        if signs != self._signs:
            self._signs, self._since = signs, now
        seconds = now - self._since
        if not signs and seconds > BEGIN_SECONDS:
            return f"no worker has taken it up within {BEGIN_SECONDS:g} s; are there any?"
        if signs and seconds > LOST_SECONDS:
            return f"its worker has given no sign of life for {LOST_SECONDS:g} s"
        return None


@dataclass
class _Driver:
    """What is left to judge, and what came of it."""

    job: RunJob
    executor: Executor
    parts: ShardParts
    n_shards: int
    observer: Observer
    leases: BudgetLeases | None = None
    samples: Mapping[str, Sequence[str]] | None = None
    left: deque[int] = field(default_factory=deque)
    tries: Counter[int] = field(default_factory=Counter)
    problems: dict[int, tuple[int, str]] = field(default_factory=dict)
    """By shard that is given up: exit code and message."""
    tally: Tally = field(default_factory=Tally)
    is_used_up: bool = False
    """The budget does not hold a further call."""

    async def run(self) -> None:
        """Judge all shards that are left, as far as it goes."""
        done = self.parts.committed()
        self.left.extend(number for number in range(1, self.n_shards + 1) if number not in done)
        if not self.left:
            return
        self.samples = samples_for_shards(self.job)
        self.observer.started(PARTS, len(self.left))
        try:
            async with _session(self.executor, self.job.warnings) as submit:
                await self._hand_out(submit)
        finally:
            self.observer.finished(PARTS)

    async def _hand_out(self, submit: Callable[[ShardTask], Future[Any]]) -> None:
        self.job.is_begun = True  # what is committed is kept, whatever comes later
        most = min(self.executor.workers, _most_at_once(self.job))
        running: dict[asyncio.Future[Any], _Attempt] = {}
        while True:
            while self.left and len(running) < most and not self.is_used_up:
                number = self.left.popleft()
                self.tries[number] += 1
                attempt = _Attempt(self.parts, number)
                running[asyncio.wrap_future(submit(self._task(number, most)))] = attempt
            if not running:
                return
            ended, others = await asyncio.wait(running, timeout=LOOK_SECONDS, return_when=asyncio.FIRST_COMPLETED)
            for future in ended:
                self._take(running.pop(future).number, *_outcome(future))
            for future in others:
                if (why := running[future].why_lost()) is not None:
                    future.cancel()
                    self._take(running.pop(future).number, LOST, why)

    def _task(self, number: int, n_sharers: int) -> ShardTask:
        job = self.job
        return ShardTask(
            config_path=str(job.config_path.resolve()),
            parts_dir=str(self.parts.path.resolve()),
            shard=f"{number}/{self.n_shards}",
            part={name: getattr(job.manifest, name) for name in ("limit", "sample", "case_ids")},
            cache_dir=str(job.folder.path.resolve().parent),
            use_cache=job.cache is not None,
            n_sharers=n_sharers,
            samples=self.samples,
        )

    def _take(self, number: int, code: int, message: str) -> None:
        """What came of one attempt."""
        self._return_leases(number)
        if any(self.parts.is_committed(name) for name in self.parts.attempts(number)):
            self.tally.n_done += 1
            self.observer.advanced(PARTS, self.tally)
            return
        if code == 0:
            where = self.parts.path
            code, message = LOST, f"a worker has judged it, but not into {where}, which all workers must see"
        self.is_used_up = self.is_used_up or code == Interrupted.exit_code
        if code in _MAY_PASS and self.tries[number] < TRIES:
            self.left.append(number)
        else:
            self.problems[number] = code, message

    def _return_leases(self, number: int) -> None:
        if self.leases is not None:
            for name in self.parts.attempts(number):
                self.leases.give_back(name, _spent(self.parts, name))

    def check(self) -> None:
        """Go on only if every shard counts.

        Raises:
            JudgekitError: a shard does not; what was committed is kept.
        """
        if not self.problems and not self.left:
            return
        done = f"{len(self.parts.committed())} of {self.n_shards} shards are done and kept"
        if self.is_used_up:
            limits = self.job.config.budget.model_dump(exclude_none=True).items()
            limit = " and ".join(f"budget.{name} of {value:g}" for name, value in limits) or "the budget"
            raise Interrupted(f"{limit} does not hold one more call; {done}; raise it and resume with --resume")
        number, (code, message) = next(iter(self.problems.items()))
        others = f", and {len(self.problems) - 1} more shards have failed" if len(self.problems) > 1 else ""
        tried = f" after {self.tries[number]} tries" if self.tries[number] > 1 else ""
        text = f"shard {number}/{self.n_shards}{tried}: {message}{others}; {done}; resume with --resume"
        raise _ERRORS.get(code, Interrupted)(text)


def _outcome(future: "asyncio.Future[Any]") -> tuple[int, str]:
    try:
        code, message = future.result()
    except (Exception, asyncio.CancelledError) as error:  # noqa: BLE001  # each engine has errors of its own
        return LOST, f"its worker was lost: {type(error).__name__}: {' '.join(str(error).split())[:300]}"
    return code, message


async def judge_shards(job: RunJob, executor: Executor, observer: Observer) -> None:
    """Have all shards of a run judged, and make the run the one that they come to.

    Raises:
        ConfigError: the executor is not there, or a worker finds what the user can mend, such as a missing key.
        ProviderError: the provider refuses a shard for good.
        Interrupted: the budget is used up, or a worker was lost too often; the run can be resumed.
        StorageError: the folder of parts cannot be written, or a part is not what was committed.
    """
    parts = ShardParts(job.folder.path / PARTS)
    # A run that is resumed keeps its shards, whatever the config says of their number now.
    driver = _Driver(job, executor, parts, parts.n_shards() or executor.n_shards, observer)
    parts.make()
    budget = job.config.budget
    if budget != Budget():
        spent: Counter[str] = Counter()
        for name in parts.attempts():
            spent.update(_spent(parts, name))
        driver.leases = BudgetLeases.opened(parts.path / LEASES, budget, spent)
    await driver.run()
    driver.check()
    committed = parts.committed()
    take_parts(job, committed.values())
    job.warnings.extend(_lost(parts, {folder.path.name for folder in committed.values()}))


@asynccontextmanager
async def _session(executor: Executor, notices: Notices) -> AsyncIterator[Callable[[ShardTask], Future[Any]]]:
    """Workers, started and ended beside this loop, which must not wait for them."""
    from judgekit.workflows.shard_worker import judge_shard  # which stands on `run`, as this is a step of it

    stack, thread = ExitStack(), _Thread()
    starting = thread.call(partial(_started, stack, executor, judge_shard))
    try:
        await asyncio.wait([starting], timeout=START_SECONDS)
        if not starting.done():
            raise ConfigError(f"executor {executor.name}: has not started within {START_SECONDS:g} s")
        yield starting.result()
    finally:
        ending = thread.call(stack.close)
        thread.end()
        await asyncio.wait([ending], timeout=END_SECONDS)
        if ending.done():
            ending.result()
        else:
            text = f"executor {executor.name} has not ended within {END_SECONDS:g} s; its workers may still be there"
            notices.append(("executor_not_ended", text))


class _Thread:
    """One thread and one context, as some engines end only where they were started; no process waits for it."""

    def __init__(self) -> None:
        """Start it."""
        self._calls: SimpleQueue[tuple[Callable[[], Any], Future[Any]] | None] = SimpleQueue()
        context = copy_context()
        threading.Thread(target=context.run, args=(self._work,), name="judgekit-executor", daemon=True).start()

    def call(self, function: Callable[[], Any]) -> "asyncio.Future[Any]":
        """What a function gives once its turn has come."""
        outcome: Future[Any] = Future()
        self._calls.put((function, outcome))
        return asyncio.wrap_future(outcome)

    def end(self) -> None:
        """Let it go once it has done what it was called for."""
        self._calls.put(None)

    def _work(self) -> None:
        while (call := self._calls.get()) is not None:
            function, outcome = call
            if not outcome.set_running_or_notify_cancel():
                continue
            try:
                outcome.set_result(function())
            except BaseException as error:  # noqa: BLE001  # carried over to the loop
                outcome.set_exception(error)


def _started(
    stack: ExitStack, executor: Executor, work: Callable[[ShardTask], Any]
) -> Callable[[ShardTask], Future[Any]]:
    """What hands over tasks.

    Raises:
        ConfigError: the engine does not start.
    """
    try:
        return stack.enter_context(executor.session(work))
    except JudgekitError:
        raise
    except Exception as error:  # each engine has errors of its own
        what = f"{type(error).__name__}: {' '.join(str(error).split())[:300]}"
        hint = "no further call was made; run this again where the machine has time for it"
        raise ConfigError(f"executor {executor.name}: does not start: {what}; {hint}") from error


def _most_at_once(job: RunJob) -> int:
    """Workers among which the calls in flight can be divided: at least one each."""
    limits = [model.config.max_concurrency for model in job.models.values() if model.provider.needs_network]
    return min(limits, default=10_000)


def _spent(parts: ShardParts, name: str) -> dict[str, float]:
    """What an attempt has recorded, whether or not it counts."""
    spending = Spending(Budget())
    if parts.has(name):
        for judgment in RunFolder(parts.path / name).judgments():
            spending.add(judgment)
    return dict(zip(KINDS, (spending.n_calls, spending.n_tokens, spending.usd), strict=True))


def _lost(parts: ShardParts, counted: set[str]) -> list[tuple[str, str]]:
    """What was paid for attempts that do not count."""
    others = [name for name in parts.attempts() if name not in counted]
    if not others:
        return []
    spent: Counter[str] = Counter()
    for name in others:
        with suppress(JudgekitError):
            spent.update(_spent(parts, name))
    text = (
        f"{len(others)} attempts of shards do not count, since workers were lost: {spent[KINDS[0]]:g} calls that they "
        f"recorded, {spent[KINDS[1]]:g} tokens and {spent[KINDS[2]]:.4f} USD, are not in the cost"
    )
    return [("attempts_lost", text)]
