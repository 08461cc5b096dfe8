"""Means over clusters, against Student's published example and the sums by hand."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats as scipy_stats

from judgekit.stats.clusters import ClusteredMean, clustered_mean

# Student 1908, sleep data; in R, t.test: mean 1.58, 95% interval 0.7001142 to 2.4598858.
SLEEP = [1.2, 2.4, 1.3, 1.3, 0.0, 1.0, 1.8, 0.8, 4.6, 1.4]


def test_independent_cases_have_students_interval() -> None:
    found = clustered_mean(SLEEP)
    assert found.value == pytest.approx(1.58, abs=1e-12)
    assert (found.low, found.high) == pytest.approx((0.7001142, 2.4598858), abs=5e-8)
    assert (found.n, found.n_clusters) == (10, 10)
    assert clustered_mean(SLEEP, list("abcdefghij")) == found


def test_three_clusters_by_hand() -> None:
    # mean 3; sums off the mean: a (1 - 3) + (2 - 3) = -3, b 0, c (4 - 3) + (5 - 3) = 3; 3/2 * 18 / 25 = 1.08
    found = clustered_mean([1, 4, 3, 2, 5], ["a", "c", "b", "a", "c"])
    assert found.value == 3.0
    assert found.standard_error == pytest.approx(math.sqrt(1.08), abs=1e-12)
    half = scipy_stats.t.ppf(0.975, 2) * math.sqrt(1.08)
    assert (found.low, found.high) == pytest.approx((3 - half, 3 + half), abs=1e-9)


@given(st.lists(st.tuples(st.floats(-10, 10), st.integers(0, 4)), min_size=2, max_size=40))
def test_copies_within_a_cluster_add_nothing(cases: list[tuple[float, int]]) -> None:
    values, clusters = [v for v, _ in cases], [c for _, c in cases]
    once, twice = clustered_mean(values, clusters), clustered_mean(values * 2, clusters * 2)
    assert twice.value == pytest.approx(once.value, abs=1e-12)
    assert twice.standard_error == (
        None if once.standard_error is None else pytest.approx(once.standard_error, abs=1e-9)
    )


@given(st.lists(st.integers(0, 5), min_size=8, max_size=60))
def test_clusters_of_one_mean_the_interval_of_scipy(values: list[int]) -> None:
    found = clustered_mean(values)
    if len(set(values)) == 1:
        assert (found.standard_error, found.low, found.high) == (0.0, None, None)
        return
    expected = scipy_stats.ttest_1samp(values, 0).confidence_interval()
    assert (found.low, found.high) == pytest.approx((expected.low, expected.high), abs=1e-9)


def test_the_interval_covers_the_mean_of_correlated_cases_where_the_naive_one_does_not() -> None:
    rng = np.random.default_rng(1)
    clustered = naive = 0
    for _ in range(400):
        values = (rng.normal(0, 1, 30).repeat(5) + rng.normal(0, 0.5, 150)).tolist()
        for_clusters, for_cases = clustered_mean(values, [i // 5 for i in range(150)]), clustered_mean(values)
        assert for_clusters.low is not None
        assert for_clusters.high is not None
        assert for_cases.low is not None
        assert for_cases.high is not None
        clustered += for_clusters.low <= 0 <= for_clusters.high
        naive += for_cases.low <= 0 <= for_cases.high
    assert 370 <= clustered <= 394  # 92.5% to 98.5%
    assert naive < 300


def test_the_edges() -> None:
    assert clustered_mean([]) == ClusteredMean(None, None, None, None, 0, 0)
    assert clustered_mean([2.0]) == ClusteredMean(2.0, None, None, None, 1, 1)
    assert clustered_mean([2.0, 4.0], ["a", "a"]) == ClusteredMean(3.0, None, None, None, 2, 1)
    with pytest.raises(ValueError, match="argument 2"):
        clustered_mean([1.0], [])
    with pytest.raises(ValueError, match="finite"):
        clustered_mean([math.nan])
