"""Every reader refuses a complete run that lost, gained or changed a line; commands that change one say so."""

import json
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import judgekit
from judgekit.cli.app import app
from judgekit.core.errors import StorageError
from judgekit.storage.run_folder import RunFolder
from judgekit.storage.run_list import list_runs
from judgekit.workflows.models import Options
from judgekit.workflows.rescore import rescore
from tests.builders import read_json, read_lines, write_suite


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    judgekit.run(write_suite(tmp_path), run_id="r")
    return tmp_path / "results" / "r"


def edited(path: Path, change: Callable[[list[bytes]], list[bytes]]) -> None:
    path.write_bytes(b"".join(change(path.read_bytes().splitlines(keepends=True))))


def said(*arguments: str) -> tuple[int, list[str]]:
    result = CliRunner().invoke(app, list(arguments))
    return result.exit_code, result.stderr.strip().splitlines()


def half(lines: list[bytes]) -> list[bytes]:
    return lines[: len(lines) // 2]


def doubled(lines: list[bytes]) -> list[bytes]:
    return [*lines, lines[-1]]


def torn(lines: list[bytes]) -> list[bytes]:
    return [*lines[:-1], lines[-1][:-9]]


def letter(lines: list[bytes]) -> list[bytes]:
    return [b"".join(lines).replace(b"e", b"a", 1)]


def swapped(lines: list[bytes]) -> list[bytes]:
    return [lines[1], lines[0], *lines[2:]]


def test_a_resume_names_damaged_spot_checks_before_it_writes_anything(folder: Path) -> None:
    manifest = read_json(folder / "manifest.json")
    del manifest["files"]
    (folder / "manifest.json").write_text(json.dumps({**manifest, "status": "running", "finished_at": None}))
    (folder / "checks.json").write_text("")
    before = {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}
    assert said("run", "--resume", str(folder), "-q")[0] == 4
    assert {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()} == before


def test_a_table_of_scores_is_written_whatever_a_newer_version_added_to_judge_inputs(folder: Path) -> None:
    path = folder / "judge_inputs.jsonl"
    path.write_text("".join(f"{json.dumps({**line, 'added_later': 1})}\n" for line in read_lines(path)))
    manifest = read_json(folder / "manifest.json")
    del manifest["files"]
    (folder / "manifest.json").write_text(json.dumps(manifest))
    assert said("report", str(folder), "--format", "csv") == (0, [])


READERS = [
    ["rejudge"],
    ["rescore"],
    ["spotcheck"],
    ["calibrate"],
    ["probe"],
    ["report"],
    ["report", "--format", "junit"],
    ["report", "--format", "csv"],
    ["runs", "show"],
    ["run", "--resume"],
    ["label", "--export", "sheet.csv"],
]


@pytest.mark.parametrize("reader", READERS, ids=" ".join)
def test_attack_01_every_reader_refuses_a_run_that_lost_cases(
    folder: Path, reader: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder.parent.parent)
    edited(folder / "cases.jsonl", half)
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    code, error = said(*reader, str(folder))
    assert (code, len(error)) == (4, 1)
    assert "cases.jsonl: damaged: it has 3 lines, and the run wrote 6; put back" in error[0]
    assert "or make another run: judgekit run " in error[0]
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before


@pytest.mark.parametrize(
    ("name", "change", "why"),
    [
        ("cases.jsonl", doubled, "it has 7 lines, and the run wrote 6"),
        ("cases.jsonl", swapped, "its text is not what the run wrote"),
        ("cases.jsonl", torn, ":6: damaged line: "),
        ("outputs.jsonl", half, "it has 3 lines, and the run wrote 6"),
        ("outputs.jsonl", lambda lines: [], "it has 0 lines, and the run wrote 6"),
        ("judge_inputs.jsonl", doubled, "it has 7 lines"),
        ("judgments.jsonl", half, "it has 3 lines, and the run wrote 6"),
        ("judgments.jsonl", doubled, "it has 7 lines, and the run wrote 6"),
        ("judgments.jsonl", torn, ":6: damaged line: "),
        ("judgments.jsonl", lambda lines: [line.replace(b'"score":5', b'"score":1') for line in lines], "its text"),
        ("metrics.json", letter, "its text is not what the run wrote"),
        ("prompts.json", letter, "its text is not what the run wrote"),
        ("config.json", letter, "its text is not what the run wrote"),
        ("scores.jsonl", half, "lines, and the run wrote"),
    ],
)
def test_attack_01_what_is_wrong_with_a_file_is_named(
    folder: Path, name: str, change: Callable[[list[bytes]], list[bytes]], why: str
) -> None:
    edited(folder / name, change)
    with pytest.raises(StorageError, match=r"judgekit (rescore|run) ") as caught:
        RunFolder.open(folder)
    assert f"{folder / name}" in str(caught.value)
    assert why in str(caught.value)


@pytest.mark.parametrize("name", ["cases.jsonl", "judgments.jsonl", "prompts.json", "metrics.json"])
def test_attack_01_a_file_that_is_gone_is_named(folder: Path, name: str) -> None:
    (folder / name).unlink()
    with pytest.raises(StorageError, match=f"{name}: damaged: it is gone; put back"):
        RunFolder.open(folder)


def test_attack_01_both_sides_of_a_comparison_are_held_against_their_manifests(folder: Path) -> None:
    judgekit.run(folder.parent.parent / "config.json", run_id="other")
    edited(folder / "scores.jsonl", half)
    for sides in ([str(folder), str(folder.parent / "other")], [str(folder.parent / "other"), str(folder)]):
        code, error = said("compare", *sides)
        assert code == 4
        assert error[-1].endswith(f"or make the file again: judgekit rescore {shlex.quote(str(folder))}")


def test_attack_01_the_list_of_runs_shows_a_run_with_altered_figures_as_damaged(folder: Path) -> None:
    assert [entry.status for entry in list_runs(folder.parent)] == ["complete"]
    edited(folder / "metrics.json", letter)
    assert [entry.status for entry in list_runs(folder.parent)] == ["damaged"]


def test_attack_01_a_trend_names_a_run_with_altered_figures(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder.parent.parent)
    judgekit.run("config.json", run_id="whole")
    edited(folder / "metrics.json", letter)
    found = CliRunner().invoke(app, ["runs", "trend", "groundedness"])
    assert "damaged" in " ".join((found.stdout + found.stderr).split())


def test_attack_01_a_wording_of_a_run_that_is_not_complete_is_held_against_the_hash_in_its_config(folder: Path) -> None:
    manifest = RunFolder(folder).manifest()
    RunFolder(folder).write_manifest(manifest.model_copy(update={"status": "interrupted"}))
    assert not RunFolder(folder).manifest().files
    text = (folder / "prompts.json").read_text(encoding="utf-8")
    assert "groundedness/v1" in RunFolder.open(folder).prompts()
    (folder / "prompts.json").write_text(text.replace("claim", "clain", 1), encoding="utf-8")
    with pytest.raises(StorageError, match=r"prompts.json: damaged: groundedness/v1 is not the wording whose sha256"):
        RunFolder.open(folder).prompts()


def test_what_is_made_from_a_run_or_written_by_people_may_be_edited(folder: Path) -> None:
    for name in ("summary.md", "report.html", "tags.json"):
        (folder / name).write_text('{"tags": ["mine"]}', encoding="utf-8")
    (folder / "notes.txt").write_text("mine", encoding="utf-8")
    code, error = said("runs", "show", str(folder))
    assert (code, error) == (0, [])


def test_scores_are_made_again_by_the_command_that_is_named(folder: Path) -> None:
    before = (folder / "scores.jsonl").read_bytes()
    edited(folder / "scores.jsonl", half)
    assert said("rescore", str(folder))[0] == 0
    assert (folder / "scores.jsonl").read_bytes() == before
    RunFolder.open(folder)


def test_commands_that_change_a_complete_run_bring_its_manifest_up_to_date(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder.parent.parent)
    Path("labels.jsonl").write_text(
        "".join(json.dumps({"case_id": f"c{number}", "score": 5}) + "\n" for number in range(6)), encoding="utf-8"
    )
    for command in (
        ["spotcheck", "r", "--n", "3"],
        ["rescore", "r"],
        ["calibrate", "r", "--labels", "labels.jsonl"],
        ["probe", "r", "--n", "3"],
        ["report", "r"],
        ["runs", "tag", "r", "kept"],
        ["rejudge", "r", "--run-id", "again"],
        ["bridge", "r", "again"],
        ["runs", "reindex"],
    ):
        code, error = said(*command)
        assert code == 0, (command, error)
        for name in ("r", "again"):
            if (folder.parent / name).exists():
                manifest = RunFolder.open(folder.parent / name).manifest()
                assert manifest.files
                assert not manifest.changing
    assert len(read_lines(folder / "judgments.jsonl")) == RunFolder(folder).manifest().files["judgments.jsonl"].lines


def test_a_run_whose_change_was_killed_is_read_and_the_command_that_is_named_ends_it(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The kill falls after the scores are written, and before figures and manifest."""

    def killed(*_: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(RunFolder, "seal", lambda _: None)
        patch.setattr("judgekit.workflows.rescore.write_summary", killed)
        with pytest.raises(KeyboardInterrupt):
            rescore(str(folder), Options())
    assert RunFolder.open(folder).manifest().changing
    result = CliRunner().invoke(app, ["runs", "show", str(folder)])
    assert result.exit_code == 0
    assert "files: a command is changing this run, or was stopped while it did; if none is: judgekit rescore r" in (
        " ".join(result.stdout.split())
    )
    for name in ("cases.jsonl", "judgments.jsonl"):
        whole = (folder / name).read_bytes()
        edited(folder / name, half)
        with pytest.raises(StorageError, match=f"{name}: damaged: it has 3 lines"):
            RunFolder.open(folder)
        (folder / name).write_bytes(whole)
    assert said("rescore", str(folder))[0] == 0
    manifest = RunFolder.open(folder).manifest()
    assert manifest.files
    assert not manifest.changing


def test_a_reader_that_meets_a_command_at_its_first_write_reads_on(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The manifest is read, then another process begins to change the run, and then the files are held against it."""
    manifest = RunFolder(folder).manifest()
    RunFolder(folder).write_json("manifest.json", manifest.model_copy(update={"changing": True}))
    with (folder / "judgments.jsonl").open("ab") as stream:
        stream.write((folder / "judgments.jsonl").read_bytes().splitlines(keepends=True)[0])
    as_read = RunFolder.manifest
    answers = iter([manifest])
    monkeypatch.setattr(RunFolder, "manifest", lambda self: next(answers, None) or as_read(self))
    assert RunFolder.open(folder).manifest().changing


def test_a_kill_in_a_check_of_a_complete_run_leaves_its_new_judgments_readable(folder: Path) -> None:
    found = RunFolder(folder).manifest()
    RunFolder(folder).write_json("manifest.json", found.model_copy(update={"changing": True}))
    first = (folder / "judgments.jsonl").read_bytes().splitlines(keepends=True)[0]
    with (folder / "judgments.jsonl").open("ab") as stream:
        stream.write(first.replace(b'"role":"primary"', b'"role":"spot_check"') + b'{"torn')
    assert len(list(RunFolder.open(folder).judgments())) == 7


def test_a_run_without_hashes_is_read_and_shown_as_not_checked(folder: Path) -> None:
    manifest = read_json(folder / "manifest.json")
    del manifest["files"], manifest["changing"]
    (folder / "manifest.json").write_text(json.dumps(manifest), encoding="utf-8")
    edited(folder / "cases.jsonl", swapped)
    result = CliRunner().invoke(app, ["runs", "show", str(folder)])
    assert result.exit_code == 0
    assert "files: not checked, since the run was written before manifests held hashes" in (
        " ".join(result.stdout.split())
    )
