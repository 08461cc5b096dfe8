"""DeepEval: GEval over answer and passages, by its OpenAI model class.

The steps are given, so that every item is one call, as with judgekit. The model class opens an HTTP client of its own
for each call, which reads the certificates of all authorities each time, unless it is handed one: see `shared_client`.
"""

import asyncio
import itertools
from collections.abc import Sequence
from typing import Any

from deepeval import evaluate  # type: ignore[import-not-found]
from deepeval.evaluate import AsyncConfig, CacheConfig, DisplayConfig  # type: ignore[import-not-found]
from deepeval.metrics import GEval  # type: ignore[import-not-found]
from deepeval.models import OpenAIModel  # type: ignore[import-not-found]
from deepeval.test_case import LLMTestCase, SingleTurnParams  # type: ignore[import-not-found]
from openai import DefaultAsyncHttpxClient

from benchmarks.peers.driving import MODEL, QUESTION, STEPS, Item, Job, Work, drive, side_by_side


def judge_model(job: Job, *, shared_client: bool) -> Any:
    options = {"async_http_client": DefaultAsyncHttpxClient()} if shared_client else {}
    return OpenAIModel(model=MODEL, api_key="none", base_url=job.base_url, temperature=0, **options)


def metric(model: Any) -> Any:
    """GEval as its documentation sets it up."""
    params = [SingleTurnParams.ACTUAL_OUTPUT, SingleTurnParams.RETRIEVAL_CONTEXT]
    return GEval(name="groundedness", evaluation_steps=STEPS, evaluation_params=params, model=model)


def test_case(item: Item) -> Any:
    return LLMTestCase(input=QUESTION, actual_output=item.answer, retrieval_context=list(item.passages))


def measure(job: Job) -> Work:
    """The least that DeepEval can be made to do: `a_measure` alone, over one HTTP client."""
    model = judge_model(job, shared_client=True)

    async def judge(item: Item) -> bool:
        # A metric keeps its last result on itself, so each item needs one of its own.
        own = metric(model)
        await own.a_measure(test_case(item), _show_indicator=False)
        return own.score is not None and bool(own.reason)

    return side_by_side(judge, job.in_flight, asyncio.Runner())


def evaluation(job: Job, cache: Any, *, shared_client: bool = False) -> Work:
    """`evaluate()`, without what it prints."""
    judge = metric(judge_model(job, shared_client=shared_client))
    display = DisplayConfig(show_indicator=False, print_results=False, inspect_after_run=False)
    run = AsyncConfig(max_concurrent=job.in_flight)

    def work(items: Sequence[Item]) -> int:
        cases = [test_case(item) for item in items]
        result = evaluate(cases, [judge], async_config=run, display_config=display, cache_config=cache)
        verdicts = itertools.chain.from_iterable(case.metrics_data for case in result.test_results)
        return sum(verdict.score is not None and verdict.error is None for verdict in verdicts)

    return work


drive(
    {
        "measure": measure,
        "evaluate-lean": lambda job: evaluation(job, CacheConfig(write_cache=False), shared_client=True),
        "evaluate-uncached": lambda job: evaluation(job, CacheConfig(write_cache=False)),
        "evaluate": lambda job: evaluation(job, CacheConfig()),
        "cached": lambda job: evaluation(job, CacheConfig(use_cache=True)),
    },
    ["deepeval", "openai"],
)
