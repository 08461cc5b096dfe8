"""What `--fail-on` asks, and whether a comparison has it."""

from typing import Any

import pytest

from judgekit.analysis.gates import Condition, failures, parse_fail_on
from judgekit.core.comparison import Comparison, Delta, QueryChange, ScoreChange
from judgekit.core.errors import ConfigError
from judgekit.core.scores import Scale

UP = Scale(unit="number", better="higher")


def comparison(*deltas: Delta, queries: tuple[QueryChange, ...] = (), **more: Any) -> Comparison:
    fields: dict[str, Any] = dict.fromkeys(("only_in_a", "only_in_b", "changed", "causes"), ()) | more
    return Comparison(
        run_a="a", run_b="b", aggregate_a={}, aggregate_b={}, deltas=deltas, chunker_version_match="exact",
        per_query=queries, changed_cases={}, k=5, n_shared=1, **fields,
    )  # fmt: skip


def delta(value: float | None, **fields: Any) -> Delta:
    return Delta(**{"name": "recall_any@5", "a": 0.5, "b": 0.5, "delta": value, "n": 10, **fields})


@pytest.mark.parametrize(
    ("text", "parsed"),
    [
        ("regression", "regression"),
        ("significant", "significant"),
        ("recall_any@5<-0.02", Condition("recall_any@5", "<", -0.02)),
        ("empty_result > 0.02", Condition("empty_result", ">", 0.02)),
        ("groundedness.unsupported_claim_rate>=+.5", Condition("groundedness.unsupported_claim_rate", ">=", 0.5)),
        ("mrr<=1e-3", Condition("mrr", "<=", 0.001)),
    ],
)
def test_forms(text: str, parsed: object) -> None:
    assert parse_fail_on([text]) == (parsed,)


@pytest.mark.parametrize("text", ["", "mrr", "mrr<", "<0.1", "mrr<nan", "mrr<0.1x", "mrr=0.1", "regresion"])
def test_other_forms_are_refused(text: str) -> None:
    with pytest.raises(ConfigError, match="expected regression, significant, gates, or a difference"):
        parse_fail_on([text])


@pytest.mark.parametrize(
    ("value", "text", "fails"),
    [
        (-0.03, "recall_any@5<-0.02", True),
        (-0.02, "recall_any@5<-0.02", False),
        (0.7 - 0.72, "recall_any@5<-0.02", False),  # -0.02 but for the last digit of a float
        (0.7 - 0.72, "recall_any@5<=-0.02", True),
        (0.03, "recall_any@5<-0.02", False),
        (0.03, "recall_any@5>0.02", True),
        (None, "recall_any@5<-0.02", True),  # no data must not pass
    ],
)
def test_a_limit_is_met_with_a_tolerance_and_missing_data_fails(value: float | None, text: str, fails: bool) -> None:
    found = failures(comparison(delta(value)), parse_fail_on([text]))
    assert bool(found) is fails
    assert all("recall_any@5" in line for line in found)


def test_failed_cases_cannot_help_to_pass() -> None:
    found = failures(
        comparison(delta(0.0, delta_if_failed_worst=-0.1, n_failed_b=3)), parse_fail_on(["recall_any@5<-0.02"])
    )
    assert "difference -0.1000 with failed cases as the worst (0 in a, 3 in b)" in found[0]


def test_significant_names_what_is_worse_and_not_what_is_better() -> None:
    worse = delta(-0.3, p=0.001, p_holm=0.01, scale=UP)
    better = delta(-0.3, name="error_rate", p=0.001, p_holm=0.01, scale=Scale(unit="share", better="lower"))
    weak = delta(-0.3, name="mrr", p=0.001, p_holm=0.06, scale=UP)
    assert failures(comparison(worse, better, weak), ["significant"]) == ("significant: recall_any@5 -0.3000 worse",)
    assert failures(comparison(better, weak), ["significant"]) == ()


def test_regressions_are_named_the_first_five() -> None:
    queries = tuple(QueryChange(f"q{number}", "regression", 1) for number in range(7))
    (line,) = failures(comparison(queries=(*queries, QueryChange("w", "win"))), ["regression"])
    assert line == "regression: q0, q1, q2, q3, q4, ... (7 cases); first correct hit 7"
    assert failures(comparison(queries=(QueryChange("w", "loss", 1, 2),)), ["regression"]) == ()


