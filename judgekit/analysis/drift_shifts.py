"""What moved: the instrument that judged, the system's new answers, or the judge's scores of the same answers."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import takewhile
from operator import itemgetter

from judgekit.analysis.drift_evidence import HORIZON_POINTS, PointId
from judgekit.core.history_points import HistoryPoint
from judgekit.stats.means import paired_t_p, welch_p
from judgekit.stats.sequential import DECIDED

MOST_P = 1.0 / (DECIDED * HORIZON_POINTS)
"""A difference counts at this p value: in half a year of weekly looks, a false one comes at most once in 20 times."""


@dataclass(frozen=True)
class InstrumentChange:
    """A part of the instrument that is another one than in the first point."""

    what: str
    before: str
    now: str
    at: PointId
    """The first point with the new one."""
    until: str | None
    """When a point first had the old one again; None: it is in force."""

    def is_in_force(self, when: str | None) -> bool:
        """Whether the instrument is another one at a time; None: after all points."""
        if when is None:
            return self.until is None
        return self.at.created_at <= when and (self.until is None or when < self.until)

    def line(self) -> str:
        """One line for a report."""
        return f"{self.what}: {self.now} since run {self.at.run_id}, {self.before} before"


def instrument_changes(points: Sequence[HistoryPoint]) -> list[InstrumentChange]:
    """All changes against the first point, in the order of time; one that was taken back says until when.

    Wording and parser are compared over the whole history. Names that servers give are compared among points of one
    kind and comparator, since another comparator has names of its own; a point whose servers say nothing is passed
    over. A served model or an upstream is another one where a name comes up that the first point did not have.
    Fingerprints are where none of the first point's is left, since a large server runs several at a time. Builds are
    too; a judge that is asked the same again is held against the build of the first stored verdicts.
    """
    found = [*_changes("prompt hash", points, lambda point: (point.prompt_sha256[:12],), _is_other)]
    found += _changes("parser version", points, lambda point: (point.parser_version,), _is_other)
    streams: dict[tuple[str, str], list[HistoryPoint]] = {}
    for point in points:
        streams.setdefault((point.kind, point.comparator), []).append(point)
    for stream in streams.values():
        found += _changes("served model", stream, lambda point: point.served_models, _has_new)
        found += _changes("upstream", stream, lambda point: point.upstreams, _has_new)
        found += _changes("fingerprint", stream, lambda point: point.fingerprints, _has_none_of)
        first = () if stream[0].kind == "spot_check" else stream[0].verdict_builds
        found += _changes("build", stream, lambda point: point.builds, _has_none_of, first)
    return sorted(found, key=lambda change: change.at.created_at)


def _changes(
    what: str,
    points: Sequence[HistoryPoint],
    value_of: Callable[[HistoryPoint], tuple[str, ...]],
    differs: Callable[[tuple[str, ...], tuple[str, ...]], bool],
    first: tuple[str, ...] = (),
) -> Iterator[InstrumentChange]:
    """Changes of one part against `first`, or if that is empty, against the first point that says anything of it."""
    said = [(point, value) for point in points if (value := value_of(point)) and any(value)]
    if not said:
        return
    first = first or said[0][1]
    begun: InstrumentChange | None = None
    for point, value in said:
        if begun is None and differs(first, value):
            begun = InstrumentChange(what, ", ".join(first), ", ".join(value), PointId.of(point), until=None)
        elif begun is not None and not differs(first, value):
            yield replace(begun, until=point.created_at)
            begun = None
    if begun is not None:
        yield begun


def _is_other(first: tuple[str, ...], now: tuple[str, ...]) -> bool:
    return first != now


def _has_new(first: tuple[str, ...], now: tuple[str, ...]) -> bool:
    return not set(now) <= set(first)


def _has_none_of(first: tuple[str, ...], now: tuple[str, ...]) -> bool:
    return not set(now) & set(first)


@dataclass(frozen=True)
class SystemShift:
    """The newest answers beside the first ones, as the judge scored each at its time."""

    first: PointId
    first_mean: float
    now: PointId
    now_mean: float
    delta: float
    """`now_mean - first_mean`."""
    p: float | None
    """Welch's test; None if there are too few scores."""
    beyond_judge: bool
    """The difference is more than what the judge itself moved by."""
    judge_shift: float | None
    """How far the judge moved on unchanged inputs, from re-judging; None if that is not known."""
    moved: tuple[tuple[str, bool], ...]
    """Time of each point with scores, and whether the answers of its run differ from the first ones in score."""
    since: PointId | None
    """The first of the runs up to the newest that all differ in score; None if the newest does not."""

    def has_moved(self, when: str | None) -> bool:
        """Whether the newest answers at a time differ in score; None: after all points."""
        found = [is_moved for at, is_moved in self.moved if when is None or at <= when]
        return bool(found) and found[-1]

    def line(self, *, judge_moved: bool) -> str:
        """One line for a report."""
        means = f"mean score {self.first_mean:.3f} in run {self.first.run_id}, {self.now_mean:.3f} in {self.now.run_id}"
        change = means if self.p is None else f"{means} (p {self.p:.2g}, needed {MOST_P:.2g})"
        if not self.has_moved(None):
            return f"answers changed, but not shown to score differently: {change}"
        if not judge_moved:
            return f"answers changed, and score differently: {change}"
        if self.judge_shift is None:
            return f"new answers score differently: {change}; re-judge old inputs to tell how much of it is the judge"
        return f"new answers score differently: {change}; the judge moved by {self.judge_shift:+.3f} of it"


