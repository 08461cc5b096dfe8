"""Two objects compared field by field: paths, error types, every comparator, sets and aligned lists."""

import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import judgekit
from judgekit.core.errors import ConfigError
from judgekit.metrics.field_counts import AlignedPair, Discrepancy, FieldComparison
from judgekit.metrics.field_tree import parse_path, write_path
from judgekit.metrics.fields import FieldComparer, compare_fields


def errors(found: FieldComparison) -> list[tuple[str, str]]:
    return [(item.path, item.error_type) for item in found.discrepancies]


def verdict(rule: Any, expected: Any, extracted: Any) -> str:
    """`right`, or the error type, of one field `f` under a rule."""
    found = compare_fields({"f": expected}, {"f": extracted}, fields={"f": rule})
    assert found.counts.total_gt_fields == 1
    return found.discrepancies[0].error_type if found.discrepancies else "right"


# --- paths


@pytest.mark.parametrize(
    ("steps", "text"),
    [
        (("a", "b", 0, "c"), "a.b[0].c"),
        (("a", None, "c"), "a[*].c"),
        (("a.b", "c"), '["a.b"].c'),
        (("a", "net.eur"), 'a["net.eur"]'),
        (("a", ""), 'a[""]'),
        (("a", 'say "hi"', 3, 0), r'a["say \"hi\""][3][0]'),
        (("a", "line\nfeed"), r'a["line\nfeed"]'),
        (("Invoice No", "*", "ä"), "Invoice No.*.ä"),
    ],
)
def test_a_path_is_written_and_read_back(steps: tuple[str | int | None, ...], text: str) -> None:
    assert write_path(steps) == text
    assert parse_path(text) == steps


@given(st.lists(st.text(max_size=4) | st.integers(0, 99) | st.none(), max_size=4).map(lambda steps: ("k", *steps)))
def test_every_path_reads_back_as_what_was_written(steps: tuple[str | int | None, ...]) -> None:
    assert parse_path(write_path(steps)) == steps


@pytest.mark.parametrize("text", ["", ".", "a.", "a..b", "a[", "a[x]", "a[-1]", "a[01]", '["a', "a]b", "[*].a", "[0]"])
def test_what_is_no_path_is_refused(text: str) -> None:
    with pytest.raises(ConfigError, match=r"^fields: path"):
        compare_fields({}, {}, fields={text: "exact"})


# --- error types and counts


def test_each_error_type_is_named_with_its_path_and_values() -> None:
    found = compare_fields(
        {"a": {"b": [1, 2]}, "kept": True, "kind": 1, "gone": "x"},
        {"a": {"b": [1, 3]}, "kept": True, "kind": "1", "new": "y"},
    )
    assert found.discrepancies == (
        Discrepancy("a.b[1]", "wrong_value", 2, 3),
        Discrepancy("gone", "omission", "x", None),
        Discrepancy("kind", "format_error", 1, "1"),
        Discrepancy("new", "hallucination", None, "y"),
    )
    # gold 5 (a.b[0], a.b[1], kept, kind, gone); TP = 5 - 1 - 1 - 1 = 2; FP = 1 + 1 + 1 = 3; FN = 1 + 1 + 1 = 3
    counts = found.counts
    assert (counts.true_positives, counts.false_positives, counts.false_negatives) == (2, 3, 3)
    assert (found.precision, found.recall) == (2 / 5, 2 / 5)
    assert found.f1 == pytest.approx(2 / 5)
    assert found.by_field["a.b[*]"].total_gt_fields == 2
    assert found.by_field["a.b[*]"].wrong_value == 1


def test_omissions_only_leaves_wrong_and_malformed_values_out_of_the_false_negatives() -> None:
    found = compare_fields({"a": 1, "b": 2, "c": 3}, {"a": 1, "b": 0}, fn_counts="omissions_only")
    # TP 1, FP 1 (b), FN 1 (c): P = 1/2, R = 1/2
    assert (found.counts.true_positives, found.counts.false_positives, found.counts.false_negatives) == (1, 1, 1)
    assert (found.precision, found.recall) == (0.5, 0.5)


