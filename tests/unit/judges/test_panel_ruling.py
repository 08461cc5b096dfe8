"""One verdict out of several: medians, majorities, ties and quorums."""

from typing import Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judgekit.core.judge_config import PanelConfig
from judgekit.core.judgments import JudgeFailure, Verdict
from judgekit.judges.conflict import Conflict
from judgekit.judges.groundedness import Groundedness
from judgekit.judges.panel import Ruling, panel_ruling

Rule = Literal["median", "majority"]


def ballot(said: int | bool | None) -> Verdict | JudgeFailure:
    if said is None:
        return JudgeFailure(kind="timeout", message="no reply")
    return Verdict(answer=said) if isinstance(said, bool) else Verdict(score=said)


def ruled(rule: Rule, said: tuple[int | bool | None, ...], *, quorum: int | None = None) -> Ruling:
    names = "abcdefg"[: len(said)]
    panel = PanelConfig(models=tuple(names), rule=rule, quorum=quorum)
    judge = Conflict() if any(isinstance(item, bool) for item in said) else Groundedness()
    return panel_ruling(judge, panel, {name: ballot(item) for name, item in zip(names, said, strict=True)})


def rating_of(ruling: Ruling) -> float | None:
    assert isinstance(ruling.outcome, Verdict)
    return ruling.outcome.rating


@pytest.mark.parametrize(
    ("rule", "said", "rating", "tie"),
    [
        ("median", (1, 5, 4), 4, False),
        ("median", (3, 4), 3, True),  # two middle ratings: the lower one, and a tie
        ("median", (4, 4), 4, False),
        ("median", (0, 3, 4, 5), 3, True),
        ("median", (0, 4, 4, 5), 4, False),
        ("median", (None, 5, 2), 2, True),
        ("median", (True, False, True), 1, False),
        ("median", (True, False), 0, True),
        ("median", (True, True), 1, False),
        ("majority", (1, 5, 4), 4, False),  # 4 and 5 pass: the lower of the two
        ("majority", (5, 3, 0), 0, False),  # 0 and 3 do not pass: the lower of the two
        ("majority", (3, 4), 3, True),
        ("majority", (4, 5), 4, False),  # both pass, so there is no tie
        ("majority", (2, 3), 2, False),
        ("majority", (2, 3, 4, 5), 2, True),
        ("majority", (True, False, True), 1, False),
        ("majority", (True, False), 0, True),
        ("majority", (False, None, False), 0, False),
    ],
)
def test_the_rule_decides(rule: Rule, said: tuple[Any, ...], rating: int, tie: bool) -> None:
    ruling = ruled(rule, said)
    assert (rating_of(ruling), ruling.tie) == (rating, tie)


@pytest.mark.parametrize(
    ("said", "quorum", "message"),
    [
        ((4, None, None), None, "1 of 3 members gave a verdict, 2 are wanted; b: timeout, c: timeout"),
        ((4, None), None, "1 of 2 members gave a verdict, 2 are wanted; b: timeout"),
        ((4, 4, None), 3, "2 of 3 members gave a verdict, 3 are wanted; c: timeout"),
        ((None, None, None), 1, "0 of 3 members gave a verdict, 1 are wanted; a: timeout, b: timeout, c: timeout"),
    ],
)
def test_too_few_verdicts_are_a_failure(said: tuple[Any, ...], quorum: int | None, message: str) -> None:
    assert ruled("median", said, quorum=quorum).outcome == JudgeFailure(kind="panel_quorum", message=message)


def test_claims_are_those_of_the_first_member_with_the_panels_rating() -> None:
    panel = PanelConfig(models=("a", "b", "c"))
    ballots = {
        "a": Verdict(score=2, supported_claims=("of a",)),
        "b": Verdict(score=4, supported_claims=("of b",), inconsistent=True),
        "c": Verdict(score=4, supported_claims=("of c",)),
    }
    outcome = panel_ruling(Groundedness(), panel, ballots).outcome
    assert isinstance(outcome, Verdict)
    assert (outcome.supported_claims, outcome.inconsistent) == (("of b",), True)
    assert outcome.reasoning == "median of a 2, b 4, c 4; everything else as b says"


scores = st.lists(st.one_of(st.none(), st.integers(0, 5)), min_size=2, max_size=7).map(tuple)


@given(scores, st.sampled_from(["median", "majority"]))
def test_the_rating_is_that_of_a_member_whatever_the_order(said: tuple[int | None, ...], rule: Rule) -> None:
    ruling = ruled(rule, said, quorum=1)
    given_scores = [item for item in said if item is not None]
    if not given_scores:
        assert isinstance(ruling.outcome, JudgeFailure)
        return
    rating = rating_of(ruling)
    assert rating in given_scores
    backwards = ruled(rule, said[::-1], quorum=1)
    assert (rating_of(backwards), backwards.tie) == (rating, ruling.tie)


@given(scores)
def test_both_rules_pass_the_same_cases(said: tuple[int | None, ...]) -> None:
    """The lower median passes if and only if more than half do."""
    given_scores = [item for item in said if item is not None]
    if given_scores:
        passes = 2 * sum(item >= 4 for item in given_scores) > len(given_scores)
        for rule in ("median", "majority"):
            assert ((rating_of(ruled(rule, said, quorum=1)) or 0) >= 4) == passes
