"""Traces as cases and outputs, by the published forms of OTLP's JSON and of the spans that Phoenix exports."""

import base64
import csv
import json
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from tests.readers import cases_of, complaint, outputs_of, said, written

TRACE = "0af7651916cd43dd8448eb211c80319c"
START = 1_760_000_000

Attributes = dict[str, Any]


def valued(value: Any) -> dict[str, Any]:
    """A value as OTLP writes it."""
    if isinstance(value, bool):
        return {"boolValue": value}
    if isinstance(value, int):
        return {"intValue": str(value)}
    if isinstance(value, float):
        return {"doubleValue": value}
    if isinstance(value, list):
        return {"arrayValue": {"values": [valued(item) for item in value]}}
    if isinstance(value, dict):
        return {"kvlistValue": {"values": keyed(value)}}
    return {"stringValue": value}


def keyed(attributes: Attributes) -> list[dict[str, Any]]:
    return [{"key": name, "value": valued(value)} for name, value in attributes.items()]


def span(number: int, parent: int | None, times: tuple[float, float], attributes: Attributes, **more: Any) -> Any:
    """A span of the one trace; its id is its number."""
    start, end = (str(int((START + second) * 1e9)) for second in times)
    ids = {"traceId": TRACE, "spanId": f"{number:016x}"}
    ids |= {} if parent is None else {"parentSpanId": f"{parent:016x}"}
    facts = {"startTimeUnixNano": start, "endTimeUnixNano": end, "attributes": keyed(attributes)}
    return {**ids, "name": f"step {number}", **facts, **more}


def export(*spans: Any) -> dict[str, Any]:
    resource = {"attributes": keyed({"service.name": "kilns"})}
    return {"resourceSpans": [{"resource": resource, "scopeSpans": [{"scope": {"name": "s"}, "spans": list(spans)}]}]}


def otlp(folder: Path, *spans: Any, name: str = "traces.json") -> Path:
    return written(folder, name, json.dumps(export(*spans), indent=1))


def chain(**more: Any) -> Any:
    facts = {
        "openinference.span.kind": "CHAIN",
        "input.value": "How hot is a kiln?",
        "output.value": "1240 degrees.",
        "session.id": "s7",
        "tag.tags": ["live"],
        "metadata": '{"user": "u1"}',
    }
    return span(1, None, (0, 2), {**facts, **more.pop("attributes", {})}, **more)


RETRIEVER = {
    "openinference.span.kind": "RETRIEVER",
    "input.value": "kiln heat",
    "retrieval.documents.0.document.id": "k1",
    "retrieval.documents.0.document.content": "A kiln is fired at 1240 degrees.",
    "retrieval.documents.0.document.score": 0.9,
    "retrieval.documents.0.document.metadata": '{"page": 3}',
    "retrieval.documents.1.document.id": "k2",
    "retrieval.documents.1.document.content": "Clay dries first.",
    "retrieval.documents.1.document.score": 0.5,
}
LLM = {
    "openinference.span.kind": "LLM",
    "llm.model_name": "m-1",
    "llm.input_messages.0.message.role": "system",
    "llm.input_messages.0.message.content": "Answer from: A kiln is fired at 1240 degrees.",
    "llm.input_messages.1.message.role": "user",
    "llm.input_messages.1.message.content": "How hot is a kiln?",
    "llm.output_messages.0.message.role": "assistant",
    "llm.output_messages.0.message.content": "1240 degrees.",
    "llm.token_count.prompt": 40,
    "llm.token_count.completion": 6,
    "llm.token_count.total": 46,
    "llm.invocation_parameters": '{"temperature": 0}',
}
RAG = [chain(), span(2, 1, (0.1, 0.6), RETRIEVER), span(3, 1, (0.6, 1.9), LLM)]

