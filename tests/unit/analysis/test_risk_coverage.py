"""The risk-coverage curve, the area under it, and what cases without confidence or score do to it."""

import random
from collections import Counter
from collections.abc import Iterable, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judgekit.analysis.estimates import FigureRules
from judgekit.analysis.risk_coverage import (
    MOST_POINTS,
    CurvePoint,
    RiskCoverage,
    area_under_curve,
    risk_coverage_curve,
    risk_score,
    thinned,
)
from judgekit.core.scores import Column, Estimate, Failed, NotApplicable
from judgekit.stats.means import jackknife_interval


def area(pairs: list[tuple[float, float]]) -> float:
    value = area_under_curve(risk_coverage_curve(pairs))
    assert value is not None
    return value


def test_the_curve_and_its_area_by_hand() -> None:
    # By falling confidence right, wrong, right, wrong: risks 0/1, 1/2, 1/3, 2/4; their mean is 4/12 = 1/3.
    pairs = [(0.9, 0.0), (0.8, 1.0), (0.7, 0.0), (0.6, 1.0)]
    assert risk_coverage_curve(pairs) == [
        CurvePoint(0.9, 0.25, 0.0, 1),
        CurvePoint(0.8, 0.5, 0.5, 2),
        CurvePoint(0.7, 0.75, 1 / 3, 3),
        CurvePoint(0.6, 1.0, 0.5, 4),
    ]
    assert area(pairs) == pytest.approx(1 / 3, abs=1e-15)


def test_the_area_of_a_perfect_order_is_the_published_one() -> None:
    # Geifman, Uziel and El-Yaniv 2019 (E-AURC): the best order of n cases with k wrong has
    # 1/n sum_{i=1..k} i / (n - k + i), about r + (1 - r) ln(1 - r). n = 1000, k = 100: 0.1 + 0.9 ln 0.9 = 0.005176.
    pairs = [(1.0 - number / 1000, float(number >= 900)) for number in range(1000)]
    assert area(pairs) == pytest.approx(sum(i / (900 + i) for i in range(1, 101)) / 1000, abs=1e-12)
    assert area(pairs) == pytest.approx(0.005176, abs=1e-4)


def test_equal_confidences_are_one_step() -> None:
    # Two cases at 0.9 with risk 1/2, then all three with 1/3: (2 * 1/2 + 1 * 1/3) / 3 = 4/9.
    pairs = [(0.9, 1.0), (0.9, 0.0), (0.4, 0.0)]
    assert [(point.n, point.risk) for point in risk_coverage_curve(pairs)] == [(2, 0.5), (3, 1 / 3)]
    assert area(pairs) == pytest.approx(4 / 9, abs=1e-15)
    # Confidence that says nothing: the area is the mean risk.
    assert area([(0.5, 1.0), (0.5, 0.0), (0.5, 0.0), (0.5, 0.0)]) == 0.25
    assert area_under_curve(risk_coverage_curve([])) is None


pairs_drawn = st.lists(
    st.tuples(st.sampled_from([0.0, 0.25, 0.5, 0.75, 1.0]), st.sampled_from([0.0, 0.5, 1.0])), min_size=1, max_size=20
)


@given(pairs_drawn, st.randoms(use_true_random=False))
def test_the_order_of_cases_cannot_change_anything(pairs: list[tuple[float, float]], rng: random.Random) -> None:
    shuffled = list(pairs)
    rng.shuffle(shuffled)
    points = risk_coverage_curve(pairs)
    assert risk_coverage_curve(shuffled) == points
    assert points[-1].coverage == 1.0
    assert points[-1].risk == pytest.approx(sum(risk for _, risk in pairs) / len(pairs))
    assert 0.0 <= area(pairs) <= 1.0


