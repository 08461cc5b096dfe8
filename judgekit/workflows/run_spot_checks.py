"""Spot checks that a run makes itself: second opinions on its verdicts, and its judges asked again about old ones."""

import hashlib
import random
import secrets
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from datetime import datetime

from judgekit.analysis.drift_points import AT_ONCE
from judgekit.core.judgments import JudgmentKey
from judgekit.core.spot_checks import RUN_REPEAT, RUN_SPOT_CHECK, RUN_SPOT_CHECKS, SpotCheckRecord, sample_size
from judgekit.core.streams import IdList
from judgekit.storage.stored_judgments import StoredJudgments
from judgekit.systems.recorded import Recorded
from judgekit.workflows.job import RunJob
from judgekit.workflows.judge_reliability import DrawnSpotCheck, drawn, spot_check_kind
from judgekit.workflows.setup import SpotCheckPlan, judged_cases


def own_spot_checks(job: RunJob) -> list[SpotCheckRecord]:
    """The run's own spot checks as they were made before a complete run was resumed."""
    return [record for record in job.folder.spot_checks() if record.complete and _is_own(job, record)]


def other_spot_checks(job: RunJob) -> list[SpotCheckRecord]:
    """Spot checks that the run does not make itself: carried over from the parent, or made between two parts of it."""
    carried = {(record.judge, record.check) for record in job.carried}
    later = [record for record in job.folder.spot_checks() if record.complete and not _is_own(job, record)]
    return [*job.carried, *(record for record in later if (record.judge, record.check) not in carried)]


def _is_own(job: RunJob, record: SpotCheckRecord) -> bool:
    """Whether the run, as it is configured now, makes this spot check itself."""
    judges = {plan.primary.judge.name for plan in job.spot_checks}
    if record.check == RUN_REPEAT:
        judges = {plan.judge.name for plan in job.repeats}
    return record.check in RUN_SPOT_CHECKS and record.judge in judges


def fresh_seed() -> int:
    """A seed that no other spot check has."""
    return secrets.randbits(32)


def second_opinions(job: RunJob) -> list[DrawnSpotCheck]:
    """The second opinion on each judge, with its sample drawn; a shard has its part of the sample of the whole."""
    seed = _seed(job)
    own = own_spot_checks(job)
    here = _asked_about(job, {plan.primary.judge.name for plan in job.spot_checks})
    whole = {name: job.judged_in_file.get(name, ids) for name, ids in here.items()}
    plans = []
    for spot_check, n, may_grow_to in _samples(job, whole, seed):
        second, name, wanted = spot_check.second, spot_check.primary.judge.name, spot_check.wanted
        # A sample that has grown before a complete run is resumed does not shrink.
        before = [record for record in own if (record.judge, record.check) == (name, RUN_SPOT_CHECK)]
        n_grown = max((len(record.case_ids) for record in before), default=0)
        order = may_grow_to
        case_ids = order[: max(n, n_grown if wanted.adaptive else 0)]
        if job.manifest.shard is not None:  # which cannot tell whether the whole is decided, so its part does not grow
            order = case_ids = _those_in(here[name], case_ids)
        record = SpotCheckRecord(
            check=RUN_SPOT_CHECK,
            judge=name,
            kind=spot_check_kind(
                other_model=spot_check.primary.runtime.model_id != second.runtime.model_id,
                other_prompt=spot_check.primary.prompt.sha256 != second.prompt.sha256,
            ),
            model_id=second.runtime.model_id,
            model=second.runtime.config.model,
            prompt_version=second.prompt.version,
            prompt_sha256=second.prompt.sha256,
            seed=seed,
            n_population=len(whole[name]),
            case_ids=case_ids,
            threshold=wanted.threshold,
            adaptive=wanted.adaptive,
            n_start=n,
        )
        plans.append(DrawnSpotCheck(record, second, order))
    return plans


def _samples(
    job: RunJob, asked_about: Mapping[str, Sequence[str]], seed: int
) -> Iterator[tuple[SpotCheckPlan, int, tuple[str, ...]]]:
    """Each spot check, with the number of cases that it begins with, and those that it may grow to."""
    rng = random.Random(seed)  # noqa: S311  # a sample, not a secret
    for spot_check in job.spot_checks:
        name, wanted = spot_check.primary.judge.name, spot_check.wanted
        if job.samples is not None:
            yield spot_check, len(job.samples[name]), tuple(job.samples[name])
            continue
        n = sample_size(wanted.n, len(asked_about[name]))
        yield spot_check, n, drawn(asked_about[name], n, rng, adaptive=wanted.adaptive)


