"""A judge against human labels: how often it is right, how it errs, and what people could be held to."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from judgekit.analysis.labelled_cases import LabelledCase
from judgekit.analysis.spot_check_findings import agreement_beyond_chance
from judgekit.core.judgments import CANNOT_TELL, Verdict
from judgekit.core.kind import Kind
from judgekit.core.verdict_kinds import YesNo
from judgekit.stats.agreement import gwet_ac2, krippendorff_alpha
from judgekit.stats.clusters import ClusteredMean, clustered_mean
from judgekit.stats.diagnostics import human_ceiling, lift, sensitivity_specificity
from judgekit.stats.proportions import mcnemar_exact, rate

FEWEST_FOR_DIRECTION = 50
"""Below this number of labelled cases no direction is claimed."""

_NO_CLASS = "labels and verdicts have no pass class in common"
_NO_SCORE = "no case has a score from both a person and the judge"


@dataclass(frozen=True)
class _Classed:
    """A case, or a part of one, that people and the judge both call yes or no."""

    case: LabelledCase
    human: bool
    judge: bool

    @property
    def right(self) -> bool:
        return self.human == self.judge


@dataclass(frozen=True)
class _Placed:
    """A case, or a part of one, by the levels that people and the judge give it."""

    case: LabelledCase
    human: int
    judge: int


def calibration_report(cases: Sequence[LabelledCase], kind: Kind, cluster_by: str | None) -> dict[str, Any]:
    """Figures of a judge against people.

    People together: for classes the majority, a tie fails; for all else see `together`; for the bias their mean.

    Args:
        cases: every case with a label and a verdict.
        kind: what verdicts of the judge are.
        cluster_by: field that the clusters come from; None: cases stand for themselves.

    Returns:
        A strict-JSON object; what has no case to stand on is null with an `undefined_reason`.
    """
    clusters, placed, unit = _clusters_of(cases), _placed(cases, kind), kind.unit[0]
    return {
        "n": len(cases),
        "cluster_by": cluster_by,
        "n_clusters": len(set(clusters)) if clusters is not None else len(cases),
        "kind": kind.kind,
        "unit": unit,
        "classes": list(kind.sides),
        "pass_score": kind.pass_from,
        **_diagnostics(_classed(cases), clusters is not None),
        "parts": {name: _part(cases, name, clusters is not None) for name in kind.part_names},
        "bias": _bias(cases),
        "pass_bias": _pass_bias(cases),
        "agreement": {unit: _unit_agreement(placed, kind), "class": _class_agreement(cases)},
        "humans": _humans(cases, kind),
        "confusion": _confusion(cases, placed, kind),
        "cannot_tell": _cannot_tell(placed, kind),
        "thresholds": _thresholds(cases, kind),
    }


def _placed(cases: Sequence[LabelledCase], kind: Kind) -> list[_Placed]:
    """What people and the judge say, each part by the place of its level; last comes what cannot be told."""
    return [
        _Placed(case, human, judge)
        for case in cases
        if case.people is not None
        for human, judge in zip(_places(case.people, kind), _places(case.verdict, kind), strict=True)
        if human is not None and judge is not None
    ]


def _places(verdict: Verdict, kind: Kind) -> tuple[int | None, ...]:
    if verdict.cannot_tell:
        return (len(kind.levels),)
    low, _ = kind.category_bounds
    return tuple(None if category is None else category - low for category in kind.categories(verdict))


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


def _part(cases: Sequence[LabelledCase], name: str, clustered: bool) -> dict[str, Any]:
    """One label, or one criterion, as a question of yes or no: how often the judge says yes where people do."""
    known = [
        _Classed(case, human[name], judge[name])
        for case in cases
        if case.people is not None
        and name in (human := case.kind.flags(case.people))
        and name in (judge := case.kind.flags(case.verdict))
    ]
    return {
        "n_people": sum(item.human for item in known),
        "n_judge": sum(item.judge for item in known),
        "sensitivity": _share_right([item for item in known if item.human], clustered),
        "specificity": _share_right([item for item in known if not item.human], clustered),
        "precision": _share_right([item for item in known if item.judge], clustered),
        "agreement": _share_right(known, clustered),
    }


def _bias(cases: Sequence[LabelledCase]) -> dict[str, Any]:
    """Judge minus the mean of the annotators, in points."""
    known = [
        (case, judge - human)
        for case in cases
        if (judge := case.judge_points) is not None and (human := case.human_points) is not None
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


def _unit_agreement(placed: Sequence[_Placed], kind: Kind) -> dict[str, Any]:
    """Of scores, labels or criteria. That it cannot be told is a label like others, but no score."""
    counted = [item for item in placed if kind.has_points or kind.is_nominal]
    if not kind.is_nominal:
        counted = [item for item in counted if max(item.human, item.judge) < len(kind.levels)]
    clusters = _clusters_of([item.case for item in counted])
    if clusters is None and kind.has_parts:
        clusters = [item.case.case_id for item in counted]
    low, _ = kind.category_bounds
    pairs = [(item.human + low, item.judge + low) for item in counted]
    return _agreement(pairs, kind, clusters, _NO_SCORE.replace("score", kind.unit[0]))


def _class_agreement(cases: Sequence[LabelledCase]) -> dict[str, Any]:
    """On two classes the weighted kappa is Cohen's, AC2 is AC1, and ordinal alpha is nominal alpha."""
    known = _classed(cases)
    pairs = [(int(item.human), int(item.judge)) for item in known]
    found = _agreement(pairs, YesNo(), _clusters_of([item.case for item in known]), _NO_CLASS)
    found["cohen_kappa"] = found.pop("quadratic_weighted_kappa")
    return found


