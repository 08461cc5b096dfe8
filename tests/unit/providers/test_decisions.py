"""Typed questions at `POST /v1/decisions`: both forms of it, and replies that are none."""

import asyncio
import json
from collections.abc import Callable
from typing import Any

import pytest

from judgekit.core.config import ModelConfig
from judgekit.core.errors import ConfigError
from judgekit.core.judgments import ModelRequest, ModelResponse
from judgekit.core.protocols import CallError, Capabilities
from judgekit.providers.decisions import Decisions, questions_of
from judgekit.testing import FaultServer, Reply, Request, decisions, error_reply

SCHEMA = {
    "type": "object",
    "properties": {
        "reasoning": {"type": "string"},
        "score": {"type": "integer", "enum": [1, 2, 3]},
        "polite": {"type": "boolean"},
        "voice": {"type": "string", "enum": ["on", "off"]},
        "level": {"anyOf": [{"type": "integer", "minimum": 0, "maximum": 1}, {"enum": ["cannot tell"]}]},
    },
}
CHANCES = {
    "ready": {"false": 0.1, "true": 0.9},
    "score": {"1": 0.2, "2": 0.3, "3": 0.5},
    "polite": {"false": 0.25, "true": 0.75},
    "voice": {"on": 0.4, "off": 0.6},
    "level": {"0": 0.1, "1": 0.7, "cannot tell": 0.2},
}


def openai(request: Request) -> Reply:
    """A server that takes OpenAI's form only."""
    if "id" in request.get("questions")[0]:
        return error_reply(400, "Unknown parameter: 'questions[0].id'.")
    return decisions(request, CHANCES)


def sglang(request: Request) -> Reply:
    """A server that takes SGLang's form only."""
    if "name" in request.get("questions")[0]:
        return error_reply(400, "questions.0.id: Field required")
    return decisions(request, CHANCES, label_mass=0.93)


def answered(responder: Any, schema: dict[str, Any] = SCHEMA, **model: Any) -> tuple[ModelResponse, dict[str, Any]]:
    """The response to one request, and the body that was sent."""
    with FaultServer(responder) as server:
        config = ModelConfig(provider="decisions", model="m-1", base_url=server.base_url, **model)

        async def ask() -> ModelResponse:
            provider = Decisions(config)
            try:
                takes = await provider.find_capabilities()
                return await provider.complete(request_for(takes, config, schema))
            finally:
                await provider.close()

        response = asyncio.run(ask())
        return response, dict(server.log.chat[-1].body or {})


def request_for(takes: Capabilities, config: ModelConfig, schema: dict[str, Any]) -> ModelRequest:
    return ModelRequest(
        provider="decisions",
        base_url=config.base_url,
        model=config.model,
        pinned_model=config.model,
        messages=({"role": "system", "content": "Judge."}, {"role": "user", "content": "the answer"}),
        parameters=takes.parameters(config),
        reply_schema=schema,
        prompt_sha256="p",
    )


@pytest.mark.parametrize(("responder", "mass"), [(openai, 1.0), (sglang, 0.93)])
def test_every_closed_value_is_one_question_of_one_request(responder: Callable[[Request], Reply], mass: float) -> None:
    response, _ = answered(responder)
    assert json.loads(response.text or "") == {
        "reasoning": "", "score": 3, "polite": True, "voice": "off", "level": 1,
    }  # fmt: skip
    assert response.stated is not None
    assert {name: found.by_option for name, found in response.stated.items()} == {
        name: pytest.approx(chances) for name, chances in CHANCES.items() if name != "ready"
    }
    assert {found.mass for found in response.stated.values()} == {mass}
    assert (response.served_model, response.finish_reason) == ("m-1", "stop")
    assert response.usage is not None and response.usage.is_whole and response.usage.completion_tokens == 0


def test_the_form_of_openai_sends_messages_predicates_scores_and_choices() -> None:
    _, body = answered(openai)
    assert body["input"] == [{"role": "system", "content": "Judge."}, {"role": "user", "content": "the answer"}]
    assert [question["type"] for question in body["questions"]] == ["score", "predicate", "choice", "choice"]
    assert body["questions"][0] == {
        "type": "score",
        "name": "score",
        "instructions": "What is `score`?",
        "levels": [{"label": "1"}, {"label": "2"}, {"label": "3"}],
    }
    assert body.keys() == {"model", "input", "questions"}, "nothing is sampled, so nothing of sampling is sent"


