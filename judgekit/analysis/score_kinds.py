"""What became of each judge's verdict and each 0/1 score of one case between two runs."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from judgekit.core.cases import Case
from judgekit.core.comparison import ScoreChange
from judgekit.core.scores import Column, NotApplicable, Outcome

Scores = Mapping[str, Outcome]


@dataclass(frozen=True, slots=True)
class KindRule:
    """How the values of one score are held against each other."""

    column: Column
    pass_name: str | None = None
    """The 0/1 score that says whether a verdict passes; None: a 0/1 score passes where it is best."""


def kind_rules(families: Mapping[str, Sequence[Column]], judges: Iterable[str]) -> tuple[KindRule, ...]:
    """One rule for each judge and each 0/1 score that is a figure of its own.

    A judge goes by its score, and its 0/1 score `NAME_pass` says whether the verdict passes, so that has no rule of
    its own.

    Args:
        families: what is known of the scores that both runs have, by metric family or judge.
        judges: names of the judges among them.
    """
    judges = frozenset(judges)
    found: dict[str, KindRule] = {}
    for family, columns in families.items():
        by_name = {column.name: column for column in columns}
        passes = f"{family}_pass" if family in judges and f"{family}_pass" in by_name else None
        main = _main(family, columns) if family in judges else None
        for name, column in by_name.items():
            if name == main:
                found[name] = KindRule(column, passes)
            elif column.binary and column.aggregate != "" and name != passes:
                found[name] = KindRule(column)
    return tuple(found.values())


def _main(judge: str, columns: Iterable[Column]) -> str | None:
    """The score that stands for a judge: the one of its name, else its first figure."""
    names = [column.name for column in columns if column.aggregate != ""]
    return judge if judge in names else next(iter(names), None)


def score_change(rule: KindRule, case: Case | None, a: Scores, b: Scores) -> ScoreChange | None:
    """What became of one score; None where run a has no value, so that nothing can be lost and no gain be told.

    With a value in both runs: `regression` passed in a and not in b, `mended` the reverse, else `win` or `loss` by the
    score, `draw` where it is equal. Where b has no value, the choice that can never make it look better: a verdict or
    output that failed, or a score that is missing, is a regression of a score that passed, and else a loss; a score
    that does not apply in b is a loss. Either way all that a had is lost.
    """
    name = rule.column.name
    first, second = a.get(name), b.get(name)
    if not isinstance(first, float):
        return None
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


def _why(outcome: Outcome | None) -> str:
    if isinstance(outcome, NotApplicable):
        return f"not applicable: {outcome.reason}"
    return "not scored" if outcome is None else f"failed: {getattr(outcome, 'kind', '')}"
