"""Variance components and pass^k: worked examples, analysis of variance and mixed models as oracles, simulations."""

import math
from collections import Counter
from itertools import combinations
from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats as scipy_stats

from judgekit.stats.bootstrap import Function, Resampling, Row, bootstrap_mean, bootstrap_pooled
from judgekit.stats.repeated_measures import (
    Design,
    all_pass,
    answer_variance,
    any_passes,
    case_row,
    case_variance,
    generalizability,
    judge_variance,
    squared_deviations,
    system_variance,
)

Cases = list[list[float]]


def sums(rows: list[Row]) -> list[float]:
    return [math.fsum(column) for column in zip(*rows, strict=True)]


def of(figure: Function, cases: Cases, centre: float = 0.0) -> float | None:
    return figure(*sums([case_row(case, centre=centre) for case in cases]))


def test_three_cases_with_two_answers_each_by_hand() -> None:
    # means 2, 4, 3, grand mean 3; within: 2 + 2 + 0 = 4 over 6 - 3 = 3 degrees of freedom: 4/3
    # between: 2 ((2-3)^2 + (4-3)^2 + 0) = 4 over 2: 2; case (2 - 4/3) / 2 = 1/3; 1/3 / (1/3 + 4/3 / 2) = 1/3
    cases: Cases = [[1, 3], [5, 3], [3, 3]]
    assert of(answer_variance, cases) == pytest.approx(4 / 3, abs=1e-12)
    assert of(case_variance, cases) == pytest.approx(1 / 3, abs=1e-12)
    assert of(generalizability, cases) == pytest.approx(1 / 3, abs=1e-12)


def test_cases_with_unequal_numbers_of_answers_by_hand() -> None:
    # means 1, 4; N 5, grand mean 2.2; within: 2 + 2 = 4 over 5 - 2 = 3; between: 3 (1.2)^2 + 2 (1.8)^2 = 10.8 over 1
    # n0 = 5 - 13/5 = 2.4; case (10.8 - 4/3) / 2.4 = 3.9444; harmonic mean 2 / (1/3 + 1/2) = 2.4
    cases: Cases = [[0, 1, 2], [3, 5]]
    assert of(answer_variance, cases) == pytest.approx(4 / 3, abs=1e-12)
    assert of(case_variance, cases) == pytest.approx(9.4666666666667 / 2.4, abs=1e-12)
    assert of(generalizability, cases) == pytest.approx(3.9444444 / (3.9444444 + 4 / 3 / 2.4), abs=1e-7)


def test_verdicts_on_the_same_answer_part_the_judge_from_the_system() -> None:
    # answers 1 and 3: within 2 over 1; verdicts of the first 1 and 2: 0.5 over 1; of the second 3, 3, 3: 0 over 2
    row = case_row([1, 3], [[1, 2], [3, 3, 3]])
    assert row == (1, 2, 4, 0.5, 4, 8, 2, 0.5, 3)
    assert judge_variance(*row) == pytest.approx(0.5 / 3, abs=1e-12)
    assert system_variance(*row) == pytest.approx(2 - 0.5 / 3, abs=1e-12)


def test_what_cannot_be_told_has_no_number() -> None:
    assert of(answer_variance, [[1], [2]]) is None
    assert of(case_variance, [[1], [2]]) is None
    assert of(case_variance, [[1, 2]]) is None
    assert of(generalizability, [[1, 2]]) is None
    assert of(judge_variance, [[1, 2]]) is None
    assert of(system_variance, [[1, 2]]) is None
    assert of(generalizability, [[1, 1], [1, 1]]) is None


def test_components_below_zero_are_not_cut_off() -> None:
    # equal case means and answers that differ: (0 - 2) / 2
    assert of(case_variance, [[0, 2], [0, 2], [2, 0]]) == pytest.approx(-1, abs=1e-12)


