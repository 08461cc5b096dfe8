"""`convert`: what is written reads back as what was read."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from judgekit.core.cases import Case, SystemOutput
from judgekit.core.data_files import DataFile
from judgekit.core.errors import ConfigError, InputError
from judgekit.storage.converting import Written, convert
from tests.builders import write_lines
from tests.readers import cases_of, outputs_of, written

FULL_CASE: dict[str, Any] = {
    "id": "07",
    "question": 'caf\u00e9 \u2028 \U0001f600\n"quoted", =1+1',
    "answerable": False,
    "category": "=cmd",
    "tags": ["a,b", "c|d"],
    "gold_supports": [{"rel_path": "a.md", "heading_path": ["A > B"], "snippets": ["x"], "date": "2025-01-01"}],
    "required_support_groups": [[0]],
    "expected_chunk_ids": ["7"],
    "expected_doc_ids": [],
    "must_contain": ["[1]"],
    "reference_answers": ["", "x"],
    "expected_spans": {"7": [{"doc_id": "d", "start": 0, "end": 4}]},
    "expected_fields": {"total": 1.5, "none": None},
    "metadata": {"answer": "kept", "n": {"a": [1, None]}},
}
FULL_OUTPUT: dict[str, Any] = {
    "case_id": "07",
    "answer": "",
    "retrieved": [{"chunk_id": "c", "text": "\r\n\t", "rank": 2, "score": 0.1, "heading_path": "A > B"}],
    "references": [{"rel_path": "a.md"}],
    "citations": [],
    "scope": {"mode": "on", "selected_folders": [""]},
    "grounded": True,
    "abstained": False,
    "error": {"kind": "timeout", "message": "30 s"},
    "latency_seconds": {"total": 1.25},
    "usage": {"prompt_tokens": 3},
    "versions": {"index_version": "1"},
    "extracted_fields": {"a": [1]},
    "confidence": 0.5,
    "metadata": {"case": "x"},
}


def converted(source: Path, target: Path, kind: Any = "cases", **how: Any) -> list[Written]:
    return convert(DataFile(path=str(source), **how), source, target, kind, [])


@pytest.mark.parametrize("suffix", [".jsonl", ".json", ".csv"])
def test_our_own_formats_lose_nothing(tmp_path: Path, suffix: str) -> None:
    cases = write_lines(tmp_path / "c.jsonl", [FULL_CASE, {"id": "2"}])
    target = tmp_path / f"cases{suffix}"
    converted(cases, target)
    assert cases_of(target) == cases_of(cases) == [Case.model_validate(FULL_CASE), Case(id="2")]
    outputs = write_lines(tmp_path / "o.jsonl", [FULL_OUTPUT, {"case_id": "2", "answer": "a"}])
    target = tmp_path / f"outputs{suffix}"
    converted(outputs, target, "outputs")
    expected = [SystemOutput.model_validate(FULL_OUTPUT), SystemOutput(case_id="2", answer="a")]
    assert outputs_of(target) == outputs_of(outputs) == expected


TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
CASES = st.fixed_dictionaries(
    {"id": TEXTS.filter(lambda text: bool(text.strip()))},
    optional={
        "question": TEXTS,
        "category": TEXTS.filter(bool),
        "answerable": st.booleans(),
        "tags": st.lists(TEXTS, max_size=3),
        "expected_doc_ids": st.lists(TEXTS.filter(lambda text: bool(text.strip())), max_size=3),
        "metadata": st.dictionaries(TEXTS, TEXTS | st.integers() | st.none(), max_size=3),
    },
)


@given(CASES)
@settings(max_examples=60)
def test_whatever_stands_in_a_case_reads_back(tmp_path_factory: pytest.TempPathFactory, data: dict[str, Any]) -> None:
    folder = tmp_path_factory.mktemp("convert")
    source = write_lines(folder / "c.jsonl", [data])
    for suffix in (".jsonl", ".json", ".csv"):
        converted(source, folder / f"x{suffix}")
        assert cases_of(folder / f"x{suffix}") == cases_of(source)


def test_a_second_round_changes_no_byte(tmp_path: Path) -> None:
    source = write_lines(tmp_path / "c.jsonl", [FULL_CASE])
    converted(source, tmp_path / "one.jsonl")
    converted(tmp_path / "one.jsonl", tmp_path / "two.jsonl")
    assert (tmp_path / "one.jsonl").read_bytes() == (tmp_path / "two.jsonl").read_bytes()


def test_what_csv_cannot_say_is_refused_and_nothing_is_left_behind(tmp_path: Path) -> None:
    source = write_lines(tmp_path / "o.jsonl", [{"case_id": "1", "answer": "a"}, {"case_id": "2"}])
    with pytest.raises(InputError, match=r"output of case '2': answer cannot be said in CSV .* write \.jsonl"):
        converted(source, tmp_path / "o.csv", "outputs")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["o.jsonl"]


def test_cells_like_formulas_are_kept_and_counted(tmp_path: Path) -> None:
    source = write_lines(tmp_path / "c.jsonl", [{"id": "1", "question": "=1+1"}, {"id": "-2", "question": "x"}])
    (found,) = converted(source, tmp_path / "c.csv")
    assert (found.n_records, found.n_formula_cells) == (2, 2)
    assert (tmp_path / "c.csv").read_bytes() == b"id,question\r\n1,=1+1\r\n-2,x\r\n"


def test_both_kinds_go_into_a_folder(tmp_path: Path) -> None:
    source = written(tmp_path, "r.json", json.dumps([{"user_input": "q", "response": "a", "reference": "r"}]))
    found = converted(source, tmp_path / "out", "both")
    assert [(one.path.name, one.kind, one.n_records) for one in found] == [
        ("cases.jsonl", "cases", 1),
        ("outputs.jsonl", "outputs", 1),
    ]
    assert cases_of(tmp_path / "out/cases.jsonl") == cases_of(source)
    assert outputs_of(tmp_path / "out/outputs.jsonl") == outputs_of(source)


@pytest.mark.parametrize(
    ("target", "kind", "message"),
    [
        ("there.jsonl", "cases", "exists already; --force replaces it"),
        ("x.xlsx", "cases", r"expected a file that ends in \.jsonl, \.ndjson, \.json, \.csv"),
        ("x.jsonl", "both", "for both kinds name a folder"),
    ],
)
def test_a_target_that_will_not_do_is_refused(tmp_path: Path, target: str, kind: str, message: str) -> None:
    source = write_lines(tmp_path / "there.jsonl", [{"id": "1"}])
    with pytest.raises(ConfigError, match=message):
        converted(source, tmp_path / target, kind)


def test_a_source_that_is_wrong_leaves_the_old_target(tmp_path: Path) -> None:
    source = written(tmp_path, "c.jsonl", '{"id": 1}\n{"id": 1}\n')
    target = written(tmp_path, "x.jsonl", "old")
    with pytest.raises(InputError, match="already on line 1"):
        convert(DataFile(path="c.jsonl"), source, target, "cases", [], replace=True)
    assert target.read_text() == "old"
