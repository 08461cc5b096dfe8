"""Labels and hits that are written in different ways: never a silent 0, in `run` or in `score`."""

import json
from pathlib import Path
from typing import Any

import pytest

import judgekit
from judgekit.core.data_files import DataFile
from judgekit.metrics.gold_evidence import recognised_delimiter
from judgekit.metrics.retrieval import Retrieval
from judgekit.workflows.score import score
from tests.builders import write_lines, write_suite

LABEL_WARNINGS = {"paths_look_different", "ids_look_different", "ambiguous_heading_path", "heading_delimiter"}


def of_run(folder: Path, cases: list[dict[str, Any]], outputs: list[dict[str, Any]], **config: Any) -> Any:
    """Recall and the warnings about labels of a run."""
    path = write_suite(folder, case_rows=cases, output_rows=outputs, judges=[], models={}, **config)
    summary = judgekit.run(path)
    notices = [(item.code, item.message) for item in summary.warnings if item.code in LABEL_WARNINGS]
    return summary.overall, notices


def of_score(folder: Path, cases: list[dict[str, Any]], outputs: list[dict[str, Any]]) -> Any:
    """The same of `judgekit score`."""
    one, other = write_lines(folder / "c.jsonl", cases), write_lines(folder / "o.jsonl", outputs)
    found = score(DataFile(path=str(one)), DataFile(path=str(other)))
    return found.estimates, [item for item in found.warnings if item[0] in LABEL_WARNINGS]


def place(path: str, heading: Any = ()) -> dict[str, Any]:
    return {"rel_path": path, "heading_path": heading}


@pytest.mark.parametrize(
    ("label", "hit", "figure", "code"),
    [
        pytest.param(
            {"gold_supports": [place("src/app.py")]},
            {"rel_path": "checkout/7f3/src/app.py"},
            "recall_any@10",
            "paths_look_different",
            id="T2-47-paths",
        ),
        pytest.param(
            {"gold_supports": [{**place("src/app.py"), "snippets": ["def"]}]},
            {"rel_path": "/home/ci/src/app.py", "text": "def"},
            "recall_any@10",
            "paths_look_different",
            id="T2-47-paths-with-snippets",
        ),
        pytest.param(
            {"expected_chunk_ids": ["doc_0012"]},
            {"chunk_id": "DOC-12"},
            "hit@10",
            "ids_look_different",
            id="T2-47-chunks",
        ),
        pytest.param(
            {"expected_doc_ids": ["17"]},
            {"doc_id": "kb-17"},
            "recall_doc@10",
            "ids_look_different",
            id="T2-47-documents",
        ),
        pytest.param(
            {"gold_supports": [place("a.md", ["Oven", "Heat"])]},
            place("a.md", "Oven>Heat"),
            "recall_any@10",
            "ambiguous_heading_path",
            id="T2-47-headings",
        ),
        pytest.param(
            {"gold_supports": [place("a.md", "Oven > Heat")]},
            place("a.md", ["Oven / Heat"]),
            "recall_any@10",
            "ambiguous_heading_path",
            id="T2-47-headings-in-a-list",
        ),
    ],
)
def test_t2_47_score_warns_as_run_does(
    tmp_path: Path, label: dict[str, Any], hit: dict[str, Any], figure: str, code: str
) -> None:
    cases = [{"id": "1", "question": "where?", **label}]
    outputs = [{"case_id": "1", "retrieved": [hit]}]
    figures, notices = of_run(tmp_path, cases, outputs)
    scored, said = of_score(tmp_path, cases, outputs)

    assert figures[figure].value == scored[figure].value == 0.0
    assert [name for name, _ in notices] == [code]
    assert said == notices


def test_t2_47_nothing_is_said_where_names_are_alike(tmp_path: Path) -> None:
    cases = [{"id": "1", "expected_chunk_ids": ["a"], "gold_supports": [place("a.md", "Oven")]}]
    outputs = [{"case_id": "1", "retrieved": [{"chunk_id": "a", **place("a.md", "Oven > Heat")}]}]
    assert of_score(tmp_path, cases, outputs)[1] == of_run(tmp_path, cases, outputs)[1] == []


