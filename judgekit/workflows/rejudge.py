"""`judgekit rejudge`: the stored inputs of a run judged again, into a new run folder.

This makes the run that is carried out as any other is, by `run`. The system under test is not asked, and no judge input
is built again: what is judged is what was judged then.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import judgekit.judges
from judgekit.analysis.repeated_answers import most_answers
from judgekit.core.case_parts import part_of
from judgekit.core.components import Metric
from judgekit.core.config import ModelConfig, RunConfig
from judgekit.core.errors import ConfigError
from judgekit.core.judge_config import JudgeConfig
from judgekit.core.judgments import Role
from judgekit.core.prompts import PromptTemplate
from judgekit.core.protocols import ModelIdentity
from judgekit.core.runs import CASES, JUDGE_INPUTS, OUTPUTS, Manifest
from judgekit.core.text import canonical_sha256
from judgekit.engine.model_runtime import ModelRuntime
from judgekit.engine.requests import JudgePlan
from judgekit.judges.parsing import PARSER_VERSION
from judgekit.storage.id_lists import stored_ids
from judgekit.storage.remote_runs import is_run
from judgekit.storage.run_folder import RunFolder, new_run_id
from judgekit.storage.run_records import read_summary
from judgekit.systems.recorded import Recorded
from judgekit.workflows.job import RunJob, versions
from judgekit.workflows.judge_components import build_judge
from judgekit.workflows.models import (
    Options,
    build_model,
    check_plays,
    most_connections,
    open_cache,
    price_models,
    surroundings_of,
    with_variables,
)
from judgekit.workflows.own_code import code_changes
from judgekit.workflows.parent_run import answers_of, carried_checks
from judgekit.workflows.setup import panels_of
from judgekit.workflows.stored import StoredRun, models_of, open_stored

Wordings = Mapping[str, PromptTemplate]
"""By judge."""


@dataclass(frozen=True)
class RejudgeWanted:
    """What the command line says of a rejudge."""

    judges: tuple[str, ...] = ()
    """Names of judges; none: all of the run."""
    model: str | None = None
    """Key of the model to ask; None: as the run did."""
    prompt_version: str | None = None
    """Wording to ask with; None: as the run did."""
    config_path: Path | None = None
    """Another config, for models and wordings that the run's config does not have."""


def open_rejudge(run: str, wanted: RejudgeWanted, options: Options) -> RunJob:
    """A new run in a new folder that judges the stored inputs of another one.

    Raises:
        ConfigError: no such run, judge, model or wording; a run that did not keep its inputs; a wording that names a
            variable which an input lacks.
        StorageError: the run is damaged, or the new folder cannot be made.
    """
    parent = open_stored(run, options)
    names = parent.named_judges("judge again", *wanted.judges)
    judges = tuple(_as_wanted(judge, wanted) if judge.name in names else judge for judge in parent.config.judges)
    models = {**parent.config.models, **_added(parent, names, wanted)}
    if wanted.model is not None and wanted.model not in models:
        models_there = ", ".join(sorted(models)) or "none"
        raise ConfigError(f"--model {wanted.model!r}: there are {models_there}; add others by --config")
    config = parent.config.model_copy(update={"judges": judges, "models": models})
    wordings = {item.name: parent.prompt(item.name, item.prompt_version, wanted.config_path) for item in judges}
    return rejudge_job(parent, config, names, wordings, with_variables(options, wanted.config_path))


def rejudge_job(
    parent: StoredRun, config: RunConfig, names: Sequence[str], wordings: Wordings, options: Options
) -> RunJob:
    """A new run that asks judges of a stored run as another config says.

    Args:
        parent: the run whose inputs are judged.
        config: the config of the new run.
        names: judges that are asked; judgments of the others are copied.
        wordings: what each judge is asked with.
        options: where runs are kept, whether cached replies are used, and the name of the new run.

    Raises:
        ConfigError, StorageError: as of `open_rejudge`.
    """
    _check_kept(parent)
    plans, metrics = plans_of(parent, config, names, wordings, options), parent.metrics()
    for plan in plans:
        if plan.judge.name in names:
            parent.check_wording(plan.judge.name, plan.prompt)
    now = options.now()
    results_dir = options.results_dir or parent.folder.path.resolve().parent
    folder = RunFolder.create(results_dir, options.run_id or new_run_id(config.name, now))
    resolved = _resolved(parent, plans, metrics)
    known = parent.manifest.models
    stay = [model for judge in config.judges if judge.name not in names for model in judge.asked]
    manifest = Manifest(
        run_id=folder.path.name,
        name=config.name,
        kind="rejudge",
        parent=parent.manifest.run_id,
        parent_path=str(parent.folder.path.resolve()),
        rejudged=tuple(names),
        compared=parent.manifest.compared,
        status="running",
        created_at=now.isoformat(timespec="milliseconds"),
        config_path=parent.manifest.config_path,
        code_dir=parent.manifest.code_dir if options.from_dir is None else str(options.from_dir.resolve()),
        config_sha256=canonical_sha256(_with_resolved(config, resolved)),
        n_cases_in_file=parent.manifest.n_cases_in_file,
        **part_of(parent.manifest).record(),
        models={name: known[name] for name in stay if name in known},
        versions=versions(),
    )
    return _job(parent, StoredRun(folder, manifest, config, resolved), plans, options, metrics=metrics, found=None)


