"""Whole runs with `"scoring": "expected"`: token probabilities from the reply to the figures."""

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import judgekit
from judgekit.core.errors import ConfigError, ProviderError
from judgekit.testing import FaultServer, Reply, Request, chat_reply, decisions, error_reply, verdict, with_chances
from tests.builders import REPOSITORY, read_lines, write_suite
from tests.workflows.engine import Ran, again, carried_out, is_capability_call, resumed

CORRECTNESS = [{"name": "correctness", "model": "m", "scoring": "expected"}]
TONE = {"name": "tone", "ask": "Is the answer polite?", "model": "m", "scoring": "expected"}


def with_scores(chances: dict[str, float], score: int = 4) -> Any:
    """A server that gives every case this score, with these chances of each."""

    def answer(request: Request) -> Reply:
        n = request.get("top_logprobs", 0)
        if is_capability_call(request.body):
            reply = chat_reply('{"ready": true}')
            return with_chances(reply, "true", {"true": 0.9, "false": 0.1}, n) if n else reply
        reply = verdict(score, reasoning="4 of 5 parts are right")
        return with_chances(reply, str(score), chances, n) if n else reply

    return answer


def figures(ran: Ran) -> dict[str, Any]:
    overall: dict[str, Any] = ran.metrics["overall"]
    return overall


def scored(ran: Ran, name: str) -> dict[str, Any]:
    return {
        line["case_id"]: line["reason"] or line["value"]
        for line in read_lines(ran.folder / "scores.jsonl")
        if line["name"] == name
    }


def test_the_expected_score_stands_beside_the_written_one(tmp_path: Path) -> None:
    chances = {"4": 0.5, "5": 0.3, "0": 0.15, "four": 0.05}
    ran = carried_out(tmp_path, with_scores(chances), judges=CORRECTNESS, n_cases=3)
    assert ran.error is None
    judgment = ran.judgments["c0"]
    # shares of 0.95: 4 * 0.5 + 5 * 0.3 + 0 * 0.15 = 3.5
    assert judgment["verdict"]["probabilities"] == pytest.approx({"4": 0.5 / 0.95, "5": 0.3 / 0.95, "0": 0.15 / 0.95})
    assert judgment["verdict"]["probability_mass"] == pytest.approx(0.95)
    assert judgment["parameters"]["top_logprobs"] == 20
    assert judgment["flags"] == []
    assert figures(ran)["correctness"]["value"] == 4.0
    assert figures(ran)["correctness.expected"]["value"] == pytest.approx(3.5 / 0.95, abs=1e-4)
    assert scored(ran, "correctness.expected")["c0"] == pytest.approx(3.5 / 0.95)
    assert "correctness.expected" in (ran.folder / "summary.md").read_text()


def test_a_cached_reply_still_has_its_probabilities(tmp_path: Path) -> None:
    with FaultServer(with_scores({"4": 0.6, "5": 0.4})) as server:
        first = carried_out_at(tmp_path, server)
        n_asked = len(server.log.chat)
        second = again(first.config, server, run_id="again")
        assert len(server.log.chat) == n_asked
    assert second.judgments["c0"]["from_cache"] is True
    assert second.judgments["c0"]["verdict"] == first.judgments["c0"]["verdict"]
    assert figures(second)["correctness.expected"] == figures(first)["correctness.expected"]


def carried_out_at(folder: Path, server: FaultServer, **suite: Any) -> Ran:
    config = write_suite(folder, server.base_url, **{"judges": CORRECTNESS, "n_cases": 2, **suite})
    return again(config, server)


