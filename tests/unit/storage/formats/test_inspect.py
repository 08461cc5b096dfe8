"""Logs and samples of Inspect."""

import json
import sys
import zipfile
import zlib
from pathlib import Path
from typing import Any

import pyarrow
import pytest

from judgekit.storage.formats import inspect
from tests.readers import cases_of, complaint, needs_shared_files, outputs_of, said, shared, written

SAMPLE: dict[str, Any] = {
    "id": "s1",
    "epoch": 1,
    "input": "q?",
    "target": ["yes", "Yes"],
    "messages": [],
    "output": {
        "choices": [
            {
                "message": {"content": [{"type": "text", "text": "Hel"}, {"type": "text", "text": "lo"}]},
                "stop_reason": "length",
            }
        ],
        "usage": {"input_tokens": 12, "output_tokens": 1, "total_tokens": 13},
        "time": 0.5,
    },
    "scores": {"match": {"value": "I"}},
    "metadata": {"topic": "bread"},
    "total_time": 2.0,
}
CASE = {"id": "s1", "question": "q?", "reference_answers": ["yes", "Yes"], "metadata": {"topic": "bread"}}
OUTPUT = {
    "case_id": "s1",
    "answer": "Hello",
    "usage": {"prompt_tokens": 12, "completion_tokens": 1},
    "latency_seconds": {"total": 2.0, "generation": 0.5},
    "metadata": {"scores": {"match": {"value": "I"}}, "stop_reason": "length"},
}


def log(*samples: dict[str, Any]) -> str:
    return json.dumps({"version": 2, "status": "success", "eval": {}, "plan": {}, "samples": samples}, indent=1)


def archive(folder: Path, *samples: dict[str, Any]) -> Path:
    path = folder / "log.eval"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as stream:
        stream.writestr("header.json", "{}")
        for number, sample in enumerate(samples):
            stream.writestr(
                f"samples/{sample.get('id', number)}_epoch_{sample.get('epoch', 1)}.json", json.dumps(sample)
            )
        stream.writestr("summaries.json", "[]")
    return path


@pytest.mark.parametrize("name", ["log.json", "log.txt", "log.eval"])
def test_a_sample_of_a_log_is_a_case_and_an_output(tmp_path: Path, name: str) -> None:
    path = archive(tmp_path, SAMPLE) if name == "log.eval" else written(tmp_path, name, log(SAMPLE))
    assert [said(case) for case in cases_of(path)] == [CASE]
    assert [said(output) for output in outputs_of(path)] == [OUTPUT]


def test_a_failed_sample_is_an_error_row(tmp_path: Path) -> None:
    path = written(
        tmp_path, "log.json", log({"id": 1, "input": "q", "target": "", "error": {"message": "boom"}, "output": {}})
    )
    assert said(outputs_of(path)[0]) == {"case_id": "1", "error": {"kind": "sample_error", "message": "boom"}}
    assert said(cases_of(path)[0]) == {"id": "1", "question": "q"}


def test_messages_and_attachments(tmp_path: Path) -> None:
    one = [{"role": "system", "content": "be kind"}, {"role": "user", "content": "attachment://x"}]
    two = [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}, {"role": "user", "content": "c"}]
    samples = [{**SAMPLE, "id": 1, "input": one, "attachments": {"x": "q!"}}, {**SAMPLE, "id": 2, "input": two}]
    path = written(tmp_path, "log.json", log(*samples))
    assert [case.question for case in cases_of(path)] == ["q!", "c"]
    assert said(cases_of(path)[1])["messages"] == [
        {"role": "user", "text": "a"},
        {"role": "assistant", "text": "b"},
        {"role": "user", "text": "c"},
    ]


