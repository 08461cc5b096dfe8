"""The probabilities of a judge against human labels: whether they tell pass from fail, and mean what they say."""

from collections.abc import Hashable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from judgekit.core.judgments import Verdict
from judgekit.core.kind import Kind
from judgekit.core.token_runs import LEAST_MASS
from judgekit.stats.diagnostics import sensitivity_specificity
from judgekit.stats.probability_scores import area_under_curve, best_threshold, brier_score, calibration_error

GRID = tuple(step / 10 for step in range(1, 10))
"""Thresholds that are always shown."""


@dataclass(frozen=True)
class WeighedVerdict:
    """A verdict on a case that people pass or fail."""

    human: bool
    written: float
    """The written score, or whether the written verdict passes."""
    expected: float
    """The score by probabilities, or the probability of a pass."""
    pass_probability: float
    cluster: Hashable
    """Cases of one cluster may be alike."""


def weighed_verdict(kind: Kind, verdict: Verdict, human: bool | None, cluster: Hashable) -> WeighedVerdict | None:
    """A verdict as it counts here; None if people or the judge do not say, or too little probability was on it."""
    chance, side = kind.pass_probability(verdict), kind.side(verdict)
    if human is None or chance is None or side is None or (verdict.probability_mass or 1.0) < LEAST_MASS:
        return None
    written, expected = float(side), chance
    if verdict.score is not None:
        written, expected = float(verdict.score), kind.weighed(verdict) or 0.0
    return WeighedVerdict(human, written, expected, chance, cluster)


def probability_report(weighed: Sequence[WeighedVerdict], n_labelled: int) -> dict[str, Any]:
    """Figures of the probability that a verdict passes, held against what people say.

    Args:
        weighed: the labelled verdicts with probabilities.
        n_labelled: all labelled verdicts, with and without.

    Returns:
        A strict-JSON object: AUC of the probability, of the expected and of the written score, Brier score, expected
        calibration error, and what the judge would be worth with each threshold on the probability; the best one is
        better here than on new cases.
    """
    people = [item.human for item in weighed]
    chances = [item.pass_probability for item in weighed]
    clusters = [item.cluster for item in weighed]
    best = best_threshold(chances, people)
    found: dict[str, Any] = {
        "n": len(weighed),
        "n_without": n_labelled - len(weighed),
        "auc": asdict(area_under_curve(chances, people, clusters)),
        "auc_expected": asdict(area_under_curve([item.expected for item in weighed], people, clusters)),
        "auc_written": asdict(area_under_curve([item.written for item in weighed], people, clusters)),
        "brier": asdict(brier_score(chances, people, clusters)),
        "ece": asdict(calibration_error(chances, people, clusters)),
        "best_threshold": best,
        "thresholds": [_at(least, people, chances) for least in sorted({*GRID, *([] if best is None else [best])})],
    }
    if len(set(people)) < 2:
        found["undefined_reason"] = "people pass every one of these cases, or none"
    return found


def _at(least: float, people: Sequence[bool], chances: Sequence[float]) -> dict[str, Any]:
    return {"threshold": least, **asdict(sensitivity_specificity(people, [chance >= least for chance in chances]))}