def system_shift(points: Sequence[HistoryPoint], judge_since: str | None) -> SystemShift | None:
    """Compare the scores of each run with other answers to those of the first run.

    If the judge moved too, its mean shift on unchanged inputs since then is taken off before the difference is
    tested again (`beyond_judge`); only re-judging tells that shift.

    Assumptions: two runs count as independent samples of scores. They are of the same cases, so the test is on the
    safe side; a comparison of two runs case by case finds smaller differences.

    Returns:
        None if fewer than two sets of answers have scores.
    """
    scored = [point for point in points if point.score_mean is not None and point.answers_sha256 is not None]
    if len({point.answers_sha256 for point in scored}) < 2:
        return None
    first, now = scored[0], scored[-1]
    moved = [_differs(first, point) for point in scored]
    since = [point for point, _ in takewhile(itemgetter(1), zip(reversed(scored), reversed(moved), strict=True))]
    shift = None if judge_since is None else _judge_shift(points, judge_since)
    return SystemShift(
        first=PointId.of(first),
        first_mean=_mean(first),
        now=PointId.of(now),
        now_mean=_mean(now),
        delta=_mean(now) - _mean(first),
        p=_p(first, now),
        beyond_judge=shift is not None and _differs(first, now, shift),
        judge_shift=None if shift is None else shift[0],
        moved=tuple((point.created_at, is_moved) for point, is_moved in zip(scored, moved, strict=True)),
        since=PointId.of(since[-1]) if since else None,
    )


def _differs(first: HistoryPoint, now: HistoryPoint, shift: tuple[float, float, int] | None = None) -> bool:
    if now.answers_sha256 == first.answers_sha256:
        return False
    p = _p(first, now, shift)
    return p is not None and p <= MOST_P


def _p(first: HistoryPoint, now: HistoryPoint, shift: tuple[float, float, int] | None = None) -> float | None:
    """Welch's p value; a shift of the judge is taken off the new mean, and its uncertainty added to that of it."""
    if first.score_sd is None or now.score_sd is None:
        return None
    mean, deviation = _mean(now), now.score_sd
    if shift is not None:
        amount, shift_sd, n_pairs = shift
        mean -= amount
        deviation = (now.n_scores * (deviation**2 / now.n_scores + shift_sd**2 / n_pairs)) ** 0.5
    return welch_p(_mean(first), first.score_sd, first.n_scores, mean, deviation, now.n_scores)


