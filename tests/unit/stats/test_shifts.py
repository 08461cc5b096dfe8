"""Two means from their summaries, against SciPy."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judgekit.stats.means import welch_p

scipy_stats = pytest.importorskip("scipy.stats")

sizes = st.integers(2, 500)
means = st.floats(0.0, 5.0)
spreads = st.floats(0.01, 3.0)


@given(means, spreads, sizes, means, spreads, sizes)
def test_the_p_value_is_that_of_scipy(
    mean_a: float, sd_a: float, n_a: int, mean_b: float, sd_b: float, n_b: int
) -> None:
    expected = scipy_stats.ttest_ind_from_stats(mean_a, sd_a, n_a, mean_b, sd_b, n_b, equal_var=False).pvalue
    assert welch_p(mean_a, sd_a, n_a, mean_b, sd_b, n_b) == pytest.approx(expected, rel=1e-6, abs=1e-12)


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ((4.0, 0.0, 5, 4.0, 0.0, 5), 1.0),
        ((4.0, 0.0, 5, 3.0, 0.0, 5), 0.0),
        ((4.0, 1.0, 1, 3.0, 1.0, 50), None),
        ((4.0, 1.0, 50, 3.0, 1.0, 0), None),
    ],
)
def test_cases_at_the_edge(arguments: tuple[float, float, int, float, float, int], expected: float | None) -> None:
    assert welch_p(*arguments) == expected


def test_a_spread_below_0_is_refused() -> None:
    with pytest.raises(ValueError, match="at least 0"):
        welch_p(1.0, -1.0, 3, 1.0, 1.0, 3)
