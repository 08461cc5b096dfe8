"""Judgments of a run as Parquet."""

import json
from pathlib import Path

import pytest

from judgekit.workflows.report import write_report
from tests.builders import read_lines
from tests.run_folders import write_run


def test_judgments_as_parquet_are_those_of_the_run(tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet", reason="pyarrow is an extra")
    folder = write_run(tmp_path / "r", 4, status="running")
    first = read_lines(folder / "judgments.jsonl")[0]
    failed = {**first, "case_id": "of no verdict", "failure": {"kind": "timeout", "message": "none in 30 s"}}
    with (folder / "judgments.jsonl").open("a") as stream:
        stream.write(json.dumps({**failed, "verdict": None}) + "\n")
    rows = parquet.read_table(write_report(folder, "judgments")).to_pylist()
    lines = read_lines(folder / "judgments.jsonl")
    assert len(rows) == len(lines) > 0
    for row, line in zip(rows, lines, strict=True):
        verdict, failure = line.get("verdict") or {}, line.get("failure") or {}
        assert (row["case_id"], row["judge"], row["role"]) == (
            line["case_id"],
            line["judge"],
            line.get("role", "primary"),
        )
        assert row["rating"] == verdict.get("score")
        assert row["reasoning"] == verdict.get("reasoning")
        assert (row["failure"], row["failure_message"]) == (failure.get("kind"), failure.get("message"))
        assert row["raw_reply"] == line.get("raw_reply")
    assert {row["failure"] is None for row in rows} == {True, False}
