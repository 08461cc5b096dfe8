"""AUC, Brier score, calibration error and the best threshold, against libraries and by hand."""

import math
import random
from collections.abc import Sequence

import pytest
from scipy import stats as scipy_stats

from judgekit.stats.probability_scores import area_under_curve, best_threshold, brier_score, calibration_error


def drawn(n: int, seed: int = 1) -> tuple[list[float], list[bool]]:
    """Probabilities in steps of 0.05, so that some are equal, and cases that are positive as often as they say."""
    dice = random.Random(seed)
    chances = [round(dice.randint(0, 20) / 20, 2) for _ in range(n)]
    return chances, [dice.random() < chance for chance in chances]


@pytest.mark.parametrize("seed", range(4))
def test_the_area_is_the_statistic_of_mann_and_whitney_over_all_pairs(seed: int) -> None:
    chances, positive = drawn(60, seed)
    sides = [[p for p, is_positive in zip(chances, positive, strict=True) if is_positive == kind] for kind in (1, 0)]
    expected = scipy_stats.mannwhitneyu(*sides).statistic / len(sides[0]) / len(sides[1])
    assert area_under_curve(chances, positive).value == pytest.approx(expected)


def test_the_brier_score_is_that_of_scikit_learn() -> None:
    # scikit-learn, the example of sklearn.metrics.brier_score_loss: 0.0375
    found = brier_score([0.1, 0.9, 0.8, 0.3], [False, True, True, False])
    assert found.value == pytest.approx(0.0375)
    assert found.low == 0.0 and found.high is not None and 0.0375 < found.high < 1


def delong_variance(scores: Sequence[float], positive: Sequence[bool]) -> float:
    """Pair by pair, as the paper of DeLong and others defines it: S10 / m + S01 / n."""
    highs = [score for score, is_positive in zip(scores, positive, strict=True) if is_positive]
    lows = [score for score, is_positive in zip(scores, positive, strict=True) if not is_positive]
    kernel = [[1.0 if high > low else 0.5 if high == low else 0.0 for low in lows] for high in highs]
    area = sum(map(sum, kernel)) / len(highs) / len(lows)
    of_highs = [sum(row) / len(lows) for row in kernel]
    of_lows = [sum(column) / len(highs) for column in zip(*kernel, strict=True)]
    parts = [sum((value - area) ** 2 for value in side) / (len(side) - 1) / len(side) for side in (of_highs, of_lows)]
    return sum(parts)


def test_the_error_of_the_area_is_that_of_delong() -> None:
    chances, positive = drawn(400)
    found = area_under_curve(chances, positive)
    # n / (n - 1) in place of m / (m - 1) for each kind
    assert found.standard_error == pytest.approx(math.sqrt(delong_variance(chances, positive)), rel=0.01)
    assert found.value is not None and found.low is not None and found.high is not None
    assert 0 < found.low < found.value < found.high < 1


def test_the_interval_of_the_area_covers_as_it_says() -> None:
    # 0.5: scores that say nothing, 40 cases. 95% of 400 draws are 380, -+ 3 * sqrt(400 * 0.05 * 0.95) = 13.
    n_covered = 0
    for seed in range(400):
        dice = random.Random(seed)
        scores = [dice.random() for _ in range(40)]
        found = area_under_curve(scores, [number % 2 == 0 for number in range(40)])
        assert found.low is not None and found.high is not None
        n_covered += found.low <= 0.5 <= found.high
    assert 367 <= n_covered <= 393


def test_cases_that_come_twice_are_worth_no_more_than_once() -> None:
    chances, positive = drawn(50)
    once = area_under_curve(chances, positive)
    twice = area_under_curve(chances * 2, positive * 2, [*range(50), *range(50)])
    assert twice.n_clusters == 50
    assert twice.value == pytest.approx(once.value)
    assert twice.standard_error == pytest.approx(once.standard_error)
    assert twice.low == pytest.approx(once.low)
    assert twice.high == pytest.approx(once.high)


