"""Run a workflow on this machine: one event loop, also from inside a running one."""

import asyncio
import threading
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


def run_local(main: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """The result of a coroutine, run to its end.

    Where an event loop is running already (a notebook, a web server), the coroutine gets a thread with a loop
    of its own; no loop is ever patched.

    Raises:
        BaseException: whatever the coroutine raised.
    """
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(main())
    results: list[T] = []
    errors: list[BaseException] = []

    def target() -> None:
        try:
            results.append(asyncio.run(main()))
        except BaseException as error:  # noqa: BLE001  # carried over to the caller's thread
            errors.append(error)

    thread = threading.Thread(target=target, name="judgekit-loop")
    thread.start()
    thread.join()
    if errors:
        raise errors[0]
    return results[0]
