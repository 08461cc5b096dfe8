"""What judging costs other tools: CPU for each judged item, in the same minutes as judgekit's own.

Each peer has an environment of its own with pinned versions, and a driver in `benchmarks/peers` that its interpreter
runs. All ask one server on this machine, which answers at once from a process of its own. A warm-up and what a peer
does once a call are taken off, so that start-up is nobody's cost; every item is one call, which the server's count
confirms. Compare the ratios, not the times.

    python -m benchmarks.peers_judging install --folder /tmp/peers [--only deepeval]
    python -m benchmarks.peers_judging run     --folder /tmp/peers [--items 300] [--repeats 3] [--json FILE]
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from benchmarks.judging import judge_input

ROOT = Path(__file__).resolve().parent.parent
N_WARM = 10
DRIVER_SECONDS = 600


@dataclass(frozen=True)
class Case:
    """One way in which a peer is driven."""

    name: str
    does: str
    cached: bool = False
    """Answered from the cache that the case before it filled, in a new process."""


@dataclass(frozen=True)
class Peer:
    """A tool beside judgekit."""

    name: str
    requirements: Sequence[str]
    """The versions measured. A peer that leaves a dependency open gets it pinned where today's breaks it."""
    cases: Sequence[Case]
    environment: Mapping[str, str] = field(default_factory=dict)
    """Variables that keep it at home."""


PEERS = [
    Peer(
        "deepeval",
        ["deepeval==4.3.1", "openai==3.57.0"],
        [
            Case("measure", "GEval.a_measure alone, one HTTP client for all"),
            Case("evaluate-lean", "evaluate() with GEval, its cache off, one HTTP client for all"),
            Case("evaluate-uncached", "evaluate() with GEval, its cache off"),
            Case("evaluate", "evaluate() with GEval, as it comes (cache written)"),
            Case("cached", "evaluate(), every item in its cache", cached=True),
        ],
        {
            "DEEPEVAL_TELEMETRY_OPT_OUT": "YES",
            "DEEPEVAL_DISABLE_DOTENV": "1",
            "DEEPEVAL_NO_INSPECT_PROMPT": "1",
        },
    ),
    Peer(
        "inspect",
        ["inspect-ai==0.3.285", "openai==3.57.0"],
        [
            Case("eval-lean", "eval() with model_graded_qa, its live log off"),
            Case("eval", "eval() with model_graded_qa, as it comes"),
            Case("eval-cache", "eval() with model_graded_qa, its cache on and written"),
            Case("cached", "eval(), every reply in its cache", cached=True),
        ],
        {"INSPECT_DISPLAY": "none"},
    ),
    Peer(
        "pydantic_evals",
        ["pydantic-evals==2.62.0", "pydantic-ai-slim[openai]==2.62.0", "openai==3.57.0"],
        [Case("evaluate", "Dataset.evaluate with LLMJudge; it has no cache")],
    ),
    Peer(
        "ragas",
        # Ragas 0.4.3 imports a module that langchain-community 0.4 has dropped, and pip goes back to an instructor of
        # 2024 if left alone.
        ["ragas==0.4.3", "instructor==1.17.0", "langchain-community==0.3.31", "openai==3.3.0"],
        [
            Case("ascore", "DomainSpecificRubrics.ascore, its cache off"),
            Case("ascore-cache", "DomainSpecificRubrics.ascore, its cache on and written"),
            Case("cached", "DomainSpecificRubrics.ascore, every reply in its cache", cached=True),
        ],
        {"RAGAS_DO_NOT_TRACK": "true", "LANGCHAIN_TRACING_V2": "false"},
    ),
]


class PeerServer:
    """`python -m benchmarks.peers.server`, from start to stop of a `with` block."""

    def __enter__(self) -> Self:
        command = [sys.executable, "-m", "benchmarks.peers.server"]
        pipe = subprocess.PIPE
        self._process = subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True, cwd=ROOT)
        self.base_url = self._line()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.communicate(timeout=10)

    def n_requests(self) -> int:
        """Chat requests so far.

        Raises:
            RuntimeError: One was not answered well; what was measured then is not judging.
        """
        assert self._process.stdin is not None
        self._process.stdin.write("totals\n")
        self._process.stdin.flush()
        totals = json.loads(self._line())
        if totals["n_ok"] != totals["n_requests"]:
            raise RuntimeError(f"the server answered {totals['statuses']}")
        return int(totals["n_requests"])

    def _line(self) -> str:
        assert self._process.stdout is not None
        line = self._process.stdout.readline().strip()
        if not line:
            raise RuntimeError("the server of the peers has ended")
        return line


