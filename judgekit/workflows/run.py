"""`judgekit run`: outputs, judge inputs, judging, spot check, figures.

The order of the functions is the order of the work. Everything that is judged is written before the first
call, every judgment as it comes, and the figures last, so that a run can be stopped at any moment and resumed.
"""

import asyncio
import time
from collections import deque
from collections.abc import Iterable, Sequence, Set
from contextlib import closing, suppress
from functools import partial

from judgekit.core.cases import Case
from judgekit.core.errors import ConfigError, InputError, Interrupted, JudgekitError, ProviderError, StorageError
from judgekit.core.judgments import JudgmentKey, that_count
from judgekit.core.runs import (
    CASES,
    CHUNK_IDS,
    CONFIG,
    JUDGE_INPUTS,
    JUDGMENTS,
    OUTPUTS,
    Notices,
    RunStatus,
    RunSummary,
)
from judgekit.core.shard_tasks import Executor
from judgekit.core.streams import Streamed
from judgekit.engine.budget import Spending
from judgekit.engine.passes import Done, Observer, Passes, Wanted, models_left
from judgekit.engine.pinning import Seen
from judgekit.storage.id_lists import id_lines
from judgekit.storage.judgment_lines import input_line, line_of
from judgekit.storage.recorder import Recorder
from judgekit.storage.run_records import append_history
from judgekit.storage.shard_parts import PARTS, ShardParts
from judgekit.storage.stored_judgments import StoredJudgments
from judgekit.systems.recorded import Recorded
from judgekit.tracing import Traced, is_traced, run_span
from judgekit.workflows.batch_rounds import goes_by_batch, in_rounds
from judgekit.workflows.case_scores import judge_inputs
from judgekit.workflows.closing import closed, replaced_figures, write_summary
from judgekit.workflows.gating import hold_gates
from judgekit.workflows.job import RunJob
from judgekit.workflows.judge_reliability import ask_samples, may_grow, write_spot_checks
from judgekit.workflows.merge import Final, check_keys, take_over
from judgekit.workflows.panel_rulings import rule, says_the_same
from judgekit.workflows.parent_run import copy_judgments, stored_inputs
from judgekit.workflows.preflight import DataCheck, check_applies
from judgekit.workflows.record import collect_outputs
from judgekit.workflows.rejudge_history import add_to_history
from judgekit.workflows.run_spot_checks import (
    all_repeats,
    begun_repeats,
    other_spot_checks,
    own_spot_checks,
    second_opinions,
)
from judgekit.workflows.sharding import judge_shards
from judgekit.workflows.summarise import coverage_notices, summarise
from judgekit.workflows.traced_results import trace_scores

ONLY_RECORDED = "the outputs are recorded, and no judge was asked yet"
"""Why a run has stopped that was to record outputs."""


async def run(job: RunJob, observer: Observer, *, only_record: bool = False) -> RunSummary:
    """Carry a run to its end, or as far as it goes.

    Args:
        job: the run.
        observer: is told how it goes.
        only_record: stop once all outputs are there; the run can be resumed then.

    Returns:
        The figures. A run that stopped early has status `interrupted` and is raised as its error after the
        figures so far are written.

    Raises:
        ConfigError: found before any call; a run that is new leaves no folder then.
        ProviderError: the provider refuses for good.
        Interrupted: the budget is used up.
        StorageError: the run folder cannot be written.
    """
    started = time.monotonic()
    try:
        with _traced(job), job.folder.locked_as_found(job.found):
            try:
                if job.reopened is not None:
                    append_history(job.folder, replaced_figures(job.reopened.summary, job.now()))
                executor = None if only_record or job.folder.has(JUDGMENTS) else job.executor
                await prepare(job, observer, executor)
                if only_record:
                    return _write_figures(job, "interrupted", ONLY_RECORDED, time.monotonic() - started)
                await judge(job, observer)
            except (ProviderError, Interrupted, StorageError, asyncio.CancelledError) as error:
                # The figures so far are written even then; a second fault on the way must not hide the first.
                reason = str(error) or "interrupted by the user"
                close_early(job, "interrupted", reason, time.monotonic() - started)
                raise
            except Exception as error:
                if isinstance(error, ConfigError) and job.found is None and not job.is_begun:
                    job.folder.discard()
                else:
                    close_early(job, "failed", str(error) or type(error).__name__, time.monotonic() - started)
                raise
            try:
                return conclude(job, time.monotonic() - started)
            finally:
                if (parts := ShardParts(job.folder.path / PARTS)).path.exists():
                    parts.clear()
    finally:
        await _close(job)


