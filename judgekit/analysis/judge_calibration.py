"""A judge against human labels: how often it is right, how it errs, and what people could be held to."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from judgekit.analysis.label_sets import majority, mean_score, typical_score
from judgekit.stats.agreement import gwet_ac2, krippendorff_alpha, quadratic_weighted_kappa
from judgekit.stats.clusters import ClusteredMean, clustered_mean
from judgekit.stats.diagnostics import human_ceiling, lift, sensitivity_specificity
from judgekit.stats.proportions import mcnemar_exact, rate

FEWEST_FOR_DIRECTION = 50
"""Below this number of labelled cases no direction is claimed."""

_NO_CLASS = "labels and verdicts have no pass class in common"
_NO_SCORE = "no case has a score from both a person and the judge"


@dataclass(frozen=True)
class LabelledCase:
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
        """Pass if more than half of the annotators pass it."""
        return majority(self.classes)


@dataclass(frozen=True)
class _Classed:
    """A case that people and the judge both pass or fail."""

    case: LabelledCase
    human: bool
    judge: bool

    @property
    def right(self) -> bool:
        return self.human == self.judge


def calibration_report(
    cases: Sequence[LabelledCase], scale: tuple[int, int], pass_score: int | None, cluster_by: str | None
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
    """
    clusters = _clusters_of(cases)
    return {
        "n": len(cases),
        "cluster_by": cluster_by,
        "n_clusters": len(set(clusters)) if clusters is not None else len(cases),
        "pass_score": pass_score,
        **_diagnostics(_classed(cases), clusters is not None),
        "bias": _bias(cases),
        "pass_bias": _pass_bias(cases),
        "agreement": {"score": _score_agreement(cases, scale), "class": _class_agreement(cases)},
        "humans": _humans(cases, scale),
        "confusion": _confusion(cases, scale),
        "thresholds": _thresholds(cases, scale),
    }


def _clusters_of(cases: Sequence[LabelledCase]) -> list[str] | None:
    """The cluster of each case; None if no case has one."""
    if all(case.cluster is None for case in cases):
        return None
    return [case.case_id if case.cluster is None else f"= {case.cluster}" for case in cases]


def _classed(cases: Sequence[LabelledCase]) -> list[_Classed]:
    return [
        _Classed(case, human, case.judge_class)
        for case in cases
        if (human := case.human_class) is not None and case.judge_class is not None
    ]


def _diagnostics(known: Sequence[_Classed], clustered: bool) -> dict[str, Any]:
    sensitivity = _share_right([item for item in known if item.human], clustered)
    specificity = _share_right([item for item in known if not item.human], clustered)
    youden = None
    if sensitivity["value"] is not None and specificity["value"] is not None:
        youden = sensitivity["value"] + specificity["value"] - 1.0
    return {
        "sensitivity": sensitivity,
        "specificity": specificity,
        "class_agreement": _share_right(known, clustered),
        "youden": youden,
        **({} if known else {"undefined_reason": _NO_CLASS}),
    }


def _share_right(known: Sequence[_Classed], clustered: bool) -> dict[str, Any]:
    """A share with Wilson's interval, or one over clusters if these are known and show a spread."""
    found = asdict(rate(sum(item.right for item in known), len(known)))
    if clustered:
        over = clustered_mean([float(item.right) for item in known], _clusters_of([item.case for item in known]))
        if over.low is not None and over.high is not None:
            found |= {"low": max(0.0, over.low), "high": min(1.0, over.high)}
    return found


def _bias(cases: Sequence[LabelledCase]) -> dict[str, Any]:
    """Judge minus the mean of the annotators, in points."""
    known = [
        (case, float(case.judge_score) - human)
        for case in cases
        if case.judge_score is not None and (human := mean_score(case.scores)) is not None
    ]
    return _directed([difference for _, difference in known], [case for case, _ in known], _NO_SCORE)


