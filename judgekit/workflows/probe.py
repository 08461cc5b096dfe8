"""`judgekit probe`: a judge of a stored run asked about changed inputs, into the same run folder.

The changed inputs are written before the first call and every judgment as it comes, so that a set that was stopped is
resumed when it is asked for again.
"""

import json
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from judgekit.analysis.input_changes import PROBES as ALL_PROBES
from judgekit.analysis.input_changes import NoProbe, reversed_wording
from judgekit.analysis.judge_calls import Costs
from judgekit.analysis.probe_effects import Probed, probe_report
from judgekit.analysis.stored_figures import rounded
from judgekit.analysis.verdict_pairs import Pair, draw_sample
from judgekit.core.components import Judge
from judgekit.core.config import ModelConfig
from judgekit.core.errors import ConfigError, ProviderError, StorageError, did_you_mean, first_problem
from judgekit.core.judgments import JudgeInput, Judgment, JudgmentKey, last_judgments, that_count
from judgekit.core.probe_sets import ORIGINAL, PROBE_INPUTS, PROBE_JUDGMENTS, PROBES, ProbeSet
from judgekit.core.prompts import PromptTemplate
from judgekit.core.verdict_kinds import Kind
from judgekit.engine.budget import Spending
from judgekit.engine.model_runtime import ModelRuntime
from judgekit.engine.passes import Observer, Passes, is_unanswered
from judgekit.engine.requests import JudgePlan
from judgekit.executors.event_loop import run_local
from judgekit.judges.from_rubric import RubricJudge
from judgekit.storage.recorder import Recorder
from judgekit.storage.run_folder import RunFolder
from judgekit.workflows.judge_reliability import about, add_parts, opinion
from judgekit.workflows.models import Options, check_plays, open_cache, price_models, ready_models
from judgekit.workflows.stored import StoredRun, finished_summary, models_of, open_stored, stored_models

DEFAULT_N = 30

NO_RUBRIC = "the wording has no lines that say what each score means"

NOT_KNOWN = "what a question of your own should be answered then is not known"
"""Why judges that are data have no blank answers and no wrong facts put before them."""


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


@dataclass(frozen=True)
class _Asked:
    """What one probe of a set asks."""

    plan: JudgePlan
    inputs: list[JudgeInput]
    not_applicable: list[str]
    """Why the other cases are not asked about."""

    def key(self, judge_input: JudgeInput) -> JudgmentKey:
        """The question about a case."""
        return JudgmentKey("probe", judge_input.judge, judge_input.case_id, self.plan.check)

    def pending(self, done: Mapping[JudgmentKey, Judgment]) -> Iterator[JudgeInput]:
        """Inputs without an answer yet."""
        for item in self.inputs:
            old = done.get(self.key(item))
            if is_unanswered(old) or (old is not None and old.prompt_sha256 != self.plan.prompt.sha256):
                yield item


@dataclass(frozen=True)
class _JudgeProbes:
    """One set of probes of one judge."""

    record: ProbeSet
    judge: Judge
    prompt: PromptTemplate
    runtime: ModelRuntime
    asked: Mapping[str, _Asked]
    """By probe."""


def probe(run: str, wanted: ProbesWanted, options: Options, observer: Observer) -> tuple[Path, dict[str, Any]]:
    """Ask about changed inputs, and write probes.json, metrics.json and summary.md.

    Returns:
        The run folder, and what was found, by judge, with numbers rounded.

    Raises:
        ConfigError: no such run, judge, probe or model; a run without stored inputs or figures.
        ProviderError: a provider refuses for good, or gave not one verdict.
        Interrupted: the budget is used up; the same command resumes.
        StorageError: the run is damaged or cannot be written, or another process writes it.
    """
    stored = open_stored(run, options)
    folder, summary = stored.folder, finished_summary(stored, run)
    for name in wanted.probes:
        if name not in ALL_PROBES:
            raise ConfigError(f"--probes: no probe {name!r}{did_you_mean(name, ALL_PROBES)}")
    judges = stored.named_judges("probe", wanted.judge)
    configs = models_of(stored, wanted.config_path)
    probed = {name: wanted.model or _model_of(stored, name) for name in judges}
    options = replace(options, use_cache=wanted.from_cache)
    models = stored_models(stored, wanted.config_path, set(probed.values()), options)
    price_models(models, stored.config.budget)
    sets = probe_sets(folder)
    records: list[ProbeSet] = []
    notes: list[str] = []
    for judge in judges:
        model = (probed[judge], configs[probed[judge]])
        record, said = _record(stored, judge, model, wanted, [*sets, *records])
        records.append(record)
        notes += said
        check_plays(stored.judge(judge), models[record.model_id], f"judge {judge}")
        if record.originals == "run":
            models[record.model_id].guard.go_on(stored.manifest.models.get(record.model_id, {}))
    for note in notes:
        observer.note(note)
    resumed = {record.set for record in records}
    earlier = [item for item in sets if item.set not in resumed]
    with folder.locked_as_found(stored.manifest):
        folder.repair_tail(PROBE_JUDGMENTS)
        plans = [_prepared(stored, record, models[record.model_id]) for record in records]
        _write_inputs(folder, plans)
        _write_sets(folder, [*earlier, *records])
        run_local(lambda: _ask(stored, plans, models, options, observer))
        judgments = _judgments(folder)
        found, complete = _figures(stored, plans, judgments, summary.cost.get("price_list"))
        _write_sets(folder, [*earlier, *complete])
        parts = {name: {"probes": result} for name, result in found.items()}
        add_parts(folder, summary, parts, report=stored.config.report)
        _refuse_unanswered(plans, judgments)
    return folder.path, found