async def run_part(job: RunJob) -> None:
    """Judge a part of another run, without scores and figures, which are made of the whole.

    Raises:
        JudgekitError: as of `run`; the part is not complete then.
    """
    started = time.monotonic()
    try:
        with _traced(job), job.folder.locked_as_found(None):
            await prepare(job, Observer())
            await judge(job, Observer())
            _settle_panels(job)
            _write_manifest(job, "complete", seconds=time.monotonic() - started)
    finally:
        await _close(job)


async def _close(job: RunJob) -> None:
    if job.cache is not None:
        job.cache.close()
    for runtime in job.models.values():
        await runtime.provider.close()


def _traced(job: RunJob) -> Traced:
    """The span of the run, if the user traces."""
    manifest = job.manifest
    facts = {
        "judgekit.run.id": manifest.run_id,
        "judgekit.run.name": manifest.name,
        "judgekit.run.parent": manifest.parent,
        "judgekit.run.n_cases": len(job.cases),
        "judgekit.run.config_sha256": manifest.config_sha256,
        "judgekit.version": manifest.versions.get("judgekit"),
    }
    return run_span(manifest.kind, facts)


async def prepare(job: RunJob, observer: Observer, executor: Executor | None = None) -> None:
    """Collect outputs and write everything that is judged, before any call to a judge.

    With an executor, its workers have judged all shards before, and what they did is taken over.
    """
    folder = job.folder
    if job.found is not None:
        folder.repair_tail(JUDGMENTS)
    folder.write_json(CONFIG, dict(job.resolved))
    plans = [*job.judges, *(plan.second for plan in job.spot_checks)]
    prompts = {f"{plan.prompt.judge}/{plan.prompt.version}": plan.prompt for plan in plans}
    folder.write_prompts({**job.kept_prompts, **prompts})
    _write_manifest(job, "running")
    if job.corpus_chunk_ids is not None:
        folder.write_lines(CHUNK_IDS, id_lines(job.corpus_chunk_ids))
    cases: Iterable[Case] = folder.written(CASES, job.cases, _case_line)
    if executor is not None or job.shards or not isinstance(job.system, Recorded):
        deque(cases, maxlen=0)
        job.cases = cases = Streamed(folder.cases, len(job.cases))
    if executor is not None:
        await judge_shards(job, executor, observer)
    if job.shards:
        take_over(job)
    check = DataCheck(job)
    await _write_data(job, cases, observer, check)
    job.manifest = job.manifest.model_copy(update={"versions": {**job.manifest.versions, **check.versions}})
    if job.parent is not None:
        copy_judgments(job, job.parent)
    job.is_prepared = True
    is_shard = job.manifest.shard is not None
    for component in job.judge_components:
        job.warnings.extend(check_applies(component, job.unjudged[component.name], check, is_shard=is_shard))
    job.is_begun = True


async def _write_data(job: RunJob, cases: Iterable[Case], observer: Observer, check: DataCheck) -> None:
    """Read cases and outputs through once, have them looked at, and write them and what is asked about them."""
    folder = job.folder
    said: Notices = []
    try:
        pairs = await collect_outputs(job, cases, observer, check)
        if job.parent is None:
            inputs = judge_inputs(job.judge_components, pairs, job.unjudged, said)
        else:
            inputs = stored_inputs(job, job.parent, pairs, job.unjudged)
        folder.write_lines(JUDGE_INPUTS, map(input_line, inputs))
        job.cases = Streamed(folder.cases, len(job.cases))
        job.warnings += [*check.notices(), *said]
    except InputError as error:
        if isinstance(job.system, Recorded):
            raise
        kept = f"the system's outputs are kept; name them as system.path: {folder.path / OUTPUTS}"
        raise InputError(f"{error}\n{kept}") from None


