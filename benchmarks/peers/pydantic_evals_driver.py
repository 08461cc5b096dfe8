"""pydantic-evals: `Dataset.evaluate` with an `LLMJudge`; it keeps no cache."""

import asyncio
from collections.abc import Sequence
from typing import Any

from pydantic_ai.models.openai import OpenAIChatModel  # type: ignore[import-not-found]
from pydantic_ai.providers.openai import OpenAIProvider  # type: ignore[import-not-found]
from pydantic_evals import Case, Dataset  # type: ignore[import-not-found]
from pydantic_evals.evaluators import LLMJudge  # type: ignore[import-not-found]

from benchmarks.peers.driving import MODEL, QUESTION, STEPS, Item, Job, Work, drive

RUBRIC = "\n".join([QUESTION, *STEPS])


async def given_answer(inputs: dict[str, Any]) -> Any:
    """A task that asks nobody: the answer comes with the case."""
    return inputs["answer"]


def evaluation(job: Job) -> Work:
    provider = OpenAIProvider(base_url=job.base_url, api_key="none")
    settings = {"temperature": 0.0, "seed": 0}
    model = OpenAIChatModel(MODEL, provider=provider)
    judge = LLMJudge(rubric=RUBRIC, model=model, include_input=True, model_settings=settings)
    runner = asyncio.Runner()

    def work(items: Sequence[Item]) -> int:
        cases = [
            Case(name=item.name, inputs={"answer": item.answer, "passages": list(item.passages)}) for item in items
        ]
        dataset = Dataset(name="groundedness", cases=cases, evaluators=[judge])
        report = runner.run(dataset.evaluate(given_answer, max_concurrency=job.in_flight, progress=False))
        return sum(len(case.assertions) == 1 and not case.evaluator_failures for case in report.cases)

    return work


drive({"evaluate": evaluation}, ["pydantic-evals", "pydantic-ai-slim", "openai"])
