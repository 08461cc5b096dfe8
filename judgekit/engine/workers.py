"""Coroutines that share one stream of work."""

import asyncio
from collections.abc import Coroutine, Iterable
from typing import Any


async def run_workers(workers: Iterable[Coroutine[Any, Any, None]]) -> None:
    """Run all of them to their end; the first error ends the others, which are waited for.

    Raises:
        Exception: the first error of a worker.
    """
    tasks = [asyncio.create_task(worker) for worker in workers]
    try:
        await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
