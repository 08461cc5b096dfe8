"""A piece of a run as arrays: where cells begin and end, ids as machine words, scores as floats.

A piece is taken only where all its lines are plainly six cells with one blank between them; everything else is left to
the reader of lines, so what counts, and what is an error, is the same.

Needs numpy, which is worth loading from some tens of megabytes on.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from judgekit.storage.encodings import is_plain
from judgekit.storage.formats.decimals import Flags, Places, Words, decimals_of, order_of
from judgekit.storage.formats.trec_lines import numbers_of

_N_CELLS = 6
_TAB, _LINE_FEED, _SPACE = b"\t\n "
_MOST_WORDS = 32
"""Longest id that is taken, in words of eight bytes."""
PAD = b"\0" * (8 * _MOST_WORDS + 8)
"""Behind a piece, so that words may be taken up to its last byte."""
_FIRST_BYTES = np.array([(1 << 8 * n) - 1 for n in range(9)], dtype=np.uint64)
"""Mask of the first n bytes of a word."""
_MIX_WORDS, _MIX_QUERIES, _MIX_ALL = (
    np.uint64(n) for n in (0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0xD6E8FEB86659FD93)
)
"""Odd numbers with bits in no order, from the splitmix and rrmxmx generators."""
_SLOT_BITS = 18
_TO_SLOT = np.uint64(64 - _SLOT_BITS)


@dataclass(frozen=True, slots=True)
class Columns:
    """The lines of some queries, each with all its lines; a row of an array is a line unless said otherwise."""

    piece: bytes
    query_starts: Places
    query_ends: Places
    id_starts: Places
    id_ends: Places
    ids: tuple[Words, ...]
    """The bytes of the documents' ids, eight in a word, with zeros behind."""
    score_starts: Places
    score_ends: Places
    order: tuple[Flags, Flags]
    """For each line but the first, whether its score is above that of the line before, and whether it is the same."""
    first_lines: Places
    """For each query its first row."""
    n_hits: Places
    """For each query."""
    of_line: Places
    """The index of the query."""
    keys: Words
    """Of query and document; equal ones have equal keys."""
    end: int
    """Bytes of the piece up to the end of the last line."""


def columns_of(piece: bytes, end: int, *, is_last: bool, by_single: bool) -> Columns | None:
    """The lines of a piece, without those of its last query unless the file ends with it; None where some line is odd.

    Args:
        piece: whole lines, with `PAD` behind.
        end: where the lines end.
        is_last: the file ends there.
        by_single: scores are compared as 32-bit floats.
    """
    ends = _cell_ends(piece, end)
    if ends is None:
        return None
    n = len(ends)
    words = _words(piece)
    query_starts = np.zeros(n, np.int64)
    np.add(ends[:-1, 5], 1, out=query_starts[1:])
    query_ends = ends[:, 0].copy()
    queries = _texts(words, query_starts, query_ends)
    if queries is None or (queries[0] & _FIRST_BYTES[1] == ord("#")).any():
        return None
    first_lines = _first_lines(queries)
    if not is_last:
        n = int(first_lines[-1])
        first_lines, query_starts, query_ends, ends = first_lines[:-1], query_starts[:n], query_ends[:n], ends[:n]
    id_starts, id_ends = ends[:, 1] + 1, ends[:, 2].copy()
    score_starts, score_ends = ends[:, 3] + 1, ends[:, 4].copy()
    ids = _texts(words, id_starts, id_ends) if n else ()
    order = _order(piece, words, score_starts, score_ends, by_single=by_single)
    if ids is None or order is None:
        return None
    n_hits = np.diff(first_lines, append=n)
    of_line = np.repeat(np.arange(len(first_lines)), n_hits)
    return Columns(
        piece,
        query_starts,
        query_ends,
        id_starts,
        id_ends,
        ids,
        score_starts,
        score_ends,
        order,
        first_lines,
        n_hits,
        of_line,
        _keys(ids, of_line),
        int(ends[n - 1, 5]) + 1 if n else 0,
    )


def _cell_ends(piece: bytes, end: int) -> Places | None:
    """Where each cell of each line ends, shape (lines, 6); None where a line is odd, or the piece no plain ASCII."""
    if not is_plain(piece):
        return None
    letters = np.frombuffer(piece, np.uint8, end)
    is_blank = letters <= ord(" ")
    ends = np.flatnonzero(is_blank)
    line_ends = ends[_N_CELLS - 1 :: _N_CELLS]
    n = len(line_ends)
    # As many line feeds as lines, each at the end of one, and else only blanks with a cell before each.
    if len(ends) != _N_CELLS * n or not n or (letters[line_ends] != _LINE_FEED).any():
        return None
    n_spaces, n_feeds = (np.count_nonzero(letters == byte) for byte in (_SPACE, _LINE_FEED))
    if n_feeds != n or n_spaces + n_feeds + np.count_nonzero(letters == _TAB) != len(ends):
        return None
    if is_blank[0] or (is_blank[1:] & is_blank[:-1]).any():
        return None
    return ends.reshape(-1, _N_CELLS)


