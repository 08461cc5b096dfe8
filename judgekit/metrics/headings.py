"""Headings that are given as one text: where it is split, and what looks like the same path split elsewhere."""

import re
from collections.abc import Iterable, Sequence
from functools import cache
from typing import TypeVar

from judgekit.core.cases import Anchor, Case, SystemOutput
from judgekit.core.text import normalise_path
from judgekit.metrics.anchors import SEPARATOR, heading_parts

KNOWN = (">", " / ", " :: ")
"""Delimiters beside ` > ` that are recognised where the gold headings use one of them throughout."""

AnchorT = TypeVar("AnchorT", bound=Anchor)

_ANY = re.compile(r"\s*(?:>|/|::|»|›|→|\||\\)\s*")
"""Everything that people write between headings."""


def recognised_delimiter(texts: Iterable[str]) -> str | None:
    """The delimiter of heading texts other than ` > `, where they use one throughout; None: ` > `, or none is certain.

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
    hits = tuple(
        [hit.model_copy(update={"heading_path": _listed(hit.heading_path, delimiter)}) for hit in output.retrieved]
    )
    return output.model_copy(update={"retrieved": hits, "references": _all_split(output.references, delimiter)})


def _all_split(anchors: Sequence[AnchorT], delimiter: str) -> tuple[AnchorT, ...]:
    return tuple([one.model_copy(update={"heading_path": _listed(one.heading_path, delimiter)}) for one in anchors])


def _listed(heading_path: tuple[str, ...] | str, delimiter: str) -> tuple[str, ...]:
    return _split(heading_path, delimiter) if isinstance(heading_path, str) else heading_path


def _split(text: str, delimiter: str) -> tuple[str, ...]:
    """The headings of one text; ` > ` always splits too."""
    return tuple([part for one in SEPARATOR.split(text) for part in _splitter(delimiter).split(one)])


@cache
def _splitter(delimiter: str) -> re.Pattern[str]:
    """White space around a delimiter is asked for where it is given, and may stand there where it is not."""
    bare = delimiter.strip()
    return re.compile(rf"(?<=\s){re.escape(bare)}(?=\s)" if bare != delimiter else rf"\s*{re.escape(bare)}\s*")


def looks_alike(gold: Anchor, rel_path: str | None, heading_path: tuple[str, ...] | str) -> bool:
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
