"""`judgekit spotcheck`: a second opinion on a sample of a stored run, into the same run folder.

The sample is written before the first call and every judgment as it comes, so that a spot check that was stopped is
resumed when it is asked for again; until it is complete, no figure depends on it.
"""

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from judgekit.analysis.disagreement_rates import DEFAULT_THRESHOLD
from judgekit.analysis.gates import check_gates
from judgekit.analysis.judge_calls import JudgeCalls
from judgekit.core.conditions import GateResult
from judgekit.core.config import RunConfig
from judgekit.core.errors import ConfigError, ProviderError
from judgekit.core.judgments import Judgment, JudgmentKey, that_count
from judgekit.core.runs import JUDGMENTS, RESUMABLE_MODEL_CHANGES, Notice, RunSummary
from judgekit.core.spot_checks import RUN_SPOT_CHECKS, SampleSize, SpotCheckRecord, sample_size
from judgekit.core.streams import IdList
from judgekit.engine.budget import Spending
from judgekit.engine.model_runtime import ModelRuntime
from judgekit.engine.passes import Observer, Passes, Wanted
from judgekit.engine.requests import JudgePlan
from judgekit.executors.event_loop import run_local
from judgekit.storage.recorder import Recorder
from judgekit.storage.run_folder import of_judge
from judgekit.storage.stored_judgments import StoredJudgments
from judgekit.workflows.closing import closed, write_summary
from judgekit.workflows.comparators import Comparator, Setting, SpotCheckWanted, comparator_of, note_of
from judgekit.workflows.judge_reliability import (
    DrawnSpotCheck,
    about,
    ask_samples,
    clusters_of,
    drawn,
    reliability_of,
    spot_check_kind,
    write_spot_checks,
)
from judgekit.workflows.models import Options, open_cache, price_models, ready_models
from judgekit.workflows.run_spot_checks import fresh_seed
from judgekit.workflows.stored import StoredRun, finished_summary, models_of, open_stored, stored_models
from judgekit.workflows.verdicts_again import repeats_judged_again

DEFAULT_N = 20


@dataclass(frozen=True)
class SpotChecked:
    """A run with its new spot checks."""

    path: Path
    summary: RunSummary
    """The figures of the run with the new `judge_reliability`."""
    spot_checks: Mapping[str, str]
    """By judge: name of the spot check."""


def spotcheck(run: str, wanted: SpotCheckWanted, options: Options, observer: Observer) -> SpotChecked:
    """Ask for second opinions and write what they say into the run's metrics.json and summary.md.

    Raises:
        ConfigError: no such run, judge, model or wording; a run without stored inputs or figures; a comparator that
            is the judge itself.
        ProviderError: a provider refuses for good, or gave not one second opinion on a judge.
        Interrupted: the budget is used up; the same command resumes.
        StorageError: the run is damaged or cannot be written, or another process writes it.
    """
    wanted = replace(wanted, n=_size(wanted.n))
    if wanted.threshold is not None and not 0.0 < wanted.threshold < 1.0:
        raise ConfigError(f"--threshold {wanted.threshold}: expected a rate above 0 and below 1")
    stored = open_stored(run, options)
    folder, summary = stored.folder, finished_summary(stored, run)
    names = stored.named_judges("check", wanted.judge)
    setting = Setting(stored, wanted, models_of(stored, wanted.config_path))
    _refuse_other_models(setting)
    comparators = {name: comparator_of(setting, name) for name in names}
    models = stored_models(stored, wanted.config_path, {item.model_id for item in comparators.values()}, options)
    spot_checks, notes = _drawn_spot_checks(setting, comparators, models)
    price_models(models, stored.config.budget)
    for name, runtime in models.items():
        # A judge that was moved since is another one, and asking it is not a spot check of this run.
        runtime.guard.go_on(stored.manifest.models.get(name, {}))
    for note in notes:
        observer.note(note)
    used = {f"{item.prompt.judge}/{item.prompt.version}": item.prompt for item in comparators.values()}
    prompts = {**folder.prompts(), **used}
    with folder.locked_as_found(stored.manifest):
        folder.repair_tail(JUDGMENTS)
        folder.write_prompts(prompts)
        ours = {(item.record.judge, item.record.check) for item in spot_checks}
        before = [record for record in folder.spot_checks() if (record.judge, record.check) not in ours]
        run_local(lambda: _ask(stored, spot_checks, before, models, options, observer))
        summary = _write_figures(stored, summary, spot_checks, before, models)
    return SpotChecked(folder.path, summary, {item.record.judge: item.record.check for item in spot_checks})


