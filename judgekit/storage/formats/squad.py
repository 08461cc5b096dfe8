"""SQuAD 1.1 and 2.0, and the shapes that follow it: Quoref, DROP, and rows as the Hugging Face hub has them.

Dataset files are cases; as outputs, each holds the passage as its one hit and no answer. Outputs may also be the
predictions file of SQuAD's own script, `{"question id": "answer"}`, where an empty answer means "no answer".
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from msgspec.structs import replace

from judgekit.core.errors import InputError, json_path
from judgekit.storage.problems import Location, kind_of
from judgekit.storage.record_formats import Document, Fields, RecordFormat, Source, distinct, document_row
from judgekit.storage.rows import Row

_ALL_PARTS = "all_parts"
"""Marks questions whose answer is all of several spans, not any of them."""
_NO_ANSWER = "no_answer"
"""Marks questions with an empty list of answers, in a file that does not say which are impossible."""


class Squad(RecordFormat):
    """Questions about a passage."""

    ids = ("id", "query_id")

    def claims_document(self, document: Document) -> bool:
        """`data` with `paragraphs`, or DROP's `passage` with `qa_pairs`."""
        data = document.get("data")
        if isinstance(data, list) and data:
            return isinstance(data[0], Mapping) and "paragraphs" in data[0]
        return _is_drop(document)

    def claims_record(self, record: Mapping[str, Any]) -> bool:
        """A row of the hub: context, and answers with their starts."""
        answers = record.get("answers")
        return {"question", "context"} <= record.keys() and (
            isinstance(answers, Mapping) and {"text", "answer_start"} <= answers.keys()
        )

    def from_document(self, document: Document, source: Source) -> Iterable[Row]:
        """The questions of a dataset, or the answers of a predictions file."""
        if isinstance(document.get("data"), list):
            return _questions(document["data"], source)
        if _is_drop(document):
            return _drop_questions(document)
        if source.kind == "outputs" and document and all(isinstance(value, str) for value in document.values()):
            return (Row(0, f"$.{key}", {"id": key, "answer": answer}, place=(key,)) for key, answer in document.items())
        raise InputError(
            f"{source.path}: unsupported shape: expected data with paragraphs (SQuAD, Quoref) or passages with "
            f"qa_pairs (DROP), found an object with keys {', '.join(list(document)[:5])}"
        )

    def case(self, fields: Fields) -> dict[str, Any]:
        """Answers become reference answers; what is impossible should be refused."""
        title = fields.text("gold_supports", "title")
        fields.drop("context")
        impossible = fields.take("answerable", "is_impossible")
        texts = [text for text in _answer_texts(fields) if not isinstance(text, str) or text.strip()]
        case: dict[str, Any] = {"question": fields.take("question", "question"), "reference_answers": texts}
        if fields.rest.pop(_ALL_PARTS, False) and all(isinstance(text, str) for text in texts):
            case["reference_answers"] = [", ".join(texts)] if texts else []
        if impossible is None and not texts and "answers" in fields.record and fields.record["answers"] is not None:
            case[_NO_ANSWER] = True
            return {**case, "metadata": {"title": title}}
        if impossible is True:
            return {**case, "answerable": False, "expected_doc_ids": [], "metadata": {"title": title}}
        if texts or impossible is False:
            case["answerable"] = True
        if title is not None:
            case["metadata"] = {"title": title}
        if title is not None and texts:
            is_computed = "query_id" in fields.record  # DROP: a count or date need not stand in the passage
            case["gold_supports"] = [{"rel_path": title, "snippets": [] if is_computed else texts}]
        return case

    def finished(self, rows: Iterator[Row], source: Source) -> Iterator[Row]:
        """Questions without answers: unanswerable where other questions of the file have some, else not labelled.

        The hub's rows of SQuAD 2.0 have no `is_impossible`; a test split has no answers at all.
        """
        if source.kind == "outputs":
            yield from rows
            return
        waiting: list[Row] = []
        has_answers = False
        for row in rows:
            waiting.append(row)
            has_answers = has_answers or (row.data or {}).get("answerable") is True
            if has_answers:
                yield from (_settled(one, is_labelled=True) for one in waiting)
                waiting = []
        yield from (_settled(one, is_labelled=False) for one in waiting)
        if not has_answers and any(_NO_ANSWER in (row.data or {}) for row in waiting):
            source.notice("labels_missing", "not one question has an answer, so nothing says which are answerable")

    def output(self, fields: Fields) -> dict[str, Any]:
        """A prediction, or the passage as a hit."""
        context, title = fields.text("retrieved", "context"), fields.take("title", "title")
        answer = fields.rest.get("answer")
        fields.rest.clear()
        if context is not None:
            return {"retrieved": [{"doc_id": title, "rel_path": title, "text": context}]}
        if not isinstance(answer, str):
            raise ValueError("holds neither an answer nor a context")
        return {"answer": answer, "abstained": not answer.strip() or None}


