"""Spans a row each: as Phoenix and Arize export them, or as OpenTelemetry's SDK for Python prints them.

The names of columns, such as `attributes.input.value`, have dots; or ids and attributes are objects of their own.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, TypeVar

from judgekit.storage.dotted import opened
from judgekit.storage.record_formats import Document, is_absent
from judgekit.storage.rows import Row
from judgekit.storage.trace_records import TraceFormat, span_of
from judgekit.storage.trace_spans import Span, TraceNotes, seconds_of

_PREFIX = "attributes."
_Id = TypeVar("_Id", str, str | None)
_MILLISECONDS = 1e-3
"""The unit in which pandas writes times as numbers."""


class Openinference(TraceFormat):
    """Cases with their outputs."""

    def claims_record(self, record: Mapping[str, Any]) -> bool:
        """Ids of a span, and attributes."""
        context = record.get("context")
        has_ids = "context.trace_id" in record or (isinstance(context, Mapping) and "trace_id" in context)
        return has_ids and ("attributes" in record or any(name.startswith(_PREFIX) for name in record))

    def claims_document(self, document: Document) -> bool:
        """A page of spans of the REST interface."""
        spans = document.get("data")
        first = spans[0] if isinstance(spans, list) and spans else None
        return isinstance(first, Mapping) and self.claims_record(first)

    def spans(self, rows: Iterable[Row], notes: TraceNotes) -> Iterator[Span | Row]:  # noqa: ARG002
        """Each row as a span."""
        for row in rows:
            if row.data is None:
                yield row
                continue
            try:
                yield _span(row, row.data)
            except ValueError as error:
                yield Row(row.line, row.path, None, str(error), file=row.file, place=row.place)


def _span(row: Row, data: Mapping[str, Any]) -> Span:
    """A span.

    Raises:
        ValueError: it has no ids.
    """
    held = opened(data.get("context"), "{")
    context = held if isinstance(held, Mapping) else {}
    trace_id = _text(data.get("context.trace_id", context.get("trace_id")))
    span_id = _text(data.get("context.span_id", context.get("span_id")))
    if trace_id is None or span_id is None:
        raise ValueError(f"a span has no context.{'span_id' if trace_id else 'trace_id'}")
    inner = opened(data.get("attributes"), "{")
    attributes = dict(inner) if isinstance(inner, Mapping) else {}
    attributes |= {name.removeprefix(_PREFIX): value for name, value in data.items() if name.startswith(_PREFIX)}
    attributes = {name: value for name, value in attributes.items() if not is_absent(value) and value != ""}
    kind = _text(data.get("span_kind"))
    if kind is not None and kind != "UNKNOWN":
        attributes.setdefault("openinference.span.kind", kind)
    status = data.get("status")
    status = status if isinstance(status, Mapping) else data
    return span_of(
        row,
        (_id(trace_id), _id(span_id), _id(_text(data.get("parent_id")))),
        data.get("name"),
        attributes,
        start=seconds_of(data.get("start_time"), _MILLISECONDS),
        end=seconds_of(data.get("end_time"), _MILLISECONDS),
        has_failed=_text(status.get("status_code")) == "ERROR",
        message=_text(status.get("status_message")) or _text(status.get("description")) or "",
        events=tuple(_events(opened(data.get("events"), "["))),
    )


def _events(held: Any) -> Iterator[tuple[str, Mapping[str, Any]]]:
    for event in held if isinstance(held, list | tuple) else ():
        if isinstance(event, Mapping):
            facts = event.get("attributes")
            yield str(event.get("name")), facts if isinstance(facts, Mapping) else {}


def _id(value: _Id) -> _Id:
    return value.removeprefix("0x") if value is not None else value


def _text(value: Any) -> str | None:
    return None if is_absent(value) or value == "" else str(value)
