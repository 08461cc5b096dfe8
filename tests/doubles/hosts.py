"""How a host of models behind an OpenAI-compatible address is played: what it takes, refuses and leaves out."""

import json
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from judgekit.testing import (
    FaultServer,
    Reply,
    Request,
    Responder,
    Script,
    ServerInfo,
    as_responder,
    error_reply,
    plausible_body,
    plausible_verdict,
)

KEY: Final = "key-of-this-test-4711"
EXPECTED: Final = {"name": "correctness", "scoring": "expected"}
"""A judge that needs token probabilities."""
TOO_LONG: Final = "This model's maximum context length is 4096 tokens. However, your messages resulted in 5120 tokens."

Rule = Callable[[Request], Reply | None]
"""A refusal; None if there is nothing to refuse."""
Change = Callable[[Responder], Responder]
"""What becomes of the usual replies of a host."""


@dataclass(frozen=True)
class Fault:
    """One thing that a host does, and how a config leads to it."""

    played: Change | None = None
    """What calls get. None: what the host does anyway."""
    from_the_start: bool = False
    """Also the small call that finds out what the host takes."""
    model: Mapping[str, Any] = field(default_factory=dict)
    """Entries of the block that differ."""
    judge: Mapping[str, Any] = field(default_factory=dict)
    """Entries of the judge that differ."""
    capabilities: Mapping[str, Any] = field(default_factory=dict)
    """What a run must have found out."""
    says: str = ""
    """What the error line must hold."""
    n_requests: int = 1
    """Requests about each case."""
    parse_path: str = "strict"
    """How verdicts were read, if there are any."""


class Pages(ServerInfo):
    """What a host answers to GET; it has no other pages."""

    def __init__(self, pages: Mapping[str, Any]) -> None:
        super().__init__()
        self.pages = pages

    def page(self, path: str) -> dict[str, Any] | None:
        return self.pages.get(path)


@dataclass(frozen=True)
class Host:
    """How one host answers."""

    path: str
    """Where it answers chat, with the query that it wants."""
    key_header: str
    """The header with the key; empty: it wants none."""
    rules: tuple[Rule, ...] = ()
    """Refusals; the first that has one speaks."""
    reply: Responder = plausible_verdict
    faults: Mapping[str, Fault] = field(default_factory=dict)
    """By the name that docs/models.md gives them."""
    pages: Mapping[str, Any] = field(default_factory=dict)

    def server(self, fault: Fault | None = None) -> FaultServer:
        """The host on loopback; a fault is played for calls about cases unless it says otherwise."""
        usual = self.usual
        changed = usual if fault is None or fault.played is None else fault.played(usual)
        spared = fault is None or not fault.from_the_start
        return FaultServer(
            lambda request: (usual if spared and is_probe(request) else changed)(request), info=Pages(self.pages)
        )

    def usual(self, request: Request) -> Reply:
        """What it says to a request: to a wrong address, a wrong key, something it refuses, or a sound one."""
        target = f"{request.path}?{request.query}" if request.query else request.path
        if target != self.path:
            return error_reply(404, "Resource not found", code="404")
        keys = {name: request.headers[name].removeprefix("Bearer ") for name in KEY_HEADERS & request.headers.keys()}
        if keys != ({self.key_header: KEY} if self.key_header else {}):
            return error_reply(401, "Incorrect API key provided", code="invalid_api_key")
        refusals = (rule(request) for rule in self.rules)
        return next((reply for reply in refusals if reply is not None), None) or self.reply(request)


KEY_HEADERS: Final = frozenset({"authorization", "api-key"})


def is_probe(request: Request) -> bool:
    """Whether a request only finds out what the host takes."""
    return '{"ready": true}' in request.text


def always(script: Script) -> Change:
    """Every call about a case gets this."""
    return lambda _: as_responder(script)


def once(reply: Reply) -> Change:
    """The first request about each case gets this reply, the next one what the host usually says."""

    def change(usual: Responder) -> Responder:
        seen: set[str] = set()

        def answer(request: Request) -> Reply:
            is_new = request.body_hash not in seen
            seen.add(request.body_hash)
            return reply if is_new else usual(request)

        return answer

    return change


def dressed(reply: Callable[[Request, str], Reply]) -> Change:
    """Sound replies in another dress, made from the request and the verdict as JSON."""
    return lambda _: lambda request: reply(request, verdict_of(request))


def verdict_of(request: Request) -> str:
    """A sound verdict as JSON."""
    return json.dumps(plausible_body(request))


def completion(request: Request, message: Mapping[str, Any] | None, reason: str, **fields: Any) -> dict[str, Any]:
    """The body of a completion with all that a host may leave out of a message."""
    choice = {"index": 0, "message": message, "finish_reason": reason}
    return {"id": "c", "object": "chat.completion", "model": request.model, "choices": [choice], **fields}


def refuses(name: str, reply: Reply, models: Collection[str] = ()) -> Rule:
    """Refuse a request that holds a field; for some models only, if any are named."""
    return lambda request: reply if name in (request.body or {}) and (not models or request.model in models) else None


def refuses_form(kind: str, reply: Reply) -> Rule:
    """Refuse a form of reply."""
    return lambda request: reply if (request.get("response_format") or {}).get("type") == kind else None


def refuses_system(model: str, reply: Reply) -> Rule:
    """The chat template of one model takes no system message."""

    def rule(request: Request) -> Reply | None:
        roles = [message.get("role") for message in request.messages]
        return reply if request.model == model and "system" in roles else None

    return rule


def serves(*models: str, reply: Callable[[str], Reply]) -> Rule:
    """Refuse every other model."""
    return lambda request: None if request.model in models else reply(request.model)


def strict(responder: Responder, models: Collection[str] = ()) -> Rule:
    """The refusals of a server of `requires` as a rule; for some models only, if any are named."""

    def rule(request: Request) -> Reply | None:
        reply = responder(request)
        return reply if reply.status >= 400 and (not models or request.model in models) else None

    return rule
