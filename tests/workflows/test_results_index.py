"""Runs and the results database beside them: at the end of a run, by reindex, and whatever goes wrong with it."""

import json
import os
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

import judgekit
from judgekit.core.errors import Interrupted, StorageError
from judgekit.core.history_points import HistoryPoint
from judgekit.core.runs import RunSummary
from judgekit.storage.database import DATABASE, Database, RunRecord
from judgekit.storage.run_folder import RunFolder
from judgekit.storage.run_index import add_point, index_run, reindex
from judgekit.storage.run_records import case_results, run_record, write_tags
from judgekit.storage.stored_history import read_points
from judgekit.testing import FaultServer
from tests.builders import REPOSITORY, case, output, read_json, read_lines, write_suite
from tests.workflows.engine import again, good, resumed

SCRIPTS = Path(__file__).parents[2]


def ran(folder: Path, run_id: str = "r", **suite: Any) -> RunSummary:
    summary: RunSummary = judgekit.run(write_suite(folder, **suite), run_id=run_id).summary
    return summary


def rows(folder: Path, statement: str) -> list[Any]:
    with closing(sqlite3.connect(folder / "results" / DATABASE)) as connection:
        return connection.execute(statement).fetchall()


def dump(folder: Path) -> dict[str, list[Any]]:
    """All that the database holds, in order."""
    tables = ("eval_runs", "eval_query_results", "run_facts", "run_tags", "aggregate_history", "drift_checks")
    return {table: sorted(rows(folder, f"SELECT * FROM {table}")) for table in tables}


@contextmanager
def held(path: Path) -> Iterator[None]:
    """The database, locked for writing by somebody else."""
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        yield


def spot_suite(folder: Path, **fields: Any) -> Path:
    """A suite whose judge is checked by the strict baseline."""
    config = write_suite(folder, spot_check={"n": 3, "model": "second"}, **fields)
    document = read_json(config)
    document["models"]["second"] = {"provider": "lexical", "model": "overlap-strict-2"}
    config.write_text(json.dumps(document))
    return config


def test_a_finished_run_is_indexed_with_its_cases(tmp_path: Path) -> None:
    cases = [case("c0", expected_chunk_ids=["k1"]), case("c1", expected_chunk_ids=["k1"])]
    outputs = [output("c0"), {"case_id": "c1", "error": {"kind": "timeout"}}]
    summary = ran(tmp_path, case_rows=cases, output_rows=outputs)
    assert "index_not_written" not in {notice.code for notice in summary.warnings}
    [(suite, config, aggregate, commit, created_at)] = rows(
        tmp_path, "SELECT suite, config_snapshot_json, aggregate_json, commit_hash, created_at FROM eval_runs"
    )
    assert (suite, commit, created_at) == ("suite", None, summary.created_at)
    assert json.loads(config) == read_json(tmp_path / "results" / "r" / "config.json")
    # c0 is a hit; c1 failed and counts as a miss in this store, though not in metrics.json.
    assert json.loads(aggregate)["hit_at_k"]["5"] == 0.5
    assert read_json(tmp_path / "results" / "r" / "metrics.json")["overall"]["hit@5"]["value"] == 1.0
    results = {
        query: json.loads(text)
        for query, text in rows(tmp_path, "SELECT query_id, result_json FROM eval_query_results")
    }
    assert results["c0"]["scores"]["hit@5"] == 1.0
    assert "hit@5" in results["c1"]["failed"]["timeout"]
    assert {name for names in results["c0"]["not_applicable"].values() for name in names} >= {"span_recall"}


def test_the_commit_of_the_checkout_that_the_config_stands_in_is_kept(tmp_path: Path) -> None:
    config = write_suite(tmp_path / "repo" / "evals")
    git = ["git", "-C", str(tmp_path / "repo"), "-c", "user.name=n", "-c", "user.email=e@example.org"]
    for command in (["init", "-q"], ["add", "."], ["commit", "-q", "-m", "x"]):
        subprocess.run([*git, *command], check=True)
    head = subprocess.run([*git, "rev-parse", "HEAD"], check=True, capture_output=True, text=True).stdout.strip()
    judgekit.run(config, run_id="r")
    assert rows(tmp_path / "repo" / "evals", "SELECT commit_hash FROM eval_runs") == [(head,)]
    # It is that of the run, also when the database is built again after another commit.
    subprocess.run([*git, "commit", "-q", "--allow-empty", "-m", "y"], check=True)
    results = tmp_path / "repo" / "evals" / "results"
    reindex(results, Database(results))
    assert rows(tmp_path / "repo" / "evals", "SELECT commit_hash FROM eval_runs") == [(head,)]


