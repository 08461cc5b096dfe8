"""From a stored run to a spot check of it: who is asked for the second opinion, and about which cases."""

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from judgekit.analysis.disagreement_rates import DEFAULT_THRESHOLD
from judgekit.core.config import ModelConfig
from judgekit.core.errors import ConfigError
from judgekit.core.prompts import PromptTemplate
from judgekit.core.protocols import Provider
from judgekit.core.runs import RESUMABLE_MODEL_CHANGES
from judgekit.core.spot_checks import RUN_CHECKS, SampleSize, SpotCheckRecord, sample_size
from judgekit.engine.judgment_draft import JudgePlan
from judgekit.engine.model_runtime import ModelRuntime
from judgekit.providers.lookup import provider_class_of
from judgekit.storage.prompt_files import prompt_versions
from judgekit.storage.run_records import read_summary
from judgekit.workflows.judge_reliability import DrawnSpotCheck, drawn, spot_check_kind
from judgekit.workflows.models import Options, most_connections, open_cache, price_models
from judgekit.workflows.run_checks import fresh_seed
from judgekit.workflows.spotcheck import SpotCheckJob
from judgekit.workflows.stored import StoredRun, model_runtime, models_of, open_stored

DEFAULT_N = 20


@dataclass(frozen=True)
class CheckWanted:
    """What the command line says of a check."""

    judge: str | None = None
    """Only this judge; None: every judge of the run."""
    n: int | str | None = None
    """How many verdicts, or a share of them such as `5%`."""
    seed: int | None = None
    against: str | None = None
    """`model:ID`, `prompt:VERSION` or `repeat`; None: the best that there is."""
    threshold: float | None = None
    adaptive: bool = False
    config_path: Path | None = None
    """Another config, for models and wordings that the run's config does not have."""


@dataclass(frozen=True)
class _Comparator:
    """Who is asked for the second opinion on a judge."""

    model_id: str
    prompt: PromptTemplate


def open_spotcheck(run: str, wanted: CheckWanted, options: Options) -> SpotCheckJob:
    """A check of a stored run, ready to go; nothing is written yet.

    Raises:
        ConfigError: no such run, judge, model or wording; a run without stored inputs or figures; a comparator that
            is the judge itself.
        StorageError: the run is damaged.
    """
    stored = open_stored(run, options)
    summary = read_summary(stored.folder)
    if summary is None:
        raise ConfigError(f"{stored.folder.path}: has no metrics.json yet; judgekit run --resume {run} writes it")
    names = _judges(stored, wanted)
    models = models_of(stored, wanted.config_path)
    _check_same_models(stored, models, wanted)
    comparators = {name: _comparator(stored, name, models, wanted) for name in names}
    asked = {item.model_id for item in comparators.values()}
    options = replace(options, most_connections=most_connections(len(asked)))
    runtimes = {name: model_runtime(models, name, options) for name in sorted(asked)}
    plans, notes = _plans(stored, wanted, comparators, runtimes)
    price_models(runtimes, stored.config.budget)
    for name, runtime in runtimes.items():
        # A judge that was moved since is another one, and asking it is no check of this run.
        runtime.guard.go_on(stored.manifest.models.get(name, {}))
    folder = stored.folder
    cache, _ = open_cache(folder.path.resolve().parent, runtimes, options)
    used = {f"{item.prompt.judge}/{item.prompt.version}": item.prompt for item in comparators.values()}
    return SpotCheckJob(
        store=folder,
        manifest=stored.manifest,
        config=stored.config,
        summary=summary,
        judges=[stored.judge(judge.name) for judge in stored.config.judges],
        plans=plans,
        models=runtimes,
        cache=cache,
        prompts={**folder.prompts(), **used},
        notes=notes,
    )


def parsed_size(text: str, where: str) -> int | str:
    """A sample size as the command line says it.

    Raises:
        ConfigError: it is neither a number from 1 nor a share.
    """
    try:
        return TypeAdapter[int | str](SampleSize).validate_python(int(text) if text.isdecimal() else text)
    except ValidationError:
        raise ConfigError(f"{where} {text!r}: expected a whole number from 1, or a share such as 5%") from None


