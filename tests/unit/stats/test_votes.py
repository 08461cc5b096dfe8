"""Effective votes of a panel, against published correlations and what the formula must do at its ends."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from judgekit.stats.agreement import EffectiveVotes, effective_votes

# Anscombe 1973, "Graphs in Statistical Analysis", data set 1: correlation 0.816.
ANSCOMBE = list(
    zip(
        [10.0, 8.0, 13.0, 9.0, 11.0, 14.0, 6.0, 4.0, 12.0, 7.0, 5.0],
        [8.04, 6.95, 7.58, 8.81, 8.33, 9.96, 7.24, 4.26, 10.84, 4.82, 5.68],
        strict=True,
    )
)


def test_two_members_with_a_published_correlation() -> None:
    found = effective_votes(ANSCOMBE)
    assert found.mean_correlation is not None
    assert round(found.mean_correlation, 3) == 0.816
    assert found.value == pytest.approx(2 / (1 + found.mean_correlation), abs=1e-12)


@pytest.mark.parametrize(
    ("verdicts", "value"),
    [
        ([[1, 1, 1], [0, 0, 0], [1, 1, 1]], 1.0),  # copies
        ([[0, 0], [0, 1], [1, 0], [1, 1]], 2.0),  # unrelated
        ([[0, 1], [1, 0]], None),  # opposite: 1 + 1 * -1 = 0, errors cancel
        ([[0, 0, 0], [0, 1, 1], [1, 0, 1], [1, 1, 0]], 3.0),  # pairwise unrelated
        ([[0, 0], [1, 1], [None, 1], [0, None]], 1.0),
        ([[1, 0], [1, 1]], None),  # the first member never varies
        ([[1], [0]], None),
        ([], None),
    ],
)
def test_panels_by_hand(verdicts: list[list[float | None]], value: float | None) -> None:
    assert effective_votes(verdicts).value == (None if value is None else pytest.approx(value, abs=1e-12))


def test_a_pair_without_a_correlation_is_left_out() -> None:
    # the third member is constant: one of three pairs is left, rho = 1, 3 / (1 + 2)
    assert effective_votes([[0, 0, 1], [1, 1, 1]]) == EffectiveVotes(1.0, 1.0)


@given(st.lists(st.lists(st.integers(0, 5).map(float), min_size=4, max_size=4), min_size=3, max_size=30))
def test_the_correlation_is_numpys_and_the_scale_does_not_matter(verdicts: list[list[float]]) -> None:
    found = effective_votes(verdicts)
    columns = [column for column in np.array(verdicts).T if len(set(column)) > 1]
    if len(columns) < 2:
        assert found.mean_correlation is None
        return
    matrix = np.corrcoef(columns)
    expected = matrix[np.triu_indices(len(columns), 1)].mean()
    assert found.mean_correlation == pytest.approx(expected, abs=1e-9)
    moved = effective_votes([[3 * v - 7 for v in case] for case in verdicts])
    assert moved.mean_correlation == pytest.approx(found.mean_correlation, abs=1e-9)


def test_the_mean_of_a_panel_varies_like_that_of_so_many_independent_members() -> None:
    rng = np.random.default_rng(2)
    errors = math.sqrt(0.6) * rng.normal(size=(20_000, 1)) + math.sqrt(0.4) * rng.normal(size=(20_000, 5))
    found = effective_votes(errors.tolist())
    # 5 / (1 + 4 * 0.6) = 1.47
    assert found.value == pytest.approx(5 / 3.4, rel=0.03)
    assert errors.mean(axis=1).var() == pytest.approx(1 / (5 / 3.4), rel=0.05)


def test_cases_with_different_numbers_of_members_are_refused() -> None:
    with pytest.raises(ValueError, match="different numbers of members"):
        effective_votes([[1, 2], [1]])
    with pytest.raises(ValueError, match="finite"):
        effective_votes([[1, math.nan], [1, 2]])
