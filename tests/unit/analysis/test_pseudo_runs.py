"""A/A tests: what is counted as failing on nothing is as often as runs of an unchanged system really fail."""

import random
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from judgekit.analysis.estimates import FigureRules
from judgekit.analysis.pseudo_runs import (
    AATest,
    AskedCase,
    GateCounts,
    GateUnderTest,
    Nature,
    Scope,
    judge_noise,
)
from judgekit.core.conditions import Gate
from judgekit.core.runs import RunSummary
from judgekit.core.scores import Column, Failed, Pooled

SCORE = Column("m", high=5.0)
FLAG = Column("p", binary=True)


def summary() -> RunSummary:
    whole: dict[str, Any] = {
        "run_id": "r", "name": "s", "created_at": "", "status": "complete", "config_sha256": "", "errors": "exclude",
        "cases": {"n": 40}, "overall": {}, "slices": {}, "judge_reliability": None, "judges": {}, "latency": {},
        "cost": {}, "operational": {},
    }  # fmt: skip
    return RunSummary(**whole)


def on_limit(column: Column, value: float, **more: Any) -> GateUnderTest:
    fields = {"metric": column.name, "op": ">=", "value": value, **more}
    return GateUnderTest(Gate.model_validate(fields), column)


def on_baseline(column: Column, margin: float, **more: Any) -> GateUnderTest:
    fields = {"metric": column.name, "not_worse_than": "latest:main", "margin": margin, **more}
    return GateUnderTest(Gate.model_validate(fields), column)


def counted(
    gates: Sequence[GateUnderTest], nature: Nature, scope: Scope = "same", n_runs: int = 300, seed: int = 0
) -> GateCounts:
    rules = FigureRules(cluster_by="metadata.x" if nature.clustered else None)
    return AATest(gates, summary(), rules, "exclude").test(nature, scope, n_runs, random.Random(seed).randrange)


def alone(cases: Sequence[AskedCase], **more: Any) -> Nature:
    return Nature([[case] for case in cases], **more)


def case_of(*values: float, **more: Any) -> AskedCase:
    return AskedCase([{"m": value, "p": float(value >= 3)} for value in values], **more)


def test_a_system_that_says_the_same_twice_fails_no_gate_that_it_passes() -> None:
    nature = alone([case_of(4.0, 4.0) for _ in range(20)])
    gates = [on_limit(SCORE, 3.9), on_limit(SCORE, 4.1), on_baseline(SCORE, 0.1), on_baseline(FLAG, 0.3)]
    found = counted(gates, nature)
    assert [dict(states) for states in found.states] == [
        {"passed": 300}, {"missed": 300}, {"passed": 300}, {"passed": 300},
    ]  # fmt: skip
    assert (found.n_failed, found.n_any_failed) == ([0, 300, 0, 0], 300)


def test_the_same_seed_gives_the_same_counts_and_the_order_of_gates_does_not_matter() -> None:
    rng = random.Random(2)
    nature = alone([case_of(float(rng.randint(0, 5)), float(rng.randint(0, 5))) for _ in range(30)])
    gates = [on_limit(SCORE, 2.5), on_baseline(SCORE, 0.2)]
    first, second = counted(gates, nature), counted(gates[::-1], nature)
    assert list(first.states) == list(second.states)[::-1]
    assert counted(gates, nature, seed=1).states != first.states


def test_a_gate_that_fails_when_undecided_is_counted_as_failing() -> None:
    rng = random.Random(2)
    nature = alone([case_of(float(rng.randint(0, 5)), float(rng.randint(0, 5))) for _ in range(10)])
    found = counted([on_baseline(SCORE, 0.1), on_baseline(SCORE, 0.1, undecided="fail")], nature)
    assert found.states[0] == found.states[1]
    assert found.n_failed[1] == found.n_failed[0] + found.states[0]["undecided"]
    assert found.n_any_failed == found.n_failed[1]


def test_slices_and_failed_cases_count_as_in_a_run() -> None:
    inside, outside = frozenset({("category", "x")}), frozenset({("category", "y")})
    cases = [case_of(5.0, 5.0, slices=inside)] * 10 + [case_of(0.0, 0.0, slices=outside)] * 10
    failing = AskedCase([{"m": Failed("timeout"), "p": Failed("timeout")}] * 2, slices=inside)
    gates = [
        on_limit(SCORE, 4.0, slice={"category": "x"}),
        on_limit(SCORE, 3.0),
        on_limit(SCORE, 5.0, slice={"category": "x"}),
    ]
    found = counted(gates, alone([*cases, failing]))
    # 10 of 11 with 5, the failed one as the worst: 4.55
    assert [next(iter(states)) for states in found.states] == ["passed", "missed", "missed"]


