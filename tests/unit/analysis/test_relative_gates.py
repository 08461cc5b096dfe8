"""Gates relative to a baseline: decided by both ends of the paired interval, never by a difference of another kind."""

import random
from array import array
from dataclasses import replace
from typing import Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from judgekit.analysis.deltas import MEAN_METHOD, Pairs, paired_delta
from judgekit.analysis.gates import check_gate_names, failures, parse_fail_on
from judgekit.analysis.relative_gates import LEAST_ALIKE, decide, held_against, undecided
from judgekit.core.comparison import Cause, Comparison, Delta
from judgekit.core.conditions import Gate
from judgekit.core.errors import ConfigError
from judgekit.core.scores import Column, Failed, Scale
from judgekit.metrics.answer_checks import AnswerChecks
from judgekit.metrics.operations import Operations


def delta(
    value: float | None,
    low: float | None,
    high: float | None,
    better: Literal["higher", "lower"] | None = "higher",
    **more: Any,
) -> Delta:
    known: dict[str, Any] = {"name": "m", "a": 0.5, "b": 0.5, "n": 50, "n_units": 50, "method": MEAN_METHOD}
    return Delta(**known | more, delta=value, low=low, high=high, scale=Scale(unit="number", better=better))


def comparison(*deltas: Delta, **more: Any) -> Comparison:
    fields: dict[str, Any] = dict.fromkeys(("only_in_a", "only_in_b", "changed", "causes"), ()) | more
    return Comparison(
        run_a="a", run_b="b", aggregate_a={}, aggregate_b={}, deltas=deltas, chunker_version_match="exact",
        per_query=(), changed_cases={}, k=5, n_shared=50, **fields,
    )  # fmt: skip


def gate(margin: float = 0.1, **more: Any) -> Gate:
    return Gate.model_validate({"metric": "m", "not_worse_than": "latest:main", "margin": margin, **more})


@pytest.mark.parametrize(
    ("low", "high", "higher_is_better", "passed"),
    [
        (-0.09, 0.05, True, True),  # wholly on the good side of -0.1
        (-0.1, 0.05, True, True),  # its end on the margin
        (-0.11, 0.05, True, None),  # -0.1 lies within
        (-0.3, -0.11, True, False),  # wholly beyond
        (-0.3, -0.1, True, None),
        (0.2, 0.4, True, True),
        (-0.05, 0.09, False, True),  # lower is better: +0.1 is the margin
        (-0.05, 0.11, False, None),
        (0.11, 0.3, False, False),
        (-0.4, -0.2, False, True),
    ],
)
def test_the_whole_interval_decides_in_the_direction_of_the_figure(
    low: float, high: float, higher_is_better: bool, passed: bool | None
) -> None:
    found = decide(delta((low + high) / 2, low, high, "higher" if higher_is_better else "lower"), 0.1)
    assert (found.passed, found.low, found.high) == (passed, low, high)
    assert (found.reason is None) == (passed is not None)


@given(st.floats(-1, 1), st.floats(0, 0.5), st.floats(0, 0.5), st.booleans())
def test_to_turn_the_scale_round_changes_no_decision(middle: float, half: float, margin: float, up: bool) -> None:
    there = decide(delta(middle, middle - half, middle + half, "higher" if up else "lower"), margin)
    back = decide(delta(-middle, -middle - half, -middle + half, "lower" if up else "higher"), margin)
    assert there.passed is back.passed


def test_equal_differences_decide_from_six_pairs_on() -> None:
    alike = delta(0.0, None, None, n=LEAST_ALIKE, n_units=LEAST_ALIKE)
    assert decide(alike, 0.1).passed is True
    assert decide(replace(alike, delta=-1.0), 0.1).passed is False
    few = decide(replace(alike, n=5, n_units=5), 0.1)
    assert (few.passed, few.reason) == (None, "5 pairs are too few for an interval")


COLUMN = Column("m", high=5.0)


