"""Shards on Ray: workers of this machine, or a cluster that is there. It takes Ray core, without its data library."""

from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from typing import Any

from judgekit.core.errors import ConfigError
from judgekit.core.shard_tasks import Executor, ShardTask


class Ray(Executor):
    """Each shard is one task of Ray, which does not make it again by itself."""

    address: str = "local"
    """`local` starts Ray on this machine; else where it is, such as `auto` or `ray://10.0.0.7:10001`."""

    @contextmanager
    def session(self, work: Callable[[ShardTask], Any]) -> Iterator[Callable[[ShardTask], Future[Any]]]:
        """Connected to Ray."""
        try:
            import ray
        except ImportError:
            raise ConfigError("executor ray: not installed: pip install '.[ray]' in the checkout of judgekit") from None
        is_ours = self.address == "local"
        own: dict[str, Any] = {"num_cpus": self.workers, "include_dashboard": False} if is_ours else {}
        try:
            ray.init(address=self.address, log_to_driver=False, logging_level="ERROR", **own)
        except (OSError, ValueError, RuntimeError) as error:
            raise ConfigError(f"executor.address: no Ray at {self.address}: {error}") from None
        try:
            remote = ray.remote(num_cpus=1, max_retries=0)(work)
            yield lambda task: remote.remote(task).future()
        finally:
            ray.shutdown()
