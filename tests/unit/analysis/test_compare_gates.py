"""What `--fail-on` asks, and whether a comparison has it."""

from typing import Any

import pytest

from judgekit.analysis.compare_gates import Condition, failures, parse_fail_on
from judgekit.core.comparison import Comparison, Delta, QueryChange
from judgekit.core.errors import ConfigError


def comparison(*deltas: Delta, queries: tuple[QueryChange, ...] = ()) -> Comparison:
    fields: dict[str, Any] = dict.fromkeys(("only_in_a", "only_in_b", "changed", "causes"), ())
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
    with pytest.raises(ConfigError, match="expected regression, significant, or a difference"):
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
    worse = delta(-0.3, p=0.001, p_holm=0.01, higher_is_better=True)
    better = delta(-0.3, name="error_rate", p=0.001, p_holm=0.01, higher_is_better=False)
    weak = delta(-0.3, name="mrr", p=0.001, p_holm=0.06, higher_is_better=True)
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
