"""Results of promptfoo: JSON with `results.results`, or JSONL with one result a line.

A result is a case, from its variables and assertions, and an output. A file with several providers or prompts holds
several systems; `"part"` names the one that is read, by the provider's label or id, or the prompt's label.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from judgekit.storage.containers import container_rows
from judgekit.storage.problems import one_part
from judgekit.storage.record_formats import Document, Fields, RecordFormat, Source, document_row, hits_of
from judgekit.storage.rows import Row

_QUESTIONS = ("question", "query", "input")
_CONTEXTS = ("context", "contexts")
_REFERENCES = {"equals", "similar", "factuality", "model-graded-factuality"}
_CONTAINED = {"contains", "contains-all"}
_FORBIDDEN = {"not-contains"}
_ERROR = 2
"""`failureReason` of a result whose provider failed."""


class Promptfoo(RecordFormat):
    """Cases with their outputs."""

    ids = ("testIdx",)

    def claims_document(self, document: Document) -> bool:
        """A summary with its results."""
        results = document.get("results")
        return isinstance(results, Mapping) and isinstance(results.get("results"), list)

    def claims_record(self, record: Mapping[str, Any]) -> bool:
        """A result of the JSONL export."""
        return {"vars", "provider", "success"} <= record.keys() and bool({"response", "gradingResult"} & record.keys())

    def from_document(self, document: Document, source: Source) -> Iterable[Row]:
        """The results of one system."""
        if not self.claims_document(document):
            return super().from_document(document, source)
        results = document["results"]["results"]
        return _one_system(
            [document_row(("results", "results", number), item) for number, item in enumerate(results)], source
        )

    def records(self, source: Source) -> Iterable[Row]:
        """Results of a document or of lines."""
        if source.document is None and source.path.suffix.lower() in (".jsonl", ".ndjson"):
            return _one_system(list(container_rows(source.file, source.path)), source)
        return super().records(source)

    def case(self, fields: Fields) -> dict[str, Any]:
        """Variables and assertions; what cannot be told from a rendered template is left out."""
        variables = _object(fields.record.get("vars"))
        test = _object(fields.record.get("testCase"))
        found = _asserted(test.get("assert"))
        fields.rest.clear()
        name = None if "question" in fields.mapped else _question_name(variables)
        if name is not None:
            fields.names["question"] = f"vars.{name}"
        case: dict[str, Any] = {"question": variables[name] if name is not None else None, **found}
        rest = {key: value for key, value in variables.items() if key != name and key not in _CONTEXTS}
        metadata = {**_object(test.get("metadata")), **({"vars": rest} if rest else {})}
        if test.get("description"):
            metadata["description"] = test["description"]
        return {**case, "metadata": metadata or None}

    def output(self, fields: Fields) -> dict[str, Any]:
        """The response, the context variable as hits, and promptfoo's own verdict in metadata."""
        record = fields.record
        response = _object(record.get("response"))
        said = response.get("output")
        fields.names["answer"] = "response.output"
        contexts = next((value for name in _CONTEXTS if (value := _object(record.get("vars")).get(name))), None)
        contexts = [contexts] if isinstance(contexts, str) else contexts
        latency = record.get("latencyMs")
        graded = _object(record.get("gradingResult"))
        metadata: dict[str, Any] = {key: graded[key] for key in ("pass", "score", "reason") if key in graded}
        metadata = {"gradingResult": metadata} if metadata else {}
        if record.get("namedScores"):
            metadata["namedScores"] = record["namedScores"]
        fields.rest.clear()
        return {
            "answer": said if said is None or isinstance(said, str) else json.dumps(said, ensure_ascii=False),
            "retrieved": hits_of(contexts) if isinstance(contexts, list) else None,
            "error": _error(record, response),
            "latency_seconds": {"total": latency / 1000} if isinstance(latency, int | float) else None,
            "usage": _usage(response.get("tokenUsage") or record.get("tokenUsage")),
            "metadata": metadata or None,
        }


def _object(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _one_system(rows: list[Row], source: Source) -> Iterator[Row]:
    """The results of the system that is read; every test once where cases are wanted and none is named."""
    systems = {name: None for row in rows if row.data is not None for name in [_system(row.data)]}
    if source.kind == "cases" and source.file.part is None:
        chosen = next(iter(systems), "")
    elif source.file.part is not None and source.file.part not in systems:
        chosen = next((name for name in systems if source.file.part in name.split(" | ")), "")
        if not chosen or sum(source.file.part in name.split(" | ") for name in systems) > 1:
            chosen = one_part(source.file.part, source.path, list(systems), "system")
    else:
        chosen = one_part(source.file.part, source.path, list(systems), "system")
    for row in rows:
        if row.data is None or _system(row.data) == chosen:
            yield row


def _system(record: Mapping[str, Any]) -> str:
    """`provider | prompt`, as a result names them."""
    provider = record.get("provider")
    if isinstance(provider, Mapping):
        provider = provider.get("label") or provider.get("id")
    prompt = _object(record.get("prompt"))
    label = prompt.get("label") or prompt.get("raw") or ""
    number = record.get("promptIdx")
    shown = label if len(str(label)) <= 60 and "\n" not in str(label) else f"prompt {number}"
    return f"{provider} | {shown}" if shown else str(provider)


def _question_name(variables: Mapping[str, Any]) -> str | None:
    """The variable that holds the question: one called so, or the only one.

    Raises:
        ValueError: several variables, and none is called so.
    """
    for name in _QUESTIONS:
        if isinstance(variables.get(name), str):
            return name
    names = [name for name in variables if name not in _CONTEXTS]
    if len(names) > 1:
        raise ValueError(
            f"vars: which of {', '.join(names[:8])} is the question? Say so: "
            f'"fields": {{"question": "vars.{names[0]}"}}'
        )
    return names[0] if names else None


def _asserted(assertions: Any) -> dict[str, list[str]]:
    """References, and texts that must or must not be there, from assertions with plain values."""
    found: dict[str, list[str]] = {}
    for item in assertions if isinstance(assertions, list) else ():
        kind, value = _object(item).get("type"), _object(item).get("value")
        for field, kinds in (
            ("reference_answers", _REFERENCES),
            ("must_contain", _CONTAINED),
            ("forbidden", _FORBIDDEN),
        ):
            if isinstance(kind, str) and kind in kinds:
                values = value if isinstance(value, list) else [value]
                plain = [text for text in values if isinstance(text, str) and text and "{{" not in text]
                found.setdefault(field, []).extend(plain)
    return found


def _error(record: Mapping[str, Any], response: Mapping[str, Any]) -> dict[str, Any] | None:
    """Why the provider gave no answer; a failed assertion is not an error."""
    if response.get("error"):
        return {"kind": "provider_error", "message": str(response["error"])}
    if record.get("failureReason") == _ERROR or (record.get("error") and "output" not in response):
        return {"kind": "provider_error", "message": str(record.get("error") or "")}
    return None


def _usage(usage: Any) -> dict[str, Any] | None:
    found = _object(usage)
    pairs = {"prompt_tokens": found.get("prompt"), "completion_tokens": found.get("completion")}
    return {name: value for name, value in pairs.items() if isinstance(value, int)} or None
