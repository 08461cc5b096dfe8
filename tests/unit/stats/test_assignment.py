"""The assignment problem, against scipy and against every permutation."""

import itertools
import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import linear_sum_assignment

from judgekit.stats.assignment import cheapest_assignment


def total(costs: list[list[float]], pairs: list[tuple[int, int]]) -> float:
    return sum(costs[row][column] for row, column in pairs)


@pytest.mark.parametrize(
    ("costs", "pairs"),
    [
        ([], []),
        ([[]], []),
        ([[5]], [(0, 0)]),
        # 4+5=9 and 1+... : (0,1)=1 with (1,0)=2 gives 3; (0,0)=4 with (1,1)=5 gives 9
        ([[4, 1], [2, 5]], [(0, 1), (1, 0)]),
        # both rows want column 0; 1+6=7 against 2+3=5
        ([[1, 3], [2, 6]], [(0, 1), (1, 0)]),
        # more rows than columns: row 1 is left out
        ([[1], [9], [2]], [(0, 0)]),
        # more columns than rows
        ([[9, 9, 1]], [(0, 2)]),
    ],
)
def test_the_cheapest_pairs_by_hand(costs: list[list[float]], pairs: list[tuple[int, int]]) -> None:
    assert cheapest_assignment(costs) == pairs


@pytest.mark.parametrize("seed", range(60))
def test_the_sum_of_costs_is_that_of_scipy(seed: int) -> None:
    rng = random.Random(seed)
    n_rows, n_columns = rng.randint(1, 12), rng.randint(1, 12)
    draw = rng.random if seed % 2 else lambda: float(rng.randint(-3, 3))
    costs = [[draw() for _ in range(n_columns)] for _ in range(n_rows)]
    pairs = cheapest_assignment(costs)
    rows, columns = linear_sum_assignment(np.array(costs))
    assert total(costs, pairs) == pytest.approx(np.array(costs)[rows, columns].sum(), abs=1e-9)
    assert len(pairs) == len({row for row, _ in pairs}) == len({column for _, column in pairs}) == len(rows)
    assert pairs == sorted(pairs)


@given(st.integers(1, 5).flatmap(lambda n: st.lists(st.lists(st.integers(-4, 4), min_size=n, max_size=n), max_size=n)))
def test_no_other_assignment_is_cheaper(costs: list[list[int]]) -> None:
    n_columns = len(costs[0]) if costs else 0
    ways = itertools.permutations(range(n_columns), len(costs))
    best = min((sum(costs[row][column] for row, column in enumerate(way)) for way in ways), default=0)
    assert sum(costs[row][column] for row, column in cheapest_assignment(costs)) == best


def test_rows_of_different_lengths_are_refused() -> None:
    with pytest.raises(ValueError, match="one length"):
        cheapest_assignment([[1, 2], [1]])