def test_written_and_expected_scores_do_not_share_replies(tmp_path: Path) -> None:
    with FaultServer(with_scores({"4": 0.6, "5": 0.4})) as server:
        first = carried_out_at(tmp_path, server, judges=[{"name": "correctness", "model": "m"}])
        config = json.loads(first.config.read_text())
        first.config.write_text(json.dumps({**config, "judges": CORRECTNESS}))
        second = again(first.config, server, run_id="expected")
        bodies = [entry.body for entry in server.log.chat if entry.body and not is_capability_call(entry.body)]
    assert second.error is None
    assert ["logprobs" in body for body in bodies] == [False, False, True, True]
    assert figures(first)["correctness"] == figures(second)["correctness"]


def test_a_yes_no_judge_gets_the_probability_of_yes(tmp_path: Path) -> None:
    def answer(request: Request) -> Reply:
        n = request.get("top_logprobs", 0)
        text = '{"ready": true}' if is_capability_call(request.body) else '{"reasoning": "it is true", "answer": true}'
        reply = chat_reply(text)
        return with_chances(reply, "true", {"true": 0.8, "false": 0.2}, n) if n else reply

    ran = carried_out(tmp_path, answer, judges=[{**TONE, "yes_no": {"pass": "yes"}}], n_cases=3)
    assert figures(ran)["tone"]["value"] == 1.0
    assert figures(ran)["tone.p_yes"]["value"] == pytest.approx(0.8)


def test_a_label_judge_keeps_the_probability_of_each_label(tmp_path: Path) -> None:
    def answer(request: Request) -> Reply:
        n = request.get("top_logprobs", 0)
        text = '{"ready": true}' if is_capability_call(request.body) else '{"reasoning": "", "label": "on"}'
        value, chances = ("true", {"true": 1.0, "x": 1e-9}) if "ready" in text else ("on", {"on": 0.7, "off": 0.3})
        reply = chat_reply(text)
        return with_chances(reply, value, chances, n) if n else reply

    ran = carried_out(tmp_path, answer, judges=[{**TONE, "labels": {"on": "fits", "off": "does not"}}], n_cases=2)
    assert ran.judgments["c0"]["verdict"]["probabilities"] == pytest.approx({"on": 0.7, "off": 0.3})
    assert "tone.expected" not in figures(ran) and "tone.p_yes" not in figures(ran)


def test_too_little_probability_on_the_scale_is_a_failure_of_the_figure_alone(tmp_path: Path) -> None:
    ran = carried_out(tmp_path, with_scores({"4": 0.5, "5": 0.2}), judges=CORRECTNESS, n_cases=2)
    assert ran.judgments["c0"]["flags"] == ["probabilities_low_mass"]
    assert ran.judgments["c0"]["verdict"]["probability_mass"] == pytest.approx(0.7)
    assert scored(ran, "correctness.expected") == {"c0": "failed: low_mass", "c1": "failed: low_mass"}
    assert figures(ran)["correctness"]["value"] == 4.0
    assert (figures(ran)["correctness.expected"]["value"], figures(ran)["correctness.expected"]["n_error"]) == (None, 2)


def test_tokens_of_something_else_are_a_flag_and_no_number(tmp_path: Path) -> None:
    right = with_scores({"4": 0.6, "5": 0.4})

    def answer(request: Request) -> Reply:
        reply: Reply = right(request)
        if is_capability_call(request.body) or not isinstance(reply.body, dict):
            return reply
        choice = {**reply.body["choices"][0]}
        choice["message"] = {**choice["message"], "content": '{"reasoning": "as I say", "score": 3}'}
        return replace(reply, body={**reply.body, "choices": [choice]})

    ran = carried_out(tmp_path, answer, judges=CORRECTNESS, n_cases=2)
    assert ran.judgments["c0"]["flags"] == ["probabilities_misplaced"]
    assert "probabilities" not in ran.judgments["c0"]["verdict"]
    assert set(scored(ran, "correctness.expected").values()) == {"failed: no_probabilities"}
    assert figures(ran)["correctness"]["value"] == 3.0


