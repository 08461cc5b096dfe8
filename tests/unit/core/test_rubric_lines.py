"""The rubric in a wording: found, and turned round."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judgekit.core.rubric_lines import find_rubric, reversed_rubric
from judgekit.storage.prompt_files import load_prompt, prompt_versions

SHIPPED = [(judge, version) for judge in ("groundedness", "correctness") for version in sorted(prompt_versions(judge))]


def begins_with_0(system: str) -> bool:
    lines = [line.strip()[:2] for line in system.split("\n")]
    return lines.index("0:") < lines.index("5:")


@pytest.mark.parametrize(("judge", "version"), SHIPPED)
def test_every_shipped_wording_has_one(judge: str, version: str) -> None:
    system = load_prompt(judge, version).system
    turned = reversed_rubric(system)
    assert turned is not None
    assert turned != system
    assert sorted(turned.split("\n")) == sorted(system.split("\n"))
    assert begins_with_0(turned) != begins_with_0(system)
    assert reversed_rubric(turned) == system


@pytest.mark.parametrize(
    "lines",
    [
        ["5: a", "4: b", "3: c", "2: d", "1: e", "0: f"],
        ["0. f", "1. e", "2. d", "3. c", "4. b", "5. a"],
        ["- 5 = a", "- 4 = b", "- 3 = c", "- 2 = d", "- 1 = e", "- 0 = f"],
        ["Score 5 - a", "Score 4 - b", "Score 3 - c", "Score 2 - d", "Score 1 - e", "Score 0 - f"],
        ["  5) a", "     and more of a", "  4) b", "  3) c", "  2) d", "  1) e", "  0) f", "     and more of f"],
    ],
)
def test_a_rubric_is_found_in_the_ways_that_people_write_it(lines: list[str]) -> None:
    text = "\n".join(["How to proceed:", "1. Read.", "2. Think.", *lines, "Then stop."])
    rubric = find_rubric(text)
    assert rubric is not None
    assert (rubric.start, rubric.n_lines) == (3, len(lines))
    turned = reversed_rubric(text)
    assert turned is not None
    assert turned.split("\n")[:3] == ["How to proceed:", "1. Read.", "2. Think."]
    assert turned.split("\n")[-1] == "Then stop."
    assert reversed_rubric(turned) == text


@pytest.mark.parametrize(
    "text",
    [
        "",
        "1. Read.\n2. Think.\n3. Write.",
        "5: a\n4: b\n2: d\n1: e\n0: f",
        "5: a\n4: b\n3: c\n2: d\n1: e\n0: f\n\n5: a\n4: b\n3: c\n2: d\n1: e\n0: f",
    ],
)
def test_without_one_rubric_nothing_is_turned(text: str) -> None:
    assert find_rubric(text) is None
    assert reversed_rubric(text) is None


@given(st.text(alphabet="0123456: .a\n"))
def test_turning_twice_gives_the_text_back(text: str) -> None:
    turned = reversed_rubric(text, 0, 2)
    assert turned is None or reversed_rubric(turned, 0, 2) in (text, None)
