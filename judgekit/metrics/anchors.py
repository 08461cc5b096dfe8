"""Where hits stand in a list, and which gold supports they match by file, heading and snippet.

Supports are prepared once for a case. A hit is only read as far as needed: its heading where the file is
right, its text where the heading is right too.
"""

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache
from operator import itemgetter
from typing import Literal, NamedTuple

from judgekit.core.cases import Anchor, Hit, Support
from judgekit.core.text import nfc, normalise_path

SnippetMode = Literal["if_text", "require", "ignore"]
"""`if_text`: checked where the hit has whole text; `require`: always; `ignore`: never."""

SEPARATOR = re.compile(r"(?<=\s)>(?=\s)")


@lru_cache(maxsize=4096)  # the hits of many cases share their headings
def heading_parts(heading_path: tuple[str, ...] | str) -> tuple[str, ...]:
    """Headings from the outermost inwards, as compared.

    A list is taken part by part, so that a title may hold `/` or ` > `; a string is split at each `>` with
    white space on both sides. Each part loses its leading `#`s, has white space folded and is NFC; empty
    parts are dropped; case counts.
    """
    if isinstance(heading_path, str):
        parts: Sequence[str] = SEPARATOR.split(heading_path) if ">" in heading_path else (heading_path,)
    else:
        parts = heading_path
    # White space is folded first, so that only spaces are left to strip beside the `#`s.
    cleaned = [" ".join(nfc(part).split()).lstrip("# ") for part in parts]
    return tuple([part for part in cleaned if part])


def fold_text(text: str) -> str:
    """The text as snippets are compared: NFC, case folded, each run of white space one space."""
    return " ".join(nfc(text).casefold().split())


class _Place(NamedTuple):
    """A gold support, prepared."""

    number: int
    """Index of the support in its case."""
    parts: tuple[str, ...]
    snippets: tuple[str, ...]


class GoldSupports:
    """The gold supports of one case, prepared for matching many hits and references.

    A hit matches a support if their files are equal and the support's headings are a prefix, part by part,
    of the hit's; an empty heading matches the whole file. A support with snippets also asks for one of them
    in the hit's text, as `mode` says. Blank snippets are left out.

    Args:
        supports: gold supports, in the order that indices count.
        mode: how snippets are checked.
    """

    __slots__ = ("_by_path", "_mode", "delimiter", "n_distinct")

    n_distinct: int
    """Number of supports, those equal in file, heading and snippets counted once."""
    delimiter: str | None
    """Where headings of hits that are one text are to be split beside ` > `; the supports are split already."""

    def __init__(self, supports: Sequence[Support], mode: SnippetMode = "if_text") -> None:
        self._mode: SnippetMode = mode
        self.delimiter = None
        self._by_path: dict[str, list[_Place]] = {}
        distinct: set[tuple[str, tuple[str, ...], frozenset[str]]] = set()
        for index, support in enumerate(supports):
            path = normalise_path(support.rel_path)
            parts = heading_parts(support.heading_path)
            snippets = tuple([folded for folded in map(fold_text, support.snippets) if folded])
            distinct.add((path, parts, frozenset(snippets)))
            place = _Place(index, parts, () if mode == "ignore" else snippets)
            self._by_path.setdefault(path, []).append(place)
        self.n_distinct = len(distinct)

    @property
    def paths(self) -> Iterable[str]:
        """The distinct normalised paths of the supports."""
        return self._by_path

    def matched_by(self, hit: Hit) -> list[int]:
        """Indices of the supports that the hit matches, ascending; empty for a hit without rel_path."""
        if hit.rel_path is None:
            return []
        places = self._by_path.get(normalise_path(hit.rel_path))
        if places is None:
            return []
        places = _at_heading(places, hit.heading_path)
        checked = [place for place in places if place.snippets]
        if not checked:
            return [place.number for place in places]
        if self._mode == "if_text" and (not hit.text or hit.text_truncated):
            return [place.number for place in places]
        text = fold_text(hit.text or "")
        return [
            place.number for place in places if not place.snippets or any(snippet in text for snippet in place.snippets)
        ]

    def cited_by(self, references: Iterable[Anchor]) -> set[int]:
        """Indices of the supports that some reference matches; a reference has no text to look into."""
        found: set[int] = set()
        for reference in references:
            places = self._by_path.get(normalise_path(reference.rel_path))
            if places is not None:
                found.update([place.number for place in _at_heading(places, reference.heading_path)])
        return found


def _at_heading(places: list[_Place], heading_path: tuple[str, ...] | str) -> list[_Place]:
    parts = heading_parts(heading_path)
    return [place for place in places if parts[: len(place.parts)] == place.parts]


def matches(support: Support, hit: Hit, mode: SnippetMode = "if_text") -> bool:
    """Whether one hit matches one support; for many of them, prepare `GoldSupports` once."""
    return bool(GoldSupports((support,), mode).matched_by(hit))


def by_rank(hits: Sequence[Hit]) -> list[tuple[int, Hit]]:
    """(rank, hit) in ascending rank: the hit's own rank where given, else its 1-based position."""
    ranked = [(position if hit.rank is None else hit.rank, hit) for position, hit in enumerate(hits, start=1)]
    ranked.sort(key=itemgetter(0))
    return ranked


def first_occurrences(ranked: Sequence[tuple[int, Hit]]) -> list[tuple[int, Hit]]:
    """The entries without the later occurrences of a chunk id, which cannot match a support or chunk.

    The others keep their ranks: nothing moves up. A hit without chunk id is never taken for a duplicate.
    """
    seen: set[str] = set()
    first: list[tuple[int, Hit]] = []
    for entry in ranked:
        chunk_id = entry[1].chunk_id
        if chunk_id is not None:
            if chunk_id in seen:
                continue
            seen.add(chunk_id)
        first.append(entry)
    return first