def paired(a: list[Any], b: list[Any], column: Column = COLUMN, clusters: bool = False) -> Delta:
    pairs = Pairs(column)
    for number, (first, second) in enumerate(zip(a, b, strict=True)):
        pairs.add(first, second, "exclude", number // 2 if clusters else None)
    return paired_delta("m", pairs)


@pytest.mark.parametrize("clusters", [False, True])
def test_a_run_that_fails_on_its_hard_cases_does_not_pass_by_it(clusters: bool) -> None:
    rng = random.Random(1)
    a = [float(rng.randint(3, 5)) for _ in range(40)]
    b: list[Any] = [value if rng.random() < 0.9 else value - 1 for value in a]
    assert decide(paired(a, b, clusters=clusters), 0.5).passed is True
    b[:20] = [Failed("timeout")] * 20  # from about 4 to 0 in half of the cases
    found = decide(paired(a, b, clusters=clusters), 0.5)
    assert found.passed is False
    assert found.note == "20 failed cases counted as the worst"
    b[:] = [Failed("timeout")] * 40
    assert decide(paired(a, b, clusters=clusters), 0.5).passed is False


def test_the_interval_with_failed_cases_is_that_of_a_run_which_scored_the_worst() -> None:
    a, b = [4.0, 3.0, 5.0, 2.0, 4.0], [4.0, 4.0, 4.0, Failed("x"), Failed("x")]
    found = paired(a, b)
    as_scores = paired(a, [value if isinstance(value, float) else 0.0 for value in b])
    ends = (found.delta_if_failed_worst, found.low_if_failed_worst, found.high_if_failed_worst)
    assert ends == (as_scores.delta, as_scores.low, as_scores.high)


def test_failures_that_nothing_bounds_leave_it_open() -> None:
    pairs = Pairs(Column("m", high=float("inf"), higher_is_better=False))
    for _ in range(20):
        pairs.add(1.0, 1.0, "exclude")
    pairs.add(1.0, Failed("timeout"), "exclude")
    found = decide(paired_delta("m", pairs), 1.0)
    assert found.passed is None
    assert found.reason is not None
    assert found.reason.startswith("1 cases with a value in the baseline failed")


MIXED: dict[str, Any] = {"mixed": ("judge m: model (x, then y)",)}


@pytest.mark.parametrize(
    ("against", "reason"),
    [
        (comparison(delta(0.2, 0.1, 0.3, **MIXED)), "not of the systems alone, judge m: model (x, then y)"),
        (comparison(delta(0.2, 0.1, 0.3), same_run="a and b are one run, b"), "passes every gate against itself"),
        (comparison(delta(0.2, 0.1, 0.3), notices=(("same_answers", ""),)), "of the judge and not of the system"),
        (
            comparison(delta(0.2, 0.1, 0.3), causes=(Cause("dataset", "data set", "x", "y", is_refused=True),)),
            "the runs cannot be compared, data set (x, then y); make a run of the same cases the baseline",
        ),
        (
            comparison(delta(0.2, 0.1, 0.3), causes=(Cause("metric", "definition of figures", "1", "2"),)),
            "definition of figures (1, then 2); rescore the baseline",
        ),
        (comparison(), "neither run has it"),
        (comparison(without_value=("m",)), "neither run has a value of it"),
        (comparison(left_out=("m",)), "the runs have different chunkers"),
        (comparison(delta(None, None, None, n=0)), "no case has a value in both runs"),
        (comparison(delta(0.2, 0.1, 0.3, None)), "it is not known which way is better"),
        (comparison(delta(0.2, None, None, method="sum")), "it has no interval"),
    ],
)
def test_a_difference_that_is_not_of_the_systems_never_passes(against: Comparison, reason: str) -> None:
    found = held_against(gate(), against)
    assert (found.passed, found.state, found.fails) == (None, "undecided", False)
    assert found.baseline is not None
    assert reason in (found.baseline.reason or "")
    assert reason in found.message
    assert held_against(gate(undecided="fail"), against).fails


def test_causes_of_another_judge_do_not_touch_a_figure_without_it() -> None:
    causes = (Cause("judge", "judge other: model", "x", "y", is_refused=True, judges=("other",)),)
    assert held_against(gate(), comparison(delta(0.2, 0.1, 0.3), causes=causes)).passed is True


def test_the_message_has_the_difference_its_interval_and_its_pairs() -> None:
    found = held_against(gate(), comparison(delta(-0.02, -0.08, 0.04), only_in_a=("x", "y")))
    assert found.message == (
        "m not worse than latest:main (a) by more than 0.1: passed, -0.0200 (95% -0.0800 to +0.0400, 50 pairs, "
        "2 cases of the baseline are not in this run)"
    )
    clustered = held_against(gate(), comparison(delta(-0.02, -0.08, 0.04, n_units=10)))
    assert "50 pairs, in 10 clusters)" in clustered.message
    assert undecided(gate(), "no baseline yet").message == (
        "m not worse than latest:main by more than 0.1: undecided, no baseline yet"
    )


def test_coverage_is_held_against_the_baseline_too() -> None:
    lost = delta(0.0, -0.01, 0.01, n=30, n_only_a=20)
    found = held_against(gate(metric="m.coverage"), comparison(lost))
    assert (found.passed, found.n) == (False, 50)  # 20 of 50 verdicts are gone


def test_compare_fails_on_gates_that_are_missed_or_undecided_where_that_fails() -> None:
    wanted = parse_fail_on(["gates"])
    base = comparison(delta(-0.5, -0.6, -0.4))
    missed, open_ = held_against(gate(), base), undecided(gate(), "few")
    assert "missed" in failures(replace(base, gates=(missed, open_)), wanted)[0]
    assert failures(replace(base, gates=(open_,)), wanted) == ()
    assert failures(replace(base, gates=(undecided(gate(undecided="fail"), "few"),)), wanted)
    assert failures(base, wanted) == ("gates: the config of b has no gate with not_worse_than",)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({}, '"op" and "value", or "not_worse_than" and "margin"'),
        ({"op": ">="}, '"op" and "value", or'),
        ({"op": ">=", "value": 1, "margin": 0.1}, '"margin" and "undecided" belong to "not_worse_than"'),
        ({"op": ">=", "value": 1, "undecided": "fail"}, "belong to"),
        ({"not_worse_than": "latest"}, '"not_worse_than" needs "margin"'),
        ({"not_worse_than": "latest", "margin": 0.1, "op": ">="}, "drop 'op'"),
        ({"not_worse_than": "latest", "margin": 0.1, "bound": "lower"}, "drop 'bound'"),
        ({"not_worse_than": "latest", "margin": 0.1, "slice": {"category": "a"}}, "drop 'slice'"),
        ({"not_worse_than": "latest", "margin": -0.1}, "greater than or equal to 0"),
        ({"not_worse_than": "", "margin": 0.1}, "at least 1 character"),
    ],
)
def test_a_gate_asks_one_thing(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        Gate.model_validate({"metric": "m", **fields})


@pytest.mark.parametrize("fields", [{"op": ">=", "value": 1}, {"not_worse_than": "latest", "margin": 0}])
def test_a_gate_comes_back_from_its_stored_form(fields: dict[str, Any]) -> None:
    stored = Gate.model_validate({"metric": "m", **fields})
    assert Gate.model_validate(stored.model_dump(exclude_none=True)) == stored


@pytest.mark.parametrize(
    ("metric", "message"),
    [
        ("risk_coverage.aurc", "of the whole run: it has no paired interval"),
        ("judge_reliability.disagreement_rate", "of the whole run"),
        ("cost.usd", "of the whole run"),
        ("latency.judge.p50_ms", "of the whole run"),
        ("keyword_groundednes", "did you mean 'keyword_groundedness'"),
    ],
)
def test_a_figure_without_a_paired_interval_is_refused(metric: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        check_gate_names([gate(metric=metric)], [AnswerChecks(), Operations()])


@pytest.mark.parametrize(
    "metric", ["keyword_groundedness", "keyword_groundedness.coverage", "latency.total.p95_ms", "usage.prompt_tokens"]
)
def test_figures_that_compare_has_with_an_interval_are_taken(metric: str) -> None:
    check_gate_names([gate(metric=metric)], [AnswerChecks(), Operations()])


@pytest.mark.slow
def test_a_system_that_is_worse_by_just_the_margin_passes_in_one_run_of_forty() -> None:
    rng = random.Random(7)
    n_runs, passes, misses = 2000, 0, 0
    for _ in range(n_runs):
        pairs = Pairs(COLUMN)
        pairs.a = array("d", [0.0] * 40)
        pairs.b = array("d", [rng.gauss(-0.3, 1.0) for _ in range(40)])
        low_high = paired_delta("m", pairs)
        found = decide(low_high, 0.3).passed
        passes += found is True
        misses += found is False
    # 2.5% each, standard error 0.35 points.
    assert 0.015 < passes / n_runs < 0.036
    assert 0.015 < misses / n_runs < 0.036
