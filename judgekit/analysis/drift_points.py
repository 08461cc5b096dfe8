"""From verdicts and what was said of them later to a point of the judge's history."""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from judgekit.analysis.verdict_pairs import compare_verdicts, raw_verdict
from judgekit.core.history_points import HistoryPoint, PointKind, dataset_sha256
from judgekit.core.judgments import Verdict
from judgekit.core.runs import Manifest
from judgekit.core.token_runs import LEAST_MASS
from judgekit.core.verdict_kinds import Kind

AT_ONCE = timedelta(days=1)
"""A judge that is asked again within this time after its verdicts differs by noise; later, it may have drifted."""


@dataclass(frozen=True)
class AskedAgain:
    """Who was asked about them, and when."""

    kind: PointKind
    comparator: str
    """Model and wording, such as `judge-2025-01-01 with v1`."""
    created_at: str
    """UTC, ISO 8601."""
    served_models: Sequence[str] = ()
    """What the servers of both sides say they used."""
    fingerprints: Sequence[str] = ()
    upstreams: Sequence[str] = ()
    builds: Sequence[str] = ()
    """Of the model that was asked."""
    verdict_builds: Sequence[str] = ()
    """Of the model that gave the stored verdicts."""


def checked_verdicts(
    judge: str, manifest: Manifest, metrics: Mapping[str, Any], answers_sha256: str | None
) -> HistoryPoint:
    """The stored verdicts of one judge of a finished run, as a point of its history about which nobody was asked.

    Raises:
        KeyError: metrics.json lacks a part that every run has.
    """
    about = metrics["judges"][judge]
    distribution = metrics["overall"].get(f"{judge}.distribution", {})
    counts = [(float(score), n) for score, n in distribution.items() if score.removeprefix("-").isdigit()]
    score_mean, score_sd = _mean_and_sd(counts)
    return HistoryPoint(
        run_id=manifest.run_id,
        judge=judge,
        prompt_version=about["prompt_version"],
        dataset_sha256=dataset_sha256(metrics["cases"]["sha256"], manifest),
        kind="run",
        comparator="",
        created_at=manifest.created_at,
        n_asked=0,
        n_pairs=0,
        n_disagree=0,
        n_failed=0,
        prompt_sha256=about["prompt_sha256"],
        parser_version=manifest.versions.get("parser", ""),
        answers_sha256=answers_sha256,
        score_mean=score_mean,
        score_sd=score_sd,
        n_scores=sum(n for _, n in counts),
        verdict_model=about.get("model"),
    )


def pair_row(first: Verdict | None, second: Verdict | None, kind: Kind) -> dict[str, Any]:
    """One row of a sample: `first` (stored), `second` (later) and whether it `disagrees`, None without two verdicts.

    See `compare_verdicts` for the rest. `chance_shift` is how far the figure by probabilities moved, as a share of the
    scale, if both verdicts have it.
    """
    if first is None or second is None:
        return {"first": None, "second": None, "disagrees": None}
    chances = [_chance(verdict, kind) for verdict in (first, second)]
    shift = None if chances[0] is None or chances[1] is None else chances[1] - chances[0]
    return {
        "first": raw_verdict(first),
        "second": raw_verdict(second),
        "disagrees": compare_verdicts(first, second, kind).disagrees,
        "chance_shift": shift,
    }


def _chance(verdict: Verdict, kind: Kind) -> float | None:
    """The figure by probabilities on a scale of 0 to 1."""
    value = kind.weighed(verdict) if (verdict.probability_mass or 1.0) >= LEAST_MASS else None
    low, high = kind.bounds
    return None if value is None else (value - low) / (high - low)


