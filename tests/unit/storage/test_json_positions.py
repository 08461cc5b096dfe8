"""Lines of places in a JSON text."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judgekit.storage.problems import line_of, repeated_keys

TEXT = r"""{
  "a": {"b": [10,
              {"c": "x, \"y\": [{"},
              {}], "\u0064 e": null},
  "f":
    -1.5e3
}"""


@pytest.mark.parametrize(
    ("path", "line"),
    [
        ((), 1),
        (("a",), 2),
        (("a", "b"), 2),
        (("a", "b", 0), 2),
        (("a", "b", 1), 3),
        (("a", "b", 1, "c"), 3),
        (("a", "b", 2), 4),
        (("a", "d e"), 4),
        (("f",), 6),
        (("missing",), 1),
        (("a", "b", 7), 2),
        (("a", "b", 1, "missing", "deeper"), 3),
    ],
)
def test_the_line_of_a_value_or_of_its_nearest_parent(path: tuple[str | int, ...], line: int) -> None:
    assert line_of(TEXT, path) == line


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('{"a": 1, "b": {"a": 2}, "c": [{"a": 1}, {"a": 2}]}', []),
        ('{"a": 1,\n"a": 2}', [(("a",), 1, 2)]),
        ('{"a": 1,\n"\\u0061": 2}', [(("a",), 1, 2)]),
        ('{"a": {"x": 1},\n"a": {"x": 2,\n"x": 3}}', [(("a",), 1, 2), (("a", "x"), 2, 3)]),
        ('[{"k": 1,\n"k": 2,\n"k": 3}]', [((0, "k"), 1, 2), ((0, "k"), 2, 3)]),
    ],
)
def test_keys_that_stand_twice_in_one_object(text: str, expected: list[Any]) -> None:
    assert repeated_keys(text) == expected


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=10,
)


def _places(value: Any, path: tuple[str | int, ...] = ()) -> list[tuple[str | int, ...]]:
    below = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path, *(place for key, item in below for place in _places(item, (*path, key)))]


@given(value=VALUES, ascii_only=st.booleans())
def test_every_value_has_a_line_and_no_parsed_object_repeats_a_key(value: Any, ascii_only: bool) -> None:
    text = json.dumps(value, indent=1, ensure_ascii=ascii_only)
    lines = [line_of(text, place) for place in _places(value)]
    # With one value a line, a value never stands above the one before it.
    assert lines == sorted(line for line in lines if line is not None)
    assert repeated_keys(text) == []
