"""A judge against human labels: how often it is right, how it errs, and what people could be held to."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from judgekit.analysis.labels import majority, mean_score, typical_score
from judgekit.stats.agreement import Ends, gwet_ac2, krippendorff_alpha, quadratic_weighted_kappa
from judgekit.stats.clusters import ClusteredMean, clustered_mean
from judgekit.stats.diagnostics import human_ceiling, lift, threshold_sweep
from judgekit.stats.proportions import Rate, mcnemar_exact, rate

FEWEST_FOR_DIRECTION = 50
"""Below this number of labelled cases no direction is claimed."""

_NO_CLASS = "labels and verdicts have no pass class in common"
_NO_SCORE = "no case has a score from both a person and the judge"


@dataclass(frozen=True)
class Anchored:
    """A case with labels and a verdict."""

    case_id: str
    cluster: str | None
    """Cases of one cluster may be alike; None: it stands for itself."""
    scores: tuple[int | None, ...]
    """Score of each annotator."""
    classes: tuple[bool | None, ...]
    """Pass or fail of each annotator."""
    judge_score: int | None
    judge_class: bool | None

    @property
    def human_class(self) -> bool | None:
        """Pass where more than half of the annotators pass it."""
        return majority(self.classes)

    @property
    def right(self) -> bool | None:
        """Whether the judge passes what people pass; None where that cannot be told."""
        if self.judge_class is None or self.human_class is None:
            return None
        return self.judge_class == self.human_class


def anchor_report(
    cases: Sequence[Anchored], scale: tuple[int, int], pass_score: int | None, cluster_by: str | None
) -> dict[str, Any]:
    """Figures of a judge against people.

    People together: for classes the majority, a tie fails; for whole scores the median, of two middle ones the lower;
    for the bias of scores their mean.

    Args:
        cases: every case with a label and a verdict.
        scale: lowest and highest score of the judge.
        pass_score: lowest score that passes; None: the judge has no pass class.
        cluster_by: field that the clusters come from; None: cases stand for themselves.

    Returns:
        A strict-JSON object; what has no case to stand on is null with an `undefined_reason`.

    Source: in-house; the statistics as named in `judgekit.stats`.
    """
    clusters = clusters_of(cases)
    return {
        "n": len(cases),
        "cluster_by": cluster_by,
        "n_clusters": len(set(clusters)) if clusters is not None else len(cases),
        "pass_score": pass_score,
        **_diagnostics(cases, clusters is not None),
        "bias": _bias(cases),
        "pass_bias": _pass_bias(cases),
        "agreement": {"score": _score_agreement(cases, scale), "class": _class_agreement(cases)},
        "humans": _humans(cases, scale),
        "confusion": _confusion(cases, scale),
        "thresholds": _thresholds(cases, scale),
    }


def clusters_of(cases: Sequence[Anchored]) -> list[str] | None:
    """The cluster of each case; None where no case has one."""
    if all(case.cluster is None for case in cases):
        return None
    return [case.case_id if case.cluster is None else f"= {case.cluster}" for case in cases]


def _classed(cases: Sequence[Anchored]) -> list[Anchored]:
    return [case for case in cases if case.right is not None]


def _diagnostics(cases: Sequence[Anchored], clustered: bool) -> dict[str, Any]:
    known = _classed(cases)
    passed = [case for case in known if case.human_class]
    failed = [case for case in known if not case.human_class]
    sensitivity = _share([bool(case.right) for case in passed], passed, clustered)
    specificity = _share([bool(case.right) for case in failed], failed, clustered)
    youden = None
    if sensitivity["value"] is not None and specificity["value"] is not None:
        youden = sensitivity["value"] + specificity["value"] - 1.0
    return {
        "sensitivity": sensitivity,
        "specificity": specificity,
        "class_agreement": _share([bool(case.right) for case in known], known, clustered),
        "youden": youden,
        **({} if known else {"undefined_reason": _NO_CLASS}),
    }


def _share(hits: Sequence[bool], cases: Sequence[Anchored], clustered: bool) -> dict[str, Any]:
    """A share with Wilson's interval, or one over clusters where these are known and show a spread."""
    found = share_record(rate(sum(hits), len(hits)))
    if clustered:
        over = clustered_mean([float(hit) for hit in hits], clusters_of(cases))
        if over.low is not None and over.high is not None:
            found |= {"low": max(0.0, over.low), "high": min(1.0, over.high)}
    return found


def share_record(found: Rate) -> dict[str, Any]:
    """A proportion as stored: value, ends and the counts behind them."""
    return {"value": found.value, "low": found.low, "high": found.high, "k": found.n_successes, "n": found.n}


