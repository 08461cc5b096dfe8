"""`judgekit rescore`: metrics calculated again over a stored run, from its folder alone.

Nothing is asked and nothing is parsed again: the stored verdicts stand, whatever today's parser would make of the raw
replies. What changes is what today's metrics make of cases, outputs and verdicts.
"""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import judgekit
from judgekit.analysis.repeated_answers import most_answers
from judgekit.analysis.stored_figures import rounded
from judgekit.core.cases import Case
from judgekit.core.errors import ConfigError, StorageError
from judgekit.core.runs import EVAL_RESULTS, METRICS_VERSION, SCORES, Notice, RunSummary
from judgekit.core.streams import Streamed
from judgekit.storage.run_folder import RunFolder
from judgekit.storage.run_records import append_history
from judgekit.storage.stored_judgments import StoredJudgments
from judgekit.workflows.case_scores import CaseScorers, Scored, Unjudged, judge_inputs, score_cases
from judgekit.workflows.closing import closed, made_by, replaced_figures, write_summary
from judgekit.workflows.gating import hold_gates
from judgekit.workflows.models import Options
from judgekit.workflows.own_code import code_changes
from judgekit.workflows.stored import StoredRun, open_stored
from judgekit.workflows.stored_runs import stored_figures

MADE_AGAIN = frozenset(
    {
        "internal_error",
        "code_changed",
        "too_many_slices",
        "repeats_apart",
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
"""Codes of warnings that case scores and indexing raise themselves; the others are kept as they are stored."""

_PROVENANCE = ("metrics_version", "scored_by", "warnings")


def rescore(run: str, options: Options) -> dict[str, Any]:
    """Write scores and figures of a stored run again, and keep the old figures in its history.

    Files are replaced one by one, each as a whole: a process that is killed leaves old figures beside new scores at
    worst, and the next call writes both.

    Returns:
        What `judgekit rescore --json` prints of the run: who made the old figures and the new ones, each figure over
        all cases that has changed (null: the run does not have it), gates, whether one of them fails, and warnings.

    Raises:
        ConfigError: no such run, or one that cannot be scored from its folder, or with a metric or judge that is not
            known here.
        StorageError: a file is damaged or cannot be written, or another process writes the run.
    """
    stored = open_stored(run, options, unread=(SCORES, EVAL_RESULTS))
    folder, manifest = stored.folder, stored.manifest
    _, old = stored_figures(folder)
    metrics, judges = stored.metrics(), [stored.judge(judge.name) for judge in stored.config.judges]
    if manifest.status == "running":
        raise ConfigError(f"{folder.path}: this run is not finished; resume it with `judgekit run --resume` first")
    with folder.locked_as_found(manifest):
        warnings = code_changes([*metrics, *judges], stored.resolved)
        cases = _cases(stored)
        scorers = CaseScorers(stored.config, metrics, judges, most_answers(cases), warnings)
        scored = _scored(folder, scorers, cases)
        summary = _summary(stored, old, scored, warnings)
        changes = _changes(rounded(old.model_dump(mode="json")), rounded(summary.model_dump(mode="json")))
        if changes is None:
            summary = summary.model_copy(update={"scored_by": old.scored_by})
        else:
            append_history(folder, replaced_figures(old, datetime.now(UTC)))
        write_summary(folder, summary)
        summary = closed(folder, summary, report=stored.config.report)
    return {
        "run_id": manifest.run_id,
        "status": summary.status,
        "old_version": _version(made_by(old), old.metrics_version),
        "new_version": _version(judgekit.__version__, METRICS_VERSION),
        "changes": changes or [],
        "gates": [gate.model_dump(mode="json") for gate in summary.gates],
        "fails": any(gate.fails for gate in summary.gates),
        "warnings": [notice.model_dump(mode="json") for notice in summary.warnings],
    }


def _cases(stored: StoredRun) -> Streamed[Case]:
    """The cases, checked against the outputs beside them."""
    path = stored.folder.path
    outputs = stored.folder.outputs()
    n_cases = 0
    for case in stored.folder.cases():
        output = next(outputs, None)
        if output is None or output.case_id != case.id:
            raise StorageError(f"{path}: case {case.id!r} has no output in its place; outputs.jsonl is damaged")
        n_cases += 1
    if not n_cases:
        raise ConfigError(
            f"{path}: written before runs kept their cases (it has no cases.jsonl), so it cannot be scored again; "
            f"run its config again: judgekit run {stored.manifest.config_path} (what is cached costs nothing)"
        )
    if next(outputs, None) is not None:
        raise StorageError(f"{path}: more outputs than cases; cases.jsonl is damaged")
    return Streamed(stored.folder.cases, n_cases)


def _scored(folder: RunFolder, scorers: CaseScorers, cases: Streamed[Case]) -> Scored:
    unjudged: Unjudged = {}
    # Only why cases were not put before a judge is needed here; the inputs themselves are stored.
    for _ in judge_inputs(scorers.judges, zip(cases, folder.outputs(), strict=True), unjudged, scorers.warnings):
        pass
    with StoredJudgments(folder) as judgments:
        return score_cases(scorers, folder, cases, unjudged, judgments)


def _summary(stored: StoredRun, old: RunSummary, scored: Scored, warnings: Sequence[tuple[str, str]]) -> RunSummary:
    config = stored.config
    kept = [notice for notice in old.warnings if notice.code not in MADE_AGAIN]
    found = [Notice(code=code, message=message) for code, message in dict.fromkeys([*warnings, *scored.warnings])]
    same = {name: old.operational[name] for name in ("wall_seconds", "n_resumed", "versions")}
    summary = old.model_copy(
        update={
            "min_n": config.min_n,
            "cluster_by": config.cluster_by,
            "own_code": scored.own_code,
            "n_gates": len(config.gates),
            "overall": scored.overall,
            "repeats": scored.repeats,
            "slices": scored.tally.slices(),
            "scales": scored.scales,
            "latency": scored.tally.latency(),
            "operational": {**scored.tally.operational(), **same},
            "extraction": scored.digests.get("extraction"),
            "abstention": scored.abstention,
            "warnings": (*kept, *found),
            "metrics_version": METRICS_VERSION,
            "scored_by": judgekit.__version__,
        }
    )
    if summary.status == "complete" and stored.manifest.shard is None:
        gates = hold_gates(config.gates, stored.folder, summary, old.gates)
        summary = summary.model_copy(update={"gates": gates})
    return summary


def _changes(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[dict[str, Any]] | None:
    """Figures over all cases that changed, by name; None if nothing at all changed."""
    found = []
    for section in ("overall", "operational"):
        for name in dict.fromkeys([*new[section], *old[section]]):
            before, after = _figure(old[section].get(name)), _figure(new[section].get(name))
            if before != after:
                found.append({"name": name, "old": before, "new": after})
    if not found and all(old[key] == new[key] for key in old if key not in _PROVENANCE):
        return None
    return found


def _figure(figure: Any) -> Mapping[str, Any] | None:
    return figure if isinstance(figure, dict) and "value" in figure else None


def _version(version: str | None, metrics_version: int) -> str:
    return f"judgekit {version or 'of unknown version'}, metrics version {metrics_version}"
