"""Ragas: `DomainSpecificRubrics`, which is one call an item (its faithfulness metric makes two).

Not `DiscreteMetric`: what that gets back cannot be pickled, so Ragas' own cache fails on it.
"""

import asyncio
from typing import Any

from openai import AsyncOpenAI
from ragas.cache import DiskCacheBackend  # type: ignore[import-not-found]
from ragas.llms import llm_factory  # type: ignore[import-not-found]
from ragas.metrics.collections import DomainSpecificRubrics  # type: ignore[import-not-found]

from benchmarks.peers.driving import MODEL, QUESTION, STEPS, Item, Job, Work, drive, side_by_side

RUBRICS = {f"score{number}_description": step for number, step in enumerate(STEPS, start=1)}
"""Where Ragas takes what its judge is told."""


def scoring(job: Job, cache: Any) -> Work:
    client = AsyncOpenAI(api_key="none", base_url=job.base_url)
    llm = llm_factory(MODEL, client=client, cache=cache, temperature=0)
    metric = DomainSpecificRubrics(llm=llm, rubrics=RUBRICS)

    async def judge(item: Item) -> bool:
        result = await metric.ascore(QUESTION, item.answer, list(item.passages))
        return result.value == 5 and bool(result.reason)

    return side_by_side(judge, job.in_flight, asyncio.Runner())


def scoring_with_cache(job: Job) -> Work:
    return scoring(job, DiskCacheBackend(str(job.folder / "cache")))


drive(
    {
        "ascore": lambda job: scoring(job, None),
        "ascore-cache": scoring_with_cache,
        "cached": scoring_with_cache,
    },
    ["ragas", "instructor", "openai"],
)
