"""Estimates over all cases and slices: order of cases, clusters, marks of small figures, and how they say so."""

import math
import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judgekit.analysis.estimates import FigureRules, Tally
from judgekit.analysis.slices import Clusters, check_cluster_field
from judgekit.analysis.stored_figures import rounded
from judgekit.analysis.summary import RunTally
from judgekit.core.cases import Case, SystemOutput
from judgekit.core.errors import ConfigError
from judgekit.core.scores import Column, Estimate, Failed, NotApplicable, Outcome, Outcomes, Pooled
from judgekit.stats.proportions import wilson_interval

SCORE = Column("score", high=5.0)
FLAG = Column("flag", binary=True)
PARTS = (Column("hits", high=math.inf, aggregate=""), Column("asked", high=math.inf, aggregate=""))
COLUMNS = (SCORE, FLAG, *PARTS)
POOLED = (Pooled("share", ("hits", "asked"), lambda hits, asked: hits / asked if asked else None),)


def outcomes(score: Outcome, flag: Outcome = 1.0, hits: Outcome = 1.0, asked: Outcome = 2.0) -> Outcomes:
    return {"score": score, "flag": flag, "hits": hits, "asked": asked}


def figures(cases: list[Outcomes], rules: FigureRules, clusters: list[int] | None = None, **how: Any) -> dict[str, Any]:
    tally = Tally(COLUMNS, POOLED, rules)
    for number, found in enumerate(cases):
        tally.add(found, None if clusters is None else clusters[number])
    return dict(tally.figures(how.get("policy", "exclude")))


def test_the_method_says_how_each_kind_of_figure_got_its_interval() -> None:
    cases = [outcomes(score, float(score > 2), score) for score in (0.0, 1.0, 2.0, 5.0, 5.0, 4.0)]
    found = figures(cases, FigureRules(seed=3))
    assert found["score"].method == "mean, bca bootstrap 95%, 2000 resamples, seed 3"
    assert found["flag"].method == "mean, wilson 95%"
    assert (found["flag"].low, found["flag"].high) == wilson_interval(3, 6)
    assert found["share"].method == "pooled over cases, bca bootstrap 95%, 2000 resamples, seed 3"
    assert found["share"].value == pytest.approx(17 / 12)
    many = figures(cases * 20, FigureRules())
    assert many["score"].method == "mean, abc bootstrap 95%"
    assert many["share"].method == "pooled over cases, abc bootstrap 95%"


def test_the_method_says_why_there_is_no_interval() -> None:
    found = figures([outcomes(2.0)] * 3, FigureRules())
    assert found["score"].method == "mean, no interval: all values are equal"
    assert (found["score"].low, found["score"].high) == (None, None)
    assert found["share"].method == "pooled over cases, no interval: none of the cases changes it"
    nothing = figures([outcomes(NotApplicable("no"), NotApplicable("no"), NotApplicable("no"), NotApplicable("no"))],
                      FigureRules())  # fmt: skip
    assert nothing["score"].method == "mean, no interval: fewer than 2 cases"
    assert (nothing["score"].value, nothing["flag"].value, nothing["share"].value) == (None, None, None)


@pytest.mark.parametrize(("n", "small"), [(1, True), (4, True), (5, False), (6, False)])
def test_figures_over_fewer_cases_than_min_n_are_marked(n: int, small: bool) -> None:
    failed = Failed("timeout")
    found = figures([outcomes(2.0)] * n + [outcomes(failed, failed, failed, failed)] * 3, FigureRules())
    assert {name: figure.small for name, figure in found.items()} == dict.fromkeys(("score", "flag", "share"), small)
    assert figures([outcomes(2.0)] * n, FigureRules(min_n=n))["score"].small is False