def test_figures_of_sums_and_bounds_are_tested_too() -> None:
    ratio = Pooled("ratio", ("m", "p"), lambda m, p: p and m / (5 * p))
    rng = random.Random(5)
    nature = alone([case_of(float(rng.randint(2, 5)), float(rng.randint(2, 5))) for _ in range(25)])
    gates = [
        GateUnderTest(Gate(metric="ratio", op=">=", value=0.75), ratio),
        GateUnderTest(Gate(metric="ratio", not_worse_than="latest:main", margin=0.3), ratio),
        on_limit(FLAG, 0.4, bound="lower"),
    ]
    found = counted(gates, nature, n_runs=40)
    assert all(states.total() == 40 for states in found.states)
    assert found.states[2]["passed"] == 40


def test_clusters_are_drawn_whole() -> None:
    units = [[case_of(5.0, 5.0)] * 5, [case_of(0.0, 0.0)] * 5] * 4
    spread = counted([on_limit(SCORE, 1.5)], Nature(units, clustered=True), "other")
    alone_ = counted([on_limit(SCORE, 1.5)], alone([case for unit in units for case in unit]), "other")
    # 8 clusters: 2.5 with sd 0.88 of the mean; 40 cases: sd 0.40
    assert spread.states[0]["missed"] > 3 * max(1, alone_.states[0]["missed"])


def test_the_verdicts_of_a_judge_wander_as_its_repeats_do() -> None:
    again = [{"m": [4.0, 4.0], "p": [1.0, 1.0]}] * 3 + [{"m": [4.0, 2.0], "p": [1.0, 0.0]}] + [{"m": [1.0, 1.0]}]
    nature = alone([case_of(4.0) for _ in range(400)], judges=[judge_noise("m", again)])
    found = counted([on_limit(FLAG, 0.75)], nature, n_runs=200)
    assert 0.35 < found.states[0]["passed"] / 200 < 0.65  # a quarter of the verdicts fall
    never_asked = alone([case_of(3.0)], judges=[judge_noise("m", again)])
    assert counted([on_limit(FLAG, 1.0)], never_asked).states[0]["passed"] == 300


def test_an_assumed_correlation_makes_pairs_that_correlate_so() -> None:
    rng = random.Random(4)
    nature = alone([case_of(float(rng.randint(0, 5))) for _ in range(500)], correlation=0.7)
    pairs = [nature.pair(case, rng.randrange) for _ in range(10) for case in nature.cases]
    a, b = ([half[0]["m"] for half in halves] for halves in zip(*pairs, strict=True))
    mean_a, mean_b = sum(a) / len(a), sum(b) / len(b)
    cross = sum((x - mean_a) * (y - mean_b) for x, y in zip(a, b, strict=True))
    own = sum((x - mean_a) ** 2 for x in a)
    assert cross / own == pytest.approx(0.7, abs=0.05)


World = Callable[[random.Random], list[Callable[[], float]]]


def wavering(rng: random.Random) -> list[Callable[[], float]]:
    """60 cases: an answer to each is right, half right or wrong, with chances of its own."""

    def drawer(chance: float) -> Callable[[], float]:
        return lambda: 5.0 if rng.random() < chance else float(rng.randint(0, 3))

    return [drawer(rng.choice([0.1, 0.5, 0.8, 0.95])) for _ in range(60)]


@pytest.mark.slow
@pytest.mark.parametrize("scope", ["same", "other"])
def test_gates_fail_on_nothing_as_often_as_the_test_says(scope: Scope) -> None:
    """Runs of 60 cases with two answers each are tested; the truth is many pairs of fresh runs of the same world."""
    rng = random.Random(9)
    limits = [on_limit(SCORE, 3.4), on_limit(FLAG, 0.62)]
    relative = [on_baseline(SCORE, 0.5), on_baseline(FLAG, 0.1), on_baseline(SCORE, 0.2)]
    gates = [*limits, *relative] if scope == "same" else relative
    said, true = [[0.0] * len(gates) * 2 for _ in range(2)]
    n_worlds, n_runs = 60, 60
    for _ in range(n_worlds):
        world = wavering(rng)
        stored = alone([case_of(draw(), draw()) for draw in world])
        for place, states in enumerate(counted(gates, stored, scope, n_runs, rng.randrange(10**6)).states):
            said[2 * place] += states["missed"]
            said[2 * place + 1] += states["undecided"]
        for _ in range(n_runs):
            fresh_world = world if scope == "same" else wavering(rng)
            fresh = alone([case_of(draw(), draw()) for draw in fresh_world])
            for place, states in enumerate(counted(gates, fresh, "same", 1, rng.randrange(10**6)).states):
                true[2 * place] += states["missed"]
                true[2 * place + 1] += states["undecided"]
    total = n_worlds * n_runs
    assert [count / total for count in said] == pytest.approx([count / total for count in true], abs=0.035)
    assert max(true) / total > 0.2  # there is something to tell
