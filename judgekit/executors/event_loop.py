"""Run a workflow on this machine: one event loop, also from inside a running one."""

import asyncio
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import CancelledError, Future, wait
from contextlib import suppress
from contextvars import ContextVar, copy_context
from typing import Any, TypeVar

T = TypeVar("T")


def run_local(main: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """The result of a coroutine, run to its end.

    Where an event loop is running already (a notebook, a web server), the coroutine gets a thread with a loop
    of its own; no loop is ever patched.

    Raises:
        BaseException: whatever the coroutine raised.
    """
    if not _is_loop_running():  # not inside an `except`, or its error would be shown beside that of the work
        return asyncio.run(_announced(main))
    outcome: Future[T] = Future()
    started: Future[tuple[asyncio.AbstractEventLoop, asyncio.Task[T]]] = Future()

    async def carried_out() -> T:
        task = asyncio.ensure_future(main())
        started.set_result((asyncio.get_running_loop(), task))
        return await task

    def target() -> None:
        try:
            outcome.set_result(asyncio.run(carried_out()))
        except BaseException as error:  # noqa: BLE001  # carried over to the caller's thread
            outcome.set_exception(error)
        finally:
            started.cancel()

    # What stands around the call, such as the span that a run belongs to, stands around the thread as well.
    thread = threading.Thread(target=copy_context().run, args=(target,), name="judgekit-loop")
    thread.start()
    try:
        # Not `join`, which takes the thread for ended once it was interrupted.
        wait([outcome])
    except KeyboardInterrupt:
        # Only this thread is told of Ctrl-C; the work must not go on, and be paid for, behind its back.
        with suppress(CancelledError, RuntimeError):  # it never began, or is over
            loop, task = started.result()
            loop.call_soon_threadsafe(task.cancel)
        wait([outcome])
        raise
    finally:
        thread.join()
    return outcome.result()


_ANNOUNCE: ContextVar["Future[tuple[asyncio.AbstractEventLoop, asyncio.Task[Any]]] | None"] = ContextVar(
    "announce", default=None
)
"""Where the work of a thread says how it can be cancelled."""


async def run_beside(work: Callable[[], T]) -> T:
    """What a function gives that calls `run_local`, run in a thread, so that it does not hold up this loop.

    Cancelled, its work is cancelled too, and has ended when this returns.

    Raises:
        BaseException: whatever the function raised.
    """
    started: Future[tuple[asyncio.AbstractEventLoop, asyncio.Task[Any]]] = Future()
    token = _ANNOUNCE.set(started)
    waiting = asyncio.ensure_future(asyncio.to_thread(work))
    _ANNOUNCE.reset(token)
    try:
        return await asyncio.shield(waiting)
    except asyncio.CancelledError:
        if not started.cancel():
            loop, task = started.result()
            with suppress(RuntimeError):  # it is over
                loop.call_soon_threadsafe(task.cancel)
        await asyncio.wait([waiting])
        if not waiting.cancelled():
            waiting.exception()  # looked at, since what was cancelled has the word
        raise


async def _announced(main: Callable[[], Coroutine[Any, Any, T]]) -> T:
    task = asyncio.current_task()
    announce = _ANNOUNCE.get()
    if announce is not None and task is not None:
        if announce.cancelled():
            task.cancel()  # at its first wait, so that it can still close what it holds
        elif not announce.done():
            announce.set_result((asyncio.get_running_loop(), task))
    return await main()


def _is_loop_running() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True
