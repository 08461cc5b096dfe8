"""Evidence that a rate rose above what is usual, over the points of a history, and what is usual."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from judgekit.core.history_points import HistoryPoint
from judgekit.stats.proportions import fisher_exact_rise, wilson_interval
from judgekit.stats.sequential import DECIDED, e_detector, log_e_value

HORIZON_POINTS = 26
"""Half a year of weekly points: within so many, the detector raises a false alarm at most once in 20 times."""
BASELINE_POINTS = 4
"""Points at the start of a history that say what is usual, where nothing else does."""
LEAST_RATE = 0.05
"""Flips up to this rate are noise."""
MOST_NOISE = 0.10
"""A noise floor above it counts as this much, unless the user accepts more: a judge so noisy cannot measure drift."""
MOST_ABOVE_NOISE = 0.10
"""A comparator that flips by more than this above the noise floor cannot show that nothing drifts."""
TREND_P = 0.05
"""Points of a baseline rose if so small a p value says so, times the number of places where they could have."""


@dataclass(frozen=True)
class PointId:
    """One point: of which run, and when."""

    run_id: str
    created_at: str
    check_id: str

    @classmethod
    def of(cls, point: HistoryPoint) -> "PointId":
        """Which point it is."""
        return cls(point.run_id, point.created_at, point.check_id)


@dataclass(frozen=True)
class Row:
    """The evidence after a point."""

    at: PointId
    log_e_value: float
    """Of all points tested so far together."""
    log_e_detector: float


@dataclass(frozen=True)
class Evidence:
    """Whether a rate rose, and with which point that most likely began."""

    m0: float
    """Largest rate that is usual."""
    log_alarm_e_value: float
    """An e-value from here on is an alarm."""
    log_alarm_e_detector: float
    n_high: int
    n: int
    rate: float | None
    counts: tuple[tuple[int, int], ...]
    rows: tuple[Row, ...]
    alarm_at: PointId | None
    """The point that raised the alarm; an alarm stays."""
    since: PointId | None
    """The start with the largest e-value, at the time when the detector was at its highest; None without points."""

    @property
    def pairs(self) -> list[tuple[str, int]]:
        """Time and number of pairs of each point."""
        return [(row.at.created_at, n) for row, (_, n) in zip(self.rows, self.counts, strict=True)]

    @property
    def alarm_since(self) -> PointId | None:
        """The start of what raised an alarm; None without an alarm."""
        return None if self.alarm_at is None else self.since

    def is_alarm(self, when: str | None) -> bool:
        """Whether the alarm was raised up to a time; None: after all points."""
        return self.alarm_at is not None and (when is None or self.alarm_at.created_at <= when)

    @property
    def log_e_value(self) -> float:
        """After the last point; 0.0 without any."""
        return self.rows[-1].log_e_value if self.rows else 0.0

    def line(self, what: str, usual: str) -> str:
        """`26 of 80 ... (33%) since run-x, 10 of 160 (6%) before, more than the usual 5.0% (...)`."""
        limit = f"usual {self.m0:.1%} ({usual})"
        logs = f"log e-value {self.log_e_value:.1f}, alarm from {self.log_alarm_e_value:.1f}"
        if self.rows:
            logs += f"; log e-detector {self.rows[-1].log_e_detector:.1f}, alarm from {self.log_alarm_e_detector:.1f}"
        if self.alarm_at is None or self.since is None:
            return f"{_share(self.counts, what)}, not shown to be more than the {limit}; {logs}"
        start = [row.at for row in self.rows].index(self.since)
        before = f", {_share(self.counts[:start])} before" if start else ""
        now = _share(self.counts[start:], what)
        return f"{now} since run {self.since.run_id}{before}, more than the {limit}; {logs}"


def _share(counts: Sequence[tuple[int, int]], what: str = "") -> str:
    high, n = sum(s for s, _ in counts), sum(t for _, t in counts)
    share = f" ({high / n:.0%})" if n else ""
    return f"{high} of {n}{f' {what}' if what else ''}{share}"


def gather(points: Sequence[HistoryPoint], counts: Sequence[tuple[int, int]], m0: float, n_tests: int) -> Evidence:
    """Test each point of a timeline as it comes.

    An alarm is `E >= 20 n_tests` for the e-value of all points together, valid at every look, or
    `M >= 20 n_tests HORIZON_POINTS` for the e-detector, whose chance of a false alarm within T points is at most
    T over that limit.

    Args:
        points: in the order of time.
        counts: of each point, how many are high and of how many.
        m0: largest rate that is usual, in (0, 1).
        n_tests: number of timelines that are tested side by side, at least 1.

    Raises:
        ValueError: counts outside 0 to n, or m0 outside (0, 1).
    """
    ids = [PointId.of(point) for point in points]
    high = n = 0
    alarm_value = math.log(DECIDED * n_tests)
    alarm_detector = math.log(DECIDED * n_tests * HORIZON_POINTS)
    rows = []
    alarm_at = None
    for point_id, (s, t), detector in zip(ids, counts, e_detector(counts, m0), strict=True):
        high, n = high + s, n + t
        row = Row(point_id, log_e_value(high, n, m0), detector)
        rows.append(row)
        if alarm_at is None and (row.log_e_value >= alarm_value or detector >= alarm_detector):
            alarm_at = point_id
    return Evidence(
        m0=m0,
        log_alarm_e_value=alarm_value,
        log_alarm_e_detector=alarm_detector,
        n_high=high,
        n=n,
        rate=high / n if n else None,
        counts=tuple(counts),
        rows=tuple(rows),
        alarm_at=alarm_at,
        since=_onset(counts, ids, rows, m0),
    )


def _onset(counts: Sequence[tuple[int, int]], ids: Sequence[PointId], rows: Sequence[Row], m0: float) -> PointId | None:
    if not rows:
        return None
    end = max(range(len(rows)), key=lambda position: rows[position].log_e_detector)
    high = n = 0
    best, start = -math.inf, end
    for position in range(end, -1, -1):
        high, n = high + counts[position][0], n + counts[position][1]
        value = log_e_value(high, n, m0)
        if value > best:
            best, start = value, position
    return ids[start]


@dataclass(frozen=True)
class Usual:
    """What is usual for one comparator."""

    rate: float
    """Flips up to this rate are not drift."""
    source: str
    """Where it is from."""
    n_points: int
    n_pairs: int
    tested: tuple[HistoryPoint, ...]
    """Points that are held against it."""
    is_wide: bool = False
    """It is so high that quiet points do not show that nothing drifts."""


def rate_to_test(n_high: int, n: int) -> float:
    """The upper end of Wilson's 95% interval, at least 0.05 and below 1; 0.05 for no pairs."""
    interval = wilson_interval(n_high, n)
    # A rate to test against is below 1, also where every point of the baseline flipped.
    return LEAST_RATE if interval is None else min(max(LEAST_RATE, interval[1]), 0.999)


