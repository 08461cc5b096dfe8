"""Strengths of players against closed forms, a general optimiser, and errors against the jackknife."""

import math
import random

import numpy as np
import pytest
from scipy import optimize
from scipy import stats as scipy_stats

from judgekit.stats.bradley_terry import Match, strengths


def played(n_clusters: int, seed: int) -> tuple[list[Match], list[int]]:
    """Three players on questions that suit some better than others, with one tie in ten."""
    dice = random.Random(seed)
    true = (0.8, 0.1, -0.9)
    matches, clusters = [], []
    for cluster in range(n_clusters):
        mood = dice.gauss(0, 0.5)
        for first, second in ((0, 1), (0, 2), (1, 2)):
            chance = 1 / (1 + math.exp(true[second] - true[first] + mood))
            won = 0.5 if dice.random() < 0.1 else float(dice.random() < chance)
            matches.append(Match(first, second, won))
            clusters.append(cluster)
    return matches, clusters


def test_two_players_have_the_log_odds_of_their_wins() -> None:
    # 3 of 4 won: log 3 between them, half of it on each side of 0
    found = strengths([Match(0, 1, 1.0)] * 3 + [Match(0, 1, 0.0)], range(4), 2)
    assert found is not None
    assert [one.value for one in found] == pytest.approx([math.log(3) / 2, -math.log(3) / 2], abs=1e-9)
    # d = log odds has the variance 1 / (n p (1 - p)), here with 4 / 3 for 4 clusters; a strength is d / 2
    error = math.sqrt(4 / 3 / (4 * 0.75 * 0.25)) / 2
    assert found[0].standard_error == pytest.approx(error, abs=1e-9)
    half = scipy_stats.t.ppf(0.975, 3) * error
    assert found[1].low == pytest.approx(-math.log(3) / 2 - half, abs=1e-6)


def test_a_tie_is_half_a_win_for_each() -> None:
    tied = strengths([Match(0, 1, 0.5)] * 2 + [Match(0, 1, 1.0)], range(3), 2)
    halves = strengths([Match(0, 1, 1.0), Match(0, 1, 0.0), Match(0, 1, 1.0), Match(0, 1, 1.0)], range(4), 2)
    assert tied is not None
    assert halves is not None
    # 2 of 3 points are log 2, as 3 of 4 are log 3
    assert tied[0].value == pytest.approx(math.log(2) / 2, abs=1e-9)
    assert halves[0].value == pytest.approx(math.log(3) / 2, abs=1e-9)


def test_strengths_are_those_of_a_general_optimiser() -> None:
    matches, clusters = played(120, 7)

    def loss(values: np.ndarray) -> float:
        total = float(values.sum()) ** 2
        for first, second, won in matches:
            total += won * math.log1p(math.exp(values[second] - values[first]))
            total += (1 - won) * math.log1p(math.exp(values[first] - values[second]))
        return total

    expected = optimize.minimize(loss, np.zeros(3), method="BFGS", options={"gtol": 1e-8}).x
    found = strengths(matches, clusters, 3)
    assert found is not None
    assert [one.value for one in found] == pytest.approx(list(expected), abs=1e-5)
    assert sum(one.value for one in found) == pytest.approx(0.0, abs=1e-12)


def test_errors_are_those_of_the_jackknife_over_clusters() -> None:
    matches, clusters = played(150, 3)
    found = strengths(matches, clusters, 3)
    assert found is not None
    without = []
    for left_out in range(150):
        kept = [place for place, cluster in enumerate(clusters) if cluster != left_out]
        part = strengths([matches[place] for place in kept], [clusters[place] for place in kept], 3)
        assert part is not None
        without.append([one.value for one in part])
    spread = np.array(without)
    jackknife = np.sqrt(149 / 150 * ((spread - spread.mean(0)) ** 2).sum(0))
    assert [one.standard_error for one in found] == pytest.approx(list(jackknife), rel=0.02)


def test_copies_within_a_cluster_add_nothing() -> None:
    matches, clusters = played(30, 5)
    once, twice = strengths(matches, clusters, 3), strengths(matches * 2, clusters * 2, 3)
    assert once is not None
    assert twice is not None
    assert [one.standard_error for one in twice] == pytest.approx([one.standard_error for one in once], rel=1e-6)


@pytest.mark.parametrize(
    "matches",
    [
        [],
        [Match(0, 1, 1.0)] * 5,
        # 0 and 1 are level, and both beat 2 whenever they meet
        [Match(0, 1, 1.0), Match(0, 1, 0.0), Match(0, 2, 1.0), Match(1, 2, 1.0)],
        # nobody met 2
        [Match(0, 1, 1.0), Match(0, 1, 0.0)],
    ],
)
def test_there_is_no_strength_without_a_way_from_every_player_to_every_other(matches: list[Match]) -> None:
    assert strengths(matches, range(len(matches)), 3 if len(matches) != 5 else 2) is None


def test_one_cluster_has_no_error() -> None:
    found = strengths([Match(0, 1, 0.5), Match(0, 1, 1.0)], [0, 0], 2)
    assert found is not None
    assert (found[0].standard_error, found[0].low, found[0].high) == (None, None, None)


def test_every_match_needs_a_cluster() -> None:
    with pytest.raises(ValueError, match="differ in length"):
        strengths([Match(0, 1, 1.0)], [], 2)


def test_intervals_cover_the_truth_at_their_rate() -> None:
    # 200 times 60 questions: 95% with a standard error of 1.5 points
    dice = random.Random(11)
    n_covered = 0
    for _ in range(200):
        matches = [Match(0, 1, float(dice.random() < 1 / (1 + math.exp(-0.6)))) for _ in range(60)]
        found = strengths(matches, range(60), 2)
        assert found is not None
        assert found[0].low is not None
        assert found[0].high is not None
        n_covered += found[0].low <= 0.3 <= found[0].high
    assert 0.90 <= n_covered / 200 <= 0.99
