"""What retrievers call the parts of a hit, to say how a foreign hit is mapped."""

import difflib
from collections.abc import Iterator, Mapping
from typing import Any

from judgekit.core.cases import Hit
from judgekit.storage.dotted import part_of

_INSIDE = ("", "node.", "document.", "payload.", "entity.", "fields.", "_source.")
_ABOUT = ("", "metadata.", "meta.")
_TEXTS = ("text", "page_content", "content", "contents", "passage", "chunk", "chunk_text", "snippet", "body")
_PATHS = ("rel_path", "source", "file_path", "path", "file_name", "filename", "doc_uri", "uri", "url", "name", "title")
_DOCUMENTS = ("doc_id", "document_id", "docid", "source_id", "ref_doc_id")
_CHUNKS = ("chunk_id", "passage_id", "node_id", "id", "id_", "_id")
_SCORES = ("score", "_score", "similarity", "relevance_score")


def hit_fields(hit: Mapping[str, Any], items: str = "retrieved[]") -> dict[str, str]:
    """The `fields` that would read a hit of a well-known shape, such as those of LangChain, LlamaIndex and Haystack.

    Args:
        hit: one of them, as it stands in the file.
        items: what a mapping calls the list, with its brackets.
    """
    texts = [inside + name for inside in _INSIDE for name in _TEXTS]
    wanted = {
        "text": (texts, str),
        "rel_path": (list(_names(_PATHS)), str),
        "doc_id": (list(_names(_DOCUMENTS)), str | int),
        "chunk_id": (list(_names(_CHUNKS)), str | int),
        "score": ([inside + name for inside in _INSIDE for name in _SCORES], int | float),
    }
    found: dict[str, str] = {}
    for part, (names, kind) in wanted.items():
        name = next((name for name in names if isinstance(part_of(hit, name), kind)), None)
        if name is not None and f"{items}.{name}" not in found.values():
            found[f"retrieved[].{part}"] = f"{items}.{name}"
    return found


def advice(hit: object, items: str) -> str:
    """What is said of a hit with keys that are not ours; "" where it is a slip.

    Args:
        hit: as it stands in the file.
        items: what a mapping calls the list, with its brackets.
    """
    if not isinstance(hit, Mapping):
        return ""
    fields = {ours: theirs for ours, theirs in hit_fields(hit, items).items() if ours != theirs}
    unknown = [str(key) for key in hit if key not in Hit.model_fields]
    if not fields and unknown and not difflib.get_close_matches(unknown[0], Hit.model_fields, n=1):
        fields = {"retrieved[].text": f"{items}.{unknown[0]}"}
    if not fields or not unknown:
        return ""
    pairs = ", ".join(f'"{ours}": "{theirs}"' for ours, theirs in fields.items())
    return (
        f"unknown key{'s' * (len(unknown) > 1)} {', '.join(unknown[:8])}; to read such hits, set "
        f'"fields": {{{pairs}}}; what is left goes into the metadata of the hit'
    )


def _names(names: tuple[str, ...]) -> Iterator[str]:
    return (inside + about + name for inside in _INSIDE for about in _ABOUT for name in names)