async def judge(job: RunJob, observer: Observer) -> None:
    """All judges side by side, then the spot check."""
    done, spending = _stored(job)
    others = other_spot_checks(job)
    job.spot_check_records = [*own_spot_checks(job), *others]

    async def ask(wanted: Sequence[Wanted], left: Set[str] | None = None) -> None:
        """Every judgment is on disk afterwards; that it can be written is known before a model is asked what it is."""

        async def once(done: Done, spending: Spending) -> None:
            sink = Recorder(job.folder.path / JUDGMENTS, job.cache)
            try:
                if left is not None:
                    await _ready(job, left)
                if left is None or left:
                    await Passes(job.cache, sink, spending, observer).run_stored(job.folder, wanted, done)
            finally:
                sink.close()
                if sink.cache_warning is not None:
                    job.warnings.append(("cache_not_written", sink.cache_warning))

        if goes_by_batch(job):
            await in_rounds(job, observer, once, partial(_stored, job))
        else:
            await once(done, spending)

    async def ask_again(wanted: Sequence[Wanted]) -> None:
        """The samples are on disk before anything is asked."""
        job.spot_check_records = [*(plan.record for plan in spot_checks), *others]
        write_spot_checks(job.folder, job.spot_check_records)
        if wanted:
            await ask(wanted)

    judges: list[Wanted] = [(plan, None) for plan in job.judges if plan.judge.name not in job.kept]
    spot_checks = second_opinions(job)
    samples = [
        (plan.second, plan.order if may_grow(job.folder, plan) else plan.record.case_ids) for plan in spot_checks
    ]
    samples += [(plan.second, plan.record.case_ids) for plan in begun_repeats(job)]
    await ask(judges, models_left(job.folder, [*judges, *samples], done))
    spot_checks += all_repeats(job)
    await ask_samples(job.folder, spot_checks, ask_again)


async def _ready(job: RunJob, left: Set[str]) -> None:
    """Ask of the models that something is left for what they are; the others are what they were."""
    for name, runtime in job.models.items():
        if name not in left:
            runtime.recall(job.manifest.models.get(name, {}))
    if job.shards:
        check_keys(job, left)
    for name, runtime in job.models.items():
        if name in left:
            await runtime.ready()
    # What the models are is kept before anything is paid for, so that a resume after a kill knows it too.
    _write_manifest(job, "running")


def _stored(job: RunJob) -> tuple[Done, Spending]:
    """The judgments that count so far, and what was spent; counts on which models answered."""
    spending = Spending(job.config.budget if job.lease is None else job.lease.grown(0, 0, 0.0), job.lease)
    seen = {name: Seen() for name in job.models}
    for judgment in job.folder.judgments():
        spending.add(judgment)
        if not (judgment.from_cache or judgment.copied_from) and judgment.model_id in seen:
            seen[judgment.model_id].add(judgment)
    for name, runtime in job.models.items():
        runtime.guard.recount(seen[name])
    done = StoredJudgments(job.folder)
    return Final(done) if job.shards else done, spending


def conclude(job: RunJob, seconds: float) -> RunSummary:
    """Write the figures of a finished run.

    Raises:
        ProviderError: a judge has not one verdict; the figures are written all the same.
    """
    summary = _write_figures(job, "complete", None, seconds)
    if is_traced():
        trace_scores(job, summary)
    for name, record in summary.judges.items():
        if record["n_failed"] and not record["n_judged"]:
            kinds = ", ".join(f"{kind} ({n})" for kind, n in record["failures"].items())
            raise ProviderError(f"judge {name}: measured 0 of {record['n_failed']}, every call failed: {kinds}")
    return summary


