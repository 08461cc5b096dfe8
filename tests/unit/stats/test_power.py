"""How many pairs or labels it takes, against published values and simulations."""

import random
import statistics

import pytest

from judgekit.stats.means import mean_interval
from judgekit.stats.paired import minimum_detectable_effect, paired_proportion_interval
from judgekit.stats.power import (
    labels_for_proportion,
    paired_rule_power,
    pairs_for_mean,
    pairs_for_rate,
    pairs_for_rate_margin,
    sd_interval,
)
from judgekit.stats.proportions import mcnemar_exact, wilson_interval


@pytest.mark.parametrize(
    ("sd", "difference", "power", "n"),
    [
        (1.0, 0.5, 0.8, 34),  # G*Power 3.1, matched pairs, dz = 0.5
        (2.0, 0.4, 0.8, 199),  # dz = 0.2
        (1.0, 0.5, 0.95, 54),
    ],
)
def test_pairs_for_a_mean_are_those_of_power_tables(sd: float, difference: float, power: float, n: int) -> None:
    found = pairs_for_mean(sd, difference, power)
    assert found is not None
    assert abs(found - n) <= 1
    at, below = (minimum_detectable_effect(sd, number, power) or 9.0 for number in (found, found - 1))
    assert at <= difference < below


def test_what_cannot_be_planned_is_none() -> None:
    assert pairs_for_mean(0.0, 0.1, 0.8) is None
    assert pairs_for_mean(1.0, 1e-5, 0.8) is None  # 8e10 pairs
    assert pairs_for_rate(0.1, 0.10001, 0.8) is None  # 1.6e10 pairs
    assert labels_for_proportion(0.5, 1e-5) is None


@pytest.mark.parametrize("arguments", [(1.0, 0.0, 0.8), (1.0, 0.1, 0.4), (-1.0, 0.1, 0.8)])
def test_arguments_out_of_range_are_refused(arguments: tuple[float, float, float]) -> None:
    with pytest.raises(ValueError, match=r"above 0|between 0\.5 and 1|at least 0"):
        pairs_for_mean(*arguments)


def test_the_power_of_mcnemar_is_the_sum_over_all_outcomes() -> None:
    # 3 pairs: with 6 or more differing pairs at least, p <= 0.05; here never. Of 8, all that rise: p = 2 / 2^8.
    assert paired_rule_power(0.0, 0.5, 3, lambda b, c: c > b and mcnemar_exact(b, c) <= 0.05) == 0.0
    assert paired_rule_power(0.0, 1.0, 8, lambda b, c: c > b and mcnemar_exact(b, c) <= 0.05) == 1.0
    # n = 6, all of them must rise: p = 0.03; each does with 0.3.
    found = paired_rule_power(0.1, 0.3, 6, lambda b, c: c > b and mcnemar_exact(b, c) <= 0.05)
    assert found == pytest.approx(0.3**6)


def test_pairs_for_a_rate_are_somewhat_more_than_connor_says() -> None:
    # Connor 1987: share that differs 0.3, difference 0.1: (1.96 sqrt(0.3) + 0.8416 sqrt(0.29))^2 / 0.01 = 232.6
    found = pairs_for_rate(0.1, 0.2, 0.8)
    assert found is not None
    assert 233 <= found <= 250


@pytest.mark.parametrize(
    ("expected", "within", "n"), [(0.5, 0.05, 384), (0.8, 0.05, 246), (0.9, 0.03, 384), (0.7, 0.1, 81)]
)
def test_labels_give_the_half_width_that_was_asked_for(expected: float, within: float, n: int) -> None:
    found = labels_for_proportion(expected, within)
    assert found is not None
    # n of the textbook interval: 1.96^2 p (1 - p) / within^2
    assert found == pytest.approx(n, rel=0.05)
    halves = []
    for number in (found, found - 1):
        low, high = wilson_interval(expected * number, number) or (0.0, 1.0)
        halves.append((high - low) / 2)
    assert halves[0] <= within < halves[1]


def test_a_standard_deviation_has_no_interval_without_spread() -> None:
    assert sd_interval([1.0, 1.0, 1.0]) is None
    assert sd_interval([1.0, 2.0]) is None
    assert sd_interval([0.0, 0.0, 0.0, 1.0]) is None  # one value makes all of it


@pytest.mark.slow
def test_the_interval_of_a_standard_deviation_covers_it_for_scores_of_a_judge() -> None:
    rng = random.Random(3)
    changes, weights = [-3, -2, -1, 0, 1, 2, 3], [1, 2, 6, 20, 5, 2, 1]
    centre = sum(c * w for c, w in zip(changes, weights, strict=True)) / sum(weights)
    true = (sum(w * (c - centre) ** 2 for c, w in zip(changes, weights, strict=True)) / sum(weights)) ** 0.5
    hits = 0
    for _ in range(2000):
        low, high = sd_interval([float(item) for item in rng.choices(changes, weights, k=80)]) or (0.0, 9.0)
        hits += low <= true <= high
    assert 0.91 <= hits / 2000 <= 0.97


@pytest.mark.slow
@pytest.mark.parametrize(("difference", "power"), [(0.2, 0.8), (0.35, 0.9)])
def test_planned_pairs_find_a_mean_difference_as_often_as_promised(difference: float, power: float) -> None:
    """Differences of scores 0 to 5, most of them 0, shifted by moving single points."""
    rng = random.Random(11)
    changes, weights = [-3, -2, -1, 0, 1, 2, 3], [1, 2, 6, 20, 6, 2, 1]
    sd = statistics.pstdev([c for c, w in zip(changes, weights, strict=True) for _ in range(w)])
    n = pairs_for_mean((sd**2 + difference * (1 - difference)) ** 0.5, difference, power)
    assert n is not None
    found = 0
    for _ in range(1500):
        values = [item - (rng.random() < difference) for item in rng.choices(changes, weights, k=n)]
        _, _, high = mean_interval([float(value) for value in values])
        found += high is not None and high < 0
    assert found / 1500 == pytest.approx(power, abs=0.03)


@pytest.mark.slow
@pytest.mark.parametrize(("down", "up", "power"), [(0.1, 0.2, 0.8), (0.02, 0.07, 0.8), (0.05, 0.25, 0.9)])
def test_planned_pairs_find_a_change_of_a_rate_as_often_as_promised(down: float, up: float, power: float) -> None:
    rng = random.Random(5)
    n = pairs_for_rate(down, up, power)
    assert n is not None
    found = 0
    for _ in range(1500):
        draws = [rng.random() for _ in range(n)]
        b, c = sum(d < down for d in draws), sum(down <= d < down + up for d in draws)
        found += c > b and mcnemar_exact(b, c) <= 0.05
    assert power - 0.03 <= found / 1500 <= power + 0.06  # an exact test goes up in steps


@pytest.mark.slow
@pytest.mark.parametrize(("share", "margin", "power"), [(0.2, 0.1, 0.8), (0.05, 0.05, 0.9)])
def test_planned_pairs_pass_a_margin_as_often_as_promised(share: float, margin: float, power: float) -> None:
    rng = random.Random(6)
    n = pairs_for_rate_margin(share, margin, power)
    assert n is not None
    found = 0
    for _ in range(1500):
        draws = [rng.random() for _ in range(n)]
        b, c = sum(d < share / 2 for d in draws), sum(share / 2 <= d < share for d in draws)
        found += paired_proportion_interval(b, c, n)[0] >= -margin
    assert power - 0.03 <= found / 1500 <= power + 0.06
