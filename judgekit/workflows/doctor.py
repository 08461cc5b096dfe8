"""`judgekit doctor`: whether what a config names can be asked, what it is, and whether it says the same twice.

The config is held against its data as before a run, and each model is asked: what it is, what it takes, and the same
question five times. Nothing is written, and no reply is taken from the cache or put there.
"""

import asyncio
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from judgekit.core.cases import Case, OutputError, SystemOutput
from judgekit.core.config import RunConfig
from judgekit.core.errors import ConfigError, Interrupted, JudgekitError, ProviderError
from judgekit.core.judgments import JudgeInput, ModelRequest, ModelResponse
from judgekit.core.protocols import CallError, Capabilities
from judgekit.engine.budget import Spending
from judgekit.engine.model_runtime import ModelRuntime
from judgekit.reports.doctor_text import finding
from judgekit.storage.config_files import load_config
from judgekit.systems.recorded import Recorded
from judgekit.workflows.models import Options, build_model, price_models
from judgekit.workflows.preflight import DataCheck, check_applies, in_words
from judgekit.workflows.setup import Setup, set_up

_SCHEMA = {
    "type": "object",
    "additionalProperties": False,
    "required": ["sentence"],
    "properties": {"sentence": {"type": "string"}},
}
_QUESTION = 'In one sentence of at most 25 words, say why {}. Reply with the JSON object {{"sentence": "..."}} only.'
_SAME = "the sky looks blue by day"
_OTHERS = ("grass looks green", "snow looks white", "rust looks red")
"""What is asked beside it, so that the server has several requests at a time."""
N_SAME = 5
"""How often the same is asked: once cold, twice warm, twice beside the others."""


@dataclass
class _Findings:
    """What is wrong, and what is to know."""

    problems: list[dict[str, str]] = field(default_factory=list)
    """`where`, `kind` (`config`: yours to mend; `provider`: the server refuses or is not there) and `message`."""
    notes: list[str] = field(default_factory=list)

    def add(self, where: str, error: Exception) -> None:
        """Note an error; what the user can mend in a file or a flag apart from what a server says."""
        kind = "config" if isinstance(error, ConfigError | Interrupted) else "provider"
        lines = str(error).removeprefix(f"{where}: ").splitlines()
        new = [{"where": where, "kind": kind, "message": line} for line in lines]
        self.problems += [problem for problem in new if problem not in self.problems]

    @property
    def exit_code(self) -> int:
        """2 if something is to be mended, 3 if only a server stands in the way, else 0."""
        kinds = {problem["kind"] for problem in self.problems}
        return ConfigError.exit_code if "config" in kinds else ProviderError.exit_code if kinds else 0


async def examine(config_path: Path, options: Options) -> dict[str, Any]:
    """Hold a config against its data, and ask its models.

    Args:
        config_path: the config.
        options: where variables are looked up.

    Raises:
        ConfigError: the config itself cannot be read. All else that is wrong is among what is found.
    """
    config = load_config(config_path)
    found = _Findings()
    lacks = _lacks(config_path, replace(options, needs_keys=False), found)
    spending = Spending(config.budget)
    runtimes = _runtimes(config, config_path, options, found)
    models = {name: await _model(runtime, spending, found) for name, runtime in runtimes.items()}
    unpriced = [name for name, runtime in runtimes.items() if models[name]["n_calls"] and runtime.price is None]
    report = {
        "config": str(config_path),
        "models": {name: models.get(name) for name in config.models},
        "lacks": lacks,
        "problems": found.problems,
        "notes": found.notes,
        "n_calls": sum(model["n_calls"] for model in models.values()),
        "usd": None if unpriced else spending.usd,
        "unpriced_models": unpriced,
        "exit_code": found.exit_code,
    }
    return {"finding": finding(report), **report}


def _lacks(config_path: Path, options: Options, found: _Findings) -> list[dict[str, Any]]:
    """Metrics and judges that apply to no case, and what they miss."""
    try:
        setup = set_up(config_path, options)
    except ConfigError as error:
        found.add("config", error)
        return []
    found.notes += [message for _, message in setup.warnings]
    system = setup.system
    check = DataCheck(setup)
    try:
        for case in setup.cases:
            check.add(case, system.output(case) if isinstance(system, Recorded) else _not_asked(case))
    except ConfigError as error:
        found.add("data", error)
    missing = check.missing_fields()
    if isinstance(system, Recorded):
        try:
            found.notes += [message for _, message in check.notices()]
        except ConfigError as error:
            found.add("data", error)
        _judges_that_apply(setup, system, check, {component.name for component, _ in missing}, found)
    else:
        found.notes.append(f"system {system.name} is not asked, so fields of its outputs are not looked at")
    named = {judge.name for judge in setup.judge_components}
    return [
        {
            "kind": "judge" if component.name in named else "metrics",
            "name": component.name,
            "missing": [list(group) for group in groups],
            "text": ", and ".join(map(in_words, groups)),
        }
        for component, groups in missing
    ]


def _not_asked(case: Case) -> SystemOutput:
    return SystemOutput(case_id=case.id, error=OutputError(kind="not_asked"))


