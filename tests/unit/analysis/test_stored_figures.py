"""`aggregate_json`: the names of the store, and its convention for errored queries."""

import pytest

from judgekit.analysis.stored_figures import run_aggregate


def figure(value: float | None, n: int, n_error: int = 0) -> dict[str, object]:
    worst = None if not n_error else (value or 0.0) * n / (n + n_error)
    return {"value": value, "n": n, "n_error": n_error, "worst": worst}


def test_an_errored_query_is_a_miss_in_three_figures_and_left_out_of_the_others() -> None:
    names = ("hit@5", "mrr_chunk", "recall_doc@5", "citation_coverage", "keyword_groundedness", "empty_result")
    found = run_aggregate({name: figure(0.75, 3, n_error=1) for name in (*names, "refusal_correct")})
    # (0.75 * 3 + 0) / 4 = 0.5625
    assert (found["hit_at_k"]["5"], found["mrr"], found["recall_at_k_doc"]["5"]) == (0.5625, 0.5625, 0.5625)
    others = ("citation_coverage", "groundedness", "empty_result_rate", "refusal_correctness")
    assert [found[name] for name in others] == [0.75] * 4


def test_a_figure_without_cases_is_null_and_all_errors_are_all_misses() -> None:
    found = run_aggregate({"hit@1": figure(None, 0), "hit@3": figure(None, 0, n_error=2)})
    assert found["hit_at_k"] == {"1": None, "3": 0.0, "5": None, "10": None}


def test_every_key_is_there_without_any_figure() -> None:
    assert run_aggregate({}) == {
        "hit_at_k": dict.fromkeys(("1", "3", "5", "10")),
        "mrr": None,
        "recall_at_k_doc": dict.fromkeys(("1", "3", "5", "10")),
        "citation_coverage": None,
        "groundedness": None,
        "empty_result_rate": None,
        "refusal_correctness": None,
    }


def test_figures_have_four_decimals() -> None:
    assert run_aggregate({"mrr_chunk": figure(2 / 3, 3)})["mrr"] == pytest.approx(0.6667, abs=1e-12)
