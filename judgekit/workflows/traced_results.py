"""Scores and figures of a finished run as events of its trace."""

from collections.abc import Mapping
from itertools import groupby
from operator import attrgetter
from typing import Any

from judgekit.core.judgments import Judgment, JudgmentKey
from judgekit.core.runs import RunSummary
from judgekit.core.scores import Column, Estimate, Score
from judgekit.storage.stored_judgments import StoredJudgments
from judgekit.tracing import captures_content, trace_results
from judgekit.workflows.job import RunJob


def trace_scores(job: RunJob, summary: RunSummary) -> None:
    """One event for each score of each case, and one for each figure, with its interval and n.

    Raises:
        StorageError: the run folder is damaged.
    """
    folder = job.folder
    columns = {
        column.name: (judge, column)
        for judge, component in [
            *((None, metric) for metric in job.metrics),
            *((judge.name, judge) for judge in job.judge_components),
        ]
        for column in component.columns()
    }
    known = ("trace_id", "span_id", "response_id")
    evaluated = {
        output.case_id: {name: output.metadata[name] for name in known if name in output.metadata}
        for output in folder.outputs()
        if any(name in output.metadata for name in known)
    }
    run = {"judgekit.run.id": summary.run_id}
    with StoredJudgments(folder) as judgments:
        for case_id, scores in groupby(folder.scores(), key=attrgetter("case_id")):
            of_output = evaluated.get(case_id, {})
            results = []
            for score in scores:
                judge, column = columns.get(score.name, (None, None))
                judgment = None if judge is None else judgments.get(JudgmentKey("primary", judge, case_id))
                response_id = {"gen_ai.response.id": of_output.get("response_id")}
                results.append({**_result(score, column), **_provenance(judgment), **response_id})
            trace_results("evaluate case", {**run, "judgekit.case.id": case_id}, results, of_output)
    figures = [_figure(name, found) for name, found in summary.overall.items() if isinstance(found, Estimate)]
    trace_results("evaluate run", run, figures)


def _result(score: Score, column: Column | None) -> dict[str, Any]:
    """One of three: a value, not applicable with a reason, or a failure with its kind."""
    found: dict[str, Any] = {"gen_ai.evaluation.name": score.name, "judgekit.reason": score.reason}
    if score.value is not None:
        is_verdict = column is not None and column.binary and column.has_direction
        label = ("pass" if score.value == column.best else "fail") if is_verdict and column is not None else None
        return {**found, "gen_ai.evaluation.score.value": float(score.value), "gen_ai.evaluation.score.label": label}
    kind, _, text = (score.reason or "").partition(": ")
    if kind == "n/a":
        return {**found, "gen_ai.evaluation.score.label": "not_applicable"}
    return {**found, "error.type": text.removeprefix("judge ") or "_OTHER"}


def _provenance(judgment: Judgment | None) -> Mapping[str, Any]:
    """What a score of a judge rests on."""
    if judgment is None:
        return {}
    verdict = judgment.verdict
    return {
        "judgekit.judge": judgment.judge,
        "judgekit.prompt.version": judgment.prompt_version,
        "judgekit.prompt.sha256": judgment.prompt_sha256,
        "judgekit.model": judgment.model,
        "judgekit.build": judgment.build,
        "judgekit.from_cache": judgment.from_cache,
        "gen_ai.evaluation.explanation": verdict.reasoning if verdict is not None and captures_content() else None,
    }


def _figure(name: str, found: Estimate) -> dict[str, Any]:
    is_known = found.low is not None and found.high is not None
    return {
        "gen_ai.evaluation.name": name,
        "gen_ai.evaluation.score.value": None if found.value is None else float(found.value),
        "gen_ai.evaluation.score.label": "not_applicable" if found.value is None else None,
        "judgekit.interval": f"{found.low:.4f} to {found.high:.4f}" if is_known else None,
        "judgekit.method": found.method,
        "judgekit.n": found.n,
        "judgekit.n_not_applicable": found.n_not_applicable,
        "judgekit.n_error": found.n_error,
    }
