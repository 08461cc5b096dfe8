"""How good a judge is, measured against human labels on the same cases."""

import math
from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from judgekit.stats.agreement import kappa_of_counts
from judgekit.stats.clusters import ClusteredMean, clustered_mean
from judgekit.stats.means import pooled_estimate
from judgekit.stats.proportions import Rate, rate


@dataclass(frozen=True)
class BinaryDiagnostics:
    """A judge that passes or fails cases, beside humans who do the same."""

    sensitivity: Rate
    """Share of the cases that humans pass which the judge passes too; None values without such cases."""
    specificity: Rate
    """Share of the cases that humans fail which the judge fails too; None values without such cases."""
    agreement: Rate
    """Share of all cases on which both say the same."""
    cohen_kappa: float | None
    """Cohen's kappa; None as in `quadratic_weighted_kappa`."""
    youden: float | None
    """Sensitivity + specificity - 1, in [-1, 1], 0 for a judge that does not look; None with either of them."""


def sensitivity_specificity(human: Sequence[bool], judge: Sequence[bool]) -> BinaryDiagnostics:
    """Sensitivity and specificity of a judge, with Wilson intervals, and what follows from the same four counts.

    With TP, FN, TN, FP the cases passed by both, by humans only, by neither, by the judge only: sensitivity `TP / (TP +
    FN)`, specificity `TN / (TN + FP)`, agreement `(TP + TN) / n`.

    Assumptions: independent cases; human labels are right. Where they are not, a perfect judge scores as low as
    `human_ceiling` says.

    Args:
        human: does a human pass the case, one for each case.
        judge: does the judge pass it, in the same order.

    Returns:
        The figures; those without a case to stand on are None.

    Raises:
        ValueError: the two differ in length.

    Source: Altman and Bland 1994, "Diagnostic Tests 1: Sensitivity and Specificity"; Youden 1950, "Index for Rating
    Diagnostic Tests".
    """
    pairs = [(bool(a), bool(b)) for a, b in zip(human, judge, strict=True)]
    n_passed = sum(a for a, _ in pairs)
    both, neither = pairs.count((True, True)), pairs.count((False, False))
    sensitivity = rate(both, n_passed)
    specificity = rate(neither, len(pairs) - n_passed)
    youden = None
    if sensitivity.value is not None and specificity.value is not None:
        youden = sensitivity.value + specificity.value - 1.0
    return BinaryDiagnostics(
        sensitivity=sensitivity,
        specificity=specificity,
        agreement=rate(both + neither, len(pairs)),
        cohen_kappa=kappa_of_counts(Counter(pairs)),
        youden=youden,
    )


def human_ceiling(
    ratings: Sequence[Sequence[Hashable | None]],
    clusters: Sequence[Hashable] | None = None,
) -> ClusteredMean:
    """How often an annotator agrees with the others: the most that can be asked of a judge.

    Each annotator of a case is left out in turn and compared with the most frequent label among the others; where k
    labels are equally frequent, agreeing with one of them counts 1/k. A case counts the mean over its annotators. With
    two annotators it is their raw agreement.

    Assumptions: annotators of a case worked apart from each other. A judge that is held against the majority of all
    annotators may come out above the ceiling, as they have a vote in it.

    Args:
        ratings: one sequence for each case with one label for each annotator, None if there is none.
        clusters: the cluster of each case, in the same order; None for independent cases.

    Returns:
        The mean over the cases with two labels or more, in [0, 1], and `n` of them; the ends are clipped to it. None
        values as in `clustered_mean`, so no ends if all annotators agree throughout.

    Raises:
        ValueError: lengths differ.

    Source: in-house, after the human performance of Rajpurkar, Zhang, Lopyrev and Liang 2016, "SQuAD: 100,000+
    Questions for Machine Comprehension of Text".
    """
    names: Sequence[Hashable] = range(len(ratings)) if clusters is None else clusters
    shares, kept = [], []
    for unit, name in zip(ratings, names, strict=True):
        given = [rating for rating in unit if rating is not None]
        if len(given) >= 2:
            shares.append(_left_out_agreement(given))
            kept.append(name)
    found = clustered_mean(shares, kept)
    if found.low is None or found.high is None:
        return found
    return replace(found, low=max(0.0, found.low), high=min(1.0, found.high))


def _left_out_agreement(given: Sequence[Hashable]) -> float:
    hits = Fraction(0)
    counts = Counter(given)
    for own in given:
        counts[own] -= 1
        most = max(counts.values())
        if counts[own] == most:
            hits += Fraction(1, sum(count == most for count in counts.values()))
        counts[own] += 1
    return float(hits / len(given))


@dataclass(frozen=True)
class Lift:
    """What a flag of the spot check says about the judge's verdict."""

    wrong_given_flag: Rate
    """Share of wrong verdicts among the flagged ones."""
    wrong_given_agreement: Rate
    """Share of wrong verdicts among those that are not flagged."""
    wrong: Rate
    """Share of wrong verdicts among all."""
    value: float | None
    """P(wrong | flag) / P(wrong), at least 0; 1 for a flag that says nothing. None without flags or wrong verdicts."""
    low: float | None
    """Lower end of the jackknife interval; None if it is undefined, as without the one flagged case."""
    high: float | None
    """Upper end."""


def lift(flags: Sequence[bool], wrong: Sequence[bool]) -> Lift:
    """How many times as likely a flagged verdict is to be wrong as any: `P(wrong | flag) / P(wrong)`.

    Assumptions: independent cases; the interval of the lift is rough below some ten flagged and ten wrong cases.

    Args:
        flags: is the verdict flagged, as by a comparator that disagrees; one for each case.
        wrong: is the verdict wrong by the human label, in the same order.

    Returns:
        The lift and the shares behind it; what has no case to stand on is None.

    Raises:
        ValueError: the two differ in length.

    Source: Brin, Motwani and Silverstein 1997, "Beyond Market Baskets: Generalizing Association Rules to
    Correlations"; interval: as `pooled_estimate`.
    """
    pairs = [(bool(flag), bool(bad)) for flag, bad in zip(flags, wrong, strict=True)]
    n, n_flagged, n_wrong = len(pairs), sum(flag for flag, _ in pairs), sum(bad for _, bad in pairs)
    both = pairs.count((True, True))
    columns = [[float(flag and bad) for flag, bad in pairs], [float(flag) for flag, _ in pairs]]
    columns += [[float(bad) for _, bad in pairs], [1.0] * n]
    value, low, high = pooled_estimate(columns, _ratio_of_shares, (0.0, math.inf))
    return Lift(
        wrong_given_flag=rate(both, n_flagged),
        wrong_given_agreement=rate(n_wrong - both, n - n_flagged),
        wrong=rate(n_wrong, n),
        value=value,
        low=low,
        high=high,
    )


def _ratio_of_shares(both: float, flagged: float, wrong: float, n: float) -> float | None:
    return both * n / (flagged * wrong) if flagged and wrong else None
