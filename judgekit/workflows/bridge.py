"""`judgekit bridge`: the change between two runs, split into system and judge, from three sets of stored scores."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from judgekit.analysis.bridging import bridge_figure
from judgekit.analysis.summary import rounded
from judgekit.core.components import Judge
from judgekit.core.runs import BRIDGE, Manifest, RunSummary
from judgekit.storage.run_folder import RunFolder
from judgekit.workflows.calibrate import with_parts
from judgekit.workflows.closing import closed, write_summary

_Scores = dict[str, dict[str, float]]
"""By score name and case id."""

MOST_NAMED = 50
"""Cases that are in one run only and are listed."""


@dataclass(frozen=True)
class BridgeJudge:
    """A judge that both runs have."""

    judge: Judge
    """As the new run has it."""
    old: Mapping[str, Any]
    """What gave its scores in the old run."""
    new: Mapping[str, Any]
    """What gave them in the new one."""
    same: bool
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class BridgeJob:
    """Two runs and, where judges differ, the old one judged by the judges of the new one."""

    old: RunFolder
    new: RunFolder
    old_id: str
    new_id: str
    judges: Sequence[BridgeJudge]
    only_in_old: Sequence[str]
    """Judges that only the old run has."""
    only_in_new: Sequence[str]
    seed: int
    summary: RunSummary | None
    """Figures of the new run, which the bridge becomes a part of; None where they are damaged or missing."""
    manifest: Manifest
    """Of the new run, as it was opened."""
    report: bool
    """The new run has a report.html."""


def bridge(job: BridgeJob, moved: RunFolder | None, moved_id: str | None) -> dict[str, Any]:
    """Split the change of every figure of the shared judges.

    It is written as bridge.json and into metrics.json of the new run.

    Args:
        job: the two runs.
        moved: the old run judged by the new judges; None where all judges are the same.
        moved_id: its run id.

    Returns:
        What bridge.json holds, with numbers rounded.

    Raises:
        StorageError: a run is damaged, or the file cannot be written.
    """
    names = {column.name for item in job.judges for column in item.judge.columns()}
    old, new = _scores(job.old, names), _scores(job.new, names)
    again = old if moved is None else _scores(moved, names)
    cases_old = {case.id: case for case in job.old.cases()}
    cases_new = {case.id: case for case in job.new.cases()}
    shared = cases_old.keys() & cases_new.keys()
    only_old = [case_id for case_id in cases_old if case_id not in shared]
    only_new = [case_id for case_id in cases_new if case_id not in shared]
    judges = {item.judge.name: _bridged(item, old, old if item.same else again, new, job.seed) for item in job.judges}
    found: dict[str, Any] = rounded(
        {
            "schema_version": 1,
            "old": job.old_id,
            "new": job.new_id,
            "old_by_new_judge": moved_id,
            "n_shared_cases": len(shared),
            "n_changed_cases": sum(cases_old[case_id] != cases_new[case_id] for case_id in shared),
            "n_only_in_old": len(only_old),
            "n_only_in_new": len(only_new),
            "only_in_old": only_old[:MOST_NAMED],
            "only_in_new": only_new[:MOST_NAMED],
            "judges": judges,
            "judges_only_in_old": list(job.only_in_old),
            "judges_only_in_new": list(job.only_in_new),
        }
    )
    with job.new.locked_as_found(job.manifest):
        job.new.write_json(BRIDGE, found)
        if job.summary is not None:
            about = {"old": job.old_id, "old_by_new_judge": moved_id}
            parts = {name: {"bridge": {**about, **_of_judge(item)}} for name, item in found["judges"].items()}
            summary = with_parts(job.summary, parts)
            write_summary(job.new, summary)
            closed(job.new, summary, report=job.report, indexed=False)
    return found


def _of_judge(item: Mapping[str, Any]) -> dict[str, Any]:
    return {"same_judge": item["same_judge"], "figures": item["figures"]}


def _bridged(item: BridgeJudge, old: _Scores, again: _Scores, new: _Scores, seed: int) -> dict[str, Any]:
    """One judge: its instruments and figures; `again` are scores of the old outputs by the new judge."""
    columns = [column for column in item.judge.columns() if column.aggregate != ""]
    return {
        "same_judge": item.same,
        "old": dict(item.old),
        "new": dict(item.new),
        "notes": list(item.notes),
        "figures": {
            column.aggregate or column.name: bridge_figure(
                old.get(column.name, {}),
                again.get(column.name, {}),
                new.get(column.name, {}),
                same_judge=item.same,
                seed=seed,
            )
            for column in columns
        },
    }


def _scores(store: RunFolder, names: set[str]) -> dict[str, dict[str, float]]:
    """By score name and case id, for what has a value."""
    found: dict[str, dict[str, float]] = {}
    for score in store.scores():
        if score.name in names and score.value is not None:
            found.setdefault(score.name, {})[score.case_id] = score.value
    return found
