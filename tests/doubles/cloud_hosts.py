"""Six hosts of other people's machines, from their documentation and error bodies that users reported."""

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from judgekit.testing import (
    Reply,
    Request,
    Responder,
    chat_reply,
    error_in_200,
    error_reply,
    filtered_reply,
    overloaded,
    rate_limited,
    refused_reply,
)
from tests.doubles.hosts import (
    EXPECTED,
    TOO_LONG,
    Change,
    Fault,
    Host,
    always,
    completion,
    dressed,
    once,
    refuses,
    refuses_form,
    serves,
    strict,
    verdict_of,
)
from tests.doubles.strict import requires

_REASONING = ("gpt-5-mini-2025-08-07",)
_OF_REASONING = strict(requires(temperature=False, logprobs=False, max_tokens_name="max_completion_tokens"), _REASONING)
_THOUGHT_TOO_LONG = error_reply(
    400,
    "Could not finish the message because max_tokens or model output limit was reached. Please try again with higher "
    "max_tokens.",
)


def _thinks(request: Request) -> Reply | None:
    """A reasoning model thinks for 200 tokens before it says anything."""
    return _THOUGHT_TOO_LONG if request.model in _REASONING and request.get("max_completion_tokens") < 200 else None


def _not_found(model: str) -> Reply:
    message = f"The model `{model}` does not exist or you do not have access to it."
    return error_reply(404, message, code="model_not_found")


OPENAI = Host(
    path="/v1/chat/completions",
    key_header="authorization",
    rules=(
        serves("gpt-4.1-2025-04-14", *_REASONING, reply=_not_found),
        strict(requires(max_tokens_name="max_completion_tokens")),
        _OF_REASONING,
        _thinks,
    ),
    faults={
        "output limit": Fault(
            model={"model": _REASONING[0], "allow_provider_temperature": True, "max_output_tokens": 100}
        ),
        "temperature": Fault(
            model={"model": _REASONING[0], "allow_provider_temperature": False},
            says='"allow_provider_temperature": true',
        ),
        "logprobs": Fault(
            model={"model": _REASONING[0], "allow_provider_temperature": True},
            judge=EXPECTED,
            says="gives no token probabilities",
        ),
        "model_not_found": Fault(model={"model": "gpt-4.1-2025-04-15"}, says="no such model or address"),
        "insufficient_quota": Fault(
            always(
                rate_limited(
                    message="You exceeded your current quota, please check your plan and billing details.",
                    code="insufficient_quota",
                )
            ),
            from_the_start=True,
            says="quota used up",
        ),
        "rate_limit_exceeded": Fault(
            once(rate_limited(message="Rate limit reached for gpt-4.1. Please try again in 20ms.")), n_requests=2
        ),
        "context_length_exceeded": Fault(always(error_reply(400, TOO_LONG, code="context_length_exceeded"))),
        "refusal": Fault(always(refused_reply())),
    },
)

_AZURE_FILTER = {
    "message": "The response was filtered due to the prompt triggering Azure OpenAI's content management policy. "
    "Please modify your prompt and retry.",
    "type": None,
    "param": "prompt",
    "code": "content_filter",
    "status": 400,
    "innererror": {
        "code": "ResponsibleAIPolicyViolation",
        "content_filter_result": {"violence": {"filtered": True, "severity": "medium"}},
    },
}
_OLD_VERSION = "response_format value as json_schema is enabled only for api versions 2024-08-01-preview and later"


def _no_deployment(_: str) -> Reply:
    message = "The API deployment for this resource does not exist. If you created the deployment within the last 5 "
    return error_reply(404, f"{message}minutes, please wait a moment and try again.", code="DeploymentNotFound")


_AZURE_FAULTS = {
    "DeploymentNotFound": Fault(model={"model": "gpt-4.1-2025-04-15"}, says="no such model or address"),
    "content_filter": Fault(always(Reply(400, {"error": _AZURE_FILTER}))),
    "finish_reason": Fault(always(filtered_reply())),
    "429": Fault(
        once(
            error_reply(
                429,
                "Requests have exceeded call rate limit of your current tier. Please retry after 1 second.",
                code="429",
                headers={"retry-after-ms": "20"},
            )
        ),
        n_requests=2,
    ),
    "max_tokens": Fault(
        model={"model": _REASONING[0], "allow_provider_temperature": True},
        capabilities={"max_tokens_name": "max_completion_tokens", "temperature": False},
    ),
}
AZURE = Host(
    path="/openai/v1/chat/completions",
    key_header="authorization",
    rules=(serves("gpt-4.1-2025-04-14", *_REASONING, reply=_no_deployment), _OF_REASONING, _thinks),
    faults=_AZURE_FAULTS,
)
AZURE_CLASSIC = Host(
    path="/openai/deployments/judge/chat/completions?api-version=2024-10-21",
    key_header="api-key",
    reply=lambda request: chat_reply(verdict_of(request), model="gpt-4.1-2025-04-14"),
    faults={
        "api-version": Fault(
            model={"base_url": "https://NAME.openai.azure.com/openai/deployments/judge"}, says="Resource not found"
        )
    },
)
AZURE_OLD = replace(
    AZURE_CLASSIC,
    path=AZURE_CLASSIC.path.replace("2024-10-21", "2024-06-01"),
    rules=(refuses_form("json_schema", error_reply(400, _OLD_VERSION, code="BadRequest")),),
    faults={
        "json_schema": Fault(
            model={"base_url": "https://NAME.openai.azure.com/openai/deployments/judge?api-version=2024-06-01"},
            capabilities={"response_format": "json_object"},
        )
    },
)


