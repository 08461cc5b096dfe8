"""Columns of decimals from bytes: each as Python reads it, or all left to Python."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from judgekit.storage.formats.decimals import decimals_of


def read(texts: list[str]) -> list[float] | None:
    """The numbers of a column, in the midst of other bytes."""
    data = ("9.9 " + " ".join(texts) + " 8").encode("latin-1") + b"\0" * 24
    words = np.ndarray((len(data) - 7,), "<u8", data, 0, (1,))
    lengths = np.array([len(text) for text in texts])
    found = decimals_of(words, 4 + np.cumsum(lengths + 1) - lengths - 1, lengths)
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
