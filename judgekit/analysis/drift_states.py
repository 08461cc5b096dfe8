"""Drift: whether a judge, the system under test or the instrument changed, from a history of points.

Three things can make a score move, and each leaves its own trace. A judge that drifts contradicts stored verdicts on
unchanged inputs. A system that drifts gets other scores on new answers while the judge stays with its old verdicts. An
instrument that changed says so itself: another served model, fingerprint, wording or parser, or more failures.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

from judgekit.analysis.drift_evidence import (
    BASELINE_POINTS,
    Evidence,
    PointId,
    Row,
    Usual,
    gather,
    noise,
    rate_to_test,
    usual_of_others,
)
from judgekit.analysis.drift_shifts import (
    ChanceShift,
    InstrumentChange,
    SystemShift,
    VerdictShift,
    chance_shift,
    instrument_changes,
    system_shift,
    verdict_shift,
)
from judgekit.core.history_points import KIND_WORDS, HistoryPoint

State = Literal["none", "judge", "system", "judge+system", "instrument", "insufficient", "not asked"]

ENOUGH_PAIRS = 20
"""Fewer pairs than these say nothing."""

DRIFTED: frozenset[State] = frozenset({"judge", "system", "judge+system", "instrument"})
"""States that say that something changed."""

UNKNOWN: frozenset[State] = frozenset({"insufficient", "not asked"})
"""States that do not say whether anything changed."""

FAILING: frozenset[State] = DRIFTED | {"not asked"}
"""States that `--fail-on-drift` fails on: a history in which nothing is ever asked must not pass for a quiet one."""


@dataclass(frozen=True)
class Stream:
    """Points that were asked of the same comparator, against its usual rate of flips."""

    kind: str
    comparator: str
    evidence: Evidence
    n_baseline_checks: int
    n_baseline_pairs: int
    m0_source: str
    """Where the usual rate is from."""
    is_wide: bool = False
    """The usual rate is so high that quiet points do not show that nothing drifts."""


@dataclass(frozen=True)
class DriftReport:
    """What a history of points of one judge says."""

    judge: str
    prompt_version: str
    dataset_sha256: str
    state: State
    why: tuple[str, ...]
    """One line for each reason."""
    since: PointId | None
    """The point with which the change most likely began; None if there is none."""
    streams: tuple[Stream, ...]
    failures: Evidence | None
    """Failed calls against their usual rate; None if there are too few points."""
    changes: tuple[InstrumentChange, ...]
    system: SystemShift | None
    """None if the answers were the same in all points."""
    verdicts: VerdictShift | None
    """Other scores for the same answers, in runs that asked again; None without any."""
    chances: ChanceShift | None
    """Other probabilities for the same inputs; None without any."""
    accepted: dict[str, Any] | None
    """The acceptance with which what is tested begins: `created_at`, `rate`, `reason`; None without one."""
    timeline: tuple[dict[str, Any], ...]

    def document(self) -> dict[str, Any]:
        """A strict-JSON object."""
        return asdict(self)


def histories(points: Sequence[HistoryPoint]) -> list[list[HistoryPoint]]:
    """Points apart by judge, wording and data set, each in the order of time."""
    found: dict[tuple[str, str, str], dict[str, HistoryPoint]] = {}
    for point in points:
        key = (point.judge, point.prompt_version, point.dataset_sha256)
        found.setdefault(key, {})[point.check_id] = point
    return [_in_order(list(group.values())) for _, group in sorted(found.items())]


def _in_order(points: Sequence[HistoryPoint]) -> list[HistoryPoint]:
    """By time, without the points of runs that say that nobody was asked, if a later point did ask."""
    asked = {point.run_id for point in points if point.n_asked}
    needed = [point for point in points if point.kind != "run" or point.run_id not in asked]
    return sorted(needed, key=lambda point: (point.created_at, point.check_id))


def drift_report(points: Sequence[HistoryPoint]) -> DriftReport:
    """The state of a judge, from its history.

    A judge's flips are held against H0 "the rate is at most m0", m0 what is usual: see `drift_evidence`. An alarm is an
    e-value of all tested points of 20 or more, or an e-detector of 520 or more, times the number of comparators tested.
    Once raised it stays, until an acceptance: what came before it is not tested. Failures are tested in the same way.
    Another mean score for the same answers is an alarm too, see `verdict_shift`, and so are other probabilities, see
    `chance_shift`.

    `none` takes 20 pairs or more that were tested since the last point with drift, of comparators that could show one.
    If nothing was asked the state is `not asked`.

    `instrument` goes before `judge`, since flips of another instrument do not show that this one drifts. `system` needs
    new answers whose mean score differs from that of the first answers while the judge is quiet, and `judge+system`
    that it differs by more than the judge moved.

    Assumptions: each point draws its own cases; see `stats.sequential` for the rest.

    Args:
        points: one history, in the order of time, at least one point; see `histories`.

    Raises:
        ValueError: no points, or points of several histories.
    """
    if len({(point.judge, point.prompt_version, point.dataset_sha256) for point in points}) != 1:
        raise ValueError("a report is about one history: one judge, wording and data set")
    timeline: list[dict[str, Any]] = []
    for accepted, part in _parts(points):  # the last one is what the report is about
        flags = _flags_of(accepted, part)
        timeline += [_row(accepted, "not asked", None)] if accepted is not None else []
        rows = list(_timeline(part, flags))
        timeline += rows
        state: State = rows[-1]["state"] if rows else "not asked"
    return DriftReport(
        judge=points[0].judge,
        prompt_version=points[0].prompt_version,
        dataset_sha256=points[0].dataset_sha256,
        state=state,
        why=tuple(_why(flags, accepted)),
        since=_since(flags, state),
        streams=tuple(flags.streams),
        failures=flags.failures,
        changes=tuple(flags.changes),
        system=flags.system,
        verdicts=flags.verdicts,
        chances=flags.chances,
        accepted=None if accepted is None else {name: getattr(accepted, name) for name in ACCEPTANCE},
        timeline=tuple(timeline),
    )


ACCEPTANCE = ("created_at", "accepted_rate", "reason")
"""Fields of an acceptance that a report shows."""


def _parts(points: Sequence[HistoryPoint]) -> list[tuple[HistoryPoint | None, list[HistoryPoint]]]:
    """The history in parts that each begin with an acceptance, the first one perhaps without."""
    parts: list[tuple[HistoryPoint | None, list[HistoryPoint]]] = [(None, [])]
    for point in points:
        if point.kind == "acceptance":
            parts.append((point, []))
        else:
            parts[-1][1].append(point)
    return parts


def _flags_of(accepted: HistoryPoint | None, points: Sequence[HistoryPoint]) -> "_Flags":
    streams = _streams(points, None if accepted is None else accepted.accepted_rate)
    verdicts = verdict_shift(points)
    chances = chance_shift(points)
    moved = _judge_since(streams, verdicts, chances)
    system = system_shift(points, None if moved is None else moved.created_at)
    return _Flags(points, streams, _failures(points), instrument_changes(points), system, verdicts, chances)


def _streams(points: Sequence[HistoryPoint], accepted: float | None) -> list[Stream]:
    groups: dict[tuple[str, str], list[HistoryPoint]] = {}
    for point in points:
        if point.kind in ("rejudge", "spot_check"):
            groups.setdefault((point.kind, point.comparator), []).append(point)
    floor = noise(points, accepted)
    usuals = {  # the same judge asked again flips by its noise
        key: Usual(*floor, tuple(group)) if key[0] == "rejudge" else usual_of_others(group, floor[0], accepted)
        for key, group in groups.items()
    }
    n_tested = max(1, sum(1 for usual in usuals.values() if usual.tested))
    return [
        Stream(
            kind=kind,
            comparator=comparator,
            evidence=gather(
                usual.tested, [(point.n_disagree, point.n_pairs) for point in usual.tested], usual.rate, n_tested
            ),
            n_baseline_checks=usual.n_points,
            n_baseline_pairs=usual.n_pairs,
            m0_source=usual.source,
            is_wide=usual.is_wide,
        )
        for (kind, comparator), usual in usuals.items()
    ]


def _failures(points: Sequence[HistoryPoint]) -> Evidence | None:
    """Failed calls of all points after the first four against those."""
    asked = [point for point in points if point.n_asked]
    usual, tested = asked[:BASELINE_POINTS], asked[BASELINE_POINTS:]
    if not tested:
        return None
    m0 = rate_to_test(sum(point.n_failed for point in usual), sum(point.n_asked for point in usual))
    return gather(tested, [(point.n_failed, point.n_asked) for point in tested], m0, 1)


@dataclass(frozen=True)
class _Flags:
    """All that the state is read from."""

    points: Sequence[HistoryPoint]
    streams: Sequence[Stream]
    failures: Evidence | None
    changes: Sequence[InstrumentChange]
    system: SystemShift | None
    verdicts: VerdictShift | None
    chances: ChanceShift | None

    def judge(self, when: str | None) -> bool:
        """It flips more than usual, scores the same answers differently, or gives them other probabilities."""
        shifts = [shift.now for shift in (self.verdicts, self.chances) if shift is not None]
        if any(when is None or now.created_at <= when for now in shifts):
            return True
        return any(stream.evidence.is_alarm(when) for stream in self.streams)

    def instrument(self, when: str) -> bool:
        """Another instrument than at first, or more failures than usual."""
        fails = self.failures is not None and self.failures.is_alarm(when)
        return fails or any(change.is_in_force(when) for change in self.changes)

    def state(self, when: str, alarm_at: str | None) -> State:
        """The state after the points up to a time, of which the last one with drift was at `alarm_at`."""
        if self.instrument(when):
            return "instrument"
        system = self.system is not None and self.system.has_moved(when)
        if self.judge(when):
            return "judge+system" if system and self.system is not None and self.system.beyond_judge else "judge"
        if system:
            return "system"
        if not any(point.n_asked for point in self.points if point.created_at <= when):
            return "not asked"
        n_pairs = sum(
            n
            for stream in self.streams
            if not stream.is_wide
            for at, n in stream.evidence.pairs
            if at <= when and (alarm_at is None or at > alarm_at)
        )
        return "none" if n_pairs >= ENOUGH_PAIRS else "insufficient"


def _judge_since(streams: Sequence[Stream], *shifts: VerdictShift | ChanceShift | None) -> PointId | None:
    """When the judge began to differ: the earliest of what raised an alarm."""
    starts = [None if shift is None else shift.now for shift in shifts]
    return _earliest([*starts, *(stream.evidence.alarm_since for stream in streams)])


def _earliest(points: Iterable[PointId | None]) -> PointId | None:
    found = [point for point in points if point is not None]
    return min(found, key=lambda point: point.created_at, default=None)


def _since(flags: _Flags, state: State) -> PointId | None:
    if state == "instrument":
        changes = [change.at for change in flags.changes if change.is_in_force(None)]
        return _earliest([*changes, None if flags.failures is None else flags.failures.alarm_since])
    if state in ("judge", "judge+system"):
        return _judge_since(flags.streams, flags.verdicts, flags.chances)
    return flags.system.since if state == "system" and flags.system is not None else None


def _why(flags: _Flags, accepted: HistoryPoint | None) -> list[str]:
    lines = [] if accepted is None else [_acceptance_line(accepted)]
    lines += [change.line() for change in flags.changes if change.is_in_force(None)]
    if flags.failures is not None and flags.failures.alarm_at is not None:
        lines.append(f"calls: {flags.failures.line('failed', f'first {BASELINE_POINTS} points')}")
    lines += [shift.line() for shift in (flags.verdicts, flags.chances) if shift is not None]
    for stream in flags.streams:
        name = f"{KIND_WORDS[stream.kind]}, {stream.comparator}"
        if stream.evidence.counts:
            lines.append(f"{name}: {stream.evidence.line('contradict the stored verdict', stream.m0_source)}")
        else:
            lines.append(f"{name}: {stream.n_baseline_checks} of {BASELINE_POINTS} points of the baseline, none tested")
    if not flags.streams and any(point.n_asked for point in flags.points):
        lines.append("only points of the noise floor: asked again within a day, a judge shows its noise and not drift")
    lines += _silence(flags.points)
    if flags.system is not None:
        lines.append(flags.system.line(judge_moved=flags.judge(None)))
    elif len({point.answers_sha256 for point in flags.points} - {None}) > 1 and not any(
        point.n_scores for point in flags.points
    ):
        lines.append("answers changed; verdicts of this judge have no mean score that could shift, so compare the runs")
    return lines


def _acceptance_line(accepted: HistoryPoint) -> str:
    rate = "" if accepted.accepted_rate is None else f", with up to {accepted.accepted_rate:.0%} flips as usual"
    reason = "" if not accepted.reason else f": {accepted.reason}"
    return f"accepted {accepted.created_at[:16].replace('T', ' ')}{rate}{reason}; only what was asked since counts"


def _silence(points: Sequence[HistoryPoint]) -> list[str]:
    """Since when nothing was asked, where the newest runs did not ask."""
    asked = [point for point in points if point.n_asked]
    if not asked:
        runs = dict.fromkeys(point.run_id for point in points)
        which = f" in {len(runs)} runs" if runs else " since"
        return [
            f"no verdict was checked{which}, so nothing is known about drift; a `spot_check` in the config checks some"
        ]
    silent = dict.fromkeys(point.run_id for point in points if point.created_at > asked[-1].created_at)
    return [f"nothing was asked in the {len(silent)} runs since {asked[-1].created_at[:10]}"] if silent else []


def _timeline(points: Sequence[HistoryPoint], flags: _Flags) -> Iterator[dict[str, Any]]:
    found = {row.at.check_id: row for stream in flags.streams for row in stream.evidence.rows}
    alarm_at: str | None = None
    for point in points:
        state = flags.state(point.created_at, alarm_at)
        if state in DRIFTED:
            alarm_at = point.created_at
        yield _row(point, state, found.get(point.check_id))


def _row(point: HistoryPoint, state: State, evidence: Row | None) -> dict[str, Any]:
    return {
        **asdict(PointId.of(point)),
        "kind": point.kind,
        "comparator": point.comparator,
        "n_asked": point.n_asked,
        "n_pairs": point.n_pairs,
        "n_disagree": point.n_disagree,
        "rate": point.n_disagree / point.n_pairs if point.n_pairs else None,
        "n_failed": point.n_failed,
        "score_mean": point.score_mean,
        "log_e_value": None if evidence is None else evidence.log_e_value,
        "log_e_detector": None if evidence is None else evidence.log_e_detector,
        "state": state,
    }
