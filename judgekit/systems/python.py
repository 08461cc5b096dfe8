"""A function of yours, in this process: `"system": {"name": "python", "call": "app.py:ask"}`."""

import asyncio
import hashlib
import inspect
import threading
import traceback
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from queue import SimpleQueue
from typing import Any

from pydantic import Field, field_validator, model_validator

from judgekit.core.answers import INVALID
from judgekit.core.cases import Case
from judgekit.core.data_files import CODE, CodeName
from judgekit.core.errors import ConfigError
from judgekit.core.protocols import Answer, Ask, AskError, Surroundings, System


class Python(System):
    """Calls a function with each `Case`: sync, async, or a generator whose texts are joined.

    Calls run beside the event loop of the run, so that one that blocks costs its own cases only. A sync call that does
    not end cannot be ended from outside: it is counted as `timeout`, and its thread is left behind.
    """

    call: str = ""
    """File and function, such as `app.py:ask`; relative paths start at the config."""
    function: Callable[[Case], Any] | None = Field(default=None, exclude=True)
    """The function itself, where there is no config."""

    @field_validator("function", mode="before")
    @classmethod
    def _is_not_a_name(cls, value: Any) -> Any:
        if isinstance(value, str):
            raise ValueError(
                f"the system was the function {value} in Python; resume with judgekit.evaluate(resume=...)"
            )
        return value

    @model_validator(mode="after")
    def _names_a_function(self) -> "Python":
        if self.function is None:
            if not self.call:
                raise ValueError('name the function: "call": "app.py:ask"')
            CodeName.of(CODE + self.call)
        return self

    def settings(self) -> dict[str, Any]:
        """As of every system, with the name of the function."""
        found = super().settings()
        if self.function is not None:
            found["function"] = getattr(self.function, "__qualname__", type(self.function).__qualname__)
        return found

    def facts(self, surroundings: Surroundings) -> Mapping[str, Any]:
        """The hash of the file or function; a resumed run is refused if it has changed."""
        if self.function is None:
            return {"code_sha256": self._loaded(surroundings)[1]}
        try:
            source = inspect.getsource(self.function)
        except (OSError, TypeError):  # typed into an interpreter, or an object
            return {}
        return {"code_sha256": hashlib.sha256(source.encode()).hexdigest()}

    def _loaded(self, surroundings: Surroundings) -> tuple[Callable[[Case], Any], str]:
        path, _, name = self.call.rpartition(":")
        found, sha256 = surroundings.load_code(CodeName(path, name), "system.call")
        if not callable(found):
            raise ConfigError(f"system.call: {self.call} is a {type(found).__name__}; expected a function of a case")
        return found, sha256

    @asynccontextmanager
    async def session(self, surroundings: Surroundings) -> AsyncIterator[Ask]:
        """Load the function, and start the loop that its coroutines run in."""
        function = self.function or self._loaded(surroundings)[0]
        side, threads = _SideLoop(), _Threads()
        is_async = inspect.iscoroutinefunction(function) or inspect.isasyncgenfunction(function)

        async def ask(case: Case) -> Answer:
            if is_async:
                return await side.result_of(lambda: function(case))  # type: ignore[no-any-return]
            found = await threads.call(function, case)
            if inspect.isawaitable(found) or inspect.isasyncgen(found):
                found = await side.result_of(lambda: found)
            return found  # type: ignore[no-any-return]  # whatever it is, it is looked at where it arrives

        try:
            yield ask
        finally:
            side.stop()
            threads.stop()


class _Threads:
    """Calls functions in threads of its own, one call at a time in each; one that a call never leaves is given up."""

    def __init__(self) -> None:
        self._idle: list[SimpleQueue[Callable[[], None] | None]] = []

    async def call(self, function: Callable[[Case], Any], case: Case) -> Any:
        """What a call gives.

        Raises:
            AskError: it raised, or a generator of it gives something else than texts.
        """
        here = asyncio.get_running_loop()
        done: asyncio.Future[Any] = here.create_future()
        queue = self._idle.pop() if self._idle else self._new()

        def deliver(value: Any, error: AskError | None) -> None:
            if done.done():  # nobody waits any more, so the thread was given up
                queue.put(None)
                return
            self._idle.append(queue)
            done.set_result(value) if error is None else done.set_exception(error)

        def work() -> None:
            value, error = None, None
            try:
                value = function(case)
                if inspect.isgenerator(value):
                    value = _joined(list(value))
            except AskError as raised:
                error = raised
            except BaseException as raised:  # noqa: BLE001  # of a thread nobody hears but by what it delivers
                error = _told(raised)
            try:
                here.call_soon_threadsafe(deliver, value, error)
            except RuntimeError:  # the run has ended without it
                queue.put(None)

        queue.put(work)
        return await done

    def _new(self) -> "SimpleQueue[Callable[[], None] | None]":
        queue: SimpleQueue[Callable[[], None] | None] = SimpleQueue()

        def serve() -> None:
            while (work := queue.get()) is not None:
                work()

        threading.Thread(target=serve, name="judgekit-system", daemon=True).start()
        return queue

    def stop(self) -> None:
        """End the threads that wait for work."""
        for queue in self._idle:
            queue.put(None)


class _SideLoop:
    """Runs coroutines in a loop in another thread."""

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None

    async def result_of(self, begin: Callable[[], Any]) -> Any:
        """What an awaitable or an asynchronous generator gives, which is made in the loop that runs it.

        Raises:
            AskError: it raised.
        """
        if self._loop is None:
            self._loop = asyncio.new_event_loop()
            threading.Thread(target=_run_loop, args=(self._loop,), name="judgekit-system-loop", daemon=True).start()

        async def awaited() -> Any:
            try:
                found = begin()
                if inspect.isasyncgen(found):
                    return _joined([item async for item in found])
                return await found
            except (AskError, asyncio.CancelledError):
                raise
            except BaseException as raised:  # noqa: BLE001  # SystemExit would end the loop of all others
                raise _told(raised) from None

        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(awaited(), self._loop))

    def stop(self) -> None:
        """End the loop, unless a coroutine blocks it."""
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self._loop.stop)


def _run_loop(loop: asyncio.AbstractEventLoop) -> None:
    try:
        loop.run_forever()
    finally:
        for task in asyncio.all_tasks(loop):
            task.cancel()
        loop.run_until_complete(asyncio.sleep(0))
        loop.close()


def _joined(items: list[Any]) -> str:
    """The texts that a generator gave, as the answer.

    Raises:
        AskError: one is not a text.
    """
    wrong = next((item for item in items if not isinstance(item, str)), None)
    if wrong is not None:
        raise AskError(INVALID, f"a generator gives the answer in texts, found {type(wrong).__name__} {wrong!r:.60}")
    return "".join(items)


def _told(error: BaseException) -> AskError:
    """An exception of the function in one line, with the place that raised it."""
    frames = traceback.extract_tb(error.__traceback__)
    place = f" ({Path(frames[-1].filename).name}:{frames[-1].lineno})" if len(frames) > 1 else ""
    return AskError("exception", f"{type(error).__name__}: {error}{place}")
