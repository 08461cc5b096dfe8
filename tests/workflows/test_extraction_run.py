"""Field extraction from the config to the run folder."""

from pathlib import Path
from typing import Any

import pytest

import judgekit
from judgekit.core.errors import ConfigError
from tests.builders import case, output, read_json, read_lines, write_suite

CASES = [
    case("a", expected_fields={"total": 1.10, "items": [{"n": "x", "q": 1}, {"n": "y", "q": 2}]}),
    case("b", expected_fields={"total": 5}),
    case("c"),
]
OUTPUTS = [
    output("a", extracted_fields={"total": 1.09, "items": [{"n": "y", "q": 2}, {"n": "x", "q": 3}]}),
    output("b", extracted_fields={"total": 5}),
    output("c"),
]
ARGS = {"fields": {"total": {"compare": "number", "absolute": 0.01}, "items": "aligned"}}


def suite(folder: Path, args: dict[str, Any] = ARGS, **config: Any) -> Path:
    rows: dict[str, Any] = {"case_rows": CASES, "output_rows": OUTPUTS, "judges": [], "models": {}}
    return write_suite(folder, **{"metrics": [{"name": "extraction", "args": args}], **rows, **config})


def test_eval_results_hold_every_case_the_figures_and_the_tables(tmp_path: Path) -> None:
    summary = judgekit.run(suite(tmp_path), run_id="r")

    folder = tmp_path / "results" / "r"
    found = read_json(folder / "eval-results.json")
    # Case a has 4 right, 1 wrong, so P = R = F1 = 4/5; case b has 1. Macro F1 is 0.9, micro 5/6.
    assert found["aggregate"]["macro"]["f1"]["value"] == 0.9
    assert found["aggregate"]["micro"]["f1"]["value"] == 0.8333
    assert found["aggregate"]["eval_count"] == 2
    assert found["aggregate"]["n_not_applicable"] == 1
    # Right are total, two names and one of two amounts of case a, and the one field of case b.
    assert found["aggregate"]["metrics"] == {
        "eval_count": 2,
        "total_gt_fields": 6,
        "correct_fields": 5,
        "total_true_positives": 5,
        "total_false_positives": 1,
        "total_false_negatives": 1,
        "omission": 0,
        "hallucination": 0,
        "format_error": 0,
        "wrong_value": 1,
        "macro_precision": 0.9,
        "macro_recall": 0.9,
        "macro_f1": 0.9,
        "micro_precision": 0.8333,
        "micro_recall": 0.8333,
        "micro_f1": 0.8333,
    }
    [first, second] = found["cases"]
    assert first["metrics"] == {**first["counts"], "precision": 0.8, "recall": 0.8, "f1": 0.8}
    assert (first["counts"]["correct_fields"], first["counts"]["total_gt_fields"]) == (4, 5)
    assert first["counts"]["true_positives"] == 4
    assert first["discrepancies"] == [
        {"path": "items[0].q", "error_type": "wrong_value", "expected": 1, "extracted": 3}
    ]
    assert [(pair["expected_index"], pair["extracted_index"]) for pair in first["pairs"]] == [(0, 1), (1, 0)]
    assert (second["case_id"], second["discrepancies"]) == ("b", [])
    metrics = read_json(folder / "metrics.json")
    assert metrics["overall"]["extraction_f1"]["value"] == 0.9
    assert metrics["extraction"]["by_field"]["items[*].q"] == found["by_field"]["items[*].q"]
    assert summary.overall["extraction_f1"].n == 2
    text = (folder / "summary.md").read_text()
    assert "## Extraction" in text
    assert "| wrong_value | 1 | 1 |" in text
    assert "| items\\[\\*\\].q | 2 | 1 | 0 | 0 | 0 | 1 | 0.500 | 0.500 |" in text
    scores = {(row["case_id"], row["name"]): row for row in read_lines(folder / "scores.jsonl")}
    assert scores["a", "extraction_f1"]["value"] == pytest.approx(0.8)
    assert scores["c", "extraction_f1"]["reason"] == "n/a: no expected_fields"


