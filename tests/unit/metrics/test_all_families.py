"""Properties that hold for every metric family, whatever it measures."""

import math
import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import judgekit.metrics
from judgekit import Case, Estimate, SystemOutput, aggregate
from judgekit.core.components import Metric, discover
from judgekit.core.scores import Failed, NotApplicable

FAMILIES = [family() for family in discover(judgekit.metrics, Metric).values()]
NAMES = [family.name for family in FAMILIES]
each_family = pytest.mark.parametrize("family", FAMILIES, ids=NAMES)

CASE = Case(
    id="q",
    answerable=True,
    gold_supports=[{"rel_path": "a.md"}, {"rel_path": "b.md", "heading_path": ["B"]}],
    required_support_groups=[[0, 1]],
    expected_chunk_ids=["a", "b"],
    expected_doc_ids=["a", "b"],
    expected_spans={"a": [{"doc_id": "a", "start": 0, "end": 8}], "b": [{"doc_id": "b", "start": 4, "end": 9}]},
    expected_fields={"x": 1, "y": [1, 2]},
    must_contain=["hot"],
    expected_tool_calls=[{"name": "find", "arguments": {"x": 1}}],
)

hit = st.builds(
    lambda name, start, length: {
        "chunk_id": name,
        "doc_id": name,
        "rel_path": f"{name}.md",
        "heading_path": [name.upper()],
        "source_spans": [{"start": start, "end": start + length}],
    },
    st.sampled_from("abcd"),
    st.integers(0, 8),
    st.integers(0, 8),
)
hits = st.lists(hit, max_size=8)


def ranked(found: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{**one, "rank": rank} for rank, one in enumerate(found, start=1)]


def given_output(found: list[dict[str, Any]]) -> SystemOutput:
    names = sorted({"find" if one["chunk_id"] == "a" else one["chunk_id"] for one in found})
    turns = [{"role": "assistant", "tool_calls": [{"name": name, "arguments": {"x": 1}} for name in names]}]
    return SystemOutput(case_id="q", answer="hot", retrieved=found, extracted_fields={"x": 1}, turns=turns)


@each_family
@given(found=hits, rng=st.randoms(use_true_random=False))
def test_the_order_of_hits_with_ranks_of_their_own_is_irrelevant(
    family: Metric, found: list[dict[str, Any]], rng: random.Random
) -> None:
    shuffled = ranked(found)
    rng.shuffle(shuffled)
    assert family.calculate(CASE, given_output(shuffled)) == family.calculate(CASE, given_output(ranked(found)))


@each_family
@given(found=hits)
def test_every_score_is_in_its_range_or_says_why_there_is_none(family: Metric, found: list[dict[str, Any]]) -> None:
    scores = family.calculate(CASE, given_output(found))
    assert set(scores) == {column.name for column in family.columns()}
    for column in family.columns():
        value = scores[column.name]
        assert isinstance(value, NotApplicable | Failed) or column.low <= value <= column.high
        if column.binary and isinstance(value, float):
            assert value in (column.low, column.high)


@each_family
@given(many=st.lists(hits, max_size=5), n_failed=st.integers(0, 2), rng=st.randoms(use_true_random=False))
def test_the_order_of_cases_changes_no_figure_and_all_are_accounted_for(
    family: Metric, many: list[list[dict[str, Any]]], n_failed: int, rng: random.Random
) -> None:
    outputs = [given_output(found) for found in many]
    outputs += [SystemOutput(case_id="q", error={"kind": "timeout"})] * n_failed
    scores = [family.calculate(CASE, output) for output in outputs]
    figures = aggregate(family, scores)
    rng.shuffle(scores)
    assert aggregate(family, scores) == figures
    for figure in figures.values():
        if isinstance(figure, Estimate):
            assert figure.n + figure.n_not_applicable + figure.n_error == len(outputs)
            assert (figure.value is None) >= (figure.n == 0)
            assert figure.value is None or math.isfinite(figure.value)


def test_failed_cases_are_left_out_or_counted_as_the_worst_as_asked() -> None:
    family = next(family for family in FAMILIES if family.name == "answer_checks")
    outputs = [given_output([]), SystemOutput(case_id="q", error={"kind": "timeout"})]
    scores = [family.calculate(CASE, output) for output in outputs]
    name = "keyword_groundedness"
    left_out, as_zero = (aggregate(family, scores, errors=policy)[name] for policy in ("exclude", "as_zero"))
    assert isinstance(left_out, Estimate)
    assert isinstance(as_zero, Estimate)
    assert (left_out.value, left_out.n, left_out.n_error) == (1.0, 1, 1)
    assert (as_zero.value, as_zero.n, as_zero.n_error) == (0.5, 2, 0)


@each_family
def test_nothing_is_failed_quietly_by_an_empty_case(family: Metric) -> None:
    # Without a label and without an output field, only what always applies is a number.
    always = {"empty_result", "error_rate", "timeout_rate", "empty_response_rate"}
    scores = family.calculate(Case(id="q"), SystemOutput(case_id="q"))
    assert {name for name, value in scores.items() if isinstance(value, float)} == always & set(scores)