def _model_of(stored: StoredRun, judge: str) -> str:
    config = stored.judge_config(judge)
    if config.model is None:
        members = ", ".join(config.asked)
        raise ConfigError(f"{judge} is a panel, not a single model; name a member to probe by --model ({members})")
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


def _record(
    stored: StoredRun,
    judge: str,
    model: tuple[str, ModelConfig],
    wanted: ProbesWanted,
    earlier: Sequence[ProbeSet],
) -> tuple[ProbeSet, list[str]]:
    """A new set, or one of the same kind with something left to ask; and what the user should know of it."""
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
        probes=tuple(name for name in ALL_PROBES if not wanted.probes or name in wanted.probes),
        originals="run" if same else "asked",
        from_cache=wanted.from_cache,
    )
    notes = [f"{judge}: {n} cases wanted, the run has {len(ids)} judged ones; all are taken"] if n > len(ids) else []
    for item in earlier:
        if item.is_unfinished and item.wanted == record.wanted:
            why = "has calls without a reply" if item.complete else "was stopped"
            return item, [*notes, f"{judge}: resumes set {item.set}, which {why}"]
    return record, notes


def _prepared(stored: StoredRun, record: ProbeSet, runtime: ModelRuntime) -> _JudgeProbes:
    """A set with everything that it asks."""
    judge, prompt = stored.judge(record.judge), stored.prompt(record.judge, record.prompt_version)
    wanted = set(record.case_ids)
    inputs = [item for item in stored.folder.judge_inputs() if item.judge == record.judge and item.case_id in wanted]
    names = [ORIGINAL, *record.probes] if record.originals == "asked" else list(record.probes)
    asked = {}
    for name in names:
        turns = name != ORIGINAL and ALL_PROBES[name].turns_rubric
        wording = reversed_wording(prompt, judge.kind) if turns else prompt
        plan = JudgePlan(
            judge, wording or prompt, runtime, role="probe", use_cache=record.from_cache, check=record.check(name)
        )
        asked[name] = _Asked(plan, [], [])
        is_unknown = name != ORIGINAL and ALL_PROBES[name].is_of_facts and isinstance(judge, RubricJudge)
        reason = NO_RUBRIC if wording is None else NOT_KNOWN if is_unknown else None
        for item in inputs:
            changed = _changed(record, name, item, judge.kind) if reason is None else NoProbe(reason)
            if isinstance(changed, NoProbe):
                asked[name].not_applicable.append(changed.reason)
            else:
                asked[name].inputs.append(item.model_copy(update={"variables": dict(changed)}))
    return _JudgeProbes(record, judge, prompt, runtime, asked)


def _changed(record: ProbeSet, name: str, judge_input: JudgeInput, kind: Kind) -> Mapping[str, Any] | NoProbe:
    if name == ORIGINAL:
        return judge_input.variables
    dice = random.Random(f"{record.seed} {name} {judge_input.case_id}")  # noqa: S311  # the same changes each time
    return ALL_PROBES[name].change(judge_input.variables, kind, dice)


def _write_inputs(folder: RunFolder, plans: Sequence[_JudgeProbes]) -> None:
    """Add the changed inputs of new sets to probe_inputs.jsonl."""
    asked = [item for plan in plans for item in plan.asked.values()]
    ours = {item.plan.check for item in asked}

    def lines() -> Iterator[bytes]:
        for _, line in folder.lines(PROBE_INPUTS):
            if json.loads(line).get("check") not in ours:
                yield line.rstrip(b"\n")
        for item in asked:
            for judge_input in item.inputs:
                record = {"check": item.plan.check, **judge_input.model_dump()}
                yield json.dumps(record, ensure_ascii=False).encode("utf-8", "replace")

    folder.write_lines(PROBE_INPUTS, lines())


