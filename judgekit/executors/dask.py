"""Shards on Dask: workers of this machine, or a cluster that is there."""

import logging
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import ExitStack, contextmanager
from typing import Any

from judgekit.core.errors import ConfigError
from judgekit.core.shard_tasks import Executor, ShardTask

_CONNECT_SECONDS = 30


class Dask(Executor):
    """Each shard is one task of Dask's scheduler.

    A task whose worker dies ends with an error. The scheduler of a cluster may carry it out again by itself, which does
    no harm; ours does not.
    """

    address: str = "local"
    """`local` starts workers on this machine; else where the scheduler is, such as `tcp://10.0.0.7:8786`."""

    @contextmanager
    def session(self, work: Callable[[ShardTask], Any]) -> Iterator[Callable[[ShardTask], Future[Any]]]:
        """Connected to the scheduler."""
        try:
            import dask
            from distributed import Client, LocalCluster
        except ImportError:
            raise ConfigError(
                "executor dask: not installed: pip install '.[dask]' in the checkout of judgekit"
            ) from None
        with ExitStack() as stack:
            stack.enter_context(dask.config.set({"distributed.scheduler.allowed-failures": 0}))
            place: Any = self.address
            if self.address == "local":
                place = stack.enter_context(
                    LocalCluster(  # type: ignore[no-untyped-call]
                        n_workers=self.workers,
                        threads_per_worker=1,
                        memory_limit=None,
                        dashboard_address="127.0.0.1:0",
                        silence_logs=logging.CRITICAL,  # what befalls a worker is said by the run
                    )
                )
            try:
                client = stack.enter_context(Client(place, timeout=_CONNECT_SECONDS))  # type: ignore[no-untyped-call]
            except (OSError, ValueError) as error:
                raise ConfigError(f"executor.address: no Dask scheduler at {self.address}: {error}") from None
            pool = client.get_executor(pure=False, retries=0)
            stack.callback(pool.shutdown, wait=False)  # which cancels what still runs
            yield lambda task: pool.submit(work, task)
