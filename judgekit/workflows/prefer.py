"""`judgekit prefer`: the answers of two stored runs, or of more, compared by a judge that sees both.

This makes the data of a run that is carried out as any other is, by `run`: a case is a case of both runs, and its
output is that of the later one with that of the earlier one as `other`. Of three runs or more, each pair makes a case.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from judgekit.analysis.preferences import PAIR, SOURCE
from judgekit.core.config import RunConfig
from judgekit.core.errors import ConfigError, did_you_mean
from judgekit.core.judge_config import JudgeConfig
from judgekit.core.runs import CASES, OUTPUTS, Manifest
from judgekit.core.verdict_kinds import Preference
from judgekit.storage.config_files import load_config
from judgekit.storage.prompt_files import PREFERENCE
from judgekit.storage.remote_runs import is_run
from judgekit.storage.run_folder import RunFolder
from judgekit.workflows.job import RunJob, start
from judgekit.workflows.models import Options
from judgekit.workflows.paired_answers import paired
from judgekit.workflows.setup import Setup, assembled
from judgekit.workflows.stored import StoredRun, open_stored

MOST_RUNS = 26
"""Runs are called A to Z."""

_OF_THE_FOLDER = {"cases": CASES, "system": {"name": "recorded", "path": OUTPUTS}}
"""What a config of a comparison says of its data: they stand in the run folder itself."""


@dataclass(frozen=True)
class PreferWanted:
    """What the command line says of a comparison."""

    judge: str | None = None
    """Name of a judge of preference; None: that of the config, else the shipped one."""
    model: str | None = None
    """Key of the model to ask; None: as the config says, else the one that judged the last run."""
    prompt_version: str | None = None
    config_path: Path | None = None
    """A config with judge, models, gates, spot check and budget; its cases and system are not used."""


@dataclass(frozen=True)
class Comparison:
    """What is compared, ready to be judged."""

    setup: Setup
    compared: Sequence[dict[str, str]]
    options: Options

    def start(self) -> RunJob:
        """The comparison as a new run in a new folder; errors as of `job.start`."""
        return start(self.setup, self.options, self.compared)


def open_comparison(runs: Sequence[str], wanted: PreferWanted, options: Options) -> Comparison:
    """The answers of stored runs, paired; nothing is written yet.

    Args:
        runs: two or more, A first: ids or folders.
        wanted: judge and model.
        options: where runs are kept, and which part of the common cases is taken.

    Raises:
        ConfigError: no such run, judge or model; a run twice; no case in common, or other questions under one id.
        StorageError: a run is damaged.
    """
    if wanted.config_path is not None and options.results_dir is None:
        named = load_config(wanted.config_path, _OF_THE_FOLDER).results_dir
        place = None if named is None else wanted.config_path.resolve().parent / named
        options = replace(options, results_dir=place)
    stored = _opened(runs, options)
    config, path = _config(stored[-1], wanted)
    setup = assembled(_clustered(config, len(stored)), path, paired(stored), options)
    _check_judge(setup)
    options = replace(options, results_dir=options.results_dir or stored[-1].folder.path.resolve().parent)
    compared = [{"run_id": run.manifest.run_id, "path": str(run.folder.path.resolve())} for run in stored]
    return Comparison(setup, compared, options)


def prefer_again(folder: RunFolder, manifest: Manifest, options: Options) -> Setup:
    """A stored comparison as it was set up, to be resumed.

    Raises:
        ConfigError: one of the compared runs is gone, or a wording cannot be used any more.
        StorageError: one of them is damaged.
    """
    places = []
    for run in manifest.compared:
        beside = folder.path.resolve().parent / run["run_id"]
        found = next((path for path in (Path(run["path"]), beside) if is_run(path)), None)
        if found is None:
            raise ConfigError(f"{folder.path}: the compared run {run['run_id']} is gone (looked in {run['path']})")
        places.append(str(found))
    config = open_stored(str(folder.path), options).config
    return assembled(config, Path(manifest.config_path), paired(_opened(places, options)), options)


def _opened(runs: Sequence[str], options: Options) -> list[StoredRun]:
    if not 2 <= len(runs) <= MOST_RUNS:
        raise ConfigError(f"{len(runs)} runs: name 2 to {MOST_RUNS}, such as `judgekit prefer RUN_A RUN_B`")
    last = open_stored(runs[-1], options)
    stored = [*(open_stored(run, options, without=last.manifest.run_id) for run in runs[:-1]), last]
    seen: dict[Path, str] = {}
    for name, run in zip(runs, stored, strict=True):
        path = run.folder.path.resolve()
        if path in seen:
            raise ConfigError(f"{seen[path]} and {name} are one run ({path}); a run cannot be preferred to itself")
        seen[path] = name
        if run.manifest.compared:
            raise ConfigError(f"{run.folder.path}: is a comparison itself; name the runs whose answers are meant")
        for file in (CASES, OUTPUTS):
            if not run.folder.has(file):
                raise ConfigError(f"{run.folder.path}: holds no {file}, so there are no answers to compare")
    return stored


def _config(last: StoredRun, wanted: PreferWanted) -> tuple[RunConfig, Path]:
    """The config of the comparison, and where it stood: the one that is named, or made of what the last run's says."""
    if wanted.config_path is not None:
        config, path = load_config(wanted.config_path, _OF_THE_FOLDER), wanted.config_path
    else:
        config, path = _like_that_of(last), Path(last.manifest.config_path)
    judge = _judge(config, wanted, last)
    spot_check = config.spot_check
    if spot_check is not None and spot_check.judge not in (None, judge.name):
        spot_check = None
    own = RunConfig.model_validate({"name": config.name, "metrics": (), **_OF_THE_FOLDER})
    of_the_data = ("cases", "system", "metrics", "corpus_chunk_ids", "indexing", "errors", "versions")
    update = {name: getattr(own, name) for name in of_the_data}
    return config.model_copy(update={**update, "judges": (judge,), "spot_check": spot_check}), path


