"""`judgekit score`: ranked retrieval figures of outputs that are read once and not kept."""

import math
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from itertools import islice
from typing import Any, TypeVar

from judgekit.analysis.estimates import DEFAULT_RULES, ColumnTally, ErrorPolicy, estimate
from judgekit.core.cases import Case, SystemOutput
from judgekit.core.collector import collector_paused
from judgekit.core.errors import InputError
from judgekit.core.scores import Column, Estimate, Failed
from judgekit.metrics.positions import Labels, Positions, SameRanks
from judgekit.metrics.ranked_lists import same_ranks
from judgekit.metrics.ranking_columns import RankingColumns
from judgekit.metrics.retrieval import Retrieval
from judgekit.metrics.retrieval_ids import MRR_CUTOFF, RetrievalIds
from judgekit.workflows.preflight import label_notices

Warnings = list[tuple[str, str]]
"""(code, message)."""

Placed = tuple[str, Positions | Failed | None]
"""Case id, and where its labels stand; None where no case has that id."""

Ranking = Sequence[str] | Mapping[str, float]
"""Ids in rank order, or scores by id."""
IdsT = TypeVar("IdsT", bound=Iterable[str])

_COLLECTIONS = (list, set, frozenset)
_AT_ONCE = 1 << 7
"""Lists whose ids are looked at together, so few that they stay in the processor's cache."""

MOST_LOOKED_AT = 200_000
"""Hits that are looked at a second time: enough to tell how paths, ids and headings are written."""

_DEEPEST = 1 << 31
"""No list is longer, so that with a larger cut-off nothing else comes out."""

_NOTHING = Positions((), (), (), (), (), 0)


@dataclass(frozen=True)
class RankingScores:
    """Ranked retrieval scores of many cases: columns of single cases, and estimates over all of them."""

    columns: RankingColumns
    """Scores of the cases, by score name."""
    policy: ErrorPolicy = "exclude"
    """What a failed output counts as in the estimates."""
    files: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """`cases` and `outputs`: name, sha256, and how many were read."""
    warnings: Warnings = field(default_factory=list)

    @cached_property
    def estimates(self) -> dict[str, Estimate]:
        """The mean of each score with its interval and what it rests on, by score name."""
        made: dict[Any, Estimate] = {}
        found: dict[str, Estimate] = {}
        for column in self.columns.columns():
            # Ids that are chunk, document and path at once give several names to one column.
            key = (self.columns.origin(column.name), column.binary, column.higher_is_better)
            if key not in made:
                made[key] = self._estimate(column)
            found[column.aggregate or column.name] = made[key]
        return found

    def _estimate(self, column: Column) -> Estimate:
        tally = ColumnTally(self.columns.counts(column.name))
        tally.n_not_applicable = self.columns.n_not_applicable(column.name)
        tally.n_error = self.columns.n_failed(column.name)
        return estimate(column, tally, self.policy, DEFAULT_RULES)


@dataclass(frozen=True)
class ScoreJob:
    """What is scored, ready to be read."""

    read_labels: Callable[[Warnings], dict[str, Labels]]
    """The labels of all cases, by id."""
    read_positions: Callable[[Mapping[str, Labels], int | None, Warnings], Iterator[SameRanks | Placed]]
    """Where they stand, output by output; with a largest cut-off the reader need not look beyond it."""
    is_scattered: Callable[[Exception], bool]
    """Whether a reader with a cut-off has given up on this file, which has to be read whole."""
    compare_ids: Callable[[Sequence[str], Collection[str]], Warnings]
    """What stands on one side only."""
    read_records: Callable[[], Iterator[tuple[Case, SystemOutput]]]
    """Whole cases with their outputs, for a second look where labels and hits may be written in different ways."""
    ids: RetrievalIds
    anchors: Retrieval
    missing_is_empty: bool
    """A case without an output retrieved nothing and has not failed."""
    policy: ErrorPolicy = "exclude"
    describe: Callable[[int, int], Mapping[str, Mapping[str, Any]]] = lambda _, __: {}
    """The files read, from the numbers of cases and outputs."""


def score(job: ScoreJob) -> RankingScores:
    """Read cases and outputs and score them.

    Raises:
        InputError: a file is wrong, or no output belongs to a case.
    """
    # Paused until the labels of all cases are gone again, which it would go through several times.
    with collector_paused():
        return _score(job)


def _score(job: ScoreJob) -> RankingScores:
    warnings: Warnings = []
    labels = job.read_labels(warnings)
    seen = _Seen()
    try:
        columns, unknown = _gathered(job, labels, _depth(job.ids, job.anchors), (warnings, seen))
    except Exception as error:
        if not job.is_scattered(error):
            raise
        columns, unknown = _gathered(job, labels, None, (warnings, seen))
    n_outputs = len(columns) + len(unknown)
    one_sided = job.compare_ids(list(labels), [*columns.case_ids, *unknown])
    _fill(job, columns, labels)
    if seen.asks_for_a_look(labels.values()):
        one_sided = [*one_sided, *label_notices(_first_of(job.read_records()))]
    files = job.describe(len(labels), n_outputs)
    return RankingScores(columns, job.policy, files, list(dict.fromkeys([*warnings, *one_sided])))


