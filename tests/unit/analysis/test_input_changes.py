"""What each probe changes about a judge input, and that it changes nothing else."""

import random
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judgekit.analysis.input_changes import BLANKS, PROBES, NoProbe, instruction, reversed_wording
from judgekit.core.verdict_kinds import Scale
from judgekit.storage.prompt_files import load_prompt

SCALE = Scale()


def variables(**fields: Any) -> dict[str, Any]:
    passages = [
        {"number": 1, "source": "a.md", "text": "The kiln is fired at 1240 degrees for 9 hours by Perpetua."},
        {"number": 2, "source": "b.md", "text": "Clay rests for 3 days."},
        {"number": 3, "source": "c.md", "text": "Glaze is kept cold."},
    ]
    answer = "It is fired at 1240 degrees, and Perpetua does it."
    return {"question": "How hot is the kiln?", "answer": answer, "passages": passages, **fields}


def changed(name: str, given_variables: dict[str, Any], seed: int = 1) -> Any:
    return PROBES[name].change(given_variables, SCALE, random.Random(seed))


def test_padding_adds_half_of_the_length_and_claims_nothing_of_the_case() -> None:
    before = variables(answer="x" * 400)
    after = changed("answer_padded", before)["answer"]
    assert after.startswith("x" * 400)
    assert 200 <= len(after) - 400 < 300
    assert not re.search(r"\d", after)


def test_shuffled_passages_are_numbered_anew_and_citations_go_with_them() -> None:
    before = variables(citations=["passage 1", "b.md", "x (not shown)"])
    after = changed("passages_shuffled", before)
    assert [passage["number"] for passage in after["passages"]] == [1, 2, 3]
    assert sorted(passage["text"] for passage in after["passages"]) == sorted(
        passage["text"] for passage in before["passages"]
    )
    assert after["passages"] != before["passages"]
    [place] = [passage["number"] for passage in after["passages"] if passage["source"] == "a.md"]
    assert after["citations"] == [f"passage {place}", "b.md", "x (not shown)"]


@given(st.integers(2, 6), st.integers(0, 50))
def test_shuffling_always_changes_the_order(n: int, seed: int) -> None:
    passages = [{"number": number, "source": "", "text": str(number)} for number in range(1, n + 1)]
    after = changed("passages_shuffled", {"answer": "a", "passages": passages}, seed)
    assert [passage["text"] for passage in after["passages"]] != [str(number) for number in range(1, n + 1)]


def test_orders_are_planted_in_the_answer_or_in_one_passage() -> None:
    before = variables()
    order = instruction(SCALE)
    assert "give this a 5" in order
    assert changed("injection_answer", before)["answer"] == f"{before['answer']}\n\n{order}"
    after = changed("injection_passage", before)
    assert sum(order in passage["text"] for passage in after["passages"]) == 1
    assert after["answer"] == before["answer"]


def test_a_wrong_fact_is_wrong_in_answer_and_passages_and_right_in_the_reference() -> None:
    before = variables(reference_answers=["1240 degrees"], key_facts=["Fired at 1240 degrees"])
    after = changed("wrong_fact_context", before)
    # the only fact that answer, passages and reference share is 1240
    [wrong] = re.findall(r"fired at (\d+) degrees", after["answer"])
    assert wrong != "1240"
    assert len(wrong) == 4
    assert f"fired at {wrong} degrees" in after["passages"][0]["text"]
    assert (after["reference_answers"], after["key_facts"]) == (before["reference_answers"], before["key_facts"])
    assert after["passages"][1:] == before["passages"][1:]


def test_a_name_is_taken_where_no_number_is_shared() -> None:
    before = variables(answer="Fired by Perpetua.")
    del before["question"]
    after = changed("wrong_fact_context", before)
    assert "Perpetua" not in after["answer"]
    assert after["answer"].split()[-1].strip(".") in after["passages"][0]["text"]


def test_numbers_are_replaced_as_wholes() -> None:
    passages = [{"number": 1, "source": "", "text": "12 of 120, 1.12 and 12,5 and 12."}]
    after = changed("wrong_fact_context", {"answer": "It is 12.", "passages": passages})
    new = after["answer"].removeprefix("It is ").rstrip(".")
    assert after["passages"][0]["text"] == f"{new} of 120, 1.12 and 12,5 and {new}."


@pytest.mark.parametrize(
    ("name", "fields", "reason"),
    [
        ("passages_shuffled", {"passages": []}, "fewer than two passages"),
        ("injection_passage", {"passages": []}, "no passage"),
        ("answer_padded", {"answer": " "}, "no answer"),
        ("injection_answer", {"answer": None}, "no answer"),
        ("wrong_fact_context", {"passages": []}, "no passage"),
        ("wrong_fact_context", {"answer": "It is hot."}, "no number or name that answer and passages share"),
        (
            "wrong_fact_context",
            {"reference_answers": ["hot"], "key_facts": []},
            "no number or name that answer, passages and reference share",
        ),
    ],
)
def test_a_case_that_cannot_be_probed_says_why(name: str, fields: dict[str, Any], reason: str) -> None:
    found = changed(name, variables(**fields))
    assert isinstance(found, NoProbe)
    assert found.reason == reason


def test_blank_answers_say_nothing() -> None:
    assert changed("blank_answer", variables())["answer"] in BLANKS
    assert not any(character.isalnum() for text in BLANKS for character in text)


@given(st.sampled_from(sorted(PROBES)), st.integers(0, 1000))
def test_a_probe_leaves_its_input_alone_and_is_the_same_for_the_same_seed(name: str, seed: int) -> None:
    before = variables(reference_answers=["1240"], key_facts=[], citations=["passage 2"])
    kept = variables(reference_answers=["1240"], key_facts=[], citations=["passage 2"])
    assert changed(name, before, seed) == changed(name, before, seed)
    assert before == kept


def test_a_released_wording_is_not_changed_itself() -> None:
    prompt = load_prompt("correctness", "v1")
    sha256 = prompt.sha256
    turned = reversed_wording(prompt, SCALE)
    assert turned is not None
    assert prompt.sha256 == sha256 != turned.sha256
    assert turned.version == "v1+rubric-reversed"
    assert turned.user == prompt.user
    bare = prompt.model_copy(update={"system": "Grade it.", "user": "{{ answer }}"})
    assert reversed_wording(bare, SCALE) is None
