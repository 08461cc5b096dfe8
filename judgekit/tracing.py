"""What a run did, as OpenTelemetry spans and events, for the tracer provider that the user has set in this process.

judgekit sends nothing to anybody: without a provider every function here gives a span of nobody, and OpenTelemetry is
not even imported. Names are those of the GenAI conventions, version 1.41, written out, since the package that holds
them as constants changes with every release; what is judgekit's own begins with `judgekit.` and is a text.
Texts of cases and replies go out only where the user asks for them, by the variable that other instrumentations read.
"""

import json
import os
import sys
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from contextvars import ContextVar
from functools import lru_cache
from types import TracebackType
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import judgekit
from judgekit.core.cases import SystemOutput, Usage
from judgekit.core.judgments import ModelRequest, ModelResponse

if TYPE_CHECKING:
    from opentelemetry.trace import Span, SpanContext, Tracer, TracerProvider

CAPTURE = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"
"""The environment variable that asks for texts."""

RESULT = "gen_ai.evaluation.result"

MOST_EVENTS = 100
"""Events of one span; SDKs drop those above 128."""

_PROVIDERS = {"openai_compatible": "openai"}
"""What the conventions call those who are asked by the same protocol."""

Attributes = Mapping[str, Any]


def captures_content() -> bool:
    """Whether the user asks for texts of cases and replies."""
    return os.environ.get(CAPTURE, "").strip().lower() in {"true", "1", "span_only", "span_and_event", "event_only"}


class Traced:
    """A span under way; this one is of nobody, and takes what it is told without keeping it."""

    is_on = False

    def __enter__(self) -> "Traced":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End the span."""

    def tell(self, attributes: Attributes) -> None:
        """Add what is known now; None is left out."""

    def fail(self, kind: str) -> None:
        """Mark the span as failed."""

    def add_event(self, attributes: Attributes) -> None:
        """Add the result of an evaluation."""

    def replied(self, response: ModelResponse) -> None:
        """Add what a model replied."""

    def answered(self, output: SystemOutput) -> None:
        """Add what a system under test answered."""


_NOBODY = Traced()


class _Open(Traced):
    """A span of the user's tracer provider; a fault of that costs a span, never the run."""

    is_on = True

    def __init__(self, manager: "AbstractContextManager[Span]") -> None:
        self._manager = manager
        self.span: Span

    def __enter__(self) -> Traced:
        from opentelemetry.trace import INVALID_SPAN

        self.span = INVALID_SPAN
        with suppress(Exception):
            self.span = self._manager.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is not None:
            # Its kind and no more: the message may quote a reply.
            self.fail(str(getattr(error, "kind", kind.__name__)))
        with suppress(Exception):
            self._manager.__exit__(None, None, None)

    def tell(self, attributes: Attributes) -> None:
        with suppress(Exception):
            self.span.set_attributes(_written(attributes))

    def fail(self, kind: str) -> None:
        from opentelemetry.trace import StatusCode

        with suppress(Exception):
            self.span.set_status(StatusCode.ERROR)
            self.span.set_attribute("error.type", kind)

    def add_event(self, attributes: Attributes) -> None:
        with suppress(Exception):
            self.span.add_event(RESULT, _written(attributes))

    def replied(self, response: ModelResponse) -> None:
        reasons = None if response.finish_reason is None else [response.finish_reason]
        self.tell(
            {
                "gen_ai.response.id": response.response_id,
                "gen_ai.response.model": response.served_model,
                "gen_ai.response.finish_reasons": reasons,
                **_tokens(response.usage),
            }
        )
        if captures_content() and response.text is not None:
            part = {"type": "text", "content": response.text}
            said = {"role": "assistant", "parts": [part], "finish_reason": response.finish_reason or "unknown"}
            self.tell({"gen_ai.output.messages": json.dumps([said], ensure_ascii=False)})

    def answered(self, output: SystemOutput) -> None:
        evaluated = _EVALUATED.get()
        if evaluated is not None:
            evaluated[output.case_id] = self.span.get_span_context()
        self.tell(_tokens(output.usage))
        if output.error is not None:
            self.fail(output.error.kind)


_EVALUATED: "ContextVar[dict[str, SpanContext] | None]" = ContextVar("judgekit_evaluated", default=None)
"""By case, the span of the system call whose output is judged in this run."""


def is_traced() -> bool:
    """Whether the user has set a tracer provider."""
    return _tracer() is not None


def run_span(kind: str, attributes: Attributes) -> Traced:
    """A whole run.

    Args:
        kind: `run` or `rejudge`.
        attributes: what is known of it at its start.
    """
    span = _span(f"judgekit {kind}", attributes)
    if span.is_on:
        _EVALUATED.set({})
    return span


def system_call_span(case_id: str, system_name: str) -> Traced:
    """One case put before the system under test, with all attempts."""
    if _tracer() is None:
        return _NOBODY
    facts = {
        "gen_ai.operation.name": "invoke_workflow",
        "gen_ai.workflow.name": system_name,
        "judgekit.case.id": case_id,
        "judgekit.system": system_name,
    }
    return _span(f"invoke_workflow {system_name}", facts)


