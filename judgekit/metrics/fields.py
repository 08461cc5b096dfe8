"""Two objects compared field by field: what is missing, invented, malformed or wrong, and the figures of it."""

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from pydantic import ValidationError

from judgekit.core.errors import ConfigError, did_you_mean, first_problem
from judgekit.metrics.field_counts import AlignedPair, Discrepancy, ErrorType, FieldComparison, FieldCounts, FnCounts
from judgekit.metrics.field_items import Alike, Item, align, items_of, match_equal, share_equal
from judgekit.metrics.field_rules import (
    RULES,
    AlignedRule,
    Comparator,
    ComparatorError,
    ListRule,
    Rules,
    Unreadable,
    kind_of,
)
from judgekit.metrics.field_tree import PLAIN, FieldNode, bind, extend, parse_path, plant, write_path

Place = tuple[str | int, ...]

_SLOTS = {"omission": 1, "hallucination": 2, "format_error": 3, "wrong_value": 4}
"""Where each error is counted in a row; the expected fields come first."""

_NESTED = ("object", "array", "absent")


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

    def unmet(self, known: Collection[str]) -> list[str]:
        """Rules that no value was compared by: a slip in a path must not switch off a comparator unseen.

        Args:
            known: paths of all values, as in `FieldComparison.by_field`.
        """
        found = []
        for path, rule in self.rules.items():
            pattern = write_path(None if isinstance(step, int) else step for step in parse_path(path))
            if isinstance(rule, ListRule):
                met = any(name.startswith(f"{pattern}[*]") for name in known)
            else:
                met = pattern in known
            if not met:
                found.append(f"no value at {path!r}{did_you_mean(path, known)}")
        return found

    def compare(self, expected: Mapping[str, Any] | None, extracted: Mapping[str, Any] | None) -> FieldComparison:
        """Compare two objects, see `compare_fields`."""
        walk = _Walk(self.fn_counts)
        for name, value in (("expected", expected), ("extracted", extracted)):
            if value is not None and not isinstance(value, Mapping):
                raise ConfigError(f"{name}: expected an object, found {type(value).__name__}")
        try:
            walk.value(self._root, dict(expected or {}), dict(extracted or {}), (), "")
        except ValueError as error:
            raise ConfigError(f"fields: {error}") from None
        except RecursionError:
            raise ConfigError("fields: nested too deeply") from None
        return walk.comparison(self.schema_notes)


