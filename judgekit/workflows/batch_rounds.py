"""Judging in rounds: what goes by batch is collected, submitted, waited for, and judged with the replies.

A second question after a reply that cannot be read is known only then, so it goes into the batch of the next round.
"""

from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress

from judgekit.core.errors import Interrupted, StorageError
from judgekit.engine.batch_desk import BatchDesk
from judgekit.engine.batch_jobs import BatchJobs
from judgekit.engine.budget import Spending
from judgekit.engine.passes import Done, Observer
from judgekit.storage.batch_store import BatchStore
from judgekit.workflows.job import RunJob

LEFT_OUT = "batch_lines_left_out"
"""Code of the warning about lines of replies of which nothing was used."""


def goes_by_batch(job: RunJob) -> bool:
    """Whether a model is asked by batch, or was, or replies were imported."""
    modes = [runtime.config.mode for runtime in job.models.values()]
    return "batch" in modes or BatchStore.is_there(job.folder.path)


async def in_rounds(
    job: RunJob,
    observer: Observer,
    judge: Callable[[Done, Spending], Awaitable[None]],
    stored: Callable[[], tuple[Done, Spending]],
) -> None:
    """Judge once, and again after each round of batches, until nothing waits for one.

    Args:
        job: the run.
        observer: is told what is waited for.
        judge: judges what has no answer yet, given what was judged and spent so far.
        stored: what the run folder says of that.

    Raises:
        ProviderError: a batch is refused, or its server cannot be reached; the run can be resumed.
        Interrupted: the budget does not hold one more request.
        StorageError: the state of the batches cannot be stored.
    """
    store = BatchStore(job.folder.path)
    try:
        jobs = BatchJobs(store, job.models, job.manifest.run_id, observer)
        while await _round(job, store, lambda: judge(*stored())):
            await jobs.finish()
        _tell_left_out(job, store)
    finally:
        store.close()


async def _round(job: RunJob, store: BatchStore, judge: Callable[[], Awaitable[None]]) -> bool:
    """Judge what can be, and collect the rest; whether anything waits for a batch now."""
    desks = {}
    for name, runtime in job.models.items():
        if runtime.provider.batches() is not None:
            collects = runtime.config.mode == "batch"
            desks[name] = BatchDesk(store, name, job.folder.path, runtime.config.batches, collects=collects)
            runtime.desk = desks[name]
    try:
        await judge()
        n_written = sum(len(desk.end()) for desk in desks.values())
        # The failures that came of errors are on disk by now.
        store.commit()
    except BaseException:
        with suppress(StorageError):
            for desk in desks.values():
                desk.discard()
        raise
    finally:
        for name in desks:
            job.models[name].desk = None
    refusal = next((desk.refusal for desk in desks.values() if desk.refusal is not None), None)
    is_open = any(part.is_open for part in store.parts.values())
    if refusal is not None and not n_written and not is_open:
        raise Interrupted(refusal)
    return is_open and (refusal is not None or any(desk.n_postponed for desk in desks.values()))


def _tell_left_out(job: RunJob, store: BatchStore) -> None:
    """Warn of lines of replies that belong to no request, or of which there were two."""
    records: list[Mapping[str, int] | None] = [part.left_out for part in store.parts.values()]
    records += [source.get("left_out") for source in store.sources()]
    counts: Counter[str] = Counter()
    for record in records:
        counts.update(record or {})
    job.warnings[:] = [item for item in job.warnings if item[0] != LEFT_OUT]
    if counts:
        kinds = ", ".join(f"{kind} ({n})" for kind, n in sorted(counts.items()))
        job.warnings.append((LEFT_OUT, f"lines of batch replies that were not used, by kind: {kinds}"))
