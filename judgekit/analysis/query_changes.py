"""What became of one case between two runs: win, loss, regression or draw, and whether it is the same case."""

from collections.abc import Sequence

from judgekit.core.cases import Case
from judgekit.core.comparison import FirstHits, QueryChange, QueryKind

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


def query_change(case_id: str, hits: FirstHits | None, causes: Sequence[str]) -> QueryChange:
    """One case in both runs.

    Args:
        case_id: the case.
        hits: where the first correct hits are; None where nothing says which are correct.
        causes: known causes of a difference, named where there is one.
    """
    if hits is None:
        note = "no expected chunk, support or document"
        return QueryChange(case_id, "not_applicable", note=note)
    kind = kind_of(hits.a_rank, hits.b_rank)
    moved = kind != "draw" or hits.lost_chunks
    notes = [*hits.notes, *(causes if moved else ())]
    return QueryChange(case_id, kind, hits.a_rank, hits.b_rank, hits.lost_chunks, "; ".join(notes) or None)


def edited_fields(a: Case, b: Case) -> tuple[str, ...]:
    """Names of question and labels that differ between two versions of a case; empty for the same case.

    What only puts a case into a slice, such as tags, is no difference.
    """
    if a == b:
        return ()
    return tuple(name for name in Case.model_fields if name not in _UNSCORED and getattr(a, name) != getattr(b, name))