@pytest.mark.parametrize(
    ("expected", "extracted", "gold", "wrong"),
    [
        ({"a": None}, {}, 0, []),  # row 25: a null that is left out is no credit and no penalty
        ({"a": None}, {"a": 1}, 0, [("a", "hallucination")]),
        ({"a": [], "b": {}}, {"a": {}, "b": [None]}, 0, []),
        ({"a": []}, {"a": 1}, 0, [("a", "hallucination")]),
        ({"a": float("nan"), "b": float("inf")}, {}, 0, []),
        ({"a": {"b": 1}}, {"a": 1}, 1, [("a", "hallucination"), ("a.b", "omission")]),
        ({"a": [1, 2]}, {"a": [1]}, 2, [("a[1]", "omission")]),
        ({"a": [None, 2]}, {"a": [1, 2]}, 1, [("a[0]", "hallucination")]),
        ({"a": 1}, {"a": 1.0}, 1, []),
        ({"a": 1}, {"a": True}, 1, [("a", "format_error")]),
        ({"a": 0}, {"a": False}, 1, [("a", "format_error")]),
        (None, None, 0, []),
        ({"a": 1}, None, 1, [("a", "omission")]),
    ],
)
def test_what_is_absent_and_what_is_a_type(
    expected: Any, extracted: Any, gold: int, wrong: list[tuple[str, str]]
) -> None:
    found = compare_fields(expected, extracted)
    assert found.counts.total_gt_fields == gold
    assert errors(found) == wrong


def test_a_repeated_item_is_a_hallucination() -> None:
    # row 26: gold [dog, s], found [dog, s, s]: recall 2/2, precision 2/3, whether order counts or not
    for rules in ({}, {"words": "set"}):
        found = compare_fields({"words": ["dog", "s"]}, {"words": ["dog", "s", "s"]}, fields=rules)
        assert (found.recall, found.precision) == (1.0, 2 / 3)


# --- comparators


@pytest.mark.parametrize(
    ("rule", "expected", "extracted", "said"),
    [
        ("exact", "A", "a", "wrong_value"),
        ("text", "Straße  12\n", "STRASSE 12", "right"),
        ("text", "ﬁne", "fine", "right"),  # NFKC takes the ligature apart
        ("text", "a", "b", "wrong_value"),
        ("text", "7", 7, "format_error"),
        # |1.10 - 1.09| = 0.01 in decimals, though 0.010000000000000009 in binary
        ({"compare": "number", "absolute": 0.01}, 1.10, 1.09, "right"),
        ({"compare": "number", "absolute": 0.01}, 1.10, 1.0899, "wrong_value"),
        ({"compare": "number", "relative": 0.1}, 200, 220, "right"),  # 20 <= 0.1 * 200
        ({"compare": "number", "relative": 0.1}, 220, 200, "right"),  # 20 <= 0.1 * 220
        ({"compare": "number", "relative": 0.1}, 180, 200, "wrong_value"),  # 20 > 0.1 * 180
        ({"compare": "number", "relative": 0.1, "absolute": 20}, 180, 200, "right"),  # the larger of the two
        ({"compare": "number", "relative": 0.1}, -200, -220, "right"),
        ("number", 1234.5, "1,234.50", "format_error"),  # text only when declared
        ({"compare": "number", "from_text": True}, 1234.5, "1,234.50", "right"),
        ({"compare": "number", "from_text": True}, "1,234.50", 1234.5, "right"),
        ({"compare": "number", "from_text": True}, 1234.5, "12,34.50", "format_error"),
        ({"compare": "number", "from_text": True}, 1234.5, "1234,50", "format_error"),
        ({"compare": "number", "from_text": True}, 1234.5, "about 1,234.50", "format_error"),
        ({"compare": "number", "from_text": True, "decimal": ",", "thousands": "."}, 1234.5, "1.234,50", "right"),
        ({"compare": "number", "from_text": True, "decimal": ",", "thousands": " "}, -1234, "-1\u202f234", "right"),
        ("number", 1, True, "format_error"),
        ("date", "2024-05-01", "2024-05-01T00:00:00Z", "right"),
        ("date", "2024-05-01T12:00:00+02:00", "2024-05-01T10:00:00Z", "right"),  # one instant
        ("date", "2024-05-01", "2024-05-02", "wrong_value"),
        ("date", "2024-05-01", "01.05.2024", "format_error"),
        ({"compare": "date", "formats": "%d.%m.%Y"}, "2024-05-01", "01.05.2024", "right"),
        ({"compare": "date", "formats": ["%d.%m.%Y", "%B %Y"]}, "2024-05-01", "May 2024", "right"),
        ("date", "2024-05-01", 20240501, "format_error"),
        ({"compare": "regex", "pattern": r"INV-\d+"}, "INV-1", "INV-22", "right"),
        ({"compare": "regex", "pattern": r"INV-\d+"}, "INV-1", "INV-22 ", "format_error"),
        ({"compare": "regex", "pattern": r"INV-\d+"}, "INV-1", 22, "format_error"),
        ({"compare": "regex", "pattern": r"(?:No\. )?(?P<value>\d+)"}, "No. 7", "7", "right"),
        ({"compare": "regex", "pattern": r"(?:No\. )?(?P<value>\d+)"}, "No. 7", "8", "wrong_value"),
        ({"compare": "python", "function": lambda one, other: one[0] == other[0]}, "abc", "axx", "right"),
        ({"compare": "python", "function": lambda one, other: one[0] == other[0]}, "abc", "xbc", "wrong_value"),
    ],
)
def test_a_comparator_says_what_is_right_wrong_or_malformed(
    rule: Any, expected: Any, extracted: Any, said: str
) -> None:
    assert verdict(rule, expected, extracted) == said


