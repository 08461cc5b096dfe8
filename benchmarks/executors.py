"""What a killed worker costs: a run on an executor, at a server with latency and faults.

    python -m benchmarks.executors [--executor dask] [--cases 20000]

The server answers after 100 ms and plays a fault in 5% of its replies. Once a third of the shards are committed, one of
the two workers is killed. Each input must be judged once in the result; what was answered twice was paid for twice.
"""

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import psutil

from judgekit.core.runs import JUDGMENTS
from judgekit.storage.shard_parts import PARTS, ShardParts
from judgekit.testing import FaultServer, Reply, Request, error_reply, plausible_verdict, reset, with_latency

SHARE_OF_FAULTS = 0.05
LATENCY_SECONDS = 0.1


class Faulty:
    """A judge that is down for a share of the requests, and counts what it answered by case."""

    def __init__(self) -> None:
        self.rng = random.Random(0)
        self.answered: Counter[str] = Counter()
        self._lock = threading.Lock()

    def __call__(self, request: Request) -> Reply:
        """A verdict, an error or a broken connection."""
        if '{"ready": true}' in request.text:
            return plausible_verdict(request)
        with self._lock:
            chance = self.rng.random()
            if chance < SHARE_OF_FAULTS / 2:
                return error_reply(503, "down for a moment")
            if chance < SHARE_OF_FAULTS:
                return reset()
            self.answered[request.text.partition("Kiln ")[2].partition(" ")[0]] += 1
        return plausible_verdict(request)


def write_suite(folder: Path, n_cases: int, model: dict[str, Any], **more: Any) -> Path:
    """A config with its cases and outputs."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "cases.jsonl").open("w") as cases, (folder / "outputs.jsonl").open("w") as outputs:
        for number in range(n_cases):
            question = f"How hot is kiln c{number}?"
            text = f"Kiln c{number} is fired at {1000 + number % 400} degrees, as the log of the year says."
            cases.write(json.dumps({"id": f"c{number}", "question": question, "category": f"k{number % 7}"}) + "\n")
            answer = text if number % 5 else "Nobody has measured it."
            found = [{"chunk_id": f"k{number}", "text": text}]
            outputs.write(json.dumps({"case_id": f"c{number}", "answer": answer, "retrieved": found}) + "\n")
    document = {
        "name": "shared",
        "cases": "cases.jsonl",
        "system": {"name": "recorded", "path": "outputs.jsonl"},
        "models": {"m": model},
        "judges": [{"name": "groundedness", "model": "m"}],
        "results_dir": "results",
        "slices": ["category"],
        **more,
    }
    path = folder / "config.json"
    path.write_text(json.dumps(document, indent=1))
    return path


class Watch:
    """Peak memory and CPU of a command and all processes below it."""

    def __init__(self, arguments: Sequence[str], folder: Path) -> None:
        command = [sys.executable, "-m", "judgekit", *arguments, "--quiet"]
        self.process = subprocess.Popen(command, cwd=folder, stdout=subprocess.DEVNULL, env=environment())
        self.began = time.monotonic()
        self.peak_bytes = 0
        self._cpu: dict[int, float] = {}

    def look(self) -> bool:
        """Take one sample; whether the command still runs."""
        if self.process.poll() is not None:
            return False
        total = 0
        try:
            top = psutil.Process(self.process.pid)
            for one in [top, *top.children(recursive=True)]:
                times = one.cpu_times()
                self._cpu[one.pid] = times.user + times.system
                total += one.memory_info().rss
        except psutil.Error:
            return True
        self.peak_bytes = max(self.peak_bytes, total)
        return True

    def end(self) -> dict[str, float]:
        """Wait for it.

        Raises:
            RuntimeError: it failed.
        """
        while self.look():
            time.sleep(0.1)
        if self.process.returncode != 0:
            raise RuntimeError(f"exit code {self.process.returncode}")
        return {
            "wall_seconds": round(time.monotonic() - self.began, 1),
            "cpu_seconds": round(sum(self._cpu.values()), 1),
            "peak_mib": round(self.peak_bytes / 2**20),
        }


def environment() -> dict[str, str]:
    """Of a command that is started in another folder."""
    here = str(Path(__file__).parents[1])
    return {**os.environ, "PYTHONPATH": os.pathsep.join([here, os.environ.get("PYTHONPATH", "")])}


def workers_of(pid: int) -> list[int]:
    """Processes below a process that judge shards."""
    found = psutil.Process(pid).children(recursive=True)
    return [one.pid for one in found if any(word in " ".join(one.cmdline()) for word in ("spawn_main", "ray::"))]


def are_under_way(parts: ShardParts) -> bool:
    """Whether a third of the shards are committed, and two are being judged."""
    names = parts.attempts()
    running = [name for name in names if not parts.is_committed(name)]
    sizes = [path.stat().st_size for name in running if (path := parts.path / name / JUDGMENTS).exists()]
    return len(names) - len(running) >= 5 and len(sizes) >= 2 and min(sizes) > 100_000


def faults(executor: str, n_cases: int) -> dict[str, Any]:
    """A run whose worker is killed once a third of the shards are committed."""
    judge = Faulty()
    with tempfile.TemporaryDirectory() as place, FaultServer(with_latency(LATENCY_SECONDS, then=judge)) as server:
        folder = Path(place)
        model = {"model": "judge-2025-01-01", "base_url": server.base_url, "max_concurrency": 128, "max_attempts": 8}
        shared = {"name": executor, "workers": 2, "shards": 16}
        path = write_suite(folder, n_cases, model, executor=shared)
        watch = Watch(["run", str(path), "--run-id", "whole"], folder)
        parts, killed = ShardParts(folder / "results" / "whole" / PARTS), 0
        while watch.look():
            if not killed and are_under_way(parts):
                killed = workers_of(watch.process.pid)[-1]
                os.kill(killed, signal.SIGKILL)
            time.sleep(0.1)
        used = watch.end()
        results = folder / "results" / "whole"
        judged = Counter(json.loads(line)["case_id"] for line in (results / "judgments.jsonl").open())
        warnings = [item["message"] for item in json.loads((results / "metrics.json").read_text())["warnings"]]
    return {
        "executor": executor,
        "killed": bool(killed),
        "n_cases": n_cases,
        "judged_once": sum(n == 1 for n in judged.values()),
        "judged_more_often": sum(n > 1 for n in judged.values()),
        "answered": judge.answered.total(),
        "answered_twice": judge.answered.total() - len(judge.answered),
        "requests": server.log.totals.n_requests,
        **used,
        "warnings": warnings,
    }


def main() -> None:
    """Measure and print JSON lines."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--executor", default="dask")
    parser.add_argument("--cases", type=int, default=20_000)
    arguments = parser.parse_args()
    print(json.dumps(faults(arguments.executor, arguments.cases), indent=1))


if __name__ == "__main__":
    main()
