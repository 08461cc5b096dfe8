"""One suite judged in every way that a run can grow: what each takes, and whether the figures are the same.

    python -m benchmarks.scale run --cases 10000 --folder /tmp/scale [--only local --only shards] [--json FILE]
    python -m benchmarks.scale run --cases 1000000 --passages 2 --characters 200 --judges 1 --folder /tmp/scale

Writes recorded answers with passages (`--passages` of some `--characters` each), and judges them by the word-overlap
baseline, so that no server and no price is in the figures: in one process, on Dask and on Ray with two workers each,
and as four shards one after another that are then merged. Each way has a results folder of its own below `--folder`,
and is left there. Figures, slices and judge reliability of all must be equal to the stored digit; ends with 1 where
they are not.
"""

import argparse
import json
import os
import platform
import random
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from importlib.metadata import PackageNotFoundError, version
from itertools import pairwise
from pathlib import Path
from typing import Any

import psutil

ROOT = Path(__file__).resolve().parent.parent
N_PASSAGES = 5_000
N_SHARDS = 4
AT_LAST = 500_000_000
"""Cases of the example of docs/scale.md: a billion judgments."""
SAME = ("cases", "overall", "slices", "slice_sizes", "judges", "judge_reliability", "abstention", "gates")
"""Of metrics.json: what may not depend on how the run was shared."""
WORDS = [
    first + last
    for first in ("lan", "har", "kee", "fog", "tow", "ves", "ti")
    for last in ("ter", "bor", "per", "del", "s", "ing")
]


@dataclass(frozen=True)
class Used:
    """What commands took, with all processes that they started."""

    wall_seconds: float = 0.0
    cpu_seconds: float = 0.0
    largest_mib: float = 0.0
    """Peak of the largest single process."""
    together_mib: float = 0.0
    """Peak of all processes at one time; pages that they share count for each."""

    def then(self, other: "Used") -> "Used":
        """Both, one after the other."""
        return Used(
            self.wall_seconds + other.wall_seconds,
            self.cpu_seconds + other.cpu_seconds,
            max(self.largest_mib, other.largest_mib),
            max(self.together_mib, other.together_mib),
        )


@dataclass(frozen=True)
class Row:
    """One line of the table."""

    way: str
    used: Used
    folder_bytes: int | None = None
    """Of the run."""
    database_bytes: int | None = None
    """Of the list of runs."""


def prose(rng: random.Random, n_characters: int) -> str:
    """Words up to a length."""
    words: list[str] = []
    while n_characters > 0:
        words.append(rng.choice(WORDS))
        n_characters -= len(words[-1]) + 1
    return " ".join(words)


@dataclass(frozen=True)
class Suite:
    """What is judged."""

    cases: int
    passages: int
    """Of each answer."""
    characters: int
    """Of each passage, about."""
    judges: int
    """1, groundedness alone, or 2, with correctness."""


def records(suite: Suite) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    """Cases with their outputs: most answers quote a passage, some make things up, some abstain."""
    rng = random.Random(1)
    passages = [prose(rng, suite.characters) for _ in range(N_PASSAGES)]
    for number in range(suite.cases):
        found = rng.sample(range(N_PASSAGES), suite.passages)
        answerable, quoted = number % 11 != 0, passages[found[0]].split()
        abstained = rng.random() < (0.03 if answerable else 0.8)
        invented = prose(rng, rng.choice([0, 0, 60, 200]))
        case: dict[str, Any] = {
            "id": f"case-{number:09}",
            "question": f"{prose(rng, 60)}?",
            "answerable": answerable,
            "category": ("factual", "how", "why", "when")[number % 4],
            "difficulty": ("easy", "medium", "hard")[number % 3],
        }
        if answerable:
            case["expected_chunk_ids"] = [f"c{found[rng.choice([0, 0, -1])]}", f"c{found[1]}"]
            case["reference_answers"] = [" ".join(quoted[: rng.choice([8, 18, 30])])]
        yield (
            case,
            {
                "case_id": case["id"],
                "answer": "I cannot say." if abstained else f"{' '.join(quoted[:20])}. {invented}",
                "abstained": abstained,
                "retrieved": [
                    {"chunk_id": f"c{key}", "doc_id": f"d{key // 10}", "text": passages[key], "score": 1 / rank}
                    for rank, key in enumerate(found, start=1)
                ],
                "citations": [] if abstained else [{"citation": f"c{found[0]}"}],
                "latency_seconds": {"total": round(rng.random(), 3)},
            },
        )


