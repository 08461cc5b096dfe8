"""Character spans: how much of the text that should be found was found, and how much else came with it.

`span_recall`, `span_precision` and `span_iou` are metrics for libraries: call them, or hand them on as objects with
`name` and `calculate`. The family `spans` gives the same figures for the cases of a run.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from itertools import chain
from operator import itemgetter
from typing import ClassVar, NamedTuple

from judgekit.core.cases import Case, Span, SystemOutput
from judgekit.core.collector import collector_paused
from judgekit.core.components import Metric
from judgekit.core.scores import Column, Failed, NotApplicable, Outcomes
from judgekit.core.text import canonical_id
from judgekit.metrics.chunks import SetMetric


class _SpanFields(NamedTuple):
    doc_id: str
    start: int
    end: int


class CharacterSpan(_SpanFields):
    """The half-open range `[start, end)` of one document, in Unicode code points; ordered by document, then start.

    Args:
        doc_id: the document; a whole number counts as its digits, text is NFC.
        start: first character, at least 0.
        end: the character after the last, at least `start`; an empty span counts nothing.

    Raises:
        ValueError: start is negative, end lies before start, or the document has no name.
    """

    __slots__ = ()

    def __new__(cls, doc_id: str | int, start: int, end: int) -> "CharacterSpan":
        """Check the offsets."""
        if not 0 <= start <= end:
            why = "a span starts at 0 or later" if start < 0 else "a span ends at its start or later"
            raise ValueError(f"{why}, not at {start} to {end} (document {doc_id!r})")
        return tuple.__new__(cls, (canonical_id(doc_id), start, end))

    @classmethod
    def from_utf16(cls, doc_id: str | int, start: int, end: int, text: str) -> "CharacterSpan":
        """The span whose offsets count UTF-16 units, as JavaScript, Java and C# do.

        Args:
            doc_id: the document.
            start: first unit.
            end: the unit after the last.
            text: the whole text of the document.

        Raises:
            ValueError: an offset that is negative, beyond the text or inside a character, or end before start.
        """
        units = text.encode("utf-16-le", "surrogatepass")
        if not 0 <= start <= end <= len(units) // 2:
            raise ValueError(f"no span of {len(units) // 2} UTF-16 units: {start} to {end} (document {doc_id!r})")
        try:
            before = len(units[: 2 * start].decode("utf-16-le"))
            inside = len(units[2 * start : 2 * end].decode("utf-16-le"))
        except UnicodeDecodeError:
            raise ValueError(f"a span cuts a character: {start} to {end} (document {doc_id!r})") from None
        return cls(doc_id, before, before + inside)


_start_of = itemgetter(1)


def merge_overlapping_spans(spans: Iterable[CharacterSpan]) -> list[CharacterSpan]:
    """The fewest spans that hold the same characters: per document, overlapping or touching spans become one.

    Documents never mix; empty spans are dropped. Time is that of sorting, linear if starts are sorted already.

    Returns:
        Sorted by document and start; empty for no characters.

    Source: in-house.
    """
    by_document: defaultdict[str, list[CharacterSpan]] = defaultdict(list)
    merged: list[CharacterSpan] = []
    with collector_paused():
        for span in spans:
            by_document[span[0]].append(span)
        for doc_id in sorted(by_document):
            _merge_one_document(by_document[doc_id], merged)
    return merged


def _merge_one_document(spans: list[CharacterSpan], merged: list[CharacterSpan]) -> None:
    """Add the merged spans of one document; one that did not grow is handed on as it is, which spares making it."""
    spans.sort(key=_start_of)
    kept = spans[0]
    last = -1
    grown = False
    for span in spans:
        _, start, end = span
        if start > last:
            if start < end:
                if last >= 0:
                    merged.append(_up_to(kept, last) if grown else kept)
                kept, last, grown = span, end, False
        elif end > last:
            last, grown = end, True
    if last >= 0:
        merged.append(_up_to(kept, last) if grown else kept)


def _up_to(span: CharacterSpan, end: int) -> CharacterSpan:
    """The span with a later end, which needs no validation."""
    return tuple.__new__(CharacterSpan, (span[0], span[1], end))


def calculate_overlap(a: Iterable[CharacterSpan], b: Iterable[CharacterSpan]) -> int:
    """Characters common to both, each merged first; symmetric, 0 if either has none.

    `|A and B| = |A| + |B| - |A or B|`, in whole numbers.

    Source: in-house.
    """
    return _Sizes(a, b).overlap


def _n_characters(spans: Iterable[CharacterSpan]) -> int:
    return sum([end - start for _, start, end in merge_overlapping_spans(spans)])


class _Sizes:
    """Characters in two sets of spans, in both and in either."""

    __slots__ = ("either", "gold", "overlap", "retrieved")

    def __init__(self, retrieved: Iterable[CharacterSpan], gold: Iterable[CharacterSpan]) -> None:
        first, second = list(retrieved), list(gold)
        self.retrieved = _n_characters(first)
        self.gold = _n_characters(second)
        self.either = _n_characters(chain(first, second))
        self.overlap = self.retrieved + self.gold - self.either

    @property
    def recall(self) -> float:
        return self.overlap / self.gold if self.gold else 1.0

    @property
    def precision(self) -> float:
        return self.overlap / self.retrieved if self.retrieved else 0.0

    @property
    def iou(self) -> float:
        return self.overlap / self.either if self.either else 1.0


class TokenLevelMetric(SetMetric[Iterable[CharacterSpan]]):
    """A token-level metric: two sets of spans to a number; spans may overlap. It holds no state."""

    __slots__ = ()


class SpanRecall(TokenLevelMetric):
    """`overlap / characters of gold`, in [0, 1], higher is better; 1.0 if gold has no characters.

    Source: recall of van Rijsbergen 1979, on characters as in SQuAD-style token scoring.
    """

    __slots__ = ()
    name = "span_recall"

    def calculate(self, retrieved: Iterable[CharacterSpan], gold: Iterable[CharacterSpan]) -> float:
        return _Sizes(retrieved, gold).recall


class SpanPrecision(TokenLevelMetric):
    """`overlap / characters retrieved`, in [0, 1], higher is better; 0.0 if nothing was retrieved.

    Source: precision of van Rijsbergen 1979, on characters.
    """

    __slots__ = ()
    name = "span_precision"

    def calculate(self, retrieved: Iterable[CharacterSpan], gold: Iterable[CharacterSpan]) -> float:
        return _Sizes(retrieved, gold).precision


class SpanIou(TokenLevelMetric):
    """`overlap / characters in either`, in [0, 1], higher is better; 1.0 if both are empty, 0.0 if just one is.

    Source: Jaccard 1912, "The Distribution of the Flora in the Alpine Zone".
    """

    __slots__ = ()
    name = "span_iou"

    def calculate(self, retrieved: Iterable[CharacterSpan], gold: Iterable[CharacterSpan]) -> float:
        return _Sizes(retrieved, gold).iou


span_recall = SpanRecall()
span_precision = SpanPrecision()
span_iou = SpanIou()

_NAMES = (span_recall.name, span_precision.name, span_iou.name)
_NO_GOLD = NotApplicable("no expected_spans")
_EMPTY_GOLD = NotApplicable("expected_spans hold no characters")
_PARTLY_KNOWN = NotApplicable("expected_spans lack an expected chunk")
_NO_SPANS = NotApplicable("a hit has no source_spans")


class Spans(Metric):
    """Retrieved characters against expected ones; all in [0, 1], higher is better.

    `span_recall`, `span_precision` and `span_iou` of the `source_spans` of all hits and the case's `expected_spans`,
    of the chunks in `expected_chunk_ids` if the case names some. They do not apply without expected characters,
    if an expected chunk has no spans, and if a hit has none: a score over the known part alone would be wrong
    unseen. No hits: all are 0.

    Source: see `SpanRecall`, `SpanPrecision`, `SpanIou`.
    """

    needs: ClassVar[tuple[tuple[str, ...], ...]] = (("case.expected_spans",), ("output.retrieved",))

    def columns(self) -> tuple[Column, ...]:
        return tuple([Column(name) for name in _NAMES])

    def calculate(self, case: Case, output: SystemOutput) -> Outcomes:
        gold = _expected_spans(case)
        if isinstance(gold, NotApplicable):
            return dict.fromkeys(_NAMES, gold)
        if output.error is not None:
            return dict.fromkeys(_NAMES, Failed(output.error.kind))
        if not all(hit.source_spans for hit in output.retrieved):
            return dict.fromkeys(_NAMES, _NO_SPANS)
        found = [span for hit in output.retrieved for span in character_spans(hit.source_spans, hit.doc_id)]
        sizes = _Sizes(found, gold)
        return dict(zip(_NAMES, (sizes.recall, sizes.precision, sizes.iou), strict=True))


def _expected_spans(case: Case) -> Sequence[CharacterSpan] | NotApplicable:
    """Where the expected chunks of a case stand, or why that is not known."""
    known = case.expected_spans
    if known is None:
        return _NO_GOLD
    wanted = known if case.expected_chunk_ids is None else case.expected_chunk_ids
    if not all(chunk_id in known for chunk_id in wanted):
        return _PARTLY_KNOWN
    gold = [span for chunk_id in wanted for span in character_spans(known[chunk_id])]
    return gold if any(span.start < span.end for span in gold) else _EMPTY_GOLD


def character_spans(spans: Iterable[Span], doc_id: str | None = None) -> list[CharacterSpan]:
    """The spans of a record; one without a document is of `doc_id`, and left out if there is none."""
    placed = [(span, doc_id if span.doc_id is None else span.doc_id) for span in spans]
    return [CharacterSpan(document, span.start, span.end) for span, document in placed if document is not None]
