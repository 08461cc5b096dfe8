"""Evidence that a rate rose above what is usual, over the checks of a history."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from judgekit.stats.sequential import DECIDED, e_detector, log_e_value

HORIZON_CHECKS = 26
"""Half a year of weekly checks: within so many, the detector raises a false alarm at most once in 20 times."""


@dataclass(frozen=True)
class Point:
    """One check: of which run, and when."""

    run_id: str
    created_at: str
    check_id: str


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
    def log_e_value(self) -> float:
        """After the last check; 0.0 without any."""
        return self.rows[-1].log_e_value if self.rows else 0.0

    def line(self, what: str, usual: str) -> str:
        """`26 of 80 ... (33%) since run-x, 10 of 160 (6%) before, more than the usual 5.0% (...)`.

        Args:
            what: what the counted ones did.
            usual: where the usual rate is from.
        """
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


def gather(counts: Sequence[tuple[int, int]], points: Sequence[Point], m0: float, n_tests: int) -> Evidence:
    """Test each check of a timeline as it comes.

    An alarm is `E >= 20 n_tests` for the e-value of all checks together, valid at every look, or
    `M >= 20 n_tests HORIZON_CHECKS` for the e-detector, whose chance of a false alarm within T checks is at most
    T over that limit.

    Args:
        counts: of each check, how many are high and of how many.
        points: which check each is.
        m0: largest rate that is usual, in (0, 1).
        n_tests: number of timelines that are tested side by side, at least 1.

    Raises:
        ValueError: counts outside 0 to n, or m0 outside (0, 1).
    """
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
