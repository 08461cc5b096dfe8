"""Lines of JSONL made at once into what ranked figures need.

Only what is plainly valid is taken: known fields, of the types that they should have. Everything else is left to the
reader of whole records, which accepts it or says what is wrong. Of hits beyond the largest cut-off nothing is looked at
where no figure depends on them, but that they are JSON.
"""

from collections.abc import Sequence
from typing import Annotated

import msgspec

from judgekit.core.text import canonical_id, normalise_path
from judgekit.metrics.positions import Column, Columns, Labels, Positions, positions_of_ids
from judgekit.storage.ready import Labelled

_Id = str | int
_Flat = dict[str, str | int | float | bool | None]


class _Support(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    rel_path: str


class _Case(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    """Fields of a case whose check is their type."""

    id: _Id
    question: str | None = None
    answerable: bool | None = None
    category: str | None = None
    difficulty: str | None = None
    lang: str | None = None
    tags: list[str] | None = None
    reference_answers: list[str] | None = None
    key_facts: list[str] | None = None
    gold_supports: list[_Support] | None = None
    expected_chunk_ids: list[_Id] | None = None
    expected_doc_ids: list[_Id] | None = None
    metadata: _Flat | None = None


class _Hit(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    """Fields of a hit that decide nothing where supports are whole files, and those that decide."""

    chunk_id: _Id | None = None
    doc_id: _Id | None = None
    rel_path: str | None = None
    heading_path: list[str] | str | None = None
    text: str | None = None
    text_truncated: bool = False
    rank: int | None = None
    score: float | None = None


class _Output(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    """Fields of an output whose check is their type; an output with an error is not among them."""

    case_id: _Id | None = None
    id: _Id | None = None
    answer: str | None = None
    retrieved: msgspec.Raw = msgspec.Raw(b"null")
    grounded: bool | None = None
    abstained: bool | None = None
    latency_seconds: dict[str, Annotated[float, msgspec.Meta(ge=0)]] = {}
    versions: dict[str, str] = {}
    metadata: _Flat | None = None


_decode_case = msgspec.json.Decoder(_Case).decode
_decode_output = msgspec.json.Decoder(_Output).decode
_decode_hits = msgspec.json.Decoder(list[_Hit]).decode
_decode_list = msgspec.json.Decoder(list[msgspec.Raw]).decode


class _NotPlain(Exception):
    """The record is for the reader of whole records."""


_ERRORS = (msgspec.DecodeError, UnicodeDecodeError, ValueError, RecursionError, _NotPlain)


def labelled(body: bytes) -> Labelled | None:
    """A line as a case; None where it is for the reader of whole records."""
    try:
        case = _decode_case(body)
        key = _id(case.id)
        chunks = _distinct(case.expected_chunk_ids)
        docs = chunks if case.expected_doc_ids == case.expected_chunk_ids else _distinct(case.expected_doc_ids)
    except _ERRORS:
        return None
    paths = tuple(dict.fromkeys([normalise_path(support.rel_path) for support in case.gold_supports or ()]))
    if paths == chunks:
        paths = chunks
    elif paths == docs:
        paths = docs
    return Labelled(key, Labels(chunks, docs, paths))


class ListedHits(msgspec.Struct, frozen=True, gc=False):
    """An output, by the ids of its hits in rank order."""

    key: str
    columns: Columns
    """Chunk ids, document ids and normalised paths of the first hits, or of all."""
    n_read: int
    """Hits that were looked at."""
    hits: bytes
    """All hits, as JSON, where some were not looked at: ASCII without escapes, so that its text shows every id."""

    def positions(self, labels: Labels) -> Positions | None:
        """Where the labels stand; None where that takes the whole record."""
        if labels.supports is not None:
            return None
        found = positions_of_ids(labels, self.columns, self.n_read)
        if not self.hits or not labels.paths or found.right:
            return found
        # Mrr looks at the whole list, but behind the cut-offs only for the first right hit.
        places = [place for path in labels.paths if (place := self.hits.find(f'{path}"'.encode())) >= 0]
        if not places:
            return found
        try:
            return self._up_to(min(places), labels) or positions_of_ids(labels, *_columns(self.hits, is_plain=True))
        except _ERRORS:
            return None

    def _up_to(self, place: int, labels: Labels) -> Positions | None:
        """Positions up to the hit that stands there; None where it is not right."""
        end = self.hits.find(b"}", place) + 1
        try:
            found = positions_of_ids(labels, *_columns(self.hits[:end] + b"]", is_plain=True))
        except msgspec.DecodeError:  # the brace stands inside a text
            return None
        return found if found.right else None


def listed(body: bytes, depth: int) -> ListedHits | None:
    """A line as an output; None where it is for the reader of whole records.

    Args:
        body: the line.
        depth: the largest cut-off.
    """
    try:
        output = _decode_output(body)
        if (output.case_id is None) == (output.id is None):
            return None
        key = _id(output.id if output.case_id is None else output.case_id)  # type: ignore[arg-type]  # one is given
        hits = bytes(output.retrieved)
        if hits == b"null":
            hits = b"[]"
        # An escape may spell any letter, so with one nothing can be said of the text of the line.
        is_plain = body.isascii() and b"\\" not in body
        near = _first(hits, depth) if is_plain else hits
        # First hits without a rank stand by position, whatever comes behind them.
        if b'"rank"' in near:
            near = hits
        try:
            columns, n_read = _columns(near, is_plain=is_plain)
            is_cut_right = near is hits or n_read == depth
        except msgspec.DecodeError:
            is_cut_right = False
        if not is_cut_right:  # a brace stands inside a text
            near = _first_whole(hits, depth) if is_plain else hits
            columns, n_read = _columns(near, is_plain=is_plain)
    except _ERRORS:
        return None
    return ListedHits(key, columns, n_read, b"" if near is hits else hits)


def _first(hits: bytes, depth: int) -> bytes:
    """A list of the first hits, if no text in them holds a brace; the list itself where it has no more.

    With such a brace it is no JSON, or has fewer hits.
    """
    parts = hits.split(b"}", depth)
    return hits if len(parts) <= depth or parts[depth] == b"]" else hits[: -len(parts[depth])] + b"]"


def _first_whole(hits: bytes, depth: int) -> bytes:
    """A list of the first hits; the list itself where it has no more."""
    found = _decode_list(hits)
    near = found[:depth]
    return hits if len(found) <= depth or b'"rank"' in b"".join(near) else b"[" + b",".join(near) + b"]"


def _columns(text: bytes, *, is_plain: bool) -> tuple[Columns, int]:
    """Chunk ids, document ids and normalised paths of hits that stand by rank, and how many there are.

    An empty column holds no id.

    Raises:
        _NotPlain: they do not, or a chunk comes twice.
        ValueError: an id is empty.
        msgspec.DecodeError: a hit is not plainly valid.
    """
    hits = _decode_hits(text)
    if not is_plain or b'"rank"' in text:
        ranks = [hit.rank for hit in hits]
        if ranks.count(None) != len(ranks) and ranks != list(range(1, len(ranks) + 1)):
            raise _NotPlain
    chunks: Column = ()
    docs: Column = ()
    paths: Column = ()
    if not is_plain or b'"chunk_id"' in text:
        chunks = _ids([hit.chunk_id for hit in hits], is_plain=is_plain)
        if len(set(chunks)) < len(chunks) and _comes_twice(chunks):
            raise _NotPlain
    if not is_plain or b'"doc_id"' in text:
        docs = _ids([hit.doc_id for hit in hits], is_plain=is_plain)
    if not is_plain or b'"rel_path"' in text:
        named = [hit.rel_path for hit in hits]
        paths = [path and normalise_path(path) for path in named] if not is_plain or b'"./' in text else named
        if paths == docs:
            paths = docs
    return (chunks, docs, paths), len(hits)


def _comes_twice(ids: Column) -> bool:
    named = [one for one in ids if one is not None]
    return len(set(named)) < len(named)


def _ids(found: list[_Id | None], *, is_plain: bool) -> Column:
    if is_plain:
        try:
            if min(found) >= "!":  # type: ignore[operator, type-var]
                return found  # type: ignore[return-value]  # texts, none of them blank
        except TypeError:
            pass
    return [None if one is None else _id(one) for one in found]


def _id(value: _Id) -> str:
    """An id as compared.

    Raises:
        ValueError: it is empty.
    """
    if type(value) is str and value > "!" and value.isascii():
        return value
    return str(canonical_id(value))


def _distinct(ids: Sequence[_Id] | None) -> tuple[str, ...]:
    return tuple(dict.fromkeys(map(_id, ids))) if ids else ()
