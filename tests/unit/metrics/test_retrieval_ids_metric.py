"""Retrieval by chunk and document ids."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judgekit.core.cases import Case, SystemOutput
from judgekit.core.scores import Failed, NotApplicable, Outcomes
from judgekit.metrics.retrieval_ids import RetrievalIds


def score(case: dict[str, Any], output: dict[str, Any], **args: Any) -> Outcomes:
    return RetrievalIds.model_validate(args).calculate(
        Case.model_validate({"id": "q", **case}), SystemOutput.model_validate({"case_id": "q", **output})
    )


def chunks(*ids: str | int) -> list[dict[str, Any]]:
    return [{"chunk_id": item} for item in ids]


def docs(*ids: str | int) -> list[dict[str, Any]]:
    return [{"chunk_id": f"chunk{position}", "doc_id": item} for position, item in enumerate(ids)]


@pytest.mark.parametrize(
    ("expected_ids", "hits", "expected"),
    [
        # one distinct chunk at rank 1
        pytest.param(["A", "B"], chunks("A", "A"), {"precision_chunk@3": 1 / 3, "hit@1": 1.0}, id="row1-E10"),
        pytest.param(["id1"], chunks("id1", "id1"), {"hit@1": 1.0, "mrr_chunk": 1.0}, id="row3"),
        pytest.param(
            ["9th century", "9th"], chunks("1st century", "10th century", "9th"), {"mrr_chunk": 1 / 3}, id="row5"
        ),
        pytest.param(["d1"], chunks("d1", "d2"), {"precision_chunk@5": 0.2}, id="row18-E09"),
        pytest.param(["d1"], [], {"precision_chunk@5": 0.0, "mrr_chunk": 0.0, "hit@10": 0.0}, id="row9-E09"),
        pytest.param(["a_bc574ae_2"], chunks("a", "a", "z"), {"hit@3": 0.0, "mrr_chunk": 0.0}, id="E11"),
        # numbers are their digits, and digits only equal themselves
        pytest.param([7], chunks("07", "7"), {"mrr_chunk": 1 / 2}, id="number-and-text"),
        pytest.param(["Caf\u00e9"], chunks("Cafe\u0301"), {"hit@1": 1.0}, id="C18"),
        pytest.param(["g"], [{"chunk_id": "g", "rank": 10}], {"mrr_chunk": 0.1, "hit@10": 1.0}, id="rank-10"),
        pytest.param(["g"], [{"chunk_id": "g", "rank": 11}], {"mrr_chunk": 0.0, "hit@10": 0.0}, id="rank-11"),
        # the repeated chunk keeps its place: the expected one stands at 3, not at 2
        pytest.param(["g"], chunks("x", "x", "g"), {"mrr_chunk": 1 / 3, "hit@1": 0.0}, id="duplicates-keep-ranks"),
        # both score 0; the position counts
        pytest.param(
            ["a", "b"],
            [{"chunk_id": "a", "score": 0}, {"chunk_id": "b", "score": 0}],
            {"precision_chunk@1": 1.0, "precision_chunk@3": 2 / 3},
            id="row10",
        ),
    ],
)
def test_chunk_figures(expected_ids: list[Any], hits: list[Any], expected: dict[str, float]) -> None:
    outcomes = score({"expected_chunk_ids": expected_ids}, {"retrieved": hits})
    assert {name: outcomes[name] for name in expected} == expected


@pytest.mark.parametrize(
    ("expected_ids", "hits", "expected"),
    [
        pytest.param(["a", "b"], docs("a"), {"recall_doc@1": 0.5}, id="row6"),
        pytest.param(["a", "b"], docs("a", "a", "a"), {"recall_doc@3": 0.5}, id="row2-E10"),
        pytest.param(["g", "g"], docs("g"), {"recall_doc@1": 1.0}, id="row2-gold-twice"),
        pytest.param(["a", "b"], docs("a", "b"), {"recall_doc@1": 0.5, "recall_doc@3": 1.0}, id="row10"),
        pytest.param(list("abcde"), docs("a"), {"recall_doc@1": 0.2}, id="row12"),
        # 1 of 20
        pytest.param([f"g{n}" for n in range(20)], docs("g0", *range(9)), {"recall_doc@10": 0.05}, id="row20"),
        pytest.param(["d1"], docs("d1", "d2"), {"recall_doc@5": 1.0}, id="E09"),
        # a chunk id that comes twice, from two documents: both documents were retrieved
        pytest.param(
            ["a", "b"],
            [{"chunk_id": "c", "doc_id": "a"}, {"chunk_id": "c", "doc_id": "b"}],
            {"recall_doc@1": 0.5, "recall_doc@3": 1.0},
            id="repeated-chunk",
        ),
    ],
)
def test_document_recall(expected_ids: list[Any], hits: list[Any], expected: dict[str, float]) -> None:
    outcomes = score({"expected_doc_ids": expected_ids}, {"retrieved": hits})
    assert {name: outcomes[name] for name in expected} == expected


def test_without_labels_only_the_label_free_scores_are_numbers_row8() -> None:
    outcomes = score({"expected_chunk_ids": []}, {"answer": "a", "citations": [], "retrieved": chunks("x")})
    numbers = {name: value for name, value in outcomes.items() if isinstance(value, float)}
    assert numbers == {"citation_coverage": 0.0, "empty_result": 0.0}
    assert outcomes["hit@1"] == NotApplicable("no expected_chunk_ids")
    assert outcomes["recall_doc@1"] == NotApplicable("no expected_doc_ids")
    assert set(outcomes) == {column.name for column in RetrievalIds().columns()}


CITED = {"answer": "a", "retrieved": chunks("c1", 2), "citations": [{"citation": "c1"}, {"citation": "2"}]}


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, 1.0),
        ({"grounded": True}, 1.0),
        ({"answer": ""}, 1.0),
        ({"citations": [{"citation": "c1"}, {"citation": "ghost"}]}, 0.0),
        ({"citations": []}, 0.0),
        ({"citations": None}, NotApplicable("output has no citations list")),
        ({"grounded": False}, NotApplicable("answer is marked as not grounded")),
        ({"answer": None}, NotApplicable("no answer")),
        ({"error": {"kind": "api"}}, Failed("api")),
    ],
)
def test_citation_coverage_resolves_citations_among_the_hits(changes: dict[str, Any], expected: object) -> None:
    assert score({}, CITED | changes)["citation_coverage"] == expected


@pytest.mark.parametrize(("corpus", "expected"), [(["c1", 2, "c9"], 1.0), (["c1"], 0.0), ([], 0.0)])
def test_citation_coverage_resolves_citations_in_a_given_corpus(corpus: list[Any], expected: float) -> None:
    assert score({}, CITED, corpus_chunk_ids=corpus)["citation_coverage"] == expected


@pytest.mark.parametrize(
    ("output", "expected"),
    [
        ({"answer": "no", "grounded": False}, 1.0),
        ({"answer": "no", "abstained": True}, 1.0),
        ({"abstained": True}, 1.0),
        ({"answer": "yes"}, 0.0),
        ({"answer": "yes", "grounded": True, "abstained": False}, 0.0),
        ({"answer": ""}, 0.0),
        ({}, NotApplicable("no answer")),
        ({"error": {"kind": "api"}, "abstained": True}, Failed("api")),
    ],
)
def test_refusal_is_right_where_no_document_is_expected(output: dict[str, Any], expected: object) -> None:
    assert score({"expected_doc_ids": []}, output)["refusal_correct"] == expected


@pytest.mark.parametrize("case", [{}, {"expected_doc_ids": ["d"]}])
def test_refusal_is_not_asked_for_where_documents_are_expected_or_not_labelled(case: dict[str, Any]) -> None:
    assert isinstance(score(case, {"answer": "no", "abstained": True})["refusal_correct"], NotApplicable)


def test_an_errored_output_fails_what_its_case_allows_and_counts_as_empty() -> None:
    error = {"retrieved": chunks("a"), "error": {"kind": "api"}}
    outcomes = score({"expected_chunk_ids": ["a"], "expected_doc_ids": ["d"]}, error)
    assert outcomes.pop("empty_result") == 1.0
    assert isinstance(outcomes.pop("refusal_correct"), NotApplicable)
    assert set(outcomes.values()) == {Failed("api")}


def test_columns_say_direction_and_which_scores_are_proportions() -> None:
    columns = RetrievalIds(ks=(1, 5)).columns()
    assert [column.name for column in columns if not column.higher_is_better] == ["empty_result"]
    assert {column.name for column in columns if not column.binary} == {
        "precision_chunk@5",
        "recall_doc@1",
        "recall_doc@5",
        "mrr_chunk",
    }


HITS = st.lists(
    st.fixed_dictionaries({"chunk_id": st.sampled_from("123456"), "doc_id": st.sampled_from("abcx")}), max_size=14
)
GOLD = {"expected_chunk_ids": ["1", "2", "2"], "expected_doc_ids": ["a", "b", "b"]}


@given(HITS, st.randoms(use_true_random=False))
def test_the_order_of_hits_is_irrelevant_where_ranks_are_given(hits: list[dict[str, Any]], random: Any) -> None:
    ranked = [entry | {"rank": position} for position, entry in enumerate(hits, start=1)]
    shuffled = list(ranked)
    random.shuffle(shuffled)
    assert score(GOLD, {"retrieved": shuffled}) == score(GOLD, {"retrieved": ranked})


@given(HITS)
def test_every_number_lies_in_the_range_of_its_column(hits: list[dict[str, Any]]) -> None:
    outcomes = score(GOLD, {"retrieved": hits + hits})
    for column in RetrievalIds().columns():
        value = outcomes[column.name]
        if isinstance(value, float):
            assert column.low <= value <= column.high
            assert not column.binary or value in (column.low, column.high)


@given(HITS)
def test_a_wrong_hit_at_the_end_raises_nothing(hits: list[dict[str, Any]]) -> None:
    longer = [*hits, {"chunk_id": "late", "doc_id": "late"}]
    before, after = score(GOLD, {"retrieved": hits}), score(GOLD, {"retrieved": longer})
    del before["empty_result"], after["empty_result"]
    assert before == after
