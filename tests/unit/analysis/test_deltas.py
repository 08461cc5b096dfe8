"""Differences of two runs over the cases where both have a value."""

import random
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats as scipy_stats

from judgekit.analysis.deltas import DeltaTally
from judgekit.analysis.estimates import ErrorPolicy
from judgekit.core.comparison import Delta
from judgekit.core.scores import Column, Failed, NotApplicable, Outcome, Pooled
from judgekit.stats.paired import sign_flip_p
from judgekit.stats.proportions import mcnemar_exact

HIT = Column("hit", binary=True)
RATING = Column("rating", low=0, high=5)
ERRORS = Column("errors", binary=True, higher_is_better=False)
NA = NotApplicable("no label")
TIMEOUT = Failed("timeout")
JUDGE_FAILED = Failed("judge invalid", by_judge=True)

Row = tuple[Outcome | None, Outcome | None]


def tallied(
    name: str,
    rows: Sequence[Row],
    *,
    policy: ErrorPolicy = "exclude",
    columns: Sequence[Column] = (HIT, RATING, ERRORS),
) -> DeltaTally:
    tally = DeltaTally(columns, (), policy)
    for a, b in rows:
        tally.add({} if a is None else {name: a}, {} if b is None else {name: b})
    return tally


def delta_of(name: str, rows: Sequence[Row], **options: Any) -> Delta:
    (delta,) = tallied(name, rows, **options).deltas({}, {}, lambda _: ())
    return delta


def test_a_binary_score_has_mcnemars_p_and_the_paired_interval() -> None:
    # 6 pairs lose, 1 gains, 5 stay: a = 10/12, b = 5/12, delta = -5/12; p = 2 (1 + 7) / 2^7 = 0.125
    rows: list[Row] = [*[(1.0, 0.0)] * 6, (0.0, 1.0), *[(1.0, 1.0)] * 4, (0.0, 0.0)]
    delta = delta_of("hit", rows)
    assert (delta.a, delta.b, delta.n) == pytest.approx((10 / 12, 5 / 12, 12))
    assert delta.delta == pytest.approx(-5 / 12)
    assert delta.p == pytest.approx(0.125)
    assert delta.p == mcnemar_exact(6, 1)
    # centre -5/14, variance ((7 + 2)/14 - (5/14)^2) / 14 = 0.036808; half 1.959964 * 0.191854 = 0.376027
    assert (delta.low, delta.high) == pytest.approx((-0.733170, 0.018884), abs=1e-5)


def test_a_rating_has_the_permutation_p_and_students_interval() -> None:
    a, b = [5.0, 4.0, 3.0, 5.0, 2.0, 4.0], [4.0, 4.0, 1.0, 4.0, 2.0, 2.0]
    delta = delta_of("rating", list(zip(a, b, strict=True)))
    # differences -1, 0, -2, -1, 0, -2: mean -1; all signs alike: p = 2 / 2^4 = 0.125
    assert (delta.delta, delta.p) == pytest.approx((-1.0, 0.125))
    oracle = scipy_stats.ttest_rel(b, a).confidence_interval(0.95)
    assert (delta.low, delta.high) == pytest.approx((oracle.low, oracle.high))
    assert delta.mde is not None


def test_equal_runs_have_no_difference_and_p_is_1() -> None:
    for name, values in (("hit", [0.0, 1.0, 1.0]), ("rating", [3.0, 5.0, 0.0])):
        delta = delta_of(name, [(value, value) for value in values])
        assert (delta.delta, delta.p, delta.p_holm, delta.verdict) == (0.0, 1.0, 1.0, "no evidence")


def test_only_cases_with_a_value_in_both_are_paired_and_the_others_are_counted() -> None:
    rows: list[Row] = [(5.0, 4.0), (NA, 1.0), (1.0, NA), (TIMEOUT, 2.0), (3.0, JUDGE_FAILED), (TIMEOUT, TIMEOUT)]
    delta = delta_of("rating", rows)
    assert (delta.n, delta.a, delta.b, delta.delta) == (1, 5.0, 4.0, -1.0)
    assert (delta.n_only_a, delta.n_only_b, delta.n_failed_a, delta.n_failed_b) == (2, 2, 2, 2)
    # with 0 for what failed in one run alone: (-1 + (2 - 0) + (0 - 3)) / 3
    assert delta.delta_if_failed_worst == pytest.approx(-2 / 3)


