"""Values that users found wrong in other tools (`shared/cases/metric_values.md`), through readers and families.

The ids of the parameters are the rows of that table. judgekit has no average precision, no recall that is capped at k
and no exact matching of whole spans; where a row is about these, the rest of it is tested and the nearest figure is
shown. Plain recall is `recall_doc@k`.
"""

import math
import re
from pathlib import Path
from typing import Any

import pytest

from judgekit import (
    Case,
    CharacterSpan,
    Estimate,
    SystemOutput,
    aggregate,
    calculate_overlap,
    chunk_precision,
    chunk_recall,
    compare_fields,
    merge_overlapping_spans,
    span_precision,
    span_recall,
)
from judgekit.core.scores import NotApplicable, Outcomes
from judgekit.metrics.retrieval import Retrieval
from judgekit.metrics.retrieval_ids import RetrievalIds
from tests.builders import REPOSITORY
from tests.readers import cases_of, outputs_of, written

TEN = ["one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"]


def scores_of(case: Case, output: SystemOutput, *ks: int) -> Outcomes:
    return {**RetrievalIds(ks=ks).calculate(case, output), **Retrieval(ks=ks).calculate(case, output)}


def scores_for(gold: list[str], found: list[str], k: int) -> Outcomes:
    """Scores at k of both families, for ids that are chunks, documents and files at once."""
    places = [{"chunk_id": name, "doc_id": name, "rel_path": name} for name in found]
    labels = Case(
        id="q", expected_chunk_ids=gold, expected_doc_ids=gold, gold_supports=[{"rel_path": name} for name in gold]
    )
    return scores_of(labels, SystemOutput(case_id="q", retrieved=places), k)


def trec(folder: Path, qrels: str, run: str, ties: str = "given", k: int = 10) -> dict[str, Outcomes]:
    """Scores by query; a query without results retrieved nothing."""
    cases = cases_of(written(folder, "x.qrels", qrels))
    outputs = {row.case_id: row for row in outputs_of(written(folder, "x.run", run), ties=ties)}
    return {case.id: scores_of(case, outputs.get(case.id, SystemOutput(case_id=case.id)), k) for case in cases}


# Discounts 1/log2(rank + 1): 1, .6309, .5, .4307, .3869, .3562, .3333.
@pytest.mark.parametrize(
    ("gold", "found", "k", "expected"),
    [
        # 1 of 2 at rank 1: DCG 1, ideal 1.6309
        pytest.param(["A", "B"], ["A", "A"], 2, {"recall_doc@2": 0.5, "ndcg@2": 0.6131}, id="row1"),
        pytest.param(["A"], list("AAX"), 3, {"recall_doc@3": 1.0, "precision@3": 0.3333, "ndcg@3": 1.0}, id="row1-k3"),
        pytest.param(
            ["a", "b"], list("aaa"), 3, {"recall_doc@3": 0.5, "precision@3": 0.3333, "ndcg@3": 0.6131}, id="row2"
        ),
        pytest.param(["g", "g"], ["g"], 1, {"recall_doc@1": 1.0, "ndcg@1": 1.0}, id="row2-duplicate-gold"),
        # without AP: the reciprocal rank is that of one relevant document
        pytest.param(["id1"], ["id1", "id1"], 2, {"hit@2": 1.0, "ndcg@2": 1.0, "mrr": 1.0}, id="row3"),
        # without AP; DCG 1 + .6309 + .5 + .4307 + .3333 = 2.8949, ideal of five 2.9485
        pytest.param(
            ["one", "two", "three", "four", "seven"],
            TEN,
            10,
            {"mrr": 1.0, "mrr_chunk": 1.0, "ndcg@10": 0.9818, "precision@10": 0.5, "precision_chunk@10": 0.5},
            id="row4",
        ),
        pytest.param(
            ["9th century", "9th"],
            ["1st century", "10th century", "9th"],
            3,
            {"recall_doc@3": 0.5, "hit@3": 1.0, "mrr": 0.3333},
            id="row5",
        ),
        # without AP, which is .5 here as recall is
        pytest.param(["a", "b"], ["a"], 2, {"recall_doc@2": 0.5}, id="row6"),
        # without the recall that is capped at k
        pytest.param(list("abcde"), ["a"], 1, {"recall_doc@1": 0.2, "mrr": 1.0, "hit@1": 1.0}, id="row12"),
        pytest.param(["d1"], ["d1", "d2"], 5, {"precision@5": 0.2, "precision_chunk@5": 0.2}, id="row18"),
        # 1 of 20; ideal of ten gains 4.5436
        pytest.param(
            [f"g{n}" for n in range(20)], ["g0", *TEN[1:]], 10, {"recall_doc@10": 0.05, "ndcg@10": 0.2201}, id="row20"
        ),
    ],
)
def test_figures_of_one_case(gold: list[str], found: list[str], k: int, expected: dict[str, float]) -> None:
    scores = scores_for(gold, found, k)
    assert {name: rounded(scores[name]) for name in expected} == expected


