"""The mean of a run as people would score it, and how many labels a narrower interval would take."""

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import Any

from judgekit.analysis.labels import Part
from judgekit.stats.corrected import (
    LEAST_FOR_CORRECTION,
    LEAST_LABELS,
    Corrected,
    Target,
    corrected_mean,
    labels_for_width,
)
from judgekit.stats.means import mean


@dataclass(frozen=True)
class Readings:
    """One figure of a run, by case: what people say where they were asked, and what the judge says everywhere."""

    human: Mapping[str, float]
    judge: Mapping[str, float]
    clusters: Mapping[str, Hashable] | None
    """By case id; None where cases stand for themselves."""


def corrected_report(readings: Readings, part: Part, width: float | None) -> dict[str, Any]:
    """The mean of all cases with a verdict, corrected by the labels.

    Args:
        readings: of this figure.
        part: which part of the run is labelled; decides whether the mean is of this run or of cases like these.
        width: wanted distance of the ends; None: not asked for.

    Returns:
        A strict-JSON object; `estimate` is null under 20 labels.

    Source: see `corrected_mean`.
    """
    labelled = [case_id for case_id in readings.judge if case_id in readings.human]
    further = [case_id for case_id in readings.judge if case_id not in readings.human]
    target: Target = "population" if part.kind == "unknown" else "run"
    clusters = None if readings.clusters is None else [readings.clusters[case_id] for case_id in [*labelled, *further]]
    found = corrected_mean(
        [readings.human[case_id] for case_id in labelled],
        [readings.judge[case_id] for case_id in labelled],
        [readings.judge[case_id] for case_id in further],
        clusters,
        target,
    )
    return {
        "estimate": found.estimate,
        "low": found.low,
        "high": found.high,
        "lambda": found.lambda_,
        "n_human": found.n_human,
        "n_unlabelled": found.n_unlabelled,
        "n_effective": found.n_effective,
        "standard_error": found.standard_error,
        "rule": found.method,
        "target": target,
        "target_reason": part.reason,
        "judge_mean": mean([readings.judge[case_id] for case_id in [*labelled, *further]]),
        "human_mean": mean([readings.human[case_id] for case_id in labelled]),
        "reason": _reason(found),
        "labels_for_width": None if width is None else _needed(width, found, target),
    }


def _reason(found: Corrected) -> str | None:
    n = found.n_human
    if found.method == "none":
        return f"no mean is given under {LEAST_LABELS} labels ({n})"
    if found.method == "human-only" and n < LEAST_FOR_CORRECTION:
        return f"the labels alone: the judge is used from {LEAST_FOR_CORRECTION} labels on ({n})"
    if found.method == "human-only":
        return "the labels alone: there is no further case, or the judge is right on every label"
    return None


def _needed(width: float, found: Corrected, target: Target) -> dict[str, Any]:
    if found.low is None or found.high is None or found.high <= found.low:
        return {"width": width, "n": None, "reason": "there is no interval to start from"}
    n_run = found.n_human + found.n_unlabelled if target == "run" else None
    return {
        "width": width,
        "n": labels_for_width(width, found.high - found.low, found.n_human, n_run),
        "width_now": found.high - found.low,
        "reason": None,
    }