def _size(n: int | str | None) -> int | str | None:
    """A sample size as the command line says it."""
    if not isinstance(n, str):
        return n
    try:
        return TypeAdapter[int | str](SampleSize).validate_python(int(n) if n.isdecimal() else n)
    except ValidationError:
        raise ConfigError(f"--n {n!r}: expected a whole number from 1, or a share such as 5%") from None


def _refuse_other_models(setting: Setting) -> None:
    """Refuse another model under a name of the run, since records go by names; it may have moved to another address."""
    free = {*RESUMABLE_MODEL_CHANGES, "base_url"}
    for name, model in setting.stored.config.models.items():
        if setting.models[name].model_dump(exclude=free) != model.model_dump(exclude=free):
            raise ConfigError(
                f"{setting.wanted.config_path}: models.{name} differs from the run's; give it another name"
            )


def _drawn_spot_checks(
    setting: Setting, comparators: Mapping[str, Comparator], models: Mapping[str, ModelRuntime]
) -> tuple[list[DrawnSpotCheck], list[str]]:
    """The sample of each judge, drawn in the order of the run so that a judge's own spot check draws the same."""
    stored, wanted, configured = setting.stored, setting.wanted, setting.stored.config.spot_check
    size = wanted.n or (configured.n if configured is not None else DEFAULT_N)
    adaptive = wanted.adaptive or (configured is not None and configured.adaptive)
    seed = _seed(setting, comparators)
    rng = random.Random(seed)  # noqa: S311  # a sample, not a secret
    spot_checks, notes = [], []
    for judge in [item.name for item in stored.config.judges]:
        component = stored.judge(judge)
        ids = IdList()
        for item in stored.folder.judge_inputs(of_judge(judge)):
            if component.not_asked(item) is None:
                ids.append(item.case_id)
        n = sample_size(size, len(ids))
        order = drawn(ids, n, rng, adaptive=adaptive)
        if judge not in comparators:
            continue
        comparator = comparators[judge]
        notes += [note] if (note := note_of(setting, judge, comparator)) is not None else []
        stored.check_wording(judge, comparator.prompt, set(order))
        if n > len(ids):
            notes.append(f"{judge}: {n} cases wanted, the run has {len(ids)} judged ones; all of them are taken")
        sample = {"seed": seed, "n_population": len(ids), "case_ids": order[:n], "adaptive": adaptive, "n_start": n}
        record = _resumed(setting, _record(setting, judge, comparator).model_copy(update=sample))
        runtime = models[comparator.model_id]
        second = JudgePlan(
            component, comparator.prompt, runtime, role="spot_check", use_cache=False, check=record.check
        )
        spot_checks.append(DrawnSpotCheck(record, second, order))
    return spot_checks, notes


def _seed(setting: Setting, comparators: Mapping[str, Comparator]) -> int:
    """The seed given, that of a stopped spot check that is resumed, that of the config, or a fresh one.

    The config's seed is for the first spot check of a run against a comparator: a later one would draw the same cases.
    """
    if setting.wanted.seed is not None:
        return setting.wanted.seed
    same = [
        record
        for record in setting.stored.folder.spot_checks()
        if record.judge in comparators
        and (record.model_id, record.prompt_sha256)
        == (comparators[record.judge].model_id, comparators[record.judge].prompt.sha256)
    ]
    stopped = [record.seed for record in same if not record.complete and record.check not in RUN_SPOT_CHECKS]
    if stopped:
        return stopped[-1]
    given = setting.stored.config.seed
    if given is None or any(record.seed == given for record in same):
        return fresh_seed()
    return given


def _record(setting: Setting, judge: str, comparator: Comparator) -> SpotCheckRecord:
    """A new spot check, still without its sample."""
    configured = setting.stored.config.spot_check
    primary, own = setting.primary(judge)
    numbers = [int(item.check) for item in setting.stored.folder.spot_checks() if item.check.isdigit()]
    return SpotCheckRecord(
        check=str(1 + max(numbers, default=0)),
        judge=judge,
        kind=spot_check_kind(
            other_model=comparator.model_id != primary.model, other_prompt=comparator.prompt.sha256 != own.sha256
        ),
        model_id=comparator.model_id,
        model=setting.models[comparator.model_id].model,
        prompt_version=comparator.prompt.version,
        prompt_sha256=comparator.prompt.sha256,
        seed=0,
        n_population=0,
        case_ids=(),
        threshold=setting.wanted.threshold or (configured.threshold if configured is not None else DEFAULT_THRESHOLD),
    )


