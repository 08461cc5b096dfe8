"""Failure cases of the second list, what happens on the way to the judge: each id through a whole run."""

import gzip
import json
import zlib
from base64 import b64encode, urlsafe_b64encode
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, quote

import pytest

from judgekit.core.errors import ConfigError, ProviderError
from judgekit.core.judgments import Judgment
from judgekit.testing import FaultServer, Reply, Request, chat_reply, error_reply, rate_limited, raw_bytes
from tests.builders import write_suite
from tests.workflows.engine import Ran, after_capabilities, again, carried_out, good, is_capability_call, resumed

pytestmark = pytest.mark.usefixtures("quick_waits")

VERDICT = json.dumps({"reasoning": "as said", "supported_claims": ["hot"], "unsupported_claims": [], "score": 4})
KEY = "sk-zzzzAbCd/EfGh+123456"


def one_case(folder: Path, *replies: Any, **model: Any) -> Ran:
    """A run of one case whose requests get these replies in turn."""
    return carried_out(folder, after_capabilities(*replies), n_cases=1, model=model)


def event_stream(*events: Any, ending: str = "data: [DONE]\n\n") -> Reply:
    """A reply as a stream of events."""
    text = "".join(f"data: {json.dumps(event)}\n\n" for event in events) + ending
    return Reply(body=text, headers={"content-type": "text/event-stream"})


def json_lines(*items: Any, kind: str = "application/x-ndjson") -> Reply:
    """A reply as a stream of one JSON object a line."""
    return Reply(body="".join(json.dumps(item) + "\n" for item in items), headers={"content-type": kind})


def with_headers(reply: Reply, headers: dict[str, str]) -> Reply:
    """The reply with these headers."""
    return Reply(reply.status, reply.body, headers, fill=True)


def chunk(reason: str | None = None, index: int = 0, **delta: Any) -> dict[str, Any]:
    """A piece of a streamed completion."""
    choice = {"index": index, "delta": delta, "finish_reason": reason}
    return {"object": "chat.completion.chunk", "model": "judge-2025-01-01", "choices": [choice]}


def whole(content: str = VERDICT) -> dict[str, Any]:
    """A completion as one object."""
    message = {"role": "assistant", "content": content}
    return {"model": "judge-2025-01-01", "choices": [{"index": 0, "message": message, "finish_reason": "stop"}]}


PIECES = [VERDICT[at : at + 7] for at in range(0, len(VERDICT), 7)]
USAGE = {"prompt_tokens": 30, "completion_tokens": 12}


def everything_in(folder: Path) -> bytes:
    """All bytes of all files below a folder."""
    return b"\n".join(path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file())


@pytest.mark.slow
def test_t2_05_no_stream_is_asked_for(tmp_path: Path) -> None:
    ran = one_case(tmp_path, good())
    assert [entry.body["stream"] for entry in ran.server.log.chat] == [False, False]