def test_the_form_of_sglang_sends_one_text_and_ids() -> None:
    _, body = answered(sglang, extra_body={"chat_template_kwargs": {"enable_thinking": False}})
    assert body["input"] == "Judge.\n\nthe answer"
    assert body["questions"][1] == {
        "type": "yes_no",
        "id": "polite",
        "question": "By the instructions above, `polite` is true.",
    }
    assert body["questions"][2]["options"] == [{"name": "on"}, {"name": "off"}]
    assert body["chat_template_kwargs"] == {"enable_thinking": False}


def test_a_question_that_the_model_declines_is_a_refusal() -> None:
    def declines(request: Request) -> Reply:
        reply = decisions(request, CHANCES)
        assert isinstance(reply.body, dict)
        if "ready" not in str(request.body):
            reply.body["answers"][1] = {"type": "refusal", "name": "polite"}
        return reply

    response, _ = answered(declines)
    assert (response.text, response.stated) == (None, None)
    assert response.refusal == "the model declined to answer a question"


@pytest.mark.parametrize(
    "spoil",
    [
        lambda body: body.pop("answers"),
        lambda body: body["answers"].pop(),
        lambda body: body["answers"].reverse(),
        lambda body: body["answers"][0].update(probabilities="high"),
        lambda body: body["answers"][0]["probabilities"].append(body["answers"][0]["probabilities"][0]),
        lambda body: body["answers"][1].update(probability=True),
        lambda body: body["answers"][1].update(probability="0.7"),
    ],
)
def test_a_reply_that_is_no_decision_is_a_server_error(spoil: Callable[[Any], Any]) -> None:
    def spoiled(request: Request) -> Reply:
        reply = decisions(request, CHANCES)
        if "ready" not in str(request.body):
            spoil(reply.body)
        return reply

    with pytest.raises(CallError, match="the reply is not a decision") as error:
        answered(spoiled)
    assert error.value.kind == "server_error"


def test_a_server_without_decisions_says_so_once() -> None:
    with pytest.raises(CallError, match="takes no form of decisions") as error:
        answered(lambda _: error_reply(400, "no such thing"))
    assert error.value.fatal


def test_each_criterion_of_a_list_is_a_question() -> None:
    item = {"id": {"enum": ["short", "true"]}, "evidence": {"type": "string"}, "met": {"type": "boolean"}}
    schema = {
        "properties": {"reasoning": {"type": "string"}, "criteria": {"type": "array", "items": {"properties": item}}}
    }

    def answer(request: Request) -> Reply:
        return decisions(request, {name: {"true": p, "false": 1 - p} for name, p in MET.items()})

    response, body = answered(answer, schema)
    assert [question["instructions"] for question in body["questions"]] == [
        "By the instructions above, the criterion `short` is met.",
        "By the instructions above, the criterion `true` is met.",
    ]
    assert json.loads(response.text or "") == {
        "reasoning": "",
        "criteria": [{"id": "short", "evidence": "", "met": False}, {"id": "true", "evidence": "", "met": True}],
    }


MET = {"ready": 0.9, "short": 0.2, "true": 0.7}


@pytest.mark.parametrize(
    "items", [{"type": "string"}, {"properties": {"id": {"type": "string"}, "met": {"type": "boolean"}}}]
)
def test_a_judge_that_asks_for_other_lists_is_refused(items: dict[str, Any]) -> None:
    schema = {"properties": {"claims": {"type": "array", "items": items}, "score": {"enum": [0, 1]}}}
    with pytest.raises(ConfigError, match="'claims' of the reply is not one"):
        list(questions_of(schema))


@pytest.mark.parametrize("schema", [{}, {"properties": {"reasoning": {"type": "string"}}}])
def test_a_wording_without_a_closed_value_is_refused(schema: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match="one of a fixed few"):
        list(questions_of(schema))


def test_what_only_has_a_meaning_for_text_is_refused_in_the_config() -> None:
    with pytest.raises(ConfigError, match="reply_format has no meaning"):
        Decisions(ModelConfig(model="m-1", reply_format="text")).check()
