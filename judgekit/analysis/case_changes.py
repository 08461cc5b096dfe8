"""What became of one case between two runs: its first correct hit, each judge's verdict and each 0/1 score."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Literal

from judgekit.core.cases import Case
from judgekit.core.comparison import QUERY_KINDS, FirstHits, QueryChange, QueryKind, ScoreChange, ScoreKind
from judgekit.core.kind import Kind
from judgekit.core.scores import Column, NotApplicable, Outcome

_UNSCORED = frozenset({"id", "category", "difficulty", "lang", "tags", "vaults", "metadata"})
"""Fields that put a case into slices and move no score."""

Scores = Mapping[str, Outcome]


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
    """One case in both runs; `hits` is None if nothing says which are correct, `causes` are named beside a change."""
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
        return -most, -total, query.kinds.isdisjoint(("win", "mended", "changed")), order[query.kind]

    return tuple(sorted(queries, key=place))


def edited_fields(a: Case, b: Case) -> tuple[str, ...]:
    """Names of question and gold that differ between two versions of a case; empty for the same case.

    What only puts a case into a slice, such as tags, does not count.
    """
    if a == b:
        return ()
    return tuple(name for name in Case.model_fields if name not in _UNSCORED and getattr(a, name) != getattr(b, name))


@dataclass(frozen=True, slots=True)
class KindRule:
    """How the values of one score are held against each other."""

    column: Column
    pass_name: str | None = None
    """The 0/1 score that says whether a verdict passes; None: a 0/1 score passes where it is best."""
    labels: Mapping[str, str] = field(default_factory=dict)
    """Of a judge that gives labels: the label of each of its 0/1 scores."""
    words: tuple[str, str] | None = None
    """Of a judge that answers yes or no: what 0 and 1 are called."""

    def said(self, scores: Scores) -> Outcome | str | None:
        """What a run says of a case: a score, or the label whose score is 1."""
        if not self.labels:
            return scores.get(self.column.name)
        return next(
            (label for name, label in self.labels.items() if scores.get(name) == 1.0), scores.get(min(self.labels))
        )


def kind_rules(
    families: Mapping[str, Sequence[Column]],
    judges: Iterable[str],
    kinds: Mapping[str, Kind] = MappingProxyType({}),
) -> tuple[KindRule, ...]:
    """One rule for each judge and each 0/1 score that is a figure of its own.

    A judge goes by its score or label, and its 0/1 score `NAME_pass` says whether the verdict passes, so that has no
    rule of its own.

    Args:
        families: what is known of the scores that both runs have, by metric family or judge.
        judges: families that are judges.
        kinds: of judges, the kind of verdict.
    """
    judges = frozenset(judges)
    found: dict[str, KindRule] = {}
    for family, columns in families.items():
        by_name = {column.name: column for column in columns}
        passes = f"{family}_pass" if family in judges and f"{family}_pass" in by_name else None
        main = _main(family, columns) if family in judges else None
        kind = kinds.get(family)
        own = {} if kind is None else kind.label_columns(family)
        words = {} if kind is None else kind.score_words(family)
        if own:
            found[family] = KindRule(Column(family, has_direction=passes is not None), passes, own)
        for name, column in by_name.items():
            if name in own:
                continue
            if name == main:
                found[name] = KindRule(column, passes, words=words.get(name))
            elif column.binary and column.aggregate != "" and name != passes:
                found[name] = KindRule(column)
    return tuple(found.values())


def _main(judge: str, columns: Iterable[Column]) -> str | None:
    """The score that stands for a judge: the one of its name, else its first figure."""
    names = [column.name for column in columns if column.aggregate != ""]
    return judge if judge in names else next(iter(names), None)


def score_change(rule: KindRule, case: Case | None, a: Scores, b: Scores) -> ScoreChange | None:
    """What became of one score or label; None if run a has none, so that nothing can be lost and no gain be told.

    With a value in both runs: `regression` passed in a and not in b, `mended` the reverse, else `win` or `loss` by the
    score, `draw` if it is equal. If b has no value, the choice that can never make it look better: a verdict or
    output that failed, or a score that is missing, is a regression of a score that passed, and else a loss; a score
    that does not apply in b is a loss. Either way all that a had is lost.

    Where neither way is better, and of two labels that both pass or both do not, another one is `changed`.
    """
    change = _change(rule, case, a, b)
    if change is None or rule.words is None:
        return change
    no, yes = rule.words
    second = change.b if change.b is None else yes if change.b else no
    return replace(change, a=yes if change.a else no, b=second)


def _change(rule: KindRule, case: Case | None, a: Scores, b: Scores) -> ScoreChange | None:
    first, second = rule.said(a), rule.said(b)
    if not isinstance(first, float | str):
        return None
    if isinstance(first, str) or not rule.column.has_direction:
        return _label_change(rule, (a, b), first, second)
    if isinstance(second, str):
        raise TypeError("a score in one run and a label in the other")
    best, worst = rule.column.best, rule.column.worst
    if rule.column.turns_if_unanswerable and case is not None and case.answerable is False:
        best, worst = worst, best
    had = _passes(rule, a, first, best)
    if not isinstance(second, float):
        kind: Literal["regression", "loss"] = "loss" if isinstance(second, NotApplicable) or not had else "regression"
        return ScoreChange(first, None, kind, _share(first, worst, best, worst), _why(second))
    has = _passes(rule, b, second, best)
    lost = _share(first, second, best, worst)
    if first == second and had == has:
        return ScoreChange(first, second, "draw")
    if had != has:
        return ScoreChange(first, second, "regression" if had else "mended", lost)
    return ScoreChange(first, second, "loss" if (second < first) == (best > worst) else "win", lost)


def _label_change(
    rule: KindRule, scores: tuple[Scores, Scores], first: float | str, second: Outcome | str | None
) -> ScoreChange:
    """The same for what has no order: a label, or a score of which neither way is better."""
    had, has = (rule.pass_name is not None and side.get(rule.pass_name) == 1.0 for side in scores)
    if not isinstance(second, float | str):
        kind: ScoreKind = "changed" if rule.pass_name is None else "loss"
        is_regression = had and not isinstance(second, NotApplicable)
        return ScoreChange(first, None, "regression" if is_regression else kind, float(had), _why(second))
    if had != has:
        return ScoreChange(first, second, "regression" if had else "mended", float(had))
    return ScoreChange(first, second, "draw" if first == second else "changed")


def _passes(rule: KindRule, scores: Scores, value: float, best: float) -> bool:
    if rule.pass_name is not None:
        return scores.get(rule.pass_name) == 1.0
    return rule.column.binary and value == best


def _share(a: float, b: float, best: float, worst: float) -> float:
    """The part of the range of a score that is lost from a to b, in [0, 1]; 1 for a loss in a range without end."""
    lost = a - b if best > worst else b - a
    if lost <= 0:
        return 0.0
    width = abs(best - worst)
    return lost / width if math.isfinite(width) and math.isfinite(lost) else 1.0


def _why(outcome: Outcome | str | None) -> str:
    if isinstance(outcome, NotApplicable):
        return f"not applicable: {outcome.reason}"
    return "not scored" if outcome is None else f"failed: {getattr(outcome, 'kind', '')}"
