"""The spot check of a judge: what disagrees, what is counted, and when it warns."""

import json
import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judgekit.analysis.disagreement_rates import judge_reliability
from judgekit.analysis.spot_check_findings import spot_check_report
from judgekit.analysis.verdict_pairs import Pair, compare_verdicts, draw_sample
from judgekit.core.judgments import JudgeFailure, Verdict
from judgekit.core.verdict_kinds import Kind, Scale, YesNo

TIMEOUT = JudgeFailure(kind="timeout", message="no reply in 60 s")
AGAINST = {"model": "other", "prompt_version": "v1"}


def scored(*pairs: tuple[int, int]) -> list[Pair]:
    return [
        Pair(f"c{number}", Verdict(score=first), Verdict(score=second)) for number, (first, second) in enumerate(pairs)
    ]


def without_ids(report: dict[str, Any]) -> dict[str, Any]:
    """The figures of a report alone."""
    named = {**report, "sample": [], "disagreements": []}
    return {**named, "spot_check": {**report["spot_check"], "items": []}}


def kind_of(pass_score: int | None, pairs: list[Pair]) -> Kind:
    """Yes/no if a verdict of the pairs is, else a scale."""
    verdicts = [said for pair in pairs for said in (pair.first, pair.second) if isinstance(said, Verdict)]
    return YesNo() if any(said.answer is not None for said in verdicts) else Scale(pass_score=pass_score)


def report_on(pairs: list[Pair], pass_score: int | None = 4, threshold: float = 0.20) -> dict[str, Any]:
    return spot_check_report(pairs, kind=kind_of(pass_score, pairs), seed=7, against=AGAINST, threshold=threshold)


# pair_disagrees


@pytest.mark.parametrize(
    ("first", "second", "pass_score", "expected"),
    [
        (5, 4, 4, False),  # one point, both pass
        (4, 3, 4, True),  # one point, but the class flips
        (3, 4, 4, True),
        (4, 3, None, False),  # no class
        (3, 1, 4, True),  # two points, both fail
        (5, 3, 3, True),  # two points, both pass
        (3, 2, 4, False),
        (2, 2, 2, False),
        (2, 1, 2, True),
    ],
)
def test_scores_disagree_by_more_than_a_point_or_by_class(
    first: int, second: int, pass_score: int | None, expected: bool
) -> None:
    assert (
        compare_verdicts(Verdict(score=first), Verdict(score=second), Scale(pass_score=pass_score)).disagrees
        is expected
    )


@pytest.mark.parametrize("first", [True, False])
@pytest.mark.parametrize("second", [True, False])
@pytest.mark.parametrize("pass_score", [None, 4])
def test_yes_no_verdicts_disagree_where_the_answer_differs(first: bool, second: bool, pass_score: int | None) -> None:
    assert compare_verdicts(Verdict(answer=first), Verdict(answer=second), YesNo()).disagrees is (first != second)


@pytest.mark.parametrize("second", [Verdict(answer=True), Verdict()])
def test_verdicts_that_cannot_be_compared_are_refused(second: Verdict) -> None:
    with pytest.raises(ValueError, match="both are scores"):
        compare_verdicts(Verdict(score=4), second, Scale(pass_score=4))


@given(st.integers(0, 5), st.integers(0, 5), st.none() | st.integers(0, 5))
def test_disagreement_is_symmetric_and_no_verdict_disagrees_with_itself(a: int, b: int, pass_score: int | None) -> None:
    first, second = Verdict(score=a), Verdict(score=b)
    assert (
        compare_verdicts(first, second, Scale(pass_score=pass_score)).disagrees
        == compare_verdicts(second, first, Scale(pass_score=pass_score)).disagrees
    )
    assert not compare_verdicts(first, first, Scale(pass_score=pass_score)).disagrees


# spot_check_report


def test_the_parts_of_the_disagreement_add_up() -> None:
    # (3, 1) gap, (4, 3) flip, (5, 2) both, (5, 5) and (2, 3) agree
    report = report_on(scored((3, 1), (4, 3), (5, 2), (5, 5), (2, 3)))
    assert (report["n_gap_over_one"], report["n_class_flips"], report["n_both"]) == (2, 2, 1)
    assert report["n_disagree"] == 3
    assert report["disagreement_rate"] == 0.6
    assert report["spot_check_n"] == report["n_asked"] == 5
    # Wilson, z^2 = 3.8415: (3 + 1.9207 -+ 1.96 sqrt(3 * 2 / 5 + .9604)) / 8.8415 = (4.9207 -+ 2.8810) / 8.8415
    assert report["interval"] == {
        "low": pytest.approx(0.2307, abs=5e-5),
        "high": pytest.approx(0.8824, abs=5e-5),
        "method": "wilson 95%",
    }
    assert report["exact_agreement"] == 0.2
    # differences -2, -1, -3, 0, 1
    assert report["mean_signed_difference"] == -1.0
    assert "undefined_reason" not in report


