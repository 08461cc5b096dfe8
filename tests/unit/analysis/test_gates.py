"""Gates on figures of every part of metrics.json, and on figures without data."""

from typing import Any

import pytest

from judgekit.analysis.gates import check_gate_names, check_gates
from judgekit.analysis.indexing_coverage import indexing_coverage
from judgekit.core.conditions import Gate, GateResult
from judgekit.core.errors import ConfigError
from judgekit.core.indexed_documents import IndexedDocument
from judgekit.core.runs import RunSummary
from judgekit.core.scores import Estimate
from judgekit.metrics.answer_checks import AnswerChecks
from judgekit.metrics.retrieval import Retrieval


def summary(**parts: Any) -> RunSummary:
    whole: dict[str, Any] = {
        "run_id": "r", "name": "s", "created_at": "", "status": "complete", "config_sha256": "", "errors": "exclude",
        "cases": {"n": 40}, "overall": {}, "slices": {}, "judge_reliability": None, "judges": {}, "latency": {},
        "cost": {}, "operational": {},
    }  # fmt: skip
    return RunSummary(**{**whole, **parts})


def checked(metric: str, op: str, value: float, *, bound: str = "point", **parts: Any) -> GateResult:
    gate = Gate.model_validate({"metric": metric, "op": op, "value": value, "bound": bound})
    [result] = check_gates((gate,), summary(**parts))
    return result


COVERAGE = indexing_coverage(
    [
        IndexedDocument(doc_id="a", n_chunks=3, skipped={"context_length": 1}, chunk_tokens=(5, 7, 9)),
        IndexedDocument(doc_id="b", n_chunks=0),
    ]
)


@pytest.mark.parametrize(
    ("name", "observed", "n"),
    [
        ("no_chunks_rate", 0.5, 2),
        ("n_docs_without_chunks", 1.0, 2),
        ("chunks_skipped_context_rate", 1 / 3, 3),
        ("n_chunks_skipped", 1.0, 3),
        ("tokens_per_chunk.max", 9.0, 3),
        ("tokens_per_chunk.mean", 7.0, 3),
    ],
)
def test_a_gate_can_name_a_figure_of_indexing_coverage(name: str, observed: float, n: int) -> None:
    result = checked(f"indexing_coverage.{name}", "<=", observed, indexing_coverage=COVERAGE)
    assert (result.passed, result.n) == (True, n)
    assert result.observed == pytest.approx(observed)
    assert not checked(f"indexing_coverage.{name}", "<", observed, indexing_coverage=COVERAGE).passed


@pytest.mark.parametrize(
    "coverage", [None, indexing_coverage([]), indexing_coverage([IndexedDocument(doc_id="a", n_chunks=0)])]
)
def test_a_rate_of_nothing_misses_its_gate(coverage: dict[str, Any] | None) -> None:
    result = checked("indexing_coverage.chunks_skipped_context_rate", "<=", 1.0, indexing_coverage=coverage)
    assert (result.passed, result.observed) == (False, None)
    assert result.message == "indexing_coverage.chunks_skipped_context_rate <= 1: missed, no data"


def test_a_gate_can_name_the_area_under_the_risk_coverage_curve() -> None:
    aurc = Estimate(value=0.2, low=0.1, high=0.35, n=30, n_not_applicable=10, n_error=0, method="area")
    curve = {"risk_coverage": {"aurc": aurc, "points": []}}
    assert checked("risk_coverage.aurc", "<=", 0.25, operational=curve).passed
    assert not checked("risk_coverage.aurc", "<=", 0.25, bound="upper", operational=curve).passed
    assert checked("risk_coverage.aurc", "<=", 0.25, operational=curve).n == 30
    nothing = checked("risk_coverage.aurc", "<=", 0.25, operational={"risk_coverage": None})
    assert nothing.message == "risk_coverage.aurc <= 0.25: missed, no data"


@pytest.mark.parametrize("op", [">=", "<="])
def test_a_figure_over_no_cases_misses_its_gate_either_way(op: str) -> None:
    empty = Estimate(value=None, n=0, n_not_applicable=38, n_error=2, worst=0.0, best=1.0, method="mean, wilson 95%")
    result = checked("mrr", op, 0.5, overall={"mrr": empty})
    assert (result.passed, result.observed, result.n) == (False, None, 0)
    assert result.message == f"mrr {op} 0.5: missed, no data (0 of 40 cases)"


def test_a_gate_on_the_spot_check_says_how_many_pairs_it_rests_on() -> None:
    reliability = {"disagreement_rate": 0.1, "spot_check_n": 20}
    result = checked("judge_reliability.disagreement_rate", "<=", 0.2, judge_reliability=reliability)
    assert (result.passed, result.n) == (True, 20)


@pytest.mark.parametrize(
    ("gate", "has_indexing", "message"),
    [
        ({"metric": "risk_coverage.aurcs"}, True, r"did you mean 'risk_coverage\.aurc'"),
        ({"metric": "indexing_coverage.no_chunk_rate"}, True, r"did you mean 'indexing_coverage\.no_chunks_rate'"),
        ({"metric": "indexing_coverage.no_chunks_rate"}, False, r'gates\[0\]: .* needs "indexing" in the config'),
        ({"metric": "indexing_coverage.no_chunks_rate", "bound": "upper"}, True, "no interval and no slices"),
        ({"metric": "indexing_coverage.n_chunks", "slice": {"category": "a"}}, True, "no interval and no slices"),
    ],
)
def test_a_gate_that_cannot_hold_is_refused(gate: dict[str, Any], has_indexing: bool, message: str) -> None:
    gates = [Gate.model_validate({"op": "<=", "value": 0.1, **gate})]
    with pytest.raises(ConfigError, match=message):
        check_gate_names(gates, [Retrieval(), AnswerChecks()], has_indexing=has_indexing)


def test_the_area_needs_a_score_to_take_risk_from() -> None:
    gates = [Gate(metric="risk_coverage.aurc", op="<=", value=0.1)]
    check_gate_names(gates, [AnswerChecks()])
    with pytest.raises(ConfigError, match=r"no figure called 'risk_coverage\.aurc' in this run"):
        check_gate_names(gates, [Retrieval()])