def close_early(job: RunJob, status: RunStatus, reason: str, seconds: float) -> None:
    """Write what there is of a run that stopped; on a full disk at least try the manifest.

    A complete run stays one, whatever comes of asking again: each of its questions has a judgment, if only a failure.
    """
    if job.reopened is not None:
        with suppress(JudgekitError):
            if not job.is_prepared:
                job.folder.write_manifest(job.reopened.manifest)
                return
            if not _is_missing_any(job):
                _write_figures(job, "complete", None, seconds)
                return
    try:
        if status == "interrupted" and job.is_prepared:
            _write_figures(job, status, reason, seconds)
        else:
            _write_manifest(job, status, reason, seconds)
    except JudgekitError:
        with suppress(StorageError):
            _write_manifest(job, status, reason, seconds)


def _is_missing_any(job: RunJob) -> bool:
    """Whether a question has no judgment at all, as when a damaged line was deleted."""
    asked = {plan.judge.name for plan in job.judges if plan.judge.name not in job.kept}
    items = (item for item in job.folder.judge_inputs() if item.judge in asked)
    with StoredJudgments(job.folder) as done:
        return any(JudgmentKey("primary", item.judge, item.case_id) not in done for item in items)


def _write_figures(job: RunJob, status: RunStatus, reason: str | None, seconds: float) -> RunSummary:
    finished_at = job.now().isoformat(timespec="milliseconds")
    wall_seconds = job.manifest.wall_seconds + seconds
    job.manifest = job.manifest.model_copy(update={"wall_seconds": wall_seconds, "finished_at": finished_at})
    _settle_panels(job)
    if status == "complete" and job.spot_check_records:
        job.spot_check_records = [record.model_copy(update={"complete": True}) for record in job.spot_check_records]
        write_spot_checks(job.folder, job.spot_check_records)
    summary = summarise(job, status, reason)
    if status == "complete":
        if job.manifest.shard is None:
            before = () if job.reopened is None else job.reopened.summary.gates
            summary = summary.model_copy(update={"gates": hold_gates(job.config.gates, job.folder, summary, before)})
        notices = coverage_notices(job, summary) if job.parent is None else add_to_history(job, summary)
        summary = summary.model_copy(update={"warnings": (*summary.warnings, *notices)})
    write_summary(job.folder, summary)
    counts = {"cases": len(job.cases)}
    for name, record in summary.judges.items():
        counts[f"{name}.judged"] = record["n_judged"]
        counts[f"{name}.failed"] = record["n_failed"]
    job.manifest = job.manifest.model_copy(update={"counts": counts})
    _write_manifest(job, status, reason)
    return closed(job.folder, summary, report=job.config.report and job.manifest.shard is None)


def _settle_panels(job: RunJob) -> None:
    """Keep what the panels say of the cases that all their members have been asked about."""
    if not job.panels:
        return
    with StoredJudgments(job.folder) as stored, closing(Recorder(job.folder.path / JUDGMENTS, job.cache)) as sink:
        for judgments in map(that_count, stored.by_case(stored.ids())):
            for item in (item for panel in job.panels for item in rule(panel, judgments)):
                if not says_the_same(judgments.get(JudgmentKey.of(item)), item):
                    sink.put(line_of(item), None, None)


def _write_manifest(job: RunJob, status: RunStatus, reason: str | None = None, seconds: float = 0.0) -> None:
    models = dict(job.manifest.models)
    for name, runtime in job.models.items():
        # What is not found out yet, or not again, does not take the place of what was.
        before = models.get(name, {})
        record = runtime.record()
        models[name] = {**record, **{key: before[key] for key in before if record.get(key) is None}}
    update = {"status": status, "reason": reason, "models": models, "wall_seconds": job.manifest.wall_seconds + seconds}
    job.manifest = job.manifest.model_copy(update=update)
    job.folder.write_manifest(job.manifest)


def _case_line(case: Case) -> bytes:
    return case.model_dump_json(exclude_defaults=True).encode()
