"""The composition root: the only place that names concrete classes and puts them together."""

import json
import os
import platform
import random
import time
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from pydantic import ValidationError

import judgekit
import judgekit.judges
import judgekit.metrics
from judgekit.analysis.slices import check_dimensions
from judgekit.core.canonical import canonical_sha256
from judgekit.core.cases import Case
from judgekit.core.components import Judge, Metric, build, discover
from judgekit.core.config import (
    ComponentConfig,
    DataFile,
    ModelConfig,
    RunConfig,
    config_changes,
    is_floating,
    is_local,
)
from judgekit.core.errors import ConfigError, did_you_mean, first_problem
from judgekit.core.protocols import System
from judgekit.core.runs import CONFIG, JUDGMENTS, Manifest
from judgekit.judges.parsing import PARSER_VERSION
from judgekit.providers.lookup import provider_class_of
from judgekit.providers.retrying import Retrying
from judgekit.reports.markdown import render_markdown
from judgekit.storage.case_files import file_sha256, load_cases, load_outputs
from judgekit.storage.config_files import load_config
from judgekit.storage.prompt_files import load_prompt
from judgekit.storage.recorder import Recorder
from judgekit.storage.run_folder import RunFolder, new_run_id
from judgekit.storage.shipped import shipped
from judgekit.systems.recorded import Recorded
from judgekit.workflows.estimate import EstimateJob
from judgekit.workflows.job import RunJob, SpotCheckPlan
from judgekit.workflows.judgment_draft import JudgePlan
from judgekit.workflows.limiter import AdaptiveLimiter
from judgekit.workflows.model_runtime import ModelRuntime
from judgekit.workflows.pinning import PinGuard


@dataclass(frozen=True)
class Options:
    """What the command line may say beside the config."""

    results_dir: Path | None = None
    run_id: str | None = None
    limit: int | None = None
    use_cache: bool = True
    environment: Mapping[str, str] | None = None
    """Where keys are looked up; left out: the process environment."""


@dataclass
class Assembly:
    """A config with everything that it names, loaded and checked; nothing is written yet."""

    config: RunConfig
    config_path: Path
    cases: list[Case]
    cases_path: Path
    n_cases_in_file: int
    system: System
    outputs_record: dict[str, Any]
    metrics: list[Metric]
    judges: list[JudgePlan]
    spot_checks: list[SpotCheckPlan]
    models: dict[str, ModelRuntime]
    warnings: list[tuple[str, str]]


def config_path_of(name: str) -> Path:
    """A config file, or the shipped config of that name such as `quickstart`."""
    path = Path(name)
    if not path.exists() and not path.suffix and "/" not in name:
        known = {file.stem: file for file in shipped("configs").glob("*.json") if file.name != "config.schema.json"}
        if name in known:
            return known[name]
        raise ConfigError(f"{name}: no such file, and no shipped config of that name{did_you_mean(name, known)}")
    return path


def assemble(config_path: Path, options: Options) -> Assembly:
    """Load and check everything that a config names, without a call and without writing.

    Raises:
        ConfigError: anything that the user can mend.
    """
    config = load_config(config_path)
    base = config_path.resolve().parent
    check_dimensions(config.slices)
    cases_path = base / config.cases_file.path
    all_cases = load_cases(config.cases_file, cases_path)
    cases = all_cases[: options.limit]
    system, outputs_record = _system(config, base, [case.id for case in all_cases])
    used = {judge.model for judge in config.judges}
    if config.spot_check is not None and config.spot_check.model is not None:
        used.add(config.spot_check.model)
    models = {name: _model(name, model, options, needs_key=name in used) for name, model in config.models.items()}
    judges = [_plan(config, base, models, number) for number in range(len(config.judges))]
    return Assembly(
        config=config,
        config_path=config_path,
        cases=cases,
        cases_path=cases_path,
        n_cases_in_file=len(all_cases),
        system=system,
        outputs_record=outputs_record,
        metrics=_metrics(config),
        judges=judges,
        spot_checks=_spot_checks(config, base, models, judges),
        models=models,
        warnings=[],
    )


