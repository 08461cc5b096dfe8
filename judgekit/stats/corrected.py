"""The mean of a run as humans would score it, from a judge on all cases and human labels on some.

The judge says what kind of cases the run has, the labels say how far off the judge is. The better the two go together,
the more a label is worth; a judge that is pure noise is left out.
"""

import math
from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import Literal, NamedTuple

from judgekit.stats.distributions import UPPER, student_t_quantile
from judgekit.stats.means import jackknife_variance, mean, standard_deviation
from judgekit.stats.proportions import hypergeometric_interval, wilson_interval

LEAST_LABELS = 20
"""Below this number of labels nothing is said."""

LEAST_FOR_CORRECTION = 50
"""From this number of labels on the judge is used too; below, labels alone."""

_ROUNDING = 1e-9

Target = Literal["run", "population"]
"""What the mean is of: the cases of this run, of which a random part is labelled; or cases like these."""

Method = Literal["none", "human-only", "ppi++"]


@dataclass(frozen=True)
class Corrected:
    """A mean of human scores, with how it was found."""

    estimate: float | None
    """Mean in units of the human score; None if method is `none`."""
    low: float | None
    """Lower end; None without an estimate, and if the labels show no spread to tell it from."""
    high: float | None
    """Upper end; None with the lower one."""
    lambda_: float | None
    """Share of the judge's score that is used, in [0, 1]; None unless method is `ppi++`."""
    n_human: int
    """Number of labels."""
    n_unlabelled: int
    """Number of cases with the judge's score alone."""
    n_effective: float | None
    """How many labels alone would give the same width; None if that cannot be told."""
    standard_error: float | None
    """Standard error of the estimate; None with the ends of `ppi++`, and for exact intervals of proportions."""
    method: Method
    """`none` for too few labels, `human-only`, or `ppi++`."""


def ppi_mean(
    labelled_human: Sequence[float],
    labelled_judge: Sequence[float],
    unlabelled_judge: Sequence[float],
    clusters: Sequence[Hashable] | None = None,
    target: Target = "run",
) -> Corrected:
    """Prediction-powered mean (PPI++), whatever the number of labels; `corrected_mean` has the rules for few.

    `lambda = clip(cov(Y, J) / ((1 + n/m) var J), 0, 1)` over the n labelled cases, human Y and judge J; estimate
    `lambda mean(J unlabelled) + mean(Y - lambda J)`. The interval is a jackknife one: labelled cases, or clusters, are
    left out one at a time and lambda is found again each time, t with G - 1 degrees of freedom for G labelled
    clusters.

    For target `run` the labels are a random part of the run's N = n + m cases, and the mean over just these is wanted:
    the variance is multiplied by 1 - n/N, since the labelled part is known. This makes PPI++ the regression estimator
    of survey sampling. For `population` both parts are random, so the judge's part adds its variance: lambda^2 var(J
    unlabelled) / m, or with clusters by leaving them out of both parts at once. The textbook interval of PPI++ is
    about the population; taken for the run's mean it covers 98% instead of 95% with 50 labels of 291, and with
    `target="run"` the interval for cases like these would cover 88%.

    Assumptions: labelled cases are a random sample of cases, or whole clusters of clusters, of the run; or for
    `population`, of the same population as the run. Rough below some 15 clusters.

    Args:
        labelled_human: human scores, one for each labelled case, any finite unit.
        labelled_judge: the judge's scores of the same cases, in the same order.
        unlabelled_judge: the judge's scores of all further cases.
        clusters: the cluster of each labelled case and, needed for `population` only, then of each further one; None
            for independent cases.
        target: mean of this run's cases, or of cases like these.

    Returns:
        Estimate with method `ppi++`. Estimate None for no labels or no further cases; ends None for fewer than two
        clusters, and if leaving one out changes nothing.

    Raises:
        ValueError: lengths differ, or a number is not finite.

    Source: Angelopoulos, Duchi and Zrnic 2023, "PPI++: Efficient Prediction-powered Inference"; target `run`: Cochran
    1977, "Sampling Techniques", chapter 7; jackknife: Tukey 1958, "Bias and Confidence in Not-quite Large Samples".
    """
    n, m = len(labelled_human), len(unlabelled_judge)
    data = _Data(labelled_human, labelled_judge, unlabelled_judge, clusters, target)
    unknown = Corrected(None, None, None, None, n, m, None, None, "ppi++")
    if n == 0 or m == 0:
        return unknown
    estimate, lambda_ = data.fit(data.labelled, data.further)
    known = replace(unknown, estimate=data.human_centre + estimate, lambda_=lambda_)
    left = data.left_out()
    if left is None:
        return known
    further = lambda_**2 * data.further_variance
    error = math.sqrt(data.share * _variance([data.fit(*parts)[0] for parts in left]) + further)
    alone = data.share * _variance([labelled.human / labelled.n for labelled, _ in left])
    return data.with_ends(known, error, alone)


