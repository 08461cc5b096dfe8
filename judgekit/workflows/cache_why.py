"""`judgekit cache why`: the request behind a stored judgment beside the one that a run would make now, part by part."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from judgekit.core.cache_keys import PARTS
from judgekit.core.cases import Case
from judgekit.core.errors import ConfigError, ProviderError
from judgekit.core.familiar_names import name_hint
from judgekit.core.judgments import JudgeInput, Judgment, JudgmentKey, VerdictError, that_count
from judgekit.core.protocols import CallError, Capabilities, ModelIdentity
from judgekit.core.request_fields import is_local
from judgekit.core.scores import Failed
from judgekit.engine.judgment_draft import decode_reply
from judgekit.engine.model_runtime import ModelRuntime
from judgekit.engine.requests import JudgePlan, RequestMaker
from judgekit.storage.cache_entries import CacheReader, open_reader
from judgekit.storage.run_folder import RunFolder
from judgekit.systems.recorded import Recorded
from judgekit.workflows.models import Options
from judgekit.workflows.prefer import prefer_again
from judgekit.workflows.selectors import cache_folder, config_of, find_run, results_dir_of
from judgekit.workflows.setup import Setup, set_up

EntryState = Literal["present", "not_pinned", "damaged", "absent"]


@dataclass(frozen=True)
class WhyTarget:
    """What `judgekit cache why` was asked about."""

    run: str
    case_id: str
    judge: str | None = None
    """Explain this judge only."""
    config_path: Path | None = None
    """Left out: the config that the run was started with, as it is now."""
    asks_server: bool = False
    """Ask an unpinned server which build it has loaded, as a run does before any look-up; no model is called."""


@dataclass(frozen=True)
class _Now:
    """What is known of a run of the config now."""

    case: Case | None
    """The case in the config's data; None if they do not have it: the run's stored judge input is asked then."""
    cache: CacheReader | None
    cache_path: Path
    asks_server: bool
    found_out: Mapping[str, Mapping[str, Any]]
    """By model id: what the stored run found out about the model (manifest.json, `models`)."""


@dataclass(frozen=True)
class _Question:
    """One judge's stored input, its judgment if there is one, and the plan by which it would be asked now."""

    stored: JudgeInput
    judgment: Judgment | None
    plan: JudgePlan
    now: JudgeInput


async def explain_case(target: WhyTarget, options: Options) -> list[dict[str, Any]]:
    """One record for each judge that the case was put before; of a panel, one for each member.

    Args:
        target: a case of a run, and the config that is held against it.
        options: where runs are kept.

    Returns:
        Strict-JSON objects: `parts` (each with `same`, `before`, `now`, `detail`), `changed`, the two keys, `entry`
        (whether the new key is in the cache), `would_hit`, `conclusion` and `notes`.

    Raises:
        ConfigError: no such run, a config that cannot be used, or the run did not put the case before the judge.
        ProviderError: the server was asked for its build and does not answer.
        StorageError: the run or the cache cannot be read.
    """
    folder = RunFolder.open(find_run(target.run, options))
    manifest = folder.manifest()
    options = replace(options, needs_keys=target.asks_server)
    if manifest.kind == "prefer" and target.config_path is None:
        setup = prefer_again(folder, manifest, options)
    else:
        setup = set_up(target.config_path or config_of(folder, manifest), options)
    place = folder.path.parent
    if target.config_path is not None:
        place = results_dir_of(setup.config.results_dir, target.config_path, options)
    cache = open_reader(cache_folder(place))
    for runtime in setup.models.values():
        runtime.cache = cache
    case = next((case for case in setup.cases if case.id == target.case_id), None)
    now = _Now(case, cache, cache_folder(place), target.asks_server, manifest.models)
    try:
        return await _explained(target, folder, setup, now)
    finally:
        if cache is not None:
            cache.close()


async def _explained(target: WhyTarget, folder: RunFolder, setup: Setup, now: _Now) -> list[dict[str, Any]]:
    case_id = target.case_id
    stored = {item.judge: item for item in folder.judge_inputs(lambda _, asked: asked == case_id)}
    if not stored:
        raise ConfigError(
            f"{folder.path}: case {case_id!r} was put before no judge; "
            "judge_inputs.jsonl there names the cases that were, scores.jsonl why others were not"
        )
    if target.judge is not None and target.judge not in stored:
        hint = name_hint(target.judge, stored)
        raise ConfigError(f"--judge {target.judge!r}: case {case_id!r} was not put before it{hint}")
    judgments = that_count(folder.judgments(wanted=lambda _, asked: asked == case_id))
    # Recorded outputs cost nothing to look up; any other system would be called.
    output = setup.system.output(now.case) if now.case and isinstance(setup.system, Recorded) else None
    records = []
    for name, judge_input in stored.items():
        if target.judge not in (None, name):
            continue
        plans = [plan for plan in setup.judges if plan.judge.name == name]
        if not plans:
            judgment = judgments.get(JudgmentKey("primary", name, case_id))
            record = {"case_id": case_id, "judge": name, **_then(judgment)}
            records.append(record | _not_asked(f"the config has no judge {name}"))
        for plan in plans:
            judgment = judgments.get(JudgmentKey(plan.role, name, case_id, member=plan.member))
            record = {"case_id": case_id, "judge": plan.label, **_then(judgment)}
            built = plan.judge.build_input(now.case, output) if now.case and output else judge_input
            if isinstance(built, JudgeInput):
                records.append(record | await _explain(now, _Question(judge_input, judgment, plan, built)))
            else:
                why = f"failed: {built.kind}" if isinstance(built, Failed) else built.reason
                records.append(record | _not_asked(f"the config's data do not put the case before {name}: {why}"))
    return records


