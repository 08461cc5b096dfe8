"""Files of a run folder: replaced as a whole or added to line by line, a torn end mended, a damaged line named."""

import errno
import fcntl
import json
import os
import shlex
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

import msgspec

from judgekit.core.errors import StorageError
from judgekit.core.probe_sets import PROBE_JUDGMENTS
from judgekit.core.runs import (
    CASES,
    CHUNK_IDS,
    EVAL_RESULTS,
    JUDGE_INPUTS,
    JUDGMENTS,
    MANIFEST,
    METRICS,
    OUTPUTS,
    SCORES,
)

_CUT_OFF = "the file ends in the middle of it"
_MADE_FROM_CONFIG = (CASES, OUTPUTS, JUDGE_INPUTS, CHUNK_IDS)
_WRITTEN_AS_A_WHOLE = (*_MADE_FROM_CONFIG, SCORES)


def damaged_line(path: Path, number: int, why: object) -> StorageError:
    """The error about a line that cannot be read."""
    return StorageError(f"{path}:{number}: damaged line: {why}; {_next_step(path.parent, path.name)}")


def differing_file(path: Path, why: str) -> StorageError:
    """The error about a file of a complete run that is not what the run wrote."""
    step = _next_step(path.parent, path.name)
    return StorageError(f"{path}: damaged: {why}; put back the file as it was, or {step}")


def whole_line(path: Path, number: int, line: bytes) -> bool:
    """Whether a line ends with a line feed; what a crash left of a last line does not.

    Raises:
        StorageError: it does not, in a file that is written as a whole, where no crash leaves such a line.
    """
    if not line.endswith(b"\n") and path.name in _WRITTEN_AS_A_WHOLE:
        raise damaged_line(path, number, _CUT_OFF)
    return line.endswith(b"\n")


def first_damaged_line(path: Path) -> StorageError | None:
    """The error about the first line of a JSONL file that is not JSON; None if each is."""
    if path.suffix != ".jsonl":
        return None
    with path.open("rb") as stream:
        for number, line in enumerate(stream, start=1):
            try:
                msgspec.json.decode(line)
            except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
                return damaged_line(path, number, error)
            if not line.endswith(b"\n"):
                return damaged_line(path, number, _CUT_OFF)
    return None


def _next_step(folder: Path, name: str) -> str:
    """What mends a file, by the state that the run is in."""
    run = shlex.quote(str(folder))
    resume = f"judgekit run --resume {run}"
    manifest = _manifest(folder)
    status = manifest.get("status")
    if name in (SCORES, EVAL_RESULTS) and status != "running" and (folder / METRICS).exists():
        return f"make the file again: judgekit rescore {run}"
    if status == "complete" and manifest.get("files"):
        return _made_again(manifest)
    if name == JUDGMENTS:
        return f"delete the line, then its question can be asked again: {resume}"
    if name == PROBE_JUDGMENTS:
        return f"delete the line, then its question can be asked again: judgekit probe {run}"
    if name not in (SCORES, *_MADE_FROM_CONFIG):
        return "delete the line"
    return _made_again(manifest) if status == "complete" else f"make the file again: {resume}"


def _made_again(manifest: dict[str, Any]) -> str:
    """How a complete run is made again, under another id."""
    if manifest.get("kind") == "rejudge":
        return f"judge the run again that it was made from: judgekit rejudge {shlex.quote(str(manifest.get('parent')))}"
    if manifest.get("kind") == "prefer":
        runs = " ".join(shlex.quote(str(run.get("path"))) for run in manifest.get("compared", ()))
        return f"compare the runs again: judgekit prefer {runs} (what is cached costs nothing)"
    config = shlex.quote(str(manifest.get("config_path")))
    if manifest.get("shard") is not None:
        config += f" --shard {manifest['shard']}"
    return f"make another run: judgekit run {config} (what is cached costs nothing)"


def _manifest(folder: Path) -> dict[str, Any]:
    """The manifest, as far as it can be read: a second fault must not hide the first."""
    try:
        found = json.loads((folder / MANIFEST).read_bytes())
    except (OSError, ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


@contextmanager
def disk_faults_named(path: Path, what: str) -> Iterator[None]:
    """Turn what the system says about one of our files into one line.

    Args:
        path: the file.
        what: the fault, such as `cannot be read`.

    Raises:
        StorageError: there was one.
    """
    try:
        yield
    except OSError as error:
        raise StorageError(f"{path}: {what}: {error.strerror or error}") from None


@contextmanager
def replacing(path: Path) -> Iterator[IO[bytes]]:
    """A stream to a temporary file that takes the place of the file once it is complete.

    Raises:
        StorageError: it cannot be written; the old file stays as it was.
    """
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    with disk_faults_named(path, "cannot be written"):
        try:
            with temporary.open("wb") as stream:
                yield stream
                stream.flush()
                os.fsync(stream.fileno())
            temporary.replace(path)
        except BaseException:
            with suppress(OSError):
                temporary.unlink()
            raise


@contextmanager
def appending(path: Path) -> Iterator[Callable[[bytes], None]]:
    """What adds lines to a file, which no other process adds to meanwhile; a torn last line is cut off first.

    Raises:
        StorageError: it cannot be written; a line is added as a whole or not at all.
    """
    with disk_faults_named(path, "cannot be written"), path.open("ab", buffering=0) as stream:
        fcntl.flock(stream, fcntl.LOCK_EX)
        repair_tail(path)

        def append(line: bytes) -> None:
            size = stream.seek(0, os.SEEK_END)
            try:
                if stream.write(line + b"\n") <= len(line):
                    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
                os.fsync(stream.fileno())
            except OSError:
                with suppress(OSError):
                    os.ftruncate(stream.fileno(), size)
                raise

        yield append


def repair_tail(path: Path) -> int:
    """Cut off a last line without a line feed; returns the number of bytes dropped.

    Raises:
        StorageError: the file cannot be read or cut.
    """
    if not path.exists():
        return 0
    with disk_faults_named(path, "cannot be repaired"), path.open("rb+") as stream:
        size = stream.seek(0, os.SEEK_END)
        keep = _end_of_last_line(stream, size)
        if keep != size:
            stream.truncate(keep)
        return size - keep


def _end_of_last_line(stream: IO[bytes], size: int) -> int:
    position = size
    while position:
        start = max(0, position - 65536)
        stream.seek(start)
        found = stream.read(position - start).rfind(b"\n")
        if found >= 0:
            return start + found + 1
        position = start
    return 0
