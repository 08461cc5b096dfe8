"""What became of one case between two runs: win, loss, regression or draw, and whether it is the same case."""

from collections.abc import Iterable, Mapping, Sequence

from judgekit.core.cases import Case
from judgekit.core.comparison import QUERY_KINDS, FirstHits, QueryChange, QueryKind, ScoreChange

_UNSCORED = frozenset({"id", "category", "difficulty", "lang", "tags", "vaults", "metadata"})
"""Fields that put a case into slices and move no score."""


def kind_of(a_rank: int | None, b_rank: int | None) -> QueryKind:
    """What the ranks of the first correct hits say, 1-based, None for not found.

    `win`: found in b only, or earlier in b. `loss`: later in b. `regression`: found in a, not in b. `draw`: the same
    rank, or found in neither. Swapping the runs keeps draws, makes each loss and regression a win, and each win a
    loss, or a regression where the hit was found in b only.
    """
    if a_rank == b_rank:
        return "draw"
    if b_rank is None:
        return "regression"
    return "win" if a_rank is None or b_rank < a_rank else "loss"


def query_change(
    case_id: str, hits: FirstHits | None, causes: Sequence[str], scores: Mapping[str, ScoreChange]
) -> QueryChange:
    """One case in both runs.

    Args:
        case_id: the case.
        hits: where the first correct hits are; None where nothing says which are correct.
        causes: known causes of a difference, named where there is one.
        scores: what became of each judge's verdict and each 0/1 score.
    """
    moved = any(change.kind != "draw" for change in scores.values())
    if hits is None:
        notes = ["no expected chunk, support or document", *(causes if moved else ())]
        return QueryChange(case_id, "not_applicable", note="; ".join(notes), scores=scores)
    kind = kind_of(hits.a_rank, hits.b_rank)
    notes = [*hits.notes, *(causes if moved or kind != "draw" or hits.lost else ())]
    return QueryChange(
        query_id=case_id,
        kind=kind,
        a_hit_rank=hits.a_rank,
        b_hit_rank=hits.b_rank,
        lost=hits.lost,
        note="; ".join(notes) or None,
        scores=scores,
        hit_loss=max(_reciprocal(hits.a_rank) - _reciprocal(hits.b_rank), len(hits.lost) / hits.n_expected, 0.0),
    )


def _reciprocal(rank: int | None) -> float:
    return 0.0 if rank is None else 1.0 / rank


def by_loss(queries: Iterable[QueryChange]) -> tuple[QueryChange, ...]:
    """Sorted by what was lost: the largest loss of a case, then the sum of its losses; then cases that gained."""
    order = {kind: place for place, kind in enumerate(QUERY_KINDS)}

    def place(query: QueryChange) -> tuple[float, float, bool, int]:
        most, total = query.loss
        return -most, -total, query.kinds.isdisjoint(("win", "mended")), order[query.kind]

    return tuple(sorted(queries, key=place))


def edited_fields(a: Case, b: Case) -> tuple[str, ...]:
    """Names of question and labels that differ between two versions of a case; empty for the same case.

    What only puts a case into a slice, such as tags, is no difference.
    """
    if a == b:
        return ()
    return tuple(name for name in Case.model_fields if name not in _UNSCORED and getattr(a, name) != getattr(b, name))
