"""Shapes of answers that services of a kind give, so that a config need not map them field by field."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal


@dataclass(frozen=True, slots=True)
class Preset:
    """What to send, and where the parts of an output stand in what comes back."""

    body: Any
    fields: Mapping[str, str]
    """Our field name -> path in the answer."""
    latency_unit: Literal["s", "ms"] = "s"


PRESETS: Mapping[str, Preset] = {
    "rag_debug": Preset(
        body={"question": "{{question}}", "debug": True},
        fields={
            "answer": "answer",
            "abstained": "abstained",
            "citations": "citations",
            "retrieved[].chunk_id": "debug.chunks[].id",
            "retrieved[].doc_id": "debug.chunks[].doc_id",
            "retrieved[].rel_path": "debug.chunks[].path",
            "retrieved[].heading_path": "debug.chunks[].headings",
            "retrieved[].text": "debug.chunks[].text",
            "retrieved[].score": "debug.chunks[].score",
            "scope.mode": "debug.folders.mode",
            "scope.selected_folders": "debug.folders.selected",
            "latency_seconds.folder_selection": "debug.latency_ms.folder_selection",
            "latency_seconds.retrieval": "debug.latency_ms.retrieval",
            "latency_seconds.generation": "debug.latency_ms.generation",
            "latency_seconds.total": "debug.latency_ms.total",
            "usage.prompt_tokens": "debug.usage.prompt_tokens",
            "usage.completion_tokens": "debug.usage.completion_tokens",
            "versions.index_version": "debug.versions.index",
            "versions.chunker_version": "debug.versions.chunker",
            "versions.embedding_model": "debug.versions.embedding_model",
            "versions.prompt_version": "debug.versions.prompt",
        },
        latency_unit="ms",
    )
}
"""`rag_debug`: an answer with `debug`: chunks with scores, the folders that were selected, and latency by stage."""
