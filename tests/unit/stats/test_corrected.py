"""The corrected mean: against a textbook, numpy, and its coverage on simulated and on real verdicts."""

import json
import math
import random
from collections.abc import Hashable, Sequence
from statistics import fmean

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats as scipy_stats

from judgekit.stats.corrected import Corrected, Target, corrected_mean, labels_for_width, ppi_mean
from judgekit.stats.proportions import hypergeometric_interval, wilson_interval
from tests.readers import SHARED

NQ301 = SHARED.parent / "correctness_openqa_nq301.jsonl"
needs_nq301 = pytest.mark.skipif(
    not NQ301.is_file(),
    reason="no ../shared/data beside the repository, and JUDGEKIT_SHARED_FILES names no folder in it",
)

# Scheaffer, Mendenhall, Ott and Gerow, "Elementary Survey Sampling", chapter 6: achievement test and calculus grade of
# 10 of 486 students, whose mean on the test is 52; slope 0.766, regression estimate 76 + 0.766 (52 - 46) = 80.6.
TEST = [39, 43, 21, 64, 57, 47, 28, 75, 34, 52]
GRADE = [65, 78, 52, 82, 92, 89, 73, 98, 56, 75]
OTHER_TESTS = [(486 * 52 - 460) / 476] * 476

LABELLED = st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), min_size=3, max_size=30)
FURTHER = st.lists(st.integers(0, 5), min_size=2, max_size=40)


def mean_by_numpy(human: Sequence[float], judge: Sequence[float], further: Sequence[float]) -> tuple[float, float]:
    """The formulas as they are written in the paper."""
    y, j, u = np.array(human, float), np.array(judge, float), np.array(further, float)
    spread = j.var(ddof=1)
    slope = np.cov(y, j)[0, 1] / ((1 + len(y) / len(u)) * spread) if spread > 0 else 0.0
    lambda_ = float(np.clip(slope, 0, 1))
    return float(lambda_ * u.mean() + (y - lambda_ * j).mean()), lambda_


def covered(found: Corrected, truth: float) -> bool:
    assert found.low is not None
    assert found.high is not None
    return found.low <= truth <= found.high


def test_the_mean_of_a_run_is_the_regression_estimate_of_the_textbook() -> None:
    found = ppi_mean(GRADE, TEST, OTHER_TESTS)
    assert found.estimate is not None
    assert found.lambda_ is not None
    assert round(found.estimate, 1) == 80.6
    assert round(found.lambda_ * 486 / 476, 3) == 0.766
    # its variance by the textbook: (1 - 10/486) / 10 * sum of squared residuals / 8
    slope, intercept = np.polyfit(TEST, GRADE, 1)
    squares = sum((y - intercept - slope * x) ** 2 for x, y in zip(TEST, GRADE, strict=True))
    assert found.standard_error == pytest.approx(math.sqrt((1 - 10 / 486) / 10 * squares / 8), rel=0.1)


@given(LABELLED, FURTHER, st.sampled_from(["run", "population"]))
def test_estimate_and_lambda_are_those_of_the_paper(
    labelled: list[tuple[int, int]], further: list[int], target: Target
) -> None:
    human, judge = [y for y, _ in labelled], [j for _, j in labelled]
    found = ppi_mean(human, judge, further, target=target)
    estimate, lambda_ = mean_by_numpy(human, judge, further)
    assert found.estimate == pytest.approx(estimate, abs=1e-9)
    assert found.lambda_ == pytest.approx(lambda_, abs=1e-9)
    assert found.lambda_ is not None
    assert 0.0 <= found.lambda_ <= 1.0
    assert (found.n_human, found.n_unlabelled, found.method) == (len(human), len(further), "ppi++")


