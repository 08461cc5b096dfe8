"""Inspect: evaluation logs (`.eval` archives, JSON of versions 1 and 2) and dataset samples (JSONL, CSV, JSON).

A sample is a case; a sample of a log is also an output. Of several epochs the first is read: the same question asked
again is not a further case. An archive is read member by member with a limit on its unpacked size. Inspect packs them
with zstandard, which Python reads from 3.14 on; before that pyarrow unpacks them.
"""

import json
import zipfile
import zlib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, TypeGuard

from msgspec.structs import replace

from judgekit.core.errors import InputError
from judgekit.storage.chat_messages import InOurShape, made
from judgekit.storage.encodings import faults_named
from judgekit.storage.problems import kind_of
from judgekit.storage.record_formats import Document, Fields, RecordFormat, Source, UnfitError, document_row
from judgekit.storage.rows import Row

MEMBER_BYTES = 256 * 1024**2
"""Unpacked size of one sample at most."""

TOTAL_BYTES = 8 * 1024**3
"""Unpacked size of all samples at most."""

ZSTANDARD = 93
"""Number of the compression in a zip file."""

_LOG_ONLY = {"output", "scores", "score", "messages", "epoch"}
_INNER = (
    "messages",
    "events",
    "events_data",
    "transcript",
    "attachments",
    "store",
    "uuid",
    "turn_count",
    "error_retries",
    "timelines",
    "model_usage",
    "role_usage",
    "started_at",
    "completed_at",
)
"""What a log holds beside the question and the answer; left out."""
_NOTES = ("id", "source", "model")
"""What a log notes of each message; left out."""


class Inspect(RecordFormat):
    """Samples of datasets and logs."""

    def claims_path(self, path: Path) -> bool:
        """`.eval`."""
        return path.suffix.lower() == ".eval"

    def claims_record(self, record: Mapping[str, Any]) -> bool:
        """`input` and `target`."""
        return {"input", "target"} <= record.keys()

    def claims_document(self, document: Document) -> bool:
        """The head of a log."""
        return {"eval", "status"} <= document.keys() and bool({"plan", "samples", "results"} & document.keys())

    def from_document(self, document: Document, source: Source) -> Iterable[Row]:
        """The samples of a log."""
        if not self.claims_document(document):
            return super().from_document(document, source)
        samples = document.get("samples")
        if not isinstance(samples, list) or not samples:
            raise InputError(f"{source.path}: the log has no samples; write it with log_samples")
        rows = (document_row(("samples", number), item) for number, item in enumerate(samples))
        return _first_epochs(rows, source)

    def records(self, source: Source) -> Iterable[Row]:
        """Samples of an archive, a log or a dataset."""
        if self.claims_path(source.path):
            return _first_epochs(_archive(source), source)
        return super().records(source)

    def case(self, fields: Fields) -> dict[str, Any]:
        """Input and target."""
        fields.drop(*_INNER, *_LOG_ONLY, "error", "limit", "total_time", "working_time")
        attachments = fields.record.get("attachments")
        value = fields.record.get("input")
        asked: dict[str, Any]
        if _are_messages(value):
            asked = {"messages": fields.chat.messages("input", _resolved(value, attachments))}
            fields.names["messages"] = "input"
            fields.drop("input")
        else:
            asked = {"question": _content(fields.take("question", "input"), attachments)}
        targets = fields.take("reference_answers", "target")
        targets = [targets] if isinstance(targets, str) else targets
        return {
            **asked,
            "reference_answers": [text for text in targets if text != ""] if isinstance(targets, list) else targets,
            "metadata": fields.take("metadata", "metadata"),
        }

    def output(self, fields: Fields) -> dict[str, Any]:
        """What the model said at last; Inspect's own scores go to metadata."""
        if not _LOG_ONLY & fields.record.keys():
            raise UnfitError("a sample of a dataset holds no output; give the log of its evaluation")
        said = fields.record.get("output")
        said = said if isinstance(said, Mapping) else {}
        fault = fields.record.get("error")
        metadata = {key: fields.record[key] for key in ("scores", "score", "limit") if fields.record.get(key)}
        stop = _choice(said).get("stop_reason")
        if stop is not None:
            metadata["stop_reason"] = stop
        seconds = {"total": fields.record.get("total_time"), "generation": said.get("time")}
        fields.names["answer"] = "output"
        attachments = fields.record.get("attachments")
        fields.rest.clear()
        return {
            "answer": _content(_choice(said).get("message", {}).get("content", said.get("completion")), attachments),
            "turns": _turns(fields, attachments),
            "error": _error(fault),
            "usage": _usage(said.get("usage")),
            "latency_seconds": {key: value for key, value in seconds.items() if isinstance(value, int | float)} or None,
            "metadata": metadata or None,
        }


def _choice(said: Mapping[str, Any]) -> Mapping[str, Any]:
    choices = said.get("choices")
    first = choices[0] if isinstance(choices, list) and choices else None
    return first if isinstance(first, Mapping) and isinstance(first.get("message", {}), Mapping) else {}


def _turns(fields: Fields, attachments: Any) -> InOurShape | None:
    """What the system did: the messages from its first one on that it was not given with the input."""
    messages, given = fields.record.get("messages"), fields.record.get("input")
    if not _are_messages(messages):
        return None
    fields.names["turns"] = "messages"
    found = fields.chat.messages("messages", _resolved(messages, attachments))
    n_given = sum(item["role"] in ("assistant", "tool") for item in given) if _are_messages(given) else 0
    return made(found, n_given)["turns"] or None


def _are_messages(value: Any) -> TypeGuard[list[Mapping[str, Any]]]:
    return (
        isinstance(value, list) and bool(value) and all(isinstance(item, Mapping) and "role" in item for item in value)
    )


