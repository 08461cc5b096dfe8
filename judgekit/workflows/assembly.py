"""From a config file to everything that it names, loaded and checked; the only place that names concrete classes."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from pydantic import ValidationError

import judgekit
import judgekit.judges
import judgekit.metrics
from judgekit.analysis.gates import check_gate_names
from judgekit.analysis.indexing import indexing_coverage
from judgekit.analysis.one_sided import check_positions
from judgekit.analysis.slices import check_cluster_field, check_dimensions
from judgekit.core.cases import Case
from judgekit.core.components import Judge, Metric, build, discover
from judgekit.core.config import ComponentConfig, RunConfig
from judgekit.core.data_files import DataFile
from judgekit.core.errors import ConfigError, InputError, did_you_mean, first_problem
from judgekit.core.judgments import Role
from judgekit.core.protocols import System
from judgekit.core.runs import CasePart
from judgekit.core.spot_checks import RUN_CHECK, RUN_REPEAT
from judgekit.engine.judgment_draft import JudgePlan
from judgekit.engine.model_runtime import ModelRuntime
from judgekit.metrics.headings import (
    delimiter_notice,
    heading_texts,
    recognised_delimiter,
    split_case,
    split_output,
)
from judgekit.metrics.retrieval_ids import RetrievalIds
from judgekit.storage.cache_entries import CacheReader
from judgekit.storage.case_files import data_sha256, file_sha256, load_cases, load_outputs
from judgekit.storage.config_files import load_config
from judgekit.storage.formats.lookup import missing_is_empty
from judgekit.storage.formats.records import NO_ID
from judgekit.storage.id_files import load_ids
from judgekit.storage.indexing_files import load_indexed_documents
from judgekit.storage.prompt_files import load_prompt
from judgekit.storage.shipped import shipped
from judgekit.systems.recorded import Recorded
from judgekit.workflows.data_checks import asked_of
from judgekit.workflows.dry_run import EstimateJob
from judgekit.workflows.functions import with_functions
from judgekit.workflows.job import SpotCheckPlan
from judgekit.workflows.models import Options, build_model, check_plays, most_connections, price_models
from judgekit.workflows.panels import Panel

MATCHING = ("retrieval", "multi_hop")
"""Families that match hits with gold supports as `match` says."""


@dataclass
class Assembly:
    """A config with everything that it names, loaded and checked; nothing is written yet."""

    config: RunConfig
    config_path: Path
    cases: list[Case]
    cases_path: Path
    n_cases_in_file: int
    part: CasePart
    """Which of them are taken."""
    system: System
    outputs_record: dict[str, Any]
    metrics: list[Metric]
    judges: list[JudgePlan]
    """Judges as they are asked: one plan each, of a panel one for each member."""
    spot_checks: list[SpotCheckPlan]
    models: dict[str, ModelRuntime]
    repeats: list[JudgePlan] = field(default_factory=list)
    """Judges that are asked again about verdicts older than a day."""
    panels: list[Panel] = field(default_factory=list)
    price_list: str | None = None
    warnings: list[tuple[str, str]] = field(default_factory=list)
    indexing: dict[str, Any] | None = None
    """Indexing coverage, where the config names a file for it."""
    indexing_record: dict[str, Any] | None = None
    corpus_chunk_ids: frozenset[str] | None = None
    """Ids of all chunks of the corpus, where the config names a file of them."""

    @property
    def cases_record(self) -> dict[str, Any]:
        """Path and number of the cases, and which part of the file they are."""
        return {
            "path": self.config.cases_file.path,
            "n": len(self.cases),
            "n_in_file": self.n_cases_in_file,
            **self.part.record(),
        }

    def used_models(self) -> dict[str, ModelRuntime]:
        """The models that something asks, by name."""
        plans = [*self.judges, *(check.second for check in self.spot_checks)]
        used = {plan.runtime.model_id for plan in plans}
        return {name: runtime for name, runtime in self.models.items() if name in used}


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
    notices: list[tuple[str, str]] = []
    all_cases = load_cases(config.cases_file, cases_path, notices)
    delimiter = _heading_delimiter(config, all_cases, notices)
    all_cases = [split_case(case, delimiter) for case in all_cases]
    check_cluster_field(config.cluster_by, all_cases)
    part = CasePart(options.limit, options.sample, config.seed, options.shard)
    cases = part.of(all_cases)
    system, outputs_record = _system(config, base, [case.id for case in all_cases], notices, delimiter)
    used = {model for judge in config.judges for model in judge.asked}
    if config.spot_check is not None and config.spot_check.model is not None:
        used.add(config.spot_check.model)
    options = replace(options, most_connections=most_connections(len(used)))
    models = {
        name: build_model(name, model, options, needs_key=options.needs_keys and name in used)
        for name, model in config.models.items()
    }
    judges = [plan for number in range(len(config.judges)) for plan in _plans(config, base, models, number)]
    corpus = _corpus_chunk_ids(config, base)
    metrics = build_metrics(config, corpus)
    components = [*metrics, *(plan.judge for plan in judges)]
    check_gate_names(config.gates, components, has_indexing=config.indexing is not None)
    assembly = Assembly(
        config=config,
        config_path=config_path,
        cases=cases,
        cases_path=cases_path,
        n_cases_in_file=len(all_cases),
        part=part.where_it_cuts(len(all_cases)),
        system=system,
        outputs_record=outputs_record,
        metrics=metrics,
        judges=judges,
        # The plain run after the shards checks and judges the whole; a shard would only check its part.
        spot_checks=[] if options.shard else _spot_checks(config, base, models, judges),
        models=models,
        repeats=[] if options.shard else _repeats(config, judges),
        panels=panels_of(config, judges),
        warnings=list(dict.fromkeys(notices)),
        corpus_chunk_ids=corpus,
    )
    assembly.price_list = price_models(assembly.used_models(), config.budget)
    for name, runtime in assembly.used_models().items():
        if runtime.config.max_concurrency > runtime.limiter.most:
            text = f"model {name}: at most {runtime.limiter.most} calls at once, since `ulimit -n` allows no more files"
            assembly.warnings.append(("concurrency_capped", text))
    _read_indexing(assembly, base)
    return assembly


def _corpus_chunk_ids(config: RunConfig, base: Path) -> frozenset[str] | None:
    """What the file of ids holds that the config names."""
    entry = config.corpus_chunk_ids
    if entry is None:
        return None
    source = DataFile(path=entry) if isinstance(entry, str) else entry
    return load_ids(source, base / source.path)


def _read_indexing(assembly: Assembly, base: Path) -> None:
    """Indexing coverage of the file that the config names for it."""
    source = assembly.config.indexing_file
    if source is None:
        return
    path = base / source.path
    documents = load_indexed_documents(source, path)
    try:
        assembly.indexing = indexing_coverage(documents)
    except InputError as error:
        raise InputError(f"{path}: {error}") from None
    assembly.indexing_record = {"sha256": file_sha256(path), "n": len(documents)}


def _system(
    config: RunConfig, base: Path, case_ids: list[str], notices: list[tuple[str, str]], delimiter: str | None
) -> tuple[System, dict[str, Any]]:
    if config.system.name != "recorded":
        hint = did_you_mean(config.system.name, ["recorded"])
        raise ConfigError(f"system: no system called {config.system.name!r}{hint}")
    try:
        source = DataFile.model_validate(config.system.args)
    except ValidationError as error:
        raise ConfigError(f"system (recorded): {first_problem(error)}") from None
    path = base / source.path
    said: list[tuple[str, str]] = []
    outputs = load_outputs(source, path, said)
    numbered = [kind for kind, told in (("cases", notices), ("outputs", said)) if NO_ID in dict(told)]
    check_positions(case_ids, [output.case_id for output in outputs], numbered, path.name)
    notices += said
    if path.resolve() == (base / config.cases_file.path).resolve():  # positions of one file cannot differ
        notices[:] = [notice for notice in notices if notice[0] != NO_ID]
    system = Recorded(
        {output.case_id: split_output(output, delimiter) for output in outputs},
        path.name,
        missing_is_empty=missing_is_empty(source, path),
    )
    system.check(case_ids)
    return system, {"path": source.path, "sha256": data_sha256(source, path), "n": len(outputs)}


def build_metrics(config: RunConfig, corpus_chunk_ids: frozenset[str] | None = None) -> list[Metric]:
    """The families of the config, or all of them.

    Args:
        config: of the run.
        corpus_chunk_ids: ids of all chunks of the corpus, where there is a file of them.

    Raises:
        ConfigError: no such family, wrong arguments, or a family that is listed twice.
    """
    if config.metrics is None:
        wanted = [ComponentConfig(name=name) for name in sorted(discover(judgekit.metrics, Metric))]
    else:
        wanted = [ComponentConfig(name=item) if isinstance(item, str) else item for item in config.metrics]
    families = []
    for number, item in enumerate(wanted):
        args = dict(item.args)
        if item.name in MATCHING:
            args.setdefault("snippets", config.match.snippets)
        where = f"metrics[{number}]"
        family = with_functions(build(judgekit.metrics, Metric, item.name, args, where), where)
        if isinstance(family, RetrievalIds) and corpus_chunk_ids is not None:
            if family.corpus_chunk_ids is not None:
                raise ConfigError(f"{where}: corpus_chunk_ids is given here and at the top of the config; keep one")
            family = family.model_copy(update={"corpus_chunk_ids": corpus_chunk_ids})
        families.append(family)
    if len({family.name for family in families}) != len(families):
        raise ConfigError("metrics: a family is listed twice")
    return families


def _heading_delimiter(config: RunConfig, cases: Sequence[Case], notices: list[tuple[str, str]]) -> str | None:
    """Where headings that are one text are split beside ` > `: as the config says, else as the gold does throughout."""
    if config.match.heading_delimiter is not None:
        return config.match.heading_delimiter
    found = recognised_delimiter(text for case in cases for text in heading_texts(case))
    notices += [] if found is None else [delimiter_notice(found)]
    return found


def _plans(config: RunConfig, base: Path, models: Mapping[str, ModelRuntime], number: int) -> list[JudgePlan]:
    """A judge as it is asked: of its model, or of each member of its panel."""
    wanted = config.judges[number]
    judge = build(judgekit.judges, Judge, wanted.name, wanted.args, f"judges[{number}]")
    prompt = load_prompt(wanted.name, wanted.prompt_version, _prompts_dir(config, base))
    for model in wanted.asked:
        check_plays(judge, models[model], f"judges[{number}]")
    role: Role = "primary" if wanted.panel is None else "member"
    return [JudgePlan(judge, prompt, models[model], role=role) for model in wanted.asked]


def panels_of(config: RunConfig, plans: Sequence[JudgePlan]) -> list[Panel]:
    """The panels of a config, each with the plans of its members."""
    return [
        Panel(members[0].judge, wanted.panel, members)
        for wanted in config.judges
        if wanted.panel is not None and (members := [plan for plan in plans if plan.judge.name == wanted.name])
    ]


def _prompts_dir(config: RunConfig, base: Path) -> Path | None:
    return None if config.prompts_dir is None else base / config.prompts_dir


def _spot_checks(
    config: RunConfig, base: Path, models: Mapping[str, ModelRuntime], judges: list[JudgePlan]
) -> list[SpotCheckPlan]:
    check = config.spot_check
    if check is None:
        return []
    plans = []
    firsts: dict[str, JudgePlan] = {}
    for plan in judges:
        firsts.setdefault(plan.judge.name, plan)
    for plan in firsts.values():
        if check.judge not in (None, plan.judge.name):
            continue
        prompt = plan.prompt
        if check.prompt_version is not None:
            prompt = load_prompt(plan.judge.name, check.prompt_version, _prompts_dir(config, base))
        runtime = models[check.model] if check.model is not None else plan.runtime
        asked = [other.runtime for other in judges if other.judge.name == plan.judge.name]
        if not check.repeat and prompt.sha256 == plan.prompt.sha256 and any(runtime is other for other in asked):
            again = "the same model" if len(asked) == 1 else "a member of its panel"
            hint = '; "repeat": true asks for that' if len(asked) == 1 else ""
            raise ConfigError(f"spot_check: asks judge {plan.judge.name} with {again} and the same prompt again{hint}")
        check_plays(plan.judge, runtime, "spot_check")
        second = JudgePlan(plan.judge, prompt, runtime, role="spot_check", use_cache=False, check=RUN_CHECK)
        plans.append(SpotCheckPlan(check, plan, second))
    return plans


def _repeats(config: RunConfig, judges: Sequence[JudgePlan]) -> list[JudgePlan]:
    """Judges that a run asks again about verdicts older than a day, as `spot_check` says.

    Not a panel, which is no single model, and not a deterministic one, which is never cached and says the same again.
    Not where the spot check itself asks the judge again.
    """
    check = config.spot_check
    if check is None or check.repeat or not check.repeat_n:
        return []
    return [
        replace(plan, role="spot_check", use_cache=False, check=RUN_REPEAT)
        for plan in judges
        if plan.role == "primary"
        and check.judge in (None, plan.judge.name)
        and not plan.runtime.provider.is_deterministic
    ]


def open_estimate(assembly: Assembly, cache: CacheReader | None = None) -> EstimateJob:
    """What an estimate needs of a checked config, and the replies of earlier runs where they are to be counted."""
    for runtime in assembly.models.values():
        runtime.cache = cache
    return EstimateJob(
        cache=cache,
        cases=assembly.cases,
        cases_record=assembly.cases_record,
        system=assembly.system,
        judges=assembly.judges,
        spot_checks=assembly.spot_checks,
        repeats=assembly.repeats,
        repeat_n=assembly.config.spot_check.repeat_n if assembly.config.spot_check is not None else 0,
        versions=assembly.config.versions,
        price_list=assembly.price_list,
        asked=asked_of(
            assembly.config,
            assembly.metrics,
            [plan.judge for plan in assembly.judges],
            is_part=len(assembly.cases) < assembly.n_cases_in_file,
        ),
        warnings=assembly.warnings,
    )
