"""Rows of Ragas: `user_input`, `response`, `retrieved_contexts`, `reference`, or the older names of these.

A row holds a case and its output, or a conversation in place of a question. Scores that Ragas has written beside them
go into metadata; NaN among them is null.
"""

import re
from collections.abc import Mapping
from typing import Any

from judgekit.storage.chat_messages import given, made
from judgekit.storage.record_formats import Fields, RecordFormat, distinct, hits_of

_ANSWERS = {
    *("response", "retrieved_contexts", "reference", "reference_contexts"),
    *("reference_tool_calls", "reference_topics", "rubrics"),
}
_QUESTION = ("user_input", "question")
_ANSWER = ("response", "answer")
_CONTEXTS = ("retrieved_contexts", "contexts")
_CONTEXT_IDS = "retrieved_context_ids"
_REFERENCES = ("reference", "ground_truth", "ground_truths")
_EXPECTED_IDS = "reference_context_ids"
_EXPECTED_CALLS = "reference_tool_calls"
_LIST = re.compile(r"\s*\[\s*\{")


class Ragas(RecordFormat):
    """Cases with their outputs."""

    def claims_record(self, record: Mapping[str, Any]) -> bool:
        """`user_input` with an answer or a reference, or the three older names together."""
        if "user_input" in record:
            return bool(_ANSWERS & record.keys())
        return {"question", "contexts"} <= record.keys() and bool({"ground_truth", "ground_truths"} & record.keys())

    def case(self, fields: Fields) -> dict[str, Any]:
        """Question and references."""
        fields.drop(*_ANSWER, *_CONTEXTS, _CONTEXT_IDS)
        references = [text for name in _REFERENCES for text in fields.texts("reference_answers", name) or []]
        return {
            **_asked(fields),
            "expected_tool_calls": fields.calls("expected_tool_calls", _EXPECTED_CALLS),
            "reference_answers": distinct(references),
            "expected_chunk_ids": fields.texts("expected_chunk_ids", _EXPECTED_IDS),
        }

    def output(self, fields: Fields) -> dict[str, Any]:
        """Answer and contexts."""
        fields.drop(*_REFERENCES, _EXPECTED_IDS, "reference_contexts", _EXPECTED_CALLS)
        texts = fields.texts("retrieved", *_CONTEXTS)
        ids = fields.texts("retrieved_ids", _CONTEXT_IDS)
        return {**_answered(fields), "retrieved": _hits(texts, ids)}


def _asked(fields: Fields) -> dict[str, Any]:
    """The question, or what of a conversation is the case's."""
    if not _is_conversation(fields):
        return {"question": fields.take("question", *_QUESTION)}
    return given(fields.messages("messages", *_QUESTION) or [])


def _answered(fields: Fields) -> dict[str, Any]:
    """The answer, or what of a conversation is the output's."""
    if not _is_conversation(fields):
        fields.drop(*_QUESTION)
        return {"answer": fields.take("answer", *_ANSWER)}
    return made(fields.messages("turns", *_QUESTION) or [])


def _is_conversation(fields: Fields) -> bool:
    """Whether `user_input` is a list; in a table it is one if it looks like a list of objects."""
    value = fields.rest.get("user_input")
    return isinstance(value, list) or (fields.from_csv and _LIST.match(str(value)) is not None)


def _hits(texts: list[Any] | None, ids: list[Any] | None) -> list[Any] | None:
    if ids is None:
        return None if texts is None else hits_of(texts)
    if texts is None:
        return [{"chunk_id": chunk_id} for chunk_id in ids]
    if len(ids) != len(texts):
        raise ValueError(f"{len(texts)} retrieved_contexts, but {len(ids)} {_CONTEXT_IDS}")
    return [{"chunk_id": chunk_id, **hit} for chunk_id, hit in zip(ids, hits_of(texts), strict=True)]