@pytest.mark.parametrize("gold", ["Oven>Heat", "Oven / Heat", "Oven :: Heat", "## Oven>### Heat"])
@pytest.mark.parametrize("own", [None, "Oven > Heat", ["Oven", "Heat"], "Oven > Heat > Fan"])
def test_a_path_is_one_path_whatever_delimiter_the_gold_uses_throughout(tmp_path: Path, gold: str, own: Any) -> None:
    cases = [{"id": "1", "answerable": True, "gold_supports": [place("a.md", gold), place("b.md", "Oven")]}]
    hit = place("a.md", gold if own is None else own)
    outputs = [{"case_id": "1", "answer": "x", "retrieved": [hit], "references": [hit]}]
    figures, notices = of_run(tmp_path, cases, outputs)
    scored, said = of_score(tmp_path, cases, outputs)

    assert figures["recall_any@10"].value == scored["recall_any@10"].value == 1.0
    assert figures["attribution_hit_rate"].value == 1.0
    assert [code for code, _ in notices] == ["heading_delimiter"]
    assert said == notices


def test_a_delimiter_of_the_config_comes_first(tmp_path: Path) -> None:
    cases = [{"id": "1", "gold_supports": [place("a.md", "Oven | Heat")]}]
    outputs = [{"case_id": "1", "retrieved": [place("a.md", ["Oven", "Heat", "Fan"])]}]
    figures, notices = of_run(tmp_path / "a", cases, outputs)
    assert (figures["recall_any@10"].value, [code for code, _ in notices]) == (0.0, ["ambiguous_heading_path"])
    figures, notices = of_run(tmp_path / "b", cases, outputs, match={"heading_delimiter": " | "})
    assert (figures["recall_any@10"].value, notices) == (1.0, [])


@pytest.mark.parametrize(
    ("texts", "delimiter"),
    [
        (["Oven>Heat", "Oven"], ">"),
        (["Oven / Heat", "Oven / Light"], " / "),
        (["Oven :: Heat"], " :: "),
        (["Oven > Heat", "Oven"], None),
        (["Oven > Heat", "Oven / Heat"], None),  # two ways
        (["Oven>Heat", "Oven > Light"], None),
        (["Input / Output", "Setup"], None),  # a title, since Setup is no part of any other
        (["TCP/IP", "Oven"], None),
        ([], None),
    ],
)
def test_a_delimiter_is_recognised_only_where_the_gold_uses_it_throughout(
    texts: list[str], delimiter: str | None
) -> None:
    assert recognised_delimiter(texts) == delimiter


@pytest.mark.parametrize("snippets", ["if_text", "require", "ignore"])
def test_a_reference_names_a_place_and_is_not_looked_into(snippets: Any) -> None:
    from judgekit.core.cases import Case, SystemOutput

    case = Case.model_validate(
        {"id": "1", "answerable": True, "gold_supports": [{**place("a.md", "Oven"), "snippets": ["never written"]}]}
    )
    output = SystemOutput.model_validate({"case_id": "1", "answer": "x", "references": [place("a.md", "Oven")]})
    assert Retrieval(snippets=snippets).calculate(case, output)["attribution_hit"] == 1.0


def test_supports_that_differ_by_date_only_are_one_passage_in_ndcg() -> None:
    from judgekit.core.cases import Case, SystemOutput

    two = [{**place("a.md", "Oven"), "date": date} for date in ("2025-01-01", "2026-01-01")]
    case = Case.model_validate({"id": "1", "gold_supports": two})
    output = SystemOutput.model_validate({"case_id": "1", "retrieved": [place("a.md", "Oven"), place("b.md")]})
    # one distinct passage at rank 1: gain 1 of an ideal 1
    assert Retrieval().calculate(case, output)["ndcg@5"] == 1.0


def test_split_headings_are_stored_as_lists_so_that_the_folder_says_what_was_matched(tmp_path: Path) -> None:
    cases = [{"id": "1", "gold_supports": [place("a.md", "Oven>Heat")]}]
    of_run(tmp_path, cases, [{"case_id": "1", "retrieved": [place("a.md", "Oven>Heat")]}])
    (folder,) = [path for path in (tmp_path / "results").iterdir() if (path / "cases.jsonl").exists()]
    stored = json.loads((folder / "cases.jsonl").read_text(encoding="utf-8"))
    assert stored["gold_supports"][0]["heading_path"] == ["Oven", "Heat"]
