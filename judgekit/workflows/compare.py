"""Compare two stored runs: pair their cases, gather differences, and say what else changed."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from judgekit.analysis.aggregate import run_aggregate
from judgekit.analysis.deltas import DeltaTally
from judgekit.analysis.estimates import ErrorPolicy
from judgekit.analysis.query_changes import edited_fields, query_change
from judgekit.analysis.run_differences import causes, changed, query_notes, same_chunker
from judgekit.analysis.slices import Clusters
from judgekit.core.cases import Case, SystemOutput
from judgekit.core.comparison import Cause, Comparison, QueryChange, RunIdentity
from judgekit.core.errors import ConfigError
from judgekit.core.scores import Column, Failed, Outcome, Pooled
from judgekit.metrics.anchors import SnippetMode
from judgekit.metrics.first_hits import HitMatching, first_hits
from judgekit.stats.means import mean

SHOWN = 3
"""Case ids in an error message."""

Notices = Sequence[tuple[str, str]]


class StoredCases(Protocol):
    """The cases of a stored run, each by its id."""

    @property
    def ids(self) -> Sequence[str]:
        """Case ids in the order of the run."""

    @property
    def has_cases(self) -> bool:
        """Whether the run kept its cases."""

    @property
    def has_scores(self) -> bool:
        """Whether the run was scored."""

    def case(self, case_id: str) -> Case | None:
        """The case; None where the run did not keep it."""

    def output(self, case_id: str) -> SystemOutput | None:
        """The output; None where the run has none."""

    def scores(self, case_id: str) -> Mapping[str, Outcome]:
        """Outcomes by score name."""


@dataclass(frozen=True)
class ComparedSide:
    """One of the two runs."""

    label: str
    """How the user named it."""
    status: str
    identity: RunIdentity
    cases: StoredCases
    columns: Mapping[str, Sequence[Column]]
    """What is known of its scores, by metric family or judge."""
    pooled: Mapping[str, Sequence[Pooled]]
    figures: Mapping[str, Any] | None
    """Figures over all cases as metrics.json has them; None where the run wrote none."""
    index: Callable[[], Notices] = tuple
    """Write the run's entry in the results database anew; says what went wrong."""
    notices: Notices = ()


@dataclass(frozen=True)
class CompareOptions:
    """How two runs are compared."""

    k: int = 5
    allows_mismatch: bool = False
    strict_chunker_version: bool = False
    includes_edited: bool = False
    """Pair cases that were edited between the runs too."""
    snippets: SnippetMode = "if_text"
    """How the snippets of gold supports are held against hits."""
    cluster_by: str | None = None
    """Dimension whose values say which cases belong together; None: cases are independent."""


@dataclass
class CompareJob:
    """Two runs ready to be compared."""

    a: ComparedSide
    b: ComparedSide
    options: CompareOptions
    advise: Callable[[Sequence[Cause]], str]
    """The command that makes the runs comparable, for what is refused."""
    joint: Sequence[Column] = ()
    """Figures that take two judges."""
    notices: list[tuple[str, str]] = field(default_factory=list)


def compare(job: CompareJob) -> Comparison:
    """Compare two runs over the cases that both have.

    Raises:
        ConfigError: the runs share no case, or they differ in what makes figures incomparable and that is not allowed.
        StorageError: a run is damaged.
    """
    found = causes(job.a.identity, job.b.identity)
    _refuse(job, found)
    a, b = job.a.cases, job.b.cases
    there = set(b.ids)
    shared = [case_id for case_id in a.ids if case_id in there]
    if not shared:
        raise ConfigError(f"the runs share no case: {_ids(job.a)}, {_ids(job.b)}")
    job.notices += [*job.a.notices, *job.b.notices, *_notices(job, found)]
    sides = (job.a, job.b)
    pooled = [figure for side in sides for part in side.pooled.values() for figure in part]
    tally = DeltaTally(_columns(job), pooled, _policy(job))
    edited: dict[str, tuple[str, ...]] = {}
    queries = tuple(_paired(job, shared, tally, edited, query_notes(found)))
    overall_a, overall_b = _figures(job.a), _figures(job.b)
    known = set(shared)
    return Comparison(
        run_a=job.a.identity.run_id,
        run_b=job.b.identity.run_id,
        aggregate_a=run_aggregate(overall_a),
        aggregate_b=run_aggregate(overall_b),
        deltas=tally.deltas(overall_a, overall_b, _mixer(job, found, has_edited=bool(edited))),
        chunker_version_match="exact" if _by_id(job) else "fallback_doc_span",
        per_query=queries,
        only_in_a=tuple(case_id for case_id in a.ids if case_id not in known),
        only_in_b=tuple(case_id for case_id in b.ids if case_id not in known),
        changed=changed(job.a.identity, job.b.identity),
        changed_cases=edited,
        causes=found,
        k=job.options.k,
        n_shared=len(shared),
        notices=tuple(dict.fromkeys([*job.notices, *_indexed(sides)])),
    )