def _write_sets(folder: RunFolder, sets: Sequence[ProbeSet]) -> None:
    folder.write_json(PROBES, {"schema_version": 1, "sets": [record.model_dump(mode="json") for record in sets]})


def _judgments(folder: RunFolder) -> dict[JudgmentKey, Judgment]:
    return last_judgments(folder.judgments(PROBE_JUDGMENTS))


async def _ask(
    stored: StoredRun,
    plans: Sequence[_JudgeProbes],
    models: Mapping[str, ModelRuntime],
    options: Options,
    observer: Observer,
) -> None:
    """Ask what has no answer yet, all probes side by side."""
    folder = stored.folder
    cache, _ = open_cache(folder.path.parent, models, options)
    async with ready_models(models, cache):
        done = _judgments(folder)
        sink = Recorder(folder.path / PROBE_JUDGMENTS, cache)
        try:
            passes = Passes(cache, sink, Spending(stored.config.budget), observer)
            asked = [item for plan in plans for item in plan.asked.values()]
            await passes.run(
                [(item.plan, sum(1 for _ in item.pending(done)), partial(item.pending, done)) for item in asked]
            )
        finally:
            sink.close()


def _figures(
    stored: StoredRun,
    plans: Sequence[_JudgeProbes],
    judgments: Mapping[JudgmentKey, Judgment],
    price_list: str | None,
) -> tuple[dict[str, Any], list[ProbeSet]]:
    """What was found, by judge, and the sets with it."""
    probed = about((plan.record.judge, plan.record.case_ids) for plan in plans)
    before = that_count(stored.folder.judgments(wanted=probed))
    found, records = {}, []
    for plan in plans:
        name, checks = plan.record.judge, {item.plan.check for item in plan.asked.values()}
        every = stored.folder.judgments(PROBE_JUDGMENTS)
        spent = Costs(item for item in every if item.check in checks and item.judge == name).record(price_list)
        found[name] = rounded({**_found(plan, judgments, before), "cost": spent})
        wordings = {
            probe_name: item.plan.prompt.record()
            for probe_name, item in plan.asked.items()
            if item.plan.prompt.sha256 != plan.prompt.sha256
        }
        records.append(plan.record.model_copy(update={"complete": True, "wordings": wordings, "found": found[name]}))
    return found, records


def _found(
    plan: _JudgeProbes, judgments: Mapping[JudgmentKey, Judgment], before: Mapping[JudgmentKey, Judgment]
) -> dict[str, Any]:
    record = plan.record

    def original(case_id: str) -> Judgment | None:
        if record.originals == "asked":
            return judgments.get(JudgmentKey("probe", record.judge, case_id, record.check(ORIGINAL)))
        return before.get(JudgmentKey("primary", record.judge, case_id))

    probed = [
        Probed(
            name=name,
            about=ALL_PROBES[name].about,
            expects=ALL_PROBES[name].expected_of(record.judge),
            pairs=[
                Pair(x.case_id, opinion(original(x.case_id)), opinion(judgments.get(item.key(x)))) for x in item.inputs
            ],
            not_applicable=item.not_applicable,
        )
        for name, item in plan.asked.items()
        if name != ORIGINAL
    ]
    answers = [judgments.get(item.key(x)) for item in plan.asked.values() for x in item.inputs]
    return {
        "set": record.set,
        "model_id": record.model_id,
        "model": record.model,
        "prompt_version": record.prompt_version,
        "prompt_sha256": record.prompt_sha256,
        "seed": record.seed,
        "n_population": record.n_population,
        "n_cases": len(record.case_ids),
        "originals": record.originals,
        "originals_note": _noise_note(plan),
        "from_cache": record.from_cache,
        "n_unanswered": sum(map(is_unanswered, answers)),
        "probes": probe_report(probed, plan.judge.kind, record.seed),
    }


def _noise_note(plan: _JudgeProbes) -> str:
    originals = {"run": "the run's own judgments", "asked": "asked of the probed model together with the probes"}
    where = originals[plan.record.originals]
    if plan.runtime.provider.is_deterministic:
        return f"originals are {where}; the same request always gives the same reply"
    return (
        f"originals are {where}; temperature 0 is not the same as repeatable, so effects hold the noise of two "
        "replies: `unchanged` shows how much that is"
    )


def _refuse_unanswered(plans: Sequence[_JudgeProbes], judgments: Mapping[JudgmentKey, Judgment]) -> None:
    for plan in plans:
        answers = [judgments.get(item.key(x)) for item in plan.asked.values() for x in item.inputs]
        own = [answer for answer in answers if answer is not None]
        if own and all(item.verdict is None for item in own):
            raise ProviderError(
                f"judge {plan.record.judge}: the probes got 0 of {len(own)} verdicts, every call failed"
            )
