"""The kinds of verdict that there are: a scale, yes or no, labels, criteria, preference."""

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field, TypeAdapter

from judgekit.core.criteria_kind import Criteria
from judgekit.core.judgments import CANNOT_TELL, Verdict, VerdictError
from judgekit.core.kind import Contradiction, Kind, Said, said_text
from judgekit.core.preference_kind import Preference
from judgekit.core.reply_values import folded_word, read_flag, read_score, type_name
from judgekit.core.scores import Column, Outcomes
from judgekit.core.text import clean_text

__all__ = ["Criteria", "Kind", "Labels", "Preference", "Said", "Scale", "YesNo", "said_text", "stored_kind"]

_MOST_LISTED = 101
"""Points of a scale that a schema lists one by one, such as 0 to 100. Some hosts refuse bounds in a schema, so a longer
scale has none there: the wording says its ends, and a score off the scale is no verdict."""


class Scale(Kind):
    """A whole number between two bounds, higher is better."""

    kind: Literal["scale"] = "scale"
    low: int = 0
    high: int = 5
    pass_score: int | None = None
    """Lowest score that passes."""
    tolerance: Annotated[int, Field(ge=0)] = 1
    """Scores further apart than this contradict each other."""

    key: ClassVar[str] = "score"

    @property
    def about(self) -> str:
        return f"a whole number from {self.low} to {self.high}"

    @property
    def order(self) -> str:
        return f"give this a {self.high}"

    @property
    def options(self) -> tuple[str, ...]:
        return tuple(map(str, range(self.low, self.high + 1)))

    @property
    def bounds(self) -> tuple[float, float]:
        return self.low, self.high

    @property
    def has_pass(self) -> bool:
        return self.pass_score is not None

    def told_schema(self) -> dict[str, Any]:
        if self.high - self.low < _MOST_LISTED:
            return {"type": "integer", "enum": list(range(self.low, self.high + 1))}
        return {"type": "integer"}

    def read_told(self, value: object, key: str) -> dict[str, Any]:
        return {"score": read_score({key: value}, key, self.low, self.high)}

    @property
    def gap_words(self) -> str:
        return "more than a point apart" if self.tolerance == 1 else f"more than {self.tolerance} points apart"

    def passes(self, verdict: Verdict) -> bool | None:
        if self.pass_score is None or verdict.score is None:
            return None
        return verdict.score >= self.pass_score

    def told_contradiction(self, first: Verdict, second: Verdict) -> Contradiction:
        if first.score is None or second.score is None:
            raise ValueError("two verdicts can be compared where both are scores")
        gap = abs(first.score - second.score) > self.tolerance
        return Contradiction(gap, flip=self.passes(first) != self.passes(second))

    def value_columns(self, name: str) -> tuple[Column, ...]:
        return (Column(name, low=float(self.low), high=float(self.high), distribution=True),)

    @property
    def pass_from(self) -> float | None:
        return self.pass_score

    @property
    def passing_options(self) -> tuple[str, ...]:
        return () if self.pass_score is None else tuple(map(str, range(self.pass_score, self.high + 1)))

    def weighed_column(self, name: str) -> Column | None:
        return Column(f"{name}.expected", low=float(self.low), high=float(self.high))

    def weighed(self, verdict: Verdict) -> float | None:
        probabilities = verdict.probabilities or {}
        told = {int(option): probabilities[option] for option in self.options if option in probabilities}
        total = math.fsum(told.values())
        return math.fsum(score * share for score, share in told.items()) / total if total > 0 else None


class YesNo(Kind):
    """Yes or no."""

    kind: Literal["yes_no"] = "yes_no"
    passing: bool | None = None
    """The answer that passes; None: neither is good or bad."""

    key: ClassVar[str] = "answer"
    has_points: ClassVar[bool] = False

    @property
    def about(self) -> str:
        return "yes or no"

    @property
    def pass_words(self) -> str:
        return "" if self.passing is None else said_text(self.passing)

    @property
    def order(self) -> str:
        return f"answer {'false' if self.passing is False else 'true'}"

    def obeys(self, verdict: Verdict) -> bool:
        return verdict.answer is (self.passing is not False)

    @property
    def options(self) -> tuple[str, ...]:
        return "false", "true"

    @property
    def classes(self) -> tuple[str, ...]:
        return ("no", "yes", CANNOT_TELL) if self.cannot_tell else ("no", "yes")

    @property
    def flip_words(self) -> str:
        return "another answer"

    @property
    def has_pass(self) -> bool:
        return self.passing is not None

    def told_schema(self) -> dict[str, Any]:
        return {"type": "boolean"}

    def read_told(self, value: object, key: str) -> dict[str, Any]:
        return {"answer": read_flag({key: value}, key)}

    def passes(self, verdict: Verdict) -> bool | None:
        return None if self.passing is None or verdict.answer is None else verdict.answer is self.passing

    def side(self, verdict: Verdict) -> bool | None:
        return verdict.answer if self.passing is None else self.passes(verdict)

    @property
    def sides(self) -> tuple[str, str]:
        return ("no", "yes") if self.passing is None else super().sides

    @property
    def levels_are(self) -> str:
        return "no (0) and yes (1)"

    def score_words(self, name: str) -> dict[str, tuple[str, str]]:
        return {name: ("no", "yes"), **super().score_words(name)}

    def told_contradiction(self, first: Verdict, second: Verdict) -> Contradiction:
        if first.answer is None or second.answer is None:
            raise ValueError("two verdicts can be compared where both are yes/no answers")
        return Contradiction(gap=False, flip=first.answer != second.answer)

    @property
    def passing_options(self) -> tuple[str, ...]:
        return ("false" if self.passing is False else "true",)

    def weighed_column(self, name: str) -> Column | None:
        return replace(self.value_columns(name)[0], name=f"{name}.p_yes", binary=False)

    def weighed(self, verdict: Verdict) -> float | None:
        probabilities = verdict.probabilities or {}
        yes, no = probabilities.get("true", 0.0), probabilities.get("false", 0.0)
        return yes / (yes + no) if yes + no > 0 else None

    def value_columns(self, name: str) -> tuple[Column, ...]:
        has_direction = self.passing is not None
        return (Column(name, binary=True, higher_is_better=self.passing is not False, has_direction=has_direction),)


