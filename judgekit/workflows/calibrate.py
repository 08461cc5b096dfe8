"""`judgekit calibrate`: the judges of a stored run held against human labels, written into the same run folder."""

from collections.abc import Mapping, Sequence, Set
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from judgekit.analysis.judge_calibration import baseline_report, calibration_report, comparator_report
from judgekit.analysis.label_sets import (
    LabelSet,
    corrected_report,
    count_labels,
    label_counts,
    labelled_part,
    other_scale,
)
from judgekit.analysis.labelled_cases import LabelledCase, readings_of
from judgekit.analysis.probability_calibration import probability_report, weighed_verdict
from judgekit.analysis.slices import DIMENSIONS, slice_values
from judgekit.analysis.stored_figures import rounded
from judgekit.analysis.verdict_pairs import compare_pair
from judgekit.core.components import Judge
from judgekit.core.errors import ConfigError, StorageError, did_you_mean
from judgekit.core.human_labels import CALIBRATION, LABELS, HumanLabel, LabelFile
from judgekit.core.judgments import JudgeInput, Judgment, JudgmentKey, Verdict, VerdictError
from judgekit.core.verdict_kinds import Criteria, Kind
from judgekit.engine.passes import Observer
from judgekit.judges.from_rubric import settled
from judgekit.storage.label_files import read_labels
from judgekit.storage.run_folder import RunFolder, of_judge
from judgekit.storage.stored_judgments import StoredJudgments
from judgekit.workflows.judge_reliability import add_parts, pairs_of
from judgekit.workflows.models import Options
from judgekit.workflows.panel_rulings import PANEL
from judgekit.workflows.stored import StoredRun, finished_summary, open_stored

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
    case_ids: Set[str]
    """Of all cases of the run."""
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
    labels = read_labels(wanted.labels or folder.path / LABELS, kinds_of(stored, wanted.judge))
    wanted = replace(wanted, cluster_by=wanted.cluster_by or stored.config.cluster_by)
    _check_wanted(wanted)
    judges = [stored.judge(name) for name in _judges(stored, wanted.judge, labels)]
    other = None if wanted.baseline is None else open_stored(wanted.baseline, options)
    for problem in labels.problems:
        observer.note(problem)
    with folder.locked_as_found(stored.manifest), ExitStack() as files:
        setting = _Setting(
            wanted=wanted,
            labels=labels,
            folder=folder,
            case_ids={case.id for case in folder.cases()},
            judgments=files.enter_context(StoredJudgments(folder)),
            baseline=None if other is None else (other, files.enter_context(StoredJudgments(other.folder))),
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


def kinds_of(stored: StoredRun, judge: str | None = None) -> dict[str | None, Kind]:
    """What labels of each judge of a run are; under None those that name no judge, if they can only be about one."""
    found: dict[str | None, Kind] = {item.name: stored.judge(item.name).kind for item in stored.config.judges}
    sole = judge or (stored.config.judges[0].name if len(found) == 1 else None)
    return {**found, None: found[sole]} if sole in found and sole is not None else found


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
    kind, file = judge.kind, setting.labels
    said, about = _as_said(setting, judge), {label.case_id for label in file.labels}
    inputs: dict[str, str] = {}
    shown: dict[str, JudgeInput] = {}
    for item in setting.folder.judge_inputs(of_judge(judge.name)):
        if judge.not_asked(item) is None:
            inputs[item.case_id] = item.sha256
            if kind.has_parts and item.case_id in about:
                shown[item.case_id] = item
    every = _verdicts(setting.judgments, judge.name)
    verdicts = {case_id: every[case_id] for case_id in inputs if case_id in every}
    whole = [_settled(label, judge, shown) for label in said]
    labels = count_labels(whole, judge.name, setting.case_ids, inputs, kind)
    if not labels.by_case:
        why = f"; {labels.notes[0]}" if labels.notes else ""
        raise ConfigError(f"{file.path}: no label is about a case that {judge.name} judged in this run{why}")
    clusters = _clusters(setting, inputs)
    cases = [
        LabelledCase(case_id, clusters.get(case_id), labels.of_case(case_id), verdicts[case_id], kind)
        for case_id in labels.by_case
        if case_id in verdicts
    ]
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
        "notes": [*labels.notes, *_what_can_be_said(labels, cases, kind)],
        **calibration_report(cases, kind, setting.wanted.cluster_by),
    }
    compared["probabilities"] = _probabilities(cases, kind)
    compared["baseline"], comparator = _second_opinions(setting, judge, cases)
    readings = readings_of(cases, verdicts, kind, judge.name, clusters)
    return {
        "anchors": compared,
        "corrected": {
            name: {**corrected_report(item, part, setting.wanted.width), "scale": _scale(judge, name)}
            for name, item in readings.items()
        },
        "comparator_value": comparator,
        "labels_by_case": {
            case_id: {name: label.value for name, label in given.items()} for case_id, given in labels.by_case.items()
        },
    }


