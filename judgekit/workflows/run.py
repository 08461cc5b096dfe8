"""`judgekit run`: outputs, judge inputs, judging, spot check, figures.

The order of the functions is the order of the work. Everything that is judged is written before the first
call, every judgment as it comes, and the figures last, so that a run can be stopped at any moment and resumed.
"""

import asyncio
import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field

from judgekit.analysis.gates import check_gates
from judgekit.analysis.reliability import draw_sample
from judgekit.analysis.summary import rounded
from judgekit.core.errors import Interrupted, JudgekitError, ProviderError, StorageError
from judgekit.core.judgments import JudgeInput, Judgment
from judgekit.core.protocols import JudgmentSink
from judgekit.core.runs import (
    CASES,
    CONFIG,
    JUDGE_INPUTS,
    JUDGMENTS,
    MANIFEST,
    METRICS,
    OUTPUTS,
    PROMPTS,
    SUMMARY,
    Notice,
    RunStatus,
    RunSummary,
)
from judgekit.workflows.budget import Spending
from judgekit.workflows.checks import check_applies, one_version
from judgekit.workflows.data_checks import check_data
from judgekit.workflows.job import Observer, RunJob, SpotCheckPlan
from judgekit.workflows.judging import JudgingPass, StopSignal
from judgekit.workflows.judgment_draft import JudgePlan
from judgekit.workflows.scoring import TRANSPORT_KINDS, JudgmentKey, Unjudged, judge_inputs, last_judgments
from judgekit.workflows.summarise import summarise


@dataclass
class Progress:
    """What a run has so far; enough to write its figures at any moment."""

    is_prepared: bool = False
    """All that is judged is on disk."""
    unjudged: Unjudged = field(default_factory=dict)
    samples: dict[str, list[str]] = field(default_factory=dict)
    """Case ids of the spot check by judge."""


async def run(job: RunJob, observer: Observer) -> RunSummary:
    """Carry a run to its end, or as far as it goes.

    Returns:
        The figures. A run that stopped early has status `interrupted` and is raised as its error after the
        figures so far are written.

    Raises:
        ConfigError: found before any call.
        ProviderError: the provider refuses for good.
        Interrupted: the budget is used up.
        StorageError: the run folder cannot be written.
    """
    started = job.monotonic()
    progress = Progress()
    try:
        with job.locked():
            try:
                await prepare(job, progress)
                await judge(job, progress, observer)
            except (ProviderError, Interrupted, StorageError, asyncio.CancelledError) as error:
                # The figures so far are written even then; a second fault on the way must not hide the first.
                reason = str(error) or "interrupted by the user"
                close_early(job, progress, "interrupted", reason, job.monotonic() - started)
                raise
            except Exception as error:
                close_early(job, progress, "failed", str(error) or type(error).__name__, job.monotonic() - started)
                raise
            return conclude(job, progress, job.monotonic() - started)
    finally:
        if job.cache is not None:
            job.cache.close()
        for runtime in job.models.values():
            await runtime.provider.close()


async def prepare(job: RunJob, progress: Progress) -> None:
    """Collect outputs and write everything that is judged, before any call."""
    if job.resuming:
        job.store.repair_tail(JUDGMENTS)
    job.store.write_json(CONFIG, dict(job.resolved))
    _write_manifest(job, status="running")
    plans = [*job.judges, *(check.second for check in job.spot_checks)]
    job.store.write_json(
        PROMPTS, {f"{plan.prompt.judge}/{plan.prompt.version}": plan.prompt.model_dump() for plan in plans}
    )
    job.store.write_lines(CASES, (_line(case.model_dump(exclude_defaults=True)) for case in job.cases))
    outputs = [output async for output in job.system.outputs(job.cases)]
    job.warnings.extend(job.system.warnings())
    versions = one_version(job.config.versions, outputs)
    job.warnings.extend(check_data(job.asked(), job.cases, outputs))
    job.manifest = job.manifest.model_copy(update={"versions": {**job.manifest.versions, **versions}})
    job.store.write_lines(OUTPUTS, (_line(output.model_dump(exclude_defaults=True)) for output in outputs))
    inputs = judge_inputs(job.judge_components, zip(job.cases, outputs, strict=True), progress.unjudged, job.faults)
    job.store.write_lines(JUDGE_INPUTS, (_line(item.model_dump()) for item in inputs))
    progress.is_prepared = True
    for plan in job.judges:
        check_applies(plan.judge.name, len(job.cases), progress.unjudged[plan.judge.name])