@pytest.mark.parametrize(
    "reply",
    [
        pytest.param(
            event_stream(
                chunk(role="assistant", content=""),
                *(chunk(content=piece) for piece in PIECES),
                chunk("stop"),
                {"choices": [], "usage": USAGE, "model": "judge-2025-01-01"},
            ),
            id="deltas",
        ),
        pytest.param(
            event_stream(*(chunk(content=piece) for piece in PIECES), {**chunk("stop"), "usage": USAGE}, ending=""),
            id="no [DONE]",
        ),
        pytest.param(
            Reply(
                body="\ufeff: a comment\r\nevent: message\r\nid: 7\r\n"
                f"data:{json.dumps(chunk(content=VERDICT))}\r\n\r\n"
                f"data: {json.dumps({**chunk('stop'), 'usage': USAGE})}\r\n\r\ndata: [DONE]\r\n\r\n"
            ),
            id="other line ends, comments and ids",
        ),
        pytest.param(event_stream({**whole(), "usage": USAGE}), id="one whole completion as an event"),
        pytest.param(
            event_stream(
                *({"choices": [{"index": 0, "message": {"content": piece}}]} for piece in PIECES),
                {**chunk("stop"), "usage": USAGE},
            ),
            id="pieces called messages",
        ),
        pytest.param(
            Reply(body=json.dumps({**whole(), "usage": USAGE}) + "\n\ndata: [DONE]\n\n"), id="one object, then done"
        ),
        pytest.param(
            Reply(body=json.dumps({**whole(), "usage": USAGE}, indent=1) + "\ndata: [DONE]"), id="on the next line"
        ),
        pytest.param(
            event_stream(
                chunk(index=1, content='{"score": 1}'),
                *(chunk(content=piece) for piece in PIECES),
                chunk("stop", index=1),
                {**chunk("stop"), "usage": USAGE},
            ),
            id="two choices",
        ),
        pytest.param(
            json_lines(*(chunk(content=piece) for piece in PIECES), {**chunk("stop"), "usage": USAGE}),
            id="a line of JSON for each piece",
        ),
        pytest.param(
            Reply(body=": PROCESSING\n\n: PROCESSING\n\n" + json.dumps({**whole(), "usage": USAGE})),
            id="one object behind comments",
        ),
    ],
)
def test_t2_05_a_reply_that_is_a_stream_all_the_same_is_put_together(tmp_path: Path, reply: Reply) -> None:
    ran = one_case(tmp_path, reply)
    assert ran.only["verdict"]["score"] == 4
    assert ran.only["raw_reply"] == VERDICT
    assert ran.only["finish_reason"] == "stop"
    assert ran.only["served_model"] == "judge-2025-01-01"
    assert (ran.only["usage"]["prompt_tokens"], ran.only["usage"]["completion_tokens"]) == (30, 12)
    assert ran.only["n_requests"] == 1


def test_t2_05_the_calls_of_a_tool_are_put_together_from_a_stream(tmp_path: Path) -> None:
    def call(text: str, **more: Any) -> dict[str, Any]:
        return chunk(tool_calls=[{"index": 0, "function": {"arguments": text, **more}}])

    ran = one_case(tmp_path, event_stream(call("", name="submit"), *map(call, PIECES), chunk("tool_calls")))
    assert (ran.only["raw_reply"], ran.only["verdict"]["score"]) == (VERDICT, 4)


def test_t2_05_two_calls_of_a_tool_in_one_event_stay_two(tmp_path: Path) -> None:
    calls = [{"function": {"name": "submit", "arguments": VERDICT.replace("4", score)}} for score in "41"]
    body = whole()
    body["choices"][0]["message"] = {"content": None, "tool_calls": calls}
    ran = one_case(tmp_path, event_stream(body))
    assert ran.only["failure"]["kind"] == "ambiguous"


def test_t2_05_an_error_in_a_stream_is_told_as_one(tmp_path: Path) -> None:
    error = {"error": {"message": "upstream is busy", "code": 503}}
    ran = one_case(tmp_path, event_stream(chunk(content="{"), error), good())
    assert (ran.only["verdict"]["score"], ran.only["n_requests"]) == (4, 2)


def test_t2_05_a_stream_that_breaks_off_is_asked_for_again(tmp_path: Path) -> None:
    ran = one_case(tmp_path, event_stream(*(chunk(content=piece) for piece in PIECES[:3]), ending=""), max_attempts=2)
    assert ran.only["failure"]["kind"] == "server_error"
    assert f"ended before the reply did: {VERDICT[:21]}" in ran.only["failure"]["message"]
    assert ran.only["n_requests"] == 2


def test_t2_05_a_stream_that_cannot_be_read_is_tried_once_and_called_a_stream(tmp_path: Path) -> None:
    reply = Reply(body="data: {oops\n\ndata: [DONE]\n\n", headers={"content-type": "text/event-stream"})
    ran = carried_out(tmp_path, reply, n_cases=6)
    assert isinstance(ran.error, ProviderError)
    assert 'the server streams its reply in spite of "stream": false' in str(ran.error)
    assert len(ran.server.log.chat) == 1


@pytest.mark.parametrize(
    ("message", "remedy"),
    [
        (
            "parameter.enable_thinking must be set to false for non-streaming calls",
            '"extra_body": {"enable_thinking": false}',
        ),
        ("Unsupported value: 'reasoning_effort' does not support 'minimal'", '"reasoning_effort" of this model'),
        ("This model only support stream mode, please enable the stream parameter", "calls here are not streamed"),
    ],
)
def test_t2_06_the_error_names_the_key_that_mends_it(tmp_path: Path, message: str, remedy: str) -> None:
    ran = carried_out(tmp_path, error_reply(400, message, code="invalid_parameter_error"))
    assert isinstance(ran.error, ProviderError)
    assert f"HTTP 400: {message}" in str(ran.error)
    assert remedy in str(ran.error)
    assert len(ran.server.log.chat) == 1


