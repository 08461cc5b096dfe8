"""Spans of runs read back: what was asked, what came of it, and what never goes out without being asked for."""

import asyncio
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan, SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

import judgekit
from judgekit.testing import FaultServer, Request, error_reply, verdict
from judgekit.tracing import CAPTURE, RESULT, trace_results
from tests.builders import case, output, read_lines, write_suite
from tests.workflows.engine import after_capabilities
from tests.workflows.stored_suites import asked, first_run, rejudge

ORIGIN = {"trace_id": "0af7651916cd43dd8448eb211c80319c", "span_id": "b7ad6b7169203331", "response_id": "chatcmpl-9"}


@pytest.fixture
def spans(monkeypatch: pytest.MonkeyPatch) -> Iterator[InMemorySpanExporter]:
    """What an exporter of the user's provider is given."""
    exporter = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    # A provider can be set but once in a process, so that tests put theirs in its place.
    monkeypatch.setattr(trace, "_TRACER_PROVIDER", provider)
    yield exporter
    provider.shutdown()


def named(spans: InMemorySpanExporter, name: str) -> list[ReadableSpan]:
    return [span for span in spans.get_finished_spans() if span.name.startswith(name)]


def facts(item: Any) -> dict[str, Any]:
    return dict(item.attributes or {})


def results(spans: InMemorySpanExporter, name: str = "evaluate case") -> dict[tuple[str, str], dict[str, Any]]:
    """Attributes of each result, by case and score."""
    return {
        (facts(span).get("judgekit.case.id", ""), facts(event)["gen_ai.evaluation.name"]): facts(event)
        for span in named(spans, name)
        for event in span.events
    }


def everything(spans: InMemorySpanExporter) -> str:
    return "\n".join(span.to_json() for span in spans.get_finished_spans())


def two_of_three_replies(request: Request) -> Any:
    """No reply for c1, a sound verdict for the others."""
    return error_reply(400, "no") if "Kiln c1 " in request.text else verdict(4, supported=["hot"])


def three_cases() -> dict[str, Any]:
    """One that is judged and comes from a trace, one whose call fails, one that the judge does not apply to."""
    rows = [output("c0", metadata=ORIGIN), output("c1", answer="Kiln c1 is hot."), output("c2", abstained=True)]
    return {"case_rows": [case("c0"), case("c1"), case("c2", answerable=False)], "output_rows": rows}


