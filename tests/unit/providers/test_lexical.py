"""The yes/no judges of the embedded baseline."""

import asyncio
import json
import re
import time
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judgekit.core.config import ModelConfig
from judgekit.core.judgments import ModelRequest
from judgekit.core.prompts import fence
from judgekit.core.protocols import CallError
from judgekit.providers.lexical import Lexical, judge_abstention, judge_conflict, quotes_of
from tests.readers import SHARED

NOMIRACL = SHARED.parent / "abstention_nomiracl_en.jsonl"


@pytest.mark.parametrize(
    ("answer", "plain", "strict"),
    [
        ("I don't know.", True, True),
        ("The passages do not say when the kiln was built.", True, True),
        ("Sorry, I could not find this in the notes.", True, True),
        # an explanation after it: the plain variant goes by the first sentence
        ("I don't know. The notes are about kilns in Oslo.", True, False),
        # found nothing of one thing, and an answer
        ("The kiln is fired at 1240 degrees. The notes do not say for how long.", False, False),
        ("I could not find the log, but the manual says 12.", False, False),
        ("It is 12.", False, False),
        ("No.", False, False),
        ("", False, False),
        ("The log names a kiln. I cannot answer this from the notes.", False, False),
        ("The notes do not describe a kiln at Ormsey. They name one in Oslo.", True, False),
        ("The log says 12, but I cannot say for sure.", False, False),
        ("Ask Odile.", False, False),  # declines in words that the rules do not know
    ],
)
def test_answers_that_decline(answer: str, plain: bool, strict: bool) -> None:
    assert judge_abstention(answer)["abstains"] is plain
    assert judge_abstention(answer, strict=True)["abstains"] is strict


@pytest.mark.parametrize(
    ("answer", "plain", "strict"),
    [
        ("The notes disagree: 12 or 14 metres.", True, True),
        ("The two notes do not agree.", True, True),
        ("There are conflicting dates.", True, True),
        ("The sources contradict each other.", True, True),
        ("The log says 12 metres while the survey says 14.", True, False),
        ("There is no conflict between the notes.", False, False),
        ("The sources don't contradict each other.", False, False),
        ("The survey says 14 metres.", False, False),
        ("The log says 12 and it was measured again.", False, False),
        ("", False, False),
    ],
)
def test_answers_that_state_a_conflict(answer: str, plain: bool, strict: bool) -> None:
    assert judge_conflict(answer)["states_conflict"] is plain
    assert judge_conflict(answer, strict=True)["states_conflict"] is strict


def test_quotes_are_the_closest_sentences_word_for_word() -> None:
    passages = ["The kiln is old. It is fired at 1240 degrees.", "Odile keeps the log."]
    assert quotes_of(["Odile keeps a log", "fired at 1240 degrees", "Xylophone"], passages) == [
        {"claim": "Odile keeps a log", "quote": "Odile keeps the log."},
        {"claim": "fired at 1240 degrees", "quote": "It is fired at 1240 degrees."},
    ]
    assert quotes_of(["a"], []) == []


@given(st.text(max_size=300), st.lists(st.text(max_size=200), max_size=3))
def test_any_text_is_judged_and_every_quote_is_in_a_passage(text: str, passages: list[str]) -> None:
    for strict in (False, True):
        assert isinstance(judge_abstention(text, strict=strict)["abstains"], bool)
        assert isinstance(judge_conflict(text, strict=strict)["states_conflict"], bool)
    assert all(any(quote["quote"] in passage for passage in passages) for quote in quotes_of([text], passages))


@pytest.mark.parametrize("piece", ["says ", "not ", "conflict ", "a. ", "I don't know "])
def test_long_texts_take_no_long_time(piece: str) -> None:
    text = piece * (100_000 // len(piece))
    started = time.process_time()
    judge_abstention(text)
    judge_conflict(text)
    assert time.process_time() - started < 5.0


@pytest.mark.skipif(not NOMIRACL.exists(), reason="no ../shared/data beside the repository")
@pytest.mark.parametrize(("strict", "at_least"), [(False, 0.99), (True, 0.9)])
def test_recorded_answers_that_begin_as_they_were_told_to_are_told_apart(strict: bool, at_least: float) -> None:
    """Models were told to reply "I don't know" or "Yes, answer is present"; other replies have no label."""
    right = n = 0
    for line in NOMIRACL.read_text(encoding="utf-8").splitlines():
        for answer in json.loads(line)["system_outputs"].values():
            opening = re.match(
                r"""\W*(?:(i don'?t know|i do not know)|yes,? (?:the )?answer is present)""", answer, re.I
            )
            if opening is not None:
                n += 1
                right += judge_abstention(answer, strict=strict)["abstains"] is (opening[1] is not None)
    assert n > 2000
    assert right / n >= at_least


WORDS = st.lists(st.sampled_from(["kiln", "hot", "Oslo", "1240", "the", "log"]), min_size=1, max_size=5).map(" ".join)


@given(claims=st.lists(WORDS, max_size=4), sentences=st.lists(WORDS, max_size=12))
def test_a_quote_is_the_first_sentence_that_shares_most_words(claims: list[str], sentences: list[str]) -> None:
    def content(text: str) -> set[str]:
        return set(text.split()) - {"the"}

    expected = []
    for claim in claims:
        shared = [len(content(claim) & content(sentence)) for sentence in sentences]
        if max(shared, default=0):
            expected.append({"claim": claim, "quote": f"{sentences[shared.index(max(shared))]}."})
    assert quotes_of(claims, [" ".join(f"{sentence}." for sentence in sentences)]) == expected


@pytest.mark.parametrize(
    "sentence",
    [lambda n: f"Kiln {n} is hot at {n * 7} degrees.", lambda n: f"Alice{n} met Bob{n}.", lambda _: "Kiln is hot."],
    ids=["numbered", "named", "the same"],
)
def test_attack_12_quotes_of_a_long_answer_take_time_linear_in_its_length(sentence: Callable[[int], str]) -> None:
    claims = [sentence(n) for n in range(5000)]  # some 100 kB; the time of all pairs is half a minute
    started = time.process_time()
    found = quotes_of(claims, [" ".join(claims)])
    assert time.process_time() - started < 5
    assert [item["quote"] for item in found] == claims


def test_attack_12_a_long_prompt_of_the_embedded_judge_has_a_time_limit() -> None:
    text = "Kiln 4 is hot at 1240 degrees. " * 4000
    request = ModelRequest(
        provider="lexical",
        base_url=None,
        model="overlap-2",
        pinned_model="overlap-2",
        messages=({"role": "user", "content": fence(text, "answer")},),
        parameters={},
        reply_schema={"properties": {"abstains": {}}},
        prompt_sha256="0",
    )
    in_time = Lexical(ModelConfig(provider="lexical", model="overlap-2"))
    assert json.loads(asyncio.run(in_time.complete(request)).text or "")["abstains"] is False
    late = Lexical(ModelConfig(provider="lexical", model="overlap-2", timeout_seconds=0.0001))
    with pytest.raises(CallError, match=r"no verdict within 0.0001 s") as caught:
        asyncio.run(late.complete(request))
    assert caught.value.kind == "timeout"
