"""Intervals, small slices, clusters, gates and look-alike paths, from a config to what a run writes and prints."""

from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import judgekit
from judgekit.cli.app import app
from judgekit.core.errors import ConfigError
from tests.builders import case, output, read_json, write_lines, write_suite

runner = CliRunner()


def run(config: Path) -> tuple[dict[str, Any], str]:
    judgekit.run(config, run_id="r")
    folder = config.parent / "results" / "r"
    return read_json(folder / "metrics.json"), (folder / "summary.md").read_text()


def rows(n: int) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Cases in threes about one document; most are found, at ranks that differ."""
    cases, outputs = [], []
    for number in range(n):
        kind = "rare" if number < 3 else "common"
        cases.append(
            case(f"c{number}", category=kind, expected_chunk_ids=["k1"], metadata={"document": f"d{number // 3}"})
        )
        hits = [{"chunk_id": "k1" if place == number // 3 % 4 else f"x{place}", "text": "t"} for place in range(3)]
        outputs.append(output(f"c{number}", retrieved=hits))
    return cases, outputs


def test_small_slices_are_marked_wherever_figures_are_shown(tmp_path: Path) -> None:
    cases, outputs = rows(12)
    config = write_suite(tmp_path, case_rows=cases, output_rows=outputs)
    metrics, summary = run(config)
    assert metrics["min_n"] == 5
    slices = metrics["slices"]["category"]
    assert slices["rare"]["mrr_chunk"]["n"] == metrics["slice_sizes"]["category"]["rare"] == 3 < metrics["min_n"]
    assert metrics["overall"]["mrr_chunk"]["small"] is False
    assert "| rare | 0.00 (3, small) | 1.00 (3, small) |" in summary
    assert "| common | 0.00 (9) | 0.67 (9) |" in summary
    assert "small: fewer than 5, too few for a conclusion." in summary
    printed = runner.invoke(app, ["run", str(config), "--stats", "--results-dir", str(tmp_path / "more")]).stdout
    assert "small slices, fewer than 5 cases: category=rare (3)" in printed


def test_min_n_of_the_config_decides_what_is_small(tmp_path: Path) -> None:
    cases, outputs = rows(12)
    metrics, summary = run(write_suite(tmp_path, case_rows=cases, output_rows=outputs, min_n=3))
    assert metrics["slices"]["category"]["rare"]["mrr_chunk"]["n"] == metrics["min_n"] == 3
    assert "small" not in summary
    metrics, summary = run(write_suite(tmp_path / "b", case_rows=cases, output_rows=outputs, min_n=13))
    assert metrics["overall"]["mrr_chunk"]["small"] is True
    assert "12 (small)" in summary


def test_a_run_says_by_what_its_cases_are_clustered(tmp_path: Path) -> None:
    cases, outputs = rows(30)
    plain, _ = run(write_suite(tmp_path / "a", case_rows=cases, output_rows=outputs, seed=4))
    clustered, _ = run(
        write_suite(tmp_path / "b", case_rows=cases, output_rows=outputs, seed=4, cluster_by="metadata.document")
    )
    assert (plain["cluster_by"], clustered["cluster_by"]) == (None, "metadata.document")
    a, b = plain["overall"]["mrr_chunk"], clustered["overall"]["mrr_chunk"]
    assert a["value"] == b["value"]
    assert a["method"] == "mean, bca bootstrap 95%, 2000 resamples, seed 4"
    assert b["method"] == "mean, bca bootstrap 95%, 2000 resamples of 10 clusters, seed 4"
    # The three cases of a document are equal, so there are ten things to learn from and not thirty.
    assert b["high"] - b["low"] > 1.4 * (a["high"] - a["low"])
    a, b = plain["overall"]["hit@5"], clustered["overall"]["hit@5"]
    assert (a["method"], b["method"]) == ("mean, wilson 95%", "mean, wilson 95%, design effect 3.33, 10 clusters")
    assert b["high"] - b["low"] > 1.4 * (a["high"] - a["low"])


def test_a_field_to_cluster_by_that_no_case_has_stops_the_run_before_any_call(tmp_path: Path) -> None:
    cases, outputs = rows(6)
    config = write_suite(tmp_path, case_rows=cases, output_rows=outputs, cluster_by="metadata.doc")
    with pytest.raises(ConfigError, match=r"cluster_by: no case has a value of 'metadata\.doc'"):
        judgekit.run(config)
    assert not (tmp_path / "results").exists()
    found = runner.invoke(app, ["validate", str(config)])
    assert found.exit_code == 2
    assert "did you mean 'metadata.document'" in found.stderr


def test_the_order_of_the_case_file_changes_no_figure(tmp_path: Path) -> None:
    cases, outputs = rows(12)
    first, _ = run(write_suite(tmp_path / "a", case_rows=cases, output_rows=outputs))
    second, _ = run(write_suite(tmp_path / "b", case_rows=cases[::-1], output_rows=outputs[::-1]))
    assert first["overall"] == second["overall"]
    assert first["slices"] == second["slices"]


def test_gates_reach_indexing_and_risk_coverage(tmp_path: Path) -> None:
    gates = [
        {"metric": "indexing_coverage.no_chunks_rate", "op": "<=", "value": 0.4},
        {"metric": "indexing_coverage.chunks_skipped_context_rate", "op": "<=", "value": 0.4},
        {"metric": "risk_coverage.aurc", "op": "<=", "value": 0.4},
        {"metric": "attribution_hit_rate", "op": ">=", "value": 0.0},
    ]
    cases = [case(f"c{number}", must_contain=["1240"]) for number in range(6)]
    outputs = [output(f"c{number}", confidence=0.9) for number in range(6)]
    config = write_suite(tmp_path, case_rows=cases, output_rows=outputs, gates=gates, indexing="index.jsonl")
    documents = [{"doc_id": "a", "n_chunks": 3}, {"doc_id": "b", "n_chunks": 0}]
    write_lines(tmp_path / "index.jsonl", documents)
    metrics, summary = run(config)
    assert [gate["message"] for gate in metrics["gates"]] == [
        "indexing_coverage.no_chunks_rate <= 0.4: missed, 0.5000",
        "indexing_coverage.chunks_skipped_context_rate <= 0.4: missed, no data",
        "risk_coverage.aurc <= 0.4: passed, 0.0000",
        "attribution_hit_rate >= 0: missed, no data (0 of 6 cases)",
    ]
    assert metrics["gates"][0]["n"] == 2
    assert "no gate was set" not in summary
    assert runner.invoke(app, ["run", str(config), "--run-id", "s"]).exit_code == 1


def test_a_run_without_gates_says_so(tmp_path: Path) -> None:
    config = write_suite(tmp_path)
    metrics, summary = run(config)
    assert (metrics["n_gates"], metrics["gates"]) == (0, [])
    assert "## Gates\n\n* no gate was set, so the exit code says nothing about the figures\n" in summary
    assert "\nno gate was set, so" in runner.invoke(app, ["run", str(config), "--run-id", "s"]).stdout


def test_gates_of_a_part_of_the_cases_are_not_checked_and_it_is_said(tmp_path: Path) -> None:
    config = write_suite(tmp_path, gates=[{"metric": "error_rate", "op": "<=", "value": 0.1}])
    printed = runner.invoke(app, ["run", str(config), "--shard", "1/2"]).stdout
    assert "gates set: 1, not checked, since these are the figures of a part of the run" in printed


def test_paths_that_look_different_are_a_warning_and_not_a_silent_zero(tmp_path: Path) -> None:
    cases = [case(f"c{number}", gold_supports=[{"rel_path": f"docs/{number}.md"}]) for number in range(6)]
    outputs = [
        output(f"c{number}", retrieved=[{"rel_path": f"/mnt/kb/docs/{number}.md", "text": "t"}]) for number in range(6)
    ]
    config = write_suite(tmp_path / "a", case_rows=cases, output_rows=outputs)
    metrics, summary = run(config)
    assert metrics["overall"]["recall_any@5"]["value"] == 0.0
    [warning] = [warning for warning in metrics["warnings"] if warning["code"] == "paths_look_different"]
    assert "gold 'docs/0.md', hit '/mnt/kb/docs/0.md'" in warning["message"]
    assert "`paths_look_different`" in summary
    outputs[5]["retrieved"][0]["rel_path"] = "docs/5.md"
    metrics, _ = run(write_suite(tmp_path / "b", case_rows=cases, output_rows=outputs))
    assert "paths_look_different" not in [warning["code"] for warning in metrics["warnings"]]
