"""Human labels on one judge: which count, what part of the run they are, and the mean of the run that they correct."""

from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Any

from judgekit.core.human_labels import HumanLabel, Sheet
from judgekit.core.kind import Kind
from judgekit.stats.corrected import (
    LEAST_FOR_CORRECTION,
    LEAST_LABELS,
    Corrected,
    Target,
    corrected_mean,
    labels_for_width,
)
from judgekit.stats.means import mean

LEAST_TOLD = 3
"""Labels of one person from which it can be told that they are on another scale."""

MOST_NAMED = 5
"""Cases named in a message."""


@dataclass(frozen=True)
class LabelSet:
    """The labels that count for one judge."""

    by_case: Mapping[str, Mapping[str, HumanLabel]]
    """By case id, in the order of the run, and annotator."""
    annotators: tuple[str, ...]
    """Everybody who gave a label, by name."""
    notes: tuple[str, ...]
    """What was left out or replaced, and why."""
    counts: Mapping[str, int]

    def of_case(self, case_id: str) -> tuple[HumanLabel | None, ...]:
        """Labels of a case by annotator; None if one gave none."""
        given = self.by_case[case_id]
        return tuple(given.get(name) for name in self.annotators)


def count_labels(
    labels: Iterable[HumanLabel], judge: str, cases: Set[str], inputs: Mapping[str, str], kind: Kind
) -> LabelSet:
    """The labels that count for a judge.

    Left out, counted and named: labels of unknown cases, of cases that the judge was not asked about, of another
    answer than the one judged, and off the scale. Of several labels by one annotator on one case the last counts.

    Args:
        labels: of one or more files, in their order; those of other judges are skipped.
        judge: name of the judge.
        cases: ids of all cases of the run.
        inputs: by case id, hash of the judge input, for all cases that the judge was asked about, in order.
        kind: what verdicts of the judge are.
    """
    faults = {
        "unknown": "for cases that the run does not have",
        "not_asked": f"for cases that {judge} was not asked about",
        "another": "given to another answer than the one judged here",
        "off_scale": "off the scale of {} to {}".format(*map(int, kind.bounds)),
        "partial": "with a criterion missing, or one that was not asked about",
    }
    left_out: dict[str, list[HumanLabel]] = {name: [] for name in faults}
    kept: dict[str, dict[str, HumanLabel]] = {}
    twice: list[HumanLabel] = []
    n_equal = 0
    for label in labels:
        if label.judge not in (None, judge):
            continue
        fault = _fault(label, cases, inputs, kind)
        if fault is not None:
            left_out[fault].append(label)
            continue
        given = kept.setdefault(label.case_id, {})
        old = given.get(label.annotator)
        if old is not None and not label.revised:
            same = old.value == label.value
            n_equal += same
            twice += [] if same else [label]
        given[label.annotator] = label
    notes = [
        f"{_n(len(items), 'label')} left out, {faults[name]}: {_named(items)}"
        for name, items in left_out.items()
        if items
    ]
    if twice:
        notes.append(
            f"{_n(len(twice), 'label')} given again by the same annotator with another value; the last one counts: "
            f"{_named(twice)}"
        )
    if n_equal:
        notes.append(f"{_n(n_equal, 'label')} given again by the same annotator with the same value; they count once")
    return LabelSet(
        by_case={case_id: kept[case_id] for case_id in inputs if case_id in kept},
        annotators=tuple(sorted({name for given in kept.values() for name in given})),
        notes=tuple(notes),
        counts={f"n_{name}": len(items) for name, items in left_out.items()}
        | {"n_duplicates": n_equal + len(twice), "n_contradictions": len(twice)},
    )


def _fault(label: HumanLabel, known: Set[str], inputs: Mapping[str, str], kind: Kind) -> str | None:
    if label.case_id not in inputs:
        return "not_asked" if label.case_id in known else "unknown"
    if label.input_sha256 is not None and label.input_sha256 != inputs[label.case_id]:
        return "another"
    if label.score is not None and not kind.bounds[0] <= label.score <= kind.bounds[1]:
        return "off_scale"
    return "partial" if label.is_partial else None


def _n(n: int, noun: str) -> str:
    return f"{n} {noun}" + ("" if n == 1 else "s")


def _named(labels: Sequence[HumanLabel]) -> str:
    names = [f"{label.case_id!r}" + (f" ({label.place})" if label.place else "") for label in labels[:MOST_NAMED]]
    more = len(labels) - len(names)
    return ", ".join(names) + (f" and {more} more" if more else "")


