"""What every executor must do, as a check that anybody can hold their own against."""

import os
import signal
import time
from concurrent.futures import wait
from pathlib import Path

from judgekit.core.shard_tasks import Executor, ShardTask


def _play(task: ShardTask) -> tuple[int, str]:
    """What the workers of the check do."""
    what = task.part["what"]
    if what == "die":
        os.kill(os.getpid(), signal.SIGKILL)
    if what == "fail":
        raise ValueError("this task fails")
    if what == "sleep":
        time.sleep(task.part["seconds"])
    (Path(task.parts_dir) / task.shard.replace("/", "of")).write_text(str(os.getpid()), encoding="utf-8")
    return 0, task.shard


def _task(folder: Path, number: int, what: str, **more: float) -> ShardTask:
    place = str(folder)
    return ShardTask(place, place, f"{number}/99", {"what": what, **more}, place, use_cache=False, n_sharers=1)


def check_executor(executor: Executor, folder: Path, seconds: float = 120.0) -> None:
    """Hold an executor against its contract; it takes a few seconds and kills one of its workers.

    Args:
        executor: with two workers at least.
        folder: an empty folder that its workers see.
        seconds: how long each step may take.

    Raises:
        AssertionError: says what it does not keep.
    """
    with executor.session(_play) as submit:
        futures = [submit(_task(folder, number, "answer")) for number in range(1, 6)]
        ended, running = wait(futures, seconds)
        _hold(not running, f"{len(running)} of 5 tasks have not ended after {seconds:g} s")
        found = sorted(future.result() for future in ended)
        wanted = [(0, f"{number}/99") for number in range(1, 6)]
        _hold(found == wanted, f"tasks gave {found}, not what they returned")
        _hold(len(list(folder.iterdir())) == 5, f"workers do not write to {folder}, which all must see")

        failing, next_to_it = submit(_task(folder, 6, "fail")), submit(_task(folder, 7, "answer"))
        _hold(failing.exception(seconds) is not None, "a task that raised ended without an error")
        _hold(next_to_it.result(seconds) == (0, "7/99"), "a task that raised has spoilt another one")

        lost = submit(_task(folder, 8, "die"))
        _hold(lost.exception(seconds) is not None, "a worker killed itself, and its future ended without an error")
        after = submit(_task(folder, 9, "answer"))
        _hold(after.result(seconds) == (0, "9/99"), "after a worker was lost, no task is carried out")

        for number in (10, 11):
            submit(_task(folder, number, "sleep", seconds=4 * seconds))
        time.sleep(0.5)
        began = time.monotonic()
    took = time.monotonic() - began
    _hold(took < seconds, f"the session took {took:.0f} s to end; it must end tasks that still run")


def _hold(kept: bool, otherwise: str) -> None:  # reads as what must hold, and what is said if not
    if not kept:
        raise AssertionError(otherwise)
