"""Several judging passes side by side, over the stored inputs of a run."""

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from judgekit.core.judgments import JudgeInput, Judgment, JudgmentKey
from judgekit.core.protocols import ReplyCache
from judgekit.engine.budget import Spending
from judgekit.engine.judging import JudgingPass, StopSignal
from judgekit.engine.judgment_draft import JudgePlan
from judgekit.engine.model_runtime import ModelRuntime
from judgekit.engine.observer import Observer
from judgekit.engine.unanswered import is_unanswered
from judgekit.storage.recorder import Recorder
from judgekit.storage.run_folder import RunFolder

Wanted = tuple[JudgePlan, Sequence[str] | None]
"""A plan, and the cases that it is for; None: all that have an input."""


async def ready(models: Mapping[str, ModelRuntime]) -> None:
    """Find out of every model what it is and takes, the one of the spot check too, before anything is paid for.

    Raises:
        ProviderError: a server cannot be reached, has another build loaded, or refuses what is needed.
    """
    for runtime in models.values():
        if runtime.config.pin.build_hash is None:
            # What an unpinned server has loaded is a part of every key, so it is asked before any look-up.
            await runtime.identified()
        await runtime.ready()


def left_for(store: RunFolder, plans: Sequence[Wanted], done: Mapping[JudgmentKey, Judgment]) -> frozenset[str]:
    """Models that something is left to ask of."""
    pending = ((plan, next(_pending(store, plan, only, done), None)) for plan, only in plans)
    return frozenset(plan.runtime.model_id for plan, item in pending if item is not None)


def _pending(
    store: RunFolder, plan: JudgePlan, only: Sequence[str] | None, done: Mapping[JudgmentKey, Judgment]
) -> Iterator[JudgeInput]:
    """Stored inputs of a judge that have no judgment yet."""
    chosen = None if only is None else set(only)
    for item in store.judge_inputs():
        if item.judge != plan.judge.name or (chosen is not None and item.case_id not in chosen):
            continue
        member = plan.runtime.model_id if plan.role == "member" else None
        if is_unanswered(done.get(JudgmentKey(plan.role, item.judge, item.case_id, plan.check, member))):
            yield item


@dataclass(frozen=True)
class Passes:
    """Where the inputs of passes come from, where their judgments go, and who is told."""

    store: RunFolder
    cache: ReplyCache | None
    sink: Recorder
    spending: Spending
    observer: Observer

    async def run(self, plans: Sequence[Wanted], done: Mapping[JudgmentKey, Judgment]) -> None:
        """Judge what has no judgment yet, all plans at once.

        Raises:
            ProviderError: a provider refuses for good, or a model is not the pinned one.
            Interrupted: the budget is used up.
            StorageError: judgments cannot be written.
        """
        stop = StopSignal()

        async def one(plan: JudgePlan, only: Sequence[str] | None) -> None:
            label = plan.label
            self.observer.started(label, sum(1 for _ in _pending(self.store, plan, only, done)))
            judging = JudgingPass(plan, self.sink, self.cache, self.spending, stop)
            plan.runtime.limiter.on_pause = partial(self.observer.paused, label)
            try:
                await judging.run(
                    _pending(self.store, plan, only, done), lambda: self.observer.advanced(label, judging.tally)
                )
            finally:
                self.observer.finished(label)

        results = await asyncio.gather(*(one(plan, only) for plan, only in plans), return_exceptions=True)
        if stop.error is not None:
            raise stop.error
        for result in results:
            if isinstance(result, BaseException):
                raise result
