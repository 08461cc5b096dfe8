"""From a run's outputs and judgments to its scores and figures."""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from judgekit.analysis.estimates import Figures
from judgekit.analysis.indexing import other_index
from judgekit.analysis.joint import joint_columns, joint_outcomes
from judgekit.analysis.reliability import Pair, judge_reliability, spot_check_report
from judgekit.analysis.summary import RunTally, cost_record, judge_record
from judgekit.core.cases import Case, SystemOutput
from judgekit.core.components import Judge, Metric, MetricReport
from judgekit.core.config import is_local
from judgekit.core.judgments import JudgeFailure, Judgment, Verdict
from judgekit.core.runs import SCORES, Notice, RunStatus, RunSummary
from judgekit.core.scores import Failed, NotApplicable, Outcome, Outcomes
from judgekit.workflows.job import JudgmentKey, RunJob, SpotCheckPlan, last_judgments
from judgekit.workflows.model_runtime import ModelRuntime


def summarise(
    job: RunJob,
    outputs: Sequence[SystemOutput],
    unjudged: Mapping[str, Mapping[str, NotApplicable | Failed]],
    samples: Mapping[str, Sequence[str]],
    *,
    status: RunStatus,
    reason: str | None,
) -> RunSummary:
    """Write scores.jsonl and the reports of metric families, and return the figures."""
    judgments = last_judgments(job.store.judgments())
    components = [*job.metrics, *job.judge_components]
    columns = [column for component in components for column in component.columns()]
    joint = joint_columns(columns)
    columns += joint
    pooled = [figure for component in components for figure in component.pooled()]
    tally = RunTally(columns, pooled, job.config.slices, job.config.errors)
    reports = {metric.name: report for metric in job.metrics if (report := metric.open_report()) is not None}
    metrics = [reports.get(metric.name, metric) for metric in job.metrics]

    def lines() -> Iterator[bytes]:
        for case, output in zip(job.cases, outputs, strict=False):
            outcomes = _metric_outcomes(job, metrics, case, output)
            outcomes.update(_judge_outcomes(job, case, unjudged, judgments))
            if joint:
                outcomes.update(joint_outcomes(outcomes))
            tally.add(case, output, outcomes)
            for name, outcome in outcomes.items():
                yield _score_line(case.id, name, outcome)

    job.store.write_lines(SCORES, lines())
    for judgment in judgments.values():
        if judgment.latency_seconds is not None and judgment.role == "primary":
            tally.add_judge_latency(judgment.latency_seconds)
    reliability, unstable = _reliability(job, samples, judgments)
    overall = tally.overall()
    digests = _write_reports(job, reports, overall)
    warnings = _warnings(job, tally, judgments) + unstable
    warnings += [warning for report in reports.values() for warning in report.warnings()]
    return RunSummary(
        run_id=job.manifest.run_id,
        name=job.manifest.name,
        created_at=job.manifest.created_at,
        status=status,
        reason=reason,
        config_sha256=job.manifest.config_sha256,
        errors=job.config.errors,
        cases=dict(job.cases_record),
        overall=overall,
        slices=tally.slices(),
        judge_reliability=reliability,
        judges={plan.judge.name: _judge_record(plan, judgments) for plan in job.judges},
        latency=tally.latency(),
        cost=cost_record(job.store.judgments(), job.price_list, _unpriced(job)),
        operational=_operational(job, tally),
        indexing_coverage=None if job.indexing is None else dict(job.indexing),
        extraction=digests.get("extraction"),
        warnings=tuple(Notice(code=code, message=message) for code, message in dict.fromkeys(warnings)),
    )


def _operational(job: RunJob, tally: RunTally) -> dict[str, Any]:
    return {
        **tally.operational(),
        "wall_seconds": job.manifest.wall_seconds,
        "n_resumed": job.manifest.n_resumed,
        "versions": dict(job.manifest.versions),
    }