CASE = {
    "id": TRACE,
    "question": "How hot is a kiln?",
    "tags": ["live"],
    "metadata": {"session.id": "s7", "service.name": "kilns", "user": "u1"},
}
OUTPUT = {
    "case_id": TRACE,
    "answer": "1240 degrees.",
    "retrieved": [
        {"chunk_id": "k1", "text": "A kiln is fired at 1240 degrees.", "score": 0.9, "metadata": {"page": 3}},
        {"chunk_id": "k2", "text": "Clay dries first.", "score": 0.5},
    ],
    "latency_seconds": {"total": 2.0, "retrieval": 0.5, "generation": 1.3},
    "usage": {"prompt_tokens": 40, "completion_tokens": 6, "total_tokens": 46},
    "metadata": {
        "session.id": "s7",
        "service.name": "kilns",
        "user": "u1",
        "trace_id": TRACE,
        "span_id": f"{1:016x}",
        "models": ["m-1"],
    },
}


def close_to(output: dict[str, Any]) -> dict[str, Any]:
    """An output whose seconds are rounded: times of 2025 in nanoseconds do not fit a float."""
    return {**output, "latency_seconds": {name: round(value, 3) for name, value in output["latency_seconds"].items()}}


def test_a_trace_is_a_case_and_an_output_and_what_else_it_holds_is_named(tmp_path: Path) -> None:
    path = otlp(tmp_path, *RAG)
    notices: list[tuple[str, str]] = []
    assert [said(case) for case in cases_of(path)] == [CASE]
    assert [close_to(said(output)) for output in outputs_of(path, notices)] == [OUTPUT]
    assert notices == [
        ("format_detected", 'traces.json: read as otlp, by its keys; fix that with "format": "otlp"'),
        ("trace_attributes_kept", "traces.json: attributes kept in metadata: session.id (1), service.name (1)"),
        (
            "trace_attributes_left_out",
            "traces.json: attributes of inner spans that are left out: input.value (1), llm.input_messages (1), "
            "llm.output_messages (1), llm.invocation_parameters (1)",
        ),
    ]


def test_lines_in_any_order_and_one_trace_over_several_lines_are_the_same(tmp_path: Path) -> None:
    lines = "".join(json.dumps(export(item)) + "\n" for item in reversed(RAG))
    for name in ("t.jsonl", "t.json"):
        path = written(tmp_path, name, lines)
        assert [close_to(said(output)) for output in outputs_of(path)] == [OUTPUT]
        assert [said(case) for case in cases_of(path)] == [CASE]
    path = written(tmp_path, "list.json", json.dumps([export(item) for item in RAG]))
    assert [said(case) for case in cases_of(path, format="otlp")] == [CASE]
    for number, item in enumerate(RAG):
        written(tmp_path, f"folder/{number}.json", json.dumps(export(item)))
    assert [said(case) for case in cases_of(tmp_path / "folder")] == [CASE]


def phoenix_rows(*, nested: bool) -> list[dict[str, Any]]:
    """The same trace as rows of Phoenix's data frame; lists of objects are one column there."""
    rows = []
    for item in RAG:
        facts = {entry["key"]: next(iter(entry["value"].values())) for entry in item["attributes"]}
        attributes: dict[str, Any] = {}
        for name, value in facts.items():
            head, _, rest = name.partition(".documents.")
            if rest:
                number, _, part = rest.partition(".")
                documents = attributes.setdefault(f"{head}.documents", [])
                documents += [{}] * (int(number) + 1 - len(documents))
                documents[int(number)] = {**documents[int(number)], part: value}
            elif name != "openinference.span.kind":
                attributes[name] = ["live"] if name == "tag.tags" else value
        for name in ("prompt", "completion", "total"):
            if f"llm.token_count.{name}" in attributes:
                attributes[f"llm.token_count.{name}"] = int(attributes[f"llm.token_count.{name}"])
        ids = {"trace_id": item["traceId"], "span_id": item["spanId"]}
        seconds = [int(item[key]) / 1e9 for key in ("startTimeUnixNano", "endTimeUnixNano")]
        rows.append(
            {
                "name": item["name"],
                "span_kind": facts["openinference.span.kind"],
                "parent_id": item.get("parentSpanId"),
                "start_time": f"2025-10-09T08:53:{20 + seconds[0] - START:09.6f}+00:00",
                "end_time": f"2025-10-09T08:53:{20 + seconds[1] - START:09.6f}+00:00",
                "status_code": "OK",
                "status_message": "",
                **({"context": ids} if nested else {f"context.{name}": value for name, value in ids.items()}),
                **({"attributes": attributes} if nested else {f"attributes.{k}": v for k, v in attributes.items()}),
            }
        )
    return rows


