"""`judgekit probe`: a judge of a stored run asked about changed inputs, into the same run folder.

The changed inputs are written before the first call and every judgment as it comes, so that a set that was stopped goes
on when it is asked for again.
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from judgekit.analysis.judge_calls import cost_record
from judgekit.analysis.probe_effects import Probed, probe_report
from judgekit.analysis.stored_figures import rounded
from judgekit.analysis.verdict_pairs import Pair
from judgekit.core.components import Judge
from judgekit.core.config import RunConfig
from judgekit.core.errors import ProviderError
from judgekit.core.judgments import JudgeInput, Judgment, JudgmentKey, last_judgments
from judgekit.core.probe_sets import ORIGINAL, PROBE_INPUTS, PROBE_JUDGMENTS, PROBES, ProbeSet
from judgekit.core.prompts import PromptTemplate
from judgekit.core.protocols import ReplyCache
from judgekit.core.runs import Manifest, RunSummary
from judgekit.engine.budget import Spending
from judgekit.engine.model_runtime import ModelRuntime
from judgekit.engine.passes import Observer, Passes, is_unanswered
from judgekit.engine.requests import JudgePlan
from judgekit.judges.probes import PROBES as ALL_PROBES
from judgekit.judges.probes import Dice, NoProbe, reversed_wording
from judgekit.storage.recorder import Recorder
from judgekit.storage.run_folder import RunFolder
from judgekit.workflows.judge_reliability import add_parts, opinion, pass_score_of, scale_of

NO_RUBRIC = "the wording has no lines that say what each score means"


@dataclass(frozen=True)
class ProbePlan:
    """One set of probes of one judge."""

    record: ProbeSet
    judge: Judge
    prompt: PromptTemplate
    runtime: ModelRuntime


@dataclass
class ProbeJob:
    """Sets of probes of one run, ready to go."""

    store: RunFolder
    config: RunConfig
    summary: RunSummary
    plans: Sequence[ProbePlan]
    models: Mapping[str, ModelRuntime]
    earlier: Sequence[ProbeSet]
    """Sets of the run so far, without those that go on."""
    cache: ReplyCache | None
    """None: every question is asked anew."""
    dice: Callable[[str], Dice]
    """A source of randomness for a name; the same name gives the same numbers."""
    manifest: Manifest
    """As it was when the run was opened."""
    notes: list[str] = field(default_factory=list)


@dataclass
class _Asked:
    """What one probe of one set asks."""

    plan: JudgePlan
    inputs: list[JudgeInput]
    not_applicable: list[str]


async def probe(job: ProbeJob, observer: Observer) -> dict[str, Any]:
    """Ask about changed inputs, and write probes.json, metrics.json and summary.md.

    Returns:
        What was found, by judge, with numbers rounded.

    Raises:
        ProviderError: a provider refuses for good, or gave not one verdict.
        Interrupted: the budget is used up; the same command goes on.
        StorageError: the run folder cannot be written, or another process writes it.
    """
    try:
        with job.store.locked_as_found(job.manifest):
            job.store.repair_tail(PROBE_JUDGMENTS)
            asked = [_prepare(job, plan) for plan in job.plans]
            _write_inputs(job, asked)
            _write_sets(job, [plan.record for plan in job.plans])
            for runtime in job.models.values():
                await runtime.ready()
            await _ask(job, asked, observer)
            return _write_figures(job, asked)
    finally:
        for runtime in job.models.values():
            await runtime.provider.close()


def _prepare(job: ProbeJob, plan: ProbePlan) -> dict[str, _Asked]:
    """By probe: what is asked, and why the other cases are not."""
    record, scale = plan.record, scale_of(plan.judge)
    wanted = set(record.case_ids)
    inputs = [item for item in job.store.judge_inputs() if item.judge == record.judge and item.case_id in wanted]
    found = {}
    names = [ORIGINAL, *record.probes] if record.originals == "asked" else list(record.probes)
    for name in names:
        prompt: PromptTemplate | None = plan.prompt
        if name != ORIGINAL and ALL_PROBES[name].turns_rubric:
            prompt = reversed_wording(plan.prompt, scale)
        asked = _Asked(
            JudgePlan(
                plan.judge,
                prompt or plan.prompt,
                plan.runtime,
                role="probe",
                use_cache=job.cache is not None,
                check=record.check(name),
            ),
            [],
            [],
        )
        for item in inputs:
            changed: Mapping[str, Any] | NoProbe = item.variables
            if prompt is None:
                changed = NoProbe(NO_RUBRIC)
            elif name != ORIGINAL:
                dice = job.dice(f"{record.seed} {name} {item.case_id}")
                changed = ALL_PROBES[name].change(item.variables, scale, dice)
            if isinstance(changed, NoProbe):
                asked.not_applicable.append(changed.reason)
            else:
                asked.inputs.append(item.model_copy(update={"variables": dict(changed)}))
        found[name] = asked
    return found


def _write_inputs(job: ProbeJob, asked: Sequence[Mapping[str, _Asked]]) -> None:
    """Add the changed inputs of new sets to probe_inputs.jsonl."""
    ours = {item.plan.check for probes in asked for item in probes.values()}

    def lines() -> Iterator[bytes]:
        for _, line in job.store.lines(PROBE_INPUTS):
            if json.loads(line).get("check") not in ours:
                yield line.rstrip(b"\n")
        for probes in asked:
            for item in probes.values():
                for judge_input in item.inputs:
                    record = {"check": item.plan.check, **judge_input.model_dump()}
                    yield json.dumps(record, ensure_ascii=False).encode("utf-8", "replace")

    job.store.write_lines(PROBE_INPUTS, lines())


def _write_sets(job: ProbeJob, records: Sequence[ProbeSet]) -> None:
    sets = [record.model_dump(mode="json") for record in [*job.earlier, *records]]
    job.store.write_json(PROBES, {"schema_version": 1, "sets": sets})


async def _ask(job: ProbeJob, asked: Sequence[Mapping[str, _Asked]], observer: Observer) -> None:
    """Ask what has no answer yet, all probes side by side."""
    done = _judgments(job)

    def pending(item: _Asked) -> Iterator[JudgeInput]:
        return (one for one in item.inputs if _is_open(done.get(_key(item, one)), item))

    sink = Recorder(job.store.path / PROBE_JUDGMENTS, job.cache)
    try:
        items = [item for probes in asked for item in probes.values()]
        passes = Passes(job.cache, sink, Spending(job.config.budget), observer)
        await passes.run([(item.plan, partial(pending, item)) for item in items])
    finally:
        sink.close()


def _judgments(job: ProbeJob) -> dict[JudgmentKey, Judgment]:
    return last_judgments(job.store.judgments(PROBE_JUDGMENTS))


def _key(item: _Asked, judge_input: JudgeInput) -> JudgmentKey:
    return JudgmentKey("probe", judge_input.judge, judge_input.case_id, item.plan.check)


def _is_open(old: Judgment | None, item: _Asked) -> bool:
    return old is None or is_unanswered(old) or old.prompt_sha256 != item.plan.prompt.sha256


def _write_figures(job: ProbeJob, asked: Sequence[Mapping[str, _Asked]]) -> dict[str, Any]:
    judgments, before = _judgments(job), last_judgments(job.store.judgments())
    found, records = {}, []
    for plan, probes in zip(job.plans, asked, strict=True):
        result = rounded(_found(job, plan, probes, judgments, before))
        wordings = {
            name: item.plan.prompt.model_dump(mode="json")
            for name, item in probes.items()
            if item.plan.prompt.sha256 != plan.prompt.sha256
        }
        records.append(plan.record.model_copy(update={"complete": True, "wordings": wordings, "found": result}))
        found[plan.judge.name] = result
    _write_sets(job, records)
    parts = {name: {"probes": result} for name, result in found.items()}
    add_parts(job.store, job.summary, parts, report=job.config.report)
    for plan, probes in zip(job.plans, asked, strict=True):
        keys = [_key(item, judge_input) for item in probes.values() for judge_input in item.inputs]
        own = [judgments[key] for key in keys if key in judgments]
        if own and all(item.verdict is None for item in own):
            raise ProviderError(f"judge {plan.judge.name}: the probes got 0 of {len(own)} verdicts, every call failed")
    return found


def _found(
    job: ProbeJob,
    plan: ProbePlan,
    probes: Mapping[str, _Asked],
    judgments: Mapping[JudgmentKey, Judgment],
    before: Mapping[JudgmentKey, Judgment],
) -> dict[str, Any]:
    record, name = plan.record, plan.record.judge

    def original(case_id: str) -> Judgment | None:
        if record.originals == "asked":
            return judgments.get(JudgmentKey("probe", name, case_id, record.check(ORIGINAL)))
        return before.get(JudgmentKey("primary", name, case_id))

    probed = [
        Probed(
            name=probe_name,
            about=ALL_PROBES[probe_name].about,
            expects=ALL_PROBES[probe_name].expected_of(name),
            pairs=[
                Pair(x.case_id, opinion(original(x.case_id)), opinion(judgments.get(_key(item, x))))
                for x in item.inputs
            ],
            not_applicable=item.not_applicable,
        )
        for probe_name, item in probes.items()
        if probe_name != ORIGINAL
    ]
    checks = {item.plan.check for item in probes.values()}
    keys = [_key(item, judge_input) for item in probes.values() for judge_input in item.inputs]
    spent = (item for item in job.store.judgments(PROBE_JUDGMENTS) if item.check in checks and item.judge == name)
    return {
        "set": record.set,
        "model_id": record.model_id,
        "model": record.model,
        "prompt_version": record.prompt_version,
        "prompt_sha256": record.prompt_sha256,
        "seed": record.seed,
        "n_population": record.n_population,
        "n_cases": len(record.case_ids),
        "originals": record.originals,
        "originals_note": _noise_note(plan, record),
        "from_cache": record.from_cache,
        "n_unanswered": sum(is_unanswered(judgments.get(key)) for key in keys),
        "probes": probe_report(probed, scale_of(plan.judge), pass_score_of(plan.judge), record.seed),
        "cost": cost_record(spent, job.summary.cost.get("price_list")),
    }


def _noise_note(plan: ProbePlan, record: ProbeSet) -> str:
    where = (
        "the run's own judgments" if record.originals == "run" else "asked of the probed model together with the probes"
    )
    if plan.runtime.provider.is_deterministic:
        return f"originals are {where}; the same request always gives the same reply"
    return (
        f"originals are {where}; temperature 0 is not the same as repeatable, so effects hold the noise of two "
        "replies: `unchanged` shows how much that is"
    )
