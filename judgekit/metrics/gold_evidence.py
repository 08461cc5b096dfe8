"""Where hits stand in a list, and which gold supports they match by file, heading and snippet.

Supports are prepared once for a case. A hit is only read as far as needed: its heading if the file is right, its text
if the heading is right too. Headings that are given as one text are split at ` > `, or where the gold splits its own.
"""

import re
from collections.abc import Iterable, Sequence
from functools import cache, lru_cache
from operator import itemgetter
from typing import Literal, NamedTuple, TypeVar

from judgekit.core.cases import Case, DocumentPlace, Hit, Support, SystemOutput
from judgekit.core.text import nfc, normalise_path

SnippetMode = Literal["if_text", "require", "ignore"]
"""`if_text`: checked if the hit has whole text; `require`: always; `ignore`: never."""

PlaceT = TypeVar("PlaceT", DocumentPlace, Support, Hit)

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
        delimiter: splits headings of hits that are one text, beside ` > `; those of the supports are split already.
    """

    __slots__ = ("_by_path", "_mode", "delimiter", "n_distinct")

    n_distinct: int
    """Number of supports, those equal in file, heading and snippets counted once."""

    def __init__(
        self, supports: Sequence[Support], mode: SnippetMode = "if_text", delimiter: str | None = None
    ) -> None:
        self._mode: SnippetMode = mode
        self.delimiter = delimiter
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

    def cited_by(self, references: Iterable[DocumentPlace]) -> set[int]:
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


def by_rank(hits: Sequence[Hit]) -> list[tuple[int, Hit]]:
    """(rank, hit) in ascending rank: the hit's own rank if given, else its 1-based position."""
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


KNOWN = (">", " / ", " :: ")
"""Delimiters beside ` > ` that are recognised if the gold headings use one of them throughout."""

_ANY = re.compile(r"\s*(?:>|/|::|»|›|→|\||\\)\s*")
"""Everything that people write between headings."""


def recognised_delimiter(texts: Iterable[str]) -> str | None:
    """The delimiter of heading texts other than ` > `, if they use one throughout; None: ` > `, or none is certain.

    Throughout: no text has another delimiter, and one without any is the first heading of one that has some.

    Args:
        texts: the gold headings that are given as one text.
    """
    distinct = {text for text in texts if text.strip()}
    used = {delimiter: [text for text in distinct if _splitter(delimiter).search(text)] for delimiter in KNOWN}
    found = [delimiter for delimiter, own in used.items() if own]
    if len(found) != 1 or any(SEPARATOR.search(text) for text in distinct):
        return None
    (delimiter,) = found
    firsts = {heading_parts(_split(text, delimiter))[:1] for text in used[delimiter]}
    rest = distinct.difference(used[delimiter])
    return delimiter if all(heading_parts(text) in firsts for text in rest) else None


def delimiter_of(cases: Iterable[Case]) -> str | None:
    """The delimiter that is recognised in the gold headings of cases."""
    return recognised_delimiter(text for case in cases for text in heading_texts(case))


def delimiter_notice(delimiter: str) -> tuple[str, str]:
    """That a delimiter was recognised."""
    text = f"all gold headings that are one text are split at {delimiter!r}, so those of hits are split there too"
    remedy = "where something else is meant, write heading_path as a list, or set match.heading_delimiter in a config"
    return ("heading_delimiter", f"{text}; {remedy}")


def heading_texts(case: Case) -> list[str]:
    """The headings of the gold supports that are given as one text."""
    return [support.heading_path for support in case.gold_supports if isinstance(support.heading_path, str)]


def split_case(case: Case, delimiter: str | None) -> Case:
    """The case with heading texts of its supports as lists; as it is without a delimiter."""
    if delimiter is None or not heading_texts(case):
        return case
    return case.model_copy(update={"gold_supports": _all_split(case.gold_supports, delimiter)})


def split_output(output: SystemOutput, delimiter: str | None) -> SystemOutput:
    """The output with heading texts of hits and references as lists; as it is without a delimiter."""
    if delimiter is None:
        return output
    hits, references = _all_split(output.retrieved, delimiter), _all_split(output.references, delimiter)
    return output.model_copy(update={"retrieved": hits, "references": references})


def _all_split(places: Sequence[PlaceT], delimiter: str) -> tuple[PlaceT, ...]:
    return tuple([one.model_copy(update={"heading_path": _listed(one.heading_path, delimiter)}) for one in places])


def _listed(heading_path: tuple[str, ...] | str, delimiter: str) -> tuple[str, ...]:
    return _split(heading_path, delimiter) if isinstance(heading_path, str) else heading_path


def _split(text: str, delimiter: str) -> tuple[str, ...]:
    """The headings of one text; ` > ` always splits too."""
    return tuple([part for one in SEPARATOR.split(text) for part in _splitter(delimiter).split(one)])


@cache
def _splitter(delimiter: str) -> re.Pattern[str]:
    """White space around a delimiter is needed if it is given, and may stand there if it is not."""
    bare = delimiter.strip()
    return re.compile(rf"(?<=\s){re.escape(bare)}(?=\s)" if bare != delimiter else rf"\s*{re.escape(bare)}\s*")


def looks_alike(gold: DocumentPlace, rel_path: str | None, heading_path: tuple[str, ...] | str) -> bool:
    """Whether a place does not match a gold support, but would if delimiters of headings did not count."""
    if rel_path is None or normalise_path(rel_path) != normalise_path(gold.rel_path):
        return False
    wanted, own = heading_parts(gold.heading_path), heading_parts(heading_path)
    if not wanted or not own or own[: len(wanted)] == wanted:
        return False
    pieces, others = _pieces(wanted), _pieces(own)
    return others[: len(pieces)] == pieces


def _pieces(parts: tuple[str, ...]) -> list[str]:
    return [piece for part in parts for piece in _ANY.split(part) if piece]
