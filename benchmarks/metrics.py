"""Speed of the deterministic metrics beside other tools: from files and from Python objects to figures.

Retrieval: 200,000 queries of 100 hits from a seed, as a TREC run with judgements, as JSONL with hits of two ids
(`jsonl`) or bare ids (`jsonl-ids`), as dicts of scores and as lists of ids with sets of what is relevant; eleven
figures (hit@1/3/5/10, recall@1/3/5/10, MRR@10, P@10, nDCG@10). Every tool runs in a process and an environment of its
own and must agree on every figure before its time counts: pytrec_eval and ir-measures to 1e-9, ranx, which cuts MRR and
nDCG as trec_eval does, to 1e-6. CPU is user and system time of the process from start to end, or of the call where the
objects are in memory already; memory is the peak of the process. Compare the ratios within one table and not the times.

    python -m benchmarks.metrics install --folder /tmp/peers
    python -m benchmarks.metrics run     --folder /tmp/peers [--queries 200000] [--hits 100] [--repeats 1]
    python -m benchmarks.metrics run     --folder /tmp/peers --queries 500 --hits 20 --repeats 5

The other families have benchmarks of their own, which `all` runs after retrieval: `benchmarks.extraction` (beside
stickler-eval) and `benchmarks.spans`.
"""

import argparse
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
DRIVERS = Path(__file__).resolve().parent / "peers"
FIGURES = (
    *[f"hit@{k}" for k in (1, 3, 5, 10)],
    *[f"recall@{k}" for k in (1, 3, 5, 10)],
    "mrr@10",
    "precision@10",
    "ndcg@10",
)
TIMEOUT_SECONDS = 3600


@dataclass(frozen=True)
class Tool:
    """A tool, and the forms of input that it is measured with."""

    name: str
    driver: str
    requirements: Sequence[str]
    """The versions measured; none: this checkout."""
    forms: Sequence[str]
    tolerance: float = 1e-9


TOOLS = [
    Tool("judgekit", "judgekit_rankings.py", [], ("lists", "dicts", "trec", "jsonl", "jsonl-ids")),
    Tool("pytrec_eval", "pytrec_eval_rankings.py", ["pytrec-eval-terrier==0.5.11"], ("dicts", "trec")),
    Tool("ranx", "ranx_rankings.py", ["ranx==0.3.21"], ("dicts", "trec"), tolerance=1e-6),
    Tool("ir_measures", "ir_measures_rankings.py", ["ir-measures==0.4.3"], ("dicts", "trec")),
]

STICKLER = Tool("stickler", "", ["stickler-eval==1.0.0"], ())
"""For `benchmarks.extraction`, which runs it."""


@dataclass(frozen=True)
class Measured:
    """One tool with one form of input."""

    tool: Tool
    form: str
    cpu_seconds: list[float]
    peak_mib: float
    figures: dict[str, float]


def interpreter(folder: Path, tool: Tool) -> Path:
    """Where a tool's interpreter is, or would be."""
    if not tool.requirements:
        return Path(sys.executable)
    return folder / tool.name / ("Scripts/python.exe" if os.name == "nt" else "bin/python")


def install(folder: Path, tools: Sequence[Tool]) -> None:
    """Makes the environments that are missing."""
    folder.mkdir(parents=True, exist_ok=True)
    for tool in tools:
        if tool.requirements and not interpreter(folder, tool).exists():
            subprocess.run([sys.executable, "-m", "venv", str(folder / tool.name)], check=True)
        if tool.requirements:
            command = [str(interpreter(folder, tool)), "-m", "pip", "install", "--quiet", *tool.requirements]
            done = subprocess.run(command, check=False, capture_output=True, text=True)
            print(f"{tool.name}: {'ready' if not done.returncode else done.stderr.strip().splitlines()[-1]}")


