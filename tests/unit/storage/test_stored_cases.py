"""Cases of a stored run put together from its files, whatever order those are in."""

import json
import sqlite3
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from judgekit.core.errors import ConfigError, StorageError
from judgekit.core.scores import Estimate
from judgekit.storage.record_index import RecordIndex
from judgekit.storage.run_folder import RunFolder
from judgekit.storage.run_list import list_runs
from judgekit.storage.run_records import read_summary
from judgekit.storage.stored_cases import StoredCases
from judgekit.storage.table_files import write_parquet
from tests.run_folders import answer_of, score_of, write_run


def lines(path: Path, *records: object) -> Path:
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return path


def test_files_in_different_orders_are_joined_by_case(tmp_path: Path) -> None:
    # The builder writes judgments from the last case to the first.
    with StoredCases(RunFolder.open(write_run(tmp_path / "run", 60))) as cases:
        records = list(cases)
    assert [record.case_id for record in records] == [f"c{number:05}" for number in range(60)]
    for number, record in enumerate(records):
        assert record.case is not None
        if number % 50 == 49:
            assert record.failures == ("system: timeout",)
            continue
        assert record.output is not None
        assert record.output.answer == answer_of(number)
        primary = next(item for item in record.judgments if item.role == "primary")
        assert primary.verdict is not None
        assert primary.verdict.score == record.scores["groundedness"][0] == score_of(number)
        assert record.inputs["groundedness"].variables["answer"] == answer_of(number)
        assert [item.role for item in record.judgments] == ["primary", "spot_check"][: 2 if number < 10 else 1]


def test_a_run_of_before_cases_and_prompts_were_kept_gives_what_there_is(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "run", 3)
    for name in ("cases.jsonl", "prompts.json", "config.json", "scores.jsonl", "judge_inputs.jsonl"):
        (folder / name).unlink()
    with StoredCases(RunFolder.open(folder)) as cases:
        records = list(cases)
        assert (cases.score_names(), cases.judged()) == (["groundedness"], {})
    assert [(record.case, record.scores["groundedness"][0]) for record in records] == [
        (None, 0.0),
        (None, 1.0),
        (None, 2.0),
    ]


def test_some_of_the_cases_are_read_in_the_order_of_the_run(tmp_path: Path) -> None:
    with StoredCases(RunFolder.open(write_run(tmp_path / "run", 8))) as cases:
        ids = [record.case_id for record in cases]
        assert [record.case_id for record in cases.records({ids[5], ids[2]})] == [ids[2], ids[5]]
        assert cases.n_cases == 8


def test_the_last_verdict_counts_and_never_a_failure_after_it(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "run", 1)
    [line] = [json.loads(line) for line in (folder / "judgments.jsonl").read_text().splitlines()][:1]
    failed = {**line, "verdict": None, "failure": {"kind": "timeout", "message": "slow"}}
    better = {**line, "verdict": {"score": 4}}
    lines(folder / "judgments.jsonl", failed, line, better, failed)
    with StoredCases(RunFolder.open(folder)) as cases:
        [record] = cases
        assert cases.judged() == {"groundedness": (1, 1)}
    [judgment] = record.judgments
    assert judgment.verdict is not None
    assert judgment.verdict.score == 4


def test_an_index_knows_neighbours_as_one_place_and_drops_a_torn_line(tmp_path: Path) -> None:
    path = lines(tmp_path / "x.jsonl", *({"case_id": name, "name": "mrr"} for name in ("a", "a", "b", "a")))
    with path.open("a") as stream:
        stream.write('{"case_id": "z"')
    with RecordIndex(path) as index:
        assert list(index.ids()) == ["a", "b"]
        assert [json.loads(line)["case_id"] for line in index.lines("a")] == ["a", "a", "a"]
        assert (index.lines("nobody"), list(index.names)) == ([], ["mrr"])
    with RecordIndex(tmp_path / "missing.jsonl") as index:
        assert list(index.ids()) == []