def corrected_mean(
    labelled_human: Sequence[float],
    labelled_judge: Sequence[float],
    unlabelled_judge: Sequence[float],
    clusters: Sequence[Hashable] | None = None,
    target: Target = "run",
) -> Corrected:
    """Mean of a run as humans would score it, by as much as the labels can carry.

    Nothing below 20 labels; the labels alone from 20 to 49, and also where there are no further cases, or if the
    judge is right on every label, so that the correction would claim to be certain; `ppi_mean` from 50 on.

    Labels alone: their mean. Its interval is exact for independent labels of 0 and 1 (`hypergeometric_interval` for
    the run, `wilson_interval` for the population), else a jackknife one over cases or clusters.

    Arguments, assumptions and errors are those of `ppi_mean`.

    Returns:
        The mean, and in `method` how it was found. Ends may lie outside the range of the score by a little: they are
        not clipped. Ends None if the labels alone are used, are in clusters or not all 0 and 1, and show no spread.

    Source: as `ppi_mean`; the limits of 20 and 50 are in-house.
    """
    n, m = len(labelled_human), len(unlabelled_judge)
    if n >= LEAST_FOR_CORRECTION and m > 0:
        corrected = ppi_mean(labelled_human, labelled_judge, unlabelled_judge, clusters, target)
        if corrected.low is not None:
            return corrected
    data = _Data(labelled_human, labelled_judge, unlabelled_judge, clusters, target)
    if n < LEAST_LABELS:
        return Corrected(None, None, None, None, n, m, None, None, "none")
    alone = Corrected(mean(labelled_human), None, None, None, n, m, float(n), None, "human-only")
    if target == "run" and m == 0:
        return replace(alone, low=alone.estimate, high=alone.estimate)
    if clusters is None and set(labelled_human) <= {0, 1}:
        n_ones = sum(score == 1 for score in labelled_human)
        exact = hypergeometric_interval(n_ones, n, n + m)
        ends = exact if target == "run" else wilson_interval(n_ones, n)
        return replace(alone, low=ends[0], high=ends[1]) if ends else alone
    left = data.left_out(judge=False)
    if left is None:
        return alone
    variance = data.share * _variance([labelled.human / labelled.n for labelled, _ in left])
    return data.with_ends(alone, math.sqrt(variance), variance)


def labels_for_width(width: float, width_now: float, n_human: int, n_run: int | None = None) -> int:
    """How many labels would bring an interval to a width, from the width it has now.

    Widths go with `sqrt(1/n - 1/N)` for the mean of a run of N cases, with `sqrt(1/n)` for cases like these:
    `1/n = 1/N + (1/n_human - 1/N) (width / width_now)^2`.

    Assumptions: further labels are like those there are, and the same method is used: an interval of labels alone
    becomes narrower than said here once there are enough for the judge to be used.

    Args:
        width: wanted distance of the ends, above 0.
        width_now: distance of the ends now, above 0.
        n_human: number of labels now, at least 1.
        n_run: number of cases of the run, for target `run`; None for `population`.

    Returns:
        Number of labels in all, those there are included; at least `LEAST_LABELS` unless the run is smaller.

    Raises:
        ValueError: a width that is not above 0, no labels, or a run that is smaller than its labels.

    Source: Cochran 1977, "Sampling Techniques", chapter 4.
    """
    if not (width > 0 and width_now > 0 and math.isfinite(width_now)):
        raise ValueError(f"widths are above 0, not {width} and {width_now}")
    if n_human < 1 or (n_run is not None and n_run < n_human):
        raise ValueError(f"labels are at least 1 and at most the {n_run} cases of the run, not {n_human}")
    needed = max(math.ceil(_labels_for((width / width_now) ** 2, n_human, n_run) - _ROUNDING), LEAST_LABELS)
    return needed if n_run is None else min(needed, n_run)


class _Sums(NamedTuple):
    """Sums over some cases of what the estimate needs; scores are less the mean over all labels."""

    n: int = 0
    human: float = 0.0
    judge: float = 0.0
    product: float = 0.0
    square: float = 0.0

    def plus(self, other: "_Sums", sign: int = 1) -> "_Sums":
        return _Sums(*[mine + sign * theirs for mine, theirs in zip(self, other, strict=True)])  # type: ignore[arg-type]


