"""Kernels on plain integers, with values that users found wrong in other tools (`cases/metric_values.md`)."""

import math
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judgekit.metrics.gold_positions import first_places
from judgekit.metrics.ranking import hit_at, ndcg_at, precision_at, recall_at, reciprocal_rank

TEN = ["one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"]

# log2 discounts: rank 1: 1, rank 2: 0.6309, rank 3: 0.5, rank 4: 0.4307, rank 5: 0.3869, rank 7: 1/3.
FIGURES = [
    # 1 of 2 found, at rank 1; DCG 1, ideal 1 + .6309 = 1.6309, ratio .6131
    pytest.param(["A", "B"], ["A", "A"], 2, {"recall": 0.5, "ndcg": 0.6131, "precision": 0.5}, id="row1a-E10"),
    # 1 of 1 at rank 1; the second A is no second gain
    pytest.param(["A"], ["A", "A", "X"], 3, {"recall": 1.0, "precision": 0.3333, "ndcg": 1.0}, id="row1b-E10"),
    # 1 of 2 at rank 1; P = 1/3
    pytest.param(["a", "b"], ["a", "a", "a"], 3, {"recall": 0.5, "precision": 0.3333, "ndcg": 0.6131}, id="row2a"),
    # gold given twice is one gold id: 1 of 1
    pytest.param(["g", "g"], ["g"], 1, {"recall": 1.0, "precision": 1.0, "ndcg": 1.0}, id="row2b-E10"),
    pytest.param(["id1"], ["id1", "id1"], 2, {"hit": 1.0, "ndcg": 1.0, "recall": 1.0}, id="row3-C22"),
    # ranks 1, 2, 3, 4, 7: DCG 1 + .6309 + .5 + .4307 + .3333 = 2.8949; ideal 1 + .6309 + .5 + .4307 + .3869 = 2.9485
    pytest.param(
        ["one", "two", "three", "four", "seven"], TEN, 10, {"mrr": 1.0, "ndcg": 0.9818, "precision": 0.5}, id="row4"
    ),
    # "9th" at rank 3, "9th century" nowhere: ids are whole, "10th century" is no match
    pytest.param(
        ["9th century", "9th"],
        ["1st century", "10th century", "9th"],
        3,
        {"recall": 0.5, "hit": 1.0, "mrr": 0.3333},
        id="row5",
    ),
    pytest.param(["a", "b"], ["a"], 1, {"recall": 0.5}, id="row6"),
    # nothing retrieved
    pytest.param(["a"], [], 3, {"precision": 0.0, "recall": 0.0, "ndcg": 0.0, "mrr": 0.0, "hit": 0.0}, id="row9-E09"),
    pytest.param(["a", "b"], ["a", "b"], 2, {"recall": 1.0}, id="row10"),
    # 1 of 5
    pytest.param(list("abcde"), ["a"], 1, {"recall": 0.2, "mrr": 1.0, "hit": 1.0}, id="row12"),
    # rank 3: 1/3 and 1/log2(4) = .5
    pytest.param(["d3"], ["d1", "d2", "d3"], 3, {"mrr": 0.3333, "ndcg": 0.5}, id="row13"),
    pytest.param(["b"], ["b", "c"], 2, {"ndcg": 1.0}, id="row14-C21"),
    # constant scorer: all figures from one ranking, so both are above 0: 1/100 and 1/log2(101) = .1502
    pytest.param(["99"], [str(n) for n in range(100)], 100, {"mrr": 0.01, "ndcg": 0.1502}, id="row16"),
    # 1 of k = 5, although 2 were retrieved
    pytest.param(["d1"], ["d1", "d2"], 5, {"precision": 0.2, "recall": 1.0}, id="row18-E09"),
    # 1 of 20; ideal of min(10, 20) = 10 gains is 4.5436, 1 / 4.5436 = .2201
    pytest.param([f"g{n}" for n in range(20)], ["g0", *TEN[:9]], 10, {"recall": 0.05, "ndcg": 0.2201}, id="row20"),
    # ids are never rewritten: a second "a" does not become "a_bc574ae_2"
    pytest.param(["a_bc574ae_2"], ["a", "a", "z"], 3, {"ndcg": 0.0, "hit": 0.0}, id="E11"),
]


@pytest.mark.parametrize(("gold", "retrieved", "k", "expected"), FIGURES)
def test_figures_that_other_tools_got_wrong(
    gold: list[str], retrieved: list[str], k: int, expected: dict[str, float]
) -> None:
    distinct = set(gold)
    ranks = first_places(tuple(distinct), retrieved)
    figures = {
        "hit": hit_at(k, ranks),
        "mrr": reciprocal_rank(ranks, k),
        "precision": precision_at(k, ranks),
        "recall": recall_at(k, len(distinct), ranks),
        "ndcg": ndcg_at(k, len(distinct), ranks),
    }
    assert {name: round(figures[name], 4) for name in expected} == expected


def test_the_top_of_a_tied_list_is_the_first_given_id_e24() -> None:
    assert first_places(("d1",), ["d1", "d2", "d3"]) == (1,)


def test_a_rank_beyond_the_cut_off_does_not_count() -> None:
    assert hit_at(3, [4]) == 0.0
    assert reciprocal_rank([4], 3) == 0.0
    assert reciprocal_rank([4]) == 0.25
    assert precision_at(3, [1, 4]) == 1 / 3
    assert recall_at(3, 2, [1, 4]) == 0.5
    assert ndcg_at(3, 1, [4]) == 0.0


@pytest.mark.parametrize("figure", [recall_at, ndcg_at])
def test_a_share_of_no_gold_is_refused(figure: object) -> None:
    assert callable(figure)
    with pytest.raises(ValueError, match="not defined without gold"):
        figure(3, 0, [])


def test_ranks_and_cut_offs_beyond_the_table_are_computed() -> None:
    # 1 / log2(5001) = 0.081384 against an ideal of 1
    assert ndcg_at(10_000, 1, [5000]) == pytest.approx(1 / math.log2(5001), rel=1e-12)
    assert ndcg_at(1000, 1000, range(1, 1001)) == 1.0
    # the last rank of the table and the first behind it
    assert ndcg_at(257, 1, [256]) > ndcg_at(257, 1, [257]) > 0.0


RANKS = st.sets(st.integers(1, 600), max_size=40).map(sorted)


@given(RANKS, st.integers(1, 700), st.integers(0, 5))
def test_every_figure_lies_between_0_and_1(ranks: Sequence[int], k: int, n_missed: int) -> None:
    n_gold = max(1, len(ranks) + n_missed)
    for value in (
        hit_at(k, ranks),
        reciprocal_rank(ranks, k),
        precision_at(k, ranks),
        recall_at(k, n_gold, ranks),
        ndcg_at(k, n_gold, ranks),
    ):
        assert 0.0 <= value <= 1.0


@given(st.integers(1, 600), st.integers(1, 600))
def test_an_ideal_list_has_an_ndcg_of_exactly_1(n_gold: int, k: int) -> None:
    assert ndcg_at(k, n_gold, range(1, n_gold + 1)) == 1.0


@given(st.sets(st.sampled_from("abcdef")), st.lists(st.sampled_from("abcdef")))
def test_a_gold_id_is_credited_once_however_often_it_comes(gold: set[str], retrieved: list[str]) -> None:
    assert len(first_places(tuple(gold), retrieved)) == len(gold & set(retrieved))
