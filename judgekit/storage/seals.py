"""Count and hash of the files of a complete run, so that no folder that lost or gained a line is read in silence."""

import hashlib
import os
from collections.abc import Callable, Container, Mapping
from functools import lru_cache
from pathlib import Path

from judgekit.core.errors import StorageError
from judgekit.core.human_labels import CALIBRATION
from judgekit.core.probe_sets import PROBE_INPUTS, PROBE_JUDGMENTS, PROBES
from judgekit.core.runs import (
    BRIDGE,
    CASES,
    CHUNK_IDS,
    CONFIG,
    DRIFT_CHECKS,
    EVAL_RESULTS,
    JUDGE_INPUTS,
    JUDGMENTS,
    METRICS,
    METRICS_HISTORY,
    OUTPUTS,
    PROMPTS,
    SCORES,
    FileSeal,
    Manifest,
)
from judgekit.core.spot_checks import CHECKS
from judgekit.storage.run_files import differing_file, disk_faults_named, first_damaged_line

_NEVER_CHANGED = (CONFIG, CASES, OUTPUTS, JUDGE_INPUTS, CHUNK_IDS)
"""Files that no command changes in a complete run that stays complete."""
_APPENDED = (JUDGMENTS, PROBE_JUDGMENTS, DRIFT_CHECKS)
_ADDED_TO_AT_ANY_TIME = (DRIFT_CHECKS,)
"""Files that other processes add lines to, without holding the run."""
_REPLACED = (PROMPTS, SCORES, METRICS, EVAL_RESULTS, CHECKS, CALIBRATION, BRIDGE, PROBES, PROBE_INPUTS, METRICS_HISTORY)
SEALED = (*_NEVER_CHANGED, *_APPENDED, *_REPLACED)
"""Files that figures rest on. Left out are pages made from them, and what people write: tags and labels."""

_PIECE_BYTES = 1 << 20


def seals_of(folder: Path) -> dict[str, FileSeal]:
    """Count and hash of the files of a run as they are now.

    Raises:
        StorageError: a file cannot be read.
    """
    return {name: _seal(folder / name) for name in SEALED if (folder / name).is_file()}


def check_seals(folder: Path, manifest: Manifest, names: Container[str] = SEALED) -> None:
    """Hold the files of a complete run against its manifest; a run that was written before there were hashes passes.

    While a command changes the run, or where one was killed while it did, lines may have been added, and files that
    commands replace may be new.

    Raises:
        StorageError: a file is not what the run wrote.
    """
    if manifest.status != "complete":
        return
    for name, seal in manifest.files.items():
        if name in SEALED and name in names:
            _check(folder / name, seal, changing=manifest.changing)


def check_as_it_changes(folder: Path, manifest: Callable[[], Manifest], names: Container[str]) -> None:
    """Hold the files of a run against its manifest, which another process may be writing at the same time.

    Args:
        folder: the run.
        manifest: reads it as it is now.
        names: files to look at.

    Raises:
        StorageError: a file is not what the run wrote.
    """
    found = manifest()
    while True:
        try:
            check_seals(folder, found, names)
            return
        except StorageError:
            before, found = found, manifest()
            if found == before:
                raise


def holds(data: bytes, name: str, files: Mapping[str, FileSeal]) -> bool:
    """Whether a file that was read as a whole is the one that the run wrote; true if the manifest does not say."""
    return name not in files or hashlib.sha256(data).hexdigest() == files[name].sha256


def _check(path: Path, seal: FileSeal, *, changing: bool) -> None:
    if changing and path.name in _REPLACED:
        return
    if not path.exists():
        raise differing_file(path, "it is gone")
    now = _seal(path)
    if now == seal:
        return
    may_be_longer = path.name in _ADDED_TO_AT_ANY_TIME or (changing and path.name in _APPENDED)
    if may_be_longer and now.bytes > seal.bytes and _seal(path, seal.bytes) == seal:
        return
    broken = first_damaged_line(path)
    if broken is not None:
        raise broken
    if now.lines != seal.lines:
        raise differing_file(path, f"it has {now.lines} lines, and the run wrote {seal.lines}")
    raise differing_file(path, "its text is not what the run wrote")


def _seal(path: Path, most_bytes: int | None = None) -> FileSeal:
    with disk_faults_named(path, "cannot be read"):
        status = path.stat()
        stamp = (status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)
        return _hashed(os.fspath(path), stamp, most_bytes)


@lru_cache(maxsize=4096)  # a command opens a run several times; a changed file has another stamp
def _hashed(path: str, _stamp: object, most_bytes: int | None) -> FileSeal:
    sha256, n_lines, n_bytes = hashlib.sha256(), 0, 0
    with Path(path).open("rb", buffering=0) as stream:
        while piece := stream.read(_PIECE_BYTES if most_bytes is None else min(_PIECE_BYTES, most_bytes - n_bytes)):
            sha256.update(piece)
            n_lines += piece.count(b"\n")
            n_bytes += len(piece)
    return FileSeal(lines=n_lines, bytes=n_bytes, sha256=sha256.hexdigest())
