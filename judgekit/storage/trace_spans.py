"""Spans of recorded traces, whatever file they came in, as trees: who called whom, when, and with which attributes."""

import base64
import binascii
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from judgekit.storage.dotted import opened
from judgekit.storage.rows import Row

_HEX = re.compile(r"[0-9a-fA-F]+")
_KINDS = {
    **dict.fromkeys(("chat", "text_completion", "generate_content"), "LLM"),
    "retrieval": "RETRIEVER",
    "execute_tool": "TOOL",
    "embeddings": "EMBEDDING",
}
"""Operations of the GenAI conventions, as OpenInference calls them."""

MOST_PARTS = 24
"""Dots in the name of an attribute that is taken apart; a longer one is kept whole."""


@dataclass(slots=True, eq=False)
class Span:
    """One step of a trace."""

    row: Row
    """Where it stands."""
    trace_id: str
    span_id: str
    parent_id: str | None
    name: str
    start: float | None = None
    """Seconds since 1970."""
    end: float | None = None
    has_failed: bool = False
    message: str = ""
    """Of its status."""
    attributes: Mapping[str, Any] = field(default_factory=dict)
    """By name, as in the file."""
    events: tuple[tuple[str, Mapping[str, Any]], ...] = ()
    """Name and attributes of each."""
    tree: dict[str, Any] = field(default_factory=dict)
    """The attributes, taken apart at their dots."""
    children: list["Span"] = field(default_factory=list)
    kind: str = field(default="", init=False)
    """`LLM`, `RETRIEVER`, `TOOL` or another kind of OpenInference; empty if it has none."""

    def at(self, name: str) -> Any:
        """An attribute, or all those below a name; None without any."""
        found: Any = self.tree
        for part in name.split("."):
            found = found.get(part) if isinstance(found, dict) else None
        return found.get("", found) if isinstance(found, dict) else found

    def first(self, *names: str) -> Any:
        """The first of some attributes that is there."""
        return next((value for name in names if (value := self.at(name)) is not None), None)

    def __post_init__(self) -> None:
        said, operation = self.at("openinference.span.kind"), self.at("gen_ai.operation.name")
        if isinstance(said, str):
            self.kind = said.upper()
        elif isinstance(operation, str):
            self.kind = _KINDS.get(operation, "CHAIN")

    @property
    def seconds(self) -> tuple[float, float] | None:
        """Start and end; None if one is missing, or they are the wrong way round."""
        if self.start is None or self.end is None or self.end < self.start:
            return None
        return self.start, self.end

    def walk(self) -> Iterator["Span"]:
        """The span and all below it, each before its children, earlier ones first."""
        left = [self]
        while left:
            span = left.pop()
            yield span
            left += reversed(span.children)


_SAID = {
    "trace_ids_base64": "{n} ids are base64; they are read as the hexadecimal ids that they stand for",
    "spans_repeated": "{n} spans come twice; the first of each is read",
    "spans_without_parent": "{n} spans name a parent that is not in the file; they are read as parts of their trace, "
    "or as its beginning if there is no other",
    "traces_with_several_roots": "{n} traces have several spans without a parent; each of those is a case of its own, "
    "with the id TRACE-SPAN",
    "spans_without_duration": "{n} spans have no end, or one before their start; their time is not counted",
}


@dataclass
class TraceNotes:
    """What there is to say of the traces of a file, counted."""

    counts: Counter[str] = field(default_factory=Counter)

    def notices(self) -> Iterator[tuple[str, str]]:
        """(code, message) of each."""
        for code, text in _SAID.items():
            if self.counts[code]:
                yield code, text.format(n=self.counts[code])


def hex_id(value: Any, n_bytes: int, name: str, notes: TraceNotes) -> str | None:
    """An id in hexadecimal, lower case; None if there is none or it is all zeros.

    Args:
        value: as it stands in the file: hexadecimal, or base64, as a generic writer of protobuf makes it.
        n_bytes: how long it is.
        name: of the field.
        notes: counts ids in base64.

    Raises:
        ValueError: it is no such id.
    """
    if value is None or value == "":
        return None
    text = value.removeprefix("0x") if isinstance(value, str) else ""
    if len(text) != 2 * n_bytes or not _HEX.fullmatch(text):
        try:
            data = base64.b64decode(text, validate=True)
        except (binascii.Error, ValueError):
            data = b""
        if len(data) != n_bytes:
            shown = f"{value[:40]!r}" if isinstance(value, str) else f"{value!r:.40}"
            raise ValueError(f"{name}: expected {2 * n_bytes} hexadecimal digits, found {shown}")
        notes.counts["trace_ids_base64"] += 1
        text = data.hex()
    return text.lower() if text.strip("0") else None