def without_service(record: dict[str, Any]) -> dict[str, Any]:
    return {**record, "metadata": {key: value for key, value in record["metadata"].items() if key != "service.name"}}


@pytest.mark.parametrize("form", ["frame.jsonl", "frame.csv", "frame.json", "frame.parquet", "spans.json"])
def test_spans_of_phoenix_say_the_same_however_they_are_stored(tmp_path: Path, form: str) -> None:
    rows = phoenix_rows(nested=form == "spans.json")
    path = tmp_path / form
    if form == "frame.csv":  # as pandas writes it: lists as Python prints them
        names = list(dict.fromkeys(name for row in rows for name in row))
        with path.open("w", newline="") as stream:
            writer = csv.DictWriter(stream, names)
            writer.writeheader()
            writer.writerows(rows)
    elif form == "frame.parquet":
        pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
        times = ("start_time", "end_time")
        timed = [{**row, **{name: datetime.fromisoformat(row[name]) for name in times}} for row in rows]
        names = list(dict.fromkeys(name for row in rows for name in row))
        pq.write_table(pa.Table.from_pylist([{n: row.get(n) for n in names} for row in timed]), path)
    elif form == "frame.jsonl":
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    else:
        path.write_text(json.dumps(rows if form == "frame.json" else {"data": rows, "next_cursor": None}))
    notices: list[tuple[str, str]] = []
    assert [said(case) for case in cases_of(path, notices)] == [without_service(CASE)]
    assert notices[0][1].endswith('"format": "openinference"')
    assert [close_to(said(output)) for output in outputs_of(path)] == [without_service(OUTPUT)]


def test_the_genai_conventions_say_the_same(tmp_path: Path) -> None:
    asked = [
        {"role": "system", "parts": [{"type": "text", "content": "Be brief."}]},
        {"role": "user", "parts": [{"type": "text", "content": "How hot?"}]},
    ]
    call = {"type": "tool_call", "id": "t1", "name": "measure", "arguments": {"what": "kiln"}}
    told = [
        {
            "role": "assistant",
            "parts": [{"type": "reasoning", "content": "hm"}, {"type": "text", "content": "1240."}],
            "finish_reason": "stop",
        }
    ]
    agent = {"gen_ai.operation.name": "invoke_agent", "gen_ai.input.messages": json.dumps(asked)}
    agent |= {"gen_ai.output.messages": json.dumps(told), "gen_ai.conversation.id": "c1"}
    counts = {"gen_ai.usage.input_tokens": 10, "gen_ai.usage.output_tokens": 2}
    model = {"gen_ai.operation.name": "chat", "gen_ai.response.model": "m-2", "gen_ai.response.id": "r-1", **counts}
    first = {**model, "gen_ai.output.messages": json.dumps([{"role": "assistant", "parts": [call]}])}
    tool = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "measure", "gen_ai.tool.call.id": "t1"}
    tool |= {"gen_ai.tool.call.arguments": '{"what": "kiln"}', "gen_ai.tool.call.result": '{"heat": 1240}'}
    found = {"gen_ai.operation.name": "retrieval"}
    found |= {"gen_ai.retrieval.documents": json.dumps([{"id": "d1", "score": 0.5}])}
    path = otlp(
        tmp_path,
        span(1, None, (0, 9), agent),
        span(2, 1, (0, 1), first),
        span(3, 1, (1, 2), tool),
        span(4, 1, (2, 3), found),
        span(5, 1, (3, 5), {**model, "gen_ai.response.id": "r-2"}),
    )
    (case,), (output,) = cases_of(path), outputs_of(path)
    assert case.question == "How hot?"
    assert [(item.role, item.text) for item in case.messages or ()] == [("system", "Be brief."), ("user", "How hot?")]
    assert case.metadata == {"gen_ai.conversation.id": "c1", "service.name": "kilns"}
    assert output.answer == "1240."
    assert output.usage is not None
    assert (output.usage.prompt_tokens, output.usage.completion_tokens) == (20, 4)
    assert [(item.chunk_id, item.score) for item in output.retrieved] == [("d1", 0.5)]
    turns = [(item.role, item.text, [call.name for call in item.tool_calls]) for item in output.turns or ()]
    assert turns == [("assistant", None, ["measure"]), ("tool", '{"heat": 1240}', []), ("assistant", "1240.", [])]
    assert (output.turns or ())[0].tool_calls[0].arguments == {"what": "kiln"}
    assert output.metadata["response_id"] == "r-2"
    assert output.latency_seconds["generation"] == pytest.approx(3)


