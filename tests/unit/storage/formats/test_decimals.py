"""Columns of decimals from bytes: each as Python reads it, or all left to Python."""

import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from judgekit.storage.formats.decimals import Places, Words, decimals_of, order_of


def column(texts: list[str]) -> tuple[Words, Places, Places]:
    """The cells of a column, in the midst of other bytes: words, starts, lengths."""
    data = ("9.9 " + " ".join(texts) + " 8").encode("latin-1") + b"\0" * 24
    lengths = np.array([len(text) for text in texts])
    words: Words = np.ndarray((len(data) - 7,), "<u8", data, 0, (1,))
    return words, 4 + np.cumsum(lengths + 1) - lengths - 1, lengths


def read(texts: list[str]) -> list[float] | None:
    found = decimals_of(*column(texts))
    return None if found is None else found.tolist()


DIGITS = st.text("0123456789", max_size=15)
PLAIN = (
    st.tuples(st.sampled_from(["", "-"]), DIGITS, st.sampled_from(["", "."]), DIGITS)
    .map("".join)
    .filter(lambda text: sum(map(str.isdigit, text)) in range(1, 16))
)


@given(st.lists(PLAIN, min_size=1, max_size=30))
def test_decimals_of_up_to_fifteen_digits_are_those_of_python_to_the_bit(texts: list[str]) -> None:
    found = read(texts)
    assert found is not None
    assert [(value, math.copysign(1, value)) for value in found] == [
        (float(text), math.copysign(1, float(text))) for text in texts
    ]


ODD = [
    "1e5",
    ".",
    "-",
    "+1",
    "1..2",
    "1.2.3",
    "nan",
    "inf",
    "0x10",
    "1_0",
    "-.",
    "--1",
    "1-",
    "a",
    "1:2",
    "1/2",
    "\xff1",
]
LONG = ["1234567890123456", "0.12345678901234567", "-1234567890.1234567", "12345678901234567890"]


@pytest.mark.parametrize("odd", [*ODD, *LONG])
@pytest.mark.parametrize("others", [[], ["1.5", "-2"]])
def test_a_column_with_anything_else_is_left_alone(odd: str, others: list[str]) -> None:
    assert read([*others, odd]) is None


@given(st.lists(st.one_of(PLAIN, st.text("0123456789.-+eE_ ,/:", min_size=1, max_size=18)), min_size=1, max_size=8))
def test_a_text_is_never_read_as_another_number_than_by_python(texts: list[str]) -> None:
    texts = [text.replace(" ", "") or "0" for text in texts]
    found = read(texts)
    if found is not None:
        assert found == [float(text) for text in texts]


SHORT = st.tuples(st.integers(0, 9_999_999), st.text("0123456789", min_size=1, max_size=8)).map("{0[0]}.{0[1]}".format)
CLOSE = st.tuples(st.sampled_from(["9", "10", "11", "99", "100"]), st.text("019", min_size=1, max_size=3)).map(".".join)


@given(st.one_of(st.lists(SHORT, min_size=1, max_size=30), st.lists(CLOSE, min_size=1, max_size=30)))
def test_the_order_of_plain_decimals_is_that_of_the_floats(texts: list[str]) -> None:
    order = order_of(*column(texts))
    assert order is not None
    values = [float(text) for text in texts]
    assert order[0].tolist() == [one > before for before, one in pairwise(values)]
    assert order[1].tolist() == [one == before for before, one in pairwise(values)]


@pytest.mark.parametrize("odd", [*ODD, *LONG, "1", "01.5", "00.5", ".5", "-1.5", "12345678.5", "1.5e1"])
def test_the_order_of_a_column_with_anything_else_is_not_told(odd: str) -> None:
    assert order_of(*column(["2.5", odd, "1.5"])) is None


@given(st.lists(st.one_of(PLAIN, SHORT, st.text("0123456789.-", min_size=1, max_size=17)), min_size=2, max_size=4))
def test_an_order_that_is_told_is_never_another_than_that_of_the_floats(texts: list[str]) -> None:
    order = order_of(*column(texts))
    if order is not None:
        values = [float(text) for text in texts]
        assert order[0].tolist() == [one > before for before, one in pairwise(values)]
        assert order[1].tolist() == [one == before for before, one in pairwise(values)]
