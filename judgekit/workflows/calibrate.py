"""`judgekit calibrate`: the judges of a stored run against human labels, into the same run folder."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from judgekit.analysis.anchors import Anchored, anchor_report, baseline_report, comparator_report
from judgekit.analysis.corrections import Readings, corrected_report
from judgekit.analysis.labels import (
    LabelSet,
    count_labels,
    label_counts,
    labelled_part,
    majority,
    mean_score,
    other_scale,
)
from judgekit.analysis.pairs import compare_pair
from judgekit.analysis.reliability import judge_reliability
from judgekit.analysis.slices import slice_values
from judgekit.analysis.summary import rounded
from judgekit.core.cases import Case
from judgekit.core.components import Judge
from judgekit.core.errors import ConfigError, StorageError
from judgekit.core.human_labels import CALIBRATION, HumanLabel, LabelFile
from judgekit.core.judgments import JudgmentKey, Verdict, last_judgments
from judgekit.core.runs import Manifest, RunSummary
from judgekit.core.spot_checks import SpotCheckRecord
from judgekit.storage.run_folder import RunFolder
from judgekit.workflows.closing import closed, write_summary
from judgekit.workflows.judge_reliability import pairs_of, pass_score_of, scale_of

Verdicts = Mapping[str, Verdict]
"""By case id."""


@dataclass(frozen=True)
class CalibrateJob:
    """One calibration of one run."""

    store: RunFolder
    summary: RunSummary
    judges: Sequence[Judge]
    """The judges that are held against the labels."""
    labels: LabelFile
    cluster_by: str | None
    """Field of the case that clusters come from."""
    width: float | None
    """Wanted width of an interval."""
    scores_are: Literal["scores", "pass"] | None
    """What whole numbers among the labels are; None: scores, where that can be."""
    baseline: Callable[[str], tuple[Verdicts, Mapping[str, Any]]] | None
    """Judge -> verdicts of the same judge in another run, and what that was; None: the spot check, if there is one."""
    manifest: Manifest
    """As it was when the run was opened."""
    report: bool
    """The run has a report.html."""


@dataclass(frozen=True)
class _Setting:
    """What all judges share."""

    job: CalibrateJob
    cases: Mapping[str, Case]
    judgments: Mapping[JudgmentKey, Any]


def calibrate(job: CalibrateJob) -> dict[str, Any]:
    """Hold judges against labels, and write calibration.json, metrics.json and summary.md.

    Returns:
        What calibration.json holds, with numbers rounded.

    Raises:
        ConfigError: no label is about a case of the run, or no case has the field of the clusters.
        StorageError: the run is damaged, cannot be written, or another process writes it.
    """
    with job.store.locked_as_found(job.manifest):
        setting = _Setting(job, {case.id: case for case in job.store.cases()}, last_judgments(job.store.judgments()))
        found = {judge.name: _of_judge(setting, judge) for judge in job.judges}
        labelled = {name: parts.pop("labels_by_case") for name, parts in found.items()}
        before, labels_before = _earlier(job.store, "judges"), _earlier(job.store, "labels_by_case")
        document: dict[str, Any] = rounded(
            {
                "schema_version": 1,
                "run_id": job.summary.run_id,
                "labels": {"path": job.labels.path, "sha256": job.labels.sha256, "problems": list(job.labels.problems)},
                "judges": {**before, **found},
                "labels_by_case": {**labels_before, **labelled},
            }
        )
        job.store.write_json(CALIBRATION, document)
        summary = with_parts(job.summary, {name: document["judges"][name] for name in found})
        write_summary(job.store, summary)
        closed(job.store, summary, report=job.report, indexed=False)
    return {**document, "judges": {name: document["judges"][name] for name in found}}


def _earlier(store: RunFolder, part: str) -> dict[str, Any]:
    """A part of an earlier calibration, by judge; a damaged file is written anew."""
    if not store.has(CALIBRATION):
        return {}
    try:
        found = store.read_json(CALIBRATION).get(part)
    except StorageError:
        return {}
    return found if isinstance(found, dict) else {}


def with_parts(summary: RunSummary, parts: Mapping[str, Mapping[str, Any]]) -> RunSummary:
    """The summary with these parts of `judge_reliability.by_judge`, which is made where there was no spot check."""
    reliability = dict(summary.judge_reliability or {})
    if not reliability:
        reliability = judge_reliability({})
        reliability.pop("warnings")
    by_judge = {name: dict(report) for name, report in (reliability.get("by_judge") or {}).items()}
    for name, found in parts.items():
        by_judge.setdefault(name, {}).update(found)
    return summary.model_copy(update={"judge_reliability": {**reliability, "by_judge": by_judge}})


def _of_judge(setting: _Setting, judge: Judge) -> dict[str, Any]:
    job = setting.job
    own = (item for item in job.store.judge_inputs() if item.judge == judge.name)
    inputs = {item.case_id: item.sha256 for item in own if judge.not_asked(item) is None}
    verdicts = {
        case_id: setting.judgments[key].verdict
        for case_id in inputs
        if (key := JudgmentKey("primary", judge.name, case_id)) in setting.judgments
        and setting.judgments[key].verdict is not None
    }
    scale, pass_score = scale_of(judge), pass_score_of(judge)
    labels = count_labels(_as_said(job, judge.name, scale), judge.name, setting.cases, inputs, scale)
    if not labels.by_case:
        why = f"; {labels.notes[0]}" if labels.notes else ""
        raise ConfigError(f"{job.labels.path}: no label is about a case that {judge.name} judged in this run{why}")
    clusters = _clusters(setting, inputs)
    cases = _anchored(labels, verdicts, clusters, pass_score)
    part = labelled_part(judge.name, list(labels.by_case), len(inputs), job.labels.sheets)
    anchors: dict[str, Any] = {
        "labels": {
            "path": job.labels.path,
            "sha256": job.labels.sha256,
            "annotators": label_counts(labels),
            "n_cases": len(labels.by_case),
            "n_without_verdict": len(labels.by_case) - len(cases),
            "part": part.kind,
            "part_reason": part.reason,
            **labels.counts,
        },
        "notes": [*labels.notes, *_what_can_be_said(labels, cases, scale)],
        **anchor_report(cases, scale, pass_score, job.cluster_by),
    }
    anchors["baseline"], comparator = _second_opinions(setting, judge, cases)
    readings = _readings(labels, verdicts, clusters, pass_score)
    corrected = {name: corrected_report(item, part, job.width) for name, item in readings.items()}
    labels_by_case = {
        case_id: {name: label.score if label.passed is None else label.passed for name, label in given.items()}
        for case_id, given in labels.by_case.items()
    }
    return {
        "anchors": anchors,
        "corrected": corrected,
        "comparator_value": comparator,
        "labels_by_case": labels_by_case,
    }


def _as_said(job: CalibrateJob, judge: str, scale: tuple[int, int]) -> Sequence[HumanLabel]:
    """The labels as they are meant: scores on the judge's scale, or pass and fail.

    Raises:
        ConfigError: scores do not seem to be on the judge's scale, and nobody said what they are.
    """
    labels = job.labels.labels
    if job.scores_are == "pass":
        odd = [label for label in labels if label.judge in (None, judge) and label.score not in (None, 0, 1)]
        if odd:
            where = odd[0].place or job.labels.path
            raise ConfigError(f"{where}: {odd[0].score} is neither pass (1) nor fail (0); leave out --scores-are pass")
        return [
            label if label.score is None else label.model_copy(update={"score": None, "passed": label.score == 1})
            for label in labels
        ]
    why = None if job.scores_are == "scores" else other_scale(labels, judge, scale)
    if why is not None and not any(sheet.judge == judge for sheet in job.labels.sheets):
        raise ConfigError(
            f"{job.labels.path}: {why}; if 1 is a pass and 0 a fail, add --scores-are pass, or call the column `pass`; "
            f"labels of another scale must be written on that of the judge; if they are on it, add --scores-are scores"
        )
    return labels


def _clusters(setting: _Setting, case_ids: Mapping[str, str]) -> dict[str, str] | None:
    """By case id; a case without a value stands for itself."""
    field = setting.job.cluster_by
    if field is None:
        return None
    found = {}
    for case_id in case_ids:
        values = slice_values(setting.cases[case_id], field) if case_id in setting.cases else ()
        if values:
            found[case_id] = " ".join(values)
    if not found:
        raise ConfigError(f"--cluster-by {field}: no judged case has a value for it")
    return found


def _anchored(
    labels: LabelSet, verdicts: Verdicts, clusters: Mapping[str, str] | None, pass_score: int | None
) -> list[Anchored]:
    return [
        Anchored(
            case_id=case_id,
            cluster=None if clusters is None else clusters.get(case_id),
            scores=tuple(labels.scores(case_id)),
            classes=tuple(labels.classes(case_id, pass_score)),
            judge_score=verdicts[case_id].score,
            judge_class=verdict_class(verdicts[case_id], pass_score),
        )
        for case_id in labels.by_case
        if case_id in verdicts
    ]


def verdict_class(verdict: Verdict, pass_score: int | None) -> bool | None:
    """Whether a verdict passes its case; a yes passes."""
    if verdict.score is None:
        return verdict.answer
    return None if pass_score is None else verdict.score >= pass_score


def _readings(
    labels: LabelSet, verdicts: Verdicts, clusters: Mapping[str, str] | None, pass_score: int | None
) -> dict[str, Readings]:
    """The mean score and the pass rate, as far as people and judge give them."""
    full = (
        None if clusters is None else {name: f"= {clusters[name]}" if name in clusters else name for name in verdicts}
    )
    human_scores = {case_id: mean_score(labels.scores(case_id)) for case_id in labels.by_case}
    human_classes = {case_id: majority(labels.classes(case_id, pass_score)) for case_id in labels.by_case}
    scores = {case_id: float(item.score) for case_id, item in verdicts.items() if item.score is not None}
    classes = {case_id: verdict_class(item, pass_score) for case_id, item in verdicts.items()}
    found = {
        "score": Readings({name: value for name, value in human_scores.items() if value is not None}, scores, full),
        "pass_rate": Readings(
            {name: float(value) for name, value in human_classes.items() if value is not None},
            {name: float(value) for name, value in classes.items() if value is not None},
            full,
        ),
    }
    return {name: item for name, item in found.items() if item.human and item.judge}


def _what_can_be_said(labels: LabelSet, cases: Sequence[Anchored], scale: tuple[int, int]) -> list[str]:
    """What a reader must know of these labels."""
    notes = []
    if len(labels.annotators) == 1:
        notes.append(
            "one annotator only: the judge is held against one person, and how far people agree with each other is "
            "not known; everything else holds"
        )
    given = [label for own in labels.by_case.values() for label in own.values()]
    scores = {label.score for label in given if label.score is not None}
    classes = {label.passed for label in given if label.passed is not None}
    if len(scores) + len(classes) == 1:
        notes.append(
            "every label is the same: kappa, AC2 and alpha say nothing, and one of sensitivity and specificity has no "
            "case; bias and the corrected mean hold"
        )
    if not scores and scale != (0, 1):
        notes.append("the labels are pass or fail: figures of scores do not apply")
    elif scores <= {0, 1} and scale[1] > 1 and len(given) >= 10:
        notes.append(
            f"every score is 0 or 1 on a scale of {scale[0]} to {scale[1]}; if they mean fail and pass, write no and "
            "yes, or call the column pass"
        )
    n_without = len(labels.by_case) - len(cases)
    if n_without:
        notes.append(f"{n_without} labelled cases have no verdict of the judge and are in no figure")
    return notes


def _second_opinions(
    setting: _Setting, judge: Judge, cases: Sequence[Anchored]
) -> tuple[dict[str, Any] | None, dict[str, Any] | None]:
    """The baseline beside the judge, and what a flag of the spot check is worth; None where there is no such thing."""
    job, pass_score = setting.job, pass_score_of(judge)
    check = _last_check(job.store.checks(), judge.name)
    comparator = baseline = None
    if check is not None:
        pairs = pairs_of(check, setting.judgments)
        against = {
            "check": check.check,
            "kind": check.kind,
            "model_id": check.model_id,
            "model": check.model,
            "prompt_version": check.prompt_version,
        }
        scored = [(pair.case_id, compare_pair(pair, pass_score)) for pair in pairs]
        flags = {case_id: item.disagrees for case_id, item in scored if item is not None}
        comparator = comparator_report(cases, flags, against)
        seconds = {pair.case_id: pair.second for pair in pairs if isinstance(pair.second, Verdict)}
        baseline = baseline_report(cases, _classes(seconds, pass_score), against)
    if job.baseline is not None:
        others, about = job.baseline(judge.name)
        baseline = baseline_report(cases, _classes(others, pass_score), about)
    return baseline, comparator


def _classes(verdicts: Verdicts, pass_score: int | None) -> dict[str, bool]:
    found = {case_id: verdict_class(verdict, pass_score) for case_id, verdict in verdicts.items()}
    return {case_id: passed for case_id, passed in found.items() if passed is not None}


def _last_check(checks: Sequence[SpotCheckRecord], judge: str) -> SpotCheckRecord | None:
    """The last complete check that asked something else than the judge itself."""
    own = [item for item in checks if item.judge == judge and item.complete and item.kind != "repeat"]
    return own[-1] if own else None
