"""What comes in: cases (golden questions with their gold), outputs of the system under test, indexed documents."""

import math
from collections import Counter
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from judgekit.core.text import canonical_id, clean_text, instant_of


def _text(value: object) -> object:
    """A missing float (NaN) in a text field is a missing text, never the word 'nan'."""
    if isinstance(value, str):
        return value if value.isascii() else clean_text(value)
    return None if isinstance(value, float) and math.isnan(value) else value


def _question(value: object) -> object:
    """A missing question is a blank one; 0, false and the like are not a question and stay wrong."""
    text = _text(value)
    return "" if text is None else text


def _optional_list(value: object) -> object:
    """NaN stands for an absent list, never for an empty one; a text is refused, so that it is not read by letters."""
    if isinstance(value, float) and math.isnan(value):
        return None
    if isinstance(value, str):
        raise ValueError(f"expected a list, found the text {value[:40]!r}; write it as a list of one")
    return value


def _tuple(value: object) -> object:
    """A list in which an absent one counts as empty."""
    found = _optional_list(value)
    return () if found is None else found


def _one_or_more(value: object) -> object:
    """A list in which one text counts as a list of one, and a blank one as none."""
    if isinstance(value, str):
        return (value,) if value.strip() else ()
    return _tuple(value)


def _date(value: str | None) -> str | None:
    """A blank date is none; any other has to be one, since dates are compared."""
    if value is None or not value.strip():
        return None
    instant_of(value)
    return value


DEEPEST = 100
"""Levels of nesting in metadata; what is deeper could be read but not written again."""


def _plain(value: object, depth: int = 0) -> object:
    """Metadata as JSON can hold it: lone surrogates replaced, NaN and infinities made null.

    Raises:
        ValueError: nested too deeply, a key that is not a text, or a value that JSON does not have.
    """
    if value is None or isinstance(value, bool | int):
        return value
    if isinstance(value, str):
        return clean_text(value)
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if depth > DEEPEST:
        raise ValueError(f"nested deeper than {DEEPEST} levels")
    if isinstance(value, dict):
        if not all(isinstance(key, str) for key in value):
            raise ValueError("expected texts as keys")
        return {clean_text(key): _plain(item, depth + 1) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item, depth + 1) for item in value]
    raise ValueError(f"expected values that JSON has, found {type(value).__name__}")


Id = Annotated[str, BeforeValidator(canonical_id)]
"""An id: text or whole number in the file, compared as text after NFC."""

Text = Annotated[str, BeforeValidator(_text)]
OptionalText = Annotated[str | None, BeforeValidator(_text)]
OptionalIds = Annotated[tuple[Id, ...] | None, BeforeValidator(_optional_list)]
Texts = Annotated[tuple[Text, ...], BeforeValidator(_tuple)]
TextOrTexts = Annotated[tuple[Text, ...], BeforeValidator(_one_or_more)]
Object = Annotated[dict[str, Any], BeforeValidator(_plain)]
"""A JSON object as it stands, with NaN and infinities made null."""
Metadata = Object


class Record(BaseModel):
    """Base of everything read from data files: frozen, unknown fields refused."""

    model_config = ConfigDict(frozen=True, extra="forbid", str_strip_whitespace=False)


class DocumentPlace(Record):
    """A place in a corpus: a file and a heading inside it."""

    rel_path: Text
    """Path of the file, relative to the corpus root; `\\` is read as `/`."""
    heading_path: Texts | Text = ()
    """Headings from the outermost inwards, as a list or one string split on ` > `; empty means the whole file."""


class Support(DocumentPlace):
    """A gold support: a place that holds evidence for the right answer."""

    snippets: Texts = ()
    """Texts of which at least one stands in a hit that really carries the evidence."""
    date: Annotated[OptionalText, AfterValidator(_date)] = None
    """ISO 8601 date or date-time of the note, for recency rules; the latest instant is the newest."""


class Span(Record):
    """A half-open range of characters, in Unicode code points of one document."""

    doc_id: Id | None = None
    """Left out in the spans of a hit: the hit's own document."""
    start: Annotated[int, Field(ge=0)]
    end: Annotated[int, Field(ge=0)]
    text: OptionalText = None
    """What stands there; only held against the offsets and the text of hits, to find offsets in another unit."""

    @model_validator(mode="after")
    def _is_as_long_as_its_text(self) -> "Span":
        if self.end < self.start:
            raise ValueError(f"a span ends at {self.end}, before its start at {self.start}")
        if self.text is not None and len(self.text) != self.end - self.start:
            n_units = len(self.text.encode("utf-16-le")) // 2
            hint = ", or as UTF-16 units, which these seem to be" if n_units == self.end - self.start else ""
            raise ValueError(
                f"a span from {self.start} to {self.end} has a text of {len(self.text)} characters; offsets count "
                f"Unicode code points, not bytes{hint}"
            )
        return self


Spans = Annotated[tuple[Span, ...], BeforeValidator(_tuple)]


