"""The lines of batch files: a request as `vllm run-batch` and batch endpoints take it, and what comes back for it."""

import json
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import msgspec

from judgekit.core.batches import CHAT_ADDRESS, Received
from judgekit.core.judgments import FailureKind, ModelRequest, ModelResponse
from judgekit.core.protocols import CallError
from judgekit.providers.bodies import decode_body
from judgekit.providers.completions import read_completion, wire_body
from judgekit.providers.http_errors import error_from_status, redact

_NOT_CARRIED_OUT: Mapping[str, FailureKind] = {"batch_expired": "expired", "batch_cancelled": "expired"}
_OK = 200


def request_line(custom_id: str, request: ModelRequest) -> bytes:
    """A request as a line of a batch file, its line feed included."""
    line = {"custom_id": custom_id, "method": "POST", "url": CHAT_ADDRESS, "body": wire_body(request)}
    try:
        return msgspec.json.encode(line) + b"\n"
    except UnicodeEncodeError:  # a lone surrogate, which JSON can only hold escaped
        return json.dumps(line).encode() + b"\n"


def received(line: bytes) -> Received:
    """What a line of a file of replies is."""
    try:
        found = decode_body(line)
    except (ValueError, CallError):
        return Received(None, is_reply=False, problem="not JSON")
    name = found.get("custom_id") if isinstance(found, Mapping) else None
    if not isinstance(name, str):
        return Received(None, is_reply=False, problem="no custom_id")
    try:
        _response(found)
    except CallError as error:
        return Received(name, is_reply=False, problem=_named(found, error))
    return Received(name, is_reply=True, problem=None)


def response_of(line: bytes) -> ModelResponse:
    """The reply in a line.

    Raises:
        CallError: it holds none; the kind is that of the same error of a single call.
    """
    return _response(decode_body(line))


def _response(line: Mapping[str, Any]) -> ModelResponse:
    response, error = line.get("response"), line.get("error")
    # vLLM before 0.9 has the completion itself in the place of a response with a body.
    is_bare = isinstance(response, Mapping) and "choices" in response
    status = _OK if is_bare else response.get("status_code") if isinstance(response, Mapping) else None
    if error or not isinstance(response, Mapping):
        raise _error(error, status)
    body = response if is_bare else response.get("body")
    if status != _OK:
        said = status if isinstance(status, int) and 400 <= status < 600 else 500
        raise _of_the_case(error_from_status(said, body, {}, now=0.0))
    found = replace(_completion(body), latency_seconds=None)
    created = body.get("created") if isinstance(body, Mapping) else None
    if type(created) is not int or not 0 < created < 2**33:
        return found
    return replace(found, replied_at=datetime.fromtimestamp(created, UTC).isoformat(timespec="milliseconds"))


def _completion(body: Any) -> ModelResponse:
    try:
        return read_completion(body, 0.0, {})
    except CallError as error:
        raise _of_the_case(error) from None


def _error(error: Any, status: Any) -> CallError:
    """What stands in the place of a response."""
    inner = error.get("error", error) if isinstance(error, Mapping) else error
    code = inner.get("code") if isinstance(inner, Mapping) else None
    text = inner.get("message") if isinstance(inner, Mapping) else inner
    if isinstance(code, str) and code in _NOT_CARRIED_OUT:
        return CallError(_NOT_CARRIED_OUT[code], f"{code}: {redact(str(text or 'no message'))}", n_requests=0)
    named = status if isinstance(status, int) and status != _OK else code
    if isinstance(named, int) and 400 <= named < 600:
        return _of_the_case(error_from_status(named, {"error": inner}, {}, now=0.0))
    shown = f"{redact(str(code))[:60]}: " if code else ""
    return CallError("server_error", f"{shown}{redact(str(text or 'no response and no error'))}")


def _of_the_case(error: CallError) -> CallError:
    """The same error, which says nothing of the other requests of the batch: they have lines of their own."""
    return CallError(error.kind, str(error), n_requests=error.n_requests)


def _named(line: Mapping[str, Any], error: CallError) -> str:
    """An error in a word or two, for counting."""
    response, said = line.get("response"), line.get("error")
    code = said.get("code") if isinstance(said, Mapping) else None
    if isinstance(code, str) and code:
        return redact(code)[:60]
    status = response.get("status_code") if isinstance(response, Mapping) else None
    return f"status {status}" if isinstance(status, int) and status != _OK else error.kind
