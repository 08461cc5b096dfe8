"""Intervals over cases that come in clusters."""

import math
import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats as scipy_stats

from judgekit.stats.bootstrap import Interval, Resampling
from judgekit.stats.clusters import cluster_sums, clustered_bootstrap_mean, clustered_wilson
from judgekit.stats.proportions import wilson_interval

BY_CLUSTER = Resampling(units="clusters")


def width(interval: Interval) -> float:
    assert interval.low is not None, interval.method
    assert interval.high is not None
    return interval.high - interval.low


def test_rows_are_summed_by_cluster_with_the_size_behind() -> None:
    rows = [(0.1, 1.0), (0.2, 0.0), (0.3, 1.0), (0.4, 2.0)]
    # Cluster 5: .1 + .2 + .4 and 1 + 0 + 2 of 3 cases; cluster -1: one case.
    assert cluster_sums(rows, [5, 5, -1, 5]) == [(0.3, 1.0, 1.0), (pytest.approx(0.7), 3.0, 3.0)]
    assert cluster_sums([], []) == []


@pytest.mark.parametrize("n_clusters", [20, 60, 150])
def test_the_clustered_interval_of_a_mean_is_scipys_of_the_clusters(n_clusters: int) -> None:
    rng = np.random.default_rng(n_clusters)
    sizes = rng.integers(1, 6, n_clusters)
    level = rng.normal(2.0, 1.0, n_clusters)
    clusters = np.repeat(np.arange(n_clusters), sizes)
    values = np.round(level[clusters] + rng.normal(0.0, 0.3, len(clusters)), 1)
    found = clustered_bootstrap_mean(values.tolist(), clusters.tolist(), (-math.inf, math.inf), BY_CLUSTER)
    sums = np.bincount(clusters, weights=values)

    def statistic(total: np.ndarray, size: np.ndarray, axis: int = -1) -> np.ndarray:
        return np.asarray(total.sum(axis) / size.sum(axis))

    oracle = scipy_stats.bootstrap(
        (sums, sizes.astype(float)), statistic, paired=True, vectorized=True, n_resamples=20_000, batch=2000,
        method="BCa", rng=np.random.default_rng(1),
    )  # fmt: skip
    expected = oracle.confidence_interval
    assert (found.low, found.high) == pytest.approx((expected.low, expected.high), abs=0.25 * oracle.standard_error)
    assert f"{n_clusters} clusters" in found.method


def test_copies_of_a_case_add_nothing_to_what_its_cluster_says() -> None:
    rng = random.Random(2)
    values = [float(rng.randrange(6)) for _ in range(40)]
    once = clustered_bootstrap_mean(values, range(40), (0.0, 5.0), BY_CLUSTER)
    # Sums and sizes are all ten times as large, so every resample has the same mean.
    tenfold = clustered_bootstrap_mean(values * 10, [*range(40)] * 10, (0.0, 5.0), BY_CLUSTER)
    assert (tenfold.low, tenfold.high) == pytest.approx((once.low, once.high), abs=1e-9)
    flags = [value > 2 for value in values]
    # n* = n / design effect: 40 in both, less 1 / 39 for the spread of 40 clusters that is estimated.
    single, many = clustered_wilson(flags, range(40)), clustered_wilson(flags * 10, [*range(40)] * 10)
    assert width(many) == pytest.approx(width(single), rel=0.02)
    assert many.method == "wilson 95%, design effect 10.26, 40 clusters"


def test_the_design_effect_by_hand() -> None:
    # Clusters 3/3, 0/3, 2/4: n = 10, p = .5; s - p m = 1.5, -1.5, 0; v = 3/2 * 4.5 / 100 = 0.0675; p(1-p)/n = .025;
    # design effect 2.7. t(2) = 4.302653, so n* = 10 / 2.7 * (1.959964 / 4.302653)^2 = 0.768535.
    flags = [True] * 3 + [False] * 3 + [True, True, False, False]
    found = clustered_wilson(flags, [1, 1, 1, 2, 2, 2, 3, 3, 3, 3])
    assert found.method == "wilson 95%, design effect 2.70, 3 clusters"
    assert (found.low, found.high) == pytest.approx(wilson_interval(0.5 * 0.768535, 0.768535), abs=1e-6)


def test_equal_cases_are_worth_their_clusters() -> None:
    found = clustered_wilson([False] * 100, [place % 4 for place in range(100)])
    assert (found.low, found.high) == wilson_interval(0, 4)
    assert found.method == "wilson 95% of 4 clusters, all cases equal"
    assert clustered_wilson([True] * 3, [1, 2, 3]).high == 1.0


@pytest.mark.parametrize("clusters", [[], [4], [4, 4, 4]])
def test_fewer_than_two_clusters_have_no_interval(clusters: list[int]) -> None:
    expected = Interval(None, None, "no interval: fewer than 2 clusters")
    assert clustered_wilson([True, False, True][: len(clusters)], clusters) == expected
    assert clustered_bootstrap_mean([1.0, 2.0, 3.0][: len(clusters)], clusters, (0.0, 5.0), BY_CLUSTER) == expected


@given(
    st.lists(st.tuples(st.booleans(), st.integers(0, 9)), min_size=2, max_size=60), st.randoms(use_true_random=False)
)
def test_a_clustered_proportion_lies_in_its_interval_in_any_order(
    cases: list[tuple[bool, int]], rng: random.Random
) -> None:
    flags, clusters = zip(*cases, strict=True)
    found = clustered_wilson(flags, clusters)
    shuffled = list(zip(*rng.sample(cases, len(cases)), strict=True))
    assert clustered_wilson(shuffled[0], shuffled[1]) == found
    if found.low is None:
        assert len(set(clusters)) < 2
        return
    assert found.high is not None
    assert 0.0 <= found.low <= sum(flags) / len(flags) <= found.high <= 1.0
    independent = wilson_interval(sum(flags), len(flags))
    assert independent is not None
    assert found.high - found.low >= (independent[1] - independent[0]) * 0.999 or len(set(flags)) == 1


def test_intervals_that_know_the_clusters_cover_where_those_that_do_not_fail() -> None:
    # 400 data sets of 30 clusters of 10; cases of a cluster mostly agree. Truth: 0.5.
    rng = random.Random(11)
    clusters = [place // 10 for place in range(300)]
    covered = blind = 0
    for _ in range(400):
        level = [rng.betavariate(0.5, 0.5) for _ in range(30)]
        flags = [rng.random() < level[cluster] for cluster in clusters]
        found, plain = clustered_wilson(flags, clusters), wilson_interval(sum(flags), 300)
        assert found.low is not None and found.high is not None and plain is not None
        covered += found.low <= 0.5 <= found.high
        blind += plain[0] <= 0.5 <= plain[1]
    assert 0.92 <= covered / 400 <= 0.98
    assert blind / 400 < 0.75
