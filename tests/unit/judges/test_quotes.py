"""Quotes as evidence: how they are read, looked up and counted, and that prompt v1 knows nothing of them."""

import json
import tomllib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import judgekit.judges
from judgekit.core.components import Judge, discover
from judgekit.core.judgments import JudgeInput, ModelResponse, Quote, Verdict, VerdictError
from judgekit.core.prompts import PromptTemplate
from judgekit.core.scores import NotApplicable
from judgekit.judges.groundedness import Groundedness
from judgekit.judges.parsing import ParsedReply, parse_reply

discover(judgekit.judges, Judge)
JUDGE = Groundedness()
PROMPTS = Path(__file__).parents[3] / "prompts" / "groundedness"
RATE = "groundedness.quote_real_rate"


def prompt(version: str) -> PromptTemplate:
    return PromptTemplate.model_validate(tomllib.loads((PROMPTS / f"{version}.toml").read_text(encoding="utf-8")))


V1, V2 = prompt("v1"), prompt("v2")


def body(quotes: Any, **changes: Any) -> dict[str, Any]:
    plain = {"reasoning": "r", "supported_claims": ["a"], "unsupported_claims": [], "quotes": quotes, "score": 5}
    return {**plain, **changes}


def parsed(reply: dict[str, Any] | str, template: PromptTemplate = V2) -> ParsedReply:
    text = reply if isinstance(reply, str) else json.dumps(reply)
    return parse_reply(ModelResponse(text=text), JUDGE, reply_schema=template.reply_schema)


def test_the_released_wording_is_what_it_was() -> None:
    # printed by the first run of the shipped example; a change of v1 would change it
    assert V1.sha256.startswith("a86b029f")


def test_v2_asks_for_quotes_before_the_score() -> None:
    schema = V2.reply_schema
    assert schema["required"] == list(schema["properties"])
    assert schema["required"] == ["reasoning", "supported_claims", "unsupported_claims", "quotes", "score"]
    assert schema["properties"]["quotes"]["items"]["required"] == ["claim", "quote"]


def test_quotes_are_read_where_the_wording_asks_for_them() -> None:
    assert parsed(body([{"claim": "a", "quote": "b c"}])).verdict.quotes == (Quote(claim="a", quote="b c"),)
    assert parsed(body([], supported_claims=[])).verdict.quotes == ()


@pytest.mark.parametrize(
    ("quotes", "message"),
    [
        (None, "expected a list"),
        ("b", "expected a list"),
        (["b"], "not an object of 'claim' and 'quote'"),
        ([{"claim": "a"}], "not an object of 'claim' and 'quote'"),
        ([{"claim": "a", "quote": "b", "page": 1}], "not an object of 'claim' and 'quote'"),
        ([{"claim": "a", "quote": 1}], "texts only"),
        ([{"claim": "a", "quote": None}], "texts only"),
        ([{"claim": "a", "quote": " "}], "blank"),
        ([{"claim": "a", "quote": "..."}], "abbreviated"),
    ],
)
def test_a_list_of_quotes_that_is_none_is_no_verdict(quotes: Any, message: str) -> None:
    with pytest.raises(VerdictError, match=message) as caught:
        parsed(body(quotes))
    assert caught.value.kind == "invalid"


def test_a_reply_without_the_quotes_that_were_asked_for_is_no_verdict() -> None:
    reply = body([])
    del reply["quotes"]
    with pytest.raises(VerdictError, match="no 'quotes'"):
        parsed(reply)


@pytest.mark.parametrize("quotes", [None, "b", [{"claim": "a", "quote": "b"}], [1]])
def test_v1_reads_a_reply_as_before_whatever_it_says_of_quotes(quotes: Any) -> None:
    found = parsed(body(quotes), V1)
    assert (found.verdict.score, found.verdict.quotes, found.parse_path) == (5, None, "strict")


def test_quotes_of_an_object_without_commas_are_read_whole_or_refused() -> None:
    text = '{"reasoning": "r" "supported_claims": ["a"], "unsupported_claims": [], "quotes": QUOTES, "score": 5}'
    sound = parsed("Here: " + text.replace("QUOTES", '[{"claim": "a", "quote": "b"}]'))
    assert (sound.parse_path, sound.verdict.quotes) == ("object+repaired", (Quote(claim="a", quote="b"),))
    with pytest.raises(VerdictError):
        parsed("Here: " + text.replace("QUOTES", '[{"claim": "a", "quote": "b}]'))


PASSAGES = ["Kiln 4 is fired\n at 1240 degrees.", "Cafe\u0301 in Łódź. It closes at six."]


def checked(*quotes: str) -> Verdict:
    given = tuple([Quote(claim="a", quote=quote) for quote in quotes])
    judge_input = JudgeInput(
        case_id="1", judge="groundedness", variables={"passages": [{"text": text} for text in PASSAGES]}
    )
    return JUDGE.check_verdict(Verdict(score=5, supported_claims=("a",), quotes=given), judge_input)


@pytest.mark.parametrize(
    ("quote", "expected"),
    [
        ("fired at 1240 degrees", True),  # any white space is one space
        ("  fired   at\t1240 ", True),
        ("Café in Łódź", True),  # NFC: one character or two
        ("Kiln 4 is fired at 1240 degrees. Café", False),  # two passages are no passage
        ("kiln 4", False),  # case counts
        ("fired at 1240 degrees!", False),
        ("fired ... degrees", False),
        ('"fired at"', False),
        ("fired at 1250 degrees", False),
    ],
)
def test_a_quote_is_real_if_it_stands_in_one_passage_word_for_word(quote: str, expected: bool) -> None:
    verdict = checked(quote)
    assert [item.is_real for item in verdict.quotes or ()] == [expected]
    assert verdict.quote_flags == (() if expected else ("fabricated_quote",))


@given(st.data())
def test_any_piece_of_a_passage_is_real(data: st.DataObject) -> None:
    text = " ".join(PASSAGES[0].split())
    start = data.draw(st.integers(0, len(text) - 2))
    piece = text[start : data.draw(st.integers(start + 1, len(text)))]
    if piece.strip():
        assert checked(piece).n_real_quotes == 1


def test_the_rate_is_the_share_of_real_quotes() -> None:
    assert JUDGE.scores(checked("Kiln 4", "Kiln 5", "Kiln 6"))[RATE] == pytest.approx(1 / 3)
    assert JUDGE.scores(checked())[RATE] == NotApplicable("no quotes")
    assert JUDGE.scores(Verdict(score=5))[RATE] == NotApplicable("the prompt asks for no quotes")


def test_a_claim_without_a_quote_is_flagged() -> None:
    assert checked().quote_flags == ("missing_quote",)
    assert Verdict(score=5, supported_claims=("a",)).quote_flags == ()
