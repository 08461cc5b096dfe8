"""From a stored run and a file of labels to a calibration of its judges."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, cast

from judgekit.analysis.slices import DIMENSIONS
from judgekit.core.errors import ConfigError, did_you_mean
from judgekit.core.human_labels import LABELS, LabelFile
from judgekit.core.judgments import JudgmentKey, last_judgments
from judgekit.core.runs import RunSummary
from judgekit.storage.label_files import read_labels
from judgekit.storage.stored_summary import read_summary
from judgekit.workflows.calibrate import CalibrateJob, Verdicts
from judgekit.workflows.models import Options
from judgekit.workflows.panels import PANEL
from judgekit.workflows.stored import StoredRun, open_stored

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
    baseline: str | None = None
    """Another run, whose verdicts of the same judge are the baseline."""
    scores_are: str | None = None
    """`scores` or `pass`: what whole numbers among the labels are; None: scores, where that can be."""


def open_calibration(run: str, wanted: CalibrationWanted, options: Options) -> CalibrateJob:
    """A calibration of a stored run, ready to go; nothing is written yet.

    Raises:
        ConfigError: no such run, judge, field or file; a run without figures; labels that do not say which of several
            judges they are about.
        StorageError: the run is damaged.
    """
    stored = open_stored(run, options)
    summary = finished_summary(stored, run)
    labels = _labels(stored, wanted.labels)
    field = wanted.cluster_by or stored.config.cluster_by
    if field is not None and field not in CLUSTER_FIELDS and not field.startswith("metadata."):
        raise ConfigError(
            f"--cluster-by {field}: no such field of a case{did_you_mean(field, [*CLUSTER_FIELDS, 'metadata.<name>'])}"
        )
    if wanted.width is not None and not wanted.width > 0:
        raise ConfigError(f"--width {wanted.width}: expected a number above 0, in points of the score")
    return CalibrateJob(
        scores_are=_scores_are(wanted.scores_are),
        store=stored.folder,
        summary=summary,
        judges=[stored.judge(name) for name in _judges(stored, wanted.judge, labels)],
        labels=labels,
        cluster_by=field,
        width=wanted.width,
        baseline=None if wanted.baseline is None else _baseline(wanted.baseline, options),
        manifest=stored.manifest,
        report=stored.config.report,
    )


def _scores_are(said: str | None) -> Literal["scores", "pass"] | None:
    if said not in (None, "scores", "pass"):
        raise ConfigError(f"--scores-are {said!r}: expected scores or pass")
    return cast('Literal["scores", "pass"] | None', said)


def finished_summary(stored: StoredRun, run: str) -> RunSummary:
    """The figures of a run.

    Raises:
        ConfigError: it has none yet.
        StorageError: they are damaged.
    """
    summary = read_summary(stored.folder)
    if summary is None:
        raise ConfigError(f"{stored.folder.path}: has no metrics.json yet; judgekit run --resume {run} writes it")
    return summary


def _labels(stored: StoredRun, path: Path | None) -> LabelFile:
    if path is None and not stored.folder.has(LABELS):
        raise ConfigError(
            f"{stored.folder.path}: has no {LABELS}; name a file by --labels, or make one: "
            f"judgekit label {stored.manifest.run_id}"
        )
    return read_labels(path or stored.folder.path / LABELS)


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


def _baseline(run: str, options: Options) -> Callable[[str], tuple[Verdicts, Mapping[str, Any]]]:
    other = open_stored(run, options)
    found = last_judgments(other.folder.judgments())

    def verdicts(judge: str) -> tuple[Verdicts, Mapping[str, Any]]:
        config = other.judge_config(judge)
        own = {
            key.case_id: item.verdict
            for key, item in found.items()
            if key == JudgmentKey("primary", judge, key.case_id) and item.verdict is not None
        }
        about = {
            "run_id": other.manifest.run_id,
            "kind": "run",
            "model_id": PANEL if config.panel is not None else config.model,
            "model": ", ".join(other.config.models[name].model for name in config.asked),
            "prompt_version": config.prompt_version,
        }
        return own, about

    return verdicts
