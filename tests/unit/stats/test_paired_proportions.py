"""The interval of the difference of two paired proportions."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judgekit.stats.paired import paired_proportion_interval


@pytest.mark.parametrize(
    ("only_first", "only_second", "n", "ends"),
    [
        # centre (7 - 1) / 23 = 0.26087; p12 = 2/23, p21 = 8/23; variance (10/23 - 0.26087^2) / 23 = 0.0159447;
        # 1.959964 * sqrt(0.0159447) = 0.2474898
        (1, 7, 21, (0.0133798, 0.5083593)),
        # centre 0; variance (2/22) / 22 = 0.00413223; 1.959964 * 0.0642824 = 0.1259913
        (0, 0, 20, (-0.1259913, 0.1259913)),
        # centre 1/3; variance (3/3 - 1/9) / 3 = 0.2962963; half 1.0668693, clipped
        (0, 1, 1, (-0.7335359, 1.0)),
    ],
)
def test_ends_are_as_worked_out_by_hand(only_first: int, only_second: int, n: int, ends: tuple[float, float]) -> None:
    assert paired_proportion_interval(only_first, only_second, n) == pytest.approx(ends, abs=1e-7)


counts = st.tuples(st.integers(0, 60), st.integers(0, 60), st.integers(0, 60)).filter(any)


@given(counts)
def test_the_difference_lies_between_the_ends_and_swapping_flips_them(found: tuple[int, int, int]) -> None:
    first, second, same = found
    n = first + second + same
    ends = paired_proportion_interval(first, second, n)
    assert -1.0 <= ends[0] <= (second - first) / n + 1e-12
    assert (second - first) / n - 1e-12 <= ends[1] <= 1.0
    swapped = paired_proportion_interval(second, first, n)
    assert swapped == pytest.approx((-ends[1], -ends[0]))


@pytest.mark.parametrize("chances", [(0.02, 0.02), (0.1, 0.2), (0.05, 0.3)])
def test_it_covers_near_95_percent_of_simulated_pairs(chances: tuple[float, float]) -> None:
    rng = random.Random(3)
    n, hits, rounds = 50, 0, 2000
    for _ in range(rounds):
        draws = [rng.random() for _ in range(n)]
        first = sum(draw < chances[0] for draw in draws)
        second = sum(chances[0] <= draw < sum(chances) for draw in draws)
        ends = paired_proportion_interval(first, second, n)
        hits += ends[0] <= chances[1] - chances[0] <= ends[1]
    # Two standard errors of a share of 2,000 at 0.95 are 0.01; the interval is known to err on the wide side.
    assert 0.94 <= hits / rounds <= 1.0


@pytest.mark.parametrize(("only_first", "only_second", "n"), [(-1, 0, 5), (3, 3, 5), (0, 0, 0)])
def test_impossible_counts_are_refused(only_first: int, only_second: int, n: int) -> None:
    with pytest.raises(ValueError, match="pairs"):
        paired_proportion_interval(only_first, only_second, n)
