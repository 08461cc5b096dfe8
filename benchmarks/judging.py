"""What judging costs: CPU for each judged item, beside a naive loop and, where they are installed, peers.

A server on this machine answers at once, in a process of its own, so that what is measured is the client: render,
cache look-up, call, parse, record. Start-up and the calls that find out what a model takes are excluded. Every figure
of one call of this script comes from the same minutes on the same machine; compare the ratios, not the times.

    python -m benchmarks.judging engine  [--items 5000] [--in-flight 64]
    python -m benchmarks.judging naive   [--items 2000] [--in-flight 64]
    python -m benchmarks.judging cached  [--items 50000]
    python -m benchmarks.judging memory  [--items 1000000]
    python -m benchmarks.judging wall    [--items 2560] [--in-flight 256] [--latency-ms 1000]
    python -m benchmarks.judging compare [--repeats 3]       engine beside naive, in turn
    python -m benchmarks.judging judges  [--repeats 3]       a rubric of one's own and criteria beside groundedness
    python -m benchmarks.judging shards  [--items 6000]      one process, then two at once, at one server
"""

import argparse
import asyncio
import contextlib
import json
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from judgekit.core.config import Budget, ModelConfig
from judgekit.core.judge_config import JudgeConfig
from judgekit.core.judgments import JudgeInput
from tests.doubles.server_process import ServerProcess

WORDS = [
    "kiln",
    "fired",
    "glaze",
    "copper",
    "oxide",
    "cone",
    "seven",
    "shelf",
    "bisque",
    "clay",
    "slip",
    "rutile",
    "ash",
    "celadon",
    "temperature",
    "degrees",
]
"""What the made-up passages are about."""


PASSAGES = [" ".join(WORDS[(start + step) % len(WORDS)] for step in range(55)) for start in range(len(WORDS))]


CRITERIA = {f"rule_{number}": f"The answer keeps rule {number} of the workshop." for number in range(5)}

JUDGES: dict[str, dict[str, Any]] = {
    "groundedness": {"name": "groundedness", "model": "m"},
    "tone": {
        "name": "tone",
        "ask": "Is the answer polite and professional?",
        "scale": [1, 5],
        "levels": {1: "rude", 3: "neutral", 5: "warm and professional"},
        "sees": ["answer", "passages", "citations"],
        "model": "m",
    },
    "rules": {
        "name": "rules",
        "ask": "Does the answer keep the rules of the workshop?",
        "criteria": CRITERIA,
        "sees": ["answer", "passages", "citations"],
        "model": "m",
    },
}
"""The judges that are measured: the shipped one, a scale of one's own, and five criteria in one call."""


def judge_input(number: int, judge: str = "groundedness") -> JudgeInput:
    """A made-up input of about 2,000 characters: an answer and five passages."""
    passages = [
        {
            "number": position + 1,
            "source": f"work/kiln.md > Firing {position}",
            "text": f"{PASSAGES[(number + position) % len(PASSAGES)]} {number}.",
        }
        for position in range(5)
    ]
    answer = f"Batch {number} was fired at {1200 + number % 90} degrees with a copper glaze. It came out red."
    variables: dict[str, Any] = {"answer": answer, "passages": passages, "citations": ["passage 1", "passage 2"]}
    if "criteria" in JUDGES[judge]:
        variables["criteria"] = [{"id": name, "text": text, "weight": 1.0} for name, text in CRITERIA.items()]
    return JudgeInput.model_construct(case_id=f"case-{number}", judge=judge, variables=variables)


def inputs(n_items: int, judge: str = "groundedness") -> Iterator[JudgeInput]:
    for number in range(n_items):
        yield judge_input(number, judge)


def cpu_seconds() -> float:
    """CPU of this process, all threads."""
    return time.process_time()


