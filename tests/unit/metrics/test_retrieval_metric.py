"""Retrieval by anchors: values, preconditions and invariants."""

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from judgekit.core.cases import Case, SystemOutput
from judgekit.core.judgments import Verdict
from judgekit.core.scores import Failed, NotApplicable, Outcomes
from judgekit.metrics.retrieval import Retrieval

A, B, C = {"rel_path": "a.md"}, {"rel_path": "b.md"}, {"rel_path": "c.md"}


def score(case: dict[str, Any], output: dict[str, Any], **args: Any) -> Outcomes:
    return Retrieval(**args).calculate(
        Case.model_validate({"id": "q", **case}), SystemOutput.model_validate({"case_id": "q", **output})
    )


def retrieved(letters: str) -> list[dict[str, Any]]:
    """Hits whose chunk id and file are one letter, `x` being in no gold support."""
    return [{"chunk_id": letter, "rel_path": f"{letter}.md"} for letter in letters]


def test_ranked_figures_of_two_supports_found_at_ranks_2_and_3() -> None:
    outcomes = score({"gold_supports": [A, B]}, {"retrieved": retrieved("xabx")}, ks=(1, 2, 3), mrr_ks=(1, 2))
    assert outcomes["recall_any@1"] == 0.0
    assert outcomes["recall_any@2"] == 1.0
    assert outcomes["precision@2"] == 1 / 2
    assert outcomes["precision@3"] == 2 / 3
    assert outcomes["mrr"] == 1 / 2
    assert outcomes["mrr@1"] == 0.0
    assert outcomes["mrr@2"] == 1 / 2
    # (1/log2 3 + 1/log2 4) / (1 + 1/log2 3) = (.6309 + .5) / 1.6309
    assert outcomes["ndcg@3"] == pytest.approx(1.130930 / 1.630930, abs=1e-6)


@pytest.mark.parametrize(
    ("letters", "expected"),
    [
        pytest.param("aa", {"ndcg@2": 0.6131, "precision@2": 0.5, "recall_any@2": 1.0}, id="row1-E10"),
        pytest.param("aaa", {"ndcg@3": 0.6131, "precision@3": 0.3333}, id="row2"),
        pytest.param("a", {"precision@5": 0.2, "mrr": 1.0}, id="row18-E09"),
        pytest.param("", {"precision@5": 0.0, "ndcg@5": 0.0, "mrr": 0.0, "recall_any@5": 0.0}, id="row9-E09"),
    ],
)
def test_repeated_chunks_and_short_lists(letters: str, expected: dict[str, float]) -> None:
    outcomes = score({"gold_supports": [A, B]}, {"retrieved": retrieved(letters)}, ks=(2, 3, 5))
    numbers = {name: value for name, value in outcomes.items() if isinstance(value, float)}
    assert {name: round(numbers[name], 4) for name in expected} == expected


def test_two_chunks_of_one_support_gain_once_in_ndcg_but_are_both_precise() -> None:
    hits = [{"chunk_id": "1", "rel_path": "a.md"}, {"chunk_id": "2", "rel_path": "a.md"}]
    outcomes = score({"gold_supports": [A]}, {"retrieved": hits}, ks=(2,))
    assert outcomes["ndcg@2"] == 1.0
    assert outcomes["precision@2"] == 1.0


def test_one_hit_that_matches_two_supports_gains_once() -> None:
    setup = {"rel_path": "a.md", "heading_path": "Setup"}
    outcomes = score({"gold_supports": [A, setup]}, {"retrieved": [setup]}, ks=(2,))
    assert outcomes["ndcg@2"] == pytest.approx(1 / (1 + 1 / math.log2(3)))


def test_a_support_written_twice_counts_once_e10() -> None:
    outcomes = score({"gold_supports": [A, A]}, {"retrieved": retrieved("a")}, ks=(2,))
    assert outcomes["ndcg@2"] == 1.0


@pytest.mark.parametrize(
    ("groups", "first_k"),
    [
        ([[0, 1]], 3),  # a at 1, b at 3
        ([[0, 1], [0]], 1),  # the second group is complete at 1
        ([[2], [1, 0]], 3),  # c is nowhere
        ([[2, 0]], None),
    ],
)
def test_recall_all_takes_one_complete_group(groups: list[list[int]], first_k: int | None) -> None:
    case = {"gold_supports": [A, B, C], "required_support_groups": groups}
    outcomes = score(case, {"retrieved": retrieved("axb")}, ks=(1, 2, 3, 4))
    expected = [1.0 if first_k is not None and k >= first_k else 0.0 for k in (1, 2, 3, 4)]
    assert [outcomes[f"recall_all@{k}"] for k in (1, 2, 3, 4)] == expected