def _write_reports(job: RunJob, reports: Mapping[str, MetricReport], overall: Figures) -> dict[str, dict[str, Any]]:
    """Write the files of metric families; returns what metrics.json shows of them, by family."""
    digests = {}
    for name, report in reports.items():
        document, digest = report.document(overall), report.digest()
        if document is not None:
            job.store.write_json(report.file_name, document)
        if digest is not None:
            digests[name] = digest
    return digests


def _metric_outcomes(
    job: RunJob, metrics: Sequence[Metric | MetricReport], case: Case, output: SystemOutput
) -> Outcomes:
    """Every deterministic score of one case."""
    found: Outcomes = {}
    for family, metric in zip(job.metrics, metrics, strict=True):
        try:
            found.update(metric.calculate(case, output))
        except Exception as error:  # noqa: BLE001  # one case must not cost the figures of all
            found.update(dict.fromkeys(_names(family), job.own_fault(family.name, case.id, error)))
    return found


def _judge_outcomes(
    job: RunJob,
    case: Case,
    unjudged: Mapping[str, Mapping[str, NotApplicable | Failed]],
    judgments: Mapping[JudgmentKey, Judgment],
) -> Outcomes:
    """Every score of one case by a judge."""
    found: Outcomes = {}
    for judge in job.judge_components:
        reason = unjudged.get(judge.name, {}).get(case.id)
        judgment = judgments.get(JudgmentKey("primary", judge.name, case.id))
        try:
            found.update(judge_outcomes(judge, reason, judgment))
        except Exception as error:  # noqa: BLE001
            found.update(dict.fromkeys(_names(judge), job.own_fault(judge.name, case.id, error)))
    return found


def _names(component: Metric | Judge) -> list[str]:
    return [column.name for column in component.columns()]


def judge_outcomes(judge: Judge, reason: NotApplicable | Failed | None, judgment: Judgment | None) -> Outcomes:
    """The scores of one judge for one case: from its verdict, or the reason why there is none."""
    outcome: Outcome
    if reason is not None:
        outcome = reason
    elif judgment is None:
        outcome = Failed("not judged", by_judge=True)
    elif judgment.verdict is not None:
        return judge.scores(judgment.verdict)
    else:
        kind = judgment.failure.kind if judgment.failure is not None else "internal"
        outcome = Failed(f"judge {kind}", by_judge=True)
    return {column.name: outcome for column in judge.columns()}


def _score_line(case_id: str, name: str, outcome: Outcome) -> bytes:
    value, reason = None, None
    if isinstance(outcome, NotApplicable):
        reason = f"n/a: {outcome.reason}"
    elif isinstance(outcome, Failed):
        reason = f"failed: {outcome.kind}"
    else:
        value = outcome
    score = {"case_id": case_id, "name": name, "value": value, "reason": reason}
    return json.dumps(score, ensure_ascii=False, allow_nan=False).encode()


def _judge_record(plan: Any, judgments: Mapping[JudgmentKey, Judgment]) -> dict[str, Any]:
    runtime = plan.runtime
    own = [judgment for key, judgment in judgments.items() if key.role == "primary" and key.judge == plan.judge.name]
    return judge_record(
        own,
        {
            "prompt_version": plan.prompt.version,
            "prompt_sha256": plan.prompt.sha256,
            "model_id": runtime.model_id,
            "model": runtime.config.model,
            "provider": runtime.config.provider,
            "build_hash": runtime.build_hash(),
            "is_llm": runtime.provider.is_llm,
            "note": runtime.provider.note,
        },
    )


def _reliability(
    job: RunJob, samples: Mapping[str, Sequence[str]], judgments: Mapping[JudgmentKey, Judgment]
) -> tuple[dict[str, Any] | None, list[tuple[str, str]]]:
    by_judge = {
        check.primary.judge.name: _spot_check(job, check, samples[check.primary.judge.name], judgments)
        for check in job.spot_checks
        if check.primary.judge.name in samples
    }
    if not by_judge:
        return None, []
    threshold = job.spot_checks[0].check.threshold
    report = judge_reliability(by_judge, threshold)
    unstable = report.pop("warnings")
    return report, unstable


