"""Which words differ: everything stays, and only what differs is marked."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judgekit.reports.word_diff import word_diff

texts = st.text(alphabet="ab .\n", max_size=40)


@given(texts, texts)
def test_both_texts_are_whole_and_what_is_not_marked_is_the_same(a: str, b: str) -> None:
    found = word_diff(a, b)
    assert found is not None
    assert tuple("".join(text for _, text in side) for side in found) == (a, b)
    first, second = ("".join(text for is_own, text in side if not is_own) for side in found)
    assert "".join(first.split()) == "".join(second.split())


@pytest.mark.parametrize(
    ("a", "b", "marked"),
    [
        ("It is hot.", "It is cold.", ("hot", "cold")),
        ("one two", "one two", ("", "")),
        ("", "all new", ("", "all new")),
        ("a b c", "a c", ("b ", "")),
        ("It is hot", "It is hot today", ("", "today")),
        ("one\ntwo", "one two", ("", "")),
        ("5.", "5 .", ("", "")),
        ("猫は家に居る。", "犬は家に居る。", ("猫", "犬")),
        ("w " * 3000 + "old", "w " * 3000 + "new", ("old", "new")),
    ],
)
def test_words_are_marked_as_wholes(a: str, b: str, marked: tuple[str, str]) -> None:
    found = word_diff(a, b)
    assert found is not None
    assert tuple("".join(text for is_own, text in side if is_own) for side in found) == marked


def test_texts_that_would_take_too_long_are_not_searched() -> None:
    assert word_diff("a " * 700, "b " * 700) is None
