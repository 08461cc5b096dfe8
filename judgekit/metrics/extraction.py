"""Field extraction: does the system give the fields that it should, and no others; and what eval-results.json holds."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict
from functools import cached_property
from typing import Any, ClassVar, Self

from pydantic import ConfigDict, Field, PrivateAttr, model_validator

from judgekit.core.cases import Case, SystemOutput
from judgekit.core.components import Metric, MetricReport
from judgekit.core.errors import ConfigError
from judgekit.core.runs import EVAL_RESULTS
from judgekit.core.scores import Column, Estimate, Failed, NotApplicable, Outcome, Outcomes, Pooled
from judgekit.metrics.field_counts import (
    ERROR_TYPES,
    FieldComparison,
    FieldCounts,
    FnCounts,
    count_by_type,
    f1_of,
    ratio,
)
from judgekit.metrics.field_rules import ComparatorError, Rules, function_names
from judgekit.metrics.fields import FieldComparer
from judgekit.stats.means import round4

MEANS = ("extraction_precision", "extraction_recall", "extraction_f1")
SUMS = ("extraction_true_positives", "extraction_false_positives", "extraction_false_negatives")
MICRO = ("extraction_micro_precision", "extraction_micro_recall", "extraction_micro_f1")
TOTALS = ("total_true_positives", "total_false_positives", "total_false_negatives")
SUMMED = ("total_gt_fields", "correct_fields", *ERROR_TYPES)
"""Counts over all cases that have no figure of their own."""

DIGEST_FIELDS = 20
"""Field paths in metrics.json and summary.md; eval-results.json has all of them."""

_NO_LABEL = NotApplicable("no expected_fields")
_NOTHING = NotApplicable("nothing expected and nothing extracted")
_NONE_EXPECTED = NotApplicable("nothing expected")


class Extraction(Metric):
    """Extracted fields against expected fields, leaf by leaf (see `fields.compare_fields`).

    Per case, with TP, FP, FN counted over the fields; in [0, 1], higher is better:

    * `extraction_precision`: TP / (TP + FP), 0.0 for 0/0.
    * `extraction_recall`: TP / (TP + FN), 0.0 for 0/0; not applicable if nothing is expected.
    * `extraction_f1`: their harmonic mean, 0.0 if both are 0.

    The means over cases are the macro figures. Pooled over the counts of all cases: `extraction_micro_precision`,
    `extraction_micro_recall`, `extraction_micro_f1`, and the sums `total_true_positives`, `total_false_positives`
    and `total_false_negatives`.

    Not applicable without `expected_fields`, and if nothing is expected and nothing extracted. An output without
    `extracted_fields` omits everything.

    Source: in-house.
    """

    needs: ClassVar[tuple[tuple[str, ...], ...]] = (("case.expected_fields",), ("output.extracted_fields",))

    model_config = ConfigDict(serialize_by_alias=True)

    fields: Rules = {}
    """Comparators by path; left out: exact."""
    schema_: dict[str, Any] | None = Field(default=None, alias="schema")
    """A JSON Schema (draft 2020-12) whose type, format, properties, items and enum say what is well formed."""
    fn_counts: FnCounts = "definition"
    """What counts as a false negative: omissions, format errors and wrong values, or `omissions_only`."""
    _functions: dict[str, Callable[[Any, Any], bool]] = PrivateAttr(default_factory=dict)

    @model_validator(mode="after")
    def _rules_hold(self) -> Self:
        try:
            FieldComparer(self.fields, schema=self.schema_)
        except ConfigError as error:
            raise ValueError(str(error)) from None
        return self

    @property
    def function_names(self) -> tuple[str, ...]:
        """`package.module:function` of every comparator that is a Python function."""
        return function_names(self.fields)

    def with_functions(self, functions: Mapping[str, Callable[[Any, Any], bool]]) -> "Extraction":
        """The same family with the functions that its comparators name; loading them is not for a pure layer."""
        bound = Extraction(fields=self.fields, schema=self.schema_, fn_counts=self.fn_counts)
        bound._functions = dict(functions)
        return bound

    @cached_property
    def _comparer(self) -> FieldComparer:
        return FieldComparer(self.fields, schema=self.schema_, fn_counts=self.fn_counts, functions=self._functions)

    def columns(self) -> tuple[Column, ...]:
        return (
            *[Column(name) for name in MEANS],
            *[Column(name, high=float("inf"), higher_is_better=name == SUMS[0], aggregate="") for name in SUMS],
        )

    def pooled(self) -> tuple[Pooled, ...]:
        right, false, missed = SUMS
        return (
            Pooled(MICRO[0], over=(right, false), function=ratio),
            Pooled(MICRO[1], over=(right, missed), function=ratio),
            Pooled(MICRO[2], over=SUMS, function=f1_of),
            *[
                Pooled(total, over=(name,), function=float, higher_is_better=name == right, is_total=True)
                for total, name in zip(TOTALS, SUMS, strict=True)
            ],
        )

    def calculate(self, case: Case, output: SystemOutput) -> Outcomes:
        return outcomes_of(compare_case(self._comparer, case, output))

    def open_report(self) -> "ExtractionReport":
        return ExtractionReport(self._comparer)


def compare_case(
    comparer: FieldComparer, case: Case, output: SystemOutput
) -> FieldComparison | NotApplicable | Failed | ComparatorError:
    """The comparison of one case, or why there is none."""
    if case.expected_fields is None:
        return _NO_LABEL
    if output.error is not None:
        return Failed(output.error.kind)
    try:
        comparison = comparer.compare(case.expected_fields, output.extracted_fields)
    except ComparatorError as error:
        return error
    counts = comparison.counts
    return comparison if counts.total_gt_fields or counts.hallucination else _NOTHING


def outcomes_of(found: FieldComparison | NotApplicable | Failed | ComparatorError) -> Outcomes:
    """The scores of one case."""
    if isinstance(found, FieldComparison):
        counts = found.counts
        recall: Outcome = counts.recall if counts.total_gt_fields else _NONE_EXPECTED
        numbers = (counts.true_positives, counts.false_positives, counts.false_negatives)
        outcomes: Outcomes = dict(zip(MEANS, (counts.precision, recall, counts.f1), strict=True))
        return outcomes | dict(zip(SUMS, map(float, numbers), strict=True))
    # A function of the user's own is an instrument like a judge: that it failed says nothing about the system.
    outcome = Failed("comparator", by_judge=True) if isinstance(found, ComparatorError) else found
    return dict.fromkeys((*MEANS, *SUMS), outcome)


class ExtractionReport(MetricReport):
    """Gathers the comparisons of a run."""

    file_name = EVAL_RESULTS

    def __init__(self, comparer: FieldComparer) -> None:
        self._comparer = comparer
        self._cases: list[dict[str, Any]] = []
        self._by_field: dict[str, FieldCounts] = {}
        self._none = FieldCounts(comparer.fn_counts)
        self._n_errors: Counter[str] = Counter()
        self._n_cases: Counter[str] = Counter()
        self._notes: list[str] = []
        self._failures: list[str] = []

    def calculate(self, case: Case, output: SystemOutput) -> Outcomes:
        found = compare_case(self._comparer, case, output)
        if found is not _NO_LABEL:
            self._cases.append({"case_id": case.id, **self._entry(case.id, found)})
        return outcomes_of(found)

    def _entry(self, case_id: str, found: FieldComparison | NotApplicable | Failed | ComparatorError) -> dict[str, Any]:
        if isinstance(found, ComparatorError):
            self._failures.append(f"{found} (case {case_id})")
            return {"error": f"comparator: {found}"}
        if isinstance(found, Failed):
            return {"error": found.kind}
        if isinstance(found, NotApplicable):
            return {"not_applicable": found.reason}
        for path, counts in found.by_field.items():
            self._by_field[path] = self._by_field.get(path, self._none) + counts
        kinds = count_by_type(found.discrepancies)
        self._n_errors.update(kinds)
        self._n_cases.update(name for name, n in kinds.items() if n)
        notes = found.notes[len(self._comparer.schema_notes) :]
        self._notes += [f"{note} (case {case_id})" for note in notes]
        entry: dict[str, Any] = {
            "counts": _counted(found.counts),
            "metrics": _figures(found.counts),
            "discrepancies": list(map(asdict, found.discrepancies)),
        }
        if found.pairs:
            entry["pairs"] = [
                {**asdict(pair), "similarity": None if pair.similarity is None else round4(pair.similarity)}
                for pair in found.pairs
            ]
        return {**entry, "notes": list(notes)} if notes else entry

    def document(self, figures: Mapping[str, Estimate | dict[str, int]]) -> dict[str, Any] | None:
        if not self._cases:
            return None
        f1 = _estimate(figures, "extraction_f1")
        values = [_estimate(figures, name).value for name in TOTALS]
        totals = {name: None if value is None else int(value) for name, value in zip(TOTALS, values, strict=True)}
        macro = {name.removeprefix("extraction_"): _shown(_estimate(figures, name)) for name in MEANS}
        micro = {name.removeprefix("extraction_micro_"): _shown(_estimate(figures, name)) for name in MICRO}
        counts = _counted(sum(self._by_field.values(), self._none)) if self._by_field else {}
        n_compared = sum("counts" in entry for entry in self._cases)
        return {
            "schema_version": 1,
            "aggregate": {
                "fn_counts": self._comparer.fn_counts,
                "eval_count": n_compared,
                "n_not_applicable": f1.n_not_applicable,
                "n_error": f1.n_error,
                "metrics": {
                    "eval_count": n_compared,
                    **totals,
                    **{name: counts.get(name) for name in SUMMED},
                    **{f"macro_{name}": figure["value"] for name, figure in macro.items()},
                    **{f"micro_{name}": figure["value"] for name, figure in micro.items()},
                },
                "macro": macro,
                "micro": micro,
                **totals,
            },
            "by_error_type": self._error_types(),
            "by_field": {path: _figures(counts) for path, counts in self._by_field.items()},
            "cases": self._cases,
            "schema_ignored": list(self._comparer.schema_notes),
        }

    def digest(self) -> dict[str, Any] | None:
        if not self._cases:
            return None
        fields = sorted(self._by_field.items(), key=lambda item: (-item[1].n_wrong, item[0]))
        return {
            "fn_counts": self._comparer.fn_counts,
            "by_error_type": self._error_types(),
            "n_fields": len(fields),
            "by_field": {path: _figures(counts) for path, counts in fields[:DIGEST_FIELDS]},
        }

    def warnings(self) -> list[tuple[str, str]]:
        found = []
        if self._failures:
            found.append(("comparator_failed", f"extraction: {_first(self._failures)}"))
        if self._notes:
            found.append(("expected_not_in_format", f"extraction: {_first(self._notes)}; compared exactly"))
        if self._comparer.schema_notes and self._cases:
            found.append(("schema_ignored", f"extraction: not understood: {_first(self._comparer.schema_notes)}"))
        unmet = self._comparer.unmet(self._by_field) if self._by_field else []
        if unmet:
            found.append(("fields_not_found", f"extraction: fields: {_first(unmet)}"))
        return found

    def _error_types(self) -> dict[str, dict[str, int]]:
        return {name: {"n": self._n_errors[name], "n_cases": self._n_cases[name]} for name in ERROR_TYPES}


def _counted(counts: FieldCounts) -> dict[str, Any]:
    return {
        "total_gt_fields": counts.total_gt_fields,
        "correct_fields": counts.true_positives,
        "true_positives": counts.true_positives,
        "false_positives": counts.false_positives,
        "false_negatives": counts.false_negatives,
        "omission": counts.omission,
        "hallucination": counts.hallucination,
        "format_error": counts.format_error,
        "wrong_value": counts.wrong_value,
    }


def _figures(counts: FieldCounts) -> dict[str, Any]:
    """Counts and figures; where nothing is expected there is no recall."""
    return {
        **_counted(counts),
        "precision": round4(counts.precision),
        "recall": round4(counts.recall) if counts.total_gt_fields else None,
        "f1": round4(counts.f1),
    }


def _estimate(figures: Mapping[str, Estimate | dict[str, int]], name: str) -> Estimate:
    figure = figures[name]
    if not isinstance(figure, Estimate):
        raise TypeError(f"{name} is not an estimate")
    return figure


def _shown(figure: Estimate) -> dict[str, Any]:
    return {name: round4(value) if isinstance(value, float) else value for name, value in figure.model_dump().items()}


def _first(lines: Iterable[str]) -> str:
    shown = list(lines)
    return shown[0] + (f", and {len(shown) - 1} more" if len(shown) > 1 else "")