def _agreement(
    pairs: Sequence[tuple[int, int]], kind: Kind, clusters: Sequence[str] | None, none: str
) -> dict[str, Any]:
    record = {
        "n": len(pairs),
        "indicative": len(pairs) < FEWEST_FOR_DIRECTION,
        "exact": rate(sum(a == b for a, b in pairs), len(pairs)).value,
        **agreement_beyond_chance(pairs, kind, clusters),
        "method": "cluster jackknife 95%",
    }
    if not pairs:
        return {**record, "undefined_reason": none}
    if len({value for pair in pairs for value in pair}) == 1:
        return {**record, "undefined_reason": f"every {kind.unit[0]} is the same, so chance alone would agree as well"}
    return record


def _humans(cases: Sequence[LabelledCase], kind: Kind) -> dict[str, Any]:
    """How far people agree among each other: more cannot be asked of a judge."""
    several = [case for case in cases if sum(passed is not None for passed in case.classes) >= 2]
    rated = [(case, ratings) for case in cases for ratings in _by_annotator(case) if _n_given(ratings) >= 2]
    if not several and not rated:
        return {"ceiling": None, "undefined_reason": "no case has labels of two annotators"}
    clusters, (unit, units) = _clusters_of(several), kind.unit
    classes = [[None if passed is None else int(passed) for passed in case.classes] for case in several]
    found: dict[str, Any] = {
        "ceiling": _ceiling(classes, clusters) if several else None,
        "classes": _raters(classes, YesNo(), clusters),
        f"ceiling_exact_{unit}": None,
        units: None,
    }
    if rated:
        clusters, ratings = _clusters_of([case for case, _ in rated]), [own for _, own in rated]
        if clusters is None and kind.has_parts:
            clusters = [case.case_id for case, _ in rated]
        found[f"ceiling_exact_{unit}"] = _ceiling(ratings, clusters)
        found[units] = _raters(ratings, kind, clusters)
    return found


def _by_annotator(case: LabelledCase) -> list[tuple[int | None, ...]]:
    """The categories that annotators give a case, a row for each of its parts; none of what is yes or no anyway."""
    kind = case.kind
    if not (kind.has_points or kind.is_nominal):
        return []
    said = [None if label is None or label.verdict is None else kind.categories(label.verdict) for label in case.labels]
    n_parts = max((len(own) for own in said if own is not None), default=0)
    return [tuple(None if own is None else own[place] for own in said) for place in range(n_parts)]