def _anthropic(status: int, message: str, kind: str = "invalid_request_error") -> Reply:
    return error_reply(status, message, code=kind, type=kind)


_HAIKU = "claude-haiku-4-5-20251001"
ANTHROPIC = Host(
    path="/v1/chat/completions",
    key_header="authorization",
    rules=(
        serves(_HAIKU, "claude-opus-4-7", reply=lambda model: _anthropic(404, f"model: {model}", "not_found_error")),
        refuses("temperature", _anthropic(400, "`temperature` is deprecated for this model."), ["claude-opus-4-7"]),
        refuses_form("json_object", _anthropic(400, "response_format.type: Input should be 'json_schema'")),
    ),
    reply=lambda request: chat_reply(verdict_of(request), fingerprint=None),
    faults={
        "seed": Fault(capabilities={"seed": True}),
        "logprobs": Fault(judge=EXPECTED, says="gives no token probabilities"),
        "temperature": Fault(
            model={"model": "claude-opus-4-7"},
            says='"allow_provider_temperature": true',
        ),
        "json_object": Fault(model={"reply_format": "json_object"}, says='"reply_format": "json_object"'),
        "minimum": Fault(
            always(_anthropic(400, "output_format.schema: For 'integer' type, property 'minimum' is not supported")),
            says="refuses its reply_schema",
        ),
        "response_format": Fault(
            dressed(lambda _, verdict: chat_reply(f"```json\n{verdict}\n```")), parse_path="fence"
        ),
        "overloaded_error": Fault(once(overloaded({"retry-after-ms": "20"})), n_requests=2),
        "credit balance": Fault(
            always(_anthropic(400, "Your credit balance is too low to access the Anthropic API.")), says="quota used up"
        ),
        "prompt is too long": Fault(always(_anthropic(400, "prompt is too long: 208310 tokens > 200000 maximum"))),
        "request_too_large": Fault(always(_anthropic(413, "Request exceeds the maximum size", "request_too_large"))),
    },
)


def _google(status: int, message: str, word: str, details: tuple[Mapping[str, Any], ...] = ()) -> Reply:
    error = {"code": status, "message": message, "status": word, "details": details}
    return Reply(status, json.dumps([{"error": error}]).encode())


def _quota(per: str, retry: str = "0.02s") -> Reply:
    message = (
        "You exceeded your current quota, please check your plan and billing details. For more information on this "
        "error, head to: https://ai.google.dev/gemini-api/docs/rate-limits.\n* Quota exceeded for metric: "
        f"generate_content_free_tier_requests, limit: 10, model: gemini-3.5-flash\nPlease retry in {retry}."
    )
    failure = {"violations": [{"quotaId": f"GenerateRequestsPer{per}PerProjectPerModel-FreeTier"}]}
    return _google(429, message, "RESOURCE_EXHAUSTED", (failure, {"retryDelay": retry}))


def _bare(reason: str) -> Change:
    """No message at all, only why it ended."""
    return dressed(lambda request, _: Reply(body=completion(request, None, reason)))


def _thought_or_said(request: Request) -> Reply:
    """It thinks for 200 tokens before it says anything."""
    if request.get("max_tokens") < 200:
        return Reply(body=completion(request, None, "length"))
    return chat_reply(verdict_of(request), fingerprint=None)


