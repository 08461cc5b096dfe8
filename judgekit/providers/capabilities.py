"""Finding out once which parameters a model takes, by one small call and what the server says against it."""

import re
from dataclasses import replace

from judgekit.core.judgments import ModelRequest
from judgekit.core.protocols import CallError, Capabilities, Provider

MOST_STEPS = 8
TOP_LOGPROBS = (20, 8, 5)
"""Alternatives of a token that are asked for: most servers give 20, some no more than 8 or 5."""
_PROPERTIES = {"ready": {"type": "boolean"}}
_SCHEMA = {"type": "object", "additionalProperties": False, "required": ["ready"], "properties": _PROPERTIES}
_ONLY_DEFAULT = re.compile(r"\b0(?:\.0)?\b.{0,60}\bonly the default\b.{0,10}\b1(?:\.0)?\b.{0,20}\bsupported", re.DOTALL)
"""A refusal of temperature 0 that does not name it; nothing else that is sent is 0 with a default of 1."""
_FORMATS = ("json_schema", "json_object", "text")


async def find_capabilities(provider: Provider) -> Capabilities:
    """Start from everything we send and drop what the server names as refused.

    Raises:
        CallError: the server cannot be reached, refuses for good, or refuses something we cannot do without.
    """
    # OpenAI's own models take the new name only; most local servers know the old one only and ignore the new.
    name = "max_completion_tokens" if provider.model.base_url is None else "max_tokens"
    forced = provider.model.reply_format
    now = Capabilities(
        max_tokens_name=name, system_role=provider.model.system_role, response_format=forced or _FORMATS[0]
    )
    for _ in range(MOST_STEPS):
        error = await _fault(provider, now)
        if error is None:
            return now
        adjusted = adjust(now, error)
        if forced and adjusted is not None and adjusted.response_format != forced:
            text = f'{error}; the server refuses "reply_format": "{forced}", which is set for this model'
            raise CallError("bad_request", text, fatal=True)
        if adjusted is None:
            # A failure without any reply has nothing to do with its form.
            may_be_plainer = error.kind == "server_error" and error.status is not None and not forced
            plainer = await _without_faults(provider, now) if may_be_plainer else None
            if plainer is None:
                raise error
            return plainer
        now = adjusted
    raise CallError("bad_request", "the server refuses every form of request that was tried", fatal=True)


async def _without_faults(provider: Provider, now: Capabilities) -> Capabilities | None:
    """What to ask for if a server answers the wanted form of reply with a bare server fault; None: nothing else.

    Such a fault may pass, so a form is given up only if plain text is answered and the form, tried again, is not.
    """
    if now.response_format == "text" or await _fault(provider, replace(now, response_format="text")) is not None:
        return None
    fault = await _fault(provider, now)
    if fault is None:
        return now
    if fault.kind != "server_error":
        return None
    for name in _FORMATS[_FORMATS.index(now.response_format) + 1 : -1]:
        plainer = replace(now, response_format=name)
        if await _fault(provider, plainer) is None:
            return plainer
    return replace(now, response_format="text")


async def find_top_logprobs(provider: Provider, known: Capabilities) -> int:
    """How many alternatives of each token the model gives, beside what it takes otherwise; 0 if none.

    Raises:
        CallError: the server cannot be reached, or refuses for good.
    """
    for wanted in TOP_LOGPROBS:
        try:
            response = await provider.complete(_request(provider, replace(known, top_logprobs=wanted)))
        except CallError as error:
            # OpenAI refuses them with 403 for reasoning models, which think longer than the small limit.
            is_about_them = error.kind == "truncated" or "logprobs" in str(error)
            if not is_about_them and (error.fatal or error.kind not in ("bad_request", "server_error")):
                raise
            continue
        tokens = () if response.tokens is None else response.tokens.tokens
        return wanted if any(len(token.alternatives) > 1 for token in tokens) else 0
    return 0


async def _fault(provider: Provider, now: Capabilities) -> CallError | None:
    try:
        await provider.complete(_request(provider, now))
    except CallError as error:
        # A model that thought until the small limit was reached has taken the request.
        return None if error.kind == "truncated" else error
    return None


def adjust(now: Capabilities, error: CallError) -> Capabilities | None:
    """What to try next after a refusal; None if the refusal names nothing that we can leave out."""
    said = str(error).lower()
    if error.fatal or error.kind not in ("bad_request", "server_error"):
        return None
    names_temperature = ("temperature" in said and "template" not in said) or _ONLY_DEFAULT.search(said)
    if now.temperature and names_temperature:
        return replace(now, temperature=False)
    if now.seed and re.search(r"\bseed\b", said):
        return replace(now, seed=False)
    if "max_completion_tokens" in said and now.max_tokens_name == "max_tokens":
        return replace(now, max_tokens_name="max_completion_tokens")
    if "max_tokens" in said and now.max_tokens_name == "max_completion_tokens":
        return replace(now, max_tokens_name="max_tokens")
    if now.system_role and re.search(r"system[ _]role|roles must alternate|got system", said):
        return replace(now, system_role=False)
    names_format = re.search(r"response_format|json_schema|json_object|json mode|grammar|schema", said)
    if now.response_format != "text" and names_format:
        return replace(now, response_format=_FORMATS[_FORMATS.index(now.response_format) + 1])
    return None


def _request(provider: Provider, now: Capabilities) -> ModelRequest:
    instruction = "Reply with one JSON object."
    question = 'Reply with the JSON object {"ready": true} and nothing else.'
    messages: tuple[dict[str, str], ...] = (
        ({"role": "system", "content": instruction}, {"role": "user", "content": question})
        if now.system_role
        else ({"role": "user", "content": f"{instruction}\n\n{question}"},)
    )
    model = provider.model
    return ModelRequest(
        provider=model.provider,
        base_url=model.public_url,
        model=model.model,
        pinned_model=model.model,
        messages=messages,
        parameters=now.parameters(model, max_output_tokens=16, with_tokens=True),
        reply_schema=_SCHEMA,
        prompt_sha256="capabilities",
    )