def resume_rejudge(child: StoredRun, options: Options) -> RunJob:
    """A rejudge, ready to be resumed; whether there is anything to ask is for the caller to say.

    Raises:
        ConfigError: its parent is gone, or a wording has changed.
        StorageError: one of the two runs is damaged.
    """
    manifest, path = child.manifest, child.folder.path
    parent = open_stored(str(_parent_folder(child)), options)
    _check_kept(parent)
    wordings = {judge.name: child.prompt(judge.name, judge.prompt_version) for judge in child.config.judges}
    plans = plans_of(child, child.config, manifest.rejudged, wordings, options)
    for plan in plans:
        name = f"{plan.prompt.judge}/{plan.prompt.version}"
        if child.resolved["prompts"].get(name) != plan.prompt.sha256:
            raise ConfigError(f"{path}: cannot be resumed, since prompt {name} changed since it was started")
    metrics = child.metrics(parent.folder)
    for _, text in code_changes([*metrics, *(plan.judge for plan in plans)], child.resolved):
        raise ConfigError(f"{path}: cannot be resumed: {text}")
    resumed = manifest.model_copy(update={"n_resumed": manifest.n_resumed + 1})
    job = _job(parent, replace(child, manifest=resumed), plans, options, metrics=metrics, found=manifest)
    for name, runtime in job.models.items():
        runtime.guard.go_on(manifest.models.get(name, {}))
    return job


def _parent_folder(child: StoredRun) -> Path:
    """Where the parent was, or beside the rejudge, if both were moved."""
    manifest = child.manifest
    places = [Path(manifest.parent_path or ""), child.folder.path.resolve().parent / (manifest.parent or "")]
    for place in places:
        if is_run(place):
            return place
    raise ConfigError(f"{child.folder.path}: its parent {manifest.parent} is gone (looked in {places[0]})")


def _check_kept(parent: StoredRun) -> None:
    missing = [name for name in (CASES, OUTPUTS, JUDGE_INPUTS) if not parent.folder.has(name)]
    if missing:
        raise ConfigError(
            f"{parent.folder.path}: holds no {missing[0]}, so nothing can be judged again; "
            "it was stopped before its first call, or made before runs kept it"
        )


def _as_wanted(judge: JudgeConfig, wanted: RejudgeWanted) -> JudgeConfig:
    """The judge with another model or wording; one model takes the place of a whole panel."""
    update: dict[str, Any] = {} if wanted.model is None else {"model": wanted.model, "panel": None}
    if wanted.prompt_version is not None:
        update["prompt_version"] = wanted.prompt_version
    return judge.model_copy(update=update)


def _added(parent: StoredRun, names: Sequence[str], wanted: RejudgeWanted) -> dict[str, ModelConfig]:
    """Models of the other config; one of them must not silently take the place of a model that stays in use."""
    if wanted.config_path is None:
        return {}
    models = {**models_of(parent, wanted.config_path)}
    for judge in parent.config.judges:
        for name in judge.asked:
            if judge.name not in names and models[name] != parent.config.models[name]:
                raise ConfigError(
                    f"{wanted.config_path}: models.{name} differs from the run's, which {judge.name} was asked of; "
                    "give it another name, or judge that again as well"
                )
    return models


def plans_of(
    stored: StoredRun, config: RunConfig, names: Sequence[str], wordings: Wordings, options: Options
) -> list[JudgePlan]:
    """The judges with these names as they are asked, by what a run has stored.

    Args:
        stored: the run.
        config: its config, or that of the run that judges it again.
        names: of the judges.
        wordings: by judge.
        options: whether keys are needed.

    Raises:
        ConfigError: a judge or its model cannot be built.
    """
    asked = {model for judge in config.judges if judge.name in names for model in judge.asked}
    options = replace(options, most_connections=most_connections(len(asked)))
    used = dict.fromkeys(model for judge in config.judges for model in judge.asked)
    runtimes = {name: _runtime(stored, config, name, options, is_asked=name in asked) for name in used}
    plans = []
    for judge in config.judges:
        with stored.says_where():
            component = build_judge(judge, wordings[judge.name], f"judge {judge.name}", stored.code_folders)
        for model in judge.asked:
            if judge.name in names:
                check_plays(component, runtimes[model], f"judge {judge.name}")
            role: Role = "primary" if judge.panel is None else "member"
            plans.append(JudgePlan(component, wordings[judge.name], runtimes[model], role=role))
    return plans


