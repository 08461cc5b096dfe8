"""From a checked config to a run that can be carried out, new or resumed."""

import json
import platform
import random
import time
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import judgekit
import judgekit.judges
import judgekit.metrics
from judgekit.core.canonical import canonical_sha256
from judgekit.core.config import (
    RunConfig,
    config_changes,
)
from judgekit.core.errors import ConfigError
from judgekit.core.protocols import ReplyCache
from judgekit.core.runs import CONFIG, JUDGMENTS, Manifest
from judgekit.judges.parsing import PARSER_VERSION
from judgekit.reports.markdown import render_markdown
from judgekit.storage.case_files import data_sha256
from judgekit.storage.config_files import load_config
from judgekit.storage.recorder import Recorder
from judgekit.storage.run_folder import RunFolder, new_run_id
from judgekit.wiring.assembly import Assembly, assemble
from judgekit.wiring.models import Options
from judgekit.workflows.job import RunJob
from judgekit.workflows.model_runtime import ModelRuntime


def resolved_config(assembly: Assembly) -> dict[str, Any]:
    """config.json: the config as used, and hashes of everything it names."""
    config = assembly.config.model_dump(mode="json", by_alias=True, exclude_none=True)
    cases_file = assembly.config.cases_file
    config["resolved"] = {
        "cases": {"sha256": data_sha256(cases_file, assembly.cases_path), "n": len(assembly.cases)},
        "outputs": {key: value for key, value in assembly.outputs_record.items() if key != "path"},
        "prompts": {
            f"{plan.judge.name}/{plan.prompt.version}": plan.prompt.sha256
            for plan in [*assembly.judges, *(check.second for check in assembly.spot_checks)]
        },
        "judges": {plan.judge.name: plan.judge.model_dump(mode="json") for plan in assembly.judges},
        "metrics": {metric.name: metric.model_dump(mode="json") for metric in assembly.metrics},
        "judgekit": judgekit.__version__,
        "parser_version": PARSER_VERSION,
    }
    if assembly.indexing_record is not None:
        config["resolved"]["indexing"] = assembly.indexing_record
    return config


def open_job(assembly: Assembly, options: Options) -> RunJob:
    """A new run in a new folder."""
    now = datetime.now(UTC)
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
        limit=options.limit,
        shard=options.shard,
        versions={
            "judgekit": judgekit.__version__,
            "python": platform.python_version(),
            "parser": str(PARSER_VERSION),
        },
    )
    return _job(assembly, options, folder, manifest, resolved, found=None)


def resume_job(run: str, config_path: Path | None, options: Options) -> RunJob:
    """A run that stopped early, ready to go on.

    Args:
        run: a run id, or the path of a run folder.
        config_path: left out, the config that the run was started with.
        options: where runs are kept, and whether cached replies are used.

    Raises:
        ConfigError: no such run, a run that is complete, or a config that has changed (what changed is named).
    """
    folder = RunFolder.open(find_run(run, config_path, options))
    manifest = folder.manifest()
    if manifest.status == "complete":
        raise ConfigError(f"{folder.path}: this run is complete; there is nothing to resume")
    path = config_path or Path(manifest.config_path)
    options = replace(options, run_id=None, limit=manifest.limit, shard=manifest.shard)
    assembly = assemble(path, options)
    resolved = resolved_config(assembly)
    old = folder.read_json(CONFIG) if (folder.path / CONFIG).exists() else resolved
    changed = config_changes(old, json.loads(json.dumps(resolved)))
    if changed:
        raise ConfigError(
            f"{folder.path}: cannot be resumed, since {', '.join(changed)} changed since it was started; "
            "start a new run (what is cached costs nothing)"
        )
    for name, runtime in assembly.used_models().items():
        runtime.guard.go_on(manifest.models.get(name, {}))
    resumed = manifest.model_copy(update={"n_resumed": manifest.n_resumed + 1})
    return _job(assembly, options, folder, resumed, resolved, found=manifest)


def find_run(run: str, config_path: Path | None, options: Options) -> Path:
    """The folder of a run, by its path or by its id in the results folder."""
    if (Path(run) / "manifest.json").is_file():
        return Path(run)
    if options.results_dir is None and config_path is not None:
        return results_dir_of(load_config(config_path), config_path, options) / run
    return (options.results_dir or Path("results")) / run


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
        cases_record={
            "path": assembly.config.cases_file.path,
            "sha256": resolved["resolved"]["cases"]["sha256"],
            "n": len(assembly.cases),
            "n_in_file": assembly.n_cases_in_file,
        },
        system=assembly.system,
        metrics=assembly.metrics,
        judges=assembly.judges,
        spot_checks=assembly.spot_checks,
        models=used,
        store=folder,
        cache=cache,
        open_sink=lambda: Recorder(folder.path / JUDGMENTS, cache),
        locked=lambda: folder.locked_as_found(found),
        rng=random.Random(assembly.config.seed),  # noqa: S311  # a sample, not a secret
        now=lambda: datetime.now(UTC),
        monotonic=time.monotonic,
        render_summary=render_markdown,
        write_report=(lambda: _write_report(folder.path)) if assembly.config.report else None,
        price_list=assembly.price_list,
        indexing=assembly.indexing,
        warnings=[*assembly.warnings, *notices],
        resuming=found is not None,
    )


def _write_report(folder: Path) -> None:
    from judgekit.wiring.reporting import write_report  # templates and tables are loaded when the run is done

    write_report(folder)