def _bias(cases: Sequence[Anchored]) -> dict[str, Any]:
    """Judge minus the mean of the annotators, in points."""
    pairs = [(case, mean_score(case.scores)) for case in cases if case.judge_score is not None]
    known = [(case, human) for case, human in pairs if human is not None]
    differences = [float(case.judge_score or 0) - human for case, human in known]
    return _directed(differences, [case for case, _ in known], _NO_SCORE)


def _pass_bias(cases: Sequence[Anchored]) -> dict[str, Any]:
    """Pass rate of the judge minus that of the people."""
    known = _classed(cases)
    return _directed(
        [float(bool(case.judge_class)) - float(bool(case.human_class)) for case in known], known, _NO_CLASS
    )


def _directed(differences: Sequence[float], cases: Sequence[Anchored], reason: str) -> dict[str, Any]:
    found = clustered_mean(differences, clusters_of(cases))
    direction, why = _direction(found.low, found.high, found.n)
    record = {
        "value": found.value,
        "standard_error": found.standard_error,
        "low": found.low,
        "high": found.high,
        "n": found.n,
        "n_clusters": found.n_clusters,
        "direction": direction,
        "direction_reason": why,
    }
    return record if found.n else {**record, "undefined_reason": reason}


def _direction(low: float | None, high: float | None, n: int) -> tuple[str | None, str]:
    if n < FEWEST_FOR_DIRECTION:
        return None, f"no direction is claimed under {FEWEST_FOR_DIRECTION} labels ({n})"
    if low is None or high is None:
        return None, "the differences show no spread"
    if low > 0:
        return "lenient", "the interval is above 0"
    if high < 0:
        return "strict", "the interval is below 0"
    return None, "the interval holds 0"


def _score_agreement(cases: Sequence[Anchored], scale: tuple[int, int]) -> dict[str, Any]:
    known, human, judge = _whole(cases)
    return _agreement(human, judge, scale, clusters_of(known), _NO_SCORE)


def _whole(cases: Sequence[Anchored]) -> tuple[list[Anchored], list[int], list[int]]:
    known, human, judge = [], [], []
    for case in cases:
        typical = typical_score(case.scores)
        if typical is not None and case.judge_score is not None:
            known.append(case)
            human.append(typical)
            judge.append(case.judge_score)
    return known, human, judge


def _class_agreement(cases: Sequence[Anchored]) -> dict[str, Any]:
    """On two classes the weighted kappa is Cohen's, AC2 is AC1, and ordinal alpha is nominal alpha."""
    known = _classed(cases)
    human, judge = [int(bool(case.human_class)) for case in known], [int(bool(case.judge_class)) for case in known]
    found = _agreement(human, judge, (0, 1), clusters_of(known), _NO_CLASS)
    found["cohen_kappa"] = found.pop("quadratic_weighted_kappa")
    return found


def _agreement(
    human: Sequence[int], judge: Sequence[int], scale: tuple[int, int], clusters: Sequence[str] | None, none: str
) -> dict[str, Any]:
    pairs = list(zip(human, judge, strict=True))
    record = {
        "n": len(pairs),
        "indicative": len(pairs) < FEWEST_FOR_DIRECTION,
        "exact": rate(sum(a == b for a, b in pairs), len(pairs)).value,
        "quadratic_weighted_kappa": _ends(quadratic_weighted_kappa(human, judge, clusters)),
        "gwet_ac2": _ends(gwet_ac2(pairs, *scale, clusters)),
        "krippendorff_alpha": _ends(krippendorff_alpha(pairs, clusters)),
        "method": "cluster jackknife 95%",
    }
    if not pairs:
        return {**record, "undefined_reason": none}
    if len({*human, *judge}) == 1:
        return {**record, "undefined_reason": "every score is the same, so chance alone would agree as well"}
    return record


def _ends(found: Ends) -> dict[str, float | None]:
    return dict(zip(("value", "low", "high"), found, strict=True))


def _humans(cases: Sequence[Anchored], scale: tuple[int, int]) -> dict[str, Any]:
    """How far people agree among each other: more cannot be asked of a judge."""
    several = [case for case in cases if sum(passed is not None for passed in case.classes) >= 2]
    scored = [case for case in cases if sum(score is not None for score in case.scores) >= 2]
    if not several and not scored:
        return {"ceiling": None, "undefined_reason": "no case has labels of two annotators"}
    clusters = clusters_of(several)
    found: dict[str, Any] = {
        "ceiling": _mean_record(human_ceiling([case.classes for case in several], clusters)) if several else None,
        "classes": _raters(
            [[None if p is None else int(p) for p in case.classes] for case in several], (0, 1), clusters
        ),
        "ceiling_exact_score": None,
        "scores": None,
    }
    if scored:
        clusters = clusters_of(scored)
        found["ceiling_exact_score"] = _mean_record(human_ceiling([case.scores for case in scored], clusters))
        found["scores"] = _raters([list(case.scores) for case in scored], scale, clusters)
    return found


