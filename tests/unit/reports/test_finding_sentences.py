"""What each command says first."""

from dataclasses import replace
from typing import Any

import pytest

from judgekit.core.comparison import Cause, Comparison, Delta, QueryChange, ScoreChange
from judgekit.core.scores import Scale
from judgekit.reports.finding_sentences import (
    bridge_sentences,
    calibration_sentence,
    comparison_sentence,
    drift_sentence,
    probe_sentence,
    spot_check_sentence,
)


def spot_check(status: str, n_disagree: int, n: int, n_to_decide: int | None = None, kind: str = "model") -> Any:
    return {
        "spot_check": {"n_scored": n, "interval_future": {"low": 0.05, "high": 0.36}},
        "alarm": {"status": status, "threshold": 0.2, "n_to_decide": n_to_decide},
        "n_disagree": n_disagree,
        "against": {"kind": kind},
    }


@pytest.mark.parametrize(
    ("report", "said"),
    [
        (
            spot_check("alarm", 9, 20),
            "Do not rely on j yet: the second opinion disagrees in 9 of 20 verdicts (95% 5.0% to 36%), and 20% is too "
            "much. Read the pairs that disagree: --stats.",
        ),
        (
            spot_check("ok", 1, 20, kind="repeat"),
            "No alarm for j: the same judge, asked again, disagrees in 1 of 20 verdicts (95% 5.0% to 36%); the limit "
            "is 20%.",
        ),
        (
            spot_check("inconclusive", 3, 20, 30),
            "Not decided for j: the second opinion disagrees in 3 of 20 verdicts (95% 5.0% to 36%), and 20% is the "
            "limit; about 30 pairs would decide: --n 30.",
        ),
        (spot_check("inconclusive", 0, 0), "Nothing can be said of j: no pair of verdicts could be had."),
    ],
)
def test_a_spot_check(report: Any, said: str) -> None:
    assert spot_check_sentence("j", report) == said


def labels(k: int, n: int, low: float, high: float, direction: str | None = None) -> Any:
    same = {"k": k, "n": n, "low": low, "high": high, "value": k / n if n else None}
    return {"anchors": {"class_agreement": same, "n": n, "bias": {"direction": direction}}}


@pytest.mark.parametrize(
    ("report", "said"),
    [
        (
            labels(54, 60, 0.80, 0.95),
            "j agrees with people in 54 of 60 cases (95% 80% to 95%); enough to compare systems, not to gate at 90%.",
        ),
        (
            labels(198, 200, 0.96, 0.997),
            "j agrees with people in 198 of 200 cases (95% 96% to 99.7%); enough to gate ",
        ),
        (
            labels(30, 100, 0.22, 0.4),
            "j agrees with people in 30 of 100 cases (95% 22% to 40%); too little to rely on",
        ),
        (labels(9, 10, 0.6, 0.98), "j agrees with people in 9 of 10 cases (95% 60% to 98%); too few labels to say "),
        (labels(0, 0, 0.0, 1.0), "Nothing can be said of j: no verdict has a human label."),
    ],
)
def test_a_calibration(report: Any, said: str) -> None:
    assert calibration_sentence("j", report, "r").startswith(said)


def test_few_labels_are_asked_for() -> None:
    assert calibration_sentence("j", labels(26, 28, 0.77, 0.98), "r").endswith(
        "Label 22 more cases to learn whether it is too mild or strict: `judgekit label r --judge j`."
    )


@pytest.mark.parametrize(
    ("state", "said"),
    [
        ("none", "No drift of j v1 was found in 3 points."),
        ("insufficient", "Too little is known of j v1 to tell drift: 3 points so far."),
        ("not asked", "j v1 was never asked again, so nothing says that it did not drift"),
        ("judge", "j v1 drifted: it judges the same answers differently. Do not compare scores across it"),
        ("system", "j v1 is stable, and the answers of the system changed"),
        ("judge+system", "j v1 drifted, and the answers of the system changed too"),
        ("instrument", "j v1 is another instrument than before"),
    ],
)
def test_drift(state: str, said: str) -> None:
    report = {"judge": "j", "prompt_version": "v1", "timeline": [{}] * 3, "state": state}
    assert drift_sentence(report).startswith(said)


def test_probes() -> None:
    probes = {
        "unchanged": {"verdict": "passed"},
        "answer_padded": {"verdict": "failed", "reason": "scores move, and they should not"},
        "injection_answer": {"verdict": "unclear"},
        "criteria_shuffled": {"verdict": "not measured"},
    }
    assert probe_sentence("j", {"probes": probes}) == (
        "j fails 1 of 3 probes. answer_padded: scores move, and they should not. 1 unclear (injection_answer): more "
        "cases would decide, --n."
    )
    assert probe_sentence("j", {"probes": {"unchanged": {"verdict": "passed"}}}) == (
        "j passes 1 of 1 probes and fails none."
    )
    assert probe_sentence("j", {"probes": {}}) == "Nothing can be said of j: no probe could be measured."


