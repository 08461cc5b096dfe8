"""Scores of single cases, what is known about each score name, and estimates over many cases."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict


class Frozen(BaseModel):
    """Base of records that judgekit itself writes: fixed once made, unknown fields refused."""

    model_config = ConfigDict(frozen=True, extra="forbid")


@dataclass(frozen=True, slots=True)
class NotApplicable:
    """The precondition of a score does not hold for this case; it counts neither as good nor as bad."""

    reason: str
    label: str | None = None
    """Name under which the case is counted in the distribution of the score all the same, such as `none`."""
    by_output: bool = field(default=False, repr=False)
    """The output lacks what the score needs, and not the case, so that coverage counts the case as missing."""


@dataclass(frozen=True, slots=True)
class Failed:
    """The score should exist but could not be had: the system under test or the judge failed."""

    kind: str
    by_judge: bool = False
    """The judge failed and not the system: it is never counted as a score, whatever the error policy."""


Outcome = float | NotApplicable | Failed
"""What a metric or judge says about one case: always one of these three."""

Outcomes = dict[str, Outcome]
"""Outcome by score name."""


class Scale(Frozen):
    """The unit in which a figure stands, and which way is better."""

    unit: Literal["share", "points", "count", "number"]
    """`share`: a part of the cases, shown in percent; `points`: of the scale of a judge; `count`: a whole number."""
    low: float = 0.0
    high: float | None = None
    """Largest value possible; None: there is none."""
    better: Literal["higher", "lower"] | None = None
    """None: neither way is better."""


def stored_scale(part: Mapping[str, Any]) -> Scale | None:
    """The `scale` beside stored figures; None in a file of an older version."""
    found = part.get("scale")
    return None if found is None else Scale.model_validate(found)


def _scale(name: str, low: float, high: float, better: bool | None, unit: str | None = None) -> Scale:
    ends = (low, high) == (0.0, 1.0)
    if unit is None:
        of_judge = not ends and low >= 0 and math.isfinite(high)
        unit = "points" if of_judge else "share" if ends and name.endswith("_rate") else "number"
    direction = None if better is None else "higher" if better else "lower"
    return Scale.model_validate(
        {
            "unit": unit,
            "low": low if math.isfinite(low) else 0.0,
            "high": high if math.isfinite(high) else None,
            "better": direction,
        }
    )


@dataclass(frozen=True, slots=True)
class Column:
    """What is known about one score name."""

    name: str
    """Name of the per-case score, for example `recall_any@5`."""
    low: float = 0.0
    """Smallest value possible."""
    high: float = 1.0
    """Largest value possible."""
    higher_is_better: bool = True
    binary: bool = False
    """True if the score can only be `low` or `high`: its mean is a proportion, with a Wilson interval."""
    aggregate: str | None = None
    """Name of the mean over cases; None: the name of the score; empty: the score feeds a pooled figure only."""
    distribution: bool = False
    """True if the values are whole numbers low..high: their counts are shown too, as `name.distribution`.

    With `high` infinite, the counts go up to the largest value that came."""
    section: Literal["overall", "operational"] = "overall"
    """The part of metrics.json that carries the mean."""
    turns_if_unanswerable: bool = False
    """The other way is better in a case whose label says that no answer can be given, such as for an abstention."""
    has_direction: bool = True
    """False if neither way is better, such as for the share of a label that neither passes nor fails."""
    by_chunk_id: bool = False
    """The score holds retrieved chunk ids against expected ones, so another chunker makes it another score."""

    @property
    def scale(self) -> Scale:
        """Of the mean over cases."""
        better = self.higher_is_better if self.has_direction else None
        return _scale(self.aggregate or self.name, self.low, self.high, better, "share" if self.binary else None)

    @property
    def worst(self) -> float:
        return self.low if self.higher_is_better else self.high

    @property
    def best(self) -> float:
        return self.high if self.higher_is_better else self.low


@dataclass(frozen=True, slots=True)
class Pooled:
    """A figure that is a function of sums over cases and not a mean of per-case scores, such as an F1."""

    name: str
    over: tuple[str, ...]
    """Score names whose sums over all applicable cases are the arguments of `function`, in this order."""
    function: Callable[..., float | None]
    """Sums to value; None if the figure is undefined (a zero denominator)."""
    low: float = 0.0
    high: float = 1.0
    higher_is_better: bool = True
    is_total: bool = False
    """True for a plain sum: it has no interval, and no bound on what failed cases would add."""

    @property
    def scale(self) -> Scale:
        """Of the figure."""
        return _scale(self.name, self.low, self.high, self.higher_is_better, "count" if self.is_total else None)


SUM_METHOD = "sum over cases"
"""`Estimate.method` of a plain sum."""


ScoreOf = tuple[float | None, str | None]
"""What is stored of a score: its value, and the reason if there is none."""


class Score(Frozen):
    """One number about one case, or the reason why there is none: a line of scores.jsonl."""

    case_id: str
    name: str
    value: float | None
    reason: str | None = None
    """`n/a: ...` where the score does not apply, `failed: ...` where it is missing; None beside a value."""
    source: str | None = None
    """What the score rests on, if several things could say it, such as the flag or the judge for `abstained`."""


class Estimate(Frozen):
    """A statistic over the cases of a run or slice, with its interval and what it rests on."""

    value: float | None
    low: float | None = None
    """Lower end of the 95% interval."""
    high: float | None = None
    n: int
    """Cases with a value."""
    n_not_applicable: int
    n_error: int
    n_no_input: int = 0
    """Of those that do not apply, cases whose output lacks what the score needs, such as the text of hits."""
    worst: float | None = None
    """The value if every failed case had scored the worst; only where n_error > 0."""
    best: float | None = None
    method: str
    """How value and interval were made, for example `mean, wilson 95%`."""
    small: bool = False
    """True if n is below the config's `min_n`: too few cases to read much into the figure."""