def test_no_gold_supports_makes_every_score_not_applicable_row8() -> None:
    outcomes = score({"gold_supports": []}, {"retrieved": retrieved("x")})
    assert set(outcomes.values()) == {NotApplicable("no gold_supports")}
    assert set(outcomes) == {column.name for column in Retrieval().columns()}


@pytest.mark.parametrize(
    ("path", "folders", "expected"),
    [
        ("work/a.md", ["work"], 0.0),
        ("work/a.md", ["work/"], 0.0),
        ("work/a.md", [".\\work"], 0.0),
        ("workshop/a.md", ["work"], 1.0),
        ("work/a.md", [""], 0.0),
        ("work/a.md", ["."], 0.0),
        ("work/a.md", ["./"], 0.0),
        ("work/a.md", [], 1.0),
        ("work/a.md", ["notes", "work"], 0.0),
        ("work/a.md", ["Work"], 1.0),
        ("work/a.md", ["work/a.md"], 1.0),
    ],
)
def test_scope_miss_compares_whole_path_components(path: str, folders: list[str], expected: float) -> None:
    scope = {"mode": "on", "selected_folders": folders}
    assert score({"gold_supports": [{"rel_path": path}]}, {"scope": scope})["scope_miss"] == expected


def test_scope_miss_needs_only_one_support_inside() -> None:
    scope = {"mode": "on_with_fallback", "selected_folders": ["work"]}
    assert score({"gold_supports": [A, {"rel_path": "work/b.md"}]}, {"scope": scope})["scope_miss"] == 0.0


@pytest.mark.parametrize("scope", [None, {"mode": "off", "selected_folders": ["work"]}])
def test_scope_miss_needs_a_scope_that_is_on(scope: Any) -> None:
    assert isinstance(score({"gold_supports": [A]}, {"scope": scope})["scope_miss"], NotApplicable)


@pytest.mark.parametrize(
    ("answerable", "references", "expected"),
    [
        (True, [A], 1.0),
        (True, [C], 0.0),
        (True, [], 0.0),
        (False, [A], NotApplicable("answerable is not true")),
        (None, [A], NotApplicable("answerable is not true")),
    ],
)
def test_attribution_hit_asks_for_one_right_reference(
    answerable: bool | None, references: list[Any], expected: object
) -> None:
    case = {"gold_supports": [A, B], "answerable": answerable}
    assert score(case, {"references": references})["attribution_hit"] == expected


OLD, NEW, UNDATED = A | {"date": "2024-12-31"}, B | {"date": "2025-01-01"}, C


@pytest.mark.parametrize(
    ("rule", "supports", "references", "expected"),
    [
        ("cite_newer", [NEW, OLD], [B], 1.0),
        ("cite_newer", [NEW, OLD], [A], 0.0),
        ("cite_newer", [OLD, UNDATED], [C], 0.0),
        ("cite_newer", [NEW, C | {"date": "2025-01-01"}], [C], 1.0),
        ("cite_newer", [UNDATED], [C], NotApplicable("no gold support has a date")),
        ("cite_both", [OLD, NEW], [A, B], 1.0),
        ("cite_both", [OLD, NEW], [B], 0.0),
        ("acknowledge_both", [OLD, NEW], [A, B], NotApplicable("needs the conflict judge")),
        (None, [OLD, NEW], [A, B], NotApplicable("no recency_conflict_rule")),
    ],
)
def test_recency_conflict_follows_the_rule_of_the_case(
    rule: str | None, supports: list[Any], references: list[Any], expected: object
) -> None:
    case = {"gold_supports": supports, "recency_conflict_rule": rule}
    assert score(case, {"references": references})["recency_conflict"] == expected


JUDGE_FAILED = Failed("judge timeout", by_judge=True)


@pytest.mark.parametrize(
    ("rule", "fields", "said", "expected"),
    [
        ("acknowledge_both", {"answer": "x", "references": [A, B]}, Verdict(answer=True), 1.0),
        ("acknowledge_both", {"answer": "x", "references": [A, B]}, Verdict(answer=False), 0.0),
        ("acknowledge_both", {"answer": "x", "references": [A]}, Verdict(answer=True), 0.0),
        ("acknowledge_both", {"answer": "x", "references": [A]}, JUDGE_FAILED, JUDGE_FAILED),
        ("acknowledge_both", {"answer": " ", "references": [A, B]}, Failed("blank_answer"), 0.0),
        ("acknowledge_both", {"references": [A, B]}, Failed("no_answer"), Failed("no_answer")),
        ("acknowledge_both", {"error": {"kind": "api"}}, Failed("api"), Failed("api")),
        # the other rules take no judge
        ("cite_both", {"answer": "x", "references": [A, B]}, NotApplicable("not asked"), None),
        (None, {"answer": "x", "references": [A, B]}, NotApplicable("not asked"), None),
    ],
)
def test_acknowledge_both_takes_the_verdict_of_the_conflict_judge(
    rule: str | None, fields: dict[str, Any], said: Verdict | NotApplicable | Failed, expected: object
) -> None:
    case = Case.model_validate({"id": "q", "gold_supports": [OLD, NEW], "recency_conflict_rule": rule})
    output = SystemOutput.model_validate({"case_id": "q", **fields})
    found = Retrieval().calculate_judged(case, output, {"conflict": said})
    assert found == ({} if expected is None else {"recency_conflict": expected})


