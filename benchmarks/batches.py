"""A round trip of many requests by batch, with faults, killed at each step and resumed; beside the same by calls.

`python -m benchmarks.batches --requests 10000 --faults 0.03`: each run is a process of its own; the server is this one.
"""

import argparse
import json
import resource
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from judgekit.testing import BatchFaults, FaultServer
from tests.builders import case, output, write_suite

STEPS = ("upload", "create", "retrieve", "content")
PASSAGE = "The keeper trims the wick at dusk and writes the hour, the wind and the state of the sea into the log. "


@dataclass(frozen=True)
class Used:
    """What a process took."""

    seconds: float
    cpu_seconds: float
    peak_mib: float


def measured(command: list[str], folder: Path, server: FaultServer, kill_at: str | None = None) -> Used:
    """Run judgekit to its end, or kill it once the server has carried out a step and not answered."""
    started, cpu_before = time.perf_counter(), _cpu_of_children()
    before = dict(server.batch.calls)
    with (folder / "log.txt").open("ab") as log:
        process = subprocess.Popen([sys.executable, "-m", "judgekit", *command], cwd=folder, stdout=log, stderr=log)
    peak = 0.0
    while process.poll() is None:
        peak = max(peak, _peak_mib(process.pid))
        if kill_at is not None and server.batch.calls[kill_at] > before.get(kill_at, 0):
            process.send_signal(signal.SIGKILL)
        time.sleep(0.02)
    cpu = _cpu_of_children() - cpu_before
    return Used(time.perf_counter() - started, cpu, peak)


def _cpu_of_children() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def _peak_mib(pid: int) -> float:
    """The most memory that a process has had; the system's own account of a child begins with that of its parent."""
    with suppress(OSError, ValueError):
        for line in Path(f"/proc/{pid}/status").read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) / 1024
    return 0.0


def suite(folder: Path, server: FaultServer, n: int, mode: str | None) -> None:
    """A config with so many cases of about 2,000 characters."""
    names = [f"c{number}" for number in range(n)]
    rows = [
        output(name) | {"answer": f"Entry {name}: the keeper writes the hour.", "retrieved": [{"text": PASSAGE * 19}]}
        for name in names
    ]
    model: dict[str, Any] = {"mode": mode, "batch": {"poll_seconds": 1}, "max_concurrency": 64, "max_attempts": 1}
    cases = [case(name) for name in names]
    write_suite(
        folder, server.base_url, case_rows=cases, output_rows=rows, model=model, metrics=["operations"], report=False
    )


def counts(folder: Path) -> tuple[int, dict[str, int]]:
    """Verdicts and failures of the run by its figures."""
    record = json.loads((folder / "results" / "r" / "metrics.json").read_text())["judges"]["groundedness"]
    return record["n_judged"], record["failures"]


def shown(label: str, used: Used, n: int) -> None:
    """One line of a table."""
    per_request = 1000 * used.cpu_seconds / n
    print(f"{label:34} {used.seconds:7.1f} s  {per_request:6.2f} ms of CPU a request  {used.peak_mib:6.0f} MiB")


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--requests", type=int, default=10_000)
    parser.add_argument("--faults", type=float, default=0.03, help="share of the requests that get no reply")
    wanted = parser.parse_args()
    n, third = wanted.requests, wanted.faults / 3
    begin, resume = ["run", "config.json", "--run-id", "r"], ["run", "--resume", "r"]
    with tempfile.TemporaryDirectory() as place, FaultServer(keep_bodies=False) as server:
        for label, mode in (("by calls, without faults", None), ("by batch, without faults", "batch")):
            folder = Path(place) / label.replace(" ", "-")
            suite(folder, server, n, mode)
            shown(label, measured(begin, folder, server), n)
            assert counts(folder)[0] == n, (folder / "log.txt").read_text()[-2000:]
        folder = Path(place) / "faults"
        suite(folder, server, n, "batch")
        server.batch.faults = BatchFaults(missing=third, expired=third, failed=third, twice=third, n_foreign=10)
        server.batch.asked.clear()
        shown("by batch, with faults", measured(begin, folder, server), n)
        print(f"  {counts(folder)[0]} judged, failures {counts(folder)[1]}")
        server.batch.faults = BatchFaults()
        shown("  resumed", measured(resume, folder, server), n)
        twice = sum(count - 1 for count in server.batch.asked.values())
        print(f"  {counts(folder)[0]} judged, failures {counts(folder)[1]}, {twice} requests in a second batch")
        folder = Path(place) / "killed"
        suite(folder, server, n, "batch")
        server.batch.asked.clear()
        n_batches = server.batch.n_created
        for number, step in enumerate(STEPS):
            server.batch.faults = BatchFaults(hung={step: 1})
            shown(f"killed at {step}", measured(resume if number else begin, folder, server, step), n)
        shown("  resumed", measured(resume, folder, server), n)
        twice = sum(count - 1 for count in server.batch.asked.values())
        print(f"  {counts(folder)[0]} judged, {server.batch.n_created - n_batches} batch, {twice} requests paid twice")


if __name__ == "__main__":
    main()
