"""A trace as a case and an output: asked and answered at its root, retrieved, called and timed in the spans below."""

import re
from abc import abstractmethod
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from judgekit.core.errors import InputError
from judgekit.storage.chat_messages import InOurShape
from judgekit.storage.record_formats import Fields, RecordFormat, Source, is_absent
from judgekit.storage.rows import Row
from judgekit.storage.trace_spans import Span, TraceNotes, outermost, roots_of, taken_apart, time_of
from judgekit.storage.traced_texts import (
    DOCUMENTS,
    RERANKED,
    TOKENS,
    Messages,
    call_of,
    calls_in,
    hits_in,
    input_of,
    is_unread_object,
    output_of,
    own_metadata,
    tags_of,
    tokens_of,
)

_STAGES = {"retrieval": "RETRIEVER", "reranking": "RERANKER", "embedding": "EMBEDDING", "generation": "LLM"}
_STAGES |= {"tools": "TOOL"}
_INDEX = re.compile(r"\.\d+(\..*)?$")
_SILENT = ("openinference.span.kind", "gen_ai.operation.name", "input.mime_type", "output.mime_type")
"""Attributes that say nothing of a case."""


def _heads(*names: str) -> tuple[str, ...]:
    """Names of attributes, each with a dot: what stands below one is named like it."""
    return tuple(f"{name}." for name in names)


_ALWAYS = _heads(
    *_SILENT,
    *("error.type", "gen_ai.response.id", "gen_ai.response.model", "gen_ai.request.model", "llm.model_name"),
    *(name for names in TOKENS.values() for name in names),
    *DOCUMENTS,
    *RERANKED,
)
"""Attributes that are read of every span, or that say nothing once it is read."""
_TEXTS = _heads(
    *("input.value", "llm.input_messages", "gen_ai.input.messages", "gen_ai.prompt"),
    *("output.value", "llm.output_messages", "gen_ai.output.messages", "gen_ai.completion"),
)
_OF_TOOLS = _heads("gen_ai.tool", "tool.id", "tool.name", "tool_call", "input.value", "output.value")
_OF_ROOTS = _heads("tag.tags", "metadata")
_SHOWN = 10
"""Names that a notice shows."""


@dataclass
class _Recorded:
    """One case of a trace file."""

    case_id: str
    roots: list[Span]
    question: str | None = None
    messages: Messages = field(default_factory=list)
    answer: str | None = None
    read: set[int] = field(default_factory=set)
    """Spans (by `id`) whose texts became question or answer."""
    is_pieced: bool = False
    """Question or answer are not of the root itself."""

    @property
    def root(self) -> Span:
        return self.roots[0]

    def spans(self) -> Iterator[Span]:
        for root in self.roots:
            yield from root.walk()


class TraceRecord(dict[str, Any]):
    """The attributes of a root, by the names that a config may map, and what the trace says."""

    trace: _Recorded