async def judge(job: RunJob, progress: Progress, observer: Observer) -> None:
    """All judges side by side, then the spot check."""
    done = last_judgments(job.store.judgments()) if job.resuming else {}
    spending = Spending(job.config.budget)
    if job.resuming:
        _go_on(job, spending)
    sink = job.open_sink()
    try:
        await _ready(job)
        # What the models are is kept before anything is paid for, so that a resume after a kill knows it too.
        _write_manifest(job, status="running")
        await _passes(job, [(plan, None) for plan in job.judges], done, sink, spending, observer)
        for check in job.spot_checks:
            progress.samples[check.primary.judge.name] = _sample(job, check)
        wanted = [(check.second, progress.samples[check.primary.judge.name]) for check in job.spot_checks]
        await _passes(job, wanted, done, sink, spending, observer)
    finally:
        sink.close()
        if sink.cache_warning is not None:
            job.warnings.append(("cache_not_written", sink.cache_warning))


def _go_on(job: RunJob, spending: Spending) -> None:
    """Count on from the stored judgments: what was spent, and which models answered."""
    served: dict[str, Counter[str]] = {name: Counter() for name in job.models}
    fingerprints: dict[str, Counter[str]] = {name: Counter() for name in job.models}
    for judgment in job.store.judgments():
        spending.add(judgment)
        if not judgment.from_cache and judgment.model_id in job.models:
            served[judgment.model_id].update([judgment.served_model] if judgment.served_model else [])
            fingerprints[judgment.model_id].update([judgment.fingerprint] if judgment.fingerprint else [])
    for name, runtime in job.models.items():
        runtime.guard.recount(served[name], fingerprints[name])


async def _ready(job: RunJob) -> None:
    """Find out of every model what it is and takes, the one of the spot check too, before anything is paid for."""
    for runtime in job.models.values():
        if runtime.config.pin.build_hash is None:
            # What an unpinned server has loaded is a part of every key, so it is asked before any look-up.
            await runtime.identified()
        await runtime.ready()


async def _passes(
    job: RunJob,
    plans: Sequence[tuple[JudgePlan, list[str] | None]],
    done: Mapping[JudgmentKey, Judgment],
    sink: JudgmentSink,
    spending: Spending,
    observer: Observer,
) -> None:
    stop = StopSignal()

    async def one(plan: JudgePlan, only: list[str] | None) -> None:
        pending = _pending(job, plan, only, done)
        label = plan.judge.name if plan.role == "primary" else f"{plan.judge.name} (spot check)"
        observer.started(label, sum(1 for _ in _pending(job, plan, only, done)))
        judging = JudgingPass(plan, sink, job.cache, spending, stop)
        try:
            await judging.run(pending, lambda: observer.advanced(label, judging.tally))
        finally:
            observer.finished(label)

    results = await asyncio.gather(*(one(plan, only) for plan, only in plans), return_exceptions=True)
    if stop.error is not None:
        raise stop.error
    for result in results:
        if isinstance(result, BaseException):
            raise result


def _pending(
    job: RunJob, plan: JudgePlan, only: list[str] | None, done: Mapping[JudgmentKey, Judgment]
) -> Iterator[JudgeInput]:
    """Stored inputs of a judge that have no judgment yet."""
    chosen = None if only is None else set(only)
    for item in job.store.judge_inputs():
        if item.judge != plan.judge.name or (chosen is not None and item.case_id not in chosen):
            continue
        old = done.get(JudgmentKey(plan.role, item.judge, item.case_id))
        if old is None or (old.failure is not None and old.failure.kind in TRANSPORT_KINDS):
            yield item


def _sample(job: RunJob, check: SpotCheckPlan) -> list[str]:
    name = check.primary.judge.name
    ids = [item.case_id for item in job.store.judge_inputs() if item.judge == name]
    return draw_sample(ids, check.check.n, job.rng)


