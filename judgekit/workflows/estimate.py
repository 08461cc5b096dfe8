"""`judgekit run --dry-run` and `judgekit validate`: what a run would ask, without asking."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from judgekit.core.cases import Case, SystemOutput, Usage
from judgekit.core.judgments import JudgeInput
from judgekit.core.protocols import System
from judgekit.core.scores import Failed, NotApplicable
from judgekit.workflows.checks import check_applies, one_version
from judgekit.workflows.job import SpotCheckPlan
from judgekit.workflows.judgment_draft import JudgePlan

CHARACTERS_PER_TOKEN = 4
"""A usual ratio for English; real tokenizers differ by a third either way."""


@dataclass(frozen=True)
class EstimateJob:
    """What an estimate works on."""

    cases: Sequence[Case]
    system: System
    judges: Sequence[JudgePlan]
    spot_checks: Sequence[SpotCheckPlan]
    versions: Mapping[str, str]
    price_list: str | None
    warnings: Sequence[tuple[str, str]] = ()


async def estimate_run(job: EstimateJob) -> dict[str, Any]:
    """Calls, tokens and cost of a run, at most: retries excluded, every completion at its limit, no cache.

    Raises:
        ConfigError: a judge applies to no case, or a prompt cannot be rendered.
    """
    outputs = [output async for output in job.system.outputs(job.cases)]
    one_version(job.versions, outputs)
    passes = {}
    for plan in job.judges:
        reasons: dict[str, NotApplicable | Failed] = {}
        passes[plan.judge.name] = _pass(plan, job.cases, outputs, None, reasons)
        check_applies(plan.judge.name, len(job.cases), reasons)
    checks = {
        check.primary.judge.name: _pass(check.second, job.cases, outputs, check.check.n, {})
        for check in job.spot_checks
    }
    records = [*passes.values(), *checks.values()]
    unpriced = sorted({record["model"] for record in records if record["n_calls"] and record["usd"] is None})
    return {
        "n_cases": len(job.cases),
        "n_calls": sum(record["n_calls"] for record in records),
        "prompt_tokens": sum(record["prompt_tokens"] for record in records),
        "completion_tokens_at_most": sum(record["completion_tokens_at_most"] for record in records),
        "usd_at_most": None if unpriced else sum(record["usd"] or 0.0 for record in records),
        "unpriced_models": unpriced,
        "price_list": job.price_list,
        "judges": passes,
        "spot_checks": checks,
        "warnings": [list(warning) for warning in [*job.warnings, *job.system.warnings()]],
    }


def _pass(
    plan: JudgePlan,
    cases: Sequence[Case],
    outputs: Sequence[SystemOutput],
    most: int | None,
    reasons: dict[str, NotApplicable | Failed],
) -> dict[str, Any]:
    """One pass; fills `reasons` with why cases are not judged."""
    runtime = plan.runtime
    n_inputs = n_characters = 0
    for case, output in zip(cases, outputs, strict=True):
        built = plan.judge.build_input(case, output)
        if not isinstance(built, JudgeInput):
            reasons[case.id] = built
            continue
        n_inputs += 1
        n_characters += sum(len(text) for text in plan.prompt.render(built.variables))
    n_asked = n_inputs if most is None else min(n_inputs, most)
    n_calls = n_asked if runtime.provider.needs_network else 0
    share = n_asked / n_inputs if n_inputs and n_calls else 0.0
    prompt_tokens = round(n_characters * share / CHARACTERS_PER_TOKEN)
    completion = n_calls * runtime.config.max_output_tokens
    usage = Usage(prompt_tokens=prompt_tokens, completion_tokens=completion)
    usd = runtime.price(usage) if runtime.price is not None else None
    return {
        "model": runtime.model_id,
        "n_inputs": n_inputs,
        "n_calls": n_calls,
        "not_judged": dict(sorted(Counter(map(_in_words, reasons.values())).items())),
        "prompt_tokens": prompt_tokens,
        "completion_tokens_at_most": completion,
        "usd": usd if n_calls else 0.0,
    }


def _in_words(reason: NotApplicable | Failed) -> str:
    return reason.reason if isinstance(reason, NotApplicable) else f"failed: {reason.kind}"
