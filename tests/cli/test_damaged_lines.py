"""A damaged line of a run folder: the command that the message names is the one that mends it."""

import json
import shlex
from pathlib import Path
from typing import Any

import pytest

from tests.builders import read_json, write_suite
from tests.cli.fork_server import judgekit, one_error_line

pytestmark = pytest.mark.slow

LINE = 2
"""Index of the line that is damaged."""


def lines(path: Path) -> list[bytes]:
    return path.read_bytes().splitlines(keepends=True)


def damage(path: Path) -> None:
    """Half of a line is gone, as by a disk that lost a block."""
    found = lines(path)
    found[LINE] = found[LINE][: len(found[LINE]) // 2] + b"\n"
    path.write_bytes(b"".join(found))


def delete(path: Path) -> None:
    found = lines(path)
    path.write_bytes(b"".join(found[:LINE] + found[LINE + 1 :]))


def stopped(folder: Path) -> None:
    """The run looks as if it had been interrupted."""
    for name in ("manifest.json", "metrics.json"):
        document = read_json(folder / name)
        (folder / name).write_text(json.dumps({**document, "status": "interrupted", "reason": "interrupted"}))


def figures(folder: Path) -> Any:
    return read_json(folder / "metrics.json")["overall"]


@pytest.mark.parametrize(
    ("name", "state", "command"),
    [
        ("judgments.jsonl", "complete", "run"),
        ("judgments.jsonl", "interrupted", "run --resume"),
        ("scores.jsonl", "complete", "rescore"),
        ("scores.jsonl", "interrupted", "rescore"),
        ("cases.jsonl", "complete", "run"),
        ("cases.jsonl", "interrupted", "run --resume"),
        ("outputs.jsonl", "complete", "run"),
        ("outputs.jsonl", "interrupted", "run --resume"),
        ("judge_inputs.jsonl", "interrupted", "run --resume"),
    ],
)
def test_the_command_that_is_named_mends_the_run(tmp_path: Path, name: str, state: str, command: str) -> None:
    write_suite(tmp_path)
    assert judgekit("run", "config.json", "--run-id", "r", cwd=tmp_path).returncode == 0
    folder = tmp_path / "results" / "r"
    before, whole = figures(folder), lines(folder / name)
    if state == "interrupted":
        stopped(folder)
    damage(folder / name)

    # What reads the file first: scores are read by comparisons, inputs by probes, all else by a rescore.
    reader = {"scores.jsonl": ("compare", "r", "r"), "judge_inputs.jsonl": ("probe", "r")}.get(name, ("rescore", "r"))
    error = one_error_line(judgekit(*reader, cwd=tmp_path))
    assert f"results/r/{name}:{LINE + 1}: damaged line: " in error
    said = shlex.split(error.rpartition("judgekit ")[2].partition(" (")[0])
    assert " ".join(said[:-1]) == command
    if "delete the line" in error:
        delete(folder / name)
    mended = judgekit(*said, cwd=tmp_path)

    assert mended.returncode == 0, mended.stderr
    made = Path(mended.stdout.splitlines()[-1]) if command == "run" else folder
    assert figures(tmp_path / made) == before
    assert len(lines(tmp_path / made / name)) == len(whole)
    again = judgekit(*(str(made) if part == "r" else part for part in reader), cwd=tmp_path)
    assert "damaged line" not in again.stderr


def test_a_complete_rejudge_is_made_again_from_its_parent(tmp_path: Path) -> None:
    write_suite(tmp_path)
    assert judgekit("run", "config.json", "--run-id", "r", cwd=tmp_path).returncode == 0
    assert judgekit("rejudge", "r", "--run-id", "b", cwd=tmp_path).returncode == 0
    damage(tmp_path / "results" / "b" / "outputs.jsonl")
    error = one_error_line(judgekit("rescore", "b", cwd=tmp_path))
    assert error.endswith("; judge the run again that it was made from: judgekit rejudge r")
    assert judgekit("rejudge", "r", cwd=tmp_path).returncode == 0