@given(pairs_drawn)
def test_the_interval_is_the_jackknife_done_case_by_case(pairs: list[tuple[float, float]]) -> None:
    gathered = RiskCoverage("correctness_pass")
    for confidence, risk in pairs:
        gathered.add(confidence, 1.0 - risk)
    report = gathered.report("exclude")
    assert report is not None
    found = report["aurc"]
    n = len(pairs)
    left_out = [area(pairs[:i] + pairs[i + 1 :]) for i in range(n)] if n > 1 else []
    if len({risk for _, risk in pairs}) < 2 or max(left_out) - min(left_out) < 1e-12:
        assert found.low is None
        return
    ends = jackknife_interval(found.value, Counter(left_out), n, (0.0, 1.0))
    assert (found.low, found.high) == pytest.approx(ends, abs=1e-9)
    # Each case a cluster of its own is the same; two copies of each case in one cluster say no more than one of them.
    alone = clustered(pairs, range(n))
    assert (alone.low, alone.high) == pytest.approx(ends, abs=1e-9)
    assert alone.method.endswith(f"jackknife 95%, {n} clusters")


def clustered(pairs: Sequence[tuple[float, float]], clusters: Iterable[int]) -> Estimate:
    gathered = RiskCoverage("correctness_pass", FigureRules(cluster_by="metadata.document"))
    for (confidence, risk), cluster in zip(pairs, clusters, strict=True):
        gathered.add(confidence, 1.0 - risk, cluster)
    report = gathered.report("exclude")
    assert report is not None
    found = report["aurc"]
    assert isinstance(found, Estimate)
    return found


def test_copies_of_a_case_in_its_cluster_make_the_interval_no_narrower() -> None:
    rng = random.Random(5)
    pairs = [(rng.random(), float(rng.random() < 0.4)) for _ in range(40)]
    once = clustered(pairs, range(40))
    four_times = clustered(pairs * 4, [*range(40)] * 4)
    as_if_independent = clustered(pairs * 4, range(160))
    width = [found.high - found.low for found in (once, four_times, as_if_independent) if found.high and found.low]
    assert width[1] == pytest.approx(width[0], rel=0.1)
    assert width[2] == pytest.approx(width[0] / 2, rel=0.1)
    assert clustered(pairs, [7] * 40).low is None


def test_every_case_is_accounted_for() -> None:
    gathered = RiskCoverage("correctness_pass")
    gathered.add(0.5, 1.0)
    gathered.add(0.9, 1.0)
    gathered.add(None, 1.0)
    gathered.add(0.9, NotApplicable("abstained"))
    gathered.add(None, Failed("timeout"))
    gathered.add(0.9, Failed("judge invalid", by_judge=True))
    report = gathered.report("exclude")
    assert report is not None
    assert report["risk"] == "1 - correctness_pass"
    aurc = report["aurc"]
    assert (aurc.value, aurc.low, aurc.n, aurc.n_not_applicable, aurc.n_error) == (0.0, None, 2, 2, 2)
    # Two failed cases at confidence 1: both wrong, risks 2/2 twice, 2/3, 2/4; both right, all 0.
    assert aurc.worst == pytest.approx((2 + 2 / 3 + 2 / 4) / 4)
    assert aurc.best == 0.0
    # As the worst: the system's failure is wrong at confidence 1 (risks 1, 1/2, 1/3); the judge's stays out.
    as_zero = gathered.report("as_zero")
    assert as_zero is not None
    assert as_zero["aurc"].value == pytest.approx((1 + 1 / 2 + 1 / 3) / 3)
    assert (as_zero["aurc"].n, as_zero["aurc"].n_error) == (3, 1)
    assert "errors as worst" in as_zero["aurc"].method


def test_without_confidence_there_is_no_curve() -> None:
    gathered = RiskCoverage("keyword_groundedness")
    gathered.add(None, 1.0)
    assert gathered.report("exclude") is None


def test_correctness_comes_before_keywords() -> None:
    keywords, correctness = Column("keyword_groundedness"), Column("correctness_pass")
    assert risk_score([keywords, correctness]) == "correctness_pass"
    assert risk_score([keywords]) == "keyword_groundedness"
    assert risk_score([Column("mrr")]) is None


def test_a_long_curve_is_thinned_and_keeps_its_ends() -> None:
    points = risk_coverage_curve([(number / 1000, 0.0) for number in range(1000)])
    few = thinned(points)
    assert len(few) == MOST_POINTS
    assert (few[0], few[-1]) == (points[0], points[-1])
    assert [point.n for point in few] == sorted({point.n for point in few})
    assert thinned(points[:MOST_POINTS]) == points[:MOST_POINTS]