def thinks_unless_told(request: Request) -> Reply:
    """A gateway in front of a thinking model, which wants to be told that it should not think."""
    if request.get("enable_thinking") is not False:
        return error_reply(400, "parameter.enable_thinking must be set to false for non-streaming calls")
    return chat_reply('{"ready": true}') if is_capability_call(request.body) else good()


def test_t2_06_further_fields_are_sent_stored_and_part_of_the_cache_key(tmp_path: Path) -> None:
    fields = {"enable_thinking": False, "provider": {"order": ["a"], "allow_fallbacks": False}, "num_ctx": 8192}
    with FaultServer(thinks_unless_told) as server:
        config = write_suite(tmp_path, server.base_url, n_cases=1, model={"extra_body": fields})
        first = again(config, server, run_id="first")
        assert first.only["verdict"]["score"] == 4
        assert {name: first.asked[0][name] for name in fields} == fields
        assert first.only["parameters"]["extra_body"] == fields

        same = again(config, server, run_id="same")
        assert same.only["from_cache"] is True

        more = write_suite(tmp_path, server.base_url, n_cases=1, model={"extra_body": {**fields, "num_ctx": 4096}})
        other = again(more, server, run_id="other")
        assert other.only["from_cache"] is False
        assert other.only["key"] != first.only["key"]


@pytest.mark.parametrize(
    ("field", "said"),
    [
        ({"messages": []}, "'messages' is set by judgekit itself"),
        ({"model": "x"}, "use the key 'model' of the model"),
        ({"Temperature": 1}, "'Temperature' is set by judgekit itself"),
        ({"stream": True}, "'stream' is set by judgekit itself"),
        ({"response_format": {"type": "text"}}, "use the key 'reply_format' of the model"),
        ({"n": 2}, "'n' is set by judgekit itself"),
        ({"max_tokens": 5}, "use the key 'max_output_tokens' of the model"),
        ({"reasoning_effort": "low"}, "use the key 'reasoning_effort' of the model"),
        ({"api_key": "abc"}, "api_key: a key does not belong here"),
        ({"a": {"b": [{"Authorization": "abc"}]}}, "a.b[0].Authorization: a key does not belong here"),
        ({"user": "sk-live-1234567890abcdef"}, "user: this looks like a key"),
        ({"a": float("nan")}, "expected a finite number, found nan"),
        ({"a": [1, float("inf")]}, "expected a finite number, found inf"),
        ({"a": 2**60}, "a whole number this large"),
    ],
)
def test_t2_06_fields_that_may_not_be_set_are_refused_with_the_key_to_use(
    tmp_path: Path, field: dict[str, Any], said: str
) -> None:
    ran = carried_out(tmp_path, good(), model={"extra_body": field})
    assert isinstance(ran.error, ConfigError)
    assert "models.m.extra_body" in str(ran.error)
    assert said in str(ran.error)
    assert "1234567890abcdef" not in str(ran.error)
    assert ran.server.log.totals.n_requests == 0


def test_t2_06_headers_carry_variables_whose_values_reach_no_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GATEWAY_KEY", "gw-Zx81LmQp77Ty")
    seen: list[dict[str, str]] = []

    def answer(request: Request) -> Reply:
        seen.append({name: request.headers.get(name, "") for name in ("api-key", "x-title", "x-auth")})
        if is_capability_call(request.body):
            return chat_reply('{"ready": true}')
        return error_reply(400, f"bad key {request.headers['x-auth'][-10:].upper()} for you")

    headers = {"api-key": "${GATEWAY_KEY}", "X-Title": "eval", "x-auth": "Token ${GATEWAY_KEY}"}
    ran = carried_out(tmp_path, answer, n_cases=1, model={"extra_headers": headers})
    wanted = {"api-key": "gw-Zx81LmQp77Ty", "x-title": "eval", "x-auth": "Token gw-Zx81LmQp77Ty"}
    assert seen == [wanted, wanted]
    assert ran.only["parameters"]["extra_headers"] == headers
    assert ran.only["failure"]["message"] == "HTTP 400: bad key [key] for you"
    assert b"zx81lmqp" not in everything_in(tmp_path / "results").lower()

    monkeypatch.delenv("GATEWAY_KEY")
    refused = again(ran.config, ran.server, run_id="refused")
    assert str(refused.error) == "models.m: environment variable GATEWAY_KEY is not set"


