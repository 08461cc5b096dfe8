"""Outputs of JSONL files, many at once where all list hits, or all list ids.

Of what stands beyond the largest cut-off nothing is looked at where no figure depends on it, but that it is JSON.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import msgspec

from judgekit.kernel import kernel
from judgekit.metrics.positions import Labels, SameRanks
from judgekit.storage import json_lists
from judgekit.storage.encodings import is_plain
from judgekit.storage.json_shapes import ERRORS, NULL, OutputRecord, key_of, records_in
from judgekit.storage.ready import Rankings
from judgekit.storage.ready_output import listed
from judgekit.storage.rows import BLANKS, Row, jsonl_row, lines_in

_outputs = msgspec.json.Decoder(OutputRecord)


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


class _Lists(NamedTuple):
    """What outputs list, column by column."""

    keys: list[str]
    texts: list[bytes | msgspec.Raw]
    """JSON."""
    with_hits: bool
    """These are lists of hits, which have no chunk; else of ids, each of which is that of a chunk too."""


def _lists_of(outputs: Sequence[OutputRecord]) -> _Lists | None:
    """What each output lists; None where they are not alike.

    Args:
        outputs: all in ASCII, without escapes.
    """
    ids = [output.retrieved_ids for output in outputs]
    hits = [output.retrieved for output in outputs]
    # A field that is left out has this very value; one that is null has another, which is equal.
    with_hits = ids[0] is NULL
    given, others = (hits, ids) if with_hits else (ids, hits)
    if others.count(NULL) < len(others):
        return None
    texts: list[bytes | msgspec.Raw] = [b"[]" if one == NULL else one for one in given] if NULL in given else [*given]
    try:
        return _Lists(list(map(key_of, outputs)), texts, with_hits)
    except ERRORS:
        return None


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
        keys, texts, with_hits = self._lists
        # The ids that are gold of each kind that a case has, where there are such.
        gold = [
            labels.docs
            if labels is not None
            and labels.docs is labels.paths
            and (not labels.chunks or (labels.chunks is labels.docs and not with_hits))
            else ()
            for labels in wanted
        ]
        ranks_in_texts = kernel.ranks_in_texts if kernel is not None else json_lists.ranks_in_texts
        found, n_hits = ranks_in_texts(gold, texts, self._depth, with_hits)
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
