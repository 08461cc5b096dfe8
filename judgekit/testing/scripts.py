"""Responders: the default one, and those built from replies and from other responders."""

import hashlib
import json
import re
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from judgekit.testing.chances import decisions, plausible_chances, with_chances
from judgekit.testing.exchange import Reply, Request, Responder
from judgekit.testing.replies import chat_reply, verdict_body

Script = Reply | Responder | str | Sequence["Script"]
"""What can be played: a reply, a responder, the content of a chat reply, or a list of scripts."""

_REASONING = "compared with the sources, statement by statement"
_CRITERION = re.compile(r"^(?:Criterion )?`([^`]+)`:$", re.MULTILINE)
_YES_NO = re.compile(r'"(\w+)": ?\{"type": ?"boolean"')
"""The one true/false key of a schema that stands in the text of the messages."""
_CLAIMS = tuple(f"claim {number}" for number in range(1, 6))


def as_responder(script: Script | None) -> Responder:
    """The responder that a script stands for; None is the default, `plausible_verdict`."""
    if script is None:
        return plausible_verdict
    if isinstance(script, Reply):
        return lambda _: script
    if isinstance(script, str):
        return as_responder(chat_reply(script))
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
            wait += jitter_seconds * _draw(f"{seed}|{request.body_hash}") / 2**64
        return replace(reply, delay_seconds=reply.delay_seconds + wait) if wait else reply

    return answer


def plausible_verdict(request: Request) -> Reply:
    """A valid verdict, the same for the same messages.

    Which judge asks is read off the schema of `response_format`; without one, off the text of the messages. The
    score, 0 to 5, comes from a hash of that text. Groundedness gets five claims, as many of them supported as the
    score says, so that no verdict contradicts itself. A request for `logprobs` gets them, and typed questions get the
    probability of each option: 0.7 for the verdict, the rest shared by what it could have been instead.
    """
    if "questions" in (request.body or {}):
        return decisions(request, {name: plausible_chances(value, of) for name, value, of in _asked(request)})
    body = plausible_body(request)
    reply = chat_reply(json.dumps(body))
    if not request.get("logprobs"):
        return reply
    fields = (request.reply_schema or {}).get("properties", {})
    closed = [name for name, value in body.items() if isinstance(value, bool | int) or "enum" in fields.get(name, {})]
    value, schema = body[closed[-1]], fields.get(closed[-1])
    text = value if isinstance(value, str) else json.dumps(value)
    return with_chances(reply, text, plausible_chances(value, schema), request.get("top_logprobs", 0))


def _asked(request: Request) -> Iterator[tuple[str, Any, Mapping[str, Any]]]:
    """Name, plausible answer and schema of each typed question."""
    draw = _draw(request.text)
    for question in request.get("questions", []):
        listed = question.get("levels") or question.get("choices") or question.get("options") or ()
        options = [_option(entry) for entry in listed]
        value = options[draw % len(options)] if options else draw % 6 >= 3
        yield question.get("name") or question["id"], value, {"enum": options} if options else {}


def plausible_body(request: Request) -> dict[str, Any]:
    """The verdict of `plausible_verdict` as an object."""
    score = _draw(request.text) % 6
    schema = request.reply_schema
    properties = schema.get("properties", {}) if schema is not None else {}
    if "supported_claims" in properties or (not properties and "supported_claims" in request.text):
        return verdict_body(score, reasoning=_REASONING, supported=_CLAIMS[:score], unsupported=_CLAIMS[score:])
    if properties and (not properties.keys() <= {"reasoning", "score"} or "enum" in properties.get("score", {})):
        return {name: _value_for(name, part, score, request.text) for name, part in properties.items()}
    yes_no = None if properties else _YES_NO.search(request.text)
    if yes_no is not None and '"score"' not in request.text:
        return {"reasoning": _REASONING, yes_no[1]: score >= 3}
    return verdict_body(score, reasoning=_REASONING)


def _option(entry: Any) -> str:
    """A level or a choice by its text, which stands alone or under one of three names."""
    return str(
        next(entry[key] for key in ("label", "value", "name") if key in entry) if isinstance(entry, dict) else entry
    )


def _draw(text: str) -> int:
    """A number in [0, 2**64) that depends on the text alone."""
    return int.from_bytes(hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "big")


def _value_for(name: str, schema: Mapping[str, Any], draw: int, text: str) -> Any:
    """A value of the type that a field's schema asks for; of criteria, one entry for each that the text lists."""
    if "enum" in schema:
        return schema["enum"][draw % len(schema["enum"])]
    if "anyOf" in schema:
        return _value_for(name, schema["anyOf"][0], draw, text)
    match schema.get("type"):
        case "boolean":
            return draw >= 3
        case "integer" | "number":
            low = schema.get("minimum", 0)
            return low + draw % (schema.get("maximum", low + 5) - low + 1)
        case "array" if "id" in schema.get("items", {}).get("properties", {}):
            ids = dict.fromkeys(_CRITERION.findall(text))
            return [{"id": found, "evidence": _REASONING, "met": bool(_draw(f"{found}{draw}") % 2)} for found in ids]
        case "array":
            return []
        case "object":
            return {}
        case _:
            return _REASONING if name != "id" else "1"
