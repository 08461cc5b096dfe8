"""From a stored run to probes of its judges: which cases, which changes, and who is asked."""

import random
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from pydantic import ValidationError

from judgekit.analysis.verdict_pairs import draw_sample
from judgekit.core.config import ModelConfig
from judgekit.core.errors import ConfigError, StorageError, did_you_mean, first_problem
from judgekit.core.probe_sets import PROBES, ProbeSet
from judgekit.engine.model_runtime import ModelRuntime
from judgekit.judges.probes import PROBES as ALL_PROBES
from judgekit.storage.run_folder import RunFolder
from judgekit.workflows.models import Options, check_plays, open_cache, price_models
from judgekit.workflows.probe import ProbeJob, ProbePlan
from judgekit.workflows.stored import StoredRun, finished_summary, models_of, open_stored, stored_models

DEFAULT_N = 30


@dataclass(frozen=True)
class ProbesWanted:
    """What the command line says of probes."""

    judge: str | None = None
    """Only this judge; None: every judge of the run."""
    n: int | None = None
    seed: int | None = None
    probes: tuple[str, ...] = ()
    """Names; none: all of them."""
    model: str | None = None
    """Key of the model to probe; None: as the run did."""
    config_path: Path | None = None
    from_cache: bool = False


def open_probes(run: str, wanted: ProbesWanted, options: Options) -> ProbeJob:
    """Probes of a stored run, ready to go; nothing is written yet.

    Raises:
        ConfigError: no such run, judge, probe or model; a run without stored inputs or figures.
        StorageError: the run is damaged.
    """
    stored = open_stored(run, options)
    summary = finished_summary(stored, run)
    _probe_names(wanted.probes)
    judges = [stored.judge_config(wanted.judge).name] if wanted.judge else [item.name for item in stored.config.judges]
    if not judges:
        raise ConfigError(f"{stored.folder.path}: this run has no judges, so there is nothing to probe")
    models = models_of(stored, wanted.config_path)
    asked = {name: wanted.model or _model_of(stored, name) for name in judges}
    options = replace(options, use_cache=wanted.from_cache)
    runtimes = stored_models(models, set(asked.values()), options)
    price_models(runtimes, stored.config.budget)
    earlier = probe_sets(stored.folder)
    plans: list[ProbePlan] = []
    notes: list[str] = []
    for judge in judges:
        sets = [*earlier, *(plan.record for plan in plans)]
        record, note = _record(stored, judge, (asked[judge], models[asked[judge]]), wanted, sets)
        plans.append(_plan(stored, record, runtimes[record.model_id]))
        notes += note
        if record.originals == "run":
            runtimes[record.model_id].guard.go_on(stored.manifest.models.get(record.model_id, {}))
    cache, _ = open_cache(stored.folder.path.parent, runtimes, options)
    going_on = {plan.record.set for plan in plans}
    return ProbeJob(
        store=stored.folder,
        config=stored.config,
        summary=summary,
        plans=plans,
        models=runtimes,
        earlier=[item for item in earlier if item.set not in going_on],
        cache=cache,
        dice=random.Random,
        manifest=stored.manifest,
        notes=notes,
    )


def _model_of(stored: StoredRun, judge: str) -> str:
    config = stored.judge_config(judge)
    if config.model is None:
        members = ", ".join(config.asked)
        raise ConfigError(
            f"{judge} is a panel, which is no single model; name a member to probe by --model ({members})"
        )
    return config.model


def probe_sets(folder: RunFolder) -> list[ProbeSet]:
    """The sets of probes of a run, oldest first.

    Raises:
        StorageError: probes.json is damaged.
    """
    if not folder.has(PROBES):
        return []
    try:
        return [ProbeSet.model_validate(item) for item in folder.read_json(PROBES).get("sets", ())]
    except ValidationError as error:
        raise StorageError(f"{folder.path / PROBES}: damaged: {first_problem(error)}") from None


def _probe_names(wanted: Sequence[str]) -> tuple[str, ...]:
    for name in wanted:
        if name not in ALL_PROBES:
            raise ConfigError(f"--probes: no probe {name!r}{did_you_mean(name, ALL_PROBES)}")
    return tuple(name for name in ALL_PROBES if not wanted or name in wanted)


def _record(
    stored: StoredRun,
    judge: str,
    model: tuple[str, ModelConfig],
    wanted: ProbesWanted,
    earlier: Sequence[ProbeSet],
) -> tuple[ProbeSet, list[str]]:
    """A new set, or one of the same kind with something left to ask."""
    primary = stored.judge_config(judge)
    prompt = stored.prompt(judge, primary.prompt_version)
    ids = [item.case_id for item in stored.inputs(judge)]
    n = wanted.n or DEFAULT_N
    seed = stored.config.resampling_seed if wanted.seed is None else wanted.seed
    rng = random.Random(f"probes {seed}")  # noqa: S311  # a sample, not a secret
    model_id, config = model
    same = model_id == primary.model and config == stored.config.models[model_id]
    record = ProbeSet(
        set=str(1 + max((int(item.set) for item in earlier if item.set.isdigit()), default=0)),
        judge=judge,
        model_id=model_id,
        model=config.model,
        prompt_version=prompt.version,
        prompt_sha256=prompt.sha256,
        seed=seed,
        n_population=len(ids),
        case_ids=tuple(draw_sample(ids, n, rng)),
        probes=_probe_names(wanted.probes),
        originals="run" if same else "asked",
        from_cache=wanted.from_cache,
    )
    notes = [f"{judge}: {n} cases wanted, the run has {len(ids)} judged ones; all are taken"] if n > len(ids) else []
    for item in earlier:
        if item.goes_on and item.wanted == record.wanted:
            why = "has calls without a reply" if item.complete else "was stopped"
            return item, [*notes, f"{judge}: goes on with set {item.set}, which {why}"]
    return record, notes


def _plan(stored: StoredRun, record: ProbeSet, runtime: ModelRuntime) -> ProbePlan:
    judge = stored.judge(record.judge)
    check_plays(judge, runtime, f"judge {record.judge}")
    return ProbePlan(record, judge, stored.prompt(record.judge, record.prompt_version), runtime)
