"""Criteria that tell nothing are named."""

from collections.abc import Sequence

from judgekit.analysis.criteria_findings import criteria_warnings
from judgekit.core.judgments import CriterionVerdict, Verdict


def verdicts(**met: Sequence[bool | None]) -> list[Verdict]:
    n = len(next(iter(met.values())))
    return [
        Verdict(criteria=tuple(CriterionVerdict(id=name, met=given[place]) for name, given in met.items()))
        for place in range(n)
    ]


TURNS: list[bool | None] = [True, False] * 5


def test_a_criterion_that_never_varies_is_named_with_what_it_always_is() -> None:
    found = criteria_warnings("rules", verdicts(short=[True] * 10, rude=[False] * 10, source=TURNS))
    assert [code for code, _ in found] == ["criterion_constant", "criterion_constant"]
    assert found[0][1] == "judge rules: criterion short is met in all 10 cases, so it tells no answers apart"
    assert "criterion rude is not met in all 10 cases" in found[1][1]


def test_a_criterion_that_repeats_another_is_named() -> None:
    [(code, text)] = criteria_warnings("rules", verdicts(short=TURNS, brief=TURNS, source=[True] * 5 + [False] * 5))
    assert code == "criterion_repeats"
    assert "criteria short and brief have the same answer in all 10 cases" in text


def test_one_case_that_differs_is_enough_to_say_nothing() -> None:
    assert criteria_warnings("rules", verdicts(short=TURNS, brief=[*TURNS[:9], True])) == []


def test_few_cases_and_what_cannot_be_told_say_nothing() -> None:
    assert criteria_warnings("rules", verdicts(short=[True] * 9)) == []
    assert criteria_warnings("rules", verdicts(short=[*[True] * 9, None])) == []
    # Nine cases in which both can be told.
    assert criteria_warnings("rules", verdicts(short=TURNS, brief=[None, *TURNS[1:]])) == []
