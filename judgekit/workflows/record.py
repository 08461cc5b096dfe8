"""Outputs of the system under test: recorded ones looked up, a live system asked, each output on disk as it comes."""

import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import redirect_stdout, suppress
from typing import Any

from judgekit.core.cases import Case, SystemOutput
from judgekit.core.masking import Masker
from judgekit.core.runs import OUTPUTS, PARTIAL_OUTPUTS, Notices
from judgekit.core.stored_text import as_stored, characters_kept
from judgekit.engine.passes import Observer
from judgekit.engine.system_calls import TRANSIENT, SystemCalls
from judgekit.metrics.gold_evidence import split_output
from judgekit.storage.recorder import Recorder
from judgekit.systems.recorded import Recorded
from judgekit.workflows.job import RunJob
from judgekit.workflows.preflight import DataCheck


async def collect_outputs(
    job: RunJob, cases: Iterable[Case], observer: Observer, check: DataCheck
) -> Iterator[tuple[Case, SystemOutput]]:
    """The cases, each with its output, which is written and looked at; outputs.jsonl is complete once all are read.

    What is on disk already is not asked again.

    In a run that stopped before it had all outputs, failures are asked again that may pass, such as a time-out, and
    those over which it stopped.

    Raises:
        ConfigError: the system cannot be asked so.
        InputError: an output does not fit its case or the others.
        ProviderError: it cannot be reached, or failed too often in a row.
        StorageError: an output cannot be written.
    """
    system, n_kept = job.system, characters_kept(job.config.store_text)
    if isinstance(system, Recorded):
        job.warnings.extend(system.warnings())
        recorded = ((case, as_stored(system.output(case), n_kept)) for case in cases)
        return check.passed(job.folder.written(OUTPUTS, recorded, lambda pair: _line(pair[1])))
    folder = job.folder
    if folder.has(OUTPUTS):
        return check.passed(zip(cases, folder.outputs(), strict=True))
    folder.repair_tail(PARTIAL_OUTPUTS)
    done = {output.case_id: output for output in _kept(list(folder.outputs(PARTIAL_OUTPUTS)))}
    left = [case for case in job.cases if case.id not in done]
    masker = Masker(system.secrets(job.surroundings))
    calls = SystemCalls(system, job.system_facts, job.cache, observer, masker, n_kept)
    if left:
        sink = Recorder(folder.path / PARTIAL_OUTPUTS, job.cache)

        def write(output: SystemOutput, reply: tuple[str, str] | None) -> None:
            job.is_begun = True  # what was asked is kept, whatever comes later
            done[output.case_id] = output
            sink.put(output.model_dump_json(exclude_defaults=True).encode(), reply, None)

        try:
            with redirect_stdout(sys.stderr):  # what a system prints must not come between the lines of --json
                async with system.session(job.surroundings) as ask:
                    await calls.run(ask, left, write)
        finally:
            sink.close()
    outputs = [split_output(done[case.id], job.heading_delimiter) for case in job.cases]
    folder.write_lines(OUTPUTS, map(_line, outputs))
    with suppress(OSError):
        (folder.path / PARTIAL_OUTPUTS).unlink(missing_ok=True)
    record = _system_record(calls, outputs)
    job.manifest = job.manifest.model_copy(update={"system": record})
    return check.passed(zip(cases, outputs, strict=True))


def _line(output: SystemOutput) -> bytes:
    return output.model_dump_json(exclude_defaults=True).encode()


def failure_notices(system: Mapping[str, Any], n_cases: int) -> Notices:
    """A warning if a live system failed on some cases.

    Args:
        system: of manifest.json.
        n_cases: cases of the run.
    """
    failures = system.get("failures")
    if not failures:
        return []
    kinds = ", ".join(f"{kind} {n}" for kind, n in failures.items())
    text = (
        f"system {system['name']} failed on {sum(failures.values())} of {n_cases} cases ({kinds}); they are in n_error"
    )
    return [("system_failures", text)]


def _kept(stored: Sequence[SystemOutput]) -> list[SystemOutput]:
    """Of the outputs of a recording that stopped, those that stand.

    Failures that may pass do not, nor those at the end, one after the other, over which it may have stopped.
    """
    n_last = next((number for number, output in enumerate(reversed(stored)) if output.error is None), len(stored))
    return [
        output
        for output in stored[: len(stored) - n_last]
        if output.error is None or output.error.kind not in TRANSIENT
    ]


def _system_record(calls: SystemCalls, outputs: Sequence[SystemOutput]) -> dict[str, Any]:
    """What manifest.json says of a live system and of how it was asked, by the process that asked last."""
    failed = Counter(output.error.kind for output in outputs if output.error is not None)
    return {
        "name": calls.system.name,
        "version": calls.system.version,
        "n_requests": calls.n_requests,
        "n_from_cache": calls.tally.n_from_cache,
        "failures": dict(sorted(failed.items())),
    }