def rankings(n_queries: int, n_hits: int, seed: int = 1) -> Iterator[tuple[str, list[tuple[str, str]], list[str]]]:
    """(query, [(document, score)] by rank, relevant documents), some of which were not retrieved."""
    rng = random.Random(seed)
    for number in range(n_queries):
        documents = [f"d{one}" for one in rng.sample(range(10**6, 9 * 10**6), n_hits)]
        score, hits = 20.0, []
        for document in documents:
            score -= rng.random() * 0.1 + 1e-4
            hits.append((document, f"{score:.6f}"))
        relevant = [
            documents[min(n_hits - 1, int(rng.expovariate(1 / 8)))]
            if rng.random() < 0.8
            else f"d{rng.randrange(10**6, 9 * 10**6)}"
            for _ in range(rng.randint(1, 4))
        ]
        yield f"q{number}", hits, list(dict.fromkeys(relevant))


def write_data(folder: Path, n_queries: int, n_hits: int) -> None:
    """The same rankings in every form."""
    with (
        (folder / "run.trec").open("w", encoding="utf-8") as run,
        (folder / "qrels.trec").open("w", encoding="utf-8") as qrels,
        (folder / "outputs.jsonl").open("w", encoding="utf-8") as outputs,
        (folder / "ids.jsonl").open("w", encoding="utf-8") as listed,
        (folder / "cases.jsonl").open("w", encoding="utf-8") as cases,
    ):
        for query, hits, relevant in rankings(n_queries, n_hits):
            run.writelines(f"{query} Q0 {one} {rank} {score} bm25\n" for rank, (one, score) in enumerate(hits, start=1))
            qrels.writelines(f"{query} 0 {one} 1\n" for one in relevant)
            ids = [{"doc_id": one, "rel_path": one} for one, _ in hits]
            outputs.write(json.dumps({"case_id": query, "retrieved": ids}) + "\n")
            listed.write(json.dumps({"case_id": query, "retrieved_ids": [one for one, _ in hits]}) + "\n")
            supports = [{"rel_path": one} for one in relevant]
            cases.write(json.dumps({"id": query, "expected_doc_ids": relevant, "gold_supports": supports}) + "\n")


def run_driver(folder: Path, tool: Tool, form: str, data: Path) -> tuple[float, float, dict[str, float]]:
    """CPU seconds, peak MiB and figures of one process.

    Raises:
        RuntimeError: it failed.
    """
    command = [str(interpreter(folder, tool)), str(DRIVERS / tool.driver), form, str(data)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT) if not tool.requirements else ""}
    # Installed packages come compiled; so does this checkout after the first process.
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    environment["PYTHONPYCACHEPREFIX"] = str(data.parent / "bytecode")
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
        process = subprocess.Popen(command, stdout=out, stderr=err, env=environment)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        out.seek(0)
        err.seek(0)
        if process.returncode:
            raise RuntimeError(f"{tool.name} {form}: {(err.read().strip().splitlines() or ['failed'])[-1]}")
        found = json.loads(out.read().splitlines()[-1])
    # Objects in memory are nobody's work: the driver then reports the time of the call alone.
    cpu = found["cpu_seconds"] if form in ("lists", "dicts") else usage.ru_utime + usage.ru_stime
    return cpu, usage.ru_maxrss / 1024, found["figures"]


def measure(
    folder: Path, tools: Sequence[Tool], data: Path, repeats: int, *, is_rehearsal: bool = False
) -> list[Measured]:
    """Every tool with every form, in turns; one that is not installed or fails is named and left out."""
    found: dict[tuple[str, str], Measured] = {}
    for _ in range(repeats):
        for tool in tools:
            for form in tool.forms:
                if not interpreter(folder, tool).exists():
                    print(f"{tool.name}: skipped, not installed in {folder}")
                    break
                try:
                    cpu, peak, figures = run_driver(folder, tool, form, data)
                except RuntimeError as error:
                    print(f"skipped: {error}")
                    continue
                before = found.get((tool.name, form))
                seconds = [*(before.cpu_seconds if before else []), cpu]
                if not is_rehearsal:
                    print(f"  {tool.name} {form}: {cpu:.2f} s, {peak:.0f} MiB", flush=True)
                found[tool.name, form] = Measured(tool, form, seconds, peak, figures)
    return list(found.values())