def _first_lines(queries: Sequence[Words]) -> Places:
    """The lines whose query is not that of the line before."""
    is_new = np.ones(len(queries[0]), np.bool_)
    is_new[1:] = queries[0][1:] != queries[0][:-1]
    for word in queries[1:]:
        is_new[1:] |= word[1:] != word[:-1]
    return np.flatnonzero(is_new)


def _words(data: bytes) -> Words:
    """The eight bytes from each byte on, so unaligned on purpose, the first as the lowest."""
    return np.ndarray((len(data) - 7,), "<u8", data, 0, (1,))


def _texts(words: Words, starts: Places, ends: Places) -> tuple[Words, ...] | None:
    """Texts as words with zeros behind; None where one is too long."""
    lengths = ends - starts
    n_words = -(-int(lengths.max()) // 8)
    return _texts_of(words, starts, lengths, n_words) if n_words <= _MOST_WORDS else None


def _texts_of(words: Words, starts: Places, lengths: Places, n_words: int) -> tuple[Words, ...]:
    """Texts of up to so many words, see `_texts`."""
    if n_words == 1:
        return (words[starts] & _FIRST_BYTES[lengths],)
    return tuple([words[starts + 8 * n] & _FIRST_BYTES[np.clip(lengths - 8 * n, 0, 8)] for n in range(n_words)])


def _order(piece: bytes, words: Words, starts: Places, ends: Places, *, by_single: bool) -> tuple[Flags, Flags] | None:
    """Which scores are above the one before, and which equal it; None where some are no numbers."""
    if not len(starts):
        return np.empty(0, np.bool_), np.empty(0, np.bool_)
    order = None if by_single else order_of(words, starts, ends - starts)
    if order is not None:
        return order
    scores = decimals_of(words, starts, ends - starts)
    if scores is None:
        values = numbers_of([piece[start:end] for start, end in zip(starts.tolist(), ends.tolist(), strict=True)])
        if values is None:
            return None
        scores = np.array(values)
    if by_single:
        with np.errstate(over="ignore"):  # infinite, as in C
            single = scores.astype(np.float32)
        return single[1:] > single[:-1], single[1:] == single[:-1]
    return scores[1:] > scores[:-1], scores[1:] == scores[:-1]


def _keys(texts: Sequence[Words], queries: Places) -> Words:
    """A number for each text of each query; different ones rarely share it."""
    mixed = queries.view(np.uint64) * _MIX_QUERIES
    for word in texts:
        mixed = (mixed ^ word) * _MIX_WORDS
        mixed ^= mixed >> np.uint64(32)
    return mixed * _MIX_ALL


def repeated(columns: Columns) -> Flags:
    """For each query, whether some document may stand in it twice; never False where one does."""
    keys = columns.keys
    n = len(keys)
    slots = (keys >> _TO_SLOT).view(np.int64)
    lines = np.arange(n, dtype=np.int32)
    last = np.empty(1 << _SLOT_BITS, np.int32)
    last[slots] = lines
    # Of lines that share a slot one is left; the others are few, and equal keys are among them or equal it.
    winners = last[slots]
    others = np.flatnonzero(winners != lines)
    is_twice = np.zeros(len(columns.first_lines), np.bool_)
    if len(others):
        is_twice[columns.of_line[others[keys[others] == keys[winners[others]]]]] = True
        ordered = others[np.argsort(keys[others])]
        is_twice[columns.of_line[ordered[1:][keys[ordered[1:]] == keys[ordered[:-1]]]]] = True
    return is_twice


def gold_lines(columns: Columns, gold: Sequence[Sequence[str]]) -> Places | None:
    """Ascending lines of the documents that are wanted.

    Args:
        columns: without documents that stand twice in a query with gold.
        gold: distinct ids, for each query.

    Returns:
        None where they have to be looked for one by one.
    """
    texts = [one for ids in gold for one in ids]
    longest = 8 * len(columns.ids)
    text = "\n".join(texts)
    if not text.isascii() or "\0" in text or len(max(texts, key=len, default="")) > longest:
        # What is longer, or not plain, equals no id here; neither does an empty text.
        texts = [one if len(one) <= longest and one.isascii() and "\0" not in one else "" for one in texts]
        text = "\n".join(texts)
    lengths = np.fromiter(map(len, texts), np.int64, len(texts))
    starts = np.cumsum(lengths + 1) - lengths - 1
    words = _texts_of(_words(text.encode("ascii") + PAD), starts, lengths, len(columns.ids))
    of_query = np.repeat(np.arange(len(gold)), [len(ids) for ids in gold])
    keys = _keys(words, of_query)
    order = np.argsort(keys)
    ordered = keys[order]
    if (ordered[1:] == ordered[:-1]).any():
        return None
    is_wanted = np.zeros(1 << _SLOT_BITS, np.bool_)
    is_wanted[(keys >> _TO_SLOT).view(np.int64)] = True
    lines = np.flatnonzero(is_wanted[(columns.keys >> _TO_SLOT).view(np.int64)])
    places = np.minimum(np.searchsorted(ordered, columns.keys[lines]), len(ordered) - 1)
    found = order[places]
    same = columns.of_line[lines] == of_query[found]
    for word, other in zip(columns.ids, words, strict=True):
        same &= word[lines] == other[found]
    found_lines: Places = lines[same]
    return found_lines
