"""Kinds of verdict: a scale, yes or no, labels, criteria. How each is read, scored and compared is said here alone.

Whatever works on verdicts of any judge takes a `Kind` and asks it; nothing else tells a scale from labels.
"""

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, ClassVar, Literal, NamedTuple

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter

from judgekit.core.cases import Criterion
from judgekit.core.judgments import CANNOT_TELL, CriterionVerdict, Verdict, VerdictError, share_met
from judgekit.core.reply_values import folded_word, read_flag, read_score, type_name
from judgekit.core.scores import Column, Failed, NotApplicable, Outcome, Outcomes
from judgekit.core.text import clean_text

CANNOT_BE_TOLD = NotApplicable("the judge cannot tell")
"""Why there is no score if a judge that may say so says that it cannot tell."""

_MOST_LISTED = 20
"""Points of a scale that a schema lists one by one; a longer scale is given by its ends."""

Said = int | float | bool | str | None
"""A verdict in one word, as it is stored and shown."""


class Contradiction(NamedTuple):
    """How two verdicts on one case contradict each other."""

    gap: bool
    """They are too far apart."""
    flip: bool
    """They fall into different classes: pass and fail, yes and no, one label and another."""


class Kind(BaseModel):
    """A kind of verdict with its bounds. Subclasses say what differs; the rest is the same for all."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    kind: str
    cannot_tell: bool = False
    """The judge may say that it cannot tell, which is neither a score nor a failure."""

    key: ClassVar[str]
    """Key of the reply that decides, unless the judge names another."""
    is_ordered: ClassVar[bool] = True
    """Whether one verdict can be higher than another, so that means and shifts say something."""
    is_nominal: ClassVar[bool] = False
    """Whether agreement counts every difference the same, whatever its size."""

    @property
    @abstractmethod
    def options(self) -> tuple[str, ...]:
        """What the deciding value may be, as a reply writes it, from the lowest."""

    @property
    def bounds(self) -> tuple[float, float]:
        """Lowest and highest rating."""
        return 0, 1

    @property
    def has_pass(self) -> bool:
        """Whether verdicts pass or fail."""
        return False

    @abstractmethod
    def told_schema(self) -> dict[str, Any]:
        """JSON Schema of the deciding value, if it can be told."""

    @property
    def value_schema(self) -> dict[str, Any]:
        """JSON Schema of the deciding value."""
        if not self.cannot_tell:
            return self.told_schema()
        return {"anyOf": [self.told_schema(), {"type": "string", "enum": [CANNOT_TELL]}]}

    def reply_schema(self, key: str) -> dict[str, Any]:
        """JSON Schema of a reply: the reasoning first, then what decides."""
        return {
            "type": "object",
            "additionalProperties": False,
            "required": ["reasoning", key],
            "properties": {"reasoning": {"type": "string"}, key: self.value_schema},
        }

    def read(self, payload: Mapping[str, Any], key: str) -> dict[str, Any]:
        """The fields of a `Verdict` that decide.

        Raises:
            VerdictError: missing, of another type, or not one of the options.
        """
        value = payload.get(key)
        if self.cannot_tell and isinstance(value, str) and folded_word(value) == CANNOT_TELL:
            return {"cannot_tell": True}
        return self.read_told(value, key)

    @abstractmethod
    def read_told(self, value: object, key: str) -> dict[str, Any]:
        """Like `read`, for a value that does not say that it cannot tell."""

    def is_plain(self, value: object) -> bool:
        """Whether a value is written as the schema asks; if not, it was read with good will."""
        return not isinstance(value, str) or (self.cannot_tell and value == CANNOT_TELL)

    def rating(self, verdict: Verdict) -> float | None:
        """The number that statistics work on; None if there is none, as for what cannot be told."""
        return verdict.rating

    def categories(self, verdict: Verdict) -> tuple[int | None, ...]:
        """What agreement beyond chance is counted over: one number for a verdict, or one for each of its parts."""
        rating = self.rating(verdict)
        return (None if rating is None else int(rating),)

    @property
    def category_bounds(self) -> tuple[int, int]:
        """Lowest and highest of `categories`."""
        low, high = self.bounds
        return int(low), int(high)

    def passes(self, verdict: Verdict) -> bool | None:  # noqa: ARG002  # a hook
        """Whether a verdict passes; None if there is no pass, or it cannot be told."""
        return None

    def side(self, verdict: Verdict) -> bool | None:
        """The class that a verdict falls into for confusion tables of two: it passes, or without a pass it is yes."""
        return self.passes(verdict)

    def contradiction(self, first: Verdict, second: Verdict) -> Contradiction:
        """How two verdicts contradict each other.

        One that cannot tell contradicts every other one.
        """
        if first.cannot_tell or second.cannot_tell:
            return Contradiction(gap=False, flip=first.cannot_tell != second.cannot_tell)
        return self.told_contradiction(first, second)

    def told_contradiction(self, first: Verdict, second: Verdict) -> Contradiction:
        """Like `contradiction`, for two verdicts that tell."""
        return Contradiction(gap=False, flip=self.passes(first) != self.passes(second))

    def columns(self, name: str) -> tuple[Column, ...]:
        """The scores of a judge of this kind and name."""
        found = list(self.value_columns(name))
        if self.has_pass:
            found.append(Column(f"{name}_pass", binary=True, aggregate=f"{name}_pass_rate"))
        if self.cannot_tell:
            rate = f"{name}.cannot_tell_rate"
            found.append(Column(f"{name}.cannot_tell", binary=True, higher_is_better=False, aggregate=rate))
        return tuple(found)

    @abstractmethod
    def value_columns(self, name: str) -> tuple[Column, ...]:
        """The scores besides pass and what cannot be told."""

    def scores(self, name: str, verdict: Verdict) -> Outcomes:
        """Outcome of every column; a verdict of another kind is a failure, never 0."""
        columns = self.columns(name)
        if verdict.cannot_tell:
            found: Outcomes = {column.name: CANNOT_BE_TOLD for column in columns}
        elif self.rating(verdict) is None:
            return {column.name: Failed("invalid", by_judge=True) for column in columns}
        else:
            found = self.value_scores(name, verdict)
            passed = self.passes(verdict)
            if passed is not None:
                found[f"{name}_pass"] = float(passed)
        if self.cannot_tell:
            found[f"{name}.cannot_tell"] = float(verdict.cannot_tell)
        return found

    def value_scores(self, name: str, verdict: Verdict) -> Outcomes:
        """Outcome of `value_columns` for a verdict that tells."""
        rating = self.rating(verdict)
        return {} if rating is None else {name: float(rating)}


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
        return {"type": "integer", "minimum": self.low, "maximum": self.high}

    def read_told(self, value: object, key: str) -> dict[str, Any]:
        return {"score": read_score({key: value}, key, self.low, self.high)}

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


class YesNo(Kind):
    """Yes or no."""

    kind: Literal["yes_no"] = "yes_no"
    passing: bool | None = None
    """The answer that passes; None: neither is good or bad."""

    key: ClassVar[str] = "answer"

    @property
    def options(self) -> tuple[str, ...]:
        return "false", "true"

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

    def told_contradiction(self, first: Verdict, second: Verdict) -> Contradiction:
        if first.answer is None or second.answer is None:
            raise ValueError("two verdicts can be compared where both are yes/no answers")
        return Contradiction(gap=False, flip=first.answer != second.answer)

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
    is_ordered: ClassVar[bool] = False
    is_nominal: ClassVar[bool] = True

    @property
    def options(self) -> tuple[str, ...]:
        return self.labels

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

    def passes(self, verdict: Verdict) -> bool | None:
        return verdict.label in self.passing if self.passing and verdict.label is not None else None

    def told_contradiction(self, first: Verdict, second: Verdict) -> Contradiction:
        if first.label is None or second.label is None:
            raise ValueError("two verdicts can be compared where both are labels")
        return Contradiction(gap=False, flip=first.label != second.label)

    def value_columns(self, name: str) -> tuple[Column, ...]:
        def column(label: str) -> Column:
            is_good = not self.passing or label in self.passing
            return Column(f"{name}.{label}", binary=True, higher_is_better=is_good, has_direction=bool(self.passing))

        return tuple(map(column, self.labels))

    def value_scores(self, name: str, verdict: Verdict) -> Outcomes:
        return {f"{name}.{label}": float(label == verdict.label) for label in self.labels}


class Criteria(Kind):
    """Several criteria, each met or not; the score is the weighted share that is met."""

    kind: Literal["criteria"] = "criteria"
    criteria: tuple[Criterion, ...] = ()
    """Empty: each case brings its own."""
    pass_share: float | None = None
    """Lowest share that passes."""
    tolerance: Annotated[float, Field(ge=0)] = 0.2
    """Shares further apart than this contradict each other."""

    key: ClassVar[str] = "criteria"
    is_nominal: ClassVar[bool] = True

    @property
    def options(self) -> tuple[str, ...]:
        return "false", "true"

    @property
    def has_pass(self) -> bool:
        return self.pass_share is not None

    @property
    def value_schema(self) -> dict[str, Any]:
        return self.told_schema()

    def told_schema(self) -> dict[str, Any]:
        known = {"enum": [item.id for item in self.criteria]} if self.criteria else {}
        met: dict[str, Any] = {"type": "boolean"}
        if self.cannot_tell:
            met = {"anyOf": [met, {"type": "string", "enum": [CANNOT_TELL]}]}
        item = {
            "type": "object",
            "additionalProperties": False,
            "required": ["id", "evidence", "met"],
            "properties": {"id": {"type": "string", **known}, "evidence": {"type": "string"}, "met": met},
        }
        return {"type": "array", "items": item}

    def read_told(self, value: object, key: str) -> dict[str, Any]:
        if not isinstance(value, list):
            raise VerdictError("invalid", f"{key!r} is {type_name(value)}, expected a list of criteria")
        found: dict[str, CriterionVerdict] = {}
        for entry in value:
            item = self._criterion(entry, key)
            if item.id in found:
                raise VerdictError("invalid", f"criterion {item.id[:40]!r} comes twice in {key!r}")
            found[item.id] = item
        return {"criteria": self.settled(found, self.criteria) if self.criteria else tuple(found.values())}

    def settled(
        self, found: Mapping[str, CriterionVerdict], wanted: Sequence[Criterion]
    ) -> tuple[CriterionVerdict, ...]:
        """Every wanted criterion with its weight, in their order.

        Raises:
            VerdictError: one is missing, or there is one that was not asked about.
        """
        missing = [item.id for item in wanted if item.id not in found]
        if missing:
            raise VerdictError("invalid", f"the reply says nothing of criterion {', '.join(missing)[:200]}")
        foreign = found.keys() - {item.id for item in wanted}
        if foreign:
            raise VerdictError("invalid", f"the reply has a criterion that was not asked about: {min(foreign)[:40]!r}")
        return tuple(found[item.id].model_copy(update={"weight": item.weight}) for item in wanted)

    def _criterion(self, entry: object, key: str) -> CriterionVerdict:
        if not isinstance(entry, dict) or not {"id", "met"} <= entry.keys() <= {"id", "met", "evidence"}:
            raise VerdictError("invalid", f"{key!r} holds an entry that is not an object of 'id', 'evidence' and 'met'")
        name, met, evidence = entry["id"], entry["met"], entry.get("evidence", "")
        if not isinstance(name, str) or not isinstance(evidence, str):
            raise VerdictError("invalid", f"{key!r} holds an 'id' or 'evidence' that is not a text")
        known = {folded_word(item.id): item.id for item in self.criteria}
        is_told = not (self.cannot_tell and isinstance(met, str) and folded_word(met) == CANNOT_TELL)
        return CriterionVerdict(
            id=known.get(folded_word(name), clean_text(name).strip()),
            met=read_flag(entry, "met") if is_told else None,
            evidence=clean_text(evidence),
        )

    def categories(self, verdict: Verdict) -> tuple[int | None, ...]:
        return tuple(2 if item.met is None else int(item.met) for item in verdict.criteria or ())

    @property
    def category_bounds(self) -> tuple[int, int]:
        return 0, 1 + self.cannot_tell

    def passes(self, verdict: Verdict) -> bool | None:
        share = self.rating(verdict)
        return None if self.pass_share is None or share is None else share >= self.pass_share

    def told_contradiction(self, first: Verdict, second: Verdict) -> Contradiction:
        shares = self.rating(first), self.rating(second)
        if shares[0] is None or shares[1] is None:
            return Contradiction(gap=False, flip=(shares[0] is None) != (shares[1] is None))
        gap = abs(shares[0] - shares[1]) > self.tolerance + 1e-9
        return Contradiction(gap, flip=self.passes(first) != self.passes(second))

    def value_columns(self, name: str) -> tuple[Column, ...]:
        parts = [Column(f"{name}.{item.id}", binary=True, higher_is_better=item.weight > 0) for item in self.criteria]
        return (Column(name), *parts)

    def scores(self, name: str, verdict: Verdict) -> Outcomes:
        """As for every kind; one that cannot tell any criterion is one that cannot tell."""
        if verdict.criteria and share_met(verdict.criteria) is None:
            verdict = verdict.model_copy(update={"cannot_tell": True})
        found = super().scores(name, verdict)
        if self.cannot_tell and verdict.criteria:
            n_open = sum(item.met is None for item in verdict.criteria)
            found[f"{name}.cannot_tell"] = n_open / len(verdict.criteria)
        return found

    def columns(self, name: str) -> tuple[Column, ...]:
        """As for every kind; what cannot be told is a share of the criteria."""
        rate = f"{name}.cannot_tell"
        return tuple(
            Column(rate, higher_is_better=False, aggregate=f"{rate}_rate") if column.name == rate else column
            for column in super().columns(name)
        )

    def value_scores(self, name: str, verdict: Verdict) -> Outcomes:
        said = {item.id: item.met for item in verdict.criteria or ()}

        def outcome(item: Criterion) -> Outcome:
            met = said.get(item.id)
            return CANNOT_BE_TOLD if met is None else float(met)

        return {**super().value_scores(name, verdict), **{f"{name}.{item.id}": outcome(item) for item in self.criteria}}


AnyKind = Annotated[Scale | YesNo | Labels | Criteria, Field(discriminator="kind")]
_KINDS: TypeAdapter[Kind] = TypeAdapter(AnyKind)


def stored_kind(record: Mapping[str, Any]) -> Kind:
    """A kind as a run stores it."""
    return _KINDS.validate_python(record)
