"""Field extraction: does the system give the fields that it should, and no others."""

from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any, ClassVar, Self

from pydantic import ConfigDict, Field, PrivateAttr, model_validator

from judgekit.core.cases import Case, SystemOutput
from judgekit.core.components import Metric
from judgekit.core.errors import ConfigError
from judgekit.core.scores import Column, Outcomes, Pooled
from judgekit.metrics.field_counts import FnCounts, f1_of, ratio
from judgekit.metrics.field_report import MEANS, MICRO, SUMS, TOTALS, ExtractionReport, compare_case, outcomes_of
from judgekit.metrics.field_rules import FunctionRule, Rules
from judgekit.metrics.fields import FieldComparer


class Extraction(Metric):
    """Extracted fields against expected fields, leaf by leaf (see `fields.compare_fields`).

    Per case, with TP, FP, FN counted over the fields; in [0, 1], higher is better:

    * `extraction_precision`: TP / (TP + FP), 0.0 for 0/0.
    * `extraction_recall`: TP / (TP + FN), 0.0 for 0/0; not applicable where nothing is expected.
    * `extraction_f1`: their harmonic mean, 0.0 where both are 0.

    The means over cases are the macro figures. Pooled over the counts of all cases: `extraction_micro_precision`,
    `extraction_micro_recall`, `extraction_micro_f1`, and the sums `total_true_positives`, `total_false_positives`
    and `total_false_negatives`.

    Not applicable without `expected_fields`, and where nothing is expected and nothing extracted. An output without
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
        rules = [rule for rule in self.fields.values() if isinstance(rule, FunctionRule)]
        return tuple(dict.fromkeys(rule.function for rule in rules if isinstance(rule.function, str)))

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

    def open_report(self) -> ExtractionReport:
        return ExtractionReport(self._comparer)
