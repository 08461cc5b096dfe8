"""The second wording of each judge: other words, the same material, the same reply."""

import tomllib
from typing import Any

import pytest

from judgekit.core.components import Judge
from judgekit.core.prompts import PromptTemplate, unfence
from judgekit.judges.abstention import Abstention
from judgekit.judges.conflict import Conflict
from judgekit.judges.correctness import Correctness
from tests.builders import REPOSITORY

JUDGES = [Correctness(), Abstention(), Conflict()]
VARIABLES: dict[str, Any] = {
    "question": "Where?",
    "answer": "In Oslo.",
    "reference_answers": ["Oslo", "Oslo, Norway"],
    "key_facts": ["It is in Oslo."],
    "passages": [{"number": 1, "source": "a.md", "text": "It is in Oslo."}],
}
# A change of a released wording would change these.
RELEASED = {"correctness": "3efbaf63", "abstention": "29d2fd94", "conflict": "2c145f31"}


def wording(judge: Judge, version: str) -> PromptTemplate:
    path = REPOSITORY / "prompts" / judge.name / f"{version}.toml"
    return PromptTemplate.model_validate(tomllib.loads(path.read_text(encoding="utf-8")))


def words(text: str) -> set[str]:
    """Runs of five words."""
    found = text.lower().split()
    return {" ".join(found[start : start + 5]) for start in range(len(found) - 4)}


@pytest.mark.parametrize("judge", JUDGES, ids=lambda judge: judge.name)
def test_a_second_wording_shows_the_same_material_and_asks_for_the_same_reply(judge: Judge) -> None:
    first, second = wording(judge, "v1"), wording(judge, "v2")
    assert (second.judge, second.version) == (judge.name, "v2")
    assert second.reply_schema == first.reply_schema
    assert tuple(second.reply_schema["required"]) == (*judge.verdict_keys, judge.decisive_key)
    shown = [sorted(unfence(prompt.render(VARIABLES)[1])) for prompt in (first, second)]
    assert shown[0] == shown[1]
    without = {**VARIABLES, "reference_answers": [], "key_facts": [], "passages": []}
    assert {name for name, _ in unfence(second.render(without)[1])} == {"question", "answer"}


@pytest.mark.parametrize("judge", JUDGES, ids=lambda judge: judge.name)
def test_a_second_wording_is_really_another_one(judge: Judge) -> None:
    first, second = (
        " ".join(prompt.render(VARIABLES)[0].split()) for prompt in (wording(judge, "v1"), wording(judge, "v2"))
    )
    shared = words(first) & words(second)
    # The lines that name the fences are shared.
    assert len(shared) < 0.1 * min(len(words(first)), len(words(second))), sorted(shared)


@pytest.mark.parametrize("judge", JUDGES, ids=lambda judge: judge.name)
def test_a_released_second_wording_is_what_it_was(judge: Judge) -> None:
    assert wording(judge, "v2").sha256.startswith(RELEASED[judge.name])
