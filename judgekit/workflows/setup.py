"""From a config file to everything that it names, loaded and checked; nothing is written yet."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from pydantic import ValidationError

import judgekit.executors
from judgekit.analysis.gates import check_gate_names
from judgekit.analysis.repeated_answers import most_answers
from judgekit.analysis.slices import check_cluster_field, check_dimensions
from judgekit.core.case_parts import CasePart
from judgekit.core.cases import Case
from judgekit.core.components import Judge, Metric, find, names_of
from judgekit.core.config import ExecutorConfig, RunConfig, SpotCheck
from judgekit.core.errors import ConfigError, did_you_mean, first_problem
from judgekit.core.judge_config import JudgeConfig
from judgekit.core.judgments import Role
from judgekit.core.prompts import PromptTemplate
from judgekit.core.protocols import Surroundings, System
from judgekit.core.runs import Notices
from judgekit.core.shard_tasks import Executor
from judgekit.core.spot_checks import RUN_REPEAT, RUN_SPOT_CHECK
from judgekit.core.stored_text import as_stored, characters_kept
from judgekit.core.streams import IdList
from judgekit.engine.model_runtime import ModelRuntime
from judgekit.engine.requests import JudgePlan
from judgekit.storage.config_files import load_config
from judgekit.systems.recorded import Recorded
from judgekit.workflows.case_scores import judge_inputs
from judgekit.workflows.families import build_metrics, check_columns
from judgekit.workflows.judge_components import build_judge, check_fits, load_wording
from judgekit.workflows.judged_data import RECORDED, JudgedData, judged_data
from judgekit.workflows.models import (
    Options,
    build_model,
    check_plays,
    most_connections,
    price_models,
    surroundings_of,
)
from judgekit.workflows.panel_rulings import Panel
from judgekit.workflows.selectors import check_baselines, results_dir_of

LOCAL = "local"
"""The executor that is this process."""


@dataclass(frozen=True)
class SpotCheckPlan:
    """The second opinion on one judge."""

    wanted: SpotCheck
    primary: JudgePlan
    second: JudgePlan


@dataclass(kw_only=True)
class Setup:
    """A config with everything that it names."""

    config: RunConfig
    config_path: Path
    cases: Collection[Case]
    n_cases_in_file: int
    n_answers: int
    """Answers to the case that has most."""
    part: CasePart
    """Which of them are taken."""
    system: Recorded | System
    metrics: Sequence[Metric]
    judges: Sequence[JudgePlan]
    """Judges as they are asked: one plan each, of a panel one for each member."""
    models: Mapping[str, ModelRuntime]
    """The models that something asks."""
    spot_checks: Sequence[SpotCheckPlan] = ()
    repeats: Sequence[JudgePlan] = ()
    """Judges that are asked again about verdicts older than a day."""
    judged_in_file: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """In a shard, by judge: the cases of the whole that it is asked about, which a spot check draws from."""
    samples: Mapping[str, Sequence[str]] | None = None
    """In a shard, by judge: what the spot check of the whole has drawn, if that is known."""
    panels: Sequence[Panel] = ()
    corpus_chunk_ids: frozenset[str] | None = None
    """Ids of all chunks of the corpus, if the config names a file of them."""
    indexing: Mapping[str, Any] | None = None
    """Indexing coverage, if the config names a file for it."""
    files: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """What a run stores of the files of cases, outputs and indexed documents: sha256 and number of records."""
    price_list: str | None = None
    executor: Executor | None = None
    """Where shards of the run are judged; None: the run is carried out in this process."""
    system_facts: Mapping[str, Any] = field(default_factory=dict)
    """What a live system says of itself before it is asked."""
    surroundings: Surroundings
    """What a live system may use."""
    heading_delimiter: str | None = None
    warnings: Notices = field(default_factory=list)

    @property
    def cases_record(self) -> dict[str, Any]:
        """Path and number of the cases, and which part of the file they are."""
        path, n = self.config.cases_file.path, len(self.cases)
        return {"path": path, "n": n, "n_in_file": self.n_cases_in_file, **self.part.record()}

    @property
    def judge_components(self) -> Sequence[Judge]:
        """The judges without their prompts and models, each once."""
        return list({plan.judge.name: plan.judge for plan in self.judges}.values())


def set_up(config_path: Path, options: Options, system: System | None = None) -> Setup:
    """Load and check everything that a config names, without a call and without writing.

    Args:
        config_path: the config.
        options: what is said beside it.
        system: takes the place of the config's, such as a function that no config can name.

    Raises:
        ConfigError: anything that you can correct in a file or a flag.
    """
    config = load_config(config_path)
    check_dimensions(config.slices)
    check_baselines(config.gates, results_dir_of(config.results_dir, config_path, options))
    # A spot check is drawn from all cases that a judge is asked about, which takes more than their ids.
    draws = config.spot_check is not None and options.samples is None and config.system.name == RECORDED
    surroundings = surroundings_of(config_path, options)
    data = judged_data(config, surroundings, system, options.shard, keeps_all=draws)
    setup = assembled(config, config_path, data, options)
    if options.shard is None and system is None:  # a shard is not divided again, and no worker can be sent a program
        setup.executor = executor_of(config)
    return setup


def executor_of(config: RunConfig) -> Executor | None:
    """The executor that a config names; None: this process.

    Raises:
        ConfigError: there is none of this name, or its arguments are wrong.
    """
    wanted = config.executor or ExecutorConfig()
    names = names_of(judgekit.executors, Executor)
    if wanted.name == LOCAL:
        if wanted.args:
            raise ConfigError(f"executor: {LOCAL} takes no arguments; {' or '.join(names)} does")
        return None
    if wanted.name not in names:
        raise ConfigError(f"executor: none called {wanted.name!r}{did_you_mean(wanted.name, [*names, LOCAL])}")
    try:
        return find(judgekit.executors, Executor, wanted.name, "executor")(**wanted.args)
    except ValidationError as error:
        raise ConfigError(f"executor ({wanted.name}): {first_problem(error)}") from None


def assembled(config: RunConfig, config_path: Path, data: JudgedData, options: Options) -> Setup:
    """A config with its data, and everything else that it names built and checked.

    Args:
        config: the config.
        config_path: where it was read from, which its own prompts are beside.
        data: what is judged.
        options: which part of the cases is taken, where runs are kept, and whether keys are needed.

    Raises:
        ConfigError: anything that you can correct in a file or a flag.
    """
    all_cases = data.cases
    check_cluster_field(config.cluster_by, all_cases)
    part = CasePart(options.limit, options.sample, config.seed, options.shard, options.case_ids)
    cases = part.of(all_cases, data.in_shard)
    base = config_path.resolve().parent
    prompts = [] if config.prompts_dir is None else [base / config.prompts_dir]
    models = _models(config, config_path, options)
    judges = []
    for place, judge in enumerate(config.judges):
        where = f"judges[{place}]"
        prompt = load_wording(judge, judge.prompt_version, prompts, where)
        judges += _plans(judge, build_judge(judge, prompt, where, [base]), prompt, models, where)
    metrics = build_metrics(config, [base], data.corpus_chunk_ids)
    components = [*metrics, *(plan.judge for plan in judges)]
    check_columns(components)
    check_gate_names(config.gates, components, has_indexing=data.indexing is not None, n_answers=data.n_answers)
    # A shard asks about those of its cases that the sample of the whole holds; for what it cannot know, the merged run.
    is_shard = options.shard is not None
    has_sample = config.spot_check is not None and not (is_shard and not isinstance(data.system, Recorded))
    spot_checks = _spot_checks(config, prompts, models, judges) if has_sample else []
    whole = replace(part, shard=None).of(all_cases) if is_shard and spot_checks and options.samples is None else []
    used = {plan.runtime.model_id for plan in [*judges, *(item.second for item in spot_checks)]}
    models = {name: runtime for name, runtime in models.items() if name in used}
    return Setup(
        config=config,
        config_path=config_path,
        cases=cases,
        n_cases_in_file=len(all_cases),
        n_answers=data.n_answers if cases is all_cases or data.n_answers < 2 else most_answers(cases),
        part=part.where_it_cuts(all_cases),
        system=data.system,
        system_facts=data.system_facts,
        surroundings=surroundings_of(config_path, options),
        heading_delimiter=data.heading_delimiter,
        metrics=metrics,
        judges=judges,
        models=models,
        spot_checks=spot_checks,
        repeats=[] if is_shard or config.spot_check is None else _repeats(config.spot_check, judges),
        judged_in_file=judged_cases(config, data.outputs_of_all or data.system, judges, whole),
        samples=options.samples,
        panels=panels_of(config.judges, judges),
        corpus_chunk_ids=data.corpus_chunk_ids,
        indexing=data.indexing,
        files={**data.files, "cases": {**data.files["cases"], "n": len(cases)}},
        price_list=price_models(models, config.budget, by_batch=True),
        warnings=[*dict.fromkeys(data.notices), *_capped(models)],
    )


def judged_cases(
    config: RunConfig, system: Recorded | System, judges: Sequence[JudgePlan], cases: Collection[Case]
) -> dict[str, IdList]:
    """By judge, the cases whose recorded outputs it is asked about."""
    if not cases or not isinstance(system, Recorded):
        return {}
    n_kept = characters_kept(config.store_text)
    pairs = ((case, as_stored(system.output(case), n_kept)) for case in cases)
    components = {plan.judge.name: plan.judge for plan in judges}
    found = {name: IdList() for name in components}
    for item in judge_inputs([*components.values()], pairs, {}, []):
        found[item.judge].append(item.case_id)
    return found


def _models(config: RunConfig, config_path: Path, options: Options) -> dict[str, ModelRuntime]:
    """All models of the config; only those that a judge or the spot check names need a key."""
    used = {model for judge in config.judges for model in judge.asked}
    if config.spot_check is not None and config.spot_check.model is not None:
        used.add(config.spot_check.model)
    options = replace(options, most_connections=most_connections(len(used)))
    return {
        name: build_model(name, model, config_path, options, needs_key=options.needs_keys and name in used)
        for name, model in config.models.items()
    }


def _capped(models: Mapping[str, ModelRuntime]) -> Notices:
    """Models that are asked less than the config allows."""
    return [
        (
            "concurrency_capped",
            f"model {name}: at most {runtime.limiter.most} calls at once, since `ulimit -n` allows no more files",
        )
        for name, runtime in models.items()
        if runtime.config.max_concurrency > runtime.limiter.most
    ]


def _plans(
    wanted: JudgeConfig, judge: Judge, prompt: PromptTemplate, models: Mapping[str, ModelRuntime], where: str
) -> list[JudgePlan]:
    """A judge as it is asked: of its model, or of each member of its panel."""
    for model in wanted.asked:
        check_plays(judge, models[model], where)
    role: Role = "primary" if wanted.panel is None else "member"
    return [JudgePlan(judge, prompt, models[model], role=role) for model in wanted.asked]


def panels_of(judges: Sequence[JudgeConfig], plans: Sequence[JudgePlan]) -> list[Panel]:
    """The panels of a config, each with the plans of its members."""
    return [
        Panel(members[0].judge, wanted.panel, members)
        for wanted in judges
        if wanted.panel is not None and (members := [plan for plan in plans if plan.judge.name == wanted.name])
    ]


def _spot_checks(
    config: RunConfig, prompts: Sequence[Path], models: Mapping[str, ModelRuntime], judges: Sequence[JudgePlan]
) -> list[SpotCheckPlan]:
    """The second opinions that a config asks for."""
    wanted = config.spot_check
    if wanted is None:
        return []
    configured = {judge.name: judge for judge in config.judges}
    found = []
    for name, plans in _by_judge(judges, wanted.judge).items():
        first = plans[0]
        prompt = first.prompt
        if wanted.prompt_version is not None:
            prompt = load_wording(configured[name], wanted.prompt_version, prompts, "spot_check")
            check_fits(first.judge, prompt)
        runtime = first.runtime if wanted.model is None else models[wanted.model]
        is_same = prompt.sha256 == first.prompt.sha256 and any(runtime is plan.runtime for plan in plans)
        if is_same and not wanted.repeat:
            again, hint = "a member of its panel", ""
            if len(plans) == 1:
                again, hint = "the same model", '; "repeat": true asks for that'
            raise ConfigError(f"spot_check: asks judge {name} with {again} and the same prompt again{hint}")
        check_plays(first.judge, runtime, "spot_check", is_second=True)
        second = JudgePlan(first.judge, prompt, runtime, role="spot_check", use_cache=False, check=RUN_SPOT_CHECK)
        found.append(SpotCheckPlan(wanted, first, second))
    return found


def _by_judge(judges: Sequence[JudgePlan], only: str | None) -> dict[str, list[JudgePlan]]:
    found: dict[str, list[JudgePlan]] = {}
    for plan in judges:
        if only in (None, plan.judge.name):
            found.setdefault(plan.judge.name, []).append(plan)
    return found


def _repeats(wanted: SpotCheck, judges: Sequence[JudgePlan]) -> list[JudgePlan]:
    """Judges that a run asks again about verdicts older than a day, as `spot_check` says.

    Not a panel, which is not a single model, nor a deterministic model, which is never cached and says the same again;
    nor if the spot check itself asks the judge again.
    """
    if wanted.repeat or not wanted.repeat_n:
        return []
    return [
        replace(plan, role="spot_check", use_cache=False, check=RUN_REPEAT)
        for plan in judges
        if plan.role == "primary"
        and wanted.judge in (None, plan.judge.name)
        and not plan.runtime.provider.is_deterministic
    ]