def write_suite(folder: Path, suite: Suite) -> int:
    """Cases, outputs and a config for each way of judging.

    Returns:
        Bytes of the cases and outputs.
    """
    folder.mkdir(parents=True)
    paths = folder / "cases.jsonl", folder / "outputs.jsonl"
    with paths[0].open("w", encoding="utf-8") as cases, paths[1].open("w", encoding="utf-8") as outputs:
        for case, output in records(suite):
            cases.write(json.dumps(case) + "\n")
            outputs.write(json.dumps(output) + "\n")
    config = {
        "name": "scale",
        "cases": paths[0].name,
        "system": {"name": "recorded", "path": paths[1].name},
        "judges": [{"name": name, "model": "overlap"} for name in ("groundedness", "correctness")[: suite.judges]],
        "models": {
            "overlap": {"provider": "lexical", "model": "overlap-2"},
            "other": {"provider": "lexical", "model": "overlap-strict-2"},
        },
        "spot_check": {"n": 20, "model": "other"},
        "seed": 7,
        "slices": ["category", "difficulty"],
    }
    (folder / "config.json").write_text(json.dumps(config, indent=1))
    for name in ("dask", "ray"):
        executor = {"name": name, "workers": 2, "shards": N_SHARDS}
        (folder / f"{name}.json").write_text(json.dumps({**config, "executor": executor}, indent=1))
    return sum(path.stat().st_size for path in paths)


def judgekit(folder: Path, *arguments: str) -> Used:
    """One command line of judgekit, run to its end."""
    paths = os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
    command = [sys.executable, "-m", "judgekit", *arguments, "--quiet"]
    return measured(command, folder, {**os.environ, "PYTHONPATH": paths})


def measured(command: Sequence[str], folder: Path, environment: Mapping[str, str]) -> Used:
    """One command, run to its end.

    Raises:
        SystemExit: it failed.
    """
    began = time.perf_counter()
    with (folder / "log.txt").open("ab") as log:
        process = subprocess.Popen(command, cwd=folder, stdout=log, stderr=log, env=environment)
        seen = Seen()
        while True:
            pid, status, usage = os.wait4(process.pid, os.WNOHANG)
            if pid:
                break
            seen.look(process.pid)
            time.sleep(0.2)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        last = (folder / "log.txt").read_text(errors="replace")[-1500:]
        raise SystemExit(f"{' '.join(command)} ended with {process.returncode}:\n{last}")
    return Used(
        wall_seconds=time.perf_counter() - began,
        # The system counts descendants that were waited for; Ray's processes are not, and are only seen by looking.
        cpu_seconds=max(usage.ru_utime + usage.ru_stime, sum(seen.cpu_seconds.values())),
        largest_mib=max(usage.ru_maxrss / 1024, seen.largest / 2**20),
        together_mib=max(usage.ru_maxrss / 1024, seen.together / 2**20),
    )


@dataclass
class Seen:
    """A process and all below it, as they were when they were looked at."""

    cpu_seconds: dict[int, float] = field(default_factory=dict)
    """By process."""
    largest: int = 0
    """Bytes of the largest process, at its peak; without pages that it shares, such as Ray's store of objects."""
    together: int = 0
    """Bytes of all at one time, at their peak."""

    def look(self, pid: int) -> None:
        """Note what a process and all below it take now."""
        sizes: list[int] = []
        try:
            top = psutil.Process(pid)
            for one in [top, *top.children(recursive=True)]:
                times, memory = one.cpu_times(), one.memory_info()
                self.cpu_seconds[one.pid] = times.user + times.system
                self.largest = max(self.largest, memory.rss - memory.shared)
                sizes.append(memory.rss)
        except psutil.Error:  # it has just ended
            return
        self.together = max(self.together, sum(sizes))


def one_run(way: str, config: str) -> Callable[[Path], list[Row]]:
    """A way that is one command."""

    def measure(folder: Path) -> list[Row]:
        used = judgekit(folder, "run", config, "--results-dir", way, "--run-id", way)
        return [sized(Row(WAYS_SHOWN[way], used), folder / way / way)]

    return measure


def shards(folder: Path) -> list[Row]:
    """Four shards one after another, and the merge."""
    names = [f"part-{number}" for number in range(1, N_SHARDS + 1)]
    used = Used()
    for number, name in enumerate(names, start=1):
        shard = f"{number}/{N_SHARDS}"
        used = used.then(
            judgekit(folder, "run", "config.json", "--shard", shard, "--results-dir", "shards", "--run-id", name)
        )
    merge = judgekit(folder, "merge", *names, "--results-dir", "shards", "--run-id", "shards")
    return [
        Row(f"{N_SHARDS} shards, one after another", used),
        sized(Row("their merge", merge), folder / "shards" / "shards"),
    ]


def one_of_many(folder: Path) -> list[Row]:
    """A hundredth of the cases, which is mostly what it takes to find them."""
    used = judgekit(folder, "run", "config.json", "--shard", "1/100", "--results-dir", "hundredth", "--run-id", "one")
    return [Row("shard 1/100 alone", used)]


WAYS_SHOWN: Mapping[str, str] = {"local": "one process", "dask": "dask, 2 workers", "ray": "ray, 2 workers"}
WAYS: Mapping[str, Callable[[Path], list[Row]]] = {
    "local": one_run("local", "config.json"),
    "dask": one_run("dask", "dask.json"),
    "ray": one_run("ray", "ray.json"),
    "shards": shards,
    "hundredth": one_of_many,
}