class TraceFormat(RecordFormat):
    """A format whose records are traces; what a subclass adds is where spans come from."""

    ids = ("id",)

    @abstractmethod
    def spans(self, rows: Iterable[Row], notes: TraceNotes) -> Iterable[Span | Row]:
        """The spans that rows hold; rows are what could not be read."""

    def records(self, source: Source) -> Iterable[Row]:
        """The cases of a file."""
        return self.joined(super().records(source), source)

    def joined(self, rows: Iterable[Row], source: Source) -> Iterator[Row]:
        """One row for each case; traces without a question are left out, and counted."""
        notes, left_out = TraceNotes(), 0
        kept = 0
        asks = "question" in source.file.fields
        for found in roots_of(self.spans(rows, notes), notes):
            if isinstance(found, Row):
                kept += 1
                yield found
                continue
            recorded = _recorded(*found)
            if recorded.question is None and not asks:
                left_out += 1
                continue
            kept += 1
            row = recorded.root.row
            yield Row(row.line, row.path, _record(recorded), file=row.file, place=row.place)
        if not kept:
            if not left_out:
                raise InputError(f"{source.path}: holds no spans")
            raise InputError(
                f"{source.path}: {left_out} traces, and none holds a question (input.value, gen_ai.input.messages or "
                "llm.input_messages); record them with their texts, such as by "
                "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT=true"
            )
        if left_out:
            source.notice("traces_left_out", f"{left_out} traces hold no question; they are left out")
        for code, message in notes.notices():
            source.notice(code, message)

    def finished(self, rows: Iterator[Row], source: Source) -> Iterator[Row]:
        """The rows, and then what was read of the traces in another way than one might think, or not at all."""
        counts: Counter[str] = Counter()
        kept: Counter[str] = Counter()
        lost: Counter[str] = Counter()
        for row in rows:
            yield row
            if row.origin is not None and isinstance(row.origin.record, TraceRecord):
                _count(row.origin.record.trace, counts, kept, lost, source.kind)
        for code, text in _SAID.items():
            if counts[code]:
                source.notice(code, text.format(n=counts[code]))
        if kept:
            source.notice("trace_attributes_kept", f"attributes kept in metadata: {_named(kept)}")
        if lost:
            source.notice("trace_attributes_left_out", f"attributes of inner spans that are left out: {_named(lost)}")

    def case(self, fields: Fields) -> dict[str, Any]:
        """What was asked, the conversation before it if there is one, and tags."""
        trace = _trace(fields)
        fields.rest.clear()
        fields.names["question"] = "attributes.input.value"
        tags = tags_of(trace.root)
        if tags:
            fields.names["tags"] = "attributes.tag.tags"
        found: dict[str, Any] = {"question": trace.question, "tags": tags or None}
        if len(trace.messages) > 1:
            found["messages"] = fields.chat.messages("messages", trace.messages)
        return {**found, "metadata": _metadata(trace) or None}

    def output(self, fields: Fields) -> dict[str, Any]:
        """What was answered, retrieved and called, how long it took, and why it failed if it did."""
        trace = _trace(fields)
        fields.rest.clear()
        fields.names["answer"] = "attributes.output.value"
        reranked = outermost(trace.roots, "RERANKER", *RERANKED)
        retrievers = reranked or outermost(trace.roots, "RETRIEVER", *DOCUMENTS)
        names = RERANKED if reranked else DOCUMENTS
        stages = {stage: time_of(outermost(trace.roots, kind)) for stage, kind in _STAGES.items()}
        latency = {"total": time_of(trace.roots), **stages}
        models = [span.first(*_MODELS) for span in trace.spans() if span.kind == "LLM"]
        answering = [span for span in outermost(trace.roots, "LLM") if span.at("gen_ai.response.id") is not None]
        ids = {
            "trace_id": trace.root.trace_id,
            "span_id": trace.root.span_id,
            "response_id": answering[-1].at("gen_ai.response.id") if answering else None,
            "models": list(dict.fromkeys(str(name) for name in models if name is not None)) or None,
        }
        known = {name: value for name, value in ids.items() if value is not None}
        return {
            "answer": trace.answer,
            "retrieved": [hit for span in retrievers for hit in hits_in(span, names)] if retrievers else None,
            "turns": _turns(trace, fields),
            "error": _error(trace),
            "latency_seconds": {name: value for name, value in latency.items() if value is not None} or None,
            "usage": _usage(trace) or None,
            "metadata": {**_metadata(trace), **known},
        }


_MODELS = ("gen_ai.response.model", "llm.model_name", "gen_ai.request.model")
_SAID = {
    "texts_not_of_the_root": "{n} traces lack a text at their root; the question is that of the first span that has "
    "one, and the answer that of the last",
    "texts_are_objects": "{n} texts are JSON objects without a known key for the text itself, so each is taken whole; "
    'name the key, as in "fields": {{"question": "attributes.input.value.KEY"}} beside "format"',
    "reranked": "{n} traces have a reranker; the hits are what it kept",
    "usage_incomplete": "{n} traces have model calls without a count of tokens; their usage is left out",
    "inner_failures": "{n} traces have spans that failed, and an answer all the same; they are no errors",
}


def _trace(fields: Fields) -> _Recorded:
    record = fields.record
    if not isinstance(record, TraceRecord):
        raise ValueError("is no trace")
    return record.trace


def _record(trace: _Recorded) -> TraceRecord:
    root = trace.root
    record = TraceRecord({"trace_id": root.trace_id, "span_id": root.span_id, "name": root.name})
    record.update({f"attributes.{name}": value for name, value in root.attributes.items() if name not in _SILENT})
    record["id"] = trace.case_id
    record.trace = trace
    return record


def _recorded(case_id: str, roots: list[Span]) -> _Recorded:
    """What was asked and answered: at the root, else in the first span that has a text, and the last."""
    trace = _Recorded(case_id, roots)
    spans = list(trace.spans())
    alone = spans[:1] if len(roots) == 1 else []
    for span in [*alone, *spans]:
        text, messages = input_of(span)
        if text is not None:
            trace.question = text
            # What a model was sent after a search is the prompt with its findings, and no conversation.
            is_prompt = span not in alone and any(other.kind == "RETRIEVER" for other in spans)
            trace.messages = [] if is_prompt else messages
            trace.read.add(id(span))
            trace.is_pieced = span not in alone
            break
    speaking = [span for span in spans if span.kind in ("LLM", "CHAIN", "AGENT")]
    for span in [*alone, *sorted(speaking, key=_ending, reverse=True)]:
        text, _ = output_of(span)
        if text is not None:
            trace.answer = text
            trace.read.add(id(span))
            trace.is_pieced = trace.is_pieced or span not in alone
            break
    return trace