def test_an_expected_value_that_is_not_in_the_declared_format_is_compared_exactly_and_noted() -> None:
    same = compare_fields({"d": "soon"}, {"d": "soon"}, fields={"d": "date"})
    assert (errors(same), same.notes) == ([], ("d: the expected value is not in the declared format",))
    assert verdict("date", "soon", "2024-05-01") == "wrong_value"
    assert verdict("date", "soon", 5) == "format_error"


def test_a_function_that_fails_is_one_line_with_the_path() -> None:
    def picky(expected: Any, extracted: Any) -> bool:
        raise RuntimeError("no\nway")

    rule = {"compare": "python", "function": picky}
    with pytest.raises(ConfigError, match=r"^a\[0\]: picky raised RuntimeError: no way$"):
        compare_fields({"a": [1]}, {"a": [2]}, fields={"a[*]": rule})
    with pytest.raises(ConfigError, match=r"^a: picky raised RuntimeError: no way$"):
        compare_fields({"a": [1]}, {"a": [2, 3]}, fields={"a": "aligned", "a[*]": rule})
    with pytest.raises(ConfigError, match=r"returned 1, expected True or False"):
        compare_fields({"a": 1}, {"a": 2}, fields={"a": {"compare": "python", "function": lambda one, other: 1}})
    with pytest.raises(ConfigError, match=r"a: m:f: not loaded"):
        compare_fields({"a": 1}, {"a": 2}, fields={"a": {"compare": "python", "function": "m:f"}})


def test_a_wildcard_reaches_every_item_and_an_index_comes_before_it() -> None:
    rules = {"rows[*].name": "text", "rows[*].n": {"compare": "number", "absolute": 1}, "rows[1].name": "exact"}
    found = compare_fields(
        {"rows": [{"name": "a", "n": 1}, {"name": "b", "n": 2}]},
        {"rows": [{"name": "A", "n": 2}, {"name": "B", "n": 3}]},
        fields=rules,
    )
    assert errors(found) == [("rows[1].name", "wrong_value")]


# --- sets