def test_without_git_there_is_no_commit_and_no_word(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    ran(tmp_path)
    assert rows(tmp_path, "SELECT commit_hash FROM eval_runs") == [(None,)]


def test_a_spot_check_becomes_a_point_of_the_history(tmp_path: Path) -> None:
    judgekit.run(spot_suite(tmp_path), run_id="r")
    [point] = Database(tmp_path / "results").points()
    assert (point.judge, point.kind, point.comparator) == ("groundedness", "spot_check", "overlap-strict-2 with v1")
    assert (point.n_asked, point.n_pairs + point.n_failed) == (3, 3)
    assert point.dataset_sha256 == read_json(tmp_path / "results" / "r" / "config.json")["resolved"]["cases"]["sha256"]
    assert (point.n_scores, point.score_mean) == (6, 5.0)


def test_the_same_answers_have_the_same_hash_and_others_another_one(tmp_path: Path) -> None:
    config = spot_suite(tmp_path)
    judgekit.run(config, run_id="a")
    judgekit.run(config, run_id="b")
    spot_suite(tmp_path, output_rows=[output(f"c{n}", answer="Kilns are hot.") for n in range(6)])
    judgekit.run(config, run_id="c")
    hashes = {point.run_id: point.answers_sha256 for point in Database(tmp_path / "results").points()}
    assert hashes["a"] == hashes["b"] != hashes["c"]


def test_reindex_builds_the_same_database_from_the_folders(tmp_path: Path) -> None:
    config = spot_suite(tmp_path)
    for run_id in ("a", "b"):
        judgekit.run(config, run_id=run_id)
    results = tmp_path / "results"
    write_tags(RunFolder(results / "a"), ["baseline"])
    index_run(results / "a")
    later = Database(results).points()[0].model_copy(update={"kind": "rejudge", "created_at": "2099"})
    assert add_point(results / later.run_id, later) == []
    before = dump(tmp_path)
    assert len(before["drift_checks"]) == 3
    (results / DATABASE).unlink()
    assert reindex(results, Database(results)).n_indexed == 2
    assert dump(tmp_path) == before
    # Again over what is there: the same once more.
    assert reindex(results, Database(results)).n_dropped == 0
    assert dump(tmp_path) == before


def test_damaged_and_half_written_folders_are_named_and_skipped(tmp_path: Path) -> None:
    ran(tmp_path, "whole")
    results = tmp_path / "results"
    for name in ("no-manifest", "torn", "newer", "no-config", "renamed", "bad-scores", "bad-tags"):
        (results / name).mkdir()
    manifest = read_json(results / "whole" / "manifest.json")
    config = (results / "whole" / "config.json").read_text()
    (results / "torn" / "manifest.json").write_text('{"run_id": "to')
    (results / "newer" / "manifest.json").write_text(json.dumps({**manifest, "format_version": 99}))
    (results / "no-config" / "manifest.json").write_text(json.dumps({**manifest, "run_id": "no-config"}))
    (results / "renamed" / "manifest.json").write_text(json.dumps(manifest))
    (results / "renamed" / "config.json").write_text(config)
    for name, file, text in (("bad-scores", "scores.jsonl", "{\n"), ("bad-tags", "tags.json", '{"tags": 3}')):
        (results / name / "manifest.json").write_text(json.dumps({**manifest, "run_id": name}))
        (results / name / "config.json").write_text(config)
        (results / name / file).write_text(text)
    (results / "a-file").write_text("")
    done = reindex(results, Database(results))
    assert done.n_indexed == 1
    found = {line.split(":")[0].removeprefix(f"{results}/").split("/")[0]: line for line in done.skipped}
    assert sorted(found) == ["bad-scores", "bad-tags", "newer", "no-config", "no-manifest", "renamed", "torn"]
    assert "newer judgekit" in found["newer"]
    assert "damaged" in found["torn"]
    assert Database(results).run_ids() == {"whole"}


@pytest.mark.usefixtures("runs_without_hashes")
@pytest.mark.parametrize(
    ("figures", "why"),
    [
        ({"overall": []}, "'list' object is not a mapping"),
        ({"operational": 7}, "'int' object is not a mapping"),
        ({"cases": []}, "'list' object has no attribute 'get'"),
        ({"judges": {}}, "KeyError('groundedness')"),
        ({"judges": 7}, "TypeError"),
    ],
)
def test_odd_figures_are_told_of_the_file_that_holds_them_and_cost_no_other_run(
    tmp_path: Path, figures: dict[str, Any], why: str
) -> None:
    config = spot_suite(tmp_path)
    for run_id in ("odd", "whole"):
        judgekit.run(config, run_id=run_id)
    path = tmp_path / "results" / "odd" / "metrics.json"
    path.write_text(json.dumps({**read_json(path), **figures}))
    [line] = reindex(tmp_path / "results", Database(tmp_path / "results")).skipped
    assert line.startswith(f"{path}: damaged: ")
    assert why in line
    assert Database(tmp_path / "results").run_ids() == {"whole"}


def test_a_run_without_figures_yet_is_indexed_with_what_it_has(tmp_path: Path) -> None:
    ran(tmp_path)
    folder = tmp_path / "results" / "r"
    manifest = read_json(folder / "manifest.json")
    (folder / "manifest.json").write_text(json.dumps({**manifest, "status": "running"}))
    for name in ("metrics.json", "scores.jsonl", "summary.md"):
        (folder / name).unlink()
    reindex(tmp_path / "results", Database(tmp_path / "results"))
    [run] = Database(tmp_path / "results").runs()
    assert (run.status, run.n_cases, run.figures, run.aggregate["mrr"]) == ("running", 6, {}, None)


@pytest.mark.usefixtures("runs_without_hashes")
def test_a_run_of_an_older_format_is_read(tmp_path: Path) -> None:
    judgekit.run(spot_suite(tmp_path), run_id="r")
    folder = tmp_path / "results" / "r"
    before = dump(tmp_path)
    for name in ("cases.jsonl", "prompts.json"):
        (folder / name).unlink()
    for name, keys in (("manifest.json", ("commit_hash",)), ("metrics.json", ("metrics_version", "scored_by"))):
        document = read_json(folder / name)
        (folder / name).write_text(json.dumps({key: value for key, value in document.items() if key not in keys}))
    assert reindex(tmp_path / "results", Database(tmp_path / "results")).skipped == []
    assert dump(tmp_path) == before


@pytest.mark.usefixtures("runs_without_hashes")
def test_a_torn_last_score_is_damage_since_scores_are_written_as_a_whole(tmp_path: Path) -> None:
    ran(tmp_path)
    path = tmp_path / "results" / "r" / "scores.jsonl"
    path.write_bytes(path.read_bytes()[:-20])
    done = reindex(tmp_path / "results", Database(tmp_path / "results"))
    assert done.n_indexed == 0
    [why] = done.skipped
    assert why.startswith(f"{path}: damaged: the file ends in the middle of a line; make it again: judgekit rescore ")


def test_a_point_is_written_to_the_folder_beside_the_runs_own_and_once_only(tmp_path: Path) -> None:
    judgekit.run(spot_suite(tmp_path), run_id="r")
    folder = RunFolder(tmp_path / "results" / "r")
    [own] = read_points(folder)
    new = own.model_copy(update={"kind": "rejudge", "comparator": "m with v1", "created_at": "2099"})
    for _ in range(2):
        assert add_point(folder.path, new) == []
    assert read_points(folder) == [own, new]
    assert [HistoryPoint(**line) for line in read_lines(folder.path / "drift_checks.jsonl")] == [new]
    assert sorted(point.kind for point in Database(tmp_path / "results").points()) == ["rejudge", "spot_check"]


def test_spot_checks_that_a_run_lists_are_read_from_their_judgments(tmp_path: Path) -> None:
    judgekit.run(spot_suite(tmp_path), run_id="r")
    folder = RunFolder(tmp_path / "results" / "r")
    [own] = read_points(folder)
    lines = read_lines(folder.path / "judgments.jsonl")
    primary = [line for line in lines if line["role"] == "primary"]
    asked = [line["case_id"] for line in lines if line["role"] == "spot_check"]

    def again(check: str, created_at: str, scores: list[int | None]) -> list[dict[str, Any]]:
        """The judge asked again about as many cases; None: no verdict."""
        return [
            {
                **line,
                "role": "spot_check",
                "check": check,
                "created_at": created_at,
                "served_model": "moved",
                "verdict": None if score is None else {**line["verdict"], "score": score},
            }
            for line, score in zip(primary, scores, strict=False)
        ]

    lines += again("1", "2000-01-01T00:00:00+00:00", [5, 5, 5])
    # A second opinion on another run's verdict, which counts in the history of that run.
    lines += [{**line, "copied_from": "parent"} for line in again("4", "2099-01-01T00:00:00+00:00", [0, 0])]
    # All stored verdicts are 5: 4 is near and passes, 3 is two points off, and one call failed.
    lines += again("2", "2099-01-01T00:00:00+00:00", [4, 3, None, 0])
    (folder.path / "judgments.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    [listed] = read_json(folder.path / "checks.json")["checks"]
    against = {**listed, "model": "overlap-2", "complete": True}
    ids = [line["case_id"] for line in primary]
    records = [
        {**against, "check": "run", "kind": "model", "model": "overlap-strict-2", "case_ids": asked},
        {**against, "check": "1", "kind": "repeat", "case_ids": ids[:3]},
        {**against, "check": "2", "kind": "repeat", "case_ids": ids[:4]},
        {**against, "check": "3", "kind": "repeat", "case_ids": ids, "complete": False},
        {**against, "check": "4", "kind": "repeat", "case_ids": ids[:2]},
    ]
    (folder.path / "checks.json").write_text(json.dumps({"checks": records}))

    found = {(point.kind, point.comparator): point for point in read_points(folder)}
    assert set(found) == {
        ("spot_check", "overlap-strict-2 with v1"),
        ("noise_floor", "overlap-2 with v1"),
        ("rejudge", "overlap-2 with v1"),
    }
    same = found["spot_check", "overlap-strict-2 with v1"].model_copy(update={"created_at": own.created_at})
    assert same == own
    later = found["rejudge", "overlap-2 with v1"]
    assert (later.n_asked, later.n_pairs, later.n_disagree, later.n_failed) == (4, 3, 2, 1)
    # Shifts -1, -2, -5.
    assert later.shift_mean == pytest.approx(-8 / 3)
    assert later.served_models == ("moved", "overlap-2")


def test_an_interrupted_run_is_indexed_as_such_and_as_complete_once_it_is_resumed(tmp_path: Path) -> None:
    with FaultServer(good()) as server:
        config = write_suite(tmp_path, server.base_url, n_cases=3, budget={"max_calls": 2})
        stopped = again(config, server)
        assert isinstance(stopped.error, Interrupted)
        assert rows(tmp_path, "SELECT status FROM run_facts") == [("interrupted",)]
        config.write_text(json.dumps({**read_json(config), "budget": {}}))
        assert resumed(stopped).error is None
    assert rows(tmp_path, "SELECT status FROM run_facts") == [("complete",)]


# Failure cases of kind D that concern the database, by id.


def locked(folder: Path) -> Any:
    Database(folder / "results").make_ready()
    return held(folder / "results" / DATABASE)


@contextmanager
def damaged(folder: Path) -> Iterator[None]:
    # d09: the first 100 bytes are right, the rest are zeros.
    Database(folder / "results").make_ready()
    path = folder / "results" / DATABASE
    path.write_bytes(path.read_bytes()[:100] + bytes(8000))
    yield


@contextmanager
def newer(folder: Path) -> Iterator[None]:
    with closing(sqlite3.connect(folder / "results" / DATABASE)) as connection:
        connection.execute("PRAGMA user_version = 99")
    yield


@contextmanager
def a_folder_in_its_place(folder: Path) -> Iterator[None]:
    (folder / "results" / DATABASE).mkdir()
    yield


@contextmanager
def no_space(folder: Path) -> Iterator[None]:
    # d11: a disk that is full for the database only; SQLite calls it `database or disk is full`.
    Database(folder / "results").make_ready()
    with closing(sqlite3.connect(folder / "results" / DATABASE)) as connection:
        connection.execute(
            "CREATE TRIGGER full BEFORE INSERT ON eval_runs BEGIN SELECT RAISE(ABORT, 'disk is full'); END"
        )
    yield


@pytest.mark.parametrize(
    ("fault", "code", "message"),
    [
        pytest.param(locked, "index_not_written", "database is locked", id="d07-locked-by-another-process"),
        pytest.param(damaged, "index_damaged", "is set aside as", id="d09-malformed"),
        pytest.param(newer, "index_not_written", "written by a newer judgekit", id="d21-of-a-newer-version"),
        pytest.param(a_folder_in_its_place, "index_damaged", "set aside", id="not-a-file"),
        pytest.param(no_space, "index_not_written", "disk is full", id="d11-disk-full"),
    ],
)
def test_a_database_that_cannot_be_written_never_costs_a_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fault: Any, code: str, message: str
) -> None:
    monkeypatch.setattr("judgekit.workflows.closing.INDEX_SECONDS", 0.05)
    (tmp_path / "results").mkdir()
    with fault(tmp_path):
        summary = ran(tmp_path)
    assert summary.status == "complete"
    metrics = read_json(tmp_path / "results" / "r" / "metrics.json")
    [notice] = [item for item in metrics["warnings"] if item["code"].startswith("index_")]
    assert notice["code"] == code
    assert message in notice["message"]
    assert "judgekit runs reindex" in notice["message"]
    assert code in (tmp_path / "results" / "r" / "summary.md").read_text()
    assert read_json(tmp_path / "results" / "r" / "manifest.json")["status"] == "complete"
    assert metrics["overall"]["groundedness"]["n"] == 6


def test_d09_a_database_that_was_set_aside_is_filled_again_by_reindex(tmp_path: Path) -> None:
    for run_id in ("a", "b"):
        ran(tmp_path, run_id)
    with damaged(tmp_path):
        ran(tmp_path, "c")
    assert Database(tmp_path / "results").run_ids() == {"c"}
    assert len(list((tmp_path / "results").glob(f"{DATABASE}.corrupt-*"))) == 1
    assert reindex(tmp_path / "results", Database(tmp_path / "results")).n_indexed == 3
    assert Database(tmp_path / "results").run_ids() == {"a", "b", "c"}


def test_d10_a_pickle_in_place_of_a_value_is_text_like_any_other(tmp_path: Path) -> None:
    ran(tmp_path)
    with closing(sqlite3.connect(tmp_path / "results" / DATABASE)) as connection, connection:
        connection.execute("UPDATE run_facts SET figures_json = ?", (b"\x80\x04cos\nsystem\n(S'touch owned'\ntR.",))
    with pytest.raises(StorageError, match="damaged entry"):
        Database(tmp_path / "results").runs()
    assert not Path("owned").exists()


def test_a_run_that_was_deleted_meanwhile_costs_a_warning_at_most(tmp_path: Path) -> None:
    notices = index_run(tmp_path / "gone")
    assert [code for code, _ in notices] == ["index_not_written"]
    ran(tmp_path)
    folder = tmp_path / "results" / "r"
    folder.rename(tmp_path / "elsewhere")
    assert reindex(tmp_path / "results", Database(tmp_path / "results")).n_dropped == 1


WRITER = """
import sys
from dataclasses import replace
from pathlib import Path
from judgekit.storage.database import Database
from judgekit.storage.run_folder import RunFolder
from judgekit.storage.run_records import case_results, run_record

folder, name, n_runs, n_cases = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
record, [(_, text), *_] = run_record(RunFolder(folder)), list(case_results(RunFolder(folder)))
print("ready", flush=True)
sys.stdin.readline()
for number in range(n_runs):
    results = ((f"q{case}", text) for case in range(n_cases))
    Database(folder.parent).put_run(replace(record, run_id=f"{name}-{number}"), results)
    print(number, flush=True)
"""


def writer(folder: Path, name: str, n_runs: int, n_cases: int) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", WRITER, str(folder), name, str(n_runs), str(n_cases)]
    environment = {**os.environ, "PYTHONPATH": str(SCRIPTS)}
    pipe = subprocess.PIPE
    process = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, text=True, env=environment)
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n", process.communicate()[1]
    return process