def disagreements(measured: Sequence[Measured]) -> list[str]:
    """Figures that differ from those of pytrec_eval on TREC files, or from the first tool where it is missing."""
    if not measured:
        return []
    reference = next((one for one in measured if one.tool.name == "pytrec_eval" and one.form == "trec"), measured[0])
    return [
        f"{one.tool.name} ({one.form}): {name} is {one.figures[name]!r}, {reference.tool.name} has {value!r}"
        for one in measured
        for name, value in reference.figures.items()
        if abs(one.figures[name] - value) > max(one.tool.tolerance, reference.tool.tolerance)
    ]


def table(measured: Sequence[Measured]) -> str:
    """CPU, peak memory and how many times as long as judgekit's quickest form of the same kind."""
    lines = ["| tool | from | CPU s, median (range) | peak MiB | times judgekit |", "|---|---|---|---|---|"]
    own = {one.form: statistics.median(one.cpu_seconds) for one in measured if one.tool.name == "judgekit"}
    for one in sorted(measured, key=lambda one: (one.form, one.tool.name != "judgekit")):
        middle = statistics.median(one.cpu_seconds)
        ratios = [f"{middle / own[form]:.1f} ({form})" for form in _comparable(one.form) if form in own]
        spread = f" ({min(one.cpu_seconds):.2f} to {max(one.cpu_seconds):.2f})" if len(one.cpu_seconds) > 1 else ""
        ratio = ", ".join(ratios) if one.tool.name != "judgekit" else ""
        lines.append(f"| {one.tool.name} | {one.form} | {middle:.2f}{spread} | {one.peak_mib:.0f} | {ratio} |")
    return "\n".join(lines)


def _comparable(form: str) -> tuple[str, ...]:
    return ("trec", "jsonl", "jsonl-ids") if form == "trec" else ("dicts", "lists")


def retrieval(options: argparse.Namespace, tools: Sequence[Tool]) -> bool:
    """Measures retrieval; False where tools disagree."""
    with tempfile.TemporaryDirectory(prefix="judgekit-metrics-", dir=options.data_dir) as name:
        data, tiny = Path(name) / "data", Path(name) / "tiny"
        for path, n_queries in ((data, options.queries), (tiny, 20)):
            path.mkdir()
            write_data(path, n_queries, options.hits)
        os.sync()  # else the first tool shares the machine with what writes the files to disk
        print(f"{options.queries:,} queries of {options.hits} hits", flush=True)
        measure(
            options.folder, tools, tiny, 1, is_rehearsal=True
        )  # so that everything is compiled and read from disk once
        measured = measure(options.folder, tools, data, options.repeats)
    wrong = disagreements(measured)
    for line in wrong:
        print(f"DISAGREES: {line}")
    if not wrong:
        print(f"all agree on {len(FIGURES)} figures")
    print(table(measured))
    return not wrong


def others(folder: Path) -> bool:
    """Extraction and spans; False where one of them fails."""
    commands = [["benchmarks.extraction", "--stickler", str(interpreter(folder, STICKLER))], ["benchmarks.spans"]]
    codes = []
    for command in commands:
        print(f"\n{command[0]}", flush=True)
        codes.append(subprocess.run([sys.executable, "-m", *command], cwd=ROOT, check=False).returncode)
    return not any(codes)


def main() -> None:
    parser = argparse.ArgumentParser(description="Deterministic metrics, judgekit beside other tools.")
    parser.add_argument("what", choices=["install", "run", "all"], nargs="?", default="all")
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()) / "peers", help="environments")
    parser.add_argument("--queries", type=int, default=200_000)
    parser.add_argument("--hits", type=int, default=100)
    parser.add_argument("--repeats", type=int, default=1)
    parser.add_argument("--only", action="append", help="these tools alone")
    parser.add_argument("--data-dir", default=None, help="where the data is written; left out: the temporary folder")
    options = parser.parse_args()
    tools = [tool for tool in TOOLS if options.only is None or tool.name in options.only]
    if options.what == "install":
        install(options.folder, [*tools, STICKLER])
        return
    agreed = retrieval(options, tools)
    if options.what == "all":
        agreed = others(options.folder) and agreed
    if not agreed:
        sys.exit(1)


if __name__ == "__main__":
    main()
