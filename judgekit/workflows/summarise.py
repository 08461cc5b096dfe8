"""From a run's outputs and judgments to its scores and figures, and what a reader of them must know."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from judgekit.analysis.criteria_findings import criteria_warnings
from judgekit.analysis.indexing_coverage import other_index
from judgekit.analysis.judge_calls import JudgeCalls, ReplySources, cache_warnings
from judgekit.analysis.preferences import preference_record
from judgekit.analysis.slices import Clusters
from judgekit.core.components import Judge
from judgekit.core.judgments import TRANSPORT_KINDS, Judgment, JudgmentKey, Verdict
from judgekit.core.request_fields import is_local
from judgekit.core.runs import METRICS_VERSION, Notice, Notices, RunStatus, RunSummary
from judgekit.core.spot_checks import RUN_SPOT_CHECKS, SpotCheckRecord
from judgekit.core.verdict_kinds import Criteria, Preference
from judgekit.engine.model_runtime import ModelRuntime
from judgekit.engine.requests import JudgePlan
from judgekit.judges.from_rubric import EQUAL
from judgekit.storage.run_index import judged_before
from judgekit.storage.stored_judgments import StoredJudgments
from judgekit.workflows.case_scores import CaseScorers, score_cases
from judgekit.workflows.closing import INDEX_SECONDS
from judgekit.workflows.job import RunJob
from judgekit.workflows.judge_reliability import clusters_of, parts_that_stand, reliability_of
from judgekit.workflows.panel_rulings import PANEL, Panel, member_failures, model_facts, record_of_panel
from judgekit.workflows.record import failure_notices
from judgekit.workflows.rejudge_history import beside_parent

MOST_MOVED = 0.02
"""Share of the cases by which the coverage of a judge may differ from the baseline's without a warning."""


def summarise(job: RunJob, status: RunStatus, reason: str | None) -> RunSummary:
    """Write scores.jsonl and the reports of metric families, and return the figures."""
    with StoredJudgments(job.folder) as judgments:
        return _summarised(job, judgments, status, reason)


def _summarised(job: RunJob, judgments: StoredJudgments, status: RunStatus, reason: str | None) -> RunSummary:
    config, manifest, judges, spot_checks = job.config, job.manifest, job.judge_components, job.spot_check_records
    scorers = CaseScorers(config, job.metrics, judges, job.n_answers, job.warnings)
    scored = score_cases(scorers, job.folder, job.cases, job.unjudged, judgments)
    before = None if job.reopened is None else job.reopened.summary.judge_reliability
    clusters = clusters_of(config.cluster_by, job.cases, spot_checks)
    stand, to_redo = parts_that_stand(before, judges)
    reliability, unstable = reliability_of(judges, spot_checks, judgments, scored.calls, stand, clusters)
    beside = None if job.parent is None else beside_parent(job, job.parent, judgments)
    asked = [plan for plan in job.judges if plan.judge.name not in job.kept]
    cost = scored.calls.costs.record(job.price_list)
    warnings = [
        *job.warnings,
        *failure_notices(manifest.system, len(job.cases)),
        *scored.warnings,
        *(warning for name, runtime in job.models.items() for warning in _model_warnings(name, runtime)),
        *(() if beside is None else beside.warnings),
        *(("indexing_of_other_version", line) for line in other_index(job.indexing, manifest.versions)),
        *_failures(manifest.run_id, scored.calls),
        *(warning for panel in job.panels for warning in member_failures(panel, judgments)),
        *(warning for judge in judges for warning in criteria_warnings(judge.name, _of_criteria(judge, judgments))),
        *to_redo,
        *unstable,
        *cache_warnings(_reply_sources(asked, spot_checks, scored.calls), job.now()),
        *_spending_warnings(job.models, cost),
    ]
    wall_seconds, n_resumed = manifest.wall_seconds, manifest.n_resumed
    of_run = {"wall_seconds": wall_seconds, "n_resumed": n_resumed, "versions": dict(manifest.versions)}
    return RunSummary(
        run_id=manifest.run_id,
        name=manifest.name,
        created_at=manifest.created_at,
        status=status,
        reason=reason,
        config_sha256=manifest.config_sha256,
        errors=config.errors,
        min_n=config.min_n,
        cluster_by=config.cluster_by,
        own_code=scored.own_code,
        n_gates=len(config.gates),
        cases={**job.cases_record, "sha256": job.cases_sha256},
        overall=scored.overall,
        slices=scored.tally.slices(),
        scales=scored.scales,
        judge_reliability=reliability,
        repeats=scored.repeats,
        rejudged=None if beside is None else beside.rejudged,
        judges=_with_preferences(job, _judge_records(job.judges, job.panels, judgments, scored.calls), judgments),
        latency=scored.tally.latency(),
        cost=cost,
        operational={**scored.tally.operational(), **of_run},
        indexing_coverage=None if job.indexing is None else dict(job.indexing),
        extraction=scored.digests.get("extraction"),
        abstention=scored.abstention,
        metrics_version=METRICS_VERSION,
        warnings=tuple(Notice(code=code, message=message) for code, message in dict.fromkeys(warnings)),
    )