def test_a_figure_that_neither_run_has_is_an_error() -> None:
    with pytest.raises(ConfigError, match=r"no figure called 'recall_any@6'.*did you mean 'recall_any@5'"):
        failures(comparison(delta(0.0)), parse_fail_on(["recall_any@6<0"]))


def test_regressions_of_verdicts_and_of_0_1_scores_count_and_say_of_which() -> None:
    flips = {"groundedness": ScoreChange(5.0, 1.0, "regression", 0.8), "hit@5": ScoreChange(1.0, 1.0, "draw")}
    queries = (QueryChange("q", "not_applicable", scores=flips), QueryChange("w", "draw", 1, 1))
    (line,) = failures(comparison(queries=queries), ["regression"])
    assert line == "regression: q; groundedness 1"


OPERATIONAL = QueryChange("q", "not_applicable", scores={"error_rate": ScoreChange(0.0, 0.0, "draw")})
COMPARED = QueryChange("q", "not_applicable", scores={"groundedness": ScoreChange(5.0, 5.0, "draw")})


@pytest.mark.parametrize(
    ("queries", "more", "line"),
    [
        ((), {}, "regression: nothing to compare"),
        ((OPERATIONAL,), {}, "regression: nothing to compare"),
        ((QueryChange("q", "changed_case"),), {}, "regression: nothing to compare"),
        ((COMPARED,), {"dropped": ("correctness",)}, "regression: b has no correctness, so nothing"),
        ((OPERATIONAL,), {"untold": {"groundedness": 2}}, "regression: a has no value of groundedness (2 failed)"),
        ((COMPARED,), {"untold": {"groundedness": 2}}, None),  # other cases have one
        ((QueryChange("q", "draw", 1, 1),), {}, None),
    ],
)
def test_where_nothing_is_compared_no_regression_gate_passes(
    queries: tuple[QueryChange, ...], more: dict[str, Any], line: str | None
) -> None:
    found = failures(comparison(queries=queries, **more), ["regression"])
    assert [text.startswith(line or "") for text in found] == ([] if line is None else [True])


def test_significant_fails_where_no_figure_can_be_tested() -> None:
    assert failures(comparison(delta(0.1)), ["significant"]) == (
        "significant: no figure of the two runs can be tested",
    )


@pytest.mark.parametrize("more", [{"dropped": ("correctness",)}, {"untold": {"groundedness": 2}}])
def test_significant_fails_where_nothing_of_a_judge_is_compared(more: dict[str, Any]) -> None:
    (line,) = failures(comparison(delta(0.1, p=1.0, p_holm=1.0), **more), ["significant"])
    assert "can be compared" in line


def test_cases_that_nothing_bounds_fail_a_condition() -> None:
    (line,) = failures(comparison(delta(0.0, n_unbounded=3)), parse_fail_on(["recall_any@5<-0.02"]))
    assert "3 cases with a value in a failed in b, and nothing says what they would make" in line


def test_the_coverage_of_any_figure_over_cases_can_be_asked() -> None:
    # of 10 + 2 + 0 cases with a value in a run, a has 12 and b has 10
    found = comparison(delta(0.5, n_only_a=2))
    (line,) = failures(found, parse_fail_on(["recall_any@5.coverage<-0.1"]))
    assert "recall_any@5.coverage 1.0000 to 0.8333, difference -0.1667" in line
    assert failures(found, parse_fail_on(["recall_any@5.coverage<-0.2"])) == ()


def test_a_run_against_itself_and_a_figure_by_chunk_id_are_refused() -> None:
    with pytest.raises(ConfigError, match="are one run; a run passes every gate against itself"):
        failures(comparison(delta(0.0), same_run="a and b are one run"), ["regression"])
    with pytest.raises(ConfigError, match="hit@5 goes by chunk id"):
        failures(comparison(delta(0.0), left_out=("hit@5",)), parse_fail_on(["hit@5<0"]))


def test_a_figure_without_a_value_in_either_run_fails() -> None:
    found = failures(comparison(without_value=("mrr",)), parse_fail_on(["mrr<-0.1"]))
    assert found == ("mrr<-0.1: mrr has no value in either run",)