def test_a_model_asked_alone_is_a_conversation_and_calls_without_spans_of_tools_are_its_turns(tmp_path: Path) -> None:
    facts = {name: value for name, value in LLM.items() if "output_messages" not in name}
    facts |= {
        "llm.output_messages.0.message.role": "assistant",
        "llm.output_messages.0.message.tool_calls.0.tool_call.id": "t9",
        "llm.output_messages.0.message.tool_calls.0.tool_call.function.name": "look",
        "llm.output_messages.0.message.tool_calls.0.tool_call.function.arguments": '{"at": "kiln"}',
    }
    path = otlp(tmp_path, span(1, None, (0, 1), facts))
    (case,), (output,) = cases_of(path), outputs_of(path)
    assert [item.role for item in case.messages or ()] == ["system", "user"]
    assert output.answer is None
    assert [(call.id, call.name, call.arguments) for item in output.turns or () for call in item.tool_calls] == [
        ("t9", "look", {"at": "kiln"})
    ]


def test_failures_are_errors_only_where_the_trace_failed(tmp_path: Path) -> None:
    raised = {"name": "exception", "attributes": keyed({"exception.type": "TimeoutError", "exception.message": "slow"})}
    failed = chain(status={"code": "STATUS_CODE_ERROR"}, events=[raised])
    (output,) = outputs_of(otlp(tmp_path, failed))
    assert output.error is not None
    assert (output.error.kind, output.error.message) == ("TimeoutError", "slow")

    silent = span(1, None, (0, 2), {"openinference.span.kind": "CHAIN", "input.value": "q?"})
    inner = span(2, 1, (0, 1), {"error.type": "429"}, status={"code": 2, "message": "too many"})
    (output,) = outputs_of(otlp(tmp_path, silent, inner))
    assert output.error is not None
    assert (output.error.kind, output.error.message) == ("429", "too many")

    notices: list[tuple[str, str]] = []
    (output,) = outputs_of(otlp(tmp_path, chain(), inner), notices)
    assert output.error is None
    assert ("inner_failures", "1 traces have spans that failed, and an answer all the same; they are no errors") in [
        (code, message.removeprefix("traces.json: ")) for code, message in notices
    ]


def test_calls_inside_each_other_count_once_and_time_side_by_side_too(tmp_path: Path) -> None:
    outer = {"openinference.span.kind": "LLM"}
    spans = [
        chain(),
        span(2, 1, (0, 1), outer),
        span(3, 2, (0, 1), LLM),
        span(4, 1, (0.5, 1.5), LLM),
        span(5, 1, (0, 0.4), RETRIEVER),
        span(6, 5, (0, 0.4), RETRIEVER),
    ]
    (output,) = outputs_of(otlp(tmp_path, *spans))
    assert output.usage is not None
    assert output.usage.prompt_tokens == 80
    assert output.latency_seconds["generation"] == pytest.approx(1.5)
    assert len(output.retrieved) == 2

    notices: list[tuple[str, str]] = []
    (output,) = outputs_of(otlp(tmp_path, *spans, span(7, 1, (0, 1), outer)), notices)
    assert output.usage is None
    assert "usage_incomplete" in dict(notices)