def test_clustered_figures_say_so_with_the_number_of_clusters() -> None:
    cases = [outcomes(float(place % 5), float(place % 2), float(place % 4)) for place in range(30)]
    found = figures(cases, FigureRules(cluster_by="metadata.document"), [place // 3 for place in range(30)])
    assert found["score"].method == "mean, bca bootstrap 95%, 2000 resamples of 10 clusters, seed 0"
    assert found["flag"].method.startswith("mean, wilson 95%, design effect ")
    assert found["flag"].method.endswith(", 10 clusters")
    assert found["share"].method == "pooled over cases, bca bootstrap 95%, 2000 resamples of 10 clusters, seed 0"
    one = figures(cases, FigureRules(cluster_by="metadata.document"), [4] * 30)
    for name in ("score", "flag", "share"):
        assert one[name].value == found[name].value
        assert one[name].low is None
        assert one[name].method.endswith("no interval: fewer than 2 clusters")


def test_many_clusters_of_one_case_each_are_no_clusters_but_for_wilsons_t() -> None:
    cases = [outcomes(float(place % 5), float(place % 2), float(place % 3)) for place in range(30)]
    plain = figures(cases, FigureRules())
    alone = figures(cases, FigureRules(cluster_by="metadata.document"), list(range(30)))
    for name in ("score", "share"):
        assert (alone[name].low, alone[name].high) == pytest.approx((plain[name].low, plain[name].high), abs=1e-9)
    assert alone["flag"].low < plain["flag"].low < plain["flag"].high < alone["flag"].high


def test_failed_cases_that_count_as_the_worst_stay_in_their_clusters() -> None:
    cases = [outcomes(4.0), outcomes(5.0), outcomes(Failed("timeout")), outcomes(Failed("judge", by_judge=True))]
    rules = FigureRules(cluster_by="metadata.document")
    found = figures(cases * 3, rules, [place // 4 for place in range(12)], policy="as_zero")
    assert found["score"].value == 3.0
    assert (found["score"].n, found["score"].n_error) == (9, 3)
    # The three clusters have one and the same mean, so nothing is known of what another one would have.
    assert found["score"].method == "mean, errors as worst, no interval: none of the clusters changes it"
    other = figures(cases, rules, [0, 1, 2, 3], policy="as_zero")
    assert other["score"].method == "mean, errors as worst, bca bootstrap 95%, 2000 resamples of 3 clusters, seed 0"


# Clusters


def test_cases_without_a_value_are_clusters_of_their_own() -> None:
    clusters = Clusters("metadata.document")
    documents: list[dict[str, Any]] = [{"document": "a"}, {}, {"document": "b"}, {"document": None}, {"document": "a"}]
    numbers = [clusters.number(Case(id=str(place), metadata=found)) for place, found in enumerate(documents)]
    assert numbers[0] == numbers[4]
    assert len(set(numbers)) == 4


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("metadata.documnet", "no case has a value of 'metadata.documnet'; did you mean 'metadata.document'"),
        ("category", "no case has a value of 'category'"),
        ("document", "cluster_by: no field 'document'"),
        ("tags", "case 'c2' has 2 values of 'tags'; a case belongs to one cluster"),
    ],
)
def test_a_field_that_makes_no_clusters_is_refused_by_name(name: str, message: str) -> None:
    cases = [Case(id="c1", tags=("x",), metadata={"document": "a"}), Case(id="c2", tags=("x", "y"))]
    with pytest.raises(ConfigError, match=message):
        check_cluster_field(name, cases)
    check_cluster_field("metadata.document", cases)
    check_cluster_field(None, cases)


# RunTally

OUTCOME: st.SearchStrategy[Outcome] = st.one_of(
    st.sampled_from([0.0, 0.5, 1.0, 2.5, 1 / 3, 5.0]),
    st.sampled_from([NotApplicable("no"), Failed("timeout"), Failed("judge", by_judge=True)]),
)
BINARY: st.SearchStrategy[Outcome] = st.one_of(
    st.sampled_from([0.0, 1.0]), st.sampled_from([NotApplicable("no"), Failed("timeout")])
)
DRAWN = st.lists(
    st.tuples(st.sampled_from("abc"), st.sampled_from(["d1", "d2", "d3", None]), OUTCOME, BINARY),
    min_size=1,
    max_size=40,
)
RULES = st.sampled_from([FigureRules(), FigureRules(seed=9, min_n=3), FigureRules(cluster_by="metadata.document")])


def tallied(drawn: list[tuple[str, str | None, Outcome, Outcome]], rules: FigureRules, policy: Any) -> RunTally:
    tally = RunTally(COLUMNS, POOLED, ("category", "tags"), policy, rules)
    for place, (category, document, score, flag) in enumerate(drawn):
        case = Case(id=f"c{place}", category=category, tags=(category, "all"), metadata={"document": document})
        tally.add(case, SystemOutput(case_id=case.id), outcomes(score, flag, flag, score))
    return tally


@given(DRAWN, RULES, st.sampled_from(["exclude", "as_zero"]), st.randoms(use_true_random=False))
def test_the_order_of_cases_changes_no_stored_digit(
    drawn: list[tuple[str, str | None, Outcome, Outcome]], rules: FigureRules, policy: str, rng: random.Random
) -> None:
    def stored(cases: list[tuple[str, str | None, Outcome, Outcome]]) -> Any:
        tally = tallied(cases, rules, policy)
        found = {name: figure.model_dump() for name, figure in tally.overall().items() if isinstance(figure, Estimate)}
        slices = {
            (dimension, value, name): figure.model_dump()
            for dimension, values in tally.slices().items()
            for value, own in values.items()
            for name, figure in own.items()
            if isinstance(figure, Estimate)
        }
        return rounded(found), {key: rounded(figure) for key, figure in slices.items()}

    assert stored(rng.sample(drawn, len(drawn))) == stored(drawn)


@given(DRAWN, st.sampled_from(["exclude", "as_zero"]))
def test_the_slices_of_a_partition_add_up_to_all_cases(
    drawn: list[tuple[str, str | None, Outcome, Outcome]], policy: str
) -> None:
    tally = tallied(drawn, FigureRules(), policy)
    overall, parts = tally.overall(), tally.slices()["category"].values()
    for name in ("score", "flag"):
        whole = overall[name]
        assert isinstance(whole, Estimate)
        own = [figures[name] for figures in parts]
        estimates = [figure for figure in own if isinstance(figure, Estimate)]
        for count in ("n", "n_not_applicable", "n_error"):
            assert sum(getattr(figure, count) for figure in estimates) == getattr(whole, count)
        if whole.value is not None:
            total = math.fsum(figure.n * figure.value for figure in estimates if figure.value is not None)
            assert total / whole.n == pytest.approx(whole.value, abs=1e-12)
    assert tally.slices()["tags"]["all"] == overall
