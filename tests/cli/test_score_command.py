"""`judgekit score` on the command line, beside `judgekit run` on the same files."""

import csv
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.builders import read_json, read_lines, write_lines
from tests.cli.fork_server import judgekit
from tests.readers import needs_shared_files, shared, written

QRELS = "q1 0 d1 1\nq1 0 d2 1\nq2 0 d9 2\nq3 0 d1 0\n"
RUN = "q1 Q0 d3 1 3.5 r\nq1 Q0 d1 2 2.5 r\nq1 Q0 d2 3 2.5 r\nq2 Q0 d1 1 0.5 r\nq3 Q0 d1 1 0.5 r\n"
RANKED = ("hit@", "precision", "recall_", "mrr", "ndcg@", "empty_result", "first_missing_support")


def figures_of(*arguments: str | Path, cwd: Path) -> dict[str, Any]:
    done = judgekit("score", *arguments, "--json", cwd=cwd)
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def run_of(cases: Path, outputs: Path, folder: Path, ties: str | None) -> Path:
    """The folder of a run of the retrieval families on the same files."""
    system = {"name": "recorded", "path": str(outputs), **({"ties": ties} if ties else {})}
    metrics = ["retrieval", "retrieval_ids"]
    if "required_support_groups" in cases.read_text(encoding="utf-8"):
        metrics.append("multi_hop")
    config = {"name": "same", "cases": str(cases), "system": system, "metrics": metrics, "judges": []}
    written(folder, "config.json", json.dumps(config))
    done = judgekit("run", "config.json", "--run-id", "r1", "--quiet", cwd=folder)
    assert done.returncode == 0, done.stderr
    return folder / "results" / "r1"


def assert_figures_of_a_run(cases: Path, outputs: Path, folder: Path, ties: str | None = None) -> None:
    """Every ranked figure and every score of a case is that of `judgekit run`, digit for digit."""
    options = ["--ties", ties] if ties else []
    found = figures_of("--cases", cases, "--outputs", outputs, *options, "--per-case", "s.jsonl", cwd=folder)
    run = run_of(cases, outputs, folder, ties)
    overall = read_json(run / "metrics.json")["overall"]
    expected = {name: figure for name, figure in overall.items() if name.startswith(RANKED)}
    assert found["figures"] == expected
    # The lines of a run come as its cases are done.
    scores: dict[str, dict[str, Any]] = {}
    for line in read_lines(run / "scores.jsonl"):
        if line["name"].startswith(RANKED):
            unasked = {"case_id": line["case_id"], "first_missing_support": None}
            scores.setdefault(line["case_id"], unasked)[line["name"]] = line["value"]
    assert {line["case_id"]: line for line in read_lines(folder / "s.jsonl")} == scores


def test_a_trec_run_has_the_figures_of_a_run(tmp_path: Path) -> None:
    assert_figures_of_a_run(written(tmp_path, "qrels.txt", QRELS), written(tmp_path, "x.run", RUN), tmp_path)


def test_jsonl_has_the_figures_of_a_run(tmp_path: Path) -> None:
    supports = [{"rel_path": "a.md", "heading_path": "One"}, {"rel_path": "b.md"}]
    cases: list[dict[str, Any]] = [
        {"id": "1", "question": "?", "expected_chunk_ids": ["x"], "expected_doc_ids": ["d", "e"]},
        {"id": "2", "question": "?", "gold_supports": supports, "required_support_groups": [[0, 1]]},
        {"id": "3", "question": "?", "expected_chunk_ids": ["x"]},
        {"id": "4", "question": "?", "expected_chunk_ids": ["x"]},
    ]
    hits = [
        {"rel_path": "b.md"},
        {"rel_path": "a.md", "heading_path": ["One", "Two"]},
        {"chunk_id": "x", "doc_id": "e"},
    ]
    outputs: list[dict[str, Any]] = [
        {"case_id": "1", "retrieved": hits},
        {"case_id": "2", "retrieved": hits},
        {"case_id": "3", "error": {"kind": "timeout"}},
    ]
    assert_figures_of_a_run(
        write_lines(tmp_path / "cases.jsonl", cases), write_lines(tmp_path / "outputs.jsonl", outputs), tmp_path
    )


@needs_shared_files
@pytest.mark.parametrize("ties", [None, "trec_eval"])
def test_a_real_trec_run_has_the_figures_of_a_run(tmp_path: Path, ties: str | None) -> None:
    assert_figures_of_a_run(shared("trec/qrels.test"), shared("trec/results.test"), tmp_path, ties)


