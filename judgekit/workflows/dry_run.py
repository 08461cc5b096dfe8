"""`judgekit run --dry-run` and `judgekit validate`: what a run would ask, without asking."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from judgekit.analysis.drift_points import AT_ONCE
from judgekit.core.cases import Case, SystemOutput, Usage
from judgekit.core.config import is_local
from judgekit.core.judgments import JudgeInput
from judgekit.core.protocols import System
from judgekit.core.scores import Failed, NotApplicable
from judgekit.core.spot_checks import sample_size
from judgekit.engine.judgment_draft import JudgePlan, decode_reply
from judgekit.engine.model_runtime import utc_now
from judgekit.engine.requests import RequestMaker
from judgekit.storage.cache_entries import CacheReader
from judgekit.workflows.abstentions import missing_source
from judgekit.workflows.data_checks import Asked, check_data
from judgekit.workflows.job import SpotCheckPlan
from judgekit.workflows.judge_reliability import MOST_ROWS
from judgekit.workflows.preflight import check_applies, one_version

CHARACTERS_PER_TOKEN = 4
"""A usual ratio for English; real tokenizers differ by a third either way."""


@dataclass(frozen=True)
class EstimateJob:
    """What an estimate works on."""

    cases: Sequence[Case]
    cases_record: Mapping[str, Any]
    """Which part of the file they are."""
    system: System
    judges: Sequence[JudgePlan]
    spot_checks: Sequence[SpotCheckPlan]
    versions: Mapping[str, str]
    price_list: str | None
    asked: Asked
    repeats: Sequence[JudgePlan] = ()
    """Judges that are asked again about verdicts older than a day."""
    repeat_n: int = 0
    """Verdicts about which each of them is asked."""
    now: Callable[[], datetime] = utc_now
    cache: CacheReader | None = None
    """Replies of earlier runs, for reading only."""
    warnings: Sequence[tuple[str, str]] = ()
    """What the reader of the estimate should know."""


async def estimate_run(job: EstimateJob) -> dict[str, Any]:
    """Calls, tokens and cost of a run, at most: retries excluded, every completion at its limit.

    Replies in the cache are counted apart and cost nothing. For a local server that is not pinned they cannot be
    told without asking what it has loaded; `n_cached` is None then, and every input counts as a call.

    Raises:
        ConfigError: a judge applies to no case, or a prompt cannot be rendered.
        InputError: what the config names needs fields that no record has.
    """
    outputs = [output async for output in job.system.outputs(job.cases)]
    one_version(job.versions, outputs)
    notices = check_data(job.asked, job.cases, outputs)
    notices += missing_source([plan.judge.name for plan in job.judges], job.cases, outputs)
    passes = {}
    for plan in job.judges:
        reasons: dict[str, NotApplicable | Failed] = {}
        passes[plan.label] = _pass(job, plan, outputs, None, reasons)
        notices += check_applies(plan.judge, reasons, outputs)
    checks = {
        check.primary.judge.name: _pass(job, check.second, outputs, _most_checked(check), {})
        for check in job.spot_checks
    }
    repeats = {plan.judge.name: _repeat_pass(job, plan, outputs) for plan in job.repeats}
    records = [*passes.values(), *checks.values(), *repeats.values()]
    unpriced = sorted({record["model"] for record in records if record["n_calls"] and record["usd"] is None})
    return {
        "n_cases": len(job.cases),
        "cases": dict(job.cases_record),
        "n_calls": sum(record["n_calls"] for record in records),
        "n_cached": sum(record["n_cached"] or 0 for record in records),
        "prompt_tokens": sum(record["prompt_tokens"] for record in records),
        "completion_tokens_at_most": sum(record["completion_tokens_at_most"] for record in records),
        "usd_at_most": None if unpriced else sum(record["usd"] or 0.0 for record in records),
        "unpriced_models": unpriced,
        "price_list": job.price_list,
        "price_sources": sorted({record["price_source"] for record in records if record["price_source"]}),
        "judges": passes,
        "spot_checks": checks,
        "repeats": repeats,
        "warnings": [list(warning) for warning in dict.fromkeys([*job.warnings, *job.system.warnings(), *notices])],
    }


def _most_checked(check: SpotCheckPlan) -> int | str:
    """Cases that a spot check may grow to."""
    return MOST_ROWS if check.check.adaptive else check.check.n


def _inputs(
    plan: JudgePlan, job: EstimateJob, outputs: Sequence[SystemOutput], reasons: dict[str, NotApplicable | Failed]
) -> Iterator[JudgeInput]:
    """What the judge is asked; fills `reasons` with why cases are not judged."""
    for case, output in zip(job.cases, outputs, strict=True):
        built = plan.judge.build_input(case, output)
        if isinstance(built, JudgeInput):
            yield built
        else:
            reasons[case.id] = built


def _pass(
    job: EstimateJob,
    plan: JudgePlan,
    outputs: Sequence[SystemOutput],
    wanted: int | str | None,
    reasons: dict[str, NotApplicable | Failed],
) -> dict[str, Any]:
    """One pass; fills `reasons` with why cases are not judged."""
    is_cached = _cache_check(job, plan)
    n_inputs = n_cached = n_characters = 0
    for built in _inputs(plan, job, outputs, reasons):
        n_inputs += 1
        if is_cached is not None and is_cached(built):
            n_cached += 1
            continue
        n_characters += sum(len(text) for text in plan.prompt.render(built.variables))
    n_open = n_inputs - n_cached
    n_asked = n_open if wanted is None else min(n_open, sample_size(wanted, n_inputs))
    about = {"n_inputs": n_inputs, "n_cached": n_cached if is_cached is not None else None}
    return {**about, **_costs(plan, n_asked, n_characters / n_open if n_open else 0.0, reasons)}


def _repeat_pass(job: EstimateJob, plan: JudgePlan, outputs: Sequence[SystemOutput]) -> dict[str, Any]:
    """The judge asked again, about cached replies older than a day; at most, where their times are not known."""
    age_of = _reply_time(job, plan)
    newest = job.now() - AT_ONCE
    reasons: dict[str, NotApplicable | Failed] = {}
    n_inputs = n_old = n_characters = 0
    for built in _inputs(plan, job, outputs, reasons):
        n_inputs += 1
        replied_at = age_of(built) if age_of is not None else None
        if age_of is None or (replied_at is not None and datetime.fromisoformat(replied_at) < newest):
            n_old += 1
            n_characters += sum(len(text) for text in plan.prompt.render(built.variables))
    about = {"n_inputs": n_inputs, "n_cached": 0 if age_of is not None else None}
    n_asked = min(n_old, job.repeat_n)
    return {**about, "n_older": n_old, **_costs(plan, n_asked, n_characters / n_old if n_old else 0.0, reasons)}


def _costs(
    plan: JudgePlan, n_asked: int, characters: float, reasons: Mapping[str, NotApplicable | Failed]
) -> dict[str, Any]:
    """Calls, tokens and money of a pass over so many inputs of so many characters each."""
    runtime = plan.runtime
    n_calls = n_asked if runtime.provider.needs_network else 0
    prompt_tokens = round(n_calls * characters / CHARACTERS_PER_TOKEN)
    completion = n_calls * runtime.config.max_output_tokens
    usage = Usage(prompt_tokens=prompt_tokens, completion_tokens=completion)
    usd = runtime.price(usage) if runtime.price is not None else None
    return {
        "model": runtime.model_id,
        "n_calls": n_calls,
        "not_judged": dict(sorted(Counter(map(_in_words, reasons.values())).items())),
        "prompt_tokens": prompt_tokens,
        "completion_tokens_at_most": completion,
        "usd": usd if n_calls else 0.0,
        "price_source": runtime.price_source if n_calls else None,
    }


def _cache_check(job: EstimateJob, plan: JudgePlan) -> Callable[[JudgeInput], bool] | None:
    """Whether an input would be answered from the cache; None where that cannot be told without a call."""
    if not plan.use_cache:
        return lambda _: False
    look_up = _look_up(job, plan)
    return None if look_up is None else lambda judge_input: look_up(judge_input) is not None


def _reply_time(job: EstimateJob, plan: JudgePlan) -> Callable[[JudgeInput], str | None] | None:
    """When the cached reply to an input was given, None without one; None where that cannot be told without a call."""
    look_up = _look_up(job, plan)
    if look_up is None:
        return None

    def replied_at(judge_input: JudgeInput) -> str | None:
        found = look_up(judge_input)
        if found is None or job.cache is None:
            return None
        key, text = found
        return decode_reply(text).replied_at or job.cache.stored_at(key)

    return replied_at


def _look_up(job: EstimateJob, plan: JudgePlan) -> Callable[[JudgeInput], tuple[str, str] | None] | None:
    """Key and text of the cached reply to an input, if any; None where that cannot be told without a call."""
    runtime, cache = plan.runtime, job.cache
    if not runtime.provider.needs_network:
        return lambda _: None
    if is_local(runtime.config.base_url) and runtime.config.pin.build_hash is None:
        return None
    takes = runtime.remembered()
    if cache is None or takes is None:
        # A run remembers what a model takes before it stores the first reply.
        return lambda _: None
    requests = RequestMaker(plan, takes)

    def look_up(judge_input: JudgeInput) -> tuple[str, str] | None:
        key = requests.key_of(judge_input)
        text = cache.get(key)
        return (key, text) if text is not None and runtime.guard.takes(decode_reply(text)) else None

    return look_up


def _in_words(reason: NotApplicable | Failed) -> str:
    return reason.reason if isinstance(reason, NotApplicable) else f"failed: {reason.kind}"
