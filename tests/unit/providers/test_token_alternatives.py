"""Asking for the alternatives of tokens, and reading them off a completion."""

import asyncio
from typing import Any

import pytest

from judgekit.core.config import ModelConfig
from judgekit.core.protocols import CallError, Capabilities
from judgekit.core.token_runs import Token
from judgekit.providers.completions import read_tokens
from judgekit.providers.openai_compatible import OpenAICompatible
from judgekit.testing import FaultServer, Reply, Request, chat_reply, error_reply, plausible_verdict


def entry(token: str, top: dict[str, float], own: float = -0.1, raw: bytes | None = None) -> dict[str, Any]:
    listed = [{"token": text, "logprob": value, "bytes": list(text.encode())} for text, value in top.items()]
    return {"token": token, "logprob": own, "bytes": list(raw or token.encode()), "top_logprobs": listed}


def test_tokens_come_with_their_alternatives() -> None:
    run = read_tokens({"content": [entry('{"', {'{"': -0.1}), entry("4", {"4": -0.2, "5": -1.7})]})
    assert run is not None
    assert run.tokens == (Token('{"', (('{"', -0.1),)), Token("4", (("4", -0.2), ("5", -1.7))))


def test_a_token_that_is_not_among_its_alternatives_is_added() -> None:
    run = read_tokens({"content": [entry("4", {"5": -0.2}, own=-2.5)]})
    assert run is not None and run.tokens[0].alternatives == (("4", -2.5), ("5", -0.2))


def test_parts_of_a_character_are_one_token_without_alternatives() -> None:
    first, second = "ü".encode()[:1], "ü".encode()[1:]
    parts = [entry("\\xc3", {"u": -1.0}, raw=first), entry("\\xbc", {}, raw=second), entry("r", {"r": -0.1})]
    run = read_tokens({"content": parts})
    assert run is not None
    assert run.tokens == (Token("ü"), Token("r", (("r", -0.1),)))


def test_without_bytes_the_text_of_a_token_counts() -> None:
    run = read_tokens({"content": [{"token": " 4", "logprob": -0.1, "top_logprobs": [{"token": "5", "logprob": -2}]}]})
    assert run is not None and run.tokens == (Token(" 4", ((" 4", -0.1), ("5", -2.0))),)


@pytest.mark.parametrize(
    "logprobs",
    [None, {}, {"content": None}, {"content": []}, {"tokens": ["a"], "token_logprobs": [-0.1]}, "high",
     {"content": [{"logprob": -1}]}, {"content": [{"token": "a", "logprob": "high"}]}],
)  # fmt: skip
def test_a_form_that_is_not_known_is_none(logprobs: Any) -> None:
    assert read_tokens(logprobs) is None


def found(responder: Any) -> tuple[int, list[Any]]:
    """How many alternatives a server is found to give, and what was asked of it."""
    with FaultServer(responder) as server:

        async def ask() -> int:
            provider = OpenAICompatible(ModelConfig(model="m-1", base_url=server.base_url))
            try:
                return await provider.find_top_logprobs(Capabilities())
            finally:
                await provider.close()

        n = asyncio.run(ask())
        return n, [request.body["top_logprobs"] for request in server.log.chat if request.body]


def test_most_servers_give_twenty() -> None:
    assert found(plausible_verdict) == (20, [20])


def test_fewer_are_asked_for_if_twenty_are_refused() -> None:
    def at_most_five(request: Request) -> Reply:
        if request.get("top_logprobs") > 5:
            return error_reply(400, "top_logprobs must be between 0 and 5")
        return plausible_verdict(request)

    assert found(at_most_five) == (5, [20, 8, 5])


def test_a_server_that_refuses_them_gives_none() -> None:
    assert found(lambda _: error_reply(400, "logprobs is not supported with this model")) == (0, [20, 8, 5])


def test_a_server_that_leaves_them_out_gives_none() -> None:
    assert found(chat_reply('{"ready": true}')) == (0, [20])


def test_a_server_that_cannot_be_used_is_not_one_without_probabilities() -> None:
    with pytest.raises(CallError):
        found(error_reply(401, "wrong key"))
