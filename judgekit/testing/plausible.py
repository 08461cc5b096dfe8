"""The default responder: a valid verdict for whatever judge is asking."""

import hashlib
import json
import re
from collections.abc import Mapping
from typing import Any

from judgekit.testing.exchange import Reply, Request
from judgekit.testing.replies import chat_reply, verdict_body

_REASONING = "compared with the sources, statement by statement"
_YES_NO = re.compile(r'"(\w+)": ?\{"type": ?"boolean"')
"""The one true/false key of a schema that stands in the text of the messages."""
_CLAIMS = tuple(f"claim {number}" for number in range(1, 6))


def plausible_verdict(request: Request) -> Reply:
    """A valid verdict, the same for the same messages.

    Which judge asks is read off the schema of `response_format`; without one, off the text of the messages. The
    score, 0 to 5, comes from a hash of that text. Groundedness gets five claims, as many of them supported as the
    score says, so that no verdict contradicts itself.
    """
    return chat_reply(json.dumps(plausible_body(request)))


def plausible_body(request: Request) -> dict[str, Any]:
    """The verdict of `plausible_verdict` as an object."""
    score = _draw(request.text) % 6
    schema = request.reply_schema
    properties = schema.get("properties", {}) if schema is not None else {}
    if "supported_claims" in properties or (not properties and "supported_claims" in request.text):
        return verdict_body(score, reasoning=_REASONING, supported=_CLAIMS[:score], unsupported=_CLAIMS[score:])
    if properties and not properties.keys() <= {"reasoning", "score"}:
        return {name: _value_for(name, schema_of_field, score) for name, schema_of_field in properties.items()}
    yes_no = None if properties else _YES_NO.search(request.text)
    if yes_no is not None and '"score"' not in request.text:
        return {"reasoning": _REASONING, yes_no[1]: score >= 3}
    return verdict_body(score, reasoning=_REASONING)


def _draw(text: str) -> int:
    return int.from_bytes(hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "big")


def _value_for(name: str, schema: Mapping[str, Any], draw: int) -> Any:
    """A value of the type that a field's schema asks for."""
    if "enum" in schema:
        return schema["enum"][draw % len(schema["enum"])]
    match schema.get("type"):
        case "boolean":
            return draw >= 3
        case "integer" | "number":
            low = schema.get("minimum", 0)
            return low + draw % (schema.get("maximum", low + 5) - low + 1)
        case "array":
            return []
        case "object":
            return {}
        case _:
            return _REASONING if name != "id" else "1"