def _pass_bias(cases: Sequence[LabelledCase]) -> dict[str, Any]:
    """Pass rate of the judge minus that of the people."""
    known = _classed(cases)
    return _directed([float(item.judge) - float(item.human) for item in known], [i.case for i in known], _NO_CLASS)


def _directed(differences: Sequence[float], cases: Sequence[LabelledCase], reason: str) -> dict[str, Any]:
    found = clustered_mean(differences, _clusters_of(cases))
    direction, why = _direction(found)
    record = {**asdict(found), "direction": direction, "direction_reason": why}
    return record if found.n else {**record, "undefined_reason": reason}


def _direction(found: ClusteredMean) -> tuple[str | None, str]:
    if found.n < FEWEST_FOR_DIRECTION:
        return None, f"no direction is claimed under {FEWEST_FOR_DIRECTION} labels ({found.n})"
    if found.low is None or found.high is None:
        return None, "the differences show no spread"
    if found.low > 0:
        return "lenient", "the interval is above 0"
    if found.high < 0:
        return "strict", "the interval is below 0"
    return None, "the interval holds 0"


def _score_agreement(cases: Sequence[LabelledCase], scale: tuple[int, int]) -> dict[str, Any]:
    known, human, judge = _whole(cases)
    return _agreement(human, judge, scale, _clusters_of(known), _NO_SCORE)


def _whole(cases: Sequence[LabelledCase]) -> tuple[list[LabelledCase], list[int], list[int]]:
    """Cases that people and the judge both score, with the two scores."""
    known = [
        (case, human, case.judge_score)
        for case in cases
        if (human := typical_score(case.scores)) is not None and case.judge_score is not None
    ]
    return [case for case, _, _ in known], [human for _, human, _ in known], [judge for _, _, judge in known]


def _class_agreement(cases: Sequence[LabelledCase]) -> dict[str, Any]:
    """On two classes the weighted kappa is Cohen's, AC2 is AC1, and ordinal alpha is nominal alpha."""
    known = _classed(cases)
    human, judge = [int(item.human) for item in known], [int(item.judge) for item in known]
    found = _agreement(human, judge, (0, 1), _clusters_of([item.case for item in known]), _NO_CLASS)
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
        "quadratic_weighted_kappa": quadratic_weighted_kappa(human, judge, clusters)._asdict(),
        "gwet_ac2": gwet_ac2(pairs, *scale, clusters)._asdict(),
        "krippendorff_alpha": krippendorff_alpha(pairs, clusters)._asdict(),
        "method": "cluster jackknife 95%",
    }
    if not pairs:
        return {**record, "undefined_reason": none}
    if len({*human, *judge}) == 1:
        return {**record, "undefined_reason": "every score is the same, so chance alone would agree as well"}
    return record


def _humans(cases: Sequence[LabelledCase], scale: tuple[int, int]) -> dict[str, Any]:
    """How far people agree among each other: more cannot be asked of a judge."""
    several = [case for case in cases if sum(passed is not None for passed in case.classes) >= 2]
    scored = [case for case in cases if sum(score is not None for score in case.scores) >= 2]
    if not several and not scored:
        return {"ceiling": None, "undefined_reason": "no case has labels of two annotators"}
    clusters = _clusters_of(several)
    classes = [[None if passed is None else int(passed) for passed in case.classes] for case in several]
    found: dict[str, Any] = {
        "ceiling": _ceiling(classes, clusters) if several else None,
        "classes": _raters(classes, (0, 1), clusters),
        "ceiling_exact_score": None,
        "scores": None,
    }
    if scored:
        clusters, scores = _clusters_of(scored), [case.scores for case in scored]
        found["ceiling_exact_score"] = _ceiling(scores, clusters)
        found["scores"] = _raters(scores, scale, clusters)
    return found


