"""Bootstrap intervals against scipy, a published table, and what must hold whatever the data."""

import math
import random
from collections import Counter
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats as scipy_stats

from judgekit.stats import bootstrap
from judgekit.stats.bootstrap import (
    MOST_UNITS,
    N_RESAMPLES,
    Interval,
    Limits,
    Resampling,
    bootstrap_pooled,
    draws,
    draws_from,
    resampled_sums,
)

ANY = (-math.inf, math.inf)
Z_90 = 1.6448536269514722
"""Of a 90% interval, as the tables below have them."""

# Efron and Tibshirani 1993, "An Introduction to the Bootstrap", table 14.1, spatial test data, column A; its variance
# is 171.5. Table 14.2, 90% intervals of the variance: BCa (115.8, 259.6) from 2000 resamples, ABC (116.7, 260.9).
SPATIAL = [48, 36, 20, 29, 42, 42, 20, 42, 22, 41, 45, 14, 6, 0, 33, 28, 34, 4, 32, 24, 47, 41, 24, 26, 30, 41]


def bootstrap_mean(values: Sequence[float], limits: Limits, resampling: Resampling) -> Interval:
    return bootstrap.bootstrap_mean(Counter(values), limits, resampling)


def variance(total: float, squares: float, n: float) -> float | None:
    return squares / n - (total / n) ** 2 if n else None


def f1(tp: float, fp: float, fn: float) -> float | None:
    return 2 * tp / (2 * tp + fp + fn) if tp + fp + fn else None


def share(part: float, whole: float) -> float | None:
    return part / whole if whole else None


def ends(interval: Interval) -> tuple[float, float]:
    assert interval.low is not None, interval.method
    assert interval.high is not None
    return interval.low, interval.high


SPATIAL_ROWS = [(float(value), float(value * value), 1.0) for value in SPATIAL]


def test_the_bca_interval_of_the_spatial_data_is_the_published_one_within_the_scatter_of_resamples(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(bootstrap, "Z", Z_90)
    interval = bootstrap_pooled(SPATIAL_ROWS, variance, (0.0, math.inf), Resampling())
    low, high = ends(interval)
    # The standard error of the variance is 42 (chapter 14); a tenth of it is the scatter of an end.
    assert low == pytest.approx(115.8, abs=4.2)
    assert high == pytest.approx(259.6, abs=6.0)


def test_the_abc_interval_of_the_spatial_data_is_the_published_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bootstrap, "MOST_UNITS", 25)
    monkeypatch.setattr(bootstrap, "Z", Z_90)
    interval = bootstrap_pooled(SPATIAL_ROWS, variance, (0.0, math.inf), Resampling())
    assert interval.method == "abc bootstrap 95%"
    low, high = ends(interval)
    assert (round(low, 1), round(high, 1)) == (116.7, 260.9)


def standard_error_of_an_end(values: Sequence[float], end: float) -> float:
    """Of a quantile of 2000 resamples, near 2.5%: sqrt(q (1 - q) / R) / density, for a normal density."""
    n = len(values)
    spread = float(np.std(values)) / math.sqrt(n)
    z = (end - float(np.mean(values))) / spread
    density = scipy_stats.norm.pdf(z)
    return float(math.sqrt(0.025 * 0.975 / N_RESAMPLES) / density * spread)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("n", [12, 30, 80, 150, 400])
def test_the_interval_of_a_mean_is_scipys_within_the_scatter_of_resamples(n: int, seed: int) -> None:
    rng = np.random.default_rng(1000 * n + seed)
    values = np.round(rng.exponential(1.0, n), 2)
    found = ends(bootstrap_mean(values.tolist(), (0.0, math.inf), Resampling(seed=seed)))
    oracle = scipy_stats.bootstrap(
        (values,), np.mean, n_resamples=20_000, batch=2000, method="BCa", rng=np.random.default_rng(seed)
    ).confidence_interval
    for end, expected in zip(found, (oracle.low, oracle.high), strict=True):
        assert end == pytest.approx(expected, abs=4.0 * standard_error_of_an_end(values.tolist(), expected))


