"""Two objects compared field by field: what is missing, invented, malformed or wrong, and the figures of it."""

from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError

from judgekit.core.errors import ConfigError, first_problem
from judgekit.metrics.field_counts import FieldComparison, FnCounts
from judgekit.metrics.field_rules import RULES, Rules
from judgekit.metrics.field_tree import bind, plant
from judgekit.metrics.field_walk import Walk


def compare_fields(
    expected: Mapping[str, Any] | None,
    extracted: Mapping[str, Any] | None,
    *,
    fn_counts: FnCounts = "definition",
    fields: Mapping[str, Any] | None = None,
    schema: Mapping[str, Any] | None = None,
) -> FieldComparison:
    """Compare two JSON objects leaf by leaf.

    Null, NaN and empty objects and lists count as absent. An object where a list or a single value is expected is
    compared by its leaves: those expected are omissions, those found hallucinations. To compare many pairs, make one
    `FieldComparer`.

    Args:
        expected: the right object; None is an empty one.
        extracted: the object that the system gave; None is an empty one.
        fn_counts: "definition" counts wrong and malformed values as false negatives too, "omissions_only" does not.
        fields: comparators by path, such as {"total": {"compare": "number", "absolute": 0.01}, "name": "text"}.
        schema: a JSON Schema that types, formats and values are taken from.

    Returns:
        Counts, figures, discrepancies, and the pairs of aligned lists. Two empty objects: all counts and figures 0.

    Raises:
        ConfigError: `fields` or `schema` is not valid, an object holds what JSON does not have, or a function of the
            user's own failed.

    Source: in-house.
    """
    return FieldComparer(fields, schema=schema, fn_counts=fn_counts).compare(expected, extracted)


class FieldComparer:
    """Rules, ready to compare many pairs of objects."""

    def __init__(
        self,
        fields: Mapping[str, Any] | None = None,
        *,
        schema: Mapping[str, Any] | None = None,
        fn_counts: FnCounts = "definition",
        functions: Mapping[str, Any] | None = None,
    ) -> None:
        """Check the rules.

        Raises:
            ConfigError: they are not valid.
        """
        if fn_counts not in ("definition", "omissions_only"):
            raise ConfigError(f"fn_counts: expected 'definition' or 'omissions_only', found {fn_counts!r}")
        try:
            self.rules: Rules = bind(RULES.validate_python(dict(fields or {})), functions or {})
            self._root, self.schema_notes = plant(self.rules, schema)
        except ValidationError as error:
            raise ConfigError(f"fields: {first_problem(error)}") from None
        except ValueError as error:
            raise ConfigError(str(error)) from None
        self.fn_counts = fn_counts

    def compare(self, expected: Mapping[str, Any] | None, extracted: Mapping[str, Any] | None) -> FieldComparison:
        """Compare two objects, see `compare_fields`."""
        walk = Walk(self.fn_counts)
        for name, value in (("expected", expected), ("extracted", extracted)):
            if value is not None and not isinstance(value, Mapping):
                raise ConfigError(f"{name}: expected an object, found {type(value).__name__}")
        try:
            walk.value(self._root, dict(expected or {}), dict(extracted or {}), (), "")
        except ValueError as error:
            raise ConfigError(f"fields: {error}") from None
        except RecursionError:
            raise ConfigError("fields: nested too deeply") from None
        by_field = walk.by_field()
        return FieldComparison(
            counts=walk.counts(),
            discrepancies=walk.discrepancies(),
            pairs=walk.pairs(),
            by_field=by_field,
            notes=(*self.schema_notes, *sorted(walk.notes)),
        )
