"""The sentence that says what a run found."""

from typing import Any

import pytest

from judgekit.core.conditions import AgainstBaseline, GateResult
from judgekit.core.runs import RunSummary
from judgekit.core.scores import Estimate, Scale
from judgekit.reports.run_sentence import run_sentence

JUDGE = {"n_judged": 40, "n_failed": 0, "failures": {}, "is_llm": True}


def estimate(value: float, low: float, high: float, n: int = 40) -> Estimate:
    return Estimate(value=value, low=low, high=high, n=n, n_not_applicable=0, n_error=0, method="mean")


def gate(passed: bool | None, **parts: Any) -> GateResult:
    given = {"metric": "mrr", "op": ">=", "value": 0.7, "bound": "point", "observed": 0.8, "n": 40, "message": ""}
    return GateResult(**{**given, "passed": passed, **parts})


def summary(**parts: Any) -> RunSummary:
    whole: dict[str, Any] = {
        "run_id": "run-1",
        "name": "suite",
        "created_at": "2026-01-01",
        "status": "complete",
        "config_sha256": "0",
        "errors": "exclude",
        "cases": {"n": 40, "n_in_file": 40},
        "overall": {"mrr": estimate(0.8, 0.75, 0.85), "correctness": estimate(4.1, 3.8, 4.4)},
        "slices": {},
        "judge_reliability": None,
        "judges": {},
        "latency": {},
        "cost": {"n_calls": 0, "n_from_cache": 0},
        "operational": {},
    }
    return RunSummary(**{**whole, **parts})


def test_it_is_good_where_all_gates_passed() -> None:
    assert run_sentence(summary(n_gates=2, gates=(gate(True), gate(True)))) == "Good enough: both gates passed."


def test_a_limit_inside_the_interval_is_said() -> None:
    found = summary(n_gates=1, gates=(gate(True, value=0.78),))
    assert run_sentence(found) == (
        "Good enough on these cases: the only gate passed, but its interval reaches past the limit."
    )


def test_it_names_what_was_missed_and_by_how_much() -> None:
    missed = gate(False, observed=0.61)
    worse = AgainstBaseline(not_worse_than="latest:main", run_id="run-0", higher_is_better=True)
    relative = gate(False, metric="correctness", op="not_worse_than", value=0.1, observed=-0.4, baseline=worse)
    assert run_sentence(summary(n_gates=3, gates=(missed, relative, gate(True)))) == (
        "Not good enough: 2 of 3 gates missed. mrr is 0.610, at least 0.700 was asked; "
        "correctness is worse than the baseline by 0.400, 0.100 was allowed."
    )


def test_a_missed_gate_says_its_unit_and_that_failed_cases_counted() -> None:
    failed = estimate(0.9, 0.8, 0.95).model_copy(update={"n_error": 2})
    scale = Scale(unit="share", low=0.0, high=1.0, better="higher")
    found = summary(n_gates=1, gates=(gate(False, observed=0.61),), overall={"mrr": failed}, scales={"mrr": scale})
    assert run_sentence(found).endswith("mrr is 61% with its failed cases as the worst, at least 70% was asked.")


def test_a_gate_without_a_baseline_names_the_reason() -> None:
    nothing = AgainstBaseline(not_worse_than="latest:main", reason="no run has the tag main")
    found = summary(n_gates=1, gates=(gate(None, op="not_worse_than", baseline=nothing),))
    assert run_sentence(found).endswith("none missed. The reason: no run has the tag main.")


def test_an_undecided_gate_is_neither_good_nor_bad() -> None:
    assert run_sentence(summary(n_gates=2, gates=(gate(None), gate(True)))).startswith(
        "Not decided: 1 of 2 gates undecided (mrr), none missed."
    )


def test_without_gates_the_main_figures_stand_there() -> None:
    assert run_sentence(summary(judges={"correctness": JUDGE})) == (
        "No gate says what is good enough; correctness is 4.100 (95% 3.800 to 4.400) and mrr is 0.800 "
        "(95% 0.750 to 0.850). Nobody has checked the judges against people yet: `judgekit label run-1`."
    )


@pytest.mark.parametrize("passed", [True, False])
def test_a_run_in_which_every_call_failed_is_never_good(passed: bool) -> None:
    broken = {"n_judged": 0, "n_failed": 40, "failures": {"http_401": 40}, "is_llm": True}
    said = run_sentence(summary(judges={"correctness": broken}, n_gates=1, gates=(gate(passed),)))
    assert said.startswith("The judge correctness gave no verdict in 40 of 40 cases (http_401)")
    assert "judgekit run --resume run-1" in said
    failed = run_sentence(summary(operational={"error_rate": estimate(0.9, 0.8, 1.0)}))
    assert failed.startswith("The system failed in 36 of 40 cases")


def test_an_alarm_of_the_spot_check_comes_before_all_else_about_judges() -> None:
    people = {"class_agreement": {"value": 0.9, "n": 60, "low": 0.8, "high": 0.96}}
    checked: dict[str, Any] = {"anchors": people}
    calm = summary(judges={"correctness": JUDGE}, judge_reliability={"by_judge": {"correctness": checked}})
    assert run_sentence(calm).endswith("The judge correctness agrees with people in 54 of 60 cases (80% to 96%).")
    loud = checked | {"alarm": {"fired": True}, "n_disagree": 8, "spot_check_n": 20}
    found = summary(judges={"correctness": JUDGE}, judge_reliability={"by_judge": {"correctness": loud}})
    assert "a second judge contradicts it in 8 of 20 checked cases." in run_sentence(found)


def test_an_unfinished_run_says_so_first() -> None:
    found = summary(status="interrupted", n_gates=1, gates=(gate(True),))
    assert run_sentence(found).startswith("The run is not finished, so this is of a part: good enough")


def test_a_run_that_stopped_early_tells_nothing_of_its_few_verdicts() -> None:
    few = estimate(0.0, 0.0, 0.0, n=1).model_copy(update={"n_error": 33})
    none = {"n_judged": 0, "n_failed": 0, "failures": {}, "is_llm": True}
    found = summary(
        status="interrupted",
        reason="cannot reach the server",
        judges={"correctness": none},
        overall={"correctness": few},
    )
    said = run_sentence(found)
    assert said.startswith("The judge correctness gave no verdict in 33 of 34 cases (cannot reach the server)")
    assert "judgekit run --resume run-1" in said
