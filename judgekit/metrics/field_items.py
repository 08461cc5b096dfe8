"""Items of two lists, to be paired: how alike they are, and which go together."""

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from judgekit.metrics.field_rules import AlignedRule, Comparator, Unreadable, kind_of
from judgekit.metrics.field_tree import PLAIN, FieldNode, extend
from judgekit.stats.assignment import cheapest_assignment

_FINE = 10**9
"""Similarities are paired as whole numbers of a billionth, so that ties are ties."""


class Loose(NamedTuple):
    """A leaf that is not compared by equality alone."""

    rule: Comparator
    reading: Any
    """None if the value cannot be read."""
    value: Any


@dataclass(frozen=True, slots=True)
class Item:
    """An item of a list with its leaves; what is not to be compared by equality is kept apart."""

    index: int
    value: Any
    keys: frozenset[tuple[str, Hashable]]
    """(path, reading) of the leaves that are equal exactly if their readings are."""
    loose: dict[str, "Loose"]
    """The other leaves, by path."""
    paths: frozenset[str]
    """Of all leaves."""


Alike = Callable[[Item, Item], float]
"""Similarity of an expected and an extracted item in [0, 1]."""


def items_of(values: Sequence[Any], node: FieldNode, known: dict[frozenset[str], frozenset[str]]) -> list[Item]:
    """The items that hold a leaf.

    Args:
        values: the list.
        node: what is declared of its items.
        known: sets of paths met so far; most items have the same, which is then one object and equal at a glance.
    """
    items = []
    for index, value in enumerate(values):
        keys: list[tuple[str, Hashable]] = []
        loose: dict[str, Loose] = {}
        for path, rule, leaf in _leaves(node, value, ""):
            if rule is not None and not rule.keyed:
                loose[path] = Loose(rule, _readable(rule, leaf), leaf)
            else:
                keys.append((path, _key(rule, leaf)))
        found = frozenset([*[path for path, _ in keys], *loose])
        if found:
            items.append(Item(index, value, frozenset(keys), loose, known.setdefault(found, found)))
    return items


def _leaves(node: FieldNode, value: Any, path: str) -> Iterator[tuple[str, Comparator | None, Any]]:
    kind = kind_of(value)
    if kind == "object":
        for key, child in value.items():
            yield from _leaves(node.children.get(key, PLAIN), child, extend(path, key))
    elif kind == "array":
        for index, child in enumerate(value):
            yield from _leaves(node.at.get(index) or node.item or PLAIN, child, extend(path, index))
    elif kind != "absent":
        yield path, node.rule, value


def _key(rule: Comparator | None, value: Any) -> Hashable:
    """Equal for two values exactly if they are the same; values that cannot be read are compared exactly."""
    reading = None if rule is None else _readable(rule, value)
    return (kind_of(value), value) if reading is None else ("read", reading)


def _readable(rule: Comparator, value: Any) -> Hashable:
    try:
        return rule.read(value)
    except Unreadable:
        return None


def share_equal(expected: Item, extracted: Item) -> float:
    """Equal leaves / leaves of either item, by their paths."""
    n_equal = len(expected.keys & extracted.keys)
    others = extracted.loose
    for path, (rule, reading, value) in expected.loose.items():
        other = others.get(path)
        if other is None:
            continue
        if reading is None and rule.reads_expected:
            n_equal += other.reading is None and _key(None, value) == _key(None, other.value)
        elif other.reading is not None:
            n_equal += rule.same(reading, other.reading)
    if expected.paths is extracted.paths:
        return n_equal / len(expected.paths)
    return n_equal / len(expected.paths | extracted.paths)


def align(
    expected: Sequence[Item], extracted: Sequence[Item], alike: Alike, rule: AlignedRule
) -> list[tuple[Item, Item, float]]:
    """Pairs with the largest sum of similarities; of equal sums the one whose items move least.

    Returns:
        (expected item, extracted item, similarity), in the order of the expected items.
    """
    if len(expected) == len(extracted) and all(
        not one.loose and not other.loose and one.keys == other.keys and one.index == other.index
        for one, other in zip(expected, extracted, strict=True)
    ):
        return [(one, other, 1.0) for one, other in zip(expected, extracted, strict=True)]
    similarities = [[alike(one, other) for other in extracted] for one in expected]
    # An item moves by less than the length of both lists, so all moves together weigh less than one billionth.
    longest = max([item.index for item in (*expected, *extracted)], default=0) + 1
    step = longest * (min(len(expected), len(extracted)) + 1)
    least = rule.min_similarity
    costs = [
        [
            abs(one.index - other.index) - (round(similarity * _FINE) * step if similarity >= least else 0)
            for other, similarity in zip(extracted, line, strict=True)
        ]
        for one, line in zip(expected, similarities, strict=True)
    ]
    return [
        (expected[row], extracted[column], similarities[row][column])
        for row, column in cheapest_assignment(costs)
        if similarities[row][column] >= least
    ]


def match_equal(
    expected: Sequence[Item], extracted: Sequence[Item], alike: Alike, *, keyed: bool
) -> list[tuple[Item, Item]]:
    """As many pairs of equal items as there can be, each item in one pair at most."""
    if keyed:
        waiting: dict[frozenset[tuple[str, Hashable]], list[Item]] = defaultdict(list)
        for item in reversed(extracted):
            waiting[item.keys].append(item)
        return [(item, waiting[item.keys].pop()) for item in expected if waiting.get(item.keys)]
    costs = [[0 if alike(one, other) == 1.0 else 1 for other in extracted] for one in expected]
    return [(expected[row], extracted[column]) for row, column in cheapest_assignment(costs) if not costs[row][column]]
