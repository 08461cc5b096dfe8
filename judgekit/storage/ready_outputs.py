"""Outputs of JSONL files, many at once, where all are plain lists of hits, or all are plain lists of ids.

Of what stands beyond the largest cut-off nothing is looked at where no figure depends on it, but that it is JSON.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import msgspec

from judgekit.kernel import kernel
from judgekit.metrics.positions import Labels, SameRanks, places_of
from judgekit.storage.encodings import is_plain
from judgekit.storage.json_shapes import ERRORS, NULL, NotPlain, OutputRecord, PlainHit, key_of, records_in
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
    lists = _lists_of(outputs) if outputs is not None else None
    if lists is not None:
        yield _JsonRankings(piece, first, depth, lists)
        return
    for body, number in lines_in(piece, first):
        yield _row(body, number, depth)


def _row(body: bytes, line: int, depth: int) -> Row:
    ready = listed(body, depth)
    return jsonl_row(body, line) if ready is None else Row(line, "$", None, ready=ready, body=body)


Text = bytes | msgspec.Raw
Ranks = tuple[int, ...] | None
"""Where gold stands; None where that is not plain to see."""


class _Form(NamedTuple):
    """One way of writing what was retrieved."""

    near: Callable[[bytes, int], bytes]
    """The first hits, unless a text among them holds what parts them; the list itself where it has no more."""
    many: Callable[[bytes], list[list[str]]]
    """The ids of lists, one a line."""
    to: Callable[[bytes, int], list[str]]
    """The ids of a list from the front to the one that begins at a place."""
    with_hits: bool
    """It lists hits, which have no chunk; else ids, each of which is that of a chunk too."""


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
    with_hits=True,
)
_IDS = _Form(
    first_ids,
    _ids.decode_lines,
    lambda text, place: _ids.decode(text[: text.find(b'"', place + 1) + 1] + b"]"),
    with_hits=False,
)


class _Lists(NamedTuple):
    """What outputs list, column by column."""

    keys: list[str]
    texts: list[Text]
    """JSON."""
    form: _Form


def _lists_of(outputs: Sequence[OutputRecord]) -> _Lists | None:
    """What each output lists; None where they are not alike.

    Args:
        outputs: all in ASCII, without escapes.
    """
    ids = [output.retrieved_ids for output in outputs]
    hits = [output.retrieved for output in outputs]
    # A field that is left out has this very value; one that is null has another, which is equal.
    form = _IDS if ids[0] is not NULL else _HITS
    given, others = (hits, ids) if form.with_hits else (ids, hits)
    if others.count(NULL) < len(others):
        return None
    texts: list[Text] = [_NONE if one == NULL else one for one in given] if NULL in given else [*given]
    try:
        return _Lists(list(map(key_of, outputs)), texts, form)
    except ERRORS:
        return None


_NONE = b"[]"


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
        """Where labels stand, and the indices of outputs that have to be read one by one."""
        keys, texts, form = self._lists
        # The ids that are gold of each kind that a case has, where there are such.
        gold = [
            labels.docs
            if labels is not None
            and labels.docs is labels.paths
            and (not labels.chunks or (labels.chunks is labels.docs and not form.with_hits))
            else ()
            for labels in wanted
        ]
        found, n_hits = _all_ranks(gold, texts, form, self._depth)
        members: dict[bool, list[int]] = {True: [], False: []}
        others: list[int] = []
        for index, (labels, ranks) in enumerate(zip(wanted, found, strict=True)):
            if ranks is None or (labels is not None and not gold[index]):
                others.append(index)
            elif labels is not None:
                members[bool(labels.chunks)].append(index)
        same = [
            SameRanks(
                with_chunks,
                [keys[index] for index in some],
                [len(gold[index]) for index in some],
                [found[index] for index in some],  # type: ignore[misc]  # none of these is None
                [n_hits[index] for index in some],
            )
            for with_chunks, some in members.items()
            if some
        ]
        return same, others

    def row(self, index: int) -> Row:
        """One output alone."""
        if self._bodies is None:
            self._bodies = self._piece.split(b"\n")
        return _row(self._bodies[index].strip(BLANKS), self.lines[index], self._depth)


def _all_ranks(
    gold: list[tuple[str, ...]], texts: list[Text], form: _Form, depth: int
) -> tuple[list[Ranks], list[int]]:
    """Where gold stands in each list, and how many of its entries stand within the depth.

    Args:
        gold: distinct ids, for each list.
        texts: lists, as JSON.
        form: how they are written.
        depth: the largest cut-off.
    """
    if kernel is not None:
        found, n_hits = kernel.ranks_in_texts(gold, texts, depth, form.with_hits)
        if None not in found:
            return found, n_hits
    whole = list(map(bytes, texts))
    try:
        heads = [form.near(text, depth) for text in whole]
        near = form.many(b"\n".join(heads))
        if len(near) != len(heads) or any(ids and min(ids) < "!" for ids in near):  # a blank id
            raise NotPlain
    except ERRORS:
        return [None] * len(texts), [0] * len(texts)
    rests = [b"" if head is text else text for head, text in zip(heads, whole, strict=True)]
    found = [
        None if rest and len(ids) != depth else _ranks(one, ids, rest, form)
        for one, ids, rest in zip(gold, near, rests, strict=True)
    ]
    return found, list(map(len, near))


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
