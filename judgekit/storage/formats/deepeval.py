"""DeepEval: goldens and test cases in JSON or CSV, and test runs with `testCases`; names in snake or camel case.

Each record holds a case, and an output once the system has answered. List cells of a CSV file are split at `|`, as
DeepEval writes them, if the config says `"format": "deepeval"` or sets `list_separator`; not on a guess.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from judgekit.core.errors import InputError
from judgekit.storage.record_formats import Document, Fields, RecordFormat, Source, UnfitError, document_row, hits_of
from judgekit.storage.rows import Row

_ANSWER = ("actual_output", "actualOutput")
_REFERENCE = ("expected_output", "expectedOutput")
_CONTEXT = ("retrieval_context", "retrievalContext")
_SECONDS = ("completion_time", "completionTime")
_METADATA = ("additional_metadata", "additionalMetadata")
_SCORES = ("metrics_data", "metricsData")
_LISTS = ("testCases", "test_cases", "goldens")
_CONVERSATIONS = ("conversationalTestCases", "conversational_test_cases", "conversational_goldens")


class Deepeval(RecordFormat):
    """Cases with their outputs."""

    def claims_record(self, record: Mapping[str, Any]) -> bool:
        """`input` with an actual or expected output, or a conversation. Langfuse has `output` beside it."""
        if "input" in record and "output" not in record and not isinstance(record["input"], Mapping):
            return bool({*_ANSWER, *_REFERENCE} & record.keys())
        return {"scenario", "turns"} <= record.keys()

    def claims_document(self, document: Document) -> bool:
        """A test run, or a dataset with goldens."""
        return any(isinstance(document.get(name), list) for name in _LISTS)

    def from_document(self, document: Document, source: Source) -> Iterable[Row]:
        """The test cases of a run."""
        name = next((name for name in _LISTS if document.get(name)), None)
        n_conversations = sum(len(found) for key in _CONVERSATIONS if isinstance(found := document.get(key), list))
        if name is None or not isinstance(document[name], list):
            if n_conversations:
                raise InputError(f"{source.path}: holds conversations only; single questions are read")
            return super().from_document(document, source)
        if n_conversations:
            source.notice("conversations_left_out", f"{n_conversations} conversations are left out")
        return (document_row((name, number), item) for number, item in enumerate(document[name]))

    def separator(self, source: Source) -> str | None:
        """`|` where the format is named."""
        return source.file.list_separator or ("|" if source.file.format == "deepeval" else None)

    def case(self, fields: Fields) -> dict[str, Any]:
        """Input and expected output; `context`, the ideal passages, goes to metadata."""
        question = _question(fields)
        fields.drop(*_ANSWER, *_CONTEXT, *_SECONDS, *_SCORES, "trace", "success")
        references = fields.text("reference_answers", *_REFERENCE)
        case: dict[str, Any] = {
            "question": question,
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
        _question(fields)
        fields.drop(*_REFERENCE, *_METADATA, "context", "trace", "tags", "comments", "source_file", "sourceFile")
        texts = fields.texts("retrieved", *_CONTEXT)
        seconds = fields.take("latency_seconds", *_SECONDS)
        return {
            "answer": fields.take("answer", *_ANSWER),
            "retrieved": None if texts is None else hits_of(texts),
            "latency_seconds": {"total": seconds} if isinstance(seconds, int | float) else None,
        }


def _question(fields: Fields) -> Any:
    if "turns" in fields.record and "input" not in fields.record:
        raise UnfitError("a conversation (turns); only single questions are read")
    return fields.take("question", "input")