def rounded(score: Any) -> Any:
    return round(score, 4) if isinstance(score, float) else score


def test_row8_no_gold_makes_no_score() -> None:
    scores = scores_for([], ["x"], 5)
    names = ("hit@5", "recall_doc@5", "recall_any@5", "recall_all@5", "mrr", "ndcg@5", "precision@5")
    assert all(isinstance(scores[name], NotApplicable) for name in names)


def test_row9_a_query_without_results_counts_0(tmp_path: Path) -> None:
    qrels = "".join(f"q{n} 0 d 1\n" for n in range(1, 5))
    found = trec(tmp_path, qrels, "".join(f"q{n} Q0 d 1 1.0 r\n" for n in (1, 2, 4)), k=1)
    figure = aggregate(Retrieval(ks=(1,)), found.values())["precision@1"]
    assert isinstance(figure, Estimate)
    assert (figure.value, figure.n) == (0.75, 4)  # (1 + 1 + 0 + 1) / 4


def test_row10_a_score_of_0_is_a_score(tmp_path: Path) -> None:
    found = trec(tmp_path, "q 0 a 1\nq 0 b 1\n", "q Q0 a 1 0 r\nq Q0 b 2 0 r\n", k=2)
    assert found["q"]["recall_doc@2"] == 1.0


def test_row13_ties_keep_the_given_order_unless_trec_eval_is_asked_for(tmp_path: Path) -> None:
    run = "".join(f"q Q0 d{n} {n} 1.0 r\n" for n in (1, 2, 3))
    given, by_id = (trec(tmp_path, "q 0 d3 1\n", run, ties)["q"] for ties in ("given", "trec_eval"))
    assert (rounded(given["mrr"]), rounded(given["ndcg@10"])) == (0.3333, 0.5)  # rank 3: 1/3, 1/log2(4)
    assert (by_id["mrr"], by_id["ndcg@10"]) == (1.0, 1.0)


def test_row14_a_tied_pair_in_both_orders(tmp_path: Path) -> None:
    run = "q Q0 b 1 1.0 r\nq Q0 c 2 1.0 r\n"
    given, by_id = (trec(tmp_path, "q 0 b 1\n", run, ties)["q"] for ties in ("given", "trec_eval"))
    assert (given["ndcg@10"], rounded(by_id["ndcg@10"])) == (1.0, 0.6309)


@pytest.mark.parametrize("ties", ["given", "trec_eval"])
def test_row16_a_constant_scorer_has_all_figures_from_one_ranking(tmp_path: Path, ties: str) -> None:
    run = "".join(f"q Q0 {n:03d} {n} 0.5 r\n" for n in range(100))
    for gold in ("000", "050", "099"):
        scores = trec(tmp_path, f"q 0 {gold} 1\n", run, ties, k=100)["q"]
        rank = int(gold) + 1 if ties == "given" else 100 - int(gold)
        assert [scores["mrr"], scores["ndcg@100"]] == pytest.approx([1 / rank, 1 / math.log2(rank + 1)])


