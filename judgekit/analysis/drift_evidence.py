"""Evidence that a rate rose above what is usual, over the points of a history, and what is usual."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from judgekit.core.history_points import HistoryPoint
from judgekit.stats.proportions import fisher_exact_rise, wilson_interval
from judgekit.stats.sequential import DECIDED, e_detector, log_e_value

HORIZON_CHECKS = 26
"""Half a year of weekly checks: within so many, the detector raises a false alarm at most once in 20 times."""
BASELINE_CHECKS = 4
"""Checks at the start of a history that say what is usual, where nothing else does."""
LEAST_RATE = 0.05
"""Flips up to this rate are noise."""
MOST_NOISE = 0.10
"""A noise floor above it counts as this much, unless the user accepts more: a judge so noisy cannot measure drift."""
MOST_ABOVE_NOISE = 0.10
"""A comparator that flips by more than this above the noise floor cannot show that nothing drifts."""
TREND_P = 0.05
"""Checks of a baseline rose if so small a p value says so, times the number of places where they could have."""


@dataclass(frozen=True)
class Point:
    """One check: of which run, and when."""

    run_id: str
    created_at: str
    check_id: str

    @classmethod
    def of(cls, check: HistoryPoint) -> "Point":
        """Which check it is."""
        return cls(check.run_id, check.created_at, check.check_id)


@dataclass(frozen=True)
class Row:
    """The evidence after a check."""

    at: Point
    log_e_value: float
    """Of all checks tested so far together."""
    log_e_detector: float


@dataclass(frozen=True)
class Evidence:
    """Whether a rate rose, and with which check that most likely began."""

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
    alarm_at: Point | None
    """The check that raised the alarm; an alarm stays."""
    since: Point | None
    """The start with the largest e-value, at the time when the detector was at its highest; None without checks."""

    @property
    def pairs(self) -> list[tuple[str, int]]:
        """Time and number of pairs of each check."""
        return [(row.at.created_at, n) for row, (_, n) in zip(self.rows, self.counts, strict=True)]

    @property
    def alarm_since(self) -> Point | None:
        """The start of what raised an alarm; None without an alarm."""
        return None if self.alarm_at is None else self.since

    def is_alarm(self, when: str | None) -> bool:
        """Whether the alarm was raised up to a time; None: after all checks."""
        return self.alarm_at is not None and (when is None or self.alarm_at.created_at <= when)

    @property
    def log_e_value(self) -> float:
        """After the last check; 0.0 without any."""
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


def gather(checks: Sequence[HistoryPoint], counts: Sequence[tuple[int, int]], m0: float, n_tests: int) -> Evidence:
    """Test each check of a timeline as it comes.

    An alarm is `E >= 20 n_tests` for the e-value of all checks together, valid at every look, or
    `M >= 20 n_tests HORIZON_CHECKS` for the e-detector, whose chance of a false alarm within T checks is at most
    T over that limit.

    Args:
        checks: in the order of time.
        counts: of each check, how many are high and of how many.
        m0: largest rate that is usual, in (0, 1).
        n_tests: number of timelines that are tested side by side, at least 1.

    Raises:
        ValueError: counts outside 0 to n, or m0 outside (0, 1).
    """
    points = [Point.of(check) for check in checks]
    high = n = 0
    alarm_value = math.log(DECIDED * n_tests)
    alarm_detector = math.log(DECIDED * n_tests * HORIZON_CHECKS)
    rows = []
    alarm_at = None
    for point, (s, t), detector in zip(points, counts, e_detector(counts, m0), strict=True):
        high, n = high + s, n + t
        row = Row(point, log_e_value(high, n, m0), detector)
        rows.append(row)
        if alarm_at is None and (row.log_e_value >= alarm_value or detector >= alarm_detector):
            alarm_at = point
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
        since=_onset(counts, points, rows, m0),
    )


def _onset(counts: Sequence[tuple[int, int]], points: Sequence[Point], rows: Sequence[Row], m0: float) -> Point | None:
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
    return points[start]


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
    """The upper end of Wilson's 95% interval, at least 0.05 and below 1; 0.05 for no pairs."""
    interval = wilson_interval(n_high, n)
    # A rate to test against is below 1, also where every check of the baseline flipped.
    return LEAST_RATE if interval is None else min(max(LEAST_RATE, interval[1]), 0.999)


def noise(checks: Sequence[HistoryPoint], accepted: float | None) -> tuple[float, str, int, int]:
    """What the judge's noise may be at most: rate, where it is from, and how many checks and pairs that rests on.

    The upper end over all pairs that were asked again within a day, together; more than 0.10 counts as 0.10. A rate
    that the user accepts goes before it.
    """
    floors = [check for check in checks if check.kind == "noise_floor" and check.n_pairs]
    n_flips, n_pairs = _flips(floors)
    if accepted is not None:
        return max(LEAST_RATE, accepted), "accepted", len(floors), n_pairs
    if not n_pairs:
        return LEAST_RATE, "assumed; measure the noise floor", 0, 0
    upper = rate_to_test(n_flips, n_pairs)
    if upper <= MOST_NOISE:
        return upper, "noise floor", len(floors), n_pairs
    return MOST_NOISE, f"noise floor up to {upper:.1%}, taken as {MOST_NOISE:.0%} at most", len(floors), n_pairs


def usual_of_others(checks: Sequence[HistoryPoint], noise_rate: float, accepted: float | None) -> Usual:
    """What is usual where another wording or model is asked: the rate of the first four checks.

    If these rise among themselves (Fisher's exact test at each place, Bonferroni over the places), only those before
    the rise are usual, and the others are tested. A rate that the user accepts goes before all.
    """
    if accepted is not None:
        return Usual(max(noise_rate, accepted), "accepted", 0, 0, tuple(checks))
    start = _rise(checks[:BASELINE_CHECKS])
    usual = checks[: start or BASELINE_CHECKS]
    n_flips, n_pairs = _flips(usual)
    rate, most = rate_to_test(n_flips, n_pairs), noise_rate + MOST_ABOVE_NOISE
    is_wide = rate > most
    source = f"first {len(usual)} checks"
    if start:
        source += ", since the next ones rose"
    if is_wide:
        source += f"; more than the noise allows, {most:.0%}, so it shows large changes only"
    return Usual(rate, source, len(usual), n_pairs, tuple(checks[len(usual) :]), is_wide)


def _rise(checks: Sequence[HistoryPoint]) -> int:
    """How many checks come before a rise of the rate; 0 where none is shown."""
    found = [
        (fisher_exact_rise(*_flips(checks[:place]), *_flips(checks[place:])), place) for place in range(1, len(checks))
    ]
    p, place = min(found, default=(1.0, 0))
    return place if p * len(found) <= TREND_P else 0


def _flips(checks: Sequence[HistoryPoint]) -> tuple[int, int]:
    """Pairs that disagree, and all pairs."""
    return sum(check.n_disagree for check in checks), sum(check.n_pairs for check in checks)
