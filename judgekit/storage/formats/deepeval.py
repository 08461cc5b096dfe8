"""DeepEval: goldens and test cases in JSON or CSV, and test runs with `testCases`; names in snake or camel case.

Each record holds a case, and an output once the system has answered; one with `turns` holds a conversation. List cells
of a CSV file are split at `|`, as DeepEval writes them, if the config says `"format": "deepeval"` or sets
`list_separator`; not on a guess.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from judgekit.storage.chat_messages import given, made
from judgekit.storage.record_formats import Document, Fields, RecordFormat, Source, document_row, hits_of
from judgekit.storage.rows import Row

_ANSWER = ("actual_output", "actualOutput")
_REFERENCE = ("expected_output", "expectedOutput")
_CONTEXT = ("retrieval_context", "retrievalContext")
_SECONDS = ("completion_time", "completionTime")
_METADATA = ("additional_metadata", "additionalMetadata")
_SCORES = ("metrics_data", "metricsData")
_LISTS = ("testCases", "test_cases", "goldens")
_CONVERSATIONS = ("conversationalTestCases", "conversational_test_cases", "conversational_goldens")
_WRAPPER = "testRunData"
"""What the file of the last run, `.deepeval/.latest_test_run.json`, holds the run under."""
_CALLED = ("tools_called", "toolsCalled")
_SCENARIO = (
    *("scenario", "expected_outcome", "user_description", "chatbot_role"),
    *("expectedOutcome", "userDescription", "chatbotRole"),
)
"""What a conversation is about; of the case."""
_EXPECTED_CALLS = ("expected_tools", "expectedTools")


class Deepeval(RecordFormat):
    """Cases with their outputs."""

    def claims_record(self, record: Mapping[str, Any]) -> bool:
        """`input` with an actual or expected output, or a conversation. Langfuse has `output` beside it."""
        if "input" in record and "output" not in record and not isinstance(record["input"], Mapping):
            return bool({*_ANSWER, *_REFERENCE} & record.keys())
        return {"scenario", "turns"} <= record.keys()

    def claims_document(self, document: Document) -> bool:
        """A test run, or a dataset with goldens."""
        return any(isinstance(_run(document).get(name), list) for name in (*_LISTS, *_CONVERSATIONS))

    def from_document(self, document: Document, source: Source) -> Iterable[Row]:
        """The test cases of a run."""
        run = _run(document)
        above = () if run is document else (_WRAPPER,)
        lists = [name for name in (*_LISTS, *_CONVERSATIONS) if isinstance(run.get(name), list)]
        if not any(run[name] for name in lists):
            return super().from_document(document, source)
        return (document_row((*above, name, n), item) for name in lists for n, item in enumerate(run[name]))

    def separator(self, source: Source) -> str | None:
        """`|` where the format is named."""
        return source.file.list_separator or ("|" if source.file.format == "deepeval" else None)

    def case(self, fields: Fields) -> dict[str, Any]:
        """Input and expected output; `context`, the ideal passages, goes to metadata."""
        fields.drop(*_ANSWER, *_CONTEXT, *_SECONDS, *_SCORES, *_CALLED, "trace", "success")
        asked = (
            given(_turns(fields, "messages"))
            if _is_conversation(fields)
            else {"question": fields.take("question", "input")}
        )
        references = fields.text("reference_answers", *_REFERENCE)
        case: dict[str, Any] = {
            **asked,
            "expected_tool_calls": fields.calls("expected_tool_calls", *_EXPECTED_CALLS),
            "reference_answers": None if references is None else [references],
            "metadata": fields.take("metadata", *_METADATA),
            "tags": fields.texts("tags", "tags"),
        }
        context = fields.texts("context", "context")
        if context is not None:
            fields.rest["context"] = context
        return case

    def output(self, fields: Fields) -> dict[str, Any]:
        """Actual output and retrieved passages; DeepEval's own scores go to metadata."""
        fields.drop(*_REFERENCE, *_METADATA, *_EXPECTED_CALLS, "input", "context", "trace", "tags", "comments")
        fields.drop("source_file", "sourceFile", *_SCENARIO)
        texts = fields.texts("retrieved", *_CONTEXT)
        seconds = fields.take("latency_seconds", *_SECONDS)
        return {
            **_answered(fields),
            "retrieved": None if texts is None else hits_of(texts),
            "latency_seconds": {"total": seconds} if isinstance(seconds, int | float) else None,
        }


def _run(document: Document) -> Document:
    run = document.get(_WRAPPER)
    return run if isinstance(run, Mapping) else document


def _is_conversation(fields: Fields) -> bool:
    return "turns" in fields.record and "input" not in fields.record


def _turns(fields: Fields, ours: str) -> list[dict[str, Any]]:
    found = fields.messages(ours, "turns")
    if found is None:
        raise ValueError("turns: none yet; let DeepEval simulate the conversation first")
    return found


def _answered(fields: Fields) -> dict[str, Any]:
    """Answer and turns; a record with calls of tools beside its answer has one turn."""
    if _is_conversation(fields):
        return made(_turns(fields, "turns"))
    answer, calls = fields.take("answer", *_ANSWER), fields.take("turns", *_CALLED)
    if calls is None or calls == "":
        return {"answer": answer}
    turn = {"role": "assistant", "content": answer if isinstance(answer, str) else None, "tool_calls": calls}
    return {"answer": answer, "turns": fields.chat.messages(fields.names["turns"], [turn])}