def samples_for_shards(job: RunJob) -> dict[str, Sequence[str]] | None:
    """By judge, what the spot check of a run draws, for the shards of the run; None: there is nothing to draw yet."""
    if not job.spot_checks or not isinstance(job.system, Recorded):
        return None
    asked_about = judged_cases(job.config, job.system, job.judges, job.cases)
    return {plan.primary.judge.name: order[:n] for plan, n, order in _samples(job, asked_about, _seed(job))}


def _asked_about(
    job: RunJob, judges: Set[str], is_meant: Callable[[str, str], bool] = lambda _judge, _case_id: True
) -> dict[str, IdList]:
    """By judge, the cases that it is asked about and that are meant, in the order of the judge inputs."""
    found = {judge: IdList() for judge in judges}

    def is_read(judge: str, case_id: str) -> bool:
        if judge in found and is_meant(judge, case_id):
            found[judge].append(case_id)
        return False

    job.folder.n_judge_inputs(is_read)
    return found


def _those_in(known: Iterable[str], case_ids: Sequence[str]) -> tuple[str, ...]:
    """Of some ids those that are known, in their order."""
    here = set(case_ids).intersection(known)
    return tuple(case_id for case_id in case_ids if case_id in here)


def _seed(job: RunJob) -> int:
    """The seed of the spot checks so far, that of the config, one that all shards of the data share, or a fresh one."""
    stored = [record.seed for record in job.folder.spot_checks() if record.check == RUN_SPOT_CHECK]
    if stored or job.config.seed is not None:
        return stored[0] if stored else job.config.seed or 0
    if job.manifest.shard is None and not job.manifest.shards and job.executor is None:
        return fresh_seed()
    return _hashed(f"{job.cases_sha256} {job.manifest.name}")


def begun_repeats(job: RunJob) -> list[DrawnSpotCheck]:
    """Repeats whose sample the run has drawn before, with that sample."""
    stored = {record.judge: record for record in job.folder.spot_checks() if record.check == RUN_REPEAT}
    plans = [(stored[plan.judge.name], plan) for plan in job.repeats if plan.judge.name in stored]
    return [DrawnSpotCheck(record, plan, record.case_ids) for record, plan in plans]


def all_repeats(job: RunJob) -> list[DrawnSpotCheck]:
    """Judges to ask again about verdicts older than a day, with their samples; to be called once all are judged.

    A sample that was drawn before is kept. A complete run that is resumed draws none: its spot check was made, or there
    was nothing to check at its time.
    """
    plans = begun_repeats(job)
    begun = {plan.record.judge for plan in plans}
    new = [plan for plan in job.repeats if plan.judge.name not in begun]
    if job.reopened is not None or job.config.spot_check is None or not new:
        return plans
    older = _older_than_a_day(job, {plan.judge.name for plan in new})
    wanted, seed = job.config.spot_check, _repeat_seed(job.config.seed, job.manifest.run_id)
    rng = random.Random(seed)  # noqa: S311  # a sample, not a secret
    for plan in new:
        if not older[plan.judge.name]:
            continue
        sample = drawn(older[plan.judge.name], wanted.repeat_n, rng, adaptive=False)
        record = SpotCheckRecord(
            check=RUN_REPEAT,
            judge=plan.judge.name,
            kind="repeat",
            model_id=plan.runtime.model_id,
            model=plan.runtime.config.model,
            prompt_version=plan.prompt.version,
            prompt_sha256=plan.prompt.sha256,
            seed=seed,
            n_population=len(older[plan.judge.name]),
            case_ids=sample,
            threshold=wanted.threshold,
            n_start=wanted.repeat_n,
        )
        plans.append(DrawnSpotCheck(record, plan, sample))
    return plans


def _older_than_a_day(job: RunJob, judges: Set[str]) -> dict[str, IdList]:
    """By judge, the cases with such a verdict, in the order of the judge inputs."""
    newest = job.now() - AT_ONCE
    with StoredJudgments(job.folder) as judgments:

        def is_older(judge: str, case_id: str) -> bool:
            item = judgments.get(JudgmentKey("primary", judge, case_id))
            return item is not None and item.verdict is not None and datetime.fromisoformat(item.created_at) < newest

        return _asked_about(job, judges, is_older)


def _repeat_seed(seed: int | None, run_id: str) -> int:
    """A fresh seed, or if the config gives one, a seed that follows from it and the run.

    Weekly runs with one seed would ask about the same cases each week, and borderline ones would count again and again.
    """
    if seed is None:
        return fresh_seed()
    return _hashed(f"{seed} {run_id}")


def _hashed(text: str) -> int:
    return int(hashlib.sha256(text.encode()).hexdigest()[:8], 16)