def test_the_components_are_those_of_statsmodels_where_the_design_is_balanced() -> None:
    # MixedLM of statsmodels 0.15.0 by REML, `x ~ 1` with groups = case, on these scores: cov_re 2.43209, scale 0.51852.
    # In a balanced design whose components are above 0, REML and the analysis of variance are the same.
    cases: Cases = [[4, 5, 5], [1, 0, 2], [3, 3, 3], [5, 5, 4], [2, 3, 1], [4, 4, 5], [1, 1, 2], [5, 4, 4], [0, 2, 1]]
    assert of(case_variance, cases) == pytest.approx(2.43209, abs=2e-5)
    assert of(answer_variance, cases) == pytest.approx(0.51852, abs=1e-5)


unequal = st.lists(st.lists(st.integers(0, 5).map(float), min_size=1, max_size=5), min_size=2, max_size=25).filter(
    lambda cases: any(len(case) > 1 for case in cases)
)


@given(unequal)
def test_the_mean_squares_are_those_of_the_analysis_of_variance(cases: Cases) -> None:
    found = of(answer_variance, cases)
    case = of(case_variance, cases)
    n = sum(map(len, cases))
    within = sum(np.var(case) * len(case) for case in cases) / (n - len(cases))
    assert found == pytest.approx(within, abs=1e-9)
    n0 = (n - sum(len(case) ** 2 for case in cases) / n) / (len(cases) - 1)
    if within > 0 and case is not None:  # scipy's F is the ratio of the two mean squares
        ratio = scipy_stats.f_oneway(*cases).statistic
        assert case == pytest.approx((ratio * within - within) / n0, abs=1e-7)


@given(unequal, st.floats(-100, 100), st.randoms(use_true_random=False))
def test_neither_a_shift_nor_the_order_changes_a_component(cases: Cases, shift: float, random: Random) -> None:
    moved = [[value + shift for value in case] for case in cases]
    random.shuffle(moved)
    for figure in (answer_variance, case_variance):
        expected = of(figure, cases)
        found = of(figure, moved, centre=shift)
        assert found == (None if expected is None else pytest.approx(expected, abs=1e-6))


@pytest.mark.slow
@given(unequal)
def test_equal_answers_leave_all_variance_to_the_cases(cases: Cases) -> None:
    equal = [[case[0]] * len(case) for case in cases]
    assert of(answer_variance, equal) == 0.0
    found = of(generalizability, equal)
    assert found is None or found == pytest.approx(1.0)


def test_large_scores_that_differ_little_lose_nothing_to_rounding() -> None:
    cases: Cases = [[1, 3], [5, 3], [3, 3]]
    large = [[1e9 + 1e-3 * value for value in case] for case in cases]
    assert of(case_variance, large, centre=1e9) == pytest.approx(1e-6 / 3, rel=1e-3)


@given(st.lists(st.sampled_from([0.1, 1e300, -7.3]), min_size=1, max_size=1), st.integers(1, 9))
def test_equal_values_have_no_deviation_at_all(value: list[float], n: int) -> None:
    assert squared_deviations(value * n) == 0.0


# what more calls would buy


def test_the_error_of_a_mean_by_hand() -> None:
    # 10 cases of 3 answers: c / 10 + (s + j) / 30 = 0.1 + 0.03 / 1 = 1/10 + 0.9/30 = 0.13
    design = Design(case=1.0, system=0.6, judge=0.3, n_cases=10, n_answers=30, squares=90)
    assert design.error() == pytest.approx(math.sqrt(0.13), abs=1e-12)
    assert design.half_width() == pytest.approx(1.959964 * math.sqrt(0.13), abs=1e-6)
    # twice the answers: to new cases 1/20 + 0.9/60; to the same cases 1/10 + 0.9/60; as many more verdicts: 0.75/30
    assert design.with_cases(30).error() == pytest.approx(math.sqrt(0.05 + 0.015), abs=1e-12)
    assert design.with_answers(30).error() == pytest.approx(math.sqrt(0.1 + 0.015), abs=1e-12)
    assert design.with_verdicts(30).error() == pytest.approx(math.sqrt(0.1 + 0.025), abs=1e-12)
    # two runs on the same cases: 2 * 0.9 / 30 = 0.06
    assert design.same_cases() == pytest.approx(1.959964 * math.sqrt(0.06), abs=1e-6)


