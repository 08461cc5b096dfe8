"""The family `extraction`: scores of a case, figures over cases, and what its report holds."""

from typing import Any

import pytest

from judgekit.analysis.estimates import Tally
from judgekit.core.cases import Case, SystemOutput
from judgekit.core.scores import Estimate, Failed, NotApplicable, Outcomes
from judgekit.metrics.extraction import Extraction

MEANS = ("extraction_precision", "extraction_recall", "extraction_f1")
SUMS = ("extraction_true_positives", "extraction_false_positives", "extraction_false_negatives")


def outcomes(expected: Any, extracted: Any, family: Extraction | None = None, **output: Any) -> Outcomes:
    case = Case(id="c", expected_fields=expected)
    return (family or Extraction()).calculate(case, SystemOutput(case_id="c", extracted_fields=extracted, **output))


def test_scores_of_a_case_by_hand() -> None:
    found = outcomes({"a": 1, "b": 2, "c": 3}, {"a": 1, "b": 0, "z": 9})
    # TP 1 (a), FP 2 (b, z), FN 2 (b, c): P = R = F1 = 1/3
    assert [found[name] for name in MEANS] == pytest.approx([1 / 3] * 3)
    assert [found[name] for name in SUMS] == [1.0, 2.0, 2.0]


@pytest.mark.parametrize(
    ("expected", "extracted"), [(None, {"a": 1}), ({}, {}), ({}, None), ({"a": None}, {}), ({"a": []}, {"b": None})]
)
def test_without_labels_or_with_nothing_on_both_sides_it_is_not_applicable(expected: Any, extracted: Any) -> None:
    found = outcomes(expected, extracted)
    assert set(found) == {*MEANS, *SUMS}
    assert all(isinstance(value, NotApplicable) for value in found.values())


def test_nothing_expected_but_something_returned_has_precision_0_and_no_recall() -> None:
    found = outcomes({}, {"a": 1})
    assert (found["extraction_precision"], found["extraction_f1"]) == (0.0, 0.0)
    assert found["extraction_recall"] == NotApplicable("nothing expected")
    assert [found[name] for name in SUMS] == [0.0, 1.0, 0.0]


def test_something_expected_and_nothing_returned_is_0_and_an_error_is_a_failure() -> None:
    assert [outcomes({"a": 1}, None)[name] for name in MEANS] == [0.0, 0.0, 0.0]
    assert set(outcomes({"a": 1}, None, error={"kind": "timeout"}).values()) == {Failed("timeout")}


def test_a_function_of_the_users_that_fails_is_no_score_of_the_system() -> None:
    def broken(expected: Any, extracted: Any) -> bool:
        raise KeyError("x")

    family = Extraction.model_validate({"fields": {"a": {"compare": "python", "function": "m:f"}}})
    assert family.function_names == ("m:f",)
    bound = family.with_functions({"m:f": broken})
    assert set(outcomes({"a": 1}, {"a": 2}, bound).values()) == {Failed("comparator", by_judge=True)}
    report = bound.open_report()
    report.calculate(Case(id="c", expected_fields={"a": 1}), SystemOutput(case_id="c", extracted_fields={"a": 2}))
    assert report.warnings() == [("comparator_failed", "extraction: a: broken raised KeyError: 'x' (case c)")]


def gathered(family: Extraction, rows: list[tuple[Any, Any]]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Figures over all cases, and the report."""
    report, tally = family.open_report(), Tally(family.columns(), family.pooled())
    for number, (expected, extracted) in enumerate(rows):
        case = Case(id=f"c{number}", expected_fields=expected)
        output = SystemOutput(case_id=case.id, extracted_fields=extracted)
        found = report.calculate(case, output)
        assert family.calculate(case, output) == found
        tally.add(found)
    figures = tally.figures("exclude")
    return dict(figures), report.document(figures) or {}


def test_macro_is_the_mean_of_cases_and_micro_pools_their_counts() -> None:
    # Case 0 has 1 right and F1 1; case 1 has 1 right and 3 wrong, so P = R = F1 = 1/4.
    rows = [({"a": 1}, {"a": 1}), ({"a": 1, "b": 2, "c": 3, "d": 4}, {"a": 1, "b": 0, "c": 0, "d": 0})]
    figures, document = gathered(Extraction(), rows)
    assert figures["extraction_f1"].value == pytest.approx((1 + 1 / 4) / 2)
    assert figures["extraction_micro_f1"].value == pytest.approx(2 / 5)  # TP 2, FP 3, FN 3
    assert [figures[f"total_{name}"].value for name in ("true_positives", "false_positives", "false_negatives")] == [
        *(2.0, 3.0, 3.0)
    ]
    aggregate = document["aggregate"]
    assert (aggregate["macro"]["f1"]["value"], aggregate["micro"]["f1"]["value"]) == (0.625, 0.4)
    assert (aggregate["eval_count"], aggregate["total_true_positives"]) == (2, 2)
    assert document["by_field"]["b"]["wrong_value"] == 1
    assert document["by_error_type"]["wrong_value"] == {"n": 3, "n_cases": 1}
    assert [entry["case_id"] for entry in document["cases"]] == ["c0", "c1"]


def test_omissions_only_is_written_into_the_results() -> None:
    _, document = gathered(Extraction(fn_counts="omissions_only"), [({"a": 1, "b": 2}, {"a": 1, "b": 0})])
    assert document["aggregate"]["fn_counts"] == "omissions_only"
    [only] = document["cases"]
    assert only["metrics"] == {**only["counts"], "precision": 0.5, "recall": 1.0, "f1": 0.6667}  # TP 1, FP 1, FN 0


def test_no_case_with_a_number_gives_nulls_and_no_case_with_labels_no_report() -> None:
    figures, document = gathered(Extraction(), [({}, {}), ({"a": None}, None)])
    assert all(isinstance(figure, Estimate) and figure.value is None for figure in figures.values())
    assert document["aggregate"]["total_true_positives"] is None
    assert document["aggregate"]["eval_count"] == 0
    assert gathered(Extraction(), [(None, {"a": 1})])[1] == {}


def test_a_rule_that_meets_no_value_is_named() -> None:
    rules = {"totl": "number", "rows": "aligned", "rows[*].name": "text", "tags": "exact", "gone": "set"}
    report = Extraction.model_validate({"fields": rules}).open_report()
    fields = {"total": 1, "rows": [{"name": "a"}], "tags": ["x"]}
    report.calculate(Case(id="c", expected_fields=fields), SystemOutput(case_id="c", extracted_fields=fields))
    [(code, message)] = report.warnings()
    assert code == "fields_not_found"
    assert message == "extraction: fields: no value at 'totl'; did you mean 'total'?, and 2 more"