@given(LABELLED, FURTHER)
def test_the_interval_of_a_run_is_the_jackknife_by_hand(labelled: list[tuple[int, int]], further: list[int]) -> None:
    human, judge = [y for y, _ in labelled], [j for _, j in labelled]
    n, m = len(human), len(further)
    found = ppi_mean(human, judge, further)
    # a case that is left out becomes one of the further cases: the run stays the run
    without = [
        mean_by_numpy(human[:i] + human[i + 1 :], judge[:i] + judge[i + 1 :], [*further, judge[i]])[0] for i in range(n)
    ]
    error = math.sqrt(m / (n + m) * (n - 1) / n * sum((v - fmean(without)) ** 2 for v in without))
    if error < 1e-8:
        return
    half = scipy_stats.t.ppf(0.975, n - 1) * error
    assert found.estimate is not None
    assert (found.low, found.high) == pytest.approx((found.estimate - half, found.estimate + half), abs=1e-7)


@given(LABELLED, FURTHER, st.sampled_from(["run", "population"]), st.integers(-3, 3))
def test_scores_may_be_moved_and_cases_reordered(
    labelled: list[tuple[int, int]], further: list[int], target: Target, by: int
) -> None:
    human, judge = [y for y, _ in labelled], [j for _, j in labelled]
    here = ppi_mean(human, judge, further, target=target)
    there = ppi_mean(
        [y + by for y in human[::-1]], [j - by for j in judge[::-1]], [j - by for j in further[::-1]], target=target
    )
    assert here.estimate is not None
    assert there.estimate == pytest.approx(here.estimate + by, abs=1e-9)
    assert there.standard_error == (
        None if here.standard_error is None else pytest.approx(here.standard_error, abs=1e-7)
    )


@given(LABELLED, FURTHER, st.sampled_from(["run", "population"]))
def test_clusters_of_one_case_give_the_same_estimate_as_none(
    labelled: list[tuple[int, int]], further: list[int], target: Target
) -> None:
    human, judge = [y for y, _ in labelled], [j for _, j in labelled]
    names: list[Hashable] = list(range(len(human) + len(further)))
    alone, named = ppi_mean(human, judge, further, None, target), ppi_mean(human, judge, further, names, target)
    assert named.estimate == alone.estimate
    if target == "run":
        assert named == alone


def test_a_good_judge_is_worth_labels_and_noise_is_left_out() -> None:
    rng = np.random.default_rng(4)
    truth = rng.normal(3, 1, 2000)
    good, noise = truth + rng.normal(0.5, 0.4, 2000), rng.normal(3, 1, 2000)
    helped = ppi_mean(truth[:100].tolist(), good[:100].tolist(), good[100:].tolist())
    alone = ppi_mean(truth[:100].tolist(), noise[:100].tolist(), noise[100:].tolist())
    assert helped.n_effective is not None
    assert alone.n_effective is not None
    # 1 - 0.928^2 = 0.14 of the variance is left: 100 labels are worth some 600
    assert 400 < helped.n_effective < 900
    assert alone.n_effective == pytest.approx(100, rel=0.1)
    assert alone.lambda_ == pytest.approx(0.0, abs=0.2)
    assert covered(helped, float(truth.mean()))


@pytest.mark.parametrize(
    ("n_labels", "method"), [(0, "none"), (19, "none"), (20, "human-only"), (49, "human-only"), (50, "ppi++")]
)
def test_the_number_of_labels_decides_on_the_method(n_labels: int, method: str) -> None:
    human = [float(i % 3 > 0) for i in range(n_labels)]
    judge = [float(i % 4 > 0) for i in range(n_labels)]
    found = corrected_mean(human, judge, [1.0, 0.0, 1.0] * 40)
    assert found.method == method
    assert (found.estimate is None) == (method == "none")
    assert (found.low is None) == (method == "none")
    assert (found.lambda_ is not None) == (method == "ppi++")


