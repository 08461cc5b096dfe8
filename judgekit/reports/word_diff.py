"""Which words of two answers differ, so that a page can mark them."""

import re
from collections.abc import Iterator
from difflib import SequenceMatcher

MOST_PRODUCT = 400_000
"""Words of a times words of b; longer pairs are shown without marks, since the search grows with the product."""

_PIECE = re.compile(r"(?:\w+|[^\w\s])\s*|\s+")
"""A word or a sign with the space behind it, so that marks are not broken by spaces."""

Piece = tuple[bool, str]
"""Whether the text is in this answer only, and the text."""


def word_diff(a: str, b: str) -> tuple[list[Piece], list[Piece]] | None:
    """Both answers in pieces, the words that the other does not have marked.

    Source: the longest matching blocks of Ratcliff and Obershelp, by `difflib`.

    Returns:
        The pieces of a and of b, each of which make up the whole text; None if the answers are too long.
    """
    first, second = _PIECE.findall(a), _PIECE.findall(b)
    if len(first) * len(second) > MOST_PRODUCT:
        return None
    blocks = SequenceMatcher(None, first, second, autojunk=False).get_matching_blocks()
    sides: tuple[list[Piece], list[Piece]] = ([], [])
    at_a = at_b = 0
    for start_a, start_b, size in blocks:
        for side, words, begin, start in ((sides[0], first, at_a, start_a), (sides[1], second, at_b, start_b)):
            side += [(True, text) for text in _joined(words[begin:start])]
            side += [(False, text) for text in _joined(words[start : start + size])]
        at_a, at_b = start_a + size, start_b + size
    return sides


def _joined(words: list[str]) -> Iterator[str]:
    if words:
        yield "".join(words)