GEMINI = Host(
    path="/v1beta/openai/chat/completions",
    key_header="authorization",
    rules=(
        refuses(
            "seed",
            _google(
                400,
                'Invalid JSON payload received. Unknown name "seed": Cannot find field.',
                "INVALID_ARGUMENT",
                ({"fieldViolations": [{"description": 'Unknown name "seed": Cannot find field.'}]},),
            ),
        ),
        serves(
            "gemini-3.5-flash",
            reply=lambda model: _google(404, f"models/{model} is not found for API version v1main", "NOT_FOUND"),
        ),
    ),
    reply=_thought_or_said,
    faults={
        "seed": Fault(capabilities={"seed": False}),
        "API key not valid": Fault(
            always(_google(400, "API key not valid. Please pass a valid API key.", "INVALID_ARGUMENT")),
            from_the_start=True,
            says="the key is missing or wrong",
        ),
        "is not found": Fault(model={"model": "gemini-9"}, says="no such model or address"),
        "PerMinute": Fault(once(_quota("Minute")), n_requests=2),
        "PerDay": Fault(always(_quota("Day")), says="quota used up"),
        "UNAVAILABLE": Fault(
            once(_google(503, "The model is overloaded. Please try again later.", "UNAVAILABLE")), n_requests=2
        ),
        "length": Fault(_bare("length")),
        "SAFETY": Fault(_bare("SAFETY")),
    },
)

_GPT_OSS = "openai.gpt-oss-120b-1:0"
_NOT_BY_CHAT = error_reply(
    400,
    "The model 'anthropic.claude-sonnet-5' does not support the '/v1/chat/completions' API",
    code="validation_error",
)
BEDROCK = Host(
    path="/openai/v1/chat/completions",
    key_header="authorization",
    rules=(
        refuses("model", _NOT_BY_CHAT, ["anthropic.claude-sonnet-5"]),
        serves(_GPT_OSS, reply=lambda _: Reply(400, {"message": "The provided model identifier is invalid."})),
    ),
    faults={
        "<reasoning>": Fault(
            dressed(lambda _, verdict: chat_reply(f"<reasoning>Let me see. {{}}</reasoning>{verdict}")),
            parse_path="think-reasoning",
        ),
        "ThrottlingException": Fault(
            once(
                Reply(
                    429,
                    {"message": "Too many requests, please wait before trying again."},
                    {"x-amzn-errortype": "ThrottlingException"},
                )
            ),
            n_requests=2,
        ),
        "AccessDeniedException": Fault(
            always(Reply(403, {"Message": "Bearer Token has expired"}, {"x-amzn-errortype": "AccessDeniedException"})),
            from_the_start=True,
            says="Bearer Token has expired",
        ),
        "validation_error": Fault(
            model={
                "model": "anthropic.claude-sonnet-5",
                "pin": {"allow_floating": True, "served_model": "anthropic.claude-sonnet-5"},
            },
            says="does not support the '/v1/chat/completions' API",
        ),
        "model identifier": Fault(
            model={"model": "openai.gpt-oss-120b", "pin": {"allow_floating": True}},
            says="The provided model identifier is invalid.",
        ),
    },
)


def _served_by(name: str) -> Responder:
    usage = {"prompt_tokens": 900, "completion_tokens": 90, "total_tokens": 990, "cost": 0.0031}
    return lambda request: Reply(body=_routed(request, name, usage=usage))


def _routed(request: Request, provider: str, **fields: Any) -> dict[str, Any]:
    message = {"role": "assistant", "content": verdict_of(request)}
    return completion(request, message, "stop", provider=provider, **fields)


_BLANK = b"\n\n   \n"
_BROKEN_CHOICE = {
    "index": 0,
    "message": {"role": "assistant", "content": ""},
    "finish_reason": "error",
    "error": {"code": 502, "message": "Upstream error from Azure"},
}
_BROKEN = Reply(body={"provider": "Azure", "choices": [_BROKEN_CHOICE]}, fill=True)
_FLAGGED = {
    "code": 403,
    "message": 'openai/gpt-4o requires moderation on OpenAI. Your input was flagged for "violence".',
    "metadata": {"reasons": ["violence"], "provider_name": "OpenAI"},
}
_NO_CREDIT = {"code": 402, "message": "Insufficient credits. Add more using https://openrouter.ai/credits"}
_NO_ENDPOINT = {"code": 404, "message": "No endpoints found that can handle the requested parameters."}


OPENROUTER = Host(
    path="/api/v1/chat/completions",
    key_header="authorization",
    reply=_served_by("Azure"),
    faults={
        "200": Fault(once(error_in_200("Provider returned error", 502)), n_requests=2),
        "choices[0].error": Fault(once(_BROKEN), n_requests=2),
        "provider": Fault(always(_served_by("OpenAI")), says="served by OpenAI, pinned is Azure"),
        "402": Fault(always(Reply(402, {"error": _NO_CREDIT})), from_the_start=True, says="no credit"),
        "403": Fault(always(Reply(403, {"error": _FLAGGED}))),
        "No endpoints found": Fault(
            always(Reply(404, {"error": _NO_ENDPOINT})), from_the_start=True, says="No endpoints found"
        ),
        "blank lines": Fault(
            dressed(lambda request, _: Reply(body=_BLANK + json.dumps(_routed(request, "Azure")).encode()))
        ),
    },
)
