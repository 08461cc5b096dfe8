"""`judgekit spotcheck`: a second opinion on a sample of a stored run, into the same run folder.

The sample is written before the first call and every judgment as it comes, so that a check that was stopped goes on
when it is asked for again; until it is complete, no figure hangs on it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from judgekit.analysis.gates import check_gates
from judgekit.analysis.judge_calls import cost_record
from judgekit.core.components import Judge
from judgekit.core.config import RunConfig
from judgekit.core.errors import ProviderError
from judgekit.core.judgments import Judgment, JudgmentKey, last_judgments
from judgekit.core.prompts import PromptTemplate
from judgekit.core.protocols import ReplyCache
from judgekit.core.runs import JUDGMENTS, GateResult, Manifest, Notice, RunSummary
from judgekit.core.spot_checks import SpotCheckRecord
from judgekit.engine.budget import Spending
from judgekit.engine.model_runtime import ModelRuntime
from judgekit.engine.observer import Observer
from judgekit.engine.passes import Passes, Wanted, ready
from judgekit.storage.recorder import Recorder
from judgekit.storage.run_folder import RunFolder
from judgekit.workflows.closing import closed, write_summary
from judgekit.workflows.judge_reliability import (
    DrawnSpotCheck,
    ask_samples,
    clusters_of,
    reliability_of,
    sampled,
    write_spot_checks,
)

RELIABILITY = "judge_reliability."
"""Begins the names of figures that a check changes."""


@dataclass
class SpotCheckJob:
    """One check of one run, ready to go."""

    store: RunFolder
    manifest: Manifest
    config: RunConfig
    summary: RunSummary
    """The figures so far."""
    judges: Sequence[Judge]
    """All judges of the run."""
    plans: list[DrawnSpotCheck]
    models: Mapping[str, ModelRuntime]
    cache: ReplyCache | None
    """Where it is remembered what models take; no reply is taken from it."""
    prompts: Mapping[str, PromptTemplate]
    """prompts.json with the wordings of the check."""
    notes: list[str] = field(default_factory=list)
    """What the user should know of how the check was set up."""


async def spotcheck(job: SpotCheckJob, observer: Observer) -> RunSummary:
    """Ask for the second opinions and write what they say into the run's metrics.json and summary.md.

    Returns:
        The figures of the run with the new `judge_reliability`.

    Raises:
        ProviderError: a provider refuses for good, or gave not one second opinion on a judge.
        Interrupted: the budget is used up; the same command goes on.
        StorageError: the run folder cannot be written, or another process writes it.
    """
    try:
        with job.store.locked_as_found(job.manifest):
            job.store.repair_tail(JUDGMENTS)
            job.store.write_prompts(job.prompts)
            before = [record for record in job.store.checks() if not _is_taken_up(record, job.plans)]
            await _ask(job, before, observer)
            records = [*before, *(plan.record.model_copy(update={"complete": True}) for plan in job.plans)]
            write_spot_checks(job.store, records)
            return _write_figures(job, [record for record in records if record.complete])
    finally:
        if job.cache is not None:
            job.cache.close()
        for runtime in job.models.values():
            await runtime.provider.close()


def _is_taken_up(record: SpotCheckRecord, plans: Sequence[DrawnSpotCheck]) -> bool:
    return any((record.judge, record.check) == (plan.record.judge, plan.record.check) for plan in plans)


async def _ask(job: SpotCheckJob, before: Sequence[SpotCheckRecord], observer: Observer) -> None:
    """All samples side by side, then more for those that grow until they are decided."""
    spending = Spending(job.config.budget)
    await ready(job.models)
    done = last_judgments(job.store.judgments())

    async def judge(wanted: Sequence[Wanted]) -> None:
        """The samples are on disk before anything is asked, every judgment is afterwards."""
        write_spot_checks(job.store, [*before, *(plan.record for plan in job.plans)])
        sink = Recorder(job.store.path / JUDGMENTS, None)
        try:
            # Without a cache: a judge is not checked against what is remembered.
            await Passes(job.store, None, sink, spending, observer).run(wanted, done)
        finally:
            sink.close()

    await ask_samples(job.store, job.plans, judge)


def _write_figures(job: SpotCheckJob, records: Sequence[SpotCheckRecord]) -> RunSummary:
    judgments = last_judgments(job.store.judgments(), sampled(records))
    clusters = clusters_of(job.config.cluster_by, job.store.cases(), records)
    earlier = job.summary.judge_reliability
    reliability, unstable = reliability_of(job.judges, records, judgments, earlier, clusters)
    warnings = [item for item in job.summary.warnings if item.code != "judge_unstable"]
    warnings += [Notice(code=code, message=message) for code, message in unstable]
    summary = job.summary.model_copy(
        update={
            "judge_reliability": reliability,
            "warnings": tuple(warnings),
            "cost": cost_record(job.store.judgments(), job.summary.cost.get("price_list")),
        }
    )
    summary = summary.model_copy(update={"gates": _gates(job, summary)})
    write_summary(job.store, summary)
    models = {**job.manifest.models, **{name: runtime.record() for name, runtime in job.models.items()}}
    job.store.write_manifest(job.manifest.model_copy(update={"models": models}))
    summary = closed(job.store, summary, report=job.config.report)
    _check_answered(job, judgments)
    return summary


def _gates(job: SpotCheckJob, summary: RunSummary) -> tuple[GateResult, ...]:
    """Gates on the check anew; the others were held against figures that were not rounded yet, so they stand."""
    if not summary.gates:
        return ()
    return tuple(
        check_gates((gate,), summary)[0] if gate.metric.startswith(RELIABILITY) else old
        for gate, old in zip(job.config.gates, summary.gates, strict=True)
    )


def _check_answered(job: SpotCheckJob, judgments: Mapping[JudgmentKey, Judgment]) -> None:
    for plan in job.plans:
        name, check = plan.record.judge, plan.record.check
        own = [item for key, item in judgments.items() if key.judge == name and key.check == check]
        if own and all(item.verdict is None for item in own):
            raise ProviderError(f"judge {name}: the check got 0 of {len(own)} second opinions, every call failed")