def bridge(
    total: float | None, system: float = 0.0, judge: float = 0.0, *, same: bool = False, unit: str = "points"
) -> Any:
    ends = {"low": None, "high": None}
    figure = {
        "total": {"value": total, **ends},
        "system": {"value": system, "low": -0.1, "high": 0.3},
        "judge": {"value": judge, **ends},
        "scale": {"unit": unit, "high": 5.0, "better": "higher"},
    }
    runs = {"old": "a", "new": "b", "old_by_new_judge": None if same else "a-by-new"}
    return {**runs, "judges": {"j": {"same_judge": same, "figures": {"j": figure}}}}


@pytest.mark.parametrize(
    ("found", "said"),
    [
        (
            bridge(-0.8, 0.1, -0.9),
            "j moved by -0.80: +0.10 (-0.10 to +0.30) is due to the system, -0.90 to the judge.",
        ),
        (
            bridge(0.1, 0.1, same=True),
            "j moved by +0.10, all of it the system's: the judge is the same in both runs.",
        ),
        (bridge(0.0, same=True), "j did not move."),
        (
            bridge(-0.387, 0.1, -0.487, unit="share"),
            "j moved by -38.7 pp: +10.0 pp (-10.0 to +30.0) is due to the system, -48.7 pp to the judge.",
        ),
        (bridge(None), "Nothing can be said of j: no case has a verdict in both runs."),
    ],
)
def test_a_bridge(found: Any, said: str) -> None:
    first, *step = bridge_sentences(found)
    assert first == said
    compared = f"judgekit compare {found['old_by_new_judge'] or 'a'} b"
    assert step == ([] if said.startswith("Nothing") else [f"See which answers moved: `{compared}`."])


def test_a_bridge_without_a_system_part_shows_the_verdicts_of_both_judges() -> None:
    assert list(bridge_sentences(bridge(-0.9, 0.0, -0.9)))[1:] == [
        "See which verdicts differ: `judgekit compare a a-by-new --allow-mismatch`."
    ]


def comparison(*deltas: Delta, n_shared: int = 3, causes: tuple[Cause, ...] = (), **other: Any) -> Comparison:
    return Comparison(
        run_a="old",
        run_b="new",
        aggregate_a={},
        aggregate_b={},
        deltas=deltas,
        chunker_version_match="unknown",
        per_query=(),
        only_in_a=(),
        only_in_b=(),
        changed=(),
        changed_cases={},
        k=10,
        n_shared=n_shared,
        causes=causes,
        **other,
    )


def delta(value: float, p_holm: float | None) -> Delta:
    return Delta("mrr", 0.5, 0.5 + value, value, 3, p_holm=p_holm, scale=Scale(unit="number", better="higher"))


@pytest.mark.parametrize(
    ("found", "said"),
    [
        (comparison(n_shared=0), "Nothing can be compared: old and new share no case."),
        (comparison(same_run="one folder"), "Both are one run (one folder), so nothing can differ."),
        (comparison(delta(0.2, 0.01)), "new is better in mrr, over 3 shared cases."),
        (
            comparison(delta(0.2, 0.01), causes=(Cause("judge", "judge j", "m", "n"),)),
            "new is better in mrr, over 3 shared cases. 1 thing changed besides the answers, so a difference is not of "
            "the answers alone.",
        ),
        (comparison(delta(-0.2, 0.01)), "new is worse in mrr, over 3 shared cases."),
        (
            comparison(delta(0.2, 0.4)),
            "No evidence that new is better or worse than old, over 3 shared cases, adjusted for 1 figure.",
        ),
        (
            comparison(delta(0.2, None), n_shared=1),
            "No evidence that new is better or worse than old, over 1 shared case, and no figure could be tested.",
        ),
    ],
)
def test_a_comparison_says_which_run_is_better_and_how_certain_that_is(found: Comparison, said: str) -> None:
    assert comparison_sentence(found) == said


def test_an_answer_that_has_no_verdict_any_more_is_not_called_worse() -> None:
    changes = {
        "c1": ScoreChange(5.0, None, "regression", 1.0, "failed: timeout"),
        "c2": ScoreChange(5.0, 2.0, "regression", 0.6),
        "c3": ScoreChange(2.0, 3.0, "win"),
        "c4": ScoreChange(4.0, 4.0, "draw"),
    }
    queries = tuple(QueryChange(case_id, "draw", scores={"tone": change}) for case_id, change in changes.items())
    found = replace(comparison(n_shared=4), per_query=queries)
    assert "1 answers better, 1 worse, 1 the same, 1 with no value now by tone." in comparison_sentence(found)
