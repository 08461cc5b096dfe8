"""Systems over HTTP: what is sent, how answers are read, and what each fault becomes."""

import asyncio
import json
import socket
import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from aiohttp import web
from pydantic import ValidationError

from judgekit.core.cases import Case, SystemOutput
from judgekit.core.errors import ConfigError, InputError, ProviderError
from judgekit.engine import system_calls
from judgekit.systems.http import Http
from tests.unit.systems.asking import failure, outputs_of

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]

CASE = Case(id="q1", question='Who said "no"?', tags=("a", "b"), metadata={"topic": "law/tax"})


@pytest.fixture(autouse=True)
def _no_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(system_calls, "FIRST_WAIT_SECONDS", 0.001)


@contextmanager
def served(handler: Handler) -> Iterator[str]:
    """The address of a service on this machine."""
    listener = socket.create_server(("127.0.0.1", 0))
    loop = asyncio.new_event_loop()
    application = web.Application()
    application.router.add_route("*", "/{path:.*}", handler)
    runner = web.AppRunner(application, shutdown_timeout=0.1)

    async def start() -> None:
        await runner.setup()
        await web.SockSite(runner, listener).start()

    loop.run_until_complete(start())
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}/ask"
    finally:
        asyncio.run_coroutine_threadsafe(runner.cleanup(), loop).result(10)
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


def one(handler: Handler, case: Case = CASE, path: str = "", **settings: Any) -> SystemOutput:
    """What a service gives for one case."""
    with served(handler) as url:
        return outputs_of(Http(**{"url": url + path, "max_attempts": 1, **settings}), [case])[case.id]


def saying(body: Any, **more: Any) -> Handler:
    async def handler(_: web.Request) -> web.Response:
        return web.json_response(body, **more)

    return handler


def test_the_case_stands_in_body_path_query_and_headers() -> None:
    seen: dict[str, Any] = {}

    async def handler(request: web.Request) -> web.Response:
        seen["path"], seen["query"] = request.raw_path, dict(request.query)
        seen["body"], seen["key"] = await request.json(), request.headers["Authorization"]
        return web.json_response({"answer": "Yes"})

    system = {
        "body": {
            "q": "{{question}}",
            "tags": "{{ tags }}",
            "title": "about {{metadata.topic}}",
            "k": 5,
            "n": "{{lang}}",
        },
        "params": {"topic": "{{metadata.topic}}"},
        "headers": {"Authorization": "Bearer ${RAG_TOKEN}"},
    }
    with served(handler) as url:
        found = outputs_of(
            Http(url=url + "/{{metadata.topic}}?key=${RAG_TOKEN}", **system),
            [CASE],
            environment={"RAG_TOKEN": "s3cr3t-0123/456"},
        )
    assert found["q1"].answer == "Yes"
    assert seen["body"] == {
        "q": 'Who said "no"?', "tags": ["a", "b"], "title": "about law/tax", "k": 5, "n": None
    }  # fmt: skip
    assert seen["path"].startswith("/ask/law%2Ftax?")
    assert seen["query"] == {"key": "s3cr3t-0123/456", "topic": "law/tax"}
    assert seen["key"] == "Bearer s3cr3t-0123/456"


def test_without_a_body_the_question_is_sent() -> None:
    async def handler(request: web.Request) -> web.Response:
        return web.json_response({"answer": (await request.json())["question"]})

    assert one(handler).answer == 'Who said "no"?'


def test_an_answer_is_mapped_by_paths_like_a_file_of_outputs() -> None:
    reply = {
        "id": "reply-1",
        "trace": {"big": "ignored"},
        "result": {
            "text": "Yes",
            "chunks": [{"id": 1, "content": "It is.", "s": 0.9}, {"id": 2, "content": "It was.", "s": 0.5}],
        },
        "ms": {"total": 1500},
    }
    fields = {
        "answer": "result.text",
        "retrieved[].chunk_id": "result.chunks[].id",
        "retrieved[].text": "result.chunks[].content",
        "retrieved[].score": "result.chunks[].s",
        "latency_seconds.total": "ms.total",
    }
    found = one(saying(reply), fields=fields, latency_unit="ms")
    assert found.answer == "Yes"
    hits = [(hit.chunk_id, hit.text, hit.score) for hit in found.retrieved]
    assert hits == [("1", "It is.", 0.9), ("2", "It was.", 0.5)]
    assert found.latency_seconds == {"total": 1.5}
    assert found.metadata == {}