def test_failures_are_listed_and_count_neither_as_agreement_nor_in_a_denominator() -> None:
    pairs = [
        *scored((5, 5), (5, 1)),
        Pair("f1", TIMEOUT, Verdict(score=5)),
        Pair("f2", Verdict(score=5), JudgeFailure(kind="invalid", message="no JSON")),
        Pair("f3", TIMEOUT, TIMEOUT),
    ]
    report = report_on(pairs)
    assert report["disagreement_rate"] == 0.5
    assert report["exact_agreement"] == 0.5
    assert (report["n_asked"], report["spot_check_n"], report["n_unscored"]) == (5, 2, 3)
    assert (report["n_failed_first"], report["n_failed_second"]) == (2, 2)
    assert report["sample"] == [
        {"case_id": "c0", "first": 5, "second": 5, "disagrees": False},
        {"case_id": "c1", "first": 5, "second": 1, "disagrees": True},
        {"case_id": "f1", "first": None, "second": 5, "disagrees": None, "first_failure": "timeout"},
        {"case_id": "f2", "first": 5, "second": None, "disagrees": None, "second_failure": "invalid"},
        {
            "case_id": "f3",
            "first": None,
            "second": None,
            "disagrees": None,
            "first_failure": "timeout",
            "second_failure": "timeout",
        },
    ]


@pytest.mark.parametrize("pairs", [[], [Pair("a", TIMEOUT, TIMEOUT)]])
def test_without_two_verdicts_nothing_is_claimed(pairs: list[Pair]) -> None:
    report = report_on(pairs)
    figures = ("disagreement_rate", "exact_agreement", "mean_signed_difference", "quadratic_weighted_kappa")
    assert [report[name] for name in (*figures, "krippendorff_alpha", "inconsistent_rate")] == [None] * 6
    assert report["interval"] == {"low": None, "high": None, "method": "wilson 95%"}
    assert report["spot_check_n"] == 0
    assert report["fired"] is False
    assert report["status"] == "inconclusive"
    assert report["undefined_reason"] == "no case has two verdicts"


def test_constant_scores_leave_kappa_and_alpha_undefined_with_a_reason() -> None:
    report = report_on(scored((4, 4), (4, 4)))
    assert report["exact_agreement"] == 1.0
    assert report["quadratic_weighted_kappa"] is None
    assert report["krippendorff_alpha"] is None
    assert "every rating is the same" in report["undefined_reason"]


def test_a_yes_no_judge_gets_the_same_figures_on_ones_and_zeros() -> None:
    answers = [(True, True), (True, False), (False, False), (False, False)]
    pairs = [Pair(f"c{n}", Verdict(answer=a), Verdict(answer=b)) for n, (a, b) in enumerate(answers)]
    report = report_on(pairs, pass_score=None)
    assert report["disagreement_rate"] == 0.25
    assert (report["n_gap_over_one"], report["n_class_flips"], report["n_both"]) == (0, 1, 0)
    assert report["mean_signed_difference"] == -0.25
    # Cohen's kappa: agreement 3/4, by chance 1/2 * 1/4 + 1/2 * 3/4 = 1/2, so (3/4 - 1/2) / (1/2) = 1/2
    assert report["quadratic_weighted_kappa"] == 0.5
    assert report["sample"][1] == {"case_id": "c1", "first": True, "second": False, "disagrees": True}


@pytest.mark.parametrize(
    ("n_disagree", "n", "fired", "status"),
    [
        (4, 20, False, "inconclusive"),  # exactly 0.20 is not more than 0.20
        (5, 20, True, "alarm"),
        (0, 20, False, "ok"),  # upper end 0.1611
        (1, 20, False, "inconclusive"),  # upper end 0.2361
        (0, 5, False, "inconclusive"),  # upper end 0.4345
        (20, 200, False, "ok"),  # upper end 0.1494
    ],
)
def test_the_alarm_fires_above_the_threshold_and_is_off_only_when_the_interval_says_so(
    n_disagree: int, n: int, fired: bool, status: str
) -> None:
    report = report_on(scored(*[(5, 0)] * n_disagree, *[(5, 5)] * (n - n_disagree)))
    assert (report["fired"], report["status"]) == (fired, status)


