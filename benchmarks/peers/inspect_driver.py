"""Inspect: a task whose answers are given, scored by `model_graded_qa` through the OpenAI-compatible provider."""

from collections.abc import Sequence
from typing import Any

from inspect_ai import Task, eval  # type: ignore[import-not-found]
from inspect_ai.dataset import MemoryDataset, Sample  # type: ignore[import-not-found]
from inspect_ai.model import GenerateConfig, ModelOutput, get_model  # type: ignore[import-not-found]
from inspect_ai.scorer import model_graded_qa  # type: ignore[import-not-found]
from inspect_ai.solver import solver  # type: ignore[import-not-found]

from benchmarks.peers.driving import MODEL, QUESTION, STEPS, Item, Job, Work, drive

TEMPLATE = "\n".join(
    [
        "{question}",
        *STEPS,
        "[BEGIN DATA]",
        "[Passages]: {passages}",
        "[Answer]: {answer}",
        "[Criterion]: {criterion}",
        "[END DATA]",
        "{instructions}",
    ]
)


def given_answer() -> Any:
    """A solver that asks nobody: the answer comes with the sample."""

    async def solve(state: Any, generate: Any) -> Any:  # noqa: ARG001 - Inspect's signature
        state.output = ModelOutput.from_content("given", state.metadata["given"])
        return state

    return solve


def sample(item: Item) -> Any:
    metadata = {"given": item.answer, "passages": item.passages_text}
    return Sample(id=item.name, input=QUESTION, target="every claim is supported", metadata=metadata)


def evaluation(job: Job, *, cache: bool, **log_options: Any) -> Work:
    """`eval()`, without its display."""
    config = GenerateConfig(temperature=0, seed=0, max_connections=job.in_flight, cache=cache)
    solving = solver(name="given_answer")(given_answer)

    def work(items: Sequence[Item]) -> int:
        grader = get_model(f"openai-api/local/{MODEL}", base_url=job.base_url, api_key="none", config=config)
        scorer = model_graded_qa(template=TEMPLATE, model=grader)
        task = Task(dataset=MemoryDataset([sample(item) for item in items]), solver=solving(), scorer=scorer)
        log_dir = str(job.folder / "logs")
        [log] = eval(
            task,
            model=None,
            display="none",
            log_dir=log_dir,
            max_samples=job.in_flight,
            score_display=False,
            **log_options,
        )
        if log.status != "success":
            raise RuntimeError(f"Inspect's run ended with {log.status}: {log.error}")
        scores = [score for one in log.samples for score in one.scores.values()]
        return sum(score.value == "C" for score in scores)

    return work


drive(
    {
        "eval-lean": lambda job: evaluation(job, cache=False, log_realtime=False),
        "eval": lambda job: evaluation(job, cache=False),
        "eval-cache": lambda job: evaluation(job, cache=True),
        "cached": lambda job: evaluation(job, cache=True),
    },
    ["inspect-ai", "openai"],
)
