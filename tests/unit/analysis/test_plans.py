"""Plans: from a spread to cases, answers to each case and labels."""

import math
import random
from itertools import pairwise

import pytest

from judgekit.analysis.deltas import BINARY_METHOD, CLUSTER_METHOD, MEAN_METHOD
from judgekit.analysis.plans import (
    PlanGoal,
    Spread,
    answers_plan,
    cases_plan,
    labels_plan,
    spread_of_differences,
    spread_of_scores,
    with_rate,
    with_repeats,
)
from judgekit.stats.clusters import clustered_mean
from judgekit.stats.power import pairs_for_mean

GOAL = PlanGoal(0.2, 0.8)


def test_the_spread_of_pairs_is_that_of_their_mean() -> None:
    found = spread_of_differences([[1.0], [0.0], [-1.0], [0.0], [2.0]], "x", is_rate=False, unit="cases")
    assert found.sd == pytest.approx(math.sqrt((0.36 + 0.16 + 1.96 + 0.16 + 2.56) / 4))
    plan = cases_plan(found, GOAL)
    assert (plan["n"], plan["n_here"], plan["method"]) == (pairs_for_mean(found.sd, 0.2, 0.8), 5, MEAN_METHOD)
    assert plan["low"] < plan["n"] < plan["high"]


def test_the_spread_of_clusters_is_that_of_the_clustered_mean() -> None:
    units = [[1.0, 2.0], [0.0], [-1.0, 0.0, 1.0], [2.0]]
    found = spread_of_differences(units, "x", is_rate=False, unit="clusters")
    flat = [(value, number) for number, own in enumerate(units) for value in own]
    error = clustered_mean([value for value, _ in flat], [number for _, number in flat]).standard_error
    assert found.sd == pytest.approx((error or 0) * math.sqrt(4))
    plan = cases_plan(found, GOAL)
    assert (plan["unit"], plan["method"]) == ("clusters", CLUSTER_METHOD)
    assert plan["n_cases"] == math.ceil(plan["n"] * 7 / 4)


def test_a_rate_goes_by_the_pairs_that_differ() -> None:
    found = spread_of_differences([[1.0], [-1.0], *[[0.0]] * 8], "x", is_rate=True, unit="cases")
    plan = cases_plan(found, PlanGoal(0.1, 0.8))
    assert (found.differing, plan["method"], plan["share_that_differs"]) == (0.2, BINARY_METHOD, 0.2)
    assert 150 < plan["n"] < 180  # Connor: (1.96 sqrt(0.2) + 0.8416 sqrt(0.19))^2 / 0.01 = 154


def test_a_difference_that_is_larger_than_the_share_that_differs_raises_it() -> None:
    plan = cases_plan(with_rate(Spread(0.0, None, "x"), 0.99, 0.9, None), PlanGoal(0.3, 0.8))
    assert plan["n"] is not None
    assert plan["n"] < 40  # all that differ fall: 6 of n with a chance of 0.3 each


@pytest.mark.parametrize("correlation", [0.0, 0.5, 0.9])
def test_one_run_and_a_correlation_give_the_spread_that_pairs_of_it_have(correlation: float) -> None:
    """A version that keeps the score of a case with this chance, and takes another case's otherwise."""
    rng = random.Random(4)
    a = [float(rng.choice([0, 1, 3, 4, 5, 5])) for _ in range(4000)]
    b = [value if rng.random() < correlation else rng.choice(a) for value in a]
    assumed = spread_of_scores(a, correlation, is_rate=False, rests_on="x")
    pairs = [[second - first] for first, second in zip(a, b, strict=True)]
    assert assumed.sd == pytest.approx(spread_of_differences(pairs, "x", is_rate=False, unit="cases").sd, rel=0.05)
    flags_a, flags_b = ([float(value == 5) for value in values] for values in (a, b))
    flags = [[second - first] for first, second in zip(flags_a, flags_b, strict=True)]
    of_flags = spread_of_scores(flags_a, correlation, is_rate=True, rests_on="x").differing
    seen = spread_of_differences(flags, "x", is_rate=True, unit="cases").differing
    assert of_flags == pytest.approx(seen, abs=0.03)


def test_more_answers_to_each_case_average_their_part_out_and_no_more() -> None:
    rng = random.Random(8)

    def version(effects: list[float], n: int) -> list[list[float]]:
        return [[effect + rng.gauss(0, 1.0) for _ in range(n)] for effect in effects]

    # Cases change by a normal with sd 0.5; each answer adds noise of sd 1 in both versions.
    n_answers, cases = 3, [rng.gauss(0, 2) for _ in range(3000)]
    a, b = version(cases, n_answers), version([case + rng.gauss(0, 0.5) for case in cases], n_answers)
    pairs = [[second - first for first, second in zip(x, y, strict=True)] for x, y in zip(a, b, strict=True)]
    runs = [{str(number): own for number, own in enumerate(run)} for run in (a, b)]
    spread = with_repeats(spread_of_differences(pairs, "x", is_rate=False, unit="cases"), runs)
    assert spread.within == pytest.approx(2.0, rel=0.05)
    for answers in (1, 3, 10):
        assert spread.with_answers(answers).sd == pytest.approx(math.sqrt(0.25 + 2 / answers), rel=0.05)
    rows = answers_plan(spread, GOAL)["rows"]
    assert [row["answers_per_case"] for row in rows] == list(range(1, 11))
    assert all(first["n_cases"] > second["n_cases"] for first, second in pairwise(rows))
    assert rows[2]["n_cases"] == pytest.approx(cases_plan(spread, GOAL)["n"], abs=1)


def test_without_repeats_what_more_answers_are_worth_is_not_known() -> None:
    assert answers_plan(Spread(1.0, None, "x"), GOAL)["rows"] == []
    one_each = [{"a": [1.0], "b": [2.0]}]
    assert with_repeats(Spread(1.0, None, "x"), one_each).within is None


def test_labels_that_are_expected_to_agree_are_fewer() -> None:
    assert labels_plan(0.05, 0.9)["n"] < labels_plan(0.05, None)["n"] == labels_plan(0.05, 0.9)["n_at_most"]