def test_turns_begin_with_what_the_system_was_not_given(tmp_path: Path) -> None:
    given = [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}, {"role": "user", "content": "c"}]
    call = {"id": "k", "function": "add", "arguments": {"x": 1}, "type": "function"}
    image = {"type": "image", "image": "attachment://i"}
    made = [
        {"role": "assistant", "content": [{"type": "text", "text": "attachment://x"}, image], "tool_calls": [call]},
        {"role": "tool", "content": "2", "tool_call_id": "k", "function": "add", "id": "m1"},
        {"role": "tool", "content": "", "tool_call_id": "k", "error": {"type": "timeout", "message": "too slow"}},
        {"role": "user", "content": "Go on.", "tool_call_id": ["k"]},
        {"role": "assistant", "content": [{"type": "text", "text": "Hel"}, {"type": "text", "text": "lo"}]},
    ]
    sample = {**SAMPLE, "input": given, "messages": [*given, *made], "attachments": {"x": "let me see"}}
    path = written(tmp_path, "log.json", log(sample))
    notices: list[tuple[str, str]] = []
    assert said(outputs_of(path, notices)[0])["turns"] == [
        {
            "role": "assistant",
            "text": "let me see",
            "left_out": ["image"],
            "tool_calls": [{"name": "add", "arguments": {"x": 1}, "id": "k"}],
        },
        {"role": "tool", "text": "2", "tool_call_id": "k", "name": "add"},
        {
            "role": "tool",
            "text": "too slow",
            "tool_call_id": "k",
            "metadata": {"error": {"type": "timeout", "message": "too slow"}},
        },
        {"role": "user", "text": "Go on.", "metadata": {"tool_call_id": ["k"]}},
        {"role": "assistant", "text": "Hello"},
    ]
    assert notices[1:] == [
        ("message_parts_left_out", "log.json: parts of messages that are not text are left out: 1 image"),
        ("message_fields_kept", "log.json: kept in the metadata of messages: 1 error, 1 tool_call_id"),
    ]


def test_later_epochs_are_left_out_and_counted(tmp_path: Path) -> None:
    path = archive(tmp_path, SAMPLE, {**SAMPLE, "epoch": 2}, {**SAMPLE, "epoch": 3})
    notices: list[tuple[str, str]] = []
    assert len(outputs_of(path, notices)) == 1
    assert notices == [
        ("epochs_left_out", "log.eval: 2 samples of later epochs are left out; the first of each is read")
    ]


def test_samples_of_an_archive_stand_in_the_order_of_their_numbers(tmp_path: Path) -> None:
    path = archive(tmp_path, *({**SAMPLE, "id": number} for number in (10, 9, 1)))
    assert [case.id for case in cases_of(path)] == ["1", "9", "10"]


def test_an_archive_that_unpacks_to_too_much_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = archive(tmp_path, {**SAMPLE, "input": "x" * 200_000}, {**SAMPLE, "id": "s2", "input": "x" * 200_000})
    assert path.stat().st_size < 3000
    monkeypatch.setattr(inspect, "MEMBER_BYTES", 100_000)
    assert complaint(path).startswith("log.eval/samples/s1_epoch_1.json: unpacks to more than")
    monkeypatch.setattr(inspect, "MEMBER_BYTES", 300_000)
    monkeypatch.setattr(inspect, "TOTAL_BYTES", 300_000)
    assert complaint(path).startswith("log.eval/samples/s2_epoch_1.json: unpacks to more than")