def test_a_set_knows_no_order_and_counts_every_item() -> None:
    found = compare_fields({"t": ["a", "b", "b", 1]}, {"t": ["b", "c", 1.0, "a"]}, fields={"t": "set"})
    # a, b, 1 have a partner; the second b is omitted, c is invented: TP 3, FN 1, FP 1
    assert errors(found) == [("t[1]", "hallucination"), ("t[2]", "omission")]
    assert found.counts.true_positives == 3


def test_a_set_of_objects_and_of_near_numbers() -> None:
    rows = [{"k": "A", "v": 1}, {"k": "b", "v": 2}]
    assert not compare_fields({"t": rows}, {"t": rows[::-1]}, fields={"t": "set"}).discrepancies
    folded = [{"k": "B", "v": 2}, {"k": "a", "v": 1}]
    assert not compare_fields({"t": rows}, {"t": folded}, fields={"t": "set", "t[*].k": "text"}).discrepancies
    near = {"t": "set", "t[*]": {"compare": "number", "absolute": 1}}
    # 1~2 and 3~2 cannot both have the 2: the largest matching is 1-0, 3-2
    assert not compare_fields({"t": [1, 3]}, {"t": [2, 0]}, fields=near).discrepancies
    assert len(compare_fields({"t": [1, 3]}, {"t": [2, 9]}, fields=near).discrepancies) == 2


# --- aligned lists


def test_items_are_paired_so_that_most_leaves_are_equal() -> None:
    expected = {"items": [{"n": "a", "q": 1}, {"n": "b", "q": 2}, {"n": "c", "q": 3}]}
    extracted = {"items": [{"n": "b", "q": 2}, {"n": "a", "q": 7}]}
    found = compare_fields(expected, extracted, fields={"items": "aligned"})
    assert found.pairs == (
        AlignedPair("items", 0, 1, 0.5),  # n of n and q
        AlignedPair("items", 1, 0, 1.0),
        AlignedPair("items", 2, None, None),
    )
    assert errors(found) == [
        ("items[0].q", "wrong_value"),
        ("items[2].n", "omission"),
        ("items[2].q", "omission"),
    ]


def test_the_best_sum_counts_and_not_the_best_first_pair() -> None:
    # similarities: a-x 2/3, a-y 1/3, b-x 2/3, b-y 0. Greedy takes a-x (2/3 + 0); the best is a-y + b-x (1/3 + 2/3).
    a, b = {"1": 1, "2": 1, "3": 1}, {"1": 1, "2": 2, "3": 2}
    x, y = {"1": 1, "2": 1, "3": 2}, {"1": 9, "2": 1, "3": 9}
    found = compare_fields({"i": [a, b]}, {"i": [x, y]}, fields={"i": "aligned"})
    assert [(pair.expected_index, pair.extracted_index) for pair in found.pairs] == [(0, 1), (1, 0)]


def test_of_equal_sums_the_one_that_moves_items_least() -> None:
    for values in (["a", "a", "a"], ["x", "y", "z"]):
        found = compare_fields({"i": ["a", "a", "a"]}, {"i": values}, fields={"i": "aligned"})
        assert [(pair.expected_index, pair.extracted_index) for pair in found.pairs] == [(0, 0), (1, 1), (2, 2)]


def test_items_that_are_less_alike_than_the_limit_are_not_paired() -> None:
    rule = {"compare": "aligned", "min_similarity": 0.6}
    found = compare_fields({"i": [{"a": 1, "b": 2}]}, {"i": [{"a": 1, "b": 3}]}, fields={"i": rule})  # 1 of 2
    assert errors(found) == [
        ("i[0].a", "hallucination"),
        ("i[0].a", "omission"),
        ("i[0].b", "hallucination"),
        ("i[0].b", "omission"),
    ]