def seconds_of(value: Any, unit: float = 1e-9) -> float | None:
    """A time in seconds since 1970, from a number, the text of one, or ISO 8601; None if it is none."""
    if isinstance(value, str) and not value.strip().lstrip("-").isdecimal():
        try:
            return datetime.fromisoformat(value.strip()).timestamp()
        except (ValueError, OverflowError):
            return None
    try:
        found = float(value) * unit
    except (TypeError, ValueError, OverflowError):
        return None
    return found if found > 0 else None


def taken_apart(attributes: Mapping[str, Any]) -> dict[str, Any]:
    """Attributes as a tree of the parts of their names; a value beside further parts stands under an empty name."""
    tree: dict[str, Any] = {}
    for name, value in attributes.items():
        parts = name.split(".")
        if len(parts) > MOST_PARTS:
            continue
        node = tree
        for part in parts[:-1]:
            below = node.get(part)
            if not isinstance(below, dict):
                below = node[part] = {} if below is None else {"": below}
            node = below
        if isinstance(node.get(parts[-1]), dict):
            node[parts[-1]][""] = value
        else:
            node[parts[-1]] = value
    return tree


def numbered_items(value: Any) -> list[dict[str, Any]]:
    """The objects of a list that attributes hold: by numbers in their names, as a list, or as the JSON of one."""
    found = opened(value, "[")
    if isinstance(found, dict):
        numbers = sorted((key for key in found if key.isdecimal() and len(key) < 9), key=int)
        found = [found[key] for key in numbers]
    if not isinstance(found, list | tuple):
        return []
    return [taken_apart(item) for item in found if isinstance(item, Mapping)]


def roots_of(spans: Iterable[Span | Row], notes: TraceNotes) -> Iterator[tuple[str, list[Span]] | Row]:
    """The beginnings of each trace with their spans below them, and its id; rows are what could not be read.

    Spans may come in any order. A trace has one beginning, and several only if several of its spans have no parent.
    Without any, those that name a parent which is not in the file are its beginning together.
    """
    traces: dict[str, dict[str, Span]] = {}
    for span in spans:
        if isinstance(span, Row):
            yield span
        elif span.span_id in traces.setdefault(span.trace_id, {}):
            notes.counts["spans_repeated"] += 1
        else:
            traces[span.trace_id][span.span_id] = span
            notes.counts["spans_without_duration"] += span.seconds is None
    for trace_id, members in traces.items():
        roots, orphans = _linked(members)
        notes.counts["spans_without_parent"] += len(orphans)
        if len(roots) == 1:
            roots[0].children = sorted([*roots[0].children, *orphans], key=_by_time)
            orphans = []
        groups = [(trace_id if len(roots) == 1 else f"{trace_id}-{root.span_id}", [root]) for root in roots]
        notes.counts["traces_with_several_roots"] += len(roots) > 1
        groups += [(trace_id, orphans)] if orphans else []
        reached = {id(span) for _, beginnings in groups for root in beginnings for span in root.walk()}
        lost = [span for span in members.values() if id(span) not in reached]
        if lost:
            yield _problem(lost[0], f"span {lost[0].span_id} of trace {trace_id} is above itself, by its parents")
        yield from groups


def _linked(members: Mapping[str, Span]) -> tuple[list[Span], list[Span]]:
    """Spans without a parent, and those whose parent is not there; the others hang below theirs."""
    roots, orphans = [], []
    for span in sorted(members.values(), key=_by_time):
        if span.parent_id is None:
            roots.append(span)
        elif span.parent_id in members:
            members[span.parent_id].children.append(span)
        else:
            orphans.append(span)
    return roots, orphans


def _by_time(span: Span) -> float:
    return span.start if span.start is not None else float("inf")


def _problem(span: Span, problem: str) -> Row:
    row = span.row
    return Row(row.line, row.path, None, problem, file=row.file, place=row.place)


def outermost(spans: Iterable[Span], kind: str, *names: str) -> list[Span]:
    """Spans of a kind that are inside no other of that kind, and have one of some attributes if any are named."""
    found = []
    left = list(spans)[::-1]
    while left:
        span = left.pop()
        if span.kind == kind and (not names or span.first(*names) is not None):
            found.append(span)
        else:
            left += reversed(span.children)
    return found


def time_of(spans: Iterable[Span]) -> float | None:
    """Seconds during which at least one of some spans was under way; None if no time is known."""
    times = sorted(times for span in spans if (times := span.seconds) is not None)
    if not times:
        return None
    total, reached = 0.0, times[0][0]
    for start, end in times:
        total += max(0.0, end - max(start, reached))
        reached = max(reached, end)
    return round(total, 6)  # a float holds the time of day no finer