def other_scale(labels: Iterable[HumanLabel], judge: str, scale: tuple[int, int]) -> str | None:
    """Why scores do not seem to be on the judge's scale, in words; None if they may be.

    They are not if all scores of a person are 0 or 1 on a wider scale, and not all 0, which is how pass and fail are
    often written, or if every fifth score, and three at least, lies beyond the scale. Few labels say nothing.
    """
    low, high = scale
    given: dict[str, list[int]] = {}
    for label in labels:
        if label.judge in (None, judge) and label.score is not None:
            given.setdefault(label.annotator, []).append(label.score)
    found = [score for scores in given.values() for score in scores]
    beyond = [score for score in found if not low <= score <= high]
    if len(beyond) >= LEAST_TOLD and 5 * len(beyond) >= len(found):
        return f"scores go from {min(found)} to {max(found)}, but {judge} gives {low} to {high}"
    if high > 1:
        for annotator, scores in given.items():
            if len(scores) >= LEAST_TOLD and 1 in scores and set(scores) <= {0, 1}:
                who = "every score" if len(given) == 1 else f"every score of {annotator!r}"
                return f"{who} is 0 or 1, but {judge} gives {low} to {high}"
    return None


@dataclass(frozen=True)
class Part:
    """Which part of a run is labelled."""

    kind: str
    """`census`: all of it; `random`: a simple random sample; `unknown`: chosen in some way that is not known."""
    reason: str


def labelled_part(judge: str, labelled: Sequence[str], n_inputs: int, sheets: Iterable[Sheet]) -> Part:
    """Whether the labelled cases of a judge are a random part of the run.

    They are if they are the beginning of the random order of one sheet. A case that was skipped breaks that: what
    people skip is seldom like the rest. `n_inputs`: cases that the judge was asked about.
    """
    if n_inputs and len(labelled) == n_inputs:
        return Part("census", "every judged case is labelled")
    own = sorted((sheet for sheet in sheets if sheet.judge == judge), key=lambda sheet: -len(sheet.case_ids))
    if not own:
        return Part("unknown", "no sheet of `judgekit label` says how the cases were chosen")
    sheet = own[0]
    if any(other.case_ids != sheet.case_ids[: len(other.case_ids)] for other in own):
        return Part("unknown", "the labels come from several sheets")
    wanted = set(labelled)
    if sheet.n_population != n_inputs:
        return Part("unknown", f"the sheet was drawn from {sheet.n_population} cases, the run has {n_inputs}")
    if wanted - set(sheet.case_ids):
        return Part("unknown", f"{len(wanted - set(sheet.case_ids))} of the labelled cases are not on the sheet")
    positions = [place for place, case_id in enumerate(sheet.case_ids) if case_id in wanted]
    n_skipped = positions[-1] + 1 - len(positions) if positions else 0
    if n_skipped:
        return Part("unknown", f"{_n(n_skipped, 'case')} of the sheet skipped")
    return Part("random", f"a simple random sample (seed {sheet.seed})")


def label_counts(labels: LabelSet) -> dict[str, int]:
    """Labels by annotator."""
    return dict(sorted(Counter(name for given in labels.by_case.values() for name in given).items()))


@dataclass(frozen=True)
class Readings:
    """One figure of a run, by case: what people say where they were asked, and what the judge says everywhere."""

    human: Mapping[str, float]
    judge: Mapping[str, float]
    clusters: Mapping[str, Hashable] | None
    """By case id; None if cases stand for themselves."""


def corrected_report(readings: Readings, part: Part, width: float | None) -> dict[str, Any]:
    """The mean of all cases with a verdict as people would score it, see `corrected_mean`; null under 20 labels.

    The part of the run that is labelled decides whether the mean is of this run or of cases like these. `width`: wanted
    distance of the ends, for which the labels needed are told.
    """
    labelled = [case_id for case_id in readings.judge if case_id in readings.human]
    further = [case_id for case_id in readings.judge if case_id not in readings.human]
    human = [readings.human[case_id] for case_id in labelled]
    judge, unlabelled = ([readings.judge[case_id] for case_id in ids] for ids in (labelled, further))
    target: Target = "population" if part.kind == "unknown" else "run"
    clusters = None if readings.clusters is None else [readings.clusters[case_id] for case_id in [*labelled, *further]]
    found = corrected_mean(human, judge, unlabelled, clusters, target)
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
        "judge_mean": mean([*judge, *unlabelled]),
        "human_mean": mean(human),
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
    now = found.high - found.low
    n = labels_for_width(width, now, found.n_human, n_run)
    return {"width": width, "n": n, "width_now": now, "reason": None}