def _like_that_of(run: StoredRun) -> RunConfig:
    """A config with the models of a run, its budget, and how it makes figures; it has no gates."""
    config = run.config
    fresh = RunConfig.model_validate({"name": f"prefer-{config.name}"[:64], **_OF_THE_FOLDER})
    names = ("models", "seed", "cluster_by", "slices", "min_n", "budget", "report", "prompts_dir")
    update = {name: getattr(config, name) for name in names}
    if config.prompts_dir is not None and not (run.config_folder / config.prompts_dir).is_dir():
        update["prompts_dir"] = None
    return fresh.model_copy(update=update)


def _judge(config: RunConfig, wanted: PreferWanted, last: StoredRun) -> JudgeConfig:
    """The judge that is asked, as a config says it."""
    of_preference = [judge.name for judge in config.judges if judge.preference or judge.name == PREFERENCE]
    name = wanted.judge or (of_preference[0] if len(of_preference) == 1 else PREFERENCE)
    judge = next((judge for judge in config.judges if judge.name == name), None)
    if judge is None:
        judge = JudgeConfig.model_validate({"name": name, "model": wanted.model or _only_model(config, last)})
    update: dict[str, Any] = {} if wanted.model is None else {"model": wanted.model, "panel": None}
    if wanted.prompt_version is not None:
        update["prompt_version"] = wanted.prompt_version
    judge = judge.model_copy(update=update)
    for model in judge.asked:
        if model not in config.models:
            hint = did_you_mean(model, config.models) if config.models else "; --config names a file with models"
            raise ConfigError(f"no model {model!r} to ask{hint}")
    return judge


def _only_model(config: RunConfig, last: StoredRun) -> str:
    """The model that is meant if none is named: the one that judged the last run, or the only one of the config.

    Raises:
        ConfigError: there are several, or none.
    """
    judged = {model for judge in last.config.judges for model in judge.asked if model in config.models}
    names = sorted(judged or config.models)
    if len(names) == 1:
        return names[0]
    if not names:
        raise ConfigError(
            f"{last.folder.path}: the run has no models, so name a config with one: judgekit prefer ... --config FILE"
        )
    raise ConfigError(f"several models could be asked; name one by --model: {', '.join(names)}")


def _check_judge(setup: Setup) -> None:
    judge = setup.judges[0].judge
    if not isinstance(judge.kind, Preference):
        raise ConfigError(
            f"judge {judge.name} gives each answer a verdict of its own; to compare answers take one with "
            f'"ask" and "preference": true, or the shipped one: --judge {PREFERENCE}'
        )


def _clustered(config: RunConfig, n_runs: int) -> RunConfig:
    """Of several pairs of runs, those about one case belong together; each pair is a slice."""
    if n_runs == 2:
        return config
    cluster_by = config.cluster_by or f"metadata.{SOURCE}"
    return config.model_copy(update={"cluster_by": cluster_by, "slices": (f"metadata.{PAIR}", *config.slices)})