def _raters(
    ratings: Sequence[Sequence[int | None]], scale: tuple[int, int], clusters: Sequence[str] | None
) -> dict[str, Any]:
    return {
        "n": len(ratings),
        "gwet_ac2": _ends(gwet_ac2(ratings, *scale, clusters)),
        "krippendorff_alpha": _ends(krippendorff_alpha(ratings, clusters)),
    }


def _mean_record(found: ClusteredMean) -> dict[str, Any]:
    return {"value": found.value, "low": found.low, "high": found.high, "n": found.n}


def _confusion(cases: Sequence[Anchored], scale: tuple[int, int]) -> dict[str, Any] | None:
    """Counts by human score (rows) and score of the judge (columns); of classes where there are no scores."""
    _, human, judge = _whole(cases)
    what, levels = "scores", list(range(scale[0], scale[1] + 1))
    if not human:
        known = _classed(cases)
        human, judge = [int(bool(case.human_class)) for case in known], [int(bool(case.judge_class)) for case in known]
        what, levels = "fail (0) and pass (1)", [0, 1]
    if not human:
        return None
    counts = Counter(zip(human, judge, strict=True))
    return {"of": what, "levels": levels, "rows": [[counts[row, column] for column in levels] for row in levels]}


def _thresholds(cases: Sequence[Anchored], scale: tuple[int, int]) -> list[dict[str, Any]]:
    known = [case for case in cases if case.human_class is not None and case.judge_score is not None]
    scores, human = [case.judge_score or 0 for case in known], [bool(case.human_class) for case in known]
    if not known:
        return []
    return [
        {
            "threshold": threshold,
            "sensitivity": share_record(found.sensitivity),
            "specificity": share_record(found.specificity),
            "agreement": share_record(found.agreement),
            "cohen_kappa": found.kappa,
            "youden": found.youden,
        }
        for threshold, found in threshold_sweep(scores, human, *scale)
    ]


def baseline_report(
    cases: Sequence[Anchored], baseline: Mapping[str, bool], against: Mapping[str, Any]
) -> dict[str, Any]:
    """Which of two judges is right more often, on the cases that both judged and people labelled.

    Args:
        cases: every case with a label and a verdict.
        baseline: by case id, whether the other judge passes it.
        against: what the other judge is, for the record.

    Returns:
        A strict-JSON object: numbers of cases that only one of the two gets right, McNemar's exact p, and the better
        one, where there are 50 labels and p is at most 0.05.

    Source: McNemar 1947, see `mcnemar_exact`.
    """
    rights = [
        (bool(case.right), baseline[case.case_id] == case.human_class)
        for case in _classed(cases)
        if case.case_id in baseline
    ]
    only_judge, only_baseline = rights.count((True, False)), rights.count((False, True))
    p = mcnemar_exact(only_judge, only_baseline) if rights else None
    better, why = None, "p is above 0.05"
    if len(rights) < FEWEST_FOR_DIRECTION:
        why = f"no direction is claimed under {FEWEST_FOR_DIRECTION} labels ({len(rights)})"
    elif p is not None and p <= 0.05:
        better, why = ("judge" if only_judge > only_baseline else "baseline"), "p is at most 0.05"
    return {
        "against": dict(against),
        "n": len(rights),
        "judge_right": share_record(rate(sum(first for first, _ in rights), len(rights))),
        "baseline_right": share_record(rate(sum(second for _, second in rights), len(rights))),
        "n_only_judge_right": only_judge,
        "n_only_baseline_right": only_baseline,
        "p": p,
        "method": "McNemar, exact, two-sided",
        "better": better,
        "better_reason": why,
    }


def comparator_report(
    cases: Sequence[Anchored], flags: Mapping[str, bool], against: Mapping[str, Any]
) -> dict[str, Any]:
    """What a flag of the spot check is worth, on the checked cases that people labelled.

    Args:
        cases: every case with a label and a verdict.
        flags: by case id, whether the second opinion disagrees.
        against: the spot check and its comparator, for the record.

    Returns:
        A strict-JSON object with P(wrong given flag), P(wrong given agreement), P(wrong) and the lift.

    Source: see `lift`.
    """
    known = [case for case in _classed(cases) if case.case_id in flags]
    found = lift([flags[case.case_id] for case in known], [not case.right for case in known])
    record: dict[str, Any] = {
        "against": dict(against),
        "n": len(known),
        "n_flagged": sum(flags[case.case_id] for case in known),
        "indicative": len(known) < FEWEST_FOR_DIRECTION,
        "wrong_given_flag": share_record(found.wrong_given_flag),
        "wrong_given_agreement": share_record(found.wrong_given_agreement),
        "wrong": share_record(found.wrong),
        "lift": {"value": found.value, "low": found.low, "high": found.high},
    }
    if found.value is None:
        record["undefined_reason"] = "no flagged case is labelled" if not record["n_flagged"] else "no verdict is wrong"
    return record