@pytest.mark.parametrize("n", [25, 90, 250])
def test_the_interval_of_a_pooled_f1_is_scipys_within_the_scatter_of_resamples(n: int) -> None:
    rng = np.random.default_rng(n)
    columns = [rng.poisson(mean, n).astype(float) for mean in (1.0, 0.5, 0.8)]
    found = ends(bootstrap_pooled(list(zip(*columns, strict=True)), f1, (0.0, 1.0), Resampling()))

    def statistic(tp: np.ndarray, fp: np.ndarray, fn: np.ndarray, axis: int = -1) -> np.ndarray:
        hits = 2 * tp.sum(axis)
        return np.asarray(hits / (hits + fp.sum(axis) + fn.sum(axis)))

    oracle = scipy_stats.bootstrap(
        columns, statistic, paired=True, vectorized=True, n_resamples=20_000, batch=2000, method="BCa",
        rng=np.random.default_rng(1),
    )  # fmt: skip
    expected = oracle.confidence_interval
    # 4 standard errors of a 2.5% quantile of 2000: 4 * 0.0597 standard errors of the figure.
    assert found == pytest.approx((expected.low, expected.high), abs=0.25 * oracle.standard_error)


def test_bca_and_abc_agree_where_one_gives_way_to_the_other() -> None:
    rng = random.Random(3)
    values = [round(rng.expovariate(1.0), 1) for _ in range(MOST_UNITS)]
    few, many = bootstrap_mean(values, ANY, Resampling()), bootstrap_mean([*values, 1.0], ANY, Resampling())
    assert "2000 resamples" in few.method
    assert many.method == "abc bootstrap 95%"
    assert ends(few) == pytest.approx(ends(many), abs=0.25 * float(np.std(values)) / 10)


def test_another_seed_gives_other_resamples_and_the_method_names_it() -> None:
    values = [0.0, 0.2, 0.2, 0.4, 1.0, 0.7, 0.3, 0.9, 0.1, 0.6]
    first, second = bootstrap_mean(values, (0.0, 1.0), Resampling(0)), bootstrap_mean(values, (0.0, 1.0), Resampling(7))
    assert first != second
    assert second.method == "bca bootstrap 95%, 2000 resamples, seed 7"
    assert bootstrap_mean(values, (0.0, 1.0), Resampling(0)) == first


def test_the_resamples_of_a_seed_never_change() -> None:
    # SHAKE-128 of FIPS 202 is the same everywhere; these numbers pin the way its bytes are used.
    assert list(draws(0, 10)[:12]) == [1, 5, 1, 7, 2, 3, 0, 3, 3, 1, 7, 5]
    interval = bootstrap_mean([0.0, 1.0, 2.0, 3.0, 5.0], ANY, Resampling())
    assert ends(interval) == (1.0, 3.8)


@pytest.mark.parametrize("n", [2, 3, 7, 86, 100])
def test_every_unit_is_as_likely_to_be_drawn_as_any_other(n: int) -> None:
    drawn = draws(1, n)
    assert len(drawn) == n * N_RESAMPLES
    counts = np.bincount(np.frombuffer(drawn, dtype=np.uint8), minlength=n)
    assert len(counts) == n
    assert scipy_stats.chisquare(counts).pvalue > 1e-4


def test_counts_of_draws_are_those_of_the_draws_themselves() -> None:
    rounds = np.frombuffer(draws(5, 100), dtype=np.uint8).reshape(100, N_RESAMPLES)
    for place in (1, 50, 99):
        assert list(draws_from(5, 100, place)) == (rounds >= place).sum(axis=0).tolist()


@pytest.mark.parametrize("counts", [(2, 1), (3, 4, 5), (9, 9, 9, 9, 9, 9)])
def test_resampled_sums_are_those_of_the_units_drawn(counts: tuple[int, ...]) -> None:
    values = [1.5 * kind * kind for kind in range(len(counts))]
    units = np.repeat(values, counts)
    rounds = np.frombuffer(draws(2, len(units)), dtype=np.uint8).reshape(len(units), N_RESAMPLES)
    expected = units[rounds].sum(axis=0)
    assert sorted(resampled_sums(values, counts, 2)) == pytest.approx(sorted(expected.tolist()))


@pytest.mark.parametrize(
    ("values", "reason"),
    [
        ([], "fewer than 2 cases"),
        ([0.5], "fewer than 2 cases"),
        ([0.7, 0.7, 0.7], "all values are equal"),
        ([0.3, 0.1 + 0.2], "all values are equal"),
        ([2.0] * 500, "all values are equal"),
    ],
)
def test_nothing_one_value_or_a_constant_have_no_interval_and_say_so(values: list[float], reason: str) -> None:
    assert bootstrap_mean(values, (0.0, 5.0), Resampling()) == Interval(None, None, f"no interval: {reason}")


