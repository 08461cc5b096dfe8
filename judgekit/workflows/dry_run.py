"""`judgekit run --dry-run` and `judgekit validate`: what a run would ask, without asking."""

import math
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping
from datetime import datetime
from functools import partial
from typing import Any

from judgekit.analysis.drift_points import AT_ONCE
from judgekit.core.cases import Hit, SystemOutput, Usage
from judgekit.core.judgments import JudgeInput, ModelResponse
from judgekit.core.request_fields import is_local
from judgekit.core.runs import Notices
from judgekit.core.scores import Failed, NotApplicable
from judgekit.core.spot_checks import sample_size
from judgekit.core.streams import Streamed
from judgekit.core.verdict_kinds import Preference
from judgekit.engine.budget import CHARACTERS_PER_TOKEN
from judgekit.engine.judgment_draft import cached_reply
from judgekit.engine.requests import JudgePlan, RequestMaker
from judgekit.metrics.abstention import abstained
from judgekit.storage.cache_entries import CacheReader, open_reader
from judgekit.systems.recorded import Recorded
from judgekit.workflows.judge_reliability import MOST_ROWS
from judgekit.workflows.models import Options
from judgekit.workflows.preflight import DataCheck, check_applies
from judgekit.workflows.selectors import cache_folder, results_dir_of
from judgekit.workflows.setup import Setup

Reasons = dict[str, NotApplicable | Failed]
"""By case id: why a case is not judged."""

_OUTPUTS_NOT_KNOWN = (
    "system {system} is not asked in a dry run, so calls are counted as if each of {n} cases had an answer with a "
    "passage, and tokens without their texts"
)

_LookUp = Callable[[JudgeInput], ModelResponse | None]


async def dry_run(setup: Setup, options: Options) -> dict[str, Any]:
    """Calls, tokens and cost of a run, at most: retries excluded, every completion at its limit.

    Replies in the cache are counted apart and cost nothing. For a local server that is not pinned they cannot be
    told without asking what it has loaded; `n_cached` is None then, and every input counts as a call.

    Args:
        setup: of the run.
        options: where runs are kept, and whether the replies of earlier runs are counted.

    Raises:
        ConfigError: a judge applies to no case, or a prompt cannot be rendered.
        InputError: what the config names needs fields that no record has.
    """
    place = cache_folder(results_dir_of(setup.config.results_dir, setup.config_path, options))
    cache = open_reader(place) if options.use_cache else None
    for runtime in setup.models.values():
        runtime.cache = cache
    try:
        return await _counted(setup, cache, options.now() - AT_ONCE)
    finally:
        if cache is not None:
            cache.close()


async def _counted(setup: Setup, cache: CacheReader | None, newest: datetime) -> dict[str, Any]:
    system = setup.system
    if isinstance(system, Recorded):
        outputs: Collection[SystemOutput] = Streamed(lambda: map(system.output, setup.cases), len(setup.cases))
    else:
        outputs = [SystemOutput(case_id=case.id, answer="?", retrieved=(Hit(text="?"),)) for case in setup.cases]
    check = DataCheck(setup)
    for case, output in zip(setup.cases, outputs, strict=True):
        check.add(case, output)
    if isinstance(system, Recorded):
        notices = [*system.warnings(), *check.notices(), *_missing_source(setup, outputs)]
    else:
        notices = [("outputs_not_known", _OUTPUTS_NOT_KNOWN.format(n=len(outputs), system=system.name))]
    judges = {}
    for plan in setup.judges:
        reasons: Reasons = {}
        look_up = _look_up(plan, cache)
        is_asked = partial(_is_not_cached, look_up)
        n_inputs, n, n_asked, length = _count(plan, _inputs(plan, setup, outputs, reasons), is_asked)
        n_cached = None if look_up is None else n - n_asked
        judges[plan.label] = {"n_inputs": n_inputs, "n_cached": n_cached, **_costs(plan, n_asked, length, reasons)}
        notices += check_applies(plan.judge, reasons, check)
    spot_checks = {}
    for spot_check in setup.spot_checks:
        reasons, plan, wanted = {}, spot_check.second, spot_check.wanted
        n_inputs, n, _, length = _count(plan, _inputs(plan, setup, outputs, reasons), lambda _: True)
        n_drawn = min(n_inputs, sample_size(MOST_ROWS if wanted.adaptive else wanted.n, n_inputs))
        n_asked = math.ceil(n_drawn * n / n_inputs) if n_inputs else 0
        spot_checks[plan.judge.name] = {"n_inputs": n_inputs, "n_cached": 0, **_costs(plan, n_asked, length, reasons)}
    repeats = {}
    for plan in setup.repeats:
        reasons, look_up = {}, _look_up(plan, cache)
        is_asked = partial(_is_older, look_up, newest)
        n_inputs, n, n_older, length = _count(plan, _inputs(plan, setup, outputs, reasons), is_asked)
        most = setup.config.spot_check.repeat_n if setup.config.spot_check is not None else 0
        n_asked = min(n_older, math.ceil(most * n / n_inputs) if n_inputs else 0)
        about = {"n_inputs": n_inputs, "n_cached": None if look_up is None else 0, "n_older": n_older}
        repeats[plan.judge.name] = {**about, **_costs(plan, n_asked, length, reasons)}
    records = [*judges.values(), *spot_checks.values(), *repeats.values()]
    unpriced = sorted({record["model"] for record in records if record["n_calls"] and record["usd"] is None})
    return {
        "n_cases": len(setup.cases),
        "cases": setup.cases_record,
        "n_calls": sum(record["n_calls"] for record in records),
        "n_cached": sum(record["n_cached"] or 0 for record in records),
        "prompt_tokens": sum(record["prompt_tokens"] for record in records),
        "completion_tokens_at_most": sum(record["completion_tokens_at_most"] for record in records),
        "usd_at_most": None if unpriced else sum(record["usd"] or 0.0 for record in records),
        "unpriced_models": unpriced,
        "price_list": setup.price_list,
        "batch_price_factors": {
            name: runtime.config.batches.price_factor
            for name, runtime in sorted(setup.models.items())
            if runtime.config.mode == "batch"
        },
        "price_sources": sorted({record["price_source"] for record in records if record["price_source"]}),
        "judges": judges,
        "spot_checks": spot_checks,
        "repeats": repeats,
        "warnings": [list(item) for item in dict.fromkeys([*setup.warnings, *notices])],
    }


