"""What comes in: cases (golden questions with their gold) and outputs of the system under test."""

from collections import Counter
from typing import Annotated, Literal

from pydantic import BeforeValidator, Field, model_validator

from judgekit.core.field_types import (
    Arguments,
    Date,
    Id,
    ListOf,
    Metadata,
    Object,
    OptionalIds,
    OptionalListOf,
    OptionalText,
    Question,
    Record,
    Text,
    TextOrTexts,
    Texts,
    absent_is_empty,
)
from judgekit.core.text import is_blank


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
    date: Date = None
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


Spans = ListOf[Span]


class Criterion(Record):
    """One thing that an answer is held against."""

    id: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_-]{0,59}$")]
    """Short name, as in figures: letters, digits, `_` and `-`."""
    text: Annotated[str, Field(min_length=1, pattern=r"\S")]
    """What has to be true of the answer for the criterion to be met."""
    weight: Annotated[float, Field(allow_inf_nan=False, ge=-1e6, le=1e6)] = 1.0
    """What meeting it adds; below 0 for a fault."""


def _criteria(value: object) -> object:
    """Criteria as a list; an object is read as id -> text."""
    if isinstance(value, dict):
        return [{"id": name, "text": text} for name, text in value.items()]
    return absent_is_empty(value)


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


class ToolCall(Record):
    """One call of a tool: what the system called, or what it should have called."""

    name: Text
    arguments: Arguments = None
    """By name; a text that is no JSON object stays a text. Of an expected call, None says that any will do."""
    id: Id | None = None
    """What a result names it by."""


class Message(Record):
    """One message of a conversation; of a system's turn, with what was retrieved for it."""

    role: Literal["system", "user", "assistant", "tool"]
    """`assistant` is the system under test, `tool` the result of a call."""
    text: OptionalText = None
    tool_calls: ListOf[ToolCall] = ()
    tool_call_id: Id | None = None
    """The call whose result this is; left out, the next one without a result."""
    name: OptionalText = None
    """Who speaks, where there are several; of a result, the tool."""
    retrieved: OptionalListOf[Hit] = None
    """None: not known; empty: nothing was found."""
    left_out: Texts = ()
    """What the message held beside text, such as `image_url`; it is not kept."""
    metadata: Metadata | None = None


Messages = OptionalListOf[Message]


def last_text(messages: tuple[Message, ...], role: str) -> str | None:
    """The last text of a role; None if there is none."""
    for message in reversed(messages):
        if message.role == role and message.text is not None and not is_blank(message.text):
            return message.text
    return None


_NAMED: dict[frozenset[str], set[str]] = {}
"""Names of the fields that cases give, each combination once."""


class Case(Record):
    """One golden question with its gold."""

    id: Id
    question: Question = ""
    answerable: bool | None = None
    """Whether the corpus holds an answer; None means not labelled."""
    category: OptionalText = None
    difficulty: OptionalText = None
    lang: OptionalText = None
    tags: TextOrTexts = ()
    """Slices; one text is one tag."""
    vaults: TextOrTexts = ()
    gold_supports: ListOf[Support] = ()
    required_support_groups: ListOf[tuple[int, ...]] = ()
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

    messages: Messages = None
    """The conversation up to the answer; None: the question is all that was said."""
    expected_tool_calls: OptionalListOf[ToolCall] = None
    """Tools that the system should call, in this order; an empty list says that it should call none."""

    @model_validator(mode="after")
    def _holds_together(self) -> "Case":
        if self.criteria:
            self._check_criteria()
        if self.expected_spans:
            self._check_spans(self.expected_spans)
        if self.required_support_groups:
            self._check_groups()
        names = self.__pydantic_fields_set__
        if self.messages and is_blank(self.question):
            self.__dict__["question"] = last_text(self.messages, "user") or ""
            names = names | {"question"}
        # Cases are many and most name the same fields, so that one set of names serves them all.
        object.__setattr__(self, "__pydantic_fields_set__", _NAMED.setdefault(frozenset(names), names))
        return self

    def _check_criteria(self) -> None:
        ids = [item.id.casefold() for item in self.criteria]
        if len(set(ids)) != len(ids):
            raise ValueError(f"criteria: id {Counter(ids).most_common(1)[0][0]!r} comes twice")
        if not any(item.weight > 0 for item in self.criteria):
            raise ValueError("criteria: no weight is above 0, so there is nothing to meet")

    @staticmethod
    def _check_spans(expected_spans: dict[str, Spans]) -> None:
        for chunk_id, spans in expected_spans.items():
            if any(span.doc_id is None for span in spans):
                raise ValueError(f"expected_spans of chunk {chunk_id!r}: a span has no doc_id")

    def _check_groups(self) -> None:
        if not self.gold_supports:
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


