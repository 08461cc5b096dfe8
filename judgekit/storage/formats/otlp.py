"""Traces of OpenTelemetry in OTLP's JSON, one document or one a line, with attributes of GenAI or of OpenInference."""

import base64
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from judgekit.core.errors import json_path
from judgekit.storage.problems import kind_of
from judgekit.storage.record_formats import Document, Source, document_row
from judgekit.storage.rows import Row
from judgekit.storage.trace_records import TraceFormat, span_of
from judgekit.storage.trace_spans import Span, TraceNotes, hex_id, seconds_of

_KEY = "resourceSpans"
_FAILED = (2, "2", "STATUS_CODE_ERROR")
_DEPTH = 32
"""Values inside each other that an attribute may hold."""
_SCALARS: dict[str, Callable[[Any], Any]] = {
    "intValue": int,
    "doubleValue": float,
    "bytesValue": lambda value: f"<{len(base64.b64decode(value))} bytes>",
}


class Otlp(TraceFormat):
    """Cases with their outputs."""

    def claims_document(self, document: Document) -> bool:
        """An export in one object."""
        return isinstance(document.get(_KEY), list)

    def claims_record(self, record: Mapping[str, Any]) -> bool:
        """A line of the collector's file exporter."""
        return isinstance(record.get(_KEY), list)

    def from_document(self, document: Document, source: Source) -> Iterable[Row]:  # noqa: ARG002
        """The one export."""
        return [document_row((), document)]

    def spans(self, rows: Iterable[Row], notes: TraceNotes) -> Iterator[Span | Row]:
        """The spans of every resource and scope."""
        for row in rows:
            if row.data is None:
                yield row
                continue
            base = row.place or ()
            for place, item, resource in _items(row.data):
                path = row.path + json_path(place)[1:]
                at = Row(row.line, path, None, file=row.file, place=None if row.line else (*base, *place))
                try:
                    yield _span(at, item, resource, notes)
                except ValueError as error:
                    yield Row(at.line, at.path, None, str(error), file=at.file, place=at.place)


def _items(export: Mapping[str, Any]) -> Iterator[tuple[tuple[str | int, ...], Any, dict[str, Any]]]:
    """Place, span and attributes of the resource of each; what is not a list holds none."""
    for i, group in _entries(export, _KEY):
        held = group.get("resource")
        resource = held if isinstance(held, dict) else {}
        scopes = "scopeSpans" if "scopeSpans" in group else "instrumentationLibrarySpans"
        for j, scope in _entries(group, scopes):
            spans = scope.get("spans")
            for k, span in enumerate(spans if isinstance(spans, list) else ()):
                yield (_KEY, i, scopes, j, "spans", k), span, resource


def _entries(held: Mapping[str, Any], key: str) -> Iterator[tuple[int, dict[str, Any]]]:
    found = held.get(key)
    for number, item in enumerate(found if isinstance(found, list) else ()):
        if isinstance(item, dict):
            yield number, item


def _span(row: Row, item: Any, resource: Mapping[str, Any], notes: TraceNotes) -> Span:
    """A span.

    Raises:
        ValueError: it has no ids, or an attribute is no such thing.
    """
    if not isinstance(item, dict):
        raise ValueError(f"expected a span, found {kind_of(item)}")
    trace_id = hex_id(item.get("traceId"), 16, "traceId", notes)
    span_id = hex_id(item.get("spanId"), 8, "spanId", notes)
    if trace_id is None or span_id is None:
        raise ValueError(f"a span has no {'spanId' if trace_id else 'traceId'}")
    parent_id = hex_id(item.get("parentSpanId"), 8, "parentSpanId", notes)
    attributes = _attributes(item.get("attributes"), "attributes")
    service = _attributes(resource.get("attributes"), "resource").get("service.name") if parent_id is None else None
    if service is not None:
        attributes.setdefault("service.name", service)
    status = item.get("status")
    status = status if isinstance(status, dict) else {}
    events = tuple(
        (str(event.get("name")), _attributes(event.get("attributes"), "events"))
        for _, event in _entries(item, "events")
    )
    return span_of(
        row,
        (trace_id, span_id, parent_id),
        item.get("name"),
        attributes,
        start=seconds_of(item.get("startTimeUnixNano")),
        end=seconds_of(item.get("endTimeUnixNano")),
        has_failed=status.get("code") in _FAILED,
        message=str(status.get("message") or ""),
        events=events,
    )


def _attributes(held: Any, where: str) -> dict[str, Any]:
    """Attributes by name.

    Raises:
        ValueError: they are not a list of keys with values.
    """
    if held is None:
        return {}
    if not isinstance(held, list):
        raise ValueError(f"{where}: expected a list of keys with values, found {kind_of(held)}")
    found = {}
    for number, item in enumerate(held):
        key = item.get("key") if isinstance(item, dict) else None
        if not isinstance(key, str):
            raise ValueError(f"{where}[{number}]: expected an object with key and value, found {kind_of(item)}")
        found[key] = _value(item.get("value"), f"{where}[{number}].value", _DEPTH)
    return found


def _value(held: Any, where: str, depth: int) -> Any:
    """A value without the name of its type."""
    if held is None or held == {}:
        return None
    if not depth:
        raise ValueError(f"{where}: nested too deeply")
    if not isinstance(held, dict) or len(held) != 1:
        raise ValueError(f"{where}: expected an object with one value, such as stringValue, found {kind_of(held)}")
    (kind, value), *_ = held.items()
    if kind in ("stringValue", "boolValue"):
        return value
    if kind == "arrayValue":
        items = value.get("values") if isinstance(value, dict) else None
        return [_value(item, where, depth - 1) for item in (items if isinstance(items, list) else ())]
    if kind == "kvlistValue":
        return {key: _value(item.get("value"), where, depth - 1) for key, item in _pairs(value)}
    if kind not in _SCALARS:
        raise ValueError(f"{where}: unknown kind of value {kind[:40]!r}")
    try:
        return _SCALARS[kind](value)
    except (TypeError, ValueError, OverflowError):
        raise ValueError(f"{where}: {kind} {value!r:.40} is none") from None


def _pairs(value: Any) -> Iterator[tuple[str, dict[str, Any]]]:
    for _, item in _entries(value if isinstance(value, dict) else {}, "values"):
        yield str(item.get("key")), item