def test_aligned_lists_use_the_comparators_of_their_items_and_may_stand_in_each_other() -> None:
    rules = {
        "orders": "aligned",
        "orders[*].lines": "aligned",
        "orders[*].lines[*].price": {"compare": "number", "absolute": 0.01},
        "orders[*].tags": "set",
    }
    one = {"no": 1, "tags": ["x", "y"], "lines": [{"s": "a", "price": 1.10}, {"s": "b", "price": 2}]}
    two = {"no": 2, "tags": ["z"], "lines": [{"s": "c", "price": 3}]}
    turned = {"no": 1, "tags": ["y", "x"], "lines": [{"s": "b", "price": 2}, {"s": "a", "price": 1.09}]}
    found = compare_fields({"orders": [one, two]}, {"orders": [two, turned]}, fields=rules)
    assert not found.discrepancies
    assert [(pair.path, pair.expected_index, pair.extracted_index) for pair in found.pairs] == [
        ("orders", 0, 1),
        ("orders", 1, 0),
        ("orders[0].lines", 0, 1),
        ("orders[0].lines", 1, 0),
        ("orders[1].lines", 0, 0),
    ]


# --- JSON Schema

SCHEMA = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "title": "Invoice",
    "type": "object",
    "required": ["no"],
    "properties": {
        "no": {"type": "string"},
        "n": {"type": "integer"},
        "day": {"type": "string", "format": "date"},
        "at": {"type": ["string", "null"], "format": "date-time"},
        "state": {"enum": ["open", "paid"]},
        "rows": {"type": "array", "items": {"type": "object", "properties": {"v": {"type": "number"}}}},
        "other": {"$ref": "#/$defs/x", "type": "string", "format": "email"},
    },
}


@pytest.mark.parametrize(
    ("expected", "extracted", "wrong"),
    [
        ({"n": 3}, {"n": 3.0}, []),
        ({"n": 3}, {"n": 3.5}, [("n", "format_error")]),
        ({"day": "2024-05-01"}, {"day": "2024-05-02"}, [("day", "wrong_value")]),
        ({"day": "2024-05-01"}, {"day": "20240501"}, [("day", "format_error")]),
        ({"at": "2024-05-01T10:00:00Z"}, {"at": "2024-05-01T12:00:00+02:00"}, []),
        ({"at": "2024-05-01T10:00:00Z"}, {"at": "2024-05-01"}, [("at", "format_error")]),
        ({"state": "open"}, {"state": "paid"}, [("state", "wrong_value")]),
        ({"state": "open"}, {"state": "lost"}, [("state", "format_error")]),
        ({"rows": [{"v": 1}, {"v": 2}]}, {"rows": [{"v": 1}, {"v": "2"}]}, [("rows[1].v", "format_error")]),
        ({"unknown": "a"}, {"unknown": "a"}, []),
    ],
)
def test_a_schema_says_what_is_well_formed(expected: Any, extracted: Any, wrong: list[tuple[str, str]]) -> None:
    assert errors(compare_fields(expected, extracted, schema=SCHEMA)) == wrong


def test_what_of_a_schema_is_not_understood_is_noted_and_a_rule_comes_before_it() -> None:
    found = compare_fields({"n": 3}, {"n": "3"}, schema=SCHEMA, fields={"n": {"compare": "number", "from_text": True}})
    assert found.notes == ("$.other: $ref", "$.other: format email")
    assert not found.discrepancies


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"schema": {"properties": {"a": {"type": "strin"}}}}, r"^schema: \$\.a\.type: no type 'strin'; did you mean"),
        ({"schema": {"properties": []}}, r"^schema: \$\.properties: expected an object"),
        ({"fields": {"a": "numbr"}}, r"^fields: \$\.a: no comparator 'numbr'; did you mean 'number'\?"),
        ({"fields": {"a": {"compare": "regex", "pattern": "("}}}, r"is not a regular expression"),
        ({"fields": {"a": {"compare": "date", "formats": "%Q"}}}, r"not a format of strptime"),
        ({"fields": {"a": {"compare": "number", "decimal": ","}}}, r"decimal and thousands are both ','"),
        ({"fields": {"a": {"absolute": 1}}}, r'a rule needs "compare"'),
        ({"fn_counts": "all"}, r"^fn_counts: expected 'definition' or 'omissions_only'"),
    ],
)
def test_rules_that_cannot_hold_are_refused_in_one_line(arguments: Any, message: str) -> None:
    with pytest.raises(ConfigError, match=message) as raised:
        compare_fields({}, {}, **arguments)
    assert "\n" not in str(raised.value)


