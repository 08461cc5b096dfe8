"""`judgekit run --dry-run` and `judgekit validate`: what a run would ask, without asking."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from judgekit.core.cases import Case, SystemOutput, Usage
from judgekit.core.config import is_local
from judgekit.core.judgments import JudgeInput
from judgekit.core.protocols import System
from judgekit.core.scores import Failed, NotApplicable
from judgekit.workflows.abstentions import missing_source
from judgekit.workflows.cache_why import CacheLookup
from judgekit.workflows.check_samples import MOST_ROWS
from judgekit.workflows.checks import check_applies, one_version
from judgekit.workflows.data_checks import Asked, check_data
from judgekit.workflows.job import SpotCheckPlan
from judgekit.workflows.judgment_draft import JudgePlan, decode_reply
from judgekit.workflows.requests import RequestMaker

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
    cache: CacheLookup | None = None
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
    records = [*passes.values(), *checks.values()]
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
        "judges": passes,
        "spot_checks": checks,
        "warnings": [list(warning) for warning in dict.fromkeys([*job.warnings, *job.system.warnings(), *notices])],
    }


def _most_checked(check: SpotCheckPlan) -> int:
    """Cases that a spot check may grow to."""
    return MOST_ROWS if check.check.adaptive else check.check.n


def _pass(
    job: EstimateJob,
    plan: JudgePlan,
    outputs: Sequence[SystemOutput],
    most: int | None,
    reasons: dict[str, NotApplicable | Failed],
) -> dict[str, Any]:
    """One pass; fills `reasons` with why cases are not judged."""
    runtime = plan.runtime
    is_cached = _cache_check(job, plan)
    n_inputs = n_cached = n_characters = 0
    for case, output in zip(job.cases, outputs, strict=True):
        built = plan.judge.build_input(case, output)
        if not isinstance(built, JudgeInput):
            reasons[case.id] = built
            continue
        n_inputs += 1
        if is_cached is not None and is_cached(built):
            n_cached += 1
            continue
        n_characters += sum(len(text) for text in plan.prompt.render(built.variables))
    n_open = n_inputs - n_cached
    n_asked = n_open if most is None else min(n_open, most)
    n_calls = n_asked if runtime.provider.needs_network else 0
    share = n_asked / n_open if n_open and n_calls else 0.0
    prompt_tokens = round(n_characters * share / CHARACTERS_PER_TOKEN)
    completion = n_calls * runtime.config.max_output_tokens
    usage = Usage(prompt_tokens=prompt_tokens, completion_tokens=completion)
    usd = runtime.price(usage) if runtime.price is not None else None
    return {
        "model": runtime.model_id,
        "n_inputs": n_inputs,
        "n_cached": n_cached if is_cached is not None else None,
        "n_calls": n_calls,
        "not_judged": dict(sorted(Counter(map(_in_words, reasons.values())).items())),
        "prompt_tokens": prompt_tokens,
        "completion_tokens_at_most": completion,
        "usd": usd if n_calls else 0.0,
    }


def _cache_check(job: EstimateJob, plan: JudgePlan) -> Callable[[JudgeInput], bool] | None:
    """Whether an input would be answered from the cache; None where that cannot be told without a call."""
    runtime, cache = plan.runtime, job.cache
    if not runtime.provider.needs_network or not plan.use_cache:
        return lambda _: False
    if is_local(runtime.config.base_url) and runtime.config.pin.build_hash is None:
        return None
    takes = runtime.remembered()
    if cache is None or takes is None:
        # A run remembers what a model takes before it stores the first reply.
        return lambda _: False
    requests = RequestMaker(plan, takes)

    def is_answered(judge_input: JudgeInput) -> bool:
        stored = cache.get(requests.key_of(judge_input))
        return stored is not None and runtime.guard.takes(decode_reply(stored))

    return is_answered


def _in_words(reason: NotApplicable | Failed) -> str:
    return reason.reason if isinstance(reason, NotApplicable) else f"failed: {reason.kind}"