def test_the_preset_reads_chunks_folders_abstention_and_latency_of_a_debug_answer() -> None:
    reply = {
        "answer": "No.",
        "abstained": True,
        "debug": {
            "chunks": [{"id": "a#1", "doc_id": "a", "path": "a.md", "headings": ["A"], "text": "x", "score": 0.25}],
            "folders": {"mode": "on_with_fallback", "selected": ["work"]},
            "latency_ms": {"folder_selection": 10, "retrieval": 20.5, "generation": 30, "total": 60.5},
            "usage": {"prompt_tokens": 3, "completion_tokens": 4},
            "versions": {"index": "7"},
        },
    }
    found = one(saying(reply), preset="rag_debug")
    assert (found.answer, found.abstained, found.versions) == ("No.", True, {"index_version": "7"})
    assert found.retrieved[0].model_dump(exclude_defaults=True) == {
        "chunk_id": "a#1", "doc_id": "a", "rel_path": "a.md", "heading_path": ("A",), "text": "x", "score": 0.25
    }  # fmt: skip
    assert found.scope is not None
    assert (found.scope.mode, found.scope.selected_folders) == ("on_with_fallback", ("work",))
    assert found.latency_seconds == {"folder_selection": 0.01, "retrieval": 0.0205, "generation": 0.03, "total": 0.0605}
    assert found.usage is not None
    assert found.usage.prompt_tokens == 3


def test_a_plain_text_is_the_answer() -> None:
    async def handler(_: web.Request) -> web.Response:
        return web.Response(text="Yes.")

    assert one(handler).answer == "Yes."


async def _html(_: web.Request) -> web.Response:
    return web.Response(text="<html><h1>Bad gateway</h1>", content_type="text/html")


async def _half(request: web.Request) -> web.StreamResponse:
    response = web.StreamResponse(headers={"Content-Length": "1000"})
    await response.prepare(request)
    await response.write(b'{"answer": ')
    assert request.transport is not None
    request.transport.close()
    return response


async def _hangs(_: web.Request) -> web.Response:
    await asyncio.sleep(30)
    return web.Response()


async def _endless(request: web.Request) -> web.StreamResponse:
    response = web.StreamResponse()
    await response.prepare(request)
    while True:
        await response.write(b"x" * 65536)


async def _moved(_: web.Request) -> web.Response:
    raise web.HTTPFound("/elsewhere")


@pytest.mark.parametrize(
    ("handler", "settings", "kind", "message"),
    [
        (_html, {}, "invalid_output", "expected JSON, found HTML: <html><h1>Bad gateway"),
        (_half, {}, "connection", ""),
        (_hangs, {"timeout_seconds": 0.05}, "timeout", "no answer within 0.05 s"),
        (_endless, {"max_bytes": 100_000}, "too_large", "longer than 100,000 bytes"),
        (_moved, {}, "redirected", "it points to /elsewhere"),
        (saying({"error": "index is empty"}), {}, "api", "index is empty"),
        (saying({"answer": "x", "status": {"failed": "yes"}}), {"error": "status.failed"}, "api", "yes"),
        (saying({"detail": "x"}), {}, "invalid_output", 'the answer has detail; say which is which by "fields"'),
        (saying([1]), {}, "invalid_output", "expected a JSON object, found a list"),
        (saying({"answer": "x", "case_id": "q9"}), {}, "wrong_case", "the answer is for 'q9'"),
        (saying({"answer": 4}), {}, "invalid_output", "$.answer"),
        (saying({"detail": "no"}, status=422), {}, "refused", 'status 422: {"detail": "no"}'),
        (saying({}, status=503), {}, "server_error", "status 503"),
        (saying({}, status=504), {}, "timeout", "status 504"),
        (saying({}, status=429), {}, "rate_limited", "status 429"),
    ],
)
def test_each_fault_is_an_error_row_with_its_kind(
    handler: Handler, settings: dict[str, Any], kind: str, message: str
) -> None:
    found = failure(one(handler, **settings))
    assert found[0] == kind
    assert message in found[1]


