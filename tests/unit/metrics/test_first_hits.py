"""The first correct hit of one case in two runs."""

from typing import Any

import pytest

from judgekit.core.cases import Case, SystemOutput
from judgekit.core.comparison import FirstHits, LostChunk
from judgekit.metrics.first_hits import HitMatching, first_hits

BY_ID = HitMatching()
BY_PLACE = HitMatching(by_chunk_id=False)


def out(*hits: dict[str, Any] | str, **fields: Any) -> SystemOutput:
    rows = [{"chunk_id": hit} if isinstance(hit, str) else hit for hit in hits]
    return SystemOutput.model_validate({"case_id": "q", "retrieved": rows, **fields})


def case(**fields: Any) -> Case:
    return Case.model_validate({"id": "q", **fields})


def span(start: int, end: int, doc_id: str | None = None) -> dict[str, Any]:
    return {"start": start, "end": end, **({"doc_id": doc_id} if doc_id else {})}


def at(doc_id: str, start: int, end: int, chunk_id: str = "x") -> dict[str, Any]:
    return {"chunk_id": chunk_id, "doc_id": doc_id, "source_spans": [span(start, end)]}


def found(of: Case, a: SystemOutput | None, b: SystemOutput | None, matching: HitMatching = BY_ID) -> FirstHits:
    hits = first_hits(of, a, b, matching)
    assert hits is not None
    return hits


def ids(hits: FirstHits) -> tuple[str, ...]:
    return tuple(chunk.chunk_id for chunk in hits.lost)


def test_chunks_are_found_by_id_at_the_rank_of_their_first_occurrence() -> None:
    hits = found(case(expected_chunk_ids=["k", "m"]), out("x", "k", "m", "k"), out("m", "x"))
    assert (hits.a_rank, hits.b_rank) == (2, 1)


def test_the_rank_that_a_hit_states_goes_before_its_position() -> None:
    a = out({"chunk_id": "x", "rank": 4}, {"chunk_id": "k", "rank": 3})
    assert found(case(expected_chunk_ids=["k"]), a, out()).a_rank == 3


@pytest.mark.parametrize(
    ("a", "b", "k", "lost"),
    [
        (["k", "m"], ["k"], 5, ("m",)),
        (["k", "m"], ["x", "x2", "k", "m"], 2, ("k", "m")),  # both later than the cut-off
        (["x", "k"], ["m"], 1, ()),  # a had it beyond the cut-off
        ([], ["k", "m"], 5, ()),
        (["m", "k"], ["k", "m"], 1, ("m",)),  # a win of k at rank 1 loses m all the same
    ],
)
def test_lost_chunks_are_those_within_the_cut_off_in_a_and_not_in_b(
    a: list[str], b: list[str], k: int, lost: tuple[str, ...]
) -> None:
    assert ids(found(case(expected_chunk_ids=["k", "m"]), out(*a), out(*b), HitMatching(k=k))) == lost


def test_a_failed_output_has_no_hits_and_is_named() -> None:
    hits = found(case(expected_chunk_ids=["k"]), out("k"), out("k", error={"kind": "timeout"}))
    assert (hits.a_rank, hits.b_rank, ids(hits)) == (1, None, ("k",))
    assert hits.notes == ("b failed: timeout",)


@pytest.mark.parametrize(
    ("start", "end", "rank"),
    [
        (0, 49, None),  # 49 of 100 characters
        (0, 50, 1),  # half is enough
        (50, 400, 1),
        (100, 200, None),
    ],
)
def test_half_of_an_expected_chunk_is_enough_where_chunkers_differ(start: int, end: int, rank: int | None) -> None:
    of = case(expected_chunk_ids=["k"], expected_doc_ids=["d"], expected_spans={"k": [span(0, 100, "d")]})
    hits = found(of, out(at("d", start, end)), out(at("e", start, end)), BY_PLACE)
    assert (hits.a_rank, hits.b_rank) == (rank, None)  # the same place in another document is none


