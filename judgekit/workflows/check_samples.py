"""Samples of spot checks: what is drawn, and how one grows until the check is decided."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace

from judgekit.analysis.pairs import Sampler, compare_pair, draw_order, draw_sample
from judgekit.core.judgments import last_judgments
from judgekit.core.spot_checks import SpotCheckRecord
from judgekit.engine.judgment_draft import JudgePlan
from judgekit.engine.passes import Wanted
from judgekit.stats.sequential import decide
from judgekit.storage.run_folder import RunFolder
from judgekit.workflows.reliability import pairs_of, pass_score_of

STEP = 10
"""Cases that an adaptive check draws at a time."""

MOST_ROWS = 200
"""Cases at which an adaptive check ends, decided or not."""


@dataclass(frozen=True)
class CheckPlan:
    """The second opinion on one judge."""

    record: SpotCheckRecord
    """With the sample that it starts with."""
    second: JudgePlan
    order: tuple[str, ...]
    """Cases in random order, for a sample that may grow; it begins with the sample."""


def drawn(ids: Sequence[str], n: int, rng: Sampler, *, adaptive: bool) -> tuple[str, ...]:
    """The cases of a check: the sample, or for one that may grow all that it may grow to, beginning with the sample.

    Args:
        ids: what to draw from, in the order of the cases.
        n: cases that it begins with.
        rng: a seeded source of randomness.
        adaptive: the sample may grow.
    """
    return tuple(draw_order(ids, MOST_ROWS, rng) if adaptive else draw_sample(ids, n, rng))


async def ask_samples(
    store: RunFolder, plans: list[CheckPlan], ask: Callable[[Sequence[Wanted]], Awaitable[None]]
) -> None:
    """Ask about all samples side by side, then draw more for those that grow until they are decided.

    Args:
        store: the run.
        plans: the checks; those that grow are replaced by what they have grown to before more is asked.
        ask: asks, and has every judgment on disk when it returns.
    """
    await ask([(plan.second, plan.record.case_ids) for plan in plans])
    for number, plan in enumerate(plans):
        growing = plan
        while may_grow(store, growing):
            case_ids = plan.order[: len(growing.record.case_ids) + STEP]
            growing = replace(growing, record=growing.record.model_copy(update={"case_ids": case_ids}))
            plans[number] = growing
            await ask([(plan.second, case_ids[-STEP:])])


def may_grow(store: RunFolder, plan: CheckPlan) -> bool:
    """Whether more is to be drawn: there is more, and the pairs so far do not tell on which side the rate is."""
    record, judge = plan.record, plan.second.judge
    if not record.adaptive or len(record.case_ids) >= len(plan.order):
        return False
    pairs = pairs_of(record, last_judgments(item for item in store.judgments() if item.judge == judge.name))
    scored = [item for item in (compare_pair(pair, pass_score_of(judge)) for pair in pairs) if item is not None]
    return decide(sum(item.disagrees for item in scored), len(scored), record.threshold) is None
