"""Ids and texts as they are compared and stored."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judgekit.core.text import canonical_id, clean_text


@pytest.mark.parametrize(
    ("text", "clean"),
    [
        ("plain", "plain"),
        ("灯 é 😀 \u2028", "灯 é 😀 \u2028"),
        ("a\ud800b", "a\ufffdb"),
        ("\udfff\ud800", "\ufffd\ufffd"),
        ("\ud83d\ude00", "😀"),  # two halves of one character, as some encoders write it
        ("\ud83d\ude00\ud83d", "😀\ufffd"),
    ],
)
def test_lone_surrogates_are_replaced_and_pairs_are_joined(text: str, clean: str) -> None:
    assert clean_text(text) == clean


@given(st.text(alphabet=st.characters(codec=None)))
def test_a_clean_text_is_utf8_and_stays_as_it_is(text: str) -> None:
    clean = clean_text(text)
    assert clean.encode("utf-8").decode("utf-8") == clean == clean_text(clean)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (7, "7"),
        (-2, "-2"),
        (10**30, str(10**30)),
        ("7", "7"),
        ("07", "07"),
        (" 7", " 7"),
        ("Cafe\u0301", "Caf\u00e9"),
        ("a\ud800", "a\ufffd"),
        (1.5, 1.5),
        (None, None),
    ],
)
def test_ids_are_text_after_nfc_and_other_types_are_left_to_the_model(value: object, expected: object) -> None:
    assert canonical_id(value) == expected


@pytest.mark.parametrize("value", [True, False, "", " ", "\t\n\u2003"])
def test_flags_and_blanks_are_no_ids(value: object) -> None:
    with pytest.raises(ValueError, match="an id is"):
        canonical_id(value)


@given(st.text(min_size=1).filter(lambda text: not text.isspace()))
def test_an_id_is_canonical_once_it_went_through(text: str) -> None:
    assert canonical_id(canonical_id(text)) == canonical_id(text)