def _judges_that_apply(
    setup: Setup, system: Recorded, check: DataCheck, without: Iterable[str], found: _Findings
) -> None:
    """Note judges that apply to no case for another reason than a missing field."""
    for judge in setup.judge_components:
        if judge.name in without:
            continue
        built = {case.id: judge.build_input(case, system.output(case)) for case in setup.cases}
        reasons = {case_id: item for case_id, item in built.items() if not isinstance(item, JudgeInput)}
        try:
            found.notes += [message for _, message in check_applies(judge, reasons, check)]
        except ConfigError as error:
            found.add("data", error)


def _runtimes(config: RunConfig, config_path: Path, options: Options, found: _Findings) -> dict[str, ModelRuntime]:
    """The models of the config that can be asked, with their prices."""
    runtimes: dict[str, ModelRuntime] = {}
    for name, model in config.models.items():
        try:
            runtime = build_model(name, model, config_path, options, needs_key=True)
            price_models({name: runtime}, config.budget)
            runtimes[name] = runtime
        except ConfigError as error:
            found.add("config", error)
    return runtimes


async def _model(runtime: ModelRuntime, spending: Spending, found: _Findings) -> dict[str, Any]:
    """What a model is, takes and says."""
    record: dict[str, Any] = {"model": runtime.config.model, "reached": False, "n_calls": 0, "asked": None}
    runtime.provider.may_ask_again = spending.may_ask_again
    try:
        if not runtime.provider.needs_network:
            return {**record, "reached": True, "embedded": True}
        await runtime.identified()
        takes = await runtime.ready()
        record["reached"] = True
        if takes.samples:
            record["asked"] = await _asked(runtime, takes, spending, record)
            _note_differences(runtime, record["asked"], found)
    except (JudgekitError, CallError) as error:
        found.add(f"model {runtime.model_id}", error)
    finally:
        await runtime.provider.close()
    seen, identity = runtime.guard.seen, runtime.identity
    listed = list(identity.served_models) if identity is not None else []
    return {
        **record,
        "embedded": False,
        "served_models": sorted(seen.served) or listed,
        "fingerprints": sorted(seen.fingerprints),
        "upstreams": sorted(seen.upstreams),
        "build_hash": None if identity is None else identity.build_hash,
        "build_source": None if identity is None else identity.source,
        "context_tokens": None if identity is None else identity.context_tokens,
        "capabilities": None if runtime.capabilities is None else asdict(runtime.capabilities),
    }


async def _asked(
    runtime: ModelRuntime, takes: Capabilities, spending: Spending, record: dict[str, Any]
) -> dict[str, Any]:
    """The same question five times, and what the replies were."""

    async def ask(about: str) -> ModelResponse:
        request = _request(runtime, takes, about)
        hold = spending.hold_for(runtime, request)
        await runtime.limiter.acquire(hold.tokens)
        n_calls, bill = 0, None
        try:
            await spending.start(hold)
            try:
                response = await runtime.provider.complete(request)
                n_calls, bill = response.n_requests, spending.bill_of(hold, response)
            except CallError as error:
                n_calls = error.n_requests
                raise
            finally:
                spending.finish(hold, n_calls, bill)
        finally:
            runtime.limiter.release()
            record["n_calls"] += n_calls
        runtime.guard.check_reply(response)
        return response

    alone = [await ask(_SAME) for _ in range(N_SAME - 2)]
    tasks = [asyncio.ensure_future(ask(about)) for about in (_OTHERS[0], _SAME, _OTHERS[1], _SAME, _OTHERS[2])]
    try:
        beside = (await asyncio.gather(*tasks))[1::2]
    finally:
        for task in tasks:
            task.cancel()
            with suppress(asyncio.CancelledError, Exception):
                await task
    texts = [response.text or "" for response in (*alone, *beside)]
    return {
        "n": len(texts),
        "n_different": len(set(texts)),
        "same_bytes": len(set(texts)) == 1,
        "cold_and_warm_agree": len(set(texts[: len(alone)])) == 1,
        "beside_others_agrees": set(texts[len(alone) :]) <= set(texts[:1]),
        "replies": texts,
        "seconds": [round(response.latency_seconds or 0.0, 3) for response in (*alone, *beside)],
    }


def _note_differences(runtime: ModelRuntime, asked: Mapping[str, Any], found: _Findings) -> None:
    """Say when the bytes differ, and what a list of judgments would show of it."""
    if asked["same_bytes"]:
        return
    when = [
        words
        for words, agrees in (
            ("between the first time and the next ones", asked["cold_and_warm_agree"]),
            ("beside other questions", asked["beside_others_agrees"]),
        )
        if not agrees
    ]
    found.notes.append(
        f"model {runtime.model_id}: {asked['n_different']} different replies to the same question asked "
        f"{asked['n']} times, {' and '.join(when)}; verdicts on the same inputs can differ too"
    )


def _request(runtime: ModelRuntime, takes: Capabilities, about: str) -> ModelRequest:
    config = runtime.config
    system, user = "You answer with one JSON object.", _QUESTION.format(about)
    messages: tuple[dict[str, str], ...] = (
        ({"role": "system", "content": system}, {"role": "user", "content": user})
        if takes.system_role
        else ({"role": "user", "content": f"{system}\n\n{user}"},)
    )
    return ModelRequest(
        provider=config.provider,
        base_url=config.public_url,
        model=config.model,
        pinned_model=runtime.model_as_pinned(),
        messages=messages,
        parameters=takes.parameters(config),
        reply_schema=_SCHEMA,
        prompt_sha256="doctor",
    )
