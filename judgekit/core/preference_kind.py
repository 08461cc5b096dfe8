"""The kind of verdict that says which of two answers is better, asked in both orders."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Literal

from judgekit.core.judgments import Verdict, VerdictError
from judgekit.core.kind import Contradiction, Kind
from judgekit.core.reply_values import folded_word, type_name
from judgekit.core.scores import Column, NotApplicable, Outcomes
from judgekit.core.text import clean_text


class Preference(Kind):
    """Which of two answers is better. It is asked in both orders, and what both say is the verdict.

    The same answer picked twice is a pick (`A` or `B`), a tie said twice is a `tie`, and everything else is a `flip`:
    the same place picked twice, and a tie in one order only, since there too nothing but the order has changed.
    """

    kind: Literal["preference"] = "preference"

    key: ClassVar[str] = "better"
    is_ordered: ClassVar[bool] = False
    is_nominal: ClassVar[bool] = True
    has_points: ClassVar[bool] = False
    unit: ClassVar[tuple[str, str]] = ("preference", "preferences")
    outcomes: ClassVar[tuple[str, ...]] = ("A", "B", "tie", "flip")
    """What the two orders can come to."""

    @property
    def about(self) -> str:
        return "which of two answers is better, asked in both orders"

    @property
    def options(self) -> tuple[str, ...]:
        return "A", "B", "tie"

    @property
    def reply_options(self) -> tuple[str, ...]:
        return "first", "second", "tie"

    @property
    def classes(self) -> tuple[str, ...]:
        return self.outcomes

    @property
    def flip_words(self) -> str:
        return "another preference"

    @property
    def bounds(self) -> tuple[float, float]:
        return 0, len(self.outcomes) - 1

    @property
    def levels(self) -> tuple[int | str, ...]:
        return self.outcomes

    def told_schema(self) -> dict[str, Any]:
        return {"type": "string", "enum": list(self.reply_options)}

    def read_told(self, value: object, key: str) -> dict[str, Any]:
        """As people say it, who see a pair once."""
        return {"label": _one_of(self.options, value, key)}

    def read_pick(self, payload: Mapping[str, Any], key: str) -> Verdict:
        """What one reply says: which of the two places has the better answer.

        Raises:
            VerdictError: missing, of another type, or something else.
        """
        return Verdict(label=_one_of(self.reply_options, payload.get(key), key))

    def is_plain(self, value: object) -> bool:
        return value in self.reply_options

    def joined(self, verdicts: Sequence[Verdict]) -> Verdict:
        """What the verdict with A first and the one with B first come to."""
        a_first, b_first = verdicts
        picks = (a_first.label or "", b_first.label or "")
        label = {("first", "second"): "A", ("second", "first"): "B", ("tie", "tie"): "tie"}.get(picks, "flip")
        reasoning = f"A first: {a_first.reasoning}\n\nB first: {b_first.reasoning}"
        return Verdict(label=label, picks=picks, reasoning=reasoning)

    def rating(self, verdict: Verdict) -> float | None:
        return float(self.outcomes.index(verdict.label)) if verdict.label in self.outcomes else None

    def told_contradiction(self, first: Verdict, second: Verdict) -> Contradiction:
        if first.label is None or second.label is None:
            raise ValueError("two verdicts can be compared where both are preferences")
        return Contradiction(gap=False, flip=first.label != second.label)

    def value_columns(self, name: str) -> tuple[Column, ...]:
        return (
            Column(f"{name}.win", binary=True, aggregate=f"{name}.win_rate"),
            Column(f"{name}.tie", binary=True, has_direction=False, aggregate=f"{name}.tie_rate"),
            Column(f"{name}.flip", binary=True, higher_is_better=False, aggregate=f"{name}.flip_rate"),
            Column(f"{name}.order_effect", low=-1.0, has_direction=False),
        )

    def value_scores(self, name: str, verdict: Verdict) -> Outcomes:
        label = str(verdict.label)
        found: Outcomes = {
            f"{name}.win": float(label == "B") if label in ("A", "B") else NotApplicable(label),
            f"{name}.tie": float(label == "tie"),
            f"{name}.flip": float(label == "flip"),
        }
        places = Counter(verdict.picks or ())
        effect = (places["first"] - places["second"]) / 2 if verdict.picks is not None else NotApplicable("not asked")
        return {**found, f"{name}.order_effect": effect}


def _one_of(options: Sequence[str], value: object, key: str) -> str:
    """The option that a value is, whatever its case and the quotes around it."""
    word = folded_word(value) if isinstance(value, str) else None
    found = next((option for option in options if word == folded_word(option)), None)
    if found is None:
        shown = clean_text(value)[:40] if isinstance(value, str) else type_name(value)
        raise VerdictError("invalid", f"{key!r} is {shown!r}, expected one of {', '.join(options)}")
    return found