def test_a_run_that_fails_on_its_hard_cases_is_seen_to_be_worse() -> None:
    rows: list[Row] = [(1.0, 1.0)] * 8 + [(1.0, TIMEOUT)] * 2
    delta = delta_of("hit", rows)
    assert (delta.delta, delta.delta_if_failed_worst) == pytest.approx((0.0, -0.2))


def test_errors_as_worst_values_are_paired_and_failures_of_a_judge_never_are() -> None:
    rows: list[Row] = [(4.0, TIMEOUT), (4.0, JUDGE_FAILED), (4.0, 4.0)]
    delta = delta_of("rating", rows, policy="as_zero")
    assert (delta.n, delta.delta) == (2, -2.0)


def test_without_a_pair_there_is_no_difference_but_the_means_are_told() -> None:
    delta = delta_of("rating", [(4.0, NA), (2.0, None)])
    assert (delta.a, delta.b, delta.delta, delta.n, delta.p) == (3.0, None, None, 0, None)
    assert delta.verdict == "n/a"


@pytest.mark.parametrize(
    ("name", "up", "verdict"), [("hit", True, "better"), ("hit", False, "worse"), ("errors", True, "worse")]
)
def test_a_verdict_knows_which_way_is_better(name: str, up: bool, verdict: str) -> None:
    rows: list[Row] = [(0.0, 1.0) if up else (1.0, 0.0)] * 12
    assert delta_of(name, rows).verdict == verdict


def test_a_score_that_nothing_is_known_of_is_compared_all_the_same() -> None:
    delta = delta_of("own", [(0.0, 1.0)] * 12, columns=())
    assert (delta.delta, delta.verdict, delta.higher_is_better) == (1.0, "differs", None)
    assert "mcnemar" in delta.method
    assert "sign-flip" in delta_of("own", [(0.5, 1.0)] * 3, columns=()).method


def test_p_values_are_adjusted_over_all_figures_that_have_one() -> None:
    tally = DeltaTally((HIT, RATING), (), "exclude")
    for number in range(8):
        tally.add({"hit": 0.0, "rating": 3.0}, {"hit": 1.0, "rating": 4.0 if number < 6 else 3.0})
    by_name = {delta.name: delta for delta in tally.deltas({}, {}, lambda _: ())}
    # hit: 2 / 2^8; rating: 2 / 2^6. The smaller is doubled; the larger stays.
    assert (by_name["hit"].p, by_name["hit"].p_holm) == (2 / 256, 4 / 256)
    assert (by_name["rating"].p, by_name["rating"].p_holm) == (2 / 64, 2 / 64)


def test_figures_carry_their_name_in_metrics_json_and_what_whole_runs_say() -> None:
    column = Column("x_pass", binary=True, aggregate="x_pass_rate")
    feeds = Column("x.n", aggregate="")
    tally = DeltaTally((column, feeds), (), "exclude")
    tally.add({"x_pass": 1.0, "x.n": 3.0}, {"x_pass": 1.0, "x.n": 4.0})
    (delta,) = tally.deltas(
        {"x_pass_rate": {"value": 0.5, "n": 2}}, {"x_pass_rate": {"value": 1.0, "n": 1}}, lambda _: ("m",)
    )
    assert (delta.name, delta.a, delta.a_overall, delta.a_n, delta.mixed) == ("x_pass_rate", 1.0, 0.5, 2, ("m",))
    assert delta.is_of_other_cases


