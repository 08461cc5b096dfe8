"""Texts of cases in the log of a CI job: none is a command there, and JSON says the same as before."""

import json
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judgekit.analysis.slices import slice_values
from judgekit.core.cases import Case
from judgekit.reports.ci_servers import annotation
from judgekit.reports.safe_text import json_text, printable, printable_line

COMMANDS = [
    "##[command]rm",
    "x ##[error]y",
    "##vso[task.setvariable variable=a]b",
    "##VSO[task.complete]",
    "##teamcity[buildStatus text='x']",
    "::error::x",
    "  ::set-output name=a::b",
    "a\n::add-mask::b",
    "section_start:1:x\r\x1b[0K",
]
MARKS = ("##[", "##vso[", "##teamcity[", "\r", "\x1b")


def is_command(text: str) -> bool:
    """Whether a line of a log would be taken for a command."""
    lines = text.split("\n")
    return any(mark in text.lower() for mark in MARKS) or any(line.strip().startswith("::") for line in lines)


@pytest.mark.parametrize("text", COMMANDS)
def test_attack_16_a_command_in_a_text_is_parted_in_the_terminal_and_in_annotations(text: str) -> None:
    assert is_command(text)
    for shown in (printable(text), printable_line(text), printable(f"| {text} | 0.5 |")):
        assert not is_command(shown)
    line = annotation("warning", text, text)
    assert line.startswith("::warning title=")
    assert not is_command(line.removeprefix("::warning"))
    assert "\n" not in line


def test_attack_16_names_with_colons_and_headings_stay_as_they_are() -> None:
    for text in ("std::vector<int>::size", "a::b", "## Heading", "C# [1]", "x :: y", "#[derive]"):
        assert printable(text) == text


@pytest.mark.parametrize("text", COMMANDS)
@pytest.mark.parametrize("indent", [None, 2])
def test_attack_16_json_holds_a_command_in_escapes(text: str, indent: int | None) -> None:
    document = {text: [text, {"a": text}]}
    shown = json_text(document, indent=indent)
    assert not is_command(shown)
    assert json.loads(shown) == document


@given(
    document=st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(st.characters(codec=None)),
        lambda inner: (
            st.lists(inner, max_size=3) | st.dictionaries(st.text(st.characters(codec=None)), inner, max_size=3)
        ),
        max_leaves=8,
    )
)
def test_attack_17_json_has_the_same_content_and_no_character_that_acts_on_a_terminal(document: object) -> None:
    shown = json_text({"x": document, "y": "\x7f\x85\x9b31m\u200e\u202e\u2066\u2028\ufeff\U000e0041é漢"})
    assert json.loads(shown) == {"x": document, "y": "\x7f\x85\x9b31m\u200e\u202e\u2066\u2028\ufeff\U000e0041é漢"}
    assert not {unicodedata.category(character) for character in shown} & {"Cc", "Cf", "Cs", "Co", "Zl", "Zp"}
    assert "é漢" in shown


def test_attack_14_values_that_are_no_texts_are_named_by_their_json() -> None:
    case = Case(
        id="1", question="q", metadata={"x": [None, "None", True, False, 1, 1.0, 1.5, {"b": None, "a": "é"}, ["z"]]}
    )
    # null is no value; 1 and 1.0 are one number.
    assert slice_values(case, "metadata.x") == ("None", "true", "false", "1", "1.5", '{"a": "é", "b": null}', '["z"]')
    assert slice_values(Case(id="1", question="q", metadata={"x": [None]}), "metadata.x") == ()
    assert slice_values(Case(id="1", question="q", metadata={"x": None}), "metadata.x") == ()
    assert slice_values(Case(id="1", question="q", metadata={"x": 2.0}), "metadata.x") == ("2",)
