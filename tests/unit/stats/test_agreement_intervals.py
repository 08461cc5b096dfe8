"""Cluster jackknife intervals, against published values and leaving out clusters one by one."""

import math
import time
from collections import Counter
from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats as scipy_stats

from judgekit.stats.agreement import cluster_jackknife, gwet_ac2, krippendorff_alpha, quadratic_weighted_kappa

# Efron and Tibshirani 1993, "An Introduction to the Bootstrap", table 10.1, patch data: y = new patch - old patch,
# z = old patch - placebo; ratio of the means -0.0713, jackknife standard error 0.106 (chapter 11).
PATCHES = [
    (-1200, 8406),
    (2601, 2342),
    (-2705, 8187),
    (1982, 8459),
    (-1290, 4795),
    (351, 3516),
    (-638, 4796),
    (-2719, 10238),
]
# Gwet 2014, see test_agreement: AC2 with quadratic weights 0.940, 95% interval by linearisation 0.905 to 0.976.
ABSTRACTORS = [(0, 0)] * 13 + [(1, 1)] * 20 + [(1, 2)] * 7 + [(2, 1)] * 4 + [(2, 2)] * 56

CLUSTERS = st.lists(
    st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), min_size=1, max_size=4), min_size=2, max_size=12
)


def ratio(counts: Mapping[tuple[int, int], int]) -> float | None:
    whole = sum(count * z for (_, z), count in counts.items())
    return sum(count * y for (y, _), count in counts.items()) / whole if whole else None


def test_the_standard_error_of_the_patch_data_is_the_published_one() -> None:
    value, low, high = cluster_jackknife(ratio, PATCHES, None, limits=(-math.inf, math.inf))
    assert value is not None
    assert low is not None
    assert high is not None
    assert round(value, 4) == -0.0713
    assert round((high - low) / 2 / scipy_stats.t.ppf(0.975, 7), 3) == 0.106
    assert (high + low) / 2 == pytest.approx(value, abs=1e-12)


def test_the_interval_of_ac2_is_near_the_published_one() -> None:
    value, low, high = gwet_ac2(ABSTRACTORS, 0, 2)
    assert (value, low, high) == pytest.approx((0.940, 0.905, 0.976), abs=1e-3)


@given(CLUSTERS)
def test_every_cluster_is_left_out_once(clusters: list[list[tuple[int, int]]]) -> None:
    def kappa(units: list[tuple[int, int]]) -> float | None:
        return quadratic_weighted_kappa([a for a, _ in units], [b for _, b in units])[0]

    everything = [unit for cluster in clusters for unit in cluster]
    without = [kappa([u for j, c in enumerate(clusters) if j != i for u in c]) for i in range(len(clusters))]
    names = [i for i, cluster in enumerate(clusters) for _ in cluster]
    value, low, high = quadratic_weighted_kappa([a for a, _ in everything], [b for _, b in everything], names)
    assert value == kappa(everything)
    known = [v for v in without if v is not None]
    if value is None or len(known) < len(clusters) or max(known) - min(known) <= 1e-12:
        assert (low, high) == (None, None)
        return
    n = len(clusters)
    mean = sum(known) / n
    half = scipy_stats.t.ppf(0.975, n - 1) * math.sqrt((n - 1) / n * sum((v - mean) ** 2 for v in known))
    assert low == pytest.approx(max(-1.0, value - half), abs=1e-9)
    assert high == pytest.approx(min(1.0, value + half), abs=1e-9)


def test_doubling_every_case_within_its_cluster_changes_no_interval() -> None:
    names = list(range(len(ABSTRACTORS)))
    once = krippendorff_alpha(ABSTRACTORS)
    twice = gwet_ac2(ABSTRACTORS * 2, 0, 2, names * 2)
    assert twice == pytest.approx(gwet_ac2(ABSTRACTORS, 0, 2), abs=1e-12)
    alone = krippendorff_alpha(ABSTRACTORS * 2)
    assert once[1] is not None
    assert alone[1] is not None
    assert alone[1] > once[1]  # taken for twice as many cases, the interval is too narrow


@pytest.mark.parametrize(
    ("pairs", "value"),
    [
        ([], None),
        ([(3, 3)] * 5, None),
        ([(0, 0), (5, 5)], 1.0),  # undefined without one of the two
        ([(0, 0)] * 3 + [(5, 5)] * 3, 1.0),  # no case changes it
    ],
)
def test_no_ends_without_a_spread(pairs: list[tuple[int, int]], value: float | None) -> None:
    first, second = [a for a, _ in pairs], [b for _, b in pairs]
    assert quadratic_weighted_kappa(first, second) == (value, None, None)
    assert gwet_ac2(pairs, 0, 5) == (value, None, None)
    assert krippendorff_alpha(pairs) == (value, None, None)


def test_five_thousand_cases_in_a_thousand_clusters_take_no_time() -> None:
    pairs = [((i * 7) % 6, (i * 7 + (i % 5 == 0)) % 6) for i in range(5000)]
    start = time.perf_counter()
    _, low, high = gwet_ac2(pairs, 0, 5, [i // 5 + (i % 13) for i in range(5000)])
    assert time.perf_counter() - start < 5.0
    assert low is not None
    assert high is not None


def test_units_and_clusters_are_of_one_length_and_one_cluster_has_no_ends() -> None:
    with pytest.raises(ValueError, match="argument 2"):
        gwet_ac2([[0, 1], [1, 1]], 0, 1, [1])
    assert cluster_jackknife(lambda counts: float(Counter(counts).total()), [1, 2], ["x", "x"]) == (2.0, None, None)