class SampleCounts:
    """What the pairs of a sample tell, counted as their rows come."""

    def __init__(self, rows: Iterable[Mapping[str, Any]] = ()) -> None:
        """Count some rows, or none so far."""
        self.n_asked = self.n_pairs = self.n_disagree = 0
        self.shifts: Counter[float] = Counter()
        """Later verdict less stored one, by its value."""
        self.chance_shifts: Counter[float] = Counter()
        for row in rows:
            self.add(row)

    def add(self, row: Mapping[str, Any]) -> None:
        """Count a row of a spot check or of `pair_row`."""
        self.n_asked += 1
        if row["disagrees"] is None:
            return
        self.n_pairs += 1
        self.n_disagree += bool(row["disagrees"])
        first, second = row["first"], row["second"]
        if not isinstance(first, str) and not isinstance(second, str):  # labels have no order
            self.shifts[float(second) - float(first)] += 1
        if (shift := row.get("chance_shift")) is not None:
            self.chance_shifts[shift] += 1

    def update(self, other: "SampleCounts") -> None:
        """Count what another sample holds as well."""
        self.n_asked += other.n_asked
        self.n_pairs += other.n_pairs
        self.n_disagree += other.n_disagree
        self.shifts.update(other.shifts)
        self.chance_shifts.update(other.chance_shifts)


def history_point(verdicts: HistoryPoint, asked: AskedAgain, sample: SampleCounts) -> HistoryPoint:
    """What was said of stored verdicts, from `checked_verdicts` and from a sample."""
    shift_mean, shift_sd = _mean_and_sd([*sample.shifts.items()])
    chance_shift_mean, chance_shift_sd = _mean_and_sd([*sample.chance_shifts.items()])
    said = ("served_models", "fingerprints", "upstreams", "builds", "verdict_builds")
    return verdicts.model_copy(
        update={
            "kind": asked.kind,
            "comparator": asked.comparator,
            "created_at": asked.created_at,
            "n_asked": sample.n_asked,
            "n_pairs": sample.n_pairs,
            "n_disagree": sample.n_disagree,
            "n_failed": sample.n_asked - sample.n_pairs,
            "shift_mean": shift_mean,
            "shift_sd": shift_sd,
            "chance_shift_mean": chance_shift_mean,
            "chance_shift_sd": chance_shift_sd,
            "n_chances": sample.chance_shifts.total(),
            **{name: tuple(sorted(set(getattr(asked, name)))) for name in said},
        }
    )


def repeats_by_kind(
    times: Iterable[tuple[str, str, str]], verdict_builds: Collection[str] = (), builds: Collection[str] = ()
) -> dict[PointKind, list[str]]:
    """Cases about which a judge was asked again, apart by whether that shows its noise or may show drift.

    The time between decides. A run may hold verdicts of today beside older ones from the cache. Another build under the
    same name is another judge, whose differences are not noise however soon it is asked.

    Args:
        times: case id, when the stored verdict was given, when it was asked again; ISO 8601.
        verdict_builds: builds that gave the stored verdicts; empty: not known.
        builds: builds that were asked again.
    """
    is_another = is_another_build(verdict_builds, builds)
    found: dict[PointKind, list[str]] = {}
    for case_id, verdict_at, asked_at in times:
        kind: PointKind = "noise_floor" if is_at_once(verdict_at, asked_at) and not is_another else "rejudge"
        found.setdefault(kind, []).append(case_id)
    return found


def is_at_once(verdict_at: str, asked_at: str) -> bool:
    """Whether a judge was asked again within a day of its verdict; both ISO 8601."""
    return datetime.fromisoformat(asked_at) - datetime.fromisoformat(verdict_at) <= AT_ONCE


def is_another_build(verdict_builds: Collection[str], builds: Collection[str]) -> bool:
    """Whether other builds were asked again than gave the verdicts; False if either are not known."""
    return bool(verdict_builds and builds) and set(builds) != set(verdict_builds)


def _mean_and_sd(counts: Sequence[tuple[float, int]]) -> tuple[float | None, float | None]:
    n = sum(count for _, count in counts)
    if not n:
        return None, None
    mean = sum(value * count for value, count in counts) / n
    squares = sum(count * (value - mean) ** 2 for value, count in counts)
    return mean, None if n < 2 else (squares / (n - 1)) ** 0.5
