"""Whether the instrument that judged is the one that judged at first, by what it says of itself."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from judgekit.analysis.drift_evidence import Point
from judgekit.core.history_points import HistoryPoint


@dataclass(frozen=True)
class InstrumentChange:
    """A part of the instrument that is another one than in the first check."""

    what: str
    before: str
    now: str
    at: Point
    """The first check with the new one."""
    until: str | None
    """When a check first had the old one again; None: it is in force."""

    def is_in_force(self, when: str | None) -> bool:
        """Whether the instrument is another one at a time; None: after all checks."""
        if when is None:
            return self.until is None
        return self.at.created_at <= when and (self.until is None or when < self.until)

    def line(self) -> str:
        """One line for a report."""
        return f"{self.what}: {self.now} since run {self.at.run_id}, {self.before} before"


def instrument_changes(checks: Sequence[HistoryPoint]) -> list[InstrumentChange]:
    """All changes against the first check, in the order of time; one that was taken back says until when.

    Wording and parser are compared over the whole history. Names that servers give are compared among checks of one
    kind and comparator, since another comparator has names of its own; a check whose servers say nothing is passed
    over. A served model or an upstream is another one where a name comes up that the first check did not have.
    Fingerprints are where none of the first check's is left, since a large server runs several at a time. Builds are
    too; a judge that is asked the same again is held against the build of the first stored verdicts.

    Args:
        checks: one history, in the order of time.

    Source: in-house.
    """
    found = [*_changes("prompt hash", checks, lambda check: (check.prompt_sha256[:12],), _is_other)]
    found += _changes("parser version", checks, lambda check: (check.parser_version,), _is_other)
    streams: dict[tuple[str, str], list[HistoryPoint]] = {}
    for check in checks:
        streams.setdefault((check.kind, check.comparator), []).append(check)
    for stream in streams.values():
        found += _changes("served model", stream, lambda check: check.served_models, _has_new)
        found += _changes("upstream", stream, lambda check: check.upstreams, _has_new)
        found += _changes("fingerprint", stream, lambda check: check.fingerprints, _has_none_of)
        first = () if stream[0].kind == "spot_check" else stream[0].verdict_builds
        found += _changes("build", stream, lambda check: check.builds, _has_none_of, first)
    return sorted(found, key=lambda change: change.at.created_at)


def _changes(
    what: str,
    checks: Sequence[HistoryPoint],
    value_of: Callable[[HistoryPoint], tuple[str, ...]],
    differs: Callable[[tuple[str, ...], tuple[str, ...]], bool],
    first: tuple[str, ...] = (),
) -> Iterator[InstrumentChange]:
    """Changes of one part against `first`, or where that is empty against the first check that says anything of it."""
    said = [(check, value) for check in checks if (value := value_of(check)) and any(value)]
    if not said:
        return
    first = first or said[0][1]
    begun: tuple[HistoryPoint, tuple[str, ...]] | None = None
    for check, value in said:
        if begun is None and differs(first, value):
            begun = (check, value)
        elif begun is not None and not differs(first, value):
            yield _change(what, first, begun, check.created_at)
            begun = None
    if begun is not None:
        yield _change(what, first, begun, None)


def _change(
    what: str, first: tuple[str, ...], begun: tuple[HistoryPoint, tuple[str, ...]], until: str | None
) -> InstrumentChange:
    check, value = begun
    at = Point(check.run_id, check.created_at, check.check_id)
    return InstrumentChange(what, ", ".join(first), ", ".join(value), at, until)


def _is_other(first: tuple[str, ...], now: tuple[str, ...]) -> bool:
    return first != now


def _has_new(first: tuple[str, ...], now: tuple[str, ...]) -> bool:
    return not set(now) <= set(first)


def _has_none_of(first: tuple[str, ...], now: tuple[str, ...]) -> bool:
    return not set(now) & set(first)
