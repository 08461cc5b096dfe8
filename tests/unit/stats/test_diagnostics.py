"""Figures of a judge against human labels, against published examples and counts by hand."""

import itertools
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judgekit.stats.diagnostics import human_ceiling, lift, sensitivity_specificity
from judgekit.stats.proportions import rate, wilson_interval

PAIRS = st.lists(st.tuples(st.booleans(), st.booleans()), max_size=40)


def table(cells: dict[tuple[bool, bool], int]) -> tuple[list[bool], list[bool]]:
    cases = [cell for cell, count in cells.items() for _ in range(count)]
    return [a for a, _ in cases], [b for _, b in cases]


def test_the_liver_scans_have_the_published_sensitivity_and_specificity() -> None:
    # Altman and Bland 1994, BMJ 308, 1552: of 258 abnormal livers 231 scans were abnormal, of 86 normal 54 normal:
    # sensitivity 0.90 (231/258 = 0.895), specificity 0.63
    human, judge = table({(True, True): 231, (True, False): 27, (False, True): 32, (False, False): 54})
    found = sensitivity_specificity(human, judge)
    assert found.sensitivity == rate(231, 258)
    assert found.specificity == rate(54, 86)
    assert found.sensitivity.value is not None
    assert found.specificity.value is not None
    assert round(found.sensitivity.value, 2) == 0.90
    assert round(found.specificity.value, 2) == 0.63
    assert found.agreement == rate(285, 344)
    assert found.youden == pytest.approx(231 / 258 + 54 / 86 - 1)
    assert (found.sensitivity.low, found.sensitivity.high) == wilson_interval(231, 258)


@given(PAIRS)
def test_passing_and_failing_are_mirrored(pairs: list[tuple[bool, bool]]) -> None:
    found = sensitivity_specificity([a for a, _ in pairs], [b for _, b in pairs])
    turned = sensitivity_specificity([not a for a, _ in pairs], [not b for _, b in pairs])
    assert (found.sensitivity, found.specificity) == (turned.specificity, turned.sensitivity)
    assert (found.agreement, found.cohen_kappa) == (turned.agreement, turned.cohen_kappa)
    assert found.youden == (None if turned.youden is None else pytest.approx(turned.youden, abs=1e-12))
    assert found.sensitivity.n + found.specificity.n == found.agreement.n == len(pairs)


def test_a_side_without_cases_has_no_figures() -> None:
    found = sensitivity_specificity([True, True], [True, False])
    assert found.sensitivity.value == 0.5
    assert (found.specificity.value, found.specificity.low, found.specificity.n) == (None, None, 0)
    assert found.youden is None
    assert found.cohen_kappa == 0.0
    assert sensitivity_specificity([], []).agreement.value is None


def test_a_higher_threshold_passes_less_and_fails_more() -> None:
    scores, human = [0, 2, 3, 4, 5, 5], [False, False, True, True, True, False]
    rows = [sensitivity_specificity(human, [score >= least for score in scores]) for least in range(1, 6)]
    # from 3 on: passed 3, 4, 5, 5: sensitivity 3/3, specificity 2/3; at 5: 5, 5: 1/3 and 2/3
    assert (rows[2].sensitivity, rows[2].specificity) == (rate(3, 3), rate(2, 3))
    assert (rows[4].sensitivity, rows[4].specificity) == (rate(1, 3), rate(2, 3))
    assert rows[4].youden == pytest.approx(0.0)
    for here, there in itertools.pairwise(rows):
        assert here.sensitivity.k >= there.sensitivity.k
        assert here.specificity.k <= there.specificity.k


def test_two_annotators_have_their_raw_agreement() -> None:
    # Gwet 2014, two abstractors (irrCAC, vignette "overview"): percent agreement 0.89
    cells = {(0, 0): 13, (1, 1): 20, (1, 2): 7, (2, 1): 4, (2, 2): 56}
    found = human_ceiling([pair for pair, count in cells.items() for _ in range(count)])
    assert found.value == pytest.approx(0.89, abs=1e-12)
    assert found.n == 100


@pytest.mark.parametrize(
    ("unit", "share"),
    [
        ([True, True, False], 1 / 3),  # each True sees a tie of the two others: 1/2 + 1/2 + 0
        ([True, True, True, False], 3 / 4),
        ([True, True, False, False], 0.0),  # each sees two of the other kind
        ([1, 2, 3], 0.0),
        ([2, 2, 3, 4], (1 / 3 + 1 / 3) / 4),  # a 2 sees 2, 3, 4; the others see 2, 2 and one more
        ([None, "a", "a", None], 1.0),
    ],
)
def test_ceilings_by_hand(unit: list[object], share: float) -> None:
    assert human_ceiling([unit, ["x"], [None]]).value == pytest.approx(share, abs=1e-12)


def test_the_ceiling_stays_within_its_range_and_respects_clusters() -> None:
    units = [[True, True]] * 19 + [[True, False]]
    found = human_ceiling(units)
    assert found.value == pytest.approx(0.95)
    assert found.high == 1.0
    clustered = human_ceiling(units, [i // 4 for i in range(20)])
    assert (clustered.value, clustered.n_clusters) == (found.value, 5)
    assert human_ceiling([[True, True]] * 9).low is None
    assert human_ceiling([[True]]).value is None
    with pytest.raises(ValueError, match="argument 2"):
        human_ceiling(units, [1])


def test_tea_and_coffee_have_the_published_lift() -> None:
    # Brin, Motwani and Silverstein 1997, example 1: 20% of baskets with tea and coffee, 5% tea alone, 70% coffee
    # alone; 0.2 over 0.25 times 0.9 is 0.89
    tea, coffee = table({(True, True): 20, (True, False): 5, (False, True): 70, (False, False): 5})
    found = lift(tea, coffee)
    assert found.value is not None
    assert round(found.value, 2) == 0.89
    assert found.low is not None
    assert found.high is not None
    assert found.low < found.value < found.high
    assert (found.wrong_given_flag, found.wrong_given_agreement, found.wrong) == (
        rate(20, 25),
        rate(70, 75),
        rate(90, 100),
    )


@given(PAIRS)
def test_the_lift_is_the_ratio_of_its_shares(pairs: list[tuple[bool, bool]]) -> None:
    found = lift([a for a, _ in pairs], [b for _, b in pairs])
    flagged, wrong = found.wrong_given_flag.value, found.wrong.value
    if flagged is None or not wrong:
        assert (found.value, found.low, found.high) == (None, None, None)
        return
    assert found.value == pytest.approx(flagged / wrong, abs=1e-12)
    if found.value is not None and found.low is not None and found.high is not None:
        assert 0.0 <= found.low <= found.value <= found.high < math.inf


def test_a_flag_that_is_always_right_lifts_by_one_over_the_share_wrong() -> None:
    flags = [True] * 10 + [False] * 90
    assert lift(flags, flags).value == pytest.approx(10.0)
    assert lift(flags, [False] * 100).value is None
    assert lift([False] * 100, flags).value is None