def test_an_answer_beside_an_error_that_is_null_is_an_answer() -> None:
    assert one(saying({"answer": "x", "error": None})).answer == "x"


def test_what_may_pass_is_asked_again_as_the_service_says() -> None:
    seen: list[int] = []

    async def handler(_: web.Request) -> web.Response:
        seen.append(len(seen))
        if len(seen) < 3:
            return web.json_response({}, status=429, headers={"Retry-After": "0"})
        return web.json_response({"answer": "x"})

    assert one(handler, max_attempts=3).answer == "x"
    assert len(seen) == 3


def test_a_service_that_repeats_the_key_does_not_get_it_into_the_outputs() -> None:
    async def handler(request: web.Request) -> web.Response:
        return web.json_response({"detail": request.headers["X-Api-Key"]}, status=403)

    with served(handler) as url:
        system = Http(url=url, headers={"X-Api-Key": "${RAG_KEY}"})
        found = outputs_of(system, [CASE], environment={"RAG_KEY": "abcdef-123456-xyz"})
    assert "123456" not in failure(found["q1"])[1]
    assert "abcdef" not in json.dumps(system.settings())


def test_what_an_answer_depends_on_is_all_of_the_request_and_no_secret() -> None:
    system = Http(url="http://h/{{id}}?sig=s3cr3t", body={"q": "{{question}}"}, params={"t": "{{metadata.topic}}"})
    other = CASE.model_copy(update={"id": "q2"})
    assert system.sees(CASE) != system.sees(other)
    assert system.sees(CASE) != system.sees(CASE.model_copy(update={"question": "Why?"}))
    assert system.sees(CASE) == system.sees(CASE.model_copy(update={"difficulty": "hard"}))
    assert "s3cr3t" not in json.dumps([system.sees(CASE), system.settings()])


def test_a_service_that_is_not_there_is_found_before_the_first_case() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    with pytest.raises(ProviderError, match=rf"127.0.0.1:{port}/ask cannot be reached.*start the service"):
        outputs_of(Http(url=f"http://127.0.0.1:{port}/ask"), [CASE])


def test_a_health_check_that_fails_stops_the_run() -> None:
    async def handler(request: web.Request) -> web.Response:
        return web.json_response({"answer": "x"}, status=503 if request.path == "/health" else 200)

    with served(handler) as url, pytest.raises(ProviderError, match="system http: /health answered 503"):
        outputs_of(Http(url=url, health="/health"), [CASE])


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"url": "localhost/ask"}, "expected an address such as"),
        ({"url": "http://h/ask", "body": {"q": "{{qestion}}"}}, "a case has no 'qestion'; did you mean 'question'?"),
        ({"url": "http://h/ask", "headers": {"Authorization": "Bearer sk-1234567890abcdef"}}, "write a secret as"),
        ({"url": "http://h/ask?api_key=abc"}, "a key does not belong into"),
        ({"url": "http://h/ask?q={{question}}"}, 'in the path only; give the query as "params"'),
        ({"url": "http://h/ask", "method": "GET", "body": {}}, "a GET has none; use params"),
        ({"url": "http://h/ask", "preset": "rag-debug"}, "no preset called 'rag-debug'; did you mean 'rag_debug'?"),
        ({"url": "http://h/ask", "retries": 3}, "retries"),
    ],
)
def test_a_wrong_config_is_refused_before_any_call(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError) as caught:
        Http(**settings)
    assert message in str(caught.value)


def test_a_variable_that_is_not_set_and_a_field_that_is_none_are_refused() -> None:
    with pytest.raises(ConfigError, match="environment variable RAG_KEY is not set"):
        outputs_of(Http(url="http://127.0.0.1:9/ask", headers={"X-Key": "${RAG_KEY}"}), [CASE], environment={})
    with pytest.raises(InputError, match="'answr', which is not a field of an output"):
        outputs_of(Http(url="http://127.0.0.1:9/ask", fields={"answr": "x"}), [CASE])