class Criterion(Record):
    """One thing that an answer is held against."""

    id: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_-]{0,59}$")]
    """Short name, as in figures: letters, digits, `_` and `-`."""
    text: Annotated[str, Field(min_length=1, max_length=2_000, pattern=r"\S")]
    """What has to be true of the answer for the criterion to be met."""
    weight: Annotated[float, Field(allow_inf_nan=False)] = 1.0
    """What meeting it adds; below 0 for a fault."""


def _criteria(value: object) -> object:
    """Criteria as a list; an object is read as id -> text."""
    if isinstance(value, dict):
        return [{"id": name, "text": text} for name, text in value.items()]
    return _tuple(value)


class Case(Record):
    """One golden question with its gold."""

    id: Id
    question: Annotated[str, BeforeValidator(_question)] = ""
    answerable: bool | None = None
    """Whether the corpus holds an answer; None means not labelled."""
    category: OptionalText = None
    difficulty: OptionalText = None
    lang: OptionalText = None
    tags: TextOrTexts = ()
    """Slices; one text is one tag."""
    vaults: TextOrTexts = ()
    gold_supports: Annotated[tuple[Support, ...], BeforeValidator(_tuple)] = ()
    required_support_groups: Annotated[tuple[tuple[int, ...], ...], BeforeValidator(_tuple)] = ()
    """Groups of indices into gold_supports: OR of groups, AND inside a group."""
    recency_conflict_rule: Literal["cite_newer", "cite_both", "acknowledge_both"] | None = None
    expected_chunk_ids: OptionalIds = None
    expected_doc_ids: OptionalIds = None
    """Documents that should be found; an empty list says that the system should refuse."""
    must_contain: Texts = ()
    forbidden: Texts = ()
    reference_answers: Texts = ()
    """Right answers, any of them."""
    key_facts: Texts = ()
    """Facts that a right answer states."""
    criteria: Annotated[tuple[Criterion, ...], BeforeValidator(_criteria)] = ()
    """What an answer to this very case is held against, by a judge whose criteria each case brings."""
    expected_spans: dict[Id, Spans] | None = None
    """Where the expected chunks stand: chunk id -> spans with their doc_id."""
    expected_fields: Object | None = None
    """The right result of field extraction, a JSON object."""
    metadata: Metadata = {}

    @model_validator(mode="after")
    def _criteria_differ(self) -> "Case":
        ids = [item.id.casefold() for item in self.criteria]
        if len(set(ids)) != len(ids):
            raise ValueError(f"criteria: id {Counter(ids).most_common(1)[0][0]!r} comes twice")
        return self

    @model_validator(mode="after")
    def _expected_spans_have_documents(self) -> "Case":
        for chunk_id, spans in (self.expected_spans or {}).items():
            if any(span.doc_id is None for span in spans):
                raise ValueError(f"expected_spans of chunk {chunk_id!r}: a span has no doc_id")
        return self

    @model_validator(mode="after")
    def _groups_point_at_supports(self) -> "Case":
        if self.required_support_groups and not self.gold_supports:
            raise ValueError("required_support_groups is given without gold_supports")
        for number, group in enumerate(self.required_support_groups):
            if not group:
                raise ValueError(f"required_support_groups[{number}] is empty")
            for index in group:
                if not 0 <= index < len(self.gold_supports):
                    raise ValueError(
                        f"required_support_groups[{number}] names support {index}, "
                        f"but gold_supports has {len(self.gold_supports)} (counted from 0)"
                    )
        return self


class Hit(Record):
    """One retrieved chunk."""

    chunk_id: Id | None = None
    doc_id: Id | None = None
    rel_path: OptionalText = None
    heading_path: Texts | Text = ()
    text: OptionalText = None
    text_truncated: bool = False
    source_spans: Spans = ()
    """Characters of the document that the chunk was made from."""
    rank: Annotated[int, Field(ge=1)] | None = None
    """1-based; left out, the position in the list counts."""
    score: Annotated[float, Field(allow_inf_nan=False)] | None = None
    metadata: Metadata | None = None
    """None and not empty if there is none, since hits are many."""


class Citation(Record):
    """A chunk that the answer cites."""

    citation: Id
    """Chunk id."""


class Scope(Record):
    """Which folders the system chose to search."""

    mode: Literal["off", "on", "on_with_fallback"] = "off"
    selected_folders: Annotated[tuple[Text, ...], BeforeValidator(_tuple)] = ()


class OutputError(Record):
    """Why the system under test gave no answer."""

    kind: Text
    """`timeout`, `api`, ... ; `timeout` is counted apart; `missing_output` means the file has no row for the case."""
    message: Text = ""


class Usage(Record):
    """Tokens that a call used."""

    prompt_tokens: Annotated[int, Field(ge=0)] | None = None
    completion_tokens: Annotated[int, Field(ge=0)] | None = None
    """Those of thinking included."""
    cached_tokens: Annotated[int, Field(ge=0)] | None = None
    """Of the prompt, those that the server had in its own cache."""
    reasoning_tokens: Annotated[int, Field(ge=0)] | None = None
    """Of the completion, those of thinking, as far as the server says."""
    total_tokens: Annotated[int, Field(ge=0)] | None = None
    """As the server says; prompt and completion together are what counts."""

    @property
    def is_whole(self) -> bool:
        """Both prompt and completion were counted."""
        return self.prompt_tokens is not None and self.completion_tokens is not None

    @property
    def known_tokens(self) -> int:
        """Prompt and completion, as far as they were counted, or the total if that is more."""
        return max((self.prompt_tokens or 0) + (self.completion_tokens or 0), self.total_tokens or 0)


