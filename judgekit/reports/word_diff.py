"""Which words of two answers differ, so that a page can mark them."""

import re
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher

MOST_PRODUCT = 400_000
"""Words of a times words of b, without a common beginning and end; the search grows with the product."""

_ALONE = "\u0e00-\u0e7f\u3040-\u30ff\u3400-\u9fff"
"""Thai, kana and Chinese characters, which stand without spaces between words."""

_PIECE = re.compile(rf"(?:[{_ALONE}]|[^\W{_ALONE}]+|[^\w\s])\s*|\s+")
"""A word or a sign with the space behind it; of scripts without spaces one character."""

Piece = tuple[bool, str]
"""Whether the other answer does not have the text, and the text."""


def word_diff(a: str, b: str) -> tuple[list[Piece], list[Piece]] | None:
    """Both answers in pieces, the words that the other does not have marked; spaces make no difference.

    Source: the longest matching blocks of Ratcliff and Obershelp, by `difflib`.

    Returns:
        The pieces of a and of b, each of which make up the whole text; None if what differs is too long.
    """
    first, second = _PIECE.findall(a), _PIECE.findall(b)
    keys_a, keys_b = ([piece.strip() for piece in pieces] for pieces in (first, second))
    n_head = _n_equal(keys_a, keys_b)
    n_tail = _n_equal(keys_a[n_head:][::-1], keys_b[n_head:][::-1])
    inner_a, inner_b = (keys[n_head : len(keys) - n_tail] for keys in (keys_a, keys_b))
    if len(inner_a) * len(inner_b) > MOST_PRODUCT:
        return None
    found = SequenceMatcher(None, inner_a, inner_b, autojunk=False).get_matching_blocks()
    blocks = [(start_a + n_head, start_b + n_head, size) for start_a, start_b, size in found]
    blocks = [(0, 0, n_head), *blocks, (len(first) - n_tail, len(second) - n_tail, n_tail)]
    return (
        list(_pieces(first, [(start, size) for start, _, size in blocks])),
        list(_pieces(second, [(start, size) for _, start, size in blocks])),
    )


def _n_equal(a: Sequence[str], b: Sequence[str]) -> int:
    """How many words are the same from the beginning on."""
    return next((n for n, (one, other) in enumerate(zip(a, b, strict=False)) if one != other), min(len(a), len(b)))


def _pieces(words: Sequence[str], blocks: Sequence[tuple[int, int]]) -> Iterator[Piece]:
    """The words outside and inside of the blocks that match, given as start and length."""
    at = 0
    for start, size in blocks:
        for is_own, text in ((True, "".join(words[at:start])), (False, "".join(words[start : start + size]))):
            if text:
                yield is_own, text
        at = start + size
