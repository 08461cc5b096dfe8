"""Compare two stored runs: pair their cases, gather differences, and say what else changed."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from judgekit.analysis.case_changes import by_loss
from judgekit.analysis.deltas import DeltaTally
from judgekit.analysis.estimates import ErrorPolicy
from judgekit.analysis.run_deltas import whole_run_deltas, whole_run_figures
from judgekit.analysis.run_differences import causes, changed, query_notes
from judgekit.analysis.stored_figures import run_aggregate
from judgekit.core.comparison import COVERAGE, Cause, Comparison, Delta
from judgekit.core.errors import ConfigError
from judgekit.core.scores import Column, Failed
from judgekit.stats.means import mean
from judgekit.workflows.compare_cases import (
    CasePairing,
    PairedCases,
    chunker_match_of,
    columns_of,
    dropped,
    left_out,
    other_data,
)
from judgekit.workflows.compare_job import ComparedSide, CompareJob

SHOWN = 3
"""Case ids in an error message."""


def compare(job: CompareJob) -> Comparison:
    """Compare two runs over the cases that both have.

    Raises:
        ConfigError: the runs share no case, or they differ in what makes figures incomparable and that is not allowed.
        StorageError: a run is damaged.
    """
    found = causes(job.a.identity, job.b.identity)
    _refuse(job, found)
    shared, only_in_a, only_in_b = _shared(job)
    job.notices += [*job.a.notices, *job.b.notices, *_notices(job, found)]
    tally = _tally(job)
    pairing = CasePairing(job, tally, query_notes(found))
    queries = by_loss([pairing.change(case_id) for case_id in shared])
    paired = pairing.found
    overall_a, overall_b = _figures(job.a), _figures(job.b)
    others = [*paired.latencies.deltas(), *_whole_runs(job, has_other_cases=bool(only_in_a or only_in_b))]
    deltas = tally.deltas(overall_a, overall_b, _mixer(job, found, has_edited=bool(paired.edited)), others)
    same_run = job.same_run or _same_verdicts(job, paired)
    job.notices += [*_missing_notice(only_in_a, len(shared)), *_case_notices(job, paired, deltas)]
    job.notices += _same_notices(job, same_run)
    return Comparison(
        run_a=job.a.identity.run_id,
        run_b=job.b.identity.run_id,
        aggregate_a=run_aggregate(overall_a),
        aggregate_b=run_aggregate(overall_b),
        deltas=deltas,
        chunker_version_match=chunker_match_of(job),
        per_query=queries,
        only_in_a=only_in_a,
        only_in_b=only_in_b,
        changed=changed(job.a.identity, job.b.identity),
        changed_cases=paired.edited,
        causes=found,
        k=job.options.k,
        n_shared=len(shared),
        notices=tuple(dict.fromkeys([*job.notices, *_indexed(job)])),
        same_run=same_run,
        has_chunk_ids=paired.has_chunk_ids,
        left_out=left_out(job),
        without_value=tally.without_value,
        dropped=dropped(job),
        untold=dict(paired.untold),
    )


def _shared(job: CompareJob) -> tuple[list[str], tuple[str, ...], tuple[str, ...]]:
    """Ids that both runs have in the order of a, and those of a and of b alone."""
    a, b = job.a.cases.ids, job.b.cases.ids
    in_b = set(b)
    shared = [case_id for case_id in a if case_id in in_b]
    if not shared:
        raise ConfigError(f"the runs share no case: {_ids(job.a)}, {_ids(job.b)}")
    known = set(shared)
    only_in_a, only_in_b = (tuple(case_id for case_id in ids if case_id not in known) for ids in (a, b))
    return shared, only_in_a, only_in_b


def _tally(job: CompareJob) -> DeltaTally:
    pooled = [figure for side in job.sides for part in side.pooled.values() for figure in part]
    judges = [name for side in job.sides for name in side.identity.judges]
    return DeltaTally(columns_of(job), pooled, _policy(job), judges)


def _whole_runs(job: CompareJob, *, has_other_cases: bool) -> Iterator[Delta]:
    first, second = (whole_run_figures(side.metrics) for side in job.sides)
    return whole_run_deltas(first, second, has_other_cases=has_other_cases)


def _same_verdicts(job: CompareJob, paired: PairedCases) -> str | None:
    """Why two runs of the same answers say nothing about each other: they have the same scores too."""
    if not job.shares_answers or paired.n_unequal:
        return None
    first, second = job.a.identity.run_id, job.b.identity.run_id
    return f"{first} and {second} judge the same answers and have the same scores, so nothing is compared"


def _same_notices(job: CompareJob, same_run: str | None) -> Iterator[tuple[str, str]]:
    if same_run is not None:
        yield "same_run", f"{same_run}; every difference is 0, and that says nothing"
    elif job.shares_answers:
        yield "same_answers", "a and b judge the same answers, so a difference is of the judge and not of the system"


def _missing_notice(only_in_a: Sequence[str], n_shared: int) -> Iterator[tuple[str, str]]:
    if only_in_a:
        n = len(only_in_a)
        text = (
            f"{n} of the {n + n_shared} cases of a are not in b, so every figure and gate is about the other {n_shared}"
        )
        yield "cases_missing", text


def _case_notices(job: CompareJob, paired: PairedCases, deltas: Sequence[Delta]) -> Iterator[tuple[str, str]]:
    """What turned up while cases were paired."""
    if paired.has_chunk_ids and chunker_match_of(job) == "unknown":
        who = [name for name, side in zip("ab", job.sides, strict=True) if not _chunker(side)]
        text = "neither run says its" if len(who) == 2 else f"{who[0]} does not say its"
        yield "chunker_unknown", f"{text} chunker_version; chunk ids are taken to mean the same"
    judges = [name + COVERAGE for side in job.sides for name in side.identity.judges]
    for delta in deltas:
        if delta.name in judges and delta.a != delta.b and delta.a is not None and delta.b is not None:
            name = delta.name.removesuffix(COVERAGE)
            text = f"{name}: {round(delta.a * delta.n)} of {delta.n} cases have a verdict in a, and "
            yield (
                "coverage_differs",
                f"{text}{round(delta.b * delta.n)} in b; the difference of its mean leaves out others",
            )


def _chunker(side: ComparedSide) -> str | None:
    return side.identity.versions.get("chunker_version")


def _refuse(job: CompareJob, found: Sequence[Cause]) -> None:
    match = chunker_match_of(job)
    if job.options.strict_chunker_version and match != "exact":
        first, second = (_chunker(side) or "unknown" for side in job.sides)
        how = "by document and characters" if match == "fallback_doc_span" else "by chunk id as it is"
        raise ConfigError(
            f"{job.a.label} and {job.b.label}: chunker_version "
            f"{'differs' if match == 'fallback_doc_span' else 'is not known'} ({first}, then {second}), which "
            f"--strict-chunker-version refuses; without it, hits are compared {how}"
        )
    refused = [cause for cause in found if cause.is_refused]
    if not refused or job.options.allows_mismatch:
        return
    also = [cause.line for cause in found if not cause.is_refused]
    raise ConfigError(
        f"{job.a.label} and {job.b.label} cannot be compared, since a difference would mix causes; "
        f"what changed: {', '.join(cause.line for cause in refused)}"
        f"{'; besides: ' + ', '.join(also) if also else ''}; {job.advise(refused)}"
    )


def _ids(side: ComparedSide) -> str:
    ids = side.cases.ids
    if not ids:
        return f"{side.label} has none"
    return f"{side.label} has {', '.join(ids[:SHOWN])}{', ...' if len(ids) > SHOWN else ''}"


def _policy(job: CompareJob) -> ErrorPolicy:
    return "as_zero" if job.a.identity.errors == job.b.identity.errors == "as_zero" else "exclude"


def _mixer(job: CompareJob, found: Sequence[Cause], *, has_edited: bool) -> Callable[[str], tuple[str, ...]]:
    """For a score or figure, the causes besides the answers that its difference mixes in."""
    owners: dict[str, set[str]] = {}
    for side in job.sides:
        for family, columns in side.columns.items():
            for column in columns:
                owners.setdefault(column.name, set()).add(family)
        for family, figures in side.pooled.items():
            for figure in figures:
                owners.setdefault(figure.name, set()).add(family)
    judges = {*job.a.identity.judges, *job.b.identity.judges}
    for column in job.joint:
        owners.setdefault(column.name, set()).update(judges)

    def mixed(name: str) -> tuple[str, ...]:
        own = owners.get(name, set())
        lines = [
            cause.line
            for cause in found
            if (cause.is_refused and own.intersection(cause.judges)) or own.intersection(cause.metrics)
        ]
        if has_edited and job.options.includes_edited:
            lines.append("cases were edited")
        return tuple(lines)

    return mixed


def _figures(side: ComparedSide) -> Mapping[str, Any]:
    """Figures over all cases; of a run that wrote none, means of its scores."""
    if side.figures is not None:
        return side.figures
    columns = {column.name: column for part in side.columns.values() for column in part if column.aggregate != ""}
    values: dict[str, list[float]] = {name: [] for name in columns}
    n_failed = dict.fromkeys(columns, 0)
    for case_id in side.cases.ids:
        scores = side.cases.scores(case_id)
        for name in columns:
            outcome = scores.get(name, Failed("not judged", by_judge=True))
            if isinstance(outcome, float):
                values[name].append(outcome)
            elif isinstance(outcome, Failed):
                n_failed[name] += 1
    return {
        column.aggregate or name: _mean_figure(column, values[name], n_failed[name]) for name, column in columns.items()
    }


def _mean_figure(column: Column, values: Sequence[float], n_failed: int) -> dict[str, Any]:
    worst = mean([*values, *[column.worst] * n_failed]) if n_failed and math.isfinite(column.worst) else None
    return {"value": mean(values), "n": len(values), "worst": worst}


def _indexed(job: CompareJob) -> Iterator[tuple[str, str]]:
    for side in job.sides:
        yield from side.index()


def _notices(job: CompareJob, found: Sequence[Cause]) -> Iterator[tuple[str, str]]:
    """What the reader of the figures should know of the two runs."""
    for name, side in (("a", job.a), ("b", job.b)):
        run = f"{name} ({side.identity.run_id})"
        if side.status != "complete":
            yield "partial_run", f"{run} is {side.status}; what is there of it is compared"
        if not side.cases.has_scores:
            yield "no_scores", f"{run} has no scores yet; finish it with: judgekit run --resume {side.label}"
        if not side.cases.has_cases:
            text = "is of an older format without cases: edited cases cannot be told, scores are compared"
            yield "no_cases", f"{run} {text}{'' if other_data(job) else '; labels are taken from the other run'}"
    for cause in found:
        if cause.is_refused:
            yield "mixed_causes", f"{cause.line}: allowed by --allow-mismatch"
        elif cause.kind == "judge":
            yield "judge_moved", cause.line
        elif cause.kind == "metric":
            yield "mixed_causes", f"{cause.line}: figures that it moves are not of the systems alone"
