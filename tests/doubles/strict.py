"""Servers that refuse parameters, each in the words of a real one."""

import json
from collections.abc import Callable
from typing import Any

from judgekit.testing import Reply, Request, Responder, Script, as_responder, error_reply

Rule = Callable[[Request], Reply | None]


def requires(
    *,
    json_schema: bool = True,
    json_object: bool = True,
    json_word: bool = False,
    temperature: bool = True,
    seed: bool = True,
    logprobs: bool = True,
    system_role: bool = True,
    max_tokens_name: str | None = None,
    max_prompt_tokens: int | None = None,
    api_key: str | None = None,
    then: Script | None = None,
) -> Responder:
    """A server that takes only some requests; a switch that is off means: refused here.

    Args:
        json_schema: Takes `response_format` of type `json_schema`; else 400.
        json_object: Takes `response_format` of type `json_object`; else 400, the error a plain string.
        json_word: With `json_object`, wants the word "json" in a message; else 400.
        temperature: Takes a temperature other than 1; else 400.
        seed: Takes `seed`; else 422 in the form of FastAPI.
        logprobs: Takes `logprobs`; else 403.
        system_role: Takes messages of the role `system`; else 500, as chat templates raise it.
        max_tokens_name: The only name that is taken for the output limit: `max_tokens` or `max_completion_tokens`;
            the other gets 400. None takes both.
        max_prompt_tokens: Longest prompt, at 4 characters a token; else 400 `context_length_exceeded`.
        api_key: The only key that is taken; else 401, with the key masked in the message.
        then: What an accepted request gets; the default verdict if None.
    """
    switches: list[tuple[bool, Rule]] = [
        (api_key is not None, lambda request: _refuse_key(request, str(api_key))),
        (not system_role, _refuse_system_role),
        (max_tokens_name is not None, lambda request: _refuse_other_limit(request, str(max_tokens_name))),
        (not temperature, _refuse_temperature),
        (not seed, _refuse_seed),
        (not logprobs, _refuse_logprobs),
        (True, lambda request: _refuse_format(request, json_schema, json_object, json_word)),
        (max_prompt_tokens is not None, lambda request: _refuse_length(request, max_prompt_tokens or 0)),
    ]
    rules = [rule for is_on, rule in switches if is_on]
    responder = as_responder(then)

    def answer(request: Request) -> Reply:
        for rule in rules:
            refusal = rule(request)
            if refusal is not None:
                return refusal
        return responder(request)

    return answer


def _has(request: Request, name: str) -> bool:
    return request.get(name) is not None


def _refuse_key(request: Request, api_key: str) -> Reply | None:
    key = request.headers.get("authorization", "").removeprefix("Bearer ")
    if key == api_key:
        return None
    masked = f"{key[:4]}...{key[-4:]}" if len(key) > 8 else "***"
    return error_reply(401, f"Incorrect API key provided: {masked}.", code="invalid_api_key")


def _refuse_system_role(request: Request) -> Reply | None:
    if all(message.get("role") != "system" for message in request.messages):
        return None
    return Reply(500, {"object": "error", "message": "System role not supported", "type": "TemplateError"})


def _refuse_other_limit(request: Request, taken: str) -> Reply | None:
    other = "max_completion_tokens" if taken == "max_tokens" else "max_tokens"
    if not _has(request, other):
        return None
    if taken == "max_tokens":
        return _extra_forbidden(other, request.get(other))
    message = f"Unsupported parameter: '{other}' is not supported with this model. Use '{taken}' instead."
    return error_reply(400, message, code="unsupported_parameter", param=other)


def _refuse_temperature(request: Request) -> Reply | None:
    value = request.get("temperature")
    if value is None or value == 1:
        return None
    message = (
        f"Unsupported value: 'temperature' does not support {json.dumps(value)} with this model. "
        "Only the default (1) value is supported."
    )
    return error_reply(400, message, code="unsupported_value", param="temperature")


def _refuse_seed(request: Request) -> Reply | None:
    return _extra_forbidden("seed", request.get("seed")) if _has(request, "seed") else None


def _refuse_logprobs(request: Request) -> Reply | None:
    if not request.get("logprobs"):
        return None
    return error_reply(403, "You are not allowed to request logprobs from this model", type="invalid_request_error")


def _refuse_format(request: Request, json_schema: bool, json_object: bool, json_word: bool) -> Reply | None:
    response_format = request.get("response_format")
    kind = response_format.get("type") if isinstance(response_format, dict) else None
    if (kind == "json_schema" and not json_schema) or (kind == "json_object" and not json_object and not json_schema):
        return error_reply(400, "This response_format type is unavailable now")
    if kind == "json_object" and not json_object:
        return Reply(400, {"error": "'response_format.type' must be 'json_schema' or 'text'"})
    if kind == "json_object" and json_word and "json" not in request.text.lower():
        message = (
            "'messages' must contain the word 'json' in some form, to use 'response_format' of type 'json_object'."
        )
        return error_reply(400, message, param="messages")
    return None


def _refuse_length(request: Request, max_prompt_tokens: int) -> Reply | None:
    n_tokens = len(request.text) // 4
    if n_tokens <= max_prompt_tokens:
        return None
    message = (
        f"This model's maximum context length is {max_prompt_tokens} tokens. "
        f"However, your messages resulted in {n_tokens} tokens. Please reduce the length of the messages."
    )
    return error_reply(400, message, code="context_length_exceeded", param="messages")


def _extra_forbidden(name: str, value: Any) -> Reply:
    detail = {
        "type": "extra_forbidden",
        "loc": ["body", name],
        "msg": "Extra inputs are not permitted",
        "input": value,
    }
    return Reply(422, {"object": "error", "detail": [detail]})