class Engine:
    """One pass of the real engine with real storage, put together as a run does it."""

    def __init__(self, folder: Path, base_url: str, in_flight: int, judge: str = "groundedness") -> None:
        from judgekit.engine.budget import Spending
        from judgekit.engine.judging import JudgingPass, StopSignal
        from judgekit.engine.limiter import AdaptiveLimiter
        from judgekit.engine.model_runtime import ModelRuntime
        from judgekit.engine.pinning import PinGuard
        from judgekit.engine.requests import JudgePlan
        from judgekit.providers.openai_compatible import OpenAICompatible
        from judgekit.providers.retrying import Retrying
        from judgekit.storage.recorder import Recorder
        from judgekit.storage.reply_cache import DiskReplyCache
        from judgekit.workflows.judge_components import build_judge, load_wording

        pin = {"build_hash": "sha256:bench", "on_mismatch": "flag"}
        config = ModelConfig.model_validate(
            {"model": "judge-2025-01-01", "base_url": base_url, "max_concurrency": in_flight, "pin": pin}
        )
        limiter = AdaptiveLimiter(in_flight)
        self.cache = DiskReplyCache(folder / "cache")
        self.runtime = ModelRuntime(
            model_id="m",
            config=config,
            provider=Retrying(OpenAICompatible(config, api_key="none"), limiter.observe),
            limiter=limiter,
            guard=PinGuard("m", config),
            cache=self.cache,
        )
        wanted = JudgeConfig.model_validate(JUDGES[judge])
        prompt = load_wording(wanted, "v1", (), "bench")
        self.name = judge
        plan = JudgePlan(build_judge(wanted, prompt, "bench", ()), prompt, self.runtime)
        self.sink = Recorder(folder / "judgments.jsonl", self.cache)
        self.judging = JudgingPass(plan, self.sink, self.cache, Spending(Budget()), StopSignal())

    async def run(self, n_items: int, *, warm: bool) -> tuple[float, float]:
        """CPU and wall seconds of judging, without start-up."""
        if warm:
            await self.runtime.identified()
            await self.runtime.ready()
        wall, cpu = time.perf_counter(), cpu_seconds()
        await self.judging.run(inputs(n_items, self.name), lambda: None)
        self.sink.close()
        spent = cpu_seconds() - cpu, time.perf_counter() - wall
        await self.runtime.provider.close()
        self.cache.close()
        tally = self.judging.tally
        assert tally.n_done == n_items, tally
        assert tally.n_failed == 0, tally.kinds
        return spent


async def naive_loop(n_items: int, in_flight: int, base_url: str, folder: Path) -> tuple[float, float]:
    """What most people write first: the client's `create`, tenacity, pydantic, one cache write an item."""
    from diskcache import Cache
    from jinja2 import Template
    from openai import AsyncOpenAI
    from pydantic import BaseModel
    from tenacity import retry, stop_after_attempt, wait_exponential

    from judgekit.storage.prompt_files import load_prompt

    class VerdictModel(BaseModel):
        reasoning: str
        supported_claims: list[str]
        unsupported_claims: list[str]
        score: int

    prompt = load_prompt("groundedness", "v1")
    user_template = Template(prompt.user.replace("| data", "| string | replace").replace('replace("', 'replace("", "'))
    client: Any = AsyncOpenAI(api_key="none", base_url=base_url, max_retries=0)
    cache = Cache(str(folder / "naive-cache"))
    gate = asyncio.Semaphore(in_flight)
    schema = {"type": "json_schema", "json_schema": {"name": "verdict", "schema": prompt.reply_schema}}
    lines = (folder / "naive.jsonl").open("w")

    @retry(stop=stop_after_attempt(5), wait=wait_exponential())
    async def ask(messages: list[Any]) -> Any:
        return await client.chat.completions.create(
            model="judge-2025-01-01",
            messages=messages,
            temperature=0,
            seed=0,
            response_format=schema,
        )

    async def one(item: JudgeInput) -> None:
        async with gate:
            user = user_template.render(**item.variables, reply_schema=json.dumps(prompt.reply_schema))
            messages = [{"role": "system", "content": prompt.system}, {"role": "user", "content": user}]
            key = json.dumps(messages)
            if cache.get(key) is None:
                reply = await ask(messages)
                parsed = VerdictModel.model_validate_json(reply.choices[0].message.content)
                cache.set(key, reply.model_dump_json())
                lines.write(json.dumps({"case_id": item.case_id, "verdict": parsed.model_dump()}) + "\n")

    # The first call opens the client; it is start-up for both.
    await one(judge_input(-1))
    wall, cpu = time.perf_counter(), cpu_seconds()
    await asyncio.gather(*(one(item) for item in inputs(n_items)))
    lines.close()
    spent = cpu_seconds() - cpu, time.perf_counter() - wall
    await client.close()
    cache.close()
    return spent


def fill_cache(engine: Engine, n_items: int) -> None:
    """Store a good reply for every input without asking anyone."""
    from judgekit.core.judgments import ModelResponse
    from judgekit.core.protocols import Capabilities
    from judgekit.engine.judgment_draft import encode_reply
    from judgekit.engine.requests import RequestMaker

    body = {"reasoning": "as it says", "supported_claims": ["It came out red."], "unsupported_claims": [], "score": 5}
    given = "judge-2025-01-01", "2025-01-01T00:00:00.000+00:00"
    reply = encode_reply(
        ModelResponse(text=json.dumps(body), finish_reason="stop", served_model=given[0], replied_at=given[1])
    )
    engine.runtime.capabilities = Capabilities(max_tokens_name="max_tokens")
    requests = RequestMaker(engine.judging.plan, engine.runtime.capabilities)
    batch = []
    for item in inputs(n_items):
        batch.append((requests.key_of(item), reply))
        if len(batch) == 2000:
            engine.cache.put_many(batch)
            batch = []
    engine.cache.put_many(batch)


