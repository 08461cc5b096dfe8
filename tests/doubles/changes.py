"""Responders that change what they serve, or refuse a crowd."""

from collections.abc import Mapping
from dataclasses import replace

from judgekit.testing import Reply, Request, Responder, Script, as_responder, rate_limited


def alias_move(before: str, after: str, n_before: int, then: Script | None = None) -> Responder:
    """The served model is `before` for the first `n_before` requests, and `after` from then on."""
    return _field_change("model", before, after, n_before, as_responder(then))


def fingerprint_change(before: str, after: str, n_before: int, then: Script | None = None) -> Responder:
    """`system_fingerprint` is `before` for the first `n_before` requests, and `after` from then on."""
    return _field_change("system_fingerprint", before, after, n_before, as_responder(then))


def _field_change(name: str, before: str, after: str, n_before: int, responder: Responder) -> Responder:
    n_seen = 0

    def answer(request: Request) -> Reply:
        nonlocal n_seen
        value = before if n_seen < n_before else after
        n_seen += 1
        reply = responder(request)
        if isinstance(reply.body, Mapping) and "choices" in reply.body:
            return replace(reply, body={**reply.body, name: value})
        return reply

    return answer


def limited(max_in_flight: int, *, retry_after_ms: float = 50, then: Script | None = None) -> Responder:
    """Answers 429 to a request that comes while `max_in_flight` others are being answered."""
    responder = as_responder(then)

    def answer(request: Request) -> Reply:
        if request.n_in_flight > max_in_flight:
            return rate_limited(retry_after_ms=retry_after_ms, remaining_requests=0, message="Too many in flight")
        return responder(request)

    return answer