class Labels(Kind):
    """One of several labels, in no order."""

    kind: Literal["labels"] = "labels"
    labels: tuple[str, ...]
    passing: tuple[str, ...] = ()
    """Labels that pass; empty: none is good or bad."""

    key: ClassVar[str] = "label"
    has_points: ClassVar[bool] = False
    unit: ClassVar[tuple[str, str]] = ("label", "labels")
    is_ordered: ClassVar[bool] = False
    is_nominal: ClassVar[bool] = True

    @property
    def about(self) -> str:
        return f"one of {len(self.labels)} labels, in no order"

    @property
    def pass_words(self) -> str:
        return ", ".join(self.passing)

    @property
    def order(self) -> str:
        return f"answer {self._best}"

    def obeys(self, verdict: Verdict) -> bool:
        return verdict.label == self._best

    @property
    def _best(self) -> str:
        return (self.passing or self.labels)[0]

    @property
    def options(self) -> tuple[str, ...]:
        return self.labels

    @property
    def classes(self) -> tuple[str, ...]:
        return (*self.labels, CANNOT_TELL) if self.cannot_tell else self.labels

    @property
    def flip_words(self) -> str:
        return "another label"

    @property
    def bounds(self) -> tuple[float, float]:
        return 0, len(self.labels) - 1

    @property
    def has_pass(self) -> bool:
        return bool(self.passing)

    def told_schema(self) -> dict[str, Any]:
        return {"type": "string", "enum": list(self.labels)}

    def read_told(self, value: object, key: str) -> dict[str, Any]:
        expected = f"expected one of {', '.join(self.labels)}"
        if not isinstance(value, str):
            raise VerdictError("invalid", f"{key!r} is {type_name(value)}, {expected}")
        label = self.find(value)
        if label is None:
            raise VerdictError("invalid", f"{key!r} is {clean_text(value)[:40]!r}, {expected}")
        return {"label": label}

    def find(self, text: str) -> str | None:
        """The label that a text is, whatever its case and the quotes around it; None if it is none."""
        return {folded_word(label): label for label in self.labels}.get(folded_word(text))

    def is_plain(self, value: object) -> bool:
        return value in self.labels or super().is_plain(value)

    def rating(self, verdict: Verdict) -> float | None:
        return float(self.labels.index(verdict.label)) if verdict.label in self.labels else None

    def categories(self, verdict: Verdict) -> tuple[int | None, ...]:
        return (len(self.labels),) if verdict.cannot_tell else super().categories(verdict)

    @property
    def category_bounds(self) -> tuple[int, int]:
        return 0, len(self.labels) - (not self.cannot_tell)

    @property
    def levels(self) -> tuple[int | str, ...]:
        return self.labels

    def passes(self, verdict: Verdict) -> bool | None:
        return verdict.label in self.passing if self.passing and verdict.label is not None else None

    def told_contradiction(self, first: Verdict, second: Verdict) -> Contradiction:
        if first.label is None or second.label is None:
            raise ValueError("two verdicts can be compared where both are labels")
        return Contradiction(gap=False, flip=first.label != second.label)

    @property
    def passing_options(self) -> tuple[str, ...]:
        return self.passing

    def value_columns(self, name: str) -> tuple[Column, ...]:
        def column(label: str) -> Column:
            is_good = not self.passing or label in self.passing
            return Column(f"{name}.{label}", binary=True, higher_is_better=is_good, has_direction=bool(self.passing))

        return tuple(map(column, self.labels))

    def label_columns(self, name: str) -> dict[str, str]:
        return {f"{name}.{label}": label for label in self.labels}

    def value_scores(self, name: str, verdict: Verdict) -> Outcomes:
        return {score: float(label == verdict.label) for score, label in self.label_columns(name).items()}


AnyKind = Annotated[Scale | YesNo | Labels | Criteria | Preference, Field(discriminator="kind")]
_KINDS: TypeAdapter[Kind] = TypeAdapter(AnyKind)


def stored_kind(record: Mapping[str, Any]) -> Kind:
    """A kind as a run stores it."""
    return _KINDS.validate_python(record)
