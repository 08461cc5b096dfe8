"""A function asked about so many cases, by one tool; prints the CPU that a case took beside what the function takes.

The same interpreter runs few cases and many, and what the few took is taken off, so that start-up is nobody's cost. The
function answers at once; no tool judges anything here.
"""

import argparse
import asyncio
import json
import tempfile
import time
from collections.abc import Callable
from importlib.metadata import version

N_FEW = 50


async def answer(question: str) -> str:
    await asyncio.sleep(0)
    return f"It is {question}"


def questions(n_cases: int) -> list[str]:
    return [f"what is number {number}?" for number in range(n_cases)]


def judgekit_cases() -> Callable[[int], int]:
    import judgekit

    async def ask(case: judgekit.Case) -> str:
        return await answer(case.question)

    def work(n_cases: int) -> int:
        cases = [{"id": f"q{number}", "question": text} for number, text in enumerate(questions(n_cases))]
        with tempfile.TemporaryDirectory() as folder:
            found = judgekit.evaluate(cases, system=ask, metrics=["operations"], results_dir=folder, report=False)
            return sum(record.output is not None and bool(record.output.answer) for record in found.cases()[:10])

    return work


def pydantic_evals_cases() -> Callable[[int], int]:
    from pydantic_evals import Case, Dataset  # type: ignore[import-not-found]

    def work(n_cases: int) -> int:
        cases = [Case(name=f"q{number}", inputs=text) for number, text in enumerate(questions(n_cases))]
        dataset = Dataset(name="live", cases=cases)
        report = asyncio.run(dataset.evaluate(answer, max_concurrency=4, progress=False))
        return sum(bool(case.output) for case in report.cases[:10])

    return work


def inspect_cases() -> Callable[[int], int]:
    from inspect_ai import Task, eval  # type: ignore[import-not-found]
    from inspect_ai.dataset import MemoryDataset, Sample  # type: ignore[import-not-found]
    from inspect_ai.model import ModelOutput  # type: ignore[import-not-found]
    from inspect_ai.solver import solver  # type: ignore[import-not-found]

    def asked():  # type: ignore[no-untyped-def]
        async def solve(state, generate):  # type: ignore[no-untyped-def]  # noqa: ARG001 - Inspect's signature
            state.output = ModelOutput.from_content("given", await answer(state.input_text))
            return state

        return solve

    solving = solver(name="asked")(asked)

    def work(n_cases: int) -> int:
        samples = [Sample(id=f"q{number}", input=text) for number, text in enumerate(questions(n_cases))]
        with tempfile.TemporaryDirectory() as folder:
            settings = {"model": None, "display": "none", "log_dir": folder, "max_samples": 4, "log_realtime": False}
            [log] = eval(Task(dataset=MemoryDataset(samples), solver=solving()), **settings)
            return sum(bool(sample.output.completion) for sample in log.samples[:10])

    return work


TOOLS = {
    "judgekit": (judgekit_cases, None),
    "pydantic_evals": (pydantic_evals_cases, "pydantic-evals"),
    "inspect": (inspect_cases, "inspect-ai"),
}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("tool", choices=TOOLS)
    parser.add_argument("--cases", type=int, default=1000)
    given = parser.parse_args()
    make, package = TOOLS[given.tool]
    work = make()
    work(N_FEW)
    seconds = []
    for n_cases in (N_FEW, N_FEW + given.cases):
        started = time.process_time()
        if work(n_cases) != 10:
            raise RuntimeError("a case has no answer")
        seconds.append(time.process_time() - started)
    used = 1000 * (seconds[1] - seconds[0]) / given.cases
    print(json.dumps({"tool": given.tool, "version": version(package) if package else "", "cpu_ms_per_case": used}))


if __name__ == "__main__":
    main()
