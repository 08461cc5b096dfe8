"""What was said in a span: texts, messages, documents, tools and tokens, in the words of GenAI and of OpenInference."""

import json
from collections.abc import Mapping
from typing import Any

from judgekit.core.text import is_blank
from judgekit.storage.column_names import first_called
from judgekit.storage.dotted import opened
from judgekit.storage.trace_spans import Span, numbered_items

DOCUMENTS = ("retrieval.documents", "gen_ai.retrieval.documents")
RERANKED = ("reranker.output_documents",)
_INPUTS = ("llm.input_messages", "gen_ai.input.messages", "gen_ai.prompt")
_OUTPUTS = ("llm.output_messages", "gen_ai.output.messages", "gen_ai.completion")
_DEPTH = 3
"""Objects inside each other in which a text is looked for."""
TOKENS: dict[str, tuple[str, ...]] = {
    "prompt_tokens": ("gen_ai.usage.input_tokens", "gen_ai.usage.prompt_tokens", "llm.token_count.prompt"),
    "completion_tokens": (
        "gen_ai.usage.output_tokens",
        "gen_ai.usage.completion_tokens",
        "llm.token_count.completion",
    ),
    "cached_tokens": ("gen_ai.usage.cache_read.input_tokens", "llm.token_count.prompt_details.cache_read"),
    "reasoning_tokens": (
        "gen_ai.usage.reasoning.output_tokens",
        "llm.token_count.completion_details.reasoning",
    ),
    "total_tokens": ("llm.token_count.total",),
}

Messages = list[dict[str, Any]]


def input_of(span: Span) -> tuple[str | None, Messages]:
    """What was asked: the text, and the messages if it came in some."""
    return _said(span, "input.value", _INPUTS, "question", "user")


def output_of(span: Span) -> tuple[str | None, Messages]:
    """What was answered."""
    return _said(span, "output.value", _OUTPUTS, "answer", "assistant")


def _said(span: Span, value: str, lists: tuple[str, ...], ours: str, role: str) -> tuple[str | None, Messages]:
    messages = next((found for name in lists if (found := _messages(span.at(name)))), [])
    text, inside = _in_value(span.at(value), ours, _DEPTH)
    messages = messages or inside
    # A call of a model holds its whole body as its value, so that its messages say better what it was asked.
    if messages and (span.kind == "LLM" or text is None):
        text = next((told for item in reversed(messages) if (told := _text_of(item, role)) is not None), None)
    return text, messages


def _in_value(value: Any, ours: str, depth: int) -> tuple[str | None, Messages]:
    """The text in a value: as it is, or, of an object, under what such a text is called, or the only one there."""
    found = opened(value, "[{")
    if isinstance(found, str):
        return (None if is_blank(found) else found), []
    if isinstance(found, list) and found and all(isinstance(item, Mapping) and "role" in item for item in found):
        return None, _messages(found)
    if not isinstance(found, Mapping):
        return (None if found is None else str(value)), []
    if isinstance(found.get("messages"), list) and (messages := _messages(found["messages"])):
        return None, messages
    choices = found.get("choices")
    if isinstance(choices, list) and choices and isinstance(choices[0], Mapping):
        return None, _messages([choices[0].get("message")])
    name = first_called(ours, found)
    if name is None and len(found) == 1:
        name = next(iter(found))
    if name is not None and depth and isinstance(found[name], str | Mapping | list):
        return _in_value(found[name], ours, depth - 1)
    return _as_text(value), []


def is_unread_object(text: str | None) -> bool:
    """Whether a text that was taken as it is stands for an object."""
    return text is not None and isinstance(opened(text, "{"), Mapping)


def _messages(value: Any) -> Messages:
    """Messages as OpenAI writes them."""
    found = []
    for item in numbered_items(value):
        message = item.get("message")
        message = message if isinstance(message, dict) else item
        parts = message.get("parts")
        if isinstance(parts, list):
            found += _of_parts(message, parts)
        elif isinstance(message.get("role"), str):
            found.append(_of_openinference(message))
    return found


def _of_parts(message: Mapping[str, Any], parts: list[Any]) -> Messages:
    """One message of the GenAI conventions; each result of a tool in it is one of its own."""
    content, calls, results = [], [], []
    for part in parts:
        if not isinstance(part, Mapping):
            continue
        kind = part.get("type")
        if kind == "tool_call":
            calls.append({name: part.get(name) for name in ("id", "name", "arguments")})
        elif kind == "tool_call_response":
            said = part.get("response", part.get("result"))
            results.append({"role": "tool", "tool_call_id": part.get("id"), "content": _as_text(said)})
        else:
            content.append({"type": "text", "text": part.get("content")} if kind == "text" else {"type": kind})
    role = message.get("role")
    if results and not (content or calls):
        return results
    made = {"role": role, "content": content, "tool_calls": calls or None, "name": message.get("name")}
    return [{name: value for name, value in made.items() if value is not None}, *results]