def test_the_table_says_what_was_read_and_warns(tmp_path: Path) -> None:
    written(tmp_path, "qrels.txt", QRELS + "q4 0 d1 1\n")
    written(tmp_path, "x.run", RUN)
    done = judgekit("score", "--cases", "qrels.txt", "--outputs", "x.run", "--ks", "2", "--mrr-ks", "1", cwd=tmp_path)
    assert done.returncode == 0
    assert "cases: 4 in qrels.txt (sha256 " in done.stdout
    # q1 at rank 2, q2 nothing, q3 has no relevant document, q4 no ranking: 1 of 3.
    lines = [" ".join(line.split()) for line in done.stdout.splitlines()]
    assert any(line.startswith("hit@2 0.333 0.062 to 0.792 3 (small), 1 n/a") for line in lines)
    assert "mrr@1 " in done.stdout
    codes = [line.rsplit("[", 1)[1] for line in done.stderr.splitlines()]
    assert codes == ["queries_without_relevant]", "score_ties]", "cases_without_output]"]


def test_no_cut_offs_leave_the_figures_that_have_none(tmp_path: Path) -> None:
    files = "--cases", written(tmp_path, "qrels.txt", QRELS), "--outputs", written(tmp_path, "x.run", RUN)
    found = figures_of(*files, "--ks", "", cwd=tmp_path)["figures"]
    everything = figures_of(*files, cwd=tmp_path)["figures"]
    assert found == {name: figure for name, figure in everything.items() if "@" not in name}
    assert {"mrr", "mrr_chunk"} <= found.keys()


def test_scores_of_cases_are_written_as_csv_and_parquet(tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    written(tmp_path, "qrels.txt", "=1 0 d1 1\n=1 0 d2 1\n=1 0 d3 1\n2 0 d1 0\n")
    written(tmp_path, "x.run", "=1 Q0 d1 1 1 r\n2 Q0 d1 1 1 r\n")
    for name in ("s.csv", "s.parquet"):
        done = judgekit("score", "--cases", "qrels.txt", "--outputs", "x.run", "--per-case", name, cwd=tmp_path)
        assert done.returncode == 0, done.stderr
    with (tmp_path / "s.csv").open(encoding="utf-8", newline="") as stream:
        first, second = csv.DictReader(stream)
    assert (first["case_id"], first["recall_doc@1"], first["hit@1"]) == ("'=1", "0.3333333333333333", "1.0")
    assert (second["case_id"], second["recall_doc@1"], second["empty_result"]) == ("2", "", "0.0")
    rows = parquet.read_table(tmp_path / "s.parquet").to_pylist()
    assert (rows[0]["case_id"], rows[0]["recall_doc@1"], rows[1]["hit@1"]) == ("=1", 1 / 3, None)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--cases", "qrels.txt", "--outputs", "qrels.txt"], "qrels.txt:1: 4 columns"),
        (["--cases", "no.txt", "--outputs", "x.run"], "no.txt: "),
        (["--cases", "qrels.txt", "--outputs", "bad.run"], "bad.run:2: $: expected 6 columns"),
        (["--cases", "qrels.txt", "--outputs", "x.run", "--ks", "0"], "cut-offs: ks[0]"),
        (["--cases", "qrels.txt", "--outputs", "x.run", "--ks", "a"], "--ks 'a': expected whole numbers"),
        (["--cases", "qrels.txt", "--outputs", "x.run", "--ties", "none"], "--ties: "),
        (["--cases", "qrels.txt", "--outputs", "x.run", "--errors", "no"], "--errors 'no'"),
        (["--cases", "qrels.txt", "--outputs", "x.run", "--per-case", "s.txt"], "s.txt: expected a file that ends in"),
        (["--cases", "qrels.txt", "--outputs", "x.run", "--per-case", "old.csv"], "old.csv: exists already; --force"),
    ],
)
def test_what_the_user_can_mend_is_one_line_and_exit_code_2(tmp_path: Path, arguments: list[str], message: str) -> None:
    written(tmp_path, "qrels.txt", QRELS)
    written(tmp_path, "x.run", RUN)
    written(tmp_path, "bad.run", "q1 Q0 d3 1 3.5 r\nq1 Q0 d1 2\n")
    written(tmp_path, "old.csv", "mine")
    done = judgekit("score", *arguments, cwd=tmp_path)
    assert done.returncode == 2
    assert len(done.stderr.splitlines()) == 1, done.stderr
    assert done.stderr.startswith("judgekit: error: ")
    assert message in done.stderr
    assert (tmp_path / "old.csv").read_text(encoding="utf-8") == "mine"


def test_scoring_loads_no_table_library(tmp_path: Path) -> None:
    written(tmp_path, "q.qrels", QRELS)
    written(tmp_path, "x.run", RUN)
    code = (
        "import sys, judgekit\n"
        "scores = judgekit.score_files('q.qrels', 'x.run')\n"
        "print(scores.estimates['mrr'].n)\n"
        "print(sorted({'numpy', 'pyarrow', 'pandas', 'polars', 'openai'} & set(sys.modules)))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == ["2", "[]"]