@pytest.mark.parametrize(
    ("headers", "said"),
    [
        ({"Authorization": "Bearer ${A}"}, "use the key 'api_key_env' of the model"),
        ({"content-type": "text/plain"}, "'content-type' is set by judgekit itself"),
        ({"api-key": "plain-secret-1"}, "api-key: write a secret as ${NAME}"),
        ({"x-token": "plain-secret-1"}, "x-token: write a secret as ${NAME}"),
        ({"x-info": "sk-plain-secret-1-abcdef"}, "x-info: write a secret as ${NAME}"),
        ({"x-info": "a\r\nhost: evil"}, "x-info: a value is visible ASCII text in one line"),
        ({"x info": "a"}, "'x info' is not the name of a header"),
        ({"X-A": "1", "x-a": "2"}, "'x-a' is there twice"),
    ],
)
def test_t2_06_headers_that_may_not_be_set_are_refused_without_showing_a_secret(
    tmp_path: Path, headers: dict[str, str], said: str
) -> None:
    ran = carried_out(tmp_path, good(), model={"extra_headers": headers})
    assert isinstance(ran.error, ConfigError)
    assert said in str(ran.error)
    assert "secret-1" not in str(ran.error)
    assert ran.server.log.totals.n_requests == 0


def test_t2_06_reasoning_effort_is_sent_stored_and_another_instrument(tmp_path: Path) -> None:
    with FaultServer(after_capabilities(good())) as server:
        runs = {}
        for effort in ("low", "high"):
            config = write_suite(tmp_path, server.base_url, n_cases=1, model={"reasoning_effort": effort})
            runs[effort] = again(config, server, run_id=effort)
        assert [entry.body["reasoning_effort"] for entry in server.log.chat] == ["low", "low", "high", "high"]
        assert runs["low"].only["parameters"]["reasoning_effort"] == "low"
        assert runs["low"].only["key"] != runs["high"].only["key"]
        builds = [Judgment.model_validate(runs[effort].only).build for effort in ("low", "high")]
        servers = [build.partition(",")[0] for build in builds if build is not None]
        assert builds == [f"{servers[0]},reasoning_effort=low", f"{servers[0]},reasoning_effort=high"]


def queries_of(seen: list[tuple[str, str, str]], script: Any) -> Callable[[Request], Reply]:
    """A responder that notes method, path and query of each chat request."""

    def answer(request: Request) -> Reply:
        seen.append((request.method, request.path, request.query))
        reply: Reply = script(request)
        return reply

    return answer


@pytest.mark.parametrize("slash", ["", "/"])
def test_t2_07_the_query_of_base_url_goes_with_every_request(tmp_path: Path, slash: str) -> None:
    seen: list[tuple[str, str, str]] = []
    with FaultServer(queries_of(seen, after_capabilities(good()))) as server:
        address = f"{server.base_url}{slash}?api-version=2024-10-21"
        ran = again(write_suite(tmp_path, address, n_cases=2), server)
        assert ran.error is None
        assert seen == [("POST", "/v1/chat/completions", "api-version=2024-10-21")] * 3
        assert ran.judgments["c0"]["key_parts"]["base_url"] == f"{server.base_url}?api-version=2024-10-21"


def test_attack_10_secrets_of_a_query_are_sent_and_reach_no_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SIGNATURE", "S1g/nat+ureX9")
    seen: list[tuple[str, str, str]] = []

    def answer(request: Request) -> Reply:
        if is_capability_call(request.body):
            return chat_reply('{"ready": true}')
        return error_reply(400, f"no such path: /v1?{request.query} (tok: PLAIN-TOKEN-77)")

    with FaultServer(queries_of(seen, answer)) as server:
        address = f"{server.base_url}?v=2&token=plain-token-77&sig=${{SIGNATURE}}"
        ran = again(write_suite(tmp_path, address, n_cases=1), server)
        sent = [("v", "2"), ("token", "plain-token-77"), ("sig", "S1g/nat+ureX9")]
        assert [parse_qsl(query) for _, _, query in seen] == [sent, sent]
        assert ran.only["key_parts"]["base_url"] == f"{server.base_url}?v=2&token=***&sig=${{SIGNATURE}}"
        assert "v=2&token=[key]&sig=[key] (tok: [key])" in ran.only["failure"]["message"]
        stored = everything_in(tmp_path / "results").lower()
        assert b"plain-token" not in stored
        assert b"nat" + b"%2bure" not in stored
        server.play(good())
        assert resumed(ran).only is not None