def _then(judgment: Judgment | None) -> dict[str, Any]:
    """How the stored judgment came about."""
    failure = None if judgment is None else judgment.failure
    return {
        "judged": judgment is not None,
        "from_cache": judgment and judgment.from_cache,
        "failure": failure and failure.kind,
        "key_then": judgment and judgment.key,
        "created_at": judgment and judgment.created_at,
    }


def _not_asked(why: str) -> dict[str, Any]:
    nothing: dict[str, Any] = {"parts": [], "changed": [], "key_now": None, "entry": None, "notes": []}
    return {**nothing, "would_hit": False, "conclusion": f"would not be asked: {why}"}


async def _explain(now: _Now, question: _Question) -> dict[str, Any]:
    runtime, judgment = question.plan.runtime, question.judgment
    found_out = now.found_out.get(judgment.model_id if judgment is not None else runtime.model_id, {})
    is_build_known, note = await _identify(now, runtime, judgment, found_out)
    capabilities, notes = _capabilities(runtime, found_out)
    notes += [note] if note else []
    requests = RequestMaker(question.plan, capabilities)
    request = requests.request(question.now)
    key_now, parts_now = requests.key_and_parts(request)
    parts: list[dict[str, Any]] = []
    if now.case is None:
        notes.append("the config's data do not have this case; the run's stored judge input is used")
    if judgment is not None:
        if judgment.earlier_attempts:
            # Like is held against like: the stored key is that of a second try, which names what was wrong before.
            failure = judgment.earlier_attempts[-1].failure
            again = requests.request(question.now, VerdictError(failure.kind, failure.message))
            parts_now = {**requests.key_and_parts(again)[1], "attempt": "1"}
        parts = _compared(judgment, question, parts_now, request.parameters)
        for part in parts:
            # A model of the same name is not another model for want of its build.
            name, _, build = (part["before"] or "").partition("@")
            if not is_build_known and part["part"] == "model" and name == part["now"]:
                part.update(same=None, detail=f"its build is not known, it was {build or 'none'}")
        if question.stored.sha256 != judgment.input_sha256:
            notes.append("the stored judge input is not the one that was judged: judge_inputs.jsonl was altered")
    entry = _state(now.cache, key_now, runtime)
    changed = [part["part"] for part in parts if part["same"] is False]
    return {
        "parts": parts,
        "changed": changed,
        "key_now": key_now,
        "entry": entry,
        "would_hit": entry == "present" and not runtime.provider.is_deterministic,
        "conclusion": _conclusion(now, question, entry, changed, key_now),
        "notes": notes,
    }


def _capabilities(runtime: ModelRuntime, found_out: Mapping[str, Any]) -> tuple[Capabilities, list[str]]:
    """What the model takes: as remembered, else as the run found out, else as assumed."""
    known = runtime.remembered()
    if known is not None:
        return known, []
    stored = found_out.get("capabilities")
    if stored is None:
        return Capabilities(), [f"what model {runtime.model_id} takes is not known yet; a run finds it out by one call"]
    note = f"what model {runtime.model_id} takes is not remembered; as the run found it out, a new run asks again"
    assumed = Capabilities(**stored)
    config = runtime.config
    system_role = assumed.system_role and config.system_role
    response_format = config.reply_format or assumed.response_format
    return replace(assumed, system_role=system_role, response_format=response_format), [note]


