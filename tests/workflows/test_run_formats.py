"""Runs whose cases and outputs come in the formats of other tools."""

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import judgekit
from judgekit.cli.app import app
from tests.readers import needs_shared_files, shared, written

RAGAS = [
    {
        "user_input": f"How hot is kiln {number}?",
        "response": "1240",
        "retrieved_contexts": ["1240"],
        "reference": "1240",
    }
    for number in range(3)
]


def config(folder: Path, **parts: Any) -> Path:
    document = {"name": "suite", "results_dir": "results", **parts}
    return written(folder, "config.json", json.dumps(document))


def warnings_of(folder: Path) -> dict[str, str]:
    (path,) = folder.glob("results/*/metrics.json")
    return {warning["code"]: warning["message"] for warning in json.loads(path.read_text())["warnings"]}


def test_one_file_of_another_tool_is_both_cases_and_outputs(tmp_path: Path) -> None:
    written(tmp_path, "r.json", json.dumps(RAGAS))
    summary = judgekit.run(
        config(
            tmp_path,
            cases="r.json",
            system={"path": "r.json"},
            models={"base": {"provider": "lexical", "model": "overlap-2"}},
            judges=[{"name": "correctness", "model": "base"}],
        )
    )
    assert summary.overall["correctness"].n == 3
    assert set(warnings_of(tmp_path)) == {"format_detected"}  # positions of one file cannot differ


def test_c12_rows_without_ids_in_two_files_are_joined_by_order_and_it_is_said(tmp_path: Path) -> None:
    written(tmp_path, "c.json", json.dumps(RAGAS))
    written(tmp_path, "o.json", json.dumps(RAGAS))
    judgekit.run(config(tmp_path, cases="c.json", system={"path": "o.json", "format": "ragas"}))
    assert "ids_by_position" in warnings_of(tmp_path)


def test_c26_queries_on_one_side_are_named_and_a_missing_one_counts_0(tmp_path: Path) -> None:
    written(tmp_path, "x.qrels", "q1 0 d1 1\nq2 0 d2 1\n")
    written(tmp_path, "x.run", "q1 Q0 d1 1 1.0 r\nq3 Q0 d9 1 1.0 r\n")
    summary = judgekit.run(config(tmp_path, cases="x.qrels", system={"path": "x.run"}))
    # q1 is found, q2 counts 0: (1 + 0) / 2
    for name in ("recall_doc@1", "mrr", "hit@1"):
        assert (summary.overall[name].value, summary.overall[name].n, summary.overall[name].n_error) == (0.5, 2, 0)
    found = warnings_of(tmp_path)
    assert "'q2'; nothing was retrieved there, which counts as 0" in found["cases_without_output"]
    assert "'q3'" in found["outputs_without_case"]


@needs_shared_files
def test_c25_a_run_gives_the_figures_of_trec_eval(tmp_path: Path) -> None:
    ks = [5, 10, 20, 100, 1000]
    summary = judgekit.run(
        config(
            tmp_path,
            cases=str(shared("trec/qrels.test")),
            system={"path": str(shared("trec/results.test")), "ties": "trec_eval"},
            metrics=[{"name": "retrieval", "args": {"mrr_ks": [1000]}}, {"name": "retrieval_ids", "args": {"ks": ks}}],
        )
    )
    printed = dict(line.split()[::2] for line in shared("trec/expected_all.txt").read_text().splitlines())
    pairs = {"recip_rank": "mrr@1000", **{f"P_{k}": f"precision_chunk@{k}" for k in ks}}
    assert {theirs: f"{summary.overall[ours].value:.4f}" for theirs, ours in pairs.items()} == {
        theirs: printed[theirs] for theirs in pairs
    }


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["r.json", "out.jsonl"], 0, "out.jsonl: 3 cases\n"),
        (["r.json", "out", "--kind", "both", "--format", "ragas"], 0, "outputs.jsonl: 3 outputs\n"),
        (["r.json", "out.csv", "--kind", "outputs"], 0, "out.csv: 3 outputs\n"),
        (["r.json", "out.jsonl", "--field", "id=user_input", "--format", "ragas"], 0, "out.jsonl: 3 cases\n"),
        (["r.json", "out.jsonl", "--ties", "x"], 2, "--ties: input should be 'given' or 'trec_eval'"),
        (["r.json", "out.jsonl", "--field", "id"], 2, "--field 'id': expected OURS=THEIRS, such as id=qid"),
        (["none.json", "out.jsonl"], 2, "none.json: no such file"),
        (["r.json", "r.json"], 2, "exists already; --force replaces it"),
    ],
)
def test_the_convert_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], code: int, said: str
) -> None:
    written(tmp_path, "r.json", json.dumps(RAGAS))
    monkeypatch.chdir(tmp_path)
    result = CliRunner().invoke(app, ["convert", *arguments])
    assert result.exit_code == code, result.output
    assert said in result.output


def test_convert_says_that_formulas_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written(tmp_path, "c.jsonl", '{"id": 1, "question": "=1+1"}')
    monkeypatch.chdir(tmp_path)
    result = CliRunner().invoke(app, ["convert", "c.jsonl", "c.csv"])
    assert "note: 1 cells begin with =, +, -, @ or a tab and are kept as they are" in result.output