def test_a_header_that_lies_about_the_size_does_not_help_a_bomb(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = archive(tmp_path, {**SAMPLE, "input": "x" * 200_000})
    data = path.read_bytes()
    real = zipfile.ZipFile(path).getinfo("samples/s1_epoch_1.json").file_size
    path.write_bytes(data.replace(real.to_bytes(4, "little"), (10).to_bytes(4, "little")))
    monkeypatch.setattr(inspect, "MEMBER_BYTES", 100_000)
    assert complaint(path).startswith("log.eval: is not a readable .eval archive")


def packed_as_inspect_does(path: Path) -> Path:
    """The same archive, its members packed with zstandard."""
    with zipfile.ZipFile(path) as archive:
        texts = {name: archive.read(name) for name in archive.namelist()}
    with zipfile.ZipFile(path, "w") as archive:
        for name, text in texts.items():
            info = zipfile.ZipInfo(name)
            archive.writestr(info, pyarrow.compress(text, "zstd", asbytes=True))
            # The head of the file is written at its end.
            info.compress_type, info.file_size, info.CRC = inspect.ZSTANDARD, len(text), zlib.crc32(text)
    return path


def test_an_archive_packed_with_zstandard(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = packed_as_inspect_does(archive(tmp_path, SAMPLE))
    assert [said(output) for output in outputs_of(path)] == [OUTPUT]
    whole = path.read_bytes()
    path.write_bytes(whole.replace((93).to_bytes(2, "little") + b"\0", (99).to_bytes(2, "little") + b"\0"))
    assert complaint(path).endswith("write the log as JSON")
    at = whole.index(b"s1_epoch_1.json") + 30
    path.write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
    assert complaint(path).startswith("log.eval: is not a readable .eval archive: samples/s1_epoch_1.json: ")
    path.write_bytes(whole)
    monkeypatch.setattr(inspect, "MEMBER_BYTES", 100)
    assert complaint(path).startswith("log.eval/samples/s1_epoch_1.json: unpacks to more than")


@pytest.mark.skipif(sys.version_info >= (3, 14), reason="this Python reads zstandard itself")
def test_without_pyarrow_zstandard_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = packed_as_inspect_does(archive(tmp_path, SAMPLE))
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    assert complaint(path) == (
        "log.eval: is packed with zstandard, which needs Python 3.14 or pyarrow: pip install pyarrow; "
        "or make it JSON with `inspect log convert`"
    )


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"no zip", "log.eval: is not a readable .eval archive: File is not a zip file"),
        (None, "log.eval: the log has no samples; write it with log_samples"),
    ],
)
def test_what_is_no_archive(tmp_path: Path, data: bytes | None, message: str) -> None:
    path = archive(tmp_path) if data is None else written(tmp_path, "log.eval", data)
    assert complaint(path) == message


def test_a_bad_sample_is_named_inside_the_archive(tmp_path: Path) -> None:
    assert complaint(archive(tmp_path, SAMPLE, {**SAMPLE, "id": "s2", "input": 5})) == (
        "log.eval/samples/s2_epoch_1.json: $.input: expected a text, found a number"
    )


SAMPLES = '{"input": "a", "target": "x", "metadata": "{\\"name\\": \\"jim\\", \\"n\\": {\\"a\\": [1, 2]}}"}\n'


def test_c29_metadata_may_be_a_json_text_or_an_object(tmp_path: Path) -> None:
    path = written(tmp_path, "s.jsonl", SAMPLES + '{"input": "b", "target": "y", "metadata": {"name": "y"}}\n')
    assert [case.metadata for case in cases_of(path)] == [{"name": "jim", "n": {"a": [1, 2]}}, {"name": "y"}]
    assert complaint(path, "outputs").endswith("a sample of a dataset holds no output; give the log of its evaluation")


@needs_shared_files
@pytest.mark.parametrize("name", ["log_formats.eval", "log_formats.json"])
def test_published_logs(name: str) -> None:
    assert [said(output) for output in outputs_of(shared(f"inspect/{name}"))] == [
        {
            "case_id": "1",
            "answer": "No",
            "turns": [{"role": "assistant", "text": "No"}],
            "usage": {"prompt_tokens": 66, "completion_tokens": 2},
            "metadata": {"scores": {"match": {"value": "I", "answer": "No"}}, "stop_reason": "stop"},
        }
    ]
    assert cases_of(shared(f"inspect/{name}"))[0].reference_answers == (" Yes",)


@needs_shared_files
def test_published_samples() -> None:
    assert outputs_of(shared("inspect/log_length_stop_reason.txt"))[0].answer == "Hello"
    assert complaint(shared("inspect/log_with_nan.txt")).endswith("the log has no samples; write it with log_samples")
    for name in ("samples-md.csv", "samples-md.jsonl"):
        assert cases_of(shared(f"inspect/{name}"))[0].metadata.items() >= {"name": "jim", "age": 42}.items()
    for name in ("samples.csv", "samples.json", "samples.jsonl", "samples-mcq.csv", "samples-mcq.jsonl"):
        assert len(cases_of(shared(f"inspect/{name}"))) == 1
    assert len(cases_of(shared("inspect/biology_qa.jsonl"), fields={"reference_answers": "answer"})) == 20
