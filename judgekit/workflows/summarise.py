"""From a run's outputs and judgments to its scores and figures."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from judgekit.analysis.asking import asking, not_asked
from judgekit.analysis.costs import cost_record
from judgekit.analysis.indexing import other_index
from judgekit.analysis.summary import RunTally, judge_record
from judgekit.core.config import is_local
from judgekit.core.judgments import TRANSPORT_KINDS, Judgment, JudgmentKey, last_judgments
from judgekit.core.runs import METRICS_VERSION, Notice, RunStatus, RunSummary
from judgekit.core.scores import Failed, NotApplicable
from judgekit.core.spot_checks import RUN_CHECKS, SpotCheckRecord
from judgekit.engine.judgment_draft import JudgePlan
from judgekit.engine.model_runtime import ModelRuntime
from judgekit.workflows.case_scores import Scored, Scoring, score_cases
from judgekit.workflows.job import RunJob
from judgekit.workflows.judge_reliability import clusters_of, parts_that_stand, reliability_of, sampled
from judgekit.workflows.panels import PANEL, Panel, member_failures, record_of_panel
from judgekit.workflows.rejudge import other_builds, rejudged


def summarise(
    job: RunJob,
    unjudged: Mapping[str, Mapping[str, NotApplicable | Failed]],
    checks: Sequence[SpotCheckRecord],
    *,
    status: RunStatus,
    reason: str | None,
) -> RunSummary:
    """Write scores.jsonl and the reports of metric families, and return the figures."""
    judgments = last_judgments(job.store.judgments(), sampled(checks))
    scoring = Scoring(job.config, job.metrics, job.judge_components, job.faults)
    scored = score_cases(scoring, job.store, job.cases, unjudged, judgments)
    before = None if job.reopened is None else job.reopened.summary.judge_reliability
    clusters = clusters_of(job.config.cluster_by, job.cases, checks)
    stand, to_redo = parts_that_stand(before, job.judge_components)
    reliability, unstable = reliability_of(job.judge_components, checks, judgments, stand, clusters)
    warnings = [*_warnings(job, scored, judgments), *to_redo, *unstable, *_not_asked(job, checks, judgments)]
    cost = cost_record(job.store.judgments(), job.price_list)
    warnings += _spending_warnings(job, cost)
    return RunSummary(
        run_id=job.manifest.run_id,
        name=job.manifest.name,
        created_at=job.manifest.created_at,
        status=status,
        reason=reason,
        config_sha256=job.manifest.config_sha256,
        errors=job.config.errors,
        min_n=job.config.min_n,
        cluster_by=job.config.cluster_by,
        n_gates=len(job.config.gates),
        cases=dict(job.cases_record),
        overall=scored.overall,
        slices=scored.tally.slices(),
        judge_reliability=reliability,
        rejudged=rejudged(job, judgments),
        judges=_judge_records(job, judgments),
        latency=scored.tally.latency(),
        cost=cost,
        operational=_operational(job, scored.tally),
        indexing_coverage=None if job.indexing is None else dict(job.indexing),
        extraction=scored.digests.get("extraction"),
        abstention=scored.abstention,
        metrics_version=METRICS_VERSION,
        warnings=tuple(Notice(code=code, message=message) for code, message in dict.fromkeys(warnings)),
    )


def _operational(job: RunJob, tally: RunTally) -> dict[str, Any]:
    return {
        **tally.operational(),
        "wall_seconds": job.manifest.wall_seconds,
        "n_resumed": job.manifest.n_resumed,
        "versions": dict(job.manifest.versions),
    }


def _judge_records(job: RunJob, judgments: Mapping[JudgmentKey, Judgment]) -> dict[str, dict[str, Any]]:
    panels = {panel.judge.name: panel for panel in job.panels}
    return {
        plan.judge.name: _judge_record(plan, judgments)
        if plan.role == "primary"
        else _panel_record(panels[plan.judge.name], judgments)
        for plan in job.judges
    }


def _panel_record(panel: Panel, judgments: Mapping[JudgmentKey, Judgment]) -> dict[str, Any]:
    first = panel.members[0]
    record = record_of_panel(panel, judgments)
    notes = dict.fromkeys(member["note"] for member in record["members"].values() if member["note"])
    own = [item for key, item in judgments.items() if key.role == "primary" and key.judge == panel.judge.name]
    about = {
        "prompt_version": first.prompt.version,
        "prompt_sha256": first.prompt.sha256,
        "model_id": PANEL,
        "model": panel.title,
        "provider": PANEL,
        "build_hash": None,
        "is_llm": all(member["is_llm"] for member in record["members"].values()),
        "note": ", ".join(notes) or None,
        "panel": record,
    }
    return judge_record(own, about)


def _judge_record(plan: JudgePlan, judgments: Mapping[JudgmentKey, Judgment]) -> dict[str, Any]:
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


def _warnings(job: RunJob, scored: Scored, judgments: Mapping[JudgmentKey, Judgment]) -> list[tuple[str, str]]:
    found = [*job.warnings, *scored.warnings]
    for name, runtime in job.models.items():
        found += _model_warnings(name, runtime)
    found += other_builds(job, judgments)
    found += [("indexing_of_other_version", line) for line in other_index(job.indexing, job.manifest.versions)]
    found += _failures(job.manifest.run_id, judgments)
    for panel in job.panels:
        found += member_failures(panel, judgments)
    return found


def _spending_warnings(job: RunJob, cost: Mapping[str, Any]) -> list[tuple[str, str]]:
    """What is not known of tokens and money; who runs a model himself pays nobody for it."""
    found = []
    for name in cost["unpriced_models"]:
        runtime = job.models.get(name)
        if runtime is None or is_local(runtime.config.base_url):
            continue
        if runtime.price is None:
            hint = f"set models.{name}.prices"
            found.append(("unknown_price", f"the price of {name} is not known, so cost is null; {hint}"))
    if cost["n_without_usage"]:
        text = f"the server did not count the tokens of {cost['n_without_usage']} calls, so they are not known"
        found.append(("tokens_not_known", text))
    return found


def _not_asked(
    job: RunJob, checks: Sequence[SpotCheckRecord], judgments: Mapping[JudgmentKey, Judgment]
) -> list[tuple[str, str]]:
    """Judges that the run did not ask, since the cache answered."""
    repeats = {(record.judge, record.check) for record in checks if record.kind == "repeat"}
    found = {}
    for name in {plan.judge.name: None for plan in job.judges if plan.judge.name not in job.kept}:
        plans = [plan for plan in job.judges if plan.judge.name == name]
        if all(plan.runtime.provider.needs_network for plan in plans):
            role = plans[0].role
            verdicts = [item for key, item in judgments.items() if (key.role, key.judge) == (role, name)]
            again = [item for key, item in judgments.items() if key.judge == name and (name, key.check) in repeats]
            found[name] = asking(verdicts, again)
    return not_asked(found, job.now())


def _failures(run_id: str, judgments: Mapping[JudgmentKey, Judgment]) -> list[tuple[str, str]]:
    """How many calls gave no verdict, and how those are asked again that failed on the way."""
    failed = {key: item.failure.kind for key, item in judgments.items() if item.failure is not None}
    found = []
    n_primary = sum(key.role == "primary" for key in failed)
    if n_primary:
        found.append(("judge_failures", f"{n_primary} judge calls gave no verdict; they are counted in n_error"))
    # Checks that were added to the run are made again by their own command.
    asked = {key: kind for key, kind in failed.items() if key.role != "spot_check" or key.check in RUN_CHECKS}
    kinds = Counter(kind for kind in asked.values() if kind in TRANSPORT_KINDS)
    if kinds:
        named = ", ".join(f"{kind} {n}" for kind, n in sorted(kinds.items()))
        text = f"{kinds.total()} calls failed on the way ({named}); `judgekit run --resume {run_id}` asks them again"
        found.append(("failed_on_the_way", text))
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
    if len(guard.upstreams) > 1:
        shown = ", ".join(f"{name} ({n})" for name, n in guard.upstreams.most_common(5))
        hint = 'pin one with "upstream"'
        found.append(("upstream_changed", f"model {name}: replies were served by several upstreams, {shown}; {hint}"))
    if takes is not None and not takes.seed:
        found.append(("seed_not_accepted", f"model {name} refuses a seed; it was left out"))
    reported = runtime.identity.build_hash if runtime.identity is not None else None
    if reported and not runtime.config.pin.build_hash and runtime.provider.needs_network:
        found.append(("not_pinned", f'model {name} is not pinned; add "build_hash": "{reported}"'))
    elif runtime.config.pin.allow_floating:
        found.append(("floating_model", f"model {name}: {runtime.config.model} may change at any time"))
    return found
