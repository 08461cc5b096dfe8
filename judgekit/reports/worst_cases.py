"""Which cases a report shows of a run that is too large for all: the worst ones, and a random sample."""

import hashlib
import heapq
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from judgekit.core.runs import RunSummary
from judgekit.core.scores import Scale, ScoreOf
from judgekit.reports.headline import main_figures

MOST_ROWS = 50_000
"""Cases in the table of a report."""

N_WORST = 5_000
N_SAMPLED = 5_000
SEED = 0
"""Of the sample; the same cases each time."""


@dataclass(frozen=True)
class Shown:
    """The cases that a report has of a large run."""

    case_ids: frozenset[str]
    n_worst: int
    n_sampled: int
    """Of those that are not among the worst."""
    ranked: tuple[str, ...]
    """Scores by which the worst ones are found; empty: none can rank, so all are of the sample."""


def ranking(summary: RunSummary | None) -> dict[str, Scale]:
    """What cases are ranked by: the judges whose scale has a better end, else the figures shown large that have one."""
    if summary is None:
        return {}
    scales = {
        name: scale for name, scale in summary.scales.items() if scale.better is not None and scale.high is not None
    }
    judges = {name: scales[name] for name in summary.judges if name in scales}
    return judges or {name: scales[name] for name, _ in main_figures(summary) if name in scales}


def shown_cases(scores: Iterable[tuple[str, Mapping[str, ScoreOf]]], scales: Mapping[str, Scale]) -> Shown:
    """The worst cases and a sample, from one pass over all.

    Args:
        scores: case id and scores of each case.
        scales: from `ranking`.
    """
    worst: list[tuple[float, str]] = []
    sample: list[tuple[bytes, str]] = []
    for case_id, found in scores:
        draw = hashlib.sha256(f"{SEED} {case_id}".encode("utf-8", "replace")).digest()
        _keep(sample, (_turned(draw), case_id), N_SAMPLED)
        good = _goodness(found, scales)
        if good is not None:
            _keep(worst, (-good, case_id), N_WORST)
    bad = {case_id for _, case_id in worst}
    others = {case_id for _, case_id in sample} - bad
    return Shown(frozenset(bad | others), len(bad), len(others), tuple(scales))


def _keep(heap: list[tuple[float, str]] | list[tuple[bytes, str]], item: tuple[float | bytes, str], most: int) -> None:
    """Keep the largest items."""
    if len(heap) < most:
        heapq.heappush(heap, item)  # type: ignore[misc]  # a heap of the item's own kind
    else:
        heapq.heappushpop(heap, item)  # type: ignore[misc]


def _turned(digest: bytes) -> bytes:
    """So that the smallest digests are the largest."""
    return bytes(255 - byte for byte in digest[:8])


def _goodness(scores: Mapping[str, ScoreOf], scales: Mapping[str, Scale]) -> float | None:
    """From 0, the worst end of all scales, to 1; below 0 for a failure; None if nothing applies to the case."""
    parts = []
    for name, scale in scales.items():
        value, reason = scores.get(name, (None, None))
        if value is None:
            if (reason or "").startswith("failed: "):
                return -1.0
            continue
        share = (value - scale.low) / ((scale.high or 1.0) - scale.low)
        parts.append(share if scale.better == "higher" else 1.0 - share)
    return sum(parts) / len(parts) if parts else None
