"""A request as it came in, a reply as it goes out, and what may go wrong with it."""

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final

TRANSPORT_FAULTS: Final = frozenset({"reset", "close_after_bytes", "hang", "headers_then_trickle", "raw_bytes"})
"""Kinds of fault that are played on the connection; every other kind only labels what the reply says."""


@dataclass(frozen=True, slots=True)
class Fault:
    """What is wrong with a reply.

    The kinds in `TRANSPORT_FAULTS` change how bytes are sent. Any other kind (`html`, `truncated`, ...) is a
    label for the log: the reply itself already holds the wrong content.
    """

    kind: str
    n_bytes: int = 0
    """`close_after_bytes`: bytes of the body that are sent; `headers_then_trickle`: bytes at a time."""
    interval_seconds: float = 0.0
    """`headers_then_trickle`: pause before each piece."""


@dataclass(frozen=True, slots=True)
class Reply:
    """One answer of the server."""

    status: int = 200
    body: Mapping[str, Any] | str | bytes | None = None
    """A mapping is sent as JSON. None is an empty body; with a transport fault, the default verdict."""
    headers: Mapping[str, str] = field(default_factory=dict)
    """Added to content-type and content-length, or in their place."""
    fault: Fault | None = None
    delay_seconds: float = 0.0
    """Wait before anything is sent (or before the fault is played)."""
    fill: bool = False
    """The server completes a chat body: `id`, `created`, and where absent `model` (an echo) and `usage`."""


@dataclass
class Request:
    """One request as a responder sees it."""

    method: str
    path: str
    headers: Mapping[str, str] = field(repr=False)
    """Names in lower case; values as sent, so a responder may check the key. The log keeps them masked."""
    raw_body: bytes = field(repr=False)
    index: int
    """Chat requests that came before this one, in order of arrival."""
    query: str = field(default="", repr=False)
    """What stands behind `?` in the address, as sent."""
    n_in_flight: int = 1
    """Requests that are being answered, this one included."""

    @cached_property
    def body(self) -> Any:
        """The decoded JSON; None if there is none or it does not parse."""
        try:
            return json.loads(self.raw_body)
        except (ValueError, RecursionError):
            return None

    def get(self, name: str, default: Any = None) -> Any:
        """A top-level field of the JSON body, or the default."""
        return self.body.get(name, default) if isinstance(self.body, dict) else default

    @property
    def model(self) -> str:
        return str(self.get("model", "unknown"))

    @property
    def messages(self) -> list[Mapping[str, Any]]:
        messages = self.get("messages", self.get("input", []))
        return [message for message in messages if isinstance(message, dict)] if isinstance(messages, list) else []

    @cached_property
    def text(self) -> str:
        """All text of all messages, joined by line ends; of typed questions, of their input."""
        if isinstance(self.get("input"), str):
            return str(self.get("input"))
        return "\n".join(_content_text(message.get("content")) for message in self.messages)

    @cached_property
    def body_hash(self) -> str:
        """SHA-256 of the body with sorted keys: two requests with equal bodies are the same question."""
        canonical = self.raw_body
        if self.body is not None:
            canonical = json.dumps(self.body, sort_keys=True, separators=(",", ":")).encode()
        return hashlib.sha256(canonical).hexdigest()

    @property
    def reply_schema(self) -> Mapping[str, Any] | None:
        """The JSON Schema of `response_format`, or None."""
        response_format = self.get("response_format")
        json_schema = response_format.get("json_schema") if isinstance(response_format, dict) else None
        schema = json_schema.get("schema") if isinstance(json_schema, dict) else None
        return schema if isinstance(schema, dict) else None


Responder = Callable[[Request], Reply]
"""Decides the reply to one chat request. Called in order of arrival, never twice at a time; must not block."""


def _content_text(content: object) -> str:
    """The text of a message's content: a string, or a list of typed parts."""
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        return "\n".join(str(part.get("text", "")) for part in content if isinstance(part, dict))
    return ""