def interpreter(folder: Path, peer: Peer) -> Path:
    """Where a peer's interpreter is, or would be."""
    return folder / peer.name / ("Scripts/python.exe" if os.name == "nt" else "bin/python")


def install(folder: Path, peers: Sequence[Peer]) -> None:
    """Makes the environments that are missing; prints what became of each."""
    folder.mkdir(parents=True, exist_ok=True)
    for peer in peers:
        started = time.perf_counter()
        subprocess.run([sys.executable, "-m", "venv", str(folder / peer.name)], check=True)
        pip = [str(interpreter(folder, peer)), "-m", "pip", "install", "--quiet", *peer.requirements]
        done = subprocess.run(pip, capture_output=True, text=True, check=False)
        last_lines = "\n".join(done.stderr.strip().splitlines()[-5:])
        outcome = "installed" if done.returncode == 0 else f"failed:\n{last_lines}"
        print(f"{peer.name}: {outcome} ({time.perf_counter() - started:.0f} s)", flush=True)


def environment(peer: Peer, home: Path) -> dict[str, str]:
    """What a driver sees of this machine: a home of its own, no proxies, no keys, nothing that reports home."""
    kept = {name: os.environ[name] for name in ("PATH", "LANG", "LC_ALL", "SYSTEMROOT") if name in os.environ}
    homes = {"HOME": str(home), "XDG_CACHE_HOME": str(home / "cache"), "XDG_DATA_HOME": str(home / "data")}
    quiet = {"DO_NOT_TRACK": "1", "OPENAI_API_KEY": "none", "HF_HUB_OFFLINE": "1", "NO_PROXY": "*"}
    return {**kept, **homes, **quiet, "PYTHONPATH": str(ROOT), **peer.environment}


def write_inputs(path: Path, n_items: int) -> None:
    """The inputs of `benchmarks.judging`, as the drivers read them; the first `N_WARM` are for warming up."""
    with path.open("w", encoding="utf-8") as lines:
        for number in range(-N_WARM, n_items):
            variables = judge_input(number).variables
            passages = [f"{passage['source']}\n{passage['text']}" for passage in variables["passages"]]
            record = {"name": f"case-{number + N_WARM}", "answer": variables["answer"], "passages": passages}
            lines.write(json.dumps(record) + "\n")


@dataclass
class Measurements:
    """Every figure of one call of this script, by peer and case."""

    rows: dict[tuple[str, str], list[dict[str, Any]]] = field(default_factory=dict)
    skipped: dict[str, str] = field(default_factory=dict)

    def add(self, peer: str, case: str, row: dict[str, Any]) -> None:
        self.rows.setdefault((peer, case), []).append(row)
        print(f"  {peer} {case}: {row['cpu_ms_per_item']:.2f} ms CPU an item", file=sys.stderr, flush=True)

    def median(self, peer: str, case: str, name: str) -> float:
        return float(statistics.median(row[name] for row in self.rows[peer, case]))


def run(folder: Path, peers: Sequence[Peer], options: argparse.Namespace) -> Measurements:
    """All measurements: in each round judgekit's own first, then every case of every peer."""
    measurements = Measurements()
    with tempfile.TemporaryDirectory() as scratch, PeerServer() as server:
        inputs = Path(scratch) / "inputs.jsonl"
        write_inputs(inputs, options.items)
        for round_number in range(options.repeats):
            for what, n_items in (("engine", 10), ("naive", 10), ("cached", 100)):
                measurements.add("judgekit", what, judgekit_figures(what, n_items * options.items, options.in_flight))
            for peer in peers:
                home = Path(scratch) / f"{peer.name}-{round_number}"
                if peer.name not in measurements.skipped:
                    reason = run_peer(folder, peer, home, inputs, server, measurements, options.in_flight)
                    if reason:
                        measurements.skipped[peer.name] = reason
    return measurements


def judgekit_figures(what: str, n_items: int, in_flight: int) -> dict[str, Any]:
    """One measurement of `benchmarks.judging`, in a process of its own."""
    command = [sys.executable, "-m", "benchmarks.judging", what, "--items", str(n_items), "--in-flight", str(in_flight)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT)
    figures: dict[str, Any] = json.loads(done.stdout)
    return figures


