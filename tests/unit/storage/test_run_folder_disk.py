"""The run folder on a disk that tears, fills up and is shared."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import judgekit
from judgekit.core.errors import ConfigError, RunBusy, StorageError
from judgekit.core.judgments import JudgeInput, Judgment, Verdict
from judgekit.core.runs import Manifest
from judgekit.storage.run_folder import RunFolder, new_run_id

NOW = datetime(2026, 1, 31, 14, 25, 1, tzinfo=UTC)
MANIFEST = Manifest(
    run_id="r", name="n", status="running", created_at="t", config_sha256="0", config_path="c.json", versions={}
)


@pytest.fixture
def folder(tmp_path: Path) -> RunFolder:
    made = RunFolder.create(tmp_path / "results", "r")
    made.write_json("manifest.json", MANIFEST)
    return made


def judgment(case_id: str) -> Judgment:
    return Judgment(
        case_id=case_id,
        judge="groundedness",
        prompt_version="v1",
        prompt_sha256="0",
        input_sha256="0",
        model_id="m",
        provider="fake",
        model="m",
        key="k",
        parameters={},
        verdict=Verdict(score=4),
        parser_version=1,
        created_at="t",
    )


def line_of(case_id: str) -> bytes:
    return judgment(case_id).model_dump_json().encode() + b"\n"


def test_run_ids_sort_by_time_and_make_a_folder_once(tmp_path: Path) -> None:
    run_id = new_run_id("suite", NOW)
    assert run_id.startswith("suite-20260131-142501-")
    folder = RunFolder.create(tmp_path, run_id)
    assert RunFolder.create(tmp_path, run_id).path == folder.path  # nothing of it has begun
    folder.write_json("manifest.json", MANIFEST)
    with pytest.raises(ConfigError, match="exists already; choose another --run-id"):
        RunFolder.create(tmp_path, run_id)


@pytest.mark.parametrize("run_id", ["../up", "/abs", "a/b", "", ".", "..", "a\0b", "n" * 200])
def test_a_run_id_that_is_no_folder_name_is_refused(tmp_path: Path, run_id: str) -> None:
    with pytest.raises(ConfigError, match="is not a folder name"):
        RunFolder.create(tmp_path / "results", run_id)
    assert list(tmp_path.iterdir()) == []


def test_a_file_where_the_results_should_go_is_a_storage_error(tmp_path: Path) -> None:
    (tmp_path / "results").write_text("x")
    with pytest.raises(StorageError, match=r"results: cannot be created: File exists"):
        RunFolder.create(tmp_path / "results", "r")


@pytest.mark.parametrize(
    ("text", "kind", "said"),
    [
        (None, ConfigError, r"no run here \(it has no manifest.json\)"),
        (
            '{"format_version": 3}',
            ConfigError,
            "written by a newer judgekit .format 3; this one reads up to 2.; upgrade",
        ),
        ('{"format_version": "1"}', StorageError, "damaged: format_version is '1'"),
        ("{}", StorageError, "damaged: format_version is None"),
        ('{"format_version": 0}', StorageError, "damaged: format_version is 0"),
        ("", StorageError, "damaged: Expecting value"),
        ("\0" * 64, StorageError, "damaged: "),
        ("[]", StorageError, "damaged: expected an object"),
        ("[" * 100_000, StorageError, "damaged: "),
    ],
)
def test_only_a_run_of_a_known_format_opens(tmp_path: Path, text: str | None, kind: type[Exception], said: str) -> None:
    if text is not None:
        (tmp_path / "manifest.json").write_text(text)
    with pytest.raises(kind, match=said) as caught:
        RunFolder.open(tmp_path)
    assert type(caught.value) is kind


def test_the_manifest_comes_back_and_a_wrong_one_is_damage(folder: RunFolder) -> None:
    assert RunFolder.open(folder.path).manifest() == MANIFEST
    folder.write_json("manifest.json", {"format_version": 1, "status": "asleep"})
    with pytest.raises(StorageError, match=r"manifest.json: damaged: \$\."):
        folder.manifest()
    with pytest.raises(ConfigError, match="no such file in this run"):
        folder.read_json("metrics.json")


def test_json_is_sorted_strict_and_always_utf8(folder: RunFolder) -> None:
    folder.write_json("metrics.json", {"b": "灯\ud800", "a": 1})
    assert (folder.path / "metrics.json").read_bytes() == '{\n  "a": 1,\n  "b": "灯\ufffd"\n}\n'.encode()
    with pytest.raises(ValueError, match="Out of range float"):
        folder.write_json("metrics.json", {"a": float("nan")})
    assert folder.read_json("metrics.json")["a"] == 1


@pytest.mark.parametrize("fault", [RuntimeError("bug"), OSError(28, "No space left on device"), KeyboardInterrupt()])
def test_d11_d18_a_writer_that_fails_leaves_the_old_file_and_nothing_else(
    folder: RunFolder, fault: BaseException
) -> None:
    folder.write_text("summary.md", "old")

    def lines() -> Iterator[bytes]:
        yield b"new"
        raise fault

    expected = StorageError if isinstance(fault, OSError) else type(fault)
    with pytest.raises(expected) as caught:
        folder.write_lines("summary.md", lines())
    if isinstance(fault, OSError):
        assert str(caught.value).endswith("summary.md: cannot be written: No space left on device")
    assert (folder.path / "summary.md").read_text() == "old"
    assert sorted(path.name for path in folder.path.iterdir()) == ["manifest.json", "summary.md"]


def test_a_folder_that_went_away_is_a_storage_error(folder: RunFolder) -> None:
    gone = RunFolder(folder.path / "gone")
    with pytest.raises(StorageError, match="cannot be written: No such file or directory"):
        gone.write_text("summary.md", "x")
    with pytest.raises(StorageError, match="cannot be locked: No such file or directory"), gone.locked():
        pass


def test_d14_a_torn_last_line_is_dropped_by_readers_and_cut_by_the_repair(folder: RunFolder) -> None:
    path = folder.path / "judgments.jsonl"
    path.write_bytes(line_of("a") + line_of("b")[:-20])
    assert [one.case_id for one in folder.judgments()] == ["a"]
    assert folder.repair_tail("judgments.jsonl") == len(line_of("b")) - 20
    assert path.read_bytes() == line_of("a")
    assert folder.repair_tail("judgments.jsonl") == 0
    with path.open("ab") as stream:
        stream.write(line_of("b"))
    assert [one.case_id for one in folder.judgments()] == ["a", "b"]


def test_d14_a_whole_record_without_its_line_feed_is_torn_too(folder: RunFolder) -> None:
    (folder.path / "judgments.jsonl").write_bytes(line_of("a") + line_of("b").rstrip(b"\n"))
    assert [one.case_id for one in folder.judgments()] == ["a"]


@pytest.mark.parametrize("damage", [line_of("b")[:40] + b"\n", b"\n", b"\0" * 30 + b"\n", b"\xff\n", b"[]\n"])
def test_d14_a_damaged_line_in_the_middle_is_an_error_with_its_number(folder: RunFolder, damage: bytes) -> None:
    (folder.path / "judgments.jsonl").write_bytes(line_of("a") + damage + line_of("c"))
    read = folder.judgments()
    assert next(read).case_id == "a"
    wanted = r"judgments.jsonl:2: damaged line: .*; delete the line, then its question can be asked again: judgekit run"
    with pytest.raises(StorageError, match=wanted):
        next(read)


@pytest.mark.parametrize(
    "damage",
    [
        b"{}\n",
        b'{"case_id": 1, "judge": "j", "variables": {}}\n',
        b'{"case_id": "b", "judge": "j"}\n',
        b"[1]\n",
        b"\xff\n",
        b'{"case_id": "b", "judge": "j", "variables": {}, "x": 1}\n',
        b"{" * 9999 + b"\n",
        b'{"case_id": "\xff"}\n',
    ],
)
def test_d14_a_damaged_judge_input_is_an_error_with_its_number(folder: RunFolder, damage: bytes) -> None:
    good = JudgeInput(case_id="a", judge="j", variables={"answer": "灯", "n": 10**25})
    (folder.path / "judge_inputs.jsonl").write_bytes(good.model_dump_json().encode() + b"\n" + damage)
    read = folder.judge_inputs()
    assert next(read) == good
    with pytest.raises(StorageError, match=r"judge_inputs.jsonl:2: damaged line: "):
        next(read)


def test_what_is_not_there_yet_reads_as_nothing(folder: RunFolder) -> None:
    assert list(folder.judgments()) == []
    assert list(folder.judge_inputs()) == []
    assert folder.repair_tail("judgments.jsonl") == 0


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(whole=st.lists(st.binary(max_size=40_000), max_size=4), torn=st.binary(max_size=200_000))
def test_the_repair_keeps_every_whole_line_and_nothing_else(folder: RunFolder, whole: list[bytes], torn: bytes) -> None:
    kept = b"".join(line.replace(b"\n", b" ") + b"\n" for line in whole)
    torn = torn.replace(b"\n", b" ")
    path = folder.path / "judgments.jsonl"
    path.write_bytes(kept + torn)
    assert folder.repair_tail("judgments.jsonl") == len(torn)
    assert path.read_bytes() == kept


def test_the_lock_holds_against_this_process_and_another(folder: RunFolder) -> None:
    script = (
        "import sys; from pathlib import Path; from judgekit.storage.run_folder import RunFolder\n"
        "with RunFolder(Path(sys.argv[1])).locked(): print('got it')"
    )
    environment: dict[str, Any] = {**os.environ, "PYTHONPATH": str(Path(judgekit.__file__).parents[1])}

    def other() -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-c", script, str(folder.path)]
        return subprocess.run(command, capture_output=True, text=True, env=environment, timeout=60, check=False)

    with folder.locked():
        with pytest.raises(StorageError, match="another process is writing this run"), folder.locked():
            pass
        assert "another process is writing this run; wait for it or stop it" in other().stderr
    assert other().stdout == "got it\n"


def test_d20_d18_replacing_twice_in_a_row_keeps_the_last(folder: RunFolder) -> None:
    for text in ("one", "two"):
        folder.write_text("summary.md", text)
    assert (folder.path / "summary.md").read_text() == "two"
    assert folder.write_lines("scores.jsonl", (json.dumps(n).encode() for n in range(3))) == 3
    assert (folder.path / "scores.jsonl").read_bytes() == b"0\n1\n2\n"


def test_a_run_that_another_process_went_on_with_in_between_is_not_taken_over(folder: RunFolder) -> None:
    found = folder.manifest()
    with folder.locked_as_found(found):
        pass
    with pytest.raises(RunBusy, match="has just resumed this run"), folder.locked_as_found(None):
        pass
    folder.write_json("manifest.json", MANIFEST.model_copy(update={"status": "complete"}))
    with pytest.raises(RunBusy, match="has just resumed this run"), folder.locked_as_found(found):
        pass


def test_half_written_files_of_a_killed_process_are_cleared_away_and_nothing_else(folder: RunFolder) -> None:
    for name in (".scores.jsonl.12.tmp", "scores.jsonl", "notes.tmp"):
        (folder.path / name).write_text("x")
    with folder.locked_as_found(folder.manifest()):
        assert sorted(path.name for path in folder.path.iterdir()) == [
            ".lock",
            "manifest.json",
            "notes.tmp",
            "scores.jsonl",
        ]


@pytest.mark.parametrize("left", [[], [".lock"], [".lock", "config.json", ".manifest.json.7.tmp"]])
def test_a_folder_without_a_beginning_says_how_to_start_it_and_is_taken_over(tmp_path: Path, left: list[str]) -> None:
    (tmp_path / "r").mkdir()
    for name in left:
        (tmp_path / "r" / name).write_text("x")
    with pytest.raises(ConfigError, match=r"no run here .*start it again: judgekit run CONFIG --run-id r$"):
        RunFolder.open(tmp_path / "r")
    assert RunFolder.create(tmp_path, "r").path == tmp_path / "r"
    with pytest.raises(ConfigError, match="no such folder"):
        RunFolder.open(tmp_path / "s")
    (tmp_path / "r" / "judgments.jsonl").write_text("")
    with pytest.raises(ConfigError, match="exists already"):
        RunFolder.create(tmp_path, "r")