@pytest.mark.parametrize("how", ["refused", "left out"])
def test_a_server_without_token_probabilities_stops_the_run_before_the_first_case(tmp_path: Path, how: str) -> None:
    def answer(request: Request) -> Reply:
        if how == "refused" and request.get("logprobs"):
            return error_reply(400, "Unsupported parameter: 'logprobs' is not supported with this model.")
        return chat_reply('{"ready": true}') if is_capability_call(request.body) else verdict(4)

    ran = carried_out(tmp_path, answer, judges=CORRECTNESS)
    assert isinstance(ran.error, ProviderError)
    assert "gives no token probabilities (logprobs) of judge-2025-01-01" in str(ran.error)
    assert ran.asked == []


def test_the_embedded_judge_is_refused_in_the_config(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="provider lexical gives none"):
        judgekit.run(write_suite(tmp_path, judges=CORRECTNESS))


@pytest.mark.parametrize(
    ("judge", "said"),
    [
        ({"name": "correctness", "panel": {"models": ["m", "n"]}, "scoring": "expected"}, "a panel has no token"),
        ({"name": "correctness", "model": "m", "args": {"scoring": "expected"}}, "not into args"),
        ({**TONE, "criteria": {"a": "is short", "b": "is true"}}, "tone has criteria"),
        ({"name": "correctness", "model": "m", "scoring": "exact"}, "scoring"),
    ],
)
def test_what_cannot_have_one_deciding_value_is_refused(tmp_path: Path, judge: dict[str, Any], said: str) -> None:
    models = {name: {"model": "j-2025-01-01", "base_url": "http://127.0.0.1:9"} for name in ("m", "n")}
    with FaultServer() as server:
        ran = carried_out_at(tmp_path, server, judges=[judge], models=models)
    assert isinstance(ran.error, ConfigError) and said in str(ran.error)


def test_a_resumed_run_asks_for_the_same_tokens(tmp_path: Path) -> None:
    with FaultServer(with_scores({"4": 0.6, "5": 0.4})) as server:
        stopped = carried_out_at(tmp_path, server, n_cases=4, budget={"max_calls": 2}, model={"max_concurrency": 1})
        assert len(stopped.judgments) == 2
        config = json.loads(stopped.config.read_text())
        stopped.config.write_text(json.dumps({**config, "budget": {}}))
        ran = resumed(stopped)
    assert ran.error is None
    assert figures(ran)["correctness.expected"]["n"] == 4


def test_the_documented_wording_asks_for_the_verdict_alone(tmp_path: Path) -> None:
    page = (REPOSITORY / "docs" / "judges.md").read_text(encoding="utf-8")
    [wording] = re.findall(r'```toml\n(judge = "direct"\n.*?)```', page, re.DOTALL)
    (tmp_path / "prompts" / "direct").mkdir(parents=True)
    (tmp_path / "prompts" / "direct" / "v1.toml").write_text(wording, encoding="utf-8")
    judge = {"name": "direct", "model": "m", "scoring": "expected"}
    with FaultServer() as server:
        ran = carried_out_at(tmp_path, server, judges=[judge], prompts_dir="prompts", n_cases=6)
    assert ran.error is None
    assert json.loads(ran.judgments["c0"]["raw_reply"]).keys() == {"answer"}
    assert figures(ran)["direct.p_yes"]["n"] == 6


# Typed questions


def asks_for(chances: dict[str, dict[str, float]], *, form: str = "OpenAI", spoil: Any = None) -> Any:
    """A server of `POST /v1/decisions` in one form."""

    def answer(request: Request) -> Reply:
        (question,) = request.get("questions")
        if ("id" in question) != (form == "SGLang"):
            return error_reply(400, "Field required")
        name = question.get("name", question.get("id"))
        reply = decisions(request, {"ready": {"true": 0.9, "false": 0.1}, **chances}, label_mass=0.95)
        if spoil is not None and name != "ready":
            assert isinstance(reply.body, dict)
            spoil(reply.body["answers"])
        return reply

    return answer


