"""Citations held against a file of the ids that exist, in the run and again from its folder alone."""

import json
from pathlib import Path
from typing import Any

import pytest

import judgekit
from judgekit.core.data_files import DataFile
from judgekit.core.errors import ConfigError, StorageError
from judgekit.storage.id_lists import load_ids
from judgekit.storage.run_folder import RunFolder
from judgekit.workflows.models import Options
from judgekit.workflows.rejudge import RejudgeWanted, open_rejudge
from judgekit.workflows.rescore import rescore
from tests.builders import case, output, read_json, seal_again, write_suite

HIT = {"chunk_id": "k1", "text": "The kiln is fired at 1240 degrees."}


def coverage(folder: Path) -> tuple[float | None, int]:
    figure = read_json(folder / "metrics.json")["overall"]["citation_coverage"]
    return figure["value"], figure["n"]


def ran(folder: Path, run_id: str, **config: Any) -> Path:
    """Three answers: one cites its hit, one a chunk that was not retrieved, one a chunk that nobody knows."""
    outputs = [output(f"c{n}", retrieved=[HIT], citations=[cited]) for n, cited in enumerate(["k1", "k7", "k99"])]
    path = write_suite(folder, case_rows=[case(f"c{n}") for n in range(3)], output_rows=outputs, **config)
    judgekit.run(path, run_id=run_id)
    return folder / "results" / run_id


def test_ids_of_a_file_take_the_place_of_the_hits(tmp_path: Path) -> None:
    value, n = coverage(ran(tmp_path / "a", "hits"))
    assert n == 3
    assert value == pytest.approx(1 / 3, abs=1e-4)
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "chunks.txt").write_text("k1\nk7\nk8\nk7\n\n", encoding="utf-8")
    folder = ran(tmp_path / "b", "ids", corpus_chunk_ids="chunks.txt")
    value, n = coverage(folder)
    assert n == 3
    assert value == pytest.approx(2 / 3, abs=1e-4)
    assert (folder / "corpus_chunk_ids.jsonl").read_text(encoding="utf-8") == '"k1"\n"k7"\n"k8"\n'
    resolved = read_json(folder / "config.json")["resolved"]
    assert resolved["corpus_chunk_ids"]["n"] == 3
    assert "corpus_chunk_ids" not in resolved["metrics"]["retrieval_ids"]


def test_the_folder_alone_is_enough_to_score_and_to_judge_again(tmp_path: Path) -> None:
    tmp_path.joinpath("chunks.txt").write_text("k1\nk7\n", encoding="utf-8")
    folder = ran(tmp_path, "ids", corpus_chunk_ids="chunks.txt")
    (tmp_path / "chunks.txt").unlink()
    assert rescore(str(folder), Options())["changes"] == []
    from judgekit.engine.passes import Observer
    from judgekit.executors.event_loop import run_local
    from judgekit.workflows.run import run

    job = open_rejudge(str(folder), RejudgeWanted(), Options(run_id="again"))
    run_local(lambda: run(job, Observer()))
    assert coverage(folder.parent / "again") == coverage(folder)
    assert (folder.parent / "again" / "corpus_chunk_ids.jsonl").read_bytes() == b'"k1"\n"k7"\n'

    (folder / "corpus_chunk_ids.jsonl").write_text('"k1"\n', encoding="utf-8")
    with pytest.raises(StorageError, match=r"corpus_chunk_ids.jsonl: damaged: it has 1 lines, and the run wrote 2"):
        RunFolder.open(folder)
    (folder / "corpus_chunk_ids.jsonl").write_text('"k1"\n7\n', encoding="utf-8")
    seal_again(folder)
    with pytest.raises(StorageError, match=r"corpus_chunk_ids.jsonl:2: damaged line: expected a text"):
        rescore(str(folder), Options())


@pytest.mark.parametrize(
    ("name", "text", "fields"),
    [
        ("ids.txt", "k1\r\n 7 \n", {}),
        ("ids", "k1\n7", {}),
        ("ids.jsonl", '{"chunk_id": "k1", "doc_id": "d"}\n{"chunk_id": 7}\n', {}),
        ("ids.csv", "doc;nr\nx;k1\ny;7\n", {"chunk_id": "nr"}),
        ("ids.json", json.dumps([{"meta": {"key": "k1"}}, {"meta": {"key": 7}}]), {"chunk_id": "meta.key"}),
        ("ids.tsv", "id\ttext\nk1\ta\n7\tb\n", {}),
    ],
)
def test_ids_are_read_from_lines_and_tables(tmp_path: Path, name: str, text: str, fields: dict[str, str]) -> None:
    (tmp_path / name).write_bytes(text.encode())
    assert load_ids(DataFile(path=name, fields=fields), tmp_path / name) == {"k1", "7"}


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("gone.txt", None, "gone.txt: no such file"),
        ("empty.txt", "\n \n", "empty.txt: holds no ids"),
        ("ids.csv", "name,text\na,b\n", 'ids.csv:2: no id among name, text; say which it is: "fields"'),
        ("ids.jsonl", '{"id": "a"}\n{"id": null}\n', "ids.jsonl:2: has no 'id'"),
        ("bad.jsonl", '{"id": "a"}\n{"id": ["b"]}\n', "bad.jsonl:2: an id is text or a whole number, found a list"),
        ("ids.parquet", "x", "'format'"),
    ],
)
def test_what_is_no_file_of_ids_is_one_line_before_any_call(
    tmp_path: Path, name: str, text: str | None, message: str
) -> None:
    if text is not None:
        (tmp_path / name).write_text(text, encoding="utf-8")
    entry: Any = {"path": name, "format": "parquet"} if name.endswith(".parquet") else name
    config = write_suite(tmp_path, corpus_chunk_ids=entry)
    with pytest.raises(ConfigError) as caught:
        judgekit.run(config)
    assert message.replace("'format'", '"format"') in str(caught.value)
    assert "\n" not in str(caught.value)


def test_ids_given_twice_are_refused(tmp_path: Path) -> None:
    (tmp_path / "ids.txt").write_text("k1\n", encoding="utf-8")
    metrics = [{"name": "retrieval_ids", "args": {"corpus_chunk_ids": ["k1"]}}]
    config = write_suite(tmp_path, corpus_chunk_ids="ids.txt", metrics=metrics)
    with pytest.raises(ConfigError, match="corpus_chunk_ids is given here and at the top of the config; keep one"):
        judgekit.run(config)