@pytest.mark.slow
@pytest.mark.usefixtures("ends_processes")
def test_d07_processes_that_write_at_once_all_complete_and_lose_nothing(tmp_path: Path) -> None:
    ran(tmp_path)
    (tmp_path / "results" / DATABASE).unlink()  # so that they also meet in making it
    writers = [writer(tmp_path / "results" / "r", name, 10, 200) for name in "abcd"]
    for process in writers:
        assert process.stdin is not None
        process.stdin.write("\n")
        process.stdin.flush()
    ends = [process.communicate(timeout=60) for process in writers]
    assert [process.returncode for process in writers] == [0] * 4, ends
    found = dict(rows(tmp_path, "SELECT run_id, COUNT(*) FROM eval_query_results GROUP BY run_id"))
    assert found == {f"{name}-{number}": 200 for name in "abcd" for number in range(10)}
    assert rows(tmp_path, "PRAGMA integrity_check") == [("ok",)]


@pytest.mark.parametrize("milliseconds", [1, 10, 40, 90])
@pytest.mark.usefixtures("ends_processes")
def test_a_kill_in_the_middle_of_writing_leaves_a_database_of_whole_runs(tmp_path: Path, milliseconds: int) -> None:
    ran(tmp_path)
    process = writer(tmp_path / "results" / "r", "k", 1000, 3000)
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write("\n")
    process.stdin.flush()
    process.stdout.readline()  # at least one is in
    time.sleep(milliseconds / 1000)
    os.kill(process.pid, signal.SIGKILL)
    process.communicate()
    counts = dict(rows(tmp_path, "SELECT run_id, COUNT(*) FROM eval_query_results GROUP BY run_id"))
    assert counts.pop("r") == 6
    assert len(counts) >= 1
    assert set(counts.values()) == {3000}
    assert rows(tmp_path, "PRAGMA integrity_check") == [("ok",)]
    # And the next writer goes on.
    Database(tmp_path / "results", busy_seconds=1.0).put_run(run_record(RunFolder(tmp_path / "results" / "r")), [])


