"""Rows of Ragas: `user_input`, `response`, `retrieved_contexts`, `reference`, or the older names of these.

A row holds a case and its output. Scores that Ragas has written beside them go into metadata; NaN among them is null.
"""

from collections.abc import Mapping
from typing import Any

from judgekit.storage.record_formats import Fields, RecordFormat, UnfitError, distinct, hits_of

_ANSWERS = {"response", "retrieved_contexts", "reference", "reference_contexts"}
_QUESTION = ("user_input", "question")
_ANSWER = ("response", "answer")
_CONTEXTS = ("retrieved_contexts", "contexts")
_CONTEXT_IDS = "retrieved_context_ids"
_REFERENCES = ("reference", "ground_truth", "ground_truths")
_EXPECTED_IDS = "reference_context_ids"


class Ragas(RecordFormat):
    """Cases with their outputs."""

    def claims_record(self, record: Mapping[str, Any]) -> bool:
        """`user_input` with an answer or a reference, or the three older names together."""
        if "user_input" in record:
            return bool(_ANSWERS & record.keys())
        return {"question", "contexts"} <= record.keys() and bool({"ground_truth", "ground_truths"} & record.keys())

    def case(self, fields: Fields) -> dict[str, Any]:
        """Question and references."""
        question = _question(fields)
        fields.drop(*_ANSWER, *_CONTEXTS, _CONTEXT_IDS)
        references = [text for name in _REFERENCES for text in fields.texts("reference_answers", name) or []]
        return {
            "question": question,
            "reference_answers": distinct(references),
            "expected_chunk_ids": fields.texts("expected_chunk_ids", _EXPECTED_IDS),
        }

    def output(self, fields: Fields) -> dict[str, Any]:
        """Answer and contexts."""
        _question(fields)
        fields.drop(*_REFERENCES, _EXPECTED_IDS, "reference_contexts")
        texts = fields.texts("retrieved", *_CONTEXTS)
        ids = fields.texts("retrieved_ids", _CONTEXT_IDS)
        return {"answer": fields.take("answer", *_ANSWER), "retrieved": _hits(texts, ids)}


def _question(fields: Fields) -> Any:
    question = fields.take("question", *_QUESTION)
    if isinstance(question, list):
        raise UnfitError("user_input: a conversation; only single questions are read")
    return question


def _hits(texts: list[Any] | None, ids: list[Any] | None) -> list[Any] | None:
    if ids is None:
        return None if texts is None else hits_of(texts)
    if texts is None:
        return [{"chunk_id": chunk_id} for chunk_id in ids]
    if len(ids) != len(texts):
        raise ValueError(f"{len(texts)} retrieved_contexts, but {len(ids)} {_CONTEXT_IDS}")
    return [{"chunk_id": chunk_id, **hit} for chunk_id, hit in zip(ids, hits_of(texts), strict=True)]
