"""Responders that are built from replies and from other responders."""

import hashlib
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from judgekit.testing.exchange import Reply, Request, Responder
from judgekit.testing.faults import rate_limited
from judgekit.testing.plausible import plausible_verdict
from judgekit.testing.replies import chat_reply, reply_from_record

Script = Reply | Responder | str | Mapping[str, Any] | Sequence["Script"]
"""What can be played: a reply, a responder, the content of a reply, a record (`reply_from_record`), or a list."""


def as_responder(script: Script | None) -> Responder:
    """The responder that a script stands for; None is the default, `plausible_verdict`."""
    if script is None:
        return plausible_verdict
    if isinstance(script, Reply):
        return lambda _: script
    if isinstance(script, str):
        return as_responder(chat_reply(script))
    if isinstance(script, Mapping):
        return as_responder(reply_from_record(script))
    if isinstance(script, Sequence):
        return sequence(script)
    return script


def sequence(scripts: Sequence[Script]) -> Responder:
    """The n-th request gets the n-th entry; the last one repeats.

    Raises:
        ValueError: There is no entry.
    """
    if not scripts:
        raise ValueError("a sequence needs at least one entry")
    responders = [as_responder(script) for script in scripts]
    n_seen = 0

    def answer(request: Request) -> Reply:
        nonlocal n_seen
        responder = responders[min(n_seen, len(responders) - 1)]
        n_seen += 1
        return responder(request)

    return answer


def per_case(choose: Callable[[Request], Script], key: Callable[[Request], Hashable] | None = None) -> Responder:
    """Each case has a script of its own, whatever the order in which cases arrive.

    Args:
        choose: Called with the first request of a case; returns what that case gets. A list is walked by the
            case's requests: first try, first retry, and so on.
        key: Tells cases apart; the whole body if None. A retry that changes the request (another response
            format, merged messages) needs a key that does not change, such as an id found in `request.text`.
    """
    chosen: dict[Hashable, Responder] = {}

    def answer(request: Request) -> Reply:
        case = key(request) if key is not None else request.body_hash
        if case not in chosen:
            chosen[case] = as_responder(choose(request))
        return chosen[case](request)

    return answer


def alias_move(before: str, after: str, n_before: int, then: Script | None = None) -> Responder:
    """The served model is `before` for the first `n_before` requests, and `after` from then on."""
    return _field_change("model", before, after, n_before, as_responder(then))


def fingerprint_change(before: str, after: str, n_before: int, then: Script | None = None) -> Responder:
    """`system_fingerprint` is `before` for the first `n_before` requests, and `after` from then on."""
    return _field_change("system_fingerprint", before, after, n_before, as_responder(then))


def with_latency(
    seconds: float, *, jitter_seconds: float = 0.0, seed: int = 0, then: Script | None = None
) -> Responder:
    """Every reply waits.

    Args:
        seconds: Least wait.
        jitter_seconds: Up to so much more, drawn from seed and body: the same request always waits as long.
        seed: Of the jitter.
        then: What is played.
    """
    responder = as_responder(then)

    def answer(request: Request) -> Reply:
        reply = responder(request)
        wait = seconds
        if jitter_seconds:
            digest = hashlib.blake2b(f"{seed}|{request.body_hash}".encode(), digest_size=8).digest()
            wait += jitter_seconds * int.from_bytes(digest, "big") / 2**64
        return replace(reply, delay_seconds=reply.delay_seconds + wait) if wait else reply

    return answer


def limited(max_in_flight: int, *, retry_after_ms: float = 50, then: Script | None = None) -> Responder:
    """Answers 429 to a request that comes while `max_in_flight` others are being answered."""
    responder = as_responder(then)

    def answer(request: Request) -> Reply:
        if request.n_in_flight > max_in_flight:
            return rate_limited(retry_after_ms=retry_after_ms, remaining_requests=0, message="Too many in flight")
        return responder(request)

    return answer


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