@pytest.mark.parametrize(
    ("scores", "positive", "value"),
    [
        ([0.9, 0.1], [True, False], 1.0),
        ([0.1, 0.9], [True, False], 0.0),
        ([0.5, 0.5], [True, False], 0.5),
        ([0.5, 0.6], [True, True], None),
        ([], [], None),
    ],
)
def test_an_area_at_its_end_or_without_a_kind_has_no_interval(
    scores: list[float], positive: list[bool], value: float | None
) -> None:
    found = area_under_curve(scores, positive)
    assert (found.value, found.low, found.high) == (value, None, None)


def test_the_area_refuses_what_is_no_number() -> None:
    with pytest.raises(ValueError, match="finite"):
        area_under_curve([math.nan, 1.0], [True, False])


def test_the_calibration_error_is_the_weighted_distance_of_each_bin() -> None:
    # Bin (0.7, 0.8]: p 0.8, 0.8, 0.75, 0.75, of which 2 are positive: |3.1 - 2| = 1.1.
    # Bin [0, 0.1]: p 0 and 0.1, none positive: 0.1. Bin (0.1, 0.2]: p 0.11, positive: 0.89. Sum 2.09 of 7 cases.
    chances = [0.8, 0.8, 0.75, 0.75, 0.0, 0.1, 0.11]
    found = calibration_error(chances, [True, True, False, False, False, False, True])
    assert found.value == pytest.approx(2.09 / 7)
    # The variances p (1 - p) sum to 2 * 0.16 + 2 * 0.1875, 0 + 0.09 and 0.0979 in the three bins.
    expected = sum(math.sqrt(2 * v / math.pi) for v in (0.695, 0.09, 0.0979)) / 7
    assert found.if_calibrated == pytest.approx(expected)
    assert found.low is not None and found.high is not None and found.low < 2.09 / 7 < found.high


def test_what_a_calibrated_judge_comes_out_at_is_what_it_comes_out_at() -> None:
    found = [calibration_error(*drawn(200, seed)) for seed in range(200)]
    mean = sum(item.value or 0.0 for item in found) / len(found)
    expected = sum(item.if_calibrated or 0.0 for item in found) / len(found)
    assert mean == pytest.approx(expected, rel=0.03)


def test_the_calibration_error_of_clusters_is_wider() -> None:
    chances, positive = drawn(60)
    alone = calibration_error(chances, positive)
    alike = calibration_error(chances * 3, positive * 3, [*range(60)] * 3)
    assert alike.value == pytest.approx(alone.value)
    assert alike.low == pytest.approx(alone.low)
    assert alike.high == pytest.approx(alone.high)


def test_no_case_has_no_calibration_error() -> None:
    found = calibration_error([], [])
    assert (found.value, found.if_calibrated, found.n) == (None, None, 0)
    with pytest.raises(ValueError, match="outside 0 to 1"):
        calibration_error([1.2], [True])


@pytest.mark.parametrize("seed", range(4))
def test_the_best_threshold_has_the_largest_youden_index(seed: int) -> None:
    chances, positive = drawn(60, seed)
    found = best_threshold(chances, positive)
    assert found in chances

    def youden(threshold: float) -> float:
        passed = [p >= threshold for p in chances]
        hits = sum(a and b for a, b in zip(passed, positive, strict=True)) / sum(positive)
        return hits - sum(a and not b for a, b in zip(passed, positive, strict=True)) / positive.count(False)

    assert youden(found) == pytest.approx(max(map(youden, chances)))


def test_of_equally_good_thresholds_the_one_nearest_to_a_half_counts() -> None:
    # every threshold above 0.2 up to 0.9 separates fully; the probabilities in question are 0.9 and 0.95
    assert best_threshold([0.1, 0.2, 0.9, 0.95], [False, False, True, True]) == 0.9
    assert best_threshold([0.4, 0.6], [True, True]) is None
    assert best_threshold([0.4, 0.6], [True, False]) is None  # the wrong way round