_NONE = _Sums()


class _Data:
    """The labelled and the further cases, as sums over clusters."""

    def __init__(
        self,
        human: Sequence[float],
        judge: Sequence[float],
        further: Sequence[float],
        clusters: Sequence[Hashable] | None,
        target: Target,
    ) -> None:
        n, m = len(human), len(further)
        if len(judge) != n:
            raise ValueError(f"{n} human scores stand beside {len(judge)} scores of the judge")
        if not all(map(math.isfinite, (*human, *judge, *further))):
            raise ValueError("a corrected mean is asked for over scores that are not all finite numbers")
        wanted = n + m if target == "population" else n
        if clusters is not None and len(clusters) not in {wanted, n + m}:
            raise ValueError(f"{len(clusters)} clusters are given for {wanted} cases")
        self.human_centre, judge_centre = mean(human) or 0.0, mean(judge) or 0.0
        self._clustered, self._target = clusters is not None, target
        names = range(n + m) if clusters is None else [*clusters[:n], *(clusters[n:] or [None] * m)]
        self._parts: dict[Hashable, _Sums] = {}
        for cluster, score, verdict in zip(names[:n], human, judge, strict=True):
            y, j = score - self.human_centre, verdict - judge_centre
            self._parts[cluster] = self._parts.get(cluster, _NONE).plus(_Sums(1, y, j, y * j, j * j))
        self._further: dict[Hashable, _Sums] = {}
        for cluster, j in zip(names[n:], further, strict=True):
            self._further[cluster] = self._further.get(cluster, _NONE).plus(_Sums(1, 0.0, j - judge_centre))
        self.labelled, self.further = (
            reduce(_Sums.plus, parts.values(), _NONE) for parts in (self._parts, self._further)
        )
        self.share = m / (n + m) if target == "run" and n + m else 1.0
        spread = standard_deviation(further) if target == "population" and clusters is None else None
        self.further_variance = spread**2 / m if spread else 0.0

    @staticmethod
    def fit(labelled: _Sums, further: _Sums) -> tuple[float, float]:
        """Estimate, less the mean of all human scores, and lambda."""
        n, m = labelled.n, further.n
        spread = labelled.square - labelled.judge**2 / n
        together = labelled.product - labelled.human * labelled.judge / n
        slope = together / spread if spread > _ROUNDING * labelled.square else 0.0
        lambda_ = min(1.0, max(0.0, slope / (1.0 + n / m)))
        return labelled.human / n + lambda_ * (further.judge / m - labelled.judge / n), lambda_

    def left_out(self, judge: bool = True) -> list[tuple[_Sums, _Sums]] | None:
        """The two sums without each of the clusters; None if one of them has all labels, or all further cases."""
        jointly = self._target == "population" and self._clustered
        left = []
        for cluster in {**self._parts, **self._further} if jointly else self._parts:
            part = self._parts.get(cluster, _NONE)
            further = self.further
            if self._target == "run":
                further = further.plus(part)
            elif jointly:
                further = further.plus(self._further.get(cluster, _NONE), -1)
            left.append((self.labelled.plus(part, -1), further))
        if any(labelled.n == 0 or (judge and further.n == 0) for labelled, further in left):
            return None
        return left

    def with_ends(self, known: Corrected, error: float, alone: float) -> Corrected:
        """Ends from the standard error, and how many labels alone, which have variance `alone` now, would reach it."""
        estimate, n_clusters = known.estimate, len(self._parts)
        if estimate is None or n_clusters < 2 or error <= _ROUNDING * max(1.0, abs(estimate)):
            return known
        half = student_t_quantile(UPPER, n_clusters - 1) * error
        n_run = known.n_human + known.n_unlabelled if self._target == "run" else None
        n_effective = _labels_for(error**2 / alone, known.n_human, n_run) if alone else None
        return replace(known, low=estimate - half, high=estimate + half, standard_error=error, n_effective=n_effective)


def _variance(without_one: Sequence[float]) -> float:
    return jackknife_variance(Counter(without_one), len(without_one))


def _labels_for(variance_ratio: float, n: int, n_run: int | None) -> float:
    """How many labels have this many times the variance of n labels."""
    rest = 0.0 if n_run is None else 1.0 / n_run
    return 1.0 / (rest + (1.0 / n - rest) * variance_ratio)
