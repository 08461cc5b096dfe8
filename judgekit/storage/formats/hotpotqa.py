"""HotpotQA and what is built like it: 2WikiMultihopQA, MuSiQue, and rows as the Hugging Face hub has them.

A row holds its paragraphs, those that support the answer marked. As a case, each supporting title is a gold support
with its sentences as snippets, and all of them are needed. As an output, all paragraphs are hits and there is no
answer. Outputs may also be the predictions file of HotpotQA's own script, `{"answer": {...}, "sp": {...}}`.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from judgekit.core.errors import InputError
from judgekit.storage.problems import kind_of
from judgekit.storage.record_formats import Document, Fields, RecordFormat, Source, UnfitError, distinct
from judgekit.storage.rows import Row


class _Paragraph(NamedTuple):
    title: str
    sentences: list[str]
    is_supporting: bool = False


class Hotpotqa(RecordFormat):
    """Questions that need several paragraphs."""

    ids = ("_id", "id")

    def claims_record(self, record: Mapping[str, Any]) -> bool:
        """Context and supporting facts, or paragraphs of which some are supporting."""
        paragraphs = record.get("paragraphs")
        first = paragraphs[0] if isinstance(paragraphs, list) and paragraphs else None
        is_marked = isinstance(first, Mapping) and "is_supporting" in first
        return "question" in record and (is_marked or {"context", "supporting_facts"} <= record.keys())

    def claims_document(self, document: Document) -> bool:
        """A predictions file."""
        return document.keys() == {"answer", "sp"} and all(isinstance(value, Mapping) for value in document.values())

    def from_document(self, document: Document, source: Source) -> Iterable[Row]:
        """The predictions of a system."""
        if not self.claims_document(document):
            return super().from_document(document, source)
        if source.kind == "cases":
            raise InputError(f"{source.path}: holds predictions, no questions; it can be the file of outputs")
        return _predictions(document)

    def case(self, fields: Fields) -> dict[str, Any]:
        """The question, its answers and what supports them."""
        paragraphs = _paragraphs(fields)
        facts = _facts(fields)
        answers = fields.texts("reference_answers", "answer") or []
        answers = distinct([*answers, *(fields.texts("answer_aliases", "answer_aliases") or [])])
        case: dict[str, Any] = {
            "question": fields.take("question", "question"),
            "reference_answers": answers,
            "category": fields.take("category", "type"),
            "difficulty": fields.take("difficulty", "level"),
        }
        supports = _supports(paragraphs, facts)
        if supports:
            case["gold_supports"] = supports
            case["required_support_groups"] = [list(range(len(supports)))]
            case["expected_doc_ids"] = distinct(support["rel_path"] for support in supports)
        return case

    def output(self, fields: Fields) -> dict[str, Any]:
        """A prediction, or the paragraphs as hits."""
        prediction = fields.rest.pop("prediction", None)
        if prediction is not None:
            return {"answer": prediction, "references": fields.rest.pop("references", None)}
        paragraphs = _paragraphs(fields)
        fields.rest.clear()
        if not paragraphs:
            raise UnfitError("holds no paragraphs; outputs need them, or the predictions of a system")
        return {
            "retrieved": [
                {"doc_id": found.title, "rel_path": found.title, "text": "".join(found.sentences)}
                for found in paragraphs
            ]
        }


def _paragraphs(fields: Fields) -> list[_Paragraph]:
    context, paragraphs = fields.take("gold_supports", "context"), fields.take("gold_supports", "paragraphs")
    if isinstance(paragraphs, list):
        return [_marked(item) for item in paragraphs]
    if isinstance(context, Mapping):  # the hub's object of lists
        context = _zipped(context, "context", "sentences")
    if context is None:
        return []
    if not isinstance(context, list):
        raise ValueError(f"context: expected a list of [title, sentences], found {kind_of(context)}")
    return [_pair(item) for item in context]


def _zipped(lists: Mapping[str, Any], field: str, second: str) -> list[list[Any]]:
    titles, others = lists.get("title"), lists.get(second)
    if not isinstance(titles, list) or not isinstance(others, list) or len(titles) != len(others):
        raise ValueError(f"{field}: expected title and {second}, two lists of one length")
    return [list(pair) for pair in zip(titles, others, strict=True)]


def _pair(item: Any) -> _Paragraph:
    if not isinstance(item, list) or len(item) != 2 or not isinstance(item[0], str) or not isinstance(item[1], list):
        raise ValueError("context: expected a list of [title, sentences]")
    return _Paragraph(item[0], [str(sentence) for sentence in item[1]])


def _marked(item: Any) -> _Paragraph:
    if not isinstance(item, Mapping) or not isinstance(item.get("title"), str):
        raise ValueError("paragraphs: expected objects with a title")
    text = item.get("paragraph_text", item.get("text"))
    return _Paragraph(item["title"], [text] if isinstance(text, str) else [], item.get("is_supporting") is True)


def _facts(fields: Fields) -> list[tuple[str, int]] | None:
    facts = fields.take("gold_supports", "supporting_facts")
    if isinstance(facts, Mapping):
        facts = _zipped(facts, "supporting_facts", "sent_id")
    if facts is None:
        return None
    if not isinstance(facts, list) or not all(
        isinstance(fact, list) and len(fact) == 2 and isinstance(fact[0], str) and isinstance(fact[1], int)
        for fact in facts
    ):
        raise ValueError("supporting_facts: expected a list of [title, number of the sentence]")
    return [(title, number) for title, number in facts]


def _supports(paragraphs: list[_Paragraph], facts: list[tuple[str, int]] | None) -> list[dict[str, Any]]:
    """One support for each title of a fact, or for each marked paragraph; a sentence that is not there is left out."""
    if facts is None:
        return [
            {"rel_path": found.title, "snippets": [text.strip() for text in found.sentences if text.strip()]}
            for found in paragraphs
            if found.is_supporting
        ]
    sentences = {found.title: found.sentences for found in paragraphs}
    snippets: dict[str, list[str]] = {}
    for title, number in facts:
        known = sentences.get(title, [])
        text = known[number].strip() if 0 <= number < len(known) else ""
        snippets.setdefault(title, []).extend([text] if text else [])
    return [{"rel_path": title, "snippets": texts} for title, texts in snippets.items()]


def _predictions(document: Document) -> Iterator[Row]:
    answers, facts = document["answer"], document["sp"]
    for key, answer in answers.items():
        found = facts.get(key)
        record: dict[str, Any] = {"id": key, "prediction": answer}
        if isinstance(found, list):
            titles = distinct(fact[0] for fact in found if isinstance(fact, list) and fact)
            record["references"] = [{"rel_path": title} for title in titles]
        yield Row(0, f"$.answer.{key}", record, place=("answer", key))