def _of_openinference(message: Mapping[str, Any]) -> dict[str, Any]:
    content = message.get("content")
    parts = numbered_items(message.get("contents"))
    if content is None and parts:
        inner = [part.get("message_content", part) for part in parts]
        content = [
            {"type": "text", "text": part.get("text")} if part.get("type") == "text" else {"type": part.get("type")}
            for part in inner
            if isinstance(part, Mapping)
        ]
    calls = []
    for item in numbered_items(message.get("tool_calls")):
        call = item.get("tool_call", item)
        inner = call.get("function", call) if isinstance(call, Mapping) else {}
        if isinstance(inner, Mapping):
            calls.append({"id": call.get("id"), "name": inner.get("name"), "arguments": inner.get("arguments")})
    made = {
        "role": message.get("role"),
        "content": content if isinstance(content, list) else _as_text(content),
        "name": message.get("name"),
        "tool_call_id": message.get("tool_call_id"),
        "tool_calls": calls or None,
    }
    return {name: value for name, value in made.items() if value is not None}


def _text_of(message: Mapping[str, Any], role: str) -> str | None:
    """The text of a message of a role."""
    if message.get("role") != role and not (role == "user" and message.get("role") == "human"):
        return None
    content = message.get("content")
    if isinstance(content, list):
        texts = [part["text"] for part in content if isinstance(part.get("text"), str)]
        content = "\n".join(texts) if texts else None
    return content if isinstance(content, str) and not is_blank(content) else None


def calls_in(span: Span) -> Messages:
    """Messages of a model that call tools."""
    return [item for item in output_of(span)[1] if item.get("tool_calls")]


def hits_in(span: Span, names: tuple[str, ...]) -> list[dict[str, Any]]:
    """The documents of a retriever or reranker as hits."""
    return [_hit(item) for item in numbered_items(span.first(*names))]


def _hit(item: Mapping[str, Any]) -> dict[str, Any]:
    document = item.get("document")
    rest = dict(document) if isinstance(document, dict) else dict(item)
    own = opened(rest.pop("metadata", None), "{")
    text = rest.pop("content", None)
    hit = {
        "chunk_id": rest.pop("id", None),
        "text": text if text is not None else rest.pop("text", None),
        "score": rest.pop("score", None),
        "metadata": {**rest, **(own if isinstance(own, Mapping) else {} if own is None else {"metadata": own})} or None,
    }
    if isinstance(hit["score"], float) and hit["score"] != hit["score"]:
        hit["score"] = None
    return {name: value for name, value in hit.items() if value is not None}


def call_of(span: Span) -> Messages:
    """A call of a tool and what it gave, as two messages."""
    arguments = span.first("gen_ai.tool.call.arguments", "input.value", "tool_call.function.arguments")
    arguments = opened(arguments, "{")
    if not isinstance(arguments, Mapping | str):
        arguments = None if arguments is None else _as_text(arguments)
    name = span.first("gen_ai.tool.name", "tool.name", "tool_call.function.name")
    call_id = span.first("gen_ai.tool.call.id", "tool.id", "tool_call.id") or span.span_id
    said = span.first("gen_ai.tool.call.result", "output.value")
    name = str(name or span.name or "tool")
    return [
        {"role": "assistant", "tool_calls": [{"id": call_id, "name": name, "arguments": arguments}]},
        {
            "role": "tool",
            "tool_call_id": call_id,
            "name": name,
            "content": _as_text(said if said is not None or not span.has_failed else span.message) or "",
        },
    ]


def tokens_of(span: Span) -> dict[str, int]:
    """The tokens that a span says it took."""
    found = {ours: _count(span.first(*names)) for ours, names in TOKENS.items()}
    return {name: value for name, value in found.items() if value is not None}


def _count(value: Any) -> int | None:
    """A whole number, from 0; also one that a table holds as a fraction or a text."""
    try:
        found = float(value)
        return int(found) if found >= 0 and found == int(found) and not isinstance(value, bool) else None
    except (TypeError, ValueError, OverflowError):
        return None


def tags_of(span: Span) -> list[str]:
    """Tags of a span."""
    found = opened(span.at("tag.tags"), "[")
    return [tag for tag in found if isinstance(tag, str)] if isinstance(found, list | tuple) else []


def own_metadata(span: Span) -> dict[str, Any]:
    """What the user put into the attribute `metadata`."""
    found = opened(span.tree.get("metadata"), "{")
    return dict(found) if isinstance(found, Mapping) else {}


def _as_text(value: Any) -> str | None:
    if value is None or isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False, default=str)
