"""From a checked config to a run that can be carried out, new or resumed."""

import hashlib
import json
import platform
import random
import secrets
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import judgekit
import judgekit.judges
import judgekit.metrics
from judgekit.core.config import RunConfig
from judgekit.core.errors import ConfigError
from judgekit.core.protocols import ReplyCache
from judgekit.core.runs import CONFIG, JUDGMENTS, Manifest, config_changes
from judgekit.core.spot_checks import RUN_CHECK
from judgekit.core.text import canonical_sha256
from judgekit.engine.model_runtime import ModelRuntime
from judgekit.judges.parsing import PARSER_VERSION
from judgekit.storage.case_files import data_sha256
from judgekit.storage.config_files import load_config
from judgekit.storage.git import commit_of
from judgekit.storage.run_folder import RunFolder, new_run_id
from judgekit.workflows.assembly import Assembly, assemble
from judgekit.workflows.job import RunJob, Seeded
from judgekit.workflows.models import Options
from judgekit.workflows.selectors import select_run

_NEAREST_FOLDERS = 4
"""Above a run, in which its config is looked for: results, and what holds them."""


def resolved_config(assembly: Assembly) -> dict[str, Any]:
    """config.json: the config as used, and hashes of everything it names."""
    config = assembly.config.model_dump(mode="json", by_alias=True, exclude_none=True)
    cases_file = assembly.config.cases_file
    in_a_file = None if assembly.corpus_chunk_ids is None else {"corpus_chunk_ids"}  # one of the run's own
    config["resolved"] = {
        "cases": {"sha256": data_sha256(cases_file, assembly.cases_path), "n": len(assembly.cases)},
        "outputs": {key: value for key, value in assembly.outputs_record.items() if key != "path"},
        "prompts": {
            f"{plan.judge.name}/{plan.prompt.version}": plan.prompt.sha256
            for plan in [*assembly.judges, *(check.second for check in assembly.spot_checks)]
        },
        "judges": {plan.judge.name: plan.judge.model_dump(mode="json") for plan in assembly.judges},
        "metrics": {metric.name: metric.model_dump(mode="json", exclude=in_a_file) for metric in assembly.metrics},
        "judgekit": judgekit.__version__,
        "parser_version": PARSER_VERSION,
    }
    if assembly.corpus_chunk_ids is not None:
        sha256 = canonical_sha256(sorted(assembly.corpus_chunk_ids))
        config["resolved"]["corpus_chunk_ids"] = {"sha256": sha256, "n": len(assembly.corpus_chunk_ids)}
    if assembly.indexing_record is not None:
        config["resolved"]["indexing"] = assembly.indexing_record
    return config


def open_job(assembly: Assembly, options: Options) -> RunJob:
    """A new run in a new folder."""
    now = options.now()
    config = assembly.config
    resolved = resolved_config(assembly)
    suffix = f"-shard{options.shard.replace('/', 'of')}" if options.shard else ""
    run_id = options.run_id or new_run_id(config.name, now) + suffix
    if not run_id.replace("-", "").replace("_", "").replace(".", "").isalnum() or run_id.startswith("."):
        raise ConfigError(f"--run-id {run_id!r}: expected letters, digits, '.', '_' and '-'")
    folder = RunFolder.create(results_dir_of(config, assembly.config_path, options), run_id)
    manifest = Manifest(
        run_id=run_id,
        name=config.name,
        status="running",
        created_at=now.isoformat(timespec="seconds"),
        config_path=str(assembly.config_path.resolve()),
        config_sha256=canonical_sha256(resolved),
        n_cases_in_file=assembly.n_cases_in_file,
        **assembly.part.record(),
        versions={
            "judgekit": judgekit.__version__,
            "python": platform.python_version(),
            "parser": str(PARSER_VERSION),
        },
        commit_hash=commit_of(assembly.config_path.resolve().parent),
    )
    return _job(assembly, options, folder, manifest, resolved, found=None)


def resume_job(folder: RunFolder, manifest: Manifest, config_path: Path | None, options: Options) -> RunJob:
    """A run of its own, ready to go on; whether there is anything to ask is for the caller to say.

    Args:
        folder: the run.
        manifest: as it was read when that was found out; the run is refused where it has changed since.
        config_path: left out, the config that the run was started with.
        options: where runs are kept, and whether cached replies are used.

    Raises:
        ConfigError: a config that has changed (what changed is named).
    """
    path = config_path or config_of(folder, manifest)
    options = replace(options, run_id=None, limit=manifest.limit, sample=manifest.sample, shard=manifest.shard)
    assembly = assemble(path, options)
    resolved = resolved_config(assembly)
    old = folder.read_json(CONFIG) if (folder.path / CONFIG).exists() else resolved
    if old.get("seed") == 0 and assembly.config.seed is None:  # how an older judgekit stored that none was given
        old = {key: value for key, value in old.items() if key != "seed"}
    changed = config_changes(old, json.loads(json.dumps(resolved)))
    replaced = _untried_models(folder, assembly.config) if changed else set()
    changed = [path for path in changed if not path.startswith(tuple(f"models.{name}." for name in replaced))]
    if changed:
        raise ConfigError(
            f"{folder.path}: cannot be resumed, since {', '.join(changed)} changed since it was started; "
            "start a new run (what is cached costs nothing)"
        )
    for name, runtime in assembly.used_models().items():
        if name not in replaced:
            runtime.guard.go_on(manifest.models.get(name, {}))
    here = {"n_resumed": manifest.n_resumed + 1, "config_path": str(path.resolve())}
    resumed = manifest.model_copy(update=here)
    return _job(assembly, options, folder, resumed, resolved, found=manifest)