def coverage_notices(job: RunJob, summary: RunSummary) -> Iterator[Notice]:
    """A warning for each judge whose verdicts cover another share of the cases than the baseline's.

    A judge that does not apply to the bad cases of a system any more has a higher mean, though nothing is better. The
    baseline is the newest complete run with the tag `baseline`, else the newest complete one, of the same suite and
    data set. A rejudge has none: it judges the answers of its parent.
    """
    n_cases = len(job.cases)
    if not job.judges or not n_cases:
        return
    before = judged_before(job.folder.path, job.manifest, job.cases_sha256 or "", INDEX_SECONDS)
    if before is None:
        return
    for name, record in summary.judges.items():
        then, now = before.n_judged.get(name), int(record["n_judged"])
        if then is not None and abs(now - then) > MOST_MOVED * n_cases:
            text = (
                f"judge {name} has a verdict on {now} of {n_cases} cases, and on {then} in {before.run_id}, the "
                "baseline; their means are over other cases"
            )
            yield Notice(code="coverage_differs", message=text)


def _judge_records(
    plans: Sequence[JudgePlan], panels: Sequence[Panel], judgments: Mapping[JudgmentKey, Judgment], calls: JudgeCalls
) -> dict[str, dict[str, Any]]:
    """What metrics.json says of each judge, a panel among them."""
    by_name = {panel.judge.name: panel for panel in panels}
    found: dict[str, dict[str, Any]] = {}
    for plan in plans:
        name = plan.judge.name
        if name in found:  # another member of its panel
            continue
        wording = {"prompt_version": plan.prompt.version, "prompt_sha256": plan.prompt.sha256}
        instrument = {"model_id": plan.runtime.model_id, **model_facts(plan.runtime)}
        if plan.role != "primary":
            instrument = _of_panel(by_name[name], judgments)
        found[name] = calls.counts("primary", name).record({**wording, **instrument})
    return found


def _with_preferences(
    job: RunJob, records: dict[str, dict[str, Any]], judgments: Mapping[JudgmentKey, Judgment]
) -> dict[str, dict[str, Any]]:
    """The records of judges of preference with what they say of all pairs."""
    for judge in job.judge_components:
        if isinstance(judge.kind, Preference):
            own = (item for key, item in judgments.items() if (key.role, key.judge) == ("primary", judge.name))
            verdicts = {item.case_id: item.verdict for item in own if item.verdict is not None}
            equal = {case_id for case_id, reason in job.unjudged.get(judge.name, {}).items() if reason == EQUAL}
            clusters = None if job.config.cluster_by is None else Clusters(job.config.cluster_by)
            cases = ((case, case.id if clusters is None else clusters.number(case)) for case in job.cases)
            runs = [run["run_id"] for run in job.manifest.compared]
            records[judge.name]["preference"] = preference_record(verdicts, equal, cases, runs)
    return records


