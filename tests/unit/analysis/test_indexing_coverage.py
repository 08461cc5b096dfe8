"""Indexing coverage: records, counts and rates."""

from typing import Any

import pytest
from pydantic import ValidationError

from judgekit.analysis.indexing_coverage import indexing_coverage, other_index
from judgekit.core.errors import InputError
from judgekit.core.indexed_documents import IndexedDocument


def document(doc_id: str = "d", n_chunks: int = 0, **fields: Any) -> IndexedDocument:
    return IndexedDocument.model_validate({"doc_id": doc_id, "n_chunks": n_chunks, **fields})


@pytest.mark.parametrize(
    ("fields", "counts"),
    [
        ({}, None),
        ({"skipped": {}}, (5, 5)),
        ({"skipped": {"context_length": 2}}, (5, 3)),
        ({"n_embedded": 4}, (4, 4)),
        ({"n_embedded": 4, "skipped": {"empty": 2}}, (6, 4)),
        ({"n_attempted": 6, "skipped": {"empty": 2}}, (6, 4)),
        ({"n_attempted": 6, "n_embedded": 6}, (6, 6)),
    ],
)
def test_what_is_left_out_follows_from_the_rest(fields: dict[str, Any], counts: tuple[int, int] | None) -> None:
    assert document(n_chunks=5, **fields).embedding_counts == counts


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"n_attempted": 6}, "n_attempted says nothing by itself"),
        ({"n_attempted": 6, "n_embedded": 4}, "4 embedded and 0 skipped do not fit 6 attempted"),
        ({"n_attempted": 1, "skipped": {"empty": 2}}, "2 skipped do not fit 1 attempted"),
        ({"skipped": {"empty": 6}}, "6 skipped do not fit 5 attempted"),
        ({"skipped": {"empty": -1}}, "greater than or equal to 0"),
    ],
)
def test_counts_that_contradict_each_other_are_refused(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        document(n_chunks=5, **fields)


def test_counts_and_rates_by_hand() -> None:
    rows = [
        document(
            "1", 4, rel_path="a/x.md", skipped={"context_length": 1}, chunk_tokens=[10, 20, 30, 40], index_version="i1"
        ),
        document("2", 0, rel_path="a/scan.PDF", skipped={}, chunk_tokens=[]),
        document("3", 6, rel_path="b.md", n_attempted=6, n_embedded=3, skipped={"Context window": 2, "empty": 1}),
        document("4", 3, index_version="i1"),
    ]
    found = indexing_coverage(rows)
    by_type = found.pop("by_doc_type")
    assert found == {
        "n_docs_processed": 4,
        "n_docs_without_chunks": 1,
        "no_chunks_rate": 0.25,
        "n_chunks": 13,
        "n_docs_with_embedding_counts": 3,
        "n_chunks_attempted": 10,  # 4 + 0 + 6; the fourth says nothing
        "n_chunks_embedded": 6,
        "n_chunks_skipped": 4,
        "skipped_by_reason": {"Context window": 2, "context_length": 1, "empty": 1},
        "n_chunks_skipped_context": 3,
        "chunks_skipped_context_rate": 0.3,
        # p95 of 10, 20, 30, 40: position 0.95 * 3 = 2.85, so 30 + 0.85 * 10.
        "tokens_per_chunk": {"min": 10, "max": 40, "mean": 25.0, "p95": 38.5, "n": 4},
        "chunker_version": None,
        "embedding_model": None,
        "index_version": "i1",
    }
    assert {kind: (part["n_docs_processed"], part["no_chunks_rate"]) for kind, part in by_type.items()} == {
        "(none)": (1, 0.0),
        "md": (2, 0.0),
        "pdf": (1, 1.0),
    }
    assert by_type["(none)"]["n_chunks_attempted"] is None
    assert by_type["(none)"]["chunks_skipped_context_rate"] is None
    assert indexing_coverage(reversed(rows)) == {**found, "by_doc_type": by_type}


def test_no_documents_give_nulls() -> None:
    found = indexing_coverage([])
    assert (found["n_docs_processed"], found["no_chunks_rate"], found["chunks_skipped_context_rate"]) == (0, None, None)
    assert found["tokens_per_chunk"] == {"min": None, "max": None, "mean": None, "p95": None, "n": 0}


def test_two_versions_of_one_thing_are_named() -> None:
    rows = [document("1", 1, chunker_version="c1"), document("2", 1), document("3", 1, chunker_version="c2")]
    with pytest.raises(InputError, match=r"chunker_version: 'c1' \('1'\) and 'c2' \('3'\)"):
        indexing_coverage(rows)


def test_coverage_of_another_index_is_noticed() -> None:
    coverage = indexing_coverage([document("1", 1, chunker_version="c1", index_version="i1")])
    assert other_index(coverage, {"chunker_version": "c1"}) == []
    assert other_index(coverage, {"chunker_version": "c2", "index_version": "i1"}) == [
        "indexing coverage is of chunker_version 'c1', but the outputs are of 'c2'"
    ]
    assert other_index(None, {"chunker_version": "c2"}) == []
