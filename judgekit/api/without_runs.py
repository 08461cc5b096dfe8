"""Figures without a run: of scores, of rankings in memory, and of files of rankings."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from judgekit.core.components import Component
    from judgekit.core.scores import Estimate, Outcomes
    from judgekit.workflows.score import RankingScores


def aggregate(
    component: "Component", outcomes: Iterable["Outcomes"], *, errors: Literal["exclude", "as_zero"] = "exclude"
) -> "dict[str, Estimate | dict[str, int]]":
    """The figures of one metric family or judge over many cases, as a run calculates them.

    Args:
        component: the family or judge that gave the scores, with the same arguments.
        outcomes: the scores of each case, as its `calculate` or `scores` returns them.
        errors: failed cases are left out and counted, or counted as the worst value.

    Returns:
        Estimates by name in metrics.json, with n, n_not_applicable and n_error; the value is None for no cases.
        Distributions are counts by value.

    Raises:
        KeyError: a case lacks one of the component's scores.
    """
    from judgekit.analysis.estimates import Tally

    tally = Tally(component.columns(), component.pooled())
    for scores in outcomes:
        tally.add(scores)
    return {**tally.figures(errors), **tally.figures(errors, "operational")}


def score_rankings(
    gold: Mapping[str, Iterable[str]],
    rankings: Mapping[str, Sequence[str] | Mapping[str, float]],
    *,
    ks: Sequence[int] = (1, 3, 5, 10),
    mrr_ks: Sequence[int] = (),
) -> "RankingScores":
    """Ranked retrieval figures of lists that are in memory, by the definitions and functions of a run.

    Args:
        gold: relevant ids by case id; a case with none has no figures.
        rankings: by case id, retrieved ids in rank order, or scores by id (of equal scores the first given stands
            first). A case without a ranking retrieved nothing and scores 0; a ranking without a case is left out.
            Ids are compared as text after NFC; of an id that comes twice the first counts.
        ks: cut-offs.
        mrr_ks: cut-offs of further `mrr@k` figures.

    Returns:
        `estimates`: the mean of each score with its interval, by score name; `columns.values(name)`: the scores of
        single cases. An id is a chunk, a document and a path at once, so that the names of both families apply:
        `hit@k`, `recall_doc@k`, `precision_chunk@k`, `mrr_chunk`, `ndcg@k`, `mrr` and their equals.

    Raises:
        JudgekitError: a value that is not an id or a score, or a cut-off below 1.
    """
    from judgekit.workflows.score import Cutoffs, score_in_memory

    return score_in_memory(gold, rankings, Cutoffs(tuple(ks), tuple(mrr_ks)))


def score_files(
    cases: str | Path,
    outputs: str | Path,
    *,
    ks: Sequence[int] = (1, 3, 5, 10),
    mrr_ks: Sequence[int] = (),
    ties: Literal["given", "trec_eval"] | None = None,
    errors: Literal["exclude", "as_zero"] = "exclude",
) -> "RankingScores":
    """Ranked retrieval figures of a file of outputs against a file of cases, as of `judgekit score`.

    Args:
        cases: file of cases, such as relevance judgements.
        outputs: file of outputs, such as a TREC run.
        ks: cut-offs.
        mrr_ks: cut-offs of further `mrr@k` figures.
        ties: how a TREC run orders equal scores.
        errors: what a failed output counts as.

    Returns:
        As of `score_rankings`; `files` says what was read.

    Raises:
        JudgekitError: a file that cannot be used; the message names the line.
    """
    from judgekit.core.data_files import DataFile
    from judgekit.workflows.score import Cutoffs, score

    found = DataFile(path=str(outputs), ties=ties)
    return score(DataFile(path=str(cases)), found, Cutoffs(tuple(ks), tuple(mrr_ks)), policy=errors)
