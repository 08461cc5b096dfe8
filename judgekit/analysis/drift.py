"""Drift: whether a judge, the system under test or the instrument changed, from a history of checks.

Three things can make a score move, and each leaves its own trace. A judge that drifts contradicts stored verdicts on
unchanged inputs. A system that drifts gets other scores on new answers while the judge stays with its old verdicts. An
instrument that changed says so itself: another served model, fingerprint, wording or parser, or more failures.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

from judgekit.analysis.drift_evidence import Evidence, Point, gather
from judgekit.analysis.drift_instrument import InstrumentChange, instrument_changes
from judgekit.analysis.drift_system import SystemShift, system_shift
from judgekit.core.drift import DriftCheck
from judgekit.stats.proportions import wilson_interval

State = Literal["none", "judge", "system", "judge+system", "instrument", "insufficient"]

BASELINE_CHECKS = 4
"""Checks at the start of a history that say what is usual, where nothing else does."""
LEAST_RATE = 0.05
"""Flips up to this rate are noise."""
ENOUGH_PAIRS = 20
"""Fewer pairs than these say nothing."""

DRIFTED: frozenset[State] = frozenset({"judge", "system", "judge+system", "instrument"})
"""States that `--fail-on-drift` fails on."""


@dataclass(frozen=True)
class Stream:
    """Checks that were asked of the same comparator, against its usual rate of flips."""

    kind: str
    comparator: str
    evidence: Evidence
    n_baseline_checks: int
    n_baseline_pairs: int
    m0_source: str
    """Where the usual rate is from."""


@dataclass(frozen=True)
class DriftReport:
    """What a history of checks of one judge says."""

    judge: str
    prompt_version: str
    dataset_sha256: str
    state: State
    why: tuple[str, ...]
    """One line for each reason."""
    since: Point | None
    """The check with which the change most likely began; None where there is none."""
    streams: tuple[Stream, ...]
    failures: Evidence | None
    """Failed calls against their usual rate; None where there are too few checks."""
    changes: tuple[InstrumentChange, ...]
    system: SystemShift | None
    """None where the answers were the same in all checks."""
    timeline: tuple[dict[str, Any], ...]

    def document(self) -> dict[str, Any]:
        """A strict-JSON object."""
        return asdict(self)


def histories(checks: Sequence[DriftCheck]) -> list[list[DriftCheck]]:
    """Checks apart by judge, wording and data set, each in the order of time."""
    found: dict[tuple[str, str, str], dict[str, DriftCheck]] = {}
    for check in checks:
        key = (check.judge, check.prompt_version, check.dataset_sha256)
        found.setdefault(key, {})[check.check_id] = check
    return [sorted(group.values(), key=_when) for _, group in sorted(found.items())]


def drift_report(checks: Sequence[DriftCheck]) -> DriftReport:
    """The state of a judge, from its history.

    A judge's flips are held against H0 "the rate is at most m0", m0 the larger of 0.05 and the upper end of the 95%
    Wilson interval of the usual rate. The usual rate of re-judging is the noise floor where it was measured; that of
    a spot check with another wording or model is the rate of its first four checks, which are then not tested. An
    alarm is an e-value of all tested checks of 20 or more, or an e-detector of 520 or more, times the number of
    comparators tested. Once raised it stays. Failures are tested in the same way.

    `instrument` goes before `judge`, since flips of another instrument are no drift of this one; `system` needs new
    answers whose mean score differs from that of the first answers while the judge is quiet, and `judge+system` that
    it differs by more than the judge moved.

    Assumptions: each check draws its cases anew; see `stats.sequential` for the rest.

    Args:
        checks: one history, in the order of time, at least one check; see `histories`.

    Raises:
        ValueError: no checks, or checks of several histories.

    Source: in-house; the tests are those of `stats.sequential`.
    """
    if len({(check.judge, check.prompt_version, check.dataset_sha256) for check in checks}) != 1:
        raise ValueError("a report is about one history: one judge, wording and data set")
    streams = _streams(checks)
    failures = _failures(checks)
    changes = instrument_changes(checks)
    moved = _judge_since(streams)
    system = system_shift(checks, None if moved is None else moved.created_at)
    flags = _Flags(streams, failures, changes, system)
    return DriftReport(
        judge=checks[0].judge,
        prompt_version=checks[0].prompt_version,
        dataset_sha256=checks[0].dataset_sha256,
        state=flags.state(None),
        why=tuple(_why(flags)),
        since=_since(flags, moved),
        streams=tuple(streams),
        failures=failures,
        changes=tuple(changes),
        system=system,
        timeline=tuple(_timeline(checks, flags)),
    )


def _streams(checks: Sequence[DriftCheck]) -> list[Stream]:
    groups: dict[tuple[str, str], list[DriftCheck]] = {}
    floors: dict[str, list[DriftCheck]] = {}
    for check in checks:
        if check.kind == "noise_floor":
            floors.setdefault(check.comparator, []).append(check)
        else:
            groups.setdefault((check.kind, check.comparator), []).append(check)
    parts = []
    for (kind, comparator), group in groups.items():
        if kind == "rejudge":
            usual, tested = floors.get(comparator, []), group
            source = "noise floor" if usual else "assumed; measure the noise floor"
        else:
            usual, tested = group[:BASELINE_CHECKS], group[BASELINE_CHECKS:]
            source = f"first {len(usual)} checks"
        parts.append((kind, comparator, usual, tested, source))
    n_tested = sum(1 for part in parts if part[3])
    streams = []
    for kind, comparator, usual, tested, source in parts:
        m0 = _usual_rate(sum(check.n_disagree for check in usual), sum(check.n_pairs for check in usual))
        counts = [(check.n_disagree, check.n_pairs) for check in tested]
        evidence = gather(counts, [_point(check) for check in tested], m0, max(1, n_tested))
        n_pairs = sum(check.n_pairs for check in usual)
        streams.append(Stream(kind, comparator, evidence, len(usual), n_pairs, source))
    return streams


def _failures(checks: Sequence[DriftCheck]) -> Evidence | None:
    """Failed calls of all checks after the first four against those."""
    usual, tested = checks[:BASELINE_CHECKS], checks[BASELINE_CHECKS:]
    if not tested:
        return None
    m0 = _usual_rate(sum(check.n_failed for check in usual), sum(check.n_asked for check in usual))
    counts = [(check.n_failed, check.n_asked) for check in tested]
    return gather(counts, [_point(check) for check in tested], m0, 1)


def _usual_rate(n_high: int, n: int) -> float:
    interval = wilson_interval(n_high, n)
    # A rate to test against is below 1, also where every check of the baseline flipped.
    return LEAST_RATE if interval is None else min(max(LEAST_RATE, interval[1]), 0.999)


@dataclass(frozen=True)
class _Flags:
    """All that the state is read from."""

    streams: Sequence[Stream]
    failures: Evidence | None
    changes: Sequence[InstrumentChange]
    system: SystemShift | None

    def judge(self, when: str | None) -> bool:
        return any(_raised(stream.evidence, when) for stream in self.streams)

    def instrument(self, when: str | None) -> bool:
        """Another instrument than at first, or more failures than usual."""
        if self.failures is not None and _raised(self.failures, when):
            return True
        return any(change.is_in_force(when) for change in self.changes)

    def state(self, when: str | None) -> State:
        """The state after the checks up to a time; None: after all."""
        if self.instrument(when):
            return "instrument"
        system = self.system is not None and self.system.has_moved(when)
        if self.judge(when):
            return "judge+system" if system and self.system is not None and self.system.beyond_judge else "judge"
        if system:
            return "system"
        n_pairs = sum(n for stream in self.streams for at, n in stream.evidence.pairs if when is None or at <= when)
        return "none" if n_pairs >= ENOUGH_PAIRS else "insufficient"


def _raised(evidence: Evidence, when: str | None) -> bool:
    return evidence.alarm_at is not None and (when is None or evidence.alarm_at.created_at <= when)


def _judge_since(streams: Sequence[Stream]) -> Point | None:
    """When the judge began to flip: the earliest of the streams that raised an alarm."""
    found = [s.evidence.since for s in streams if s.evidence.alarm_at is not None and s.evidence.since is not None]
    return min(found, key=lambda point: point.created_at, default=None)


def _since(flags: _Flags, moved: Point | None) -> Point | None:
    state = flags.state(None)
    if state == "instrument":
        found = [change.at for change in flags.changes if change.is_in_force(None)]
        failures = flags.failures
        if failures is not None and failures.alarm_at is not None and failures.since is not None:
            found.append(failures.since)
        return min(found, key=lambda point: point.created_at)
    if state in ("judge", "judge+system"):
        return moved
    return flags.system.since if state == "system" and flags.system is not None else None


def _why(flags: _Flags) -> list[str]:
    lines = [change.line() for change in flags.changes if change.is_in_force(None)]
    if flags.failures is not None and flags.failures.alarm_at is not None:
        lines.append(f"calls: {flags.failures.line('failed', f'first {BASELINE_CHECKS} checks')}")
    for stream in flags.streams:
        name = f"{stream.kind} by {stream.comparator}"
        if stream.evidence.counts:
            lines.append(f"{name}: {stream.evidence.line('contradict the stored verdict', stream.m0_source)}")
        else:
            lines.append(f"{name}: {stream.n_baseline_checks} of {BASELINE_CHECKS} checks of the baseline, none tested")
    if not flags.streams:
        lines.append("no check but those of the noise floor")
    if flags.system is not None:
        lines.append(flags.system.line(judge_moved=flags.judge(None)))
    return lines


def _timeline(checks: Sequence[DriftCheck], flags: _Flags) -> list[dict[str, Any]]:
    logs: dict[tuple[str, str, str], Mapping[str, float]] = {}
    for stream in flags.streams:
        for row in stream.evidence.rows:
            logs[(stream.kind, stream.comparator, row.at.check_id)] = {
                "log_e_value": row.log_e_value,
                "log_e_detector": row.log_e_detector,
            }
    nothing = {"log_e_value": None, "log_e_detector": None}
    return [
        {
            **asdict(_point(check)),
            "kind": check.kind,
            "comparator": check.comparator,
            "n_asked": check.n_asked,
            "n_pairs": check.n_pairs,
            "n_disagree": check.n_disagree,
            "rate": check.n_disagree / check.n_pairs if check.n_pairs else None,
            "n_failed": check.n_failed,
            "score_mean": check.score_mean,
            **logs.get((check.kind, check.comparator, check.check_id), nothing),
            "state": flags.state(check.created_at),
        }
        for check in checks
    ]


def _point(check: DriftCheck) -> Point:
    return Point(check.run_id, check.created_at, check.check_id)


def _when(check: DriftCheck) -> tuple[str, str]:
    return check.created_at, check.check_id