class _Walk:
    """One walk; what it finds is gathered on the way."""

    def __init__(self, fn_counts: FnCounts) -> None:
        self._fn_counts = fn_counts
        self._rows: defaultdict[str, list[int]] = defaultdict(lambda: [0] * 5)
        """Expected fields, and errors of each kind, by path."""
        self._wrong: list[tuple[Place, Discrepancy]] = []
        self._pairs: list[AlignedPair] = []
        self._notes: list[str] = []

    def counts(self) -> FieldCounts:
        """Counts over all fields."""
        return FieldCounts(self._fn_counts, *map(sum, zip(*self._rows.values(), strict=True)))

    def comparison(self, schema_notes: tuple[str, ...]) -> FieldComparison:
        """What was found: discrepancies in the order of their paths, pairs by the path of their list."""
        return FieldComparison(
            counts=self.counts(),
            discrepancies=tuple([found for _, found in sorted(self._wrong, key=_order)]),
            pairs=tuple(sorted(self._pairs, key=lambda pair: pair.path)),
            by_field={pattern: FieldCounts(self._fn_counts, *row) for pattern, row in sorted(self._rows.items())},
            notes=(*schema_notes, *sorted(self._notes)),
        )

    def value(self, node: FieldNode, expected: Any, extracted: Any, place: Place, pattern: str) -> None:
        """Compare what stands at one place."""
        kind, other = kind_of(expected), kind_of(extracted)
        if kind == "object" and other == "object":
            self._objects(node, expected, extracted, place, pattern)
        elif kind == "array" and other == "array":
            if node.listing is None:
                self._lists(node, expected, extracted, place, pattern)
            else:
                self._paired(node, expected, extracted, place, pattern)
        elif kind in _NESTED or other in _NESTED:
            self.alone(expected, "omission", place, pattern)
            self.alone(extracted, "hallucination", place, pattern)
        else:
            row = self._rows[pattern]
            row[0] += 1
            if node.rule is None:
                error = None if kind == other and expected == extracted else _exactly(expected, extracted)
            else:
                error = self._judge(node.rule, expected, extracted, place)
            if error is not None:
                self._found(row, error, expected, extracted, place)

    def alone(self, value: Any, error: ErrorType, place: Place, pattern: str) -> None:
        """A value without a partner: every leaf of it is missing on the other side."""
        kind = kind_of(value)
        if kind == "object":
            for key, child in value.items():
                self.alone(child, error, (*place, key), extend(pattern, key))
        elif kind == "array":
            below = extend(pattern, None)
            for index, child in enumerate(value):
                self.alone(child, error, (*place, index), below)
        elif kind != "absent":
            row = self._rows[pattern]
            if error == "omission":
                row[0] += 1
                self._found(row, error, value, None, place)
            else:
                self._found(row, error, None, value, place)

    def _found(self, row: list[int], error: ErrorType, expected: Any, extracted: Any, place: Place) -> None:
        row[_SLOTS[error]] += 1
        self._wrong.append((place, Discrepancy(write_path(place), error, expected, extracted)))

    def _objects(
        self, node: FieldNode, expected: Mapping[str, Any], extracted: Mapping[str, Any], place: Place, pattern: str
    ) -> None:
        children = node.children
        for key, value in expected.items():
            self.value(children.get(key, PLAIN), value, extracted.get(key), (*place, key), extend(pattern, key))
        for key, value in extracted.items():
            if key not in expected:
                self.alone(value, "hallucination", (*place, key), extend(pattern, key))

    def _lists(
        self, node: FieldNode, expected: Sequence[Any], extracted: Sequence[Any], place: Place, pattern: str
    ) -> None:
        """Item by item, by position."""
        below = extend(pattern, None)
        inner = node.item or PLAIN
        n_expected, n_extracted = len(expected), len(extracted)
        for index in range(max(n_expected, n_extracted)):
            wanted = expected[index] if index < n_expected else None
            given = extracted[index] if index < n_extracted else None
            self.value(node.at.get(index, inner), wanted, given, (*place, index), below)

    def _paired(
        self, node: FieldNode, expected: Sequence[Any], extracted: Sequence[Any], place: Place, pattern: str
    ) -> None:
        """Item by item, by partner."""
        inner = node.item or PLAIN
        known: dict[frozenset[str], frozenset[str]] = {}
        wanted, given = items_of(expected, inner, known), items_of(extracted, inner, known)
        alike = share_equal if inner.flat else self._nested_alike(inner)
        try:
            if isinstance(node.listing, AlignedRule):
                found = align(wanted, given, alike, node.listing)
                self._pairs += _shown(write_path(place), found, wanted, given)
                pairs = [(one, other) for one, other, _ in found]
            else:
                keyed = inner.flat and not any(item.loose for item in (*wanted, *given))
                pairs = match_equal(wanted, given, alike, keyed=keyed)
        except ComparatorError as failure:
            raise ComparatorError(f"{write_path(place)}: {failure}") from None
        below = extend(pattern, None)
        for one, other in pairs:
            self.value(inner, one.value, other.value, (*place, one.index), below)
        for item in _without(wanted, {one.index for one, _ in pairs}):
            self.alone(item.value, "omission", (*place, item.index), below)
        for item in _without(given, {other.index for _, other in pairs}):
            self.alone(item.value, "hallucination", (*place, item.index), below)

    def _nested_alike(self, node: FieldNode) -> Alike:
        """Similarity of items that hold sets or aligned lists themselves."""

        def alike(expected: Item, extracted: Item) -> float:
            walk = _Walk(self._fn_counts)
            walk.value(node, expected.value, extracted.value, (), "")
            counts = walk.counts()
            return counts.true_positives / (counts.total_gt_fields + counts.hallucination)

        return alike

    def _judge(self, rule: Comparator, expected: Any, extracted: Any, place: Place) -> ErrorType | None:
        try:
            error, expected_read = _by_rule(rule, expected, extracted)
        except ComparatorError as failure:
            raise ComparatorError(f"{write_path(place)}: {failure}") from None
        if not expected_read:
            self._notes.append(f"{write_path(place)}: the expected value is not in the declared format")
        return error


def _by_rule(rule: Comparator, expected: Any, extracted: Any) -> tuple[ErrorType | None, bool]:
    """The error if there is one, and whether the expected value could be read; if not, values are compared exactly."""
    wanted = None
    if rule.reads_expected:
        try:
            wanted = rule.read(expected)
        except Unreadable:
            return _exactly(expected, extracted), False
    try:
        given = rule.read(extracted)
    except Unreadable:
        return "format_error", True
    return None if rule.same(wanted, given) else "wrong_value", True


def _exactly(expected: Any, extracted: Any) -> ErrorType | None:
    if kind_of(expected) != kind_of(extracted):
        return "format_error"
    return None if expected == extracted else "wrong_value"


def _without(items: Sequence[Item], indices: set[int]) -> list[Item]:
    return [item for item in items if item.index not in indices]


def _shown(
    path: str, found: Sequence[tuple[Item, Item, float]], wanted: Sequence[Item], given: Sequence[Item]
) -> list[AlignedPair]:
    """Pairs, then the items without a partner."""
    pairs = [AlignedPair(path, one.index, other.index, share) for one, other, share in found]
    pairs += [AlignedPair(path, item.index, None, None) for item in _without(wanted, {one.index for one, *_ in found})]
    alone = _without(given, {other.index for _, other, _ in found})
    return pairs + [AlignedPair(path, None, item.index, None) for item in alone]


def _order(entry: tuple[Place, Discrepancy]) -> tuple[list[tuple[bool, str | int]], str]:
    return [(isinstance(step, str), step) for step in entry[0]], entry[1].error_type