def test_attack_10_a_fragment_and_a_key_in_the_address_are_refused(tmp_path: Path) -> None:
    for address, said in (
        ("http://127.0.0.1:9/v1#part", "a fragment"),
        ("http://127.0.0.1:9/v1?api_key=abcdefgh1", "write api_key=${NAME_OF_THE_VARIABLE}"),
        ("http://${HOST}/v1", "${...} may stand for a value of the query only"),
    ):
        with pytest.raises(ConfigError, match="base_url") as caught:
            again_or_raise(write_suite(tmp_path, address))
        assert said in str(caught.value)
        assert "abcdefgh1" not in str(caught.value)


def again_or_raise(config: Path) -> None:
    """Run a suite; what is wrong with it is raised."""
    import judgekit

    judgekit.run(config, run_id="r")


@pytest.mark.parametrize(
    ("message", "param"),
    [
        ("`temperature` is deprecated for this model.", None),
        ("temperature: may only be set to 1 for this model", None),
        (
            "Unsupported value: does not support 0 with this model. Only the default (1) value is supported.",
            "temperature",
        ),
        ("Unsupported value: does not support 0 with this model. Only the default (1) value is supported.", None),
        ("invalid temperature: only 1 is allowed for this model", None),
    ],
)
def test_t2_14_a_refused_temperature_in_other_words_names_the_key_and_the_run_can_be_resumed(
    tmp_path: Path, message: str, param: str | None
) -> None:
    def answer(request: Request) -> Reply:
        if "temperature" in request.body:
            return error_reply(400, message, param=param)
        return chat_reply('{"ready": true}') if is_capability_call(request.body) else good()

    with FaultServer(answer) as server:
        config = write_suite(tmp_path, server.base_url, n_cases=2)
        ran = again(config, server)
        assert isinstance(ran.error, ProviderError)
        assert "refuses temperature 0" in str(ran.error)
        assert '"allow_provider_temperature": true' in str(ran.error)
        write_suite(tmp_path, server.base_url, n_cases=2, model={"allow_provider_temperature": True})
        mended = resumed(ran)
        assert mended.error is None
        assert {item["temperature_accepted"] for item in mended.judgments.values()} == {False}


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_t2_23_a_redirect_is_not_followed_and_its_target_is_named(tmp_path: Path, status: int) -> None:
    with FaultServer(good()) as elsewhere:
        target = f"{elsewhere.root_url}/v1/chat/completions"
        ran = carried_out(tmp_path, Reply(status, headers={"location": target}))
        assert isinstance(ran.error, ProviderError)
        assert f"HTTP {status}: redirected to {target}" in str(ran.error)
        assert f"set base_url to {elsewhere.base_url}" in str(ran.error)
        assert elsewhere.log.totals.n_requests == 0
        assert len(ran.server.log.chat) == 1


def test_attack_09_a_redirect_in_the_middle_of_a_run_stops_it_and_no_judged_text_leaves(tmp_path: Path) -> None:
    with FaultServer(good(1)) as elsewhere:
        moved = Reply(307, headers={"location": f"{elsewhere.base_url}/chat/completions"})
        ran = carried_out(tmp_path, after_capabilities(good(), moved), model={"max_concurrency": 1})
        assert isinstance(ran.error, ProviderError)
        assert [item["verdict"]["score"] for item in ran.judgments.values()] == [4]
        assert elsewhere.log.totals.n_requests == 0


def test_t2_23_a_relative_target_is_told_as_a_whole_address(tmp_path: Path) -> None:
    ran = carried_out(tmp_path, Reply(301, headers={"location": "/ok/v1/chat/completions"}))
    assert f"set base_url to {ran.server.root_url}/ok/v1" in str(ran.error)