def _judge_shift(points: Sequence[HistoryPoint], since: str) -> tuple[float, float, int] | None:
    """Mean shift of re-judged verdicts since a time, its standard deviation, and the number of pairs."""
    amount = squares = 0.0
    n = 0
    for point in points:
        if point.kind == "rejudge" and point.created_at >= since and point.shift_mean is not None and point.n_pairs:
            # Where the spread is not known, that of two independent scores is not exceeded.
            spread = point.shift_sd if point.shift_sd is not None else 2.0**0.5 * (point.score_sd or 0.0)
            amount += point.n_pairs * point.shift_mean
            squares += point.n_pairs * spread**2
            n += point.n_pairs
    return (amount / n, (squares / n) ** 0.5, n) if n else None


def _mean(point: HistoryPoint) -> float:
    assert point.score_mean is not None  # noqa: S101  # for the type checker: only points with scores come here
    return point.score_mean


@dataclass(frozen=True)
class VerdictShift:
    """The verdicts of a later run on the same answers, which were asked for again, beside the first ones."""

    first: PointId
    first_mean: float
    now: PointId
    """The first point whose mean differs."""
    now_mean: float
    p: float

    def line(self) -> str:
        """One line for a report."""
        return (
            f"the same answers score differently: mean {self.first_mean:.3f} in run {self.first.run_id}, "
            f"{self.now_mean:.3f} in {self.now.run_id} (p {self.p:.2g}, needed {MOST_P:.2g}), so the judge moved"
        )


def verdict_shift(points: Sequence[HistoryPoint]) -> VerdictShift | None:
    """The first run whose stored verdicts differ in mean from those of the first run of the same answers.

    By Welch's test, at 1 in 20 over half a year of weekly looks. Verdicts from the cache are the same verdicts, so that
    a difference takes a run that asked again.

    Assumptions: as `system_shift`.

    Returns:
        None if no mean is shown to differ.
    """
    firsts: dict[tuple[str, str], HistoryPoint] = {}
    for point in points:
        if point.answers_sha256 is None or point.verdict_model is None or point.score_mean is None:
            continue
        first = firsts.setdefault((point.answers_sha256, point.verdict_model), point)
        p = _p(first, point)
        if p is not None and p <= MOST_P:
            return VerdictShift(PointId.of(first), _mean(first), PointId.of(point), _mean(point), p)
    return None


@dataclass(frozen=True)
class ChanceShift:
    """The probabilities of the judge now beside the stored ones, on unchanged inputs."""

    now: PointId
    """The first point that shows a shift."""
    mean: float
    """Mean of the probability (or expected score, as a share of the scale) now less the stored one."""
    n_pairs: int
    p: float

    def line(self) -> str:
        """One line for a report."""
        return (
            f"its probabilities moved on unchanged inputs: by {self.mean:+.3f} of the scale on average in "
            f"{self.n_pairs} pairs of run {self.now.run_id} (p {self.p:.2g}, needed {MOST_P:.2g}), so the judge moved"
        )


LEAST_CHANCE_SHIFT = 0.01
"""A mean shift of probabilities below this part of the scale is no drift, however certain it is."""


def chance_shift(points: Sequence[HistoryPoint]) -> ChanceShift | None:
    """The first time that the judge, asked again later, gave other probabilities on average than it had stored.

    By the paired t test, at 1 in 20 over half a year of weekly looks. Probabilities move before verdicts flip, so this
    can show drift of a judge whose verdicts are all the same.

    Assumptions: independent cases; the noise of a server moves probabilities both ways.

    Returns:
        None if no shift of a hundredth of the scale or more is shown.
    """
    for point in points:
        if point.kind != "rejudge" or point.chance_shift_mean is None or point.chance_shift_sd is None:
            continue
        if abs(point.chance_shift_mean) < LEAST_CHANCE_SHIFT:
            continue
        p = paired_t_p(point.chance_shift_mean, point.chance_shift_sd, point.n_chances)
        if p is not None and p <= MOST_P:
            return ChanceShift(PointId.of(point), point.chance_shift_mean, point.n_chances, p)
    return None