def test_scores_of_a_case_are_one_place_whatever_they_are_called(tmp_path: Path) -> None:
    cases = ['a"name":', "a", "ab"]
    scores = [{"case_id": case_id, "name": name, "value": 1.0} for case_id in cases for name in ("mrr", "hit@1")]
    patterns = [{"case_id": None, "name": None, "pattern": 1}, {"case_id": "ab", "name": None, "pattern": 1}]
    path = lines(tmp_path / "x.jsonl", {"case_id": None, "name": None, "names": ["mrr", "hit@1"]}, *scores, *patterns)
    with RecordIndex(path) as index:
        assert list(index.ids()) == cases
        found = [[json.loads(line) for line in some] for some in index.of_cases([*cases, ""])]
    assert found == [scores[:2], scores[2:4], [*scores[4:], patterns[1]], [found[3][0], patterns[0]]]


def test_figures_read_back_as_figures_and_unknown_keys_are_left_out(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "run", 4)
    data = json.loads((folder / "metrics.json").read_text())
    data["of_a_newer_version"] = 1
    data["overall"]["groundedness"]["n_clusters"] = 2
    (folder / "metrics.json").write_text(json.dumps(data))
    summary = read_summary(RunFolder.open(folder))
    assert summary is not None
    figure = summary.overall["groundedness"]
    assert isinstance(figure, Estimate)
    assert figure.n == 4
    assert summary.overall["groundedness.distribution"] == {"0": 1, "1": 1, "2": 1, "3": 1, "4": 0, "5": 0}
    assert isinstance(summary.operational["error_rate"], Estimate)


@pytest.mark.parametrize("text", ["{}", "[]", '{"overall": 3}', "{"])
def test_damaged_figures_are_named(tmp_path: Path, text: str) -> None:
    folder = write_run(tmp_path / "run", 2)
    (folder / "metrics.json").write_text(text)
    with pytest.raises(StorageError, match=r"metrics\.json: damaged"):
        read_summary(RunFolder.open(folder))


def test_runs_are_listed_with_the_damaged_ones(tmp_path: Path) -> None:
    write_run(tmp_path / "good", 4)
    write_run(tmp_path / "killed", 4, n_judged=1, status="running")
    (write_run(tmp_path / "broken", 2) / "metrics.json").write_text("{")
    (tmp_path / ".cache").mkdir()
    (tmp_path / "no-run").mkdir()
    found = {entry.run_id: entry for entry in list_runs(tmp_path)}
    assert {name: entry.status for name, entry in found.items()} == {
        "good": "complete",
        "killed": "running",
        "broken": "damaged",
    }
    assert found["good"].judges["groundedness"].n == 4
    assert found["good"].is_unstable
    assert list_runs(tmp_path / "missing") == []


def test_a_table_is_written_as_parquet_with_numbers_and_empty_cells(tmp_path: Path) -> None:
    rows: list[list[str | float | None]] = [["a", 1.0], ["b\ud83d", None], [None, -0.5]] * 400
    write_parquet(tmp_path / "t.parquet", {"text": str, "mrr": float}, rows)
    table = pq.read_table(tmp_path / "t.parquet")
    assert table.num_rows == 1200
    assert str(table.schema.field("mrr").type) == "double"
    assert table.to_pylist()[:3] == [
        {"text": "a", "mrr": 1.0},
        {"text": "b\ufffd", "mrr": None},
        {"text": None, "mrr": -0.5},
    ]


def test_without_pyarrow_the_package_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "pyarrow", None)
    with pytest.raises(ConfigError, match="pip install pyarrow"):
        write_parquet(tmp_path / "t.parquet", {"text": str}, [])
    assert list(tmp_path.iterdir()) == []


def test_an_index_that_cannot_be_written_is_named_and_leaves_nothing_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(schema: str) -> None:
        raise sqlite3.OperationalError("database or disk is full")

    monkeypatch.setattr("judgekit.storage.record_index.scratch_database", full)
    path = lines(tmp_path / "x.jsonl", {"case_id": "a"})
    with pytest.raises(
        StorageError, match=r"temporary index of .*x\.jsonl cannot be written: database or disk is full"
    ):
        RecordIndex(path)
