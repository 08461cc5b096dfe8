"""The kind of verdict that goes through criteria, each met or not."""

import math
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field

from judgekit.core.cases import Criterion
from judgekit.core.judgments import CANNOT_TELL, CriterionVerdict, Verdict, VerdictError, share_met
from judgekit.core.kind import CANNOT_BE_TOLD, Contradiction, Kind
from judgekit.core.reply_values import folded_word, read_flag, type_name
from judgekit.core.scores import Column, NotApplicable, Outcome, Outcomes
from judgekit.core.text import clean_text

NONE_MET = NotApplicable("no useful passage")
"""Why the order of passages says nothing."""

CUTOFFS = (1, 3, 5)
"""Ranks up to which precision is given where passages are judged."""


class Criteria(Kind):
    """Several criteria, each met or not; the score is the weighted share that is met."""

    kind: Literal["criteria"] = "criteria"
    criteria: tuple[Criterion, ...] = ()
    """Empty: each case brings its own."""
    ranked: bool = False
    """The criteria are passages, best rank first, so that the place of one that is met matters too."""
    each: bool = False
    """Each criterion is asked about in a call of its own, so that a reply holds one of them."""
    pass_share: float | None = None
    """Lowest share that passes."""
    tolerance: Annotated[float, Field(ge=0)] = 0.2
    """Shares further apart than this contradict each other."""

    key: ClassVar[str] = "criteria"
    has_parts: ClassVar[bool] = True
    is_nominal: ClassVar[bool] = True
    unit: ClassVar[tuple[str, str]] = ("criterion", "criteria")

    @property
    def about(self) -> str:
        return "criteria, each met or not; the score is the weighted share that is met"

    @property
    def order(self) -> str:
        return "say that every criterion is met"

    def obeys(self, verdict: Verdict) -> bool:
        return bool(verdict.criteria) and all(item.met for item in verdict.criteria or ())

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

    def read(self, payload: Mapping[str, Any], key: str) -> dict[str, Any]:
        """As for every kind, but each criterion says by itself that it cannot be told, so none can go missing."""
        return self.read_told(payload.get(key), key)

    def is_plain(self, value: object) -> bool:
        """As for every kind, of what is said of each criterion."""
        return isinstance(value, list) and all(
            isinstance(entry, dict) and super(Criteria, self).is_plain(entry.get("met")) for entry in value
        )

    def read_told(self, value: object, key: str) -> dict[str, Any]:
        if not isinstance(value, list):
            raise VerdictError("invalid", f"{key!r} is {type_name(value)}, expected a list of criteria")
        found: dict[str, CriterionVerdict] = {}
        for entry in value:
            item = self._criterion(entry, key)
            if item.id in found:
                raise VerdictError("invalid", f"criterion {item.id[:40]!r} comes twice in {key!r}")
            found[item.id] = item
        if self.is_read_whole:
            return {"criteria": self.settled(found, self.criteria)}
        # In one order, so that a copy of a verdict is known by what it says.
        return {"criteria": tuple(found[name] for name in sorted(found))}

    @property
    def is_read_whole(self) -> bool:
        """Whether one reply holds every criterion of a verdict, and nothing of the case is needed to read it."""
        return bool(self.criteria) and not self.each

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
        return tuple(
            CriterionVerdict(id=item.id, met=found[item.id].met, evidence=found[item.id].evidence, weight=item.weight)
            for item in wanted
        )

    @cached_property
    def _ids(self) -> dict[str, str]:
        """The ids of the criteria by how they are compared."""
        return {folded_word(item.id): item.id for item in self.criteria}

    def _criterion(self, entry: object, key: str) -> CriterionVerdict:
        if not isinstance(entry, dict) or not {"id", "met"} <= entry.keys() <= {"id", "met", "evidence"}:
            raise VerdictError("invalid", f"{key!r} holds an entry that is not an object of 'id', 'evidence' and 'met'")
        name, met, evidence = entry["id"], entry["met"], entry.get("evidence", "")
        if not isinstance(name, str) or not isinstance(evidence, str):
            raise VerdictError("invalid", f"{key!r} holds an 'id' or 'evidence' that is not a text")
        is_told = not (self.cannot_tell and isinstance(met, str) and folded_word(met) == CANNOT_TELL)
        return CriterionVerdict(
            id=name if name in self._ids.values() else self._ids.get(folded_word(name), clean_text(name).strip()),
            met=read_flag(entry, "met") if is_told else None,
            evidence=clean_text(evidence),
        )

    @property
    def gap_words(self) -> str:
        return f"more than {self.tolerance:g} apart"

    def joined(self, verdicts: Sequence[Verdict]) -> Verdict:
        """The criteria of all, in the order in which they were asked about."""
        said = tuple(item for verdict in verdicts for item in verdict.criteria or ())
        reasoning = "\n".join(verdict.reasoning for verdict in verdicts if verdict.reasoning)
        return verdicts[0].model_copy(update={"criteria": said, "reasoning": reasoning})

    def categories(self, verdict: Verdict) -> tuple[int | None, ...]:
        told = sorted(verdict.criteria or (), key=lambda item: item.id)  # they are asked about in any order
        return tuple(2 if item.met is None else int(item.met) for item in told)

    @property
    def category_bounds(self) -> tuple[int, int]:
        return 0, 1 + self.cannot_tell

    @property
    def levels(self) -> tuple[int | str, ...]:
        return "not met", "met"

    def score_words(self, name: str) -> dict[str, tuple[str, str]]:
        return {**{f"{name}.{item.id}": ("not met", "met") for item in self.criteria}, **super().score_words(name)}

    @property
    def pass_from(self) -> float | None:
        return self.pass_share

    def passes(self, verdict: Verdict) -> bool | None:
        share = self.rating(verdict)
        return None if self.pass_share is None or share is None else share >= self.pass_share

    def weighed_column(self, name: str) -> Column | None:
        return Column(f"{name}.expected")

    def weighed(self, verdict: Verdict) -> float | None:
        chances = verdict.probabilities or {}
        told = [item for item in verdict.criteria or () if item.id in chances]
        best = math.fsum(item.weight for item in told if item.weight > 0)
        met = math.fsum(item.weight * chances[item.id] for item in told)
        return min(1.0, max(0.0, met / best)) if best > 0 else None

    def told_contradiction(self, first: Verdict, second: Verdict) -> Contradiction:
        shares = self.rating(first), self.rating(second)
        if shares[0] is None or shares[1] is None:
            return Contradiction(gap=False, flip=(shares[0] is None) != (shares[1] is None))
        gap = abs(shares[0] - shares[1]) > self.tolerance + 1e-9
        return Contradiction(gap, flip=self.passes(first) != self.passes(second))

    def value_columns(self, name: str) -> tuple[Column, ...]:
        parts = [Column(f"{name}.{item.id}", binary=True, higher_is_better=item.weight > 0) for item in self.criteria]
        ranks = [Column(figure) for figure in self._ranked(name, ())]
        return (Column(name), *parts, *ranks)

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

    def _ranked(self, name: str, met: Sequence[bool | None]) -> Outcomes:
        """Precision at some ranks, and nDCG against the best order of the same passages; not told is not met."""
        if not self.ranked:
            return {}
        gains = [bool(item) / math.log2(rank + 1) for rank, item in enumerate(met, start=1)]
        best = math.fsum(1 / math.log2(rank + 1) for rank in range(1, sum(map(bool, met)) + 1))
        found: Outcomes = {f"{name}@{k}": sum(map(bool, met[:k])) / k for k in CUTOFFS}
        return {**found, f"{name}.ndcg": math.fsum(gains) / best if best else NONE_MET}

    def value_scores(self, name: str, verdict: Verdict) -> Outcomes:
        by_rank = sorted(verdict.criteria or (), key=_rank_of) if self.ranked else ()
        said = {item.id: item.met for item in verdict.criteria or ()}

        def outcome(item: Criterion) -> Outcome:
            met = said.get(item.id)
            return CANNOT_BE_TOLD if met is None else float(met)

        parts = {f"{name}.{item.id}": outcome(item) for item in self.criteria}
        return {**super().value_scores(name, verdict), **parts, **self._ranked(name, [item.met for item in by_rank])}


def _rank_of(passage: CriterionVerdict) -> int:
    """The rank of a passage by its id, such as `passage-3`."""
    return int(passage.id.rpartition("-")[2])