def test_a_figure_of_sums_is_compared_over_the_paired_cases() -> None:
    ratio = Pooled("share", ("bad", "all"), lambda bad, n: bad / n if n else None, higher_is_better=False)
    tally = DeltaTally((), (ratio,), "exclude")
    for a_bad, b_bad in ((1.0, 0.0), (2.0, 1.0), (0.0, 0.0)):
        tally.add({"bad": a_bad, "all": 4.0}, {"bad": b_bad, "all": 2.0})
    tally.add({"bad": 4.0, "all": 4.0}, {"bad": NA, "all": NA})
    share = next(delta for delta in tally.deltas({}, {}, lambda _: ()) if delta.name == "share")
    # 3 of 12, then 1 of 6
    assert (share.a, share.b, share.n, share.n_only_a) == pytest.approx((0.25, 1 / 6, 3, 1))
    assert share.delta == pytest.approx(-1 / 12)
    assert (share.p, share.verdict) == (None, "no test")
    assert share.low is not None
    assert share.high is not None
    assert share.low < -1 / 12 < share.high


def test_cases_of_one_cluster_change_sign_together() -> None:
    tally = DeltaTally((HIT,), (), "exclude")
    for number in range(12):
        # three clusters of four cases, all of them gained
        tally.add({"hit": 0.0}, {"hit": 1.0 if number % 4 else 0.0}, number // 4)
    (delta,) = tally.deltas({}, {}, lambda _: ())
    # each cluster sums to 3: p = 2 / 2^3, where 9 pairs on their own would have 2 / 2^9
    assert (delta.n, delta.delta, delta.p) == (12, 0.75, 0.25)
    assert "clusters" in delta.method


def test_clusters_of_one_case_are_cases() -> None:
    rng = random.Random(2)
    rows = [(float(rng.randrange(6)), float(rng.randrange(6))) for _ in range(15)]
    alone = DeltaTally((RATING,), (), "exclude")
    for number, (a, b) in enumerate(rows):
        alone.add({"rating": a}, {"rating": b}, number)
    (clustered,) = alone.deltas({}, {}, lambda _: ())
    plain = delta_of("rating", rows)
    assert (clustered.p, clustered.delta) == (plain.p, plain.delta)
    assert (clustered.low, clustered.high, clustered.mde) == pytest.approx((plain.low, plain.high, plain.mde))


values = st.sampled_from([0.0, 0.2, 1 / 3, 0.5, 1.0, 2.0, 3.5, 5.0])
outcomes = st.one_of(values, st.just(NA), st.just(TIMEOUT), st.none())


@settings(max_examples=60)
@given(st.lists(st.tuples(outcomes, outcomes), max_size=25), st.randoms(use_true_random=False))
def test_swapping_the_runs_flips_signs_and_the_order_of_cases_moves_nothing(
    rows: list[Row], rng: random.Random
) -> None:
    found = tallied("rating", rows).deltas({}, {}, lambda _: ())
    shuffled = list(rows)
    rng.shuffle(shuffled)
    assert tallied("rating", shuffled).deltas({}, {}, lambda _: ()) == found
    swapped = tallied("rating", [(b, a) for a, b in rows]).deltas({}, {}, lambda _: ())
    for one, other in zip(found, swapped, strict=True):
        assert (other.p, other.p_holm, other.mde, other.n) == (one.p, one.p_holm, one.mde, one.n)
        assert (other.a, other.b) == (one.b, one.a)
        if one.delta is not None and other.delta is not None:
            assert other.delta == -one.delta
        if one.low is not None and one.high is not None:
            assert (other.low, other.high) == pytest.approx((-one.high, -one.low))


def test_many_pairs_are_tested_by_drawing_and_come_near_the_exact_p() -> None:
    rng = random.Random(5)
    rows: list[Row] = [(float(rng.randrange(6)), float(rng.randrange(6))) for _ in range(3000)]
    delta = delta_of("rating", rows)
    differences = [b - a for a, b in rows if isinstance(a, float) and isinstance(b, float)]
    exact, is_exact = sign_flip_p(differences, 0)
    assert is_exact
    # 10,000 draws: three standard errors of a share are at most 0.015
    assert delta.p == pytest.approx(exact, abs=0.015)