def _system(config: RunConfig, base: Path, case_ids: list[str]) -> tuple[System, dict[str, Any]]:
    if config.system.name != "recorded":
        hint = did_you_mean(config.system.name, ["recorded"])
        raise ConfigError(f"system: no system called {config.system.name!r}{hint}")
    try:
        source = DataFile.model_validate(config.system.args)
    except ValidationError as error:
        raise ConfigError(f"system (recorded): {first_problem(error)}") from None
    path = base / source.path
    outputs = load_outputs(source, path)
    system = Recorded({output.case_id: output for output in outputs}, path.name)
    system.check(case_ids)
    return system, {"path": source.path, "sha256": file_sha256(path), "n": len(outputs)}


def _metrics(config: RunConfig) -> list[Metric]:
    """The families of the config, or all of them."""
    if config.metrics is None:
        wanted = [ComponentConfig(name=name) for name in sorted(discover(judgekit.metrics, Metric))]
    else:
        wanted = [ComponentConfig(name=item) if isinstance(item, str) else item for item in config.metrics]
    families = []
    for number, item in enumerate(wanted):
        args = dict(item.args)
        if item.name == "retrieval":
            args.setdefault("snippets", config.match.snippets)
        families.append(build(judgekit.metrics, Metric, item.name, args, f"metrics[{number}]"))
    if len({family.name for family in families}) != len(families):
        raise ConfigError("metrics: a family is listed twice")
    return families


def _model(name: str, model: ModelConfig, options: Options, *, needs_key: bool) -> ModelRuntime:
    """A model of the config; the key of one that nothing asks need not be there."""
    provider_class = provider_class_of(model.provider, f"models.{name}.provider")
    environment = os.environ if options.environment is None else options.environment
    key = None
    if provider_class.needs_network:
        variable = model.api_key_env or (None if model.base_url else "OPENAI_API_KEY")
        key = environment.get(variable) if variable else None
        if variable and not key and needs_key:
            raise ConfigError(f"models.{name}: environment variable {variable} is not set; it should hold the key")
        if not is_local(model.base_url) and is_floating(model.model) and not model.pin.allow_floating:
            raise ConfigError(
                f"models.{name}.model: {model.model!r} is an alias that its provider can point at another model; "
                'name a dated version, or set "pin": {"allow_floating": true}'
            )
    limiter = AdaptiveLimiter(model.max_concurrency)
    provider = provider_class(model, api_key=key)
    provider.check()
    if provider.needs_network:
        wrapped = Retrying(provider, limiter.observe)
        provider = wrapped
    return ModelRuntime(
        model_id=name,
        config=model,
        provider=provider,
        limiter=limiter,
        guard=PinGuard(name, model, checks_name=provider_class.needs_network),
    )


def _plan(config: RunConfig, base: Path, models: Mapping[str, ModelRuntime], number: int) -> JudgePlan:
    wanted = config.judges[number]
    judge = build(judgekit.judges, Judge, wanted.name, wanted.args, f"judges[{number}]")
    prompt = load_prompt(wanted.name, wanted.prompt_version, _prompts_dir(config, base))
    return JudgePlan(judge, prompt, models[wanted.model])


def _prompts_dir(config: RunConfig, base: Path) -> Path | None:
    return None if config.prompts_dir is None else base / config.prompts_dir


def _spot_checks(
    config: RunConfig, base: Path, models: Mapping[str, ModelRuntime], judges: list[JudgePlan]
) -> list[SpotCheckPlan]:
    check = config.spot_check
    if check is None:
        return []
    plans = []
    for plan in judges:
        if check.judge not in (None, plan.judge.name):
            continue
        prompt = plan.prompt
        if check.prompt_version is not None:
            prompt = load_prompt(plan.judge.name, check.prompt_version, _prompts_dir(config, base))
        runtime = models[check.model] if check.model is not None else plan.runtime
        if prompt.sha256 == plan.prompt.sha256 and runtime is plan.runtime:
            raise ConfigError(f"spot_check: asks judge {plan.judge.name} with the same model and the same prompt again")
        second = JudgePlan(plan.judge, prompt, runtime, role="spot_check", use_cache=False)
        plans.append(SpotCheckPlan(check, plan, second))
    return plans


