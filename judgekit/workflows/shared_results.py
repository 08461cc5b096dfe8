"""A stored run in the shared format Every Eval Ever: the document of its figures, and the file of its samples."""

import hashlib
import json
import uuid
from collections.abc import Container
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from judgekit.analysis.joint import joint_columns
from judgekit.core.components import Judge
from judgekit.core.human_labels import CALIBRATION
from judgekit.core.repeats import pass_figure
from judgekit.core.runs import CONFIG
from judgekit.core.scores import Column, Pooled
from judgekit.reports.every_eval_ever import SharedRun, aggregate_document, sample_records
from judgekit.storage.run_files import disk_faults_named, replacing
from judgekit.storage.run_folder import RunFolder
from judgekit.storage.stored_cases import StoredCases
from judgekit.workflows.compared_runs import components_of
from judgekit.workflows.models import Options
from judgekit.workflows.stored import open_stored
from judgekit.workflows.stored_runs import stored_figures


def write_shared(folder: RunFolder, target: Path) -> Path:
    """Write both files where the shared repository has them; the document comes last, since it has the samples' hash.

    Args:
        folder: the run.
        target: the root of the repository, or any folder; `data/` is made in it.

    Returns:
        The document.

    Raises:
        ConfigError: the run has no figures yet.
        StorageError: it is damaged, or a file cannot be written.
    """
    run = _shared(folder)
    # Named by the run, so that an export that is made again takes the place of the first.
    name = uuid.UUID(bytes=hashlib.sha256(run.manifest.run_id.encode()).digest()[:16], version=4)
    place = Path("data", run.manifest.name, "unknown", run.system["id"].replace("/", "_"))
    with disk_faults_named(target, "cannot be created"):
        (target / place).mkdir(parents=True, exist_ok=True)
    samples = place / f"{name}_samples.jsonl"
    digest, n_rows = hashlib.sha256(), 0
    with replacing(target / samples) as stream, StoredCases(folder) as cases:
        for record in sample_records(run, cases):
            line = json.dumps(record, ensure_ascii=False, allow_nan=False).encode("utf-8", "replace") + b"\n"
            digest.update(line)
            stream.write(line)
            n_rows += 1
    about = {"file_path": samples.as_posix(), "checksum": digest.hexdigest(), "total_rows": n_rows}
    document = aggregate_document(run, about, datetime.now(UTC).isoformat())
    path = target / place / f"{name}.json"
    with replacing(path) as stream:
        stream.write(json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False).encode("utf-8", "replace"))
    return path


def _shared(folder: RunFolder) -> SharedRun:
    metrics, summary = stored_figures(folder)
    stored = open_stored(str(folder.path), Options(needs_keys=False))
    components, _ = components_of(stored, metrics.get("own_code", {}))
    columns: dict[str, Column | Pooled] = {}
    judge_of: dict[str, str] = {}
    for name, component in components.items():
        own: dict[str, Column | Pooled] = {
            column.aggregate or column.name: column for column in component.columns() if column.aggregate != ""
        }
        own |= {figure.name: figure for figure in component.pooled()}
        columns |= own
        if isinstance(component, Judge):
            judge_of |= dict.fromkeys(own, name)
    scores = [column for component in components.values() for column in component.columns()]
    columns |= {column.name: column for column in joint_columns(scores)}
    by_score = {column.name: figure for figure, column in columns.items()}
    for name in summary.overall:
        of_answers = pass_figure(name)
        if of_answers is not None:  # all of k answers pass, or one of them does
            columns[name] = Column(name, binary=True)
            figure = by_score.get(of_answers[0], of_answers[0])
            judge_of |= {name: judge_of[figure]} if figure in judge_of else {}
    return SharedRun(
        manifest=folder.manifest(),
        summary=summary,
        config=folder.read_json(CONFIG),
        prompts=folder.prompts(),
        columns=columns,
        judge_of=judge_of,
        experts=_experts(folder, columns),
    )


def _experts(folder: RunFolder, figures: Container[str]) -> dict[str, float]:
    """By figure, the mean of the human labels that the run was held against."""
    if not folder.has(CALIBRATION):
        return {}
    found: dict[str, float] = {}
    judges: dict[str, Any] = folder.read_json(CALIBRATION).get("judges", {})
    for judge, report in judges.items():
        corrected = report.get("corrected") or {}
        # Of yes and no without a pass, the share that passes is the share of yes, which is the judge's own figure.
        passing = f"{judge}_pass_rate" if f"{judge}_pass_rate" in figures else judge
        for part, about in corrected.items():
            value = about.get("human_mean")
            if isinstance(value, int | float):
                found[{"score": judge, "pass_rate": passing}.get(part, part)] = float(value)
    return found
