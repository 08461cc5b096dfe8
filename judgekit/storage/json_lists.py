"""Ranks of gold ids in lists that are JSON: what the compiled loops do, in Python, where there are none."""

import re
from collections.abc import Callable, Sequence

import msgspec

from judgekit.storage.json_shapes import ERRORS, NotPlain

Ranks = tuple[int, ...] | None
"""Where gold stands; None where that is left to the reader of single records."""

_MOST_GOLD = 64
_SURELY_FINITE = re.compile(rb"(?=.{1,24}\Z)[-+.0-9]+(?:[eE][-+]?[0-9]{1,2})?")


class _Hit(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    """A hit whose document is its path, with no more than a text and a score."""

    doc_id: str
    rel_path: str
    text: str = ""
    score: msgspec.Raw = msgspec.Raw(b"0")


_entries = msgspec.json.Decoder(list[msgspec.Raw]).decode
_id = msgspec.json.Decoder(str).decode
_hit = msgspec.json.Decoder(_Hit).decode


def _id_of_hit(entry: msgspec.Raw) -> str:
    hit = _hit(entry)
    if hit.doc_id != hit.rel_path or not _SURELY_FINITE.fullmatch(bytes(hit.score)):
        raise NotPlain
    return hit.doc_id


def ranks_in_texts(
    gold: Sequence[Sequence[str]], texts: Sequence[bytes | msgspec.Raw], depth: int, with_hits: bool
) -> tuple[list[Ranks], list[int]]:
    """See `ranks_in_texts` of the kernel; gold ids are distinct."""
    read = _id_of_hit if with_hits else _id
    found = [_ranks(wanted, bytes(text), depth, read) for wanted, text in zip(gold, texts, strict=True)]
    return [ranks for ranks, _ in found], [n_hits for _, n_hits in found]


def _ranks(gold: Sequence[str], text: bytes, depth: int, read: Callable[[msgspec.Raw], str]) -> tuple[Ranks, int]:
    """Ranks in one list, and how many entries stand within the depth."""
    if len(gold) > _MOST_GOLD or not all(map(_is_plain, gold)):
        return None, 0
    try:
        entries = _entries(text)
        near = list(map(read, entries[:depth]))
    except ERRORS:
        return None, 0
    ranks = [rank for rank, one in enumerate(near, start=1) if one in gold]
    if not all(map(_is_plain, near)) or len({near[rank - 1] for rank in ranks}) < len(ranks):
        return None, 0
    if ranks or not any(_quoted(one) in text for one in gold):
        return tuple(ranks), len(near)
    first = _first_behind(gold, entries, len(near), read)
    return first, 0 if first is None else len(near)


def _first_behind(
    gold: Sequence[str], entries: list[msgspec.Raw], depth: int, read: Callable[[msgspec.Raw], str]
) -> Ranks:
    """The first rank behind the depth; what is odd there matters only if gold follows."""
    for rank, entry in enumerate(entries[depth:], start=depth + 1):
        try:
            one = read(entry)
        except ERRORS:
            one = ""
        if not _is_plain(one):
            rest = b",".join(entries[rank - 1 :])
            return None if any(_quoted(one) in rest for one in gold) else ()
        if one in gold:
            return (rank,)
    return ()


def _is_plain(one: str) -> bool:
    return one.isascii() and one[:1] > " "


def _quoted(one: str) -> bytes:
    return f'"{one}"'.encode()