def _first_of(records: Iterable[tuple[Case, SystemOutput]]) -> Iterator[tuple[Case, SystemOutput]]:
    """Records until they have enough hits; what is wrong beyond the largest cut-off is no error here either."""
    n_hits = 0
    with suppress(InputError):
        for case, output in records:
            yield case, output
            n_hits += len(output.retrieved)
            if n_hits >= MOST_LOOKED_AT:
                return


@dataclass
class _Seen:
    """Which kinds of label were found among the hits."""

    chunks: bool = False
    docs: bool = False
    supports: bool = False

    def add(self, placed: SameRanks | Placed) -> None:
        """Count the labels of some outputs."""
        if isinstance(placed, SameRanks):
            if any(placed.ranks):
                self.docs = self.supports = True
                self.chunks |= placed.with_chunks
        elif isinstance(placed[1], Positions):
            found = placed[1]
            self.chunks, self.docs = self.chunks or bool(found.chunks), self.docs or bool(found.docs)
            self.supports |= bool(found.right)

    def asks_for_a_look(self, labels: Iterable[Labels]) -> bool:
        """Whether there are labels of a kind of which none was found, or headings, which can miss one by one."""
        return any(
            (one.chunks and not self.chunks)
            or (one.docs and not self.docs)
            or (one.paths and not self.supports)
            or one.supports is not None
            for one in labels
        )


def _gathered(
    job: ScoreJob, labels: Mapping[str, Labels], depth: int | None, found_out: tuple[Warnings, _Seen]
) -> tuple[RankingColumns, list[str]]:
    """The scores of the cases that have an output, and the ids of outputs without a case."""
    columns = RankingColumns(job.ids, job.anchors)
    unknown: list[str] = []
    warnings, seen = found_out
    for placed in job.read_positions(labels, depth, warnings):
        seen.add(placed)
        if isinstance(placed, SameRanks):
            columns.add_same(placed)
            continue
        case_id, found = placed
        if found is None:
            unknown.append(case_id)
        else:
            columns.add(case_id, labels[case_id], found)
    return columns, unknown


def _fill(job: ScoreJob, columns: RankingColumns, labels: Mapping[str, Labels]) -> None:
    """Add the cases without an output, and put all in the order of the cases."""
    if len(columns) < len(labels):
        with_output = set(columns.case_ids)
        missing: Positions | Failed = _NOTHING if job.missing_is_empty else Failed("missing_output")
        for case_id, wanted in labels.items():
            if case_id not in with_output:
                columns.add(case_id, wanted, missing)
    columns.arrange(labels)


def score_lists(
    gold: Mapping[str, Iterable[str]],
    rankings: Mapping[str, Ranking],
    ids: RetrievalIds,
    anchors: Retrieval,
) -> RankingColumns:
    """Score lists that are in memory.

    Args:
        gold: relevant ids by case id.
        rankings: ids in rank order, or scores by id, by case id; a case without one retrieved nothing.
        ids: cut-offs of the figures by id.
        anchors: cut-offs of the figures by gold support.

    Raises:
        InputError: what is no id, or a score that is no finite number.
    """
    columns = RankingColumns(ids, anchors)
    depth = _depth(ids, anchors)
    # What can be read only once is read here, since a list in which something is wrong is looked at again.
    cases = ((one, ids if isinstance(ids, _COLLECTIONS) else _read(one, ids)) for one, ids in gold.items())
    with collector_paused():
        while some := list(islice(cases, _AT_ONCE)):
            try:
                columns.add_same(_same_ranks(some, rankings, depth))
            except (ValueError, TypeError):
                for case in some:  # one by one, to name the case
                    columns.add_same(_same_ranks_of_one(case, rankings, depth))
    return columns


def _read(case_id: str, ids: Iterable[str]) -> Collection[str]:
    try:
        return list(_no_text(ids))
    except TypeError as error:
        raise InputError(f"case {case_id!r}: {error}") from None


def _same_ranks(cases: Sequence[tuple[str, Collection[str]]], rankings: Mapping[str, Ranking], depth: int) -> SameRanks:
    """Where gold stands in the lists of some cases, of which it is given."""
    of = rankings.get
    lists = [found if type(found := of(one, ())) is list else _listed(found) for one, _ in cases]
    return same_ranks([case_id for case_id, _ in cases], [ids for _, ids in cases], lists, depth)


def _same_ranks_of_one(case: tuple[str, Collection[str]], rankings: Mapping[str, Ranking], depth: int) -> SameRanks:
    try:
        return _same_ranks([case], rankings, depth)
    except (ValueError, TypeError) as error:
        raise InputError(f"case {case[0]!r}: {error}") from None


def _listed(found: Ranking) -> Sequence[str]:
    """The ids of a ranking by rank; of equal scores the first stays first.

    Raises:
        ValueError: a score is no finite number.
    """
    if not isinstance(found, Mapping):
        return _no_text(found)
    scores = list(found.values())
    if not math.isfinite(sum(scores)):
        raise ValueError("a score is no finite number")
    if sorted(scores, reverse=True) == scores:
        return list(found)
    return sorted(found, key=found.__getitem__, reverse=True)


def _no_text(ids: IdsT) -> IdsT:
    """The ids, which are letters where somebody gave one text."""
    if isinstance(ids, str):
        raise TypeError("expected ids, found one text")
    return ids


def _depth(ids: RetrievalIds, anchors: Retrieval) -> int:
    return min(_DEEPEST, max(MRR_CUTOFF, *ids.ks, *anchors.ks, *anchors.mrr_ks))
