"""What a report shows beside the run's own figures: the history of its judges, labels of people, a bridge."""

from collections.abc import Mapping
from typing import Any

from judgekit.core.errors import JudgekitError
from judgekit.core.human_labels import CALIBRATION, LABELS, HumanLabel
from judgekit.core.runs import BRIDGE, RunSummary
from judgekit.storage.database import DATABASE, Database
from judgekit.storage.run_folder import RunFolder

FEWEST_CHECKS = 2
"""Checks from which a history is more than its one check."""

WAIT_SECONDS = 2.0
"""How long a report waits for a database that another process writes; it is written without its history then."""


def histories_of(folder: RunFolder, summary: RunSummary | None) -> list[dict[str, Any]]:
    """Drift reports of the judges of a run, as documents, from the database beside it.

    Of the run's own wordings and data set. Empty where the database knows fewer than two checks of a judge, or cannot
    be read: a report never fails for its history.
    """
    if summary is None or not summary.judges or not (folder.path.parent / DATABASE).exists():
        return []
    from judgekit.core.history_points import dataset_sha256

    dataset = dataset_sha256(summary.cases["sha256"], folder.manifest())
    database = Database(folder.path.parent, busy_seconds=WAIT_SECONDS)
    found = []
    try:
        for judge, about in summary.judges.items():
            checks = [
                item for item in database.checks(judge, dataset) if item.prompt_version == about["prompt_version"]
            ]
            if len(checks) >= FEWEST_CHECKS:
                from judgekit.analysis.drift_states import drift_report, histories

                found += [drift_report(history).document() for history in histories(checks)]
    except JudgekitError:
        return []
    return [document for document in found if len(document["timeline"]) >= FEWEST_CHECKS]


def labels_of(folder: RunFolder) -> dict[str, list[HumanLabel]]:
    """What people say, by case id: the labels that a calibration counted, and those of `judgekit label`.

    Of several labels by one person on one case the last counts. A file that cannot be read gives none.
    """
    found: dict[tuple[str, str | None, str], HumanLabel] = {}
    for label in [*_counted(folder), *_written(folder)]:
        found[label.case_id, label.judge, label.annotator] = label
    by_case: dict[str, list[HumanLabel]] = {}
    for label in found.values():
        by_case.setdefault(label.case_id, []).append(label)
    return by_case


def _written(folder: RunFolder) -> list[HumanLabel]:
    if not folder.has(LABELS):
        return []
    from judgekit.storage.label_files import read_labels

    try:
        return list(read_labels(folder.path / LABELS).labels)
    except JudgekitError:
        return []


def _counted(folder: RunFolder) -> list[HumanLabel]:
    """Labels in calibration.json, which may come from a file that is not in the run folder."""
    kept = _document(folder, CALIBRATION).get("labels_by_case")
    if not isinstance(kept, dict):
        return []
    return [
        HumanLabel(
            case_id=case_id,
            judge=judge,
            annotator=annotator,
            passed=value if isinstance(value, bool) else None,
            score=None if isinstance(value, bool) else value,
        )
        for judge, cases in kept.items()
        for case_id, given in cases.items()
        for annotator, value in given.items()
    ]


def bridge_of(folder: RunFolder) -> Mapping[str, Any] | None:
    """The bridge from an older run, where one leads here."""
    found = _document(folder, BRIDGE)
    return found if "judges" in found else None


def _document(folder: RunFolder, name: str) -> Mapping[str, Any]:
    if not folder.has(name):
        return {}
    try:
        return folder.read_json(name)
    except JudgekitError:
        return {}