def test_a_point_that_is_added_while_its_run_is_indexed_again_is_not_lost(tmp_path: Path) -> None:
    """The folder is read before the point is added, and written to the database after that."""
    judgekit.run(spot_suite(tmp_path), run_id="r")
    folder = RunFolder(tmp_path / "results" / "r")
    [own] = read_points(folder)
    new = own.model_copy(update={"kind": "rejudge", "created_at": "2099"})
    adding = threading.Thread(target=add_point, args=(folder.path, new))

    def read() -> RunRecord:
        found = run_record(folder)
        adding.start()
        while new not in read_points(folder):
            time.sleep(0.01)
        return found

    Database(folder.path.parent).put_run(read, case_results(folder))
    adding.join()
    assert Database(folder.path.parent).points() == [own, new]


def test_the_example_of_the_documents_has_these_figures(tmp_path: Path) -> None:
    case_rows = [case(name, expected_chunk_ids=["k1"], must_contain=["1240 degrees"]) for name in ("c1", "c2", "c3")]
    hits = [{"chunk_id": "k9", "text": "Kiln c2 is hot."}, {"chunk_id": "k1", "text": "Kiln c2 is hot."}]
    answers = [
        output("c1", citations=["k1"]),
        output("c2", answer="Kiln c2 is hot.", retrieved=hits, citations=["k404"]),
        {"case_id": "c3", "error": {"kind": "timeout"}},
    ]
    judgekit.run(write_suite(tmp_path, case_rows=case_rows, output_rows=answers), run_id="r")
    [(text,)] = rows(tmp_path, "SELECT aggregate_json FROM eval_runs")
    aggregate, overall = json.loads(text), read_json(tmp_path / "results" / "r" / "metrics.json")["overall"]
    shown = (REPOSITORY / "docs" / "results.md").read_text(encoding="utf-8")
    for key, name, here, there in (
        ('hit_at_k["1"]', "hit@1", 0.3333, 0.5),
        ("mrr", "mrr_chunk", 0.5, 0.75),
        ("citation_coverage", "citation_coverage", 0.5, 0.5),
        ("groundedness", "keyword_groundedness", 0.5, 0.5),
        ("empty_result_rate", "empty_result", 0.3333, 0.3333),
    ):
        found = aggregate["hit_at_k"]["1"] if "[" in key else aggregate[key]
        assert (found, overall[name]["value"]) == (here, there)
        row = [line for line in shown.splitlines() if f"| `{key}` |" in line and f"| `{name}`" in line][-1]
        assert str(here) in row.split("|")[3]
        assert str(there) in row.split("|")[5]
    assert (overall["hit@1"]["n"], overall["hit@1"]["n_error"], overall["hit@1"]["worst"]) == (2, 1, 0.3333)
    assert overall["groundedness"]["value"] == 4.0
