"""Whole runs of prompt v2 of groundedness: quotes are kept, looked up and counted."""

import json
from pathlib import Path
from typing import Any

from judgekit.testing import Reply, chat_reply
from tests.workflows.engine import Ran, carried_out, is_capability_call

JUDGES = [{"name": "groundedness", "model": "m", "prompt_version": "v2"}]


def reply(*quotes: str, supported: int | None = None) -> str:
    claims = [f"claim {number}" for number in range(len(quotes) if supported is None else supported)]
    entries = [{"claim": "claim", "quote": quote} for quote in quotes]
    lists = {"supported_claims": claims, "unsupported_claims": [], "quotes": entries}
    return json.dumps({"reasoning": "r", **lists, "score": 5})


REPLIES = {
    "c0": reply("Kiln c0 is fired", "at 1240 degrees"),
    "c1": reply("Kiln c1 is fired", "at 1300 degrees"),
    "c2": reply(supported=1),
    "c3": json.dumps({"reasoning": "r", "supported_claims": [], "unsupported_claims": ["x"], "quotes": [], "score": 2}),
    "c4": json.dumps({"reasoning": "r", "supported_claims": ["x"], "unsupported_claims": [], "score": 5}),
    "c5": reply("Kiln c5"),
}


def play(request: Any) -> Reply:
    if is_capability_call(request.body):
        return chat_reply('{"ready": true}')
    [found] = [text for name, text in REPLIES.items() if f"Kiln {name} " in request.text]
    return chat_reply(found)


def test_quotes_are_held_against_the_passages(tmp_path: Path) -> None:
    ran = carried_out(tmp_path, play, judges=JUDGES)
    assert ran.error is None
    quotes = {name: item["verdict"] and item["verdict"]["quotes"] for name, item in ran.judgments.items()}
    assert [quote["is_real"] for quote in quotes["c0"]] == [True, True]
    assert [quote["is_real"] for quote in quotes["c1"]] == [True, False]
    assert quotes["c1"][1] == {"claim": "claim", "quote": "at 1300 degrees", "is_real": False}
    assert {name: item["flags"] for name, item in ran.judgments.items() if item["flags"]} == {
        "c1": ["fabricated_quote"],
        "c2": ["missing_quote"],
    }
    assert ran.judgments["c4"]["failure"] == {"kind": "invalid", "message": "the reply has no 'quotes'"}
    figure = ran.metrics["overall"]["groundedness.quote_real_rate"]
    # c0 1, c1 1/2, c5 1; c2 and c3 quote nothing; c4 has no verdict
    assert (figure["value"], figure["n"], figure["n_not_applicable"], figure["n_error"]) == (0.8333, 3, 2, 1)
    assert ran.metrics["judges"]["groundedness"]["flags"] == {"fabricated_quote": 1, "missing_quote": 1}


def test_v1_has_no_quotes(tmp_path: Path) -> None:
    ran = carried_out(tmp_path, None)
    figure = ran.metrics["overall"]["groundedness.quote_real_rate"]
    assert (figure["value"], figure["n"], figure["n_not_applicable"]) == (None, 0, 6)
    assert {item["verdict"].get("quotes") for item in ran.judgments.values()} == {None}


def test_the_embedded_baseline_quotes_what_is_there(tmp_path: Path) -> None:
    ran: Ran = carried_out(tmp_path, None, judges=JUDGES, models={"m": {"provider": "lexical", "model": "overlap-2"}})
    assert ran.error is None
    assert ran.metrics["overall"]["groundedness.quote_real_rate"]["value"] == 1.0
    assert ran.metrics["overall"]["groundedness.quote_real_rate"]["n"] == 6