def _ceiling(ratings: Sequence[Sequence[int | None]], clusters: Sequence[str] | None) -> dict[str, Any]:
    found = human_ceiling(ratings, clusters)
    return {"value": found.value, "low": found.low, "high": found.high, "n": found.n}


def _raters(
    ratings: Sequence[Sequence[int | None]], scale: tuple[int, int], clusters: Sequence[str] | None
) -> dict[str, Any]:
    return {
        "n": len(ratings),
        "gwet_ac2": gwet_ac2(ratings, *scale, clusters)._asdict(),
        "krippendorff_alpha": krippendorff_alpha(ratings, clusters)._asdict(),
    }


def _confusion(cases: Sequence[LabelledCase], scale: tuple[int, int]) -> dict[str, Any] | None:
    """Counts by human score (rows) and score of the judge (columns); of classes if there are no scores."""
    _, human, judge = _whole(cases)
    what, levels = "scores", list(range(scale[0], scale[1] + 1))
    if not human:
        known = _classed(cases)
        human, judge = [int(item.human) for item in known], [int(item.judge) for item in known]
        what, levels = "fail (0) and pass (1)", [0, 1]
    if not human:
        return None
    counts = Counter(zip(human, judge, strict=True))
    return {"of": what, "levels": levels, "rows": [[counts[row, column] for column in levels] for row in levels]}


def _thresholds(cases: Sequence[LabelledCase], scale: tuple[int, int]) -> list[dict[str, Any]]:
    """Figures of the judge at every threshold above the lowest score; the best row is better than on new cases."""
    known = [
        (case.judge_score, human)
        for case in cases
        if (human := case.human_class) is not None and case.judge_score is not None
    ]
    people = [passed for _, passed in known]
    return [
        {"threshold": least, **asdict(sensitivity_specificity(people, [score >= least for score, _ in known]))}
        for least in (range(scale[0] + 1, scale[1] + 1) if known else ())
    ]


def baseline_report(
    cases: Sequence[LabelledCase], baseline: Mapping[str, bool], against: Mapping[str, Any]
) -> dict[str, Any]:
    """Which of two judges is right more often, on the cases that both judged and people labelled.

    By McNemar's exact test. One is called better if there are 50 labels and p is at most 0.05. `baseline` says by case
    id whether the other judge passes it, `against` what that judge is.
    """
    rights = [
        (item.right, baseline[item.case.case_id] == item.human)
        for item in _classed(cases)
        if item.case.case_id in baseline
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
        "judge_right": asdict(rate(sum(first for first, _ in rights), len(rights))),
        "baseline_right": asdict(rate(sum(second for _, second in rights), len(rights))),
        "n_only_judge_right": only_judge,
        "n_only_baseline_right": only_baseline,
        "p": p,
        "method": "McNemar, exact, two-sided",
        "better": better,
        "better_reason": why,
    }


def comparator_report(
    cases: Sequence[LabelledCase], flags: Mapping[str, bool], against: Mapping[str, Any]
) -> dict[str, Any]:
    """What a flag of the spot check is worth, on the checked cases that people labelled: see `lift`.

    `flags` says by case id whether the second opinion disagrees, `against` which spot check and comparator that was.
    """
    known = [item for item in _classed(cases) if item.case.case_id in flags]
    flagged = [flags[item.case.case_id] for item in known]
    found = lift(flagged, [not item.right for item in known])
    record: dict[str, Any] = {
        "against": dict(against),
        "n": len(known),
        "n_flagged": sum(flagged),
        "indicative": len(known) < FEWEST_FOR_DIRECTION,
        "wrong_given_flag": asdict(found.wrong_given_flag),
        "wrong_given_agreement": asdict(found.wrong_given_agreement),
        "wrong": asdict(found.wrong),
        "lift": {"value": found.value, "low": found.low, "high": found.high},
    }
    if found.value is None:
        record["undefined_reason"] = "no verdict is wrong" if any(flagged) else "no flagged case is labelled"
    return record
