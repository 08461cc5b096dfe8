"""`judgekit bridge`: the change between two runs, split into system and judge, from three sets of stored scores."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from judgekit.analysis.bridging import bridge_figure
from judgekit.analysis.summary import rounded
from judgekit.core.components import Judge
from judgekit.core.protocols import RunStore
from judgekit.core.runs import BRIDGE

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

    old: RunStore
    new: RunStore
    old_id: str
    new_id: str
    judges: Sequence[BridgeJudge]
    only_in_old: Sequence[str]
    """Judges that only the old run has."""
    only_in_new: Sequence[str]
    seed: int


def bridge(job: BridgeJob, moved: RunStore | None, moved_id: str | None) -> dict[str, Any]:
    """Split the change of every figure of the shared judges, and write it as bridge.json into the new run.

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
    judges = {}
    for item in job.judges:
        columns = [column for column in item.judge.columns() if column.aggregate != ""]
        judges[item.judge.name] = {
            "same_judge": item.same,
            "old": dict(item.old),
            "new": dict(item.new),
            "notes": list(item.notes),
            "figures": {
                column.aggregate or column.name: bridge_figure(
                    old.get(column.name, {}),
                    (old if item.same else again).get(column.name, {}),
                    new.get(column.name, {}),
                    same_judge=item.same,
                    seed=job.seed,
                )
                for column in columns
            },
        }
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
    job.new.write_json(BRIDGE, found)
    return found


def _scores(store: RunStore, names: set[str]) -> dict[str, dict[str, float]]:
    """By score name and case id, for what has a value."""
    found: dict[str, dict[str, float]] = {}
    for score in store.scores():
        if score.name in names and score.value is not None:
            found.setdefault(score.name, {})[score.case_id] = score.value
    return found
