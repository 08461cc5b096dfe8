"""Figures that a run has beside the means of its scores: indexing coverage, risk and coverage, both judges together."""

from pathlib import Path
from typing import Any

import pytest

import judgekit
from judgekit.core.errors import InputError
from tests.builders import case, output, read_json, read_lines, write_lines, write_suite

JUDGES = [{"name": "groundedness", "model": "m"}, {"name": "correctness", "model": "m"}]


def run(config: Path) -> tuple[dict[str, Any], Path]:
    judgekit.run(config, run_id="r")
    folder = config.parent / "results" / "r"
    return read_json(folder / "metrics.json"), folder


def test_indexing_coverage_goes_from_its_file_to_metrics_and_summary(tmp_path: Path) -> None:
    outputs = [output(f"c{number}", versions={"index_version": "i2"}) for number in range(6)]
    config = write_suite(tmp_path, indexing="index.jsonl", output_rows=outputs)
    documents = [
        {"doc_id": "a", "rel_path": "a.md", "n_chunks": 3, "skipped": {"context_length": 1}, "chunk_tokens": [5, 7, 9]},
        {"doc_id": "b", "rel_path": "b.pdf", "n_chunks": 0, "index_version": "i1"},
    ]
    write_lines(tmp_path / "index.jsonl", documents)
    metrics, folder = run(config)
    coverage = metrics["indexing_coverage"]
    assert (coverage["no_chunks_rate"], coverage["chunks_skipped_context_rate"]) == (0.5, 0.3333)
    assert list(coverage["by_doc_type"]) == ["md", "pdf"]
    assert read_json(folder / "config.json")["resolved"]["indexing"]["n"] == 2
    assert "indexing_of_other_version" in [warning["code"] for warning in metrics["warnings"]]
    section = (folder / "summary.md").read_text().split("## Indexing\n\n")[1].split("\n\n")[0].split("\n")
    assert section == [
        "* 2 documents, 3 chunks; 1 documents without a chunk (50.0%)",
        "* 2 of 3 chunks embedded; 1 skipped for their length (33.3%)",
        "* skipped: context_length 1",
        "* tokens per chunk: 5 to 9, mean 7.0, p95 8.8",
        "* index_version i1",
    ]


def test_without_an_indexing_file_there_is_nothing_of_it(tmp_path: Path) -> None:
    metrics, folder = run(write_suite(tmp_path))
    assert metrics["indexing_coverage"] is None
    assert metrics["operational"]["risk_coverage"] is None
    assert "Indexing" not in (folder / "summary.md").read_text()
    assert "indexing" not in read_json(folder / "config.json")["resolved"]


def test_two_versions_of_an_index_stop_the_run_before_any_call(tmp_path: Path) -> None:
    config = write_suite(tmp_path, indexing={"path": "index.jsonl", "fields": {"doc_id": "id"}})
    rows = [{"id": name, "n_chunks": 1, "chunker_version": f"v{name}"} for name in "12"]
    write_lines(tmp_path / "index.jsonl", rows)
    with pytest.raises(InputError, match=r"index\.jsonl: .*chunker_version: 'v1' \('1'\) and 'v2' \('2'\)"):
        judgekit.run(config)
    assert not (tmp_path / "results").exists()


def test_confidence_and_both_judges_give_their_figures(tmp_path: Path) -> None:
    text = "Kiln {} is fired at 1240 degrees."
    cases = [case(f"c{number}", category="hot", reference_answers=[text.format(f"c{number}")]) for number in range(4)]
    outputs = [output(f"c{number}", confidence=0.9 - number / 10) for number in range(3)]
    outputs.append({"case_id": "c3", "error": {"kind": "timeout"}})
    wrong = "The museum opens on Sunday."
    outputs[2] = output("c2", confidence=0.7, answer=wrong, retrieved=[{"chunk_id": "k", "text": wrong}])
    gate = {"metric": "correct_and_supported", "op": ">=", "value": 0.5}
    config = write_suite(tmp_path, case_rows=cases, output_rows=outputs, judges=JUDGES, gates=[gate])
    metrics, folder = run(config)
    curve = metrics["operational"]["risk_coverage"]
    assert curve["risk"] == "1 - correctness_pass"
    # Right, right, wrong by falling confidence: (0 + 0 + 1/3) / 3; the timed-out one is failed.
    assert curve["points"] == [
        {"confidence": 0.9, "coverage": 0.3333, "risk": 0.0, "n": 1},
        {"confidence": 0.8, "coverage": 0.6667, "risk": 0.0, "n": 2},
        {"confidence": 0.7, "coverage": 1.0, "risk": 0.3333, "n": 3},
    ]
    assert (curve["aurc"]["value"], curve["aurc"]["n"], curve["aurc"]["n_error"]) == (0.1111, 3, 1)
    both = [metrics["overall"][name] for name in ("correct_and_supported", "supported_but_incorrect")]
    assert [(figure["value"], figure["n"], figure["n_error"]) for figure in both] == [(0.6667, 3, 1), (0.3333, 3, 1)]
    assert metrics["slices"]["category"]["hot"]["correct_without_support"]["value"] == 0.0
    assert metrics["gates"][0]["observed"] == 0.5  # 2 of 4, the failed one as the worst
    scores = {(row["case_id"], row["name"]): row for row in read_lines(folder / "scores.jsonl")}
    assert scores["c2", "supported_but_incorrect"]["value"] == 1.0
    assert scores["c3", "correct_and_supported"]["reason"] == "failed: timeout"