def _missing_source(setup: Setup, outputs: Collection[SystemOutput]) -> Notices:
    """What a run lacks to say which outputs are abstentions."""
    judges = {plan.judge.name for plan in setup.judges if not isinstance(plan.judge.kind, Preference)}
    is_wanted = judges or any(case.answerable is not None for case in setup.cases)
    n_open = sum(output.error is None and abstained(output)[1] == "judge" for output in outputs)
    if not n_open or "abstention" in judges or not is_wanted:
        return []
    text = (
        f"{n_open} of {len(outputs)} outputs have no `abstained` flag and there is no judge abstention, so the shipped "
        "rule will decide by their words which of them are abstentions"
    )
    return [("abstention_by_rule", text)]


def _inputs(plan: JudgePlan, setup: Setup, outputs: Collection[SystemOutput], reasons: Reasons) -> Iterator[JudgeInput]:
    """What the judge is asked; fills `reasons`."""
    for case, output in zip(setup.cases, outputs, strict=True):
        built = plan.judge.build_input(case, output)
        if isinstance(built, JudgeInput):
            yield built
        else:
            reasons[case.id] = built


def _count(
    plan: JudgePlan, inputs: Iterator[JudgeInput], is_asked: Callable[[JudgeInput], bool]
) -> tuple[int, int, int, float]:
    """Numbers of inputs, of the questions about them, and of those asked, and the mean length of their prompts.

    There are more questions than inputs where a judge asks about parts of an input in calls of their own.
    """
    n_inputs = n_questions = n_asked = n_characters = 0
    for judge_input in inputs:
        n_inputs += 1
        for part in plan.judge.parts(judge_input):
            n_questions += 1
            if is_asked(part):
                n_asked += 1
                n_characters += sum(len(text) for text in plan.prompt.render(part.variables))
    return n_inputs, n_questions, n_asked, n_characters / n_asked if n_asked else 0.0


def _is_not_cached(look_up: _LookUp | None, judge_input: JudgeInput) -> bool:
    """At most, if what is cached is not known."""
    return look_up is None or look_up(judge_input) is None


def _is_older(look_up: _LookUp | None, newest: datetime, judge_input: JudgeInput) -> bool:
    """Whether the reply is cached, from before `newest`; at most, if what is cached is not known."""
    if look_up is None:
        return True
    reply = look_up(judge_input)
    return reply is not None and reply.replied_at is not None and datetime.fromisoformat(reply.replied_at) < newest


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


def _look_up(plan: JudgePlan, cache: CacheReader | None) -> _LookUp | None:
    """Finds the cached reply to an input; None if that cannot be told without a call."""
    runtime = plan.runtime
    if not runtime.provider.needs_network:
        return lambda _: None
    if is_local(runtime.config.base_url) and runtime.config.pin.build_hash is None:
        return None
    takes = runtime.remembered()
    if cache is None or takes is None:
        # A run remembers what a model takes before it stores the first reply.
        return lambda _: None
    requests = RequestMaker(plan, takes)
    return lambda judge_input: cached_reply(cache, requests.key_of(judge_input), runtime.guard)


def _in_words(reason: NotApplicable | Failed) -> str:
    return reason.reason if isinstance(reason, NotApplicable) else f"failed: {reason.kind}"
