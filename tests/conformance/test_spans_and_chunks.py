"""Every worked value of section 4 of the metric definitions."""

import json
from pathlib import Path
from typing import Any

import pytest

import judgekit
from judgekit import CharacterSpan, calculate_overlap, merge_overlapping_spans


def vectors(name: str) -> list[dict[str, Any]]:
    lines = Path(__file__).with_name(name).read_text(encoding="utf-8").split("\n")
    return [json.loads(line) for line in lines if line]


def spans_of(rows: list[Any]) -> list[CharacterSpan]:
    return [CharacterSpan(*row) for row in rows]


SPAN_NAMES = ("span_recall", "span_precision", "span_iou")
CHUNK_NAMES = ("chunk_recall", "chunk_precision", "chunk_f1")


@pytest.mark.parametrize("vector", vectors("spans.jsonl"))
def test_spans_are_merged_and_measured_as_worked_out(vector: dict[str, Any]) -> None:
    retrieved, gold = spans_of(vector["retrieved"]), spans_of(vector["gold"])
    found = {
        "merged_retrieved": [list(span) for span in merge_overlapping_spans(retrieved)],
        "overlap": calculate_overlap(retrieved, gold),
    }
    expect = vector["expect"]
    assert found == {name: expect[name] for name in found}
    for name in SPAN_NAMES:
        metric = getattr(judgekit, name)
        assert metric(retrieved, gold) == metric.calculate(retrieved, gold)
        assert metric(retrieved, gold) == pytest.approx(expect[name], abs=1e-9, rel=0)


@pytest.mark.parametrize("vector", vectors("chunks.jsonl"))
def test_chunk_sets_are_measured_as_worked_out(vector: dict[str, Any]) -> None:
    for name in CHUNK_NAMES:
        metric = getattr(judgekit, name)
        value = metric(vector["retrieved"], vector["gold"])
        assert value == metric.calculate(vector["retrieved"], vector["gold"])
        assert value == pytest.approx(vector["expect"][name], abs=1e-9, rel=0)


@pytest.mark.parametrize("name", [*SPAN_NAMES, *CHUNK_NAMES])
def test_a_metric_carries_its_name_and_no_state(name: str) -> None:
    metric = getattr(judgekit, name)
    assert metric.name == repr(metric) == name
    with pytest.raises(AttributeError):
        metric.name = "other"