def resolved_config(assembly: Assembly) -> dict[str, Any]:
    """config.json: the config as used, and hashes of everything it names."""
    config = assembly.config.model_dump(mode="json", by_alias=True, exclude_none=True)
    config["resolved"] = {
        "cases": {"sha256": file_sha256(assembly.cases_path), "n": len(assembly.cases)},
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
    return config


def open_job(assembly: Assembly, options: Options) -> RunJob:
    """A new run in a new folder."""
    now = datetime.now(UTC)
    config = assembly.config
    resolved = resolved_config(assembly)
    run_id = options.run_id or new_run_id(config.name, now)
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
        versions={
            "judgekit": judgekit.__version__,
            "python": platform.python_version(),
            "parser": str(PARSER_VERSION),
        },
    )
    return _job(assembly, options, folder, manifest, resolved, resuming=False)


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
    options = Options(options.results_dir, None, manifest.limit, options.use_cache, options.environment)
    assembly = assemble(path, options)
    resolved = resolved_config(assembly)
    old = folder.read_json(CONFIG) if (folder.path / CONFIG).exists() else resolved
    changed = config_changes(old, json.loads(json.dumps(resolved)))
    if changed:
        raise ConfigError(
            f"{folder.path}: cannot be resumed, since {', '.join(changed)} changed since it was started; "
            "start a new run (what is cached costs nothing)"
        )
    manifest = manifest.model_copy(update={"n_resumed": manifest.n_resumed + 1})
    return _job(assembly, options, folder, manifest, resolved, resuming=True)


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


def _job(
    assembly: Assembly,
    options: Options,
    folder: RunFolder,
    manifest: Manifest,
    resolved: Mapping[str, Any],
    *,
    resuming: bool,
) -> RunJob:
    networked = [name for name, runtime in assembly.models.items() if runtime.provider.needs_network]
    used = {plan.runtime.model_id for plan in assembly.judges}
    used |= {check.second.runtime.model_id for check in assembly.spot_checks}
    cache, price_list = None, None
    warnings = list(assembly.warnings)
    if used & set(networked):
        from judgekit.providers.prices import price_list as price_list_name
        from judgekit.providers.prices import price_of

        price_list = price_list_name()
        for name in networked:
            assembly.models[name].price = price_of(assembly.models[name].config)
        if options.use_cache:
            from judgekit.storage.reply_cache import open_reply_cache

            cache, notices = open_reply_cache(folder.path.parent / ".cache")
            warnings += notices
        for name in networked:
            assembly.models[name].cache = cache
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
        models={name: runtime for name, runtime in assembly.models.items() if name in used},
        store=folder,
        cache=cache,
        open_sink=lambda: Recorder(folder.path / JUDGMENTS, cache),
        locked=folder.locked,
        rng=random.Random(assembly.config.seed),  # noqa: S311  # a sample, not a secret
        now=lambda: datetime.now(UTC),
        monotonic=time.monotonic,
        render_summary=render_markdown,
        price_list=price_list,
        warnings=warnings,
        resuming=resuming,
    )


def open_estimate(assembly: Assembly) -> EstimateJob:
    """What an estimate needs of a checked config."""
    price_list = None
    for runtime in assembly.models.values():
        if runtime.provider.needs_network:
            from judgekit.providers.prices import price_list as price_list_name
            from judgekit.providers.prices import price_of

            price_list = price_list_name()
            runtime.price = price_of(runtime.config)
    return EstimateJob(assembly.cases, assembly.system, assembly.judges, assembly.spot_checks, price_list)


def open_models(config_path: Path, only: str | None) -> dict[str, ModelRuntime]:
    """The models of a config, or one of them.

    Raises:
        ConfigError: no model of that name.
    """
    config = load_config(config_path)
    if only is not None and only not in config.models:
        raise ConfigError(f"--model {only!r}{did_you_mean(only, config.models)}")
    return {
        name: _model(name, model, Options(), needs_key=False)
        for name, model in config.models.items()
        if only in (None, name)
    }
