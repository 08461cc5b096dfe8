"""A chat completion on the wire: the body of a request, and a reply as our response."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

from judgekit.core.judgments import ModelRequest, ModelResponse
from judgekit.core.protocols import CallError
from judgekit.core.token_runs import Token, TokenRun
from judgekit.providers.accounting import read_cost, read_upstream, read_usage
from judgekit.providers.http_errors import error_from_ok, redact

_THINKING_FIELDS = (
    "reasoning",
    "reasoning_content",
    "thinking",
    "thinking_content",
    "reasoning_text",
    "reasoning_details",
)
"""Fields of a message in which servers put what a model thinks, and by mistake all that it says."""
_PART_TEXTS = ("text", "content", "summary")
_DEEPEST_PART = 3


def wire_body(request: ModelRequest) -> dict[str, Any]:
    """The body of a chat completion request."""
    parameters = request.parameters
    body: dict[str, Any] = {"model": request.model, "messages": [dict(message) for message in request.messages]}
    # Some gateways stream unless they are told not to.
    body["stream"] = False
    for name in ("temperature", "seed", "reasoning_effort"):
        if name in parameters:
            body[name] = parameters[name]
    if parameters.get("top_logprobs"):
        body |= {"logprobs": True, "top_logprobs": parameters["top_logprobs"]}
    body[parameters["max_tokens_name"]] = parameters["max_output_tokens"]
    if parameters["response_format"] == "json_schema":
        schema = {"name": "verdict", "strict": True, "schema": dict(request.reply_schema)}
        body["response_format"] = {"type": "json_schema", "json_schema": schema}
    elif parameters["response_format"] == "json_object":
        body["response_format"] = {"type": "json_object"}
    body |= parameters.get("extra_body", {})
    return body


def read_completion(payload: Any, latency_seconds: float, headers: Mapping[str, str]) -> ModelResponse:
    """A chat completion as our response; parts that a server leaves out stay None.

    If the content is empty, the text of a field for thinking is taken, with the field as its source: the parser decides
    what it is worth.

    Args:
        payload: the body.
        latency_seconds: from sending to the last byte.
        headers: of the reply, found by names in lower case.

    Raises:
        CallError: the body is JSON, but not a chat completion.
    """
    try:
        choice = _first(payload["choices"])
        if choice.get("error"):
            raise error_from_ok(choice, {}, now=0.0)
        message = choice["message"]
        if message is None and choice.get("finish_reason"):
            # Gemini sends no message if all tokens went into thinking, or if a filter withheld it.
            message = {}
        text, source = message.get("content"), "content"
        calls = message.get("tool_calls")
        if not text and calls:
            # Several calls are read together, so that different verdicts in them are seen to differ.
            text, source = "\n".join(call["function"]["arguments"] for call in calls), "tool_call"
        if isinstance(text, list):
            text = "".join(part.get("text", "") for part in text if not _is_thinking(part))
        if not isinstance(text, str) or not text.strip():
            text, source = next(_thinking(message), (text, source))
    except (TypeError, KeyError, IndexError, AttributeError):
        message = f"the reply is not a chat completion: {redact(str(payload)[:200])}"
        raise CallError("server_error", message, retryable=True) from None
    return ModelResponse(
        text=text if isinstance(text, str) else None,
        finish_reason=_text(choice.get("finish_reason")),
        refusal=_text(message.get("refusal")),
        usage=read_usage(payload, has_text=isinstance(text, str) and bool(text)),
        cost_usd=read_cost(payload, headers),
        response_id=_text(payload.get("id")),
        served_model=_text(payload.get("model")),
        fingerprint=_text(payload.get("system_fingerprint")),
        upstream=read_upstream(payload, headers),
        source=source,
        latency_seconds=latency_seconds,
        tokens=read_tokens(choice.get("logprobs")),
    )


def read_tokens(logprobs: Any) -> TokenRun | None:
    """The tokens of a completion with their alternatives; None if the server gives none in a form that is known.

    Tokens that are parts of one character are put together, and have no alternatives then.
    """
    try:
        entries = logprobs["content"]
        pieces = [_bytes_of(entry) for entry in entries]
        tokens: list[Token] = []
        waiting = b""
        for entry, piece in zip(entries, pieces, strict=True):
            text = _decoded(waiting + piece)
            if text is None:
                waiting += piece
                continue
            tokens.append(Token(text, () if waiting else _alternatives(entry, text)))
            waiting = b""
    except (TypeError, KeyError, ValueError, AttributeError):
        return None
    return TokenRun(tuple(tokens)) if tokens else None


def _alternatives(entry: Mapping[str, Any], text: str) -> tuple[tuple[str, float], ...]:
    own = text, float(entry["logprob"])
    found = [
        (other, float(item["logprob"]))
        for item in entry.get("top_logprobs") or ()
        if (other := _decoded(_bytes_of(item))) is not None
    ]
    return tuple(found) if any(other == text for other, _ in found) else (own, *found)


def _bytes_of(entry: Mapping[str, Any]) -> bytes:
    given = entry.get("bytes")
    return bytes(given) if isinstance(given, list) else str(entry["token"]).encode("utf-8", "surrogatepass")


def _decoded(piece: bytes) -> str | None:
    """The bytes as a text; None for a part of a character."""
    try:
        return piece.decode()
    except UnicodeDecodeError:
        return None


def _first(choices: list[Any]) -> Any:
    """The choice that was asked for: the one with index 0, wherever it stands."""
    return choices[0] if len(choices) == 1 else next((item for item in choices if item.get("index") == 0), choices[0])


def _is_thinking(part: Any) -> bool:
    return part.get("type") in ("thinking", "reasoning", "redacted_thinking")


def _thinking(message: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Texts that stand in fields for thinking, and the names of these fields."""
    content = message.get("content")
    parts = [part for part in content if _is_thinking(part)] if isinstance(content, list) else []
    if text := _said(parts):
        yield text, str(parts[0]["type"])
    yield from ((text, name) for name in _THINKING_FIELDS if (text := _said(message.get(name))))


def _said(value: Any, depth: int = 0) -> str:
    """The text of a field that is a text, a part with a text, or a list of parts; blank is nothing."""
    if isinstance(value, Mapping):
        value = next((value[name] for name in (*_PART_TEXTS, *_THINKING_FIELDS) if value.get(name)), None)
    if isinstance(value, list | Mapping) and depth < _DEEPEST_PART:
        parts = value if isinstance(value, list) else [value]
        value = "".join(_said(part, depth + 1) for part in parts)
    return value if isinstance(value, str) and value.strip() else ""


def _text(value: Any) -> str | None:
    """What should be a text, as one: a record that holds anything else could not be read back."""
    return value if value is None or isinstance(value, str) else json.dumps(value)
