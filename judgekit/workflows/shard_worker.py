"""What a worker does with one shard: judge it into a part, and commit the part once it is complete."""

from dataclasses import replace
from pathlib import Path

from judgekit.core.case_parts import shard_numbers
from judgekit.core.errors import JudgekitError
from judgekit.core.shard_tasks import ShardTask
from judgekit.executors.event_loop import run_local
from judgekit.storage.leases import LEASES, BudgetLeases, PartLease
from judgekit.storage.shard_parts import ShardParts
from judgekit.workflows.job import start
from judgekit.workflows.models import Options
from judgekit.workflows.run import run_part
from judgekit.workflows.setup import set_up


def judge_shard(task: ShardTask) -> tuple[int, str]:
    """Judge one shard.

    Returns:
        Exit code and message as of `judgekit run`; 0 and nothing if the part is committed. What only prints an error in
        one process must not take a worker down, or look like one that is lost.
    """
    try:
        _judge(task)
    except JudgekitError as error:
        return error.exit_code, str(error)
    except Exception as error:  # noqa: BLE001  # an error of another package may not survive the way to the driver
        return 1, f"{type(error).__name__}: {error}"
    return 0, ""


def _judge(task: ShardTask) -> None:
    parts = ShardParts(Path(task.parts_dir))
    number, _ = shard_numbers(task.shard)
    if any(map(parts.is_committed, parts.attempts(number))):
        return  # an engine that has lost what a task returned may carry it out again
    name = parts.claim(task.shard)
    with parts.beating(name):
        _judge_into(parts, name, task)
    parts.commit(name)


def _judge_into(parts: ShardParts, name: str, task: ShardTask) -> None:
    options = Options(
        results_dir=parts.path,
        run_id=name,
        shard=task.shard,
        use_cache=task.use_cache,
        cache_dir=Path(task.cache_dir),
        n_sharers=task.n_sharers,
        samples=task.samples,
        **task.part,
    )
    leases = parts.path / LEASES
    lease = PartLease(BudgetLeases(leases), name, task.n_sharers) if leases.exists() else None
    job = replace(start(set_up(Path(task.config_path), options), options), lease=lease)
    run_local(lambda: run_part(job))
