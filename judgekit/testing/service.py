"""What each address of the server answers."""

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from judgekit.testing.exchange import Fault, Reply, Request, Responder
from judgekit.testing.log import RequestLog
from judgekit.testing.replies import error_reply

CHAT_PATHS = frozenset({"/v1/chat/completions", "/chat/completions"})


@dataclass(slots=True)
class ServerInfo:
    """What the server says of itself; may be changed while it runs, as when a model is replaced in place."""

    models: tuple[str, ...] = ("judge-test",)
    """Ids in `GET /v1/models`, names in `GET /api/tags`."""
    meta: Mapping[str, Any] = field(default_factory=lambda: {"n_ctx_train": 8192, "n_params": 1_000_000})
    """`meta` of each entry of `GET /v1/models`."""
    build_info: str = "b1000-0000000"
    """Build of the server, in `GET /props`."""
    model_path: str = "/models/judge-test.gguf"
    """File of the model, in `GET /props`."""
    digests: Mapping[str, str] = field(default_factory=dict)
    """Digest by model in `GET /api/tags`; 64 zeros where absent."""
    n_loading: int = 0
    """So many requests, whatever they ask for, are answered by 503, as by a server that is still loading its model."""


class Service:
    """Answers requests; knows nothing of connections."""

    def __init__(self, responder: Responder, info: ServerInfo, log: RequestLog) -> None:
        self.responder = responder
        self.info = info
        self.log = log
        self.n_chat = 0
        """Chat requests received so far."""
        self.errors: list[Exception] = []
        """What responders raised."""

    def answer(self, request: Request) -> Reply:
        """The reply to one request."""
        if self.info.n_loading:
            self.info.n_loading -= 1
            return error_reply(503, "Loading model", code="unavailable_error")
        if request.path in CHAT_PATHS:
            return self._chat(request)
        pages = {"/v1/models": self._models, "/models": self._models, "/props": self._props, "/api/tags": self._tags}
        if request.method == "GET" and request.path in pages:
            return Reply(body=pages[request.path]())
        return error_reply(404, f"Not found: {request.method} {request.path}", code="not_found")

    def _chat(self, request: Request) -> Reply:
        if request.method != "POST":
            return error_reply(405, f"{request.method} is not allowed here", headers={"allow": "POST"})
        if not isinstance(request.body, dict):
            return error_reply(400, "We could not parse the JSON body of your request.", code="invalid_json")
        try:
            reply = self.responder(request)
            if not isinstance(reply, Reply):
                raise TypeError(f"a responder returns a Reply, found {type(reply).__name__}")
        except Exception as error:  # noqa: BLE001 - handed on to the test's own thread when the server stops
            self.errors.append(error)
            reply = error_reply(500, f"the responder raised {error!r}", headers={"x-should-retry": "false"})
            return Reply(reply.status, reply.body, reply.headers, Fault("responder_raised"))
        return reply

    def _models(self) -> dict[str, Any]:
        entries = [
            {"id": model, "object": "model", "created": 0, "owned_by": "judgekit", "meta": dict(self.info.meta)}
            for model in self.info.models
        ]
        return {"object": "list", "data": entries}

    def _props(self) -> dict[str, Any]:
        return {"build_info": self.info.build_info, "model_path": self.info.model_path, "total_slots": 1}

    def _tags(self) -> dict[str, Any]:
        entries = [
            {"name": model, "model": model, "digest": self.info.digests.get(model, "0" * 64), "size": 1}
            for model in self.info.models
        ]
        return {"models": entries}


def completed_body(body: Mapping[str, Any], request: Request) -> dict[str, Any]:
    """A chat body with what depends on the request: id, time, and where absent the model and the usage."""
    completed = {
        "id": f"chatcmpl-{request.index}",
        "object": "chat.completion",
        "created": int(time.time()),
        "model": request.model,
        **body,
    }
    usage = completed.get("usage")
    if usage is None:
        message = completed["choices"][0].get("message", {})
        n_prompt, n_completion = len(request.text) // 4, len(message.get("content") or "") // 4
        completed["usage"] = {
            "prompt_tokens": n_prompt,
            "completion_tokens": n_completion,
            "total_tokens": n_prompt + n_completion,
        }
    elif not usage:
        del completed["usage"]
    return completed