def _ending(span: Span) -> float:
    return span.end or span.start or 0.0


def _turns(trace: _Recorded, fields: Fields) -> InOurShape | None:
    """The calls of tools with what they gave, and the answer; None if nothing was called."""
    tools = outermost(trace.roots, "TOOL")
    messages = [message for span in tools for message in call_of(span)]
    messages = messages or [message for span in outermost(trace.roots, "LLM") for message in calls_in(span)]
    if not messages:
        return None
    answer = [{"role": "assistant", "content": trace.answer}] if trace.answer is not None else []
    return fields.chat.messages("turns", [*messages, *answer])


def _error(trace: _Recorded) -> dict[str, Any] | None:
    """Why there is no answer: the root failed, or nothing was answered and something below it failed."""
    failed = [root for root in trace.roots if root.has_failed and len(trace.roots) == 1]
    if not failed and trace.answer is None:
        failed = sorted((span for span in trace.spans() if span.has_failed), key=_ending)
    if not failed:
        return None
    span = failed[-1]
    raised: Mapping[str, Any] = next((facts for name, facts in reversed(span.events) if name == "exception"), {})
    kind = span.at("error.type") or raised.get("exception.type") or "span_error"
    return {"kind": str(kind), "message": str(span.message or raised.get("exception.message") or "")}


def _usage(trace: _Recorded) -> dict[str, int] | None:
    """Tokens of all calls of models; of calls inside each other only the outer one's; None if one is not counted."""
    calls = outermost(trace.roots, "LLM")
    counted = [_counted(call) for call in calls] if calls else [tokens_of(trace.root)]
    if not all(counted):
        return None
    names = set.intersection(*(set(found) for found in counted)) if counted else set()
    return {name: sum(found[name] for found in counted) for name in TOKENS if name in names}


def _counted(call: Span) -> dict[str, int]:
    """Tokens of a call, or of the first one inside it that counts them."""
    return next((found for span in call.walk() if (found := tokens_of(span))), {})


def _metadata(trace: _Recorded) -> dict[str, Any]:
    root = trace.root
    rest = {name: value for name, value in root.attributes.items() if not _is_read(root, name, is_root=True)}
    return {**rest, **own_metadata(root)}


def _is_read(span: Span, name: str, *, is_root: bool, has_texts: bool = True) -> bool:
    """Whether an attribute is read, or says nothing beside what is."""
    whole = f"{name}."
    return (
        whole.startswith(_ALWAYS)
        or (has_texts and whole.startswith(_TEXTS))
        or (is_root and whole.startswith(_OF_ROOTS))
        or (span.kind == "TOOL" and whole.startswith(_OF_TOOLS))
    )


def _count(trace: _Recorded, counts: Counter[str], kept: Counter[str], lost: Counter[str], kind: str) -> None:
    """Count what there is to say of a trace."""
    counts["texts_not_of_the_root"] += trace.is_pieced
    counts["texts_are_objects"] += is_unread_object(trace.question if kind == "cases" else trace.answer)
    kept.update(name for name in _metadata(trace) if name not in own_metadata(trace.root))
    if kind == "cases":
        return
    calls = outermost(trace.roots, "LLM")
    counts["usage_incomplete"] += any(map(_counted, calls)) and not all(map(_counted, calls))
    counts["reranked"] += bool(outermost(trace.roots, "RERANKER", *RERANKED))
    counts["inner_failures"] += _error(trace) is None and any(span.has_failed for span in trace.spans())
    for span in trace.spans():
        if span is not trace.root:
            has_texts = id(span) in trace.read
            names = [name for name in span.attributes if not _is_read(span, name, is_root=False, has_texts=has_texts)]
            lost.update(dict.fromkeys(_INDEX.sub("", name) for name in names).keys())
        lost.update(dict.fromkeys(f"event {name}" for name, _ in span.events if name != "exception").keys())


def _named(names: Counter[str]) -> str:
    shown = [f"{name} ({n})" for name, n in names.most_common(_SHOWN)]
    more = len(names) - len(shown)
    return ", ".join(shown) + (f" and {more} more" if more else "")


def span_of(row: Row, ids: tuple[str, str, str | None], name: Any, attributes: dict[str, Any], **rest: Any) -> Span:
    """A span with its attributes taken apart.

    Args:
        row: where it stands.
        ids: of the trace, of the span, and of its parent.
        name: of the span.
        attributes: by name.
        rest: further fields.
    """
    told = {key: value for key, value in attributes.items() if not is_absent(value)}
    return Span(row, *ids, str(name or ""), attributes=told, tree=taken_apart(told), **rest)
