"""What the drivers share: the command line, the items, the measurement, and a fence around the network.

Standard library only, since it runs in each peer's own interpreter:

    python -m benchmarks.peers.ragas_driver --case ascore --base-url http://127.0.0.1:8000/v1 --inputs inputs.jsonl
"""

import argparse
import asyncio
import contextlib
import importlib.metadata
import json
import resource
import socket
import sys
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

MODEL = "judge-2025-01-01"
QUESTION = "Is every claim of the answer supported by the passages?"
STEPS = [
    "Split the answer into claims: single statements that could be true or false by themselves.",
    "A claim is supported only if the passages state it or it follows from them directly.",
    "Names, numbers, dates, units, negations and who did what to whom must all agree.",
    "Plausible, well known or likely is not supported.",
    "Give the highest score if every claim is supported, the lowest if the answer has nothing to do with the passages.",
]
"""What the peers' judges are told: the middle of judgekit's groundedness prompt."""


@dataclass(frozen=True)
class Item:
    """An answer and the passages that it should rest on."""

    name: str
    answer: str
    passages: tuple[str, ...]

    @property
    def passages_text(self) -> str:
        return "\n\n".join(self.passages)


@dataclass(frozen=True)
class Job:
    """What a driver is asked to do."""

    base_url: str
    in_flight: int
    folder: Path
    """The driver's own; caches and logs go here, and stay for the next driver of the same cache."""


Work = Callable[[Sequence[Item]], int]
"""Judges the items as the peer does it, and returns how many of them got a verdict."""


class OutwardCallError(OSError):
    """A peer wanted to leave this machine."""


def fence() -> list[str]:
    """Refuses every connection and look-up that leaves this machine.

    Returns:
        Filled with the addresses that were asked for. Only connecting is watched, so judging is not slowed.
    """
    refused: list[str] = []
    connect, connect_ex, look_up = socket.socket.connect, socket.socket.connect_ex, socket.getaddrinfo

    def check(host: object) -> None:
        if host not in (None, "127.0.0.1", "::1", "localhost", b"127.0.0.1", b"localhost"):
            refused.append(str(host))
            raise OutwardCallError(f"a benchmark must not call {host}")

    def fenced_connect(self: socket.socket, address: Any) -> None:
        if self.family in (socket.AF_INET, socket.AF_INET6):
            check(address[0])
        return connect(self, address)

    def fenced_connect_ex(self: socket.socket, address: Any) -> int:
        if self.family in (socket.AF_INET, socket.AF_INET6):
            check(address[0])
        return connect_ex(self, address)

    def fenced_look_up(host: Any, *arguments: Any, **options: Any) -> Any:
        check(host)
        return look_up(host, *arguments, **options)

    patches = {"connect": fenced_connect, "connect_ex": fenced_connect_ex}
    for name, patch in patches.items():
        setattr(socket.socket, name, patch)
    socket.getaddrinfo = fenced_look_up
    return refused


def side_by_side(judge: Callable[[Item], Awaitable[bool]], in_flight: int, runner: asyncio.Runner) -> Work:
    """Work that judges items one by one, so many at a time, for peers that leave this to their user."""

    async def judge_all(items: Sequence[Item]) -> int:
        gate = asyncio.Semaphore(in_flight)

        async def one(item: Item) -> bool:
            async with gate:
                return await judge(item)

        return sum(await asyncio.gather(*(one(item) for item in items)))

    return lambda items: runner.run(judge_all(items))


def drive(cases: Mapping[str, Callable[[Job], Work]], distributions: Sequence[str]) -> None:
    """The whole of a driver: reads the command line, measures one case, prints one JSON line.

    Args:
        cases: By name, what puts the peer together and returns its work.
        distributions: Whose versions are told; the peer's own comes first.
    """
    parser = argparse.ArgumentParser()
    parser.add_argument("--case", required=True, choices=list(cases))
    parser.add_argument("--base-url", required=True)
    parser.add_argument("--inputs", required=True, type=Path, help="lines of name, answer and passages")
    parser.add_argument("--warm", type=int, default=10, help="so many of the inputs come first; 0: all in one call")
    parser.add_argument("--in-flight", type=int, default=64)
    options = parser.parse_args()
    refused = fence()
    with options.inputs.open(encoding="utf-8") as lines:
        records = [json.loads(line) for line in lines]
    items = [Item(record["name"], record["answer"], tuple(record["passages"])) for record in records]
    # Peers write to standard output as they please; what the driver says has to stay readable.
    with contextlib.redirect_stdout(sys.stderr):
        work = cases[options.case](Job(options.base_url, options.in_flight, Path.cwd()))
        if options.warm:
            measured = measure(work, items[: options.warm], items[options.warm :])
        else:
            measured = dict(zip(("cpu_seconds", "wall_seconds"), timed(work, items), strict=True))
    versions = {name: importlib.metadata.version(name) for name in distributions}
    print(json.dumps({"case": options.case, **measured, "refused": sorted(set(refused)), "versions": versions}))


def measure(work: Work, warm: Sequence[Item], items: Sequence[Item]) -> dict[str, Any]:
    """CPU and wall time of each further item.

    A call with a single item is measured first and taken off, so that neither imports nor what a peer does once a
    call (open a log, print a header, end a run) is counted as judging.
    """
    timed(work, warm)
    one, rest = items[:1], items[1:]
    cpu_of_one, wall_of_one = timed(work, one)
    cpu, wall = timed(work, rest)
    # `rest` is a call with one item and so many further ones.
    n_further = len(rest) - 1
    return {
        "items": len(items),
        "cpu_ms_per_item": (cpu - cpu_of_one) * 1000 / n_further,
        "items_per_second": n_further / (wall - wall_of_one),
        "wall_seconds": wall,
        "call_cpu_ms": cpu_of_one * 1000,
    }


def timed(work: Work, items: Sequence[Item]) -> tuple[float, float]:
    """CPU and wall seconds of judging the items.

    Raises:
        RuntimeError: An item got no verdict; such a run measures something else.
    """
    wall, cpu = time.perf_counter(), cpu_seconds()
    n_judged = work(items)
    spent = cpu_seconds() - cpu, time.perf_counter() - wall
    if n_judged != len(items):
        raise RuntimeError(f"{n_judged} of {len(items)} items got a verdict")
    return spent


def cpu_seconds() -> float:
    """CPU of this process, all threads, and of its children that have ended."""
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + children.ru_utime + children.ru_stime