def measure(what: str, arguments: argparse.Namespace) -> dict[str, Any]:
    """One measurement in this process; the server, where there is one, has its own."""
    latency = arguments.latency_ms if what == "wall" else 0
    needs_server = what in ("engine", "naive", "wall")
    own_server = needs_server and arguments.base_url is None
    server = ServerProcess("--latency-ms", str(latency)) if own_server else contextlib.nullcontext()
    with tempfile.TemporaryDirectory() as name, server as running:
        folder = Path(name)
        base_url = running.base_url if running is not None else arguments.base_url or "http://127.0.0.1:9/v1"
        if what == "naive":
            cpu, wall = asyncio.run(naive_loop(arguments.items, arguments.in_flight, base_url, folder))
        else:
            engine = Engine(folder, base_url, arguments.in_flight, arguments.judge)
            if not needs_server:
                fill_cache(engine, arguments.items)
            cpu, wall = asyncio.run(engine.run(arguments.items, warm=needs_server))
    return {
        "what": what,
        "items": arguments.items,
        "cpu_ms_per_item": cpu * 1000 / arguments.items,
        "items_per_second": arguments.items / wall,
        "wall_seconds": wall,
        "peak_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        "openai_imported": "openai" in sys.modules,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["engine", "naive", "cached", "memory", "wall", "compare", "judges", "shards"])
    parser.add_argument("--items", type=int)
    parser.add_argument("--in-flight", type=int)
    parser.add_argument("--latency-ms", type=int, default=1000)
    parser.add_argument("--base-url", help="a server that runs already")
    parser.add_argument("--judge", choices=list(JUDGES), default="groundedness")
    parser.add_argument("--repeats", type=int, default=3)
    arguments = parser.parse_args()
    defaults = {"engine": 5000, "naive": 2000, "cached": 50_000, "memory": 1_000_000, "wall": 2560}
    if arguments.what == "compare":
        compare(arguments.repeats)
        return
    if arguments.what == "judges":
        compare_judges(arguments.repeats)
        return
    if arguments.what == "shards":
        shards(arguments.items or 6000)
        return
    arguments.items = arguments.items or defaults[arguments.what]
    arguments.in_flight = arguments.in_flight or (256 if arguments.what == "wall" else 64)
    print(json.dumps(measure(arguments.what, arguments)))


def compare(n_repeats: int) -> None:
    """Engine and naive loop in turn, each in a fresh process; medians and the ratio of each pair."""
    ratios, rows = [], []
    for _ in range(n_repeats):
        pair = {}
        for what in ("naive", "engine"):
            command = [sys.executable, "-m", "benchmarks.judging", what]
            pair[what] = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
        rows.append(pair)
        ratios.append(pair["engine"]["cpu_ms_per_item"] / pair["naive"]["cpu_ms_per_item"])
    for what in ("naive", "engine"):
        values = [pair[what]["cpu_ms_per_item"] for pair in rows]
        print(f"{what:8} {statistics.median(values):6.2f} ms CPU an item  ({min(values):.2f} to {max(values):.2f})")
    print(f"ratio    {statistics.median(ratios):6.3f}  ({min(ratios):.3f} to {max(ratios):.3f})")


def compare_judges(n_repeats: int) -> None:
    """Every judge in turn, each in a fresh process; medians, and the ratio to groundedness in the same round."""
    rows = []
    for _ in range(n_repeats):
        found = {}
        for judge in JUDGES:
            command = [sys.executable, "-m", "benchmarks.judging", "engine", "--judge", judge]
            output = subprocess.run(command, capture_output=True, text=True, check=True).stdout
            found[judge] = json.loads(output)["cpu_ms_per_item"]
        rows.append(found)
    for judge in JUDGES:
        ratios = [row[judge] / row["groundedness"] for row in rows]
        times = [row[judge] for row in rows]
        print(
            f"{judge:12} {statistics.median(times):6.2f} ms CPU an item, "
            f"{statistics.median(ratios):.2f} of groundedness ({min(ratios):.2f} to {max(ratios):.2f})"
        )


def shards(n_items: int) -> None:
    """Calls a second by one process and by two that share the items."""
    with ServerProcess() as server:
        for n_processes in (1, 2):
            command = [sys.executable, "-m", "benchmarks.judging", "engine", "--base-url", server.base_url]
            command += ["--items", str(n_items // n_processes)]
            running = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(n_processes)]
            results = [json.loads(process.communicate()[0]) for process in running]
            rate = sum(result["items_per_second"] for result in results)
            cpu = statistics.mean(result["cpu_ms_per_item"] for result in results)
            print(f"{n_processes} process(es): {rate:7.0f} calls a second, {cpu:.2f} ms CPU a call")


if __name__ == "__main__":
    main()