variance = st.floats(0, 10)


@given(variance, variance, variance, st.integers(2, 200), st.integers(1, 9), st.floats(1, 5000))
def test_as_many_answers_to_new_cases_never_buy_less_than_to_the_same(
    case: float, system: float, judge: float, n_cases: int, n: int, more: float
) -> None:
    design = Design(case, system, judge, n_cases, n_cases * n, n_cases * n * n)
    now, new = design.error(), design.with_cases(more).error()
    same, verdicts = design.with_answers(more).error(), design.with_verdicts(more).error()
    assert new <= same + 1e-9 <= now + 2e-9
    assert same <= verdicts + 1e-9 <= now + 2e-9


# pass^k and pass@k


def test_pass_hat_by_hand() -> None:
    # 3 of 5 pass: of the 10 pairs 3 pass twice, and 1 fails twice
    assert all_pass(3, 5, 2) == pytest.approx(0.3, abs=1e-15)
    assert any_passes(3, 5, 2) == pytest.approx(0.9, abs=1e-15)
    assert all_pass(3, 5, 1) == any_passes(3, 5, 1) == pytest.approx(0.6, abs=1e-15)
    assert (all_pass(4, 5, 5), all_pass(5, 5, 5), any_passes(1, 5, 5), any_passes(0, 5, 5)) == (0, 1, 1, 0)


@pytest.mark.parametrize("k", [0, 4])
def test_more_answers_than_there_are_cannot_be_drawn(k: int) -> None:
    with pytest.raises(ValueError, match=f"{k} of 3 answers cannot be drawn"):
        all_pass(1, 3, k)


@given(st.lists(st.booleans(), min_size=1, max_size=9), st.data())
def test_pass_hat_is_the_share_of_all_draws(answers: list[bool], data: st.DataObject) -> None:
    k = data.draw(st.integers(1, len(answers)))
    draws = list(combinations(answers, k))
    assert all_pass(sum(answers), len(answers), k) == pytest.approx(sum(map(all, draws)) / len(draws), abs=1e-12)
    assert any_passes(sum(answers), len(answers), k) == pytest.approx(sum(map(any, draws)) / len(draws), abs=1e-12)


@given(st.integers(1, 12), st.integers(0, 1000).map(lambda share: share / 1000), st.data())
def test_pass_hat_is_unbiased(n: int, p: float, data: st.DataObject) -> None:
    # the expectation over the binomial number of answers that pass, exactly
    k = data.draw(st.integers(1, n))
    chances = scipy_stats.binom.pmf(range(n + 1), n, p)
    mean_all = sum(chance * all_pass(c, n, k) for c, chance in enumerate(chances))
    mean_any = sum(chance * any_passes(c, n, k) for c, chance in enumerate(chances))
    assert mean_all == pytest.approx(p**k, abs=1e-9)
    assert mean_any == pytest.approx(1 - (1 - p) ** k, abs=1e-9)


# simulations


def drawn(rng: np.random.Generator, n_cases: int, n: int, *, binary: bool) -> list[Row]:
    """Cases of up to n answers, a fifth of them missing; a third of the answers is judged twice."""
    rows = []
    for _ in range(n_cases):
        scores, again = [], []
        level = rng.beta(2, 1) if binary else rng.normal(0, 1)
        for number in range(n):
            if number and rng.random() < 0.2:
                continue
            if binary:  # the judge is wrong one time in 20
                truth = rng.random() < level
                first, second = (float(truth != (rng.random() < 0.05)) for _ in range(2))
            else:
                answer = level + rng.normal(0, 0.7)
                first, second = (answer + rng.normal(0, 0.5) for _ in range(2))
            scores.append(first)
            if rng.random() < 1 / 3:
                again.append([first, second])
        rows.append(case_row(scores, again))
    return rows


