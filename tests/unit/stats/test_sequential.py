"""E-values and their detector, against published values, mpmath, and what they promise at every look."""

import math
from itertools import accumulate

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from judgekit.stats.proportions import wilson_interval
from judgekit.stats.sequential import (
    DECIDED,
    decide,
    e_detector,
    log_e_value,
    n_to_decide,
)

COUNTS = st.integers(1, 300).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n)))
RATE = st.floats(0.01, 0.99)


def log_e_by_mpmath(s: int, t: int, m0: float) -> float:
    """The likelihood ratio averaged over the rates above m0; the integral is a sum."""

    def mass_above(c: int, d: int) -> mpmath.mpf:
        n = c + d - 1
        return mpmath.beta(c, d) * mpmath.fsum(mpmath.binomial(n, k) * m**k * (1 - m) ** (n - k) for k in range(c))

    with mpmath.workdps(40):
        m = mpmath.mpf(m0)
        ratio = mass_above(1 + s, 1 + t - s) / mass_above(1, 1)
        return float(mpmath.log(ratio) - s * mpmath.log(m) - (t - s) * mpmath.log(1 - m))


def test_nine_of_ten_against_one_half_is_the_published_bayes_factor() -> None:
    # Wagenmakers, Lodewyckx, Kuriyal and Grasman 2010, "Bayesian hypothesis testing for psychologists: A tutorial on
    # the Savage-Dickey method": 9 of 10 correct against 1/2 and a uniform prior on (0, 1): BF01 = 0.107. Cut off at
    # 1/2 the prior halves, and P(rate > 1/2 | data) = P(Bin(11, 1/2) < 10) = 1 - 12/2048 of the mass is left.
    value = math.exp(log_e_value(9, 10, 0.5))
    assert 1.0 / (value * 0.5 / (1 - 12 / 2048)) == pytest.approx(0.107, abs=5e-4)
    # by hand: 2^10 / (11 * 10) = B(10, 2) 2^10
    assert value == pytest.approx(1024 / 110 * 2 * (1 - 12 / 2048), rel=1e-12)


@pytest.mark.parametrize(
    ("s", "t", "m0", "expected"),
    [
        (0, 0, 0.3, 1.0),
        (1, 1, 0.5, 1.5),  # int_{1/2}^1 p dp / (1/2) / (1/2) = (3/8) * 4
        (0, 1, 0.5, 0.5),  # int_{1/2}^1 (1 - p) dp * 4
        (2, 2, 0.2, (1 - 0.2**3) / 3 / 0.8 / 0.04),
    ],
)
def test_small_e_values_by_hand(s: int, t: int, m0: float, expected: float) -> None:
    assert math.exp(log_e_value(s, t, m0)) == pytest.approx(expected, rel=1e-12)


@pytest.mark.slow
@settings(max_examples=60)
@given(COUNTS, RATE)
def test_every_e_value_is_the_averaged_likelihood_ratio(counts: tuple[int, int], m0: float) -> None:
    s, t = counts
    assert log_e_value(s, t, m0) == pytest.approx(log_e_by_mpmath(s, t, m0), rel=1e-10, abs=1e-10)


@given(COUNTS, st.floats(0.02, 0.9))
def test_a_bet_is_fair_at_the_rate_it_is_against(counts: tuple[int, int], m0: float) -> None:
    """Whatever came before, the expected e-value after one more pair is the one now: so one may always look."""
    s, t = counts
    after = m0 * math.exp(log_e_value(s + 1, t + 1, m0) - log_e_value(s, t, m0))
    after += (1 - m0) * math.exp(log_e_value(s, t + 1, m0) - log_e_value(s, t, m0))
    assert after == pytest.approx(1.0, rel=1e-7)


@pytest.mark.parametrize(("s", "t"), [(0, 20_000), (20_000, 20_000), (4_000, 20_000), (30, 20_000), (0, 500_000)])
def test_large_counts_stay_finite_and_in_order(s: int, t: int) -> None:
    value = log_e_value(s, t, 0.2)
    assert math.isfinite(value)
    assert s == t or log_e_value(s + 1, t, 0.2) > value


def test_extreme_tails_equal_mpmath() -> None:
    # no flip in 2000: int_{0.2}^1 (1 - p)^2000 dp / 0.8 / 0.8^2000 = 0.8^2001 / 2001 / 0.8^2001 = 1/2001
    assert math.exp(log_e_value(0, 2000, 0.2)) == pytest.approx(1 / 2001, rel=1e-9)
    with mpmath.workdps(60):
        top = mpmath.log(1 - mpmath.mpf("0.2") ** 2001) - mpmath.log(2001) - mpmath.log(mpmath.mpf("0.8"))
        assert log_e_value(2000, 2000, 0.2) == pytest.approx(
            float(top - 2000 * mpmath.log(mpmath.mpf("0.2"))), rel=1e-12
        )


