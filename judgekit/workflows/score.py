"""`judgekit score`: ranked retrieval figures of outputs that are read once and not kept."""

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

from pydantic import ValidationError

from judgekit.analysis.estimates import DEFAULT_RULES, ColumnTally, ErrorPolicy, Tally, estimate
from judgekit.analysis.input_mismatches import check_positions, ids_on_one_side
from judgekit.core.cases import Case, SystemOutput
from judgekit.core.data_files import DataFile
from judgekit.core.errors import ConfigError, InputError, first_problem
from judgekit.core.scores import Column, Estimate, Failed
from judgekit.core.text import are_plain_ids, canonical_id
from judgekit.metrics.gold_evidence import split_case, split_output
from judgekit.metrics.gold_positions import Gold, Ids, empty_positions, positions_near
from judgekit.metrics.ranking_columns import RankingColumns
from judgekit.metrics.retrieval import Retrieval
from judgekit.metrics.retrieval_ids import RetrievalIds
from judgekit.storage.case_files import data_sha256, iterate_outputs, load_cases
from judgekit.storage.encodings import Hashes
from judgekit.storage.formats.trec import Scattered
from judgekit.storage.ranked_files import Placed, iterate_positions, load_gold
from judgekit.storage.reading import missing_is_empty
from judgekit.storage.record_formats import NO_ID
from judgekit.storage.remote_files import local_data

Warnings = list[tuple[str, str]]
"""(code, message)."""

Ranking = Sequence[str] | Mapping[str, float]
"""Ids in rank order, or scores by id."""

IdsT = TypeVar("IdsT", bound=Iterable[str])

MOST_LOOKED_AT = 200_000
"""Hits that are looked at a second time: enough to tell how paths, ids and headings are written."""


@dataclass(frozen=True)
class Cutoffs:
    """At which ranks the figures are cut off, as the families have it."""

    ks: tuple[int, ...] = (1, 3, 5, 10)
    mrr_ks: tuple[int, ...] = ()
    """Of further `mrr@k` figures."""


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
            if column.aggregate == "":
                continue
            # Ids that are chunk, document and path at once give several names to one column.
            key = (self.columns.origin(column.name), column.binary, column.higher_is_better)
            if key not in made:
                made[key] = self._estimate(column)
            found[column.aggregate or column.name] = made[key]
        return found

    @cached_property
    def distributions(self) -> dict[str, dict[str, int]]:
        """The counts of scores of which a mean says nothing, such as `first_missing_support.distribution`."""
        columns = [column for column in self.columns.columns() if column.distribution]
        tally = Tally(columns, [])
        for outcomes in zip(*[self.columns.outcomes(column.name) for column in columns], strict=True):
            tally.add({column.name: outcome for column, outcome in zip(columns, outcomes, strict=True)})
        return {name: counts for name, counts in tally.figures(self.policy).items() if isinstance(counts, dict)}

    def _estimate(self, column: Column) -> Estimate:
        tally = ColumnTally(Counter(self.columns.counts(column.name)))
        tally.n_not_applicable = self.columns.n_not_applicable(column.name)
        tally.n_error = self.columns.n_failed(column.name)
        return estimate(column, tally, self.policy, DEFAULT_RULES)


def score(
    cases: DataFile, outputs: DataFile, cutoffs: Cutoffs | None = None, *, policy: ErrorPolicy = "exclude"
) -> RankingScores:
    """Score one file against another.

    Args:
        cases: the file of cases, such as relevance judgements.
        outputs: the file of outputs, such as a run.
        cutoffs: left out: 1, 3, 5 and 10.
        policy: what a failed output counts as.

    Raises:
        ConfigError: a cut-off that is not one.
        InputError: a file is wrong, or no output belongs to a case.
    """
    families = _families(cutoffs or Cutoffs())
    names = [cases.path, outputs.path]
    cases, outputs = (file.model_copy(update={"path": str(local_data(Path(), file.path))}) for file in (cases, outputs))
    hashes: Hashes = {}
    warnings: Warnings = []
    gold, delimiter = load_gold(cases, warnings, hashes)
    columns, said = RankingColumns(*families), Warnings()
    try:
        unknown = _gather(columns, gold, iterate_positions(outputs, gold, columns.depth, said, hashes))
    except Scattered:
        columns, said = RankingColumns(*families), Warnings()
        unknown = _gather(columns, gold, iterate_positions(outputs, gold, columns.depth, said, hashes, whole=True))
    output_ids = [*columns.case_ids, *unknown]
    path = Path(outputs.path)
    numbered = [kind for kind, notices in (("cases", warnings), ("outputs", said)) if NO_ID in dict(notices)]
    warnings += said
    if path.resolve() == Path(cases.path).resolve():  # positions of one file cannot differ
        warnings = [notice for notice in warnings if notice[0] != NO_ID]
    check_positions(gold, output_ids, numbered, path.name)
    is_empty = missing_is_empty(outputs, path)
    warnings += ids_on_one_side(list(gold), output_ids, path.name, missing_is_empty=is_empty)
    _fill(columns, gold, None if is_empty else Failed("missing_output"))
    if _asks_for_a_look(columns, gold):
        from judgekit.workflows.preflight import gold_notices  # half of what this command would import

        warnings += gold_notices(_first_of(_records(cases, outputs, delimiter)))
    files = {
        kind: {"path": name, "sha256": data_sha256(file, Path(file.path), hashes), "n": n}
        for kind, name, file, n in zip(
            ("cases", "outputs"), names, (cases, outputs), (len(gold), len(output_ids)), strict=True
        )
    }
    return RankingScores(columns, policy, files, list(dict.fromkeys(warnings)))