def _scale(judge: Judge, reading: str) -> dict[str, Any] | None:
    """Unit and better direction of what people and the judge are both read for."""
    scales = {column.aggregate or column.name: column.scale for column in judge.columns()}
    # Of yes and no without a pass, the share that passes is the share of yes, which is the judge's own figure.
    own = {"score": (judge.name,), "pass_rate": (f"{judge.name}_pass_rate", judge.name)}
    names = [name for name in own.get(reading, (reading,)) if name in scales]
    return scales[names[0]].model_dump(mode="json") if names else None


def _verdicts(judgments: Mapping[JudgmentKey, Judgment], judge: str) -> dict[str, Verdict]:
    """The primary verdicts of a judge without their reasoning, by case id."""
    return {
        key.case_id: item.verdict.model_copy(update={"reasoning": ""})
        for key, item in judgments.items()
        if (key.role, key.judge) == ("primary", judge) and item.verdict is not None
    }


def _as_said(setting: _Setting, judge: Judge) -> Sequence[HumanLabel]:
    """The labels as they are meant: scores on the judge's scale, or pass and fail.

    Raises:
        ConfigError: scores do not seem to be on the judge's scale, and nobody said what they are.
    """
    path, labels, scores_are = setting.labels.path, setting.labels.labels, setting.wanted.scores_are
    if scores_are is not None and not judge.kind.has_points:
        raise ConfigError(f"--scores-are is about judges that give scores; {judge.name} gives {judge.kind.levels_are}")
    if scores_are == "pass":
        odd = [label for label in labels if label.judge in (None, judge.name) and label.score not in (None, 0, 1)]
        if odd:
            where = odd[0].place or path
            raise ConfigError(f"{where}: {odd[0].score} is neither pass (1) nor fail (0); leave out --scores-are pass")
        return [
            label if label.score is None else label.model_copy(update={"verdict": None, "passed": label.score == 1})
            for label in labels
        ]
    why = None if scores_are == "scores" else other_scale(labels, judge.name, judge.kind.category_bounds)
    if why is not None and not any(sheet.judge == judge.name for sheet in setting.labels.sheets):
        raise ConfigError(
            f"{path}: {why}; if 1 is a pass and 0 a fail, add --scores-are pass, or call the column `pass`; "
            f"labels of another scale must be written on that of the judge; if they are on it, add --scores-are scores"
        )
    return labels


def _settled(label: HumanLabel, judge: Judge, shown: Mapping[str, JudgeInput]) -> HumanLabel:
    """A label with the weights of the criteria that were asked about; one that leaves some out is half a label."""
    kind, about = judge.kind, shown.get(label.case_id)
    if not isinstance(kind, Criteria) or about is None or label.judge not in (None, judge.name) or not label.verdict:
        return label
    try:
        return label.model_copy(update={"verdict": settled(kind, label.verdict, about)})
    except VerdictError:
        return label.model_copy(update={"is_partial": True})


def _clusters(setting: _Setting, case_ids: Mapping[str, str]) -> dict[str, str]:
    """By case id; a case without a value stands for itself."""
    field = setting.wanted.cluster_by
    if field is None:
        return {}
    judged = (case for case in setting.folder.cases() if case.id in case_ids)
    found = {case.id: " ".join(values) for case in judged if (values := slice_values(case, field))}
    if not found:
        raise ConfigError(f"--cluster-by {field}: no judged case has a value for it")
    return found


def _probabilities(cases: Sequence[LabelledCase], kind: Kind) -> dict[str, Any] | None:
    """What the probabilities of the verdicts are worth; None without any."""
    if all(case.verdict.probabilities is None for case in cases):
        return None
    weighed = [
        weighed_verdict(kind, case.verdict, case.human_class, case.cluster or f"= {case.case_id}") for case in cases
    ]
    return probability_report([item for item in weighed if item is not None], len(cases))


def _what_can_be_said(labels: LabelSet, cases: Sequence[LabelledCase], kind: Kind) -> list[str]:
    """What a reader must know of these labels."""
    notes = []
    if len(labels.annotators) == 1:
        notes.append(
            "one annotator only: the judge is held against one person, and how far people agree with each other is "
            "not known; everything else holds"
        )
    given = [label for own in labels.by_case.values() for label in own.values()]
    if len({str(label.value) for label in given}) == 1:
        notes.append(
            "every label is the same: kappa, AC2 and alpha say nothing, and one of sensitivity and specificity has no "
            "case; bias and the corrected mean hold"
        )
    verdicts = [label.verdict for label in given if label.verdict is not None]
    if not verdicts and (kind.has_points or kind.is_nominal):
        notes.append(f"the labels are pass or fail: figures of {kind.unit[1]} do not apply")
    low, high = kind.category_bounds
    if kind.has_points and {item.score for item in verdicts} <= {0, 1} and high > 1 and len(given) >= 10 and verdicts:
        notes.append(
            f"every score is 0 or 1 on a scale of {low} to {high}; if they mean fail and pass, write no and "
            "yes, or call the column pass"
        )
    n_tied = sum(case.people is None and bool(case.said) for case in cases)
    if n_tied:
        notes.append(
            f"people give no label more often than others in {n_tied} of the cases; these count for shares, and among "
            "people, but in no table and no agreement with the judge"
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
        baseline = baseline_report(cases, seconds, against)
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
        baseline = baseline_report(cases, _verdicts(judgments, judge.name), against)
    return baseline, comparator
