"""Multi-hop cases: at which hop does retrieval lose the thread?"""

from typing import Annotated, ClassVar

from pydantic import Field

from judgekit.core.cases import Case, SystemOutput
from judgekit.core.components import Metric
from judgekit.core.scores import Column, Failed, NotApplicable, Outcome, Outcomes
from judgekit.metrics.anchors import GoldSupports, SnippetMode, by_rank, first_occurrences

_NAME = "first_missing_support"
_NO_GROUPS = NotApplicable("no required_support_groups")
_ONE_HOP = NotApplicable("a required group has one support only")
_NONE_MISSING = NotApplicable("no support is missing", label="none")


class MultiHop(Metric):
    """Where the chain of needed supports breaks: `first_missing_support`, shown as a distribution and not as a mean.

    A case is multi-hop if each of its required groups names two supports or more, so that no single place is enough.
    Of its groups, the one with the fewest supports missing counts (of equals, the first in the file); the score is
    the place in that group, counted from 0, of the first support that no hit with rank <= k matches. Where none is
    missing there is no such place: the score is not applicable and the distribution counts the case under `none`.

    Source: in-house.
    """

    needs: ClassVar[tuple[tuple[str, ...], ...]] = (("case.required_support_groups",), ("output.retrieved",))

    k: Annotated[int, Field(ge=1, strict=True)] = 10
    """Hits with a rank up to this are looked at."""
    snippets: SnippetMode = "if_text"
    """How the snippets of supports are looked for in the text of hits."""

    def columns(self) -> tuple[Column, ...]:
        return (Column(_NAME, high=float("inf"), aggregate="", distribution=True),)

    def calculate(self, case: Case, output: SystemOutput) -> Outcomes:
        return {_NAME: self._first_missing(case, output)}

    def _first_missing(self, case: Case, output: SystemOutput) -> Outcome:
        if not case.required_support_groups:
            return _NO_GROUPS
        groups = [tuple(dict.fromkeys(group)) for group in case.required_support_groups]
        if any(len(group) < 2 for group in groups):
            return _ONE_HOP
        if output.error is not None:
            return Failed(output.error.kind)
        gold = GoldSupports(case.gold_supports, self.snippets)
        found: set[int] = set()
        for rank, hit in first_occurrences(by_rank(output.retrieved)):
            if rank <= self.k:
                found.update(gold.matched_by(hit))
        missing = [[place for place, index in enumerate(group) if index not in found] for group in groups]
        best = min(missing, key=len)
        return float(best[0]) if best else _NONE_MISSING