@pytest.mark.parametrize(("form", "mass"), [("OpenAI", 1.0), ("SGLang", 0.95)])
def test_typed_questions_give_the_likeliest_score_and_the_expected_one(tmp_path: Path, form: str, mass: float) -> None:
    chances = {"score": {"0": 0.1, "1": 0.0, "2": 0.0, "3": 0.2, "4": 0.4, "5": 0.3}}
    ran = carried_out(
        tmp_path, asks_for(chances, form=form), judges=CORRECTNESS, model={"provider": "decisions"}, n_cases=3
    )
    assert ran.error is None
    assert ran.judgments["c0"]["verdict"]["probabilities"] == pytest.approx(chances["score"])
    assert ran.judgments["c0"]["verdict"]["probability_mass"] == mass
    assert ran.judgments["c0"]["parameters"] == {"response_format": f"decisions ({form})"}
    assert figures(ran)["correctness"]["value"] == 4.0
    # 3 * 0.2 + 4 * 0.4 + 5 * 0.3 = 3.7
    assert figures(ran)["correctness.expected"]["value"] == pytest.approx(3.7)


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (lambda answers: answers[0]["probabilities"][4].update(probability=0.1), "sum to 0.700, not to 1"),
        (lambda answers: answers[0]["probabilities"].pop(), "lack '5'"),
        (lambda answers: answers[0]["probabilities"][0].update(probability=-0.1), "hold -0.1"),
    ],
)
@pytest.mark.parametrize("scoring", ["written", "expected"])
def test_probabilities_that_are_none_are_a_failure_and_never_a_number(
    tmp_path: Path, spoil: Any, said: str, scoring: str
) -> None:
    chances = {"score": {"0": 0.1, "1": 0.0, "2": 0.0, "3": 0.2, "4": 0.4, "5": 0.3}}
    judges = [{**CORRECTNESS[0], "scoring": scoring}]
    ran = carried_out(
        tmp_path, asks_for(chances, spoil=spoil), judges=judges, model={"provider": "decisions"}, n_cases=2
    )
    failure = ran.judgments["c0"]["failure"]
    assert failure["kind"] == "invalid" and said in failure["message"]
    assert figures(ran)["correctness"]["value"] is None


def test_a_judge_of_claims_cannot_be_asked_by_typed_questions(tmp_path: Path) -> None:
    ran = carried_out(tmp_path, asks_for({}), model={"provider": "decisions"})
    assert isinstance(ran.error, ConfigError)
    assert "prompt groundedness/v1: the provider decisions" in str(ran.error)
    assert "'supported_claims' of the reply is not one" in str(ran.error)
    assert ran.server.log.chat == ()


def test_criteria_are_questions_of_one_request_and_give_an_expected_share(tmp_path: Path) -> None:
    chances = {"short": 0.2, "true": 0.7, "rude": 0.1, "ready": 0.9}

    def answer(request: Request) -> Reply:
        return decisions(request, {name: {"true": p, "false": 1 - p} for name, p in chances.items()})

    criteria = [
        {"id": "short", "text": "It is short."},
        {"id": "true", "text": "It is true.", "weight": 3},
        {"id": "rude", "text": "It is rude.", "weight": -1},
    ]
    judge = {**TONE, "criteria": criteria}
    ran = carried_out(tmp_path, answer, judges=[judge], model={"provider": "decisions"}, n_cases=2)
    assert ran.error is None
    assert len(ran.server.log.chat) == 3  # what it takes, and two cases
    assert ran.judgments["c0"]["verdict"]["probabilities"] == pytest.approx({"short": 0.2, "true": 0.7, "rude": 0.1})
    # written: `true` alone is met, 3 of 4. Expected: (0.2 + 3 * 0.7 - 0.1) / 4 = 0.55
    assert figures(ran)["tone"]["value"] == 0.75
    assert figures(ran)["tone.expected"]["value"] == pytest.approx(0.55)