def _check_same_models(stored: StoredRun, models: Mapping[str, ModelConfig], wanted: CheckWanted) -> None:
    """Refuse another model under a name of the run, since records go by names; it may have moved to another address."""
    free = {*RESUMABLE_MODEL_CHANGES, "base_url"}
    for name, model in stored.config.models.items():
        if models[name].model_dump(exclude=free) != model.model_dump(exclude=free):
            raise ConfigError(f"{wanted.config_path}: models.{name} differs from the run's; give it another name")


def _judges(stored: StoredRun, wanted: CheckWanted) -> list[str]:
    if wanted.judge is not None:
        return [stored.judge_config(wanted.judge).name]
    names = [judge.name for judge in stored.config.judges]
    if not names:
        raise ConfigError(f"{stored.folder.path}: this run has no judges, so there is nothing to check")
    return names


def _comparator(stored: StoredRun, judge: str, models: Mapping[str, ModelConfig], wanted: CheckWanted) -> _Comparator:
    primary = stored.judge_config(judge)
    own = stored.prompt(judge, primary.prompt_version)
    kind, _, name = (wanted.against or "").partition(":")
    if wanted.against is None:
        return _default(stored, judge, models, wanted)
    if kind == "model" and name:
        if name in primary.asked:
            hint = _REPEAT if primary.model is not None else ""
            raise ConfigError(f"--against {wanted.against}: {judge} was judged by this model itself{hint}")
        return _Comparator(name, own)
    if primary.model is None:
        raise ConfigError(
            f"--against {wanted.against}: {judge} is a panel; check it against a model outside it: --against model:ID"
        )
    if wanted.against == "repeat":
        return _Comparator(primary.model, own)
    if kind == "prompt" and name:
        prompt = stored.prompt(judge, name, wanted.config_path)
        if prompt.sha256 == own.sha256:
            raise ConfigError(f"--against {wanted.against}: {judge} was judged with this wording itself{_REPEAT}")
        return _Comparator(primary.model, prompt)
    raise ConfigError(f"--against {wanted.against!r}: expected model:ID, prompt:VERSION or repeat")


_REPEAT = "; --against repeat asks it again, which says how repeatable it is"


def _default(stored: StoredRun, judge: str, models: Mapping[str, ModelConfig], wanted: CheckWanted) -> _Comparator:
    """As the config says; else another wording; else another model; else the judge again."""
    primary = stored.judge_config(judge)
    own = stored.prompt(judge, primary.prompt_version)
    check = stored.config.spot_check
    if check is not None and check.judge in (None, judge):
        model = check.model or primary.model
        prompt = own if check.prompt_version is None else stored.prompt(judge, check.prompt_version)
        if model is not None and (check.repeat or (model, prompt.sha256) != (primary.model, own.sha256)):
            return _Comparator(model, prompt)
    is_llm = primary.model is not None and _provider(models, primary.model).is_llm
    # An embedded judge does not read instructions, so another wording would agree by construction.
    variant = _other_wording(stored, judge, own, wanted) if is_llm else None
    if primary.model is not None and variant is not None:
        return _Comparator(primary.model, variant)
    own_models = [models[name] for name in primary.asked]
    for name, other in models.items():
        plays = _provider(models, name).judges
        if name not in primary.asked and other not in own_models and (plays is None or judge in plays):
            return _Comparator(name, own)
    if primary.model is None:
        raise ConfigError(
            f"{judge} is a panel, and no model outside it is there to check it against; add one by --config"
        )
    return _Comparator(primary.model, own)


def _provider(models: Mapping[str, ModelConfig], name: str) -> type[Provider]:
    return provider_class_of(models[name].provider, f"models.{name}.provider")


def _other_wording(stored: StoredRun, judge: str, own: PromptTemplate, wanted: CheckWanted) -> PromptTemplate | None:
    """A wording that the run kept, else the last by name of those in the prompt folders."""
    kept = [prompt for prompt in stored.folder.prompts().values() if prompt.judge == judge]
    folders: list[Path | None] = [*stored.prompt_folders(wanted.config_path)]
    versions = {version for folder in folders or [None] for version in prompt_versions(judge, folder)}
    for version in sorted(versions - {prompt.version for prompt in kept}, reverse=True):
        kept.append(stored.prompt(judge, version, wanted.config_path))
    return next((prompt for prompt in kept if prompt.sha256 != own.sha256), None)