@pytest.mark.parametrize(("s", "t", "m0"), [(-1, 3, 0.2), (4, 3, 0.2), (1, 3, 0.0), (1, 3, 1.0)])
def test_counts_and_rates_that_cannot_be_are_refused(s: int, t: int, m0: float) -> None:
    with pytest.raises(ValueError, match=r"flips must be|rate to test"):
        log_e_value(s, t, m0)


@given(st.lists(st.integers(0, 20).map(lambda s: (s, 20)), max_size=8), st.sampled_from([0.05, 0.2]))
def test_the_detector_adds_up_every_start(counts: list[tuple[int, int]], m0: float) -> None:
    logs = e_detector(counts, m0)
    assert len(logs) == len(counts)
    for end, log in enumerate(logs, start=1):
        bets = [
            math.exp(log_e_value(sum(s for s, _ in counts[start:end]), sum(t for _, t in counts[start:end]), m0))
            for start in range(end)
        ]
        assert log == pytest.approx(math.log(sum(bets)), abs=1e-9)


def test_the_detector_finds_a_change_after_a_long_quiet_time_and_one_bet_does_not() -> None:
    counts = [(0, 20)] * 52 + [(6, 20)] * 3
    logs = e_detector(counts, 0.05)
    assert max(logs[:52]) < math.log(DECIDED) <= logs[-1]
    flips, checked = sum(s for s, _ in counts), sum(t for _, t in counts)
    assert log_e_value(flips, checked, 0.05) < 0.0


def test_false_alarms_are_as_rare_as_promised() -> None:
    # rate exactly m0 = 0.05, 26 weekly points of 20 pairs, each looked at: one bet passes 20 in at most 1/20 of 200
    # runs, the detector passes 26 * 20 in at most 1/20
    rng = np.random.default_rng(7)
    bet = detector = 0
    for flips in rng.binomial(20, 0.05, (200, 26)).tolist():
        totals = list(accumulate(flips))
        bet += any(log_e_value(s, 20 * week, 0.05) >= math.log(DECIDED) for week, s in enumerate(totals, start=1))
        detector += max(e_detector([(s, 20) for s in flips], 0.05)) >= math.log(26 * DECIDED)
    assert bet <= 10
    assert detector <= 10


@given(COUNTS, st.floats(0.02, 0.98))
def test_decisions_are_mirrored_and_on_the_side_of_the_rate(counts: tuple[int, int], threshold: float) -> None:
    s, t = counts
    side = decide(s, t, threshold)
    opposite = {"above": "below", "below": "above", None: None}
    assert decide(t - s, t, 1.0 - threshold) == opposite[side]
    if side is not None:
        assert (s / t > threshold) == (side == "above")


@pytest.mark.parametrize(
    ("s", "t", "side"),
    [(0, 0, None), (0, 19, None), (0, 20, "below"), (4, 20, None), (12, 20, "above"), (40, 200, None)],
)
def test_decisions_at_the_usual_threshold(s: int, t: int, side: str | None) -> None:
    # no flip in t: (1 - 0.2^...) the mirrored e-value is (1 - 0.8^(t+1)) / ((t+1) 0.2 0.8^t): 18.6 at 19, 22.4 at 20
    assert decide(s, t, 0.2) == side


@pytest.mark.parametrize(
    ("rate", "n"),
    [
        (0.0, 16),  # 3.8415 * 0.2 * 0.8 / 0.04 = 15.4
        (0.1, 62),  # 3.8415 * 0.16 / 0.01 = 61.5
        (0.17, 683),  # 3.8415 * 0.16 / 0.0009 = 682.9
        (0.2, None),
    ],
)
def test_pairs_needed_by_hand(rate: float, n: int | None) -> None:
    assert n_to_decide(rate, 0.2) == n
    assert n_to_decide(rate, 0.2, n_population=300) == min(n or 300, 300)


@given(st.integers(0, 100), st.sampled_from([0.05, 0.2, 0.5]))
def test_wilsons_interval_excludes_the_threshold_at_the_number_needed_and_not_before(percent: int, m0: float) -> None:
    n = n_to_decide(percent / 100, m0)
    if n is None:
        assert percent / 100 == m0
        return
    hundreds = -(-n // 100) * 100  # a number of pairs that can have this rate exactly
    interval = wilson_interval(percent * hundreds // 100, hundreds)
    assert interval is not None
    assert not interval[0] < m0 < interval[1]
    if hundreds > 100:
        before = wilson_interval(percent * (hundreds - 100) // 100, hundreds - 100)
        assert before is not None
        assert before[0] < m0 < before[1]


@pytest.mark.parametrize(("rate", "threshold"), [(-0.1, 0.2), (1.1, 0.2), (0.5, 0.0), (0.5, 1.0)])
def test_rates_outside_their_range_are_refused(rate: float, threshold: float) -> None:
    with pytest.raises(ValueError, match="is in"):
        n_to_decide(rate, threshold)