def sized(row: Row, run: Path) -> Row:
    """With what the run and the list of runs take on the disk."""
    n_bytes = sum(path.stat().st_size for path in run.rglob("*") if path.is_file())
    return Row(row.way, row.used, n_bytes, (run.parent / "judgekit.db").stat().st_size)


def differences(folder: Path, ways: Sequence[str]) -> list[str]:
    """Where the figures of two ways are not the same, by JSON path."""
    found = {way: json.loads((folder / way / way / "metrics.json").read_text()) for way in ways}
    return [
        f"{one} and {other}: {path}"
        for one, other in pairwise(found)
        for part in SAME
        for path in unequal(found[one].get(part), found[other].get(part), part)
    ]


def unequal(one: object, other: object, path: str) -> Iterator[str]:
    """Paths at which two JSON values differ."""
    if isinstance(one, dict) and isinstance(other, dict):
        for key in sorted({*one, *other}):
            yield from unequal(one.get(key), other.get(key), f"{path}.{key}")
    elif one != other:
        yield f"{path}: {one} and {other}"


def installed(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def print_table(rows: Sequence[Row], n_cases: int, input_bytes: int = 1) -> None:
    """Markdown, with the machine below it."""
    print("| cases | way | wall s | CPU s | CPU ms a case | largest process | all together | run folder : input |")
    print("|---|---|---|---|---|---|---|---|")
    for row in rows:
        used, size = row.used, "" if row.folder_bytes is None else f"{row.folder_bytes / input_bytes:.2f}"
        cells = [
            *(f"{n_cases:,}", row.way, f"{used.wall_seconds:,.1f}", f"{used.cpu_seconds:,.1f}"),
            f"{1000 * used.cpu_seconds / n_cases:.2f}",
            *(f"{used.largest_mib:,.0f} MiB", f"{used.together_mib:,.0f} MiB", size),
        ]
        print(f"| {' | '.join(cells)} |")
    packages = ", ".join(f"{name} {found}" for name in ("dask", "ray") if (found := installed(name)))
    load = ", ".join(f"{value:.1f}" for value in os.getloadavg())
    print()
    for row in rows:
        if row.folder_bytes is not None and row.database_bytes is not None:
            each = [row.folder_bytes / n_cases, row.database_bytes / n_cases]
            print(
                f"{row.way}: run folder {each[0]:,.0f} bytes a case, judgekit.db {each[1]:,.0f}; of {AT_LAST:,} cases:"
            )
            hours = AT_LAST * row.used.cpu_seconds / n_cases / 3600
            sizes = [AT_LAST * n_bytes / 1e12 for n_bytes in (input_bytes / n_cases, *each)]
            print("  {:,.0f} CPU hours, input {:.1f} TB, runs {:.1f} TB, judgekit.db {:.1f} TB".format(hours, *sizes))
    print(f"{platform.system()}, {os.cpu_count()} cores, Python {platform.python_version()}, {packages}; load {load}")


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, compare, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["run"])
    parser.add_argument("--cases", type=int, default=2_000)
    parser.add_argument("--passages", type=int, default=5, help="of each answer")
    parser.add_argument("--characters", type=int, default=350, help="of each passage")
    parser.add_argument("--judges", type=int, default=2, choices=[1, 2])
    parser.add_argument("--folder", type=Path, required=True, help="new; data and runs are left there")
    parser.add_argument("--only", action="append", choices=sorted(WAYS), help="may be repeated")
    parser.add_argument("--json", type=Path, help="also write the rows here")
    options = parser.parse_args(arguments)
    folder = options.folder.resolve()
    if folder.exists():
        parser.error(f"--folder: {folder} is there already")
    ways = [way for way in WAYS if way in (options.only or WAYS)]
    for way in ("dask", "ray"):
        if way in ways and installed(way) is None:
            ways.remove(way)
            print(f"{way} is left out: it is not installed", file=sys.stderr)
    suite = Suite(options.cases, options.passages, options.characters, options.judges)
    input_bytes = write_suite(folder, suite)
    rows: list[Row] = []
    for way in ways:
        for row in WAYS[way](folder):
            rows.append(row)
            print(f"{row.way}: {row.used}", file=sys.stderr, flush=True)
    print_table(rows, options.cases, input_bytes)
    print(f"input {input_bytes / 2**20:,.1f} MiB, {input_bytes / options.cases:,.0f} bytes a case")
    if options.json is not None:
        document = {"n_cases": options.cases, "input_bytes": input_bytes, "rows": [asdict(row) for row in rows]}
        options.json.write_text(json.dumps(document, indent=1) + "\n")
    compared = [way for way in ways if way != "hundredth"]
    wrong = differences(folder, compared)
    for line in wrong[:20]:
        print(line, file=sys.stderr)
    if not wrong and len(compared) > 1:
        print(f"the figures of {', '.join(compared)} are equal")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
