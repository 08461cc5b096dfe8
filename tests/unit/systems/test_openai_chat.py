"""A model asked directly: what is sent, and what becomes of each reply."""

import json
from typing import Any

import pytest

from judgekit.core.cases import Case, SystemOutput
from judgekit.core.errors import ConfigError, ProviderError
from judgekit.engine import system_calls
from judgekit.systems.openai_chat import OpenaiChat
from judgekit.testing import FaultServer, chat_reply, refused_reply, server_error, truncated_reply
from tests.unit.systems.asking import failure, outputs_of

CASE = Case(id="q1", question="Who?")


@pytest.fixture(autouse=True)
def _no_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(system_calls, "FIRST_WAIT_SECONDS", 0.001)


def one(server: FaultServer, case: Case = CASE, **settings: Any) -> SystemOutput:
    wanted = {"model": "m-1", "base_url": server.base_url, "max_attempts": 1, **settings}
    return outputs_of(OpenaiChat(**wanted), [case])[case.id]


def sent(server: FaultServer) -> dict[str, Any]:
    """The body of the last request."""
    body: dict[str, Any] = server.log.chat[-1].body
    return body


def test_the_question_is_sent_and_the_reply_is_the_answer() -> None:
    with FaultServer(chat_reply("Nobody.")) as server:
        found = one(server, instructions="Be brief.")
        body = sent(server)
    assert found.answer == "Nobody."
    assert found.usage is not None
    assert found.usage.completion_tokens
    assert found.versions["model"]
    assert found.latency_seconds.keys() == {"generation", "total"}
    assert body["messages"] == [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Who?"}]
    assert not {"temperature", "seed", "response_format"} & body.keys()


def test_a_conversation_is_sent_message_by_message_and_settings_are_sent_where_they_are_set() -> None:
    case = Case.model_validate(
        {
            "id": "q1",
            "messages": [
                {"role": "user", "text": "Hello"},
                {"role": "assistant", "text": "Hi"},
                {"role": "user", "text": "Who?"},
            ],
        }
    )
    with FaultServer(chat_reply("Nobody.")) as server:
        one(server, case, temperature=0.7, seed=3, extra_body={"enable_thinking": False})
        body = sent(server)
    assert [message["content"] for message in body["messages"]] == ["Hello", "Hi", "Who?"]
    assert (body["temperature"], body["seed"], body["enable_thinking"]) == (0.7, 3, False)


def test_a_reply_that_is_cut_off_says_so_and_a_refusal_is_the_answer() -> None:
    with FaultServer([chat_reply("ok"), truncated_reply("Nobo")]) as server:
        assert one(server).metadata == {"finish_reason": "length"}
    with FaultServer([chat_reply("ok"), refused_reply("I can't help with that.")]) as server:
        assert one(server).answer == "I can't help with that."


def test_what_the_server_refuses_is_an_error_row_and_what_may_pass_is_asked_again() -> None:
    with FaultServer([chat_reply("ok"), server_error(), chat_reply("Nobody.")]) as server:
        assert one(server, max_attempts=2).answer == "Nobody."
    with FaultServer([chat_reply("ok"), server_error()]) as server:
        assert failure(one(server))[0] == "server_error"


def test_a_server_that_is_not_there_or_a_key_that_is_not_set_stops_the_run() -> None:
    with FaultServer() as server:
        address = server.base_url
    with pytest.raises(ProviderError, match="system openai_chat: "):
        outputs_of(OpenaiChat(model="m-1", base_url=address), [CASE])
    with pytest.raises(ConfigError, match="OPENAI_API_KEY is not set"):
        outputs_of(OpenaiChat(model="m-1"), [CASE], environment={})


def test_secrets_of_the_address_are_not_stored() -> None:
    system = OpenaiChat(model="m-1", base_url="https://h.example/v1?sig=s3cr3t-012345")
    assert "s3cr3t" not in json.dumps(system.settings())
