"""What a comparison of two objects gives: counts of right and wrong fields, the figures that follow, discrepancies."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import astuple, dataclass
from typing import Any, Literal

from judgekit.core.errors import InputError, did_you_mean

FnCounts = Literal["definition", "omissions_only"]
ErrorType = Literal["omission", "hallucination", "format_error", "wrong_value"]
ERROR_TYPES: tuple[ErrorType, ...] = ("omission", "hallucination", "format_error", "wrong_value")


def ratio(n_right: float, n_wrong: float) -> float:
    """`right / (right + wrong)` in [0, 1]: precision with false positives, recall with false negatives; 0.0 for 0/0."""
    return n_right / (n_right + n_wrong) if n_right + n_wrong else 0.0


def f1_of(n_right: float, n_false: float, n_missed: float) -> float:
    """`2 P R / (P + R)` in [0, 1], the harmonic mean of precision and recall; 0.0 if both are 0."""
    precision, recall = ratio(n_right, n_false), ratio(n_right, n_missed)
    return 2.0 * precision * recall / (precision + recall) if precision + recall else 0.0


@dataclass(frozen=True, slots=True)
class FieldCounts:
    """How often fields were right and wrong, and the figures that follow.

    `true_positives = total_gt_fields - omission - format_error - wrong_value`, `false_positives = hallucination +
    format_error + wrong_value`, `false_negatives = omission + format_error + wrong_value` (with `fn_counts`
    "omissions_only": omission). Precision, recall and F1 are in [0, 1], higher is better, 0.0 on a zero denominator.
    """

    fn_counts: FnCounts = "definition"
    total_gt_fields: int = 0
    """Expected fields."""
    omission: int = 0
    hallucination: int = 0
    format_error: int = 0
    wrong_value: int = 0

    def __add__(self, other: "FieldCounts") -> "FieldCounts":
        return FieldCounts(self.fn_counts, *map(sum, zip(astuple(self)[1:], astuple(other)[1:], strict=True)))

    @property
    def true_positives(self) -> int:
        return self.total_gt_fields - self.omission - self.format_error - self.wrong_value

    @property
    def false_positives(self) -> int:
        return self.hallucination + self.format_error + self.wrong_value

    @property
    def false_negatives(self) -> int:
        if self.fn_counts == "omissions_only":
            return self.omission
        return self.omission + self.format_error + self.wrong_value

    @property
    def n_wrong(self) -> int:
        """Discrepancies of all types."""
        return self.omission + self.hallucination + self.format_error + self.wrong_value

    @property
    def precision(self) -> float:
        return ratio(self.true_positives, self.false_positives)

    @property
    def recall(self) -> float:
        return ratio(self.true_positives, self.false_negatives)

    @property
    def f1(self) -> float:
        return f1_of(self.true_positives, self.false_positives, self.false_negatives)


@dataclass(frozen=True, slots=True)
class Discrepancy:
    """One field that is not as expected."""

    path: str
    """Items of a set or aligned list go by their index in the expected list; those without a partner there that were
    extracted, by their index in the extracted list."""
    error_type: ErrorType
    expected: Any
    """None for a hallucination."""
    extracted: Any
    """None for an omission."""


def count_by_type(discrepancies: Iterable[Discrepancy | ErrorType]) -> dict[ErrorType, int]:
    """How many discrepancies there are of each error type.

    Args:
        discrepancies: as in `FieldComparison.discrepancies`, or error types alone.

    Returns:
        A count for each of the four types, 0 if there is none.

    Raises:
        InputError: an error type that there is not.
    """
    types = Counter(item if isinstance(item, str) else item.error_type for item in discrepancies)
    unknown = [name for name in types if name not in ERROR_TYPES]
    if unknown:
        raise InputError(f"no error type {unknown[0]!r}{did_you_mean(unknown[0], ERROR_TYPES)}")
    return {name: types[name] for name in ERROR_TYPES}


def compute_confusion_counts(
    discrepancies: Iterable[Discrepancy | ErrorType], total_gt_fields: int, *, fn_counts: FnCounts = "definition"
) -> FieldCounts:
    """True and false positives and false negatives over a list of discrepancies, and the figures that follow.

    Args:
        discrepancies: as in `FieldComparison.discrepancies`, or error types alone.
        total_gt_fields: expected fields, right and wrong ones.
        fn_counts: what counts as a false negative, as in the config.

    Returns:
        The counts, with `true_positives`, `false_positives`, `false_negatives`, `precision`, `recall` and `f1`.

    Raises:
        InputError: an unknown error type, or more wrong fields than there are expected ones.
    """
    counts = FieldCounts(fn_counts, total_gt_fields, **count_by_type(discrepancies))
    if counts.true_positives < 0:
        n_wrong = total_gt_fields - counts.true_positives
        raise InputError(f"{n_wrong} expected fields are wrong or omitted, but total_gt_fields is {total_gt_fields}")
    return counts


@dataclass(frozen=True, slots=True)
class AlignedPair:
    """An item of an aligned list and its partner."""

    path: str
    """Of the list."""
    expected_index: int | None
    """None: extracted, without a partner."""
    extracted_index: int | None
    """None: expected, without a partner."""
    similarity: float | None
    """Equal leaves / leaves of either item; None without a partner."""


@dataclass(frozen=True, slots=True)
class FieldComparison:
    """What the comparison of two objects found."""

    counts: FieldCounts
    discrepancies: tuple[Discrepancy, ...]
    """In the order of their paths."""
    pairs: tuple[AlignedPair, ...]
    """Of every aligned list."""
    by_field: Mapping[str, FieldCounts]
    """Counts by path, with `[*]` for every index."""
    notes: tuple[str, ...]
    """Expected values that are not in the declared format, and parts of the schema that are not understood."""

    @property
    def precision(self) -> float:
        return self.counts.precision

    @property
    def recall(self) -> float:
        return self.counts.recall

    @property
    def f1(self) -> float:
        return self.counts.f1
