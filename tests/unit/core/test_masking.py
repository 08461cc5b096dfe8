"""Secrets taken out of what a server says."""

import json

import pytest

from judgekit.core.masking import MaskedHeaders, Masker

KEY = "sk-Zq81/LmQp+77Ty"
QUOTED = 'tok"en\\Zq81LmQp'


@pytest.mark.parametrize(
    ("text", "masked"),
    [
        (f"a {KEY} b {KEY}", "a [key] b [key]"),
        (f"{KEY}{KEY}", "[key][key]"),
        (KEY[:8], "[key]"),
        (KEY[:7], KEY[:7]),
        (f"x{KEY[3:12].swapcase()}y", "x[key]y"),
        ("İ" + KEY + "ẞ", "İ[key]ẞ"),
        (KEY.replace("/", "\\/"), "[key]"),
        (KEY.replace("/", "\\\\\\/"), "[key]"),
        (KEY.replace("/", "\\u002F").replace("+", "\\u002b"), "[key]"),
        (KEY.replace("/", "%2f").replace("+", "%2B"), "[key]"),
        (KEY.replace("/", "%252F"), "[key]"),
        (KEY.replace("/", "&#47;").replace("+", "&#x2b;"), "[key]"),
        ("50% of \\u00e9t\\u00e9 & more", "50% of \\u00e9t\\u00e9 & more"),
        ("", ""),
    ],
)
def test_every_run_of_eight_characters_is_masked_however_it_is_written(text: str, masked: str) -> None:
    assert Masker([KEY, None, "none"]).text(text) == masked


@pytest.mark.parametrize("key", [KEY, QUOTED])
def test_texts_of_decoded_json_are_masked_and_names_too(key: str) -> None:
    masker = Masker([key])
    body = {"a": [key, 1, None, {key: True}], "b": f"- {key[2:]} -"}
    assert masker.may_stand_in(json.dumps(body).encode())
    assert masker.value(body) == {"a": ["[key]", 1, None, {"[key]": True}], "b": "- [key] -"}


def test_a_body_without_any_part_of_a_secret_needs_no_second_look() -> None:
    assert not Masker([KEY]).may_stand_in(b'{"content": "the oven is \\"hot\\""}')
    assert Masker([KEY]).may_stand_in(json.dumps({"a": KEY[4:12].upper()}).encode())
    assert Masker([KEY]).may_stand_in(b'{"a": "sk-Zq81\\/LmQp"}')
    assert not Masker(["none", None]).may_stand_in(KEY.encode())


def test_headers_are_masked_when_they_are_read() -> None:
    headers = MaskedHeaders([(b"X-Request-Id", f"r {KEY}".encode()), (b"a", b"1"), (b"A", b"\xff2")], Masker([KEY]))
    assert headers["x-request-id"] == headers.get("x-request-id") == "r [key]"
    assert headers["a"] == "\ufffd2"
    assert headers.get("b", "") == ""
    assert dict(headers) == {"x-request-id": "r [key]", "a": "\ufffd2"}


def test_long_and_hostile_texts_take_time_linear_in_their_length() -> None:
    masker = Masker([KEY])
    assert masker.text("\\" * 300_000 + "/" + KEY) == "\\" * 300_000 + "/[key]"
    assert masker.text(KEY[:8] * 20_000) == "[key]" * 20_000
    assert masker.text("%25" * 50_000 + KEY.replace("/", "%2F")) == "%25" * 50_000 + "[key]"


def test_what_is_nested_too_deeply_is_no_json_that_can_be_read() -> None:
    value: list[object] = []
    for _ in range(100_000):
        value = [value]
    with pytest.raises(ValueError, match="nested too deeply"):
        Masker([KEY]).value(value)