def _families(cutoffs: Cutoffs) -> tuple[RetrievalIds, Retrieval]:
    """The families whose scores are made.

    Raises:
        ConfigError: a cut-off that is not one.
    """
    try:
        return RetrievalIds(ks=cutoffs.ks), Retrieval(ks=cutoffs.ks, mrr_ks=cutoffs.mrr_ks)
    except ValidationError as error:
        raise ConfigError(f"cut-offs: {first_problem(error).removeprefix('$.')}") from None


def _gather(columns: RankingColumns, gold: Mapping[str, Gold], placed: Iterable[Placed]) -> list[str]:
    """Take the cases that have an output; the ids of outputs without a case."""
    unknown: list[str] = []
    for case_id, found in placed:
        if found is None:
            unknown.append(case_id)
        elif isinstance(found, Failed):
            columns.add(case_id, empty_positions(gold[case_id]), found)
        else:
            columns.add(case_id, found)
    return unknown


def _fill(columns: RankingColumns, gold: Mapping[str, Gold], failed: Failed | None) -> None:
    """Add the cases without an output, as failed or with an empty list, and put all in the order of the cases."""
    if len(columns) < len(gold):
        with_output = set(columns.case_ids)
        for case_id, wanted in gold.items():
            if case_id not in with_output:
                columns.add(case_id, empty_positions(wanted), failed)
    columns.arrange(gold)


def _asks_for_a_look(columns: RankingColumns, gold: Mapping[str, Gold]) -> bool:
    """Whether there is gold of a kind of which none was found, or headings, which can miss one by one."""
    has_chunks = any(found.chunks for found in columns.positions)
    has_docs = any(found.docs for found in columns.positions)
    has_supports = any(found.right for found in columns.positions)
    return any(
        one.supports is not None
        or (one.chunks and not has_chunks)
        or (one.docs and not has_docs)
        or (one.paths and not has_supports)
        for one in gold.values()
    )


def _records(cases: DataFile, outputs: DataFile, delimiter: str | None) -> Iterator[tuple[Case, SystemOutput]]:
    """Each output with its case, their headings split at the delimiter that the cases use."""
    found = {case.id: case for case in load_cases(cases, Path(cases.path))}
    for output in iterate_outputs(outputs, Path(outputs.path)):
        if output.case_id in found:
            yield split_case(found[output.case_id], delimiter), split_output(output, delimiter)


def _first_of(records: Iterable[tuple[Case, SystemOutput]]) -> Iterator[tuple[Case, SystemOutput]]:
    """Records until they have enough hits; what is wrong beyond the largest cut-off is not an error here either."""
    n_hits = 0
    with suppress(InputError):
        for case, output in records:
            yield case, output
            n_hits += len(output.retrieved)
            if n_hits >= MOST_LOOKED_AT:
                return


def score_in_memory(
    gold: Mapping[str, Iterable[str]], rankings: Mapping[str, Ranking], cutoffs: Cutoffs
) -> RankingScores:
    """Score lists that are in memory.

    Args:
        gold: relevant ids by case id.
        rankings: ids in rank order, or scores by id, by case id; a case without one retrieved nothing.
        cutoffs: of the figures.

    Raises:
        ConfigError: a cut-off that is not one.
        InputError: something that is not an id, a score that is not a finite number, or no ranking of any case.
    """
    columns = RankingColumns(*_families(cutoffs))
    for case_id, relevant in gold.items():
        try:
            wanted = tuple(dict.fromkeys(_checked_ids(list(_ids(relevant)))))
            ids = _by_rank(rankings.get(case_id, ()))
            found = positions_near(Gold(wanted, wanted, wanted), ids, columns.depth, _three_ids)
        except (ValueError, TypeError) as error:
            raise InputError(f"case {case_id!r}: {error}") from None
        columns.add(case_id, found)
    warnings = ids_on_one_side(list(gold), rankings, "rankings", missing_is_empty=True)
    return RankingScores(columns, warnings=warnings)


def _by_rank(ranking: Ranking) -> Sequence[str]:
    """The ids of a ranking by rank; of equal scores the first stays first.

    Raises:
        ValueError: a score is not a finite number.
    """
    if not isinstance(ranking, Mapping):
        return _ids(ranking)
    scores = list(ranking.values())
    if not math.isfinite(sum(scores)):
        raise ValueError("a score is not a finite number")
    if sorted(scores, reverse=True) == scores:
        return list(ranking)
    return sorted(ranking, key=ranking.__getitem__, reverse=True)


def _ids(ids: IdsT) -> IdsT:
    """The ids, which are letters if somebody gave one text."""
    if isinstance(ids, str):
        raise TypeError("expected ids, found one text")
    return ids


def _three_ids(ids: Sequence[str]) -> tuple[Ids, Ids, Ids]:
    checked = _checked_ids(ids)
    return checked, checked, checked


def _checked_ids(ids: Sequence[str]) -> Sequence[str]:
    """The ids as compared.

    Raises:
        ValueError: one is neither text nor a whole number, or empty.
    """
    if are_plain_ids(ids):
        return ids
    found = [canonical_id(one) for one in ids]
    for one in found:
        if not isinstance(one, str):
            raise ValueError(f"an id is text or a whole number, found {type(one).__name__}")
    return found  # type: ignore[return-value]  # checked just before
