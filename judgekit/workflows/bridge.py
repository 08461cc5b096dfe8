"""`judgekit bridge`: the change between two runs, split into system and judge, from three sets of stored scores."""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from judgekit.analysis.run_deltas import bridge_figure
from judgekit.analysis.stored_figures import rounded
from judgekit.core.components import Judge
from judgekit.core.config import ModelConfig
from judgekit.core.errors import ConfigError
from judgekit.core.judge_config import JudgeConfig
from judgekit.core.runs import BRIDGE, CASES, SCORES
from judgekit.core.text import canonical_json
from judgekit.storage.remote_runs import is_run
from judgekit.storage.run_folder import RunFolder
from judgekit.storage.run_records import read_summary
from judgekit.workflows.job import RunJob
from judgekit.workflows.judge_reliability import add_parts
from judgekit.workflows.models import Options
from judgekit.workflows.rejudge import rejudge_job, resume_rejudge
from judgekit.workflows.stored import StoredRun, open_stored

_Scores = dict[str, dict[str, float]]
"""By score name and case id."""

MOST_NAMED = 50
"""Cases that are in one run only and are listed."""


@dataclass(frozen=True)
class _SharedJudge:
    """A judge that both runs have."""

    judge: Judge
    """As the new run has it."""
    old: Mapping[str, Any]
    """What gave its scores in the old run."""
    new: Mapping[str, Any]
    """What gave them in the new one."""

    @property
    def same(self) -> bool:
        """Whether the same instrument gave both; the key of its model in the config is none of it."""
        # A model that was never asked, such as one behind cached replies, has no served name to compare.
        served = self.old["served_models"] and self.new["served_models"]
        ignored = ("model_id",) if served else ("model_id", "served_models")
        return all(self.old[key] == self.new[key] for key in self.old if key not in ignored)


def bridge(old: str, new: str, options: Options, carry_out: Callable[[RunJob], object]) -> tuple[Path, dict[str, Any]]:
    """Split the change of every figure of the judges that two runs share, and write it into the new run.

    Where judges differ, the old run is judged by those of the new one, unless that was done before.

    Args:
        old: id or folder of the earlier run.
        new: that of the later one.
        options: where runs are kept, and whether cached replies are used.
        carry_out: carries a rejudge to its end.

    Returns:
        The folder of the new run, and what its bridge.json holds, with numbers rounded.

    Raises:
        ConfigError: no such runs, runs that share no judge, or runs that cannot be judged again.
        StorageError: a run is damaged, or a file cannot be written.
    """
    before, after = open_stored(old, options), open_stored(new, options)
    names = _shared_judges(before, after, (old, new))
    judges = [_SharedJudge(after.judge(name), _instrument(before, name), _instrument(after, name)) for name in names]
    summary = read_summary(after.folder)
    moved, moved_id = before.folder, None
    differing = [item.judge.name for item in judges if not item.same]
    if differing:
        rejudge = _rejudged(before, after, differing, options)
        if isinstance(rejudge, RunJob):
            carry_out(rejudge)
        moved = rejudge.folder
        moved_id = rejudge.manifest.run_id
    found: dict[str, Any] = rounded(
        {
            "schema_version": 1,
            "old": before.manifest.run_id,
            "new": after.manifest.run_id,
            "old_by_new_judge": moved_id,
            **_cases(before.folder, after.folder),
            "judges": _figures(judges, (before.folder, moved, after.folder), after.config.resampling_seed),
            "judges_only_in_old": [judge.name for judge in before.config.judges if judge.name not in names],
            "judges_only_in_new": [judge.name for judge in after.config.judges if judge.name not in names],
        }
    )
    with after.folder.locked_as_found(after.manifest):
        after.folder.write_json(BRIDGE, found)
        if summary is not None:
            about = {"old": before.manifest.run_id, "old_by_new_judge": moved_id}
            parts = {
                name: {"bridge": {**about, "same_judge": item["same_judge"], "figures": item["figures"]}}
                for name, item in found["judges"].items()
            }
            add_parts(after.folder, summary, parts, report=after.config.report)
    return after.folder.path, found


def _shared_judges(before: StoredRun, after: StoredRun, called: tuple[str, str]) -> list[str]:
    if before.folder.path.resolve() == after.folder.path.resolve():
        raise ConfigError(f"{called[0]}: is both runs; name two")
    for stored in (before, after):
        missing = [name for name in (SCORES, CASES) if not stored.folder.has(name)]
        if missing:
            raise ConfigError(f"{stored.folder.path}: has no {missing[0]}; resume the run first, or make a new one")
    names_old, names_new = ([judge.name for judge in stored.config.judges] for stored in (before, after))
    shared = [name for name in names_old if name in names_new]
    if not shared:
        there = "; ".join(", ".join(names) or "none" for names in (names_old, names_new))
        raise ConfigError(f"{' and '.join(called)} share no judge ({there})")
    return shared


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


def _rejudged(before: StoredRun, after: StoredRun, names: list[str], options: Options) -> RunJob | StoredRun:
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
    if is_run(results_dir / run_id):
        child = open_stored(str(results_dir / run_id), options)
        return child if child.manifest.status == "complete" else resume_rejudge(child, options)
    wordings = {
        judge.name: (after if judge.name in names else before).prompt(judge.name, judge.prompt_version)
        for judge in judges
    }
    job = rejudge_job(before, config, names, wordings, options)
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


def _cases(old: RunFolder, new: RunFolder) -> dict[str, Any]:
    """Which cases the two runs share."""
    cases_old, cases_new = {case.id: case for case in old.cases()}, {case.id: case for case in new.cases()}
    shared = cases_old.keys() & cases_new.keys()
    only_old = [case_id for case_id in cases_old if case_id not in shared]
    only_new = [case_id for case_id in cases_new if case_id not in shared]
    return {
        "n_shared_cases": len(shared),
        "n_changed_cases": sum(cases_old[case_id] != cases_new[case_id] for case_id in shared),
        "n_only_in_old": len(only_old),
        "n_only_in_new": len(only_new),
        "only_in_old": only_old[:MOST_NAMED],
        "only_in_new": only_new[:MOST_NAMED],
    }


def _figures(
    judges: Sequence[_SharedJudge], folders: tuple[RunFolder, RunFolder, RunFolder], seed: int
) -> dict[str, Any]:
    """Instruments and figures by judge, from the old run, the old run by the new judges, and the new run."""
    names = {column.name for item in judges for column in item.judge.columns()}
    old, moved, new = (_scores(folder, names) for folder in folders)
    found = {}
    for item in judges:
        again = old if item.same else moved
        figures = {
            column.aggregate or column.name: {
                **bridge_figure(
                    old.get(column.name, {}),
                    again.get(column.name, {}),
                    new.get(column.name, {}),
                    same_judge=item.same,
                    seed=seed,
                ),
                "scale": column.scale.model_dump(mode="json"),
            }
            for column in item.judge.columns()
            if column.aggregate != ""
        }
        notes = []
        if item.old["args"] != item.new["args"]:
            notes.append("arguments of the judge differ; inputs of the old run are as its own arguments made them")
        found[item.judge.name] = {
            "same_judge": item.same,
            "old": item.old,
            "new": item.new,
            "notes": notes,
            "figures": figures,
        }
    return found


def _scores(folder: RunFolder, names: set[str]) -> _Scores:
    found: _Scores = {}
    for score in folder.scores():
        if score.name in names and score.value is not None:
            found.setdefault(score.name, {})[score.case_id] = score.value
    return found