def test_finer_chunks_are_found_at_the_rank_where_together_they_cover_half() -> None:
    of = case(expected_chunk_ids=["k"], expected_spans={"k": [span(0, 100, "d")]})
    # 25 of 100 characters, another document, 49, then 51; the second run covers 25 twice and never half
    fine = out(at("d", 0, 25), at("e", 25, 75), at("d", 25, 49), at("d", 98, 100))
    hits = found(of, fine, out(at("d", 0, 25), at("d", 0, 25)), BY_PLACE)
    assert (hits.a_rank, hits.b_rank) == (4, None)


def test_a_lost_chunk_has_its_own_ranks() -> None:
    hits = found(case(expected_chunk_ids=["k", "m"]), out("k", "m"), out("k", "x", "m"), HitMatching(k=2))
    assert (hits.a_rank, hits.b_rank) == (1, 1)
    assert hits.lost == (LostChunk("m", 2, 3),)


def test_overlapping_spans_of_a_hit_count_each_character_once() -> None:
    of = case(expected_chunk_ids=["k"], expected_spans={"k": [span(0, 100, "d")]})
    twice = {"chunk_id": "x", "doc_id": "d", "source_spans": [span(0, 30), span(0, 30)]}
    assert found(of, out(twice), out(), BY_PLACE).a_rank is None


def test_where_a_chunk_stands_is_learnt_from_hits_that_carry_its_id_in_either_run() -> None:
    of = case(expected_chunk_ids=["k"], expected_doc_ids=["d"])
    hits = found(of, out(at("d", 0, 100, "k")), out(at("d", 200, 300), at("d", 10, 90)), BY_PLACE)
    assert (hits.a_rank, hits.b_rank) == (1, 2)
    assert hits.notes == ()


def test_a_chunk_without_a_known_place_is_compared_by_document_and_that_is_said() -> None:
    of = case(expected_chunk_ids=["k"], expected_doc_ids=["d"])
    hits = found(of, out(at("e", 0, 5), at("d", 0, 5)), out({"chunk_id": "x", "doc_id": "d"}), BY_PLACE)
    assert (hits.a_rank, hits.b_rank) == (2, 1)
    assert hits.notes == ("no span known of k: compared by document",)


def test_without_expected_documents_those_of_the_known_spans_are_expected() -> None:
    of = case(expected_chunk_ids=["k"], expected_spans={"k": [span(0, 10, "d")]})
    assert found(of, out(at("d", 0, 10)), out(), BY_PLACE).a_rank == 1


def test_nothing_known_of_an_expected_chunk_is_said() -> None:
    hits = found(case(expected_chunk_ids=["k"]), out(at("d", 0, 10)), out(), BY_PLACE)
    assert (hits.a_rank, hits.b_rank) == (None, None)
    assert "no document known of the expected chunks" in hits.notes


def test_without_expected_chunks_gold_supports_decide_and_then_documents() -> None:
    support = {"rel_path": "a.md", "heading_path": ["Setup"]}
    right = {"chunk_id": "x", "rel_path": "a.md", "heading_path": ["Setup", "Linux"]}
    wrong = {"chunk_id": "y", "rel_path": "a.md", "heading_path": ["Other"], "doc_id": "d"}
    of = case(gold_supports=[support], expected_doc_ids=["d"])
    assert found(of, out(wrong, right), out(right)) == FirstHits(2, 1)
    assert found(case(expected_doc_ids=["d"]), out(right, wrong), out(right)) == FirstHits(2, None)


def test_a_case_without_labels_is_not_applicable() -> None:
    assert first_hits(case(expected_doc_ids=[]), out("k"), out("k"), HitMatching()) is None


def test_a_missing_output_has_no_hits() -> None:
    assert found(case(expected_chunk_ids=["k"]), None, out("k")) == FirstHits(None, 1)