@pytest.mark.parametrize(
    "echo",
    [
        KEY,
        KEY[8:],
        KEY[:10],
        KEY.upper(),
        KEY.replace("/", "\\/"),
        quote(KEY, safe=""),
        quote(quote(KEY, safe=""), safe=""),
        "".join(f"\\u{ord(character):04x}" for character in KEY),
        KEY.replace("/", "&#x2F;"),
        KEY.encode().hex(),
        f"...{KEY[5:20]}...",
    ],
)
def test_t2_49_a_key_is_masked_whole_in_part_and_escaped_wherever_a_server_says_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, echo: str
) -> None:
    monkeypatch.setenv("JUDGE_KEY", KEY)
    verdict = json.dumps({**json.loads(VERDICT), "reasoning": f"told {echo} so"})
    replies = [
        error_reply(400, f"bad key {echo} for project x", headers={"x-request-id": echo.replace("&#", "-")}),
        with_headers(chat_reply(verdict, fingerprint=echo, model="judge-2025-01-01"), {"x-portkey-provider": echo}),
        chat_reply(None, refusal=f"not for {echo}"),
        Reply(200, f"<p>{echo}</p>", {"content-type": "text/html"}),
        event_stream(chunk(content=f"a {echo[:4]}"), chunk(content=f"{echo[4:]} b"), ending=""),
        Reply(401, f"denied: {echo}"),
    ]
    script = after_capabilities(*replies)
    ran = carried_out(tmp_path, script, model={"api_key_env": "JUDGE_KEY", "max_concurrency": 1, "max_attempts": 1})
    assert isinstance(ran.error, ProviderError)
    assert len(ran.judgments) == 5
    assert ran.judgments["c1"]["verdict"]["reasoning"] == (
        "told [key] so" if "..." not in echo else "told ...[key]... so"
    )
    stored = everything_in(tmp_path / "results").decode("utf-8", "replace").lower() + str(ran.error).lower()
    for text in (stored, stored.replace("\\/", "/"), stored.replace("\\\\/", "/")):
        assert not any(KEY[at : at + 8].lower() in text for at in range(len(KEY) - 7))


def test_attack_07_a_key_written_with_escaped_slashes_is_masked_after_decoding(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JUDGE_KEY", KEY)
    body = json.dumps(whole(json.dumps({**json.loads(VERDICT), "reasoning": f"key {KEY}"}))).replace("/", "\\/")
    ran = one_case(tmp_path, Reply(body=body), api_key_env="JUDGE_KEY")
    assert ran.only["verdict"] is not None
    assert ran.only["verdict"]["reasoning"] == "key [key]"


@pytest.mark.parametrize("before", ["", "a:", "me:", "us3:"])
@pytest.mark.parametrize("encode", [b64encode, urlsafe_b64encode])
def test_t2_49_a_key_in_base64_is_masked_whatever_stands_before_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, before: str, encode: Callable[[bytes], bytes]
) -> None:
    monkeypatch.setenv("JUDGE_KEY", KEY)
    echo = encode(f"{before}{KEY}".encode()).decode()
    ran = one_case(tmp_path, error_reply(400, f"denied: Basic {echo}"), api_key_env="JUDGE_KEY")
    message = ran.only["failure"]["message"]
    assert "[key]" in message
    # At either end some letters hold bits of what stands beside the key.
    assert not any(echo[at : at + 10] in message for at in range(len(echo) - 9))