def judgment_span(judge: str, case_id: str, facts: Attributes) -> Traced:
    """One judgment: from a judge input to a verdict or a failure, whether a model is asked for it or not."""
    if _tracer() is None:
        return _NOBODY
    return _span(f"judge {judge}", {"judgekit.judge": judge, "judgekit.case.id": case_id, **facts})


def model_call_span(request: ModelRequest, *, is_remote: bool) -> Traced:
    """One question to a judge model, retries included.

    Args:
        request: what is asked.
        is_remote: whether the model is another process.
    """
    if _tracer() is None:
        return _NOBODY
    parameters = request.parameters
    temperature = parameters.get("temperature")
    is_json = str(parameters.get("response_format", "text")).startswith("json")
    address = urlsplit(request.base_url or "")
    facts = {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": _PROVIDERS.get(request.provider, request.provider),
        "gen_ai.request.model": request.model,
        "gen_ai.request.temperature": None if temperature is None else float(temperature),
        "gen_ai.request.seed": parameters.get("seed"),
        "gen_ai.request.max_tokens": parameters.get("max_output_tokens"),
        "gen_ai.output.type": "json" if is_json else "text",
        "server.address": address.hostname,
        "server.port": _port(address.netloc, address.scheme),
        "judgekit.attempt": request.attempt,
    }
    if captures_content():
        asked = [
            {"role": item["role"], "parts": [{"type": "text", "content": item["content"]}]} for item in request.messages
        ]
        facts["gen_ai.input.messages"] = json.dumps(asked, ensure_ascii=False)
    return _span(f"chat {request.model}", facts, is_call=is_remote)


def trace_results(
    name: str, facts: Attributes, results: Sequence[Attributes], evaluated: Attributes | None = None
) -> None:
    """Scores of one case, or figures of a run, as one event each.

    The span that holds them stands below the span of what was evaluated, if that is known: the system call of this run,
    or the one that the output was imported from.

    Args:
        name: of the span.
        facts: its attributes.
        results: attributes of each event.
        evaluated: metadata of the output, with `trace_id` and `span_id` where it comes from a trace.
    """
    for start in range(0, len(results), MOST_EVENTS):
        with _span(name, facts, parent=_evaluated(facts.get("judgekit.case.id"), evaluated or {})) as span:
            for result in results[start : start + MOST_EVENTS]:
                span.add_event(result)


def _evaluated(case_id: str | None, metadata: Attributes) -> "SpanContext | None":
    """The span of what was evaluated, if it is known."""
    here = (_EVALUATED.get() or {}).get(case_id or "")
    if here is not None or _tracer() is None:
        return here
    from opentelemetry.trace import SpanContext, TraceFlags

    try:
        trace_id, span_id = int(metadata["trace_id"], 16), int(metadata["span_id"], 16)
    except (KeyError, TypeError, ValueError):
        return None
    found = SpanContext(trace_id, span_id, is_remote=True, trace_flags=TraceFlags(TraceFlags.SAMPLED))
    return found if found.is_valid else None


def _tracer() -> "Tracer | None":
    """The tracer of the user's provider; None if there is none.

    A provider can only be there if something has imported OpenTelemetry before.
    """
    if "opentelemetry.trace" not in sys.modules:
        return None
    from opentelemetry.trace import ProxyTracerProvider, get_tracer_provider

    with suppress(Exception):  # a provider that environment variables name is loaded here
        provider = get_tracer_provider()
        return None if isinstance(provider, ProxyTracerProvider) else _tracer_of(provider)
    return None


@lru_cache(maxsize=1)
def _tracer_of(provider: "TracerProvider") -> "Tracer":
    return provider.get_tracer("judgekit", judgekit.__version__)


def _span(name: str, attributes: Attributes, *, is_call: bool = False, parent: "SpanContext | None" = None) -> Traced:
    tracer = _tracer()
    if tracer is None:
        return _NOBODY
    from opentelemetry.trace import Link, NonRecordingSpan, SpanKind, get_current_span, set_span_in_context

    run = get_current_span().get_span_context()
    manager = tracer.start_as_current_span(
        name,
        context=None if parent is None else set_span_in_context(NonRecordingSpan(parent)),
        kind=SpanKind.CLIENT if is_call else SpanKind.INTERNAL,
        attributes=_written(attributes),
        links=[Link(run)] if parent is not None and run.is_valid and run.trace_id != parent.trace_id else None,
        record_exception=False,
        set_status_on_exception=False,
    )
    return _Open(manager)


def _written(attributes: Attributes) -> dict[str, Any]:
    """Attributes as they go out: without what is not known, and judgekit's own as texts."""
    return {
        name: str(value) if name.startswith("judgekit.") else value
        for name, value in attributes.items()
        if value is not None
    }


def _tokens(usage: Usage | None) -> dict[str, Any]:
    if usage is None:
        return {}
    return {
        "gen_ai.usage.input_tokens": usage.prompt_tokens,
        "gen_ai.usage.output_tokens": usage.completion_tokens,
        "gen_ai.usage.cache_read.input_tokens": usage.cached_tokens,
        "gen_ai.usage.reasoning.output_tokens": usage.reasoning_tokens,
    }


def _port(netloc: str, scheme: str) -> int | None:
    """The port of an address; None without an address."""
    if not netloc:
        return None
    port = netloc.rpartition("@")[2].rpartition(":")[2]
    return int(port) if port.isdecimal() else {"https": 443, "http": 80}.get(scheme)
