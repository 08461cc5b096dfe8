"""How many independent opinions a panel of judges amounts to."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

from judgekit.stats.means import mean


@dataclass(frozen=True)
class EffectiveVotes:
    """What a panel is worth beside independent members."""

    value: float | None
    """Number of independent votes; None where it is undefined, see `effective_votes`."""

    mean_correlation: float | None
    """Mean over the pairs of members for which a correlation is defined; None without one."""

    n_members: int
    """Number of members."""

    n_pairs: int
    """Number of pairs of members with a defined correlation."""


def effective_votes(verdicts: Sequence[Sequence[float | None]]) -> EffectiveVotes:
    """Effective number of independent votes of a panel: `k / (1 + (k - 1) rho)`.

    rho is the mean of Pearson's correlations of all pairs of the k members, each over the cases that both judged. The
    mean of k votes with this correlation has the variance of the mean of so many independent ones.

    Given errors, verdict minus label, it says how much a panel takes off the error of one member. Given bare verdicts
    it is a lower bound in practice, since members that are right agree for that reason alone.

    Assumptions: members of about one variance; a linear relation.

    Args:
        verdicts: one sequence for each case with one number for each member, None where there is no verdict.

    Returns:
        k for members that are unrelated, 1 for copies of one; above k where errors cancel. None for fewer than two
        members, without a pair of which both vary over two common cases or more, and where correlations are so far
        below 0 that `1 + (k - 1) rho` is not above 0.

    Raises:
        ValueError: cases with different numbers of members, or a number that is not finite.

    Source: Kish 1965, "Survey Sampling", section 5.4, the design effect of a cluster of k.
    """
    widths = {len(case) for case in verdicts}
    if len(widths) > 1:
        raise ValueError(f"cases have different numbers of members: {sorted(widths)}")
    k = widths.pop() if widths else 0
    columns = list(zip(*verdicts, strict=True))
    found = [r for a, b in combinations(columns, 2) if (r := _correlation(a, b)) is not None]
    rho = mean(found)
    divisor = 0.0 if rho is None else 1.0 + (k - 1) * rho
    value = k / divisor if divisor > 1e-9 else None
    return EffectiveVotes(value, rho, k, len(found))


def _correlation(a: Sequence[float | None], b: Sequence[float | None]) -> float | None:
    pairs = [(x, y) for x, y in zip(a, b, strict=True) if x is not None and y is not None]
    centre_a, centre_b = mean([x for x, _ in pairs]), mean([y for _, y in pairs])
    if centre_a is None or centre_b is None:
        return None
    off = [(x - centre_a, y - centre_b) for x, y in pairs]
    spread_a, spread_b = math.fsum(x * x for x, _ in off), math.fsum(y * y for _, y in off)
    if spread_a <= 0.0 or spread_b <= 0.0:
        return None
    together = math.fsum(x * y for x, y in off)
    return max(-1.0, min(1.0, together / spread_b / math.sqrt(spread_a / spread_b)))