def noise(points: Sequence[HistoryPoint], accepted: float | None) -> tuple[float, str, int, int]:
    """What the judge's noise may be at most: rate, where it is from, and how many points and pairs that rests on.

    The upper end over all pairs that were asked again within a day, together; more than 0.10 counts as 0.10. A rate
    that the user accepts goes before it.
    """
    floors = [point for point in points if point.kind == "noise_floor" and point.n_pairs]
    n_flips, n_pairs = _flips(floors)
    if accepted is not None:
        return max(LEAST_RATE, accepted), "accepted", len(floors), n_pairs
    if not n_pairs:
        return LEAST_RATE, "assumed; measure the noise floor", 0, 0
    upper = rate_to_test(n_flips, n_pairs)
    if upper <= MOST_NOISE:
        return upper, "noise floor", len(floors), n_pairs
    return MOST_NOISE, f"noise floor up to {upper:.1%}, taken as {MOST_NOISE:.0%} at most", len(floors), n_pairs


def usual_of_others(points: Sequence[HistoryPoint], noise_rate: float, accepted: float | None) -> Usual:
    """What is usual where another wording or model is asked: the rate of the first four points.

    If these rise among themselves (Fisher's exact test at each place, Bonferroni over the places), only those before
    the rise are usual, and the others are tested. A rate that the user accepts goes before all.
    """
    if accepted is not None:
        return Usual(max(noise_rate, accepted), "accepted", 0, 0, tuple(points))
    start = _rise(points[:BASELINE_POINTS])
    usual = points[: start or BASELINE_POINTS]
    n_flips, n_pairs = _flips(usual)
    rate, most = rate_to_test(n_flips, n_pairs), noise_rate + MOST_ABOVE_NOISE
    is_wide = rate > most
    source = f"first {len(usual)} points"
    if start:
        source += ", since the next ones rose"
    if is_wide:
        source += f"; more than the noise allows, {most:.0%}, so it shows large changes only"
    return Usual(rate, source, len(usual), n_pairs, tuple(points[len(usual) :]), is_wide)


def _rise(points: Sequence[HistoryPoint]) -> int:
    """How many points come before a rise of the rate; 0 where none is shown."""
    found = [
        (fisher_exact_rise(*_flips(points[:place]), *_flips(points[place:])), place) for place in range(1, len(points))
    ]
    p, place = min(found, default=(1.0, 0))
    return place if p * len(found) <= TREND_P else 0


def _flips(points: Sequence[HistoryPoint]) -> tuple[int, int]:
    """Pairs that disagree, and all pairs."""
    return sum(point.n_disagree for point in points), sum(point.n_pairs for point in points)