def _settled(row: Row, *, is_labelled: bool) -> Row:
    if row.data is None or _NO_ANSWER not in row.data:
        return row
    data = {name: value for name, value in row.data.items() if name != _NO_ANSWER}
    label = {"answerable": False, "expected_doc_ids": []} if is_labelled else {}
    return replace(row, data={**data, **label})


def _answer_texts(fields: Fields) -> list[Any]:
    """Distinct answers: SQuAD's and Quoref's list, the hub's object of lists, or DROP's number, date or spans."""
    answers = fields.take("reference_answers", "answers", "answer")
    if isinstance(answers, list):
        if not all(isinstance(answer, Mapping) and isinstance(answer.get("text"), str) for answer in answers):
            raise ValueError("answers: expected objects with a text")
        return distinct(answer["text"] for answer in answers)
    if isinstance(answers, Mapping) and isinstance(answers.get("text"), list):
        return distinct(answers["text"])
    if isinstance(answers, Mapping) and "spans" in answers:
        spans = answers["spans"]
        if isinstance(spans, list) and spans:
            return distinct(spans)
        date = answers.get("date")
        parts = [str(part) for part in date.values() if part] if isinstance(date, Mapping) else []
        written = str(answers.get("number") or "") or " ".join(parts)
        return [written] if written else []
    if answers is None:
        return []
    raise ValueError(f"answers: expected a list of objects with a text, found {kind_of(answers)}")


def _questions(data: list[Any], source: Source) -> Iterator[Row]:
    n_moved = 0
    for row, passage in _nested(data):
        if row.data is None:
            yield row
            continue
        record = {**row.data, **passage}
        n_moved += _n_moved(record)
        yield replace(row, data=record)
    if n_moved:
        source.notice("answer_offsets", f"{n_moved} answers do not stand at their answer_start in the passage")


def _nested(data: list[Any]) -> Iterator[tuple[Row, dict[str, Any]]]:
    """Each question, and what it shares with the others of its passage."""
    for number, article in enumerate(data):
        place: Location = ("data", number)
        if not isinstance(article, Mapping) or not isinstance(article.get("paragraphs"), list):
            yield _without(place, "paragraphs"), {}
            continue
        for index, paragraph in enumerate(article["paragraphs"]):
            inner = (*place, "paragraphs", index)
            if not isinstance(paragraph, Mapping) or not isinstance(paragraph.get("qas"), list):
                yield _without(inner, "qas"), {}
                continue
            passage = {"title": article.get("title"), "context": paragraph.get("context")}
            if "context_id" in paragraph:  # Quoref
                passage[_ALL_PARTS] = True
            for position, item in enumerate(paragraph["qas"]):
                yield document_row((*inner, "qas", position), item), passage


def _without(place: Location, name: str) -> Row:
    return Row(0, json_path(place), None, f"expected an object, found nothing called {name}", place=place)


def _n_moved(record: Mapping[str, Any]) -> int:
    answers, context = record.get("answers"), record.get("context")
    if not isinstance(answers, list) or not isinstance(context, str):
        return 0
    n_moved = 0
    for answer in answers:
        if isinstance(answer, Mapping) and isinstance(answer.get("answer_start"), int):
            start, text = answer["answer_start"], str(answer.get("text"))
            n_moved += context[start : start + len(text)] != text
    return n_moved


def _is_drop(document: Document) -> bool:
    first = next(iter(document.values()), None)
    return isinstance(first, Mapping) and {"passage", "qa_pairs"} <= first.keys()


def _drop_questions(document: Document) -> Iterator[Row]:
    for passage_id, passage in document.items():
        pairs = passage.get("qa_pairs") if isinstance(passage, Mapping) else None
        if not isinstance(pairs, list):
            yield document_row((passage_id,), None)
            continue
        for number, item in enumerate(pairs):
            row = document_row((passage_id, "qa_pairs", number), item)
            if row.data is not None:
                shared = {"title": passage_id, "context": passage.get("passage"), _ALL_PARTS: True}
                row = replace(row, data={**row.data, **shared})
            yield row
