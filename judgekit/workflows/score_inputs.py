"""What `judgekit score` works on: a file of cases and one of outputs."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from judgekit.analysis.estimates import ErrorPolicy
from judgekit.analysis.input_mismatches import check_positions, ids_on_one_side
from judgekit.core.cases import Case, SystemOutput
from judgekit.core.data_files import DataFile
from judgekit.core.errors import ConfigError, first_problem
from judgekit.metrics.anchors import SnippetMode
from judgekit.metrics.headings import heading_texts, recognised_delimiter, split_case, split_output
from judgekit.metrics.positions import Labels, SameRanks
from judgekit.metrics.retrieval import Retrieval
from judgekit.metrics.retrieval_ids import RetrievalIds
from judgekit.storage.case_files import data_sha256, iterate_cases, iterate_outputs
from judgekit.storage.formats.lookup import missing_is_empty
from judgekit.storage.formats.records import NO_ID
from judgekit.storage.hashed_file import Hashes
from judgekit.storage.listings import iterate_positions, load_labels
from judgekit.storage.ready import Scattered
from judgekit.storage.table_files import check_target, write_columns
from judgekit.workflows.score import Placed, RankingScores, ScoreJob, Warnings, score_lists

__all__ = ["Cutoffs", "check_target", "families", "open_score", "score_in_memory", "write_columns"]


@dataclass(frozen=True)
class Cutoffs:
    """At which ranks the figures are cut off, as the families have it."""

    ks: tuple[int, ...] = (1, 3, 5, 10)
    mrr_ks: tuple[int, ...] = ()
    """Of further `mrr@k` figures."""


def open_score(
    cases: DataFile,
    outputs: DataFile,
    cutoffs: Cutoffs | None = None,
    *,
    snippets: SnippetMode = "if_text",
    policy: ErrorPolicy = "exclude",
) -> ScoreJob:
    """Everything ready to score one file against another; neither is read yet.

    Args:
        cases: the file of cases, such as relevance judgements.
        outputs: the file of outputs, such as a run.
        cutoffs: left out: 1, 3, 5 and 10.
        snippets: how the snippets of gold supports are looked for.
        policy: what a failed output counts as.

    Raises:
        ConfigError: a cut-off that is none.
    """
    cutoffs = cutoffs or Cutoffs()
    ids, anchors = families(cutoffs, snippets)
    cases_path, outputs_path = Path(cases.path), Path(outputs.path)
    hashes: Hashes = {}
    numbered: set[str] = set()
    """Sides whose rows have their positions as ids."""

    def labels(notices: Warnings) -> dict[str, Labels]:
        labels = load_labels(cases, cases_path, snippets, notices, hashes)
        numbered.update(["cases"] * (NO_ID in dict(notices)))
        return labels

    def positions(wanted: Mapping[str, Labels], depth: int | None, notices: Warnings) -> Iterator[SameRanks | Placed]:
        said: Warnings = []
        yield from iterate_positions(outputs, outputs_path, wanted, depth, said, hashes)
        numbered.update(["outputs"] * (NO_ID in dict(said)))
        notices += said
        if outputs_path.resolve() == cases_path.resolve():  # positions of one file cannot differ
            notices[:] = [notice for notice in notices if notice[0] != NO_ID]

    def compared(case_ids: Sequence[str], output_ids: Collection[str]) -> Warnings:
        check_positions(case_ids, output_ids, numbered, outputs_path.name)
        return ids_on_one_side(case_ids, output_ids, outputs_path.name, missing_is_empty=is_empty)

    is_empty = missing_is_empty(outputs, outputs_path)
    return ScoreJob(
        read_labels=labels,
        read_positions=positions,
        read_records=partial(_records, cases, outputs),
        is_scattered=lambda error: isinstance(error, Scattered),
        compare_ids=compared,
        ids=ids,
        anchors=anchors,
        missing_is_empty=is_empty,
        policy=policy,
        describe=partial(_files, cases, outputs, hashes),
    )


def _files(
    cases: DataFile, outputs: DataFile, known: Hashes, n_cases: int, n_outputs: int
) -> dict[str, dict[str, Any]]:
    """Path, hash and number of records of both files."""
    return {
        kind: {"path": file.path, "sha256": data_sha256(file, Path(file.path), known), "n": n}
        for kind, file, n in (("cases", cases, n_cases), ("outputs", outputs, n_outputs))
    }


def _records(cases: DataFile, outputs: DataFile) -> Iterator[tuple[Case, SystemOutput]]:
    """Each output with its case, their headings cut at the delimiter that the cases use."""
    found = {case.id: case for case in iterate_cases(cases, Path(cases.path))}
    delimiter = recognised_delimiter(text for case in found.values() for text in heading_texts(case))
    for output in iterate_outputs(outputs, Path(outputs.path)):
        if output.case_id in found:
            yield split_case(found[output.case_id], delimiter), split_output(output, delimiter)


def families(cutoffs: Cutoffs, snippets: SnippetMode = "if_text") -> tuple[RetrievalIds, Retrieval]:
    """The families whose scores are made.

    Raises:
        ConfigError: a cut-off that is none.
    """
    from pydantic import ValidationError

    try:
        return RetrievalIds(ks=cutoffs.ks), Retrieval(ks=cutoffs.ks, mrr_ks=cutoffs.mrr_ks, snippets=snippets)
    except ValidationError as error:
        raise ConfigError(f"cut-offs: {first_problem(error).removeprefix('$.')}") from None


def score_in_memory(
    gold: Mapping[str, Iterable[str]], rankings: Mapping[str, Sequence[str] | Mapping[str, float]], cutoffs: Cutoffs
) -> RankingScores:
    """Score lists, see `workflows.score.score_lists`.

    Raises:
        ConfigError: a cut-off that is none, what is no id, or no ranking of any case.
    """
    columns = score_lists(gold, rankings, *families(cutoffs))
    # Where each case has hits each has a ranking, so as many rankings as cases leave none without a case.
    if len(rankings) == len(columns) and not columns.n_empty:
        return RankingScores(columns)
    warnings = ids_on_one_side(list(gold), rankings, "rankings", missing_is_empty=True)
    return RankingScores(columns, warnings=warnings)