def test_each_call_is_a_span_by_the_conventions_and_each_score_an_event(
    tmp_path: Path, spans: InMemorySpanExporter
) -> None:
    with FaultServer(after_capabilities(two_of_three_replies)) as server:
        path = write_suite(tmp_path, server.base_url, **three_cases())
        summary = judgekit.run(path, run_id="a")
    (run,) = named(spans, "judgekit run")
    assert facts(run)["judgekit.run.id"] == "a"
    assert facts(run)["judgekit.run.n_cases"] == "3"
    judged = {facts(span)["judgekit.case.id"]: span for span in named(spans, "judge groundedness")}
    assert judged.keys() == {"c0", "c1"}
    assert all(span.parent is not None and span.parent.span_id == run.context.span_id for span in judged.values())
    assert facts(judged["c1"])["error.type"] == "bad_request"
    assert judged["c1"].status.status_code is trace.StatusCode.ERROR
    assert judged["c0"].status.status_code is trace.StatusCode.UNSET
    calls = {span.parent.span_id: span for span in named(spans, "chat ") if span.parent is not None}
    good = facts(calls[judged["c0"].context.span_id])
    assert calls[judged["c0"].context.span_id].name == "chat judge-2025-01-01"
    assert calls[judged["c0"].context.span_id].kind is trace.SpanKind.CLIENT
    assert {name: value for name, value in good.items() if name.startswith("gen_ai.re")} == {
        "gen_ai.request.model": "judge-2025-01-01",
        "gen_ai.request.temperature": 0.0,
        "gen_ai.request.seed": 0,
        "gen_ai.request.max_tokens": 1024,
        "gen_ai.response.model": "judge-2025-01-01",
        "gen_ai.response.id": "chatcmpl-1",
        "gen_ai.response.finish_reasons": ("stop",),
    }
    assert (good["gen_ai.operation.name"], good["gen_ai.provider.name"]) == ("chat", "openai")
    assert (good["server.address"], good["gen_ai.output.type"]) == ("127.0.0.1", "json")
    assert isinstance(good["gen_ai.usage.input_tokens"], int)
    failed = facts(calls[judged["c1"].context.span_id])
    assert failed["error.type"] == "bad_request"
    assert "gen_ai.response.model" not in failed

    found = results(spans)
    stored = read_lines(tmp_path / "results" / "a" / "scores.jsonl")
    assert found.keys() == {(item["case_id"], item["name"]) for item in stored}
    assert {key: item.get("gen_ai.evaluation.score.value") for key, item in found.items()} == {
        (item["case_id"], item["name"]): item["value"] for item in stored
    }
    scored = found["c0", "groundedness"]
    (judgment,) = [
        item for item in read_lines(tmp_path / "results" / "a" / "judgments.jsonl") if item["case_id"] == "c0"
    ]
    assert scored["judgekit.prompt.sha256"] == judgment["prompt_sha256"]
    assert scored["gen_ai.response.id"] == "chatcmpl-9"
    assert found["c0", "groundedness_pass"]["gen_ai.evaluation.score.label"] == "pass"
    assert found["c1", "groundedness"]["error.type"] == "bad_request"
    assert found["c2", "groundedness"]["gen_ai.evaluation.score.label"] == "not_applicable"
    assert found["c2", "groundedness"]["judgekit.reason"] == "n/a: abstained"
    assert "error.type" not in found["c2", "groundedness"]
    own = [value for item in found.values() for name, value in item.items() if name.startswith("judgekit.")]
    assert own
    assert all(isinstance(value, str) for value in own)

    figure = results(spans, "evaluate run")["", "groundedness"]
    estimate = summary.overall["groundedness"]
    assert figure["gen_ai.evaluation.score.value"] == estimate.value == 4.0
    assert (figure["judgekit.n"], figure["judgekit.n_error"]) == ("1", "1")


def test_scores_of_an_imported_trace_stand_below_its_span_and_name_the_run(
    tmp_path: Path, spans: InMemorySpanExporter
) -> None:
    judgekit.run(write_suite(tmp_path, **three_cases()), run_id="a")
    (run,) = named(spans, "judgekit run")
    by_case = {facts(span)["judgekit.case.id"]: span for span in named(spans, "evaluate case")}
    origin = by_case["c0"]
    assert origin.parent is not None
    assert (f"{origin.parent.trace_id:032x}", f"{origin.parent.span_id:016x}") == tuple(ORIGIN.values())[:2]
    assert [link.context.span_id for link in origin.links] == [run.context.span_id]
    assert by_case["c2"].parent is not None
    assert by_case["c2"].parent.span_id == run.context.span_id


