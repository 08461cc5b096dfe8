"""A figure over the runs of a suite: what it was, and between which runs it can be compared."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any


@dataclass(frozen=True)
class TrendRun:
    """One run, and what it says of the figure."""

    run_id: str
    created_at: str
    value: float | None = None
    low: float | None = None
    high: float | None = None
    n: int = 0
    n_error: int = 0
    n_not_applicable: int = 0
    why: str | None = None
    """Why the run has no figure that counts; None if it has one."""
    basis: Mapping[str, str] = field(default_factory=dict)
    """What the figure rests on, by name: data set, models and prompts of judges, definitions."""
    scale: Mapping[str, Any] | None = None
    """Unit and better direction of the figure, as in metrics.json; None in a run of an older version."""


@dataclass(frozen=True)
class Trend:
    """The runs of a suite, the oldest first, and where the basis of the figure changed."""

    metric: str
    suite: str
    tag: str | None
    runs: Sequence[TrendRun]

    def document(self) -> dict[str, Any]:
        """A strict-JSON object.

        Of each run, `changed` says what differs from the last run before it that has the figure, and `stretch` numbers
        the stretches in which all figures rest on the same; None for a run without the figure.
        """
        rows: list[dict[str, Any]] = []
        latest: list[TrendRun] = []
        before: Mapping[str, str] | None = None
        stretch = 0
        for run in self.runs:
            has_figure = run.why is None
            changed = _differences(before, run.basis) if has_figure and before is not None else []
            if changed:
                stretch += 1
                latest = []
            if has_figure:
                before = run.basis
                latest.append(run)
            place = stretch if has_figure else None
            row = {name: value for name, value in asdict(run).items() if name != "scale"}
            rows.append({**row, "basis": dict(run.basis), "changed": changed, "stretch": place})
        return {
            "metric": self.metric,
            "suite": self.suite,
            "tag": self.tag,
            "scale": next((run.scale for run in reversed(self.runs) if run.scale is not None), None),
            "runs": rows,
            "latest": latest_stretch(latest),
        }


def _differences(before: Mapping[str, str], now: Mapping[str, str]) -> list[str]:
    return [
        f"{name}: {before.get(name, 'none')} to {now.get(name, 'none')}"
        for name in dict.fromkeys([*before, *now])
        if before.get(name) != now.get(name)
    ]


def latest_stretch(runs: Sequence[TrendRun]) -> dict[str, Any] | None:
    """First against last of the runs that can be compared; None if no run has the figure.

    Returns:
        A strict-JSON object: `n_runs`, `first` and `last` (run id, value, low, high, n), `difference` (last less
        first), `intervals_overlap` and `has_zero`, whether 0 is within the interval of the last run. The last three are
        None if they cannot be told. Intervals that do not overlap are evidence of a change; ones that do are not
        evidence of none, since the same cases are in both.
    """
    if not runs:
        return None
    first, last = runs[0], runs[-1]
    is_trend = len(runs) > 1 and first.value is not None and last.value is not None
    return {
        "n_runs": len(runs),
        "first": _end(first),
        "last": _end(last),
        "difference": round((last.value or 0.0) - (first.value or 0.0), 4) if is_trend else None,
        "intervals_overlap": _overlap(first, last) if is_trend else None,
        "has_zero": None if last.low is None or last.high is None else last.low <= 0.0 <= last.high,
    }


def _end(run: TrendRun) -> dict[str, Any]:
    return {"run_id": run.run_id, "value": run.value, "low": run.low, "high": run.high, "n": run.n}


def _overlap(a: TrendRun, b: TrendRun) -> bool | None:
    if a.low is None or a.high is None or b.low is None or b.high is None:
        return None
    return a.low <= b.high and b.low <= a.high