def test_row17_an_unjudged_or_missing_query_leaves_the_others_alone(tmp_path: Path) -> None:
    # MAP is no figure of ours; of one relevant document it is the reciprocal rank.
    found = trec(tmp_path, "q1 0 a 1\nq2 0 a 0\nq3 0 a 1\n", "q2 Q0 a 1 1.0 r\nq3 Q0 a 1 1.0 r\n")
    assert found["q3"]["mrr"] == 1.0
    assert isinstance(found["q2"]["mrr"], NotApplicable)
    assert found["q1"]["mrr"] == 0.0
    figure = aggregate(Retrieval(ks=(10,)), found.values())["mrr"]
    assert isinstance(figure, Estimate)
    assert (figure.value, figure.n, figure.n_not_applicable) == (0.5, 2, 1)


def spans(*pairs: tuple[int, int]) -> list[CharacterSpan]:
    return [CharacterSpan("d", start, end) for start, end in pairs]


def test_row22_one_broken_span_costs_its_gap_and_nothing_of_the_other() -> None:
    # Whole spans are not matched here: 1 of 2 gold spans is had exactly. In characters: gold 1 + 7, found 1 + 2 + 4.
    gold, found = spans((1, 2), (3, 10)), spans((1, 2), (3, 5), (6, 10))
    assert sum(span in found for span in gold) / len(gold) == 0.5
    assert (span_recall(found, gold), span_precision(found, gold)) == (7 / 8, 1.0)


def test_row25_a_null_that_is_left_out_is_no_credit_and_no_penalty() -> None:
    found = compare_fields({"a": None}, {})
    assert (found.counts.true_positives, found.counts.false_positives, found.counts.false_negatives) == (0, 0, 0)
    beside = compare_fields({"a": None, "b": 1}, {"b": 1})
    assert (beside.precision, beside.recall) == (1.0, 1.0)


def test_row26_a_repeated_item_is_found_once() -> None:
    # As a list without order it is one item too many; as a set of ids it is the same id.
    found = compare_fields({"w": ["dog", "s"]}, {"w": ["dog", "s", "s"]}, fields={"w": "set"})
    assert (found.recall, round(found.precision, 4)) == (1.0, 0.6667)
    assert (chunk_recall(["dog", "s", "s"], ["dog", "s"]), chunk_precision(["dog", "s", "s"], ["dog", "s"])) == (1, 1)


def test_row28_overlapping_chunks_and_gold_are_merged_first() -> None:
    # 0-10 and 5-15 are 15 characters, 8-12 and 10-20 are 12; in common 8 to 15.
    found, gold = spans((0, 10), (5, 15)), spans((8, 12), (10, 20))
    assert (merge_overlapping_spans(found), merge_overlapping_spans(gold)) == (spans((0, 15)), spans((8, 20)))
    assert calculate_overlap(found, gold) == 7
    assert (span_recall(found, gold), span_precision(found, gold)) == (7 / 12, 7 / 15)


TABLE = REPOSITORY.parent / "shared" / "cases" / "metric_values.md"


def test_every_row_of_the_table_has_a_test() -> None:
    if not TABLE.exists():
        pytest.skip(f"{TABLE} is not there: the table is not a part of the repository")
    wanted = set(re.findall(r"^\| (\d+) \|", TABLE.read_text(encoding="utf-8"), re.MULTILINE))
    text = Path(__file__).read_text(encoding="utf-8")
    found = set(re.findall(r'\bid="row(\d+)', text)) | set(re.findall(r"^def test_row(\d+)_", text, re.MULTILINE))
    assert len(wanted) > 15
    assert found == wanted
