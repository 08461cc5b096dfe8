"""`judgekit compare` as it is typed: what it prints, writes and exits with."""

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import judgekit
from tests.builders import REPOSITORY, case, output, read_json, write_suite
from tests.cli.fork_server import Ended
from tests.cli.fork_server import judgekit as command

N = 12


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Runs: `old`, `new` (loses every chunk but one), `strict` (another judge)."""
    folder = tmp_path_factory.mktemp("compare")
    rows = [case(f"c{number}", expected_chunk_ids=["k1"]) for number in range(N)]
    lost = [
        output(f"c{number}", retrieved=[{"chunk_id": "k1" if number == 0 else "x", "text": "Kilns | are *hot*."}])
        for number in range(N)
    ]
    suites: dict[str, dict[str, Any]] = {
        "old": {},
        "new": {"output_rows": lost},
        "strict": {"model": {"model": "overlap-strict-2"}},
    }
    for run_id, suite in suites.items():
        config = write_suite(folder / run_id, n_cases=N, case_rows=rows, **suite)
        judgekit.run(config, run_id=run_id, results_dir=folder / "results")
    return folder / "results"


def compare(results: Path, *words: str) -> Ended:
    return command("compare", *words, "--stats", "--results-dir", results, cwd=results)


def error_of(result: Ended) -> str:
    assert "Traceback" not in result.stderr
    (line,) = [line for line in result.stderr.splitlines() if line.startswith("judgekit: error: ")]
    return line


def test_the_table_says_what_is_worse_and_which_chunks_are_lost(results: Path) -> None:
    result = compare(results, "old", "new")
    assert result.returncode == 0, result.stderr
    lines = result.stdout.splitlines()
    assert lines[0].startswith("new is worse in ")
    assert lines[2:4] == ["a: old", "b: new"]
    (hit,) = [line.split() for line in lines if line.startswith("hit@5 ")]
    assert hit[:5] == ["hit@5", "worse", "100%", "8.3%", "-91.7"]
    assert (
        "12 cases in both: 12 with a regression, 0 with another loss, 0 with gains alone; first correct hit: "
        "11 regressions, 0 losses, 0 wins, 1 draw"
    ) in lines
    assert "hits are compared by chunk id as it is, since a run does not name its chunker [unknown]" in lines
    (flips,) = [line.split() for line in lines if line.startswith("  groundedness ")]
    assert flips == ["groundedness", "12", "0", "0", "0", "0"]
    (first,) = [line for line in lines if line.startswith("  c1: ")]
    lost = "regression of the first correct hit (rank 1, then not found); loss of chunk k1 (rank 1, then not found)"
    assert first.startswith(f"  c1: {lost}; regression of ")
    assert "  and 7 more cases" in lines


@pytest.mark.parametrize("condition", ["regression", "significant", "hit@5<0"])
def test_a_run_against_itself_passes_no_gate_and_says_so_without_one(results: Path, condition: str) -> None:
    result = compare(results, "old", "old", "--fail-on", condition)
    assert (result.returncode, result.stdout) == (2, "")
    assert "a and b are one run, old; a run passes every gate against itself" in error_of(result)
    shown = compare(results, "old", "old")
    assert (shown.returncode, shown.stderr) == (0, "")
    assert "no difference at all" in shown.stdout
    assert "warning: a and b are one run, old; every difference is 0, and that says nothing [same_run]" in shown.stdout


@pytest.mark.parametrize(
    ("condition", "code", "said"),
    [
        ("regression", 1, "regression: c1, c2, c3, c4, c5, ... (12 cases); first correct hit 11"),
        ("significant", 1, "significant: chunk_recall -0.9167"),
        ("hit@5<-0.02", 1, "hit@5 1.0000 to 0.0833, difference -0.9167"),
        ("hit@5<-0.95", 0, ""),
        ("empty_result>0.02", 0, ""),
        ("hit@6<0", 2, "no figure called 'hit@6'"),
        ("worse", 2, "expected regression, significant"),
    ],
)
def test_fail_on_decides_the_exit_code_and_names_what_was_found(
    results: Path, condition: str, code: int, said: str
) -> None:
    result = compare(results, "old", "new", "--fail-on", condition)
    assert result.returncode == code, result.stderr
    assert said in result.stderr


def test_json_has_the_documented_keys_and_nothing_else_is_printed(results: Path) -> None:
    result = compare(results, "old", "new", "--format", "json", "--fail-on", "regression")
    assert result.returncode == 1
    document = json.loads(result.stdout)
    assert document.keys() >= {
        "run_a", "run_b", "aggregate_a", "aggregate_b", "deltas", "per_query", "only_in_a", "only_in_b", "changed",
    }  # fmt: skip
    assert document["deltas"]["hit@5"].keys() >= {"a", "b", "delta", "n", "low", "high", "p", "p_holm"}
    assert document["deltas"]["chunker_version_match"] == "unknown"
    scores = document["per_query"][0].pop("scores")
    assert document["per_query"][0] == {
        "query_id": "c1", "kind": "regression", "a_hit_rank": 1, "b_hit_rank": None, "lost_chunks": ["k1"],
        "note": None,
    }  # fmt: skip
    assert scores["groundedness"] == {"a": 5.0, "b": 0.0, "kind": "regression"}
    assert scores["hit@5"] == {"a": 1.0, "b": 0.0, "kind": "regression"}
    assert document["kinds"]["hit@5"] == {"regression": 11, "loss": 0, "mended": 0, "win": 0, "draw": 1}
    assert document["deltas"]["hit@5"]["delta"] == -0.9167
    assert document["aggregate_a"]["hit_at_k"]["5"] == 1.0
    assert document["failed"][0].startswith("regression: c1")


def test_markdown_is_written_for_a_pull_request(results: Path, tmp_path: Path) -> None:
    target = tmp_path / "delta.md"
    result = compare(results, "old", "new", "--format", "md", "--out", str(target), "--fail-on", "hit@5<0")
    assert result.returncode == 1
    text = target.read_text(encoding="utf-8")
    assert text.startswith("# old and new\n\n**worse:** ")
    assert "* hit@5&lt;0: hit@5 1.0000 to 0.0833" in text
    assert "| `hit@5` | **worse** | 100% | 8.3% | -91.7 pp |" in text
    lost = "regression of the first correct hit (rank 1, then not found); loss of chunk k1 (rank 1, then not found)"
    assert f"| c1 | {lost}; regression of " in text
    assert "| `hit@5` | 11 | 0 | 0 | 0 | 1 |" in text
    assert result.stdout.startswith("new is worse in ")  # the table is still printed


def test_html_is_one_page_without_requests(results: Path, tmp_path: Path) -> None:
    target = tmp_path / "delta.html"
    assert compare(results, "old", "new", "--format", "html", "--out", str(target)).returncode == 0
    page = target.read_text(encoding="utf-8")
    assert page.startswith("<!doctype html>")
    assert "http://" not in page.replace("http://www.w3.org", "")
    assert page.count('class="box compared"') == N


def test_another_judge_is_refused_with_the_command_that_helps(results: Path) -> None:
    result = compare(results, "old", "strict")
    assert result.returncode == 2
    error = error_of(result)
    assert "judge groundedness: model (overlap-2, then overlap-strict-2)" in error
    assert "judgekit rejudge old --model m --config " in error
    allowed = compare(results, "old", "strict", "--allow-mismatch")
    assert allowed.returncode == 0
    assert "warning: judge groundedness: model (overlap-2, then overlap-strict-2): allowed by" in allowed.stdout


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["old"], "expected two runs, A and B, found 1"),
        (["old", "new", "strict"], "expected two runs"),
        (["old", "new", "--baseline", "old"], "expected one run beside --baseline, found 2"),
        (["old", "nowhere"], "no run here"),
    ],
)
def test_what_is_not_two_runs_is_refused(results: Path, words: list[str], said: str) -> None:
    result = compare(results, *words)
    assert result.returncode == 2
    assert said in error_of(result)


def test_baseline_names_the_first_run(results: Path) -> None:
    result = compare(results, "new", "--baseline", "old")
    assert result.stdout.splitlines()[2:4] == ["a: old", "b: new"]


def test_ids_cannot_rewrite_the_terminal_or_the_table(results: Path, tmp_path: Path) -> None:
    evil = "c1\x1b[2J|\u202e"
    for run in ("old", "new"):
        shutil.copytree(results / run, tmp_path / run)
        unsealed = read_json(tmp_path / run / "manifest.json") | {"files": {}}
        (tmp_path / run / "manifest.json").write_text(json.dumps(unsealed), encoding="utf-8")
        for name in ("cases", "outputs", "scores"):
            path = tmp_path / run / f"{name}.jsonl"
            rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
            key = "id" if name == "cases" else "case_id"
            path.write_text(
                "".join(json.dumps(row | {key: evil if row[key] == "c1" else row[key]}) + "\n" for row in rows)
            )
    for form in ("table", "md"):
        printed = compare(tmp_path, "old", "new", "--format", form, "--fail-on", "regression")
        assert "\x1b" not in printed.stdout + printed.stderr
        assert "\u202e" not in printed.stdout + printed.stderr
    assert "c1\ufffd\\[2J\\|\ufffd" in printed.stdout


def test_an_unwritable_target_is_one_line_and_exit_4(results: Path, tmp_path: Path) -> None:
    result = compare(results, "old", "new", "--format", "md", "--out", str(tmp_path / "no" / "x.md"))
    assert result.returncode == 4
    assert "cannot be written" in error_of(result)


def test_damage_is_exit_4(results: Path, tmp_path: Path) -> None:
    shutil.copytree(results / "old", tmp_path / "old")
    (tmp_path / "old" / "manifest.json").write_text("{")
    result = compare(tmp_path, "old", "old")
    assert result.returncode == 4
    assert "damaged" in error_of(result)
    assert read_json(results / "old" / "manifest.json")["status"] == "complete"


@pytest.mark.slow
def test_the_example_of_the_document_comes_out_as_it_says(tmp_path: Path) -> None:
    text = (REPOSITORY / "docs" / "compare.md").read_text(encoding="utf-8")
    script, shown = (re.findall(rf"```{language}\n(.*?)```", text, re.DOTALL)[0] for language in ("python", "text"))
    for name in ("configs", "two-hits"):
        shutil.copytree(REPOSITORY / "configs", tmp_path / name)
    subprocess.run([sys.executable, "-c", script], cwd=tmp_path, check=True)
    judgekit.run(tmp_path / "configs" / "quickstart.json", run_id="six-hits", results_dir=tmp_path / "results")
    judgekit.run(tmp_path / "two-hits" / "quickstart.json", run_id="two-hits", results_dir=tmp_path / "results")
    printed = compare(tmp_path / "results", "six-hits", "two-hits").stdout.splitlines()
    rows = [without_holm(line) for line in printed]
    assert [line for line in shown.splitlines() if line != "..." and without_holm(line) not in rows] == []


def without_holm(line: str) -> list[str]:
    """The cells of a line but for the adjusted p, which moves with the number of figures that a run has."""
    cells = re.split(r" {2,}", line.strip())
    return [cell for place, cell in enumerate(cells) if place != 8]


def test_the_document_names_every_key_of_the_json_form(results: Path) -> None:
    text = (REPOSITORY / "docs" / "compare.md").read_text(encoding="utf-8")
    document = json.loads(compare(results, "old", "new", "--format", "json").stdout)
    keys = {*document, *document["deltas"]["hit@5"], *document["per_query"][0], *document["counts"]}
    assert [key for key in keys if f"`{key}`" not in text] == []
