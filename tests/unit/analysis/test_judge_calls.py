"""What gave a set of verdicts, what stays of an earlier report, and what copied judgments cost."""

from collections.abc import Sequence
from itertools import groupby
from operator import attrgetter
from typing import Any

from judgekit.analysis.disagreement_rates import kept_parts, unstable_warning
from judgekit.analysis.judge_calls import CallCounts, Costs, JudgeCalls, PerVerdict
from judgekit.analysis.spot_check_findings import spot_check_report
from judgekit.analysis.verdict_pairs import Pair
from judgekit.core.cases import Usage
from judgekit.core.judgments import Judgment, Verdict
from judgekit.core.verdict_kinds import Scale


def judgment(**fields: Any) -> Judgment:
    return Judgment(
        **{
            "case_id": "a",
            "judge": "groundedness",
            "prompt_version": "v1",
            "prompt_sha256": "0" * 64,
            "input_sha256": "1" * 64,
            "model_id": "m",
            "provider": "openai_compatible",
            "model": "m-2025-01-01",
            "key": "k",
            "parameters": {"temperature": 0},
            "verdict": Verdict(score=5),
            "parser_version": 1,
            "n_requests": 1,
            "usage": Usage(prompt_tokens=10, completion_tokens=5),
            "cost_usd": 0.5,
            "created_at": "2026-01-31T00:00:00+00:00",
            **fields,
        }
    )


def instrument(judgments: Sequence[Judgment]) -> dict[str, Any]:
    counts = CallCounts()
    for item in judgments:
        counts.add(item)
    return counts.instrument()


def per_verdict(judgments: Sequence[Judgment]) -> dict[str, PerVerdict]:
    calls = JudgeCalls()
    for _, of_case in groupby(judgments, key=attrgetter("case_id")):
        calls.add_stored([*of_case])
    return calls.per_verdict()


def test_an_instrument_that_changed_under_way_shows_it() -> None:
    found = instrument(
        [
            judgment(served_model="m-a", fingerprint="f1"),
            judgment(served_model="m-a", temperature_accepted=False),
            judgment(served_model="m-b", fingerprint="f2", parser_version=2),
        ]
    )
    assert found["served_models"] == {"m-a": 2, "m-b": 1}
    assert found["fingerprints"] == {"f1": 1, "f2": 1}
    assert (found["temperature"], found["temperature_accepted"]) == (0, False)
    assert found["parser_versions"] == [1, 2]


def test_no_judgment_is_no_instrument() -> None:
    found = instrument([])
    assert (found["model"], found["temperature_accepted"], found["served_models"]) == (None, None, {})


def test_parts_that_come_from_elsewhere_are_kept_and_those_of_a_check_are_not() -> None:
    earlier = {"by_judge": {"a": {"anchors": {"n": 1}, "alarm": {}, "disagreement_rate": 0.1}}}
    assert kept_parts(earlier, "a") == {"anchors": {"n": 1}}
    assert kept_parts(earlier, "b") == kept_parts(None, "a") == kept_parts({}, "a") == {}


def test_what_was_copied_cost_nothing_here() -> None:
    found = Costs([judgment(), judgment(copied_from="parent")]).record(None)
    assert (found["n_calls"], found["prompt_tokens"], found["usd"]) == (1, 10, 0.5)


def test_an_unstable_judge_is_named_with_who_disagrees() -> None:
    report = {
        "n_disagree": 3,
        "spot_check_n": 6,
        "disagreement_rate": 0.5,
        "interval": {"low": 0.19, "high": 0.81},
        "threshold": 0.2,
    }
    assert unstable_warning("a", report, "m, prompt v2").startswith(
        "judge a: 3 of 6 spot-checked verdicts disagree with m, prompt v2 (rate 0.50, 95% interval 0.19 to 0.81)"
    )


def test_a_judge_whose_check_is_of_one_cluster_is_reported_without_an_interval() -> None:
    pairs = [Pair(f"c{number}", Verdict(score=5), Verdict(score=0)) for number in range(4)]
    report = spot_check_report(pairs, kind=Scale(pass_score=4), seed=0, against={}, clusters=[7, 7, 7, 7])
    assert report["fired"]
    assert unstable_warning("a", report).startswith(
        "judge a: 4 of 4 spot-checked verdicts disagree with the second opinion (rate 1.00, no interval: fewer than 2 "
        "clusters), more than 0.20; read"
    )


def test_what_a_verdict_takes_is_the_mean_over_cases() -> None:
    # groundedness: 3 requests and a reply of the cache, which will be a request, over 2 cases; 1 USD for 3 requests
    found = per_verdict(
        [
            judgment(case_id="a", n_requests=3, cost_usd=1.0),
            judgment(case_id="b", n_requests=0, from_cache=True, cost_usd=None),
            judgment(case_id="a", role="spot_check", check="1", n_requests=9),
            judgment(case_id="a", judge="unpriced", cost_usd=None),
            judgment(case_id="a", judge="embedded", n_requests=0, cost_usd=None),
        ]
    )
    assert found["groundedness"] == PerVerdict(2.0, 2.0 / 3)
    assert found["unpriced"] == PerVerdict(1.0, None)
    assert found["embedded"] == PerVerdict(0.0, 0.0)


def test_a_verdict_of_a_panel_takes_the_calls_of_all_members() -> None:
    members = [judgment(role="member", model_id=name, cost_usd=0.1) for name in "abc"]
    found = per_verdict([*members, judgment(provider="panel", n_requests=0, cost_usd=None)])
    assert found["groundedness"].calls == 3.0
    assert abs((found["groundedness"].usd or 0.0) - 0.3) < 1e-12