def _resolved(messages: list[Mapping[str, Any]], attachments: Any) -> list[dict[str, Any]]:
    """Messages with the texts of each as one, and attachments in their place; without what Inspect notes of each."""
    found = []
    for message in messages:
        content = message.get("content")
        parts = [part for part in content if not _is_text(part)] if isinstance(content, list) else []
        text = _content(content, attachments)
        said = {key: value for key, value in message.items() if key not in _NOTES}
        found.append({**said, "content": [*([text] if text else []), *parts] if parts else text})
    return found


def _is_text(part: Any) -> bool:
    return isinstance(part, Mapping) and part.get("type") == "text"


def _content(value: Any, attachments: Any) -> Any:
    """A text, or the texts of a message's parts."""
    if isinstance(value, str):
        if value.startswith("attachment://") and isinstance(attachments, Mapping):
            return attachments.get(value.removeprefix("attachment://"), value)
        return value
    if not isinstance(value, list):
        return value
    texts = [item.get("text") for item in value if _is_text(item)]
    return "".join(_content(text, attachments) for text in texts if isinstance(text, str))


def _error(fault: Any) -> dict[str, Any] | None:
    if not fault:
        return None
    message = fault.get("message") if isinstance(fault, Mapping) else fault
    return {"kind": "sample_error", "message": str(message)}


def _usage(usage: Any) -> dict[str, Any] | None:
    if not isinstance(usage, Mapping):
        return None
    pairs = {
        "prompt_tokens": usage.get("input_tokens"),
        "completion_tokens": usage.get("output_tokens"),
        "cached_tokens": usage.get("input_tokens_cache_read"),
    }
    return {name: value for name, value in pairs.items() if isinstance(value, int)} or None


def _first_epochs(rows: Iterable[Row], source: Source) -> Iterator[Row]:
    n_later = 0
    for row in rows:
        epoch = (row.data or {}).get("epoch", 1)
        if isinstance(epoch, int) and epoch > 1:
            n_later += 1
        else:
            yield row
    if n_later:
        source.notice("epochs_left_out", f"{n_later} samples of later epochs are left out; the first of each is read")


def _archive(source: Source) -> Iterator[Row]:
    path = source.path
    left = TOTAL_BYTES
    with faults_named(path, "an Inspect log"):
        try:
            with zipfile.ZipFile(path) as archive:
                members = [info for info in archive.infolist() if info.filename.startswith("samples/")]
                members = sorted((info for info in members if info.filename.endswith(".json")), key=_by_number)
                if not members:
                    raise InputError(f"{path}: the log has no samples; write it with log_samples")
                for info in members:
                    data = _unpacked(archive, info, min(MEMBER_BYTES, left), path)
                    left -= len(data)
                    yield _sample(data, info.filename)
        except (zipfile.BadZipFile, zlib.error, EOFError) as error:
            raise InputError(f"{path}: is not a readable .eval archive: {error}") from None
        except (NotImplementedError, RuntimeError) as error:  # a compression that this Python lacks, or a password
            raise InputError(f"{path}: cannot be unpacked: {error}; write the log as JSON") from None


def _by_number(info: zipfile.ZipInfo) -> tuple[int, int, str]:
    """Samples with numbers as ids in their order, then the others by name."""
    head = info.filename.removeprefix("samples/").partition("_epoch_")[0]
    return (0, int(head), "") if head.isdecimal() and len(head) < 19 else (1, 0, info.filename)


def _unpacked(archive: zipfile.ZipFile, info: zipfile.ZipInfo, limit: int, path: Path) -> bytes:
    """A member, at most `limit` bytes, whatever its header says."""
    if info.file_size <= limit:
        try:
            with archive.open(info) as stream:
                data = stream.read(limit + 1)
        except NotImplementedError:
            if info.compress_type != ZSTANDARD:
                raise
            data = _of_zstandard(info, path)
        if len(data) <= limit:
            return data
    raise InputError(
        f"{path}/{info.filename}: unpacks to more than {MEMBER_BYTES // 1024**2} MiB, or the samples together to more "
        f"than {TOTAL_BYTES // 1024**3} GiB; split the log"
    )


def _of_zstandard(info: zipfile.ZipInfo, path: Path) -> bytes:
    try:
        import pyarrow
    except ImportError:
        raise InputError(
            f"{path}: is packed with zstandard, which needs Python 3.14 or pyarrow: pip install pyarrow; "
            "or make it JSON with `inspect log convert`"
        ) from None
    with path.open("rb") as file:
        file.seek(info.header_offset + 26)
        lengths = file.read(4)  # of the name and the further fields that stand before the data
        file.seek(int.from_bytes(lengths[:2], "little") + int.from_bytes(lengths[2:], "little"), 1)
        packed = file.read(info.compress_size)
    try:
        with pyarrow.CompressedInputStream(pyarrow.BufferReader(packed), "zstd") as stream:
            data: bytes = stream.read(info.file_size + 1)
    except (OSError, ValueError) as error:
        raise zipfile.BadZipFile(f"{info.filename}: {error}") from None
    if zlib.crc32(data) != info.CRC:
        raise zipfile.BadZipFile(f"{info.filename}: its checksum is another")
    return data


def _sample(data: bytes, name: str) -> Row:
    try:
        found = json.loads(data)
    except (ValueError, RecursionError) as error:
        return Row(0, "$", None, f"not valid JSON: {error}", file=name)
    if not isinstance(found, dict):
        return Row(0, "$", None, f"expected an object, found {kind_of(found)}", file=name)
    return replace(Row(0, "$", found), file=name)