def _spot_check(
    job: RunJob, check: SpotCheckPlan, sample: Sequence[str], judgments: Mapping[JudgmentKey, Judgment]
) -> dict[str, Any]:
    judge = check.primary.judge
    pairs = [
        Pair(
            case_id,
            _opinion(judgments.get(JudgmentKey("primary", judge.name, case_id))),
            _opinion(judgments.get(JudgmentKey("spot_check", judge.name, case_id))),
        )
        for case_id in sample
    ]
    verdicts = [
        judgment.verdict
        for key, judgment in judgments.items()
        if key.role == "primary" and key.judge == judge.name and judgment.verdict is not None
    ]
    return spot_check_report(
        pairs,
        pass_score=getattr(judge, "pass_score", None),
        seed=job.config.seed,
        threshold=check.check.threshold,
        against={
            "prompt_version": check.second.prompt.version,
            "prompt_sha256": check.second.prompt.sha256,
            "model_id": check.second.runtime.model_id,
            "model": check.second.runtime.config.model,
        },
        verdicts=verdicts,
    )


def _opinion(judgment: Judgment | None) -> Verdict | JudgeFailure:
    if judgment is None:
        return JudgeFailure(kind="internal", message="not judged")
    return judgment.verdict or judgment.failure or JudgeFailure(kind="internal", message="neither verdict nor failure")


def _warnings(job: RunJob, tally: RunTally, judgments: Mapping[JudgmentKey, Judgment]) -> list[tuple[str, str]]:
    found = [*job.warnings, *tally.warnings]
    for name, runtime in job.models.items():
        found += _model_warnings(name, runtime)
    found += [("indexing_of_other_version", line) for line in other_index(job.indexing, job.manifest.versions)]
    n_failed = sum(judgment.failure is not None for key, judgment in judgments.items() if key.role == "primary")
    if n_failed:
        found.append(("judge_failures", f"{n_failed} judge calls gave no verdict; they are counted in n_error"))
    called = {judgment.model_id for judgment in judgments.values() if judgment.n_requests}
    for name in _unpriced(job):
        if name in called and not is_local(job.models[name].config.base_url):
            found.append(("unknown_price", f"the price of {name} is not known, so cost is null"))
    return found


def _model_warnings(name: str, runtime: ModelRuntime) -> list[tuple[str, str]]:
    """What a reader must know about a model: moved, not pinned, not at temperature 0."""
    found = []
    guard, takes = runtime.guard, runtime.capabilities
    if guard.n_mismatches:
        found.append(("pin_mismatch", f"model {name}: {guard.n_mismatches} times, {guard.last_mismatch}"))
    if takes is not None and not takes.temperature:
        found.append(("temperature_not_accepted", f"model {name} refuses temperature 0; verdicts may vary"))
    if len(guard.fingerprints) > 1:
        shown = ", ".join(f"{name} ({n})" for name, n in guard.fingerprints.most_common(5))
        found.append(("fingerprint_changed", f"model {name}: the server changed under way, it says {shown}"))
    if takes is not None and not takes.seed:
        found.append(("seed_not_accepted", f"model {name} refuses a seed; it was left out"))
    reported = runtime.identity.build_hash if runtime.identity is not None else None
    if reported and not runtime.config.pin.build_hash and runtime.provider.needs_network:
        found.append(("not_pinned", f'model {name} is not pinned; add "build_hash": "{reported}"'))
    elif runtime.config.pin.allow_floating:
        found.append(("floating_model", f"model {name}: {runtime.config.model} may change at any time"))
    return found


def _unpriced(job: RunJob) -> list[str]:
    return [name for name, runtime in job.models.items() if runtime.price is None and runtime.provider.needs_network]
