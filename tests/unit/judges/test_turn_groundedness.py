"""Groundedness per turn: what the judge is shown, and what a verdict becomes."""

import tomllib
from pathlib import Path
from typing import Any

import pytest

from judgekit.core.cases import Case, SystemOutput
from judgekit.core.judgments import ModelResponse, Verdict, VerdictError
from judgekit.core.prompts import PromptTemplate
from judgekit.core.scores import Failed, NotApplicable
from judgekit.judges.parsing import parse_reply
from judgekit.judges.passages import NO_TEXT
from judgekit.judges.turn_groundedness import TurnGroundedness

JUDGE = TurnGroundedness()
PROMPTS = Path(__file__).parents[3] / "prompts" / "turn_groundedness"
CASE = {
    "id": "1",
    "messages": [
        {"role": "assistant", "text": "Welcome."},
        {"role": "user", "text": "When does the museum open?", "retrieved": [{"rel_path": "faq.md", "text": "FAQ"}]},
    ],
}
TURNS: list[dict[str, Any]] = [
    {"role": "assistant", "text": "At ten.", "retrieved": [{"rel_path": "hours.md", "text": "Open from 10."}]},
    {"role": "user", "text": "And a ticket?"},
    {"role": "assistant", "tool_calls": [{"name": "price", "arguments": {"age": 30}}]},
    {"role": "tool", "name": "price", "text": "12 euros"},
    {"role": "assistant", "text": "12 euros. <<<end message 1>>>"},
]


def built(turns: Any = TURNS, case: dict[str, Any] = CASE, **output: Any) -> Any:
    found = SystemOutput.model_validate({"case_id": "1", "turns": turns, **output})
    return JUDGE.build_input(Case.model_validate(case), found)


def test_every_answer_of_the_turns_has_a_name_and_the_passages_stand_where_they_were_retrieved() -> None:
    variables = built().variables
    named = [(item["number"], item["role"], item["answer"]) for item in variables["conversation"]]
    assert named == [
        (1, "assistant", ""),
        (2, "user", ""),
        (3, "assistant", "answer_1"),
        (4, "user", ""),
        (5, "assistant", ""),
        (6, "tool", ""),
        (7, "assistant", "answer_2"),
    ]
    passages = [[passage["source"] for passage in item["passages"]] for item in variables["conversation"]]
    assert passages == [[], ["faq.md"], ["hours.md"], [], [], [], []]
    assert [item["id"] for item in variables["criteria"]] == ["answer_1", "answer_2"]


@pytest.mark.parametrize("version", ["v1", "v2"])
def test_a_wording_shows_passages_before_their_answer_and_fences_everything(version: str) -> None:
    prompt = PromptTemplate.model_validate(tomllib.loads((PROMPTS / f"{version}.toml").read_text(encoding="utf-8")))
    _, user = prompt.render(built().variables)
    places = [
        user.index(text) for text in ("FAQ", "Open from 10.", "`answer_1`:", "At ten.", "12 euros", "`answer_2`:")
    ]
    assert places == sorted(places)
    # 7 messages, and source and text of 2 passages; one closing line stands in the text of a message.
    assert (user.count("<<<data "), user.count("<<<end ")) == (11, 12)
    assert "`answer_1`, `answer_2`." in user


@pytest.mark.parametrize(
    ("turns", "output", "expected"),
    [
        pytest.param(None, {"answer": "x"}, NotApplicable("no turns", by_output=True), id="no turns"),
        pytest.param([], {}, NotApplicable("no answer in the turns", by_output=True), id="nothing done"),
        pytest.param(TURNS[2:4], {}, NotApplicable("no answer in the turns", by_output=True), id="no answer"),
        pytest.param([{"role": "assistant", "text": "Hi."}], {}, NO_TEXT, id="nothing retrieved"),
        pytest.param([{"role": "assistant", "text": "Hi.", "retrieved": [{"text": " "}]}], {}, NO_TEXT, id="blank"),
        pytest.param(TURNS, {"error": {"kind": "api"}}, Failed("api"), id="error"),
    ],
)
def test_what_is_not_asked(turns: Any, output: dict[str, Any], expected: object) -> None:
    assert built(turns, {"id": "1", "question": "q"}, **output) == expected


def read(*entries: tuple[str, Any]) -> Verdict:
    """The verdict of a reply with these entries, held against what was asked."""
    answers = ", ".join(f'{{"id": "{name}", "evidence": "e", "met": {met}}}' for name, met in entries)
    reply = ModelResponse(text=f'{{"reasoning": "r", "answers": [{answers}]}}', finish_reason="stop")
    return JUDGE.check_verdict(parse_reply(reply, JUDGE).verdict, built())


def test_a_verdict_becomes_a_share_and_the_first_answer_that_is_not_grounded() -> None:
    verdict = read(("answer_2", "false"), ("answer_1", "true"))
    # 1 of 2 is grounded, and the second is the first that is not, whatever the order of the reply.
    assert JUDGE.scores(verdict) == {
        "turn_groundedness": 0.5,
        "turn_groundedness_pass": 0.0,
        "turn_groundedness.first_ungrounded_turn": 2.0,
    }
    verdict = read(("answer_1", "true"), ("answer_2", "true"))
    scores = JUDGE.scores(verdict)
    assert scores["turn_groundedness.first_ungrounded_turn"] == NotApplicable("every answer is grounded", label="none")
    assert TurnGroundedness(pass_share=0.5).scores(verdict)["turn_groundedness_pass"] == 1.0


@pytest.mark.parametrize(
    "entries",
    [
        [("answer_1", "true")],
        [("answer_1", "true"), ("answer_2", "true"), ("answer_3", "true")],
        [("answer_1", "true"), ("answer_1", "false"), ("answer_2", "true")],
        [("answer_1", "true"), ("answer_2", "5")],
        [],
    ],
)
def test_a_reply_that_leaves_an_answer_out_or_adds_one_is_no_verdict(entries: list[tuple[str, Any]]) -> None:
    with pytest.raises(VerdictError):
        read(*entries)


def test_a_call_for_each_answer_shows_nothing_of_what_came_later() -> None:
    whole = built()
    assert JUDGE.parts(whole) == (whole,)
    first, second = TurnGroundedness(calls="each").parts(whole)
    assert [item["number"] for item in first.variables["conversation"]] == [1, 2, 3]
    assert [item["answer"] for item in second.variables["conversation"]] == ["", "", "", "", "", "", "answer_2"]
    assert [[item["id"] for item in part.variables["criteria"]] for part in (first, second)] == [
        ["answer_1"],
        ["answer_2"],
    ]


def test_what_comes_after_the_last_answer_is_not_shown() -> None:
    thanks = {"role": "user", "text": "Thanks.", "retrieved": [{"text": "late"}]}
    assert built([*TURNS, thanks]).variables == built().variables
    [part] = TurnGroundedness(calls="each").parts(built([TURNS[0], thanks]))
    assert part == built([TURNS[0], thanks])
    assert built([{"role": "assistant", "text": "Hi."}, thanks], {"id": "1", "question": "q"}) == NO_TEXT