def config_of(folder: RunFolder, manifest: Manifest) -> Path:
    """The config of a run: where it was, or in a folder above the run, if the project was moved.

    Raises:
        ConfigError: it is in neither.
    """
    was = Path(manifest.config_path)
    # Of /old/project/configs/a.json the end `configs/a.json` may stand in a folder above the run, or `a.json` alone.
    ends = [Path(*was.parts[-n_parts:]) for n_parts in range(min(_NEAREST_FOLDERS, len(was.parts) - 1), 0, -1)]
    above = [parent / end for parent in folder.path.resolve().parents[:_NEAREST_FOLDERS] for end in ends]
    for path in (was, *above):
        if path.is_file():
            return path
    raise ConfigError(
        f"{was}: the config of this run is not there any more, nor above {folder.path}; name it: "
        f"judgekit run CONFIG --resume {folder.path}"
    )


def _untried_models(folder: RunFolder, config: RunConfig) -> set[str]:
    """Models that have given no judgment yet, so that nothing rests on how they were configured.

    A run that stopped at a model that refused what its config says can be resumed once that is set right.
    """
    tried = {judgment.model_id for judgment in folder.judgments()} if folder.has(JUDGMENTS) else set()
    return set(config.models) - tried


def find_run(run: str, config_path: Path | None, options: Options, without: str | None = None) -> Path:
    """The folder of a run: by its path, its id or the unique beginning of it, `latest`, or `latest:TAG`.

    `latest` leaves out the run with the id `without`.

    Raises:
        ConfigError: several runs are meant, or there is no newest one.
    """
    if options.results_dir is None and config_path is not None:
        return select_run(run, results_dir_of(load_config(config_path), config_path, options), without)
    return select_run(run, options.results_dir or Path("results"), without)


def results_dir_of(config: RunConfig, config_path: Path, options: Options) -> Path:
    """Where runs are kept: the flag, the config, or `results` in the current folder."""
    if options.results_dir is not None:
        return options.results_dir
    if config.results_dir is not None:
        return config_path.resolve().parent / config.results_dir
    return Path("results")


def open_cache(
    results_dir: Path, models: Mapping[str, ModelRuntime], options: Options
) -> tuple[ReplyCache | None, list[tuple[str, str]]]:
    """The reply cache beside the runs, given to the models that need a network, and warnings about it.

    None where no such model is asked or the cache is not wanted.
    """
    networked = [runtime for runtime in models.values() if runtime.provider.needs_network]
    if not networked or not options.use_cache:
        return None, []
    from judgekit.storage.reply_cache import CACHE_FOLDER, open_reply_cache

    cache, notices = open_reply_cache(results_dir / CACHE_FOLDER)
    for runtime in networked:
        runtime.cache = cache
    return cache, list(notices)


def seeded(seed: int) -> Seeded:
    """A source of randomness for samples."""
    return Seeded(seed, random.Random(seed))  # noqa: S311  # a sample, not a secret


def fresh_seed() -> int:
    """A seed that no other check has."""
    return secrets.randbits(32)


def _check_seed(config: RunConfig, folder: RunFolder) -> int:
    """The seed that the run's check was begun with, that of the config, or a fresh one."""
    stored = [record.seed for record in folder.checks() if record.check == RUN_CHECK]
    if stored:
        return stored[0]
    return fresh_seed() if config.seed is None else config.seed


def _repeat_seed(config: RunConfig, run_id: str) -> int:
    """A fresh seed, or where the config gives one, a seed that follows from it and the run.

    Weekly runs with one seed would ask about the same cases each week, and borderline ones would count again and again.
    """
    if config.seed is None:
        return fresh_seed()
    return int(hashlib.sha256(f"{config.seed} {run_id}".encode()).hexdigest()[:8], 16)


def _job(
    assembly: Assembly,
    options: Options,
    folder: RunFolder,
    manifest: Manifest,
    resolved: Mapping[str, Any],
    *,
    found: Manifest | None,
) -> RunJob:
    used = assembly.used_models()
    cache, notices = open_cache(folder.path.parent, used, options)
    return RunJob(
        config=assembly.config,
        resolved=resolved,
        manifest=manifest,
        cases=assembly.cases,
        cases_record={**assembly.cases_record, "sha256": resolved["resolved"]["cases"]["sha256"]},
        system=assembly.system,
        metrics=assembly.metrics,
        judges=assembly.judges,
        spot_checks=assembly.spot_checks,
        models=used,
        panels=assembly.panels,
        store=folder,
        cache=cache,
        repeats=assembly.repeats,
        draws=seeded(_check_seed(assembly.config, folder)),
        repeat_draws=seeded(_repeat_seed(assembly.config, manifest.run_id)),
        now=options.now,
        price_list=assembly.price_list,
        indexing=assembly.indexing,
        corpus_chunk_ids=assembly.corpus_chunk_ids,
        warnings=[*assembly.warnings, *notices],
        found=found,
    )
