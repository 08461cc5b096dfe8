"""Outputs of JSONL files, many at once, where all are plain lists of hits, or all are plain lists of ids.

Of what stands beyond the largest cut-off nothing is looked at where no figure depends on it, but that it is JSON.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import msgspec

from judgekit.metrics.positions import Labels, SameRanks, places_of
from judgekit.storage.encodings import is_plain
from judgekit.storage.json_shapes import ERRORS, NULL, OutputRecord, PlainHit, key_of, records_in
from judgekit.storage.ready import Rankings
from judgekit.storage.ready_output import first_hits, first_ids, listed
from judgekit.storage.rows import BLANKS, Row, jsonl_row, lines_in

_outputs = msgspec.json.Decoder(OutputRecord)
_hits = msgspec.json.Decoder(list[PlainHit])
_ids = msgspec.json.Decoder(list[str])


def outputs_in(piece: bytes, ends: Sequence[int], first: int, depth: int) -> Iterator[Row | Rankings]:
    """The outputs of a piece of a file, as rankings or lists of hits where they can be taken as they are.

    Args:
        piece: whole lines.
        ends: of its lines.
        first: number of the first.
        depth: the largest cut-off.
    """
    # An escape may spell any letter, so with one nothing can be said of the text of the piece.
    outputs = records_in(_outputs, piece, ends) if is_plain(piece) else None
    lists = _lists_of(outputs, depth) if outputs is not None else None
    if lists is not None:
        yield _JsonRankings(piece, first, depth, lists)
        return
    for body, number in lines_in(piece, first):
        ready = listed(body, depth)
        yield jsonl_row(body, number) if ready is None else Row(number, "$", None, ready=ready, body=body)


class _Lists(NamedTuple):
    """The ids of outputs, column by column."""

    keys: list[str]
    ids: list[list[str]]
    """Of the first hits."""
    texts: list[bytes]
    """All hits, where there are more."""
    form: "_Form"


class _Form(NamedTuple):
    """One way of writing what was retrieved."""

    near: Callable[[bytes, int], bytes]
    """The first hits, unless a text among them holds what parts them; the list itself where it has no more."""
    many: Callable[[bytes], list[list[str]]]
    """The ids of lists, one a line."""
    to: Callable[[bytes, int], list[str]]
    """The ids of a list from the front to the one that begins at a place."""
    with_chunks: bool
    """An id is that of a chunk too."""


def _ids_of_hits(hits: list[PlainHit]) -> list[str]:
    """The documents of hits, which are the paths.

    Raises:
        ValueError: they are not.
    """
    ids = [hit.doc_id for hit in hits]
    if ids != [hit.rel_path for hit in hits]:
        raise ValueError("other documents than paths")
    return ids


_HITS = _Form(
    first_hits,
    lambda text: list(map(_ids_of_hits, _hits.decode_lines(text))),
    lambda text, place: _ids_of_hits(_hits.decode(text[: text.find(b"}", place) + 1] + b"]")),
    with_chunks=False,
)
_IDS = _Form(
    first_ids,
    _ids.decode_lines,
    lambda text, place: _ids.decode(text[: text.find(b'"', place + 1) + 1] + b"]"),
    with_chunks=True,
)


def _lists_of(outputs: Sequence[OutputRecord], depth: int) -> _Lists | None:
    """The ids of each output; None where not all are plain and alike.

    Args:
        outputs: all in ASCII, without escapes.
        depth: the largest cut-off.
    """
    has_ids = outputs[0].retrieved_ids is not NULL
    form = _IDS if has_ids else _HITS
    try:
        keys = list(map(key_of, outputs))
        if has_ids:
            given = [output.retrieved_ids for output in outputs]
            others = [output.retrieved for output in outputs]
        else:
            given = [output.retrieved for output in outputs]
            others = [output.retrieved_ids for output in outputs]
        if others.count(NULL) < len(others):
            return None
        texts = [b"[]" if one is NULL else bytes(one) for one in given]
        near = [form.near(text, depth) for text in texts]
        ids = form.many(b"\n".join(near))
    except ERRORS:
        return None
    if len(ids) != len(near) or any(found and min(found) < "!" for found in ids):  # a blank id
        return None
    is_whole = [head is text for head, text in zip(near, texts, strict=True)]
    if any(not whole and len(found) != depth for whole, found in zip(is_whole, ids, strict=True)):
        return None
    rests = [b"" if whole else text for whole, text in zip(is_whole, texts, strict=True)]
    return _Lists(keys, ids, rests, form)


class _JsonRankings:
    """Outputs of neighbouring lines."""

    def __init__(self, piece: bytes, first: int, depth: int, lists: _Lists) -> None:
        self._piece = piece
        self._depth = depth
        self._lists = lists
        self._bodies: list[bytes] | None = None
        self.keys = lists.keys
        self.lines = range(first, first + len(lists.keys))

    def place(self, wanted: Sequence[Labels | None]) -> tuple[list[SameRanks], list[int]]:
        """Where labels stand, and the indices of outputs for which that has to be found one by one."""
        keys, ids, texts, form = self._lists
        others: list[int] = []
        same = {kind: SameRanks(kind, [], [], [], []) for kind in (True, False)}
        for index, (labels, near, text) in enumerate(zip(wanted, ids, texts, strict=True)):
            ranks = None
            if labels is not None:
                chunks, docs, paths, _, _ = labels
                if docs and docs is paths and (not chunks or (chunks is docs and form.with_chunks)):
                    ranks = _ranks(docs, near, text, form)
            if ranks is None:
                others.append(index)
                continue
            _, case_ids, n_gold, found, n_hits = same[bool(chunks)]
            case_ids.append(keys[index])
            n_gold.append(len(docs))
            found.append(ranks)
            n_hits.append(len(near))
        return [found for found in same.values() if found.case_ids], others

    def row(self, index: int) -> Row:
        """One output alone."""
        if self._bodies is None:
            self._bodies = self._piece.split(b"\n")
        body, line = self._bodies[index].strip(BLANKS), self.lines[index]
        ready = listed(body, self._depth)
        return jsonl_row(body, line) if ready is None else Row(line, "$", None, ready=ready, body=body)


def _ranks(gold: Sequence[str], near: Sequence[str], text: bytes, form: _Form) -> tuple[int, ...] | None:
    """Where gold stands; None where that is not plain to see.

    Args:
        gold: distinct ids.
        near: ids of the first hits.
        text: all hits, where there are more.
        form: how they are written.
    """
    distinct = set(near)
    if not distinct.isdisjoint(gold):  # what comes twice is right twice
        return places_of(gold, near, distinct) if len(distinct) == len(near) else None
    if not text:
        return ()
    # Behind the cut-offs mrr looks for the first that is right; plain text shows every id.
    places = [place for one in gold if (place := text.find(f'"{one}"'.encode())) >= 0]
    if not places:
        return ()
    try:
        first = places_of(gold, form.to(text, min(places)))[:1]
    except ERRORS:  # the text of a hit looks like an id, or like its end
        return None
    return first or None