def _refuse(job: CompareJob, found: Sequence[Cause]) -> None:
    if job.options.strict_chunker_version and not _by_id(job):
        first, second = (side.identity.versions.get("chunker_version", "unknown") for side in (job.a, job.b))
        raise ConfigError(
            f"{job.a.label} and {job.b.label}: chunker_version differs ({first}, then {second}), which "
            "--strict-chunker-version refuses; without it, hits are compared by document and characters"
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


def _by_id(job: CompareJob) -> bool:
    return same_chunker(job.a.identity, job.b.identity)


def _policy(job: CompareJob) -> ErrorPolicy:
    return "as_zero" if job.a.identity.errors == job.b.identity.errors == "as_zero" else "exclude"


def _columns(job: CompareJob) -> list[Column]:
    return [*(item for side in (job.a, job.b) for part in side.columns.values() for item in part), *job.joint]


def _paired(
    job: CompareJob, shared: Sequence[str], tally: DeltaTally, edited: dict[str, tuple[str, ...]], notes: Sequence[str]
) -> Iterator[QueryChange]:
    """One entry a case, in the order of run a; scores go to `tally`, what was edited to `edited`."""
    a, b = job.a.cases, job.b.cases
    matching = HitMatching(_by_id(job), job.options.k, job.options.snippets)
    by = job.options.cluster_by
    clusters = Clusters(by) if by is not None and (a.has_cases or b.has_cases) else None
    for case_id in shared:
        first, second = a.case(case_id), b.case(case_id)
        fields = edited_fields(first, second) if first is not None and second is not None else ()
        if fields:
            edited[case_id] = fields
            if not job.options.includes_edited:
                yield QueryChange(case_id, "changed_case", note=f"edited: {', '.join(fields)}")
                continue
        case = second or first
        cluster = None if clusters is None or case is None else clusters.number(case)
        tally.add(a.scores(case_id), b.scores(case_id), cluster)
        if case is None or ((first is None or second is None) and _other_data(job)):
            yield QueryChange(case_id, "not_applicable", note="the case was not kept")
            continue
        hits = first_hits(case, a.output(case_id), b.output(case_id), matching)
        if fields and hits is not None:
            hits = replace(hits, notes=(f"edited: {', '.join(fields)}", *hits.notes))
        yield query_change(case_id, hits, notes)


def _other_data(job: CompareJob) -> bool:
    return job.a.identity.dataset_sha256 != job.b.identity.dataset_sha256


def _mixer(job: CompareJob, found: Sequence[Cause], *, has_edited: bool) -> Callable[[str], tuple[str, ...]]:
    """For a score or figure, the causes besides the answers that its difference mixes in."""
    owners: dict[str, set[str]] = {}
    for side in (job.a, job.b):
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


def _indexed(sides: Sequence[ComparedSide]) -> Iterator[tuple[str, str]]:
    for side in sides:
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
            yield "no_cases", f"{run} {text}{'' if _other_data(job) else '; labels are taken from the other run'}"
    for cause in found:
        if cause.is_refused:
            yield "mixed_causes", f"{cause.line}: allowed by --allow-mismatch"
        elif cause.kind == "judge":
            yield "judge_moved", cause.line
        elif cause.kind == "metric":
            yield "mixed_causes", f"{cause.line}: figures that it moves are not of the systems alone"
    if not any(side.identity.versions.get("chunker_version") for side in (job.a, job.b)):
        yield "chunker_unknown", "neither run says its chunker_version; chunk ids are taken to mean the same"
