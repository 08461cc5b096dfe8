"""What became of each judge's verdict and each 0/1 score of one case."""

import pytest

from judgekit.analysis.case_changes import kind_rules, score_change
from judgekit.core.cases import Case
from judgekit.core.comparison import ScoreChange
from judgekit.core.scores import Column, Failed, NotApplicable, Outcome

JUDGED = (Column("tone", high=5.0), Column("tone_pass", binary=True, aggregate="tone_pass_rate"), Column("tone.rate"))
FAMILIES = {
    "tone": JUDGED,
    "hits": (Column("hit@1", binary=True), Column("ndcg@5"), Column("flag", binary=True, aggregate="")),
    "operations": (Column("error_rate", binary=True, higher_is_better=False),),
    "declines": (Column("declines", binary=True, higher_is_better=False, turns_if_unanswerable=True),),
    "other": (Column("other.rating", high=10.0),),
}
RULES = {rule.column.name: rule for rule in kind_rules(FAMILIES, ("tone", "declines", "other"))}
NA = NotApplicable("no text")


def changed(name: str, a: Outcome | None, b: Outcome | None, answerable: bool | None = None) -> ScoreChange | None:
    """The change of a score; a verdict of tone passes from 4 on."""
    sides = []
    for outcome in (a, b):
        scores: dict[str, Outcome] = {} if outcome is None else {name: outcome}
        if name == "tone" and isinstance(outcome, float):
            scores["tone_pass"] = float(outcome >= 4)
        sides.append(scores)
    case = Case.model_validate({"id": "q", "answerable": answerable})
    return score_change(RULES[name], case, *sides)


def test_judges_and_scores_that_are_0_or_1_have_kinds_and_a_pass_has_none_of_its_own() -> None:
    assert list(RULES) == ["tone", "hit@1", "error_rate", "declines", "other.rating"]
    assert RULES["tone"].pass_name == "tone_pass"


@pytest.mark.parametrize(
    ("name", "a", "b", "kind", "loss"),
    [
        ("tone", 5.0, 1.0, "regression", 0.8),
        ("tone", 4.0, 3.0, "regression", 0.2),
        ("tone", 5.0, 4.0, "loss", 0.2),
        ("tone", 2.0, 5.0, "mended", 0.0),
        ("tone", 4.0, 5.0, "win", 0.0),
        ("tone", 3.0, 3.0, "draw", 0.0),
        ("tone", 4.0, Failed("timeout"), "regression", 0.8),
        ("tone", 4.0, Failed("invalid", by_judge=True), "regression", 0.8),
        ("tone", 4.0, None, "regression", 0.8),
        ("tone", 2.0, None, "loss", 0.4),
        ("tone", 4.0, NA, "loss", 0.8),
        ("hit@1", 1.0, 0.0, "regression", 1.0),
        ("hit@1", 0.0, 1.0, "mended", 0.0),
        ("error_rate", 0.0, 1.0, "regression", 1.0),
        ("error_rate", 1.0, 0.0, "mended", 0.0),
        ("other.rating", 9.0, 4.0, "loss", 0.5),  # no line to pass
        ("other.rating", 4.0, 9.0, "win", 0.0),
    ],
)
def test_kinds(name: str, a: Outcome, b: Outcome | None, kind: str, loss: float) -> None:
    found = changed(name, a, b)
    assert found is not None
    assert found.kind == kind
    assert found.loss == pytest.approx(loss)
    assert found.b == (b if isinstance(b, float) else None)
    assert bool(found.reason) is (found.b is None)


@pytest.mark.parametrize("a", [Failed("timeout"), NA, None])
def test_where_a_has_no_value_no_gain_is_told(a: Outcome | None) -> None:
    assert changed("tone", a, 5.0) is None


@pytest.mark.parametrize(("answerable", "kind"), [(True, "regression"), (None, "regression"), (False, "mended")])
def test_to_decline_is_right_where_no_answer_can_be_given(answerable: bool | None, kind: str) -> None:
    found = changed("declines", 0.0, 1.0, answerable)
    assert found is not None
    assert found.kind == kind
