"""The cached replies as JSONL, one a line, to carry them to another machine.

What models take stays behind: it belongs to a server, and one small call finds it out again.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any, Literal

import msgspec

from judgekit.core.cache_keys import is_current, kind_and_version
from judgekit.core.errors import ConfigError, InputError
from judgekit.core.text import clean_text
from judgekit.storage.cache_entries import CacheReader
from judgekit.storage.reply_cache import DiskReplyCache, checksum_of, time_text
from judgekit.storage.run_files import replacing

_BATCH_ROWS = 256
_FIELDS = {"key", "reply", "checksum"}


class _Usage(msgspec.Struct, forbid_unknown_fields=True):
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    cached_tokens: int | None = None
    reasoning_tokens: int | None = None
    total_tokens: int | None = None


class _Reply(msgspec.Struct, forbid_unknown_fields=True):
    """A cached reply as the workflows write it."""

    text: str | None
    finish_reason: str | None
    refusal: str | None
    usage: _Usage | None
    served_model: str | None
    fingerprint: str | None
    source: Literal["content", "tool_call"]
    upstream: str | None = None
    replied_at: str | None = None
    """None in what an older judgekit stored."""


def export_entries(reader: CacheReader, path: Path) -> dict[str, int]:
    """Write every sound reply that a run can ask for to a new file.

    Returns:
        `n_exported`, and what was left out: `n_damaged`, `n_other_versions`.

    Raises:
        ConfigError: the file exists, or its folder does not.
        StorageError: the file cannot be written, or the cache not be read.
    """
    if path.exists():
        raise ConfigError(f"{path}: exists already; name a new file")
    if not path.parent.is_dir():
        raise ConfigError(f"{path}: no such folder")
    counts = {"n_exported": 0, "n_damaged": 0, "n_other_versions": 0}
    with replacing(path) as stream:
        for entry in reader.entries():
            if entry.text is None:
                counts["n_damaged"] += 1
            elif not is_current(entry.key):
                counts["n_other_versions"] += 1
            elif kind_and_version(entry.key)[0] == "reply":
                counts["n_exported"] += 1
                text = _with_time(entry.text, time_text(entry.stored_at))
                line = {"key": entry.key, "reply": text, "checksum": checksum_of(entry.key, text)}
                stream.write(json.dumps(line, ensure_ascii=clean_text(text) != text).encode("utf-8") + b"\n")
    return counts


def import_entries(folder: Path, path: Path) -> dict[str, int]:
    """Add the entries of an exported file; the whole file is checked before any is stored.

    An entry that is there already stays as it is; entries of another key version are left out. A reply of a file of an
    older judgekit, which does not say when it was given, is taken to be as old as the file.

    Returns:
        `n_imported`, `n_already_there`, `n_other_versions`.

    Raises:
        InputError: a line is not an entry, or was altered; nothing is imported.
        StorageError: the cache cannot be written.
    """
    for _ in _lines(path):
        pass
    counts = {"n_imported": 0, "n_already_there": 0, "n_other_versions": 0}
    file_time = time_text(path.stat().st_mtime)
    cache = DiskReplyCache(folder)
    try:
        batch: dict[str, str] = {}
        for key, text in _lines(path):
            if not is_current(key):
                counts["n_other_versions"] += 1
            elif key in batch or cache.get(key) is not None:
                counts["n_already_there"] += 1
            else:
                batch[key] = _with_time(text, file_time)
                counts["n_imported"] += 1
            if len(batch) >= _BATCH_ROWS:
                cache.put_many(list(batch.items()))
                batch = {}
        cache.put_many(list(batch.items()))
    finally:
        cache.close()
    return counts


def _lines(path: Path) -> Iterator[tuple[str, str]]:
    """Key and text of every line, checked."""
    try:
        with _opened(path) as stream:
            for number, line in enumerate(stream, start=1):
                if line.strip():
                    yield _checked(line, f"{path}:{number}")
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror or error}") from None


def _opened(path: Path) -> IO[bytes]:
    # Read twice, so that a pipe will not do.
    if not path.is_file():
        raise InputError(f"{path}: {'is not a plain file' if path.exists() else 'no such file'}")
    return path.open("rb")


def _checked(line: bytes, where: str) -> tuple[str, str]:
    try:
        entry: Any = json.loads(line.decode("utf-8"))
    except UnicodeDecodeError as error:
        raise InputError(f"{where}: not text: byte {error.start} is not UTF-8; nothing is imported") from None
    except (ValueError, RecursionError) as error:
        raise InputError(f"{where}: not valid JSON: {error}; nothing is imported") from None
    if (
        not isinstance(entry, dict)
        or set(entry) != _FIELDS
        or not all(isinstance(text, str) for text in entry.values())
    ):
        raise InputError(f"{where}: expected an object of the texts key, reply and checksum; nothing is imported")
    key, text = entry["key"], entry["reply"]
    if checksum_of(key, text) != entry["checksum"]:
        raise InputError(f"{where}: the checksum does not fit, the line was altered; nothing is imported")
    try:
        if kind_and_version(key)[0] != "reply":
            raise ValueError("the key is not one of a reply")
        msgspec.json.decode(text, type=_Reply)
    except (ValueError, RecursionError) as error:
        raise InputError(f"{where}: no cached reply: {error}; nothing is imported") from None
    return key, text


def _with_time(text: str, at: str | None) -> str:
    """A cached reply that holds its time; one of an older judgekit gets the time by which it was there."""
    try:
        fields: Any = json.loads(text)
    except (ValueError, RecursionError):
        return text
    if at is None or not isinstance(fields, dict) or fields.get("replied_at") is not None:
        return text
    return json.dumps({**fields, "replied_at": at}, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
