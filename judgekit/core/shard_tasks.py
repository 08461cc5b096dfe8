"""The port to what judges the shards of a run elsewhere; adapters are in executors."""

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

from pydantic import BaseModel, ConfigDict, Field


@dataclass(frozen=True)
class ShardTask:
    """One shard to judge, as it goes to a worker. Its paths are those of the driver, so every worker must see them."""

    config_path: str
    parts_dir: str
    """Where parts and their commit records are written."""
    shard: str
    """Such as `3/16`."""
    part: Mapping[str, Any]
    """Which cases the shards share between them, as options of a run."""
    cache_dir: str
    """The folder of runs, whose reply cache all workers share."""
    use_cache: bool
    n_sharers: int
    """So many workers share the calls in flight that the config allows of each model."""
    samples: Mapping[str, Sequence[str]] | None = None
    """By judge, the cases of the spot check of the whole, so that not every worker has to draw them from all cases."""


class Executor(BaseModel):
    """Where the shards of a run are judged. One file an executor: its name is that of the file, its fields arguments.

    It carries tasks to workers and says when each has ended, no more. What was judged is in the folder of parts, so it
    returns nothing, tries nothing again, and may even carry out one task twice.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False, use_attribute_docstrings=True)

    name: ClassVar[str] = ""

    workers: Annotated[int, Field(ge=1, le=10_000)] = 2
    """Shards that are judged at the same time."""
    shards: Annotated[int, Field(ge=1, le=9_999)] | None = None
    """Parts that the cases are divided into; left out: four for each worker. A lost worker costs one of them."""

    @property
    def n_shards(self) -> int:
        """Number of parts."""
        return self.shards or min(9_999, 4 * self.workers)

    @abstractmethod
    def session(self, work: Callable[[ShardTask], Any]) -> AbstractContextManager[Callable[[ShardTask], Future[Any]]]:
        """Make workers ready, and end them afterwards, whatever still runs there.

        Args:
            work: what a worker does with a task; can be pickled, as can tasks and what it returns.

        Returns:
            What hands over a task and gives a future; it ends as `work` does, or with an error if the worker is lost.

        Raises:
            ConfigError: it is not installed, or not where the config says.
        """
