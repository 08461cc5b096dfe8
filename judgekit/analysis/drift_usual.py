"""How often verdicts flip that did not drift: what a history is tested against, and which of its checks are tested."""

from collections.abc import Sequence
from dataclasses import dataclass

from judgekit.core.history_points import HistoryPoint
from judgekit.stats.proportions import fisher_exact_rise, wilson_interval

BASELINE_CHECKS = 4
"""Checks at the start of a history that say what is usual, where nothing else does."""
LEAST_RATE = 0.05
"""Flips up to this rate are noise."""
MOST_NOISE = 0.10
"""A noise floor above it counts as this much, unless the user accepts more: a judge so noisy is no measure of drift."""
MOST_ABOVE_NOISE = 0.10
"""A comparator that flips by more than this above the noise floor cannot show that nothing drifts."""
TREND_P = 0.05
"""Checks of a baseline rose if so small a p value says so, times the number of places where they could have."""


@dataclass(frozen=True)
class Usual:
    """What is usual for one comparator."""

    rate: float
    """Flips up to this rate are not drift."""
    source: str
    """Where it is from."""
    n_checks: int
    n_pairs: int
    tested: tuple[HistoryPoint, ...]
    """Checks that are held against it."""
    is_wide: bool = False
    """It is so high that quiet checks do not show that nothing drifts."""


def rate_to_test(n_high: int, n: int) -> float:
    """The upper end of Wilson's 95% interval, at least 0.05 and below 1; 0.05 for no pairs.

    Args:
        n_high: pairs that flip.
        n: pairs.
    """
    interval = wilson_interval(n_high, n)
    # A rate to test against is below 1, also where every check of the baseline flipped.
    return LEAST_RATE if interval is None else min(max(LEAST_RATE, interval[1]), 0.999)


def noise(checks: Sequence[HistoryPoint], accepted: float | None) -> tuple[float, str, int, int]:
    """What the judge's noise may be at most: rate, where it is from, and how many checks and pairs that rests on.

    The upper end over all pairs that were asked again within a day, together; more than 0.10 counts as 0.10.

    Args:
        checks: one history.
        accepted: rate that the user takes for usual; None: none.

    Source: in-house.
    """
    floors = [check for check in checks if check.kind == "noise_floor" and check.n_pairs]
    n_pairs = sum(check.n_pairs for check in floors)
    if accepted is not None:
        return max(LEAST_RATE, accepted), "accepted", len(floors), n_pairs
    if not n_pairs:
        return LEAST_RATE, "assumed; measure the noise floor", 0, 0
    upper = rate_to_test(sum(check.n_disagree for check in floors), n_pairs)
    if upper <= MOST_NOISE:
        return upper, "noise floor", len(floors), n_pairs
    source = f"noise floor up to {upper:.1%}, taken as {MOST_NOISE:.0%} at most"
    return MOST_NOISE, source, len(floors), n_pairs


def usual_of_repeats(checks: Sequence[HistoryPoint], noise_of_judge: tuple[float, str, int, int]) -> Usual:
    """What is usual where the same judge is asked again: its noise.

    Args:
        checks: of one comparator, in the order of time.
        noise_of_judge: from `noise`.
    """
    rate, source, n_checks, n_pairs = noise_of_judge
    return Usual(rate, source, n_checks, n_pairs, tuple(checks))


def usual_of_others(checks: Sequence[HistoryPoint], noise_rate: float, accepted: float | None) -> Usual:
    """What is usual where another wording or model is asked: the rate of the first four checks.

    Where these rise among themselves, only those before the rise are usual, and the others are tested.

    Args:
        checks: of one comparator, in the order of time.
        noise_rate: from `noise`.
        accepted: rate that the user takes for usual; None: none.

    Source: in-house; Fisher's exact test at each place where the rate may have risen, Bonferroni over the places.
    """
    if accepted is not None:
        return Usual(max(noise_rate, accepted), "accepted", 0, 0, tuple(checks))
    start = _rise(checks[:BASELINE_CHECKS])
    usual = checks[: start or BASELINE_CHECKS]
    n_pairs = sum(check.n_pairs for check in usual)
    rate = rate_to_test(sum(check.n_disagree for check in usual), n_pairs)
    source = f"first {len(usual)} checks"
    if start:
        source += ", since the next ones rose"
    most = noise_rate + MOST_ABOVE_NOISE
    is_wide = rate > most
    if is_wide:
        source += f"; more than the noise allows, {most:.0%}, so it shows large changes only"
    return Usual(rate, source, len(usual), n_pairs, tuple(checks[len(usual) :]), is_wide)


def _rise(checks: Sequence[HistoryPoint]) -> int:
    """How many checks come before a rise of the rate; 0 where none is shown."""
    places = range(1, len(checks))
    found = [(_p_of_rise(checks[:place], checks[place:]), place) for place in places]
    p, place = min(found, default=(1.0, 0))
    return place if p * len(found) <= TREND_P else 0


def _p_of_rise(before: Sequence[HistoryPoint], after: Sequence[HistoryPoint]) -> float:
    counts = [
        (sum(check.n_disagree for check in part), sum(check.n_pairs for check in part)) for part in (before, after)
    ]
    return fisher_exact_rise(*counts[0], *counts[1])