def test_a_reranker_says_what_was_kept(tmp_path: Path) -> None:
    kept = {"openinference.span.kind": "RERANKER", "reranker.output_documents.0.document.id": "k2"}
    notices: list[tuple[str, str]] = []
    (output,) = outputs_of(otlp(tmp_path, *RAG, span(4, 1, (0.5, 0.6), kept)), notices)
    assert [hit.chunk_id for hit in output.retrieved] == ["k2"]
    assert "reranked" in dict(notices)


def test_a_root_without_texts_takes_those_below_it_and_says_so(tmp_path: Path) -> None:
    notices: list[tuple[str, str]] = []
    path = otlp(tmp_path, span(1, None, (0, 2), {"http.route": "/ask"}), *RAG[1:])
    (case,), (output,) = cases_of(path, notices), outputs_of(path)
    assert (case.question, output.answer, case.messages) == ("kiln heat", "1240 degrees.", None)
    assert "texts_not_of_the_root" in dict(notices)


@pytest.mark.parametrize(
    ("value", "question"),
    [
        ('{"question": "How?"}', "How?"),
        ('{"inputs": {"query": "How?", "k": 3}}', "How?"),
        ('{"whatever": "How?"}', "How?"),
        ('{"messages": [{"role": "user", "content": "How?"}]}', "How?"),
        ('{"a": "x", "b": "y"}', '{"a": "x", "b": "y"}'),
    ],
)
def test_the_text_in_an_object_is_found_or_taken_whole_and_named(tmp_path: Path, value: str, question: str) -> None:
    path = otlp(tmp_path, chain(attributes={"input.value": value, "input.mime_type": "application/json"}))
    notices: list[tuple[str, str]] = []
    (case,) = cases_of(path, notices)
    assert case.question == question
    assert ("texts_are_objects" in dict(notices)) == (question == value)
    (mapped,) = cases_of(path, format="otlp", fields={"category": "attributes.session.id"})
    assert mapped.category == "s7"
    if question == value:
        (mapped,) = cases_of(path, format="otlp", fields={"question": "attributes.input.value.b"})
        assert mapped.question == "y"


def codes(path: Path, kind: Any = cases_of) -> dict[str, str]:
    notices: list[tuple[str, str]] = []
    kind(path, notices)
    return {code: message.removeprefix(f"{path.name}: ") for code, message in notices}


def test_ids_in_base64_and_capitals_are_read_as_the_ids_they_stand_for(tmp_path: Path) -> None:
    def in_base64(item: Any) -> Any:
        ids = {key: item[key] for key in ("traceId", "spanId", "parentSpanId") if key in item}
        return {**item, **{key: base64.b64encode(bytes.fromhex(text)).decode() for key, text in ids.items()}}

    path = otlp(tmp_path, RAG[0], in_base64(RAG[1]), {**RAG[2], "traceId": TRACE.upper()})
    assert [close_to(said(output)) for output in outputs_of(path)] == [OUTPUT]
    assert codes(path)["trace_ids_base64"].startswith("3 ids are base64")


def test_orphans_repeats_and_spans_under_way_are_counted(tmp_path: Path) -> None:
    unfinished = {**RAG[2], "endTimeUnixNano": "0"}
    path = otlp(tmp_path, RAG[0], RAG[1], RAG[1], unfinished, span(9, 77, (1, 2), {"openinference.span.kind": "TOOL"}))
    found = codes(path)
    assert [found[code].partition(" ")[0] for code in ("spans_repeated", "spans_without_parent")] == ["1", "1"]
    assert found["spans_without_duration"].startswith("1 spans")
    (output,) = outputs_of(path)
    assert "generation" not in output.latency_seconds

    alone = otlp(tmp_path, span(2, 77, (0, 1), RETRIEVER), span(3, 77, (1, 2), LLM))
    assert [output.answer for output in outputs_of(alone)] == ["1240 degrees."]
    assert codes(alone)["spans_without_parent"].startswith("2 spans")


def test_each_root_of_a_trace_with_several_is_a_case(tmp_path: Path) -> None:
    second = {**chain(), "spanId": f"{8:016x}"}
    path = otlp(tmp_path, *RAG, second)
    assert [case.id for case in cases_of(path)] == [f"{TRACE}-{1:016x}", f"{TRACE}-{8:016x}"]
    assert [len(output.retrieved) for output in outputs_of(path)] == [2, 0]
    assert codes(path)["traces_with_several_roots"].startswith("1 traces")


