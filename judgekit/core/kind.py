"""What a kind of verdict has to say: how a verdict is read, scored and compared.

Whatever works on verdicts of any judge takes a `Kind` and asks it; nothing else tells a scale from labels.
"""

import math
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, NamedTuple

from pydantic import BaseModel, ConfigDict

from judgekit.core.judgments import CANNOT_TELL, Verdict
from judgekit.core.reply_values import folded_word
from judgekit.core.scores import Column, Failed, NotApplicable, Outcomes

CANNOT_BE_TOLD = NotApplicable("the judge cannot tell")
"""Why there is no score if a judge that may say so says that it cannot tell."""

Said = int | float | bool | str | None
"""A verdict in one word, as it is stored."""


def said_text(said: Said) -> str:
    """A verdict in one word, as readers see it: yes or no, a score, a label, a share with two digits."""
    if isinstance(said, bool):
        return "yes" if said else "no"
    if said is None:
        return "none"
    return f"{said:.2f}" if isinstance(said, float) else str(said)


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
    has_parts: ClassVar[bool] = False
    """Whether a verdict is made of several values, of which none decides alone."""
    has_points: ClassVar[bool] = True
    """Whether the rating is an amount, so that one can lie some points above another."""
    unit: ClassVar[tuple[str, str]] = ("score", "scores")
    """What `categories` are, one and several."""

    @property
    @abstractmethod
    def options(self) -> tuple[str, ...]:
        """What the deciding value may be, as a reply writes it, from the lowest."""

    @property
    def all_options(self) -> tuple[str, ...]:
        """The options, and that it cannot be told, if the judge may say so."""
        return (*self.options, CANNOT_TELL) if self.cannot_tell else self.options

    @property
    def reply_options(self) -> tuple[str, ...]:
        """What the deciding value of one reply may be, if it takes several replies to a verdict; else all options."""
        return self.all_options

    @property
    def passing_options(self) -> tuple[str, ...]:
        """The options on the side that passes, as of `side`; none if there is no such side."""
        return ()

    def weighed_column(self, name: str) -> Column | None:  # noqa: ARG002  # a hook
        """The figure of the probabilities of the options; None if the kind has none."""
        return None

    def weighed(self, verdict: Verdict) -> float | None:  # noqa: ARG002  # a hook
        """That figure for one verdict; None for a kind without one, and without probabilities that tell anything."""
        return None

    def pass_probability(self, verdict: Verdict) -> float | None:
        """How likely a verdict is on the side that passes, of what it can tell; None without probabilities."""
        if verdict.probabilities is None or not self.passing_options:
            return None
        told = math.fsum(verdict.probabilities.get(option, 0.0) for option in self.options)
        passing = math.fsum(verdict.probabilities.get(option, 0.0) for option in self.passing_options)
        return min(1.0, passing / told) if told > 0 else None

    @property
    def bounds(self) -> tuple[float, float]:
        """Lowest and highest rating."""
        return 0, 1

    @property
    def has_pass(self) -> bool:
        """Whether verdicts pass or fail."""
        return False

    @property
    @abstractmethod
    def about(self) -> str:
        """What a verdict may be, in words."""

    @property
    def pass_words(self) -> str:
        """What passes, in words; empty if nothing does."""
        return "" if self.pass_from is None else f"{self.pass_from:g} and above"

    @property
    def classes(self) -> tuple[str, ...]:
        """What a verdict may be, in words, where that is one of a few that a confusion table can be drawn of."""
        return ()

    @property
    def order(self) -> str:
        """What a text that is judged would tell the judge to do, to be given the best verdict."""
        return "give it the best verdict"

    def obeys(self, verdict: Verdict) -> bool:
        """Whether a verdict is what `order` asks for."""
        return self.rating(verdict) == self.bounds[1]

    @property
    def gap_words(self) -> str:
        """What `Contradiction.gap` is; empty if there is no such thing."""
        return ""

    @property
    def flip_words(self) -> str:
        """What `Contradiction.flip` is."""
        return "on the other side of the pass line"

    @abstractmethod
    def told_schema(self) -> dict[str, Any]:
        """JSON Schema of the deciding value, if it can be told."""

    @property
    def value_schema(self) -> dict[str, Any]:
        """JSON Schema of the deciding value."""
        if not self.cannot_tell:
            return self.told_schema()
        return {"anyOf": [self.told_schema(), {"type": "string", "enum": [CANNOT_TELL]}]}

    def reply_schema(self, key: str, *, alone: bool = False) -> dict[str, Any]:
        """JSON Schema of a reply: the reasoning first, unless the verdict stands alone, then what decides."""
        properties = {} if alone else {"reasoning": {"type": "string"}}
        properties[key] = self.value_schema
        return {
            "type": "object",
            "additionalProperties": False,
            "required": [*properties],
            "properties": properties,
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

    def joined(self, verdicts: Sequence[Verdict]) -> Verdict:
        """What verdicts on the parts of one question come to; that on the only part, unless overridden."""
        return verdicts[0]

    def rating(self, verdict: Verdict) -> float | None:
        """The number that statistics work on; None if there is none, as for what cannot be told."""
        return verdict.rating

    def categories(self, verdict: Verdict) -> tuple[int | None, ...]:
        """What agreement beyond chance is counted over: one number for a verdict, or one for each of its parts."""
        rating = self.rating(verdict)
        return (None if rating is None else int(rating),)

    def is_same(self, first: Verdict, second: Verdict) -> bool:
        """Whether two verdicts are equal in everything that decides."""
        return first.cannot_tell == second.cannot_tell and self.categories(first) == self.categories(second)

    @property
    def category_bounds(self) -> tuple[int, int]:
        """Lowest and highest of `categories`."""
        low, high = self.bounds
        return int(low), int(high)

    @property
    def levels(self) -> tuple[int | str, ...]:
        """What a category is called where verdicts are counted in a table, from the lowest, if it can be told."""
        low, high = self.category_bounds
        return tuple(range(low, high + 1))

    @property
    def levels_are(self) -> str:
        """What the levels are, in words."""
        return self.unit[1]

    @property
    def part_names(self) -> tuple[str, ...]:
        """Names of the parts that have a figure of their own: labels, or criteria that are the same for all cases."""
        return tuple(item.name[1:] for item in self.value_columns("") if item.binary and item.name.startswith("."))

    def flags(self, verdict: Verdict) -> dict[str, bool]:
        """Of each part whether the verdict says so, as far as it can be told."""
        found = self.scores("", verdict)
        return {name: bool(value) for name in self.part_names if isinstance(value := found[f".{name}"], float)}

    @property
    def pass_from(self) -> float | None:
        """The lowest rating that passes, where a rating decides that."""
        return None

    @property
    def sides(self) -> tuple[str, str]:
        """What the two classes of `side` are called."""
        return "fail", "pass"

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

    def label_columns(self, name: str) -> dict[str, str]:  # noqa: ARG002  # a hook
        """The label that each score stands for that is 1 for it, by the name of the score; none for most kinds."""
        return {}

    def score_words(self, name: str) -> dict[str, tuple[str, str]]:
        """What 0 and 1 of a score are called, by its name, where they are no amounts."""
        return {f"{name}_pass": ("fail", "pass")} if self.has_pass else {}

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
