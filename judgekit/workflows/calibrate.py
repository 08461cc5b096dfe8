"""`judgekit calibrate`: the judges of a stored run held against human labels, written into the same run folder."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from judgekit.analysis.judge_calibration import LabelledCase, baseline_report, calibration_report, comparator_report
from judgekit.analysis.label_sets import (
    LabelSet,
    Readings,
    corrected_report,
    count_labels,
    label_counts,
    labelled_part,
    majority,
    mean_score,
    other_scale,
)
from judgekit.analysis.probability_calibration import probability_report, weighed_verdict
from judgekit.analysis.slices import DIMENSIONS, slice_values
from judgekit.analysis.stored_figures import rounded
from judgekit.analysis.verdict_pairs import compare_pair
from judgekit.core.cases import Case
from judgekit.core.components import Judge
from judgekit.core.errors import ConfigError, StorageError, did_you_mean
from judgekit.core.human_labels import CALIBRATION, LABELS, HumanLabel, LabelFile
from judgekit.core.judgments import Judgment, JudgmentKey, Verdict, last_judgments
from judgekit.core.verdict_kinds import Kind, Scale
from judgekit.engine.passes import Observer
from judgekit.storage.label_files import read_labels
from judgekit.storage.run_folder import RunFolder
from judgekit.workflows.judge_reliability import add_parts, pairs_of
from judgekit.workflows.models import Options
from judgekit.workflows.panel_rulings import PANEL
from judgekit.workflows.stored import StoredRun, finished_summary, open_stored

Verdicts = Mapping[str, Verdict]
"""By case id."""

CLUSTER_FIELDS = (*DIMENSIONS, "question")


@dataclass(frozen=True)
class CalibrationWanted:
    """What the command line says of a calibration."""

    labels: Path | None = None
    """File of labels; None: the one that `judgekit label` wrote into the run."""
    judge: str | None = None
    cluster_by: str | None = None
    """Field that clusters come from; None: that of the config, if it names one."""
    width: float | None = None
    """Wanted width of an interval."""
    baseline: str | None = None
    """Another run, whose verdicts of the same judge are the baseline; None: the spot check, if there is one."""
    scores_are: str | None = None
    """`scores` or `pass`: what whole numbers among the labels are; None: scores, if that can be."""


@dataclass(frozen=True)
class _Setting:
    """What all judges share."""

    wanted: CalibrationWanted
    labels: LabelFile
    folder: RunFolder
    cases: Mapping[str, Case]
    judgments: Mapping[JudgmentKey, Judgment]
    baseline: tuple[StoredRun, Mapping[JudgmentKey, Judgment]] | None


def calibrate(run: str, wanted: CalibrationWanted, options: Options, observer: Observer) -> tuple[Path, dict[str, Any]]:
    """Hold judges against human labels, and write calibration.json, metrics.json and summary.md.

    The observer is told of each label that could not be read, before anything is calculated.

    Returns:
        The run folder, and what calibration.json holds of these judges, with numbers rounded.

    Raises:
        ConfigError: no such run, judge, field or file; a run without figures; labels that do not say which of several
            judges they are about, or that are about no case of the run; no case has the field of the clusters.
        StorageError: the run is damaged, cannot be written, or another process writes it.
    """
    stored = open_stored(run, options)
    folder, summary = stored.folder, finished_summary(stored, run)
    if wanted.labels is None and not folder.has(LABELS):
        raise ConfigError(
            f"{folder.path}: has no {LABELS}; name a file by --labels, or make one: "
            f"judgekit label {stored.manifest.run_id}"
        )
    labels = read_labels(wanted.labels or folder.path / LABELS)
    wanted = replace(wanted, cluster_by=wanted.cluster_by or stored.config.cluster_by)
    _check_wanted(wanted)
    judges = [stored.judge(name) for name in _judges(stored, wanted.judge, labels)]
    other = None if wanted.baseline is None else open_stored(wanted.baseline, options)
    for problem in labels.problems:
        observer.note(problem)
    with folder.locked_as_found(stored.manifest):
        setting = _Setting(
            wanted=wanted,
            labels=labels,
            folder=folder,
            cases={case.id: case for case in folder.cases()},
            judgments=last_judgments(folder.judgments()),
            baseline=None if other is None else (other, last_judgments(other.folder.judgments())),
        )
        found = {judge.name: _of_judge(setting, judge) for judge in judges}
        labelled = {name: parts.pop("labels_by_case") for name, parts in found.items()}
        document: dict[str, Any] = rounded(
            {
                "schema_version": 1,
                "run_id": summary.run_id,
                "labels": {"path": labels.path, "sha256": labels.sha256, "problems": list(labels.problems)},
                "judges": {**_earlier(folder, "judges"), **found},
                "labels_by_case": {**_earlier(folder, "labels_by_case"), **labelled},
            }
        )
        folder.write_json(CALIBRATION, document)
        here = {name: document["judges"][name] for name in found}
        add_parts(folder, summary, here, report=stored.config.report)
    return folder.path, {**document, "judges": here}


def _check_wanted(wanted: CalibrationWanted) -> None:
    field = wanted.cluster_by
    if field is not None and field not in CLUSTER_FIELDS and not field.startswith("metadata."):
        raise ConfigError(
            f"--cluster-by {field}: no such field of a case{did_you_mean(field, [*CLUSTER_FIELDS, 'metadata.<name>'])}"
        )
    if wanted.width is not None and not wanted.width > 0:
        raise ConfigError(f"--width {wanted.width}: expected a number above 0, in points of the score")
    if wanted.scores_are not in (None, "scores", "pass"):
        raise ConfigError(f"--scores-are {wanted.scores_are!r}: expected scores or pass")


def _judges(stored: StoredRun, judge: str | None, labels: LabelFile) -> list[str]:
    """The judge that was asked for, those that the labels name, or the only one."""
    there = [item.name for item in stored.config.judges]
    if judge is not None:
        return [stored.judge_config(judge).name]
    named = {label.judge for label in labels.labels if label.judge is not None}
    found = [name for name in there if name in named]
    if found:
        return found
    if named:
        raise ConfigError(
            f"{labels.path}: is about {', '.join(sorted(named))}; the run has {', '.join(there) or 'no judges'}"
        )
    if len(there) == 1:
        return there
    names = ", ".join(there) or "there is none"
    raise ConfigError(f"{labels.path}: does not say which judge it is about; name it by --judge ({names})")


def _earlier(folder: RunFolder, part: str) -> dict[str, Any]:
    """A part of an earlier calibration, by judge; a damaged file is written again."""
    if not folder.has(CALIBRATION):
        return {}
    try:
        found = folder.read_json(CALIBRATION).get(part)
    except StorageError:
        return {}
    return found if isinstance(found, dict) else {}


def _of_judge(setting: _Setting, judge: Judge) -> dict[str, Any]:
    own = (item for item in setting.folder.judge_inputs() if item.judge == judge.name)
    inputs = {item.case_id: item.sha256 for item in own if judge.not_asked(item) is None}
    every = _verdicts(setting.judgments, judge.name)
    verdicts = {case_id: every[case_id] for case_id in inputs if case_id in every}
    scale, pass_score = _scale_of(judge.kind), pass_score_of(judge.kind)
    labels = count_labels(_as_said(setting, judge.name, scale), judge.name, setting.cases, inputs, scale)
    file = setting.labels
    if not labels.by_case:
        why = f"; {labels.notes[0]}" if labels.notes else ""
        raise ConfigError(f"{file.path}: no label is about a case that {judge.name} judged in this run{why}")
    clusters = _clusters(setting, inputs)
    cases = _labelled_cases(labels, verdicts, clusters, judge.kind)
    part = labelled_part(judge.name, list(labels.by_case), len(inputs), file.sheets)
    compared: dict[str, Any] = {
        "labels": {
            "path": file.path,
            "sha256": file.sha256,
            "annotators": label_counts(labels),
            "n_cases": len(labels.by_case),
            "n_without_verdict": len(labels.by_case) - len(cases),
            "part": part.kind,
            "part_reason": part.reason,
            **labels.counts,
        },
        "notes": [*labels.notes, *_what_can_be_said(labels, cases, scale)],
        **calibration_report(cases, scale, pass_score, setting.wanted.cluster_by),
    }
    compared["probabilities"] = _probabilities(cases, verdicts, judge.kind)
    compared["baseline"], comparator = _second_opinions(setting, judge, cases)
    readings = _readings(labels, verdicts, clusters, judge.kind)
    return {
        "anchors": compared,
        "corrected": {name: corrected_report(item, part, setting.wanted.width) for name, item in readings.items()},
        "comparator_value": comparator,
        "labels_by_case": {
            case_id: {name: label.score if label.passed is None else label.passed for name, label in given.items()}
            for case_id, given in labels.by_case.items()
        },
    }


def _verdicts(judgments: Mapping[JudgmentKey, Judgment], judge: str) -> dict[str, Verdict]:
    """The primary verdicts of a judge, by case id."""
    return {
        key.case_id: item.verdict
        for key, item in judgments.items()
        if (key.role, key.judge) == ("primary", judge) and item.verdict is not None
    }


def _as_said(setting: _Setting, judge: str, scale: tuple[int, int]) -> Sequence[HumanLabel]:
    """The labels as they are meant: scores on the judge's scale, or pass and fail.

    Raises:
        ConfigError: scores do not seem to be on the judge's scale, and nobody said what they are.
    """
    path, labels, scores_are = setting.labels.path, setting.labels.labels, setting.wanted.scores_are
    if scores_are == "pass":
        odd = [label for label in labels if label.judge in (None, judge) and label.score not in (None, 0, 1)]
        if odd:
            where = odd[0].place or path
            raise ConfigError(f"{where}: {odd[0].score} is neither pass (1) nor fail (0); leave out --scores-are pass")
        return [
            label if label.score is None else label.model_copy(update={"score": None, "passed": label.score == 1})
            for label in labels
        ]
    why = None if scores_are == "scores" else other_scale(labels, judge, scale)
    if why is not None and not any(sheet.judge == judge for sheet in setting.labels.sheets):
        raise ConfigError(
            f"{path}: {why}; if 1 is a pass and 0 a fail, add --scores-are pass, or call the column `pass`; "
            f"labels of another scale must be written on that of the judge; if they are on it, add --scores-are scores"
        )
    return labels


def _clusters(setting: _Setting, case_ids: Mapping[str, str]) -> dict[str, str] | None:
    """By case id; a case without a value stands for itself."""
    field = setting.wanted.cluster_by
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


def _labelled_cases(
    labels: LabelSet, verdicts: Verdicts, clusters: Mapping[str, str] | None, kind: Kind
) -> list[LabelledCase]:
    return [
        LabelledCase(
            case_id=case_id,
            cluster=None if clusters is None else clusters.get(case_id),
            scores=tuple(labels.scores(case_id)),
            classes=tuple(labels.classes(case_id, pass_score_of(kind))),
            judge_score=verdicts[case_id].score,
            judge_class=kind.side(verdicts[case_id]),
        )
        for case_id in labels.by_case
        if case_id in verdicts
    ]


def _probabilities(cases: Sequence[LabelledCase], verdicts: Verdicts, kind: Kind) -> dict[str, Any] | None:
    """What the probabilities of the verdicts are worth; None if there are none."""
    if all(verdicts[case.case_id].probabilities is None for case in cases):
        return None
    weighed = [
        weighed_verdict(kind, verdicts[case.case_id], case.human_class, case.cluster or f"= {case.case_id}")
        for case in cases
    ]
    return probability_report([item for item in weighed if item is not None], len(cases))


def pass_score_of(kind: Kind) -> int | None:
    """Lowest score that passes; None for what is not a scale, or has no pass."""
    return kind.pass_score if isinstance(kind, Scale) else None


def _scale_of(kind: Kind) -> tuple[int, int]:
    """Lowest and highest score."""
    low, high = kind.bounds
    return int(low), int(high)


def _readings(
    labels: LabelSet, verdicts: Verdicts, clusters: Mapping[str, str] | None, kind: Kind
) -> dict[str, Readings]:
    """The mean score and the pass rate, as far as people and judge give them."""
    full = (
        None if clusters is None else {name: f"= {clusters[name]}" if name in clusters else name for name in verdicts}
    )
    human_scores = {case_id: mean_score(labels.scores(case_id)) for case_id in labels.by_case}
    human_classes = {case_id: majority(labels.classes(case_id, pass_score_of(kind))) for case_id in labels.by_case}
    scores = {case_id: float(item.score) for case_id, item in verdicts.items() if item.score is not None}
    classes = {case_id: kind.side(item) for case_id, item in verdicts.items()}
    found = {
        "score": Readings({name: value for name, value in human_scores.items() if value is not None}, scores, full),
        "pass_rate": Readings(
            {name: float(value) for name, value in human_classes.items() if value is not None},
            {name: float(value) for name, value in classes.items() if value is not None},
            full,
        ),
    }
    return {name: item for name, item in found.items() if item.human and item.judge}


def _what_can_be_said(labels: LabelSet, cases: Sequence[LabelledCase], scale: tuple[int, int]) -> list[str]:
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
    setting: _Setting, judge: Judge, cases: Sequence[LabelledCase]
) -> tuple[dict[str, Any] | None, dict[str, Any] | None]:
    """The baseline beside the judge, and what a flag of the spot check is worth; None if there is no such thing."""
    comparator = baseline = None
    # The last spot check that asked something else than the judge itself.
    complete = [item for item in setting.folder.spot_checks() if item.judge == judge.name and item.complete]
    spot_check = next((item for item in reversed(complete) if item.kind != "repeat"), None)
    if spot_check is not None:
        pairs = pairs_of(spot_check, setting.judgments)
        against = {
            "check": spot_check.check,
            "kind": spot_check.kind,
            "model_id": spot_check.model_id,
            "model": spot_check.model,
            "prompt_version": spot_check.prompt_version,
        }
        scored = [(pair.case_id, compare_pair(pair, judge.kind)) for pair in pairs]
        flags = {case_id: item.disagrees for case_id, item in scored if item is not None}
        comparator = comparator_report(cases, flags, against)
        seconds = {pair.case_id: pair.second for pair in pairs if isinstance(pair.second, Verdict)}
        baseline = baseline_report(cases, _classes(seconds, judge.kind), against)
    if setting.baseline is not None:
        other, judgments = setting.baseline
        config = other.judge_config(judge.name)
        against = {
            "run_id": other.manifest.run_id,
            "kind": "run",
            "model_id": PANEL if config.panel is not None else str(config.model),
            "model": ", ".join(other.config.models[name].model for name in config.asked),
            "prompt_version": config.prompt_version,
        }
        baseline = baseline_report(cases, _classes(_verdicts(judgments, judge.name), judge.kind), against)
    return baseline, comparator


def _classes(verdicts: Verdicts, kind: Kind) -> dict[str, bool]:
    found = {case_id: kind.side(verdict) for case_id, verdict in verdicts.items()}
    return {case_id: passed for case_id, passed in found.items() if passed is not None}