def run_peer(
    folder: Path,
    peer: Peer,
    home: Path,
    inputs: Path,
    server: PeerServer,
    measurements: Measurements,
    in_flight: int,
) -> str | None:
    """Every case of a peer, in order.

    Returns:
        Why it was given up, or None.
    """
    python = interpreter(folder, peer)
    if not python.exists():
        return f"no environment at {folder / peer.name}; make it with `install`"
    for case in peer.cases:
        # A cached case finds what the case before it left; every other one starts in an empty home.
        home = home if case.cached else home.with_name(f"{home.name}-{case.name}")
        home.mkdir(exist_ok=True)
        n_before = server.n_requests()
        command = [str(python), "-m", f"benchmarks.peers.{peer.name}_driver", "--case", case.name]
        command += ["--base-url", server.base_url, "--inputs", str(inputs), "--warm", str(N_WARM)]
        command += ["--in-flight", str(in_flight)]
        try:
            done = run_driver(command, peer, home)
        except subprocess.TimeoutExpired:
            return f"{case.name} took longer than {DRIVER_SECONDS} s"
        if done.returncode != 0:
            return f"{case.name} failed: {(done.stderr.strip().splitlines() or ['no message'])[-1]}"
        row = json.loads(done.stdout.strip().splitlines()[-1])
        row["calls_per_item"] = (server.n_requests() - n_before) / (row["items"] + N_WARM)
        measurements.add(peer.name, case.name, row)
    return None


def run_driver(command: Sequence[str], peer: Peer, home: Path) -> subprocess.CompletedProcess[str]:
    sealed = environment(peer, home)
    return subprocess.run(
        command, cwd=home, env=sealed, capture_output=True, text=True, timeout=DRIVER_SECONDS, check=False
    )


def print_table(measurements: Measurements, peers: Sequence[Peer]) -> None:
    """Markdown: medians over the rounds, the range of the CPU time, and the median of each round's ratio."""
    print("| tool | version | what it did | CPU ms/item (range) | x judgekit | items/s | calls/item |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    own = {"engine": "the engine, record and cache written", "naive": "a naive loop over the openai client"}
    for what, does in own.items():
        print_row(measurements, "judgekit" if what == "engine" else "naive", "judgekit", what, does, "engine")
    for peer in peers:
        for case in peer.cases:
            if not case.cached and (peer.name, case.name) in measurements.rows:
                print_row(measurements, peer.name, peer.name, case.name, case.does, "engine")
    print_row(measurements, "judgekit", "judgekit", "cached", "the engine, every reply in its cache", "cached")
    for peer in peers:
        for case in peer.cases:
            if case.cached and (peer.name, case.name) in measurements.rows:
                print_row(measurements, peer.name, peer.name, case.name, case.does, "cached")
    for name, reason in measurements.skipped.items():
        print(f"\nskipped {name}: {reason}")


def print_row(measurements: Measurements, tool: str, peer: str, case: str, does: str, beside: str) -> None:
    rows = measurements.rows[peer, case]
    cpu = [row["cpu_ms_per_item"] for row in rows]
    base = [row["cpu_ms_per_item"] for row in measurements.rows["judgekit", beside]]
    # A peer that failed in a later round has fewer rows than judgekit.
    ratio = statistics.median(mine / theirs for mine, theirs in zip(cpu, base, strict=False))
    version = next(iter(rows[0].get("versions", {}).values()), "this checkout")
    calls = measurements.median(peer, case, "calls_per_item") if "calls_per_item" in rows[0] else None
    cells = [
        tool,
        version,
        does,
        f"{statistics.median(cpu):.2f} ({min(cpu):.2f} to {max(cpu):.2f})",
        f"{ratio:.1f}",
        f"{measurements.median(peer, case, 'items_per_second'):,.0f}",
        "" if calls is None else f"{calls:.2f}",
    ]
    print(f"| {' | '.join(cells)} |")
    refused = sorted({address for row in rows for address in row.get("refused", [])})
    if refused:
        print(f"  {tool} {case} wanted to call {', '.join(refused)} and was refused", file=sys.stderr)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["install", "run"])
    parser.add_argument("--folder", type=Path, required=True, help="of the environments")
    parser.add_argument("--only", action="append", choices=[peer.name for peer in PEERS], help="may be repeated")
    parser.add_argument("--items", type=int, default=300, help="of each peer; judgekit gets more, being quicker")
    parser.add_argument("--in-flight", type=int, default=64)
    parser.add_argument("--repeats", type=int, default=3, help="rounds; the table shows medians")
    parser.add_argument("--json", type=Path, help="every single figure, for later")
    options = parser.parse_args()
    folder = options.folder.resolve()
    peers = [peer for peer in PEERS if options.only is None or peer.name in options.only]
    if options.what == "install":
        install(folder, peers)
        return
    if options.items < 10:
        parser.error("--items: fewer than 10 say nothing")
    measurements = run(folder, peers, options)
    print_table(measurements, peers)
    if options.json is not None:
        rows = [{"peer": peer, "case": case, **row} for (peer, case), all_ in measurements.rows.items() for row in all_]
        options.json.write_text(json.dumps({"rows": rows, "skipped": measurements.skipped}, indent=1) + "\n")


if __name__ == "__main__":
    main()
