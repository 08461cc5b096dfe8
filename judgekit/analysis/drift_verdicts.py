"""Whether a judge scores the same answers differently than it did: runs of the same inputs beside the first of them."""

from collections.abc import Sequence
from dataclasses import dataclass

from judgekit.analysis.drift_evidence import Point
from judgekit.analysis.drift_system import MOST_P
from judgekit.core.history_points import HistoryPoint
from judgekit.stats.means import welch_p


@dataclass(frozen=True)
class VerdictShift:
    """The verdicts of a later run on the same answers, which were asked for anew, beside the first ones."""

    first: Point
    first_mean: float
    now: Point
    """The first check whose mean differs."""
    now_mean: float
    p: float

    def line(self) -> str:
        """One line for a report."""
        return (
            f"the same answers score differently: mean {self.first_mean:.3f} in run {self.first.run_id}, "
            f"{self.now_mean:.3f} in {self.now.run_id} (p {self.p:.2g}, needed {MOST_P:.2g}), so the judge moved"
        )


def verdict_shift(checks: Sequence[HistoryPoint]) -> VerdictShift | None:
    """The first run whose stored verdicts differ in mean from those of the first run of the same answers.

    Verdicts from the cache are the same verdicts, so that a difference takes a run that asked anew.

    Assumptions: the two sets of scores count as independent. They are of the same cases, so the test is on the safe
    side.

    Args:
        checks: one history, in the order of time.

    Returns:
        None where no mean is shown to differ.

    Source: in-house; Welch's test, at 1 in 20 over half a year of weekly looks.
    """
    firsts: dict[tuple[str, str], HistoryPoint] = {}
    for check in checks:
        if check.answers_sha256 is None or check.verdict_model is None or check.score_mean is None:
            continue
        first = firsts.setdefault((check.answers_sha256, check.verdict_model), check)
        if first.score_mean is None or first.score_sd is None or check.score_sd is None:
            continue
        p = welch_p(first.score_mean, first.score_sd, first.n_scores, check.score_mean, check.score_sd, check.n_scores)
        if p is not None and p <= MOST_P:
            return VerdictShift(_point(first), first.score_mean, _point(check), check.score_mean, p)
    return None


def _point(check: HistoryPoint) -> Point:
    return Point(check.run_id, check.created_at, check.check_id)