def test_t2_49_a_stand_in_for_a_key_is_a_word_that_replies_may_hold(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JUDGE_KEY", "none")
    ran = one_case(tmp_path, error_reply(400, "none of it"), api_key_env="JUDGE_KEY")
    assert ran.only["failure"]["message"] == "HTTP 400: none of it"


NOT_HTTP = [
    pytest.param(b"SSH-2.0-OpenSSH_9.6\r\n", id="banner"),
    pytest.param(bytes(range(256)) * 4, id="garbage"),
    pytest.param(b"\x15\x03\x03\x00\x02\x02\x46", id="TLS"),
    pytest.param(b"HTTP/1.1 200 OK\r\nx-a: " + b"a" * 9000 + b"\r\ncontent-length: 2\r\n\r\n{}", id="long header"),
    pytest.param(b'HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{"choices": []}', id="short content-length"),
    pytest.param(b"HTTP/1.1 200 OK\r\ncontent-length: abc\r\n\r\n{}", id="no length"),
    pytest.param(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n{}\r\n0\r\n\r\n", id="chunks"),
    pytest.param(b"HTTP/9.9 200 OK\r\ncontent-length: 2\r\n\r\n{}", id="version"),
]


@pytest.mark.parametrize("content", NOT_HTTP)
def test_attack_03_what_is_not_http_at_the_first_call_is_an_address_that_cannot_be_reached(
    tmp_path: Path, content: bytes
) -> None:
    ran = carried_out(tmp_path, raw_bytes(content))
    assert isinstance(ran.error, ProviderError)
    assert f"cannot reach {ran.server.base_url}" in str(ran.error)
    assert "400, message" not in str(ran.error)


@pytest.mark.parametrize("content", NOT_HTTP)
def test_attack_03_what_is_not_http_in_a_run_is_a_server_error_and_counts_against_the_budget(
    tmp_path: Path, content: bytes
) -> None:
    script = after_capabilities(raw_bytes(content))
    model = {"max_concurrency": 1, "max_attempts": 1}
    ran = carried_out(tmp_path, script, model=model, budget={"max_calls": 4})
    assert {item["failure"]["kind"] for item in ran.judgments.values()} == {"server_error"}
    assert [item["n_requests"] for item in ran.judgments.values()] == [1, 1, 1, 1]
    assert len(ran.asked) == 4


def test_attack_03_a_server_that_hangs_up_is_no_time_out(tmp_path: Path) -> None:
    ran = one_case(tmp_path, raw_bytes(b""), max_attempts=2)
    assert ran.only["failure"]["kind"] == "connection"
    assert "no reply within" not in ran.only["failure"]["message"]


def compressed(content: bytes, encoding: str) -> Reply:
    """A reply that is compressed."""
    packed = gzip.compress(content) if encoding == "gzip" else zlib.compress(content)
    if encoding == "raw":
        packed, encoding = packed[2:-4], "deflate"
    return Reply(body=packed, headers={"content-encoding": encoding, "content-type": "application/json"})


@pytest.mark.parametrize("encoding", ["gzip", "deflate", "raw"])
def test_attack_08_a_compressed_reply_is_read_and_one_that_swells_is_not(tmp_path: Path, encoding: str) -> None:
    swollen = compressed(b" " * 50_000_000, encoding)
    assert len(swollen.body or b"") < 100_000
    ran = carried_out(
        tmp_path,
        after_capabilities(compressed(json.dumps(whole()).encode(), encoding), swollen),
        n_cases=2,
        model={"max_concurrency": 1},
    )
    first, second = ran.judgments["c0"], ran.judgments["c1"]
    assert first["verdict"]["score"] == 4
    message = "the reply is larger than 8 MB; it was not read to its end"
    assert second["failure"] == {"kind": "server_error", "message": message}
    assert second["n_requests"] == 1


@pytest.mark.parametrize(("encoding", "said"), [("br", "compressed as br"), ("gzip", "compressed reply is damaged")])
def test_attack_08_a_reply_that_cannot_be_decompressed_says_so(tmp_path: Path, encoding: str, said: str) -> None:
    ran = one_case(tmp_path, Reply(body="abcd", headers={"content-encoding": encoding}), max_attempts=2)
    assert ran.only["failure"]["kind"] == "server_error"
    assert said in ran.only["failure"]["message"]


def test_attack_18_of_several_choices_the_one_with_index_0_is_taken(tmp_path: Path) -> None:
    body = whole()
    other = {**whole(VERDICT.replace("4", "1"))["choices"][0], "index": 1}
    ran = one_case(tmp_path, Reply(body={**body, "choices": [other, *body["choices"]]}))
    assert ran.only["verdict"]["score"] == 4


@pytest.mark.parametrize("status", ["000", "199", "600", "999"])
def test_attack_18_a_status_that_http_does_not_know_is_no_success(tmp_path: Path, status: str) -> None:
    content = json.dumps(whole()).encode()
    head = f"HTTP/1.1 {status} OK\r\ncontent-type: application/json\r\ncontent-length: {len(content)}\r\n\r\n"
    ran = one_case(tmp_path, raw_bytes(head.encode() + content), max_attempts=2)
    assert ran.only["verdict"] is None
    assert ran.only["failure"]["kind"] in ("server_error", "connection")


@pytest.mark.parametrize(
    ("text", "low", "high"),
    [
        ("Rate limit reached on tokens per min: Limit 30000. Please try again in 6.2s. Visit us.", 6.2, 6.9),
        ("Requests exceeded the limit. Please retry after 30 seconds.", 30.0, 33.1),
        ("Limit reached, try again in 1m12s", 72.0, 79.3),
        ("Slow down: again in 850ms", 0.85, 1.0),
        ("Please wait 1 minute and 5 seconds", 65.0, 71.6),
        ("Retry-After: 4", 4.0, 4.5),
        ("Try again in a minute", 60.0, 66.1),
        ("Limit resets in 00:01:30", 90.0, 99.1),
        ("You can retry in 0,090 seconds", 90.0, 99.1),
        ("Wait 5 (seconds)", 5.0, 5.6),
    ],
)
def test_attack_05_a_wait_in_the_text_of_a_429_counts(
    tmp_path: Path, asked_waits: list[float], text: str, low: float, high: float
) -> None:
    ran = one_case(tmp_path, rate_limited(message=text), good())
    (wait,) = asked_waits
    assert low <= wait <= high
    assert ran.only["n_requests"] == 2


@pytest.mark.parametrize(
    ("fields", "low", "high"),
    [
        ({"retry_after": 12}, 12.0, 13.3),
        ({"details": [{"@type": "RetryInfo", "retryDelay": "34s"}]}, 34.0, 37.5),
        ({"metadata": {"retry_after_seconds": 7.5}}, 7.5, 8.4),
    ],
)
def test_attack_05_a_wait_in_a_field_of_a_429_counts(
    tmp_path: Path, asked_waits: list[float], fields: dict[str, Any], low: float, high: float
) -> None:
    body = json.dumps({"error": {"message": "Slow down", **fields}})
    ran = one_case(tmp_path, Reply(429, body), good())
    (wait,) = asked_waits
    assert low <= wait <= high
    assert ran.only["n_requests"] == 2


@pytest.mark.parametrize(
    "text", ["Only 5 requests are allowed per 24 hours", "No available tokens: 100 m", "Try again after 14:00:00 UTC"]
)
def test_attack_05_a_limit_per_time_is_no_wait(tmp_path: Path, asked_waits: list[float], text: str) -> None:
    ran = one_case(tmp_path, rate_limited(message=text), good())
    assert ran.error is None
    assert len(asked_waits) == 1
    assert asked_waits[0] < 1


def test_attack_05_a_header_comes_before_the_text_and_a_long_wait_stops_the_run(
    tmp_path: Path, asked_waits: list[float]
) -> None:
    text = "Please try again in 7m12s"
    ran = one_case(tmp_path / "header", rate_limited(message=text, retry_after_seconds=2), good())
    assert 2.0 <= asked_waits[0] <= 2.3
    assert ran.only["n_requests"] == 2
    stopped = one_case(tmp_path / "long", rate_limited(message=text))
    assert isinstance(stopped.error, ProviderError)
    assert "the server asks to wait 7.2 min" in str(stopped.error)


def test_no_http_status_is_made_up_for_an_error_in_a_reply_that_came_with_200(tmp_path: Path) -> None:
    body = {"error": {"message": "upstream is down", "code": 502}}
    ran = one_case(tmp_path, Reply(200, body), max_attempts=2)
    assert ran.only["failure"] == {
        "kind": "server_error",
        "message": "an error in a reply with HTTP 200 (code 502): upstream is down",
    }


def test_t2_16_reply_format_is_forced_and_a_refusal_names_the_key(tmp_path: Path) -> None:
    for number, (form, sent) in enumerate({"json_object": {"type": "json_object"}, "text": None}.items()):
        ran = one_case(tmp_path / str(number), good(), reply_format=form)
        assert [entry.body.get("response_format") for entry in ran.server.log.chat] == [sent, sent]
        assert ran.only["parameters"]["response_format"] == form
    refused = carried_out(
        tmp_path / "refused", error_reply(400, "json_schema is not supported"), model={"reply_format": "json_schema"}
    )
    assert isinstance(refused.error, ProviderError)
    assert '"reply_format": "json_schema"' in str(refused.error)
    assert len(refused.server.log.chat) == 1
