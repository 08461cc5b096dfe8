"""The cases of two stored runs, paired one by one."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from judgekit.analysis.case_changes import KindRule, edited_fields, kind_rules, query_change, score_change
from judgekit.analysis.deltas import DeltaTally
from judgekit.analysis.run_deltas import USAGE_COLUMNS, LatencyPairs, usage_outcomes
from judgekit.analysis.run_differences import chunker_match
from judgekit.analysis.slices import Clusters
from judgekit.core.cases import Case, SystemOutput
from judgekit.core.comparison import ChunkerMatch, FirstHits, QueryChange, ScoreChange
from judgekit.core.scores import Column, Failed, NotApplicable, Outcome
from judgekit.metrics.first_hits import HitMatching, first_hits, span_names, span_outcomes
from judgekit.workflows.compare_job import CompareJob

Scores = Mapping[str, Outcome]

HIT = "hit@"


@dataclass
class PairedCases:
    """What is gathered of the cases beside the scores."""

    latencies: LatencyPairs = field(default_factory=LatencyPairs)
    edited: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """Fields that were edited, by case id."""
    untold: Counter[str] = field(default_factory=Counter)
    """By name of a judge or 0/1 score, cases that failed in a, so that a change cannot be told."""
    has_chunk_ids: bool = False
    """A case expects a chunk, so that chunk ids matter."""
    n_unequal: int = 0
    """Cases whose scores differ in any way."""


def chunker_match_of(job: CompareJob) -> ChunkerMatch:
    """Whether chunk ids of the two runs mean the same."""
    return chunker_match(job.a.identity, job.b.identity)


def other_data(job: CompareJob) -> bool:
    """Whether the two runs are of different data sets."""
    return job.a.identity.dataset_sha256 != job.b.identity.dataset_sha256


def left_out(job: CompareJob) -> tuple[str, ...]:
    """Scores by chunk id that cannot be compared, since the runs have different chunkers."""
    if chunker_match_of(job) != "fallback_doc_span":
        return ()
    return tuple(dict.fromkeys(column.name for column in _scored(job) if column.by_chunk_id))


def dropped(job: CompareJob) -> tuple[str, ...]:
    """Metric families and judges that give kinds per case in a, and that b has not."""
    first, second = _families(job, 0), _families(job, 1)
    lost = {name: job.a.columns[name] for name in job.a.columns if name in first - second}
    judges = job.a.identity.judges
    return tuple(name for name, columns in lost.items() if kind_rules({name: columns}, judges))


def columns_of(job: CompareJob) -> list[Column]:
    """All scores that are compared."""
    out = frozenset(left_out(job))
    stand_in = [Column(name, binary=name != "mrr_span") for name in (span_names(_ks(job)) if out else ())]
    return [*(column for column in _scored(job) if column.name not in out), *stand_in, *job.joint, *USAGE_COLUMNS]


def _scored(job: CompareJob) -> Iterator[Column]:
    for side in job.sides:
        for part in side.columns.values():
            yield from part


def _ks(job: CompareJob) -> list[int]:
    """Cut-offs of the figures by chunk id, so that those by span have the same."""
    names = dict.fromkeys(column.name for column in _scored(job) if column.name.startswith(HIT))
    return sorted(int(name.removeprefix(HIT)) for name in names)


def _families(job: CompareJob, place: int) -> set[str]:
    side = job.sides[place]
    return {*side.columns, *side.identity.metrics, *side.identity.judges}


class CasePairing:
    """Pairs cases: scores go to the tally, everything else to `found`."""

    def __init__(self, job: CompareJob, tally: DeltaTally, notes: Sequence[str]) -> None:
        """Prepare for the first case.

        Args:
            job: the two runs.
            tally: takes the scores.
            notes: known causes of a difference.
        """
        self._job, self._tally, self._notes = job, tally, notes
        match = chunker_match_of(job)
        self._matching = HitMatching(match != "fallback_doc_span", job.options.k, job.options.snippets)
        self._out = frozenset(left_out(job))
        self._ks = _ks(job) if self._out else None
        self._rules = self._kind_rules()
        by = job.options.cluster_by
        has_cases = job.a.cases.has_cases or job.b.cases.has_cases
        self._clusters = Clusters(by) if by is not None and has_cases else None
        self.found = PairedCases()

    def _kind_rules(self) -> list[KindRule]:
        job = self._job
        both = _families(job, 0) & _families(job, 1)
        families = {name: columns for side in job.sides for name, columns in side.columns.items() if name in both}
        judges = {*job.a.identity.judges, *job.b.identity.judges}
        rules = [*kind_rules(families, judges), *kind_rules({"": job.joint}, ())]
        if self._ks is not None:
            rules += kind_rules({"": [Column(name, binary=True) for name in span_names(self._ks)[:-1]]}, ())
        return [rule for rule in rules if rule.column.name not in self._out]

    def change(self, case_id: str) -> QueryChange:
        """What became of one case that both runs have."""
        a, b, job = self._job.a.cases, self._job.b.cases, self._job
        first, second = a.case(case_id), b.case(case_id)
        fields = edited_fields(first, second) if first is not None and second is not None else ()
        if fields:
            self.found.edited[case_id] = fields
            if not job.options.includes_edited:
                return QueryChange(case_id, "changed_case", note=f"edited: {', '.join(fields)}")
        case = second or first
        outputs = a.output(case_id), b.output(case_id)
        is_labelled = case is not None and not ((first is None or second is None) and other_data(job))
        hits = first_hits(case, *outputs, self._matching) if case is not None and is_labelled else None
        changes = self._scores(case_id, case, outputs, hits)
        if not is_labelled:
            return QueryChange(case_id, "not_applicable", note="the case was not kept", scores=changes)
        if fields and hits is not None:
            hits = replace(hits, notes=(f"edited: {', '.join(fields)}", *hits.notes))
        return query_change(case_id, hits, self._notes, changes)

    def _scores(
        self,
        case_id: str,
        case: Case | None,
        outputs: tuple[SystemOutput | None, SystemOutput | None],
        hits: FirstHits | None,
    ) -> dict[str, ScoreChange]:
        """Count the scores, tokens and latencies of a case; what became of each judge's verdict and 0/1 score."""
        found = self.found
        scores = self._job.a.cases.scores(case_id), self._job.b.cases.scores(case_id)
        found.n_unequal += scores[0] != scores[1]
        found.has_chunk_ids = found.has_chunk_ids or bool(case is not None and case.expected_chunk_ids)
        ranks = (None, None) if hits is None else (hits.a_rank, hits.b_rank)
        a, b = (self._compared(*parts) for parts in zip(scores, (case, case), outputs, ranks, strict=True))
        cluster = None if self._clusters is None or case is None else self._clusters.number(case)
        self._tally.add(a, b, cluster)
        found.latencies.add(*outputs)
        changes = {}
        for rule in self._rules:
            name = rule.column.name
            change = score_change(rule, case, a, b)
            if change is not None:
                changes[name] = change
            elif isinstance(a.get(name), Failed) and not isinstance(b.get(name), NotApplicable | None):
                found.untold[name] += 1
        return changes

    def _compared(self, scores: Scores, case: Case | None, output: SystemOutput | None, rank: int | None) -> Scores:
        """The scores of one run as they are compared: with tokens, and with spans in the place of chunk ids."""
        found = {**scores, **usage_outcomes(output)}
        if self._ks is None:
            return found
        kept = {name: outcome for name, outcome in found.items() if name not in self._out}
        if case is None or output is None:
            return kept
        return {**kept, **span_outcomes(case, output, rank, self._ks)}