def _plans(
    stored: StoredRun,
    wanted: CheckWanted,
    comparators: Mapping[str, _Comparator],
    runtimes: Mapping[str, ModelRuntime],
) -> tuple[list[DrawnSpotCheck], list[str]]:
    """The sample of each judge; drawn judge by judge in the order of the run, so that its own check draws the same."""
    check = stored.config.spot_check
    size = wanted.n or (check.n if check is not None else DEFAULT_N)
    wanted = replace(wanted, adaptive=wanted.adaptive or (check is not None and check.adaptive))
    seed = _seed(stored, wanted, comparators)
    rng = random.Random(seed)  # noqa: S311  # a sample, not a secret
    plans, notes = [], []
    for judge in [item.name for item in stored.config.judges]:
        component = stored.judge(judge)
        own = (item for item in stored.folder.judge_inputs() if item.judge == judge)
        ids = [item.case_id for item in own if component.not_asked(item) is None]
        n = sample_size(size, len(ids))
        order = drawn(ids, n, rng, adaptive=wanted.adaptive)
        if judge not in comparators:
            continue
        comparator = comparators[judge]
        stored.check_wording(judge, comparator.prompt, set(order))
        if n > len(ids):
            notes.append(f"{judge}: {n} cases wanted, the run has {len(ids)} judged ones; all of them are taken")
        record = _record(stored, judge, comparator, wanted, (n, seed, len(ids), order[:n]))
        second = JudgePlan(
            stored.judge(judge),
            comparator.prompt,
            runtimes[comparator.model_id],
            role="spot_check",
            use_cache=False,
            check=record.check,
        )
        plans.append(DrawnSpotCheck(record, second, order))
    return plans, notes


def _seed(stored: StoredRun, wanted: CheckWanted, comparators: Mapping[str, _Comparator]) -> int:
    """The seed of a check: the one given, that of a stopped check that goes on, that of the config, or a fresh one.

    The config's seed is for the first check of a run against a comparator: a later one would draw the same cases.
    """
    if wanted.seed is not None:
        return wanted.seed
    same = [
        record
        for record in stored.folder.checks()
        if record.judge in comparators
        and (record.model_id, record.prompt_sha256)
        == (comparators[record.judge].model_id, comparators[record.judge].prompt.sha256)
    ]
    stopped = [record.seed for record in same if not record.complete and record.check not in RUN_CHECKS]
    if stopped:
        return stopped[-1]
    given = stored.config.seed
    if given is None or any(record.seed == given for record in same):
        return fresh_seed()
    return given


def _record(
    stored: StoredRun,
    judge: str,
    comparator: _Comparator,
    wanted: CheckWanted,
    drawn: tuple[int, int, int, Sequence[str]],
) -> SpotCheckRecord:
    """A new check, or one of the same kind that was stopped and goes on."""
    n, seed, n_population, case_ids = drawn
    primary = stored.judge_config(judge)
    own = stored.prompt(judge, primary.prompt_version)
    check = stored.config.spot_check
    configured = check.threshold if check is not None else DEFAULT_THRESHOLD
    models = models_of(stored, wanted.config_path)
    earlier = stored.folder.checks()
    record = SpotCheckRecord(
        check=str(1 + max((int(item.check) for item in earlier if item.check.isdigit()), default=0)),
        judge=judge,
        kind=spot_check_kind(
            other_model=comparator.model_id != primary.model, other_prompt=comparator.prompt.sha256 != own.sha256
        ),
        model_id=comparator.model_id,
        model=models[comparator.model_id].model,
        prompt_version=comparator.prompt.version,
        prompt_sha256=comparator.prompt.sha256,
        seed=seed,
        n_population=n_population,
        case_ids=tuple(case_ids),
        threshold=wanted.threshold or configured,
        adaptive=wanted.adaptive,
        n_start=n,
    )
    same = {"check": "", "case_ids": (), "threshold": 0.0}
    for item in earlier:
        if (
            not item.complete
            and item.check not in RUN_CHECKS
            and item.model_copy(update=same) == record.model_copy(update=same)
        ):
            return record.model_copy(update={"check": item.check})
    return record
