"""Indexing coverage: what of the corpus can be found at all, from one record for each document."""

from array import array
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from judgekit.analysis.slices import doc_type
from judgekit.core.errors import InputError
from judgekit.core.indexed_documents import IndexedDocument
from judgekit.stats.means import mean, quantile

VERSION_FIELDS = ("chunker_version", "embedding_model", "index_version")


FIGURES_OVER: Mapping[str, str] = {
    "no_chunks_rate": "n_docs_processed",
    "n_docs_processed": "n_docs_processed",
    "n_docs_without_chunks": "n_docs_processed",
    "n_chunks": "n_docs_processed",
    "chunks_skipped_context_rate": "n_chunks_attempted",
    "n_chunks_attempted": "n_chunks_attempted",
    "n_chunks_embedded": "n_chunks_attempted",
    "n_chunks_skipped": "n_chunks_attempted",
    "n_chunks_skipped_context": "n_chunks_attempted",
    **{f"tokens_per_chunk.{name}": "tokens_per_chunk.n" for name in ("min", "max", "mean", "p95")},
}
"""Figures that a gate can name, each with the name of the count that it rests on."""


def coverage_figure(coverage: Mapping[str, Any], name: str) -> Any:
    """A figure of `indexing_coverage` by its name in `FIGURES_OVER`; None for one without a value."""
    value: Any = coverage
    for part in name.split("."):
        value = value[part]
    return value


def indexing_coverage(rows: Iterable[IndexedDocument]) -> dict[str, Any]:
    """The `indexing_coverage` object of metrics.json; figures are not yet rounded.

    `no_chunks_rate` = documents with 0 chunks / documents; `chunks_skipped_context_rate` = chunks skipped for context
    length / chunks attempted, over the documents that say what became of their chunks. Both in [0, 1], lower is
    better. They are counts of the whole corpus and not of a sample, so they have no interval.

    Returns:
        A strict-JSON object, with the same counts for each document type. A rate without a denominator is None; so
        are the counts of chunks attempted, embedded and skipped where no document reports them.

    Raises:
        InputError: rows name two versions of one thing.

    Source: p95 by definition 7 of Hyndman and Fan 1996.
    """
    everything = _Coverage()
    by_type: dict[str, _Coverage] = {}
    versions: dict[str, tuple[str, str]] = {}
    for row in rows:
        _one_version(row, versions)
        everything.add(row)
        kind = "(none)" if row.rel_path is None else doc_type(row.rel_path)
        by_type.setdefault(kind, _Coverage()).add(row)
    return {
        **everything.figures(),
        **{name: versions[name][0] if name in versions else None for name in VERSION_FIELDS},
        "by_doc_type": {kind: coverage.figures() for kind, coverage in sorted(by_type.items())},
    }


def other_index(coverage: Mapping[str, Any] | None, versions: Mapping[str, str]) -> list[str]:
    """What speaks against the coverage being of the index that the run's outputs came from: one line a version."""
    if coverage is None:
        return []
    return [
        f"indexing coverage is of {name} {coverage[name]!r}, but the outputs are of {versions[name]!r}"
        for name in VERSION_FIELDS
        if coverage[name] is not None and versions.get(name, coverage[name]) != coverage[name]
    ]


def _one_version(row: IndexedDocument, versions: dict[str, tuple[str, str]]) -> None:
    for name in VERSION_FIELDS:
        value = getattr(row, name)
        if value is None:
            continue
        known, doc_id = versions.setdefault(name, (value, row.doc_id))
        if known != value:
            raise InputError(
                f"documents name two versions of {name}: {known!r} ({doc_id!r}) and {value!r} ({row.doc_id!r}); "
                "an index is of one version"
            )


class _Coverage:
    """Counts over a set of documents."""

    def __init__(self) -> None:
        self.n_docs = self.n_without_chunks = self.n_chunks = 0
        self.n_reporting = self.n_attempted = self.n_embedded = self.n_context = 0
        self.skipped: Counter[str] = Counter()
        self.tokens = array("d")

    def add(self, row: IndexedDocument) -> None:
        """Count one document."""
        self.n_docs += 1
        self.n_without_chunks += row.n_chunks == 0
        self.n_chunks += row.n_chunks
        self.tokens.extend(row.chunk_tokens or ())
        counts = row.embedding_counts
        if counts is not None:
            self.n_reporting += 1
            self.n_attempted += counts[0]
            self.n_embedded += counts[1]
            self.n_context += row.n_skipped_context
            self.skipped.update(row.skipped or {})

    def figures(self) -> dict[str, Any]:
        """Counts and rates by name."""
        reported = self.n_reporting > 0
        tokens = self.tokens
        return {
            "n_docs_processed": self.n_docs,
            "n_docs_without_chunks": self.n_without_chunks,
            "no_chunks_rate": self.n_without_chunks / self.n_docs if self.n_docs else None,
            "n_chunks": self.n_chunks,
            "n_docs_with_embedding_counts": self.n_reporting,
            "n_chunks_attempted": self.n_attempted if reported else None,
            "n_chunks_embedded": self.n_embedded if reported else None,
            "n_chunks_skipped": self.skipped.total() if reported else None,
            "skipped_by_reason": {reason: n for reason, n in sorted(self.skipped.items()) if n},
            "n_chunks_skipped_context": self.n_context if reported else None,
            "chunks_skipped_context_rate": self.n_context / self.n_attempted if self.n_attempted else None,
            "tokens_per_chunk": {
                "min": int(min(tokens)) if tokens else None,
                "max": int(max(tokens)) if tokens else None,
                "mean": mean(tokens),
                "p95": quantile(tokens, 0.95),
                "n": len(tokens),
            },
        }