def test_labels_alone_have_exact_intervals_for_shares() -> None:
    human, judge, further = [1.0] * 24 + [0.0] * 6, [1.0] * 30, [1.0] * 70
    run, population = corrected_mean(human, judge, further), corrected_mean(human, judge, further, target="population")
    assert (run.estimate, run.low, run.high) == (0.8, *(hypergeometric_interval(24, 30, 100) or ()))
    assert (population.low, population.high) == wilson_interval(24, 30)
    # all labels 1: still no certainty about the other 70
    everything = corrected_mean([1.0] * 30, judge, further)
    assert everything.low is not None
    assert everything.low < 0.95
    assert everything.high == 1.0


def test_labels_alone_have_jackknife_intervals_for_scores() -> None:
    human = [float(i % 6) for i in range(30)]
    found = corrected_mean(human, human, [3.0] * 20, target="population")
    expected = scipy_stats.ttest_1samp(human, 0).confidence_interval()
    assert (found.estimate, found.low, found.high) == pytest.approx((2.5, expected.low, expected.high), abs=1e-9)
    in_run = corrected_mean(human, human, [3.0] * 20)
    assert in_run.standard_error == pytest.approx((found.standard_error or 0) * math.sqrt(20 / 50), abs=1e-12)
    assert in_run.n_effective == 30.0


def test_a_judge_that_is_right_on_every_label_claims_no_certainty() -> None:
    human = [float(i % 2) for i in range(60)]
    assert ppi_mean(human, human, [1.0] * 40).low is None
    found = corrected_mean(human, human, [1.0] * 40)
    assert found.method == "human-only"
    assert (found.low, found.high) == hypergeometric_interval(30, 60, 100)


def test_a_run_that_is_labelled_throughout_is_known() -> None:
    human = [0.0, 1.0, 1.0] * 20
    found = corrected_mean(human, human, [])
    assert (found.method, found.estimate, found.low, found.high) == ("human-only", 2 / 3, 2 / 3, 2 / 3)
    for_others = corrected_mean(human, human, [], target="population")
    assert (for_others.low, for_others.high) == wilson_interval(40, 60)


def test_one_cluster_has_no_ends() -> None:
    human = [0.0, 1.0, 1.0] * 20
    assert ppi_mean(human, human[::-1], [1.0] * 5, ["a"] * 60).low is None
    found = corrected_mean(human, human[::-1], [1.0] * 5, ["a"] * 60)
    assert (found.method, found.estimate, found.low) == ("human-only", 2 / 3, None)
    jointly = ppi_mean(human, human[::-1], [1.0] * 5, [*"ab"] * 30 + ["c"] * 5, "population")
    assert jointly.low is None  # without c there are no further cases
    assert ppi_mean([], [], [1.0]).estimate is None
    assert ppi_mean([1.0], [1.0], []).estimate is None


def test_data_that_do_not_fit_are_refused() -> None:
    with pytest.raises(ValueError, match="2 human scores stand beside 1"):
        ppi_mean([1.0, 0.0], [1.0], [1.0])
    with pytest.raises(ValueError, match="2 clusters are given for 3 cases"):
        ppi_mean([1.0, 0.0], [1.0, 1.0], [1.0], ["a", "b"], "population")
    with pytest.raises(ValueError, match="finite"):
        ppi_mean([1.0, math.nan], [1.0, 1.0], [1.0])
    with pytest.raises(ValueError, match="finite"):
        ppi_mean([1.0, 0.0], [1.0, 1.0], [math.inf])


@pytest.mark.parametrize(
    ("width", "width_now", "n", "n_run", "labels"),
    [
        (0.1, 0.2, 50, None, 200),  # half the width, four times the labels
        (0.2, 0.2, 50, None, 50),
        (0.1, 0.2, 50, 291, 132),  # 1/n = 1/291 + (1/50 - 1/291) / 4 = 0.0075772
        (1e-9, 0.2, 50, 291, 291),
        (0.9, 0.2, 50, None, 20),
        (0.9, 0.2, 10, 15, 15),
        (0.1, 0.2, 15, 15, 15),
    ],
)
def test_labels_for_a_width(width: float, width_now: float, n: int, n_run: int | None, labels: int) -> None:
    assert labels_for_width(width, width_now, n, n_run) == labels