@pytest.mark.parametrize(
    ("rows", "reason"),
    [
        ([], "fewer than 2 cases"),
        ([(1.0, 2.0)], "fewer than 2 cases"),
        ([(0.0, 0.0), (0.0, 0.0)], "undefined"),
        ([(1.0, 2.0)] + [(0.0, 0.0)] * 150, "undefined without one of the cases"),
        ([(1.0, 2.0), (0.0, 0.0)], "undefined without one of the cases"),
        ([(1.0, 2.0), (2.0, 4.0), (3.0, 6.0)], "none of the cases changes it"),
        ([(1.0, 2.0), (2.0, 4.0)] * 100, "none of the cases changes it"),
        # Without denominator in (3/5)^5 = 8% of the resamples.
        ([(1.0, 2.0), (1.0, 1.0), (0.0, 0.0), (0.0, 0.0), (0.0, 0.0)], "undefined in more than 5% of the resamples"),
    ],
)
def test_pooled_figures_without_an_interval_say_why(rows: list[tuple[float, float]], reason: str) -> None:
    assert bootstrap_pooled(rows, share, (0.0, 1.0), Resampling()) == Interval(None, None, f"no interval: {reason}")


@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_what_is_no_number_is_refused(bad: float) -> None:
    with pytest.raises(ValueError, match="finite"):
        bootstrap_mean([0.5, bad], ANY, Resampling())
    with pytest.raises(ValueError, match="finite"):
        bootstrap_pooled([(0.5, 1.0), (bad, 1.0)], share, ANY, Resampling())


def test_ends_are_clipped_to_the_range_of_the_metric() -> None:
    # One case in 151 is 1: standard error and mean are both 1/151, a formula that knows no range goes below 0.
    values = [0.0] * 150 + [1.0]
    low, high = ends(bootstrap_mean(values, ANY, Resampling()))
    assert low < 0.0
    assert ends(bootstrap_mean(values, (0.0, high / 2), Resampling())) == (0.0, high / 2)


SCORES = st.lists(st.sampled_from([0.0, 0.1, 0.2, 1 / 3, 0.5, 2 / 3, 1.0]), min_size=2, max_size=130)


@given(SCORES, st.randoms(use_true_random=False))
def test_the_order_of_values_changes_nothing_and_the_mean_lies_in_its_interval(
    values: list[float], rng: random.Random
) -> None:
    interval = bootstrap_mean(values, (0.0, 1.0), Resampling())
    assert bootstrap_mean(rng.sample(values, len(values)), (0.0, 1.0), Resampling()) == interval
    if len(set(values)) == 1:
        assert interval.low is None
        return
    low, high = ends(interval)
    # BCa shifts with the skew, but never so far that the mean itself is left outside.
    assert 0.0 <= low <= sum(values) / len(values) + 1e-12
    assert sum(values) / len(values) - 1e-12 <= high <= 1.0
    if len(values) <= MOST_UNITS:  # resamples hold no other values; a formula knows nothing of them
        assert min(values) - 1e-12 <= low
        assert high <= max(values) + 1e-12


@given(
    st.lists(st.tuples(*[st.integers(0, 3).map(float)] * 3), min_size=2, max_size=120),
    st.randoms(use_true_random=False),
)
def test_the_order_of_rows_changes_nothing_and_a_pooled_figure_keeps_its_range(
    rows: list[tuple[float, ...]], rng: random.Random
) -> None:
    interval = bootstrap_pooled(rows, f1, (0.0, 1.0), Resampling())
    assert bootstrap_pooled(rng.sample(rows, len(rows)), f1, (0.0, 1.0), Resampling()) == interval
    if interval.low is None:
        assert interval.method.startswith("no interval: ")
        return
    low, high = ends(interval)
    assert 0.0 <= low <= high <= 1.0


@settings(max_examples=30)
@given(st.lists(st.integers(0, 5).map(float), min_size=2, max_size=100))
def test_a_mean_is_the_pooled_figure_of_sums_and_sizes(values: list[float]) -> None:
    mean = bootstrap_mean(values, ANY, Resampling())
    pooled = bootstrap_pooled([(value, 1.0) for value in values], share, ANY, Resampling())
    if mean.low is not None:
        assert ends(pooled) == pytest.approx(ends(mean), abs=1e-9)
        assert pooled.method == mean.method


@pytest.mark.parametrize("scale", [1e-250, 1e-120, 1e120])
@pytest.mark.parametrize("n", [10, 200])
def test_very_small_and_very_large_values_have_the_same_interval_in_their_own_units(scale: float, n: int) -> None:
    values = [float(place % 4) for place in range(n)]
    low, high = ends(bootstrap_mean(values, ANY, Resampling()))
    scaled = ends(bootstrap_mean([value * scale for value in values], ANY, Resampling()))
    assert scaled == pytest.approx((low * scale, high * scale), rel=1e-9, abs=0.0)
