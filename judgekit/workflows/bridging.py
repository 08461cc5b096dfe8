"""From two stored runs to the job that splits the change between them, and the rejudge that it needs."""

import hashlib
from dataclasses import replace
from typing import Any

from judgekit.core.config import JudgeConfig, ModelConfig
from judgekit.core.errors import ConfigError
from judgekit.core.prompts import PromptTemplate
from judgekit.core.runs import CASES, SCORES
from judgekit.core.text import canonical_json
from judgekit.storage.stored_summary import read_summary
from judgekit.workflows.bridge import BridgeJob, BridgeJudge
from judgekit.workflows.job import RunJob
from judgekit.workflows.models import Options
from judgekit.workflows.rejudging import rejudge_job, resume_rejudge
from judgekit.workflows.stored import StoredRun, open_stored


def open_bridge(old: str, new: str, options: Options) -> tuple[BridgeJob, RunJob | StoredRun | None]:
    """Two runs, and the old one judged by the judges of the new one.

    Returns:
        The job, and beside it: None where no judge differs; a stored run where it was judged so before; else a
        rejudge that has to be carried out first.

    Raises:
        ConfigError: no such runs, runs that share no judge, or runs that cannot be judged again.
        StorageError: a run is damaged.
    """
    before, after = open_stored(old, options), open_stored(new, options)
    if before.folder.path.resolve() == after.folder.path.resolve():
        raise ConfigError(f"{old}: is both runs; name two")
    for stored in (before, after):
        missing = [name for name in (SCORES, CASES) if not stored.folder.has(name)]
        if missing:
            raise ConfigError(f"{stored.folder.path}: has no {missing[0]}; go on with the run first, or make a new one")
    names_old = [judge.name for judge in before.config.judges]
    names_new = [judge.name for judge in after.config.judges]
    shared = [name for name in names_old if name in names_new]
    if not shared:
        raise ConfigError(
            f"{old} and {new} share no judge ({', '.join(names_old) or 'none'}; {', '.join(names_new) or 'none'})"
        )
    judges = [_judge(before, after, name) for name in shared]
    job = BridgeJob(
        old=before.folder,
        new=after.folder,
        old_id=before.manifest.run_id,
        new_id=after.manifest.run_id,
        judges=judges,
        only_in_old=[name for name in names_old if name not in shared],
        only_in_new=[name for name in names_new if name not in shared],
        seed=after.config.resampling_seed,
        summary=read_summary(after.folder),
        manifest=after.manifest,
        report=after.config.report,
    )
    differing = [item.judge.name for item in judges if not item.same]
    return job, _moved(before, after, differing, options) if differing else None


def _judge(before: StoredRun, after: StoredRun, name: str) -> BridgeJudge:
    old, new = _instrument(before, name), _instrument(after, name)
    notes = []
    if old["args"] != new["args"]:
        notes.append("arguments of the judge differ; inputs of the old run are as its own arguments made them")
    # A model that was never asked, such as one behind cached replies, has no served name to compare.
    served = bool(old["served_models"] and new["served_models"])
    same = all(old[key] == new[key] for key in old if key not in ("model_id", "served_models")) and (
        not served or old["served_models"] == new["served_models"]
    )
    return BridgeJudge(after.judge(name), old, new, same, tuple(notes))


def _instrument(stored: StoredRun, name: str) -> dict[str, Any]:
    """What can change the verdicts of a judge; the address of its server is none of it."""
    config = stored.judge_config(name)
    models = [stored.config.models[name] for name in config.asked]
    records = [stored.manifest.models.get(name, {}) for name in config.asked]
    builds = [model.pin.build_hash or record.get("build_hash") for model, record in zip(models, records, strict=True)]
    return {
        "model_id": ", ".join(config.asked),
        "panel": None if config.panel is None else config.panel.model_dump(mode="json", exclude={"models"}),
        "provider": ", ".join(model.provider for model in models),
        "model": ", ".join(model.model for model in models),
        "build_hash": ", ".join(build or "?" for build in builds) if any(builds) else None,
        "served_models": sorted({name for record in records for name in record.get("served_models") or {}}),
        "seed": [model.seed for model in models],
        "prompt_version": config.prompt_version,
        "prompt_sha256": stored.prompt(name, config.prompt_version).sha256,
        "args": stored.judge(name).model_dump(mode="json"),
    }


def _moved(before: StoredRun, after: StoredRun, names: list[str], options: Options) -> RunJob | StoredRun:
    """The old run judged by the new judges: as it was done before, or to be done."""
    judges: list[JudgeConfig] = []
    models: dict[str, ModelConfig] = dict(before.config.models)
    for judge in before.config.judges:
        if judge.name not in names:
            judges.append(judge)
            continue
        wanted = after.judge_config(judge.name)
        keys = {name: _key_of(name, models, after) for name in wanted.asked}
        models.update({key: after.config.models[name] for name, key in keys.items()})
        judges.append(_renamed(wanted, keys))
    config = before.config.model_copy(update={"judges": tuple(judges), "models": models})
    instruments = [_instrument(after, name) for name in names]
    digest = hashlib.sha256(canonical_json([before.manifest.config_sha256, instruments])).hexdigest()[:8]
    run_id = f"{before.manifest.run_id[:120]}-by-{digest}"
    results_dir = options.results_dir or before.folder.path.resolve().parent
    options = replace(options, results_dir=results_dir, run_id=run_id)
    if (results_dir / run_id / "manifest.json").is_file():
        child = open_stored(str(results_dir / run_id), options)
        return child if child.manifest.status == "complete" else resume_rejudge(child, options)

    def wording(judge: str, version: str) -> PromptTemplate:
        return (after if judge in names else before).prompt(judge, version)

    job = rejudge_job(before, config, names, options, wording)
    for judge in judges:
        if judge.name not in names:
            continue
        for key, name in zip(judge.asked, after.judge_config(judge.name).asked, strict=True):
            # The judge of the new run is meant; one that was moved since would be a third.
            record = after.manifest.models.get(name, {})
            job.models[key].guard.go_on({"build_hash": record.get("build_hash")})
    return job


def _key_of(name: str, models: dict[str, ModelConfig], after: StoredRun) -> str:
    """What a model of the new run is called in the old one, where its name may stand for another model."""
    model = after.config.models[name]
    return name if models.get(name, model) == model else f"{name}@{after.manifest.run_id}"


def _renamed(judge: JudgeConfig, keys: dict[str, str]) -> JudgeConfig:
    """The judge with its models under other keys."""
    if judge.panel is not None:
        members = tuple(keys[name] for name in judge.panel.models)
        return judge.model_copy(update={"panel": judge.panel.model_copy(update={"models": members})})
    return judge.model_copy(update={"model": keys[str(judge.model)]})