def _runtime(stored: StoredRun, config: RunConfig, name: str, options: Options, *, is_asked: bool) -> ModelRuntime:
    """A model of the new run; one that is not asked is what the run found it to be."""
    runtime = build_model(
        name, config.models[name], Path(stored.manifest.config_path), options, needs_key=options.needs_keys and is_asked
    )
    record = stored.manifest.models.get(name, {})
    if not is_asked and record.get("build_hash"):
        runtime.identity = ModelIdentity(record["build_hash"], record.get("build_source"))
    return runtime


def _resolved(parent: StoredRun, plans: Sequence[JudgePlan], metrics: Sequence[Metric]) -> dict[str, Any]:
    own = {metric.name: metric.settings() for metric in metrics if metric.code_sha256 is not None}
    used = {f"{plan.prompt.judge}/{plan.prompt.version}": plan.prompt.sha256 for plan in plans}
    return {
        **parent.resolved,
        "prompts": {**parent.resolved.get("prompts", {}), **used},
        "metrics": {**parent.resolved.get("metrics", {}), **own},
        "judges": {plan.judge.name: plan.judge.settings() for plan in plans},
        "verdict_kinds": {plan.judge.name: plan.judge.kind.model_dump(mode="json") for plan in plans},
        "judgekit": judgekit.__version__,
        "parser_version": PARSER_VERSION,
    }


def _job(
    parent: StoredRun,
    child: StoredRun,
    plans: Sequence[JudgePlan],
    options: Options,
    *,
    metrics: Sequence[Metric],
    found: Manifest | None,
) -> RunJob:
    names = child.manifest.rejudged
    models = {plan.runtime.model_id: plan.runtime for plan in plans if plan.judge.name in names}
    folder, (cases, outputs) = child.folder, answers_of(parent.folder)
    before, corpus = read_summary(parent.folder), stored_ids(parent.folder)
    cache, notices = open_cache(folder.path.parent, models, options)
    alike = {plan.judge.name: _asked_alike(parent, child.config, plan) for plan in plans if plan.judge.name in names}
    return RunJob(
        config=child.config,
        resolved=_with_resolved(child.config, child.resolved),
        manifest=child.manifest,
        cases=cases,
        config_path=Path(child.manifest.config_path),
        n_cases_in_file=len(cases) if before is None else before.cases.get("n_in_file", len(cases)),
        n_answers=most_answers(cases),
        part=part_of(child.manifest),
        surroundings=surroundings_of(Path(child.manifest.config_path), options),
        system=Recorded(outputs, OUTPUTS),
        metrics=metrics,
        corpus_chunk_ids=corpus,
        judges=plans,
        panels=panels_of(child.config.judges, plans),
        models=models,
        folder=folder,
        cache=cache,
        now=options.now,
        price_list=price_models(models, child.config.budget, by_batch=True),
        indexing=None if before is None else before.indexing_coverage,
        warnings=[
            *_part_of_a_run(parent, child),
            *code_changes([*metrics, *(plan.judge for plan in plans)], parent.resolved),
            *notices,
        ],
        found=found,
        parent=parent.folder,
        kept=frozenset(plan.judge.name for plan in plans if plan.judge.name not in names),
        unchanged=frozenset(name for name, (is_same, _) in alike.items() if is_same),
        carried=carried_checks(parent.folder, plans, [name for name, (_, unchanged) in alike.items() if not unchanged]),
        kept_prompts=parent.folder.prompts(),
    )


def _part_of_a_run(parent: StoredRun, child: StoredRun) -> list[tuple[str, str]]:
    kept = [judge.name for judge in child.config.judges if judge.name not in child.manifest.rejudged]
    if parent.manifest.status == "complete" or not kept:
        return []
    text = f"{parent.manifest.run_id} is {parent.manifest.status}, so judgments of {', '.join(kept)} may be missing"
    return [("parent_not_complete", text)]


def _with_resolved(config: RunConfig, resolved: Mapping[str, Any]) -> dict[str, Any]:
    """config.json as a whole."""
    return {**config.model_dump(mode="json", by_alias=True, exclude_none=True), "resolved": dict(resolved)}


def _asked_alike(parent: StoredRun, config: RunConfig, plan: JudgePlan) -> tuple[bool, bool]:
    """Whether the judge is the one that judged the parent, and whether it is asked exactly as the parent asked it.

    Where its server is, and how fast, makes no other judge.
    """
    old = parent.judge_config(plan.judge.name)
    now = next(judge for judge in config.judges if judge.name == old.name)
    if parent.prompt(old.name, old.prompt_version).sha256 != plan.prompt.sha256 or old.panel != now.panel:
        return False, False
    models = [(parent.config.models[a], config.models[b]) for a, b in zip(old.asked, now.asked, strict=True)]
    is_same = all((a.provider, a.model, a.seed) == (b.provider, b.model, b.seed) for a, b in models)
    return is_same, old.model == now.model and all(a == b for a, b in models)