class Citation(Record):
    """A chunk that the answer cites."""

    citation: Id
    """Chunk id."""


class Scope(Record):
    """Which folders the system chose to search."""

    mode: Literal["off", "on", "on_with_fallback"] = "off"
    selected_folders: ListOf[Text] = ()


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
    answer_left_out: bool = False
    """The text of the answer is not stored, or only its beginning, as `store_text` asked for."""
    retrieved: ListOf[Hit] = ()
    references: ListOf[DocumentPlace] = ()
    citations: OptionalListOf[Citation] = None
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
    other: "SystemOutput | None" = None
    """What another system, A, gave for the case: a judge of preference says which of the two answers is better."""

    @property
    def declared(self) -> bool | None:
        """Whether the system itself says that it abstained: `abstained`, else a false `grounded`; None: no word."""
        if self.abstained is not None:
            return self.abstained
        return True if self.grounded is False else None

    turns: Messages = None
    """What the system did, message by message: its calls, their results and its answers, and what users said between.

    Where `answer` is absent it is the last one, and where `retrieved` is, the hits of all turns, the last turn's first.
    """

    @model_validator(mode="after")
    def _holds_together(self) -> "SystemOutput":
        self._check_hits("retrieved", self.retrieved)
        for number, turn in enumerate(self.turns or ()):
            self._check_hits(f"turns[{number}].retrieved", turn.retrieved or ())
        if self.turns:
            self._take_from_turns(self.turns)
        return self

    def _take_from_turns(self, turns: tuple[Message, ...]) -> None:
        """Answer and hits, as far as they are not given: what works on a single answer works on the last one then."""
        if self.answer is None and self.error is None:
            self.__dict__["answer"] = last_text(turns, "assistant")
            self.__pydantic_fields_set__.add("answer")
        if "retrieved" not in self.__pydantic_fields_set__ and any(turn.retrieved is not None for turn in turns):
            lists = [enumerate(turn.retrieved or (), start=1) for turn in reversed(turns)]
            ranked = [sorted(hits, key=lambda pair: pair[1].rank or pair[0]) for hits in lists]
            found = [hit if hit.rank is None else hit.model_copy(update={"rank": None}) for h in ranked for _, hit in h]
            self.__dict__["retrieved"] = tuple(found)
            self.__pydantic_fields_set__.add("retrieved")

    def _check_hits(self, where: str, hits: tuple[Hit, ...]) -> None:
        ranks = [position if hit.rank is None else hit.rank for position, hit in enumerate(hits, start=1)]
        if len(set(ranks)) != len(ranks):
            twice = Counter(ranks).most_common(1)[0][0]
            raise ValueError(
                f"case {self.case_id!r}: {where}: rank {twice} comes twice (a hit without a rank has its position)"
            )
        for position, hit in enumerate(hits):
            if hit.source_spans and hit.doc_id is None and any(span.doc_id is None for span in hit.source_spans):
                raise ValueError(f"case {self.case_id!r}: {where}[{position}]: neither hit nor span has a doc_id")
