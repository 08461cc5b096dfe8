"""Two stored runs compared, from their folders alone."""

import contextlib
import json
import re
import shutil
import sqlite3
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

import judgekit
from judgekit.core.comparison import Comparison, QueryChange
from judgekit.core.errors import ConfigError, StorageError
from judgekit.workflows.compare import compare, comparison_pieces
from judgekit.workflows.compared_runs import CompareOptions, open_runs
from judgekit.workflows.models import Options
from tests.builders import case, output, read_json, read_lines, write_lines, write_suite

N = 12


def cases(**fields: Any) -> list[dict[str, Any]]:
    return [
        case(f"c{number}", expected_chunk_ids=[f"k{number}"], expected_doc_ids=["d"], must_contain=["1240"], **fields)
        for number in range(N)
    ]


def outputs(*, lost: Sequence[int] = (), **fields: Any) -> list[dict[str, Any]]:
    """Each case has its chunk at rank 1, but for the lost ones."""
    rows = []
    for number in range(N):
        name = "other" if number in lost else f"k{number}"
        hit = {"chunk_id": name, "doc_id": "d", "text": f"Kiln c{number} is fired at 1240 degrees."}
        rows.append(output(f"c{number}", retrieved=[hit], **fields))
    return rows


class Bench:
    """Makes runs into one folder and compares them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.results = folder / "results"

    def run(self, run_id: str, **suite: Any) -> Path:
        suite = {"case_rows": cases(), "output_rows": outputs(), **suite}
        config = write_suite(self.folder / f"suite-{run_id}", **suite)
        judgekit.run(config, run_id=run_id, results_dir=self.results)
        return self.results / run_id

    def compare(self, a: str = "a", b: str = "b", **options: Any) -> Comparison:
        with open_runs(a, b, Options(results_dir=self.results)) as sides:
            return compare(sides, CompareOptions(**options))


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


def query(comparison: Comparison, query_id: str) -> QueryChange:
    (found,) = [item for item in comparison.per_query if item.query_id == query_id]
    return found


def figures(comparison: Comparison) -> dict[str, Any]:
    return {delta.name: delta for delta in comparison.deltas}


def test_a_run_compared_with_itself_shows_no_difference(bench: Bench) -> None:
    bench.run("a", output_rows=outputs(lost=[3]))
    found = bench.compare("a", "a")
    assert {delta.delta for delta in found.deltas} == {0.0}
    assert {delta.p for delta in found.deltas} <= {1.0, None}
    assert found.counts["draw"] == N
    assert (found.causes, found.changed, found.only_in_a, found.only_in_b) == ((), (), (), ())
    assert [code for code, _ in found.notices] == ["chunker_unknown", "same_run"]
    assert found.aggregate_a == found.aggregate_b


def test_lost_hits_are_regressions_with_evidence_and_the_swap_turns_them(bench: Bench) -> None:
    bench.run("a", output_rows=outputs(lost=[0]))
    bench.run("b", output_rows=outputs(lost=range(1, N)))
    there, back = bench.compare(), bench.compare("b", "a")
    assert there.counts == {
        "regression": 11, "win": 1, "loss": 0, "draw": 0, "changed_case": 0, "not_applicable": 0,
    }  # fmt: skip
    assert back.counts["regression"] == 1
    hit = figures(there)["hit@5"]
    # 11 lost, 1 gained: p = 2 (1 + 12) / 2^12
    assert (hit.a, hit.b, hit.p) == (pytest.approx(11 / 12), pytest.approx(1 / 12), pytest.approx(26 / 4096))
    for name, delta in figures(there).items():
        turned = figures(back)[name]
        assert (turned.a, turned.b, turned.p_holm) == (delta.b, delta.a, delta.p_holm)
        assert turned.delta == (None if delta.delta is None else -delta.delta)
    assert query(there, "c1").lost_chunks == ("k1",)
    assert there.per_query[-1].query_id == "c0"  # what was won comes after what was lost


@pytest.mark.usefixtures("runs_without_hashes")
def test_the_order_of_cases_moves_nothing(bench: Bench) -> None:
    bench.run("a", output_rows=outputs(lost=[0, 1]))
    folder = bench.run("b", output_rows=outputs(lost=[2]))
    before = bench.compare()
    for name in ("cases.jsonl", "outputs.jsonl"):
        lines = (folder / name).read_text().splitlines(keepends=True)
        (folder / name).write_text("".join(reversed(lines)))
    scores = read_lines(folder / "scores.jsonl")
    write_lines(folder / "scores.jsonl", sorted(scores, key=lambda row: row["case_id"], reverse=True))
    after = bench.compare()
    assert (after.deltas, after.per_query) == (before.deltas, before.per_query)


@pytest.mark.usefixtures("runs_without_hashes")
def test_other_case_sets_are_compared_on_the_shared_ids(bench: Bench) -> None:
    folder = bench.run("a")
    shutil.copytree(folder, bench.results / "b")
    write_lines(bench.results / "b" / "cases.jsonl", read_lines(folder / "cases.jsonl")[4:])
    write_lines(folder / "cases.jsonl", read_lines(folder / "cases.jsonl")[:10])
    found = bench.compare()
    assert (found.only_in_a, found.only_in_b, found.n_shared) == (("c0", "c1", "c2", "c3"), ("c10", "c11"), 6)
    assert figures(found)["hit@5"].n == 6


@pytest.mark.usefixtures("runs_without_hashes")
def test_runs_without_a_shared_case_are_refused_with_examples(bench: Bench) -> None:
    folder = bench.run("a")
    shutil.copytree(folder, bench.results / "b")
    for name in ("cases", "outputs", "scores"):
        key = "id" if name == "cases" else "case_id"
        rows = [row | {key: f"x-{row[key]}"} for row in read_lines(folder / f"{name}.jsonl")]
        write_lines(bench.results / "b" / f"{name}.jsonl", rows)
    with pytest.raises(ConfigError, match=r"share no case: a has c0, c1, c2, \.\.\., b has x-c0, x-c1, x-c2"):
        bench.compare()


def test_an_edited_case_is_listed_and_left_out(bench: Bench) -> None:
    """E20: the same id with another question or label is another case."""
    bench.run("a")
    edited = cases()
    edited[2]["question"] = "Is kiln c2 hot?"
    edited[3]["expected_chunk_ids"] = ["other"]
    edited[4]["tags"] = ["new"]
    bench.run("b", case_rows=edited)
    with pytest.raises(ConfigError, match=r"data set \(\w{12}, then \w{12}\).*--allow-mismatch"):
        bench.compare()
    found = bench.compare(allows_mismatch=True)
    assert found.changed_cases == {"c2": ("question",), "c3": ("expected_chunk_ids",)}
    assert [query.query_id for query in found.per_query if query.kind == "changed_case"] == ["c2", "c3"]
    assert figures(found)["hit@5"].n == N - 2
    assert figures(found)["hit@5"].delta == 0.0
    assert figures(found)["hit@5"].mixed == ()
    kept = bench.compare(allows_mismatch=True, includes_edited=True)
    assert figures(kept)["hit@5"].n == N
    assert figures(kept)["hit@5"].mixed == ("cases were edited",)
    note = query(kept, "c3").note
    assert note is not None
    assert note.startswith("edited: expected_chunk_ids")


def test_another_judge_is_refused_and_its_figures_are_marked_where_it_is_allowed(bench: Bench) -> None:
    bench.run("a")
    bench.run("b", model={"model": "overlap-strict-2"})
    with pytest.raises(ConfigError) as raised:
        bench.compare()
    assert "judge groundedness: model (overlap-2, then overlap-strict-2)" in str(raised.value)
    config = bench.folder / "suite-b" / "config.json"
    assert f"judgekit rejudge a --model m --config {config}, then" in str(raised.value)
    found = figures(bench.compare(allows_mismatch=True))
    assert found["groundedness"].mixed
    assert found["groundedness_pass_rate"].mixed
    assert not found["hit@5"].mixed


@pytest.mark.usefixtures("runs_without_hashes")
def test_another_wording_names_the_command_that_makes_runs_comparable(bench: Bench) -> None:
    bench.run("a", judges=[{"name": "groundedness", "model": "m"}, {"name": "correctness", "model": "m"}])
    folder = bench.run("b", judges=[{"name": "groundedness", "model": "m"}, {"name": "correctness", "model": "m"}])
    metrics = read_json(folder / "metrics.json")
    metrics["judges"]["correctness"] |= {"prompt_version": "v2", "prompt_sha256": "0" * 64}
    (folder / "metrics.json").write_text(json.dumps(metrics))
    config = read_json(folder / "config.json")
    config["judges"][1]["prompt_version"] = "v2"
    (folder / "config.json").write_text(json.dumps(config))
    with pytest.raises(ConfigError, match=r"judgekit rejudge a --judge correctness --prompt-version v2, then"):
        bench.compare()


@pytest.mark.usefixtures("runs_without_hashes")
@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"parser_version": "99"}, r"parser of judge replies \(\d+, then 99\).*judgekit rejudge a, then"),
        ({"cases": {"sha256": "0" * 64, "n": N}}, "data set"),
    ],
)
def test_another_parser_or_data_set_is_refused(bench: Bench, change: dict[str, Any], message: str) -> None:
    shutil.copytree(bench.run("a"), bench.results / "b")
    path = bench.results / "b" / "config.json"
    config = read_json(path)
    config["resolved"] |= change
    path.write_text(json.dumps(config))
    with pytest.raises(ConfigError, match=message):
        bench.compare()


def test_another_chunker_is_matched_by_place_and_refused_where_asked(bench: Bench) -> None:
    spans = [
        row | {"expected_spans": {f"k{number}": [{"doc_id": "d", "start": 100 * number, "end": 100 * number + 100}]}}
        for number, row in enumerate(cases())
    ]

    def cut(version: str, shift: int) -> list[dict[str, Any]]:
        return [
            row | {
                "versions": {"chunker_version": version},
                "retrieved": [
                    {"chunk_id": f"{version}-{number}", "doc_id": "d", "text": "Kilns are hot.",
                     "source_spans": [{"start": 100 * number + shift, "end": 100 * number + shift + 100}]}
                ],
            }
            for number, row in enumerate(outputs())
        ]  # fmt: skip

    bench.run("a", case_rows=spans, output_rows=cut("one", 40))
    bench.run("b", case_rows=spans, output_rows=cut("two", 60))
    found = bench.compare()
    assert found.chunker_version_match == "fallback_doc_span"
    assert found.left_out == (
        "chunk_recall", "chunk_precision", "chunk_f1",
        *(f"{name}@{k}" for k in (1, 3, 5, 10) for name in ("hit", "precision_chunk")), "mrr_chunk",
    )  # fmt: skip
    assert found.counts["regression"] == N  # 60 of 100 characters, then 40
    assert found.per_query[0].note == "chunker differs"
    assert [cause.what for cause in found.causes] == ["chunker"]
    with pytest.raises(ConfigError, match=r"chunker_version differs \(one, then two\)"):
        bench.compare(strict_chunker_version=True)
    assert bench.compare("a", "a", strict_chunker_version=True).chunker_version_match == "exact"


def test_a_system_that_fails_is_not_better_for_it(bench: Bench) -> None:
    bench.run("a", output_rows=outputs(lost=[5, 6]))
    rows = outputs(lost=[5, 6])
    for number in (5, 6):
        rows[number] |= {"error": {"kind": "timeout"}, "answer": None}
    bench.run("b", output_rows=rows)
    hit = figures(bench.compare())["hit@5"]
    assert (hit.n, hit.n_failed_b, hit.a, hit.b, hit.delta) == (10, 2, 1.0, 1.0, 0.0)
    assert hit.is_of_other_cases  # 10/12 over the whole of a
    assert figures(bench.compare())["empty_result"].delta == pytest.approx(2 / 12)


@pytest.mark.usefixtures("runs_without_hashes")
def test_a_run_of_an_older_format_without_cases_is_compared_by_its_scores(bench: Bench) -> None:
    folder = bench.run("a")
    bench.run("b", output_rows=outputs(lost=[0]))
    (folder / "cases.jsonl").unlink()
    found = bench.compare()
    assert ("no_cases", found.notices[0][1]) in found.notices
    assert figures(found)["hit@5"].n == N
    assert found.counts["regression"] == 1  # labels are those of b, whose data set is the same
    (bench.results / "b" / "cases.jsonl").unlink()
    assert bench.compare().counts["not_applicable"] == N


@pytest.mark.usefixtures("runs_without_hashes")
def test_a_half_written_run_is_compared_as_far_as_it_goes(bench: Bench) -> None:
    bench.run("a")
    folder = bench.run("b")
    (folder / "metrics.json").unlink()
    (folder / "manifest.json").write_text(json.dumps(read_json(folder / "manifest.json") | {"status": "interrupted"}))
    lines = (folder / "scores.jsonl").read_text().splitlines(keepends=True)
    per_case = len(lines) // N
    (folder / "scores.jsonl").write_text("".join(lines[: 5 * per_case]))
    found = bench.compare()
    assert {code for code, _ in found.notices} >= {"partial_run"}
    assert figures(found)["hit@5"].n == 5
    assert found.aggregate_b["hit_at_k"]["5"] == round(5 / 12, 4)  # what was not scored is a miss
    (folder / "scores.jsonl").unlink()
    found = bench.compare()
    assert "no_scores" in {code for code, _ in found.notices}
    assert (figures(found)["hit@5"].b, figures(found)["hit@5"].delta) == (None, None)
    assert found.counts["draw"] == N


@pytest.mark.usefixtures("runs_without_hashes")
@pytest.mark.parametrize(
    ("name", "line", "message"),
    [
        ("scores.jsonl", "{]\n", r"scores\.jsonl:1: damaged line"),
        ("outputs.jsonl", '{"case_id": "c0", "retrieved": 7}\n', "damaged SystemOutput of case 'c0'"),
        ("scores.jsonl", '{"case_id": "c0", "name": "x", "value": 1}\n' * 2, "a score of case 'c0' stands there twice"),
        ("scores.jsonl", '{"case_id": "c0", "name": "x", "value": "high"}\n', "damaged record of case 'c0'"),
        ("metrics.json", "{", r"metrics\.json: damaged"),
    ],
)
def test_damage_is_named(bench: Bench, name: str, line: str, message: str) -> None:
    folder = bench.run("a")
    shutil.copytree(folder, bench.results / "b")
    old = "" if name == "metrics.json" else "".join((folder / name).read_text().splitlines(keepends=True)[1:])
    (bench.results / "b" / name).write_text(line + old)
    with pytest.raises(StorageError, match=message):
        bench.compare()


@pytest.mark.usefixtures("runs_without_hashes")
def test_scores_of_a_metric_that_is_not_installed_are_compared_by_their_values(bench: Bench) -> None:
    folder = bench.run("a", metrics=["retrieval_ids"])
    config = read_json(folder / "config.json")
    config["metrics"] = ["of_a_plug_in"]
    (folder / "config.json").write_text(json.dumps(config))
    found = bench.compare("a", "a")
    assert any(code == "unknown_scores" and "of_a_plug_in" in text for code, text in found.notices)
    assert figures(found)["hit@5"].n == N
    assert figures(found)["hit@5"].higher_is_better is None


def test_the_aggregate_is_that_of_the_results_database(bench: Bench) -> None:
    rows = outputs(lost=[0])
    rows[1] |= {"error": {"kind": "timeout"}, "answer": None}
    bench.run("a", output_rows=rows)
    found = bench.compare("a", "a").aggregate_a
    # 10 of 12 have it; the errored one is a miss here, and left out of metrics.json
    assert found["hit_at_k"] == dict.fromkeys(("1", "3", "5", "10"), 0.8333)
    assert found["mrr"] == 0.8333
    assert found["citation_coverage"] is None
    assert found["groundedness"] == 1.0
    assert found["empty_result_rate"] == round(1 / 12, 4)


def test_the_page_shows_both_answers_of_every_case_and_nothing_of_them_as_markup(bench: Bench) -> None:
    bench.run("a", output_rows=outputs(answer="<script>alert(1)</script> old"))
    bench.run("b", output_rows=outputs(lost=[0], answer="<img src=x onerror=alert(1)> new \u202e"))
    with open_runs("a", "b", Options(results_dir=bench.results)) as sides:
        page = "".join(comparison_pieces(sides, compare(sides, CompareOptions()), ["regression: <b>c0</b>"], "html"))
    unmarked = re.sub("</?(?:del|ins)>", "", page)
    assert unmarked.count("&lt;script&gt;alert(1)&lt;/script&gt; old") == N
    assert unmarked.count("&lt;img src=x onerror=alert(1)&gt; new \ufffd") == N
    assert "regression: &lt;b&gt;c0&lt;/b&gt;" in page
    assert page.count("<script>") == 1
    assert "default-src &#39;none&#39;" in page
    assert re.findall('data-case="([^"]+)"', page)[0] == "c0"  # which lost its hit


def test_a_comparison_writes_both_runs_into_the_results_database_anew(bench: Bench) -> None:
    bench.run("a")
    bench.run("b", output_rows=outputs(lost=[0, 1, 2]))
    (bench.results / "judgekit.db").unlink()
    found = bench.compare()
    with contextlib.closing(sqlite3.connect(bench.results / "judgekit.db")) as database:
        rows = dict(database.execute("SELECT run_id, aggregate_json FROM eval_runs").fetchall())
    assert {run: json.loads(text) for run, text in rows.items()} == {"a": found.aggregate_a, "b": found.aggregate_b}


def test_a_database_that_cannot_be_written_costs_no_comparison(bench: Bench) -> None:
    bench.run("a")
    with contextlib.closing(sqlite3.connect(bench.results / "judgekit.db")) as database:
        database.execute("PRAGMA user_version = 99")  # of a newer judgekit
    assert "index_not_written" in {code for code, _ in bench.compare("a", "a").notices}


def test_panels_are_compared_by_their_members_and_rules(bench: Bench) -> None:
    models = {"m": {"provider": "lexical", "model": "overlap-2"}, "n": {"provider": "lexical", "model": "overlap-2"}}
    panel = [{"name": "groundedness", "panel": {"models": ["m", "n"]}}]
    bench.run("a", models=models, judges=panel)
    strict = models | {"n": {"provider": "lexical", "model": "overlap-strict-2"}}
    bench.run("b", models=strict, judges=panel)
    bench.run("single", models=models)
    assert bench.compare("a", "a").causes == ()
    with pytest.raises(ConfigError, match=r"model \(overlap-2, overlap-2, then overlap-2, overlap-strict-2\).*panels"):
        bench.compare()
    with pytest.raises(ConfigError, match=r"judgekit rejudge a --model m, then compare"):
        bench.compare("a", "single")


def test_a_baseline_can_be_the_newest_run_with_a_tag(bench: Bench) -> None:
    bench.run("a")
    bench.run("b")
    (bench.results / "a" / "tags.json").write_text('{"tags": ["main"]}')
    assert bench.compare("latest:main", "b").run_a == "a"
