"""One output of a JSONL file made into lists of ids."""

from typing import Any

import msgspec

from judgekit.core.text import normalise_path
from judgekit.metrics.positions import Column, Columns, Labels, Positions, positions_of_ids
from judgekit.metrics.ranked_lists import are_plain
from judgekit.storage.encodings import is_plain
from judgekit.storage.json_shapes import ERRORS, NULL, HitRecord, Id, NotPlain, OutputRecord, id_of, key_of

_decode_output = msgspec.json.Decoder(OutputRecord).decode
_decode_hits = msgspec.json.Decoder(list[HitRecord]).decode
_decode_list = msgspec.json.Decoder(list[msgspec.Raw]).decode
_decode_ids = msgspec.json.Decoder(list[Id]).decode


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
        except ERRORS:
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
        key = key_of(output)
        if output.retrieved_ids is not NULL:
            return _listed_ids(key, output, has_plain_paths=is_plain(body))
        hits = bytes(output.retrieved)
        if hits == b"null":
            hits = b"[]"
        # An escape may spell any letter, so with one nothing can be said of the text of the line.
        shows_ids = body.isascii() and b"\\" not in body
        near = _first_hits(hits, depth) if shows_ids else hits
        # First hits without a rank stand by position, whatever comes behind them.
        if b'"rank"' in near:
            near = hits
        try:
            columns, n_read = _columns(near, is_plain=shows_ids)
            is_cut_right = near is hits or n_read == depth
        except msgspec.DecodeError:
            is_cut_right = False
        if not is_cut_right:  # a brace stands inside a text
            near = _first_whole(hits, depth) if shows_ids else hits
            columns, n_read = _columns(near, is_plain=shows_ids)
    except ERRORS:
        return None
    return ListedHits(key, columns, n_read, b"" if near is hits else hits)


def _listed_ids(key: str, output: OutputRecord, *, has_plain_paths: bool) -> ListedHits:
    """An output that lists ids alone.

    Args:
        key: id of the case.
        output: the record.
        has_plain_paths: paths are compared as they are.

    Raises:
        NotPlain: it lists hits too, or an id twice.
        ValueError: an id is empty.
        msgspec.DecodeError: what it lists is no id.
    """
    given: list[Any] = _decode_ids(output.retrieved_ids)
    ids: list[str] = given if are_plain(given) else list(map(id_of, given))
    if output.retrieved is not NULL or len(set(ids)) < len(ids):
        raise NotPlain
    paths = ids if has_plain_paths else list(map(normalise_path, ids))
    return ListedHits(key, (ids, ids, ids if paths == ids else paths), len(ids), b"")


def _first_hits(hits: bytes, depth: int) -> bytes:
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
        NotPlain: they do not, or a chunk comes twice.
        ValueError: an id is empty.
        msgspec.DecodeError: a hit is not plainly valid.
    """
    hits = _decode_hits(text)
    if not is_plain or b'"rank"' in text:
        ranks = [hit.rank for hit in hits]
        if ranks.count(None) != len(ranks) and ranks != list(range(1, len(ranks) + 1)):
            raise NotPlain
    chunks: Column = ()
    docs: Column = ()
    paths: Column = ()
    if not is_plain or b'"chunk_id"' in text:
        chunks = _ids([hit.chunk_id for hit in hits], is_plain=is_plain)
        if len(set(chunks)) < len(chunks) and _comes_twice(chunks):
            raise NotPlain
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


def _ids(found: list[Id | None], *, is_plain: bool) -> Column:
    if is_plain:
        try:
            if min(found) >= "!":  # type: ignore[operator, type-var]
                return found  # type: ignore[return-value]  # texts, none of them blank
        except TypeError:
            pass
    return [None if one is None else id_of(one) for one in found]
