"""Whether a run asked its judges at all, or has their verdicts from the cache."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime

from judgekit.analysis.drift_points import AT_ONCE
from judgekit.analysis.drift_states import ENOUGH_PAIRS
from judgekit.core.judgments import Judgment


@dataclass(frozen=True)
class Asking:
    """Where the verdicts of one judge are from."""

    n: int
    n_from_cache: int
    n_asked: int
    """Replies that the judge gave to this run, repeats included."""
    newest: str | None
    """When the newest reply from the cache was given; None without any."""


def asking(verdicts: Iterable[Judgment], repeats: Iterable[Judgment]) -> Asking:
    """Count the replies of one judge.

    Args:
        verdicts: its judgments that the figures rest on; of a panel, those of its members.
        repeats: judgments for which it was asked the same again.
    """
    own, again = [item for item in verdicts if item.copied_from is None], list(repeats)
    cached = [item for item in own if item.from_cache]
    n_asked = sum(item.n_requests > 0 for item in [*own, *again])
    return Asking(len(own), len(cached), n_asked, max((item.created_at for item in cached), default=None))


def not_asked(found: Mapping[str, Asking], now: datetime) -> list[tuple[str, str]]:
    """Warnings, as (code, message), of judges that a run did not ask or hardly asked.

    Args:
        found: by judge; embedded judges, which have no cache, are left out.
        now: the time of the run.
    """
    silent = {name: item for name, item in found.items() if item.newest is not None and not item.n_asked}
    if len(silent) > 1 and len(silent) == len(found):
        newest = max(item.newest or "" for item in silent.values())
        return [("all_from_cache", _line("no judge was asked", sum(item.n for item in silent.values()), newest, now))]
    warnings = []
    for name, item in found.items():
        if item.newest is None or item.n_asked >= ENOUGH_PAIRS:
            continue
        if name in silent:
            warnings.append(("all_from_cache", _line(f"judge {name} was not asked", item.n, item.newest, now)))
        elif _is_old(item.newest, now):
            text = (
                f"judge {name}: {item.n_from_cache} of {item.n} verdicts from the cache, newest "
                f"{_age(item.newest, now)} old, and it was asked {item.n_asked} times: little is known about today's "
                "judge"
            )
            warnings.append(("mostly_from_cache", text))
    return warnings


def _line(who: str, n: int, newest: str, now: datetime) -> str:
    known = ": nothing is known about today's judge" if _is_old(newest, now) else ""
    return f"{who}: all {n} verdicts from the cache, newest {_age(newest, now)} old{known}"


def _is_old(at: str, now: datetime) -> bool:
    return now - datetime.fromisoformat(at) > AT_ONCE


def _age(at: str, now: datetime) -> str:
    seconds = max(0.0, (now - datetime.fromisoformat(at)).total_seconds())
    for unit, length in (("day", 86_400), ("hour", 3_600), ("minute", 60)):
        if seconds >= length:
            n = int(seconds // length)
            return f"{n} {unit}{'s' if n > 1 else ''}"
    return "less than a minute"