# With p beta(2, 1) the chance to pass is r = 0.05 + 0.9 p: var r = 0.81 / 18 = 0.045, mean 0.65;
# within = 0.65 - 0.045 - 0.4225 = 0.1825, of which the judge 0.05 * 0.95 = 0.0475.
TRUTH = {False: (1.0, 0.49, 0.25), True: (0.045, 0.135, 0.0475)}


@pytest.mark.slow
@pytest.mark.parametrize("binary", [False, True])
def test_the_components_are_unbiased_and_their_intervals_cover_them(binary: bool) -> None:
    rng, n_runs = np.random.default_rng(7), 300
    figures: tuple[Function, ...] = (case_variance, system_variance, judge_variance)
    covered, means, n_intervals = [0, 0, 0], [0.0, 0.0, 0.0], [0, 0, 0]
    for _ in range(n_runs):
        rows = drawn(rng, 120, 4, binary=binary)
        for place, (figure, truth) in enumerate(zip(figures, TRUTH[binary], strict=True)):
            means[place] += (figure(*sums(rows)) or 0.0) / n_runs
            found = bootstrap_pooled(rows, figure, (0.0, math.inf), Resampling())
            if found.low is not None and found.high is not None:
                n_intervals[place] += 1
                covered[place] += found.low <= truth <= found.high
    assert means == pytest.approx(TRUTH[binary], rel=0.04)
    assert n_intervals == [n_runs] * 3
    # of 300 runs 95% are 285; 270 is four standard errors less
    assert min(covered) >= 270, covered


@pytest.mark.slow
def test_the_coefficient_is_the_correlation_of_two_runs_of_one_system() -> None:
    rng = np.random.default_rng(3)
    level = rng.normal(0, 1, 4000)
    runs = [level[:, None] + rng.normal(0, 1.2, (4000, 3)) for _ in range(2)]
    found = of(generalizability, runs[0].tolist())
    # 1 / (1 + 1.44 / 3) = 0.676
    assert found == pytest.approx(1 / 1.48, abs=0.03)
    assert np.corrcoef(runs[0].mean(axis=1), runs[1].mean(axis=1))[0, 1] == pytest.approx(found, abs=0.03)


@pytest.mark.slow
def test_the_error_of_a_design_is_the_spread_of_its_means() -> None:
    rng = np.random.default_rng(11)
    now = Design(case=1.0, system=0.49, judge=0.25, n_cases=20, n_answers=60, squares=180)
    for design in (now, now.with_cases(60), now.with_answers(60), now.with_verdicts(60)):
        n_cases, n = round(design.n_cases), round(design.n_answers / design.n_cases)
        shape = (4000, n_cases, n)
        answers = rng.normal(0, 1, (4000, n_cases, 1)) + rng.normal(0, 0.7, shape)
        verdicts = answers[..., None] + rng.normal(0, 0.5, (*shape, round(design.verdicts)))
        # the spread of 4000 means is known to 1.1%
        assert verdicts.mean(axis=(1, 2, 3)).std() == pytest.approx(design.error(), rel=0.05)


@pytest.mark.slow
def test_intervals_of_pass_hat_cover_it() -> None:
    # p is beta(2, 1), so E p^3 = 2/5
    rng, covered = np.random.default_rng(5), 0
    for _ in range(400):
        passed = rng.binomial(5, rng.beta(2, 1, 60))
        values = Counter(all_pass(int(c), 5, 3) for c in passed)
        found = bootstrap_mean(values, (0.0, 1.0), Resampling())
        assert found.low is not None
        assert found.high is not None
        covered += found.low <= 0.4 <= found.high
    # of 400 runs 95% are 380; 364 is about four standard errors less
    assert covered >= 364
