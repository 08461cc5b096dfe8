"""Replies as an OpenAI-compatible server writes them, sound ones and errors."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from judgekit.testing.exchange import Fault, Reply


def chat_reply(  # noqa: PLR0913 - the fields of the wire format, all but one by name
    content: str | None,
    *,
    finish_reason: str | None = "stop",
    refusal: str | None = None,
    tool_calls: Sequence[Mapping[str, Any]] | None = None,
    model: str | None = None,
    fingerprint: str | None = "fp_test",
    usage: Mapping[str, Any] | None = None,
) -> Reply:
    """A chat completion with one choice.

    Args:
        content: The message's content, or None.
        finish_reason: As the provider would say; `length` for a cut reply.
        refusal: The message's refusal; the field is left out where None.
        tool_calls: See `tool_call`; the field is left out where None.
        model: The served model; None echoes the requested one.
        fingerprint: `system_fingerprint`; None leaves the field out.
        usage: Token counts as sent. None counts characters / 4; an empty mapping leaves the field out.

    Returns:
        A reply with status 200; the server fills in what depends on the request.
    """
    message: dict[str, Any] = {"role": "assistant", "content": content}
    if refusal is not None:
        message["refusal"] = refusal
    if tool_calls is not None:
        message["tool_calls"] = list(tool_calls)
    body: dict[str, Any] = {"choices": [{"index": 0, "message": message, "finish_reason": finish_reason}]}
    if model is not None:
        body["model"] = model
    if fingerprint is not None:
        body["system_fingerprint"] = fingerprint
    if usage is not None:
        body["usage"] = dict(usage)
    return Reply(body=body, fill=True)


def tool_call(arguments: Mapping[str, Any] | str, name: str = "submit", call_id: str = "call_1") -> dict[str, Any]:
    """One entry of `tool_calls`; arguments that are text are sent as they are."""
    text = arguments if isinstance(arguments, str) else json.dumps(arguments)
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": text}}


def verdict_body(
    score: Any,
    *,
    reasoning: str = "as the sources say",
    supported: Sequence[str] | None = None,
    unsupported: Sequence[str] | None = None,
) -> dict[str, Any]:
    """The object a judge answers with: reasons first, claims where either list is given, the score last."""
    body: dict[str, Any] = {"reasoning": reasoning}
    if supported is not None or unsupported is not None:
        body["supported_claims"] = list(supported or ())
        body["unsupported_claims"] = list(unsupported or ())
    body["score"] = score
    return body


def verdict(
    score: Any,
    *,
    reasoning: str = "as the sources say",
    supported: Sequence[str] | None = None,
    unsupported: Sequence[str] | None = None,
    **chat_fields: Any,
) -> Reply:
    """A sound judge reply: correctness, or groundedness where a list of claims is given.

    Args:
        score: The score as written into the JSON; not checked, so that wrong ones can be sent.
        reasoning: The judge's reasons.
        supported: Supported claims.
        unsupported: Unsupported claims.
        **chat_fields: Passed on to `chat_reply` (`model`, `fingerprint`, `usage`, ...).
    """
    body = verdict_body(score, reasoning=reasoning, supported=supported, unsupported=unsupported)
    return chat_reply(json.dumps(body, ensure_ascii=False), **chat_fields)


def error_reply(
    status: int,
    message: str,
    *,
    code: str | None = None,
    type: str | None = None,
    param: str | None = None,
    headers: Mapping[str, str] | None = None,
) -> Reply:
    """An error in OpenAI's form: `{"error": {"message", "type", "param", "code"}}`."""
    error = {"message": message, "type": type or _error_type(status), "param": param, "code": code}
    return Reply(status=status, body={"error": error}, headers=headers or {})


def reply_from_record(record: Mapping[str, Any]) -> Reply:
    """A reply from plain data, so that tables of real failures can drive the server.

    Args:
        record: One of three forms. `{"status", "headers", "body"}` is sent exactly as it stands.
            `{"message", "finish_reason"}` is the choice of a chat completion. `{"fault", ...}` is a transport
            fault: `reset`, `hang` (or `never_respond`), `close_after_bytes` with `n`, `headers_then_trickle`
            with `interval_s` and `bytes`. Each may hold `delay_s`.

    Raises:
        ValueError: The record is of none of these forms.
    """
    delay_seconds = float(record.get("delay_s", 0.0))
    if "fault" in record:
        return Reply(fault=_fault_from_record(record), delay_seconds=delay_seconds)
    if "message" in record:
        choice = {"index": 0, **record}
        choice.pop("delay_s", None)
        return Reply(body={"choices": [choice]}, fill=True, delay_seconds=delay_seconds)
    if "status" in record:
        return Reply(record["status"], record.get("body"), record.get("headers", {}), delay_seconds=delay_seconds)
    raise ValueError(f"a reply record holds status, message or fault; found {sorted(record)}")


def _fault_from_record(record: Mapping[str, Any]) -> Fault:
    match record["fault"]:
        case "reset":
            return Fault("reset")
        case "hang" | "never_respond":
            return Fault("hang")
        case "close_after_bytes":
            return Fault("close_after_bytes", n_bytes=int(record["n"]))
        case "headers_then_trickle":
            return Fault("headers_then_trickle", int(record.get("bytes", 1)), float(record["interval_s"]))
        case unknown:
            raise ValueError(f"unknown fault {unknown!r}")


def _error_type(status: int) -> str:
    if status == 401:
        return "authentication_error"
    if status == 429:
        return "rate_limit_error"
    return "server_error" if status >= 500 else "invalid_request_error"