def _n_given(ratings: Sequence[int | None]) -> int:
    return sum(rating is not None for rating in ratings)


def _ceiling(ratings: Sequence[Sequence[int | None]], clusters: Sequence[str] | None) -> dict[str, Any]:
    found = human_ceiling(ratings, clusters)
    return {"value": found.value, "low": found.low, "high": found.high, "n": found.n}


def _raters(ratings: Sequence[Sequence[int | None]], kind: Kind, clusters: Sequence[str] | None) -> dict[str, Any]:
    nominal = kind.is_nominal
    return {
        "n": len(ratings),
        "gwet_ac1" if nominal else "gwet_ac2": gwet_ac2(
            ratings, *kind.category_bounds, clusters, nominal=nominal
        )._asdict(),
        "krippendorff_alpha": krippendorff_alpha(ratings, clusters, nominal=nominal)._asdict(),
    }


def _confusion(cases: Sequence[LabelledCase], placed: Sequence[_Placed], kind: Kind) -> dict[str, Any] | None:
    """Counts by what people say (rows) and what the judge says (columns); of classes if there are no verdicts."""
    what, levels = kind.levels_are, list(kind.levels)
    pairs = [(item.human, item.judge) for item in placed]
    if not pairs:
        known = _classed(cases)
        pairs = [(int(item.human), int(item.judge)) for item in known]
        what, levels = "fail (0) and pass (1)", [0, 1]
    if not pairs:
        return None
    if kind.cannot_tell or any(max(pair) == len(levels) for pair in pairs):
        levels.append(CANNOT_TELL)
    counts, places = Counter(pairs), range(len(levels))
    return {"of": what, "levels": levels, "rows": [[counts[row, column] for column in places] for row in places]}


def _cannot_tell(placed: Sequence[_Placed], kind: Kind) -> dict[str, Any] | None:
    """How often people, the judge, and both cannot tell; None if nobody may say so. Of criteria, each counts."""
    if not kind.cannot_tell:
        return None
    open_place = len(kind.levels)
    people = [item.human == open_place for item in placed]
    judge = [item.judge == open_place for item in placed]
    return {
        "n": len(placed),
        "people": sum(people),
        "judge": sum(judge),
        "both": sum(a and b for a, b in zip(people, judge, strict=True)),
    }


def _thresholds(cases: Sequence[LabelledCase], kind: Kind) -> list[dict[str, Any]]:
    """Figures of the judge at every threshold above the lowest score; the best row is better than on new cases."""
    known = [
        (points, human)
        for case in cases
        if (human := case.human_class) is not None and (points := case.judge_points) is not None
    ]
    if not known or kind.has_parts:
        return []
    people, levels = [passed for _, passed in known], range(kind.category_bounds[0] + 1, kind.category_bounds[1] + 1)
    return [
        {"threshold": least, **asdict(sensitivity_specificity(people, [points >= least for points, _ in known]))}
        for least in levels
    ]


def baseline_report(
    cases: Sequence[LabelledCase], baseline: Mapping[str, Verdict], against: Mapping[str, Any]
) -> dict[str, Any]:
    """Which of two judges is right more often, on the cases that both judged and people labelled.

    By McNemar's exact test. One is called better if there are 50 labels and p is at most 0.05. `baseline` says by case
    id what the other judge says, `against` what that judge is.
    """
    rights = [
        (first, second)
        for case in cases
        if (first := case.is_right(case.verdict)) is not None
        and case.case_id in baseline
        and (second := case.is_right(baseline[case.case_id])) is not None
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
    known = [
        (flags[case.case_id], right)
        for case in cases
        if case.case_id in flags and (right := case.is_right(case.verdict)) is not None
    ]
    flagged = [flag for flag, _ in known]
    found = lift(flagged, [not right for _, right in known])
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
