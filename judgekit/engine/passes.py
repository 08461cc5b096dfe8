"""Judging passes side by side, over the inputs of a run that have no answer yet, and who is told how they go."""

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from judgekit.core.config import RunConfig
from judgekit.core.judgments import TRANSPORT_KINDS, JudgeInput, Judgment, JudgmentKey
from judgekit.core.protocols import ReplyCache
from judgekit.core.runs import Manifest
from judgekit.core.spot_checks import RUN_SPOT_CHECKS
from judgekit.engine.budget import Spending
from judgekit.engine.judging import JudgingPass, StopSignal, Tally
from judgekit.engine.requests import JudgePlan
from judgekit.storage.recorder import Recorder
from judgekit.storage.run_folder import RunFolder
from judgekit.storage.stored_judgments import StoredJudgments

Wanted = tuple[JudgePlan, Sequence[str] | None]
"""A plan, and the cases that it is for; None: all that have an input."""

Done = Mapping[JudgmentKey, Judgment]
"""The judgment that counts for each question."""

Inputs = Callable[[], Iterator[JudgeInput]]
"""Opens the inputs of a pass."""


class Observer:
    """Is told how the work goes; this one ignores it."""

    def note(self, text: str) -> None:
        """What the user should know before the work begins."""

    def started(self, label: str, n_total: int) -> None:
        """A pass of `n_total` judgments begins."""

    def advanced(self, label: str, tally: Tally) -> None:
        """One more judgment of a pass is done."""

    def paused(self, label: str, reset_seconds: float) -> None:
        """A pass waits, since the server says that its limit is used up for so long."""

    def waiting(self, text: str, *, is_new: bool) -> None:
        """A batch is not answered yet; `is_new` if the server says something else of it than before."""

    def finished(self, label: str) -> None:
        """A pass is over."""


def is_unanswered(judgment: Judgment | None) -> bool:
    """Whether a question is to be asked: it has no judgment, or one that failed for a reason not its own."""
    return judgment is None or (judgment.failure is not None and judgment.failure.kind in TRANSPORT_KINDS)


def pending(folder: RunFolder, plan: JudgePlan, only: Sequence[str] | None, done: Done) -> Iterator[JudgeInput]:
    """Stored inputs of a judge that have no answer yet."""
    return folder.judge_inputs(_is_open(plan, only, done))


def _is_open(plan: JudgePlan, only: Sequence[str] | None, done: Done) -> Callable[[str, str], bool]:
    """Tells by judge and case id whether a question of a plan has no answer yet."""
    chosen = None if only is None else set(only)

    def is_open(judge: str, case_id: str) -> bool:
        if judge != plan.judge.name or (chosen is not None and case_id not in chosen):
            return False
        return is_unanswered(done.get(JudgmentKey(plan.role, judge, case_id, plan.check, plan.member)))

    return is_open


def models_left(folder: RunFolder, wanted: Sequence[Wanted], done: Done) -> frozenset[str]:
    """Models that something is left to ask of."""
    return frozenset(
        plan.runtime.model_id for plan, only in wanted if next(pending(folder, plan, only, done), None) is not None
    )


@dataclass(frozen=True)
class Passes:
    """Where replies are cached, where judgments go, what they may cost, and who is told."""

    cache: ReplyCache | None
    sink: Recorder
    spending: Spending
    observer: Observer

    async def run_stored(self, folder: RunFolder, wanted: Sequence[Wanted], done: Done) -> None:
        """Judge the stored inputs that have no answer yet; errors as of `run`."""
        await self.run(
            [
                (plan, folder.n_judge_inputs(_is_open(plan, only, done)), partial(pending, folder, plan, only, done))
                for plan, only in wanted
            ]
        )

    async def run(self, plans: Sequence[tuple[JudgePlan, int, Inputs]]) -> None:
        """Judge the inputs of each plan, of which there are so many, all plans at once.

        Raises:
            ProviderError: a provider refuses for good, or a model is not the pinned one.
            Interrupted: the budget is used up.
            StorageError: judgments cannot be written.
        """
        stop = StopSignal()

        async def one(plan: JudgePlan, n_inputs: int, inputs: Inputs) -> None:
            label = plan.label
            self.observer.started(label, n_inputs)
            judging = JudgingPass(plan, self.sink, self.cache, self.spending, stop)
            plan.runtime.limiter.on_pause = partial(self.observer.paused, label)
            try:
                await judging.run(inputs(), lambda: self.observer.advanced(label, judging.tally))
            finally:
                self.observer.finished(label)

        results = await asyncio.gather(*(one(*plan) for plan in plans), return_exceptions=True)
        if stop.error is not None:
            raise stop.error
        for result in results:
            if isinstance(result, BaseException):
                raise result


def unanswered(folder: RunFolder, config: RunConfig, manifest: Manifest) -> frozenset[tuple[str, str]]:
    """(judge, case id) of the questions of a run that a resume asks, those of its own spot check too.

    Judgments that a rejudge copied from its parent are not questions of its own.

    Raises:
        StorageError: a line of the run folder is damaged.
    """
    with StoredJudgments(folder) as done:
        return frozenset(
            (key.judge, key.case_id) for key in _questions(folder, config, manifest) if is_unanswered(done.get(key))
        )


def _questions(folder: RunFolder, config: RunConfig, manifest: Manifest) -> Iterator[JudgmentKey]:
    is_rejudge = manifest.kind == "rejudge"
    asked = {judge.name: judge for judge in config.judges if not is_rejudge or judge.name in manifest.rejudged}
    for item in folder.judge_inputs():
        if item.judge not in asked:
            continue
        yield JudgmentKey("primary", item.judge, item.case_id)
        if asked[item.judge].panel is not None:
            for model in asked[item.judge].asked:
                yield JudgmentKey("member", item.judge, item.case_id, None, model)
    for record in () if is_rejudge else folder.spot_checks():
        if record.check in RUN_SPOT_CHECKS:
            for case_id in record.case_ids:
                yield JudgmentKey("spot_check", record.judge, case_id, record.check)