def test_inconsistent_verdicts_are_a_share_of_all_verdicts_of_the_run() -> None:
    odd = Verdict(score=5, unsupported_claims=("x",), inconsistent=True)
    pairs = [Pair("a", odd, Verdict(score=5)), Pair("b", Verdict(score=1), Verdict(score=1))]
    assert report_on([*pairs, Pair("c", TIMEOUT, odd)])["inconsistent_rate"] == 0.5
    whole_run = spot_check_report(pairs, kind=Scale(pass_score=4), seed=0, against={}, of_all=(1, 10))
    assert whole_run["inconsistent_rate"] == 0.1
    assert (whole_run["n_inconsistent"], whole_run["n_verdicts"]) == (1, 10)


def test_the_record_of_the_check_is_kept_and_is_strict_json() -> None:
    report = report_on(scored((5, 4), (1, 3)), threshold=0.3)
    assert (report["seed"], report["threshold"], report["against"]) == (7, 0.3, AGAINST)
    assert json.loads(json.dumps(report, allow_nan=False)) == report


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), max_size=30), st.randoms(use_true_random=False))
def test_the_order_of_the_pairs_changes_no_figure(pairs: list[tuple[int, int]], rng: random.Random) -> None:
    here, there = report_on(scored(*pairs)), report_on(scored(*rng.sample(pairs, len(pairs))))
    assert without_ids(here) == without_ids(there)
    assert here["n_disagree"] == here["n_gap_over_one"] + here["n_class_flips"] - here["n_both"]


# judge_reliability


def test_the_headline_pools_the_pairs_of_all_judges() -> None:
    # 4 of 10 and 0 of 30: 4 / 40, while the mean of the two rates would be 0.2
    bad = report_on(scored(*[(5, 0)] * 4, *[(5, 5)] * 6))
    good = report_on([*scored(*[(4, 4)] * 15, *[(1, 1)] * 15), Pair("f", TIMEOUT, TIMEOUT)])
    headline = judge_reliability({"correctness": bad, "groundedness": good})
    assert headline["disagreement_rate"] == 0.1
    assert (headline["spot_check_n"], headline["n_asked"], headline["n_unscored"]) == (40, 41, 1)
    # Wilson for 4 of 40: (0.0396, 0.2305)
    assert (headline["interval"]["low"], headline["interval"]["high"]) == pytest.approx((0.0396, 0.2305), abs=5e-5)
    assert headline["by_judge"] == {"correctness": bad, "groundedness": good}
    assert headline["fired"] is False
    assert headline["inconsistent_rate"] == 0.0
    assert json.dumps(headline, allow_nan=False)


def test_a_judge_above_the_threshold_is_named_even_beside_good_ones() -> None:
    bad = report_on(scored(*[(5, 0)] * 4, *[(5, 5)] * 6))
    good = report_on(scored(*[(4, 4)] * 30))
    [(code, message)] = judge_reliability({"correctness": bad, "groundedness": good})["warnings"]
    assert code == "judge_unstable"
    # Wilson for 4 of 10: (0.1682, 0.6873)
    assert "judge correctness: 4 of 10" in message
    assert "rate 0.40, 95% interval 0.17 to 0.69" in message
    assert "0.20" in message


def test_judges_within_the_threshold_raise_no_warning() -> None:
    assert judge_reliability({"groundedness": report_on(scored((5, 5), (4, 4)))})["warnings"] == []


def test_without_a_judge_the_headline_is_null() -> None:
    headline = judge_reliability({})
    assert headline["disagreement_rate"] is None
    assert headline["spot_check_n"] == 0
    assert headline["warnings"] == []


# draw_sample

IDS = [f"q{number}" for number in range(50)]


def test_the_same_seed_draws_the_same_sample_in_the_order_of_the_ids() -> None:
    sample = draw_sample(IDS, 20, random.Random(3))
    assert sample == draw_sample(IDS, 20, random.Random(3))
    assert sample == sorted(sample, key=IDS.index)
    assert len(set(sample)) == 20
    assert sample != draw_sample(IDS, 20, random.Random(4))


@given(st.integers(0, 60), st.integers(0, 2**32))
def test_a_sample_has_no_id_twice_and_at_most_all(n: int, seed: int) -> None:
    sample = draw_sample(IDS, n, random.Random(seed))
    assert len(sample) == len(set(sample)) == min(n, 50)
    assert set(sample) <= set(IDS)
    if n >= 50:
        assert sample == IDS


def test_every_id_is_as_likely_as_any_other() -> None:
    rng = random.Random(0)
    counts = dict.fromkeys(IDS[:5], 0)
    for _ in range(5000):
        for name in draw_sample(IDS[:5], 2, rng):
            counts[name] += 1
    # 2 of 5 in 5000 draws: 2000 each, standard deviation sqrt(5000 * .4 * .6) = 35
    assert all(abs(count - 2000) < 5 * 35 for count in counts.values())


def test_less_than_no_ids_are_refused() -> None:
    with pytest.raises(ValueError, match="at least 0"):
        draw_sample(IDS, -1, random.Random(0))