def test_gates_hold_macro_f1_and_totals(tmp_path: Path) -> None:
    gates = [
        {"metric": "extraction_f1", "op": ">=", "value": 0.90},
        {"metric": "extraction_micro_f1", "op": ">=", "value": 0.90},
        {"metric": "total_false_positives", "op": "<=", "value": 1},
    ]
    summary = judgekit.run(suite(tmp_path / "1", gates=gates))
    assert [gate.passed for gate in summary.gates] == [True, False, True]
    # What a failed case would add to a sum has no bound, so it can never help to pass.
    failed = [OUTPUTS[0], {"case_id": "b", "error": {"kind": "timeout"}}, OUTPUTS[2]]
    summary = judgekit.run(suite(tmp_path / "2", gates=gates, output_rows=failed))
    assert [gate.passed for gate in summary.gates] == [False, False, False]
    total = summary.overall["total_false_positives"]
    assert (total.value, total.n, total.n_error, total.worst) == (1.0, 1, 1, None)


def test_a_run_without_expected_fields_has_no_such_file(tmp_path: Path) -> None:
    judgekit.run(suite(tmp_path, metrics=None, case_rows=[case("a"), case("b"), case("c")]), run_id="r")
    assert not (tmp_path / "results" / "r" / "eval-results.json").exists()
    assert read_json(tmp_path / "results" / "r" / "metrics.json")["extraction"] is None


def test_a_function_is_loaded_by_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "my_checks_x1.py").write_text(
        "def near(a, b):\n    return abs(a - b) <= 2\ndef bad(a, b):\n    return a[0]\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    rule = {"compare": "python", "function": "my_checks_x1:near"}
    summary = judgekit.run(suite(tmp_path / "1", {"fields": {"items[*].q": rule, "items": "aligned"}}))
    assert summary.overall["total_false_positives"].value == 1  # 1.10 and 1.09

    rule["function"] = "my_checks_x1:bad"
    summary = judgekit.run(suite(tmp_path / "2", {"fields": {"total": rule}}))
    figure = summary.overall["extraction_f1"]
    assert (figure.value, figure.n_error) == (None, 2)
    [warning] = [item.message for item in summary.warnings if item.code == "comparator_failed"]
    assert warning == (
        "extraction: total: bad raised TypeError: 'float' object is not subscriptable (case a), and 1 more"
    )


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (
            {"fields": {"a": {"compare": "python", "function": "no_such_module:f"}}},
            "metrics[0] (extraction): no_such_mo",
        ),
        (
            {"fields": {"a": {"compare": "python", "function": "json:nothing"}}},
            "json:nothing cannot be loaded: Attribut",
        ),
        ({"fields": {"a": {"compare": "python", "function": "json:__name__"}}}, "json:__name__ is not a function"),
        ({"fields": {"a": {"compare": "nmber"}}}, "no comparator 'nmber'; did you mean 'number'?"),
        ({"fields": {"a..b": "exact"}}, "path 'a..b': expected a key at '..b'"),
        ({"schema": {"type": "objekt"}}, "schema: $.type: no type 'objekt'; did you mean 'object'?"),
    ],
)
def test_what_cannot_hold_is_one_line_before_anything_is_written(
    tmp_path: Path, args: dict[str, Any], message: str
) -> None:
    with pytest.raises(ConfigError) as raised:
        judgekit.run(suite(tmp_path, args))
    assert message in str(raised.value)
    assert "\n" not in str(raised.value)
    assert not (tmp_path / "results").exists()


def test_nan_in_a_file_of_fields_counts_as_absent(tmp_path: Path) -> None:
    path = suite(tmp_path, {}, case_rows=[case("a", expected_fields={"x": float("nan"), "y": float("inf"), "z": 1})])
    (tmp_path / "outputs.jsonl").write_text('{"case_id": "a", "extracted_fields": {"x": Infinity, "z": 1}}\n')
    summary = judgekit.run(path)
    assert summary.overall["extraction_f1"].value == 1.0


def test_fields_may_come_from_csv_as_json(tmp_path: Path) -> None:
    path = suite(tmp_path, {}, cases="cases.csv")
    (tmp_path / "cases.csv").write_text('id,question,expected_fields\na,How?,"{""total"": 1.09}"\nb,Why?,\n')
    summary = judgekit.run(path)
    assert summary.overall["extraction_recall"].value == 1.0
    assert summary.overall["extraction_recall"].n == 1
