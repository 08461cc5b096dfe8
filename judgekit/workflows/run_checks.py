"""The checks that a run makes itself: second opinions on its verdicts, and its judges asked again about older ones."""

from collections.abc import Set
from datetime import datetime

from judgekit.analysis.drift_points import AT_ONCE
from judgekit.core.judgments import JudgmentKey, last_judgments
from judgekit.core.spot_checks import RUN_CHECK, RUN_CHECKS, RUN_REPEAT, SpotCheckRecord, sample_size
from judgekit.engine.judgment_draft import JudgePlan
from judgekit.workflows.job import RunJob, SpotCheckPlan
from judgekit.workflows.judge_reliability import DrawnSpotCheck, drawn, spot_check_kind


def own_checks(job: RunJob) -> list[SpotCheckRecord]:
    """The run's own checks as they were made before a complete run was gone on with."""
    return [record for record in job.store.checks() if record.complete and is_own(job, record)]


def is_own(job: RunJob, record: SpotCheckRecord) -> bool:
    """Whether the run, as it is configured now, makes this check itself."""
    judges = {check.primary.judge.name for check in job.spot_checks}
    if record.check == RUN_REPEAT:
        judges = {plan.judge.name for plan in job.repeats}
    return record.check in RUN_CHECKS and record.judge in judges


def check_plan(job: RunJob, check: SpotCheckPlan) -> DrawnSpotCheck:
    """The second opinion on one judge, with its sample drawn."""
    second, name, wanted = check.second, check.primary.judge.name, check.check
    ids = [item.case_id for item in job.store.judge_inputs() if item.judge == name]
    n = sample_size(wanted.n, len(ids))
    order = drawn(ids, n, job.draws.rng, adaptive=wanted.adaptive)
    # A sample that has grown before a complete run is gone on with does not shrink.
    own = [record for record in own_checks(job) if (record.judge, record.check) == (name, RUN_CHECK)]
    n_grown = max((len(record.case_ids) for record in own), default=0)
    record = SpotCheckRecord(
        check=RUN_CHECK,
        judge=name,
        kind=spot_check_kind(
            other_model=check.primary.runtime.model_id != second.runtime.model_id,
            other_prompt=check.primary.prompt.sha256 != second.prompt.sha256,
        ),
        model_id=second.runtime.model_id,
        model=second.runtime.config.model,
        prompt_version=second.prompt.version,
        prompt_sha256=second.prompt.sha256,
        seed=job.draws.seed,
        n_population=len(ids),
        case_ids=order[: max(n, n_grown if wanted.adaptive else 0)],
        threshold=wanted.threshold,
        adaptive=wanted.adaptive,
        n_start=n,
    )
    return DrawnSpotCheck(record, second, order)


def begun_repeats(job: RunJob) -> list[DrawnSpotCheck]:
    """Repeats whose sample the run has drawn before, with that sample."""
    stored = {record.judge: record for record in job.store.checks() if record.check == RUN_REPEAT}
    plans = [(stored[plan.judge.name], plan) for plan in job.repeats if plan.judge.name in stored]
    return [DrawnSpotCheck(record, plan, record.case_ids) for record, plan in plans]


def repeat_plans(job: RunJob) -> list[DrawnSpotCheck]:
    """Judges to ask again about verdicts older than a day, with their samples; to be called once all are judged.

    A sample that was drawn before is kept. A complete run that is gone on with draws none: its check was made, or there
    was nothing to check at its time.
    """
    plans = begun_repeats(job)
    begun = {plan.record.judge for plan in plans}
    new = [plan for plan in job.repeats if plan.judge.name not in begun]
    if job.reopened is not None or not new:
        return plans
    older = _older_than_a_day(job, {plan.judge.name for plan in new})
    return [*plans, *(_repeat_plan(job, plan, ids) for plan in new if (ids := older[plan.judge.name]))]


def _older_than_a_day(job: RunJob, judges: Set[str]) -> dict[str, list[str]]:
    """By judge, the cases with such a verdict, in the order of the judge inputs."""
    judgments = last_judgments(item for item in job.store.judgments() if item.judge in judges)
    newest = job.now() - AT_ONCE
    older = {
        key
        for key, item in judgments.items()
        if key.role == "primary" and item.verdict is not None and datetime.fromisoformat(item.created_at) < newest
    }
    found: dict[str, list[str]] = {judge: [] for judge in judges}
    for item in job.store.judge_inputs():
        if JudgmentKey("primary", item.judge, item.case_id) in older:
            found[item.judge].append(item.case_id)
    return found


def _repeat_plan(job: RunJob, plan: JudgePlan, ids: list[str]) -> DrawnSpotCheck:
    assert job.config.spot_check is not None  # noqa: S101  # for the type checker: repeats come from it
    assert job.repeat_draws is not None  # noqa: S101  # the same
    wanted = job.config.spot_check
    sample = drawn(ids, wanted.repeat_n, job.repeat_draws.rng, adaptive=False)
    record = SpotCheckRecord(
        check=RUN_REPEAT,
        judge=plan.judge.name,
        kind="repeat",
        model_id=plan.runtime.model_id,
        model=plan.runtime.config.model,
        prompt_version=plan.prompt.version,
        prompt_sha256=plan.prompt.sha256,
        seed=job.repeat_draws.seed,
        n_population=len(ids),
        case_ids=sample,
        threshold=wanted.threshold,
        n_start=wanted.repeat_n,
    )
    return DrawnSpotCheck(record, plan, sample)
