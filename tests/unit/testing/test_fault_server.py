"""The test server, seen from clients that know nothing of it."""

import asyncio
import contextlib
import gc
import http.client
import json
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from email.utils import parsedate_to_datetime
from typing import Any

import aiohttp
import pytest

from judgekit.testing import (
    Fault,
    FaultServer,
    Reply,
    Request,
    Script,
    chat_reply,
    close_after_bytes,
    empty_reply,
    error_in_200,
    error_reply,
    hang,
    headers_then_trickle,
    html_page,
    overloaded,
    per_case,
    rate_limited,
    refused_reply,
    reset,
    server_error,
    tool_call,
    truncated_reply,
    verdict,
    verdict_body,
    with_latency,
)
from tests.doubles.changes import alias_move, fingerprint_change, limited
from tests.doubles.malformed import MENDABLE, UNREADABLE, malformed_verdict
from tests.doubles.server_process import ServerProcess
from tests.doubles.storms import FAULTS, REPLY_MIX, seeded_faults
from tests.doubles.strict import requires

Answer = tuple[int, dict[str, str], Any]


def question(text: str = "is it so?", **fields: Any) -> dict[str, Any]:
    return {"model": "judge-a", "messages": [{"role": "user", "content": text}], **fields}


def send(
    port: int, body: Any = None, *, method: str = "POST", path: str = "/v1/chat/completions", **headers: str
) -> Answer:
    """One request on a connection of its own: status, headers in lower case, the body decoded where it is JSON."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
    try:
        data = None if body is None else json.dumps(body)
        connection.request(method, path, data, {"content-type": "application/json", **headers})
        response = connection.getresponse()
        text = response.read().decode("utf-8", "surrogatepass")
        names = {name.lower(): value for name, value in response.getheaders()}
        return response.status, names, json.loads(text) if "json" in names["content-type"] else text
    finally:
        connection.close()


def ask(server: FaultServer, text: str = "is it so?", **fields: Any) -> Answer:
    return send(server.port, question(text, **fields))


def content_of(answer: Answer) -> Any:
    return answer[2]["choices"][0]["message"]["content"]


def schema_of(*names: str) -> dict[str, Any]:
    schema = {"type": "object", "properties": {name: {"type": "string"} for name in names}}
    return {"type": "json_schema", "json_schema": {"name": "verdict", "schema": schema}}


def eventually(check: Callable[[], bool]) -> bool:
    """Whether something becomes true within 5 seconds; for what the server sees later than the client."""
    end = time.monotonic() + 5
    while not check() and time.monotonic() < end:
        time.sleep(0.005)
    return check()


# The default verdict


def test_a_groundedness_judge_gets_claims_that_agree_with_the_score() -> None:
    names = ("reasoning", "supported_claims", "unsupported_claims", "score")
    with FaultServer() as server:
        bodies = [json.loads(content_of(ask(server, f"q{i}", response_format=schema_of(*names)))) for i in range(20)]
        in_prose = json.loads(content_of(ask(server, 'Answer with {"supported_claims": [...], "score": 0-5}')))
    assert {tuple(body) for body in bodies} == {names}
    assert all(len(body["supported_claims"]) == body["score"] for body in bodies)
    assert len({body["score"] for body in bodies}) > 2
    assert "unsupported_claims" in in_prose


@pytest.mark.parametrize(
    ("fields", "keys"),
    [
        ({}, {"reasoning", "score"}),
        ({"response_format": schema_of("reasoning", "score")}, {"reasoning", "score"}),
        ({"response_format": schema_of("reasoning", "answer")}, {"reasoning", "answer"}),
    ],
)
def test_other_judges_get_the_fields_that_they_ask_for(fields: dict[str, Any], keys: set[str]) -> None:
    with FaultServer() as server:
        assert json.loads(content_of(ask(server, "q", **fields))).keys() == keys


def test_the_same_messages_get_the_same_verdict_and_the_model_is_echoed() -> None:
    with FaultServer() as first, FaultServer() as second:
        one, other = ask(first, "x" * 400), ask(second, "x" * 400)
    assert content_of(one) == content_of(other)
    assert one[2]["model"] == "judge-a"
    assert one[2]["system_fingerprint"] == "fp_test"
    # 400 characters / 4
    assert one[2]["usage"]["prompt_tokens"] == 100
    assert one[2]["usage"]["completion_tokens"] == len(content_of(one)) // 4


# Addresses


def test_the_server_says_what_it_is_and_can_be_changed_while_it_runs() -> None:
    with FaultServer() as server:
        server.info.models = ("judge-a", "judge-b")
        server.info.meta = {"build": "abc"}
        server.info.build_info = "b2000-fffffff"
        server.info.digests = {"judge-a": "1" * 64}
        get = [send(server.port, method="GET", path=path)[2] for path in ("/v1/models", "/props", "/api/tags")]
        totals = server.log.totals
    assert [entry["id"] for entry in get[0]["data"]] == ["judge-a", "judge-b"]
    assert get[0]["data"][0]["meta"] == {"build": "abc"}
    assert get[1]["build_info"] == "b2000-fffffff"
    assert [entry["digest"] for entry in get[2]["models"]] == ["1" * 64, "0" * 64]
    assert (totals.n_requests, totals.n_other) == (0, 3)


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("POST", "/chat/completions", 200),
        ("POST", "/v1/chat/completions?api-version=1", 200),
        ("GET", "/v1/chat/completions", 405),
        ("GET", "/v1/else", 404),
        ("POST", "/v1/embeddings", 404),
    ],
)
def test_addresses_are_answered_by_method_and_path(method: str, path: str, status: int) -> None:
    with FaultServer() as server:
        body = question() if method == "POST" else None
        assert send(server.port, body, method=method, path=path)[0] == status


def test_a_body_that_is_no_json_object_gets_a_400_and_bytes_that_are_no_http_too() -> None:
    with FaultServer() as server:
        assert send(server.port, [1])[0] == 400
        with socket.create_connection(("127.0.0.1", server.port), timeout=5) as raw:
            raw.sendall(b"hello\r\n\r\n")
            assert b" 400 Bad Request" in raw.recv(100)


def test_chunked_bodies_and_pipelined_requests_are_read() -> None:
    content = json.dumps(question()).encode()
    head = b"POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\n"
    chunked = head + b"transfer-encoding: chunked\r\n\r\n" + b"%x\r\n%s\r\n0\r\n\r\n" % (len(content), content)
    plain = head + b"content-length: %d\r\nconnection: close\r\n\r\n" % len(content) + content
    with FaultServer() as server:
        with socket.create_connection(("127.0.0.1", server.port), timeout=5) as raw:
            raw.sendall(chunked + plain)
            received = b"".join(iter(lambda: raw.recv(65536), b""))
        assert received.count(b"HTTP/1.1 200 OK") == 2
        assert [entry.body for entry in server.log.chat] == [question()] * 2


# Scripts


def test_a_sequence_is_played_in_order_and_its_last_entry_repeats() -> None:
    with FaultServer([rate_limited(), Reply(503, "busy"), verdict(4)]) as server:
        assert [ask(server)[0] for _ in range(4)] == [429, 503, 200, 200]


def test_each_case_walks_its_own_script_whatever_the_order() -> None:
    def choose(request: Request) -> Script:
        return [server_error(), verdict(1)] if "hard" in request.text else verdict(5)

    with FaultServer(per_case(choose)) as server:
        statuses = [ask(server, text)[0] for text in ("easy", "hard", "easy", "hard")]
    assert statuses == [200, 500, 200, 200]


def test_a_key_keeps_a_case_together_where_a_retry_changes_the_request() -> None:
    with FaultServer(per_case(lambda _: [server_error(), verdict(1)], key=lambda request: request.text)) as server:
        assert [ask(server, seed=seed)[0] for seed in (1, 2)] == [500, 200]


def test_a_reply_is_sent_exactly_as_it_stands_and_a_chat_reply_is_completed() -> None:
    bare = {"choices": [{"message": {"content": "4"}, "finish_reason": "stop"}]}
    with FaultServer([Reply(body=bare), chat_reply("4", model="m-2", fingerprint=None, usage={})]) as server:
        first, second = ask(server)[2], ask(server)[2]
    assert first == bare
    assert second["model"] == "m-2"
    assert not {"usage", "system_fingerprint"} & second.keys()


def test_tool_calls_refusals_and_lone_surrogates_arrive_as_written() -> None:
    call = tool_call(verdict_body(4))
    script = [chat_reply(None, tool_calls=[call], finish_reason="tool_calls"), refused_reply("no"), verdict("\udcb2")]
    with FaultServer(script) as server:
        messages = [ask(server)[2]["choices"][0]["message"] for _ in range(3)]
    assert json.loads(messages[0]["tool_calls"][0]["function"]["arguments"])["score"] == 4
    assert (messages[1]["content"], messages[1]["refusal"]) == (None, "no")
    assert json.loads(messages[2]["content"])["score"] == "\udcb2"


def test_the_alias_and_the_fingerprint_change_after_so_many_requests() -> None:
    script = alias_move("judge-01", "judge-06", 2, fingerprint_change("fp_a", "fp_b", 1))
    with FaultServer(script) as server:
        served = [(body["model"], body["system_fingerprint"]) for body in (ask(server)[2] for _ in range(3))]
    assert served == [("judge-01", "fp_a"), ("judge-01", "fp_b"), ("judge-06", "fp_b")]


def test_what_a_responder_raises_reaches_the_test() -> None:
    def broken(request: Request) -> Reply:
        raise KeyError("case 5")

    with pytest.raises(KeyError, match="case 5"), FaultServer(broken) as server:
        assert ask(server)[0] == 500
    lost = (http.client.RemoteDisconnected, ConnectionResetError)
    unwritable = Reply(body={"x": {1}})
    with pytest.raises(TypeError, match="not JSON"), FaultServer(unwritable) as server, pytest.raises(lost):
        ask(server)


# Faults of the connection


def test_a_reset_comes_before_any_byte() -> None:
    with FaultServer([reset(), verdict(4)]) as server:
        with pytest.raises(ConnectionResetError):
            ask(server)
        assert ask(server)[0] == 200
        assert [(entry.status, entry.fault) for entry in server.log.chat] == [(None, "reset"), (200, None)]


@pytest.mark.parametrize("script", [close_after_bytes(40), close_after_bytes(40, verdict(4)), close_after_bytes(9999)])
def test_a_cut_body_is_shorter_than_its_header_says(script: Reply) -> None:
    with FaultServer(script) as server, pytest.raises(http.client.IncompleteRead) as caught:
        ask(server)
    assert len(caught.value.partial) == 40 or b"choices" in caught.value.partial
    assert caught.value.expected is not None
    assert caught.value.expected > 0


def test_a_hanging_request_ends_with_its_client_or_with_the_server() -> None:
    async def give_up(url: str) -> None:
        timeout = aiohttp.ClientTimeout(total=0.1)
        async with aiohttp.ClientSession(timeout=timeout) as session:
            with pytest.raises(TimeoutError):
                await session.post(url, json=question())

    def wait_for_ever(port: int) -> None:
        with pytest.raises((http.client.RemoteDisconnected, ConnectionResetError)):
            send(port, question())

    with FaultServer(hang()) as server:
        asyncio.run(give_up(f"{server.base_url}/chat/completions"))
        assert eventually(lambda: server.log.totals.n_client_left == 1)
        waiting = threading.Thread(target=wait_for_ever, args=(server.port,))
        waiting.start()
        server.log.wait_for(2)
        assert server.log.totals.n_in_flight == 1
    waiting.join(5)
    assert not waiting.is_alive()
    assert server.log.totals.n_in_flight == 0
    assert server.log.totals.faults == {"hang": 2}


def test_a_trickled_reply_comes_whole_but_late_and_each_piece_resets_a_read_timeout() -> None:
    with FaultServer(headers_then_trickle(0.01, 100, verdict(4, reasoning="x" * 900))) as server:
        start = time.monotonic()
        answer = ask(server)
    # some 1,200 bytes in pieces of 100: 12 pauses of 0.01 s, each shorter than any read timeout
    assert time.monotonic() - start > 0.1
    assert json.loads(content_of(answer))["score"] == 4


# Faults in status and content


@pytest.mark.parametrize(
    ("reply", "status", "kind"),
    [
        (html_page(), 502, "html"),
        (html_page(200), 200, "html"),
        (server_error(503), 503, "server_error"),
        (overloaded(), 529, "overloaded"),
        (rate_limited(), 429, "rate_limit"),
        (error_in_200(), 200, "error_in_200"),
        (truncated_reply(), 200, "truncated"),
        (empty_reply(None), 200, "empty"),
    ],
)
def test_faults_of_content_are_sent_and_named_in_the_log(reply: Reply, status: int, kind: str) -> None:
    with FaultServer(reply) as server:
        answer = ask(server)
        totals = server.log.totals
    assert answer[0] == status
    assert isinstance(answer[2], str) == (kind == "html")
    assert (totals.n_ok, totals.faults, totals.statuses) == (0, {kind: 1}, {str(status): 1})


def test_a_429_says_when_to_come_back_in_each_of_the_ways() -> None:
    script: list[Script] = [
        rate_limited(retry_after_seconds=3, remaining_requests=0),
        rate_limited(retry_after_ms=250),
        rate_limited(retry_after_date_seconds=30),
        rate_limited(code="insufficient_quota"),
    ]
    with FaultServer(script) as server:
        seconds, milliseconds, date, quota = (ask(server) for _ in range(4))
    assert (seconds[1]["retry-after"], seconds[1]["x-ratelimit-remaining-requests"]) == ("3", "0")
    assert milliseconds[1]["retry-after-ms"] == "250"
    assert 25 < parsedate_to_datetime(date[1]["retry-after"]).timestamp() - time.time() <= 31
    assert quota[2]["error"]["code"] == quota[2]["error"]["type"] == "insufficient_quota"


@pytest.mark.parametrize("variant", [*MENDABLE, *UNREADABLE])
def test_every_malformed_variant_differs_from_the_sound_verdict(variant: str) -> None:
    for sound in (verdict_body(4, supported=["a"], unsupported=[]), {"reasoning": "r", "answer": True}):
        with FaultServer(malformed_verdict(variant, sound)) as server:
            content = content_of(ask(server))
            assert server.log.chat[0].fault == f"malformed_{variant}"
        assert content != json.dumps(sound, ensure_ascii=False)


# Strict servers


@pytest.mark.parametrize(
    ("switches", "fields", "status", "text"),
    [
        ({"temperature": False}, {"temperature": 0}, 400, "'temperature' does not support 0"),
        ({"seed": False}, {"seed": 7}, 422, "extra_forbidden"),
        ({"logprobs": False}, {"logprobs": True}, 403, "not allowed to request logprobs"),
        ({"json_schema": False}, {"response_format": schema_of("score")}, 400, "is unavailable now"),
        ({"json_object": False}, {"response_format": {"type": "json_object"}}, 400, "must be 'json_schema' or 'text'"),
        ({"json_word": True}, {"response_format": {"type": "json_object"}}, 400, "the word 'json'"),
        ({"max_tokens_name": "max_completion_tokens"}, {"max_tokens": 9}, 400, "Use 'max_completion_tokens' instead"),
        ({"max_tokens_name": "max_tokens"}, {"max_completion_tokens": 9}, 422, "extra_forbidden"),
        ({"max_prompt_tokens": 1}, {}, 400, "context_length_exceeded"),
        ({"api_key": "sk-right"}, {}, 401, "invalid_api_key"),
    ],
)
def test_a_strict_server_refuses_a_parameter_and_takes_the_rest(
    switches: dict[str, Any], fields: dict[str, Any], status: int, text: str
) -> None:
    with FaultServer(requires(**switches, then=verdict(4))) as server:
        refused = ask(server, **fields)
        taken = send(server.port, question("ok?"), authorization="Bearer sk-right")
    assert refused[0] == status
    assert text in json.dumps(refused[2])
    assert taken[0] == 200


def test_a_chat_template_without_a_system_role_raises_a_500_without_an_error_object() -> None:
    with FaultServer(requires(system_role=False)) as server:
        answer = ask(server, messages=[{"role": "system", "content": "judge"}, {"role": "user", "content": "q"}])
    assert answer[0] == 500
    assert answer[2] == {"object": "error", "message": "System role not supported", "type": "TemplateError"}


# Faults from a seed


def outcomes(seed: int, order: list[int]) -> dict[int, tuple[int, str]]:
    """What each question gets, asked in this order: status and content."""
    mix = {"rate_limit": 1.0, "server_error": 1.0, "unreadable": 1.0}
    with FaultServer(seeded_faults(0.5, seed, mix)) as server:
        answers = {number: ask(server, f"q{number}") for number in order}
    return {n: (answer[0], content_of(answer) if answer[0] == 200 else "") for n, answer in answers.items()}


def test_each_request_meets_the_same_fault_in_any_order_and_another_seed_is_another_storm() -> None:
    forwards, backwards = outcomes(7, list(range(40))), outcomes(7, list(range(39, -1, -1)))
    assert forwards == backwards
    assert outcomes(8, list(range(40))) != forwards
    assert {status for status, _ in forwards.values()} == {200, 429, *{s for s, _ in forwards.values() if s >= 500}}


def test_the_rate_and_the_weights_are_kept_and_retries_recover() -> None:
    storm = seeded_faults(0.2, 1, {"reset": 3, "html": 1}, max_in_a_row=2)
    faults = [storm.fault_for(f"hash {i}", 0) for i in range(10_000)]
    n_faults = sum(fault is not None for fault in faults)
    # binomial(10,000, 0.2): mean 2,000, standard deviation 40; of 2,000 a share 3/4 are resets: 1,500, deviation 36
    assert abs(n_faults - 2000) < 200
    assert abs(faults.count("reset") - 1500) < 200
    assert all(storm.fault_for(f"hash {i}", 2) is None for i in range(1000))
    assert any(storm.fault_for(f"hash {i}", 1) is None for i in range(1000) if storm.fault_for(f"hash {i}", 0))


@pytest.mark.parametrize("name", sorted(set(FAULTS) - {"hang"}))
def test_every_fault_of_a_mix_can_be_played(name: str) -> None:
    with FaultServer(seeded_faults(1.0, 3, {name: 1})) as server:
        try:
            ask(server)
        except (OSError, http.client.HTTPException):
            assert name in {"reset", "close_after_bytes"}
        assert eventually(lambda: sum(server.log.totals.faults.values()) == 1)


@pytest.mark.parametrize(("rate", "mix"), [(1.5, REPLY_MIX), (0.1, {"flood": 1.0}), (0.1, {}), (0.1, {"reset": 0.0})])
def test_a_storm_that_cannot_be_is_refused(rate: float, mix: dict[str, float]) -> None:
    with pytest.raises(ValueError, match=r"rate|mix"):
        seeded_faults(rate, 1, mix)


# The log


def test_the_log_holds_what_came_and_what_went_without_the_key() -> None:
    key = "sk-abcdefghijklmnop1234"
    with FaultServer(
        [verdict(4, usage={"prompt_tokens": 50, "completion_tokens": 20}), error_reply(401, "no")]
    ) as server:
        send(server.port, question("one"), authorization=f"Bearer {key}")
        send(server.port, question("two"), **{"api-key": "short"})
        first, second = server.log.chat
        totals = server.log.totals
    assert (first.method, first.path, first.body) == ("POST", "/v1/chat/completions", question("one"))
    assert (first.headers["authorization"], second.headers["api-key"]) == ("Bearer ****1234", "****")
    assert key not in repr(first)
    assert (first.status, first.usage) == (200, {"prompt_tokens": 50, "completion_tokens": 20})
    assert first.answered_at is not None
    assert first.arrived_at <= first.answered_at <= second.arrived_at
    assert (totals.n_requests, totals.n_ok, totals.prompt_tokens, totals.completion_tokens) == (2, 1, 50, 20)


def test_without_bodies_the_log_stays_small_and_the_totals_stay_whole() -> None:
    async def ask_often(server: FaultServer) -> None:
        async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=8)) as session:
            url = f"{server.base_url}/chat/completions"
            for _ in range(150):
                for response in await asyncio.gather(*(session.post(url, json=question()) for _ in range(8))):
                    await response.read()

    with FaultServer(keep_bodies=False) as server:
        asyncio.run(ask_often(server))
    assert server.log.totals.n_ok == 1200
    assert len(server.log.entries) == 1000
    assert (server.log.entries[0].body, server.log.entries[0].headers) == (None, {})


def test_requests_in_flight_are_counted_and_can_be_limited() -> None:
    async def ask_at_once(server: FaultServer) -> list[int]:
        async with aiohttp.ClientSession() as session:
            url = f"{server.base_url}/chat/completions"
            responses = await asyncio.gather(*(session.post(url, json=question(f"q{i}")) for i in range(10)))
            return sorted(response.status for response in responses)

    with FaultServer(with_latency(0.2, jitter_seconds=0.1, seed=1)) as server:
        assert asyncio.run(ask_at_once(server)) == [200] * 10
        assert server.log.totals.max_in_flight == 10
        server.play(limited(4, then=with_latency(0.3)))
        assert asyncio.run(ask_at_once(server)) == [200] * 4 + [429] * 6


# Life and death


@pytest.mark.parametrize("pause_seconds", [0, 0, 0, 0.001, 0.05])
def test_stopping_ends_connections_even_those_that_are_just_being_accepted(pause_seconds: float) -> None:
    server = FaultServer().start()
    with socket.create_connection(("127.0.0.1", server.port), timeout=5) as idle:
        time.sleep(pause_seconds)
        server.stop()
        server.stop()
        with contextlib.suppress(ConnectionResetError):  # it may still be in the queue of the listening socket
            assert idle.recv(1) == b""
    gc.collect()  # an unclosed socket or loop would warn here, and warnings are errors
    assert not [thread for thread in threading.enumerate() if thread.name == "judgekit-fault-server"]


def test_a_stopped_server_refuses_and_may_start_again_on_its_port() -> None:
    with FaultServer() as server:
        assert ask(server)[0] == 200
    with pytest.raises(ConnectionRefusedError):
        ask(server)
    with FaultServer(port=server.port) as again:
        assert ask(again)[0] == 200
        with pytest.raises(OSError, match="in use"):
            FaultServer(port=again.port).start()


def test_the_command_prints_one_line_serves_and_ends_on_sigterm() -> None:
    command = [sys.executable, "-m", "tests.doubles.server_process", "--port", "0", "--seed", "7", "--faults", "1"]
    command += ["--mix", "server_error=1", "--latency-ms", "1", "--jitter-ms", "1", "--model", "m-1"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        line = process.stdout.readline()
        assert line.startswith("listening on http://127.0.0.1:")
        assert line.endswith("/v1\n")
        port = int(line.rpartition(":")[2].removesuffix("/v1\n"))
        assert send(port, question())[0] >= 500
        assert send(port, method="GET", path="/v1/models")[2]["data"][0]["id"] == "m-1"
        process.send_signal(signal.SIGTERM)
        rest, errors = process.communicate(timeout=10)
    assert (process.returncode, rest) == (0, "")
    assert json.loads(errors)["n_requests"] == 1


def test_a_server_process_ends_with_its_block_and_hands_over_the_totals() -> None:
    with ServerProcess("--faults", "0") as server:
        port = int(server.base_url.rpartition(":")[2].removesuffix("/v1"))
        assert [send(port, question(f"q{i}"))[0] for i in range(3)] == [200] * 3
    assert (server.totals.n_requests, server.totals.n_ok) == (3, 3)
    with (
        pytest.raises(RuntimeError, match="unknown faults in the mix: flood"),
        ServerProcess("--faults=1", "--mix=flood"),
    ):
        pass


def test_a_fault_without_a_name_in_the_transport_is_only_a_label() -> None:
    with FaultServer(Reply(503, fault=Fault("mine"))) as server:
        assert ask(server)[0] == 503
        assert server.log.totals.faults == {"mine": 1}