class SystemOutput(Record):
    """What the system under test returned for one case."""

    case_id: Id
    answer: OptionalText = None
    """None: no answer came back; blank: the system answered with nothing."""
    retrieved: Annotated[tuple[Hit, ...], BeforeValidator(_tuple)] = ()
    references: Annotated[tuple[DocumentPlace, ...], BeforeValidator(_tuple)] = ()
    citations: Annotated[tuple[Citation, ...] | None, BeforeValidator(_optional_list)] = None
    """None: the system does not report citations; empty: it cited nothing."""
    scope: Scope | None = None
    grounded: bool | None = None
    abstained: bool | None = None
    error: OutputError | None = None
    latency_seconds: dict[Text, Annotated[float, Field(ge=0, allow_inf_nan=False)]] = {}
    """Seconds by stage: total, folder_selection, retrieval, generation."""
    usage: Usage | None = None
    versions: dict[Text, Text] = {}
    """chunker_version, embedding_model, index_version, prompt_version."""
    extracted_fields: Object | None = None
    """What the system extracted, a JSON object."""
    confidence: Annotated[float, Field(ge=0, le=1)] | None = None
    """How sure the system is of its answer."""
    metadata: Metadata = {}

    @property
    def declared(self) -> bool | None:
        """Whether the system itself says that it abstained: `abstained`, else a false `grounded`; None: no word."""
        if self.abstained is not None:
            return self.abstained
        return True if self.grounded is False else None

    @model_validator(mode="after")
    def _ranks_are_unique(self) -> "SystemOutput":
        ranks = [position if hit.rank is None else hit.rank for position, hit in enumerate(self.retrieved, start=1)]
        if len(set(ranks)) != len(ranks):
            twice = Counter(ranks).most_common(1)[0][0]
            raise ValueError(
                f"case {self.case_id!r}: retrieved: rank {twice} comes twice (a hit without a rank has its position)"
            )
        for position, hit in enumerate(self.retrieved):
            if hit.source_spans and hit.doc_id is None and any(span.doc_id is None for span in hit.source_spans):
                raise ValueError(f"case {self.case_id!r}: retrieved[{position}]: neither hit nor span has a doc_id")
        return self


Count = Annotated[int, Field(ge=0)]

CONTEXT_REASON = "context"
"""Reasons that begin with this word say that a chunk was too long for the embedding model."""


class IndexedDocument(Record):
    """What became of one document on its way into the index."""

    doc_id: Id
    rel_path: OptionalText = None
    """Path of the file; its extension is the document's type."""
    n_chunks: Count
    """Chunks that the document was cut into; 0: it cannot be found."""
    n_attempted: Count | None = None
    """Chunks that were sent to the embedding model; left out: `n_embedded` and what was skipped, else `n_chunks`."""
    n_embedded: Count | None = None
    """Chunks that are in the index; left out: `n_attempted` less what was skipped."""
    skipped: dict[Text, Count] | None = None
    """Chunks that were not embedded, by reason; `context_length`: too long for the model. Empty: none was."""
    chunk_tokens: tuple[Count, ...] | None = None
    """Tokens of each chunk."""
    chunker_version: OptionalText = None
    embedding_model: OptionalText = None
    index_version: OptionalText = None

    @model_validator(mode="after")
    def _counts_agree(self) -> "IndexedDocument":
        if self.n_attempted is not None and self.n_embedded is None and self.skipped is None:
            raise ValueError("n_attempted says nothing by itself; add n_embedded or skipped")
        counts = self.embedding_counts
        if counts is None:
            return self
        n_attempted, n_embedded = counts
        if n_embedded + self.n_skipped != n_attempted or n_embedded < 0:
            embedded = "" if self.n_embedded is None else f"{n_embedded} embedded and "
            raise ValueError(
                f"{embedded}{self.n_skipped} skipped do not fit {n_attempted} attempted; every chunk that was not "
                "embedded needs a reason in skipped"
            )
        return self

    @property
    def n_skipped(self) -> int:
        """Chunks that were not embedded."""
        return sum((self.skipped or {}).values())

    @property
    def n_skipped_context(self) -> int:
        """Chunks that were too long for the embedding model."""
        found = self.skipped or {}
        return sum([n for reason, n in found.items() if reason.strip().lower().startswith(CONTEXT_REASON)])

    @property
    def embedding_counts(self) -> tuple[int, int] | None:
        """Chunks attempted and embedded; None if the record says nothing of embedding."""
        if self.n_attempted is None and self.n_embedded is None and self.skipped is None:
            return None
        n_attempted = self.n_attempted
        if n_attempted is None:
            n_attempted = self.n_chunks if self.n_embedded is None else self.n_embedded + self.n_skipped
        return n_attempted, n_attempted - self.n_skipped if self.n_embedded is None else self.n_embedded
