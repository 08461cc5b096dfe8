"""Drift of a judge whose verdicts stay, and whose probabilities move."""

import random
from typing import Any

import pytest
from scipy import stats as scipy_stats

from judgekit.analysis.drift_points import pair_row
from judgekit.analysis.drift_shifts import chance_shift
from judgekit.analysis.drift_states import drift_report
from judgekit.core.history_points import HistoryPoint
from judgekit.core.judgments import Verdict
from judgekit.core.verdict_kinds import Labels, Scale, YesNo
from judgekit.stats.means import paired_t_p
from tests.builders import weekly_point


def moved(week: int, mean: float | None, sd: float | None = 0.05, **fields: Any) -> HistoryPoint:
    """A point of 20 pairs without a flip, whose probabilities moved by so much."""
    return weekly_point(week, 0, chance_shift_mean=mean, chance_shift_sd=sd, n_chances=20, **fields)


def test_the_paired_test_is_that_of_scipy() -> None:
    dice = random.Random(1)
    differences = [dice.gauss(0.03, 0.1) for _ in range(20)]
    mean = sum(differences) / 20
    sd = (sum((value - mean) ** 2 for value in differences) / 19) ** 0.5
    assert paired_t_p(mean, sd, 20) == pytest.approx(scipy_stats.ttest_1samp(differences, 0.0).pvalue)


@pytest.mark.parametrize(
    ("mean", "sd", "n", "p"), [(0.1, 0.0, 5, 0.0), (0.0, 0.0, 5, 1.0), (0.1, 0.1, 1, None), (0.0, 0.1, 5, 1.0)]
)
def test_differences_without_spread_are_certain_and_one_says_nothing(
    mean: float, sd: float, n: int, p: float | None
) -> None:
    assert paired_t_p(mean, sd, n) == p


def test_a_spread_below_zero_is_refused() -> None:
    with pytest.raises(ValueError, match="at least 0"):
        paired_t_p(0.0, -1.0, 5)


def test_probabilities_that_move_are_drift_of_the_judge_although_no_verdict_flips() -> None:
    report = drift_report([moved(1, 0.001), moved(2, -0.002), moved(3, -0.15), moved(4, -0.16)])
    assert report.state == "judge"
    assert report.since is not None and report.since.run_id == "week-03"
    assert report.chances is not None and report.chances.mean == -0.15
    assert "its probabilities moved on unchanged inputs: by -0.150 of the scale on average in 20 pairs" in report.why[0]


@pytest.mark.parametrize(
    "points",
    [
        [moved(1, 0.03), moved(2, -0.03)],  # t = 0.03 / (0.05 / sqrt 20) = 2.7, p = 0.015: not enough
        [moved(1, 0.009, 0.0001)],  # certain, and too small to matter
        [moved(1, 0.3, kind="noise_floor")],  # asked again at once
        [moved(1, 0.3, kind="spot_check")],  # another wording is not this judge
        [moved(1, None, None)],
    ],
)
def test_what_is_not_a_shift_of_the_judge_is_none(points: list[HistoryPoint]) -> None:
    assert chance_shift(points) is None


@pytest.mark.parametrize(
    ("kind", "first", "second", "shift"),
    [
        (Scale(low=1, high=5), {"4": 1.0}, {"4": 0.5, "2": 0.5}, -0.25),  # 4 to 3, of 4 points
        (YesNo(), {"true": 0.6, "false": 0.4}, {"true": 0.9, "false": 0.1}, 0.3),
        (Labels(labels=("on", "off")), {"on": 1.0}, {"off": 1.0}, None),
    ],
)
def test_a_pair_says_how_far_its_probabilities_moved_on_the_scale(
    kind: Any, first: dict[str, float], second: dict[str, float], shift: float | None
) -> None:
    said = {"scale": Verdict(score=4), "yes_no": Verdict(answer=True), "labels": Verdict(label="on")}[kind.kind]
    shares = [{"probabilities": given, "probability_mass": 0.99} for given in (first, second)]
    verdicts = [said.model_copy(update=own) for own in shares]
    found = pair_row(verdicts[0], verdicts[1], kind)["chance_shift"]
    assert found == (None if shift is None else pytest.approx(shift))


def test_a_pair_with_too_little_probability_on_one_side_says_nothing() -> None:
    first = Verdict(answer=True, probabilities={"true": 1.0}, probability_mass=0.99)
    second = first.model_copy(update={"probability_mass": 0.5})
    assert pair_row(first, second, YesNo())["chance_shift"] is None
    assert pair_row(first, Verdict(answer=True), YesNo())["chance_shift"] is None