def test_texts_go_out_only_if_the_user_asks(
    tmp_path: Path, spans: InMemorySpanExporter, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRACED_KEY", "sk-very-secret")
    rows = [output("c0", answer="Secret kilns are hot.")]
    reply = verdict(4, supported=["hot"], reasoning="Because of the secret kiln.")
    with FaultServer(after_capabilities(reply)) as server:
        path = write_suite(
            tmp_path,
            server.base_url,
            model={"api_key_env": "TRACED_KEY"},
            case_rows=[case("c0", question="Are secret kilns hot?")],
            output_rows=rows,
        )
        judgekit.run(path, run_id="a", use_cache=False)
        assert "secret" not in everything(spans).lower()
        spans.clear()
        monkeypatch.setenv(CAPTURE, "true")
        judgekit.run(path, run_id="b", use_cache=False)
    (call,) = named(spans, "chat ")
    (said,) = json.loads(facts(call)["gen_ai.output.messages"])
    assert "secret kiln" in said["parts"][0]["content"]
    assert "Secret kilns are hot." in json.loads(facts(call)["gen_ai.input.messages"])[-1]["parts"][0]["content"]
    assert results(spans)["c0", "groundedness"]["gen_ai.evaluation.explanation"] == "Because of the secret kiln."
    assert "sk-very-secret" not in everything(spans)


def test_a_cached_reply_is_a_judgment_without_a_call_and_a_rejudge_is_traced_alike(
    tmp_path: Path, spans: InMemorySpanExporter
) -> None:
    with FaultServer() as server:
        run = first_run(tmp_path, server, spot_check={"n": 2, "model": "other"})
        roles = [facts(span)["judgekit.role"] for span in named(spans, "judge ")]
        assert (roles.count("primary"), roles.count("spot_check")) == (12, 4)
        assert {facts(span)["judgekit.model_id"] for span in named(spans, "judge ")} == {"m", "other"}
        assert len(named(spans, "chat ")) == 16
        scores = results(spans)
        spans.clear()
        n_asked = asked(server)
        rejudge(run, "b")
        assert asked(server) == n_asked
    (again,) = named(spans, "judgekit rejudge")
    assert facts(again)["judgekit.run.parent"] == "a"
    assert named(spans, "chat ") == []
    assert {facts(span)["judgekit.from_cache"] for span in named(spans, "judge ")} == {"True"}
    values = {key: item.get("gen_ai.evaluation.score.value") for key, item in results(spans).items()}
    assert values == {key: item.get("gen_ai.evaluation.score.value") for key, item in scores.items()}


def test_a_call_of_the_system_is_a_span_and_the_scores_of_its_answer_stand_below(
    tmp_path: Path, spans: InMemorySpanExporter
) -> None:
    app = "def ask(case):\n    if case.id == 'c1':\n        raise ValueError('secret')\n    return {'answer': 'hot'}\n"
    (tmp_path / "app.py").write_text(app)
    path = write_suite(tmp_path, n_cases=2, judges=[], models={}, system={"name": "python", "call": "app.py:ask"})
    judgekit.run(path, run_id="a")
    calls = {facts(span)["judgekit.case.id"]: span for span in named(spans, "invoke_workflow python")}
    assert facts(calls["c1"])["error.type"] == "exception"
    assert "error.type" not in facts(calls["c0"])
    for span in named(spans, "evaluate case"):
        assert span.parent is not None
        assert span.parent.span_id == calls[facts(span)["judgekit.case.id"]].context.span_id
    assert "secret" not in everything(spans)


def test_a_run_belongs_to_the_span_around_it_in_a_notebook_as_well(tmp_path: Path, spans: InMemorySpanExporter) -> None:
    async def cell() -> None:
        with trace.get_tracer("notebook").start_as_current_span("cell"):
            judgekit.run(write_suite(tmp_path, n_cases=1), run_id="a")

    asyncio.run(cell())
    (outer,), (run,) = named(spans, "cell"), named(spans, "judgekit run")
    assert run.parent is not None
    assert run.parent.span_id == outer.context.span_id


def test_a_fault_of_the_users_tracing_costs_spans_and_not_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Broken(SpanProcessor):
        def on_start(self, span: Any, parent_context: Any = None) -> None:
            raise OSError("exporter is gone")

        def on_end(self, span: ReadableSpan) -> None:
            raise OSError("exporter is gone")

    provider = TracerProvider()
    provider.add_span_processor(Broken())
    monkeypatch.setattr(trace, "_TRACER_PROVIDER", provider)
    summary = judgekit.run(write_suite(tmp_path), run_id="a")
    assert (summary.status, summary.overall["groundedness"].n_error) == ("complete", 0)


@pytest.mark.slow
def test_a_run_without_a_provider_does_not_import_opentelemetry(tmp_path: Path) -> None:
    path = write_suite(tmp_path, n_cases=1)
    code = f"import sys, judgekit; judgekit.run({str(path)!r}); print('opentelemetry' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout.split()[-1] == "False"


def test_more_results_than_a_span_holds_go_into_several(spans: InMemorySpanExporter) -> None:
    trace_results("evaluate run", {}, [{"gen_ai.evaluation.name": f"m{number}"} for number in range(250)])
    counts = [len(span.events) for span in named(spans, "evaluate run")]
    assert counts == [100, 100, 50]
    assert {event.name for span in named(spans, "evaluate run") for event in span.events} == {RESULT}
