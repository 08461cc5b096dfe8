"""`judgekit rescore`: metrics calculated anew over a stored run, from its folder alone.

Nothing is asked and nothing is parsed again: the stored verdicts stand, whatever today's parser would make of the raw
replies. What changes is what today's metrics make of cases, outputs and verdicts.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from judgekit.analysis.gates import check_gates
from judgekit.analysis.summary import rounded
from judgekit.core.cases import Case
from judgekit.core.components import Judge, Metric
from judgekit.core.config import RunConfig
from judgekit.core.errors import ConfigError, StorageError
from judgekit.core.judgments import last_judgments
from judgekit.core.runs import METRICS_VERSION, Manifest, Notice, RunSummary
from judgekit.storage.run_folder import RunFolder
from judgekit.storage.run_records import append_history
from judgekit.workflows.case_scores import Faults, Scored, Scoring, Unjudged, judge_inputs, score_cases
from judgekit.workflows.closing import closed, made_by, replaced_figures, write_summary

MADE_BY_SCORING = frozenset(
    {
        "internal_error",
        "too_many_slices",
        "no_retrieved_text",
        "abstention_by_rule",
        "paths_look_different",
        "hits_lack_names",
        "ids_look_different",
        "expected_not_in_format",
        "fields_not_found",
        "comparator_failed",
        "schema_ignored",
        "index_not_written",
        "index_damaged",
    }
)
"""Codes of warnings that scoring and indexing raise themselves; the others are kept as they are stored."""

_PROVENANCE = ("metrics_version", "scored_by", "warnings")


@dataclass(frozen=True)
class RescoreJob:
    """A stored run, ready to be scored anew."""

    config: RunConfig
    manifest: Manifest
    old: RunSummary
    """The figures as they are stored."""
    metrics: Sequence[Metric]
    judges: Sequence[Judge]
    store: RunFolder
    now: Callable[[], datetime]
    version: str
    """Of judgekit."""


@dataclass(frozen=True)
class Change:
    """A figure that is another one now."""

    name: str
    old: Mapping[str, Any] | None
    """None: the run did not have it."""
    new: Mapping[str, Any] | None


@dataclass(frozen=True)
class Rescored:
    """What came of scoring a run anew."""

    run_id: str
    old_version: str
    """Who made the old figures, such as `judgekit 0.1.0, metrics version 1`."""
    new_version: str
    summary: RunSummary
    changes: Sequence[Change] = field(default_factory=tuple)

    def document(self) -> dict[str, Any]:
        """A strict-JSON object."""
        return {
            "run_id": self.run_id,
            "status": self.summary.status,
            "old_version": self.old_version,
            "new_version": self.new_version,
            "changes": [{"name": item.name, "old": item.old, "new": item.new} for item in self.changes],
            "gates": [gate.model_dump(mode="json") for gate in self.summary.gates],
            "warnings": [notice.model_dump(mode="json") for notice in self.summary.warnings],
        }


def rescore(job: RescoreJob) -> Rescored:
    """Write scores and figures of a run anew, and keep the old figures in its history.

    Files are replaced one by one, each as a whole: a process that is killed leaves old figures beside new scores at
    worst, and the next call writes both.

    Raises:
        ConfigError: the run cannot be scored from its folder.
        StorageError: a file is damaged or cannot be written, or another process writes the run.
    """
    if job.manifest.status == "running":
        raise ConfigError(f"{job.store.path}: this run is not finished; go on with `judgekit run --resume` first")
    with job.store.locked_as_found(job.manifest):
        warnings: list[tuple[str, str]] = []
        scored = _scored(job, list(_cases(job)), warnings)
        summary = _summary(job, scored, warnings)
        changes = _changes(rounded(job.old.model_dump(mode="json")), rounded(summary.model_dump(mode="json")))
        if changes is None:
            summary = summary.model_copy(update={"scored_by": job.old.scored_by})
        else:
            append_history(job.store, replaced_figures(job.old, job.now()))
        write_summary(job.store, summary)
        summary = closed(job.store, summary, report=job.config.report)
    return Rescored(
        run_id=job.manifest.run_id,
        old_version=_version(made_by(job.old), job.old.metrics_version),
        new_version=_version(job.version, METRICS_VERSION),
        summary=summary,
        changes=changes or (),
    )


def _cases(job: RescoreJob) -> Iterator[Case]:
    """The cases, checked against the outputs beside them."""
    path = job.store.path
    outputs = job.store.outputs()
    n_cases = 0
    for case in job.store.cases():
        output = next(outputs, None)
        if output is None or output.case_id != case.id:
            raise StorageError(f"{path}: case {case.id!r} has no output in its place; outputs.jsonl is damaged")
        n_cases += 1
        yield case
    if not n_cases:
        raise ConfigError(
            f"{path}: written before runs kept their cases (it has no cases.jsonl), so it cannot be scored anew; "
            f"run its config again: judgekit run {job.manifest.config_path} (what is cached costs nothing)"
        )
    if next(outputs, None) is not None:
        raise StorageError(f"{path}: more outputs than cases; cases.jsonl is damaged")


def _scored(job: RescoreJob, cases: Sequence[Case], warnings: list[tuple[str, str]]) -> Scored:
    faults = Faults(warnings)
    unjudged: Unjudged = {}
    # Only why cases were not put before a judge is needed here; the inputs themselves are stored.
    for _ in judge_inputs(job.judges, zip(cases, job.store.outputs(), strict=True), unjudged, faults):
        pass
    scoring = Scoring(job.config, job.metrics, job.judges, faults)
    return score_cases(scoring, job.store, cases, unjudged, last_judgments(job.store.judgments()))


def _summary(job: RescoreJob, scored: Scored, warnings: Sequence[tuple[str, str]]) -> RunSummary:
    old = job.old
    kept = [notice for notice in old.warnings if notice.code not in MADE_BY_SCORING]
    found = [Notice(code=code, message=message) for code, message in dict.fromkeys([*warnings, *scored.warnings])]
    same = {name: old.operational[name] for name in ("wall_seconds", "n_resumed", "versions")}
    summary = old.model_copy(
        update={
            "min_n": job.config.min_n,
            "cluster_by": job.config.cluster_by,
            "n_gates": len(job.config.gates),
            "overall": scored.overall,
            "slices": scored.tally.slices(),
            "latency": scored.tally.latency(),
            "operational": {**scored.tally.operational(), **same},
            "extraction": scored.digests.get("extraction"),
            "abstention": scored.abstention,
            "warnings": (*kept, *found),
            "metrics_version": METRICS_VERSION,
            "scored_by": job.version,
        }
    )
    if summary.status == "complete" and job.manifest.shard is None:
        summary = summary.model_copy(update={"gates": check_gates(job.config.gates, summary)})
    return summary


def _changes(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[Change] | None:
    """Figures over all cases that changed, by name; None where nothing at all changed."""
    found = []
    for section in ("overall", "operational"):
        for name in dict.fromkeys([*new[section], *old[section]]):
            before, after = _figure(old[section].get(name)), _figure(new[section].get(name))
            if before != after:
                found.append(Change(name, before, after))
    if not found and _without_provenance(old) == _without_provenance(new):
        return None
    return found


def _figure(figure: Any) -> Mapping[str, Any] | None:
    return figure if isinstance(figure, dict) and "value" in figure else None


def _without_provenance(document: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in document.items() if key not in _PROVENANCE}


def _version(judgekit: str | None, metrics_version: int) -> str:
    return f"judgekit {judgekit or 'of unknown version'}, metrics version {metrics_version}"