async def _identify(
    now: _Now, runtime: ModelRuntime, judgment: Judgment | None, found_out: Mapping[str, Any]
) -> tuple[bool, str]:
    """Set the build that the server has loaded, if the config does not pin one; whether it is known, and a note."""
    config = runtime.config
    if config.pin.build_hash is not None:
        return True, ""
    if now.asks_server or not runtime.provider.needs_network:
        try:
            runtime.identity = runtime.identity or await runtime.provider.identify()
        except CallError as error:
            raise ProviderError(f"model {runtime.model_id}: {error}") from None
        finally:
            await runtime.provider.close()
        return True, ""
    is_where_it_was = judgment is not None and (
        (judgment.model, judgment.provider, judgment.key_parts.get("base_url", ""))
        == (config.model, config.provider, config.public_url or "")
    )
    build = found_out.get("build_hash")
    if is_where_it_was and build is not None:
        runtime.identity = ModelIdentity(build_hash=build)
        return True, f"taken for granted that the server still has build {build} loaded; --ask-server asks it"
    if is_local(config.base_url) and not is_where_it_was:
        return False, "which build the server has loaded is a part of the key and not known here; --ask-server asks it"
    return True, ""


def _state(cache: CacheReader | None, key: str, runtime: ModelRuntime) -> EntryState:
    if cache is None:
        return "absent"
    before = cache.n_damaged
    stored = cache.get(key)
    if stored is not None:
        return "present" if runtime.guard.takes(decode_reply(stored)) else "not_pinned"
    return "damaged" if cache.n_damaged > before else "absent"


def _compared(
    judgment: Judgment, question: _Question, parts_now: Mapping[str, str], parameters: Mapping[str, Any]
) -> list[dict[str, Any]]:
    """Each part of the key: whether it is the same (None: not recorded then), both values and what differs in it."""
    parts_then, prompt = judgment.key_parts, question.plan.prompt
    details = {
        "parameters": _differences(judgment.parameters, parameters),
        "prompt": "its text changed under the same version" if judgment.prompt_version == prompt.version else "",
        "messages": _message_detail(question, is_other_prompt=parts_then.get("prompt") != parts_now["prompt"]),
        "attempt": "the first try comes again, since its reply could not be read and was not kept",
    }
    found = []
    for name in PARTS:
        before, now = parts_then.get(name), parts_now[name]
        same = None if before is None else before == now
        detail = "not recorded in this run" if same is None else "" if same else details.get(name, "")
        if name == "prompt":
            before, now = f"{judgment.prompt_version} ({before})", f"{prompt.version} ({now})"
        found.append({"part": name, "same": same, "before": before, "now": now, "detail": detail})
    return found


def _message_detail(question: _Question, *, is_other_prompt: bool) -> str:
    then, now = question.stored.variables, question.now.variables
    texts = sorted(name for name in {*then, *now} if then.get(name) != now.get(name))
    reasons = [f"case text: {', '.join(texts)}"] if texts else []
    if is_other_prompt:
        reasons.append("the wording of the prompt")
    return " and ".join(reasons) or "their form: system_role, or the fences around judged text"


def _differences(before: Mapping[str, Any], now: Mapping[str, Any]) -> str:
    """`seed 0 -> 7, temperature 0 -> not sent`."""

    def shown(values: Mapping[str, Any], name: str) -> str:
        return str(values[name]) if name in values else "not sent"

    # `get` would take a parameter that is not sent for one that is null.
    names = [name for name in sorted({*before, *now}) if shown(before, name) != shown(now, name)]
    return ", ".join(f"{name} {shown(before, name)} -> {shown(now, name)}" for name in names)


def _conclusion(now: _Now, question: _Question, entry: EntryState, changed: Sequence[str], key_now: str) -> str:
    """One sentence: whether the model would be asked, and why."""
    provider = question.plan.runtime.provider
    if provider.is_deterministic:
        return f"never cached: provider {provider.model.provider} is embedded and gives the same reply anyway"
    names = ", ".join(name.replace("_", " ") for name in changed if name != "attempt")
    if entry == "present":
        other = f" ({names} changed, and the new request was answered before)" if names else ""
        return f"would be answered from the cache{other}"
    if entry == "not_pinned":
        return "would be asked: the cached reply comes from another model or upstream than the pinned one"
    if entry == "damaged":
        return "would be asked: its entry is damaged, see `judgekit cache verify`"
    if names:
        return f"would be asked: {names} changed"
    why = f"there is no cache at {now.cache_path}" if now.cache is None else "the cache has no entry for it"
    return f"would be asked: {why}{_never_stored(question.judgment, key_now)}"


def _never_stored(judgment: Judgment | None, key_now: str) -> str:
    """Why nothing was stored for a judgment whose request has not changed."""
    if judgment is None:
        return "; the run did not come to this case"
    if judgment.failure is not None:
        return f"; failures are not kept ({judgment.failure.kind})"
    if judgment.earlier_attempts:
        return "; the first reply could not be read, and such replies are not kept"
    if "pin_mismatch" in judgment.flags:
        return "; the reply came from another model than the pinned one, and such replies are not kept"
    if judgment.key != key_now:
        return "; not every part of the key was recorded in this run, so which one changed cannot be told"
    return "; the run had --no-cache, or the cache was cleared since"
