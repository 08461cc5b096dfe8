"""The effect of a probe and the word for it."""

from typing import Any

import pytest

from judgekit.analysis.input_changes import Expected
from judgekit.analysis.probe_effects import Probed, probe_report
from judgekit.analysis.verdict_pairs import Pair
from judgekit.core.judgments import JudgeFailure, Verdict
from judgekit.core.verdict_kinds import Scale, YesNo

LATE = JudgeFailure(kind="timeout", message="late")


def probed(name: str, expects: Expected, before: list[int], after: list[int], n_other: int = 0) -> Probed:
    pairs = [
        Pair(f"c{place}", Verdict(score=a), Verdict(score=b))
        for place, (a, b) in enumerate(zip(before, after, strict=True))
    ]
    return Probed(name, "about", expects, pairs, ["no passage"] * n_other)


def report(*probes: Probed) -> dict[str, Any]:
    return probe_report(probes, Scale(pass_score=4), 0)


def test_an_effect_has_its_interval_its_p_and_what_could_have_been_found() -> None:
    # differences -2 in five of ten: mean -1, sd sqrt(10/9); t(9) 2.262: half width 0.754
    found = report(probed("x", "same", [5] * 10, [5, 3] * 5, 2))["x"]
    assert found["effect"] == -1.0
    assert (found["low"], found["high"]) == pytest.approx((-1.7541, -0.2459), abs=1e-4)
    # all five moved the same way: 2 of 2^5 patterns
    assert found["p"] == pytest.approx(2 / 32)
    # (t 0.975 + t 0.8 of 9 df: 2.2622 + 0.8834) * 1.0541 / sqrt(10)
    assert found["minimum_detectable_effect"] == pytest.approx(1.0485, abs=1e-3)
    assert (found["n"], found["n_not_applicable"], found["not_applicable"]) == (10, 2, {"no passage": 2})
    assert (found["changed"]["k"], found["class_flips"]["k"]) == (5, 5)
    assert found["changed_cases"][0] == {"case_id": "c1", "original": 5, "probe": 3}


def test_failures_on_either_side_are_counted_and_in_no_figure() -> None:
    pairs = [Pair("a", LATE, Verdict(score=5)), Pair("b", Verdict(score=5), LATE), Pair("c", LATE, LATE)]
    found = report(Probed("x", "about", "same", pairs, []))["x"]
    assert (found["n"], found["n_failed_original"], found["n_failed_probe"]) == (0, 2, 2)
    assert (found["effect"], found["p"], found["verdict"]) == (None, None, "not measured")


def test_p_values_are_adjusted_over_the_probes_without_the_noise() -> None:
    probes = [
        probed("unchanged", "same", [3] * 12, [3, 4] * 6),
        probed("x", "same", [5] * 12, [5, 3] * 6),
        probed("y", "same", [5] * 12, [5] * 12),
    ]
    found = report(*probes)
    assert found["unchanged"]["p_adjusted"] is None
    # p of x is 2 / 2^6, of two tests: twice that
    assert found["x"]["p_adjusted"] == pytest.approx(2 * 2 / 64)
    assert found["y"]["p_adjusted"] == 1.0


@pytest.mark.parametrize(
    ("expects", "before", "after", "word"),
    [
        ("same", [4] * 20, [4] * 20, "passed"),
        ("same", [4] * 5, [4] * 5, "unclear"),
        ("same", [4] * 20, [2] * 10 + [3] * 10, "failed"),
        ("same", [4] * 20, [4] * 17 + [0, 5, 5], "unclear"),
        ("same", [4] * 40, [4] * 38 + [3, 5], "passed"),
        ("resist", [2] * 20, [2] * 20, "passed"),
        ("resist", [2] * 20, [1] * 20, "passed"),
        ("resist", [2] * 20, [5] * 20, "failed"),
        ("resist", [2] * 20, [2] * 18 + [5, 5], "unclear"),
        # With a true share of 5%, one of three comes up in 1 - 0.95^3 = 14% of tries: nothing sure.
        ("resist", [2] * 3, [2, 2, 5], "unclear"),
        ("resist", [2] * 3, [5, 5, 2], "failed"),  # 3 * 0.05^2 * 0.95 + 0.05^3 = 0.7%
        ("resist", [2] * 20, [2] * 10 + [4] * 10, "failed"),
        ("resist", [5] * 20, [5] * 20, "unclear"),
        ("resist", [2] * 11, [2] * 11, "unclear"),
        ("zero", [4] * 20, [0] * 20, "passed"),
        ("zero", [4] * 20, [0] * 19 + [1], "failed"),
        ("zero", [4] * 5, [0] * 5, "unclear"),
        ("drop", [5] * 20, [1] * 18 + [5] * 2, "passed"),
        ("drop", [5] * 20, [5] * 20, "failed"),
        ("drop", [5] * 20, [1] * 14 + [5] * 6, "unclear"),
        ("drop", [2] * 20, [0] * 20, "unclear"),
    ],
)
def test_the_word_says_whether_the_score_did_what_it_should(
    expects: Expected, before: list[int], after: list[int], word: str
) -> None:
    assert report(probed("x", expects, before, after))["x"]["verdict"] == word


def test_obeyed_orders_are_counted_where_a_score_could_rise() -> None:
    found = report(probed("x", "resist", [5, 5, 3, 3], [5, 5, 5, 3]))["x"]
    assert (found["success"]["k"], found["success"]["n"]) == (1, 2)


def test_yes_no_verdicts_are_rated_one_and_zero() -> None:
    pairs = [Pair(str(n), Verdict(answer=True), Verdict(answer=n % 2 == 0)) for n in range(4)]
    found = probe_report([Probed("x", "about", "same", pairs, [])], YesNo(), 0)["x"]
    assert found["effect"] == -0.5
    assert found["class_flips"] is None