def _of_panel(panel: Panel, judgments: Mapping[JudgmentKey, Judgment]) -> dict[str, Any]:
    record = record_of_panel(panel, judgments)
    notes = dict.fromkeys(member["note"] for member in record["members"].values() if member["note"])
    return {
        "model_id": PANEL,
        "model": panel.title,
        "provider": PANEL,
        "build_hash": None,
        "is_llm": all(member["is_llm"] for member in record["members"].values()),
        "note": ", ".join(notes) or None,
        "panel": record,
    }


def _spending_warnings(models: Mapping[str, ModelRuntime], cost: Mapping[str, Any]) -> Notices:
    """What is not known of tokens and money; who runs a model himself pays nobody for it."""
    found = []
    for name in cost["unpriced_models"]:
        runtime = models.get(name)
        if runtime is not None and runtime.price is None and not is_local(runtime.config.base_url):
            hint = f"set models.{name}.prices"
            found.append(("unknown_price", f"the price of {name} is not known, so cost is null; {hint}"))
    if cost["n_without_usage"]:
        text = f"the server did not count the tokens of {cost['n_without_usage']} calls, so they are not known"
        found.append(("tokens_not_known", text))
    return found


def _reply_sources(
    asked: Sequence[JudgePlan], spot_checks: Sequence[SpotCheckRecord], calls: JudgeCalls
) -> dict[str, ReplySources]:
    """By judge, how far the run really asked it, since the cache may have answered."""
    found = {}
    for name in dict.fromkeys(plan.judge.name for plan in asked):
        plans = [plan for plan in asked if plan.judge.name == name]
        if all(plan.runtime.provider.needs_network for plan in plans):
            repeats = [record.check for record in spot_checks if record.kind == "repeat" and record.judge == name]
            found[name] = calls.sources(plans[0].role, name, repeats)
    return found


def _of_criteria(judge: Judge, judgments: Mapping[JudgmentKey, Judgment]) -> list[Verdict]:
    """The verdicts of a judge that asks about the same criteria in every case; none of another judge."""
    if not isinstance(judge.kind, Criteria) or not judge.kind.criteria:
        return []
    own = (item for key, item in judgments.items() if (key.role, key.judge) == ("primary", judge.name))
    return [item.verdict for item in own if item.verdict is not None]


def _failures(run_id: str, calls: JudgeCalls) -> Notices:
    """How many calls gave no verdict, and how those are asked again that failed on the way."""
    found = []
    n_primary = sum(failed.total() for role, _, failed in calls.failures() if role == "primary")
    if n_primary:
        found.append(("judge_failures", f"{n_primary} judge calls gave no verdict; they are counted in n_error"))
    # Spot checks that were added to the run are made again by their own command.
    kinds: Counter[str] = Counter()
    for role, check, failed in calls.failures():
        if role != "spot_check" or check in RUN_SPOT_CHECKS:
            kinds.update({kind: n for kind, n in failed.items() if kind in TRANSPORT_KINDS})
    if kinds:
        named = ", ".join(f"{kind} {n}" for kind, n in sorted(kinds.items()))
        text = f"{kinds.total()} calls failed on the way ({named}); `judgekit run --resume {run_id}` asks them again"
        found.append(("failed_on_the_way", text))
    return found


def _model_warnings(name: str, runtime: ModelRuntime) -> Notices:
    """What a reader must know about a model: moved, not pinned, not at temperature 0."""
    found = []
    guard, takes = runtime.guard, runtime.capabilities
    if guard.n_mismatches:
        found.append(("pin_mismatch", f"model {name}: {guard.n_mismatches} times, {guard.last_mismatch}"))
    if takes is not None and not takes.temperature:
        found.append(("temperature_not_accepted", f"model {name} refuses temperature 0; verdicts may vary"))
    if len(guard.seen.fingerprints) > 1:
        shown = ", ".join(f"{name} ({n})" for name, n in guard.seen.fingerprints.most_common(5))
        found.append(("fingerprint_changed", f"model {name}: the server changed under way, it says {shown}"))
    if len(guard.seen.upstreams) > 1:
        shown = ", ".join(f"{name} ({n})" for name, n in guard.seen.upstreams.most_common(5))
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