def conclude(job: RunJob, progress: Progress, seconds: float) -> RunSummary:
    """Write the figures of a finished run.

    Raises:
        ProviderError: a judge has not one verdict; the figures are written all the same.
    """
    summary = _write_figures(job, progress, "complete", None, seconds)
    for name, record in summary.judges.items():
        if record["n_failed"] and not record["n_judged"]:
            kinds = ", ".join(f"{kind} ({n})" for kind, n in record["failures"].items())
            raise ProviderError(f"judge {name}: measured 0 of {record['n_failed']}, every call failed: {kinds}")
    return summary


def close_early(job: RunJob, progress: Progress, status: RunStatus, reason: str, seconds: float) -> None:
    """Write what there is of a run that stopped; on a full disk at least try the manifest."""
    try:
        if status == "interrupted" and progress.is_prepared:
            _write_figures(job, progress, status, reason, seconds)
        else:
            _write_manifest(job, status=status, reason=reason, seconds=seconds)
    except JudgekitError:
        with suppress(StorageError):
            _write_manifest(job, status=status, reason=reason, seconds=seconds)


def _write_figures(
    job: RunJob, progress: Progress, status: RunStatus, reason: str | None, seconds: float
) -> RunSummary:
    job.manifest = job.manifest.model_copy(
        update={
            "wall_seconds": job.manifest.wall_seconds + seconds,
            "finished_at": job.now().isoformat(timespec="seconds"),
        }
    )
    summary = summarise(job, progress.unjudged, progress.samples, status=status, reason=reason)
    if status == "complete" and job.manifest.shard is None:
        summary = summary.model_copy(update={"gates": check_gates(job.config.gates, summary)})
    job.store.write_json(METRICS, rounded(summary.model_dump(mode="json")))
    job.store.write_text(SUMMARY, job.render_summary(summary))
    counts = {"cases": len(job.cases)}
    for name, record in summary.judges.items():
        counts[f"{name}.judged"] = record["n_judged"]
        counts[f"{name}.failed"] = record["n_failed"]
    job.manifest = job.manifest.model_copy(update={"counts": counts})
    _write_manifest(job, status=status, reason=reason)
    return _with_report(job, summary)


def _with_report(job: RunJob, summary: RunSummary) -> RunSummary:
    """Write the report from what is stored now; where that fails, the figures say so and the run goes on."""
    if job.write_report is None:
        return summary
    try:
        job.write_report()
    except Exception as error:  # noqa: BLE001  # a report can be written anew, a run costs money
        message = f"report.html could not be written: {error}; try: judgekit report {summary.run_id}"
        notice = Notice(code="report_not_written", message=message)
        summary = summary.model_copy(update={"warnings": (*summary.warnings, notice)})
        with suppress(StorageError):
            job.store.write_json(METRICS, rounded(summary.model_dump(mode="json")))
            job.store.write_text(SUMMARY, job.render_summary(summary))
    return summary


def _write_manifest(job: RunJob, *, status: RunStatus, reason: str | None = None, seconds: float = 0.0) -> None:
    models = {
        name: {
            "capabilities": None if runtime.capabilities is None else asdict(runtime.capabilities),
            "build_hash": runtime.guard.build_hash or runtime.build_hash(),
            "build_source": runtime.identity.source if runtime.identity is not None else None,
            "served_models": dict(sorted(runtime.guard.served.items())),
            "fingerprints": dict(sorted(runtime.guard.fingerprints.items())),
            "n_pin_mismatches": runtime.guard.n_mismatches,
            "n_rate_limit_cuts": runtime.limiter.n_cuts,
            "n_probes": runtime.n_probes,
        }
        for name, runtime in job.models.items()
    }
    job.manifest = job.manifest.model_copy(
        update={
            "status": status,
            "reason": reason,
            "models": models,
            "wall_seconds": job.manifest.wall_seconds + seconds,
        }
    )
    job.store.write_json(MANIFEST, job.manifest)


def _line(data: object) -> bytes:
    return json.dumps(data, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode("utf-8", "replace")
