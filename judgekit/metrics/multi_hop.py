"""Multi-hop cases: at which hop does retrieval lose the thread?"""

from typing import Annotated, ClassVar

from pydantic import Field

from judgekit.core.cases import Case, SystemOutput
from judgekit.core.components import Metric
from judgekit.core.scores import Column, Failed, NotApplicable, Outcomes
from judgekit.metrics.gold_evidence import GoldSupports, SnippetMode
from judgekit.metrics.gold_positions import Gold, Positions, empty_positions, positions_of_output

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
        if not case.required_support_groups:
            return {_NAME: _NO_GROUPS}
        gold = Gold(supports=GoldSupports(case.gold_supports, self.snippets), groups=case.required_support_groups)
        if output.error is not None:
            return self.ranked(empty_positions(gold), Failed(output.error.kind))
        return self.ranked(positions_of_output(gold, output))

    def ranked(self, found: Positions, failed: Failed | None = None) -> Outcomes:
        """The score, which depends on nothing but where the gold stands."""
        if not found.groups:
            return {_NAME: _NO_GROUPS}
        if any(len(ranks) < 2 for ranks in found.groups):
            return {_NAME: _ONE_HOP}
        if failed is not None:
            return {_NAME: failed}
        missing = [[place for place, rank in enumerate(ranks) if not 0 < rank <= self.k] for ranks in found.groups]
        best = min(missing, key=len)
        return {_NAME: float(best[0]) if best else _NONE_MISSING}