@pytest.mark.parametrize(
    ("width", "width_now", "n", "n_run"), [(0, 1, 5, None), (1, 0, 5, None), (1, 1, 0, 5), (1, 1, 6, 5)]
)
def test_widths_that_cannot_be_are_refused(width: float, width_now: float, n: int, n_run: int | None) -> None:
    with pytest.raises(ValueError, match=r"widths are above|labels are at least"):
        labels_for_width(width, width_now, n, n_run)


def test_the_labels_asked_for_bring_the_width_asked_for() -> None:
    rng = np.random.default_rng(6)
    truth = rng.normal(3, 1, 1000)
    judge = (truth + rng.normal(0, 0.7, 1000)).tolist()
    human = truth.tolist()
    now = corrected_mean(human[:60], judge[:60], judge[60:])
    assert now.low is not None
    assert now.high is not None
    n = labels_for_width(0.2, now.high - now.low, 60, 1000)
    then = corrected_mean(human[:n], judge[:n], judge[n:])
    assert then.low is not None
    assert then.high is not None
    assert then.high - then.low == pytest.approx(0.2, rel=0.15)


# Coverage


@needs_nq301
@pytest.mark.parametrize(
    ("target", "in_clusters"), [("run", False), ("run", True), ("population", False), ("population", True)]
)
@pytest.mark.slow
def test_intervals_of_fifty_labels_cover_on_real_verdicts(target: Target, in_clusters: bool) -> None:
    """1,000 draws of 50 labels among the 291 answers with a verdict of a real judge, five systems to a question.

    For the run's mean 50 answers are drawn without replacement and the others stay unlabelled. For cases like these
    the run itself is drawn first, with replacement: answers, or with clusters questions with all of their answers.
    """
    rows = [json.loads(line) for line in NQ301.read_text(encoding="utf-8").splitlines()]
    cases = [
        (float(row["human_label"]), float(row["judge_outputs"]["gpt-4"]["verdict"]), row["cluster"])
        for row in rows
        if row["judge_outputs"]["gpt-4"]["verdict"] is not None
    ]
    truth = fmean(y for y, _, _ in cases)
    questions: dict[str, list[tuple[float, float, str]]] = {}
    for case in cases:
        questions.setdefault(case[2], []).append(case)
    rng = random.Random(301)
    hits = n_corrected = 0
    for _ in range(1000):
        run: list[tuple[float, float, Hashable]] = list(cases)
        if target == "population" and in_clusters:
            drawn = rng.choices(list(questions.values()), k=len(questions))
            run = [(y, j, place) for place, answers in enumerate(drawn) for y, j, _ in answers]
        elif target == "population":
            run = list(rng.choices(cases, k=len(cases)))
        rng.shuffle(run)
        human, judge, names = zip(*run, strict=True)
        found = corrected_mean(human[:50], judge[:50], judge[50:], names if in_clusters else None, target)
        n_corrected += found.method == "ppi++"
        hits += covered(found, truth)
    assert 930 <= hits <= 970
    assert n_corrected >= 990  # a judge that is right on all labels of a draw has the interval of labels alone


@pytest.mark.slow
def test_intervals_of_fifty_labels_cover_on_simulated_verdicts() -> None:
    """As on real verdicts, with a judge that is right on 85% of cases: runs where the folder of data is absent too."""
    rng = random.Random(8)
    truths = [float(rng.random() < 0.6) for _ in range(300)]
    judge = [y if rng.random() < 0.85 else 1.0 - y for y in truths]
    hits = 0
    for _ in range(1000):
        order = rng.sample(range(300), 300)
        human, verdicts = [truths[i] for i in order[:50]], [judge[i] for i in order]
        hits += covered(corrected_mean(human, verdicts[:50], verdicts[50:]), fmean(truths))
    assert 930 <= hits <= 970