def test_an_errored_output_fails_every_score_that_its_case_allows() -> None:
    full = {
        "gold_supports": [OLD],
        "required_support_groups": [[0]],
        "answerable": True,
        "recency_conflict_rule": "cite_both",
    }
    error = {"retrieved": retrieved("a"), "error": {"kind": "timeout"}}
    assert set(score(full, error).values()) == {Failed("timeout")}
    bare = score({"gold_supports": [A]}, error)
    assert {name for name, value in bare.items() if isinstance(value, NotApplicable)} == {
        "recall_all@1",
        "recall_all@3",
        "recall_all@5",
        "recall_all@10",
        "attribution_hit",
        "recency_conflict",
    }
    assert set(score({}, error).values()) == {NotApplicable("no gold_supports")}


@pytest.mark.parametrize("ks", [[0], [3, 3], ["3"], [True], [2.5]])
def test_cut_offs_are_distinct_whole_numbers_from_1(ks: list[Any]) -> None:
    with pytest.raises(ValidationError):
        Retrieval.model_validate({"ks": ks})


def test_columns_say_range_direction_and_aggregate() -> None:
    columns = {column.name: column for column in Retrieval(ks=(1, 5), mrr_ks=(1,)).columns()}
    assert [name for name, column in columns.items() if not column.higher_is_better] == ["scope_miss"]
    assert columns["scope_miss"].aggregate == "scope_miss_rate"
    assert columns["attribution_hit"].aggregate == "attribution_hit_rate"
    assert {name for name, column in columns.items() if not column.binary} == {"precision@5", "ndcg@5", "mrr"}


HITS = st.lists(
    st.fixed_dictionaries(
        {"chunk_id": st.sampled_from("123456"), "rel_path": st.sampled_from(["a.md", "b.md", "x.md"])},
        optional={"heading_path": st.sampled_from(["Setup", "Setup > Linux"])},
    ),
    max_size=12,
)
GOLD = {
    "gold_supports": [A, B | {"heading_path": "Setup"}, B | {"heading_path": "Setup > Linux"}],
    "required_support_groups": [[0, 1], [2]],
    "answerable": True,
    "recency_conflict_rule": "cite_both",
}


@given(HITS, st.randoms(use_true_random=False))
def test_the_order_of_hits_is_irrelevant_where_ranks_are_given(hits: list[dict[str, Any]], random: Any) -> None:
    ranked = [entry | {"rank": 2 * position} for position, entry in enumerate(hits, start=1)]
    shuffled = list(ranked)
    random.shuffle(shuffled)
    assert score(GOLD, {"retrieved": shuffled}) == score(GOLD, {"retrieved": ranked})


@given(HITS)
def test_every_number_lies_in_the_range_of_its_column(hits: list[dict[str, Any]]) -> None:
    outcomes = score(GOLD, {"retrieved": hits, "references": hits_as_references(hits)})
    for column in Retrieval().columns():
        value = outcomes[column.name]
        if isinstance(value, float):
            assert column.low <= value <= column.high
            assert not column.binary or value in (column.low, column.high)


def hits_as_references(hits: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{key: value for key, value in entry.items() if key != "chunk_id"} for entry in hits]


@given(HITS)
def test_a_wrong_hit_at_the_end_changes_nothing(hits: list[dict[str, Any]]) -> None:
    longer = [*hits, {"chunk_id": "late", "rel_path": "wrong.md"}]
    assert score(GOLD, {"retrieved": longer}) == score(GOLD, {"retrieved": hits})


@given(HITS)
def test_a_repeated_hit_at_the_end_changes_nothing(hits: list[dict[str, Any]]) -> None:
    repeated = [*hits, *hits]
    assert score(GOLD, {"retrieved": repeated}) == score(GOLD, {"retrieved": hits})


@given(HITS)
def test_a_larger_cut_off_never_loses_what_was_found(hits: list[dict[str, Any]]) -> None:
    outcomes = score(GOLD, {"retrieved": hits}, ks=(1, 2, 4, 8))
    for name in ("recall_any", "recall_all"):
        values = [outcomes[f"{name}@{k}"] for k in (1, 2, 4, 8)]
        numbers = [value for value in values if isinstance(value, float)]
        assert numbers == sorted(numbers)
        assert len(numbers) == 4