def test_values_that_json_does_not_have_are_refused() -> None:
    with pytest.raises(ConfigError, match="expected values that JSON has, found object"):
        compare_fields({"a": object()}, {})
    with pytest.raises(ConfigError, match="expected: expected an object, found list"):
        compare_fields([], {})  # type: ignore[arg-type]
    deep: dict[str, Any] = {}
    for _ in range(5000):
        deep = {"a": deep}
    with pytest.raises(ConfigError, match="nested too deeply"):
        compare_fields(deep, deep)


def test_it_is_a_public_name() -> None:
    assert judgekit.compare_fields is compare_fields


# --- properties

SCALARS = st.none() | st.booleans() | st.integers(-3, 3) | st.sampled_from(["x", "y", "3", 2.5])
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from("abcd"), inner, max_size=4),
    max_leaves=12,
)
OBJECTS = st.dictionaries(st.sampled_from("abcd"), VALUES, max_size=4)
RULES: list[dict[str, Any]] = [
    {},
    {"a": "set", "b": "aligned"},
    {"a": "aligned", "a[*].b": "aligned", "b[*]": {"compare": "number", "absolute": 1}, "c": "text"},
    {
        "a": "set",
        "a[*]": {"compare": "number", "absolute": 1},
        "b": "aligned",
        "b[*]": {"compare": "number", "relative": 1},
    },
]
COMPARERS = [FieldComparer(rules) for rules in RULES]


def shuffled(value: Any, rng: random.Random) -> Any:
    if isinstance(value, dict):
        items = [(key, shuffled(child, rng)) for key, child in value.items()]
        rng.shuffle(items)
        return dict(items)
    return [shuffled(child, rng) for child in value] if isinstance(value, list) else value


@given(OBJECTS, OBJECTS, st.integers(0, 99), st.sampled_from(COMPARERS))
def test_the_order_of_keys_changes_nothing(
    expected: dict[str, Any], extracted: dict[str, Any], seed: int, comparer: FieldComparer
) -> None:
    rng = random.Random(seed)
    found = comparer.compare(shuffled(expected, rng), shuffled(extracted, rng))
    assert found == comparer.compare(expected, extracted)


@given(OBJECTS, st.sampled_from(COMPARERS))
def test_an_object_equals_itself(value: dict[str, Any], comparer: FieldComparer) -> None:
    found = comparer.compare(value, value)
    assert not found.discrepancies
    if found.counts.total_gt_fields:
        assert (found.precision, found.recall, found.f1) == (1.0, 1.0, 1.0)


@given(OBJECTS, OBJECTS, st.sampled_from(COMPARERS))
def test_right_and_missed_fields_are_the_expected_ones(
    expected: dict[str, Any], extracted: dict[str, Any], comparer: FieldComparer
) -> None:
    found = comparer.compare(expected, extracted)
    counts = found.counts
    assert counts.true_positives + counts.false_negatives == counts.total_gt_fields
    assert counts.total_gt_fields == comparer.compare(expected, {}).counts.omission
    # what was extracted is right, or a false positive
    assert counts.true_positives + counts.false_positives == comparer.compare({}, extracted).counts.hallucination
    assert 0.0 <= found.f1 <= 1.0


@given(OBJECTS, st.integers(0, 99))
def test_aligned_lists_are_equal_in_any_order(value: dict[str, Any], seed: int) -> None:
    rows = [{"row": number, **value} for number in range(4)]
    turned = random.Random(seed).sample(rows, len(rows))
    assert not compare_fields({"rows": rows}, {"rows": turned}, fields={"rows": "aligned"}).discrepancies
    assert not compare_fields({"rows": rows}, {"rows": turned}, fields={"rows": "set"}).discrepancies