def _resumed(setting: Setting, record: SpotCheckRecord) -> SpotCheckRecord:
    """The spot check under the name of one of the same kind that was stopped, if there is one."""
    free = {"check": "", "case_ids": (), "threshold": 0.0}
    for item in setting.stored.folder.spot_checks():
        is_stopped = not item.complete and item.check not in RUN_SPOT_CHECKS
        if is_stopped and item.model_copy(update=free) == record.model_copy(update=free):
            return record.model_copy(update={"check": item.check})
    return record


async def _ask(
    stored: StoredRun,
    spot_checks: list[DrawnSpotCheck],
    before: Sequence[SpotCheckRecord],
    models: Mapping[str, ModelRuntime],
    options: Options,
    observer: Observer,
) -> None:
    """All samples side by side, then more for those that grow until they are decided."""
    folder, spending = stored.folder, Spending(stored.config.budget)
    # Only what models take is remembered there: a judge is not checked against remembered replies.
    cache, _ = open_cache(folder.path.resolve().parent, models, options)
    async with ready_models(models, cache):
        drawn_cases = about((item.record.judge, item.order) for item in spot_checks)
        done = that_count(folder.judgments(wanted=drawn_cases))

        async def judge(wanted: Sequence[Wanted]) -> None:
            """The samples are on disk before anything is asked, every judgment is afterwards."""
            write_spot_checks(folder, [*before, *(item.record for item in spot_checks)])
            sink = Recorder(folder.path / JUDGMENTS, None)
            try:
                await Passes(None, sink, spending, observer).run_stored(folder, wanted, done)
            finally:
                sink.close()

        await ask_samples(folder, spot_checks, judge)


def _write_figures(
    stored: StoredRun,
    summary: RunSummary,
    spot_checks: Sequence[DrawnSpotCheck],
    before: Sequence[SpotCheckRecord],
    models: Mapping[str, ModelRuntime],
) -> RunSummary:
    folder, config = stored.folder, stored.config
    records = [*before, *(item.record.model_copy(update={"complete": True}) for item in spot_checks)]
    write_spot_checks(folder, records)
    records = [record for record in records if record.complete]
    judges = [stored.judge(judge.name) for judge in config.judges]
    judgments = that_count(folder.judgments(wanted=about((record.judge, record.case_ids) for record in records)))
    clusters = clusters_of(config.cluster_by, folder.cases(), records)
    calls = JudgeCalls()
    with StoredJudgments(folder) as every:
        for of_case in every.by_case(every.ids()):
            calls.add_stored(of_case)
    reliability, unstable = reliability_of(judges, records, judgments, calls, summary.judge_reliability, clusters)
    warnings = [item for item in summary.warnings if item.code != "judge_unstable"]
    warnings += [Notice(code=code, message=message) for code, message in unstable]
    summary = summary.model_copy(
        update={
            "judge_reliability": reliability,
            "repeats": repeats_judged_again(stored, summary, records, judgments, calls),
            "warnings": tuple(warnings),
            "cost": calls.costs.record(summary.cost.get("price_list")),
        }
    )
    summary = summary.model_copy(update={"gates": _gates(config, summary)})
    write_summary(folder, summary)
    known = {**stored.manifest.models, **{name: runtime.record() for name, runtime in models.items()}}
    folder.write_manifest(stored.manifest.model_copy(update={"models": known}))
    summary = closed(folder, summary, report=config.report)
    _refuse_unanswered(spot_checks, judgments)
    return summary


def _gates(config: RunConfig, summary: RunSummary) -> tuple[GateResult, ...]:
    """Gates on the spot check again; the others were held against figures that were not rounded yet, so they stand."""
    if not summary.gates:
        return ()
    return tuple(
        check_gates((gate,), summary)[0] if gate.metric.startswith("judge_reliability.") else old
        for gate, old in zip(config.gates, summary.gates, strict=True)
    )


def _refuse_unanswered(spot_checks: Sequence[DrawnSpotCheck], judgments: Mapping[JudgmentKey, Judgment]) -> None:
    for name, check in ((item.record.judge, item.record.check) for item in spot_checks):
        own = [item for key, item in judgments.items() if key.judge == name and key.check == check]
        if own and all(item.verdict is None for item in own):
            raise ProviderError(f"judge {name}: the spot check got 0 of {len(own)} second opinions, every call failed")