def test_traces_without_a_question_are_left_out_and_counted_and_a_file_of_only_those_is_refused(tmp_path: Path) -> None:
    health = {**span(1, None, (0, 1), {"http.route": "/health"}), "traceId": "f" * 32}
    path = otlp(tmp_path, *RAG, health)
    assert len(cases_of(path)) == len(outputs_of(path)) == 1
    assert codes(path)["traces_left_out"] == "1 traces hold no question; they are left out"
    assert "1 traces, and none holds a question" in complaint(otlp(tmp_path, health))
    assert complaint(otlp(tmp_path, name="empty.json")) == "empty.json: holds no spans"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"traceId": "xyz"},
            "t.json:{line}: $.resourceSpans[0].scopeSpans[0].spans[0]: traceId: expected 32 hexadecimal",
        ),
        ({"spanId": ""}, "a span has no spanId"),
        ({"traceId": "0" * 32}, "a span has no traceId"),
        ({"attributes": {"a": 1}}, "attributes: expected a list of keys with values, found an object"),
        ({"attributes": [{"key": "a", "value": {"intValue": "x"}}]}, "attributes[0].value: intValue 'x' is none"),
        (
            {"attributes": [{"key": "a", "value": {"oddValue": 1}}]},
            "attributes[0].value: unknown kind of value 'oddValue'",
        ),
        ({"attributes": [{"value": {}}]}, "attributes[0]: expected an object with key and value"),
        ({"parentSpanId": f"{1:016x}"}, "is above itself, by its parents"),
    ],
)
def test_a_damaged_span_is_one_line_with_its_place(tmp_path: Path, change: dict[str, Any], message: str) -> None:
    path = otlp(tmp_path, {**chain(), **change}, {**chain(), "traceId": "e" * 32}, name="t.json")
    lines = path.read_text().splitlines()
    where = 1 + next(n for n, line in enumerate(lines) if '"traceId"' in line)
    found = complaint(path)
    assert message.replace("{line}", str(where - 1)) in found
    assert found.count("\n") == 0


def test_a_half_written_file_is_one_line(tmp_path: Path) -> None:
    whole = json.dumps(export(*RAG))
    path = written(tmp_path, "t.jsonl", whole + "\n" + whole[: len(whole) // 2])
    assert complaint(path).startswith("t.jsonl:2: $: not valid JSON")
    path = written(tmp_path, "t.json", whole[: len(whole) // 2])
    assert complaint(path).startswith("t.json:1: not valid JSON")


def test_hostile_attributes_cost_nothing_but_themselves(tmp_path: Path) -> None:
    deep: Any = {"stringValue": "x"}
    for _ in range(60):
        deep = {"arrayValue": {"values": [deep]}}
    odd = {"a." * 5000: "long", "input": "beside", "retrieval.documents": "no list", "..": "dots", "": "no name"}
    (case,) = cases_of(otlp(tmp_path, chain(attributes=odd)))
    assert case.question == "How hot is a kiln?"
    nested = {**chain(), "attributes": [{"key": "a", "value": deep}]}
    assert "nested too deeply" in complaint(otlp(tmp_path, nested))


def test_spans_that_the_sdk_for_python_prints_are_read_with_their_status(tmp_path: Path) -> None:
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

    exporter, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    facts = {"openinference.span.kind": "CHAIN", "input.value": "How hot?"}
    with (
        pytest.raises(TimeoutError),
        provider.get_tracer("app").start_as_current_span("ask", attributes=facts),
    ):
        raise TimeoutError("slow")
    (made,) = exporter.get_finished_spans()
    (output,) = outputs_of(written(tmp_path, "t.jsonl", made.to_json(indent=None)))
    assert made.context is not None
    assert output.case_id == f"{made.context.trace_id:032x}"
    assert output.error is not None
    assert (output.error.kind, output.error.message) == ("TimeoutError", "TimeoutError: slow")
